//! Links, as documents hold them.

use crate::limits::{DocumentOddityKind, Limits};
use crate::rel::Rel;
use crate::text::trim;

/// A link, as it stands in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Link {
    /// The address as written, without white space at its ends; not resolved, so it may
    /// be relative, empty (this page), or nothing that a crawler can use. In a page of a legacy
    /// charset, a query with other characters than ASCII is percent-encoded in that charset.
    pub href: String,
    /// The element that holds it.
    pub element: Element,
    /// The attribute that holds it, in lower case. In CSS, `url` or `@import`; in a header,
    /// the header's name.
    pub attribute: &'static str,
    /// The use of following it.
    pub kind: LinkKind,
    /// Its link types.
    pub rel: Rel,
    /// The media type that the document says the target has, in lower case.
    pub media_type: Option<String>,
    /// The text of an `a`, white space collapsed; the `alt` of an `area`. `None` where
    /// empty.
    pub text: Option<String>,
}

impl Link {
    /// A link without types or text.
    pub(crate) fn new(
        href: String,
        element: Element,
        attribute: &'static str,
        kind: LinkKind,
    ) -> Link {
        Link {
            href,
            element,
            attribute,
            kind,
            rel: Rel::default(),
            media_type: None,
            text: None,
        }
    }
}

/// The use of following a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LinkKind {
    /// A person could follow it, or sees the target as a part of the page (a frame).
    Page,
    /// A browser loads it to show the page: a style sheet, a script, an image.
    Resource,
    /// A feed of the site's news (RSS, Atom, JSON Feed).
    Feed,
    /// The target of a form that is sent by GET.
    Form,
    /// None of these: a hint about a connection, an interface for programs, the source of
    /// a quotation, an unknown `rel`.
    Other,
}

/// The place of a link. It is written as the element's name in lower case; `meta` for a refresh,
/// `*` for any element's `style`, `css` for a style sheet, `http` for a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "lowercase")]
#[non_exhaustive]
pub enum Element {
    /// `<a href>`, in HTML or SVG.
    A,
    /// `<area href>`
    Area,
    /// `<link href imagesrcset>`
    Link,
    /// `<frame src longdesc>`
    Frame,
    /// `<iframe src longdesc>`
    Iframe,
    /// `<meta http-equiv=refresh content="..; url=..">`
    #[strum(serialize = "meta")]
    MetaRefresh,
    /// `<img src srcset lowsrc longdesc>`
    Img,
    /// `<source src srcset>`, of a picture, a video or a sound.
    Source,
    /// `<video src poster>`
    Video,
    /// `<audio src>`
    Audio,
    /// `<bgsound src>`
    Bgsound,
    /// `<track src>`
    Track,
    /// `<embed src>`
    Embed,
    /// `<object data archive>`
    Object,
    /// `<applet code object archive>`
    Applet,
    /// `<script src>`; in SVG `href` and `xlink:href`.
    Script,
    /// `<form action>` with the method GET.
    Form,
    /// `<input type=image src>`, `<input formaction>`
    Input,
    /// `<button formaction>`
    Button,
    /// `<body background>`
    Body,
    /// `<table background>`
    Table,
    /// `<thead background>`
    Thead,
    /// `<tbody background>`
    Tbody,
    /// `<tfoot background>`
    Tfoot,
    /// `<tr background>`
    Tr,
    /// `<td background>`
    Td,
    /// `<th background>`
    Th,
    /// `<blockquote cite>`
    Blockquote,
    /// `<q cite>`
    Q,
    /// `<del cite>`
    Del,
    /// `<ins cite>`
    Ins,
    /// The text of a `style` element, in HTML or SVG.
    Style,
    /// The `style` attribute of any element.
    #[strum(serialize = "*")]
    Any,
    /// `<image href>` of SVG.
    #[strum(serialize = "image")]
    SvgImage,
    /// `<use href>` of SVG.
    #[strum(serialize = "use")]
    SvgUse,
    /// `<feImage href>` of SVG.
    #[strum(serialize = "feimage")]
    SvgFeImage,
    /// The `href` of any element of MathML.
    Math,
    /// A style sheet that is a document of its own.
    #[strum(serialize = "css")]
    StyleSheet,
    /// A header of the answer: `Link` or `Refresh`.
    #[strum(serialize = "http")]
    Header,
}

/// The use of a `link` element or header, by its types and the media type it declares.
pub(crate) fn kind_of_link(rel: Rel, media_type: Option<&str>) -> LinkKind {
    if rel.intersects(Rel::RESOURCES) {
        return LinkKind::Resource;
    }
    if !rel.intersects(Rel::PAGES) {
        return LinkKind::Other;
    }
    match media_type {
        Some("application/rss+xml" | "application/atom+xml" | "application/feed+json") => {
            LinkKind::Feed
        }
        // oEmbed, sitemaps and other things for programs; no person reads them.
        Some(other) if is_data(other) => LinkKind::Other,
        _ => LinkKind::Page,
    }
}

fn is_data(media_type: &str) -> bool {
    let html = media_type.contains("xhtml");
    !html && (media_type.contains("json") || media_type.contains("xml"))
}

/// Links as they are gathered, up to the limits.
#[derive(Debug, Default)]
pub(crate) struct Links {
    pub(crate) found: Vec<Link>,
    /// The number of resources among them.
    resources: usize,
}

/// Links of most pages, for which there is room at once.
const USUAL_LINKS: usize = 128;

impl Links {
    /// Those of a page.
    pub(crate) fn of_page() -> Links {
        Links {
            found: Vec::with_capacity(USUAL_LINKS),
            resources: 0,
        }
    }

    /// The address that `href` is, if there is room for such a link. An address of a resource
    /// that stands in the document itself (a fragment, a `data:` URL) is none.
    ///
    /// # Errors
    /// The limit that leaves no room; `None` where nothing is lost.
    pub(crate) fn room(
        &self,
        href: &str,
        kind: LinkKind,
        limits: &Limits,
    ) -> Result<String, Option<DocumentOddityKind>> {
        let href = trim(href);
        if kind == LinkKind::Resource {
            if href.is_empty() || stands_here(href) {
                return Err(None);
            }
            if self.resources >= limits.resources {
                return Err(Some(DocumentOddityKind::ResourcesFull));
            }
        } else if self.found.len() - self.resources >= limits.links {
            return Err(Some(DocumentOddityKind::LinksFull));
        }
        if href.len() > limits.href_bytes {
            return Err(Some(DocumentOddityKind::HrefTooLong));
        }
        Ok(href.to_owned())
    }

    /// Adds a link for which there was room; gives its position.
    pub(crate) fn push(&mut self, link: Link) -> usize {
        self.resources += usize::from(link.kind == LinkKind::Resource);
        self.found.push(link);
        self.found.len() - 1
    }
}

/// Returns whether a resource is a part of the document, or made by a script.
fn stands_here(href: &str) -> bool {
    let scheme = |name: &str| {
        href.get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    href.starts_with('#')
        || ["data:", "blob:", "about:", "javascript:"]
            .into_iter()
            .any(scheme)
}

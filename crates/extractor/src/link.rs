//! Links of documents.

use std::borrow::Cow;

use crate::collapsed_text_builder::trim;
use crate::link_rel::Rel;
use crate::reading_limits::{DocumentOddityKind, ReadingLimits};

/// A link in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Link {
    /// The URL as written, trimmed but not resolved: it may be relative, empty (this page), or
    /// unusable for a crawler. In a page in a legacy charset, a query with non-ASCII characters is
    /// percent-encoded in that charset.
    pub href: String,
    /// The element that contains the link.
    pub element: LinkElement,
    /// The attribute that contains the link, in lower case. For CSS, `url` or `@import`; for a
    /// header, the header's name.
    pub attribute: &'static str,
    /// What the target is used for, such as a page or a resource.
    pub kind: LinkKind,
    /// The link types in the `rel` of the link, such as `nofollow`.
    pub rel: Rel,
    /// The media type that the document declares for the target, in lower case.
    pub media_type: Option<String>,
    /// The text of an `a`, with white space collapsed, or the `alt` of an `area`. `None` if it is
    /// empty, and for other elements.
    pub text: Option<String>,
}

impl Link {
    /// Creates a link without types or text.
    pub(crate) fn new(
        href: String,
        element: LinkElement,
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

    /// Returns the fragment of the link, without tabs and line breaks. `None` if it is empty.
    #[must_use]
    pub fn fragment(&self) -> Option<Cow<'_, str>> {
        let (_, fragment) = self.href.split_once('#')?;
        Some(without_line_breaks(fragment)).filter(|fragment| !fragment.is_empty())
    }
}

/// Returns a part of a URL without tabs and line breaks, which URL parsers remove (URL Standard,
/// section 4.4).
pub(crate) fn without_line_breaks(part: &str) -> Cow<'_, str> {
    const REMOVED: [char; 3] = ['\t', '\n', '\r'];
    match part.contains(REMOVED) {
        true => Cow::Owned(part.replace(REMOVED, "")),
        false => Cow::Borrowed(part),
    }
}

/// What the target of a link is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LinkKind {
    /// A page: a person could follow the link, or sees the target in a frame.
    Page,
    /// A resource that a browser loads to show the page, such as a style sheet, a script or an
    /// image.
    Resource,
    /// A feed (RSS, Atom, JSON Feed).
    Feed,
    /// The URL of a form that is sent with the method GET.
    Form,
    /// The URL of a form that is sent with the method POST.
    PostForm,
    /// Anything else: a hint about a connection, an interface for programs, the source of a
    /// quotation, an unknown `rel`.
    Other,
}

/// The element or header that contains a link. The `Display` form is the element's name in lower
/// case, except for: `meta` for a refresh, `*` for the `style` attribute of any element, `css` for
/// a style sheet, and `http` for a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "lowercase")]
#[non_exhaustive]
pub enum LinkElement {
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
    /// `<source src srcset>`, in `<picture>`, `<video>` or `<audio>`.
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
    /// `<form action>`
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
    /// A separate style sheet.
    #[strum(serialize = "css")]
    StyleSheet,
    /// A header of the response: `Link` or `Refresh`.
    #[strum(serialize = "http")]
    Header,
}

/// Returns what the target of a `link` element or a `Link` header is used for. This depends on the
/// `rel` and on the declared media type.
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
        // Documents of these types, such as oEmbed data and sitemaps, are for programs.
        Some(other) if is_data(other) => LinkKind::Other,
        _ => LinkKind::Page,
    }
}

fn is_data(media_type: &str) -> bool {
    let html = media_type.contains("xhtml");
    !html && (media_type.contains("json") || media_type.contains("xml"))
}

/// Collects links up to the limits.
#[derive(Debug, Default)]
pub(crate) struct LinkCollector {
    pub(crate) found: Vec<Link>,
    /// Number of resources among the links in `found`.
    resources: usize,
}

/// Number of links to reserve memory for, enough for most pages.
const USUAL_LINKS: usize = 128;

impl LinkCollector {
    /// Creates a collector with room for the links of a typical page.
    pub(crate) fn of_page() -> LinkCollector {
        LinkCollector {
            found: Vec::with_capacity(USUAL_LINKS),
            resources: 0,
        }
    }

    /// Returns `href` trimmed, if the limits allow one more link of the kind `kind`. Refuses
    /// resources within the document itself (a fragment, a `data:` URL).
    ///
    /// # Errors
    /// The limit that is reached, or `None` if the resource was refused because it is part of the
    /// document.
    pub(crate) fn room(
        &self,
        href: &str,
        kind: LinkKind,
        limits: &ReadingLimits,
    ) -> Result<String, Option<DocumentOddityKind>> {
        let href = trim(href);
        if kind == LinkKind::Resource {
            if href.is_empty() || is_in_document(href) {
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

    /// Adds a link that [`LinkCollector::room`] allowed, and returns its index.
    pub(crate) fn push(&mut self, link: Link) -> usize {
        self.resources += usize::from(link.kind == LinkKind::Resource);
        self.found.push(link);
        self.found.len() - 1
    }
}

/// Returns whether the URL of a resource is in the document itself: a fragment, data in the URL, or
/// the result of a script.
fn is_in_document(href: &str) -> bool {
    let scheme = |name: &str| {
        href.get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    href.starts_with('#')
        || ["data:", "blob:", "about:", "javascript:"]
            .into_iter()
            .any(scheme)
}

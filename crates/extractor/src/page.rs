//! What was read in a page.

use crawl_weburl::{CanonicalUrl, canonicalize};

use crate::charset::CharsetSource;
use crate::limits::Oddity;
use crate::rel::Rel;

/// What a page says.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Page {
    /// The text of the first `title` outside SVG, its white space collapsed. `None`
    /// where there is none or it is empty.
    pub title: Option<String>,
    /// The `href` of the first `base` that has one, as written; see [`Page::base_url`].
    pub base: Option<String>,
    /// Links in the order of the page. The same address may stand here often.
    pub links: Vec<Link>,
    /// `meta` elements with a name, in the order of the page.
    pub metas: Vec<Meta>,
    /// The name, in the Encoding Standard, of the charset that the page was read in.
    pub charset: &'static str,
    /// What named that charset.
    pub charset_source: CharsetSource,
    /// What was wrong or left out, each kind once.
    pub oddities: Vec<Oddity>,
}

impl Page {
    /// What the page's links are relative to, when the page itself stands at `page`: its
    /// `base`, or `page` where it has none that a crawler can use.
    #[must_use]
    pub fn base_url(&self, page: &CanonicalUrl) -> CanonicalUrl {
        let base = self.base.as_deref();
        base.and_then(|base| canonicalize(Some(page), base).ok())
            .unwrap_or_else(|| page.clone())
    }

    /// Name and content of each named `meta`, the names in lower case.
    pub fn meta_pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.metas
            .iter()
            .map(|meta| (meta.name.as_str(), meta.content.as_str()))
    }
}

impl Default for Page {
    /// An empty page.
    fn default() -> Self {
        Page {
            title: None,
            base: None,
            links: Vec::new(),
            metas: Vec::new(),
            charset: "UTF-8",
            charset_source: CharsetSource::ValidUtf8,
            oddities: Vec::new(),
        }
    }
}

/// A link, as it stands in a page.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Link {
    /// The address as written, without white space at its ends; not resolved, so it may
    /// be relative, empty (this page), or nothing that a crawler can use.
    pub href: String,
    /// The element that holds it.
    pub element: Element,
    /// What following it is good for.
    pub kind: LinkKind,
    /// Its link types.
    pub rel: Rel,
    /// The media type that the page says the target has, in lower case.
    pub media_type: Option<String>,
    /// The text of an `a`, white space collapsed; the `alt` of an `area`. `None` where
    /// empty.
    pub text: Option<String>,
}

/// Where a link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Element {
    /// `<a href>`, in HTML or SVG.
    A,
    /// `<area href>`
    Area,
    /// `<link href>`
    Link,
    /// `<frame src>`
    Frame,
    /// `<iframe src>`
    Iframe,
    /// `<meta http-equiv=refresh content="..; url=..">`
    MetaRefresh,
}

impl Element {
    /// The element's name in lower case; `meta` for a refresh.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Element::A => "a",
            Element::Area => "area",
            Element::Link => "link",
            Element::Frame => "frame",
            Element::Iframe => "iframe",
            Element::MetaRefresh => "meta",
        }
    }
}

/// What following a link is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LinkKind {
    /// A person could follow it, or sees the target as a part of the page (a frame).
    Page,
    /// A browser loads it to show the page: a style sheet, an icon.
    Resource,
    /// A feed of the site's news (RSS, Atom, JSON Feed).
    Feed,
    /// Neither: a hint about a connection, an interface for programs, an unknown `rel`.
    Other,
}

/// A `meta` element with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Meta {
    /// The name in lower case, without white space at its ends.
    pub name: String,
    /// The content as written.
    pub content: String,
}

/// What a `link` element is good for, by its types and the media type it declares.
pub(crate) fn kind_of_link(rel: Rel, media_type: Option<&str>) -> LinkKind {
    const RESOURCES: [Rel; 8] = [
        Rel::STYLESHEET,
        Rel::ICON,
        Rel::APPLE_TOUCH_ICON,
        Rel::MASK_ICON,
        Rel::PRELOAD,
        Rel::MODULEPRELOAD,
        Rel::PREFETCH,
        Rel::MANIFEST,
    ];
    const PAGES: [Rel; 17] = [
        Rel::CANONICAL,
        Rel::ALTERNATE,
        Rel::NEXT,
        Rel::PREV,
        Rel::FIRST,
        Rel::LAST,
        Rel::UP,
        Rel::CONTENTS,
        Rel::INDEX,
        Rel::START,
        Rel::HELP,
        Rel::LICENSE,
        Rel::AUTHOR,
        Rel::BOOKMARK,
        Rel::TAG,
        Rel::SHORTLINK,
        Rel::AMPHTML,
    ];
    if RESOURCES.into_iter().any(|kind| rel.contains(kind)) {
        return LinkKind::Resource;
    }
    if !rel.contains(Rel::ME) && !PAGES.into_iter().any(|kind| rel.contains(kind)) {
        return LinkKind::Other;
    }
    match media_type {
        Some("application/rss+xml" | "application/atom+xml" | "application/feed+json") => {
            LinkKind::Feed
        }
        // oEmbed and other interfaces for programs; no person reads them.
        Some(other) if rel.contains(Rel::ALTERNATE) && is_data(other) => LinkKind::Other,
        _ => LinkKind::Page,
    }
}

fn is_data(media_type: &str) -> bool {
    let html = media_type.contains("xhtml");
    !html && (media_type.contains("json") || media_type.contains("xml"))
}

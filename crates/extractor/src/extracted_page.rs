//! The result of reading a page.

use crawl_weburl::{CanonicalUrl, canonicalize};

use crate::charset::CharsetSource;
use crate::link::Link;
use crate::reading_limits::DocumentOddity;

/// The links and metadata of a page.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExtractedPage {
    /// The text of the first `title` outside SVG, with white space collapsed. `None` if it is
    /// missing or empty.
    pub title: Option<String>,
    /// The `href` of the first `base` that has one, as written. See [`ExtractedPage::base_url`].
    pub base: Option<String>,
    /// The `href` of the first `link` with `rel=canonical` in the head, as written. A
    /// `rel=canonical` in the body is ignored, because visitors of the site may have written it.
    pub canonical: Option<String>,
    /// The content of the first `meta name=url` in the head, as written. Mirrored and generated
    /// pages give the URL of their original there.
    pub master_url: Option<String>,
    /// The target of the first `meta` refresh in the head that redirects at once, as written. A
    /// refresh in the body is ignored, because visitors of the site may have written it. A refresh
    /// in a `noscript` is ignored, because it is for browsers without scripts.
    pub redirect: Option<String>,
    /// Links in page order, including resources. Duplicates are kept.
    pub links: Vec<Link>,
    /// The `meta` elements with a name, in page order.
    pub metas: Vec<NamedMeta>,
    /// The amount of visible text, links and password fields, from which callers can see whether
    /// the page is a text, or only a form or a notice.
    pub outline: VisibleContentCounts,
    /// The charset that the page was decoded with, by its name in the Encoding Standard.
    pub charset: &'static str,
    /// How the charset was determined.
    pub charset_source: CharsetSource,
    /// Defects and omissions, each kind once.
    pub oddities: Vec<DocumentOddity>,
}

impl ExtractedPage {
    /// Returns the URL that relative links of the page are resolved against: the URL in its `base`
    /// if that is usable, else `page`, the URL of the page itself.
    #[must_use]
    pub fn base_url(&self, page: &CanonicalUrl) -> CanonicalUrl {
        let base = self.base.as_deref();
        base.and_then(|base| canonicalize(Some(page), base).ok())
            .unwrap_or_else(|| page.clone())
    }

    /// Returns the canonical URL that the page at `page` declares, or `None` if it declares none or
    /// declares `page` itself. The first usable URL counts: `rel=canonical` in the page, then
    /// `linked` (the target of a `Link` header with `rel=canonical`; RFC 8288, RFC 6596), then
    /// `meta name=url`.
    #[must_use]
    pub fn stands_elsewhere(
        &self,
        page: &CanonicalUrl,
        linked: Option<&str>,
    ) -> Option<CanonicalUrl> {
        let base = self.base_url(page);
        let named = |base, href: Option<&str>| canonicalize(Some(base), href?).ok();
        let declared = named(&base, self.canonical.as_deref())
            .or_else(|| named(page, linked))
            .or_else(|| named(&base, self.master_url.as_deref()))?;
        (declared != *page).then_some(declared)
    }

    /// Returns the URL to which the page at `page` redirects at once with a `meta` refresh, if it
    /// isn't `page` itself.
    #[must_use]
    pub fn redirects_to(&self, page: &CanonicalUrl) -> Option<CanonicalUrl> {
        let target = canonicalize(Some(&self.base_url(page)), self.redirect.as_deref()?).ok()?;
        (target != *page).then_some(target)
    }

    /// Returns the name (in lower case) and the content of each `meta` with a name.
    pub fn meta_pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.metas
            .iter()
            .map(|meta| (meta.name.as_str(), meta.content.as_str()))
    }
}

impl Default for ExtractedPage {
    /// Returns an empty page.
    fn default() -> Self {
        ExtractedPage {
            title: None,
            base: None,
            canonical: None,
            master_url: None,
            redirect: None,
            links: Vec::new(),
            metas: Vec::new(),
            outline: VisibleContentCounts::default(),
            charset: "UTF-8",
            charset_source: CharsetSource::ValidUtf8,
            oddities: Vec::new(),
        }
    }
}

/// The heading of a page, the amount of text, links and password fields that it shows, and whether
/// it has scripts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VisibleContentCounts {
    /// The text of the first non-empty `h1`, with white space collapsed.
    pub heading: Option<String>,
    /// Number of password fields.
    pub passwords: usize,
    /// Number of `a` elements, whether or not they have a URL.
    pub links: usize,
    /// Number of characters of the text except white space, up to 8,192. Character references count
    /// as written: `&amp;` as five characters. Titles, form fields, scripts and styles are not
    /// counted.
    pub letters: usize,
    /// Number of characters, counted as in `letters`, outside containers such as `div` that a
    /// `hidden` or `style` attribute hides.
    pub shown_letters: usize,
    /// Whether the page has a script that isn't only data, such as a description in JSON.
    pub has_scripts: bool,
}

/// A `meta` element with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedMeta {
    /// The name in lower case, trimmed.
    pub name: String,
    /// The content as written.
    pub content: String,
}

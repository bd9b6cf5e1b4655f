//! A page as it was read.

use crawl_weburl::{CanonicalUrl, canonicalize};

use crate::charset::CharsetSource;
use crate::limits::DocumentOddity;
use crate::link::Link;

/// The links and metadata of a page.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Page {
    /// The text of the first `title` outside SVG, its white space collapsed. `None`
    /// where there is none or it is empty.
    pub title: Option<String>,
    /// The `href` of the first `base` that has one, as written; see [`Page::base_url`].
    pub base: Option<String>,
    /// The `href` of the first `link` with `rel=canonical` in the head, as written. One in the body
    /// may stand in text that a visitor wrote.
    pub canonical: Option<String>,
    /// The content of the first META URL in the head, as written: the master copy of a mirrored
    /// or generated page.
    pub master_url: Option<String>,
    /// Links in the order of the page, resources among them. The same address may stand
    /// here often.
    pub links: Vec<Link>,
    /// `meta` elements with a name, in the order of the page.
    pub metas: Vec<Meta>,
    /// The parts by which a form or a notice is told from a page of text.
    pub outline: Outline,
    /// The name, in the Encoding Standard, of the charset that the page was read in.
    pub charset: &'static str,
    /// The source that named that charset.
    pub charset_source: CharsetSource,
    /// Defects, and parts that were left out, each kind once.
    pub oddities: Vec<DocumentOddity>,
}

impl Page {
    /// The base of the page's links, when the page itself stands at `page`: its
    /// `base`, or `page` where it has none that a crawler can use.
    #[must_use]
    pub fn base_url(&self, page: &CanonicalUrl) -> CanonicalUrl {
        let base = self.base.as_deref();
        base.and_then(|base| canonicalize(Some(page), base).ok())
            .unwrap_or_else(|| page.clone())
    }

    /// The other page that this one, at `page`, calls its own: by a `rel=canonical`, else by
    /// `linked`, the target of a `Link` header with that relation (RFC 8288, RFC 6596), else by
    /// META URL. An address that nothing can be fetched from, such as a file's, names none.
    #[must_use]
    pub fn stands_elsewhere(
        &self,
        page: &CanonicalUrl,
        linked: Option<&str>,
    ) -> Option<CanonicalUrl> {
        let base = self.base_url(page);
        let named = |base, href: Option<&str>| canonicalize(Some(base), href?).ok();
        let other = named(&base, self.canonical.as_deref())
            .or_else(|| named(page, linked))
            .or_else(|| named(&base, self.master_url.as_deref()))?;
        (other != *page).then_some(other)
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
            canonical: None,
            master_url: None,
            links: Vec::new(),
            metas: Vec::new(),
            outline: Outline::default(),
            charset: "UTF-8",
            charset_source: CharsetSource::ValidUtf8,
            oddities: Vec::new(),
        }
    }
}

/// The outline of a page: how much of what it shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outline {
    /// The text of the first `h1` that has some, its white space collapsed.
    pub heading: Option<String>,
    /// Fields for a password.
    pub passwords: usize,
    /// Elements `a`, with an address or without.
    pub links: usize,
    /// Characters of text but blanks, as they are written; without titles, form fields, scripts and
    /// styles. 8,192 stands for any more.
    pub letters: usize,
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

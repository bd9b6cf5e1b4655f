//! URLs in feeds, which may be relative to an `xml:base`.

use std::sync::Arc;

use crawl_weburl::{CanonicalUrl, UnusableUrlError, canonicalize};

/// Maximum number of nested `xml:base` values; real feeds need two.
const MAX_LEVELS: u8 = 16;

/// The value of an `xml:base`. The value may be relative to the `xml:base` of an outer element.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct XmlBase {
    href: String,
    outer: Option<Arc<XmlBase>>,
    levels: u8,
}

impl XmlBase {
    /// Creates a base that is relative to `outer`. `None` if more than [`MAX_LEVELS`] bases are
    /// nested.
    pub(crate) fn within(outer: Option<&Arc<XmlBase>>, href: String) -> Option<Arc<XmlBase>> {
        let levels = outer.map_or(0, |outer| outer.levels) + 1;
        (levels <= MAX_LEVELS).then(|| {
            Arc::new(XmlBase {
                href,
                outer: outer.cloned(),
                levels,
            })
        })
    }

    /// Returns the base as an absolute URL. `document` is the URL of the document that contains the
    /// base. A base that is not a usable URL is ignored.
    fn url(&self, document: &CanonicalUrl) -> CanonicalUrl {
        let outer = match &self.outer {
            Some(outer) => outer.url(document),
            None => document.clone(),
        };
        canonicalize(Some(&outer), &self.href).unwrap_or(outer)
    }
}

/// A URL in a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnresolvedFeedUrl {
    /// The URL as written, trimmed; never empty.
    pub href: String,
    /// The innermost `xml:base` that applies.
    base: Option<Arc<XmlBase>>,
}

impl UnresolvedFeedUrl {
    pub(crate) fn new(href: String, base: Option<&Arc<XmlBase>>) -> UnresolvedFeedUrl {
        UnresolvedFeedUrl {
            href,
            base: base.cloned(),
        }
    }

    /// Resolves the URL in a feed at `feed`, with the `xml:base` of the surrounding elements
    /// (RFC 4287 section 2).
    ///
    /// # Errors
    /// The reason why a crawler can't use the URL.
    pub fn resolve(&self, feed: &CanonicalUrl) -> Result<CanonicalUrl, UnusableUrlError> {
        match &self.base {
            Some(base) => canonicalize(Some(&base.url(feed)), &self.href),
            None => canonicalize(Some(feed), &self.href),
        }
    }
}

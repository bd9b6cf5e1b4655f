//! The base of an address in a feed.

use std::sync::Arc;

use crawl_weburl::{CanonicalUrl, Unusable, canonicalize};

/// Bases within bases that are followed; a feed needs two.
const MAX_LEVELS: u8 = 16;

/// An `xml:base`, which may itself be relative to the one around it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Base {
    href: String,
    outer: Option<Arc<Base>>,
    levels: u8,
}

impl Base {
    /// A base within another; nothing where there are too many already.
    pub(crate) fn within(outer: Option<&Arc<Base>>, href: String) -> Option<Arc<Base>> {
        let levels = outer.map_or(0, |outer| outer.levels) + 1;
        (levels <= MAX_LEVELS).then(|| {
            Arc::new(Base {
                href,
                outer: outer.cloned(),
                levels,
            })
        })
    }

    /// The absolute URL in a document at `document`. A base that a crawler can't use is as
    /// none.
    fn url(&self, document: &CanonicalUrl) -> CanonicalUrl {
        let outer = match &self.outer {
            Some(outer) => outer.url(document),
            None => document.clone(),
        };
        canonicalize(Some(&outer), &self.href).unwrap_or(outer)
    }
}

/// An address in a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedUrl {
    /// The address as written, without white space at its ends; never empty.
    pub href: String,
    /// The `xml:base` around it.
    base: Option<Arc<Base>>,
}

impl FeedUrl {
    pub(crate) fn new(href: String, base: Option<&Arc<Base>>) -> FeedUrl {
        FeedUrl {
            href,
            base: base.cloned(),
        }
    }

    /// The URL that it names in a feed at `feed`: RFC 4287 section 2, with the `xml:base` of
    /// the elements around.
    ///
    /// # Errors
    /// The reason why a crawler can't use it.
    pub fn resolve(&self, feed: &CanonicalUrl) -> Result<CanonicalUrl, Unusable> {
        match &self.base {
            Some(base) => canonicalize(Some(&base.url(feed)), &self.href),
            None => canonicalize(Some(feed), &self.href),
        }
    }
}

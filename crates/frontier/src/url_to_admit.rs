//! Admissions: URLs to be added to the frontier.

use crawl_weburl::CanonicalUrl;

use crate::not_fetched_reason::NotFetchedReason;

/// A URL to be added to the frontier, with the path that led to it and whether it may be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlToAdmit {
    /// The URL.
    pub url: CanonicalUrl,
    /// The number of links followed from a seed to the URL. A seed has 0, and a redirect target has
    /// the depth of its source.
    pub depth: u32,
    /// The number of links followed since the path left the crawl's scope; 0 for a URL in scope. A
    /// path with fewer hops off scope is nearer, even if its depth is greater.
    pub hops_off: u8,
    /// The number of consecutive redirects followed to the URL.
    pub redirects: u8,
    /// The page that the URL was found on; `None` for a seed.
    pub via: Option<CanonicalUrl>,
    /// The priority among the URLs of the same origin. The URL with the lowest number is fetched
    /// first. Seeds have 0.
    pub priority: u8,
    /// The state that the URL should get.
    pub state: RequestedState,
    /// Whether the user named the URL.
    pub is_seed: bool,
    /// The kind of document that the response is read as.
    pub kind: UrlKind,
}

/// The priority that [`UrlToAdmit::link`] sets. Seeds and sitemaps may have a lower number, to be
/// fetched earlier. Less important URLs may have a higher number.
pub(crate) const LINK_PRIORITY: u8 = 128;

impl UrlToAdmit {
    /// Creates a pending page that the user named: depth 0, priority 0.
    #[must_use]
    pub fn seed(url: CanonicalUrl) -> UrlToAdmit {
        UrlToAdmit {
            depth: 0,
            via: None,
            priority: 0,
            is_seed: true,
            ..UrlToAdmit::link(url.clone(), 0, url)
        }
    }

    /// Creates a pending page that `via` links to, with the middle priority (128).
    #[must_use]
    pub fn link(url: CanonicalUrl, depth: u32, via: CanonicalUrl) -> UrlToAdmit {
        UrlToAdmit {
            url,
            depth,
            hops_off: 0,
            redirects: 0,
            via: Some(via),
            priority: LINK_PRIORITY,
            state: RequestedState::Pending,
            is_seed: false,
            kind: UrlKind::Page,
        }
    }
}

impl UrlToAdmit {
    /// Returns the [`distance`] of the URL: its depth and its hops off scope, as one number.
    #[must_use]
    pub fn distance(&self) -> u32 {
        distance(self.depth, self.hops_off)
    }
}

/// The number of low bits of a distance that hold the depth. The highest byte holds the hops off
/// scope, so the lowest distance has the fewest hops. A store of an older version holds plain
/// depths, which are distances with 0 hops.
const DEPTH_BITS: u32 = 24;

/// Combines a depth and the hops off scope into one number, the distance. Pending URLs with the
/// same priority are ordered by distance.
#[must_use]
pub fn distance(depth: u32, hops_off: u8) -> u32 {
    u32::from(hops_off) << DEPTH_BITS | depth.min((1 << DEPTH_BITS) - 1)
}

/// Splits a distance into the depth and the hops off scope.
#[must_use]
pub fn depth_and_hops(distance: u32) -> (u32, u8) {
    (
        distance & ((1 << DEPTH_BITS) - 1),
        (distance >> DEPTH_BITS) as u8,
    )
}

/// The state that an admission requests for its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedState {
    /// To be fetched.
    Pending,
    /// Not to be fetched for now, because the path to the URL is too deep, has too many redirects,
    /// or leads through a nofollow link. The URL is fetched if it is found by another path.
    Deferred(NotFetchedReason),
    /// Not to be fetched, for example because the URL is out of scope. An excluded URL counts as
    /// settled, until [`Transaction::readmit`](crate::Transaction::readmit) gives it another state.
    Excluded(NotFetchedReason),
}

/// The kind of a URL: a page, a page resource or a sitemap. It decides how the response is read.
/// If a URL is requested as several kinds, the kind listed last here wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UrlKind {
    /// A file that is loaded to show a page: an image or a style sheet.
    Resource,
    /// A page, or any other document that a link leads to.
    #[default]
    Page,
    /// A sitemap or an index of sitemaps.
    Sitemap,
}

/// The result of an admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdmissionResult {
    /// The URL was unknown, and now has the state that the admission requested.
    New,
    /// The URL was known and keeps its state. If the admission is better (a nearer path, a lower
    /// `priority`, a seed or a higher [`UrlKind`]), the stored values are updated, and a pending
    /// URL may move forward in its queue.
    Known,
    /// The URL was deferred and is pending now.
    Revived,
}

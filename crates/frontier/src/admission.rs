//! Admissions: URLs on their way into the frontier.

use crawl_weburl::CanonicalUrl;

use crate::exclusion::Exclusion;

/// A URL that was found, and whether it may be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The URL.
    pub url: CanonicalUrl,
    /// Links followed from a seed to the URL. A seed has 0, and a redirect target has the depth of
    /// its source.
    pub depth: u32,
    /// Links followed since the scope was left; 0 within it. Fewer hops off scope are nearer than
    /// fewer links from a seed.
    pub hops_off: u8,
    /// Consecutive redirects followed to the URL.
    pub redirects: u8,
    /// The page that the URL was found on; `None` for a seed.
    pub via: Option<CanonicalUrl>,
    /// The priority among the URLs of its origin: 0 is first, and seeds have it.
    pub priority: u8,
    /// Whether the URL may be fetched.
    pub state: NewState,
    /// Whether the user named the URL.
    pub is_seed: bool,
    /// The kind of document that the response is read as.
    pub kind: UrlKind,
}

/// The priority that [`Admission::link`] sets. Seeds and sitemaps may take a lower number, less
/// important URLs a higher one.
pub(crate) const LINK_PRIORITY: u8 = 128;

impl Admission {
    /// Creates a pending page that the user named: depth 0, priority 0.
    #[must_use]
    pub fn seed(url: CanonicalUrl) -> Admission {
        Admission {
            depth: 0,
            via: None,
            priority: 0,
            is_seed: true,
            ..Admission::link(url.clone(), 0, url)
        }
    }

    /// Creates a pending page that `via` links to, with the middle priority (128).
    #[must_use]
    pub fn link(url: CanonicalUrl, depth: u32, via: CanonicalUrl) -> Admission {
        Admission {
            url,
            depth,
            hops_off: 0,
            redirects: 0,
            via: Some(via),
            priority: LINK_PRIORITY,
            state: NewState::Pending,
            is_seed: false,
            kind: UrlKind::Page,
        }
    }
}

impl Admission {
    /// Returns hops off scope and depth as one number, as queue places store them.
    #[must_use]
    pub fn distance(&self) -> u32 {
        distance(self.depth, self.hops_off)
    }
}

/// A distance has the hops in its highest byte and the depth in the others. So the lowest distance
/// has the fewest hops, and a depth stored before hops existed is a distance without hops.
const DEPTH_BITS: u32 = 24;

/// Combines hops and depth into one number, as queue places and stores keep them.
#[must_use]
pub fn distance(depth: u32, hops_off: u8) -> u32 {
    u32::from(hops_off) << DEPTH_BITS | depth.min((1 << DEPTH_BITS) - 1)
}

/// Splits a distance into depth and hops.
#[must_use]
pub fn depth_and_hops(distance: u32) -> (u32, u8) {
    (
        distance & ((1 << DEPTH_BITS) - 1),
        (distance >> DEPTH_BITS) as u8,
    )
}

/// The state that an admission requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewState {
    /// To be fetched.
    Pending,
    /// Not to be fetched by this path, but fetched if found by another: too deep, behind a
    /// nofollow, or behind too many redirects.
    Deferred(Exclusion),
    /// Never to be fetched, because out of scope. The URL is settled.
    Excluded(Exclusion),
}

/// The kind of document that a response is read as. If a URL is requested as several kinds, the
/// greatest one wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UrlKind {
    /// A part that a page needs to be shown: an image, a style sheet.
    Resource,
    /// A page, or whatever a link leads to.
    #[default]
    Page,
    /// A sitemap or an index of sitemaps.
    Sitemap,
}

/// The result of an admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Admitted {
    /// The URL was unknown. It now has the state of the admission.
    New,
    /// The URL was known. A pending URL may have moved forward, because the least depth counts.
    Known,
    /// The URL was deferred and is pending now.
    Revived,
}

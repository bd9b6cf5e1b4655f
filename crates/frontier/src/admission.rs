//! A URL on its way in.

use crawl_weburl::CanonicalUrl;

use crate::exclusion::Exclusion;

/// A URL that was met, and what may be done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The URL.
    pub url: CanonicalUrl,
    /// Links followed from a seed to here; a seed has 0, a redirect keeps its depth.
    pub depth: u32,
    /// Links followed since the scope was left; 0 within it. Fewer of them are nearer than fewer
    /// from a seed.
    pub hops_off: u8,
    /// Redirects followed in a row to here.
    pub redirects: u8,
    /// The page that names it; none for a seed.
    pub via: Option<CanonicalUrl>,
    /// The priority among the URLs of its origin: 0 is first and is what seeds have.
    pub priority: u8,
    /// May it be fetched?
    pub state: NewState,
    /// The user named it.
    pub is_seed: bool,
    /// The kind of document that its answer will be read as.
    pub kind: UrlKind,
}

/// The priority that [`Admission::link`] gives: seeds and sitemaps may go before it,
/// what is wanted less behind it.
pub(crate) const LINK_PRIORITY: u8 = 128;

impl Admission {
    /// A pending page that the user named: depth 0, priority 0.
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

    /// A pending page that `via` links to, at the middle priority (128).
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
    /// Its hops off the scope and its depth as one number, as places in a queue have them.
    #[must_use]
    pub fn distance(&self) -> u32 {
        distance(self.depth, self.hops_off)
    }
}

/// The hops in the highest byte of a distance, the depth in the others: so the least distance has
/// the fewest hops, and a depth that was stored before there were hops is a distance without any.
const DEPTH_BITS: u32 = 24;

/// Hops and depth as one number, as places in a queue and stores have them.
#[must_use]
pub fn distance(depth: u32, hops_off: u8) -> u32 {
    u32::from(hops_off) << DEPTH_BITS | depth.min((1 << DEPTH_BITS) - 1)
}

/// The depth and the hops of a distance.
#[must_use]
pub fn depth_and_hops(distance: u32) -> (u32, u8) {
    (
        distance & ((1 << DEPTH_BITS) - 1),
        (distance >> DEPTH_BITS) as u8,
    )
}

/// The state that a URL that was met is to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewState {
    /// It is to be fetched.
    Pending,
    /// Not by this way, but met again by another it is fetched: too deep, behind a
    /// nofollow, behind too many redirects.
    Deferred(Exclusion),
    /// Never: out of scope. The URL is settled.
    Excluded(Exclusion),
}

/// The kind of document that a URL's answer will be read as. One that is wanted as several is
/// the greatest of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UrlKind {
    /// Part of a page, without which it can't be shown: an image, a style sheet.
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
    /// The URL was not known. It now stands as the admission said.
    New,
    /// The URL was known. Where it was pending it may have moved forward, since its
    /// least depth counts.
    Known,
    /// The URL was put aside and is pending now.
    Revived,
}

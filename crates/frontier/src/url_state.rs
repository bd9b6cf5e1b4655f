//! The state of one URL as a reader sees it, and the counts of all.

use crawl_weburl::CanonicalUrl;

use crate::exclusion::Exclusion;

/// All that is known of one URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownUrl {
    /// The state it is in.
    pub state: KnownState,
    /// Links followed from a seed to it, by the way that counts.
    pub depth: u32,
    /// Links followed since the scope was left; 0 within it.
    pub hops_off: u8,
    /// The page that names it. Kept while the URL is pending, leased or deferred; once
    /// it is settled its row says it.
    pub via: Option<CanonicalUrl>,
}

/// The state of a URL that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownState {
    /// It waits for its turn.
    Pending {
        /// The number of the next try, from 1.
        attempt: u32,
    },
    /// It is being worked on.
    Leased {
        /// The number of this try, from 1.
        attempt: u32,
    },
    /// It was put aside, and is fetched when met another way.
    Deferred(Exclusion),
    /// Settled: an answer was kept.
    Fetched {
        /// The HTTP status.
        status: u16,
    },
    /// Settled: no answer could be had.
    Failed {
        /// The reason.
        why: String,
    },
    /// Settled: it is not asked for.
    Excluded(Exclusion),
}

/// The number of URLs in each state.
///
/// `known` is the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UrlCounts {
    /// All URLs that were ever admitted.
    pub known: u64,
    /// Waiting for their turn.
    pub pending: u64,
    /// Being worked on.
    pub leased: u64,
    /// Settled with an answer.
    pub fetched: u64,
    /// Settled without an answer.
    pub failed: u64,
    /// Settled and not asked for.
    pub excluded: u64,
    /// Put aside.
    pub deferred: u64,
}

/// A URL that waits, as [`Frontier::each_pending`](crate::Frontier::each_pending) and
/// [`Frontier::each_deferred`](crate::Frontier::each_deferred) show it.
#[derive(Clone, Copy, Debug)]
pub struct WaitingUrl<'a> {
    /// The URL.
    pub url: &'a CanonicalUrl,
    /// Links followed from a seed to it.
    pub depth: u32,
    /// Links followed since the scope was left; 0 within it.
    pub hops_off: u8,
    /// The page that names it.
    pub via: Option<&'a CanonicalUrl>,
    /// The reason why it was put aside; none for a pending one.
    pub exclusion: Option<&'a Exclusion>,
}

//! The state of one URL as the frontier reports it, and the counts over all URLs.

use crawl_weburl::CanonicalUrl;

use crate::not_fetched_reason::NotFetchedReason;

/// The state of a known URL, and the path that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownUrlDetails {
    /// The URL's state.
    pub state: KnownState,
    /// The number of links followed from a seed to the URL, on the nearest path.
    pub depth: u32,
    /// The number of links followed since the path left the crawl's scope; 0 for a URL in scope.
    pub hops_off: u8,
    /// The page that the URL was found on. `None` once the URL is settled: from then on, the
    /// crawl's records name the page.
    pub via: Option<CanonicalUrl>,
}

/// The state of a known URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownState {
    /// Waiting to be fetched.
    Pending {
        /// The number of the next attempt, from 1.
        attempt: u32,
    },
    /// Leased: a worker is fetching the URL or processing its response.
    Leased {
        /// The number of this attempt, from 1.
        attempt: u32,
    },
    /// Deferred. The URL is fetched if it is found by another path.
    Deferred(NotFetchedReason),
    /// Settled: a response was stored.
    Fetched {
        /// The HTTP status.
        status: u16,
    },
    /// Settled: no response was received.
    Failed {
        /// The reason.
        why: String,
    },
    /// Settled without being fetched.
    Excluded(NotFetchedReason),
}

/// The number of URLs in each state.
///
/// `known` is the sum of the other fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UrlCounts {
    /// The number of all URLs that were ever admitted.
    pub known: u64,
    /// Waiting to be fetched.
    pub pending: u64,
    /// Leased: a worker is fetching these URLs or processing the responses.
    pub leased: u64,
    /// Settled with a response.
    pub fetched: u64,
    /// Settled without a response.
    pub failed: u64,
    /// Settled without being fetched.
    pub excluded: u64,
    /// Deferred.
    pub deferred: u64,
}

/// A pending or deferred URL, as [`Frontier::each_pending`](crate::Frontier::each_pending) and
/// [`Frontier::each_deferred`](crate::Frontier::each_deferred) pass it.
#[derive(Clone, Copy, Debug)]
pub struct UnsettledUrl<'a> {
    /// The URL.
    pub url: &'a CanonicalUrl,
    /// The number of links followed from a seed to the URL.
    pub depth: u32,
    /// The number of links followed since the path left the crawl's scope; 0 for a URL in scope.
    pub hops_off: u8,
    /// The page that the URL was found on.
    pub via: Option<&'a CanonicalUrl>,
    /// The reason why the URL is deferred. `None` for a pending URL.
    pub exclusion: Option<&'a NotFetchedReason>,
}

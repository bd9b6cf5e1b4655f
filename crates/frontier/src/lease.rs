//! Leases, and the outcomes that end them.

use crawl_weburl::{CanonicalUrl, Origin};

use crate::admit_rule::{PendingUrlFields, QueuedUrl};
use crate::not_fetched_reason::NotFetchedReason;
use crate::url_to_admit::{UrlKind, depth_and_hops, distance};

/// A URL handed out to be fetched.
///
/// End a lease with [`Transaction::settle`](crate::Transaction::settle) or
/// [`Frontier::release`](crate::Frontier::release). The URL of a dropped lease stays leased until
/// the frontier is opened again.
#[derive(Debug)]
#[must_use = "a lease that is dropped keeps its URL from being fetched in this run"]
#[non_exhaustive]
pub struct Lease {
    /// The URL.
    pub url: CanonicalUrl,
    /// The URL's origin.
    pub origin: Origin,
    /// The number of links followed from a seed to the URL.
    pub depth: u32,
    /// The number of links followed since the path left the crawl's scope; 0 for a URL in scope.
    pub hops_off: u8,
    /// The number of consecutive redirects followed to the URL.
    pub redirects: u8,
    /// The page that the URL was found on.
    pub via: Option<CanonicalUrl>,
    /// The priority among the URLs of its origin, 0 first.
    pub priority: u8,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// Whether the user named the URL.
    pub is_seed: bool,
    /// The kind of document that the response is read as.
    pub kind: UrlKind,
    /// The number of the last commit before the URL was leased
    /// ([`Transaction::number`](crate::Transaction::number)).
    pub after: u64,
}

impl Lease {
    /// Creates the lease of `queued`, a URL of `origin`. `after` is the number of the last commit.
    pub fn new(origin: Origin, queued: QueuedUrl, after: u64) -> Lease {
        let QueuedUrl {
            place,
            attempt,
            url,
            via,
        } = queued;
        let (depth, hops_off) = depth_and_hops(place.depth);
        Lease {
            url,
            origin,
            depth,
            hops_off,
            redirects: place.redirects,
            via,
            priority: place.priority,
            attempt,
            is_seed: place.is_seed,
            kind: place.kind,
            after,
        }
    }

    /// Returns the queue place that the URL had when it was leased, with `seq` 0. The committed
    /// place may differ if a later commit has changed it.
    #[must_use]
    pub fn place(&self) -> PendingUrlFields {
        PendingUrlFields {
            retried: false,
            priority: self.priority,
            depth: distance(self.depth, self.hops_off),
            redirects: self.redirects,
            is_seed: self.is_seed,
            kind: self.kind,
            seq: 0,
        }
    }

    /// Returns the queue entry of the URL with its committed `place`, or `None` if that place has
    /// changed since the lease. A place changes if the URL is admitted again by a nearer path or
    /// with a lower `priority`, as a seed, or as a greater [`UrlKind`].
    #[must_use]
    pub fn queued_at(&self, place: PendingUrlFields) -> Option<QueuedUrl> {
        let is_unchanged = place.depth == distance(self.depth, self.hops_off)
            && place.redirects == self.redirects
            && place.priority == self.priority
            && place.is_seed == self.is_seed
            && place.kind == self.kind;
        is_unchanged.then(|| QueuedUrl {
            place,
            attempt: self.attempt,
            url: self.url.clone(),
            via: self.via.clone(),
        })
    }
}

/// How a lease ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// A response was received and stored.
    Fetched {
        /// The HTTP status.
        status: u16,
    },
    /// No response was received, and the URL will not be retried.
    Failed {
        /// The reason, in a few words. Truncated to 1,024 bytes.
        why: String,
    },
    /// The URL was not fetched, or its response must not be used.
    Excluded(NotFetchedReason),
    /// Deferred: the URL was not fetched, but becomes pending again if found by another path.
    Deferred(NotFetchedReason),
    /// To be retried. The URL goes behind the other URLs of its origin.
    Retry,
}

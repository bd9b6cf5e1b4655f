//! Messages between a worker and the frontier that it shares with others.

use std::collections::BTreeSet;
use std::time::Duration;

use crawl_weburl::{HostKey, Origin};

/// Maximum links of other workers to admit in one transaction.
pub(crate) const MAX_TAKEN_LINKS: usize = 4096;

/// Maximum number of URLs to reopen in one transaction.
pub(crate) const MAX_REOPENED_URLS: usize = 4096;

/// Knows which hosts this worker owns.
pub(crate) trait HostOwnership: Send + Sync {
    /// Returns the bucket of a host. All hosts of a bucket change owner together.
    fn bucket_of(&self, host: &HostKey) -> i32;

    /// Whether this worker owns a host.
    fn owns(&self, host: &HostKey) -> bool;

    /// Returns how long ago this worker took a host over from another worker, which may have sent
    /// the host requests until then. `None` if the host had no owner before.
    fn taken_over_for(&self, host: &HostKey) -> Option<Duration>;

    /// Returns the buckets that contain leased URLs.
    fn leased_buckets(&self) -> BTreeSet<i32>;

    /// Whether requests may be sent now. False if this worker's ownership is about to expire.
    fn may_send(&self) -> bool;
}

/// News about the other workers, or about the state that all workers share.
#[derive(Debug)]
pub(crate) enum SharedNews {
    /// This worker now owns more hosts. Contains the new hosts' origins with pending URLs, each
    /// with its number of pending URLs.
    Taken(Vec<(Origin, u64)>),
    /// The hosts in these buckets must be handed over to other workers.
    Leave(Vec<i32>),
    /// The listed buckets were handed over.
    HandedOver(Vec<i32>),
    /// Links to hosts of this worker wait to be admitted, some of its URLs must be reopened, or
    /// another worker found that a seed redirects.
    LinksWait,
    /// The answer to a request for more pages: the total number of pages that this worker may
    /// fetch. Not valid if a rest of this worker began since the request.
    Allowed {
        /// The maximum number of rows in this worker's `pages.jsonl`.
        pages: u64,
        /// The number of rests before the request, as in [`SharedRequest::MorePages`].
        rests: u64,
    },
    /// Total body bytes of all other workers.
    OthersBytes(u64),
    /// The page budget of all workers is spent.
    PagesSpent,
    /// No worker has anything left to do. This was observed while this worker was in the rest with
    /// this number, and is not valid for its later rests.
    Over {
        /// The number of this worker's rest, as in [`SharedRequest::Rest`].
        rest: u64,
    },
    /// This worker must hand over all its hosts and end.
    Drain,
}

/// A request to the shared frontier.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SharedRequest {
    /// Hand these buckets over.
    HandOver(Vec<i32>),
    /// This worker has nothing to do, so a rest begins, or it has work again.
    Rest {
        /// The number of the rest that begins. `None` if the worker has work.
        rest: Option<u64>,
        /// The number of rows in this worker's `pages.jsonl`.
        pages: u64,
    },
    /// This worker's page count, and a request to be allowed more pages.
    MorePages {
        /// The number of rows in this worker's `pages.jsonl`, plus the leases that may become rows.
        pages: u64,
        /// The number of this worker's rests that began before. When the next rest begins, the
        /// allowed pages are given back.
        rests: u64,
    },
}

//! Messages between a worker and the frontier that it shares with others.

use std::collections::BTreeSet;
use std::time::Duration;

use crawl_weburl::{HostKey, Origin};

/// Maximum links of other workers to admit in one transaction.
pub(crate) const MAX_TAKEN_LINKS: usize = 4096;

/// Maximum URLs to reopen in one transaction.
pub(crate) const MAX_REOPENED_URLS: usize = 4096;

/// Which hosts this worker owns.
pub(crate) trait HostOwnership: Send + Sync {
    /// Returns the bucket of a host. Buckets change owner as a whole.
    fn bucket_of(&self, host: &HostKey) -> i32;

    /// Whether this worker owns a host.
    fn owns(&self, host: &HostKey) -> bool;

    /// Returns how long ago this worker took a host over from another worker, which may have sent
    /// it requests until then. `None` if the host had no owner before.
    fn taken_over_for(&self, host: &HostKey) -> Option<Duration>;

    /// Returns the buckets that contain leased URLs.
    fn leased_buckets(&self) -> BTreeSet<i32>;

    /// Whether requests may be sent now. False if this worker's leases are about to expire.
    fn may_send(&self) -> bool;
}

/// News about other workers, or about state shared with them.
#[derive(Debug)]
pub(crate) enum SharedNews {
    /// This worker took over hosts without an owner. Lists their origins with pending URLs, and the
    /// number of these URLs.
    Taken(Vec<(Origin, u64)>),
    /// The hosts in these buckets must be handed over to other workers.
    Leave(Vec<i32>),
    /// The given buckets were handed over.
    HandedOver(Vec<i32>),
    /// Links to hosts of this worker are waiting, URLs must be reopened, or seeds redirected
    /// elsewhere.
    LinksWait,
    /// The total number of pages this worker may fetch. Void if a rest began since it asked.
    Allowed {
        /// Rows of `pages.jsonl`.
        pages: u64,
        /// See [`SharedRequest::MorePages`].
        rests: u64,
    },
    /// Total body bytes of all other workers.
    OthersBytes(u64),
    /// The page budget of all workers is spent.
    PagesSpent,
    /// No worker has anything left to do, as observed during this worker's rest with this number.
    /// Not valid for later rests.
    Over {
        /// See [`SharedRequest::Rest`].
        rest: u64,
    },
    /// This worker must hand its hosts over and end.
    Drain,
}

/// A request to the shared frontier.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SharedRequest {
    /// Hand these buckets over.
    HandOver(Vec<i32>),
    /// This worker became idle, or has work again.
    Rest {
        /// The number of the rest that begins. `None` if the worker has work.
        rest: Option<u64>,
        /// The worker's number of rows in `pages.jsonl`.
        pages: u64,
    },
    /// This worker's page count, and a request for a larger allowance.
    MorePages {
        /// Rows of `pages.jsonl`, plus leases that may become one.
        pages: u64,
        /// The number of rests that began before. The next rest gives the allowance back.
        rests: u64,
    },
}

//! Messages between a worker and the frontier that it shares with others.

use std::collections::BTreeSet;
use std::time::Duration;

use crawl_weburl::{HostKey, Origin};

/// Links of other workers that are admitted in one transaction, at most.
pub(crate) const MAX_TAKEN_LINKS: usize = 4096;

/// URLs that are reopened in one transaction, at most.
pub(crate) const MAX_REOPENED_URLS: usize = 4096;

/// Which hosts are this worker's, among those of all.
pub(crate) trait HostOwnership: Send + Sync {
    /// The number of the bucket that a host lies in. Buckets come and go as a whole.
    fn bucket_of(&self, host: &HostKey) -> i32;

    /// Returns whether this worker owns a host.
    fn owns(&self, host: &HostKey) -> bool;

    /// How long ago this worker took a host over from another, which may have asked it until then.
    /// None where nobody owned it before.
    fn taken_over_for(&self, host: &HostKey) -> Option<Duration>;

    /// The buckets of URLs that are leased.
    fn leased_buckets(&self) -> BTreeSet<i32>;

    /// Returns whether requests may be sent now: not where its leases are about to end.
    fn may_send(&self) -> bool;
}

/// Something about the other workers, or about what this one shares with them.
#[derive(Debug)]
pub(crate) enum SharedNews {
    /// Hosts were taken over that nobody owned: the origins among them with pending URLs, and how
    /// many each has.
    Taken(Vec<(Origin, u64)>),
    /// The hosts in these buckets are to be handed over to other workers.
    Leave(Vec<i32>),
    /// These were handed over.
    HandedOver(Vec<i32>),
    /// Links to hosts of this worker wait, URLs are to be reopened, or seeds turned out to lead
    /// elsewhere.
    LinksWait,
    /// So many pages may be had by this worker in all, unless a rest began since it asked.
    Allowed {
        /// Rows of `pages.jsonl`.
        pages: u64,
        /// See [`SharedRequest::MorePages`].
        rests: u64,
    },
    /// Bytes of bodies of all other workers.
    OthersBytes(u64),
    /// No worker may have any more pages.
    PagesSpent,
    /// Nothing is left to do for any worker, as far as could be seen in this worker's rest of that
    /// number. It tells nothing of a later one.
    Over {
        /// See [`SharedRequest::Rest`].
        rest: u64,
    },
    /// This worker is to hand its hosts over, and to end.
    Drain,
}

/// Something that is asked of the frontier that workers share.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SharedRequest {
    /// Hand these buckets over.
    HandOver(Vec<i32>),
    /// This worker has nothing to do until something comes, or has so again; and so many pages.
    Rest {
        /// The number of the rest that begins; none where it has something to do.
        rest: Option<u64>,
        /// The rows of `pages.jsonl` that it has.
        pages: u64,
    },
    /// This worker has so many pages, and wants leave for more.
    MorePages {
        /// Rows of `pages.jsonl`, and leases that may become some.
        pages: u64,
        /// The rests that it began before. What it is allowed, the next one gives back.
        rests: u64,
    },
}

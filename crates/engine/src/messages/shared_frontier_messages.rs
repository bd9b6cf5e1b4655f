//! Messages between a worker and the frontier that all workers share.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crawl_weburl::{HostKey, Origin};

/// Maximum number of links from other workers to admit in one transaction.
pub(crate) const MAX_TAKEN_LINKS: usize = 4096;

/// Maximum number of settled URLs to make pending again in one transaction.
pub(crate) const MAX_REOPENED_URLS: usize = 4096;

/// Knows which hosts this worker owns.
pub(crate) trait HostOwnership: Send + Sync {
    /// Returns the bucket (set of hosts) of a host. Hosts in the same bucket always have the same
    /// owner.
    fn bucket_of(&self, host: &HostKey) -> i32;

    fn owns(&self, host: &HostKey) -> bool;

    /// Returns the buckets (sets of hosts) that this worker owns, each with the number of times
    /// that workers have taken it.
    fn bucket_epochs(&self) -> BTreeMap<i32, i64>;

    /// Returns the time since this worker took a host over from another worker, which may have sent
    /// requests to the host until then. `None` if the host had no owner before.
    fn taken_over_for(&self, host: &HostKey) -> Option<Duration>;

    /// Returns the buckets (sets of hosts) with URLs that this worker has leased.
    fn leased_buckets(&self) -> BTreeSet<i32>;

    /// Returns whether requests may be sent now. False shortly before this worker's ownership
    /// expires.
    fn may_send(&self) -> bool;
}

/// News about the other workers, or about the state that they share.
#[derive(Debug)]
pub(crate) enum SharedFrontierNews {
    /// This worker now owns more hosts. Contains those of their origins that have pending URLs,
    /// each with the number of pending URLs.
    Taken(Vec<(Origin, u64)>),
    /// The hosts in these buckets must be handed over to other workers.
    Leave(Vec<i32>),
    /// The listed buckets (sets of hosts) were handed over.
    HandedOver(Vec<i32>),
    /// Links to this worker's hosts wait to be admitted, or settled URLs of these hosts must become
    /// pending again, or another worker found a redirect of a seed.
    LinksWait,
    /// The answer to a request for more pages: the total number of pages that this worker may
    /// fetch. Ignore the answer if this worker has been without work since the request.
    Allowed {
        /// The maximum number of rows in this worker's `pages.jsonl`.
        pages: u64,
        /// The number of this worker's rests (times without work) before the request, as in
        /// [`SharedFrontierRequest::MorePages`].
        rests: u64,
    },
    /// Total body bytes of all other workers.
    OthersBytes(u64),
    /// The page budget of all workers is spent.
    PagesSpent,
    /// No worker has anything left to do. Applies only to this worker's rest (time without work)
    /// with the number `rest`, not to its later rests.
    Over {
        /// The number of this worker's rest (time without work), as in
        /// [`SharedFrontierRequest::Rest`].
        rest: u64,
    },
    /// This worker must hand over all its hosts and end.
    Drain,
}

impl SharedFrontierNews {
    /// Returns whether this news gives the worker URLs to fetch or links to admit.
    pub(crate) fn gives_work(&self) -> bool {
        matches!(
            self,
            SharedFrontierNews::Taken(_) | SharedFrontierNews::LinksWait
        )
    }
}

/// A request to the shared frontier.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SharedFrontierRequest {
    /// Hand over the listed buckets (sets of hosts).
    HandOver(Vec<i32>),
    /// This worker now has nothing to do (a rest begins), or has work again.
    Rest {
        /// The number of the rest (time without work) that begins. `None` if the worker has work.
        rest: Option<u64>,
        /// The number of rows in this worker's `pages.jsonl`.
        pages: u64,
        /// How many pieces of news of work ([`SharedFrontierNews::gives_work`]) this worker had
        /// handled when it sent this request. If more were sent to the worker, the rest is
        /// outdated.
        work_news: u64,
    },
    /// Reports this worker's page count, and requests permission to fetch more pages.
    MorePages {
        /// The number of rows in this worker's `pages.jsonl`, plus the leases that may become rows.
        pages: u64,
        /// The number of this worker's rests (times without work) so far. At each rest, the worker
        /// gives back the pages that it is allowed to fetch.
        rests: u64,
    },
    /// Record the settings that a worker must have to join the crawl, because this worker reloaded
    /// its settings.
    ReplaceSettings(String),
}

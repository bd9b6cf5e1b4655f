//! The contract of a frontier that several workers of one crawl share, in addition to [`Frontier`].
//!
//! A worker opens a [`WorkerFrontier`], leases and settles URLs as with any frontier, and commits
//! through [`WorkerTransaction`]s. [`OutgoingCrawl`] and [`IncomingCrawl`] move a crawl between a
//! directory and such a frontier.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crawl_weburl::{HostKey, Origin};

use crate::error::FrontierError;
pub use crate::error::{BoxError, SharedFrontierError};
use crate::frontier::Frontier;
use crate::parts::{CommittedUrlCounts, CrawlTransferItem};
use crate::transaction::Transaction;
use crate::url_to_admit::UrlToAdmit;

/// The deadline of a worker's requests to its hosts. At the deadline the fetcher aborts requests
/// that are still in flight.
pub trait SendDeadline: Send + Sync {
    /// Returns the latest time at which requests must have ended, some time before the worker's
    /// leases on its hosts end. Each heartbeat of the worker moves this time forward.
    fn ends_at(&self) -> Instant;

    /// Returns whether [`SendDeadline::ends_at`] has passed. A frontier in simulated time overrides
    /// this method, because it has its own clock.
    fn is_over(&self) -> bool {
        Instant::now() >= self.ends_at()
    }
}

/// The facts that a worker needs about the whole crawl, as of one moment. If the crawl has several
/// groups of database servers, the groups are read at slightly different moments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedCrawlStatus {
    /// The number of living workers that are not being drained, including this one.
    pub living: u64,
    /// The number of living workers that use the same group of database servers as this worker.
    pub group_living: u64,
    /// The number of buckets (sets of hosts) in this worker's group that no worker owns.
    pub free_buckets: u64,
    /// The number of pending or leased URLs, except those of idle workers. An idle worker waits for
    /// new links.
    pub pending_open: u64,
    /// The number (id) of a group of database servers that has pending URLs or waiting links, but
    /// no worker. `None` if there is no such group.
    pub unserved_group: Option<i32>,
    /// Whether the crawl still has work that is in no queue:
    /// - links that wait for the owner of their bucket, even if the bucket has no owner;
    /// - links in transit between groups of database servers;
    /// - URLs to be reopened, because the worker that settled them has lost its directory;
    /// - buckets that are moving between groups: a worker must list the deferred URLs of these
    ///   buckets in its records at the end of the crawl.
    pub has_unqueued_work: bool,
    /// Whether this worker has to admit links that other workers found, or to reopen URLs whose
    /// worker has lost its directory.
    pub has_own_unqueued_work: bool,
    /// The numbers (ids) of the groups of database servers whose links this worker has to forward.
    pub to_forward: Vec<i32>,
    /// Whether this worker has to hand over its hosts and stop.
    pub is_drained: bool,
    /// This worker's buckets that have to move to another group of database servers.
    pub moving: Vec<i32>,
    /// The number of values stored for the whole crawl ([`WorkerFrontier::crawl_meta`]).
    pub crawl_meta: u64,
    /// The number of rows in the `pages.jsonl` files of all workers.
    pub pages: u64,
    /// The total size of all bodies that the other workers fetched, in bytes.
    pub others_bytes: u64,
}

/// The part of a shared frontier that one worker owns.
///
/// Sites are divided into buckets, and a worker owns a bucket for as long as it renews the lease on
/// it. The calls of a run come in this order:
///
/// - at the start, [`note_listed`](WorkerFrontier::note_listed) with an empty set;
/// - repeatedly, [`survey`](WorkerFrontier::survey), followed by
///   [`take_free`](WorkerFrontier::take_free) or [`hand_over`](WorkerFrontier::hand_over) to
///   balance, while a writer commits [`WorkerTransaction`]s;
/// - at the end, [`buckets_to_list`](WorkerFrontier::buckets_to_list) and `note_listed`, then
///   [`give_up`](WorkerFrontier::give_up).
///
/// # Requirements for implementations, beyond the clauses of [`Frontier`]
/// 1. **Owner and expiry.** A lease belongs to one life (one run of a worker's process), which has
///    a unique id. The lease expires by the clock of the shared database. A working process renews
///    its lease; one that is dead, cut off or frozen does not.
/// 2. **Whole hosts.** A host is handed over with all its origins, never URL by URL, so that each
///    host has one owner, who keeps the gap between requests to it. The new owner first waits a
///    full gap, because the last owner may have sent a request just now.
/// 3. **Fencing.** Each time a worker takes a bucket, the bucket's epoch increases. A commit
///    carries the epochs of all buckets that it changes, as they were when this worker took the
///    buckets. The database checks the epochs inside the transaction, and refuses the commit if one
///    of them is not the newest. So a process that wakes up after its leases expired settles
///    nothing.
/// 4. **At least once.** A URL whose owner was lost is leased again, so it may be fetched more than
///    once. The worker with the newest epoch settles it once. A refused settle aborts its whole
///    transaction. Links, marks and rows already written for that transaction belong to no settled
///    URL, and are cut off or skipped.
/// 5. **Idempotent links.** A commit whose reply was lost is sent again. Admitting a URL twice is
///    the same as admitting it once, and repeating a settle with the same outcome and epoch is not
///    an error.
/// 6. **Links to other owners' hosts** are inserted if absent, and wake the host's owner. The least
///    depth wins, no matter how many processes find the URL at once.
pub trait WorkerFrontier: Frontier {
    /// Begins a transaction like [`Frontier::begin`]. The transaction also has the methods of
    /// [`WorkerTransaction`].
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails or the leases of this worker ended.
    fn begin_worker(&self) -> Result<Box<dyn WorkerTransaction + '_>, FrontierError>;

    /// Returns the unique id of this run of the worker's process.
    fn life(&self) -> &str;

    /// Returns the deadline of this worker's requests, which each heartbeat extends.
    fn send_deadline(&self) -> Arc<dyn SendDeadline>;

    /// Fails if this worker's leases expired or were taken over.
    ///
    /// # Errors
    /// [`SharedFrontierError::LeaseLost`].
    fn check(&self) -> Result<(), FrontierError>;

    /// Returns the buckets (sets of hosts) that this worker owns, in ascending order.
    fn owned_buckets(&self) -> Vec<i32>;

    /// Returns the buckets (sets of hosts) that this worker owns, each with its epoch: the number
    /// of times that workers have taken the bucket. Of two workers that owned a bucket, the one
    /// with the larger epoch owned it last.
    fn bucket_epochs(&self) -> BTreeMap<i32, i64>;

    /// Returns the number of buckets that this worker's group of database servers serves.
    fn served_buckets(&self) -> u64;

    /// Returns the bucket that a host is in.
    fn bucket_of(&self, host: &HostKey) -> i32;

    /// Returns whether this worker owns a host.
    fn owns(&self, host: &HostKey) -> bool;

    /// Returns the time since this worker took `host` over from another worker, which may have sent
    /// requests to the host until then. Returns `None` if the host had no owner before.
    fn taken_over_for(&self, host: &HostKey) -> Option<Duration>;

    /// Returns the buckets of the hosts of this worker's leased URLs.
    fn leased_buckets(&self) -> BTreeSet<i32>;

    /// Takes up to `most` buckets (sets of hosts) that have no owner. Returns the number of buckets
    /// taken, and each origin in them that has pending URLs, with the number of these URLs.
    ///
    /// # Errors
    /// [`FrontierError`] if the database fails or this worker's leases expired.
    fn take_free(&self, most: u64) -> Result<(usize, Vec<(Origin, u64)>), FrontierError>;

    /// Hands buckets (sets of hosts) over, so that other workers may take them immediately. Before
    /// the call, no URL in these buckets may be leased, no request to their hosts may be in flight,
    /// and the state of the hosts must be committed.
    ///
    /// # Errors
    /// [`FrontierError`] if the database fails. The leases on these buckets then expire.
    fn hand_over(&self, buckets: &[i32]) -> Result<(), FrontierError>;

    /// Gives up all buckets and the name that this worker owns, so that other workers may take them
    /// immediately. Nothing can be leased or committed afterwards.
    ///
    /// # Errors
    /// [`FrontierError`] if the database can't be reached. The leases then expire.
    fn give_up(&self) -> Result<(), FrontierError>;

    /// Reads what this worker has to know about all other workers, and which group of database
    /// servers serves which buckets.
    ///
    /// # Errors
    /// [`FrontierError`] if a database fails, or the crawl has a group that this worker was not
    /// configured with.
    fn survey(&self) -> Result<SharedCrawlStatus, FrontierError>;

    /// Forwards links that arrived at `group` (of database servers) but belong to buckets of other
    /// groups: inserts each link in the other group, then removes it from `group`. An interrupted
    /// forward is repeated. This is harmless, because admitting a link twice has no further effect.
    ///
    /// # Errors
    /// [`FrontierError`] if a database fails.
    fn forward_links(&self, group: i32) -> Result<(), FrontierError>;

    /// Records whether this worker is idle until new links arrive. If `pages` is less than the
    /// worker's page budget, the budget is lowered to `pages`, so that other workers can use the
    /// rest.
    fn set_idle(&self, is_idle: bool, pages: Option<u64>) -> Result<(), FrontierError>;

    /// Requests a budget of `more` pages in addition to the `pages` that this worker has used.
    /// Returns the worker's new budget, counted from its first page. The budgets of all workers
    /// together never exceed `of`, the page budget of the crawl.
    fn allow(&self, pages: u64, more: u64, of: u64) -> Result<u64, FrontierError>;

    /// Takes all buckets (sets of hosts) without an owner, in case no other worker is left to list
    /// their deferred URLs. Then returns those of this worker's buckets whose deferred URLs no
    /// other worker has listed in its records.
    fn buckets_to_list(&self) -> Result<BTreeSet<i32>, FrontierError>;

    /// Records that this worker has listed the deferred URLs of `buckets` (sets of hosts) in its
    /// records. An empty set withdraws an earlier call.
    ///
    /// # Errors
    /// [`FrontierError`] if the database fails.
    fn note_listed(&self, buckets: &BTreeSet<i32>) -> Result<(), FrontierError>;

    /// Replaces the settings (one per line) that a worker must have to join the crawl. The workers
    /// that already run keep their settings.
    ///
    /// # Errors
    /// [`FrontierError`] if the database fails or this worker's leases expired.
    fn replace_settings(&self, settings: &str) -> Result<(), FrontierError>;

    /// Returns the values that any worker stored for the whole crawl with
    /// [`Transaction::keep_meta`].
    ///
    /// # Errors
    /// [`FrontierError`] if the database fails.
    fn crawl_meta(&self) -> Result<Vec<(String, Vec<u8>)>, FrontierError>;
}

/// A transaction of a worker that shares its frontier with other workers.
pub trait WorkerTransaction: Transaction {
    /// Prefetches the records of URLs that may be admitted in this transaction, except records that
    /// are in memory. Takes one round trip, and changes nothing.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn expect(
        &mut self,
        admissions: &mut dyn Iterator<Item = &UrlToAdmit>,
    ) -> Result<(), FrontierError>;

    /// Returns up to `most` links that other workers found to hosts of this worker, the oldest
    /// first. The caller has to admit these links, because the commit of this transaction deletes
    /// them.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn take_links(&mut self, most: usize) -> Result<Vec<UrlToAdmit>, FrontierError>;

    /// Reopens up to `most` URLs of this worker's hosts that were settled by a worker whose
    /// directory is lost. Fetched and failed URLs become pending again with their depth and `via`,
    /// at their first attempt, and their visits are dropped. Excluded URLs stay excluded and are
    /// returned, because their rows have to be written again. The robots.txt copies of all these
    /// URLs' origins are dropped, because the records of the robots.txt files are lost too.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn reopen_lost(&mut self, most: usize) -> Result<ReopenLostResult, FrontierError>;

    /// Records the number of pages and bytes that this worker has used in all its runs. The
    /// database needs these numbers because all workers share one budget.
    fn note_spent(&mut self, pages: u64, bytes: u64);
}

/// The result of [`WorkerTransaction::reopen_lost`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReopenLostResult {
    /// URLs that stay excluded. Their rows have to be written again.
    pub excluded: Vec<UrlToAdmit>,
    /// The origins of all URLs that were reopened or stay excluded.
    pub origins: Vec<Origin>,
    /// Whether another call may find more URLs.
    pub is_more: bool,
}

/// A crawl that is being moved out of a shared frontier, part by part. No worker may run during the
/// move.
pub trait OutgoingCrawl {
    /// Returns the workers that the crawl had.
    fn workers(&self) -> &[ExportedWorker];

    /// Returns the number of the crawl's URLs in each state.
    fn totals(&self) -> CommittedUrlCounts;

    /// Passes to `show` everything that is stored for the crawl, except the workers' named values.
    /// The pending URLs of an origin come in queue order.
    ///
    /// # Errors
    /// Errors of the databases and of `show`.
    fn each_part(
        &self,
        show: &mut dyn FnMut(CrawlTransferItem) -> Result<(), BoxError>,
    ) -> Result<(), BoxError>;

    /// Passes to `show` each link that no worker has taken yet. A link may be passed twice.
    ///
    /// # Errors
    /// Errors of the databases and of `show`.
    fn each_link(
        &self,
        show: &mut dyn FnMut(UrlToAdmit) -> Result<(), BoxError>,
    ) -> Result<(), BoxError>;
}

/// A worker of a crawl that is being moved out of a shared frontier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedWorker {
    /// The worker's name.
    pub name: String,
    /// The number of the worker's committed rows in `pages.jsonl`.
    pub pages: u64,
    /// The committed lengths of the worker's files, in bytes, by file name.
    pub marks: BTreeMap<String, u64>,
    /// The values that the worker stored, by name.
    pub meta: Vec<(String, Vec<u8>)>,
}

/// A shared frontier to which a crawl can be moved from its directory.
pub trait CrawlMoveTarget {
    /// Creates an id for a process of `worker`. The shared frontier will record this process as the
    /// one that ran the crawl so far. The process counts as ended once the move is complete.
    fn new_life(&self, worker: &str) -> String;

    /// Returns whether the move is complete: the whole crawl is in the shared frontier, which has a
    /// worker whose last process has the id `life`.
    ///
    /// # Errors
    /// The reason, as readable text.
    fn is_moved(&self, life: &str) -> Result<bool, BoxError>;

    /// Begins moving the crawl to the shared frontier. No worker finds the crawl before
    /// [`IncomingCrawl::finish`].
    ///
    /// # Errors
    /// The reason, as readable text, such as an existing crawl of that name.
    fn begin(&self) -> Result<Box<dyn IncomingCrawl>, BoxError>;
}

/// A crawl that is being moved into a shared frontier, part by part.
pub trait IncomingCrawl {
    /// Adds a part of the crawl. Pending URLs of one origin must come in queue order. A settled URL
    /// may come more than once.
    ///
    /// # Errors
    /// [`FrontierError`] if the database fails.
    fn put(&mut self, part: CrawlTransferItem) -> Result<(), FrontierError>;

    /// Completes the move if the database has as many URLs in each state as `expected`: gives the
    /// crawl its name, so that workers find it. `worker` then resumes the crawl, as after a crash
    /// of the process with the id `worker.life`.
    ///
    /// # Errors
    /// [`CrawlMoveError`].
    fn finish(
        self: Box<Self>,
        worker: WorkerOfImportedCrawl,
        expected: CommittedUrlCounts,
    ) -> Result<(), CrawlMoveError>;

    /// Removes the unfinished crawl from the shared frontier.
    ///
    /// # Errors
    /// Errors of the database.
    fn give_up(self: Box<Self>) -> Result<(), BoxError>;
}

/// The reason why a crawl could not be moved into a shared frontier.
#[derive(Debug)]
pub enum CrawlMoveError {
    /// The database does not have the expected numbers of URLs, so the crawl was removed from it.
    Incomplete(BoxError),
    /// The database failed, so it is unknown whether the crawl was moved.
    Failed(BoxError),
}

/// The worker that a crawl gets when it is moved into a shared frontier. The worker's directory has
/// the crawl's rows.
#[derive(Clone, Debug)]
pub struct WorkerOfImportedCrawl {
    /// The worker's name.
    pub name: String,
    /// The id of the worker's last process, which counts as ended once the import is complete.
    pub life: String,
    /// The number of rows in the worker's `pages.jsonl`.
    pub pages: u64,
    /// The total size of the bodies that the crawl has fetched, in bytes.
    pub bytes: u64,
    /// The committed lengths of the worker's files, in bytes, by file name.
    pub marks: BTreeMap<String, u64>,
}

//! The contract of a frontier that several workers of one crawl share, beyond that of
//! [`Frontier`].
//!
//! A worker opens a [`WorkerFrontier`], leases and settles URLs as with any frontier, and commits
//! through [`WorkerTransaction`]s. [`MovedOut`] and [`MovedIn`] move a crawl between a directory and
//! such a frontier.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crawl_weburl::{HostKey, Origin};

use crate::admission::Admission;
use crate::error::FrontierError;
pub use crate::error::{BoxError, SharedError};
use crate::frontier::Frontier;
use crate::parts::{StoredPart, Totals};
use crate::transaction::Transaction;

/// The deadline of a worker's requests to its hosts. The fetcher holds one.
pub trait SendGuard: Send + Sync {
    /// Returns when requests must have ended, unless a heartbeat moves that: some time before the
    /// leases end.
    fn ends_at(&self) -> Instant;
}

/// The facts that a worker has to know of all others, at one moment; with several groups of engines,
/// at one moment each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Workers that live and were not asked to end, this one included.
    pub living: u64,
    /// Living workers of this worker's group.
    pub group_living: u64,
    /// Buckets of this worker's group without an owner.
    pub free_buckets: u64,
    /// URLs that are pending or leased, except those of workers that have nothing to do until
    /// something comes.
    pub pending_open: u64,
    /// A group, by its number, that has pending URLs, or links that wait, and no worker.
    pub unserved_group: Option<i32>,
    /// True if links wait for their owners, also in buckets without one, or are on their way from one
    /// group to another, or if lost URLs have to be reopened. True also while buckets are being moved:
    /// at the end a worker has to list the deferred URLs there.
    pub links_wait: bool,
    /// True if links wait for this worker, or lost URLs have to be reopened.
    pub own_links_wait: bool,
    /// The groups, by their numbers, whose links for others this worker is to forward.
    pub to_forward: Vec<i32>,
    /// True if this worker was asked to hand its buckets over, and to end.
    pub is_drained: bool,
    /// Buckets of this worker that have to move to another group.
    pub moving: Vec<i32>,
    /// How much is kept of the crawl ([`WorkerFrontier::crawl_meta`]).
    pub crawl_meta: u64,
    /// Rows of `pages.jsonl` of all workers.
    pub pages: u64,
    /// Bytes of bodies of all other workers.
    pub others_bytes: u64,
}

/// The part of a shared frontier that one worker owns.
///
/// Sites are divided into buckets, and a worker owns buckets for as long as its leases are renewed.
/// The calls of a run come in this order: [`note_listed`](WorkerFrontier::note_listed) with nothing
/// at the start; then, over and over, [`survey`](WorkerFrontier::survey), followed by
/// [`take_free`](WorkerFrontier::take_free) or [`hand_over`](WorkerFrontier::hand_over) to balance,
/// while a writer commits [`WorkerTransaction`]s; at the end
/// [`buckets_to_list`](WorkerFrontier::buckets_to_list) and `note_listed`, then
/// [`give_up`](WorkerFrontier::give_up).
///
/// # What an implementation must keep, beyond the clauses of [`Frontier`]
/// 1. **Owner and end.** A lease belongs to one life of one process, by an identity that
///    no other life has, and ends at a moment that the shared engine's clock decides. A
///    process that works on renews it; one that is dead, cut off or frozen does not.
/// 2. **Whole hosts.** Hosts are handed over with all their origins, never URL by URL, so
///    that each has one owner who keeps its gap. The new owner waits a full gap first: the
///    last owner may have sent a request just now.
/// 3. **Fencing.** Each handing over gives the host the next number of a sequence, and
///    each `settle`, `admit` and `keep` of the host carries the number it was handed out
///    with. The engine refuses one that is not the newest, within the transaction and
///    not before it: a process that was frozen and wakes past its end settles nothing.
/// 4. **At least once.** A URL whose owner was lost is handed out again, so it may be
///    fetched more than once. The holder of the newest number settles it once, and
///    a refused settle takes its whole transaction with it: links, marks and rows that
///    were written for it belong to no settled URL and are cut off or passed over.
/// 5. **Idempotent links.** A commit whose answer was lost is sent again. Admitting a URL
///    twice is the same as admitting it once, and repeating a settle with the same outcome
///    and number is not an error.
/// 6. **Links to other owners' hosts** are admitted by insert-if-absent and wake their
///    owner; the least depth counts however many processes met the URL at once.
pub trait WorkerFrontier: Frontier {
    /// Begins a transaction, as [`Frontier::begin`] does, with what workers need besides.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails or the leases of this worker ended.
    fn begin_worker(&self) -> Result<Box<dyn WorkerTransaction + '_>, FrontierError>;

    /// The id of this life of the worker, which no other has.
    fn life(&self) -> &str;

    /// Returns the guard for requests of this worker.
    fn send_guard(&self) -> Arc<dyn SendGuard>;

    /// Fails if the leases of this worker ended or were taken over.
    ///
    /// # Errors
    /// [`SharedError::LeaseLost`].
    fn check(&self) -> Result<(), FrontierError>;

    /// The buckets that this worker owns, in their order.
    fn owned_buckets(&self) -> Vec<i32>;

    /// The number of buckets that this worker's group serves.
    fn served_buckets(&self) -> u64;

    /// The bucket of a host.
    fn bucket_of(&self, host: &HostKey) -> i32;

    /// Returns whether this worker owns a host.
    fn owns(&self, host: &HostKey) -> bool;

    /// How long ago this worker took a host over from another, which may have sent it requests until
    /// then. `None` if the host had no owner before.
    fn taken_over_for(&self, host: &HostKey) -> Option<Duration>;

    /// The buckets of URLs that are leased.
    fn leased_buckets(&self) -> BTreeSet<i32>;

    /// Takes at most `most` buckets without an owner. Returns their number, and the origins in them
    /// that have pending URLs, each with how many.
    ///
    /// # Errors
    /// [`FrontierError`] if the engine fails, or the leases of this worker ended.
    fn take_free(&self, most: u64) -> Result<(usize, Vec<(Origin, u64)>), FrontierError>;

    /// Hands buckets over: others may take them at once. No URL in them may be leased, no request to
    /// their hosts in flight, and the state of their hosts must be committed.
    ///
    /// # Errors
    /// [`FrontierError`] if the engine fails. Then the leases of these buckets expire.
    fn hand_over(&self, buckets: &[i32]) -> Result<(), FrontierError>;

    /// Gives up all that this worker owns, so that others may take it at once. Nothing can be
    /// leased or committed afterwards.
    ///
    /// # Errors
    /// [`FrontierError`] if the engine can't be reached. Then the leases expire.
    fn give_up(&self) -> Result<(), FrontierError>;

    /// Reads the facts that this worker has to know of all others, and which group serves which
    /// buckets.
    ///
    /// # Errors
    /// [`FrontierError`] if an engine fails, or the crawl has a group that this worker was not
    /// given.
    fn survey(&self) -> Result<Survey, FrontierError>;

    /// Sends on links that came to a group for buckets which others serve: each is put there, then
    /// removed here. A forward that was interrupted is repeated; a link that is admitted twice is
    /// known the second time.
    ///
    /// # Errors
    /// [`FrontierError`] if an engine fails.
    fn forward_links(&self, group: i32) -> Result<(), FrontierError>;

    /// Notes whether this worker has nothing to do until something comes, and that it needs no more
    /// than `pages` pages.
    ///
    /// # Errors
    /// [`FrontierError`] if the engine fails.
    fn rest(&self, rests: bool, pages: Option<u64>) -> Result<(), FrontierError>;

    /// Requests a budget of `more` pages beyond `pages`, out of the `of` pages that the crawl may
    /// have. Returns how many this worker may have in all; all workers together never have more than
    /// `of`.
    ///
    /// # Errors
    /// [`FrontierError`] if the engine fails.
    fn allow(&self, pages: u64, more: u64, of: u64) -> Result<u64, FrontierError>;

    /// The buckets of this worker whose URLs no other worker has listed in its records as put aside.
    /// First takes the buckets without an owner, since no other worker may be left to list them.
    ///
    /// # Errors
    /// [`FrontierError`] if the engine fails, or the leases of this worker ended.
    fn buckets_to_list(&self) -> Result<BTreeSet<i32>, FrontierError>;

    /// Notes the buckets whose URLs this worker has listed in its records as put aside; an empty set
    /// takes that back.
    ///
    /// # Errors
    /// [`FrontierError`] if the engine fails.
    fn note_listed(&self, buckets: &BTreeSet<i32>) -> Result<(), FrontierError>;

    /// All that is kept of the crawl, whichever worker kept it.
    ///
    /// # Errors
    /// [`FrontierError`] if the engine fails.
    fn crawl_meta(&self) -> Result<Vec<(String, Vec<u8>)>, FrontierError>;
}

/// A transaction of one worker of several.
pub trait WorkerTransaction: Transaction {
    /// Prefetches, in one round trip, the records of URLs that this transaction is about to admit
    /// and that are not in memory. Changes nothing, and not every URL has to be admitted.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn expect(
        &mut self,
        admissions: &mut dyn Iterator<Item = &Admission>,
    ) -> Result<(), FrontierError>;

    /// Returns at most `most` links that other workers found to hosts of this one, oldest
    /// first. Committing this transaction removes them from the queue, so the caller has
    /// to admit them.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn take_links(&mut self, most: usize) -> Result<Vec<Admission>, FrontierError>;

    /// Takes up at most `most` URLs of this worker's hosts that were settled by a worker whose
    /// directory is lost. Fetched and failed URLs are pending again by the way that led to them, at
    /// their first attempt, and nothing is kept of their visits. Excluded URLs stay so, and are
    /// returned: their rows have to be written again. Copies of robots.txt of their origins are
    /// dropped, since their records are lost too.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn reopen_lost(&mut self, most: usize) -> Result<ReopenedUrls, FrontierError>;

    /// Notes how many pages and bytes this worker has, over all its lives: workers share budgets.
    fn note_spent(&mut self, pages: u64, bytes: u64);
}

/// The URLs that [`WorkerTransaction::reopen_lost`] took up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReopenedUrls {
    /// URLs that stay excluded, as they were admitted or settled.
    pub excluded: Vec<Admission>,
    /// The origins of all that were taken up.
    pub origins: Vec<Origin>,
    /// True if there may be more.
    pub is_more: bool,
}

/// A crawl that is moved out of a shared frontier, part by part. No worker may run during the move.
pub trait MovedOut {
    /// The workers that the crawl had.
    fn workers(&self) -> &[ExportedWorker];

    /// The number of its URLs in each state.
    fn totals(&self) -> Totals;

    /// Shows everything that is stored of the crawl, except what was kept under names. Pending URLs
    /// of an origin come in the order of their queue.
    ///
    /// # Errors
    /// Errors of the engines, and of `show`.
    fn each_part(
        &self,
        show: &mut dyn FnMut(StoredPart) -> Result<(), BoxError>,
    ) -> Result<(), BoxError>;

    /// Shows the links that no worker has taken yet. A link may be shown twice.
    ///
    /// # Errors
    /// Errors of the engines, and of `show`.
    fn each_link(
        &self,
        show: &mut dyn FnMut(Admission) -> Result<(), BoxError>,
    ) -> Result<(), BoxError>;
}

/// A worker that an exported crawl had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedWorker {
    /// The worker's name.
    pub name: String,
    /// Rows of `pages.jsonl` that are committed.
    pub pages: u64,
    /// The committed lengths of its files, in bytes, by file name.
    pub marks: BTreeMap<String, u64>,
    /// The values that it kept under names.
    pub meta: Vec<(String, Vec<u8>)>,
}

/// The place in a shared frontier that a crawl is moved to from its directory.
pub trait MoveTarget {
    /// Returns an id for the life of `worker` that ends with the move.
    fn new_life(&self, worker: &str) -> String;

    /// Returns whether the crawl is there whole, with a worker whose life `life` ended with the move.
    ///
    /// # Errors
    /// The reason, for people to read.
    fn is_moved(&self, life: &str) -> Result<bool, BoxError>;

    /// Begins to move the crawl there. No worker finds it before [`MovedIn::finish`].
    ///
    /// # Errors
    /// The reason, such as a crawl of that name, for people to read.
    fn begin(&self) -> Result<Box<dyn MovedIn>, BoxError>;
}

/// A crawl that is moved into a shared frontier, part by part.
pub trait MovedIn {
    /// Adds a part of the crawl. Pending URLs of one origin come in the order of their queue; a
    /// settled URL may come more than once.
    ///
    /// # Errors
    /// [`FrontierError`] if the engine fails.
    fn put(&mut self, part: StoredPart) -> Result<(), FrontierError>;

    /// Gives the crawl its name, if the engine has as many URLs in each state as `expected`. A worker
    /// resumes it by its name and its last life, as if it had died.
    ///
    /// # Errors
    /// [`MoveError`].
    fn finish(self: Box<Self>, worker: ImportedWorker, expected: Totals) -> Result<(), MoveError>;

    /// Removes what was moved so far.
    ///
    /// # Errors
    /// Errors of the engine.
    fn give_up(self: Box<Self>) -> Result<(), BoxError>;
}

/// The reason why a crawl could not be moved into a shared frontier.
#[derive(Debug)]
pub enum MoveError {
    /// The engine has other URLs than were expected; it has no such crawl now.
    Incomplete(BoxError),
    /// The engine failed, so it may have the crawl.
    Failed(BoxError),
}

/// The worker whose directory holds the rows of an imported crawl.
#[derive(Clone, Debug)]
pub struct ImportedWorker {
    /// The worker's name.
    pub name: String,
    /// The id of the life that ended with the import.
    pub life: String,
    /// Rows of `pages.jsonl` so far.
    pub pages: u64,
    /// Bytes of bodies so far.
    pub bytes: u64,
    /// The committed lengths of its files, in bytes, by file name.
    pub marks: BTreeMap<String, u64>,
}

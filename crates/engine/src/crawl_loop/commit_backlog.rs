//! Back-pressure: counts the pages and writer messages that are not committed yet, and stops
//! further requests while there are too many.

use std::collections::BTreeSet;
use std::time::Duration;

use crawl_scheduler::Tick;
use crawl_weburl::{HostKey, Origin};

use super::free_space_limit::FreeSpaceLimit;
use super::waiting_documents::WaitingDocumentTracker;
use crate::config::Config;

/// Maximum unsettled items, or twice the maximum requests in flight if that is more. Bounds the
/// memory for bodies, and leaves enough items for group commits to pay off.
/// Beyond the limit: no further request is sent.
const MAX_UNSETTLED: u64 = 512;

/// Maximum bytes of bodies not yet committed, apart from requests in flight and from documents that
/// wait for a reading process, which have a limit of their own.
/// Beyond the limit: no further request is sent.
const MAX_UNSETTLED_BYTES: u64 = 256 << 20;

/// Maximum bytes of pages that wait for a reader, per reader thread. A reader thread of a debug
/// build reads this much per second if the pages are of the slowest kind: indexed Chinese ones.
/// Beyond the limit: no further request is sent.
const MAX_UNREAD_BYTES: u64 = 4 << 20;

/// Maximum rows of committed pages that wait for the program that uses this library.
const MAX_UNDELIVERED_ROWS: usize = 1_024;

/// Counts and limits the pages and writer messages that are not committed yet.
///
/// A page is reported in this order: [`leased`](Self::leased), [`page_ended`](Self::page_ended),
/// then [`handed_to_readers`](Self::handed_to_readers) and [`reading_began`](Self::reading_began)
/// if there is a body, and [`committed`](Self::committed) at the end. A page whose URL becomes
/// pending again is reported with [`released`](Self::released) instead of a commit, and with
/// [`dropped_unread`](Self::dropped_unread) if readers had it. Other messages to the writer are
/// reported with [`written`](Self::written), and committed as well.
///
/// A document that waits for a reading process is reported with `document_waits` and
/// `document_ended`. Waiting documents don't count towards the limit on unsettled items, and have
/// their own limit of bytes. So they hold up only requests to their own host until that limit is
/// reached. Pages that are rendered ([`note_rendering`](Self::note_rendering)) don't count towards
/// the limit on unsettled items either.
///
/// Emits no effects. Some methods return origins to wake. The caller asks
/// [`has_room`](Self::has_room) before each permit.
#[derive(Debug)]
pub(super) struct CommitBacklogTracker {
    max_unsettled: u64,
    /// The maximum time that a finished item may wait for its commit.
    commit_within: Duration,
    /// Jobs and writer messages handed out and not yet committed.
    unsettled: u64,
    /// Page requests in flight, a part of `unsettled`.
    pages_in_flight: u64,
    /// Leased URLs not yet committed, a part of `unsettled`. Each may become a row of
    /// `pages.jsonl`.
    leases: u64,
    /// Bytes of bodies not yet committed.
    bytes: u64,
    /// Bytes of bodies that no reader has begun to read, a part of `bytes`.
    unread_bytes: u64,
    max_unread_bytes: u64,
    /// The start of the current wait for a commit. This is the latest of three times: the last
    /// commit, the last time that nothing waited for a commit, and the last time that the number of
    /// pages in rendering fell.
    committed_at: Tick,
    /// Rows of committed pages that wait for the program that uses this library.
    undelivered: usize,
    documents: WaitingDocumentTracker,
    /// Pages that are being rendered or wait to be rendered, a part of `unsettled`.
    rendering: u64,
    disk: FreeSpaceLimit,
}

impl CommitBacklogTracker {
    pub(super) fn new(config: &Config, now: Tick) -> CommitBacklogTracker {
        CommitBacklogTracker {
            // Leave room for all requests in flight, and for a group of finished requests.
            max_unsettled: MAX_UNSETTLED.max(2 * u64::from(config.politeness.concurrency)),
            commit_within: config.commit_within,
            unsettled: 0,
            pages_in_flight: 0,
            leases: 0,
            bytes: 0,
            unread_bytes: 0,
            max_unread_bytes: MAX_UNREAD_BYTES,
            committed_at: now,
            undelivered: 0,
            documents: WaitingDocumentTracker::default(),
            rendering: 0,
            disk: FreeSpaceLimit::new(config.min_free),
        }
    }

    pub(super) fn read_by(&mut self, threads: usize) {
        self.max_unread_bytes = MAX_UNREAD_BYTES.saturating_mul(threads.max(1) as u64);
    }

    /// Returns whether another request may be sent. Also returns false if finished items have
    /// waited so long for a commit that a crash would lose too many requests.
    pub(super) fn has_room(&self, now: Tick) -> bool {
        self.has_room_behind(0)
            && self.documents.have_room()
            && self.bytes_but_documents() < MAX_UNSETTLED_BYTES
            && self.unread_bytes < self.max_unread_bytes
            && self.undelivered < MAX_UNDELIVERED_ROWS
            && !self.is_behind(now)
            && !self.disk.is_low()
    }

    /// Returns whether one more unsettled item fits after `more` others are added.
    pub(super) fn has_room_behind(&self, more: usize) -> bool {
        self.unsettled_but_waiting() + (more as u64) < self.max_unsettled
    }

    /// Returns whether finished items have waited for a commit longer than half of `commit_within`.
    /// An item may have to wait for two commits: the current one and the next.
    fn is_behind(&self, now: Tick) -> bool {
        self.is_commit_due() && now.since(self.committed_at) > self.commit_within / 2
    }

    fn is_commit_due(&self) -> bool {
        self.unsettled_but_waiting() > self.pages_in_flight
    }

    fn bytes_but_documents(&self) -> u64 {
        self.bytes.saturating_sub(self.documents.body_bytes())
    }

    fn unsettled_but_waiting(&self) -> u64 {
        let waiting = self.documents.count() + self.rendering;
        self.unsettled.saturating_sub(waiting)
    }

    /// Restarts the wait for a commit at `now`, unless something already waits for one.
    pub(super) fn note_time(&mut self, now: Tick) {
        if !self.is_commit_due() {
            self.committed_at = now;
        }
    }

    /// Returns whether everything handed out is committed.
    pub(super) fn is_empty(&self) -> bool {
        self.unsettled == 0
    }

    pub(super) fn leases(&self) -> u64 {
        self.leases
    }

    /// Counts a page request that is sent.
    pub(super) fn leased(&mut self) {
        self.unsettled += 1;
        self.pages_in_flight += 1;
        self.leases += 1;
    }

    /// Counts a leased URL that is settled as failed without a request. The message that settles
    /// the URL is counted with [`written`](Self::written).
    pub(super) fn given_up(&mut self) {
        self.leases += 1;
    }

    /// Counts the end of a page request. The page is unsettled until it is committed or released.
    pub(super) fn page_ended(&mut self) {
        self.pages_in_flight -= 1;
    }

    /// Counts a lease that ended without a commit: its URL is pending again.
    pub(super) fn released(&mut self) {
        self.unsettled -= 1;
        self.leases -= 1;
    }

    /// Counts a page with a body of this size that went to the readers.
    pub(super) fn handed_to_readers(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.unread_bytes += bytes;
    }

    /// Stops counting these body bytes as unread, because readers began to read them.
    pub(super) fn reading_began(&mut self, bytes: u64) {
        self.unread_bytes = self.unread_bytes.saturating_sub(bytes);
    }

    /// Stops counting the body bytes of a page that readers gave back.
    pub(super) fn dropped_unread(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Counts messages to the writer, by their total weight and the total size of their bodies.
    pub(super) fn written(&mut self, weight: u64, bytes: u64) {
        self.unsettled += weight;
        self.bytes += bytes;
    }

    /// Stops counting the items, leases and body bytes of a commit, and notes its time.
    pub(super) fn committed(&mut self, now: Tick, items: u64, leases: u64, bytes: u64) {
        self.unsettled -= items;
        self.committed_at = now;
        self.leases -= leases;
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Sets the number of pages that are being rendered or wait to be rendered. These pages have
    /// their own limit, and may wait for a long time.
    pub(super) fn note_rendering(&mut self, now: Tick, pages: u64) {
        let had_more = self.rendering > pages;
        self.rendering = pages;
        if had_more {
            // A page that has just been rendered begins to wait for a commit only now. Restart the
            // clock, so that the time of its rendering doesn't count as a late commit.
            self.committed_at = self.committed_at.max(now);
        }
    }

    /// Sets the number of page rows that wait for the program that uses this library.
    pub(super) fn note_undelivered(&mut self, rows: usize) {
        self.undelivered = rows;
    }

    /// Counts a document that waits for a reading process.
    pub(super) fn document_waits(&mut self, host: HostKey, bytes: u64) {
        self.documents.add(host, bytes);
    }

    /// Stops counting a document as waiting for a reading process. Returns the origins that may get
    /// permits again.
    pub(super) fn document_ended(
        &mut self,
        now: Tick,
        host: &HostKey,
        bytes: u64,
    ) -> BTreeSet<Origin> {
        // The document's wait for a commit starts now, not when the document was fetched.
        self.note_time(now);
        self.documents.remove(host, bytes)
    }

    /// Returns whether the waiting documents of a host leave no room for another page. If so,
    /// [`document_ended`](Self::document_ended) returns the origin once there is room.
    pub(super) fn turns_away(&mut self, host: &HostKey, origin: &Origin) -> bool {
        self.documents.turns_away(host, origin)
    }

    /// Returns the waiting documents, to give them up after a stop.
    pub(super) fn documents_mut(&mut self) -> &mut WaitingDocumentTracker {
        &mut self.documents
    }

    /// Sets the number of free bytes on the disk with the crawl's directory.
    pub(super) fn note_free_space(&mut self, free: u64) {
        self.disk.note_free_space(free);
    }

    pub(super) fn disk(&self) -> &FreeSpaceLimit {
        &self.disk
    }

    /// Checks the counters against each other and against those of other parts of the loop.
    ///
    /// # Panics
    /// If they do not agree.
    #[cfg(test)]
    pub(super) fn check_invariants(&self, all_in_flight: u32, budget_leases: u64, leases: u64) {
        assert!(u64::from(all_in_flight) >= self.pages_in_flight);
        // The budgets count a guessed sitemap as leased until its commit, after its request has
        // ended.
        assert!((self.pages_in_flight..=self.leases).contains(&budget_leases));
        assert_eq!(self.leases, leases);
        assert!(self.leases >= self.pages_in_flight);
        assert!(self.unsettled >= self.leases);
        let is_on_its_way = self.unsettled > self.pages_in_flight;
        assert!(is_on_its_way || self.bytes == 0, "bytes of nothing");
        assert!(self.unread_bytes <= self.bytes, "unread");
    }

    /// Returns the number of unsettled items.
    #[cfg(test)]
    pub(super) fn unsettled(&self) -> u64 {
        self.unsettled
    }

    /// Returns the bytes of uncommitted bodies, and the bytes of unread bodies.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.bytes, self.unread_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::fixtures::{at, config};
    use super::super::waiting_documents::MAX_DOCUMENTS;
    use super::{
        CommitBacklogTracker, MAX_UNDELIVERED_ROWS, MAX_UNREAD_BYTES, MAX_UNSETTLED,
        MAX_UNSETTLED_BYTES,
    };

    fn backlog() -> CommitBacklogTracker {
        let mut config = config();
        config.commit_within = Duration::from_secs(10);
        config.min_free = 10;
        config.politeness.concurrency = 1;
        CommitBacklogTracker::new(&config, at(20))
    }

    #[test]
    fn each_limit_is_respected() {
        type Fill = fn(&mut CommitBacklogTracker);
        let fills: [(Fill, bool); 9] = [
            (|_| {}, true),
            (|backlog| backlog.written(MAX_UNSETTLED - 1, 0), true),
            (|backlog| backlog.written(MAX_UNSETTLED, 0), false),
            (|backlog| backlog.written(1, MAX_UNSETTLED_BYTES - 1), true),
            (|backlog| backlog.written(1, MAX_UNSETTLED_BYTES), false),
            (
                |backlog| backlog.note_undelivered(MAX_UNDELIVERED_ROWS - 1),
                true,
            ),
            (
                |backlog| backlog.note_undelivered(MAX_UNDELIVERED_ROWS),
                false,
            ),
            (|backlog| backlog.note_free_space(10), true),
            (|backlog| backlog.note_free_space(9), false),
        ];
        for (number, (fill, has_room)) in fills.into_iter().enumerate() {
            let mut backlog = backlog();
            fill(&mut backlog);
            assert_eq!(backlog.has_room(at(20)), has_room, "{number}");
        }
    }

    #[test]
    fn the_item_limit_has_room_for_all_requests_and_a_group() {
        let mut config = config();
        config.politeness.concurrency = 300;
        let mut backlog = CommitBacklogTracker::new(&config, at(20));
        backlog.written(599, 0);
        assert!(backlog.has_room_behind(0) && !backlog.has_room_behind(1));
    }

    #[test]
    fn a_start_reads_the_rows_of_all_requests_that_may_be_uncommitted() {
        for concurrency in [1, 256, 1_000_000] {
            let mut config = config();
            config.politeness.concurrency = concurrency;
            let backlog = CommitBacklogTracker::new(&config, at(20));
            let uncommitted = backlog.max_unsettled + MAX_DOCUMENTS + u64::from(concurrency);
            assert!(
                config.max_log_tail_rows() as u64 >= uncommitted,
                "{concurrency}"
            );
        }
    }

    #[test]
    fn a_commit_may_take_half_of_its_time() {
        let mut backlog = backlog();
        backlog.leased();
        // A request in flight does not wait for a commit yet.
        backlog.note_time(at(40));
        backlog.page_ended();
        assert!(backlog.has_room(at(45)) && !backlog.has_room(at(46)));
        backlog.note_time(at(46));
        assert!(!backlog.has_room(at(46)));
        backlog.committed(at(46), 1, 1, 0);
        assert!(backlog.has_room(at(90)));
        assert!(backlog.is_empty());
        backlog.check_invariants(0, 0, 0);
    }

    #[test]
    fn each_reader_may_have_four_mebibytes_waiting() {
        for (readers, most) in [
            (0, MAX_UNREAD_BYTES),
            (1, MAX_UNREAD_BYTES),
            (3, 3 * MAX_UNREAD_BYTES),
        ] {
            let mut backlog = backlog();
            backlog.read_by(readers);
            backlog.handed_to_readers(most);
            assert!(!backlog.has_room(at(20)), "{readers}");
            backlog.reading_began(1);
            assert!(backlog.has_room(at(20)), "{readers}");
            backlog.reading_began(u64::MAX);
            assert_eq!(backlog.bytes(), (most, 0));
        }
    }

    #[test]
    fn a_released_page_is_not_counted() {
        let mut backlog = backlog();
        backlog.leased();
        backlog.check_invariants(1, 1, 1);
        backlog.page_ended();
        backlog.handed_to_readers(4);
        assert_eq!((backlog.leases(), backlog.bytes()), (1, (4, 4)));
        backlog.reading_began(4);
        backlog.dropped_unread(4);
        backlog.released();
        assert_eq!((backlog.leases(), backlog.bytes()), (0, (0, 0)));
        assert!(backlog.is_empty());
        // A URL that is given up has a lease, but no request.
        backlog.given_up();
        backlog.written(1, 0);
        backlog.check_invariants(0, 0, 1);
    }
}

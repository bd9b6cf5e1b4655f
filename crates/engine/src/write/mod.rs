//! The single writer: appends to the archive and row files, then commits the transaction that
//! settles the URLs.
//!
//! When the writer is free, it commits all messages that have arrived since its last commit as one
//! group. The files are synced first, and the transaction contains their lengths. So after a crash,
//! the files can be cut back to the committed state.

mod commit_group;
mod links_awaiting_other_spelling;
mod other_spellings;
mod own_or_shared_transaction;
mod random_walk_moves;
mod readmit_deferred;
mod redirect_loops;
pub(crate) mod run_end;
mod sample_draw;
mod trap_learning;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvError, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use crawl_archive::Timestamp;
use crawl_fetcher::SiteSessions;
use crawl_frontier::worker_frontier::WorkerFrontier;
use crawl_frontier::{Frontier, UnsettledUrl, UrlToAdmit};
use crawl_weburl::{HostKey, Origin};
use foldhash::{HashMap, HashMapExt as _};

use self::commit_group::CommitGroup;
use self::links_awaiting_other_spelling::LinksAwaitingOtherSpelling;
use self::readmit_deferred::ReadmissionJudge;
use crate::crawl_totals::CrawlTotals;
use crate::error::EngineError;
use crate::messages::replay_message_key::KeyedMessage;
use crate::messages::{GroupCommitResult, WriterMessage};
use crate::revisit::visit::RevisitRules;
use crate::sampling::SampleState;
use crate::scope_seeds::ScopeSeeds;
use crate::shared_trap_detector::SharedTrapDetector;
use crate::state::crawl_directory::OutputWriters;
use crate::state::replay_order_log::ReplayOrderLog;
use crate::tombstones::Tombstones;
use crate::trace_events::TraceEventEmitter;

/// Maximum messages in one transaction: enough to share the cost of a sync, but few enough that
/// their links become available soon.
const MAX_GROUP: usize = 256;

/// After a commit, the writer sleeps for this multiple of the commit time, but at most for
/// [`MAX_REST`].
const REST_FACTOR: u32 = 8;
/// The longest sleep of the writer after a commit.
const MAX_REST: Duration = Duration::from_millis(10);

/// The state of the writer thread.
pub(crate) struct Writer {
    pub(crate) frontier: Arc<dyn Frontier>,
    pub(crate) files: OutputWriters,
    pub(crate) totals: CrawlTotals,
    pub(crate) visits: RevisitRules,
    scope_seeds: ScopeSeeds,
    /// The sequence number of the newest stored state of each host.
    newest: HashMap<HostKey, u64>,
    /// The number of the newest stored list of parked hosts.
    newest_parked: u64,
    /// The fetch time of the page that was settled last. At first, the start of the round.
    latest: Timestamp,
    traps: Option<SharedTrapDetector>,
    links_awaiting_other_spelling: LinksAwaitingOtherSpelling,
    sampling: Option<SampleState>,
    /// The shared frontier. `None` if the frontier belongs to this crawl alone.
    shared: Option<Arc<dyn WorkerFrontier>>,
    events: TraceEventEmitter,
    /// Whether to pass on rows of pages after their commit.
    keeps_rows: bool,
    /// Pages and hosts that the operator had erased from the crawl. They are never admitted or
    /// written again.
    tombstones: Tombstones,
    /// The channel to which the committed length of the index log is sent after each commit.
    indexer: Option<Sender<u64>>,
    /// The sites' cookies and tokens, to store with each commit.
    sessions: SiteSessions,
    /// The totals at the start of the run.
    start: CrawlTotals,
    /// The log of the order of commits, `state/order.jsonl`. `None` if the order is not logged.
    order: Option<ReplayOrderLog>,
}

impl Writer {
    pub(crate) fn new(
        frontier: Arc<dyn Frontier>,
        files: OutputWriters,
        totals: CrawlTotals,
        visits: RevisitRules,
        scope_seeds: ScopeSeeds,
    ) -> Writer {
        Writer {
            frontier,
            files,
            totals,
            visits,
            scope_seeds,
            newest: HashMap::new(),
            newest_parked: 0,
            latest: Timestamp::from_micros(u64::from(visits.round.began) * 1_000_000),
            traps: None,
            links_awaiting_other_spelling: LinksAwaitingOtherSpelling::default(),
            sampling: None,
            shared: None,
            events: TraceEventEmitter::default(),
            keeps_rows: true,
            tombstones: Tombstones::default(),
            indexer: None,
            sessions: SiteSessions::default(),
            start: totals,
            order: None,
        }
    }

    /// Makes the writer update the trap detector with each settled page.
    pub(crate) fn with_traps(self, traps: SharedTrapDetector) -> Writer {
        Writer {
            traps: Some(traps),
            ..self
        }
    }

    /// Makes the writer draw the sample, and mark the rows of drawn pages.
    pub(crate) fn with_sampling(self, sampling: Option<SampleState>) -> Writer {
        Writer { sampling, ..self }
    }

    /// Makes the writer use a frontier that is shared with other workers.
    pub(crate) fn with_shared_frontier(self, shared: Option<Arc<dyn WorkerFrontier>>) -> Writer {
        Writer { shared, ..self }
    }

    /// Makes the writer respect tombstones: it admits no forgotten URL, and removes mentions of
    /// forgotten pages from rows.
    pub(crate) fn with_tombstones(self, tombstones: Tombstones) -> Writer {
        Writer { tombstones, ..self }
    }

    /// Makes the writer store the sites' cookies and tokens with each commit.
    pub(crate) fn with_sessions(self, sessions: SiteSessions) -> Writer {
        Writer { sessions, ..self }
    }

    /// Makes the writer record the order of its commits in `state/order.jsonl`.
    pub(crate) fn with_replay_order_log(self, order: ReplayOrderLog) -> Writer {
        Writer {
            order: Some(order),
            ..self
        }
    }

    /// Makes the writer pass on rows of pages, if `keeps_rows` is true.
    pub(crate) fn keeping_rows(self, keeps_rows: bool) -> Writer {
        Writer { keeps_rows, ..self }
    }

    /// Makes the writer emit a tracing event for each URL that is admitted or settled.
    pub(crate) fn with_events(self, events: TraceEventEmitter) -> Writer {
        Writer { events, ..self }
    }

    /// Makes the writer send the committed length of the index log to the indexer.
    pub(crate) fn with_indexer(self, indexer: Option<Sender<u64>>) -> Writer {
        Writer { indexer, ..self }
    }

    /// Disconnects the indexer, which ends once it has read the log up to the last length that it
    /// received.
    pub(crate) fn disconnect_indexer(&mut self) {
        self.indexer = None;
    }

    /// Handles messages until all senders are dropped, and then returns the writer, because the end
    /// of the run needs its files. Once `abandon` is set, messages are dropped.
    ///
    /// # Errors
    /// The first error of the disk or the state. The URLs of the commit that failed are not
    /// settled.
    pub(crate) fn run(
        mut self,
        items: &Receiver<KeyedMessage>,
        abandon: &AtomicBool,
        mut committed: impl FnMut(GroupCommitResult),
    ) -> Result<Writer, EngineError> {
        loop {
            let first = match items.recv() {
                Ok(item) => item,
                Err(RecvError) => return Ok(self),
            };
            let mut group = vec![first];
            while group.len() < MAX_GROUP {
                match items.try_recv() {
                    Ok(item) => group.push(item),
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
                }
            }
            if !abandon.load(Ordering::Relaxed) {
                let began = Instant::now();
                let mut done = self.commit(group, abandon)?;
                done.counts.took = began.elapsed();
                committed(done);
                if let (Some(lengths), Some(log)) = (&self.indexer, &self.files.index) {
                    // Sending fails only if the indexer has failed, which the driver detects.
                    let _ = lengths.send(log.len());
                }
                // A commit costs a few syncs, whatever its size. So sleep to let more messages
                // arrive for the next group. Sleeping also avoids a wake-up for each message.
                thread::sleep((REST_FACTOR * began.elapsed()).min(MAX_REST));
            }
        }
    }

    /// Commits a group of messages. If a message demands it, also readmits deferred URLs or draws
    /// the sample. Once `abandon` is set, this second part stops early.
    pub(crate) fn commit(
        &mut self,
        group: Vec<KeyedMessage>,
        abandon: &AtomicBool,
    ) -> Result<GroupCommitResult, EngineError> {
        let frontier = Arc::clone(&self.frontier);
        let is_host = |item: &&KeyedMessage| matches!(item.message, WriterMessage::Host(_));
        let hosts = group.iter().filter(is_host).count();
        let (before, order) = (self.totals, self.order.clone());
        self.totals.messages += (group.len() - hosts) as u64;
        let items = group.iter().map(|item| item.message.weight()).sum();
        let mut group_state = CommitGroup::begin(self, &*frontier, items)?;
        group_state.expect(&group)?;
        let mut noted = Vec::new();
        for KeyedMessage { key, message } in group {
            match key {
                Some(key) => noted.push(group_state.noted_item(key, message)?.to_string()),
                None => group_state.item(message)?,
            }
        }
        if let Some(order) = &order {
            order.note_group(noted)?;
        }
        let take_back = group_state.take_back.take();
        let takes_back_mirrored = group_state.takes_back_mirrored;
        let draws_sample = group_state.draws_sample;
        let mut committed = group_state.finish(&before)?;
        self.totals = committed.totals;
        if let Some(scope) = take_back {
            let traps = self.traps.clone();
            let rules = (traps.as_ref(), scope.as_deref());
            let mut links_awaiting_other_spelling =
                std::mem::take(&mut self.links_awaiting_other_spelling);
            let mut judge = |waiting: &UnsettledUrl<'_>| {
                readmit_deferred::judge(
                    waiting,
                    &*frontier,
                    rules,
                    &mut links_awaiting_other_spelling,
                )
            };
            let origins = self.take_back(&*frontier, &mut judge, abandon)?;
            committed.origins.extend(origins);
            self.links_awaiting_other_spelling = links_awaiting_other_spelling;
        }
        if takes_back_mirrored {
            let mut judge =
                |waiting: &UnsettledUrl<'_>| readmit_deferred::judge_mirrored(waiting, &*frontier);
            let origins = self.take_back(&*frontier, &mut judge, abandon)?;
            committed.origins.extend(origins);
        }
        if draws_sample {
            let origins = self.draw_sample(&*frontier, abandon)?;
            committed.origins.extend(origins);
        }
        for row in &committed.rows {
            self.events.settled(row);
        }
        Ok(committed)
    }

    /// Readmits the deferred URLs for which `judge` returns a priority. Returns the origins whose
    /// queues changed.
    fn take_back(
        &mut self,
        frontier: &dyn Frontier,
        judge: &mut ReadmissionJudge<'_>,
        abandon: &AtomicBool,
    ) -> Result<BTreeMap<Origin, u64>, EngineError> {
        let mut origins = BTreeMap::new();
        let mut admit = |again: &[UrlToAdmit]| {
            let before = self.totals;
            let mut group = CommitGroup::begin(self, frontier, 0)?;
            group.admit(again)?;
            origins.extend(group.finish(&before)?.origins);
            Ok(())
        };
        readmit_deferred::each_batch(frontier, judge, abandon, &mut admit)?;
        Ok(origins)
    }
}

//! The single writer: appends to the archive and row files, then commits the transaction that
//! settles the URLs.
//!
//! As soon as the writer is free, it commits a group: all messages that arrived in the meantime.
//! The files are synced before the transaction is committed, which contains their lengths. After a
//! crash, the files can therefore be cut back to the committed state.

mod group;
mod open_transaction;
mod redirect_loops;
pub(crate) mod run_end;
mod sample_draw;
mod take_back;
mod trap_evidence;
mod walk;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvError, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use crawl_archive::Timestamp;
use crawl_frontier::shared::WorkerFrontier;
use crawl_frontier::{Admission, Frontier};
use crawl_scope::Scope;
use crawl_weburl::{HostKey, Origin};
use foldhash::{HashMap, HashMapExt as _};

use self::group::Group;
use crate::error::EngineError;
use crate::messages::key::Keyed;
use crate::messages::{Committed, WriterMessage};
use crate::revisit::visit::RevisitSchedule;
use crate::sampling::Sampling;
use crate::scope_seeds::ScopeSeeds;
use crate::shared_traps::SharedTraps;
use crate::state::directory::Files;
use crate::state::order_log::OrderLog;
use crate::tombstones::Tombstones;
use crate::totals::Totals;
use crate::trace_events::TraceEvents;

/// Maximum messages in one transaction. Enough messages share the cost of a sync, but their links
/// still become available soon.
const MAX_GROUP: usize = 256;

/// After a commit, the writer sleeps this many times as long as the commit took, but at most
/// `MAX_REST`.
const REST_FACTOR: u32 = 8;
const MAX_REST: Duration = Duration::from_millis(10);

/// The state of the writer thread.
pub(crate) struct Writer {
    pub(crate) frontier: Arc<dyn Frontier>,
    pub(crate) files: Files,
    pub(crate) totals: Totals,
    pub(crate) visits: RevisitSchedule,
    scope_seeds: ScopeSeeds,
    /// For each host, the sequence number of the newest state that was stored.
    newest: HashMap<HostKey, u64>,
    /// The number of the newest list of parked hosts that was stored.
    newest_parked: u64,
    /// When the page was fetched that was settled last. Before the first page, the start of the
    /// round.
    latest: Timestamp,
    traps: Option<SharedTraps>,
    sampling: Option<Sampling>,
    /// The shared frontier; `None` if the frontier is the crawl's own.
    shared: Option<Arc<dyn WorkerFrontier>>,
    events: TraceEvents,
    /// Whether to pass on the rows of pages once they are committed.
    keeps_rows: bool,
    /// Pages and hosts that the crawl was made to forget, and that are never admitted or written
    /// again.
    tombstones: Tombstones,
    /// Receives the committed length of the index log after each commit.
    indexer: Option<Sender<u64>>,
    /// The totals at the start of the run.
    start: Totals,
    /// The log of the order of commits, if that is recorded.
    order: Option<OrderLog>,
}

impl Writer {
    pub(crate) fn new(
        frontier: Arc<dyn Frontier>,
        files: Files,
        totals: Totals,
        visits: RevisitSchedule,
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
            sampling: None,
            shared: None,
            events: TraceEvents::default(),
            keeps_rows: true,
            tombstones: Tombstones::default(),
            indexer: None,
            start: totals,
            order: None,
        }
    }

    /// Makes the writer update the trap detection with each settled page.
    pub(crate) fn with_traps(self, traps: SharedTraps) -> Writer {
        Writer {
            traps: Some(traps),
            ..self
        }
    }

    /// Makes the writer draw the sample, and mark the rows of its pages.
    pub(crate) fn with_sampling(self, sampling: Option<Sampling>) -> Writer {
        Writer { sampling, ..self }
    }

    /// Makes the writer use a frontier that is shared with other workers.
    pub(crate) fn with_shared_frontier(self, shared: Option<Arc<dyn WorkerFrontier>>) -> Writer {
        Writer { shared, ..self }
    }

    /// Keeps the writer from writing what the crawl was made to forget.
    pub(crate) fn with_tombstones(self, tombstones: Tombstones) -> Writer {
        Writer { tombstones, ..self }
    }

    /// Makes the writer record the order of its commits.
    pub(crate) fn with_order_log(self, order: OrderLog) -> Writer {
        Writer {
            order: Some(order),
            ..self
        }
    }

    /// Makes the writer pass on the rows of pages, if a consumer takes them.
    pub(crate) fn keeping_rows(self, keeps_rows: bool) -> Writer {
        Writer { keeps_rows, ..self }
    }

    /// Makes the writer log each URL that is admitted or settled.
    pub(crate) fn with_events(self, events: TraceEvents) -> Writer {
        Writer { events, ..self }
    }

    /// Makes the writer send the committed length of the index log to the indexer.
    pub(crate) fn with_indexer(self, indexer: Option<Sender<u64>>) -> Writer {
        Writer { indexer, ..self }
    }

    /// Disconnects the indexer, which ends once it has read the log up to the last length it
    /// received.
    pub(crate) fn disconnect_indexer(&mut self) {
        self.indexer = None;
    }

    /// Handles messages until all senders are dropped, then returns the writer, whose files are
    /// needed at the end of the run. Once `abandon` is set, messages are dropped.
    ///
    /// # Errors
    /// The first error of a disk or of the state. No message of the group with the error is
    /// settled.
    pub(crate) fn run(
        mut self,
        items: &Receiver<Keyed>,
        abandon: &AtomicBool,
        mut committed: impl FnMut(Committed),
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
                // The cost of a commit is a few syncs, whatever its size. Sleeping lets more
                // messages arrive for one group, without waking this thread for each message.
                thread::sleep((REST_FACTOR * began.elapsed()).min(MAX_REST));
            }
        }
    }

    /// Commits a group of messages. Once `abandon` is set, a scan of deferred URLs stops and admits
    /// nothing more.
    pub(crate) fn commit(
        &mut self,
        group: Vec<Keyed>,
        abandon: &AtomicBool,
    ) -> Result<Committed, EngineError> {
        let frontier = Arc::clone(&self.frontier);
        let is_host = |item: &&Keyed| matches!(item.message, WriterMessage::Host(_));
        let hosts = group.iter().filter(is_host).count();
        let (before, order) = (self.totals, self.order.clone());
        self.totals.messages += (group.len() - hosts) as u64;
        let items = group.iter().map(|item| item.message.weight()).sum();
        let mut group_state = Group::begin(self, &*frontier, items)?;
        group_state.expect(&group)?;
        let mut noted = Vec::new();
        for Keyed { key, message } in group {
            match key {
                Some(key) => noted.push(group_state.noted_item(key, message)?.to_string()),
                None => group_state.item(message)?,
            }
        }
        if let Some(order) = &order {
            order.note_group(noted)?;
        }
        let take_back = group_state.take_back.take();
        let draws_sample = group_state.draws_sample;
        let mut committed = group_state.finish(&before)?;
        self.totals = committed.totals;
        if let Some(scope) = take_back {
            let origins = self.take_back(&*frontier, scope.as_deref(), abandon)?;
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

    /// Admits deferred URLs again that may be fetched now. Returns the origins whose queues
    /// changed.
    fn take_back(
        &mut self,
        frontier: &dyn Frontier,
        scope: Option<&Scope>,
        abandon: &AtomicBool,
    ) -> Result<BTreeMap<Origin, u64>, EngineError> {
        let traps = self.traps.clone();
        let mut origins = BTreeMap::new();
        let mut admit = |again: &[Admission]| {
            let before = self.totals;
            let mut group = Group::begin(self, frontier, 0)?;
            group.admit(again)?;
            origins.extend(group.finish(&before)?.origins);
            Ok(())
        };
        take_back::each_batch(frontier, traps.as_ref(), scope, abandon, &mut admit)?;
        Ok(origins)
    }
}

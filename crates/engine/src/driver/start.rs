//! Starts a run: restores the state that earlier runs stored, and starts the threads.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;

use crawl_archive::RowLogWriter;
use crawl_archive::rows::{RequestRow, RunStartEvent};
use crawl_fetcher::{Fetcher, MonotonicClock};
use crawl_frontier::worker_frontier::WorkerFrontier;
use crawl_frontier::{FileLock, Frontier};
use crawl_scheduler::{SnapshotCompleteness, Tick};
use tokio::sync::mpsc as async_mpsc;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::Span;

use super::{Driver, IndexingDeadline, SharedFrontierConnection};
use crate::config::{Config, RunMode};
use crate::control::StopUrgency;
use crate::crawl_loop::Coordinator;
use crate::crawl_loop::host_locks::HostLocks;
use crate::error::EngineError;
use crate::free_space::{FreeSpaceMeter, FreeSpaceWatcher};
use crate::frontier_meta_keys::{META_SESSION, META_TRAPS};
use crate::index::log_follower::{
    self, Indexer, IndexingStartState, IndexingStopCondition, ProcessorsBusyCheck,
};
use crate::messages::Event;
use crate::messages::replay_message_key::{KeyedMessage, MessageKeyAssigner};
use crate::page_reading::PageReader;
use crate::page_reading::reader_pool::{self, ReaderLoad, ReaderPool};
use crate::revisit::visit::RevisitRules;
use crate::shared_trap_detector::SharedTrapDetector;
use crate::state::crawl_directory::{self, CrawlDirectory};
use crate::state::expire_robots_rules::take_rechecked;
use crate::state::replay_order_log::ReplayOrderLog;
use crate::state::settings_and_delays_log::SettingsAndDelaysLog;
use crate::state::stored_parked_hosts::parked;
use crate::trace_events::TraceEventEmitter;
use crate::worker_coordination_thread::{WorkerCoordinationThread, WorkerHostOwnership};
use crate::write::Writer;

/// The crawl directory and its state at the start of a run.
pub(super) struct OpenedCrawl {
    pub(super) directory: CrawlDirectory,
    /// The search index, if the crawl builds one.
    indexing: Option<IndexingStartState>,
    /// The round of this run.
    visits: RevisitRules,
}

impl OpenedCrawl {
    /// Opens the directory and its index log. If a new round begins, makes all due URLs pending,
    /// unless the user stops the run before that is done.
    pub(super) fn open(
        config: &Config,
        clock: MonotonicClock,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<OpenedCrawl, EngineError> {
        let mut directory = crawl_directory::open(config, reader_pool::all_threads())?;
        let has_pages = directory.totals.pages > 0;
        let indexing = log_follower::open_log(config, &*directory.frontier, has_pages)?;
        let visits = directory.take_up_round(config, clock.now(), is_stopped)?;
        Ok(OpenedCrawl {
            directory,
            indexing,
            visits,
        })
    }
}

impl Driver {
    pub(super) fn start(
        config: &Arc<Config>,
        clock: MonotonicClock,
        fetcher: Arc<Fetcher>,
        opened: OpenedCrawl,
        has_consumer: bool,
        stop: watch::Receiver<StopUrgency>,
        free_space: &FreeSpaceMeter,
    ) -> Result<Driver, EngineError> {
        let OpenedCrawl {
            mut directory,
            indexing,
            visits,
        } = opened;
        let now = clock.now();
        let traps = directory.frontier.meta(META_TRAPS)?;
        let traps = SharedTrapDetector::new(&config.traps, traps.as_deref());
        let mut coordinator = coordinator(config, now, &mut directory, visits, traps.clone())?;
        prepare_requests(&mut coordinator, config, clock, free_space);
        let delays = SettingsAndDelaysLog::open(config, now)?;
        let order = ReplayOrderLog::open(&config.output, began(config, &directory, visits, now)?)?;
        let note_address = |host: &str, address: IpAddr| fetcher.note_past_address(host, address);
        restore_earlier_run(&mut coordinator, config, note_address, &mut directory, now)?;
        let resumed = directory.resumed;
        let created = match &directory.shared {
            None => std::mem::take(&mut directory.created),
            // With a shared frontier, this directory has only this worker's files of the crawl.
            Some(_) => Vec::new(),
        };
        let abandon = Arc::new(AtomicBool::new(false));
        let indexing_deadline = Arc::new(OnceLock::new());
        let start = RunThreadInputs {
            config,
            visits,
            traps,
            order: order.clone(),
            has_consumer,
            halt: halt(&abandon, &indexing_deadline, &stop, clock),
            abandon: &abandon,
            free_space,
        };
        // The channel has no limit, since the coordinator limits how much work it hands out.
        let (event_sender, events) = async_mpsc::unbounded_channel();
        let weak_sender = event_sender.downgrade();
        let RunThreads {
            requests,
            readers,
            writer,
            indexer,
            disk,
            shared_frontier,
        } = start.threads(directory, indexing, event_sender)?;
        Ok(Driver {
            config: Arc::clone(config),
            clock,
            fetcher,
            coordinator,
            requests,
            delays,
            order,
            keys: MessageKeyAssigner::new(),
            readers,
            writer,
            indexer,
            events,
            event_sender: weak_sender,
            fetches: JoinSet::new(),
            undelivered: VecDeque::new(),
            _disk: disk,
            shared_frontier,
            resumed,
            created,
            abandon,
            indexing_deadline,
            stop,
        })
    }
}

/// Inputs for starting the threads of a run.
struct RunThreadInputs<'r> {
    config: &'r Arc<Config>,
    visits: RevisitRules,
    traps: SharedTrapDetector,
    order: ReplayOrderLog,
    has_consumer: bool,
    halt: IndexingStopCondition,
    abandon: &'r Arc<AtomicBool>,
    free_space: &'r FreeSpaceMeter,
}

/// The threads of a run, and the log of its requests.
struct RunThreads {
    requests: RowLogWriter,
    readers: ReaderPool,
    writer: JoinHandle<Result<Writer, EngineError>>,
    indexer: Option<Indexer>,
    disk: FreeSpaceWatcher,
    shared_frontier: Option<SharedFrontierConnection>,
}

impl RunThreadInputs<'_> {
    fn threads(
        self,
        directory: CrawlDirectory,
        indexing: Option<IndexingStartState>,
        events: async_mpsc::UnboundedSender<Event>,
    ) -> Result<RunThreads, EngineError> {
        let CrawlDirectory {
            frontier,
            shared,
            lock,
            tombstones,
            mut files,
            requests,
            sampling,
            journal,
            totals,
            scope_seeds,
            ..
        } = directory;
        let failed = |error| EngineError::disk(&self.config.output)(error);
        let load = ReaderLoad::new();
        let indexer = match indexing {
            None => None,
            Some(indexing) => {
                let when = (self.halt, is_busy(self.config, &load));
                let events = events.clone();
                let failed = move |error| drop(events.send(Event::Broken(error)));
                let frontier = Arc::clone(&frontier);
                let (indexer, log) = Indexer::start(self.config, frontier, indexing, when, failed)?;
                files.index = Some(log);
                Some(indexer)
            }
        };
        let reader = PageReader::new(self.config, &self.visits);
        let reader = reader.with_crawl_state(Arc::clone(&frontier), self.traps.clone());
        let writer = Writer::new(frontier, files, totals, self.visits, scope_seeds)
            .with_traps(self.traps)
            .with_sampling(sampling)
            .with_shared_frontier(shared.clone())
            .with_tombstones(tombstones)
            .with_sessions(self.config.fetch.sessions.clone())
            .with_replay_order_log(self.order)
            .with_events(TraceEventEmitter::new(self.config))
            .keeping_rows(self.has_consumer)
            .with_indexer(indexer.as_ref().map(Indexer::lengths));
        let disk = watch_disk(self.config, self.free_space, &events).map_err(failed)?;
        let shared_frontier = shared
            .map(|frontier| SharedFrontierConnection::start(frontier, lock, self.config, &events));
        let shared_frontier = shared_frontier.transpose().map_err(failed)?;
        let (item_sender, items) = mpsc::channel();
        let to_readers = (item_sender, events.downgrade());
        let writer = start_writer(writer, items, events, self.abandon).map_err(failed)?;
        let (config, abandon) = (self.config, self.abandon);
        let readers = ReaderPool::start(config, reader, to_readers, abandon, &journal, &load);
        Ok(RunThreads {
            requests,
            readers: readers.map_err(failed)?,
            writer,
            indexer,
            disk,
            shared_frontier,
        })
    }
}

impl SharedFrontierConnection {
    fn start(
        frontier: Arc<dyn WorkerFrontier>,
        lock: Option<FileLock>,
        config: &Config,
        events: &async_mpsc::UnboundedSender<Event>,
    ) -> io::Result<SharedFrontierConnection> {
        let events = events.downgrade();
        let send = move |event| {
            events
                .upgrade()
                .is_some_and(|events| events.send(event).is_ok())
        };
        let thread = WorkerCoordinationThread::start(Arc::clone(&frontier), config, send)?;
        Ok(SharedFrontierConnection {
            frontier,
            thread,
            _lock: lock,
        })
    }
}

fn watch_disk(
    config: &Config,
    free_space: &FreeSpaceMeter,
    events: &async_mpsc::UnboundedSender<Event>,
) -> io::Result<FreeSpaceWatcher> {
    let events = events.downgrade();
    FreeSpaceWatcher::start(free_space.clone(), config.output.clone(), move |bytes| {
        let events = events.upgrade();
        events.is_some_and(|events| events.send(Event::FreeSpace { bytes }).is_ok())
    })
}

/// Opens the locks that the user's crawls share, and measures the free space, which must be known
/// before the first request.
fn prepare_requests(
    coordinator: &mut Coordinator,
    config: &Config,
    clock: MonotonicClock,
    free_space: &FreeSpaceMeter,
) {
    if let Some(locks) = HostLocks::shared(config, Some(clock.zero()), clock.now()) {
        coordinator.share_hosts(locks);
    }
    if let Some(free) = free_space.of(&config.output) {
        coordinator.note_free_space(free);
    }
}

/// Creates the coordinator of a run from the state in the crawl directory.
pub(crate) fn coordinator(
    config: &Arc<Config>,
    now: Tick,
    directory: &mut CrawlDirectory,
    visits: RevisitRules,
    traps: SharedTrapDetector,
) -> Result<Coordinator, EngineError> {
    let frontier = &directory.frontier;
    let mut coordinator = Coordinator::new(
        Arc::clone(config),
        Arc::clone(frontier),
        directory.scope_seeds.scope(config)?,
        directory.totals,
        now,
        now.as_micros(),
    );
    coordinator.enter_round(visits);
    coordinator.read_by(reader_pool::count());
    coordinator.share_traps(traps);
    coordinator.sample(directory.sampling.clone());
    coordinator.suspect(directory.journal.deaths());
    coordinator.park_again(now, &parked(&**frontier)?);
    restore_sessions(config, &**frontier, now)?;
    // A plan or a recheck requests no pages, so it needs no login.
    if config.extent == RunMode::Crawl {
        coordinator.log_in();
    }
    Ok(coordinator)
}

/// Restores the sites' cookies and tokens of earlier runs, and adds those that the operator
/// imports.
fn restore_sessions(
    config: &Config,
    frontier: &dyn Frontier,
    now: Tick,
) -> Result<(), EngineError> {
    let sessions = &config.fetch.sessions;
    for site in sessions.sites() {
        if let Some(stored) = frontier.meta(&format!("{META_SESSION}{site}"))? {
            sessions.restore(site, &stored, now);
        }
    }
    if let Some((cookies, digest)) = &config.cookie_file {
        sessions.import(cookies, digest, now);
    }
    Ok(())
}

/// Returns the row that begins a run in the replay order log (`state/order.jsonl`). Expires the
/// rules that a recheck found changed.
fn began(
    config: &Config,
    directory: &CrawlDirectory,
    visits: RevisitRules,
    now: Tick,
) -> Result<RunStartEvent, EngineError> {
    let frontier = &*directory.frontier;
    let parked = parked(frontier)?;
    Ok(RunStartEvent {
        parked: Some(parked.iter().map(ToString::to_string).collect()),
        rechecked: take_rechecked(frontier, now)?,
        settings: config.settings_digest.clone(),
        has_render_steps: true,
        at: now.as_millis(),
        round: visits.round.number,
        round_began: visits.round.began,
        requests: directory.requests.len(),
        settled: directory.totals.messages,
        before: directory.last_end.clone(),
    })
}

/// Continues earlier runs: restores the gaps and back-offs that have not ended yet. Calls
/// `note_address` with the recorded addresses of hosts.
pub(crate) fn restore_earlier_run(
    coordinator: &mut Coordinator,
    config: &Config,
    note_address: impl Fn(&str, IpAddr),
    directory: &mut CrawlDirectory,
    now: Tick,
) -> Result<(), EngineError> {
    if let Some(shared) = &directory.shared {
        coordinator.share_crawl(Arc::new(WorkerHostOwnership::new(Arc::clone(shared))));
    }
    // If workers share the frontier, it may contain URLs even at this worker's first start.
    if directory.resumed || directory.shared.is_some() {
        coordinator.restore(match directory.cut_off {
            true => SnapshotCompleteness::WritesMayBeLost,
            false => SnapshotCompleteness::Complete,
        })?;
    }
    let requests = &mut directory.requests;
    restore_requests(coordinator, config, note_address, requests, now)?;
    if directory.cut_off {
        coordinator.note_unknown_requests(now)?;
    }
    Ok(())
}

/// Returns the function with which the indexer checks whether readers need the processors.
fn is_busy(config: &Config, load: &ReaderLoad) -> ProcessorsBusyCheck {
    let (load, has_time) = (load.clone(), config.budgets.max_time.is_none());
    // In a run with a time limit, never delay indexing while readers are busy, because there may
    // be no time for it later.
    Arc::new(move || has_time && load.is_busy())
}

fn start_writer(
    writer: Writer,
    items: mpsc::Receiver<KeyedMessage>,
    events: async_mpsc::UnboundedSender<Event>,
    abandon: &Arc<AtomicBool>,
) -> io::Result<JoinHandle<Result<Writer, EngineError>>> {
    let (span, given_up) = (Span::current(), Arc::clone(abandon));
    let thread = std::thread::Builder::new().name("crawl-writer".to_owned());
    thread.spawn(move || {
        let _entered = span.entered();
        let ended = writer.run(&items, &given_up, |committed| {
            let _ = events.send(Event::Committed(Box::new(committed)));
        });
        ended.map_err(|error| {
            let _ = events.send(Event::Broken(error));
            EngineError::Thread {
                what: "the writer failed before".to_owned(),
            }
        })
    })
}

fn halt(
    abandon: &Arc<AtomicBool>,
    indexing_deadline: &Arc<OnceLock<IndexingDeadline>>,
    stop: &watch::Receiver<StopUrgency>,
    clock: MonotonicClock,
) -> IndexingStopCondition {
    let (abandon, indexing_deadline) = (Arc::clone(abandon), Arc::clone(indexing_deadline));
    let stop = stop.clone();
    let is_over = move |indexing: &IndexingDeadline| {
        *stop.borrow() > indexing.stop
            || indexing
                .deadline
                .is_some_and(|deadline| clock.now() >= deadline)
    };
    IndexingStopCondition::when(move || {
        abandon.load(Ordering::Relaxed) || indexing_deadline.get().is_some_and(&is_over)
    })
}

/// Restores the current gaps and the addresses of hosts from the requests of earlier runs.
fn restore_requests(
    coordinator: &mut Coordinator,
    config: &Config,
    note_address: impl Fn(&str, IpAddr),
    requests: &mut RowLogWriter,
    now: Tick,
) -> Result<(), EngineError> {
    for seed in &config.fetch.typed {
        if let Some(address) = coordinator.past_address(&seed.host_key())? {
            note_address(seed.host(), address);
        }
    }
    let tail = requests.tail::<RequestRow>(config.max_log_tail_rows())?;
    for row in tail.rows {
        coordinator.note_past_request(now, &row)?;
        // The stored state may lack a host's address if its request was in flight when the last run
        // ended.
        if let Some(Ok(address)) = row.address.as_deref().map(str::parse) {
            note_address(&row.host, address);
        }
    }
    Ok(())
}

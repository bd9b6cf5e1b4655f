//! The driver: runs the crawl loop with a clock, sockets, threads and a disk.

mod rendering;
pub(crate) mod start;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use crawl_archive::RowLogWriter;
use crawl_archive::rows::PageRow;
use crawl_fetcher::{FetchConfig, Fetcher, MonotonicClock};
use crawl_frontier::FileLock;
use crawl_frontier::worker_frontier::WorkerFrontier;
use crawl_scheduler::Tick;
use tokio::runtime::Handle;
use tokio::sync::mpsc as async_mpsc;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet, spawn_blocking};
use tokio::time::{Sleep, sleep};
use tracing::{Instrument as _, Span};

use self::rendering::{rendered, requests_of};
use self::start::OpenedCrawl;
use crate::config::Config;
use crate::content_filter::body_filter;
use crate::control::{
    CommandAnswer, ControlChannels, CrawlPhase, PostedCommand, ProgressSnapshot, StopUrgency,
};
use crate::crawl_loop::{Coordinator, DriverStep, request_rows};
use crate::error::EngineError;
use crate::free_space::FreeSpaceWatcher;
use crate::index::log_follower::{Indexer, IndexerOutcome};
use crate::messages::render::RenderId;
use crate::messages::replay_message_key::{KeyedMessage, MessageKeyAssigner};
use crate::messages::{
    Effect, Event, LoginCredentialsResult, PostedRules, lines_to_log, order_to_log,
};
use crate::page_reading::reader_pool::{ReaderPool, ReaderTask};
use crate::render::UndecodedResponse;
use crate::runtime_waker::RuntimeWaker;
use crate::state::crawl_toml::write_config;
use crate::state::replay_order_log::ReplayOrderLog;
use crate::state::settings_and_delays_log::SettingsAndDelaysLog;
use crate::summary::{EndReason, RunSummary};
use crate::time_conversions::seconds_of;
use crate::trace_events;
use crate::worker_coordination_thread::{LeaseDeadlineSource, WorkerCoordinationThread};
use crate::write::Writer;
use crate::write::run_end;

/// The interval between two progress updates.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum number of ended requests, and of other events, to handle before the next check for
/// commands and signals. The number is small because an ended request may take long: its robots.txt
/// may have to be compiled.
const MAX_EVENTS: usize = 64;

/// How long indexing may continue after the run's deadline or after a stop.
const INDEX_GRACE: Duration = Duration::from_millis(250);

/// Crawls until nothing is left, a budget is spent, or the controls request a stop.
///
/// Must be called within a tokio runtime with time and I/O enabled.
///
/// # Errors
/// [`EngineError`] if the directory can't be used, or if I/O or the state fails. Everything fetched
/// before the error stays readable, and another call resumes the crawl.
pub async fn run(config: Config, controls: ControlChannels) -> Result<RunSummary, EngineError> {
    let span = trace_events::crawl_span(&config.output);
    // Run the loop on a thread of the runtime, so that finished requests wake it without a thread
    // switch. Dropping this future aborts the loop's task.
    let mut task = JoinSet::new();
    task.spawn(run_in_span(config, controls).instrument(span));
    match task.join_next().await {
        Some(Ok(ended)) => ended,
        Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
        _ => Err(EngineError::Thread {
            what: "the crawl loop".to_owned(),
        }),
    }
}

async fn run_in_span(
    config: Config,
    mut controls: ControlChannels,
) -> Result<RunSummary, EngineError> {
    let started = Instant::now();
    let clock = MonotonicClock::start();
    let fetch = FetchConfig {
        body_filter: body_filter(&config.wanted),
        ..config.fetch.clone()
    };
    let fetcher = Fetcher::new(fetch, clock)?;
    let config = Arc::new(config);
    let (stop, free_space) = (controls.stop.clone(), controls.free_space.clone());
    let mut early_stop = controls.stop.clone();
    let has_consumer = controls.pages.is_some();
    let driver = off_the_runtime({
        let config = Arc::clone(&config);
        move || {
            let opened = OpenedCrawl::open(&config, clock, &|| *stop.borrow() != StopUrgency::No)?;
            let fetcher = match &opened.directory.shared {
                Some(shared) => fetcher
                    .with_send_deadline(Arc::new(LeaseDeadlineSource(shared.send_deadline()))),
                None => fetcher,
            };
            Driver::start(
                &config,
                clock,
                Arc::new(fetcher),
                opened,
                has_consumer,
                stop,
                &free_space,
            )
        }
    });
    let mut driver = match config.shared {
        None => driver.await?,
        // The database of a shared frontier may answer late or never, so a stop must end this
        // wait.
        Some(_) => tokio::select! {
            driver = driver => driver?,
            _ = early_stop.wait_for(|stop| *stop != StopUrgency::No) => return Err(EngineError::StoppedEarly),
        },
    };
    let _waker =
        RuntimeWaker::start(Handle::current()).map_err(EngineError::disk(&config.output))?;
    let looped = driver.run_loop(&mut controls).await;
    // Drop the commands that were not handled. A sender sees from this that the run is over.
    controls.commands.close();
    while controls.commands.try_recv().is_ok() {}
    controls
        .progress
        .send_modify(|progress| progress.phase = CrawlPhase::Writing);
    off_the_runtime(move || driver.end(looped, started)).await
}

/// Runs `work`, which may block, on a thread for blocking work.
async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
) -> Result<T, EngineError> {
    let span = Span::current();
    let worked = spawn_blocking(move || span.in_scope(work)).await;
    worked.unwrap_or_else(|error| {
        Err(EngineError::Thread {
            what: format!("the driver: {error}"),
        })
    })
}

/// Runs a crawl: passes events to the crawl loop, and performs its effects.
struct Driver {
    config: Arc<Config>,
    clock: MonotonicClock,
    fetcher: Arc<Fetcher>,
    coordinator: Coordinator,
    requests: RowLogWriter,
    delays: SettingsAndDelaysLog,
    order: ReplayOrderLog,
    /// Assigns keys to messages for the writer, so that a replay can match its own messages with
    /// the logged ones.
    keys: MessageKeyAssigner,
    readers: ReaderPool,
    writer: std::thread::JoinHandle<Result<Writer, EngineError>>,
    indexer: Option<Indexer>,
    events: async_mpsc::UnboundedReceiver<Event>,
    /// A weak sender, so that it doesn't keep the channel open. The driver notices the end of the
    /// writer because all other senders are dropped.
    event_sender: async_mpsc::WeakUnboundedSender<Event>,
    /// Requests, look-ups and renderings in flight.
    fetches: JoinSet<Event>,
    /// Rows of committed pages that their consumer has not taken yet.
    undelivered: VecDeque<PageRow>,
    _disk: FreeSpaceWatcher,
    /// `None` unless the frontier is shared.
    shared_frontier: Option<SharedFrontierConnection>,
    resumed: bool,
    /// The folders created for this run.
    created: Vec<PathBuf>,
    /// If set, readers and writer drop their remaining work.
    abandon: Arc<AtomicBool>,
    /// Set when the crawl loop has ended. Limits how long the rest of the indexing may take.
    indexing_deadline: Arc<OnceLock<IndexingDeadline>>,
    stop: watch::Receiver<StopUrgency>,
}

/// This worker's connection to the frontier of a shared crawl, the thread that cooperates with the
/// other workers, and the lock of this worker's directory.
struct SharedFrontierConnection {
    frontier: Arc<dyn WorkerFrontier>,
    thread: WorkerCoordinationThread,
    /// The lock of the directory, held until the end of the run.
    _lock: Option<FileLock>,
}

impl SharedFrontierConnection {
    /// Ends the run while this worker still owns its buckets (sets of hosts). Releases the buckets
    /// afterwards, so that other workers can continue with the hosts at once. Call this when no
    /// request to these hosts is in flight.
    fn end_with(
        self,
        end: impl FnOnce() -> Result<RunSummary, EngineError>,
    ) -> Result<RunSummary, EngineError> {
        self.thread.end();
        let ended = end();
        // After an error, keep the buckets (sets of hosts), because some requests to their hosts
        // may not be on record. Until the leases on the buckets expire, only this worker can send
        // requests to these hosts: if it restarts, it reads its own records first.
        if ended.is_ok()
            && let Err(error) = self.frontier.give_up()
        {
            tracing::warn!(%error, "the hosts of this worker wait until its leases expire");
        }
        ended
    }
}

/// When to stop indexing after the crawl loop has ended.
#[derive(Debug)]
struct IndexingDeadline {
    /// The time when indexing must stop. `None` if it may finish.
    deadline: Option<Tick>,
    /// How urgently a stop was requested when the loop ended. A more urgent stop ends indexing.
    stop: StopUrgency,
}

impl Driver {
    /// Runs the loop until the run is over. Each iteration handles events, then performs the
    /// effects.
    async fn run_loop(&mut self, controls: &mut ControlChannels) -> Result<EndReason, EngineError> {
        let mut effects = Vec::new();
        let mut last_report = Instant::now();
        let mut timer = pin!(sleep(PROGRESS_INTERVAL));
        self.coordinator.begin(self.clock.now(), &mut effects);
        // Handle commands that were sent before the start, even if the run is over at once.
        while let Ok(command) = controls.commands.try_recv() {
            let event = Event::Command(command);
            self.coordinator
                .handle(self.clock.now(), event, &mut effects);
        }
        self.perform(&mut effects);
        controls.progress.send_replace(self.progress());
        loop {
            // All effects so far have been performed. So each ended request is logged before its
            // host gets the next permit.
            let next = self.coordinator.advance(self.clock.now(), &mut effects);
            self.perform(&mut effects);
            if last_report.elapsed() >= PROGRESS_INTERVAL || next == DriverStep::Done {
                controls.progress.send_replace(self.progress());
                last_report = Instant::now();
            }
            let DriverStep::Wait(wake) = next else {
                self.deliver_rest(controls).await;
                return self.coordinator.outcome();
            };
            let event = self
                .next_event(controls, (timer.as_mut(), wake, last_report))
                .await;
            // Let more requests end first, so that all their rows are logged in one write.
            let_others_run().await;
            let fetched = std::iter::from_fn(|| self.fetches.try_join_next()).map(fetch_ended);
            let other_events = std::iter::from_fn(|| self.events.try_recv().ok());
            // Handle commands first. Events beyond `MAX_EVENTS` wait for the next iteration.
            let control_events = control_events(controls).into_iter().chain(event);
            let ended = fetched.take(MAX_EVENTS);
            for mut event in control_events
                .chain(ended)
                .chain(other_events.take(MAX_EVENTS))
            {
                if let Event::Committed(committed) = &mut event {
                    let used = std::mem::take(&mut committed.used);
                    if !used.is_empty() {
                        self.readers.take(ReaderTask::Drop(used));
                    }
                    if controls.pages.is_some() {
                        self.undelivered.extend(committed.rows.drain(..));
                    }
                }
                self.coordinator
                    .handle(self.clock.now(), event, &mut effects);
            }
            self.coordinator.note_undelivered(self.undelivered.len());
            self.perform(&mut effects);
        }
    }

    /// Returns the crawl's progress, including the counts that only the fetcher knows.
    fn progress(&self) -> ProgressSnapshot {
        let mut progress = self.coordinator.progress(self.clock.now());
        progress.counters.one_family_lookups = self.fetcher.one_family_lookups();
        progress
    }

    /// Delivers the remaining rows of pages to their consumer, unless the run must end at once.
    async fn deliver_rest(&mut self, controls: &mut ControlChannels) {
        while !self.undelivered.is_empty() && *controls.stop.borrow() != StopUrgency::Now {
            tokio::select! {
                () = deliver(&mut controls.pages, &mut self.undelivered) => {}
                _ = stopped(&mut controls.stop) => {}
                // Drop commands that arrive during the delivery. Otherwise a consumer that waits
                // for the answer to its command would never take the next row.
                command = next_command(&mut controls.commands) => drop(command),
            }
        }
    }

    /// Returns the next event. `None` if the wake-up time came first, or if rows were delivered to
    /// their consumer.
    async fn next_event(
        &mut self,
        controls: &mut ControlChannels,
        (mut timer, wake, last_report): (Pin<&mut Sleep>, Option<Tick>, Instant),
    ) -> Option<Event> {
        let report_in = PROGRESS_INTERVAL.saturating_sub(last_report.elapsed());
        let wait = wake.map_or(report_in, |wake| {
            wake.since(self.clock.now()).min(report_in)
        });
        let wake = tokio::time::Instant::now() + wait;
        // If the timer fires too early, the loop runs once more, which costs less than resetting
        // the timer for each event.
        if timer.is_elapsed() || wake < timer.deadline() {
            timer.as_mut().reset(wake);
        }
        tokio::select! {
            // Check the most frequent events first. No event is starved, because each iteration
            // handles everything that waits, whatever woke it.
            biased;
            () = deliver(&mut controls.pages, &mut self.undelivered), if !self.undelivered.is_empty() => None,
            Some(ended) = self.fetches.join_next(), if !self.fetches.is_empty() => {
                Some(fetch_ended(ended))
            }
            event = self.events.recv() => Some(event.unwrap_or_else(|| {
                Event::Broken(EngineError::Thread { what: "the writer".to_owned() })
            })),
            stop = stopped(&mut controls.stop) => Some(Event::Stop(stop)),
            command = next_command(&mut controls.commands) => Some(Event::Command(command)),
            () = timer => None,
        }
    }

    fn perform(&mut self, effects: &mut Vec<Effect>) {
        // Log all ended requests in one write, before passing on their results.
        let noted = self.order.begin_rows(lines_to_log(effects));
        let noted = noted.and_then(|()| self.requests.append_requests(lines_to_log(effects)));
        let noted = noted.and_then(|()| self.order.note(order_to_log(effects)));
        if noted.is_err() {
            // Logging failed, so don't pass on the results. The next start makes their URLs pending
            // again.
            effects.clear();
        }
        self.unless_broken(noted);
        for effect in effects.drain(..) {
            let key = self.keys.of(&effect);
            match effect {
                Effect::FindAddress { permit, url } => {
                    let fetcher = Arc::clone(&self.fetcher);
                    self.fetches.spawn(async move {
                        let address = fetcher.address(&url).await;
                        Event::AddressFound { permit, address }
                    });
                }
                Effect::Fetch { permit, job, span } => {
                    let fetcher = Arc::clone(&self.fetcher);
                    self.fetches.spawn(async move {
                        // The future of a fetch is large, so create it inside its task instead of
                        // moving it there.
                        let fetched = Box::pin(fetcher.fetch(permit, job.request()));
                        let (spent, result) = fetched.instrument(span.clone()).await;
                        request_rows::ended(job, spent, result, span)
                    });
                }
                Effect::Log(_)
                | Effect::NoteTurn(_)
                | Effect::NoteCommand(_)
                | Effect::NoteRender(_) => {}
                Effect::ReadCredentials(login) => {
                    self.fetches.spawn(async move {
                        let site = login.site.clone();
                        let read = spawn_blocking(move || login.credentials.read()).await;
                        let failed = |_| Err("the credentials can't be read".to_owned());
                        let result = LoginCredentialsResult(read.unwrap_or_else(failed));
                        Event::Credentials { site, result }
                    });
                }
                Effect::Render {
                    page,
                    url,
                    fetched,
                    answer,
                } => self.render((page, url.to_string(), fetched), answer),
                Effect::NoteDelay(row) => {
                    let noted = self.delays.note(&row);
                    self.unless_broken(noted);
                }
                Effect::NoteRules(rules) => self.note_rules(rules),
                Effect::Read(reading) => self.readers.take(ReaderTask::Read(reading, key)),
                Effect::GiveUp => {
                    self.fetcher.give_up();
                    self.readers.give_up_unread();
                }
                Effect::GiveUpDocuments => self.readers.give_up_documents(),
                Effect::Write(message) => {
                    self.readers
                        .take(ReaderTask::Pass(Box::new(KeyedMessage { key, message })));
                }
                Effect::Share(request) => {
                    if let Some(connection) = &self.shared_frontier {
                        connection.thread.send(request);
                    }
                }
            }
        }
    }

    /// Starts to render a page, given its number, its URL, the time it was fetched, and its
    /// response.
    fn render(&mut self, page: (RenderId, String, Tick), answer: UndecodedResponse) {
        if let Some(render) = &self.config.render {
            let requests = requests_of(page.0, self.event_sender.clone());
            let renderer = Arc::clone(&render.renderer);
            self.fetches
                .spawn(rendered(renderer, page, answer, requests));
        }
    }

    fn note_rules(&mut self, rules: PostedRules) {
        let noted = self.delays.note(&rules.row).map_err(EngineError::from);
        let written = noted.and_then(|()| write_config(&self.config.output, &rules.config_text));
        if written.is_ok() {
            // Sending fails only if nobody waits for the answer any more.
            let _ = rules.answer.send(Ok(CommandAnswer::Done));
        }
        self.unless_broken(written);
    }

    fn unless_broken(&mut self, noted: Result<(), impl Into<EngineError>>) {
        if let Err(error) = noted {
            let broken = Event::Broken(error.into());
            self.coordinator
                .handle(self.clock.now(), broken, &mut Vec::new());
        }
    }

    /// Ends all threads, and writes the files derived from the state. Afterwards, other workers may
    /// continue with this worker's hosts.
    fn end(
        mut self,
        looped: Result<EndReason, EngineError>,
        started: Instant,
    ) -> Result<RunSummary, EngineError> {
        // Drop all requests in flight, and their connections.
        self.fetches = JoinSet::new();
        self.coordinator.end_host_locks(self.clock.now());
        match self.shared_frontier.take() {
            Some(connection) => connection.end_with(|| self.end_alone(looped, started)),
            None => self.end_alone(looped, started),
        }
    }

    fn end_alone(
        self,
        looped: Result<EndReason, EngineError>,
        started: Instant,
    ) -> Result<RunSummary, EngineError> {
        let Driver {
            config,
            clock,
            coordinator,
            readers,
            writer,
            indexer,
            resumed,
            created,
            abandon,
            indexing_deadline,
            stop,
            order,
            ..
        } = self;
        let noted = order.end();
        let at_once = coordinator.stopped_at_once();
        let over = match looped {
            Ok(EndReason::Interrupted | EndReason::HandedOver) => Some(clock.now()),
            _ => coordinator.deadline(),
        };
        let stop_before = *stop.borrow();
        let _ = indexing_deadline.set(IndexingDeadline {
            deadline: over.map(|over| over + INDEX_GRACE),
            stop: stop_before,
        });
        // If `abandon` is set, the readers and the writer drop their work. The next start then
        // makes the URLs of uncommitted pages pending again, as after a kill.
        abandon.store(at_once || looped.is_err(), Ordering::Relaxed);
        readers.end();
        let mut writer = writer.join().map_err(|_| EngineError::Thread {
            what: "the writer".to_owned(),
        })?;
        if let Ok(writer) = &mut writer {
            writer.disconnect_indexer();
        }
        let is_whole = !matches!(
            looped,
            Err(_) | Ok(EndReason::Interrupted | EndReason::HandedOver)
        );
        let index = indexer.map(|indexer| indexer.join(is_whole));
        let ended = looped?;
        noted?;
        let (mut excluded, mut indexed) = (run_end::ExcludedCounts::new(), None);
        if !at_once {
            let writer = writer?;
            let index = index.transpose()?;
            let now = seconds_of(clock.now());
            let end = |index: IndexerOutcome| index.end(is_whole, &*writer.frontier, now);
            indexed = index.map(end).transpose()?;
            let waiting = coordinator.waiting_urls(clock.now(), &ended)?;
            let is_cut_off = coordinator.waits_for_unknown_requests(clock.now());
            excluded = run_end::write_derived(&config, writer, &ended, &waiting, is_cut_off)?;
        }
        let is_stopped_since = *stop.borrow() > stop_before;
        let ended = ended.with_index(indexed.as_ref(), is_stopped_since);
        let elapsed = started.elapsed();
        Ok(RunSummary {
            created,
            ..coordinator.into_summary(ended, elapsed, resumed, excluded, indexed)
        })
    }
}

/// Yields to all other tasks that are ready to run. `tokio::task::yield_now` would resume the loop
/// only once this thread is idle, and no other thread could take the loop over before that.
async fn let_others_run() {
    let mut has_waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn fetch_ended(ended: Result<Event, JoinError>) -> Event {
    ended.unwrap_or_else(|error| {
        Event::Broken(EngineError::Thread {
            what: format!("a fetch: {error}"),
        })
    })
}

/// Waits until the channel to the consumer of rows has room, and sends as many rows as fit.
async fn deliver(to: &mut Option<async_mpsc::Sender<PageRow>>, rows: &mut VecDeque<PageRow>) {
    let Some(consumer) = to else {
        return rows.clear();
    };
    let Ok(room) = consumer.reserve().await else {
        // The consumer of rows is gone.
        *to = None;
        return;
    };
    if let Some(row) = rows.pop_front() {
        room.send(row);
    }
    while let Ok(room) = consumer.try_reserve()
        && let Some(row) = rows.pop_front()
    {
        room.send(row);
    }
}

/// Returns the commands that arrived since the last check, and the requested stop, if any, as
/// events.
fn control_events(controls: &mut ControlChannels) -> Vec<Event> {
    let mut events = Vec::new();
    // Reads the last requested stop even if its sender was dropped.
    let stop = controls.stop.borrow_and_update();
    if stop.has_changed() {
        events.push(Event::Stop(*stop));
    }
    drop(stop);
    while let Ok(command) = controls.commands.try_recv() {
        events.push(Event::Command(command));
    }
    events
}

async fn next_command(commands: &mut async_mpsc::Receiver<PostedCommand>) -> PostedCommand {
    match commands.recv().await {
        Some(command) => command,
        // All senders were dropped, so no command can arrive any more.
        None => std::future::pending().await,
    }
}

/// Waits until a stop is requested or becomes more urgent.
async fn stopped(stop: &mut watch::Receiver<StopUrgency>) -> StopUrgency {
    match stop.changed().await {
        Ok(()) => *stop.borrow_and_update(),
        // The sender was dropped, so no stop can be requested any more.
        Err(_) => std::future::pending().await,
    }
}

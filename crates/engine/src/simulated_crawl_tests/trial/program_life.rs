//! One life of the program: from opening the crawl directory to the end, a failure or death.

mod commands;
mod requests_in_flight;
mod sharing_thread;

use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crawl_archive::RowLogWriter;
use crawl_frontier::{FileLock, Frontier};
use crawl_scheduler::{Permit, Tick};

use self::commands::UnansweredCommand;
use self::requests_in_flight::SimulatedInFlightRequest;
use self::sharing_thread::RECONNECTS;
pub(super) use self::sharing_thread::{SimulatedSharing, VirtualClock, WorkerDisruption};
use super::invariants::InvariantChecker;
use super::simulated_disk::SimulatedDisk;
use super::web::TrialWeb;
use super::{LastTrialEvents, RandomNumberGenerator, TrialFrontier};
use crate::config::Config;
use crate::control::{CommandAnswer, CrawlCommand, StopUrgency};
use crate::crawl_loop::{Coordinator, DriverStep};
use crate::driver::start::{coordinator, restore_earlier_run};
use crate::error::EngineError;
use crate::frontier_meta_keys::META_TRAPS;
use crate::messages::page_pipeline_stages::FetchedPage;
use crate::messages::replay_message_key::KeyedMessage;
use crate::messages::shared_frontier_messages::SharedFrontierRequest;
use crate::messages::{Effect, Event, GroupCommitResult, WriterMessage, lines_to_log};
use crate::page_reading::page_encoder::PageEncoder;
use crate::page_reading::{PageReader, UnreadPage};
use crate::revisit::visit::Round;
use crate::shared_trap_detector::SharedTrapDetector;
use crate::state::crawl_directory::{self, CrawlDirectory};
use crate::summary::EndReason;
use crate::write::{Writer, run_end};

/// Maximum messages in a commit.
const MAX_GROUP: usize = 256;

/// How a life (run of the program) ended.
pub(super) enum LifeEnd {
    /// The run ended normally. Contains whether everything was committed.
    Over(EndReason, bool),
    Killed,
    Failed(EngineError),
}

/// The events and delays that were drawn at random for a life (run of the program).
pub(super) struct RandomLifeEvents {
    /// After this many events, the program is killed.
    pub(super) killed_after: Option<u64>,
    /// A stop, and the number of events before the stop.
    pub(super) stopped_after: Option<(u64, StopUrgency)>,
    /// A fault or command that only a worker of a shared crawl can have, and the number of events
    /// before it.
    pub(super) trouble: Option<(u64, WorkerDisruption)>,
    /// The commands of the operator, each with the number of events before it.
    pub(super) commands: Vec<(u64, CrawlCommand)>,
    /// The longest times that look-ups, readers, messages and commits take, in milliseconds.
    pub(super) slowness: u64,
}

/// The parts of a trial that persist across lives of the program.
pub(super) struct PersistentTrialState<'t> {
    pub(super) web: &'t mut TrialWeb,
    pub(super) disk: &'t SimulatedDisk,
    pub(super) checker: &'t mut InvariantChecker,
    /// The index of the worker that is running. 0 if the program crawls alone.
    pub(super) worker: usize,
    /// The buckets (sets of hosts) whose last owner has committed the state of their hosts.
    pub(super) released: &'t mut BTreeSet<i32>,
    pub(super) trace: &'t LastTrialEvents,
    pub(super) dice: &'t mut RandomNumberGenerator,
}

/// Something that happens at a point in virtual time.
enum TimedEvent {
    Ended(Box<SimulatedInFlightRequest>),
    Found(Permit, IpAddr),
    ReadingBegins(Box<FetchedPage>),
    ReadingEnds(Box<FetchedPage>),
    Arrives(WriterMessage),
    /// The writer begins a commit.
    Commits,
    Committed(Box<GroupCommitResult>),
    /// The sharing thread checks the other workers.
    Looks,
    /// A request to the sharing thread arrives.
    Shares(SharedFrontierRequest),
    /// An event of the sharing thread arrives.
    Heard(Event),
    /// The operator ends a pause.
    Resumes,
    /// The worker sends a heartbeat.
    Beats,
    /// The database can be reached again.
    Reconnects,
}

struct DueEvent {
    at: Tick,
    number: u64,
    happening: TimedEvent,
}

impl PartialEq for DueEvent {
    fn eq(&self, other: &DueEvent) -> bool {
        self.number == other.number
    }
}
impl Eq for DueEvent {}
impl PartialOrd for DueEvent {
    fn partial_cmp(&self, other: &DueEvent) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for DueEvent {
    fn cmp(&self, other: &DueEvent) -> std::cmp::Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// The state of the program during one life.
pub(super) struct ProgramLife {
    fate: RandomLifeEvents,
    now: Tick,
    /// The number of events so far.
    events: u64,
    number: u64,
    due: BinaryHeap<DueEvent>,
    inbox: VecDeque<WriterMessage>,
    /// When the writer's last report of a commit arrives.
    last_report: Tick,
    frontier: Arc<dyn Frontier>,
    sharing: Option<SimulatedSharing>,
    /// Commands without an answer so far.
    posted: Vec<UnansweredCommand>,
    /// The lock of a worker's directory.
    _lock: Option<FileLock>,
    coordinator: Coordinator,
    writer: Writer,
    requests: RowLogWriter,
    reader: PageReader,
    encoder: PageEncoder,
    is_given_up: bool,
    effects: Vec<Effect>,
}

/// How and when a life (run of the program) ended, and the frontier if it was opened.
pub(super) struct EndedLife {
    pub(super) end: LifeEnd,
    pub(super) at: Tick,
    pub(super) frontier: Option<Arc<dyn Frontier>>,
}

/// Runs the program, starting at the virtual time `now`.
pub(super) fn live(
    world: &mut PersistentTrialState<'_>,
    store: &TrialFrontier,
    config: Config,
    fate: RandomLifeEvents,
    now: Tick,
) -> EndedLife {
    let config = Arc::new(config);
    let directory = crawl_directory::open_with(&config, 1, false, |_, dir, _| {
        Ok((store.open(dir)?, None, None))
    });
    let life = directory
        .and_then(|directory| ProgramLife::begin(world, &config, directory, None, (fate, now)));
    let mut life = match life {
        Ok(life) => life,
        Err(error) => {
            return EndedLife {
                end: LifeEnd::Failed(error),
                at: now,
                frontier: None,
            };
        }
    };
    let end = loop {
        match life.advance(world) {
            Ok(at) => life.pass(world, at),
            Err(end) => break end,
        }
    };
    let at = life.now;
    let frontier = Some(Arc::clone(&life.frontier));
    let end = life.end(world, &config, end);
    EndedLife { end, at, frontier }
}

impl ProgramLife {
    /// Restores the state in the directory, as the driver does.
    pub(super) fn begin(
        world: &mut PersistentTrialState<'_>,
        config: &Arc<Config>,
        mut directory: CrawlDirectory,
        worker: Option<SimulatedSharing>,
        (fate, now): (RandomLifeEvents, Tick),
    ) -> Result<ProgramLife, EngineError> {
        let frontier = Arc::clone(&directory.frontier);
        let visits = directory.take_up_round(config, now, &|| false)?;
        let Round { number, began, .. } = visits.round;
        world.checker.enter_round(number, began);
        let traps = frontier.meta(META_TRAPS)?;
        let traps = SharedTrapDetector::new(&config.traps, traps.as_deref());
        let mut coordinator = coordinator(config, now, &mut directory, visits, traps.clone())?;
        restore_earlier_run(&mut coordinator, config, |_, _| {}, &mut directory, now)?;
        let CrawlDirectory {
            files,
            requests,
            sampling,
            totals,
            scope_seeds,
            shared,
            lock,
            ..
        } = directory;
        let writer = Writer::new(Arc::clone(&frontier), files, totals, visits, scope_seeds)
            .with_traps(traps.clone())
            .with_sampling(sampling)
            .with_shared_frontier(shared);
        let mut life = ProgramLife {
            fate,
            now,
            events: 0,
            number: 0,
            due: BinaryHeap::new(),
            inbox: VecDeque::new(),
            last_report: now,
            coordinator,
            writer,
            requests,
            reader: PageReader::new(config, &visits).with_crawl_state(Arc::clone(&frontier), traps),
            frontier,
            sharing: worker,
            posted: Vec::new(),
            _lock: lock,
            encoder: PageEncoder::new(config, &visits),
            is_given_up: false,
            effects: Vec::new(),
        };
        life.begin_sharing(world);
        life.coordinator.begin(now, &mut life.effects);
        life.perform(world);
        Ok(life)
    }

    /// Advances the program until it waits. Returns the time of the next event, or how the program
    /// ended.
    pub(super) fn advance(
        &mut self,
        world: &mut PersistentTrialState<'_>,
    ) -> Result<Tick, LifeEnd> {
        self.events += 1;
        let events = self.events;
        if self.fate.killed_after.is_some_and(|after| events > after)
            || world.disk.is_dead()
            || world.checker.breach.is_some()
        {
            return Err(LifeEnd::Killed);
        }
        let stop = self.fate.stopped_after;
        if let Some((_, stop)) = stop.filter(|(after, _)| *after == events) {
            self.handle(world, Event::Stop(stop));
        }
        self.post_due_commands(world);
        let trouble = self.fate.trouble;
        if let Some((_, trouble)) = trouble.filter(|(after, _)| *after == events) {
            self.suffer(world, trouble);
        }
        let next = self.coordinator.advance(self.now, &mut self.effects);
        self.coordinator.check_invariants();
        self.perform(world);
        let DriverStep::Wait(wake) = next else {
            return Err(match self.coordinator.outcome() {
                Ok(ended) => LifeEnd::Over(ended, true),
                Err(error) => LifeEnd::Failed(error),
            });
        };
        let first = self.due.peek().map(|due| due.at);
        let times = first.into_iter().chain(wake).chain(self.flights_end());
        let Some(at) = times.min() else {
            let counts = self.frontier.counts();
            let breach = || format!("nothing is under way, and nothing will happen: {counts:?}");
            world.checker.require(false, breach);
            return Err(LifeEnd::Killed);
        };
        Ok(self.thawed(at.max(self.now)))
    }

    /// Advances the time to `at`, and handles the next event if it is due by then.
    pub(super) fn pass(&mut self, world: &mut PersistentTrialState<'_>, at: Tick) {
        self.now = self.now.max(at);
        self.abort_late_flights();
        let first = self.due.peek().map(|due| due.at);
        if first.is_some_and(|first| first <= self.now)
            && let Some(due) = self.due.pop()
        {
            self.happens(world, due.happening);
        }
    }

    fn handle(&mut self, world: &mut PersistentTrialState<'_>, event: Event) {
        self.coordinator.handle(self.now, event, &mut self.effects);
        self.coordinator.check_invariants();
        self.perform(world);
    }

    fn at(&mut self, at: Tick, happening: TimedEvent) {
        self.number += 1;
        self.due.push(DueEvent {
            at,
            number: self.number,
            happening,
        });
    }

    fn after(&mut self, wait: Duration, happening: TimedEvent) {
        self.at(self.now + wait, happening);
    }

    /// Draws the time that an action takes.
    fn delay(&self, world: &mut PersistentTrialState<'_>) -> Duration {
        Duration::from_millis(world.dice.below(self.fate.slowness + 1))
    }

    /// Schedules an event after a drawn time.
    fn soon(&mut self, world: &mut PersistentTrialState<'_>, happening: TimedEvent) {
        let wait = self.delay(world);
        self.after(wait, happening);
    }

    fn happens(&mut self, world: &mut PersistentTrialState<'_>, happening: TimedEvent) {
        let now = self.now;
        match happening {
            TimedEvent::Ended(flight) => self.landed(world, *flight),
            TimedEvent::Found(permit, address) => {
                let address = Some(address);
                self.handle(world, Event::AddressFound { permit, address });
            }
            TimedEvent::ReadingBegins(page) if self.is_given_up => {
                self.handle(world, Event::GivenBackUnread(page));
            }
            TimedEvent::ReadingBegins(page) => {
                let bytes = page.exchange.body.len() as u64;
                self.handle(world, Event::ReadingBegan { bytes });
                self.soon(world, TimedEvent::ReadingEnds(page));
            }
            TimedEvent::ReadingEnds(page) => self.read(world, page),
            TimedEvent::Arrives(message) => {
                if self.inbox.is_empty() {
                    self.soon(world, TimedEvent::Commits);
                }
                self.inbox.push_back(message);
            }
            TimedEvent::Commits => self.commit(world),
            TimedEvent::Committed(committed) => {
                self.handle(world, Event::Committed(committed));
                self.read_answers(world);
            }
            TimedEvent::Resumes => self.post(world, CrawlCommand::Resume),
            TimedEvent::Heard(event) => {
                world
                    .trace
                    .note(now, || format!("w{} {event:?}", world.worker));
                self.handle(world, event);
            }
            sharing => self.shares(world, sharing),
        }
    }

    fn read(&mut self, world: &mut PersistentTrialState<'_>, page: Box<FetchedPage>) {
        let mut early = Vec::new();
        match self.reader.read(page, &mut |batch| early.push(batch)) {
            Ok(page) => {
                for batch in early {
                    self.soon(world, TimedEvent::Arrives(WriterMessage::Links(batch)));
                }
                let page = Box::new(self.encoder.page(page));
                self.soon(world, TimedEvent::Arrives(WriterMessage::Page(page)));
            }
            Err(UnreadPage::LeftOut(page) | UnreadPage::Scripted(page, _)) => {
                self.handle(world, Event::ReadingStopped(page));
            }
        }
    }

    fn commit(&mut self, world: &mut PersistentTrialState<'_>) {
        if self.waits_for_database() {
            return self.after(RECONNECTS, TimedEvent::Commits);
        }
        let count = self.inbox.len().min(MAX_GROUP);
        let group: Vec<_> = self
            .inbox
            .drain(..count)
            .map(KeyedMessage::unnamed)
            .collect();
        if !self.inbox.is_empty() {
            self.soon(world, TimedEvent::Commits);
        }
        match self.writer.commit(group, &AtomicBool::new(false)) {
            Ok(committed) => {
                let worker = world.worker;
                world
                    .trace
                    .note(self.now, || format!("w{worker} commit of {count}"));
                let PersistentTrialState { checker, disk, .. } = world;
                checker.committed(worker, &*self.frontier, disk, &committed.totals);
                // Keep the writer's reports of commits in order.
                let at = self.now + self.delay(world);
                self.last_report = self.last_report.max(at);
                self.at(self.last_report, TimedEvent::Committed(Box::new(committed)));
            }
            Err(error) => self.fail(world, error),
        }
    }

    /// Reports a failure to the coordinator, unless the program is dead.
    fn fail(&mut self, world: &mut PersistentTrialState<'_>, error: EngineError) {
        world.trace.note(self.now, || error.to_string());
        if !world.disk.is_dead() {
            self.coordinator
                .handle(self.now, Event::Broken(error), &mut Vec::new());
        }
    }

    fn perform(&mut self, world: &mut PersistentTrialState<'_>) {
        let logged = self.requests.append_requests(lines_to_log(&self.effects));
        if let Err(error) = logged {
            // As in the driver, don't pass on results of requests that are not on record.
            self.effects.clear();
            return self.fail(world, error.into());
        }
        let length = self.requests.len();
        for line in lines_to_log(&self.effects) {
            world.checker.logged(world.worker, line.row(), length);
        }
        let effects: Vec<_> = self.effects.drain(..).collect();
        for effect in effects {
            self.perform_one(world, effect);
        }
    }

    fn perform_one(&mut self, world: &mut PersistentTrialState<'_>, effect: Effect) {
        match effect {
            Effect::FindAddress { permit, url } => {
                let address = TrialWeb::address(url.host());
                self.soon(world, TimedEvent::Found(permit, address));
            }
            Effect::Fetch { permit, job, span } => self.send(world, permit, job, span),
            Effect::Read(page) => self.soon(world, TimedEvent::ReadingBegins(page)),
            Effect::GiveUp => self.give_up(),
            Effect::Write(WriterMessage::Side(side)) => {
                let side = WriterMessage::Side(self.encoder.robots(side));
                self.soon(world, TimedEvent::Arrives(side));
            }
            Effect::Write(message) => self.soon(world, TimedEvent::Arrives(message)),
            Effect::Log(_)
            | Effect::NoteTurn(_)
            | Effect::NoteCommand(_)
            | Effect::NoteDelay(_)
            | Effect::NoteRender(_)
            | Effect::GiveUpDocuments => {}
            Effect::Share(request) => self.share(world, request),
            Effect::NoteRules(rules) => rules.answer.send(Ok(CommandAnswer::Done)).unwrap(),
            Effect::ReadCredentials(_) | Effect::Render { .. } => {
                unreachable!("no trial has logins or a browser")
            }
        }
    }

    /// Ends the program. Unless it was killed, it writes the same files as the driver at the end of
    /// a run.
    pub(super) fn end(
        self,
        world: &mut PersistentTrialState<'_>,
        config: &Config,
        end: LifeEnd,
    ) -> LifeEnd {
        match end {
            LifeEnd::Over(ended, _) => match self.close(world, config, &ended) {
                Ok(is_saved) => LifeEnd::Over(ended, is_saved),
                Err(error) => LifeEnd::Failed(error),
            },
            end => end,
        }
    }

    /// Writes the files that the driver writes at the end of a run. Returns false if the run was
    /// stopped at once.
    fn close(
        self,
        world: &mut PersistentTrialState<'_>,
        config: &Config,
        ended: &EndReason,
    ) -> Result<bool, EngineError> {
        if self.coordinator.stopped_at_once() {
            // Release no buckets, because some states of hosts may not be committed.
            if let Some(sharing) = self.sharing {
                sharing.give_up(&mut BTreeSet::new());
            }
            return Ok(false);
        }
        let waiting = self.coordinator.waiting_urls(self.now, ended)?;
        let is_cut_off = self.coordinator.waits_for_unknown_requests(self.now);
        let sharing = self.sharing;
        run_end::write_derived(config, self.writer, ended, &waiting, is_cut_off)?;
        if let Some(sharing) = sharing {
            sharing.give_up(world.released);
        }
        Ok(true)
    }
}

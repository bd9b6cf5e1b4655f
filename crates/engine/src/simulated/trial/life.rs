//! One life of the program: from the opening of the crawl directory to the end, a failure or death.

use std::collections::{BinaryHeap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crawl_archive::LogFile;
use crawl_fetcher::{Exchange, Failure, FailureKind};
use crawl_frontier::Frontier;
use crawl_scheduler::{Permit, Spent, Tick};
use tracing::Span;

use super::super::scripted_servers::failure;
use super::check::Checker;
use super::disk::SimulatedDisk;
use super::web::TrialWeb;
use super::{Dice, Store, Trace};
use crate::config::Config;
use crate::control::Stop;
use crate::crawl_loop::{Coordinator, Next, request_rows};
use crate::driver::start::{coordinator, restore_earlier_run};
use crate::error::EngineError;
use crate::messages::key::Keyed;
use crate::messages::page::FetchedPage;
use crate::messages::{Committed, Effect, Event, Job, WriterMessage, lines_to_log};
use crate::meta_keys::META_TRAPS;
use crate::read::page_encoder::PageEncoder;
use crate::read::{NotRead, PageReader};
use crate::revisit::round;
use crate::shared_traps::SharedTraps;
use crate::state::directory;
use crate::summary::Ended;
use crate::write::{Writer, run_end};

/// Maximum messages in a commit.
const MAX_GROUP: usize = 256;

/// How a life ended.
pub(super) enum End {
    /// The run ended normally. Contains whether everything was committed.
    Over(Ended, bool),
    Killed,
    Failed(EngineError),
}

/// The drawn events and delays of a life.
pub(super) struct Fate {
    /// After this many events, the program is killed.
    pub(super) killed_after: Option<u64>,
    /// A stop, and the number of events before it.
    pub(super) stopped_after: Option<(u64, Stop)>,
    /// The longest times that look-ups, readers, messages and commits take, in milliseconds.
    pub(super) slowness: u64,
}

/// The parts of a trial that outlive the program.
pub(super) struct World<'t> {
    pub(super) web: &'t mut TrialWeb,
    pub(super) disk: &'t SimulatedDisk,
    pub(super) store: &'t Store,
    pub(super) checker: &'t mut Checker,
    pub(super) trace: &'t Trace,
    pub(super) dice: &'t mut Dice,
}

/// Something that happens at a time.
enum Happening {
    Ended(Box<Flight>),
    Found(Permit, IpAddr),
    ReadingBegins(Box<FetchedPage>),
    ReadingEnds(Box<FetchedPage>),
    Arrives(WriterMessage),
    /// The writer begins a commit.
    Commits,
    Committed(Box<Committed>),
}

struct Flight {
    /// The number of the request in the checker.
    seen: usize,
    job: Job,
    spent: Spent,
    result: Result<Exchange, Failure>,
    span: Span,
}

struct Due {
    at: Tick,
    number: u64,
    happening: Happening,
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.number == other.number
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Due) -> std::cmp::Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// The program while it lives.
struct Life<'t, 'w> {
    world: &'t mut World<'w>,
    fate: Fate,
    now: Tick,
    number: u64,
    due: BinaryHeap<Due>,
    inbox: VecDeque<WriterMessage>,
    frontier: Arc<dyn Frontier>,
    coordinator: Coordinator,
    writer: Writer,
    requests: LogFile,
    reader: PageReader,
    encoder: PageEncoder,
    is_given_up: bool,
    effects: Vec<Effect>,
}

/// How and when a life ended, and the frontier if it was opened.
pub(super) struct Lived {
    pub(super) end: End,
    pub(super) at: Tick,
    pub(super) frontier: Option<Arc<dyn Frontier>>,
}

/// Runs the program from `now` on.
pub(super) fn live(world: &mut World<'_>, config: Config, fate: Fate, now: Tick) -> Lived {
    let config = Arc::new(config);
    let mut life = match Life::begin(world, &config, fate, now) {
        Ok(life) => life,
        Err(error) => {
            return Lived {
                end: End::Failed(error),
                at: now,
                frontier: None,
            };
        }
    };
    let end = life.run();
    let at = life.now;
    let frontier = Some(Arc::clone(&life.frontier));
    let end = match end {
        End::Over(ended, _) => match life.close(&config, &ended) {
            Ok(is_saved) => End::Over(ended, is_saved),
            Err(error) => End::Failed(error),
        },
        end => end,
    };
    Lived { end, at, frontier }
}

impl<'t, 'w> Life<'t, 'w> {
    /// Opens the directory and restores the state, as the driver does.
    fn begin(
        world: &'t mut World<'w>,
        config: &Arc<Config>,
        fate: Fate,
        now: Tick,
    ) -> Result<Life<'t, 'w>, EngineError> {
        let store = world.store;
        let mut directory = directory::open_with(config, 1, false, |_, dir, _| {
            Ok((store.open(dir)?, None, None))
        })?;
        let shared = Arc::clone(&directory.frontier);
        let visits = round::take_up(&*shared, config, now, &mut directory.totals, &|| false)?;
        world.checker.enter_round(visits.round.number);
        let traps = shared.meta(META_TRAPS)?;
        let traps = SharedTraps::new(&config.traps, traps.as_deref());
        let mut coordinator = coordinator(config, now, &mut directory, visits, traps.clone())?;
        restore_earlier_run(&mut coordinator, config, |_, _| {}, &mut directory, now)?;
        let directory::Directory {
            files,
            requests,
            sampling,
            totals,
            scope_seeds,
            ..
        } = directory;
        let writer = Writer::new(Arc::clone(&shared), files, totals, visits, scope_seeds)
            .with_traps(traps.clone())
            .with_sampling(sampling);
        Ok(Life {
            world,
            fate,
            now,
            number: 0,
            due: BinaryHeap::new(),
            inbox: VecDeque::new(),
            coordinator,
            writer,
            requests,
            reader: PageReader::new(config, &visits).with_crawl_state(Arc::clone(&shared), traps),
            frontier: shared,
            encoder: PageEncoder::new(config, &visits),
            is_given_up: false,
            effects: Vec::new(),
        })
    }

    fn run(&mut self) -> End {
        let mut events = 0;
        self.coordinator.begin(self.now, &mut self.effects);
        self.perform();
        loop {
            events += 1;
            if self.fate.killed_after.is_some_and(|after| events > after)
                || self.world.disk.is_dead()
                || self.world.checker.breach.is_some()
            {
                return End::Killed;
            }
            let stop = self.fate.stopped_after;
            if let Some((_, stop)) = stop.filter(|(after, _)| *after == events) {
                self.handle(Event::Stop(stop));
            }
            let next = self.coordinator.advance(self.now, &mut self.effects);
            self.coordinator.check_invariants();
            self.perform();
            let Next::Wait(wake) = next else {
                return match self.coordinator.outcome() {
                    Ok(ended) => End::Over(ended, true),
                    Err(error) => End::Failed(error),
                };
            };
            let first = self.due.peek().map(|due| due.at);
            let Some(at) = first.into_iter().chain(wake).min() else {
                let counts = self.frontier.counts();
                let breach =
                    || format!("nothing is under way, and nothing will happen: {counts:?}");
                self.world.checker.require(false, breach);
                return End::Killed;
            };
            self.now = self.now.max(at);
            if first.is_some_and(|first| first <= self.now)
                && let Some(due) = self.due.pop()
            {
                self.happens(due.happening);
            }
        }
    }

    fn handle(&mut self, event: Event) {
        self.coordinator.handle(self.now, event, &mut self.effects);
        self.coordinator.check_invariants();
        self.perform();
    }

    fn after(&mut self, wait: Duration, happening: Happening) {
        self.number += 1;
        self.due.push(Due {
            at: self.now + wait,
            number: self.number,
            happening,
        });
    }

    /// Lets something happen after a drawn time.
    fn soon(&mut self, happening: Happening) {
        let wait = self.world.dice.below(self.fate.slowness + 1);
        self.after(Duration::from_millis(wait), happening);
    }

    fn happens(&mut self, happening: Happening) {
        let now = self.now;
        match happening {
            Happening::Ended(flight) => {
                let Flight {
                    seen,
                    job,
                    spent,
                    result,
                    span,
                } = *flight;
                self.world.checker.ended(now, seen, &job, &result);
                let how = match &result {
                    Ok(exchange) => exchange.status.to_string(),
                    Err(failure) => failure.name().to_owned(),
                };
                self.world
                    .trace
                    .note(now, || format!("{how} {}", job.url()));
                self.handle(request_rows::ended(job, spent, result, span));
            }
            Happening::Found(permit, address) => {
                let address = Some(address);
                self.handle(Event::AddressFound { permit, address });
            }
            Happening::ReadingBegins(page) if self.is_given_up => {
                self.handle(Event::GivenBackUnread(page));
            }
            Happening::ReadingBegins(page) => {
                let bytes = page.exchange.body.len() as u64;
                self.handle(Event::ReadingBegan { bytes });
                self.soon(Happening::ReadingEnds(page));
            }
            Happening::ReadingEnds(page) => self.read(page),
            Happening::Arrives(message) => {
                if self.inbox.is_empty() {
                    self.soon(Happening::Commits);
                }
                self.inbox.push_back(message);
            }
            Happening::Commits => self.commit(),
            Happening::Committed(committed) => self.handle(Event::Committed(committed)),
        }
    }

    fn read(&mut self, page: Box<FetchedPage>) {
        let mut early = Vec::new();
        match self.reader.read(page, &mut |batch| early.push(batch)) {
            Ok(page) => {
                for batch in early {
                    self.soon(Happening::Arrives(WriterMessage::Links(batch)));
                }
                let page = Box::new(self.encoder.page(page));
                self.soon(Happening::Arrives(WriterMessage::Page(page)));
            }
            Err(NotRead::LeftOut(page) | NotRead::Scripted(page, _)) => {
                self.handle(Event::ReadingStopped(page));
            }
        }
    }

    fn commit(&mut self) {
        let count = self.inbox.len().min(MAX_GROUP);
        let group: Vec<_> = self.inbox.drain(..count).map(Keyed::unnamed).collect();
        if !self.inbox.is_empty() {
            self.soon(Happening::Commits);
        }
        match self.writer.commit(group, &AtomicBool::new(false)) {
            Ok(committed) => {
                self.world
                    .trace
                    .note(self.now, || format!("commit of {count}"));
                let World { checker, disk, .. } = self.world;
                checker.committed(&*self.frontier, disk, &committed.totals);
                self.soon(Happening::Committed(Box::new(committed)));
            }
            Err(error) => self.fail(error),
        }
    }

    /// Reports a failure to the coordinator, unless the program is dead.
    fn fail(&mut self, error: EngineError) {
        self.world.trace.note(self.now, || error.to_string());
        if !self.world.disk.is_dead() {
            self.coordinator
                .handle(self.now, Event::Broken(error), &mut Vec::new());
        }
    }

    fn perform(&mut self) {
        let logged = self.requests.append_requests(lines_to_log(&self.effects));
        if let Err(error) = logged {
            // As in the driver, results of requests that are not on record are not passed on.
            self.effects.clear();
            return self.fail(error.into());
        }
        let length = self.requests.len();
        for line in lines_to_log(&self.effects) {
            self.world.checker.logged(line.row(), length);
        }
        let effects: Vec<_> = self.effects.drain(..).collect();
        for effect in effects {
            self.perform_one(effect);
        }
    }

    fn perform_one(&mut self, effect: Effect) {
        match effect {
            Effect::FindAddress { permit, url } => {
                let address = TrialWeb::address(url.host());
                self.soon(Happening::Found(permit, address));
            }
            Effect::Fetch { permit, job, span } => self.send(permit, job, span),
            Effect::Read(page) => self.soon(Happening::ReadingBegins(page)),
            Effect::GiveUp => self.give_up(),
            Effect::Write(WriterMessage::Side(side)) => {
                let side = WriterMessage::Side(self.encoder.robots(side));
                self.soon(Happening::Arrives(side));
            }
            Effect::Write(message) => self.soon(Happening::Arrives(message)),
            Effect::Log(_)
            | Effect::NoteTurn(_)
            | Effect::NoteCommand(_)
            | Effect::NoteDelay(_)
            | Effect::NoteRender(_)
            | Effect::GiveUpDocuments => {}
            Effect::NoteRules(_)
            | Effect::Share(_)
            | Effect::ReadCredentials(_)
            | Effect::Render { .. } => {
                unreachable!("no trial has commands, workers, logins or a browser")
            }
        }
    }

    fn send(&mut self, permit: Permit, job: Job, span: Span) {
        let World {
            web,
            checker,
            trace,
            ..
        } = self.world;
        let now = self.now;
        trace.note(now, || format!("request {}", job.url()));
        let seen = checker.sent(now, &job, web, &*self.frontier);
        let result = web.exchange(job.url(), now);
        let ends = match &result {
            Ok(exchange) => exchange.ended,
            Err(failure) => failure.ended,
        };
        let flight = Flight {
            seen,
            job,
            spent: permit.spend(),
            result,
            span,
        };
        self.after(ends.since(now), Happening::Ended(Box::new(flight)));
    }

    /// Aborts the requests in flight.
    fn give_up(&mut self) {
        self.is_given_up = true;
        self.reader.gives_back.store(true, Ordering::Relaxed);
        let now = self.now;
        let given_up = |due: Due| match due.happening {
            Happening::Ended(flight) => {
                let started = flight.spent.issued();
                let result = Err(failure(FailureKind::GivenUp, started, now));
                let flight = Box::new(Flight { result, ..*flight });
                Due {
                    at: now,
                    happening: Happening::Ended(flight),
                    ..due
                }
            }
            _ => due,
        };
        self.due = std::mem::take(&mut self.due)
            .into_iter()
            .map(given_up)
            .collect();
    }

    /// Writes what the driver writes at the end of a run. Returns false if the run was stopped at
    /// once.
    fn close(self, config: &Config, ended: &Ended) -> Result<bool, EngineError> {
        if self.coordinator.stopped_at_once() {
            return Ok(false);
        }
        let waiting = self.coordinator.waiting_urls(self.now, ended)?;
        let is_cut_off = self.coordinator.waits_for_unknown_requests(self.now);
        run_end::write_derived(config, self.writer, ended, &waiting, is_cut_off)?;
        Ok(true)
    }
}

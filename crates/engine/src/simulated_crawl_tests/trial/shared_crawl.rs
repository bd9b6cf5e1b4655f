//! Trials of two to four workers that share a frontier, which is in memory. Each worker has its own
//! directory and disk. Workers start at different times, and may also lose the database, freeze, or
//! be drained.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawl_frontier::worker_frontier::WorkerFrontier;
use crawl_frontier::{MemoryCrawl, MemoryWorker};
use crawl_scheduler::Tick;

use super::invariants::{InvariantChecker, LifeEndCause};
use super::program_life::{
    LifeEnd, PersistentTrialState, ProgramLife, RandomLifeEvents, SimulatedSharing, VirtualClock,
    WorkerDisruption,
};
use super::simulated_disk::{DiskFault, SimulatedDisk};
use super::web::TrialWeb;
use super::{
    LastTrialEvents, RandomNumberGenerator, START, TrialEventCounts, TrialSettings, death_of,
    scratch, shown,
};
use crate::config::{Config, SharedCrawlMembership};
use crate::error::EngineError;
use crate::state::crawl_directory;
use crate::summary::EndReason;

/// Maximum lives (runs of the program) of all workers in a trial. The last lives have no faults.
const LIVES: u32 = 30;
/// Maximum events of a trial.
const MAX_EVENTS: u64 = 400_000;
/// How long workers wait for a host that does not answer.
const LONGEST_WAIT: Duration = Duration::from_secs(5_000);

/// A worker, running or not.
struct TrialWorker {
    name: String,
    dir: PathBuf,
    disk: Arc<SimulatedDisk>,
    state: TrialWorkerState,
}

enum TrialWorkerState {
    /// The worker starts at this time.
    Down(Tick),
    Running(Box<RunningWorker>),
    /// The worker found that the crawl is over.
    Done,
}

struct RunningWorker {
    life: ProgramLife,
    config: Arc<Config>,
    /// When the next event of the worker happens.
    next: Tick,
    fault: Option<(u64, DiskFault)>,
    trouble: Option<WorkerDisruption>,
    is_last: bool,
}

struct TrialWorkers<'t> {
    dice: RandomNumberGenerator,
    trial: TrialSettings,
    web: TrialWeb,
    crawl: MemoryCrawl,
    clock: VirtualClock,
    lease: Duration,
    max_pages: Option<u64>,
    checker: InvariantChecker,
    released: BTreeSet<i32>,
    members: Vec<TrialWorker>,
    /// Hosts whose URLs remain pending at the end, because their robots.txt redirects to a host of
    /// another worker. Such a robots.txt counts as unreachable.
    unreachable: BTreeSet<String>,
    /// The number of lives (runs of a worker's program) that may have faults. Later lives have
    /// none.
    eventful: u32,
    trace: &'t LastTrialEvents,
    tally: TrialEventCounts,
}

pub(super) fn trial(seed: u64, trace: &LastTrialEvents) -> Result<TrialEventCounts, String> {
    let mut dice = RandomNumberGenerator::new(seed);
    let dir = scratch();
    let web = TrialWeb::new(&mut dice, 12);
    let mut trial = TrialSettings::draw(&mut dice, dir.path());
    trial.draw_politeness();
    let clock = VirtualClock::new();
    let lease = Duration::from_secs(3 + dice.below(40));
    let time = clock.clone();
    let crawl = MemoryCrawl::new(1 + dice.below(8) as u32, lease, move || time.now());
    let count = 2 + dice.below(3);
    let members = (0..count).map(|number| {
        let name = format!("w{number}");
        let latest = [0, 2_000, 60_000][dice.below(3) as usize];
        TrialWorker {
            dir: dir.path().join(&name),
            name,
            disk: Arc::new(SimulatedDisk::new(RandomNumberGenerator::new(dice.next()))),
            state: TrialWorkerState::Down(START + Duration::from_millis(dice.below(latest))),
        }
    });
    let members: Vec<TrialWorker> = members.collect();
    let dirs: Vec<PathBuf> = members.iter().map(|member| member.dir.clone()).collect();
    let checker = InvariantChecker::new(&dirs, trial.warc);
    let mut crew = TrialWorkers {
        eventful: dice.below(u64::from(LIVES) - 15) as u32,
        max_pages: dice.chance(30).then(|| 1 + dice.below(60)),
        trial,
        web,
        crawl,
        clock,
        lease,
        checker,
        released: BTreeSet::new(),
        members,
        unreachable: BTreeSet::new(),
        trace,
        tally: TrialEventCounts::default(),
        dice,
    };
    crew.run()?;
    crew.tally.requests = crew.checker.requests;
    crew.tally.pages = crew.checker.rows();
    crew.tally.handovers = crew.checker.handovers;
    Ok(crew.tally)
}

impl TrialWorkers<'_> {
    fn run(&mut self) -> Result<(), String> {
        let mut events = 0;
        while let Some((number, at)) = self.next() {
            events += 1;
            if self.tally.lives > LIVES || events > MAX_EVENTS {
                return Err("the crawl does not end".to_owned());
            }
            self.clock.set(at);
            match self.members[number].state {
                TrialWorkerState::Down(_) => self.start(number, at)?,
                TrialWorkerState::Running(_) => self.step(number, at)?,
                TrialWorkerState::Done => {}
            }
            if let Some(breach) = self.checker.breach.take() {
                return Err(breach);
            }
        }
        let links = self.crawl.waiting_links();
        let checker = &mut self.checker;
        checker.require(links == 0, || format!("{links} links were never admitted"));
        checker.finished(&self.web, self.crawl.all_urls(), &self.unreachable);
        checker.breach.take().map_or(Ok(()), Err)
    }

    /// Returns the worker with the earliest event, and its time.
    fn next(&self) -> Option<(usize, Tick)> {
        let times = self.members.iter().enumerate();
        let times = times.filter_map(|(number, member)| match &member.state {
            TrialWorkerState::Down(at) => Some((number, *at)),
            TrialWorkerState::Running(running) => Some((number, running.next)),
            TrialWorkerState::Done => None,
        });
        times.min_by_key(|(_, at)| *at)
    }

    fn start(&mut self, number: usize, now: Tick) -> Result<(), String> {
        self.tally.lives += 1;
        let is_last = self.tally.lives > self.eventful;
        let member = &self.members[number];
        let (name, dir, disk) = (
            member.name.clone(),
            member.dir.clone(),
            Arc::clone(&member.disk),
        );
        let mut config = self.trial.settings(&self.web, &disk, is_last);
        config.output = dir;
        // While workers wait, they check each other often, so a long wait takes many events.
        config.wait_unreachable = config.wait_unreachable.min(LONGEST_WAIT);
        if !is_last {
            config.budgets.max_pages = self.max_pages;
        }
        let opened: Arc<Mutex<Option<Arc<MemoryWorker>>>> = Arc::default();
        let (crawl, slot, own) = (self.crawl.clone(), Arc::clone(&opened), name.clone());
        config.shared = Some(SharedCrawlMembership {
            frontier: Arc::new(move |last| {
                let worker = crawl.open(&own, last.as_deref())?;
                *slot.lock().unwrap() = Some(Arc::clone(&worker));
                Ok(worker as Arc<dyn WorkerFrontier>)
            }),
            crawl: "trial".to_owned(),
            worker: name.clone(),
            lease: self.lease,
        });
        let (mut fate, fault) = self.trial.fate(is_last);
        if !is_last {
            fate.trouble = self.trouble();
        }
        let trouble = fate.trouble;
        self.trace.note(now, || {
            format!("{name} {}, {trouble:?}", shown(&config, fault))
        });
        disk.begin(fault);
        // The first life without a budget lifts the budgets of all earlier lives.
        self.checker.max_pages = self.checker.max_pages.filter(|_| !is_last);
        if self.tally.lives == 1 {
            self.checker.max_pages = config.budgets.max_pages;
        }
        self.checker.begin(number, now, &config);
        let config = Arc::new(config);
        let begun = self.begin(number, &config, &opened, (fate, now));
        match begun {
            Ok(life) => {
                self.members[number].state = TrialWorkerState::Running(Box::new(RunningWorker {
                    life,
                    config,
                    next: now,
                    fault,
                    trouble: trouble.map(|(_, trouble)| trouble),
                    is_last,
                }));
                Ok(())
            }
            Err(error) => self.ended(number, LifeEnd::Failed(error), now, (fault, None, is_last)),
        }
    }

    /// Returns the parts of the trial that a worker acts on.
    fn world(&mut self, number: usize) -> PersistentTrialState<'_> {
        PersistentTrialState {
            web: &mut self.web,
            disk: &self.members[number].disk,
            checker: &mut self.checker,
            worker: number,
            released: &mut self.released,
            trace: self.trace,
            dice: &mut self.dice,
        }
    }

    fn begin(
        &mut self,
        number: usize,
        config: &Arc<Config>,
        opened: &Mutex<Option<Arc<MemoryWorker>>>,
        (fate, now): (RandomLifeEvents, Tick),
    ) -> Result<ProgramLife, EngineError> {
        let directory = crawl_directory::open(config, 1)?;
        let worker = opened.lock().unwrap().take().unwrap();
        let (crawl, name) = (self.crawl.clone(), self.members[number].name.clone());
        let drain = Box::new(move || crawl.drain(&name));
        let sharing = SimulatedSharing::new(worker, config, self.clock.clone(), drain);
        let mut world = self.world(number);
        ProgramLife::begin(&mut world, config, directory, Some(sharing), (fate, now))
    }

    /// Draws a fault or command for a worker, in addition to the faults that any program may have.
    /// Also returns the number of events before it. `None` for some of the workers.
    fn trouble(&mut self) -> Option<(u64, WorkerDisruption)> {
        let dice = &mut self.dice;
        let latest = [50, 500, 3_000][dice.below(3) as usize];
        let at = 1 + dice.below(latest);
        let time = self.lease.as_millis() as u64;
        let time = Duration::from_millis(dice.below(2 * time));
        let trouble = match dice.below(8) {
            0 | 1 => WorkerDisruption::CutOff(time),
            2 | 3 => WorkerDisruption::Frozen(time),
            4 => WorkerDisruption::Drained,
            _ => return None,
        };
        Some((at, trouble))
    }

    fn step(&mut self, number: usize, now: Tick) -> Result<(), String> {
        let state = std::mem::replace(&mut self.members[number].state, TrialWorkerState::Down(now));
        let TrialWorkerState::Running(mut running) = state else {
            return Ok(());
        };
        let mut world = self.world(number);
        running.life.pass(&mut world, now);
        let advanced = running.life.advance(&mut world);
        if running.life.takes_note_of_end() {
            self.nobody_works(number);
        }
        match advanced {
            Ok(next) => {
                running.next = next;
                self.members[number].state = TrialWorkerState::Running(running);
                Ok(())
            }
            Err(end) => {
                let RunningWorker {
                    life,
                    config,
                    fault,
                    trouble,
                    is_last,
                    ..
                } = *running;
                let end = life.end(&mut self.world(number), &config, end);
                self.ended(number, end, now, (fault, trouble, is_last))
            }
        }
    }

    /// Records how a life (run of the program) ended.
    fn ended(
        &mut self,
        number: usize,
        end: LifeEnd,
        now: Tick,
        (fault, trouble, is_last): (Option<(u64, DiskFault)>, Option<WorkerDisruption>, bool),
    ) -> Result<(), String> {
        let disk = Arc::clone(&self.members[number].disk);
        let (death, ended) = match end {
            // A worker that lost its hosts ends with an error.
            LifeEnd::Failed(error) if is_loss(&error, trouble) && !disk.is_dead() => {
                self.trace.note(now, || error.to_string());
                (LifeEndCause::Failure, None)
            }
            end => death_of(end, fault, &disk, &mut self.dice)?,
        };
        self.tally.count(death);
        self.trace
            .note(now, || format!("w{number} {death:?} {ended:?}"));
        let is_finished = match &ended {
            Some(EndReason::NoFetchableHost(hosts)) if is_last => {
                let hosts = hosts.iter().map(|of| of.host.as_str().to_owned());
                self.unreachable.extend(hosts);
                true
            }
            ended => *ended == Some(EndReason::Finished),
        };
        if let Some(ended) = ended {
            let max_pages = self.max_pages.filter(|_| !is_last);
            let is_saved = death == LifeEndCause::Clean;
            self.checker.over(number, &ended, is_saved, max_pages);
        }
        self.checker.end(number, now, death, &disk);
        if death == LifeEndCause::PowerCut {
            disk.cut_power().unwrap();
        }
        let waits = [0, 1_000, 30_000, 300_000][self.dice.below(4) as usize];
        let wait = Duration::from_millis(self.dice.below(waits));
        self.members[number].state = match is_last && is_finished {
            true => TrialWorkerState::Done,
            false => TrialWorkerState::Down(now + wait),
        };
        Ok(())
    }

    /// Checks that no worker has anything left to do when one notices that the crawl is over.
    fn nobody_works(&mut self, number: usize) {
        let busy = self.members.iter().filter(|member| match &member.state {
            TrialWorkerState::Running(running) => running.life.has_work(),
            TrialWorkerState::Down(_) | TrialWorkerState::Done => false,
        });
        let busy: Vec<&str> = busy.map(|member| member.name.as_str()).collect();
        self.checker.require(busy.is_empty(), || {
            format!("the crawl is over for w{number}, but {busy:?} have work")
        });
    }
}

/// Returns whether an error is an expected consequence of a worker's trouble.
fn is_loss(error: &EngineError, trouble: Option<WorkerDisruption>) -> bool {
    let text = error.to_string();
    let is_lost = text.contains("are no longer its own");
    match trouble {
        Some(WorkerDisruption::CutOff(_)) => {
            is_lost || text.contains("the frontier at memory failed")
        }
        Some(WorkerDisruption::Frozen(_)) => is_lost,
        Some(WorkerDisruption::Drained) | None => false,
    }
}

//! Trials of the whole engine in virtual time. One seed draws a web with faults, the settings, and
//! the fate of the program: slow readers and commits, stops, kills, power cuts, a full or broken
//! disk. Each trial is resumed until the crawl is finished, and its invariants are checked
//! after each event.
//!
//! Real: crawl loop, scheduler, readers, writer, archive, row files, restart. Simulated: network,
//! clock, threads, and the disk under archive, rows and `requests.jsonl`. Most trials keep the
//! frontier in memory, where it loses whatever was not committed; some use its store.
//!
//! `cargo xtask simulate --seeds 1000` runs many trials, and `--seeds 1 --seed N` repeats one.

mod invariants;
mod program_life;
mod shared_crawl;
mod simulated_disk;
mod trial_settings;
mod web;

use std::collections::{BTreeSet, VecDeque};
use std::env;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawl_frontier::{Frontier, MemoryFrontier};
use crawl_scheduler::Tick;

use self::invariants::{InvariantChecker, LifeEndCause};
use self::program_life::{EndedLife, LifeEnd, PersistentTrialState, live};
use self::simulated_disk::{DiskFault, SimulatedDisk};
use self::trial_settings::TrialSettings;
use self::web::TrialWeb;
use super::START;
use crate::config::Config;
use crate::error::EngineError;
use crate::state::crawl_directory;
use crate::summary::EndReason;

/// The number of last events to show if a trial fails.
const SHOWN_EVENTS: usize = 40;
/// Maximum lives (runs of the program) in the first round of a trial. The last lives have no
/// faults.
const LIVES: u32 = 12;
/// The number of broken trials after which no more trials run.
const MAX_BROKEN: u64 = 10;
/// The number of broken trials so far.
static BROKEN: AtomicU64 = AtomicU64::new(0);
/// Number of trials that `cargo test` runs.
const TRIALS: u64 = 24;

/// A random number generator (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct RandomNumberGenerator(u64);

impl RandomNumberGenerator {
    fn new(seed: u64) -> RandomNumberGenerator {
        RandomNumberGenerator(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a random number below `end`; 0 if `end` is 0.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

struct LastTrialEvents {
    events: Mutex<VecDeque<String>>,
    most: usize,
}

impl LastTrialEvents {
    fn new() -> LastTrialEvents {
        LastTrialEvents {
            events: Mutex::default(),
            most: number("CRAWL_TRIAL_EVENTS").map_or(SHOWN_EVENTS, |most| most as usize),
        }
    }

    fn note(&self, now: Tick, event: impl FnOnce() -> String) {
        let seconds = now.since(START).as_secs_f64();
        let mut events = self.events.lock().unwrap();
        if events.len() == self.most {
            events.pop_front();
        }
        events.push_back(format!("{seconds:12.3} {}", event()));
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for event in self.events.lock().unwrap().iter() {
            writeln!(text, "{event}").unwrap();
        }
        text
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct TrialEventCounts {
    requests: u64,
    pages: u64,
    rounds: u32,
    lives: u32,
    kills: u32,
    power_cuts: u32,
    failures: u32,
    /// How many times a worker took over a host that another worker had sent requests to.
    handovers: u32,
}

impl TrialEventCounts {
    fn count(&mut self, death: LifeEndCause) {
        match death {
            LifeEndCause::Clean => {}
            LifeEndCause::Kill => self.kills += 1,
            LifeEndCause::PowerCut => self.power_cuts += 1,
            LifeEndCause::Failure => self.failures += 1,
        }
    }

    fn add(&mut self, other: &TrialEventCounts) {
        self.requests += other.requests;
        self.pages += other.pages;
        self.rounds += other.rounds;
        self.lives += other.lives;
        self.kills += other.kills;
        self.power_cuts += other.power_cuts;
        self.failures += other.failures;
        self.handovers += other.handovers;
    }
}

/// The frontier of a trial.
enum TrialFrontier {
    /// In memory. Loses whatever was not committed.
    Memory(Arc<MemoryFrontier>),
    /// In the crawl directory, as in real crawls. After a power cut its contents are the same as
    /// after a kill.
    Directory,
}

impl TrialFrontier {
    fn draw(dice: &mut RandomNumberGenerator) -> TrialFrontier {
        match dice.chance(10) {
            true => TrialFrontier::Directory,
            false => TrialFrontier::Memory(Arc::default()),
        }
    }

    fn open(&self, dir: &Path) -> Result<Arc<dyn Frontier>, EngineError> {
        Ok(match self {
            TrialFrontier::Memory(frontier) => Arc::clone(frontier) as _,
            TrialFrontier::Directory => Arc::new(crawl_directory::begin_at_rest(dir)?),
        })
    }

    /// Ends a life of the program. Leased URLs become pending again.
    fn end_life(&mut self) {
        if let TrialFrontier::Memory(frontier) = self {
            *frontier = Arc::new(frontier.forked());
        }
    }
}

/// A crawl by one program at a time.
struct SingleProgramCrawl<'t> {
    dice: RandomNumberGenerator,
    trial: TrialSettings,
    web: TrialWeb,
    disk: Arc<SimulatedDisk>,
    store: TrialFrontier,
    checker: InvariantChecker,
    trace: &'t LastTrialEvents,
    tally: TrialEventCounts,
    now: Tick,
}

fn trial(seed: u64, trace: &LastTrialEvents) -> Result<TrialEventCounts, String> {
    let mut dice = RandomNumberGenerator::new(seed);
    let dir = scratch();
    let web = TrialWeb::new(&mut dice, 5);
    let disk = Arc::new(SimulatedDisk::new(RandomNumberGenerator::new(dice.next())));
    let mut trial = TrialSettings::draw(&mut dice, dir.path());
    trial.draw_politeness();
    let checker = InvariantChecker::new(&[dir.path().to_owned()], trial.warc);
    let store = TrialFrontier::draw(&mut dice);
    let eventful = dice.below(u64::from(LIVES) - 3) as u32;
    let mut crawl = SingleProgramCrawl {
        dice,
        trial,
        web,
        disk,
        store,
        checker,
        trace,
        tally: TrialEventCounts::default(),
        now: START,
    };
    crawl.round(1, eventful)?;
    let mut dice = RandomNumberGenerator::new(!seed);
    let rounds = [1, 1, 2, 3][dice.below(4) as usize];
    for number in 2..=rounds {
        let seconds = [1, 4_000, 300_000, 4_000_000][dice.below(4) as usize];
        crawl.now = crawl.now + Duration::from_secs(1 + dice.below(seconds));
        crawl.round(number, dice.below(5) as u32)?;
    }
    crawl.tally.requests = crawl.checker.requests;
    crawl.tally.pages = crawl.checker.rows();
    Ok(crawl.tally)
}

impl SingleProgramCrawl<'_> {
    /// Runs the program until a round is finished. The first `eventful` lives have faults.
    fn round(&mut self, number: u32, eventful: u32) -> Result<(), String> {
        for life in 1..=eventful + 4 {
            let is_last = life > eventful;
            let mut config = self.trial.config(&self.web, &self.disk, is_last);
            config.recrawl = number > self.checker.round();
            if self.live(config, is_last)? && is_last {
                self.tally.rounds += 1;
                return Ok(());
            }
        }
        Err("the crawl does not end".to_owned())
    }

    /// Runs the program once. Returns whether the round is finished.
    fn live(&mut self, config: Config, is_last: bool) -> Result<bool, String> {
        self.tally.lives += 1;
        let (mut fate, fault) = self.trial.fate(is_last);
        fate.commands = self.trial.commands(&self.web, &config, is_last);
        self.trace.note(self.now, || shown(&config, fault));
        self.disk.begin(fault);
        self.checker.begin(0, self.now, &config);
        let max_pages = config.budgets.max_pages;
        let mut world = PersistentTrialState {
            web: &mut self.web,
            disk: &self.disk,
            checker: &mut self.checker,
            worker: 0,
            released: &mut BTreeSet::new(),
            trace: self.trace,
            dice: &mut self.dice,
        };
        let EndedLife { end, at, frontier } = live(&mut world, &self.store, config, fate, self.now);
        self.now = at;
        let (death, ended) = death_of(end, fault, &self.disk, &mut self.dice)?;
        self.tally.count(death);
        let mut is_finished = false;
        if let Some(ended) = ended {
            self.trace.note(self.now, || format!("ended: {ended:?}"));
            self.checker
                .over(0, &ended, death == LifeEndCause::Clean, max_pages);
            is_finished = ended == EndReason::Finished;
        }
        self.trace.note(self.now, || format!("{death:?}"));
        self.checker.end(0, self.now, death, &self.disk);
        if death == LifeEndCause::PowerCut {
            self.disk.cut_power().unwrap();
        }
        if let Some(frontier) = frontier {
            self.checker.forget_uncommitted(&*frontier);
            if is_finished && is_last {
                self.checker
                    .finished(&self.web, &*frontier, &BTreeSet::new());
            }
        }
        self.store.end_life();
        if let Some(breach) = self.checker.breach.take() {
            return Err(breach);
        }
        let waits = [0, 1_000, 100_000, 5_000_000][self.dice.below(4) as usize];
        self.now = self.now + Duration::from_millis(self.dice.below(waits));
        Ok(is_finished)
    }
}

/// Describes the start of a life (run of the program).
fn shown(config: &Config, fault: Option<(u64, DiskFault)>) -> String {
    let Config {
        politeness,
        budgets,
        ..
    } = config;
    let (delay, per_host) = (politeness.delay, politeness.per_host);
    let (pages, time) = (budgets.max_pages, budgets.max_time);
    format!("start: delay {delay:?}, {per_host} per host, {pages:?}, {time:?}, {fault:?}")
}

/// Returns what to report to the checker about the end of a life, and the reason for a normal end.
/// If the program died, draws whether the power was cut too.
fn death_of(
    end: LifeEnd,
    fault: Option<(u64, DiskFault)>,
    disk: &SimulatedDisk,
    dice: &mut RandomNumberGenerator,
) -> Result<(LifeEndCause, Option<EndReason>), String> {
    Ok(match end {
        LifeEnd::Over(ended, true) => (LifeEndCause::Clean, Some(ended)),
        LifeEnd::Over(ended, false) => (LifeEndCause::Kill, Some(ended)),
        LifeEnd::Failed(error) if !disk.is_dead() => {
            check_failure(&error, fault)?;
            (LifeEndCause::Failure, None)
        }
        LifeEnd::Failed(_) | LifeEnd::Killed if dice.chance(50) => (LifeEndCause::PowerCut, None),
        LifeEnd::Failed(_) | LifeEnd::Killed => (LifeEndCause::Kill, None),
    })
}

/// Checks that the error of a failed run names the drawn fault of the disk. Any other failure is an
/// error of the trial.
fn check_failure(error: &EngineError, fault: Option<(u64, DiskFault)>) -> Result<(), String> {
    let text = error.to_string();
    let is_named = match fault {
        Some((_, DiskFault::Full)) => text.contains("no space left"),
        Some((_, DiskFault::Broken)) => text.starts_with("can't "),
        Some((_, DiskFault::Death)) | None => false,
    };
    match is_named {
        true => Ok(()),
        false => Err(format!("the run failed: {text}")),
    }
}

/// Creates a folder, in memory if possible, because trials write many small files.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    match tempfile::tempdir_in(memory) {
        Ok(dir) => dir,
        Err(_) => tempfile::tempdir().unwrap(),
    }
}

/// Runs the trial of a seed. Returns the counts of the trial, or the broken rule with the last
/// events.
fn tried(kind: TrialKind, seed: u64) -> Result<TrialEventCounts, String> {
    let trace = LastTrialEvents::new();
    let ended = catch_unwind(AssertUnwindSafe(|| kind.run(seed, &trace)));
    let broken = match ended {
        Ok(Ok(tally)) => return Ok(tally),
        Ok(Err(breach)) => breach,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            format!("panic: {}", text.unwrap_or_default())
        }
    };
    let events = trace.text();
    Err(format!(
        "{events}seed {seed}: {broken} ({kind:?})\nsame again: cargo xtask simulate --seeds 1 --seed {seed}"
    ))
}

/// Returns the number in an environment variable.
fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

/// A kind of trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrialKind {
    /// A program that crawls alone.
    Alone,
    /// Several workers that share a frontier.
    Workers,
}

impl TrialKind {
    const ALL: [TrialKind; 2] = [TrialKind::Alone, TrialKind::Workers];

    fn run(self, seed: u64, trace: &LastTrialEvents) -> Result<TrialEventCounts, String> {
        match self {
            TrialKind::Alone => trial(seed, trace),
            TrialKind::Workers => shared_crawl::trial(seed, trace),
        }
    }

    /// Runs the trials of the seeds that `CRAWL_TRIAL_SEED` and `CRAWL_TRIALS` choose. Panics at
    /// the end if a trial broke a rule.
    fn run_all(self) {
        let first = number("CRAWL_TRIAL_SEED").unwrap_or(0);
        let count = number("CRAWL_TRIALS").unwrap_or(TRIALS);
        let max_broken = number("CRAWL_TRIALS_BROKEN").unwrap_or(MAX_BROKEN);
        let (mut sum, mut broken) = (TrialEventCounts::default(), Vec::new());
        for seed in first..first + count {
            match tried(self, seed) {
                Ok(tally) => sum.add(&tally),
                Err(breach) => {
                    BROKEN.fetch_add(1, Ordering::Relaxed);
                    broken.push(breach);
                }
            }
            if BROKEN.load(Ordering::Relaxed) >= max_broken {
                break;
            }
        }
        println!("{count} trials from seed {first}, {self:?}: {sum:?}");
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }
}

#[test]
fn trials_keep_every_invariant() {
    TrialKind::Alone.run_all();
}

#[test]
fn trials_of_workers_keep_every_invariant() {
    TrialKind::Workers.run_all();
}

#[test]
fn a_seed_gives_the_same_trial() {
    for (kind, seed) in TrialKind::ALL
        .into_iter()
        .flat_map(|kind| [(kind, 1), (kind, 2)])
    {
        let [one, other] = [0, 1].map(|_| {
            let trace = LastTrialEvents::new();
            (kind.run(seed, &trace).unwrap(), trace.text())
        });
        assert_eq!(one, other);
    }
}

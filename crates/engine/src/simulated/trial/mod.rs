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

mod check;
mod disk;
mod life;
mod web;

use std::collections::VecDeque;
use std::env;
use std::fmt::Write as _;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawl_archive::Disk;
use crawl_frontier::{Frontier, MemoryFrontier};
use crawl_scheduler::{Politeness, Tick};
use crawl_weburl::canonicalize;

use self::check::{Checker, Death};
use self::disk::{DiskFault, SimulatedDisk};
use self::life::{End, Fate, Lived, World, live};
use self::web::TrialWeb;
use super::START;
use crate::config::{Config, TrapRules};
use crate::control::Stop;
use crate::error::EngineError;
use crate::state::directory;
use crate::summary::Ended;

/// The number of last events to show if a trial fails.
const SHOWN_EVENTS: usize = 40;
/// Maximum lives in a trial. The last ones are without faults.
const LIVES: u32 = 12;
/// After this many broken trials, no more are run.
const MAX_BROKEN: u64 = 10;
/// Trials of `cargo test`.
const TRIALS: u64 = 24;

/// A random number generator (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to `end` - 1, or 0.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// The last events of a trial.
struct Trace {
    events: Mutex<VecDeque<String>>,
    most: usize,
}

impl Trace {
    fn new() -> Trace {
        Trace {
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

/// Counts of a trial.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    requests: u64,
    pages: u64,
    lives: u32,
    kills: u32,
    power_cuts: u32,
    failures: u32,
}

impl Tally {
    fn count(&mut self, death: Death) {
        match death {
            Death::Clean => {}
            Death::Kill => self.kills += 1,
            Death::PowerCut => self.power_cuts += 1,
            Death::Failure => self.failures += 1,
        }
    }

    fn add(&mut self, other: &Tally) {
        self.requests += other.requests;
        self.pages += other.pages;
        self.lives += other.lives;
        self.kills += other.kills;
        self.power_cuts += other.power_cuts;
        self.failures += other.failures;
    }
}

/// The frontier of a trial.
enum Store {
    /// In memory. Loses whatever was not committed.
    Memory(Arc<MemoryFrontier>),
    /// In the crawl directory, as in real crawls. A power cut leaves it as a kill does.
    Directory,
}

impl Store {
    fn draw(dice: &mut Dice) -> Store {
        match dice.chance(10) {
            true => Store::Directory,
            false => Store::Memory(Arc::default()),
        }
    }

    fn open(&self, dir: &Path) -> Result<Arc<dyn Frontier>, EngineError> {
        Ok(match self {
            Store::Memory(frontier) => Arc::clone(frontier) as _,
            Store::Directory => Arc::new(directory::open_at_rest(dir)?),
        })
    }

    /// Ends a life of the program, whose leases are lost.
    fn end_life(&mut self) {
        if let Store::Memory(frontier) = self {
            *frontier = Arc::new(frontier.forked());
        }
    }
}

/// The settings of a trial that every life shares.
struct Trial {
    dice: Dice,
    dir: PathBuf,
    warc: bool,
    links: bool,
    sitemaps: bool,
    traps: bool,
    politeness: Politeness,
}

impl Trial {
    fn draw(dice: &mut Dice, dir: &Path) -> Trial {
        Trial {
            dir: dir.to_owned(),
            warc: dice.chance(70),
            links: dice.chance(30),
            sitemaps: dice.chance(50),
            traps: dice.chance(25),
            politeness: Politeness::default(),
            dice: Dice::new(dice.next()),
        }
    }

    /// Draws the limits that the operator sets.
    fn draw_politeness(&mut self) {
        let dice = &mut self.dice;
        self.politeness = Politeness {
            delay: Duration::from_millis(200 + dice.below(3_000)),
            delay_factor: dice.below(3) as f64,
            per_host: if dice.chance(75) { 1 } else { 2 },
            per_address: 1 + dice.below(6) as u32,
            address_rate: None,
            concurrency: 1 + dice.below(8) as u32,
            look_ups: 1 + dice.below(8) as u32,
            max_retry_after: Duration::from_secs(30 + dice.below(500)),
            ..Politeness::default()
        };
    }

    /// Draws the settings of a life. The last lives have no budgets.
    fn config(&mut self, web: &TrialWeb, disk: &Arc<SimulatedDisk>, is_last: bool) -> Config {
        if self.dice.chance(40) {
            self.draw_politeness();
        }
        let seed = canonicalize(None, &web.seed_url()).unwrap();
        let faults = Arc::clone(disk);
        let dice = &mut self.dice;
        let mut config = super::config(&self.dir);
        config.seeds = vec![seed];
        config.disk = Disk::with_faults(faults);
        config.politeness = self.politeness.clone();
        config.hosts_in_memory = 1 + dice.below(8) as usize;
        config.retries = dice.below(4) as u32;
        config.warc = self.warc;
        config.links = self.links;
        config.sitemaps = self.sitemaps;
        config.traps = match self.traps {
            true => TrapRules::default(),
            false => TrapRules::OFF,
        };
        config.commit_within = Duration::from_millis(200 + dice.below(5_000));
        config.wait_unreachable = Duration::from_secs(match is_last {
            true => 1_000_000,
            false => dice.below(2_000),
        });
        if !is_last {
            let budgets = &mut config.budgets;
            let drawn = |dice: &mut Dice, most| dice.chance(15).then(|| 1 + dice.below(most));
            budgets.max_pages = drawn(dice, 60);
            budgets.per_host.max_pages = drawn(dice, 12);
            budgets.max_time = drawn(dice, 300).map(Duration::from_secs);
        }
        config
    }

    /// Draws what happens to the program in a life, and its fault on the disk.
    fn fate(&mut self, is_last: bool) -> (Fate, Option<(u64, DiskFault)>) {
        let dice = &mut self.dice;
        let slowness = [0, 20, 300, 4_000][dice.below(4) as usize];
        let mut fate = Fate {
            killed_after: None,
            stopped_after: None,
            slowness,
        };
        if is_last {
            return (fate, None);
        }
        let latest = [20, 200, 1_500][dice.below(3) as usize];
        let at = dice.below(latest);
        match dice.below(10) {
            0..3 => fate.killed_after = Some(at),
            3 => fate.stopped_after = Some((1 + at, Stop::Now)),
            4 => fate.stopped_after = Some((1 + at, Stop::Drain)),
            5..8 => return (fate, Some((at, DiskFault::Death))),
            8 => return (fate, Some((at, DiskFault::Full))),
            _ => return (fate, Some((at, DiskFault::Broken))),
        }
        (fate, None)
    }
}

/// Runs the trial of a seed.
fn trial(seed: u64, trace: &Trace) -> Result<Tally, String> {
    let mut dice = Dice::new(seed);
    let dir = scratch();
    let mut web = TrialWeb::new(&mut dice);
    let disk = Arc::new(SimulatedDisk::new(Dice::new(dice.next())));
    let mut trial = Trial::draw(&mut dice, dir.path());
    trial.draw_politeness();
    let mut checker = Checker::new(dir.path(), trial.warc);
    let mut store = Store::draw(&mut dice);
    let (mut now, mut tally) = (START, Tally::default());
    let eventful = dice.below(u64::from(LIVES) - 3) as u32;
    let mut is_finished = false;
    while !is_finished {
        tally.lives += 1;
        let is_last = tally.lives > eventful;
        if tally.lives > LIVES + 3 {
            return Err("the crawl does not end".to_owned());
        }
        let config = trial.config(&web, &disk, is_last);
        let (fate, fault) = trial.fate(is_last);
        trace.note(now, || shown(&config, fault));
        disk.begin(fault);
        checker.begin(now, &config.politeness);
        let max_pages = config.budgets.max_pages;
        let mut world = World {
            web: &mut web,
            disk: &disk,
            store: &store,
            checker: &mut checker,
            trace,
            dice: &mut dice,
        };
        let Lived { end, at, frontier } = live(&mut world, config, fate, now);
        now = at;
        let (death, ended) = death_of(end, fault, &disk, &mut dice)?;
        tally.count(death);
        if let Some(ended) = ended {
            trace.note(now, || format!("ended: {ended:?}"));
            checker.over(&ended, death == Death::Clean, max_pages);
            is_finished = is_last && ended == Ended::Finished;
        }
        trace.note(now, || format!("{death:?}"));
        checker.end(now, death, &disk);
        if death == Death::PowerCut {
            disk.cut_power().unwrap();
        }
        if let Some(frontier) = frontier {
            checker.forget_uncommitted(&*frontier);
            if is_finished {
                checker.finished(&web, &*frontier);
            }
        }
        store.end_life();
        if let Some(breach) = checker.breach.take() {
            return Err(breach);
        }
        let waits = [0, 1_000, 100_000, 5_000_000][dice.below(4) as usize];
        now = now + Duration::from_millis(dice.below(waits));
    }
    tally.requests = checker.requests;
    tally.pages = checker.rows();
    Ok(tally)
}

/// Describes the start of a life.
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

/// Returns how a life ended for the next one, and the reason if it ended normally.
fn death_of(
    end: End,
    fault: Option<(u64, DiskFault)>,
    disk: &SimulatedDisk,
    dice: &mut Dice,
) -> Result<(Death, Option<Ended>), String> {
    Ok(match end {
        End::Over(ended, true) => (Death::Clean, Some(ended)),
        End::Over(ended, false) => (Death::Kill, Some(ended)),
        End::Failed(error) if !disk.is_dead() => {
            check_failure(&error, fault)?;
            (Death::Failure, None)
        }
        End::Failed(_) | End::Killed if dice.chance(50) => (Death::PowerCut, None),
        End::Failed(_) | End::Killed => (Death::Kill, None),
    })
}

/// A failure of the disk must be reported as such.
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

/// Runs the trial of a seed. Returns what it did, or the broken rule with the last events.
fn tried(seed: u64) -> Result<Tally, String> {
    let trace = Trace::new();
    let ended = catch_unwind(AssertUnwindSafe(|| trial(seed, &trace)));
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
        "{events}seed {seed}: {broken}\nsame again: cargo xtask simulate --seeds 1 --seed {seed}"
    ))
}

/// Returns the number in an environment variable.
fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

#[test]
fn trials_keep_every_invariant() {
    let first = number("CRAWL_TRIAL_SEED").unwrap_or(0);
    let count = number("CRAWL_TRIALS").unwrap_or(TRIALS);
    let max_broken = number("CRAWL_TRIALS_BROKEN").unwrap_or(MAX_BROKEN);
    let (mut sum, mut broken) = (Tally::default(), Vec::new());
    for seed in first..first + count {
        match tried(seed) {
            Ok(tally) => sum.add(&tally),
            Err(breach) => broken.push(breach),
        }
        if broken.len() as u64 == max_broken {
            break;
        }
    }
    println!("{count} trials from seed {first}: {sum:?}");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn a_seed_gives_the_same_trial() {
    for seed in [1, 2] {
        let [one, other] = [0, 1].map(|_| {
            let trace = Trace::new();
            (trial(seed, &trace).unwrap(), trace.text())
        });
        assert_eq!(one, other);
    }
}

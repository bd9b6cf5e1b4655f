//! Crawls of four workers with a shared frontier, with failures of machines and networks, compared
//! with what the web requires.
//!
//! Each crawl has a random web, a PostgreSQL primary whose commits wait for a standby, and four
//! workers, each with its own directory, home, and network to the database servers. The seed
//! determines the faults: workers are killed, frozen beyond their leases, cut off from the database
//! servers, run out of disk space, or lose their disk; the primary is killed and its standby takes
//! over. With several server groups, each has a primary and a standby, and commands move hosts
//! between groups during the crawl. Commands are sometimes killed and then repeated. When the crawl
//! ends, the web's own log, the rows, the archives and the frontier are compared with what the web
//! requires.

mod check_shared_crawl;
mod network_proxy;
mod postgres_pair;
mod worker;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::Signal;
use xtask::debian_packages;
use xtask::workspace::Workspace;

use self::network_proxy::{NetworkState, PostgresPairPorts};
use self::postgres_pair::{PostgresInstallation, PostgresPair};
use self::worker::{LastingFault, SharedWorkerSettings, WorkerProcess};
use super::checked_counts_and_breaches::CheckedCounts;
use super::program_run::TimesAroundKill;
use super::random::SeededRandom;
use super::random_web::RandomWeb;
use super::{Args, build};
use crate::simulate::fresh_seed;

const WORKERS: usize = 4;

/// How long a worker's lease lasts. With a shorter lease, heartbeats would be less than a second
/// apart.
const LEASE: Duration = Duration::from_secs(3);

/// Maximum time for a crawl. A crawl that takes longer is considered stuck.
const MAX_CRAWL: Duration = Duration::from_secs(300);

/// Interval between two checks of the workers.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Interval between two attempts to reopen a worker's settled URLs.
const REOPEN_INTERVAL: Duration = Duration::from_millis(300);

/// Number of buckets of a crawl. A bucket is a set of hosts that is owned by one worker.
const BUCKETS: u64 = 1024;
/// Number of buckets that one `crawl frontier move` moves.
const MOVED: u64 = 300;

/// Exit status after a failure of the disk or the database server. The same command resumes the
/// crawl.
const DISK: i32 = 3;

/// Exit status if the program rejects its arguments.
const USAGE: i32 = 2;

/// The kinds of faults, with their frequencies in percent.
const KINDS: [(InjectedFaultKind, u64); 7] = [
    (InjectedFaultKind::Killed, 20),
    (InjectedFaultKind::Frozen, 22),
    (InjectedFaultKind::Cut, 14),
    (InjectedFaultKind::Stalled, 12),
    (InjectedFaultKind::FullDisk, 10),
    (InjectedFaultKind::LostDisk, 12),
    (InjectedFaultKind::Primary, 10),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InjectedFaultKind {
    Killed,
    Frozen,
    Cut,
    Stalled,
    FullDisk,
    /// The worker is killed and its directory removed.
    LostDisk,
    Primary,
}

impl InjectedFaultKind {
    fn draw(dice: &mut SeededRandom) -> InjectedFaultKind {
        let mut remaining = dice.below(KINDS.iter().map(|(_, weight)| weight).sum());
        for (kind, weight) in KINDS {
            match remaining.checked_sub(weight) {
                Some(rest) => remaining = rest,
                None => return kind,
            }
        }
        InjectedFaultKind::Killed
    }

    fn name(self) -> &'static str {
        match self {
            InjectedFaultKind::Killed => "workers killed",
            InjectedFaultKind::Frozen => "workers frozen",
            InjectedFaultKind::Cut => "workers cut off",
            InjectedFaultKind::Stalled => "networks that stalled",
            InjectedFaultKind::FullDisk => "full disks",
            InjectedFaultKind::LostDisk => "disks lost",
            InjectedFaultKind::Primary => "primaries killed",
        }
    }
}

/// A fault that occurred, with times by the web's clock in microseconds.
pub(super) struct InjectedFault {
    pub(super) kind: InjectedFaultKind,
    /// The affected worker; `None` if a database server was affected.
    pub(super) worker: Option<String>,
    pub(super) from: u64,
    /// When the fault ended, in microseconds. If the fault outlasted the crawl, this is the end of
    /// the crawl.
    pub(super) until: u64,
    /// The URLs that a worker had requested before its disk was lost, according to its rows. Empty
    /// for other faults.
    pub(super) lost: BTreeSet<String>,
}

/// A crawl with its database servers and workers.
struct SharedCrawlRun<'a> {
    crawl: SharedWorkerSettings<'a>,
    /// The database servers of each group.
    server_pairs: Vec<PostgresPair<'a>>,
    /// The current move of hosts. Includes the process of the move's command while the command
    /// runs.
    moving: Option<(HostMove, Option<Child>)>,
    moves: HostMoveCounts,
    workers: Vec<WorkerProcess>,
    dice: SeededRandom,
    faults: Vec<InjectedFault>,
    /// The times of kills of workers, and of failures after which the same command resumes the
    /// crawl.
    deaths: Vec<TimesAroundKill>,
    /// Number of times a worker failed in such a way that the same command resumes the crawl.
    ends: u32,
}

/// A move of hosts from one server group to another.
#[derive(Clone)]
struct HostMove {
    /// The buckets to move, as the command's argument.
    buckets: String,
    to: String,
}

/// Counts of commands that move hosts.
#[derive(Clone, Copy, Default)]
struct HostMoveCounts {
    done: u32,
    killed: u32,
    /// Number of commands that ended because a database server failed.
    failed: u32,
}

/// The results of all crawls.
#[derive(Default)]
struct SharedTortureTotals {
    crawls: u32,
    moves: HostMoveCounts,
    ends: u32,
    faults: Vec<InjectedFaultKind>,
    tally: CheckedCounts,
}

pub(super) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let seed = args.seed.unwrap_or_else(fresh_seed);
    eprintln!("seed {seed}");
    let program = match &args.program {
        Some(program) => program.clone(),
        None => build(workspace, args.release)?,
    };
    let programs = PostgresInstallation::new(debian_packages::postgres(workspace)?);
    let dir = args.dir.clone();
    let dir = dir.unwrap_or_else(|| workspace.target.join("torture-shared"));
    let began = Instant::now();
    let mut sum = SharedTortureTotals::default();
    let max_faults = args.kills as usize;
    for seed in seed.. {
        if sum.faults.len() >= max_faults && sum.crawls > 0 {
            break;
        }
        let dir = dir.join(seed.to_string());
        let faults_left = max_faults - sum.faults.len();
        let amounts = (args.groups.into(), faults_left);
        torment(&programs, &program, &dir, (seed, amounts), &mut sum).with_context(|| {
            format!(
                "a crawl broke a rule; its directory is {}\nsame web again: --shared --seed {seed}",
                dir.display()
            )
        })?;
        fs::remove_dir_all(&dir)?;
    }
    io::stdout().write_all(table(&sum, began.elapsed()).as_bytes())?;
    Ok(())
}

/// Runs one crawl from its first start to the final check.
fn torment(
    programs: &PostgresInstallation,
    program: &Path,
    dir: &Path,
    (seed, (groups, most)): (u64, (usize, usize)),
    sum: &mut SharedTortureTotals,
) -> Result<()> {
    ensure!(
        !dir.exists(),
        "{} exists already; remove it first",
        dir.display()
    );
    fs::create_dir_all(dir)?;
    let web = RandomWeb::draw_large(seed)?;
    let server_pairs: Vec<PostgresPair<'_>> = (0..groups)
        .map(|group| PostgresPair::start(programs, &dir.join(format!("servers-{group}"))))
        .collect::<Result<_>>()?;
    let ports: Vec<PostgresPairPorts> = server_pairs.iter().map(PostgresPair::ports).collect();
    let workers = (1..=WORKERS).map(|number| WorkerProcess::new(format!("w{number}"), &ports));
    let mut run = SharedCrawlRun {
        crawl: SharedWorkerSettings {
            program,
            dir,
            web: &web,
            lease: format!("{}s", LEASE.as_secs()),
        },
        server_pairs,
        moving: None,
        moves: HostMoveCounts::default(),
        workers: workers.collect::<Result<_>>()?,
        dice: SeededRandom::of(seed ^ 0x7368_6172),
        faults: Vec::new(),
        deaths: Vec::new(),
        ends: 0,
    };
    run.crawl(most)?;
    let tally = run.check()?;
    eprintln!(
        "web {seed}: {} hosts, {} faults, {} pages, {} requests, {} beyond one per URL",
        web.web.hosts(),
        run.faults.len(),
        tally.pages,
        tally.requests,
        tally.repeated
    );
    sum.crawls += 1;
    sum.ends += run.ends;
    sum.moves.done += run.moves.done;
    sum.moves.killed += run.moves.killed;
    sum.moves.failed += run.moves.failed;
    sum.faults.extend(run.faults.iter().map(|fault| fault.kind));
    sum.tally.add(&tally);
    Ok(())
}

impl Drop for SharedCrawlRun<'_> {
    fn drop(&mut self) {
        if let Some((_, Some(process))) = &mut self.moving {
            // This can't fail, because the process is our own child and nothing else waits for it.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl SharedCrawlRun<'_> {
    /// Runs the crawl with at most `most` faults until a worker finishes. Lets the other workers
    /// finish without faults.
    fn crawl(&mut self, most: usize) -> Result<()> {
        let began = Instant::now();
        let mut next = began + self.dice.millis(1500);
        loop {
            self.attend()?;
            if self.workers.iter().any(|worker| worker.is_done) {
                break;
            }
            if Instant::now() >= next && self.faults.len() < most {
                self.make_fault()?;
                self.move_hosts()?;
                next = Instant::now() + Duration::from_millis(200) + self.dice.millis(2000);
            }
            ensure!(began.elapsed() < MAX_CRAWL, "no end: {}", self.last_words());
            sleep(LOOK_INTERVAL);
        }
        self.end_all(began)
    }

    /// Ends the faults and waits until all workers have finished.
    fn end_all(&mut self, began: Instant) -> Result<()> {
        for worker in &mut self.workers {
            worker.relieve()?;
            worker.starts_at = began;
        }
        while self.moving.is_some() || self.workers.iter().any(|worker| !worker.is_done) {
            self.attend()?;
            ensure!(began.elapsed() < MAX_CRAWL, "no end: {}", self.last_words());
            sleep(LOOK_INTERVAL);
        }
        let now = self.now();
        for fault in &mut self.faults {
            fault.until = fault.until.min(now);
        }
        Ok(())
    }

    /// Ends the faults whose time is over, handles workers that ended, and restarts workers that
    /// are due.
    fn attend(&mut self) -> Result<()> {
        let now = Instant::now();
        let mut lost = Vec::new();
        for worker in &mut self.workers {
            let before = self.crawl.web.web.now_us();
            if let Some(status) = worker.ended()? {
                worker.relieve()?;
                let after = self.crawl.web.web.now_us();
                match status.code() {
                    Some(0) => worker.is_done = true,
                    // The program rejects a worker whose name is still taken. If the worker's
                    // previous process did not record its end, the name is taken until the lease
                    // ends.
                    Some(DISK | USAGE) => {
                        self.ends += 1;
                        self.deaths.push(TimesAroundKill { before, after });
                        worker.starts_at = now + Duration::from_millis(100);
                    }
                    _ => bail!(
                        "{} ended with {status}: {}",
                        worker.name,
                        self.crawl.last_words()
                    ),
                }
            }
            if worker.under.is_some_and(|under| under.until() <= now) {
                worker.relieve()?;
            }
            if worker.process.is_none() && !worker.is_done && worker.starts_at <= now {
                if worker.is_lost {
                    lost.push(worker.name.clone());
                } else {
                    self.crawl.start(worker)?;
                }
            }
        }
        self.attend_to_move()?;
        lost.iter().try_for_each(|name| self.reopen(name))
    }

    /// Starts to move hosts. If a move is already running, kills its command one time in three.
    fn move_hosts(&mut self) -> Result<()> {
        if self.server_pairs.len() == 1 {
            return Ok(());
        }
        match &mut self.moving {
            None => {
                let first = self.dice.below(BUCKETS - MOVED);
                let hosts = HostMove {
                    buckets: format!("{first}-{}", first + MOVED - 1),
                    to: self.dice.below(self.server_pairs.len() as u64).to_string(),
                };
                self.moving = Some((hosts, None));
            }
            Some((_, process)) if self.dice.below(3) == 0 => {
                if let Some(mut process) = process.take() {
                    process.kill()?;
                    process.wait()?;
                    self.moves.killed += 1;
                }
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Runs the command of the current move of hosts again if it has ended without success. Does
    /// nothing if no hosts are being moved.
    fn attend_to_move(&mut self) -> Result<()> {
        let ports = self.ports();
        let Some((hosts, process)) = &mut self.moving else {
            return Ok(());
        };
        let Some(running) = process else {
            *process = Some(self.crawl.start_move(&ports, hosts)?);
            return Ok(());
        };
        let Some(status) = running.try_wait()? else {
            return Ok(());
        };
        *process = None;
        match status.code() {
            Some(0) => {
                self.moves.done += 1;
                self.moving = None;
            }
            Some(DISK) => self.moves.failed += 1,
            // The move failed because some group does not have the crawl yet: no worker has started
            // it there.
            Some(USAGE) if self.crawl.last_words().contains("has no crawl") => {
                self.moves.failed += 1;
            }
            _ => bail!("a move ended with {status}: {}", self.crawl.last_words()),
        }
        Ok(())
    }

    fn ports(&self) -> Vec<PostgresPairPorts> {
        self.server_pairs.iter().map(PostgresPair::ports).collect()
    }

    /// Reopens the URLs settled by a worker whose disk is lost, once its lease has ended.
    fn reopen(&mut self, name: &str) -> Result<()> {
        let is_reopened = self.crawl.reopen(&self.ports(), name)?;
        for worker in &mut self.workers {
            if is_reopened {
                // The crawl continues with the reopened URLs, so each worker must finish again.
                worker.is_done = false;
                worker.is_lost &= worker.name != name;
            } else if worker.name == name {
                worker.starts_at = Instant::now() + REOPEN_INTERVAL;
            }
        }
        Ok(())
    }

    /// Injects a fault: kills the primary database server, or disturbs a worker that has no fault
    /// at the moment.
    fn make_fault(&mut self) -> Result<()> {
        let kind = InjectedFaultKind::draw(&mut self.dice);
        if kind == InjectedFaultKind::Primary {
            return self.kill_primary();
        }
        let free = self.workers.iter_mut();
        let mut free: Vec<&mut WorkerProcess> = free
            .filter(|worker| worker.process.is_some() && worker.under.is_none())
            .collect();
        let Some(worker) = self.dice.take(&mut free) else {
            return Ok(());
        };
        let lease = LEASE.as_millis() as u64;
        // The maximum is about two leases, so half of the faults outlast the lease.
        let lasts = Duration::from_millis(100) + self.dice.millis(2 * lease);
        let until = Instant::now() + lasts;
        let from = self.crawl.web.web.now_us();
        let mut over = from + lasts.as_micros() as u64;
        let mut lost = BTreeSet::new();
        match kind {
            InjectedFaultKind::Killed | InjectedFaultKind::LostDisk => {
                worker.kill()?;
                if kind == InjectedFaultKind::LostDisk {
                    lost = self.crawl.lose(worker)?;
                }
                over = self.crawl.web.web.now_us();
                self.deaths.push(TimesAroundKill {
                    before: from,
                    after: over,
                });
                // Some workers restart immediately, others after their hosts were taken over.
                worker.starts_at = match self.dice.below(2) {
                    0 => Instant::now(),
                    _ => until,
                };
            }
            InjectedFaultKind::Frozen => {
                worker.signal(Signal::SIGSTOP)?;
                worker.under = Some(LastingFault::Frozen(until));
            }
            InjectedFaultKind::Cut | InjectedFaultKind::Stalled => {
                let is_cut = kind == InjectedFaultKind::Cut;
                worker.link.set(match is_cut {
                    true => NetworkState::Cut,
                    false => NetworkState::Stalled,
                });
                worker.under = Some(LastingFault::Apart(until));
            }
            InjectedFaultKind::FullDisk => {
                let rows = self.crawl.output(&worker.name).join("requests.jsonl");
                let size = fs::metadata(rows).map_or(0, |file| file.len());
                worker.limit_files(Some(size + self.dice.below(4000)))?;
                worker.under = Some(LastingFault::FullDisk(until));
            }
            InjectedFaultKind::Primary => {}
        }
        self.faults.push(InjectedFault {
            kind,
            worker: Some(worker.name.clone()),
            from,
            until: over,
            lost,
        });
        Ok(())
    }

    /// Kills the primary, promotes the standby, and adds a new standby.
    fn kill_primary(&mut self) -> Result<()> {
        let from = self.now();
        let Some(group) = self.dice.take(&mut self.server_pairs.iter_mut().collect()) else {
            return Ok(());
        };
        group.fail_over()?;
        let until = self.crawl.web.web.now_us();
        self.faults.push(InjectedFault {
            kind: InjectedFaultKind::Primary,
            worker: None,
            from,
            until,
            lost: BTreeSet::new(),
        });
        group.add_standby()
    }

    fn now(&self) -> u64 {
        self.crawl.web.web.now_us()
    }

    fn last_words(&self) -> String {
        let workers = self.workers.iter();
        let dead = workers.filter(|worker| worker.process.is_none() && !worker.is_done);
        let dead: Vec<&str> = dead.map(|worker| worker.name.as_str()).collect();
        format!("down: {dead:?}\n{}", self.crawl.last_words())
    }
}

fn table(sum: &SharedTortureTotals, took: Duration) -> String {
    let mut table = String::new();
    let tally = &sum.tally;
    let mut row = |name: &str, value: u64| {
        // Writing to a string can't fail.
        let _ = writeln!(table, "{name:<32}{value:>12}");
    };
    row("faults", sum.faults.len() as u64);
    for (kind, _) in KINDS {
        let count = sum.faults.iter().filter(|known| **known == kind).count();
        row(&format!("  {}", kind.name()), count as u64);
    }
    row("ends that went on", sum.ends.into());
    row("moves of hosts", sum.moves.done.into());
    row("  that were killed", sum.moves.killed.into());
    row(
        "  that failed because of a database server",
        sum.moves.failed.into(),
    );
    row("crawls", sum.crawls.into());
    row("pages", tally.pages);
    row("requests", tally.requests);
    row("  beyond one per URL", tally.repeated);
    row("  of answers lost to a fault", tally.lost);
    row("gaps checked", tally.gaps);
    row("  across a death", tally.across);
    row("waits checked", tally.waits);
    row("late requests after a freeze", tally.late);
    row("given up for what kills", tally.given_up);
    row("archive records", tally.records);
    row("seconds", took.as_secs());
    table
}

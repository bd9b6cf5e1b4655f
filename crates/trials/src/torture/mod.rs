//! Crawls that are killed repeatedly, and whose results are compared with what the web requires.
//!
//! The built program crawls a random web of several hosts, is killed with SIGKILL at random moments
//! (just started, well under way, right after a file grew, at its end) and restarted by the same
//! command, until the required number of kills is done. Whenever a crawl ends, the web's own log,
//! the rows, the archive and the state are compared with what the web requires. Half of the crawls
//! then visit everything again, with kills as well. After that the next web begins.

mod check_archive;
mod check_crawl;
mod check_index;
mod check_pace;
mod check_rendered;
mod checked_counts_and_breaches;
mod leftover_browsers;
pub(crate) mod power_cuts;
mod program_run;
pub(crate) mod random;
mod random_web;
mod shared_frontier;

use std::ffi::OsString;
use std::fmt::{Display, Write as _};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use self::checked_counts_and_breaches::CheckedCounts;
use self::leftover_browsers::BrowserProcessGroups;
use self::program_run::{CrawlCommand, KillPlan, KillTrigger, ProgramEnd, TimesAroundKill};
use self::random::SeededRandom;
use self::random_web::RandomWeb;
use crate::simulate::fresh_seed;
use xtask::browser_tests;
use xtask::workspace::{Workspace, run as run_program};

/// Arguments of `cargo xtask torture`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of kills; with --shared, number of faults of all kinds
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        visible_alias = "faults"
    )]
    kills: u32,
    /// Let four workers share each crawl, and break their database server, network and disks too
    #[arg(long)]
    shared: bool,
    /// With --shared: number of server groups per crawl, between which hosts are moved
    #[arg(long, value_name = "N", default_value_t = 1, requires = "shared", value_parser = clap::value_parser!(u8).range(1..=4))]
    groups: u8,
    /// Render pages that scripts build, with the browser from the step `chromium`
    #[arg(long, conflicts_with = "shared")]
    rendering: bool,
    /// Seed of webs and moments, random by default
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Number of crawls at a time; with --shared always one
    #[arg(long, value_name = "N", default_value_t = 2, conflicts_with = "shared")]
    jobs: u32,
    /// Build the program with optimisation
    #[arg(long)]
    release: bool,
    /// Kill this program instead of building one first
    #[arg(long, value_name = "FILE", conflicts_with = "release")]
    program: Option<PathBuf>,
    /// Folder for the crawls, which are removed if no check fails [default: below target/]
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// The results of all crawls.
#[derive(Default)]
struct TortureTotals {
    /// Kills done, and kills planned for the runs in progress.
    kills: u32,
    starts: u32,
    crawls: u32,
    tally: CheckedCounts,
    longest_restart: Duration,
    aims: Vec<(&'static str, u32)>,
    broken: bool,
}

/// State shared by all crawls.
struct TortureRun<'a> {
    program: &'a Path,
    dir: &'a Path,
    kills: u32,
    /// The variables with which the program finds a browser, if pages are rendered.
    browser: Option<Vec<(&'static str, OsString)>>,
    next_web: Mutex<u64>,
    sum: Mutex<TortureTotals>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    if args.shared {
        return shared_frontier::run(workspace, args);
    }
    let seed = args.seed.unwrap_or_else(fresh_seed);
    eprintln!("seed {seed}");
    let program = match &args.program {
        Some(program) => program.clone(),
        None => build(workspace, args.release)?,
    };
    let dir = args.dir.clone();
    let dir = dir.unwrap_or_else(|| workspace.target.join("torture"));
    // Make the path absolute, because the crawls run in other folders.
    let dir = std::path::absolute(dir)?;
    let started = Instant::now();
    let torture = TortureRun {
        program: &program,
        dir: &dir,
        kills: args.kills,
        browser: match args.rendering {
            true => Some(browser_tests::variables(workspace)?.into()),
            false => None,
        },
        next_web: Mutex::new(seed),
        sum: Mutex::default(),
    };
    thread::scope(|scope| {
        let jobs: Vec<_> = (0..args.jobs.max(1))
            .map(|_| scope.spawn(|| torture.turn()))
            .collect();
        jobs.into_iter().try_for_each(|job| {
            job.join()
                .unwrap_or_else(|_| bail!("the check itself panicked"))
        })
    })?;
    let table = table(&torture.sum(), started.elapsed());
    io::stdout().write_all(table.as_bytes())?;
    Ok(())
}

impl TortureRun<'_> {
    /// Crawls one web after another, until the requested number of kills is reached.
    fn turn(&self) -> Result<()> {
        while let Some(seed) = self.next_web() {
            let dir = self.dir.join(seed.to_string());
            let done = self.torment(seed, &dir);
            if let Err(error) = done {
                self.sum().broken = true;
                return Err(error.context(format!(
                    "a crawl broke a rule; its directory is {}\nsame web again: --seed {seed}",
                    dir.display()
                )));
            }
            fs::remove_dir_all(&dir)?;
        }
        Ok(())
    }

    /// Returns the seed of the next web. `None` after enough kills (and at least one start), or
    /// after a failure.
    fn next_web(&self) -> Option<u64> {
        let mut next = self.next_web.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = self.sum();
        let more = (sum.kills < self.kills || sum.starts == 0) && !sum.broken;
        more.then(|| {
            *next += 1;
            *next - 1
        })
    }

    fn sum(&self) -> MutexGuard<'_, TortureTotals> {
        self.sum.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one crawl with kills, from its first start to the final check.
    fn torment(&self, seed: u64, dir: &Path) -> Result<()> {
        if dir.exists() {
            bail!("{} exists already; remove it first", dir.display());
        }
        fs::create_dir_all(dir.join("home"))?;
        let web = match self.browser {
            Some(_) => RandomWeb::draw_scripted(seed)?,
            None => RandomWeb::draw(seed)?,
        };
        let program = CrawlCommand::new(self.program, dir, &web);
        let program = program.with(self.browser.as_deref().unwrap_or_default());
        let mut dice = SeededRandom::of(seed ^ 0x6b69_6c6c);
        let mut deaths: Vec<TimesAroundKill> = Vec::new();
        self.lives(&program, &web, &mut dice, &mut deaths)?;
        let mut tally = check_crawl::finished(&web, &program, &deaths)?;
        if dice.below(2) == 0 {
            let again = program.recrawling();
            self.lives(&again, &web, &mut dice, &mut deaths)?;
            tally.visited_again = check_crawl::rounds(&web, &again, &deaths)?;
        }
        BrowserProcessGroups::below(&program.temporary()).wait()?;
        eprintln!(
            "web {seed}: {} hosts, {} kills, {} pages, {} requests",
            web.web.hosts(),
            deaths.len(),
            tally.pages,
            tally.requests
        );
        let mut sum = self.sum();
        sum.tally.add(&tally);
        sum.crawls += 1;
        Ok(())
    }

    /// Starts the program repeatedly, with kills, until it ends on its own.
    fn lives(
        &self,
        program: &CrawlCommand,
        web: &RandomWeb,
        dice: &mut SeededRandom,
        deaths: &mut Vec<TimesAroundKill>,
    ) -> Result<()> {
        loop {
            let kill = self.kill(dice);
            let program = program.with_random_compression(dice);
            let life = program.live(web, kill.as_ref())?;
            let mut sum = self.sum();
            if !deaths.is_empty() {
                sum.longest_restart = sum.longest_restart.max(life.opening.unwrap_or_default());
            }
            match (life.end, kill) {
                (ProgramEnd::Killed(death), Some(kill)) => {
                    deaths.push(death);
                    sum.note(kill.aim.name());
                    drop(sum);
                    if web.index {
                        check_index::holds_no_more(&program.output())?;
                    }
                }
                (_, kill) => {
                    sum.kills -= u32::from(kill.is_some());
                    return Ok(());
                }
            }
        }
    }

    /// Draws when to kill the program next. `None` if all kills are done.
    fn kill(&self, dice: &mut SeededRandom) -> Option<KillPlan> {
        let mut sum = self.sum();
        sum.starts += 1;
        (sum.kills < self.kills).then(|| {
            sum.kills += 1;
            let is_rendering = self.browser.is_some();
            KillPlan {
                aim: KillTrigger::draw(dice, is_rendering),
                with_browser: is_rendering && dice.below(4) == 0,
            }
        })
    }
}

impl TortureTotals {
    fn note(&mut self, name: &'static str) {
        match self.aims.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => self.aims.push((name, 1)),
        }
    }
}

fn build(workspace: &Workspace, release: bool) -> Result<PathBuf> {
    let mut command = workspace.cargo(&["build", "--locked", "--package", "crawl"]);
    if release {
        command.arg("--release");
    }
    run_program(&mut command)?;
    let folder = if release { "release" } else { "debug" };
    let program = workspace.target.join(folder).join("crawl");
    ensure!(program.exists(), "{} is missing", program.display());
    Ok(program)
}

fn table(sum: &TortureTotals, took: Duration) -> String {
    let tally = &sum.tally;
    let opening = sum.longest_restart.as_secs_f64();
    let mut table = String::new();
    let mut row = |name: &str, value: &dyn Display| {
        // Writing to a string can't fail.
        let _ = writeln!(table, "{name:<32}{value:>12}");
    };
    row("kills", &sum.kills);
    for (name, count) in &sum.aims {
        row(&format!("  {name}"), count);
    }
    row("restarts", &sum.starts.saturating_sub(sum.crawls));
    row("crawls", &sum.crawls);
    row("pages", &tally.pages);
    row("  visited again", &tally.visited_again);
    row("  rendered", &tally.rendered);
    row("requests", &tally.requests);
    row("  beyond one per URL", &tally.repeated);
    row("  of answers lost to a kill", &tally.lost);
    row("gaps checked", &tally.gaps);
    row("  across a kill", &tally.across);
    row("waits checked", &tally.waits);
    row("given up for what kills", &tally.given_up);
    row("archive records", &tally.records);
    row("pages in search indexes", &tally.indexed);
    row("longest opening after a kill", &format!("{opening:.3} s"));
    row("time", &format!("{:.1} s", took.as_secs_f64()));
    table
}

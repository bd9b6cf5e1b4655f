//! Crawls that resume from the files that a power cut left.
//!
//! The built program crawls a small web once, while every change to its directory is recorded. The
//! recording is used to rebuild the directory as a power cut at a random moment may leave it. The
//! same command resumes the crawl there, and the result is checked against the web and against the
//! rows committed before the cut. Every third resumed crawl is recorded too and cut again. In
//! another third of the cases, the cut damages a commit.

mod disk_model;
mod recorded_disk_changes;
mod system_calls;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use xtask::debian_packages;
use xtask::workspace::Workspace;

use self::disk_model::FolderImage;
use self::recorded_disk_changes::RecordedDiskChanges;
use super::check_crawl;
use super::program_run::{CrawlCommand, ProgramEnd};
use super::random::SeededRandom;
use super::random_web::RandomWeb;
use crate::simulate::fresh_seed;

/// Number of cuts per recorded crawl. After this many, a crawl with the next seed is recorded.
const CUTS_OF_ONE: u32 = 50;

/// The folder of the crawl, as in [`CrawlCommand`].
const CRAWL: &str = "crawl";

/// Arguments of `cargo xtask power-cuts`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of power cuts
    #[arg(long, value_name = "N", default_value_t = 100)]
    cuts: u32,
    /// Seed of webs, moments and losses, random by default
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Number of crawls to resume at a time
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: u32,
    /// Try this program instead of building one first
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Folder for the crawls, which are removed if no check fails [default: below target/]
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Counts of what was tried.
#[derive(Default)]
struct Tally {
    cuts: u32,
    /// Cuts during a crawl that had resumed after another cut.
    second: u32,
    /// Cuts right after a commit, with one sector of the commit lost.
    torn: u32,
    changes: usize,
    pages: u64,
    /// Page rows that were committed before the cuts, so that the cuts must not lose them.
    promised: usize,
}

/// The kind of a power cut.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// The cut leaves any possible state of the recorded crawl.
    Once,
    /// The cut leaves any possible state of a crawl that had resumed after another cut.
    Twice,
    /// The cut loses one sector of the last commit, and nothing else.
    TornCommit,
}

/// The program, and the tool that records it.
struct RecordingTools {
    program: PathBuf,
    strace: PathBuf,
    libraries: String,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let seed = args.seed.unwrap_or_else(fresh_seed);
    eprintln!("seed {seed}");
    let program = match &args.program {
        Some(program) => program.clone(),
        None => super::build(workspace, false)?,
    };
    let (strace, libraries) = debian_packages::strace(workspace)?;
    let tools = RecordingTools {
        program: program.canonicalize()?,
        strace,
        libraries,
    };
    let dir = args.dir.clone();
    let dir = dir.unwrap_or_else(|| workspace.target.join("power-cuts"));
    let started = Instant::now();
    let mut sum = Tally::default();
    let mut seeds = seed..;
    while sum.cuts < args.cuts
        && let Some(seed) = seeds.next()
    {
        let cuts = (args.cuts - sum.cuts).min(CUTS_OF_ONE);
        let dir = dir.join(seed.to_string());
        let tally = tools.cut(seed, &dir, cuts, args.jobs).with_context(|| {
            let dir = dir.display();
            format!("a crawl broke; it lies in {dir}\nsame web again: --seed {seed}")
        })?;
        sum.add(&tally);
    }
    io::stdout().write_all(table(&sum, started.elapsed()).as_bytes())?;
    Ok(())
}

impl RecordingTools {
    /// Records one crawl, and simulates power cuts at `cuts` points of the recording.
    fn cut(&self, seed: u64, dir: &Path, cuts: u32, jobs: u32) -> Result<Tally> {
        if dir.exists() {
            bail!("{} exists already; remove it first", dir.display());
        }
        fs::create_dir_all(dir)?;
        let dir = &dir.canonicalize()?;
        let web = RandomWeb::quick(seed)?;
        let mut dice = SeededRandom::of(seed);
        let first = dir.join("recorded");
        let recording = self.record(&web, &first, &FolderImage::default(), &mut dice)?;
        // A resumed crawl relies on the last commit of the index, so a power cut must not undo it.
        recording.ensure_renamed("meta.json")?;
        let next = AtomicU32::new(0);
        let mut sum = Tally {
            changes: recording.changes.len(),
            ..Tally::default()
        };
        let job = || {
            let mut tally = Tally::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= cuts {
                    return Ok(tally);
                }
                let dir = dir.join(number.to_string());
                let dice = SeededRandom::of(seed ^ (u64::from(number) << 32));
                let kind = match number % 3 {
                    0 => Cut::Once,
                    1 => Cut::Twice,
                    _ => Cut::TornCommit,
                };
                let done = self.go_on(&web, &recording, &dir, dice, kind);
                match done {
                    Ok(more) => tally.add(&more),
                    Err(error) => {
                        next.store(cuts, Ordering::Relaxed);
                        return Err(error.context(format!("after cut {number}")));
                    }
                }
            }
        };
        thread::scope(|scope| {
            let jobs: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(job)).collect();
            let ends: Vec<Result<Tally>> = jobs
                .into_iter()
                .map(|job| {
                    job.join()
                        .unwrap_or_else(|_| bail!("the check itself panicked"))
                })
                .collect();
            ends.into_iter()
                .try_for_each(|tally| tally.map(|tally| sum.add(&tally)))
        })?;
        fs::remove_dir_all(dir)?;
        Ok(sum)
    }

    /// Draws a power cut of this kind, resumes the crawl after it, and checks the result.
    fn go_on(
        &self,
        web: &RandomWeb,
        recording: &RecordedDiskChanges,
        dir: &Path,
        mut dice: SeededRandom,
        kind: Cut,
    ) -> Result<Tally> {
        let draw = |recording: &RecordedDiskChanges, dice: &mut SeededRandom| {
            let cut = recording.moment(dice);
            let promised = recording.promised(cut, "pages.jsonl");
            (recording.changes.image(cut, dice), promised)
        };
        let (mut image, mut promised) = match kind {
            Cut::Once | Cut::Twice => draw(recording, &mut dice),
            Cut::TornCommit => {
                let torn = recording.torn_commit(&mut dice);
                let (cut, image) =
                    torn.context("no commit has a text that is longer than a sector")?;
                (image, recording.promised(cut, "pages.jsonl"))
            }
        };
        if kind == Cut::Twice {
            let first = dir.join("first");
            let again = self.record(web, &first, &image, &mut dice)?;
            let (image_again, promised_again) = draw(&again, &mut dice);
            image = image_again;
            if promised_again.len() > promised.len() {
                promised = promised_again;
            }
        }
        // Keep the state at the cut, to investigate failures.
        image.write(&dir.join("cut"))?;
        let program = self.program(web, dir, &image, &mut dice)?;
        finish(&program, web)?;
        let pages = check_crawl::after_power_cut(web, &program, &promised)?;
        fs::remove_dir_all(dir)?;
        Ok(Tally {
            cuts: 1,
            second: u32::from(kind == Cut::Twice),
            torn: u32::from(kind == Cut::TornCommit),
            pages,
            promised: promised.split(|byte| *byte == b'\n').count() - 1,
            ..Tally::default()
        })
    }

    /// Starts or resumes a crawl in a new folder, and records it.
    fn record(
        &self,
        web: &RandomWeb,
        dir: &Path,
        before: &FolderImage,
        dice: &mut SeededRandom,
    ) -> Result<RecordedDiskChanges> {
        let program = self.program(web, dir, before, dice)?;
        let trace = dir.join("trace");
        let variable = ("LD_LIBRARY_PATH", self.libraries.clone().into());
        let recorded =
            program.started_by(self.strace.clone(), system_calls::options(&trace), variable);
        finish(&recorded, web)?;
        let trace = fs::read_to_string(&trace).context("the trace")?;
        let recording = RecordedDiskChanges::read(&trace, dir, CRAWL, before)?;
        let actual = FolderImage::read(&program.output(), CRAWL)?;
        let same = recording.changes.end().ensure_same(&actual);
        same.context("the recording does not lead to what the crawl left")?;
        Ok(recording)
    }

    fn program(
        &self,
        web: &RandomWeb,
        dir: &Path,
        image: &FolderImage,
        dice: &mut SeededRandom,
    ) -> Result<CrawlCommand> {
        fs::create_dir_all(dir.join("home"))?;
        image.write(dir)?;
        Ok(CrawlCommand::new(&self.program, dir, web).with_random_compression(dice))
    }
}

/// Runs a crawl to its end.
fn finish(program: &CrawlCommand, web: &RandomWeb) -> Result<()> {
    match program.live(web, None)?.end {
        ProgramEnd::Finished => Ok(()),
        ProgramEnd::Killed(_) => bail!("somebody else killed the crawl"),
    }
}

impl Tally {
    fn add(&mut self, more: &Tally) {
        self.cuts += more.cuts;
        self.second += more.second;
        self.torn += more.torn;
        self.changes += more.changes;
        self.pages += more.pages;
        self.promised += more.promised;
    }
}

fn table(sum: &Tally, took: Duration) -> String {
    let rows = [
        ("power cuts", sum.cuts.to_string()),
        ("  second ones", sum.second.to_string()),
        ("  torn commits", sum.torn.to_string()),
        ("changes to choose from", sum.changes.to_string()),
        ("pages", sum.pages.to_string()),
        ("  committed before the cut", sum.promised.to_string()),
        ("time", format!("{:.1} s", took.as_secs_f64())),
    ];
    let line = |(name, value): &(&str, String)| format!("{name:<32}{value:>12}\n");
    rows.iter().map(line).collect()
}

//! Crawls that are killed again and again, and held against the truth.
//!
//! The built program crawls a drawn web of several hosts, is killed with SIGKILL at drawn
//! moments (just begun, well under way, right after a file grew, at its end) and started again
//! by the same command, until so many kills are done. Whenever a crawl comes to its end, the
//! web's own log, the rows, the archive and the state are held against what the web says must
//! be found, and the next web begins.

mod archive;
mod check;
mod dice;
mod life;
mod pace;
mod web;

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use self::check::Tally;
use self::dice::Dice;
use self::life::{Aim, End, Program};
use self::web::Web;
use crate::simulate::fresh_seed;
use crate::workspace::{Workspace, run as run_program};

/// How much, and of what.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Kill so often
    #[arg(long, value_name = "N", default_value_t = 100)]
    kills: u32,
    /// What webs and moments are drawn from; another one each time, if it is not given
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Build the program optimised
    #[arg(long)]
    release: bool,
    /// Where the crawls are made, and removed again if all is well [default: below target/]
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// What became of all crawls.
#[derive(Default)]
struct Sum {
    kills: u32,
    starts: u32,
    crawls: u32,
    tally: Tally,
    longest_restart: Duration,
    aims: Vec<(&'static str, u32)>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let seed = args.seed.unwrap_or_else(fresh_seed);
    eprintln!("seed {seed}");
    let program = build(workspace, args.release)?;
    let dir = args.dir.clone();
    let dir = dir.unwrap_or_else(|| workspace.target.join("torture"));
    let started = Instant::now();
    let mut sum = Sum::default();
    // The next web has the next seed.
    for web in seed.. {
        if sum.kills >= args.kills && sum.crawls > 0 {
            break;
        }
        let dir = dir.join(web.to_string());
        torment(&program, &dir, web, args.kills, &mut sum).with_context(|| {
            format!(
                "web {web} broke after {} kills in all; its crawl lies in {}\nsame again: --seed {web}",
                sum.kills,
                dir.display()
            )
        })?;
        fs::remove_dir_all(&dir)?;
    }
    io::stdout().write_all(table(&sum, started.elapsed()).as_bytes())?;
    Ok(())
}

/// A short run from a fresh seed, which is printed.
pub(crate) fn small(workspace: &Workspace) -> Result<()> {
    let args = Args {
        kills: 12,
        seed: None,
        release: false,
        dir: None,
    };
    run(workspace, &args)
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

/// One crawl from its first start to its checked end.
fn torment(program: &Path, dir: &Path, seed: u64, kills: u32, sum: &mut Sum) -> Result<()> {
    if dir.exists() {
        bail!("{} exists already; remove it first", dir.display());
    }
    fs::create_dir_all(dir.join("home"))?;
    let web = Web::draw(seed)?;
    let program = Program::new(program, dir, &web);
    let mut dice = Dice::of(seed ^ 0x6b69_6c6c);
    let mut deaths = Vec::new();
    let mut done = false;
    while !done {
        let aim = (sum.kills < kills).then(|| Aim::draw(&mut dice));
        sum.starts += 1;
        let life = program.live(&web, aim.as_ref())?;
        match life.end {
            End::Killed(death) => {
                deaths.push(death);
                sum.kills += 1;
                note(&mut sum.aims, aim.map_or("", |aim| aim.name()));
            }
            End::Finished => done = true,
        }
        if deaths.len() > usize::from(!done) {
            sum.longest_restart = sum.longest_restart.max(life.until_first_request);
        }
    }
    let tally = check::finished(&web, &program, &deaths)?;
    eprintln!(
        "web {seed}: {} hosts, {} kills, {} pages, {} requests",
        web.web.hosts(),
        deaths.len(),
        tally.pages,
        tally.requests
    );
    sum.tally.add(&tally);
    sum.crawls += 1;
    Ok(())
}

fn note(aims: &mut Vec<(&'static str, u32)>, name: &'static str) {
    match aims.iter_mut().find(|(known, _)| *known == name) {
        Some((_, count)) => *count += 1,
        None => aims.push((name, 1)),
    }
}

fn table(sum: &Sum, took: Duration) -> String {
    let tally = &sum.tally;
    let mut rows = vec![("kills".to_owned(), sum.kills.to_string())];
    rows.extend(
        sum.aims
            .iter()
            .map(|(name, count)| (format!("  {name}"), count.to_string())),
    );
    rows.extend([
        (
            "restarts".to_owned(),
            sum.starts.saturating_sub(sum.crawls).to_string(),
        ),
        ("crawls".to_owned(), sum.crawls.to_string()),
        ("pages".to_owned(), tally.pages.to_string()),
        ("requests".to_owned(), tally.requests.to_string()),
        (
            "  beyond one per URL".to_owned(),
            tally.repeated.to_string(),
        ),
        ("gaps checked".to_owned(), tally.gaps.to_string()),
        ("  across a kill".to_owned(), tally.across.to_string()),
        ("waits checked".to_owned(), tally.waits.to_string()),
        ("archive records".to_owned(), tally.records.to_string()),
        (
            "longest restart".to_owned(),
            format!("{:.3} s", sum.longest_restart.as_secs_f64()),
        ),
        ("time".to_owned(), format!("{:.1} s", took.as_secs_f64())),
    ]);
    let mut table = String::new();
    for (name, value) in rows {
        // Writing to a string does not fail.
        let _ = writeln!(table, "{name:<32}{value:>12}");
    }
    table
}

//! The gate: every check, in order, with its time.
//!
//! All builds of one kind name the whole workspace. A build of one package alone would choose other
//! features of shared libraries, and so build most of them a second time.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::workspace::{self, Workspace};
use crate::{boundaries, browser, debian, dependencies, docker, docs, tools};

/// One check, or one thing that checks need.
struct Step {
    name: &'static str,
    kind: Kind,
    run: fn(&Workspace) -> Result<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Needs no more than this checkout and Rust.
    Light,
    /// Fetches what heavy steps need. It waits for others' servers, so in a whole run it goes on
    /// beside the builds.
    Fetch,
    /// Needs what was fetched, so `--quick` leaves it out.
    Heavy,
}

/// In their order. What fails soonest and most often comes first.
const STEPS: [Step; 21] = [
    step("fmt", Kind::Light, fmt),
    step("boundaries", Kind::Light, boundaries::check),
    step("docs", Kind::Light, docs::check),
    step("dependencies", Kind::Light, dependencies::check),
    step("debian-packages", Kind::Fetch, debian::fetch),
    step("chromium", Kind::Fetch, browser::fetch),
    step("python-tools", Kind::Fetch, tools::python),
    step("replayweb-page", Kind::Fetch, tools::replayweb_page),
    step("clippy", Kind::Light, clippy),
    step("test", Kind::Light, test),
    step("programs", Kind::Light, programs),
    step("simulate", Kind::Light, simulate),
    step("torture", Kind::Light, torture),
    step("examples", Kind::Light, examples),
    step("doctest", Kind::Light, doctest),
    step("doc", Kind::Light, doc),
    step("docker", Kind::Heavy, docker::check),
    step("power-cuts", Kind::Heavy, power_cuts),
    step("test-with-servers", Kind::Heavy, test_with_servers),
    step("browser", Kind::Heavy, browser::test),
    step("search-quality", Kind::Heavy, search_quality),
];

const fn step(name: &'static str, kind: Kind, run: fn(&Workspace) -> Result<()>) -> Step {
    Step { name, kind, run }
}

pub(crate) fn list() {
    for step in &STEPS {
        eprintln!(
            "{}{}",
            step.name,
            match step.kind {
                Kind::Light => "",
                Kind::Fetch | Kind::Heavy => "  (not with --quick)",
            }
        );
    }
}

/// Runs all steps, or the light ones, or those that are named; stops at the first that fails.
pub(crate) fn run(workspace: &Workspace, quick: bool, named: &[String]) -> Result<()> {
    if let Some(name) = named
        .iter()
        .find(|name| STEPS.iter().all(|step| step.name != **name))
    {
        bail!("there is no step {name}\nhint: cargo xtask test --list");
    }
    let is_whole = named.is_empty() && !quick;
    let wanted = |step: &&Step| match named.is_empty() {
        true => step.kind == Kind::Light || (is_whole && step.kind == Kind::Heavy),
        false => named.iter().any(|name| name == step.name),
    };
    let steps: Vec<&Step> = STEPS.iter().filter(wanted).collect();
    let mut fetching = is_whole.then(|| Fetching::start(workspace)).transpose()?;
    let start = Instant::now();
    let mut times: Vec<(&str, Duration)> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        if step.kind == Kind::Heavy
            && let Some(fetching) = fetching.take()
        {
            let begin = Instant::now();
            fetching.finish()?;
            times.push((
                "waiting for what was fetched beside the builds",
                begin.elapsed(),
            ));
        }
        eprintln!("\n==== {}/{} {} ====", at + 1, steps.len(), step.name);
        let begin = Instant::now();
        let done = (step.run)(workspace);
        times.push((step.name, begin.elapsed()));
        if let Err(error) = done {
            return Err(error.context(format!("step {} failed", step.name)));
        }
    }
    eprintln!(
        "\n==== all {} steps passed in {} s ====",
        steps.len(),
        start.elapsed().as_secs()
    );
    for (name, time) in times {
        eprintln!("{:>7.1} s  {name}", time.as_secs_f64());
    }
    Ok(())
}

/// The steps that fetch, in a process beside this one.
struct Fetching {
    child: Child,
    log: PathBuf,
}

impl Fetching {
    fn start(workspace: &Workspace) -> Result<Fetching> {
        let log = workspace.target.join("fetch.log");
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("test").stdin(Stdio::null());
        for step in STEPS.iter().filter(|step| step.kind == Kind::Fetch) {
            command.args(["--step", step.name]);
        }
        eprintln!("fetching what heavy steps need; see {}", log.display());
        let child = command
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .context("cannot start the steps that fetch")?;
        Ok(Fetching { child, log })
    }

    /// Waits for the end, and shows what was printed.
    fn finish(mut self) -> Result<()> {
        let status = self.child.wait()?;
        let said = fs::read(&self.log).unwrap_or_default();
        eprintln!("\n{}", String::from_utf8_lossy(&said).trim());
        match status.success() {
            true => Ok(()),
            false => bail!("fetching failed: {status}"),
        }
    }
}

impl Drop for Fetching {
    /// A gate that failed waits for no download.
    fn drop(&mut self) {
        // After `finish` there is nothing left to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn fmt(workspace: &Workspace) -> Result<()> {
    run_cargo(workspace, "fmt --all --check")
}

fn clippy(workspace: &Workspace) -> Result<()> {
    run_cargo(
        workspace,
        "clippy --workspace --all-targets --locked -- -D warnings",
    )
}

fn test(workspace: &Workspace) -> Result<()> {
    run_cargo(workspace, "test --workspace --lib --bins --tests --locked")
}

fn test_with_servers(workspace: &Workspace) -> Result<()> {
    let mut command = cargo(
        workspace,
        // What is skipped runs within a process that another test limits.
        "test --workspace --lib --bins --tests --locked -- --ignored --skip descriptors::",
    );
    command.envs(browser::environment(workspace)?);
    command.env(
        "CRAWL_PYWB_PYTHON",
        workspace.target.join("pywb/bin/python"),
    );
    command.env("CRAWL_REPLAYWEB", tools::replayweb_folder(workspace));
    command.envs(debian::environment(workspace)?);
    workspace::run(&mut command)
}

/// Builds the programs that the next steps start. Examples are named for their dependencies: with
/// those the libraries are the ones that the tests were built with.
fn programs(workspace: &Workspace) -> Result<()> {
    run_cargo(workspace, "build --workspace --bins --examples --locked")
}

fn simulate(workspace: &Workspace) -> Result<()> {
    run_trial(workspace, "simulate --hosts 1000 --urls 20000")
}

fn torture(workspace: &Workspace) -> Result<()> {
    let mut command = trial(workspace, "torture --kills 12 --program");
    workspace::run(command.arg(built(workspace, "crawl")))
}

fn power_cuts(workspace: &Workspace) -> Result<()> {
    let mut command = trial(workspace, "power-cuts --cuts 12 --program");
    workspace::run(command.arg(built(workspace, "crawl")))
}

/// Holds the ranking's lead over plain BM25, with the queries of Python's documentation.
fn search_quality(workspace: &Workspace) -> Result<()> {
    run_trial(workspace, "bench search --check --only Python")
}

fn doctest(workspace: &Workspace) -> Result<()> {
    run_cargo(workspace, "test --workspace --doc --locked")
}

fn doc(workspace: &Workspace) -> Result<()> {
    let mut command = cargo(workspace, "doc --workspace --no-deps --locked");
    workspace::run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Runs each example; one that lost its way ends with an error.
fn examples(workspace: &Workspace) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(workspace.root.join("examples"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(
                path.file_stem()
                    .map(|name| name.to_string_lossy().into_owned()),
            );
        }
    }
    names.sort_unstable();
    for name in names {
        let program = built(workspace, &format!("examples/{name}"));
        workspace::run(&mut workspace.program(program))?;
    }
    Ok(())
}

fn run_cargo(workspace: &Workspace, args: &str) -> Result<()> {
    workspace::run(&mut cargo(workspace, args))
}

fn cargo(workspace: &Workspace, args: &str) -> Command {
    let mut command = workspace.cargo(&args.split(' ').collect::<Vec<_>>());
    // Each crate is built once here, so what would speed up its next build only costs time.
    command.env("CARGO_INCREMENTAL", "0");
    command
}

fn run_trial(workspace: &Workspace, args: &str) -> Result<()> {
    workspace::run(&mut trial(workspace, args))
}

fn trial(workspace: &Workspace, args: &str) -> Command {
    let mut command = workspace.program(built(workspace, "crawl-trials"));
    command.args(args.split(' '));
    command
}

/// A program that the step `programs` built.
fn built(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.target.join("debug").join(name)
}

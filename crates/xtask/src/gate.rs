//! The gate: every check, in order, with its time.
//!
//! Every build is a build of the whole workspace. For a single package, Cargo would select other
//! features of shared libraries and rebuild most of them.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::watchdog::{MAX_RUN, MAX_TESTS, Watchdog};
use crate::workspace::{self, Workspace};
use crate::{
    browser_tests, container_file_check, crate_dependency_check, debian_packages,
    dependency_policy_check, docs_check, limits_page, pinned_tools, prose,
};

/// A check, or preparations for checks.
struct GateStep {
    name: &'static str,
    kind: StepKind,
    place: StepPhase,
    run: fn(&Workspace) -> Result<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StepKind {
    /// Needs only this checkout and Rust.
    Light,
    /// Fetches files that heavy steps need.
    Fetch,
    /// Needs fetched files, so `--quick` skips it.
    Heavy,
}

/// When a step runs if no steps were named explicitly.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StepPhase {
    /// One after the other, before all tests.
    InTurn,
    /// Concurrent with the builds, because such a step waits for remote servers.
    BesideBuilds,
    /// After everything is built and fetched.
    Tests,
    /// Concurrent with the tests, but one after the other. Tests often wait and leave a processor
    /// idle.
    BesideTests,
    /// Concurrent with the tests and with all [`StepPhase::BesideTests`] steps, because this step
    /// alone takes about as long as all [`StepPhase::BesideTests`] steps together.
    BesideAll,
}

/// All steps in execution order. Steps that often fail, and fail quickly, come first.
const STEPS: [GateStep; 25] = [
    step("fmt", StepKind::Light, fmt),
    step("boundaries", StepKind::Light, crate_dependency_check::check),
    step("docs", StepKind::Light, docs),
    step("make", StepKind::Light, debian_packages::make),
    step("debian-packages", StepKind::Fetch, debian_packages::fetch).beside_builds(),
    step("chromium", StepKind::Fetch, browser_tests::fetch).beside_builds(),
    step("python-tools", StepKind::Fetch, pinned_tools::python).beside_builds(),
    step(
        "dependencies",
        StepKind::Heavy,
        dependency_policy_check::check,
    )
    .beside_builds(),
    step("npm-packages", StepKind::Fetch, pinned_tools::npm_packages).beside_builds(),
    step("clippy", StepKind::Light, clippy),
    step("build", StepKind::Light, build),
    step("simulate", StepKind::Light, simulate).beside_tests(),
    step("torture", StepKind::Light, torture).beside_tests(),
    step("examples", StepKind::Light, examples).beside_tests(),
    step("doctest", StepKind::Light, doctest).beside_tests(),
    step("doc", StepKind::Light, doc).beside_tests(),
    step("docker", StepKind::Heavy, container_file_check::check).beside_tests(),
    step("power-cuts", StepKind::Heavy, power_cuts).beside_tests(),
    step("torture-shared", StepKind::Heavy, torture_shared).beside_tests(),
    step("torture-rendering", StepKind::Heavy, torture_rendering).beside_tests(),
    step("test-with-servers", StepKind::Heavy, test_with_servers).beside_all(),
    step("browser", StepKind::Heavy, browser_tests::test).beside_tests(),
    step("search-quality", StepKind::Heavy, search_quality).beside_tests(),
    step("test", StepKind::Light, test).tests(),
    // Run `smallest` after `test`. The steps that run concurrently with the tests usually take
    // longer than `test`, but leave a processor idle.
    step("smallest", StepKind::Light, smallest).tests(),
];

const fn step(name: &'static str, kind: StepKind, run: fn(&Workspace) -> Result<()>) -> GateStep {
    let place = StepPhase::InTurn;
    GateStep {
        name,
        kind,
        place,
        run,
    }
}

impl GateStep {
    const fn beside_builds(mut self) -> GateStep {
        self.place = StepPhase::BesideBuilds;
        self
    }

    const fn tests(mut self) -> GateStep {
        self.place = StepPhase::Tests;
        self
    }

    const fn beside_tests(mut self) -> GateStep {
        self.place = StepPhase::BesideTests;
        self
    }

    const fn beside_all(mut self) -> GateStep {
        self.place = StepPhase::BesideAll;
        self
    }

    /// Returns the maximum duration of the step.
    fn most(&self) -> Duration {
        match self.place {
            StepPhase::Tests | StepPhase::BesideTests | StepPhase::BesideAll => MAX_TESTS,
            StepPhase::InTurn | StepPhase::BesideBuilds => MAX_RUN,
        }
    }
}

pub(crate) fn list() {
    for step in &STEPS {
        eprintln!(
            "{}{}",
            step.name,
            match step.kind {
                StepKind::Light => "",
                StepKind::Fetch | StepKind::Heavy => "  (not with --quick)",
            }
        );
    }
}

/// Runs all steps, or only the light ones (`quick`), or only the `named` ones. Stops at the first
/// failure.
pub(crate) fn run(workspace: &Workspace, quick: bool, named: &[String]) -> Result<()> {
    if let Some(name) = named
        .iter()
        .find(|name| STEPS.iter().all(|step| step.name != **name))
    {
        bail!("there is no step {name}\nhint: cargo xtask test --list");
    }
    let start = Instant::now();
    let watchdog = Watchdog::start();
    let mut times = Vec::new();
    if named.is_empty() {
        let wanted: Vec<&GateStep> = STEPS
            .iter()
            .filter(|step| !quick || step.kind == StepKind::Light)
            .collect();
        run_most_at_once(workspace, &watchdog, &wanted, &mut times)?;
    } else {
        let is_named = |step: &&GateStep| named.iter().any(|name| name == step.name);
        let steps = STEPS.iter().filter(is_named);
        run_in_turn(workspace, &watchdog, steps, &mut times)?;
    }
    eprintln!(
        "\n==== all steps passed in {} s ====",
        start.elapsed().as_secs()
    );
    for (name, time) in times {
        eprintln!("{:>7.1} s  {name}", time.as_secs_f64());
    }
    Ok(())
}

type Times = Vec<(&'static str, Duration)>;

fn run_in_turn(
    workspace: &Workspace,
    watchdog: &Watchdog,
    steps: impl Iterator<Item = &'static GateStep>,
    times: &mut Times,
) -> Result<()> {
    for step in steps {
        eprintln!("\n==== {} ====", step.name);
        let begin = Instant::now();
        watchdog.begin(step.name, step.most());
        let ended = (step.run)(workspace);
        watchdog.end();
        ended.with_context(|| format!("step {} failed", step.name))?;
        times.push((step.name, begin.elapsed()));
    }
    Ok(())
}

/// Runs some steps concurrently: downloads at the same time as the builds, and steps that need no
/// further build at the same time as the tests.
fn run_most_at_once(
    workspace: &Workspace,
    watchdog: &Watchdog,
    wanted: &[&'static GateStep],
    times: &mut Times,
) -> Result<()> {
    let placed = |place: StepPhase| {
        let steps = wanted.iter().copied();
        steps.filter(move |step| step.place == place)
    };
    let fetching = ConcurrentSteps::start(
        workspace,
        watchdog,
        "fetch",
        placed(StepPhase::BesideBuilds),
    )?;
    run_in_turn(workspace, watchdog, placed(StepPhase::InTurn), times)?;
    let begin = Instant::now();
    fetching.finish(watchdog)?;
    times.push(("waiting for downloads", begin.elapsed()));
    let beside = |name, place| ConcurrentSteps::start(workspace, watchdog, name, placed(place));
    let trials = beside("beside-tests", StepPhase::BesideTests)?;
    let with_servers = beside("beside-all", StepPhase::BesideAll)?;
    let tested = run_in_turn(workspace, watchdog, placed(StepPhase::Tests), times);
    let begin = Instant::now();
    // Wait even if the tests failed, so that one run reports all failures.
    let tried = trials.finish(watchdog);
    let tried = tried.and(with_servers.finish(watchdog));
    times.push(("waiting for steps beside the tests", begin.elapsed()));
    tested.and(tried)
}

/// Steps that run in a separate process, concurrently with the steps of this process.
struct ConcurrentSteps {
    /// `None` if there are no steps.
    child: Option<Child>,
    log: PathBuf,
}

impl ConcurrentSteps {
    fn start<'a>(
        workspace: &Workspace,
        watchdog: &Watchdog,
        name: &str,
        steps: impl Iterator<Item = &'a GateStep>,
    ) -> Result<ConcurrentSteps> {
        let names: Vec<&str> = steps.map(|step| step.name).collect();
        let log = workspace.target.join(format!("{name}.log"));
        if names.is_empty() {
            return Ok(ConcurrentSteps { child: None, log });
        }
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = workspace.itself();
        command.arg("test").stdin(Stdio::null());
        for name in &names {
            command.args(["--step", name]);
        }
        eprintln!("\nbeside it: {}; see {}", names.join(", "), log.display());
        let child = command
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot start {}", names.join(", ")))?;
        watchdog.note_log(&log);
        let child = Some(child);
        Ok(ConcurrentSteps { child, log })
    }

    /// Waits for the process and prints its output.
    fn finish(mut self, watchdog: &Watchdog) -> Result<()> {
        let Some(child) = &mut self.child else {
            return Ok(());
        };
        let status = child.wait()?;
        watchdog.forget_log(&self.log);
        let output = fs::read(&self.log).unwrap_or_default();
        eprintln!("\n{}", String::from_utf8_lossy(&output).trim());
        match status.success() {
            true => Ok(()),
            false => bail!("a step failed: {}", self.log.display()),
        }
    }
}

impl Drop for ConcurrentSteps {
    /// Kills the process if it is still running, so that a failed gate does not wait for downloads.
    fn drop(&mut self) {
        // If `finish` has already waited for the process, this does nothing.
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Checks the form of the documentation, its generated table, and the English of all text.
///
/// # Errors
/// If one of them fails.
pub(crate) fn docs(workspace: &Workspace) -> Result<()> {
    limits_page::check(workspace)?;
    docs_check::check(workspace)?;
    prose::check(workspace)
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

fn build(workspace: &Workspace) -> Result<()> {
    run_cargo(
        workspace,
        "test --workspace --lib --bins --tests --locked --no-run",
    )?;
    workspace.build_programs()
}

fn test(workspace: &Workspace) -> Result<()> {
    // Report all failures in one run.
    let mut command = cargo(
        workspace,
        "test --workspace --lib --bins --tests --locked --no-fail-fast",
    );
    workspace::run(command.env("RUST_TEST_THREADS", workspace::test_threads()?))
}

/// Checks the program without any of its features. No other step builds this variant.
fn smallest(workspace: &Workspace) -> Result<()> {
    run_cargo(
        workspace,
        "clippy --package crawl --no-default-features --locked -- -D warnings",
    )
}

fn test_with_servers(workspace: &Workspace) -> Result<()> {
    let mut command = cargo(
        workspace,
        // Skip the test of sixty pages at once, because another test runs it in a process with
        // limits.
        // Skip the statistics of 100 crawls, because they take minutes; their results are in
        // docs/sampling.md.
        "test --workspace --lib --bins --tests --locked -- --ignored --skip fetches_sixty_pages_at_once --skip 100_crawls",
    );
    command.env("RUST_TEST_THREADS", workspace::test_threads()?);
    command.envs(browser_tests::environment(workspace)?);
    command.env(
        "CRAWL_PYWB_PYTHON",
        workspace.target.join("pywb/bin/python"),
    );
    command.env(
        "CRAWL_DESCRIPTIONS_PYTHON",
        workspace.target.join("descriptions/bin/python"),
    );
    command.env("CRAWL_MCP_PYTHON", workspace.target.join("mcp/bin/python"));
    command.env(
        "CRAWL_SEARCH_CLIENTS_PYTHON",
        workspace.target.join("search-clients/bin/python"),
    );
    command.env(
        "CRAWL_RO_CRATE_CONTEXT",
        pinned_tools::ro_crate_context(workspace),
    );
    command.env("CRAWL_REPLAYWEB", pinned_tools::replayweb_folder(workspace));
    command.envs(debian_packages::environment(workspace)?);
    workspace::run(&mut command)
}

fn simulate(workspace: &Workspace) -> Result<()> {
    run_trial(workspace, "simulate --hosts 1000 --urls 20000")
}

fn torture(workspace: &Workspace) -> Result<()> {
    let mut command = trial(workspace, "torture --kills 12 --program");
    workspace::run(command.arg(built(workspace, "crawl")))
}

fn torture_shared(workspace: &Workspace) -> Result<()> {
    let mut command = trial(workspace, "torture --shared --kills 6 --program");
    workspace::run(command.arg(built(workspace, "crawl")))
}

fn torture_rendering(workspace: &Workspace) -> Result<()> {
    let mut command = trial(workspace, "torture --rendering --kills 4 --program");
    workspace::run(command.arg(built(workspace, "crawl")))
}

fn power_cuts(workspace: &Workspace) -> Result<()> {
    let mut command = trial(workspace, "power-cuts --cuts 12 --program");
    workspace::run(command.arg(built(workspace, "crawl")))
}

/// Checks that our ranking is better than plain BM25, with queries to Python's documentation.
fn search_quality(workspace: &Workspace) -> Result<()> {
    run_trial(workspace, "bench search --check --only Python")
}

fn doctest(workspace: &Workspace) -> Result<()> {
    run_cargo(workspace, "test --workspace --doc --locked")
}

fn doc(workspace: &Workspace) -> Result<()> {
    // Include examples: their dependencies enable the same features of the libraries as the clippy
    // run, so the libraries are not rebuilt. Exclude programs other than `crawl-trials`, because
    // each of these programs has the name of its library, so the program's documentation would
    // overwrite the library's.
    let targets = "--lib --examples --bin crawl-trials";
    let args = format!("doc --workspace --no-deps --locked {targets}");
    let mut command = cargo(workspace, &args);
    workspace::run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Runs each example. An example that fails its own checks ends with an error.
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
    workspace.cargo(&args.split(' ').collect::<Vec<_>>())
}

fn run_trial(workspace: &Workspace, args: &str) -> Result<()> {
    workspace::run(&mut trial(workspace, args))
}

fn trial(workspace: &Workspace, args: &str) -> Command {
    let mut command = workspace.program(built(workspace, "crawl-trials"));
    command.args(args.split(' '));
    command
}

/// Returns the path of a program built by the step `build`.
fn built(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.target.join("debug").join(name)
}

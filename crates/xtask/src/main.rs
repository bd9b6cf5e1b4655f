//! `cargo xtask`: tasks for working on this workspace.
//!
//! `test` is the gate: it fetches what tests need into `target/` and runs every check in order.
//! Nothing outside `target/` and Cargo's own caches is changed, and only `dist` needs root.
#![expect(clippy::print_stderr, reason = "a program for the command line")]

mod allowed_imports;
mod compose_files;
mod conformance;
mod container_file_check;
mod crate_dependency_check;
mod dependency_policy_check;
mod dist;
mod docs_check;
mod function_length;
mod fuzz;
mod gate;
mod limits_page;
mod module_imports;
mod mutants;
mod prose;
mod watchdog;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::workspace::Workspace;
use xtask::{browser_tests, debian_packages, pinned_tools, workspace};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tests and checks of this workspace")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Fetch what tests need, then run every check in order
    Test {
        /// Skip steps that need servers or downloads
        #[arg(long)]
        quick: bool,
        /// Run only these steps (may be repeated; see --list)
        #[arg(long = "step", value_name = "NAME", conflicts_with = "quick")]
        steps: Vec<String>,
        /// Print the names of the steps and do nothing
        #[arg(long)]
        list: bool,
    },
    /// Check that no crate uses what it must not use
    Boundaries,
    /// Check the documentation: line widths, links, the README's length, the table of limits, plain
    /// English in comments and names too
    Docs,
    /// Make small faults in the code, and count those that the package's tests catch
    Mutants(mutants::Args),
    /// Run fuzz targets under libFuzzer, which keeps changing inputs to reach more code
    Fuzz(fuzz::Args),
    /// Run the scheduler, or the whole engine, on random webs in virtual time
    Simulate(TrialsArgs),
    /// Kill crawls repeatedly, and compare their records with what really happened
    Torture(TrialsArgs),
    /// Record a crawl, and resume it from the files that power cuts would have left
    PowerCuts(TrialsArgs),
    /// Build and try the packages or the container image
    Dist(dist::Args),
    /// Run `crawl conformance` over this crawler and others, and write docs/conformance.md
    Conformance(conformance::Args),
    /// Measure what is too slow to measure in a test
    Bench(TrialsArgs),
}

/// Arguments that are passed on to `crawl-trials`. Its `--help` explains them.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
struct TrialsArgs {
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    args: Vec<OsString>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = Workspace::find().and_then(|mut workspace| match args.command {
        Command::Test { list: true, .. } => {
            gate::list();
            Ok(())
        }
        Command::Test { quick, steps, .. } => {
            workspace.builds_once = steps.is_empty();
            gate::run(&workspace, quick, &steps)
        }
        Command::Boundaries => crate_dependency_check::check(&workspace),
        Command::Docs => gate::docs(&workspace),
        Command::Mutants(args) => mutants::check(&workspace, &args),
        Command::Fuzz(args) => fuzz::run_targets(&workspace, &args),
        Command::Simulate(passed) => trial(&workspace, "simulate", &passed),
        Command::Torture(passed) => trial(&workspace, "torture", &passed),
        Command::PowerCuts(passed) => trial(&workspace, "power-cuts", &passed),
        Command::Dist(args) => dist::run(&workspace, &args),
        Command::Conformance(args) => conformance::run(&workspace, &args),
        Command::Bench(passed) => trial(&workspace, "bench", &passed),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Builds `crawl-trials` and starts one of its long runs.
fn trial(workspace: &Workspace, name: &str, passed: &TrialsArgs) -> anyhow::Result<()> {
    let mut command = workspace.cargo(&["run", "--package", "crawl-trials", "--", name]);
    workspace::run(command.args(&passed.args))
}

//! Long trial runs of the crawler: a simulated web, kills, power cuts, benchmarks.
//!
//! `cargo xtask simulate`, `torture`, `power-cuts` and `bench` start this program. This program is
//! not part of xtask, because it depends on most of the workspace, and xtask must be built before
//! the rest of the workspace.
#![expect(clippy::print_stderr, reason = "a program for the command line")]

mod bench;
mod simulate;
mod torture;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use torture::power_cuts;
use xtask::workspace::Workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Long runs that try the crawler")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the scheduler, or the whole engine, on random webs in virtual time
    Simulate(simulate::Args),
    /// Kill crawls again and again, and compare their records with the servers' logs
    Torture(torture::Args),
    /// Record a crawl, and resume it from each state that a power cut could have left
    PowerCuts(power_cuts::Args),
    /// Run a benchmark that is too slow for a test
    #[command(subcommand)]
    Bench(bench::BenchmarkCommand),
}

/// Use the crawler's own allocator, because some benchmarks run parts of the crawler here.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    let workspace = Workspace::find;
    let done = match args.command {
        Command::Simulate(args) => workspace().and_then(|found| simulate::run(&found, &args)),
        Command::Torture(args) => workspace().and_then(|found| torture::run(&found, &args)),
        Command::PowerCuts(args) => workspace().and_then(|found| power_cuts::run(&found, &args)),
        Command::Bench(bench) => bench::bench(&bench),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

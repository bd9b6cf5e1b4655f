//! Long trial runs of the crawler: a simulated web, kills, power cuts, benchmarks.
//!
//! `cargo xtask simulate`, `torture`, `power-cuts` and `bench` start this program. It is a separate
//! package because it depends on most of the workspace, and `cargo xtask test` must exist first.
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
    /// Drive the scheduler, or the whole engine, through drawn webs in virtual time
    Simulate(simulate::Args),
    /// Kill crawls again and again, and hold what they leave against the truth
    Torture(torture::Args),
    /// Record a crawl, and go on from what power cuts would have left of it
    PowerCuts(power_cuts::Args),
    /// Measure what is too slow to measure in a test
    #[command(subcommand)]
    Bench(bench::Bench),
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

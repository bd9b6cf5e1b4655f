//! Benchmarks that are run by hand: they take long, or much disk.

mod frontier;
mod hostile;
mod pace;

use anyhow::Result;
use clap::Subcommand;

use crate::workspace::Workspace;

#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Fill a frontier on disk as a crawl does; prints a table row
    Frontier(frontier::FrontierArgs),
    /// Crawl hosts that misbehave; prints the peak of the crawler's memory
    Hostile(hostile::HostileArgs),
    /// Crawl many hosts in real time; prints what they saw
    Pace(pace::PaceArgs),
}

pub(crate) fn bench(workspace: &Workspace, bench: &Bench) -> Result<()> {
    match bench {
        Bench::Frontier(args) => frontier::fill(workspace, args),
        Bench::Hostile(args) => hostile::crawl(workspace, args),
        Bench::Pace(args) => pace::crawl(workspace, args),
    }
}

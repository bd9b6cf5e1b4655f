//! Benchmarks that are run by hand: they take long, or much disk.

mod frontier;
mod pace;

use anyhow::Result;
use clap::Subcommand;

use crate::workspace::Workspace;

#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Fill a frontier on disk as a crawl does; prints a table row
    Frontier(frontier::FrontierArgs),
    /// Crawl many hosts in real time; prints what they saw
    Pace(pace::PaceArgs),
}

pub(crate) fn bench(workspace: &Workspace, bench: &Bench) -> Result<()> {
    match bench {
        Bench::Frontier(args) => frontier::fill(workspace, args),
        Bench::Pace(args) => pace::crawl(workspace, args),
    }
}

//! The number of pages a second that polite gaps leave of many hosts, as the hosts saw it.

use std::fs;
use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use crawl_testweb::{LogEntry, TestWeb, gaps};

use xtask::workspace::{Workspace, run};

/// The crawler's default gap.
const GAP: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(crate) struct PaceArgs {
    /// Hosts of the web, each at an address of its own
    #[arg(long, value_name = "N", default_value_t = 200)]
    hosts: u32,
    /// The time that each answer takes, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 50)]
    latency: u64,
    /// The time that the crawl lasts, in seconds
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
}

pub(super) fn crawl(workspace: &Workspace, args: &PaceArgs) -> Result<()> {
    let latency = Duration::from_millis(args.latency);
    let web = TestWeb::builder()
        .hosts(args.hosts)
        .pages(2 * args.seconds)
        .sitemap(false)
        .latency(latency)
        .start();
    let dir = workspace.target.join("bench-pace");
    let _ = fs::remove_dir_all(&dir);
    let mut command = workspace.cargo(&["run", "--release", "--package", "crawl", "--", "-q"]);
    let seeds: Vec<_> = (0..args.hosts).map(|host| web.url(host, "/")).collect();
    let seeds = seeds.join("\", \"");
    let config = workspace.target.join("bench-pace.toml");
    fs::write(&config, format!("seed = [\"{seeds}\"]\n"))?;
    command.arg("--config").arg(&config);
    let time = format!("{}s", args.seconds);
    command.args(["--sitemaps", "off", "--max-time", &time, "--output"]);
    run(command.arg(&dir))?;
    let log = web.log();
    let table = table(&log, args, latency);
    fs::remove_dir_all(&dir)?;
    fs::remove_file(&config)?;
    match table {
        Some(table) => Ok(io::stdout().write_all(table.as_bytes())?),
        None => bail!("the crawl was too short: {} requests", log.len()),
    }
}

/// The hosts' own log, from the tenth part of the time to the ninth.
fn table(log: &[LogEntry], args: &PaceArgs, latency: Duration) -> Option<String> {
    let (first, last) = (log.first()?.start_us, log.last()?.start_us);
    let (from, until) = (first + (last - first) / 10, last - (last - first) / 10);
    let within = |entry: &&LogEntry| (from..until).contains(&entry.start_us);
    let pages = log.iter().filter(within).count() as f64;
    let rate = pages * 1e6 / (until - from) as f64;
    let ideal = f64::from(args.hosts) / (GAP + latency).as_secs_f64();
    let least = (0..args.hosts)
        .flat_map(|host| gaps(log.iter().filter(move |entry| entry.host == host)))
        .min()?;
    Some(format!(
        "| hosts | answers in | requests | pages a second | ideal | of it | least gap |\n\
         |---|---|---|---|---|---|---|\n\
         | {} | {} ms | {} | {rate:.1} | {ideal:.1} | {:.1} % | {:.3} ms |\n",
        args.hosts,
        args.latency,
        log.len(),
        100.0 * rate / ideal,
        least as f64 / 1000.0,
    ))
}

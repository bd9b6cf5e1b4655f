//! Simulations in virtual time: of the scheduler in a random web of any size, and of the whole
//! engine.
//!
//! The trials of the engine (`--seeds`) are tests of `crawl-engine`, in
//! `simulated_crawl_tests/trial`. The rest of this file runs the scheduler in a simulated web.
//!
//! Hosts with random response times share addresses and sites. Requests fail, hosts request waits
//! with and without Retry-After, send rate-limit fields, and have robots.txt files with crawl
//! delays, request rates and visit times. Every request is checked with the same code as in the
//! scheduler's own tests, and a table shows the results.
//!
//! Large webs need optimised builds: `cargo run --release -p crawl-trials -- simulate --hosts
//! 1000000 --urls 20000000`.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, bail};
use crawl_scheduler::{DailyHours, Politeness, PolitenessOverride};

use xtask::workspace::{self, Workspace};

use self::world::{Plan, START, World};

mod known_bugs;

#[allow(dead_code, reason = "small worlds use what large ones do not")]
#[path = "../../scheduler/tests/world/mod.rs"]
mod world;

/// Arguments of the simulation: the size of the web, what goes wrong in it, and the random seeds.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of hosts
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    hosts: u32,
    /// Approximate number of URLs on all hosts together
    #[arg(long, value_name = "N", default_value_t = 40_000)]
    urls: u64,
    /// Seed of the draw, random by default
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Number of requests in a thousand that fail or get a Retry-After
    #[arg(long, value_name = "N", default_value_t = 10)]
    trouble: u32,
    /// Percentage of steps that evict an idle host, and number of steps in 10,000 that kill the
    /// process
    #[arg(long, value_name = "N", default_value_t = 0)]
    churn: u32,
    /// Number of steps in a thousand that change the operator's politeness settings
    #[arg(long, value_name = "N", default_value_t = 0)]
    reloads: u32,
    /// Run N trials of the whole engine instead, with kills, power cuts and failing disks, from
    /// --seed on
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Run trials, --seeds at most, of an engine with each known bug; each bug must be found
    #[arg(long)]
    known_bugs: bool,
}

/// Number of trials that are run to find a known bug, unless `--seeds` is given.
const TRIALS_PER_BUG: u64 = 1_000;

/// Percentage of hosts that also have URLs under a second origin.
const SECOND_ORIGINS: u32 = 10;

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    if args.known_bugs {
        let (first, trials) = (args.seed.unwrap_or(0), args.seeds.unwrap_or(TRIALS_PER_BUG));
        return known_bugs::find_all(workspace, first, trials);
    }
    let seed = args.seed.unwrap_or_else(fresh_seed);
    eprintln!("seed {seed}");
    if let Some(trials) = args.seeds {
        let mut command = workspace.cargo(&TRIALS);
        return workspace::run(command.envs(trial_environment(seed, trials)));
    }
    let outcome = simulate(plan(args, seed));
    io::stdout().write_all(outcome.table.as_bytes())?;
    match outcome.breach {
        None => Ok(()),
        Some(breach) => bail!("{breach}\nsame again: --seed {seed}"),
    }
}

/// The Cargo command that runs trials of the engine.
const TRIALS: [&str; 9] = [
    "test",
    "--package=crawl-engine",
    "--lib",
    "--locked",
    "--",
    "--exact",
    "--nocapture",
    "simulated_crawl_tests::trial::trials_keep_every_invariant",
    "simulated_crawl_tests::trial::trials_of_workers_keep_every_invariant",
];

fn trial_environment(seed: u64, trials: u64) -> [(&'static str, String); 2] {
    [
        ("CRAWL_TRIAL_SEED", seed.to_string()),
        ("CRAWL_TRIALS", trials.to_string()),
    ]
}

fn plan(args: &Args, seed: u64) -> Plan {
    let hosts = args.hosts.max(1);
    let origins = u64::from(hosts) * u64::from(100 + SECOND_ORIGINS) / 100;
    let night = DailyHours::new(22 * 60, 6 * 60);
    let overrides = vec![
        (
            "s0.example".to_owned(),
            PolitenessOverride {
                delay: Some(Duration::from_secs(3)),
                quiet: Some(vec![night]),
                ..PolitenessOverride::default()
            },
        ),
        (
            "h1.s1.example".to_owned(),
            PolitenessOverride {
                delay: Some(Duration::from_millis(200)),
                per_host: Some(2),
                ..PolitenessOverride::default()
            },
        ),
    ];
    Plan {
        seed,
        hosts,
        addresses: hosts.div_ceil(4),
        sites: hosts.div_ceil(3),
        // Each origin gets URLs twice, each time a random number up to this maximum. So on average,
        // an origin gets this many URLs in total.
        urls: u32::try_from((args.urls / origins.max(1)).saturating_sub(1)).unwrap_or(u32::MAX),
        second_origins: SECOND_ORIGINS,
        asking: 20,
        limited: 3,
        trouble: args.trouble,
        churn: args.churn,
        logged: false,
        politeness: Politeness {
            // The concurrency is unlimited, so that only the limits of hosts, addresses and sites
            // cause delays.
            concurrency: u32::MAX,
            site_delay: Duration::from_millis(20),
            ..Politeness::default()
        },
        overrides,
        reloads: args.reloads,
        other: Politeness {
            delay: Duration::from_millis(1_500),
            delay_factor: 3.0,
            per_host: 2,
            per_address: 4,
            concurrency: u32::MAX,
            site_delay: Duration::from_millis(50),
            quiet: vec![night],
            ..Politeness::default()
        },
        other_overrides: vec![(
            "h1.s1.example".to_owned(),
            PolitenessOverride {
                delay: Some(Duration::from_millis(700)),
                ..PolitenessOverride::default()
            },
        )],
    }
}

struct SimulationOutcome {
    table: String,
    /// The first broken rule that the run found, if any.
    breach: Option<String>,
}

fn simulate(plan: Plan) -> SimulationOutcome {
    let hosts = u64::from(plan.hosts);
    let mut world = World::new(plan);
    let before = resident_bytes();
    let begun = world.begin();
    let loaded = resident_bytes();
    let started = Instant::now();
    let done = begun.and_then(|()| world.run());
    let took = started.elapsed();
    let memory = resident_bytes();
    let tally = world.tally;
    let virtual_time = world.now.since(START);
    let (idle, stored) = world.evict_all();
    let useful = tally.asked.as_secs_f64();
    let share = 100.0 * useful / (useful + tally.late.as_secs_f64()).max(1e-9);
    let mut table = String::new();
    let mut row = |name: &str, value: String| {
        // Writing to a string can't fail.
        let _ = writeln!(table, "{name:<42}{value:>16}");
    };
    let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), group);
    let decisions = tally.requests as f64 / took.as_secs_f64().max(1e-9);
    let grown = loaded.zip(before);
    let grown = grown.map(|(loaded, before)| loaded.saturating_sub(before) / hosts);
    row("hosts", group(hosts));
    row("requests", group(tally.requests));
    row("  for pages, answered", group(tally.pages));
    row("  for robots.txt", group(tally.robots));
    row("  failed", group(tally.failures));
    row("  answered by 429 or 503", group(tally.waits_asked));
    let evictions = group(tally.evictions);
    row("evictions, kills", format!("{evictions}, {}", tally.kills));
    row("changes of politeness", group(tally.reloads));
    row("rules broken", group(world.check.breaches));
    row("URLs never requested", group(world.left()));
    row("utilisation", format!("{share:.3} %"));
    let latest = tally.latest.as_secs_f64();
    row("longest wait beyond a gap", format!("{latest:.3} s"));
    row(
        "virtual time",
        format!("{:.0} s", virtual_time.as_secs_f64()),
    );
    row("real time", format!("{:.1} s", took.as_secs_f64()));
    row(
        "decisions a second, with the check",
        group(decisions as u64),
    );
    row("bytes in memory per host", bytes(grown));
    row(
        "bytes on disk per evicted host",
        group(stored / idle.max(1)),
    );
    row("bytes in memory at the end, with the web", bytes(memory));
    let mut breach = world.check.first_breaches.join("\n");
    if let Err(why) = done {
        breach += &why;
    }
    SimulationOutcome {
        table,
        breach: (!breach.is_empty()).then_some(breach),
    }
}

/// Formats a number with a space between groups of three digits.
fn group(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

pub(crate) fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(1, |since| since.as_micros() as u64)
}

/// Returns the memory of this process, or `None` if the system does not report it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::{Args, group, plan, simulate};

    #[test]
    fn small_webs_break_no_rule() {
        for seed in 0..3 {
            let args = Args {
                hosts: 40,
                urls: 800,
                seed: None,
                trouble: 40,
                churn: 3,
                reloads: 20 * seed as u32,
                seeds: None,
                known_bugs: false,
            };
            let outcome = simulate(plan(&args, seed));
            assert_eq!(outcome.breach, None, "{seed}: {}", outcome.table);
        }
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!(group(0), "0");
        assert_eq!(group(1_234_567), "1 234 567");
    }
}

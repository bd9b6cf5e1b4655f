//! Fills a frontier on disk as a crawl does, and prints the cost as a table row.
//!
//! ```text
//! cargo run --release --package crawl-frontier --example bench -- DIR URLS [HOSTS [PAGES]]
//! ```
//!
//! The program leases and settles pages of random hosts until the frontier knows URLS URLs. It
//! admits the 50 links of each page: 80 % lead to the page's own host, and half lead to known URLs.
//! Each transaction settles PAGES pages and is synced. `cargo xtask bench frontier` checks the disk
//! first, then runs this program.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the command line"
)]

mod generated_web;
mod resource_usage;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use crawl_frontier::{
    FjallFrontier, FjallFrontierOptions, Frontier, LastVisit, Lease, LeaseOutcome,
};

use crate::generated_web::{GeneratedPage, GeneratedWeb, LINKS};

/// The number of pages leased and settled to measure latency.
const LEASES: usize = 20_000;
/// The number of transactions that the thread generating the web prepares in advance.
const AHEAD: usize = 4;
const SEEDS: u32 = 1000;

struct Plan {
    dir: PathBuf,
    urls: u64,
    hosts: u32,
    pages_per_commit: usize,
}

struct RunMeasurements {
    links: u64,
    whole: Duration,
    processor: f64,
    last_tenth: f64,
    slowest_commit: Duration,
    lease_us: [f64; 2],
    settle_us: f64,
    bytes: u64,
    known: u64,
    open: Duration,
    open_processor: f64,
    origins: Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let plan = plan()?;
    let mut web = GeneratedWeb::new(plan.hosts, 7);
    let frontier = FjallFrontier::open(&plan.dir, &FjallFrontierOptions::default())?;
    let mut row = fill(&plan, &frontier, &mut web)?;
    (row.lease_us, row.settle_us) = lease_and_settle(&plan, &frontier, &mut web)?;
    row.known = frontier.counts().known;
    drop(frontier);
    row.bytes = resource_usage::disk_bytes(&plan.dir)?;
    let (start, before) = (Instant::now(), resource_usage::processor_seconds());
    let frontier = FjallFrontier::open(&plan.dir, &FjallFrontierOptions::default())?;
    row.open = start.elapsed();
    row.open_processor = resource_usage::processor_seconds() - before;
    let start = Instant::now();
    let origins = frontier.origins().len();
    row.origins = start.elapsed();
    eprintln!("{origins} origins wait");
    print(&plan, &row);
    Ok(())
}

fn plan() -> Result<Plan, Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or("usage: bench DIR URLS [HOSTS [PAGES]]")?;
    let urls: u64 = args.next().ok_or("how many URLs?")?.parse()?;
    let hosts = args
        .next()
        .map_or(Ok((urls / 100).max(100) as u32), |text| text.parse())?;
    let pages_per_commit = args.next().map_or(Ok(64), |text| text.parse())?;
    if Path::new(&dir).exists() {
        return Err(format!("`{dir}` exists already").into());
    }
    Ok(Plan {
        dir: dir.into(),
        urls,
        hosts,
        pages_per_commit,
    })
}

/// Admits links until enough URLs are known. A separate thread generates the pages, because a crawl
/// parses its pages in other threads too.
fn fill(
    plan: &Plan,
    frontier: &FjallFrontier,
    web: &mut GeneratedWeb,
) -> Result<RunMeasurements, Box<dyn Error>> {
    let mut transaction = frontier.begin()?;
    transaction.admit_all(&web.seeds(SEEDS))?;
    transaction.commit()?;
    std::thread::scope(|scope| {
        let (sender, pages) = sync_channel::<Vec<GeneratedPage>>(AHEAD);
        let count = plan.pages_per_commit;
        scope.spawn(move || {
            while sender
                .send((0..count).map(|_| web.page(|_| true)).collect())
                .is_ok()
            {}
        });
        admit(plan, frontier, pages)
    })
}

fn admit(
    plan: &Plan,
    frontier: &FjallFrontier,
    pages: Receiver<Vec<GeneratedPage>>,
) -> Result<RunMeasurements, Box<dyn Error>> {
    let start = Instant::now();
    let (mut links, mut slowest) = (0, Duration::ZERO);
    let (mut tenth, mut tenth_began) = (0, (0, Duration::ZERO));
    let mut last_tenth = 0.0;
    while tenth < 10 {
        let began = Instant::now();
        let mut transaction = frontier.begin()?;
        for page in pages.recv()? {
            if let Some(lease) = frontier.lease(&page.origin)? {
                transaction.settle_until(
                    lease,
                    LeaseOutcome::Fetched { status: 200 },
                    visit(links),
                )?;
            }
            links += page.links.len() as u64;
            transaction.admit_all(&page.links)?;
        }
        transaction.commit()?;
        slowest = slowest.max(began.elapsed());
        let known_urls = frontier.counts().known;
        if known_urls * 10 >= plan.urls * (tenth + 1) {
            let now = start.elapsed();
            let (links_then, then) = tenth_began;
            last_tenth = (links - links_then) as f64 / (now - then).as_secs_f64();
            (tenth, tenth_began) = (tenth + 1, (links, now));
            eprintln!(
                "{known_urls:>11} known {last_tenth:>9.0} links/s {:>5.1} CPU us/link {:>6} MiB, slowest commit {} ms",
                resource_usage::processor_seconds() * 1e6 / links as f64,
                resource_usage::memory_mib(),
                slowest.as_millis(),
            );
        }
    }
    Ok(RunMeasurements {
        links,
        whole: start.elapsed(),
        processor: resource_usage::processor_seconds(),
        last_tenth,
        slowest_commit: slowest,
        lease_us: [0.0; 2],
        settle_us: 0.0,
        bytes: 0,
        known: 0,
        open: Duration::ZERO,
        open_processor: 0.0,
        origins: Duration::ZERO,
    })
}

/// Measures how long it takes to lease a URL of a random host (median and 99th percentile), and to
/// settle one URL with its share of the commit (mean). Times are in microseconds.
fn lease_and_settle(
    plan: &Plan,
    frontier: &FjallFrontier,
    web: &mut GeneratedWeb,
) -> Result<([f64; 2], f64), Box<dyn Error>> {
    let mut leases: Vec<Lease> = Vec::with_capacity(LEASES);
    let mut times = Vec::with_capacity(LEASES);
    while leases.len() < LEASES {
        let origin = web.origin();
        let start = Instant::now();
        let lease = frontier.lease(&origin)?;
        times.push(start.elapsed());
        leases.extend(lease);
    }
    times.sort_unstable();
    let at = |share: usize| times[times.len() * share / 100].as_secs_f64() * 1e6;
    let start = Instant::now();
    let mut leases = leases.into_iter().peekable();
    while leases.peek().is_some() {
        let mut transaction = frontier.begin()?;
        for lease in leases.by_ref().take(plan.pages_per_commit) {
            transaction.settle_until(lease, LeaseOutcome::Fetched { status: 200 }, visit(0))?;
        }
        transaction.commit()?;
    }
    let settle = start.elapsed().as_secs_f64() * 1e6 / LEASES as f64;
    Ok(([at(50), at(99)], settle))
}

/// Returns a visit like one of a real crawl: with a digest, a validator and a due time.
fn visit(number: u64) -> LastVisit {
    let due = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
    LastVisit {
        at: 1_795_000_000,
        due: 1_795_000_000 + due as u32,
        bytes: number.to_le_bytes().repeat(8),
    }
}

fn print(plan: &Plan, row: &RunMeasurements) {
    println!(
        "| URLs | hosts | pages a commit | links/s | last tenth | CPU us/link | peak MiB | bytes/URL | lease us (p99) | settle us | slowest commit ms | open s (CPU s) | origins s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    println!(
        "| {} | {} | {} ({LINKS} links each) | {:.0} | {:.0} | {:.1} | {} | {:.1} | {:.1} ({:.0}) | {:.1} | {} | {:.2} ({:.2}) | {:.2} |",
        row.known,
        plan.hosts,
        plan.pages_per_commit,
        row.links as f64 / row.whole.as_secs_f64(),
        row.last_tenth,
        row.processor * 1e6 / row.links as f64,
        resource_usage::peak_memory_mib(),
        row.bytes as f64 / row.known as f64,
        row.lease_us[0],
        row.lease_us[1],
        row.settle_us,
        row.slowest_commit.as_millis(),
        row.open.as_secs_f64(),
        row.open_processor,
        row.origins.as_secs_f64(),
    );
}

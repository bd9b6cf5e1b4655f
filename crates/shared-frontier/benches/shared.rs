//! Benchmarks shared frontiers with 1, 2 and 4 workers, and a frontier on disk for comparison. The
//! workers lease, settle and admit URLs as in a crawl. Prints a table. `cargo xtask bench shared`
//! runs the benchmark.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for the command line, which ends where it fails"
)]

use std::sync::Barrier;
use std::time::{Duration, Instant};

use crawl_frontier::worker_frontier::WorkerFrontier as _;
use crawl_frontier::{FjallFrontier, Frontier, LeaseOutcome, Transaction};
use crawl_shared_frontier::{SharedFrontier, SharedFrontierOptions};

use crate::postgres::{Postgres, Setup, execute, number};
use crate::web::{GeneratedWeb, LINKS};

#[path = "../../frontier/examples/bench/resource_usage.rs"]
#[expect(dead_code, reason = "the benchmark of one on disk measures more")]
mod machine;
#[path = "../tests/shared/postgres_server.rs"]
#[expect(dead_code, reason = "tests use more of it")]
mod postgres;
#[path = "../../frontier/examples/bench/generated_web.rs"]
#[expect(dead_code, reason = "the benchmark of one on disk asks for more")]
mod web;

const HOSTS: u32 = 2_000;
const PAGES_PER_COMMIT: u64 = 64;
/// The number of pages fetched by all workers together.
const PAGES: u64 = 16_384;
const MAX_LINKS_TAKEN: usize = 10_000;

/// Server settings: commits reach the disk, and statements are counted.
const SETTINGS: [&str; 6] = [
    "fsync=on",
    "synchronous_commit=on",
    "full_page_writes=on",
    "shared_preload_libraries=pg_stat_statements",
    "max_wal_size=4GB",
    "shared_buffers=256MB",
];

fn main() {
    // Don't run the benchmark if `cargo test --all-targets` started this program, which passes no
    // `--bench`.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    println!(
        "| frontier | links/s | new URLs/s | pages/s | CPU us/page | WAL bytes/URL | table bytes/URL | statements/page | commits/page |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    on_disk();
    for workers in [1, 2, 4] {
        on_server(workers);
    }
}

fn on_disk() {
    let dir = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let frontier =
        FjallFrontier::open(dir.path(), &crawl_frontier::FjallFrontierOptions::default()).unwrap();
    let (start, before) = (Instant::now(), machine::processor_seconds());
    let mut web = GeneratedWeb::new(HOSTS, 7);
    seed(&frontier, &mut web, &|_| true);
    let begin = || frontier.begin().unwrap();
    fill(&frontier, &begin, &mut web, &|_| true, PAGES);
    let row = Row::new(start.elapsed(), before, frontier.counts().known);
    row.print("on disk", None);
}

fn on_server(workers: u64) {
    let server = Postgres::start(&Setup {
        settings: &SETTINGS,
        files: &[],
    });
    let url = format!("postgres://crawl@127.0.0.1:{}/postgres", server.port);
    execute(&url, "CREATE EXTENSION pg_stat_statements");
    let frontiers: Vec<SharedFrontier> = open(&url, workers);
    execute(&url, "SELECT pg_stat_statements_reset()");
    let position = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint";
    let wal = number(&url, position);
    let (start, before) = (Instant::now(), machine::processor_seconds());
    let seeded = Barrier::new(frontiers.len());
    std::thread::scope(|scope| {
        for (at, frontier) in frontiers.iter().enumerate() {
            let seeded = &seeded;
            scope.spawn(move || {
                let own: Vec<bool> = (0..HOSTS)
                    .map(|host| frontier.owns(&web::url(host, 0).host_key()))
                    .collect();
                let is_own = |host: u32| own[host as usize];
                let mut web = GeneratedWeb::new(HOSTS, 7 + at as u64);
                seed(frontier, &mut web, &is_own);
                seeded.wait();
                let begin = || begin_worker(frontier);
                fill(frontier, &begin, &mut web, &is_own, PAGES / workers);
            });
        }
    });
    let elapsed = start.elapsed();
    let known_urls = number(&url, "SELECT count(*) FROM crawl_frontier.url");
    let row = Row::new(elapsed, before, known_urls as u64);
    let sizes = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
        WHERE relnamespace = 'crawl_frontier'::regnamespace AND relkind = 'r'";
    let calls = |what: &str| {
        let text = format!(
            "SELECT sum(calls)::bigint FROM pg_stat_statements WHERE query {what} 'COMMIT%'"
        );
        number(&url, &text) as f64 / PAGES as f64
    };
    let wal = number(&url, position) - wal;
    let cost = ServerCost {
        wal: wal as f64 / known_urls as f64,
        table: number(&url, sizes) as f64 / known_urls as f64,
        statements: calls("NOT LIKE"),
        commits: calls("LIKE"),
    };
    row.print(&format!("PostgreSQL, {workers} workers"), Some(&cost));
}

/// Opens workers that run at the same time, each with its share of the buckets.
fn open(url: &str, workers: u64) -> Vec<SharedFrontier> {
    let share = 1_024_u64.div_ceil(workers);
    let worker = |number: u64| {
        let options = SharedFrontierOptions {
            most_buckets: u16::try_from(share).unwrap(),
            ..SharedFrontierOptions::new("bench", &format!("w{number}"))
        };
        SharedFrontier::open(url, &options).unwrap()
    };
    (1..=workers).map(worker).collect()
}

fn seed(frontier: &dyn Frontier, web: &mut GeneratedWeb, is_own: &dyn Fn(u32) -> bool) {
    let seeds = web.seeds(HOSTS).into_iter().zip(0..);
    let own: Vec<_> = seeds
        .filter(|(_, host)| is_own(*host))
        .map(|(seed, _)| seed)
        .collect();
    let mut transaction = frontier.begin().unwrap();
    transaction.admit_all(&own).unwrap();
    transaction.commit().unwrap();
}

/// A function that begins a transaction and admits the links that other workers sent.
type Begin<'a> = &'a dyn Fn() -> Box<dyn Transaction + 'a>;

fn begin_worker(frontier: &SharedFrontier) -> Box<dyn Transaction + '_> {
    let mut transaction = frontier.begin_worker().unwrap();
    let links = transaction.take_links(MAX_LINKS_TAKEN).unwrap();
    transaction.admit_all(&links).unwrap();
    transaction
}

/// Leases and settles pages of the worker's own hosts, and admits the links of these pages.
fn fill<'a>(
    frontier: &'a dyn Frontier,
    begin: Begin<'a>,
    web: &mut GeneratedWeb,
    is_own: &dyn Fn(u32) -> bool,
    pages: u64,
) {
    let mut done = 0;
    while done < pages {
        let mut transaction = begin();
        for _ in 0..PAGES_PER_COMMIT.min(pages - done) {
            let page = web.page(is_own);
            // If all URLs of the host are new, none can be leased yet: the database server gets
            // them only at the commit.
            let Some(lease) = frontier.lease(&page.origin).unwrap() else {
                continue;
            };
            transaction
                .settle(lease, LeaseOutcome::Fetched { status: 200 })
                .unwrap();
            transaction.admit_all(&page.links).unwrap();
            done += 1;
        }
        transaction.commit().unwrap();
    }
}

/// The cost of one run.
struct Row {
    elapsed: Duration,
    /// Processor seconds of all workers, without the database server.
    processor: f64,
    known: u64,
}

/// The work of the database server in one run, and the size of its tables.
struct ServerCost {
    wal: f64,
    table: f64,
    statements: f64,
    commits: f64,
}

impl Row {
    fn new(elapsed: Duration, before: f64, known: u64) -> Row {
        Row {
            elapsed,
            processor: machine::processor_seconds() - before,
            known,
        }
    }

    fn print(&self, name: &str, cost: Option<&ServerCost>) {
        let seconds = self.elapsed.as_secs_f64();
        let server_columns = match cost {
            None => "- | - | - | -".to_owned(),
            Some(cost) => format!(
                "{:.0} | {:.0} | {:.2} | {:.3}",
                cost.wal, cost.table, cost.statements, cost.commits
            ),
        };
        println!(
            "| {name} | {:.0} | {:.0} | {:.0} | {:.0} | {server_columns} |",
            (PAGES * LINKS as u64) as f64 / seconds,
            self.known as f64 / seconds,
            PAGES as f64 / seconds,
            self.processor * 1e6 / PAGES as f64,
        );
    }
}

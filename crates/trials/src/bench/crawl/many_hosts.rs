//! Crawls of many generated hosts: at full speed, politely, and with growing numbers of pages.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use xtask::workspace::Workspace;

use super::compared_program::{ComparedProgram, MissingProgramReason};
use super::generated_web::{GeneratedWeb, ReceivedRequestCounts, WebPlan};
use crate::bench::measured_program::{
    BuildProfile, ProcessCost, WorkspaceProgram, build, cost_until_end, pinned,
};

/// The crawler's default gap between two requests to one host.
const GAP: Duration = Duration::from_secs(1);
/// Maximum duration of a crawl that has no other limit.
const MAX_CRAWL_TIME: Duration = Duration::from_secs(1_800);
/// Maximum time that a crawl may take to finish after its time limit.
const MAX_END_TIME: Duration = Duration::from_secs(60);
/// Maximum threads of wget2. In polite crawls, wget2 has one thread per host.
const MAX_WGET2_THREADS: u32 = 256;
/// Minimum `--concurrency` of this crawler in polite crawls.
const CONCURRENCY: u64 = 256;

#[derive(Args)]
pub(crate) struct ManyHostsArgs {
    /// Number of hosts, each at its own address
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    hosts: u32,
    /// Pages per host
    #[arg(long, value_name = "N", default_value_t = 30)]
    pages: u32,
    /// Response time of each page, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 50)]
    latency: u64,
    /// Measure the program built with the dev profile, which builds faster
    #[arg(long)]
    dev: bool,
}

#[derive(Args)]
pub(crate) struct PoliteCrawlArgs {
    /// Numbers of hosts, one crawl for each; each host gets one request per second
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [200, 10_000])]
    hosts: Vec<u32>,
    /// Duration of each crawl, in seconds
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// Response time of each page, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 50)]
    latency: u64,
    /// Measure the program built with the dev profile, which builds faster
    #[arg(long)]
    dev: bool,
}

#[derive(Args)]
pub(crate) struct PageGrowthArgs {
    /// Numbers of pages on all hosts together, one crawl for each
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [10_000, 100_000])]
    pages: Vec<u32>,
    /// Number of hosts. If each has at least 100 pages, all crawls have pages with as many links
    #[arg(long, value_name = "N", default_value_t = 100)]
    hosts: u32,
    /// Measure the program built with the dev profile, which builds faster
    #[arg(long)]
    dev: bool,
}

/// The cost of one crawl, and the requests that the hosts received.
struct ManyHostsCost {
    name: String,
    plan: WebPlan,
    cost: ProcessCost,
    visits: ReceivedRequestCounts,
    /// Bytes on disk: first those of the crawler's state, then those of all other files.
    disk: [u64; 2],
}

/// Crawls slow hosts at full speed.
pub(crate) fn hosts(workspace: &Workspace, args: &ManyHostsArgs) -> Result<()> {
    let bench = ManyHostsBench::new(workspace, args.dev)?;
    let plan = WebPlan {
        hosts: args.hosts,
        pages_a_host: args.pages,
        latency: Duration::from_millis(args.latency),
    };
    let fast = "--delay 0s --delay-factor 0 --per-host 32";
    let ours = bench.ours(plan, fast, MAX_CRAWL_TIME)?;
    let theirs = bench.wget2(plan, MAX_WGET2_THREADS, "", MAX_CRAWL_TIME)?;
    let rows: Vec<ManyHostsCost> = std::iter::once(ours).chain(theirs).collect();
    Ok(io::stdout().write_all(hosts_table(&rows).as_bytes())?)
}

/// Crawls hosts with one request per second to each, for a limited time.
pub(crate) fn polite(workspace: &Workspace, args: &PoliteCrawlArgs) -> Result<()> {
    let bench = ManyHostsBench::new(workspace, args.dev)?;
    let seconds = Duration::from_secs(args.seconds);
    let mut rows = Vec::new();
    for &hosts in &args.hosts {
        let plan = WebPlan {
            hosts,
            pages_a_host: u32::try_from(2 * args.seconds).unwrap_or(u32::MAX),
            latency: Duration::from_millis(args.latency),
        };
        let in_flight = (2.0 * ideal_rate(plan) * plan.latency.as_secs_f64()) as u64;
        let slow = format!(
            "--concurrency {} --max-time {}s",
            in_flight.max(CONCURRENCY),
            args.seconds
        );
        rows.push(bench.ours(plan, &slow, seconds + MAX_END_TIME)?);
        if hosts <= MAX_WGET2_THREADS {
            rows.extend(bench.wget2(plan, hosts, "--wait=1", seconds)?);
        }
    }
    Ok(io::stdout().write_all(polite_table(&rows).as_bytes())?)
}

/// Measures the cost per page for growing numbers of pages.
pub(crate) fn growth(workspace: &Workspace, args: &PageGrowthArgs) -> Result<()> {
    let bench = ManyHostsBench::new(workspace, args.dev)?;
    let mut rows = Vec::new();
    for &pages in &args.pages {
        let plan = WebPlan {
            hosts: args.hosts.max(1),
            pages_a_host: pages.div_ceil(args.hosts.max(1)),
            latency: Duration::ZERO,
        };
        let fast = "--delay 0s --delay-factor 0 --per-host 32";
        rows.push(bench.ours(plan, fast, MAX_CRAWL_TIME)?);
    }
    Ok(io::stdout().write_all(growth_table(&rows).as_bytes())?)
}

struct ManyHostsBench<'a> {
    workspace: &'a Workspace,
    /// The folder for crawls, emptied before each crawl.
    dir: PathBuf,
    crawl: PathBuf,
}

impl ManyHostsBench<'_> {
    fn new(workspace: &Workspace, is_dev: bool) -> Result<ManyHostsBench<'_>> {
        Ok(ManyHostsBench {
            workspace,
            dir: workspace.target.join("bench-hosts"),
            crawl: build(workspace, BuildProfile::of(is_dev), WorkspaceProgram::Crawl)?,
        })
    }

    /// Runs this crawler, without an archive because wget2 has none.
    fn ours(&self, plan: WebPlan, args: &str, limit: Duration) -> Result<ManyHostsCost> {
        let web = GeneratedWeb::start(plan)?;
        let dir = self.emptied()?;
        let config = dir.join("seeds.toml");
        fs::write(&config, format!("seed = {:?}\n", web.seeds()))?;
        let argv = format!(
            "{} -q --config {} --own-site --sitemaps off --warc off {args} --output {}",
            self.crawl.display(),
            config.display(),
            dir.join("out").display()
        );
        self.run("ours", plan, &web, (&argv, &[]), limit)
    }

    /// Runs wget2. Prints a message and returns `None` if wget2 can't be installed.
    fn wget2(
        &self,
        plan: WebPlan,
        threads: u32,
        args: &str,
        limit: Duration,
    ) -> Result<Option<ManyHostsCost>> {
        let program = match ComparedProgram::Wget2.install(self.workspace) {
            Ok(program) => program.unwrap_or_default(),
            Err(MissingProgramReason(why)) => {
                eprintln!("absent: wget2: {why}");
                return Ok(None);
            }
        };
        let web = GeneratedWeb::start(plan)?;
        let dir = self.emptied()?;
        let seeds = dir.join("seeds.txt");
        fs::write(&seeds, web.seeds().join("\n"))?;
        let argv = format!(
            "{} -q -r -l inf --max-threads={threads} {args} -P {} -i {}",
            program.display(),
            dir.join("out").display(),
            seeds.display()
        );
        let environment = ComparedProgram::Wget2.environment(self.workspace)?;
        let name = format!("wget2, {threads} threads");
        self.run(&name, plan, &web, (&argv, &environment), limit)
            .map(Some)
    }

    fn run(
        &self,
        name: &str,
        plan: WebPlan,
        web: &GeneratedWeb,
        (argv, environment): (&str, &[(&str, String)]),
        limit: Duration,
    ) -> Result<ManyHostsCost> {
        eprintln!(
            "running {name}, {} hosts, {} pages",
            plan.hosts,
            web.pages()
        );
        let processors = std::thread::available_parallelism()?.get();
        let argv = argv.split_whitespace().map(OsString::from);
        let mut command = pinned(self.workspace, processors, argv);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let (cost, _) = cost_until_end(&mut command, limit)?;
        let visits = web.visits();
        ensure!(visits.pages > 0, "{name} requested no page");
        let out = self.dir.join("out");
        let (all, state) = (disk_bytes(&out)?, disk_bytes(&out.join("state"))?);
        fs::remove_dir_all(&self.dir)?;
        Ok(ManyHostsCost {
            name: name.to_owned(),
            plan,
            cost,
            visits,
            disk: [state, all - state],
        })
    }

    fn emptied(&self) -> Result<&Path> {
        let _ = fs::remove_dir_all(&self.dir);
        fs::create_dir_all(&self.dir)?;
        Ok(&self.dir)
    }
}

impl ManyHostsCost {
    fn rate(&self) -> f64 {
        self.visits.pages as f64 / self.cost.wall.as_secs_f64()
    }

    fn cpu_ms_a_page(&self) -> f64 {
        self.cost.cpu.as_secs_f64() * 1e3 / self.visits.pages.max(1) as f64
    }
}

/// Returns the highest possible rate in pages per second. A host gets one request at a time,
/// followed by a gap.
fn ideal_rate(plan: WebPlan) -> f64 {
    f64::from(plan.hosts) / (GAP + plan.latency).as_secs_f64()
}

/// Returns the total size of the files below a folder, in bytes. Returns 0 if the folder does not
/// exist.
fn disk_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    let Ok(listed) = fs::read_dir(folder) else {
        return Ok(0);
    };
    for entry in listed {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => disk_bytes(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(bytes)
}

fn hosts_table(rows: &[ManyHostsCost]) -> String {
    let mut text = "| program | hosts | answers in | pages/s | of wget2 | CPU a page \
                    | peak of memory | pages | complete | connections |\n\
                    |---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let theirs = rows.iter().find(|row| row.name.starts_with("wget2"));
    for row in rows {
        let all = u64::from(row.plan.hosts) * u64::from(row.plan.pages_a_host);
        text += &format!(
            "| {} | {} | {} ms | {:.0} | {} | {:.3} ms | {} MiB | {} | {:.1} % | {} |\n",
            row.name,
            row.plan.hosts,
            row.plan.latency.as_millis(),
            row.rate(),
            theirs.map_or("-".to_owned(), |other| format!(
                "{:.2}",
                row.rate() / other.rate()
            )),
            row.cpu_ms_a_page(),
            row.cost.peak_kib >> 10,
            row.visits.pages,
            100.0 * row.visits.pages as f64 / all.max(1) as f64,
            row.visits.connections,
        );
    }
    text
}

fn polite_table(rows: &[ManyHostsCost]) -> String {
    let mut text = "| program | hosts | pages/s | ideal | of it | CPU a page | peak of memory \
                    | least gap |\n|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let (rate, ideal) = (row.visits.rate(), ideal_rate(row.plan));
        text += &format!(
            "| {} | {} | {rate:.1} | {ideal:.1} | {:.1} % | {:.3} ms | {} MiB | {:.3} ms |\n",
            row.name,
            row.plan.hosts,
            100.0 * rate / ideal,
            row.cpu_ms_a_page(),
            row.cost.peak_kib >> 10,
            row.visits.least_gap.unwrap_or_default().as_secs_f64() * 1e3,
        );
    }
    let ours: Vec<_> = rows.iter().filter(|row| row.name == "ours").collect();
    for pair in ours.windows(2) {
        let hosts = i64::from(pair[1].plan.hosts) - i64::from(pair[0].plan.hosts);
        let grown = pair[1].cost.peak_kib.cast_signed() - pair[0].cost.peak_kib.cast_signed();
        if hosts > 0 {
            text += &format!(
                "\n{} bytes of memory a further host\n",
                grown * 1024 / hosts
            );
        }
    }
    text
}

fn growth_table(rows: &[ManyHostsCost]) -> String {
    let mut text = "| pages | hosts | pages/s | CPU a page | of the first | peak of memory \
                    | state a page | rows a page |\n|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let first = rows[0].cpu_ms_a_page();
        let [state, files] = row.disk.map(|bytes| bytes / row.visits.pages.max(1));
        text += &format!(
            "| {} | {} | {:.0} | {:.3} ms | {:.2} | {} MiB | {state} bytes | {files} bytes |\n",
            row.visits.pages,
            row.plan.hosts,
            row.rate(),
            row.cpu_ms_a_page(),
            row.cpu_ms_a_page() / first,
            row.cost.peak_kib >> 10,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{
        ManyHostsCost, ProcessCost, ReceivedRequestCounts, WebPlan, growth_table, hosts_table,
        polite_table,
    };

    fn crawled(name: &str, hosts: u32, seconds: u64, mebibytes: u64) -> ManyHostsCost {
        ManyHostsCost {
            name: name.to_owned(),
            plan: WebPlan {
                hosts,
                pages_a_host: 10,
                latency: Duration::from_millis(250),
            },
            cost: ProcessCost {
                wall: Duration::from_secs(seconds),
                cpu: Duration::from_millis(500),
                peak_kib: mebibytes << 10,
            },
            visits: ReceivedRequestCounts {
                connections: 9,
                pages: 1_000,
                pages_by_second: vec![80; 12],
                least_gap: Some(Duration::from_micros(1_000_250)),
            },
            disk: [64_000, 700_000],
        }
    }

    fn row(table: &str, number: usize) -> &str {
        table.lines().nth(2 + number).unwrap_or_default()
    }

    #[test]
    fn hosts_are_reported_next_to_wget2() {
        let rows = [
            crawled("ours", 100, 4, 30),
            crawled("wget2, 8 threads", 100, 2, 20),
        ];
        assert_eq!(
            row(&hosts_table(&rows), 0),
            "| ours | 100 | 250 ms | 250 | 0.50 | 0.500 ms | 30 MiB | 1000 | 100.0 % | 9 |"
        );
        assert!(row(&hosts_table(&rows[..1]), 0).contains("| 250 | - |"));
    }

    #[test]
    fn polite_crawls_are_reported_relative_to_the_ideal() {
        let rows = [crawled("ours", 100, 12, 30), crawled("ours", 1_124, 12, 31)];
        let table = polite_table(&rows);
        assert_eq!(
            row(&table, 0),
            "| ours | 100 | 80.0 | 80.0 | 100.0 % | 0.500 ms | 30 MiB | 1000.250 ms |"
        );
        assert!(
            table.ends_with("\n1024 bytes of memory a further host\n"),
            "{table}"
        );
    }

    #[test]
    fn growth_is_reported_relative_to_the_first() {
        let mut more = crawled("ours", 100, 4, 60);
        more.cost.cpu *= 2;
        let table = growth_table(&[crawled("ours", 100, 4, 30), more]);
        assert_eq!(
            row(&table, 1),
            "| 1000 | 100 | 250 | 1.000 ms | 2.00 | 60 MiB | 64 bytes | 700 bytes |"
        );
    }
}

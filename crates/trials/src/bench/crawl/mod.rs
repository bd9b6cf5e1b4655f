//! How fast this crawler reads a whole site, compared with other crawlers and with the minimum
//! possible cost.
//!
//! All programs read the same site from the same nginx, one after the other, on the same
//! processors. nginx's log shows what each program fetched.

mod compared_program;
mod documentation_sites;
mod generated_web;
mod many_hosts;
mod minimum_cost;
mod minimum_cost_over_tls;
mod page_generator;
mod server_log_summary;
mod tls_cost;
mod tls_hosts;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use compared_program::{ComparedProgram, MissingProgramReason};
use crawl_testweb::{Nginx, NginxEndpoint, NginxLogDestination, NginxSpec};
use documentation_sites::DocumentationSite;
pub(super) use generated_web::{GeneratedWeb, WebPlan};
pub(super) use many_hosts::{
    ManyHostsArgs, PageGrowthArgs, PoliteCrawlArgs, growth, hosts, polite,
};
pub(super) use minimum_cost::{MinimumCostArgs, fetch_all};
pub(super) use minimum_cost_over_tls::{TlsMinimumCostArgs, fetch_all_over_tls};
use server_log_summary::ServerLogSummary;
pub(super) use tls_cost::{TlsArgs, tls};
use xtask::debian_packages;
use xtask::workspace::Workspace;

use super::measured_program::{
    BuildProfile, ProcessCost, WorkspaceProgram, build, cost_until_end, pinned,
};

#[derive(Args)]
pub(crate) struct CrawlArgs {
    /// Site to crawl
    #[arg(long, value_enum, default_value_t = DocumentationSite::Docs)]
    site: DocumentationSite,
    /// Serve pages in gzip, as most servers do
    #[arg(long)]
    gzip: bool,
    /// Folder for the crawls; on a tmpfs, the disk's speed doesn't count [default: the target
    /// folder]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Programs to compare, in this order; `floor` fetches the URLs that earlier ones found
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = compared_program::USUAL)]
    programs: Vec<ComparedProgram>,
    /// Numbers of processors per program, one run for each
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2")]
    threads: Vec<usize>,
    /// Runs of each; the median time counts
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: usize,
    /// Stop a program after this many seconds; its row shows what it had read by then
    #[arg(long, value_name = "N", default_value_t = 120)]
    seconds: u64,
    /// Measure the programs built with the dev profile, which builds faster
    #[arg(long)]
    dev: bool,
}

/// The result of one run of a program.
struct ProgramRunCost {
    cost: ProcessCost,
    served: ServerLogSummary,
    is_ended: bool,
}

pub(super) fn crawl(workspace: &Workspace, args: &CrawlArgs) -> Result<()> {
    let folder = args.folder.as_ref().unwrap_or(&workspace.target);
    let is_floor_wanted = args.programs.contains(&ComparedProgram::Floor);
    let floor = is_floor_wanted.then(|| {
        build(
            workspace,
            BuildProfile::of(args.dev),
            WorkspaceProgram::Trials,
        )
    });
    let mut bench = CrawlBench {
        workspace,
        dir: folder.join("bench-crawl"),
        crawl: build(
            workspace,
            BuildProfile::of(args.dev),
            WorkspaceProgram::Crawl,
        )?,
        floor: floor.transpose()?.unwrap_or_default(),
        limit: Duration::from_secs(args.seconds),
        root: args.site.lay_out(workspace, args.gzip)?,
        is_gzipped: args.gzip,
        found: ServerLogSummary::default(),
    };
    let mut absent = Vec::new();
    let mut rows = Vec::new();
    for &threads in &args.threads {
        for &contender in &args.programs {
            let program = match contender.install(workspace) {
                Ok(program) => program,
                Err(MissingProgramReason(why)) => {
                    absent.push(format!("absent: {}: {why}\n", contender.name()));
                    continue;
                }
            };
            let mut runs = Vec::new();
            for _ in 0..args.runs.max(1) {
                runs.push(bench.run(contender, program.as_deref(), threads)?);
            }
            runs.sort_by_key(|run| run.cost.wall);
            let median = runs.swap_remove(runs.len() / 2);
            rows.push((contender, threads, median));
        }
    }
    fs::remove_dir_all(&bench.dir)?;
    let table = table(&rows, bench.found.pages.len());
    let mut out = io::stdout();
    out.write_all(table.as_bytes())?;
    Ok(out.write_all(absent.concat().as_bytes())?)
}

struct CrawlBench<'a> {
    workspace: &'a Workspace,
    /// The folder for crawls, emptied before each run.
    dir: PathBuf,
    /// The path of the crawler's program.
    crawl: PathBuf,
    /// The path of this program, which runs the bare loop (`floor`). Built in the same profile as
    /// the crawler. Empty if the loop is not measured.
    floor: PathBuf,
    limit: Duration,
    root: PathBuf,
    is_gzipped: bool,
    /// The pages that the programs have received so far. The bare loop (`floor`) fetches them
    /// again.
    found: ServerLogSummary,
}

impl CrawlBench<'_> {
    fn run(
        &mut self,
        contender: ComparedProgram,
        program: Option<&Path>,
        threads: usize,
    ) -> Result<ProgramRunCost> {
        let name = contender.name();
        let _ = fs::remove_dir_all(&self.dir);
        let server = self.dir.join("server");
        fs::create_dir_all(&server)?;
        let log = self.dir.join("access.log");
        let (nginx, mime_types) = debian_packages::nginx(self.workspace);
        let nginx = Nginx::start(&NginxSpec {
            program: nginx,
            mime_types,
            root: self.root.clone(),
            dir: server,
            log: NginxLogDestination::File(log.clone()),
            endpoint: NginxEndpoint::Ipv4,
            log_line: server_log_summary::LINE,
            sends_gzip: self.is_gzipped,
        })
        .context("cannot start nginx")?;
        let out = self.dir.join("out");
        fs::create_dir_all(&out)?;
        let ours = match contender {
            ComparedProgram::Floor => &self.floor,
            _ => &self.crawl,
        };
        if contender == ComparedProgram::Floor {
            if self.found.pages.is_empty() {
                bail!("the floor fetches what the others found: name one before it");
            }
            fs::write(self.dir.join("urls"), self.found.list(&nginx.url()))?;
        }
        let argv = contender.argv(program.unwrap_or(ours), &nginx.url(), &self.dir);
        let mut command = pinned(self.workspace, threads, argv);
        command.envs(contender.environment(self.workspace)?);
        command.current_dir(&out);
        eprintln!("running {name}");
        let (cost, is_ended) = cost_until_end(&mut command, self.limit)
            .with_context(|| format!("cannot run {name}"))?;
        eprintln!("{name} took {:.1} s", cost.wall.as_secs_f64());
        drop(nginx);
        let served = ServerLogSummary::read(&fs::read_to_string(&log)?);
        if contender != ComparedProgram::Floor {
            self.found.pages.extend(served.pages.iter().cloned());
        }
        Ok(ProgramRunCost {
            cost,
            served,
            is_ended,
        })
    }
}

fn table(rows: &[(ComparedProgram, usize, ProgramRunCost)], known: usize) -> String {
    let rate = |run: &ProgramRunCost| run.served.pages.len() as f64 / run.cost.wall.as_secs_f64();
    let of = |contender: ComparedProgram, threads: usize| {
        let row = rows
            .iter()
            .find(|row| row.0 == contender && row.1 == threads);
        row.map(|row| rate(&row.2))
    };
    let mut text =
        "| program | threads | pages/s | of the floor | of wget2 | CPU a page | peak of memory \
                    | pages | complete | requests | connections |\n\
                    |---|---|---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for (contender, threads, run) in rows {
        let ratio = |other: Option<f64>| match other {
            Some(other) if other > 0.0 => format!("{:.2}", rate(run) / other),
            _ => "-".to_owned(),
        };
        let pages = run.served.pages.len();
        text += &format!(
            "| {}{} | {threads} | {:.0} | {} | {} | {:.3} ms | {} MiB | {pages} | {:.1} % | {} | {} |\n",
            contender.name(),
            if run.is_ended { " (ended)" } else { "" },
            rate(run),
            ratio(of(ComparedProgram::Floor, *threads)),
            ratio(of(ComparedProgram::Wget2, *threads)),
            run.cost.cpu.as_secs_f64() * 1e3 / pages.max(1) as f64,
            run.cost.peak_kib >> 10,
            100.0 * pages as f64 / known.max(1) as f64,
            run.served.requests,
            run.served.connections,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{ComparedProgram, ProcessCost, ProgramRunCost, ServerLogSummary, table};

    #[test]
    fn rows_are_reported_as_ratios_in_the_same_run() {
        let run = |seconds, pages: u32| ProgramRunCost {
            cost: ProcessCost {
                wall: Duration::from_secs(seconds),
                cpu: Duration::from_secs(1),
                peak_kib: 2048,
            },
            served: ServerLogSummary {
                pages: (0..pages).map(|n| format!("/{n}.html")).collect(),
                requests: 7,
                connections: 3,
            },
            is_ended: false,
        };
        let rows = [
            (ComparedProgram::Ours, 2, run(2, 100)),
            (ComparedProgram::Wget2, 2, run(1, 100)),
            (ComparedProgram::Floor, 2, run(1, 200)),
        ];
        let text = table(&rows, 200);
        let ours = text.lines().nth(2).unwrap();
        assert_eq!(
            ours,
            "| ours | 2 | 50 | 0.25 | 0.50 | 10.000 ms | 2 MiB | 100 | 50.0 % | 7 | 3 |"
        );
    }
}

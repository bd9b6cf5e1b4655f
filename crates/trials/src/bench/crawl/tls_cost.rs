//! The cost of a crawl over TLS, compared with wget2 and with a bare loop over rustls.
//!
//! Each host has its own name and certificate. The server runs on the same machine, so the CPU time
//! of a client is a better measure than its rate.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use crawl_testweb::Nginx;
use xtask::workspace::Workspace;

use super::compared_program::{ComparedProgram, MissingProgramReason};
use super::tls_hosts::{TlsHosts, TlsServerLogSummary};
use crate::bench::measured_program::{
    BuildProfile, ProcessCost, WorkspaceProgram, build, cost_until_end, pinned,
};
use crate::bench::slow_name_server::{NameServer, NameServerBehaviour};

/// The address of wget2's name server. wget2 has no flag for another port, and only root may listen
/// on this one.
const PLAIN_NAME_SERVER: &str = "127.0.1.53:53";
const WGET2_THREADS: u32 = 64;
/// Maximum time for one program. A program that takes longer is killed.
const MAX_TIME: Duration = Duration::from_secs(600);

#[derive(Args)]
pub(crate) struct TlsArgs {
    /// Number of hosts, each with its own name and certificate
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    hosts: u32,
    /// Pages per host
    #[arg(long, value_name = "N", default_value_t = 7)]
    pages: u32,
    /// HTTP version of the server
    #[arg(long, value_enum, default_value_t = HttpVersionChoice::H2)]
    http: HttpVersionChoice,
    /// This crawler's --max-kept-connections, with a --keep-alive of one minute
    #[arg(long, value_name = "N")]
    kept_connections: Option<u32>,
    /// Programs to compare
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = PROGRAMS)]
    programs: Vec<ComparedProgram>,
    /// Runs per program, the programs in turn; the median CPU time counts
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: usize,
    /// Measure the programs built with the dev profile, which builds faster
    #[arg(long)]
    dev: bool,
}

/// The programs that this benchmark can run.
const PROGRAMS: [ComparedProgram; 4] = [
    ComparedProgram::Ours,
    ComparedProgram::OursWarc,
    ComparedProgram::Wget2,
    ComparedProgram::Floor,
];

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HttpVersionChoice {
    H2,
    Http1,
}

/// The result of a run.
struct TlsRunCost {
    cost: ProcessCost,
    served: TlsServerLogSummary,
}

pub(crate) fn tls(workspace: &Workspace, args: &TlsArgs) -> Result<()> {
    if let Some(other) = args.programs.iter().find(|one| !PROGRAMS.contains(one)) {
        bail!("{other} is not measured over TLS\nhint: --programs ours,ours-warc,wget2,floor");
    }
    let profile = BuildProfile::of(args.dev);
    let dir = workspace.target.join("bench-tls");
    let bench = TlsBench {
        workspace,
        crawl: build(workspace, profile, WorkspaceProgram::Crawl)?,
        floor: build(workspace, profile, WorkspaceProgram::Trials)?,
        hosts: TlsHosts::create(&dir.join("hosts"), args.hosts, args.pages)?,
        http: args.http,
        kept_connections: args.kept_connections,
        dir,
    };
    let mut absent = String::new();
    let mut measured = Vec::new();
    for &contender in &args.programs {
        match bench.prepare(contender) {
            Ok(prepared) => measured.push((contender, prepared, Vec::new())),
            Err(MissingProgramReason(why)) => absent += &format!("absent: {contender}: {why}\n"),
        }
    }
    for _ in 0..args.runs.max(1) {
        for (contender, prepared, runs) in &mut measured {
            runs.push(bench.run(*contender, prepared)?);
        }
    }
    let median = |mut runs: Vec<TlsRunCost>| {
        runs.sort_by_key(|run| run.cost.cpu);
        runs.swap_remove(runs.len() / 2)
    };
    let rows: Vec<_> = measured
        .into_iter()
        .map(|(contender, _, runs)| (contender, median(runs)))
        .collect();
    let text = table(&rows, bench.hosts.pages()) + &absent;
    fs::remove_dir_all(&bench.dir)?;
    Ok(io::stdout().write_all(text.as_bytes())?)
}

struct TlsBench<'a> {
    workspace: &'a Workspace,
    dir: PathBuf,
    crawl: PathBuf,
    floor: PathBuf,
    hosts: TlsHosts,
    http: HttpVersionChoice,
    kept_connections: Option<u32>,
}

/// A program that is ready to run: its path, and its name server.
struct PreparedProgram {
    program: PathBuf,
    names: Option<NameServer>,
}

impl TlsBench<'_> {
    fn prepare(&self, contender: ComparedProgram) -> Result<PreparedProgram, MissingProgramReason> {
        let absent = |error: anyhow::Error| MissingProgramReason(format!("{error:#}"));
        let names = |address| {
            let addresses = self.hosts.addresses().collect();
            NameServer::start(address, addresses, NameServerBehaviour::Fast).map_err(absent)
        };
        let program = contender.install(self.workspace)?;
        let (program, names) = match contender {
            ComparedProgram::Wget2 => {
                (program.unwrap_or_default(), Some(names(PLAIN_NAME_SERVER)?))
            }
            ComparedProgram::Floor => (self.floor.clone(), None),
            _ => (self.crawl.clone(), Some(names("127.0.0.1:0")?)),
        };
        Ok(PreparedProgram { program, names })
    }

    fn run(&self, contender: ComparedProgram, prepared: &PreparedProgram) -> Result<TlsRunCost> {
        eprintln!("running {contender}");
        let nginx = self
            .hosts
            .serve(self.workspace, self.http == HttpVersionChoice::H2)?;
        let out = self.dir.join("out");
        let _ = fs::remove_dir_all(&out);
        fs::create_dir_all(&out)?;
        let mut command = self.command(contender, prepared, &nginx)?;
        command.current_dir(&out).env("HOME", &out);
        let (cost, is_ended) = cost_until_end(&mut command, MAX_TIME)
            .with_context(|| format!("cannot run {contender}"))?;
        ensure!(!is_ended, "{contender} did not end within {MAX_TIME:?}");
        drop(nginx);
        let served = self.hosts.served()?;
        ensure!(
            !served.served.pages.is_empty(),
            "{contender} fetched no page"
        );
        Ok(TlsRunCost { cost, served })
    }

    fn command(
        &self,
        contender: ComparedProgram,
        prepared: &PreparedProgram,
        nginx: &Nginx,
    ) -> Result<Command> {
        let (out, root) = (self.dir.join("out"), self.hosts.root());
        let (program, out, root) = (prepared.program.display(), out.display(), root.display());
        let list = self.dir.join("list");
        let names = prepared.names.as_ref().map(|names| names.address);
        let ours = |warc: &str| {
            let names = names.context("the crawler has no name server")?;
            let seeds = self.hosts.seeds(nginx);
            let mut config = format!("seed = {seeds:?}\n");
            if let Some(max) = self.kept_connections {
                config += &format!("[fetch]\nmax-kept-connections = {max}\nkeep-alive = \"1m\"\n");
            }
            fs::write(&list, config)?;
            anyhow::Ok(format!(
                "{program} -q --config {} --ca-file {root} --name-server {names} --delay 0s \
                 --delay-factor 0 --per-address 1000 --own-site --sitemaps off \
                 --contact bench@example.org{warc} --output {out}/crawl",
                list.display()
            ))
        };
        let argv = match contender {
            ComparedProgram::Ours => ours(" --warc off")?,
            ComparedProgram::Floor => {
                fs::write(&list, self.hosts.urls(nginx).join("\n"))?;
                format!(
                    "{program} bench tls-floor --urls {} --ca-file {root} --address 127.0.0.1:{}",
                    list.display(),
                    nginx.port()
                )
            }
            ComparedProgram::Wget2 => {
                fs::write(&list, self.hosts.seeds(nginx).join("\n"))?;
                let http2 = if self.http == HttpVersionChoice::H2 {
                    ""
                } else {
                    " --no-http2"
                };
                return self.with_names(prepared, &format!(
                    "{program} -q -r -l inf --max-threads={WGET2_THREADS} --ca-certificate={root}\
                     {http2} -P {out}/files -i {}",
                    list.display()
                ));
            }
            _ => ours("")?,
        };
        self.on_all_processors(argv.split(' ').map(OsString::from))
    }

    /// Returns a command that runs wget2 with its own `resolv.conf`.
    fn with_names(&self, prepared: &PreparedProgram, argv: &str) -> Result<Command> {
        let names = prepared
            .names
            .as_ref()
            .context("wget2 has no name server")?;
        let file = self.dir.join("resolv.conf");
        fs::write(&file, format!("nameserver {}\n", names.address.ip()))?;
        let script = format!(
            "mount --bind {} /etc/resolv.conf && exec {argv}",
            file.display()
        );
        let unshare = ["unshare", "--mount", "sh", "-c", &script].map(OsString::from);
        let mut command = self.on_all_processors(unshare)?;
        command.envs(ComparedProgram::Wget2.environment(self.workspace)?);
        Ok(command)
    }

    fn on_all_processors(&self, argv: impl IntoIterator<Item = OsString>) -> Result<Command> {
        let processors = std::thread::available_parallelism()?.get();
        Ok(pinned(self.workspace, processors, argv))
    }
}

fn table(rows: &[(ComparedProgram, TlsRunCost)], all_pages: u64) -> String {
    let rate =
        |run: &TlsRunCost| run.served.served.pages.len() as f64 / run.cost.wall.as_secs_f64();
    let cpu = |run: &TlsRunCost| {
        run.cost.cpu.as_secs_f64() * 1e3 / run.served.served.pages.len().max(1) as f64
    };
    let ratio = |run: &TlsRunCost, base: ComparedProgram, value: &dyn Fn(&TlsRunCost) -> f64| {
        let base = rows.iter().find(|row| row.0 == base);
        base.map_or("-".to_owned(), |(_, base)| {
            format!("{:.2}", value(run) / value(base))
        })
    };
    let mut text = "| program | pages/s | of wget2 | CPU a page | of wget2 | of the floor \
                    | peak of memory | pages | complete | requests | by HTTP/2 | connections \
                    | resumed |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for (contender, run) in rows {
        let TlsServerLogSummary {
            served,
            resumed,
            http2,
        } = &run.served;
        text += &format!(
            "| {contender} | {:.0} | {} | {:.3} ms | {} | {} | {} MiB | {} | {:.1} % | {} | {http2} \
             | {} | {resumed} |\n",
            rate(run),
            ratio(run, ComparedProgram::Wget2, &rate),
            cpu(run),
            ratio(run, ComparedProgram::Wget2, &cpu),
            ratio(run, ComparedProgram::Floor, &cpu),
            run.cost.peak_kib >> 10,
            served.pages.len(),
            100.0 * served.pages.len() as f64 / all_pages.max(1) as f64,
            served.requests,
            served.connections,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::server_log_summary::ServerLogSummary;
    use super::{ComparedProgram, ProcessCost, TlsRunCost, TlsServerLogSummary, table};

    #[test]
    fn programs_are_reported_relative_to_wget2_and_the_floor() {
        let run = |seconds, cpu| TlsRunCost {
            cost: ProcessCost {
                wall: Duration::from_secs(seconds),
                cpu: Duration::from_millis(cpu),
                peak_kib: 2048,
            },
            served: TlsServerLogSummary {
                served: ServerLogSummary {
                    pages: (0..100).map(|page| format!("h/{page}")).collect(),
                    requests: 110,
                    connections: 12,
                },
                resumed: 2,
                http2: 9,
            },
        };
        let rows = [
            (ComparedProgram::Ours, run(1, 300)),
            (ComparedProgram::Wget2, run(2, 600)),
            (ComparedProgram::Floor, run(1, 200)),
        ];
        let row = |rows| {
            table(rows, 200)
                .lines()
                .nth(2)
                .unwrap_or_default()
                .to_owned()
        };
        assert_eq!(
            row(&rows),
            "| ours | 100 | 2.00 | 3.000 ms | 0.50 | 1.50 | 2 MiB | 100 | 50.0 % | 110 | 9 | 12 | 2 |"
        );
        assert!(row(&rows[..1]).starts_with("| ours | 100 | - | 3.000 ms | - | - |"));
    }
}

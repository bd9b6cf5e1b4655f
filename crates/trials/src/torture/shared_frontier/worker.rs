//! A worker: a process with its own directory and network.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use crawl_archive::rows::RequestRow;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::network_proxy::{NetworkState, PostgresPairPorts, WorkerNetwork};
use super::{DISK, HostMove, USAGE};
use crate::torture::random_web::RandomWeb;

/// Settings shared by all workers of a crawl.
pub(super) struct SharedWorkerSettings<'a> {
    pub(super) program: &'a Path,
    pub(super) dir: &'a Path,
    pub(super) web: &'a RandomWeb,
    /// The value of `--frontier-lease`.
    pub(super) lease: String,
}

/// The crawl's name in the shared frontier.
const CRAWL: &str = "torture";

pub(super) struct WorkerProcess {
    pub(super) name: String,
    pub(super) process: Option<Child>,
    pub(super) link: WorkerNetwork,
    /// The current fault, and when it ends.
    pub(super) under: Option<LastingFault>,
    /// When to start the worker again, if it is not running.
    pub(super) starts_at: Instant,
    /// Whether the worker reached the end of the crawl.
    pub(super) is_done: bool,
    /// Whether the worker's disk is lost, and the URLs that the worker settled are not reopened
    /// yet.
    pub(super) is_lost: bool,
}

/// A fault that affects a worker for some time.
#[derive(Clone, Copy)]
pub(super) enum LastingFault {
    Frozen(Instant),
    Apart(Instant),
    /// The worker's files can't grow.
    FullDisk(Instant),
}

impl LastingFault {
    pub(super) fn until(self) -> Instant {
        match self {
            LastingFault::Frozen(until)
            | LastingFault::Apart(until)
            | LastingFault::FullDisk(until) => until,
        }
    }
}

impl SharedWorkerSettings<'_> {
    /// Returns the flags that name both database servers of each group, so that the program finds
    /// the primary.
    fn frontier(groups: &[PostgresPairPorts]) -> Vec<String> {
        let urls = groups.iter().map(|[a, b]| {
            format!(
                "postgres://crawl@127.0.0.1:{a},127.0.0.1:{b}/postgres?target_session_attrs=read-write"
            )
        });
        let flags = urls.flat_map(|url| ["--frontier".to_owned(), url]);
        flags.chain(["--crawl", CRAWL].map(str::to_owned)).collect()
    }

    pub(super) fn output(&self, worker: &str) -> PathBuf {
        self.dir.join(worker)
    }

    /// Returns the command that starts the program, with its output in a file next to the crawl. If
    /// the simulated disk is full, the program gets an error instead of being killed by a signal.
    fn command(&self) -> Result<Command> {
        let log_file = File::options()
            .create(true)
            .append(true)
            .open(self.dir.join("said.txt"))?;
        let mut command = Command::new("sh");
        command
            .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
            .arg(self.program)
            .current_dir(self.dir)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(log_file.try_clone()?)
            .stderr(log_file);
        Ok(command)
    }

    pub(super) fn start(&self, worker: &mut WorkerProcess) -> Result<()> {
        let mut command = self.command()?;
        // Give each worker its own home, as if on separate machines. Workers with the same home
        // wait for each other's hosts, even if another worker is frozen.
        command.env("HOME", self.dir.join(format!("home of {}", worker.name)));
        let delay = format!("{}ms", self.web.delay.as_millis());
        command.args(["--seed", &self.web.web.url(0, "/"), "--delay", &delay]);
        command.args(["--delay-factor", "0", "--scope", "any", "--allow-private"]);
        command.args(["--progress", "off", "-q", "--output", &worker.name]);
        command.args(SharedWorkerSettings::frontier(&worker.link.ports));
        command.args(["--worker", &worker.name, "--frontier-lease", &self.lease]);
        if self.web.links {
            command.args(["--links", "on"]);
        }
        worker.process = Some(command.spawn().context("the program does not start")?);
        Ok(())
    }

    /// Runs a command of the program that sends no requests to hosts.
    pub(super) fn run(&self, args: &[&str]) -> Result<Output> {
        let mut command = Command::new(self.program);
        command
            .current_dir(self.dir)
            .env_clear()
            .env("HOME", self.dir.join("home"))
            .args(args);
        Ok(command.output()?)
    }

    fn run_frontier(&self, groups: &[PostgresPairPorts], args: &[&str]) -> Result<Output> {
        let place = SharedWorkerSettings::frontier(groups);
        let place: Vec<&str> = place.iter().map(String::as_str).collect();
        self.run(&[&["frontier"], args, &place].concat())
    }

    /// Starts `crawl frontier move`.
    pub(super) fn start_move(
        &self,
        groups: &[PostgresPairPorts],
        hosts: &HostMove,
    ) -> Result<Child> {
        let mut command = self.command()?;
        command.env("HOME", self.dir.join("home"));
        command.args(["frontier", "move", &hosts.buckets, "--to", &hosts.to]);
        command.args(SharedWorkerSettings::frontier(groups));
        command.spawn().context("the program does not start")
    }

    /// Runs `crawl frontier` with the given arguments and returns its output.
    pub(super) fn frontier_command(
        &self,
        groups: &[PostgresPairPorts],
        args: &[&str],
    ) -> Result<String> {
        let output = self.run_frontier(groups, args)?;
        ensure!(
            output.status.success(),
            "`crawl frontier {}` ended with {}: {}",
            args.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Removes the directory of a killed worker. Returns the URLs that it had requested.
    pub(super) fn lose(&self, worker: &mut WorkerProcess) -> Result<BTreeSet<String>> {
        let output = self.output(&worker.name);
        worker.is_lost = true;
        // The worker may have been killed before it created any rows.
        let rows = fs::read_to_string(output.join("requests.jsonl")).unwrap_or_default();
        // Skip rows that can't be parsed, because the last row may be torn.
        let rows = rows
            .lines()
            .filter_map(|row| serde_json::from_str(row).ok());
        let urls = rows.map(|row: RequestRow| row.url).collect();
        if output.exists() {
            fs::remove_dir_all(&output)?;
        }
        Ok(urls)
    }

    /// Reopens the URLs settled by a worker whose disk is lost. Returns false if this must be
    /// retried later, because the worker's lease has not ended, hosts are being moved, or the
    /// database server does not answer.
    pub(super) fn reopen(&self, groups: &[PostgresPairPorts], worker: &str) -> Result<bool> {
        let output = self.run_frontier(groups, &["reopen", worker])?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        let is_alive = stderr.contains("is still running on crawl");
        let hosts_move = stderr.contains("are being moved to another group");
        // The worker may have been killed before it reached the database server.
        let is_unknown = stderr.contains("has no worker");
        match output.status.code() {
            Some(0) => Ok(true),
            Some(USAGE) if is_unknown => Ok(true),
            Some(USAGE) if is_alive || hosts_move => Ok(false),
            Some(DISK) => Ok(false),
            _ => bail!("`crawl frontier reopen {worker}`: {stderr}"),
        }
    }

    pub(super) fn last_words(&self) -> String {
        let log_text = fs::read_to_string(self.dir.join("said.txt")).unwrap_or_default();
        let lines: Vec<_> = log_text.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }
}

impl WorkerProcess {
    pub(super) fn new(name: String, groups: &[PostgresPairPorts]) -> Result<WorkerProcess> {
        Ok(WorkerProcess {
            name,
            process: None,
            link: WorkerNetwork::to(groups)?,
            under: None,
            starts_at: Instant::now(),
            is_done: false,
            is_lost: false,
        })
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<()> {
        if let Some(process) = &self.process {
            kill(Pid::from_raw(process.id() as i32), signal)?;
        }
        Ok(())
    }

    /// Returns the exit status if the process has ended.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let Some(process) = &mut self.process else {
            return Ok(None);
        };
        let status = process.try_wait()?;
        if status.is_some() {
            self.process = None;
        }
        Ok(status)
    }

    /// Kills the process, even if it is frozen.
    pub(super) fn kill(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    /// Limits the size of the files that the process writes. `None` removes the limit.
    pub(super) fn limit_files(&self, bytes: Option<u64>) -> Result<()> {
        let Some(process) = &self.process else {
            return Ok(());
        };
        let limit = bytes.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
        let set = Command::new("prlimit")
            .args(["--pid", &process.id().to_string()])
            .arg(format!("--fsize={limit}:"))
            .output()?;
        // Accept an error if the process has already ended.
        let is_gone = String::from_utf8_lossy(&set.stderr).contains("No such process");
        ensure!(
            set.status.success() || is_gone,
            "prlimit: {}",
            String::from_utf8_lossy(&set.stderr)
        );
        Ok(())
    }

    /// Ends the current fault.
    pub(super) fn relieve(&mut self) -> Result<()> {
        match self.under.take() {
            Some(LastingFault::Frozen(_)) => self.signal(Signal::SIGCONT)?,
            Some(LastingFault::Apart(_)) => self.link.set(NetworkState::Whole),
            Some(LastingFault::FullDisk(_)) => self.limit_files(None)?,
            None => {}
        }
        Ok(())
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // This can't fail, because the process is our own child and nothing else waits for it.
        let _ = self.kill();
    }
}

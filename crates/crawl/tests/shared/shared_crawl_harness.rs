//! A web, a PostgreSQL server, and the workers of one crawl, each a process with its own directory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crawl_testweb::{HostsInScope, LogEntry, TestWeb, TestWebBuilder, gaps};
use serde_json::Value;
use tempfile::TempDir;

use crate::postgres::{Served, text as text_of};

/// The gap between requests to every host.
pub(crate) const DELAY: Duration = Duration::from_millis(30);

/// Maximum time for each wait in these tests. Most waits take only seconds.
const MAX_WAIT: Duration = Duration::from_secs(240);

/// The lease of a worker. It is long enough for a heartbeat on a busy machine, and short enough
/// that workers check on each other several times a second.
const LEASE: &str = "15s";

/// The lease of a worker that is to be killed, short so that tests don't wait long for the worker's
/// hosts. If the lease expires before the kill, the worker only loses its hosts earlier.
const SHORT_LEASE: &str = "6s";

/// The flags of a worker that follows links to every host.
const FLAGS: &str = "--scope any --allow-private";

pub(crate) struct Crawl {
    pub(crate) web: TestWeb,
    pub(crate) served: Served,
    /// The second database server of a crawl over two server groups.
    second: Option<Served>,
    dir: TempDir,
    name: String,
}

/// The exit code and the output of a worker or a command that has ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn of(output: &Output) -> Ended {
        Ended {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    pub(crate) fn expect(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        self.stderr
    }
}

/// A running worker, killed if the test fails.
pub(crate) struct Worker(Option<Child>);

impl Worker {
    pub(crate) fn signal(&self, name: &str) {
        let id = self.0.as_ref().unwrap().id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success(), "no {name} for {id}");
    }

    pub(crate) fn kill(mut self) {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(crate) fn wait(mut self) -> Ended {
        Ended::of(&self.0.take().unwrap().wait_with_output().unwrap())
    }

    /// Waits until the worker's stderr has a line with this text, and returns the line.
    pub(crate) fn wait_to_say(&mut self, text: &str) -> String {
        let pipe = self.0.as_mut().unwrap().stderr.as_mut().unwrap();
        let lines = BufReader::new(pipe).lines().map(Result::unwrap);
        let mut lines = lines.skip_while(|line| !line.contains(text));
        lines.next().expect("it ended, and did not say so")
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.as_mut().unwrap().try_wait().unwrap().is_some()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Crawl {
    pub(crate) fn of(web: TestWebBuilder) -> Crawl {
        static CRAWLS: AtomicU32 = AtomicU32::new(0);
        let number = CRAWLS.fetch_add(1, Ordering::Relaxed);
        Crawl {
            web: web.start(),
            served: Served::new(),
            second: None,
            dir: TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
            name: format!("crawl {number}"),
        }
    }

    /// Creates a crawl over two server groups.
    pub(crate) fn in_two_groups(web: TestWebBuilder) -> Crawl {
        Crawl {
            second: Some(Served::second()),
            ..Crawl::of(web)
        }
    }

    /// Returns the connection string of each group.
    pub(crate) fn groups(&self) -> Vec<String> {
        let all = std::iter::once(&self.served).chain(&self.second);
        all.map(|served| served.url.clone()).collect()
    }

    fn name_groups(&self, command: &mut Command) {
        for url in self.groups() {
            command.args(["--frontier", &url]);
        }
        command.args(["--crawl", &self.name]);
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn output(&self, worker: &str) -> PathBuf {
        self.dir.path().join(worker)
    }

    /// Returns the command of a worker, with additional flags.
    pub(crate) fn command(&self, worker: &str, flags: &str) -> Command {
        self.command_in(worker, worker, flags)
    }

    /// Returns the command of a worker with another directory.
    pub(crate) fn command_in(&self, output: &str, worker: &str, flags: &str) -> Command {
        let mut command = self.command_alone(output, flags);
        // Separate home folders simulate separate machines. On a single machine, a user's workers
        // lock hosts in one file, so a host would have to wait for the worker that locked it, even
        // a frozen one.
        command.env("HOME", self.dir.path().join(format!("home of {worker}")));
        self.name_groups(&mut command);
        command.args(["--worker", worker]);
        if !flags.contains("--frontier-lease") {
            command.args(["--frontier-lease", LEASE]);
        }
        command
    }

    /// Returns a command that crawls alone, with a frontier in its own directory `output`.
    pub(crate) fn command_alone(&self, output: &str, flags: &str) -> Command {
        let mut command = self.program();
        let delay = format!("{}ms", DELAY.as_millis());
        command.arg(self.web.url(0, "/"));
        command.args(["--delay", &delay, "--delay-factor", "0"]);
        command.arg("--output").arg(self.output(output));
        command.args(flags.split_whitespace());
        command
    }

    /// Returns a command for the program, with an environment that doesn't depend on this machine.
    pub(crate) fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
        command
            .env_clear()
            .env("HOME", self.dir.path())
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts a worker that follows links to every host.
    pub(crate) fn start(&self, worker: &str) -> Worker {
        self.start_with(worker, FLAGS)
    }

    /// Starts a worker that the test is going to kill or freeze, so its lease is short.
    pub(crate) fn start_mortal(&self, worker: &str) -> Worker {
        let flags = format!("{FLAGS} --frontier-lease {SHORT_LEASE}");
        self.start_with(worker, &flags)
    }

    pub(crate) fn start_with(&self, worker: &str, flags: &str) -> Worker {
        let mut command = self.command(worker, flags);
        Worker(Some(command.spawn().unwrap()))
    }

    /// Runs `crawl frontier`.
    pub(crate) fn frontier(&self, args: &[&str]) -> Output {
        let mut command = self.program();
        command.arg("frontier").args(args);
        self.name_groups(&mut command);
        command.output().unwrap()
    }

    /// Starts a worker next to a running one, and waits until the new worker has hosts. During the
    /// wait, the running worker is paused: it still hands over hosts, but can't finish the crawl.
    pub(crate) fn start_beside(&self, other: &str, worker: &str) -> Worker {
        self.start_beside_with(other, worker, FLAGS)
    }

    fn start_beside_with(&self, other: &str, worker: &str, flags: &str) -> Worker {
        self.pause_after_requests(other);
        let started = self.start_with(worker, flags);
        self.wait_for_buckets(worker);
        self.control(other, "resume");
        started
    }

    /// Starts `w2` and, next to it, `w1`, which the test is going to kill or freeze. Returns `w1`
    /// and `w2` when both have hosts. `w2` is left paused, so that the test decides how much of
    /// the crawl `w1` does first.
    pub(crate) fn start_mortal_beside_paused(&self) -> (Worker, Worker) {
        let second = self.start("w2");
        self.pause_after_requests("w2");
        let first = self.start_mortal("w1");
        self.wait_for_buckets("w1");
        (first, second)
    }

    /// Starts `w1` and `w2`, and waits until both have hosts.
    pub(crate) fn start_two(&self) -> (Worker, Worker) {
        self.start_two_with(FLAGS)
    }

    pub(crate) fn start_two_with(&self, flags: &str) -> (Worker, Worker) {
        let first = self.start_with("w1", flags);
        let second = if self.second.is_some() {
            // Each worker serves one group, so `w1` can't finish the crawl alone.
            let second = self.start_with("w2", flags);
            self.wait_for_buckets("w1");
            self.wait_for_buckets("w2");
            second
        } else {
            self.start_beside_with("w1", "w2", flags)
        };
        (first, second)
    }

    /// Pauses a worker when the web has received some requests.
    fn pause_after_requests(&self, worker: &str) {
        self.wait_for_requests(50);
        self.control(worker, "pause");
    }

    /// Waits until a worker takes control commands.
    pub(crate) fn wait_for_control(&self, worker: &str) {
        let begin = Instant::now();
        let socket = self.output(worker).join("state/control.sock");
        while !socket.exists() {
            assert!(begin.elapsed() < MAX_WAIT, "{worker} takes no commands");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Sends a control command to a running worker.
    pub(crate) fn control(&self, worker: &str, command: &str) {
        self.wait_for_control(worker);
        let mut control = self.program();
        let output = control.args(["control", worker, command]).output().unwrap();
        Ended::of(&output).expect(0);
    }

    /// Waits until the settings on the database server contain this text. New workers must have
    /// these settings.
    pub(crate) fn wait_for_settings(&self, text: &str) {
        let begin = Instant::now();
        let sql = format!(
            "SELECT settings FROM crawl_frontier.crawl WHERE name = '{}'",
            self.name
        );
        let settings = || text_of(&self.served.url, &sql);
        while !settings().contains(text) {
            assert!(begin.elapsed() < MAX_WAIT, "no {text} in {}", settings());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until a worker owns some buckets.
    fn wait_for_buckets(&self, worker: &str) {
        let begin = Instant::now();
        while self.buckets().get(worker).is_none_or(|count| *count == 0) {
            assert!(begin.elapsed() < MAX_WAIT, "{worker} got no host");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Returns the live workers by name, each with its number of buckets of hosts.
    pub(crate) fn buckets(&self) -> BTreeMap<String, u64> {
        let output = self.frontier(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let workers = status["crawls"][0]["workers"].as_array().cloned();
        let living = workers.into_iter().flatten();
        let living = living.filter(|worker| worker["state"] != "gone");
        living
            .map(|worker| {
                let name = worker["name"].as_str().unwrap().to_owned();
                (name, worker["buckets"].as_u64().unwrap())
            })
            .collect()
    }

    /// Waits until the web has received this many requests.
    pub(crate) fn wait_for_requests(&self, count: usize) {
        let has_come = self.web.wait_for(MAX_WAIT, |log| log.len() >= count);
        assert!(has_come, "{} requests, not {count}", self.web.log().len());
    }

    /// Waits until a worker has written this many rows of `pages.jsonl`. Counts the rows after each
    /// request to the web.
    pub(crate) fn wait_for_pages(&self, worker: &str, count: usize) {
        let file = self.output(worker).join("pages.jsonl");
        let rows = || {
            let text = fs::read(&file).unwrap_or_default();
            text.iter().filter(|byte| **byte == b'\n').count()
        };
        let has_come = self.web.wait_for(MAX_WAIT, |_| rows() >= count);
        assert!(has_come, "{} pages, not {count}", rows());
    }

    /// Waits until a host of the web has received a request.
    pub(crate) fn wait_for_requests_to(&self, host: u32) {
        let has_come = |log: &[LogEntry]| log.iter().any(|entry| entry.host == host);
        assert!(self.web.wait_for(MAX_WAIT, has_come), "none to host {host}");
    }

    /// Returns the rows of the row file `file` in the directories of `workers`.
    pub(crate) fn rows(&self, workers: &[&str], file: &str) -> Vec<Value> {
        let mut rows = Vec::new();
        for worker in workers {
            let text = fs::read_to_string(self.output(worker).join(file)).unwrap_or_default();
            rows.extend(text.lines().map(|line| serde_json::from_str(line).unwrap()));
        }
        rows
    }

    /// Returns the URLs in `pages.jsonl`, and fails on duplicates.
    pub(crate) fn pages(&self, workers: &[&str]) -> BTreeSet<String> {
        self.urls_of(workers, "pages.jsonl")
    }

    fn urls_of(&self, workers: &[&str], file: &str) -> BTreeSet<String> {
        let mut urls = BTreeSet::new();
        for row in self.rows(workers, file) {
            let url = row["url"].as_str().unwrap().to_owned();
            assert!(urls.insert(url), "twice: {row}");
        }
        urls
    }

    /// Returns the URLs in `excluded.jsonl`, and fails on duplicates.
    pub(crate) fn excluded(&self, workers: &[&str]) -> BTreeSet<String> {
        self.urls_of(workers, "excluded.jsonl")
    }

    /// Checks that every page has exactly one row, and that every host got its gaps according to
    /// the web's log.
    pub(crate) fn check_whole(&self, workers: &[&str]) {
        let pages = self.pages(workers);
        let truth = self.web.truth(HostsInScope::Any);
        let mut expected: BTreeSet<String> = truth.fetched.into_keys().collect();
        expected.extend(truth.by_sitemap);
        for host in 0..self.web.hosts() {
            if expected.contains(&self.web.url(host, "/")) {
                expected.insert(self.web.url(host, "/sitemap.xml"));
            }
        }
        let missing: Vec<_> = expected.difference(&pages).collect();
        let more: Vec<_> = pages.difference(&expected).take(3).collect();
        let excluded = self.rows(workers, "excluded.jsonl");
        let reason = excluded.iter().find(|row| {
            let url = row["url"].as_str();
            missing.iter().any(|missing| Some(missing.as_str()) == url)
        });
        assert!(
            missing.is_empty() && more.is_empty(),
            "{} missing: {:?}, more {more:?}; {reason:?}",
            missing.len(),
            missing.iter().take(30).collect::<Vec<_>>()
        );
        self.check_gaps();
    }

    /// Checks that no host got a request sooner than a gap after its last response, from any
    /// worker.
    pub(crate) fn check_gaps(&self) {
        let min_gap = i64::try_from(DELAY.as_micros()).unwrap();
        for host in 0..self.web.hosts() {
            let log = self.web.log_of(host);
            let short: Vec<i64> = gaps(&log)
                .into_iter()
                .filter(|gap| *gap < min_gap)
                .collect();
            assert!(short.is_empty(), "host {host}: gaps of {short:?} us");
        }
    }
}

/// Returns the number of paths that were requested more than once. robots.txt doesn't count: a
/// worker that takes over a host fetches robots.txt again if the response was on its way to the
/// previous worker.
pub(crate) fn repeated_paths(log: &[LogEntry]) -> usize {
    let mut times = BTreeMap::new();
    for entry in log.iter().filter(|entry| entry.path != "/robots.txt") {
        *times.entry((entry.host, &entry.path)).or_insert(0) += 1;
    }
    times.values().filter(|count| **count > 1).count()
}

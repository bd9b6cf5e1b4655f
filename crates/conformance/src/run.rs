//! Runs a crawler's command over the web of each clause.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crawl_testweb::LogEntry;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::clause::{Clause, CommandRuns};
use crate::clause_test_web::ClauseTestWeb;
use crate::crawl_trace::{ClauseVerdict, CommandRun, CrawlTrace, RunEnd};
use crate::report::JudgedClause;

/// Interval between two checks of a running command.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Time between the answer that the crawler must remember and the SIGKILL, so that the crawler can
/// save its state.
const KILL_AFTER: Duration = Duration::from_millis(500);

/// Maximum time for the server to notice that a killed command's connections are closed.
const MAX_CLOSING: Duration = Duration::from_secs(2);

/// Maximum bytes of stderr that `crawl conformance` reads, for the last line.
/// Beyond the limit: the beginning is left out.
const MAX_STDERR_BYTES: usize = 16 * 1024;

/// The crawler under test, and how to start it.
#[derive(Debug)]
pub struct CrawlerUnderTest<'a> {
    /// The program and its arguments. The runner replaces `{url}` with the start URL, `{host}` with
    /// the address and port of that URL, and `{dir}` with a directory for the state.
    pub words: &'a [OsString],
    /// Additional arguments for a second visit.
    pub again: &'a [OsString],
    /// The product token of the crawler, which robots.txt files name.
    pub token: &'a str,
    /// Creates the command for a program, with the environment that the program may see.
    pub command: fn(&OsStr) -> Command,
}

/// How to run the crawler's command, and which clauses to judge.
#[derive(Debug)]
pub struct CheckOptions<'a> {
    /// The clauses to judge.
    pub clauses: &'a [Clause],
    /// The gap between requests to one host that the flags of the command set.
    pub gap: Duration,
    /// Maximum duration of a run.
    pub timeout: Duration,
    /// Maximum number of runs at once.
    pub jobs: usize,
    /// Ends the check when it becomes true.
    pub stop: &'a AtomicBool,
}

/// The reason why the clauses could not be judged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The program can't be started.
    #[error("can't start {program}")]
    Start {
        /// The program, as named in the command.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// The web of a clause can't be served, or a directory can't be created.
    #[error("can't serve the web of a clause")]
    Serve(#[source] io::Error),
    /// The check was stopped.
    #[error("interrupted")]
    Interrupted,
}

impl CrawlerUnderTest<'_> {
    /// Returns whether the command can keep its state in `{dir}`.
    pub fn has_dir(&self) -> bool {
        self.words
            .iter()
            .any(|word| word.to_string_lossy().contains("{dir}"))
    }

    fn start(
        &self,
        place: &PlaceholderValues<'_>,
        is_second: bool,
    ) -> Result<StartedCommand, CheckError> {
        let again = if is_second { self.again } else { &[] };
        let mut words = self
            .words
            .iter()
            .chain(again)
            .map(|word| place.filled(word));
        let program = words.next().unwrap_or_default();
        let mut command = (self.command)(&program);
        command
            .args(words)
            .env("CRAWL_URL", &place.url)
            .env("CRAWL_DIR", &place.dir);
        let stderr = File::create(place.stderr).map_err(CheckError::Serve)?;
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr);
        // Start a process group. Killing the group also ends the processes that the command
        // started.
        match command.process_group(0).spawn() {
            Ok(child) => Ok(StartedCommand {
                child,
                is_killed: false,
            }),
            Err(source) => Err(CheckError::Start {
                program: program.to_string_lossy().into_owned(),
                source,
            }),
        }
    }
}

struct PlaceholderValues<'a> {
    url: String,
    host: String,
    dir: String,
    stderr: &'a Path,
}

impl PlaceholderValues<'_> {
    fn filled(&self, word: &OsStr) -> OsString {
        match word.to_str() {
            Some(text) => text
                .replace("{url}", &self.url)
                .replace("{dir}", &self.dir)
                .replace("{host}", &self.host)
                .into(),
            None => word.to_owned(),
        }
    }
}

/// A running command. Dropping the value kills it.
struct StartedCommand {
    child: Child,
    is_killed: bool,
}

impl StartedCommand {
    /// Kills the command's process group. Does so only once, because the system may reuse the
    /// group's number after the group has ended.
    fn kill(&mut self) {
        if std::mem::replace(&mut self.is_killed, true) {
            return;
        }
        if let Ok(group) = i32::try_from(self.child.id()) {
            // Ignore the error: `killpg` fails if the whole group has ended.
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}

impl Drop for StartedCommand {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs the command over the web of each clause, several at a time, and judges the clauses. Calls
/// `on_judged` after each clause. Results are in the order of the clauses.
///
/// # Errors
/// If the program can't be started, a web can't be served, or the check was stopped.
pub fn check(
    subject: &CrawlerUnderTest<'_>,
    setup: &CheckOptions<'_>,
    on_judged: &(dyn Fn(&JudgedClause) + Sync),
) -> Result<Vec<JudgedClause>, CheckError> {
    let next = Mutex::new(setup.clauses.iter().enumerate());
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            let entry = next.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((number, clause)) = entry else {
                return Ok(());
            };
            let judged = judge(clause, subject, setup)?;
            on_judged(&judged);
            done.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((number, judged));
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..setup.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        let ends = workers.into_iter().map(|worker| match worker.join() {
            Ok(end) => end,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ends.collect::<Vec<_>>()
            .into_iter()
            .collect::<Result<(), CheckError>>()
    })?;
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, judged)| judged).collect())
}

/// Runs the command over the web of one clause and judges the clause.
fn judge(
    clause: &Clause,
    subject: &CrawlerUnderTest<'_>,
    setup: &CheckOptions<'_>,
) -> Result<JudgedClause, CheckError> {
    if clause.plan.needs_dir() && !subject.has_dir() {
        let verdict = ClauseVerdict::not_shown("the command has no {dir}, so it can't keep state");
        return Ok(JudgedClause::new(clause, verdict));
    }
    let folder = TempDir::new().map_err(CheckError::Serve)?;
    let dir = folder.path().join("state");
    fs::create_dir(&dir).map_err(CheckError::Serve)?;
    let served = ClauseTestWeb::start(clause, subject.token).map_err(CheckError::Serve)?;
    let stderr = folder.path().join("stderr");
    let place = PlaceholderValues {
        url: served.start_url(),
        host: served.authorities[0].clone(),
        dir: dir.display().to_string(),
        stderr: &stderr,
    };
    let mut runs = Vec::new();
    let is_due: Option<fn(&[LogEntry]) -> bool> = match clause.plan {
        CommandRuns::Killed(is_due) => Some(is_due),
        CommandRuns::Once | CommandRuns::Twice => None,
    };
    let start_us = served.web.now_us();
    runs.push(wait(
        subject.start(&place, false)?,
        setup,
        &served,
        is_due,
        start_us,
    )?);
    if clause.plan.needs_dir() {
        let start_us = served.web.now_us();
        runs.push(wait(
            subject.start(&place, true)?,
            setup,
            &served,
            None,
            start_us,
        )?);
    }
    let all_ended = |log: &[LogEntry]| log.iter().all(|entry| entry.end_us.is_some());
    served.web.wait_for(MAX_CLOSING, all_ended);
    let trace = CrawlTrace {
        log: served.web.log(),
        runs,
        authorities: served.authorities.clone(),
        token: subject.token.to_owned(),
        gap: setup.gap,
    };
    let mut verdict = clause.verdict(&trace);
    if trace.log.is_empty()
        && let Some(line) = last_line(&stderr)
    {
        verdict.reason.push_str(&format!(": {line}"));
    }
    Ok(JudgedClause::new(clause, verdict))
}

/// Waits until the command ends. Kills it at the time limit, or `KILL_AFTER` after `is_due` returns
/// true.
fn wait(
    mut started: StartedCommand,
    setup: &CheckOptions<'_>,
    served: &ClauseTestWeb,
    is_due: Option<fn(&[LogEntry]) -> bool>,
    start_us: u64,
) -> Result<CommandRun, CheckError> {
    let deadline = Instant::now() + setup.timeout;
    let mut kill_at = None;
    let end = loop {
        if setup.stop.load(Ordering::Relaxed) {
            return Err(CheckError::Interrupted);
        }
        if let Some(status) = started.child.try_wait().map_err(CheckError::Serve)? {
            break RunEnd::Exited(status.code());
        }
        if kill_at.is_none() && is_due.is_some_and(|is_due| is_due(&served.web.log())) {
            kill_at = Some(Instant::now() + KILL_AFTER);
        }
        if kill_at.is_some_and(|kill_at| Instant::now() >= kill_at) {
            break RunEnd::Killed;
        }
        if Instant::now() >= deadline {
            break RunEnd::TimeLimit;
        }
        thread::sleep(LOOK_EVERY);
    };
    let end_us = served.web.now_us();
    started.kill();
    Ok(CommandRun {
        start_us,
        end_us,
        end,
    })
}

/// Returns the last line of a file that is not blank.
fn last_line(file: &Path) -> Option<String> {
    let bytes = fs::read(file).ok()?;
    let tail = &bytes[bytes.len().saturating_sub(MAX_STDERR_BYTES)..];
    let text = String::from_utf8_lossy(tail);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.chars().take(200).collect())
}

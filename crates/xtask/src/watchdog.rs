//! Limits the duration of the gate. Ends a check that hangs and reports its name.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum duration of a gate run.
pub(crate) const MAX_RUN: Duration = Duration::from_mins(60);
/// Maximum duration of a step that runs tests. Builds don't count, because earlier steps do them.
pub(crate) const MAX_TESTS: Duration = Duration::from_mins(30);

/// Number of lines to show from the end of each log.
const TAIL_LINES: usize = 40;
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Tracks the current step. A separate thread ends this process and its children if the step or the
/// whole gate takes too long.
#[derive(Clone, Debug)]
pub(crate) struct Watchdog(Arc<Mutex<WatchdogState>>);

#[derive(Debug)]
struct WatchdogState {
    since: Instant,
    step: Option<WatchedStep>,
    /// The logs of concurrent processes.
    logs: Vec<PathBuf>,
}

#[derive(Debug)]
struct WatchedStep {
    name: &'static str,
    since: Instant,
    most: Duration,
}

impl Watchdog {
    pub(crate) fn start() -> Watchdog {
        let watchdog = Watchdog(Arc::new(Mutex::new(WatchdogState {
            since: Instant::now(),
            step: None,
            logs: Vec::new(),
        })));
        let watching = watchdog.clone();
        thread::spawn(move || {
            loop {
                thread::sleep(LOOK_INTERVAL);
                let report = watching.lock().overdue(Instant::now());
                if let Some(report) = report {
                    eprintln!("{report}");
                    kill_descendants(std::process::id());
                    std::process::exit(1);
                }
            }
        });
        watchdog
    }

    /// Records that a step begins and may take at most `max`.
    pub(crate) fn begin(&self, name: &'static str, max: Duration) {
        let since = Instant::now();
        self.lock().step = Some(WatchedStep {
            name,
            since,
            most: max,
        });
    }

    /// Records that the step has ended.
    pub(crate) fn end(&self) {
        self.lock().step = None;
    }

    /// Records the log of a concurrent process.
    pub(crate) fn note_log(&self, log: &Path) {
        self.lock().logs.push(log.to_owned());
    }

    /// Stops tracking the log of a process that has ended.
    pub(crate) fn forget_log(&self, log: &Path) {
        self.lock().logs.retain(|known| known != log);
    }

    fn lock(&self) -> MutexGuard<'_, WatchdogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchdogState {
    /// Returns a message with the end of each log if the step or the whole gate takes too long.
    fn overdue(&self, now: Instant) -> Option<String> {
        let late = self
            .step
            .as_ref()
            .filter(|step| now.duration_since(step.since) > step.most);
        let (what, most) = match late {
            Some(step) => (format!("step {}", step.name), step.most),
            None if now.duration_since(self.since) > MAX_RUN => ("the gate".to_owned(), MAX_RUN),
            None => return None,
        };
        let mut report = String::new();
        for log in &self.logs {
            let text = fs::read(log).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let _ = write!(
                report,
                "\n==== {}, whose last step is {} ====\n{}\n",
                log.display(),
                last_step(&text),
                tail(&text)
            );
        }
        let under_way = self
            .step
            .as_ref()
            .map_or("none of its own", |step| step.name);
        let minutes = most.as_secs() / 60;
        let _ = write!(
            report,
            "\nerror: {what} has not ended after {minutes} minutes; under way: {under_way}\n\
             hint: of a test that hangs its output says `has been running for over 60 seconds`"
        );
        Some(report)
    }
}

/// Returns the name of the last step that began, according to a log.
fn last_step(log: &str) -> &str {
    let mut lines = log.lines().rev();
    let name = lines.find_map(|line| {
        let name = line.strip_prefix("==== ")?.strip_suffix(" ====")?;
        (!name.contains(' ')).then_some(name)
    });
    name.unwrap_or("unknown")
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// Kills all descendants of a process.
fn kill_descendants(root: u32) {
    let signal = |name: &str, processes: &BTreeSet<u32>| {
        let ids = processes.iter().map(u32::to_string);
        // Ignore errors, because a process may have ended since it was listed.
        let _ = Command::new("kill").args(["-s", name]).args(ids).status();
    };
    // Stop processes until no new descendants appear. The loop ends, because stopped processes
    // start no further processes.
    let mut stopped = BTreeSet::new();
    loop {
        let new = &descendants(root) - &stopped;
        if new.is_empty() {
            break;
        }
        signal("STOP", &new);
        stopped.extend(new);
    }
    if !stopped.is_empty() {
        signal("KILL", &stopped);
    }
}

fn descendants(root: u32) -> BTreeSet<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes: Vec<(u32, u32)> = entries
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // Split after the last `) `, because the program's name, which is in parentheses before
            // the other fields, may contain `) ` too.
            let (_, rest) = stat.rsplit_once(") ")?;
            let mut fields = rest.split(' ');
            let is_over = fields.next()? == "Z";
            let parent = fields.next()?.parse().ok()?;
            (!is_over).then_some((id, parent))
        })
        .collect();
    let mut ids = BTreeSet::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        let children = processes.iter().filter(|(_, of)| *of == parent);
        for (child, _) in children {
            if ids.insert(*child) {
                parents.push(*child);
            }
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_late_step_is_reported_with_the_ends_of_logs() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("beside.log");
        let lines: String = (0..100).map(|line| format!("line {line}\n")).collect();
        fs::write(&log, format!("==== doc ====\n==== torture ====\n{lines}")).unwrap();
        let since = Instant::now();
        let mut under_way = WatchdogState {
            since,
            step: Some(WatchedStep {
                name: "test",
                since: since + Duration::from_mins(25),
                most: MAX_TESTS,
            }),
            logs: vec![log],
        };
        let at = |minutes| since + Duration::from_mins(minutes) + LOOK_INTERVAL;
        assert_eq!(under_way.overdue(at(54)), None);
        let report = under_way.overdue(at(55)).unwrap();
        let error = "error: step test has not ended after 30 minutes; under way: test\n";
        assert!(report.contains(error), "{report}");
        assert!(
            report.contains("beside.log, whose last step is torture ===="),
            "{report}"
        );
        assert!(
            report.contains("\nline 60\n") && !report.contains("\nline 59\n"),
            "{report}"
        );
        under_way.step = None;
        assert_eq!(under_way.overdue(at(59)), None);
        let report = under_way.overdue(at(60)).unwrap();
        assert!(
            report.contains("error: the gate has not ended after 60 minutes"),
            "{report}"
        );
    }

    #[test]
    fn descendants_are_killed_too() {
        // The outer shell waits for the inner shell. Both write to the same pipe.
        let mut root = Command::new("sh")
            .args(["-c", "sh -c 'echo begun; sleep 600; true'; true"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(root.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "begun\n");
        kill_descendants(root.id());
        // An empty read means that all descendants have closed the pipe.
        line.clear();
        assert_eq!(output.read_line(&mut line).unwrap(), 0);
        assert_eq!(root.wait().unwrap().signal(), None);
    }
}

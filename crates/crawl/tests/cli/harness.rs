//! Runs the built program in a directory of its own, with nothing of this machine's
//! environment that it reads.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use tempfile::TempDir;

/// A program that says nothing new for so long hangs: a test that waits longer would hang with it.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// A directory that goes when the test ends.
#[derive(Debug)]
pub(crate) struct Dir(TempDir);

impl Dir {
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.file(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    /// The rows of a row file.
    pub(crate) fn rows(&self, name: &str) -> Vec<serde_json::Value> {
        let rows = self.read(name);
        rows.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// The program, to be run in the directory. Each call of `run` starts it anew.
#[derive(Debug)]
pub(crate) struct Cmd {
    dir: PathBuf,
    env: Vec<(String, String)>,
}

/// The outcome of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn setup(name: &str) -> (Dir, Cmd) {
    let dir = tempfile::Builder::new().prefix(name).tempdir().unwrap();
    let cmd = Cmd {
        dir: dir.path().to_owned(),
        env: Vec::new(),
    };
    (Dir(dir), cmd)
}

impl Cmd {
    /// Sets a variable for the runs that follow.
    pub(crate) fn env(&mut self, name: &str, value: &str) {
        self.env.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
        command
            .args(args)
            .current_dir(&self.dir)
            .env_clear()
            .env("HOME", self.dir.join("home"))
            .env("COLUMNS", "100")
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// Starts it, to be watched while it runs.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let mut child = self.command(args).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            while stderr.read_line(&mut line).is_ok_and(|count| count > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        Running {
            child,
            lines,
            said: RefCell::new(String::new()),
        }
    }

    pub(crate) fn run_with_stdin(&self, args: &[&str], stdin: &str) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(stdin.as_bytes())
            .unwrap();
        Ran::of(child.wait_with_output().unwrap())
    }
}

/// The program under way.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    /// Its stderr, line by line.
    lines: Receiver<String>,
    said: RefCell<String>,
}

impl Running {
    /// Waits until it says this.
    pub(crate) fn until(&self, words: &str) {
        loop {
            let line = self.lines.recv_timeout(LONGEST_WAIT).unwrap_or_else(|why| {
                panic!(
                    "waited for `{words}`: {why}; it said:\n{}",
                    self.said.borrow()
                )
            });
            self.said.borrow_mut().push_str(&line);
            if line.contains(words) {
                return;
            }
        }
    }

    /// All that it said so far.
    pub(crate) fn said(&self) -> String {
        self.said.borrow().clone()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for its end: exit code, and all that it said.
    pub(crate) fn end(mut self) -> (i32, String) {
        let mut said = self.said.take();
        said.extend(self.lines.iter());
        (self.child.wait().unwrap().code().unwrap_or(-1), said)
    }
}

impl Drop for Running {
    /// A test that fails leaves no crawl behind.
    fn drop(&mut self) {
        // After `end` there is nothing left to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ran {
    pub(crate) fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// stdout, where all went well.
    pub(crate) fn ok(self) -> String {
        assert_eq!(
            (self.code, self.stderr.as_str()),
            (0, ""),
            "{}",
            self.stdout
        );
        self.stdout
    }

    /// Exit code and stderr, with `dir` left out.
    pub(crate) fn refusal(&self, dir: &Dir) -> String {
        let stderr = self
            .stderr
            .replace(&dir.path().display().to_string(), "DIR");
        format!("{}\n{}", self.code, stderr.trim_end())
    }
}

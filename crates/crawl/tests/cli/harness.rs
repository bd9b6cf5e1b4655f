//! Runs the built program in its own directory, with an environment that doesn't depend on this
//! machine.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use tempfile::TempDir;

/// Maximum wait for output: a program that prints nothing for this long counts as hung. Normally a
/// wait takes only seconds.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(300);

/// A directory that is removed when the test ends.
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

    /// Returns the rows of a row file.
    pub(crate) fn rows(&self, name: &str) -> Vec<serde_json::Value> {
        let rows = self.read(name);
        rows.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// The program, to be run in a test's directory. Each `run` starts a new process.
#[derive(Debug)]
pub(crate) struct Cmd {
    dir: PathBuf,
    env: Vec<(String, String)>,
}

/// The result of a run.
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
    /// Sets an environment variable for later runs.
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
        Ran::of_command(&mut self.command(args))
    }

    /// Starts the program, to be watched while it runs.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::of(self.command(args))
    }

    /// Starts the program in a new session, like a daemon: without a terminal, and receiving SIGHUP
    /// even if the tests were started by `nohup`.
    pub(crate) fn start_as_daemon(&self, args: &[&str]) -> Running {
        let plain = self.command(args);
        let mut command = Command::new("/usr/bin/env");
        command
            .args(["--default-signal=HUP", "setsid"])
            .arg(plain.get_program())
            .args(plain.get_args())
            .current_dir(&self.dir)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .envs(
                plain
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Running::of(command)
    }

    pub(crate) fn run_with_stdin(&self, args: &[&str], stdin: &str) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(stdin.as_bytes())
            .unwrap();
        Ran::of_child(child)
    }
}

/// Returns the same program, started by a shell that runs `before` first.
pub(crate) fn in_shell(program: &Command, before: &str) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{before}; exec \"$0\" \"$@\"")])
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(program.get_current_dir().unwrap())
        .env_clear()
        .envs(
            program
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    shell
}

/// A running program.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    /// The lines of stderr.
    lines: Receiver<String>,
    seen: RefCell<String>,
}

impl Running {
    fn of(mut command: Command) -> Running {
        let mut child = command.spawn().unwrap();
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
            seen: RefCell::new(String::new()),
        }
    }

    /// Waits for the next line that contains `words`, continuing where the last wait ended.
    pub(crate) fn until(&self, words: &str) {
        loop {
            let line = self.lines.recv_timeout(MAX_WAIT).unwrap_or_else(|why| {
                panic!(
                    "waited for `{words}`: {why}; it said:\n{}",
                    self.seen.borrow()
                )
            });
            self.seen.borrow_mut().push_str(&line);
            if line.contains(words) {
                return;
            }
        }
    }

    /// Waits for `words` unless they have already been printed.
    pub(crate) fn ensure_printed(&self, words: &str) {
        let was_printed = self.seen.borrow().contains(words);
        if !was_printed {
            self.until(words);
        }
    }

    /// Returns stderr so far.
    pub(crate) fn stderr(&self) -> String {
        self.seen.borrow().clone()
    }

    /// Sends a signal to the program.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the exit. Returns the exit code and stderr.
    pub(crate) fn end(mut self) -> (i32, String) {
        let mut seen = self.seen.take();
        loop {
            match self.lines.recv_timeout(MAX_WAIT) {
                Ok(line) => seen.push_str(&line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end; it said:\n{seen}"),
            }
        }
        (self.child.wait().unwrap().code().unwrap_or(-1), seen)
    }
}

impl Drop for Running {
    /// Ends the program if the test failed.
    fn drop(&mut self) {
        // Ignore the error: after `end`, the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ran {
    /// Runs a command to its end, without stdin.
    pub(crate) fn of_command(command: &mut Command) -> Ran {
        let command = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ran::of_child(command.spawn().unwrap())
    }

    /// Waits for a process to end. If it doesn't, kills it and fails the test.
    pub(crate) fn of_child(child: Child) -> Ran {
        let id = child.id().to_string();
        let (sender, ended) = mpsc::channel();
        // Ignore the error: after a timeout the receiver no longer exists.
        std::thread::spawn(move || drop(sender.send(child.wait_with_output())));
        let Ok(output) = ended.recv_timeout(MAX_WAIT) else {
            let _ = Command::new("kill").args(["-s", "KILL", &id]).status();
            panic!("it does not end: {:?}", ended.recv_timeout(MAX_WAIT));
        };
        let Output {
            status,
            stdout,
            stderr,
        } = output.unwrap();
        Ran {
            code: status.code().unwrap_or(-1),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
        }
    }

    /// Returns stdout, and fails unless the run succeeded without messages.
    pub(crate) fn ok(self) -> String {
        assert_eq!(
            (self.code, self.stderr.as_str()),
            (0, ""),
            "{}",
            self.stdout
        );
        self.stdout
    }

    /// Returns the exit code and stderr, with `dir` replaced.
    pub(crate) fn refusal(&self, dir: &Dir) -> String {
        let stderr = self
            .stderr
            .replace(&dir.path().display().to_string(), "DIR");
        format!("{}\n{}", self.code, stderr.trim_end())
    }
}

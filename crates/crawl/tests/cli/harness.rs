//! Runs the built program in a directory of its own, with nothing of this machine's
//! environment that it reads.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use tempfile::TempDir;

/// A program that says nothing new for so long hangs: a test that waits longer would hang with it.
/// It is no measure of speed: whatever is waited for is there within seconds.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(300);

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
        Ran::of_command(&mut self.command(args))
    }

    /// Starts it, to be watched while it runs.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::of(self.command(args))
    }

    /// The same in a session of its own, as a daemon is: it has no terminal, and hears SIGHUP
    /// though these tests may have been started by `nohup`.
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

/// The same program, started by a shell that has done something before.
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

/// The program under way.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    /// Its stderr, line by line.
    lines: Receiver<String>,
    said: RefCell<String>,
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
            said: RefCell::new(String::new()),
        }
    }

    /// Waits until it says this, after what was waited for before.
    pub(crate) fn until(&self, words: &str) {
        loop {
            let line = self.lines.recv_timeout(MAX_WAIT).unwrap_or_else(|why| {
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

    /// Waits until it has said this, unless it did before.
    pub(crate) fn until_said(&self, words: &str) {
        let is_said = self.said.borrow().contains(words);
        if !is_said {
            self.until(words);
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
        loop {
            match self.lines.recv_timeout(MAX_WAIT) {
                Ok(line) => said.push_str(&line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end; it said:\n{said}"),
            }
        }
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
    /// Runs any program to its end, which has nothing on stdin.
    pub(crate) fn of_command(command: &mut Command) -> Ran {
        let command = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ran::of_child(command.spawn().unwrap())
    }

    /// Waits for the end of a program; one that does not come to it is killed, and fails the test.
    pub(crate) fn of_child(child: Child) -> Ran {
        let id = child.id().to_string();
        let (sender, ended) = mpsc::channel();
        // Nobody hears of one that ends after it was given up.
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

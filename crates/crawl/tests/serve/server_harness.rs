//! Runs the program as a server, sends it requests, and ends it.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use serde_json::Value;

/// Maximum wait for a response, a line or an exit. A test that waits longer fails rather than
/// hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Returns a command for the program, with an environment that doesn't depend on this machine.
pub(crate) fn program(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
    command
        .args(args)
        .current_dir(dir)
        .env_clear()
        // Don't use `dir` as HOME: the program stores the user's key in HOME, but a crawl starts
        // only in an empty directory.
        .env("HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/home"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The lines of a program's stderr.
#[derive(Debug)]
pub(crate) struct Lines(Receiver<String>);

impl Lines {
    /// Reads stderr continuously, so that the program never blocks on it.
    pub(crate) fn of(stderr: ChildStderr) -> Lines {
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                // Keep reading to the end, even without a receiver.
                let _ = sender.send(line);
            }
        });
        Lines(lines)
    }

    /// Waits for the next line. `None` at the end.
    pub(crate) fn next(&self) -> Option<String> {
        match self.0.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("it says nothing, and does not end"),
        }
    }

    /// Waits for a line that contains `words`.
    pub(crate) fn until(&self, words: &str) {
        while !self.next().expect("it goes on").contains(words) {}
    }

    fn rest(&self) -> String {
        std::iter::from_fn(|| self.next().map(|line| line + "\n")).collect()
    }
}

/// A server that is killed when the test ends.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    stderr: Lines,
    pub(crate) address: SocketAddr,
}

/// A response of the server.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Server {
    /// Serves `dir` on a free loopback port.
    pub(crate) fn start(dir: &Path, args: &[&str]) -> Server {
        let all = [&["serve", ".", "--listen", "127.0.0.1:0"], args].concat();
        Server::of(program(dir, &all))
    }

    /// Runs a serving command, and waits until it prints its address.
    pub(crate) fn of(mut command: Command) -> Server {
        let mut child = command.spawn().unwrap();
        let stderr = Lines::of(child.stderr.take().unwrap());
        let line = stderr.next().unwrap_or_default();
        let address = line
            .strip_prefix("listening on http://")
            .and_then(|rest| rest.strip_suffix('/'));
        let Some(Ok(address)) = address.map(str::parse) else {
            panic!("it does not serve: {line}\n{}", stderr.rest());
        };
        Server {
            child,
            stderr,
            address,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.get_with(path, &[])
    }

    pub(crate) fn get_with(&self, path: &str, fields: &[(&str, &str)]) -> Reply {
        self.request("GET", path, fields, "")
    }

    /// Sends a POST request with a JSON body and these header fields, without those that a browser
    /// adds.
    pub(crate) fn post(&self, path: &str, fields: &[(&str, &str)], body: &str) -> Reply {
        let json = ("content-type", "application/json");
        self.request("POST", path, &[&[json], fields].concat(), body)
    }

    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !fields.iter().any(|(name, _)| *name == "host") {
            let _ = write!(head, "host: {}\r\n", self.address);
        }
        if !body.is_empty() {
            let _ = write!(head, "content-length: {}\r\n", body.len());
        }
        for (name, value) in fields {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        self.send(&format!("{head}\r\n{body}"))
    }

    /// Opens a connection that follows the crawl, and reads the head of the response.
    pub(crate) fn get_events(&self) -> BufReader<TcpStream> {
        let mut stream = self.connect();
        let head = format!(
            "GET /api/crawl/events HTTP/1.1\r\nhost: {}\r\n\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut events = BufReader::new(stream);
        let mut line = String::new();
        events.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "HTTP/1.1 200 OK");
        events
    }

    /// Sends `bytes` and returns the response.
    pub(crate) fn send(&self, bytes: &str) -> Reply {
        let mut stream = self.connect();
        // The server may respond before it has read everything.
        let _ = stream.write_all(bytes.as_bytes());
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        assert!(read.is_ok() || !answer.is_empty(), "{read:?}");
        Reply::read(&String::from_utf8_lossy(&answer))
    }

    /// Sends a signal and waits for the exit. Returns the exit code and stderr.
    pub(crate) fn end(mut self, signal: &str) -> (i32, String) {
        self.signal(signal);
        let stderr = self.stderr.rest();
        (self.child.wait().unwrap().code().unwrap_or(-1), stderr)
    }

    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([signal, &self.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ignore the error: the process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Reply {
    fn read(answer: &str) -> Reply {
        let (head, body) = answer.split_once("\r\n\r\n").expect(answer);
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let field = |line: &str| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        Reply {
            status: status.parse().unwrap(),
            fields: lines.map(field).collect(),
            body: body.to_owned(),
        }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let field = self
            .fields
            .iter()
            .find(|(field_name, _)| field_name == name);
        field.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(
            self.field("content-type"),
            Some("application/json"),
            "{self:?}"
        );
        serde_json::from_str(&self.body).expect(&self.body)
    }

    /// Returns the status, message and hint (`-` if none) of a JSON error.
    pub(crate) fn refusal(&self) -> String {
        let json = self.json();
        let hint = json["hint"].as_str().unwrap_or("-");
        format!(
            "{} {} | {hint}\n",
            self.status,
            json["error"].as_str().unwrap()
        )
    }
}

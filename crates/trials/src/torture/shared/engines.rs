//! Two PostgreSQL servers: a primary, and a standby without which no commit is answered.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long a server may take to start, to be copied or to be promoted.
const MAX_WAIT: Duration = Duration::from_secs(120);

/// The pause between two looks whether a server is where it is wanted.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Where the programs of PostgreSQL lie, and the libraries that they need.
pub(super) struct Programs {
    folder: PathBuf,
    libraries: String,
    /// The server refuses to run as root.
    is_root: bool,
}

impl Programs {
    pub(super) fn new((folder, libraries): (PathBuf, String)) -> Programs {
        Programs {
            folder,
            libraries,
            is_root: nix::unistd::geteuid().is_root(),
        }
    }

    fn command(&self, name: &str) -> Command {
        let path = self.folder.join(name);
        let mut command = match self.is_root {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
                command.arg(path);
                command
            }
            false => Command::new(path),
        };
        command
            .env("LD_LIBRARY_PATH", &self.libraries)
            .env("LC_ALL", "C")
            // The folder of this process may be closed to that user.
            .current_dir("/")
            .stdin(Stdio::null());
        command
    }

    /// Runs a program to its end; what it printed.
    fn run(&self, name: &str, args: &[&str]) -> Result<String> {
        let output = self.command(name).args(args).output()?;
        ensure!(
            output.status.success(),
            "{name} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// A server in its place: its port and folder stay the same, whichever part it has.
struct Server {
    port: u16,
    data: PathBuf,
    log: PathBuf,
    process: Option<Child>,
}

/// The pair of servers.
pub(super) struct Engines<'a> {
    programs: &'a Programs,
    servers: [Server; 2],
    /// The place of the primary.
    primary: usize,
}

impl<'a> Engines<'a> {
    /// Starts a primary and its standby in a folder.
    pub(super) fn start(programs: &'a Programs, dir: &Path) -> Result<Engines<'a>> {
        fs::create_dir_all(dir)?;
        if programs.is_root {
            let owned = Command::new("chown").arg("nobody").arg(dir).status()?;
            ensure!(owned.success(), "{} can't be given away", dir.display());
        }
        let server = |name: &str| {
            Ok::<_, anyhow::Error>(Server {
                port: free_port()?,
                data: dir.join(name),
                log: dir.join(format!("{name}.log")),
                process: None,
            })
        };
        let mut engines = Engines {
            programs,
            servers: [server("a")?, server("b")?],
            primary: 0,
        };
        let data = engines.servers[0].data.display().to_string();
        let fixed = [
            "--username=crawl",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
        ];
        let quick = ["--no-sync", "--no-instructions"];
        programs.run(
            "initdb",
            &[&["--pgdata", &data], &fixed[..], &quick[..]].concat(),
        )?;
        engines.serve(0)?;
        engines.add_standby()?;
        Ok(engines)
    }

    pub(super) fn ports(&self) -> [u16; 2] {
        [self.servers[0].port, self.servers[1].port]
    }

    /// Kills all processes of the primary, and has the standby take its place.
    pub(super) fn fail_over(&mut self) -> Result<()> {
        self.kill(self.primary)?;
        let standby = 1 - self.primary;
        let data = self.servers[standby].data.display().to_string();
        self.programs
            .run("pg_ctl", &["promote", "-D", &data, "--wait"])?;
        self.primary = standby;
        Ok(())
    }

    /// Copies the primary to the other place, and has commits wait for that copy from now on.
    pub(super) fn add_standby(&mut self) -> Result<()> {
        let (primary, standby) = (self.primary, 1 - self.primary);
        let data = self.servers[standby].data.clone();
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        let port = self.servers[primary].port.to_string();
        let path = data.display().to_string();
        let from = ["--host=127.0.0.1", "--username=crawl", "--port", &port];
        let how = ["--checkpoint=fast", "--write-recovery-conf", "--no-sync"];
        self.programs.run(
            "pg_basebackup",
            &[&["--pgdata", &path], &from[..], &how[..]].concat(),
        )?;
        self.serve(standby)?;
        let began = Instant::now();
        while self.ask("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")? != "1"
        {
            ensure!(began.elapsed() < MAX_WAIT, "the standby does not stream");
            sleep(LOOK_INTERVAL);
        }
        self.ask("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'")?;
        self.ask("SELECT pg_reload_conf()")?;
        while self.ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'")?
            != "1"
        {
            ensure!(began.elapsed() < MAX_WAIT, "the standby is of no quorum");
            sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    /// Asks the primary; the answer as text.
    pub(super) fn ask(&self, sql: &str) -> Result<String> {
        let port = self.servers[self.primary].port.to_string();
        let to = ["--host=127.0.0.1", "--username=crawl", "--port", &port];
        let how = [
            "--dbname=postgres",
            "--no-psqlrc",
            "-At",
            "-v",
            "ON_ERROR_STOP=1",
            "-c",
        ];
        self.programs
            .run("psql", &[&to[..], &how[..], &[sql]].concat())
    }

    /// Starts the server of a place, and waits until it takes connections.
    fn serve(&mut self, at: usize) -> Result<()> {
        let server = &mut self.servers[at];
        let mut command = self.programs.command("postgres");
        command.arg("-D").arg(&server.data);
        command.args(["-p", &server.port.to_string()]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            // Processes die here, no machine: what was written stays.
            "fsync=off",
            "synchronous_commit=on",
            "max_connections=100",
            "shared_buffers=16MB",
            "wal_keep_size=64MB",
        ] {
            command.args(["-c", setting]);
        }
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(&server.log)?;
        command.stdout(Stdio::null()).stderr(log);
        server.process = Some(command.spawn()?);
        let port = server.port.to_string();
        let began = Instant::now();
        loop {
            let ready = self
                .programs
                .command("pg_isready")
                .args(["--quiet", "--host=127.0.0.1", "--port", &port])
                .status()?;
            if ready.success() {
                return Ok(());
            }
            let server = &mut self.servers[at];
            let ended = server.process.as_mut().map(Child::try_wait).transpose()?;
            let is_over = ended.flatten().is_some() || began.elapsed() > MAX_WAIT;
            if is_over {
                let said = fs::read_to_string(&server.log).unwrap_or_default();
                let lines: Vec<&str> = said.lines().collect();
                let last = lines[lines.len().saturating_sub(8)..].join("\n");
                bail!("PostgreSQL does not start at port {port}: {last}");
            }
            sleep(LOOK_INTERVAL);
        }
    }

    /// Kills the server of a place with all of its processes, as the death of its machine does.
    fn kill(&mut self, at: usize) -> Result<()> {
        let Some(mut process) = self.servers[at].process.take() else {
            return Ok(());
        };
        let id = process.id();
        let children = children_of(id)?;
        process.kill()?;
        process.wait()?;
        for child in children {
            // Some may have ended by themselves.
            let _ = kill(Pid::from_raw(child), Signal::SIGKILL);
        }
        Ok(())
    }
}

impl Drop for Engines<'_> {
    fn drop(&mut self) {
        // What they hold is of no use to anybody.
        let _ = self.kill(0);
        let _ = self.kill(1);
    }
}

/// The processes that another started.
fn children_of(id: u32) -> Result<Vec<i32>> {
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(child) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        // One that ended meanwhile has none.
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        // Behind the name in parentheses: state, parent.
        let behind = stat.rsplit_once(") ").map_or("", |(_, behind)| behind);
        let parent = behind.split(' ').nth(1).unwrap_or_default();
        if parent.parse() == Ok(id) {
            children.push(child);
        }
    }
    Ok(children)
}

/// A port that nobody has at this moment.
pub(super) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no port is free")?;
    Ok(listener.local_addr()?.port())
}

//! Two PostgreSQL servers: a primary, and a standby that every commit waits for.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Maximum time to start, copy or promote a server.
const MAX_WAIT: Duration = Duration::from_secs(120);

/// Interval between two checks of a server's state.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The folders of PostgreSQL's programs and of their libraries.
pub(super) struct PostgresInstallation {
    folder: PathBuf,
    libraries: String,
    /// Whether this process is root. PostgreSQL refuses to run as root.
    is_root: bool,
}

impl PostgresInstallation {
    pub(super) fn new((folder, libraries): (PathBuf, String)) -> PostgresInstallation {
        PostgresInstallation {
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
            // Run in `/`, because PostgreSQL's user may lack access to the current folder.
            .current_dir("/")
            .stdin(Stdio::null());
        command
    }

    /// Runs a program to its end and returns its output.
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

/// A PostgreSQL server, whose port and folder stay the same when it changes from standby to
/// primary.
struct PostgresServer {
    port: u16,
    data: PathBuf,
    log: PathBuf,
    process: Option<Child>,
}

/// The two PostgreSQL servers of a group: the primary and its standby.
pub(super) struct PostgresPair<'a> {
    programs: &'a PostgresInstallation,
    servers: [PostgresServer; 2],
    /// Index of the primary.
    primary: usize,
}

impl<'a> PostgresPair<'a> {
    /// Starts a primary and its standby in a folder.
    pub(super) fn start(
        programs: &'a PostgresInstallation,
        dir: &Path,
    ) -> Result<PostgresPair<'a>> {
        fs::create_dir_all(dir)?;
        if programs.is_root {
            let owned = Command::new("chown").arg("nobody").arg(dir).status()?;
            ensure!(owned.success(), "{} can't be given away", dir.display());
        }
        let server = |name: &str| {
            Ok::<_, anyhow::Error>(PostgresServer {
                port: free_port()?,
                data: dir.join(name),
                log: dir.join(format!("{name}.log")),
                process: None,
            })
        };
        let mut pair = PostgresPair {
            programs,
            servers: [server("a")?, server("b")?],
            primary: 0,
        };
        let data = pair.servers[0].data.display().to_string();
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
        pair.serve(0)?;
        pair.add_standby()?;
        Ok(pair)
    }

    pub(super) fn ports(&self) -> [u16; 2] {
        [self.servers[0].port, self.servers[1].port]
    }

    /// Kills all processes of the primary and promotes the standby.
    pub(super) fn fail_over(&mut self) -> Result<()> {
        self.kill(self.primary)?;
        let standby = 1 - self.primary;
        let data = self.servers[standby].data.display().to_string();
        self.programs
            .run("pg_ctl", &["promote", "-D", &data, "--wait"])?;
        self.primary = standby;
        Ok(())
    }

    /// Makes the other server a standby: a copy of the primary that every commit waits for.
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
        while self.query("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")?
            != "1"
        {
            ensure!(began.elapsed() < MAX_WAIT, "the standby does not stream");
            sleep(LOOK_INTERVAL);
        }
        self.query("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'")?;
        self.query("SELECT pg_reload_conf()")?;
        while self.query("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'")?
            != "1"
        {
            ensure!(began.elapsed() < MAX_WAIT, "the standby is of no quorum");
            sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    /// Runs a query on the primary and returns the result as text.
    pub(super) fn query(&self, sql: &str) -> Result<String> {
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

    /// Starts a server and waits until it accepts connections.
    fn serve(&mut self, at: usize) -> Result<()> {
        let server = &mut self.servers[at];
        let mut command = self.programs.command("postgres");
        command.arg("-D").arg(&server.data);
        command.args(["-p", &server.port.to_string()]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            // The trial kills only processes, never the machine, so data that is written but not
            // synced survives.
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
                let log_text = fs::read_to_string(&server.log).unwrap_or_default();
                let lines: Vec<&str> = log_text.lines().collect();
                let last = lines[lines.len().saturating_sub(8)..].join("\n");
                bail!("PostgreSQL does not start at port {port}: {last}");
            }
            sleep(LOOK_INTERVAL);
        }
    }

    /// Kills a server with all its processes, as if its machine died.
    fn kill(&mut self, at: usize) -> Result<()> {
        let Some(mut process) = self.servers[at].process.take() else {
            return Ok(());
        };
        let id = process.id();
        let children = children_of(id)?;
        process.kill()?;
        process.wait()?;
        for child in children {
            // Ignore errors, because some of the processes may have ended already.
            let _ = kill(Pid::from_raw(child), Signal::SIGKILL);
        }
        Ok(())
    }
}

impl Drop for PostgresPair<'_> {
    fn drop(&mut self) {
        // The servers can be killed, because their data is not needed any more.
        let _ = self.kill(0);
        let _ = self.kill(1);
    }
}

/// Returns the child processes of a process.
fn children_of(id: u32) -> Result<Vec<i32>> {
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(child) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        // If the process has ended since it was listed, this file doesn't exist.
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        // After the name in parentheses come the state and the parent.
        let behind = stat.rsplit_once(") ").map_or("", |(_, behind)| behind);
        let parent = behind.split(' ').nth(1).unwrap_or_default();
        if parent.parse() == Ok(id) {
            children.push(child);
        }
    }
    Ok(children)
}

/// Returns a port that is free now.
pub(super) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no port is free")?;
    Ok(listener.local_addr()?.port())
}

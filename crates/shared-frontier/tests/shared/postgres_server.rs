//! A PostgreSQL server for the tests of this crate.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Maximum time for the server to start.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running server. Its process is killed when the value is dropped.
pub(crate) struct Postgres {
    server: Child,
    pub(crate) port: u16,
    dir: TempDir,
}

/// Additional settings and files of a server.
#[derive(Default)]
pub(crate) struct Setup<'a> {
    pub(crate) settings: &'a [&'a str],
    /// Files in the server's data folder, by name. Only the server's user may read them.
    pub(crate) files: &'a [(&'a str, String)],
}

/// A reference to a shared server, which runs for as long as any test has a reference to it.
pub(crate) struct Served {
    pub(crate) port: u16,
    pub(crate) url: String,
    which: usize,
}

/// Two servers. Each entry has the number of tests that use the server, and the server while it
/// runs.
static SERVERS: [Mutex<(usize, Option<Postgres>)>; 2] = [
    const { Mutex::new((0, None)) },
    const { Mutex::new((0, None)) },
];

impl Served {
    pub(crate) fn new() -> Served {
        Served::at(0)
    }

    /// Returns the second server, for another server group.
    pub(crate) fn second() -> Served {
        Served::at(1)
    }

    fn at(which: usize) -> Served {
        let mut server = SERVERS[which]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        server.0 += 1;
        let port = server
            .1
            .get_or_insert_with(|| Postgres::start(&Setup::default()))
            .port;
        Served {
            port,
            url: format!("postgres://crawl@127.0.0.1:{port}/postgres"),
            which,
        }
    }

    /// Creates a separate database on the server, and returns its URL.
    pub(crate) fn database(&self, name: &str) -> String {
        execute(&self.url, &format!("CREATE DATABASE {name}"));
        self.url.replace("/postgres", &format!("/{name}"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let mut server = SERVERS[self.which]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        server.0 -= 1;
        if server.0 == 0 {
            server.1 = None;
        }
    }
}

/// Executes statements over a new connection.
pub(crate) fn execute(url: &str, sql: &str) {
    try_execute(url, sql).unwrap();
}

/// Executes statements that the server may refuse.
pub(crate) fn try_execute(url: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
    runtime().block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        let serving = tokio::spawn(connection);
        let done = client.batch_execute(sql).await;
        drop(client);
        serving.await.unwrap()?;
        done
    })
}

/// Returns the single text that a query selects.
pub(crate) fn text(url: &str, sql: &str) -> String {
    value(url, sql)
}

/// Returns the single number that a query selects.
pub(crate) fn number(url: &str, sql: &str) -> i64 {
    value(url, sql)
}

fn value<T: tokio_postgres::types::FromSqlOwned>(url: &str, sql: &str) -> T {
    runtime().block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        client.query_one(sql, &[]).await.unwrap().get(0)
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

impl Postgres {
    pub(crate) fn start(setup: &Setup<'_>) -> Postgres {
        let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let data = dir.path().join("data");
        fs::create_dir(&data).unwrap();
        if is_root() {
            // The server refuses to run as root, so its folder is given to another user.
            let owned = Command::new("chown")
                .args(["-R", "nobody"])
                .arg(dir.path())
                .status();
            assert!(owned.unwrap().success());
        }
        let made = program("initdb")
            .arg("--pgdata")
            .arg(&data)
            .args([
                "--username=crawl",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
            ])
            .args(["--no-sync", "--no-instructions"])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&made.stderr).into_owned();
        assert!(made.status.success(), "initdb: {errors}");
        for (name, text) in setup.files {
            put(&data.join(name), text);
        }
        // Retry with another port if another process took this one in the meantime.
        for _ in 0..10 {
            if let Some((server, port)) = serve(dir.path(), &data, setup) {
                return Postgres { server, port, dir };
            }
        }
        panic!("PostgreSQL does not start: {}", log(dir.path()));
    }

    /// Returns the server's log so far.
    pub(crate) fn log(&self) -> String {
        log(self.dir.path())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The server may be killed, because its data is no longer needed.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Starts a server and waits until it accepts connections. Returns `None` if the server stopped.
fn serve(dir: &Path, data: &Path, setup: &Setup<'_>) -> Option<(Child, u16)> {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let log = fs::File::create(dir.join("log")).unwrap();
    let mut command = program("postgres");
    command.arg("-D").arg(data).arg("-p").arg(port.to_string());
    for setting in [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        // No test of this crate depends on durability.
        "fsync=off",
        "synchronous_commit=off",
        "full_page_writes=off",
        "max_connections=200",
        "shared_buffers=16MB",
    ] {
        command.args(["-c", setting]);
    }
    for setting in setup.settings {
        command.args(["-c", setting]);
    }
    let mut server = command.stderr(log).stdout(Stdio::null()).spawn().unwrap();
    let url = format!("postgres://crawl@127.0.0.1:{port}/postgres");
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if server.try_wait().unwrap().is_some() {
            return None;
        }
        let result = runtime().block_on(tokio_postgres::connect(&url, tokio_postgres::NoTls));
        if result.is_ok() {
            return Some((server, port));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = server.kill();
    let _ = server.wait();
    None
}

/// Writes a file that only the server's user may read.
fn put(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    if is_root() {
        let owned = Command::new("chown").arg("nobody").arg(path).status();
        assert!(owned.unwrap().success());
    }
}

fn log(dir: &Path) -> String {
    fs::read_to_string(dir.join("log")).unwrap_or_default()
}

/// Returns a command that runs a program of PostgreSQL, as a user other than root.
fn program(name: &str) -> Command {
    static PROGRAMS: OnceLock<(PathBuf, String)> = OnceLock::new();
    let (folder, libraries) = PROGRAMS.get_or_init(|| {
        let folder = std::env::var_os("CRAWL_POSTGRES")
            .expect("CRAWL_POSTGRES names no folder: cargo xtask test --step debian-packages");
        let libraries = std::env::var("CRAWL_POSTGRES_LIBRARIES").unwrap_or_default();
        (folder.into(), libraries)
    });
    let path = folder.join(name);
    let mut command = match is_root() {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
            command.arg(path);
            command
        }
        false => Command::new(path),
    };
    command.env("LD_LIBRARY_PATH", libraries).env("LC_ALL", "C");
    // The command runs in `/`, because its user may have no access to the current folder of this
    // process.
    command.current_dir("/").stdin(Stdio::null());
    command
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout.trim_ascii() == b"0"
}

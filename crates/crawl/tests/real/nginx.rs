//! nginx, on loopback, as a server of files.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::named;

/// A server of the files of one directory. It ends when this goes.
pub(crate) struct Nginx {
    child: Child,
    port: u16,
    log: Arc<Log>,
    /// Its configuration, its error log and its process number.
    _dir: TempDir,
}

/// The requests that it had, in the order of its answers.
#[derive(Default)]
struct Log {
    asked: Mutex<Vec<Asked>>,
    more: Condvar,
}

/// A request that was answered, or given up by the client.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    pub(crate) path: String,
    /// Its header field `From`.
    pub(crate) from: String,
}

/// Longer than any answer takes: who waits for longer waits for nothing.
const PATIENCE: Duration = Duration::from_secs(60);

impl Nginx {
    /// Serves the files below `root` as `walk.py` says that nginx does.
    pub(crate) fn serve(root: &Path) -> Nginx {
        // nginx takes over a socket that listens already, as it does when its program is
        // replaced while it runs: so the port is free, and nobody waits for it to be open.
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let port = socket.local_addr().unwrap().port();
        let dir = tempfile::Builder::new().prefix("nginx").tempdir().unwrap();
        let text = configuration(dir.path(), root, port);
        fs::write(dir.path().join("nginx.conf"), text).unwrap();
        let mut child = Command::new(named("CRAWL_NGINX"))
            .args(["-c", "nginx.conf", "-e", "error.log", "-p"])
            .arg(dir.path())
            .env("NGINX", "0;")
            .stdin(OwnedFd::from(socket))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let log = Arc::new(Log::default());
        let heard = Arc::clone(&log);
        // It ends with nginx, which holds the other end.
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let (from, path) = line.split_once(' ').unwrap();
                let (from, path) = (from.to_owned(), path.to_owned());
                heard.asked.lock().unwrap().push(Asked { path, from });
                heard.more.notify_all();
            }
        });
        Nginx {
            child,
            port,
            log,
            _dir: dir,
        }
    }

    /// The URL at which it serves, with a slash at the end.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// The requests that it had, as soon as there are that many.
    pub(crate) fn log(&self, least: usize) -> Vec<Asked> {
        let asked = self.log.asked.lock().unwrap();
        let few = |asked: &mut Vec<Asked>| asked.len() < least;
        let waited = self.log.more.wait_timeout_while(asked, PATIENCE, few);
        let (asked, waited) = waited.unwrap();
        let count = asked.len();
        assert!(!waited.timed_out(), "{count} requests, not {least}");
        asked.clone()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // TERM, so that it ends its worker too; KILL would leave that one behind.
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        if sent.is_ok_and(|status| status.success()) {
            let _ = self.child.wait();
        }
    }
}

/// Without root, `user` does nothing; as root, the worker can read what this test can.
fn configuration(dir: &Path, root: &Path, port: u16) -> String {
    format!(
        r#"daemon off;
user root;
worker_processes 1;
pid "{dir}/pid";
error_log "{dir}/error.log";
events {{ worker_connections 64; }}
http {{
    include "{types}";
    default_type application/octet-stream;
    client_body_temp_path "{dir}/body";
    proxy_temp_path "{dir}/proxy";
    fastcgi_temp_path "{dir}/fastcgi";
    uwsgi_temp_path "{dir}/uwsgi";
    scgi_temp_path "{dir}/scgi";
    log_format asked "$http_from $request_uri";
    access_log /dev/stdout asked;
    server {{
        listen 127.0.0.1:{port};
        root "{root}";
        index index.html;
    }}
}}
"#,
        dir = dir.display(),
        root = root.display(),
        types = named("CRAWL_NGINX_MIME_TYPES").display(),
    )
}

//! Runs nginx as a web server, and reads the requests it received from its log.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crawl_testweb::{NginxEndpoint, NginxLogDestination, NginxSpec};
use tempfile::TempDir;

use crate::named;

/// A server for the files of one directory. Dropping it ends nginx.
pub(crate) struct Nginx {
    server: crawl_testweb::Nginx,
    log: Arc<Log>,
    _dir: TempDir,
}

/// The requests received, in the order of the responses.
#[derive(Default)]
struct Log {
    requests: Mutex<Vec<LoggedRequest>>,
    more: Condvar,
}

/// A request that was answered, or aborted by the client.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LoggedRequest {
    pub(crate) path: String,
    /// The value of the request's header field `From`.
    pub(crate) from: String,
}

/// A maximum wait that is longer than any response takes.
const PATIENCE: Duration = Duration::from_secs(60);

impl Nginx {
    /// Serves the files below `root` over HTTP/1.1 and IPv4, with the statuses that `walk.py`
    /// expects.
    pub(crate) fn serve(root: &Path) -> Nginx {
        Nginx::serve_by(root, NginxEndpoint::Ipv4)
    }

    /// Serves the files below `root` at `endpoint`, an address and a protocol.
    pub(crate) fn serve_by(root: &Path, endpoint: NginxEndpoint) -> Nginx {
        let dir = tempfile::Builder::new().prefix("nginx").tempdir().unwrap();
        let mut server = crawl_testweb::Nginx::start(&NginxSpec {
            sends_gzip: false,
            program: named("CRAWL_NGINX"),
            mime_types: named("CRAWL_NGINX_MIME_TYPES"),
            root: root.to_owned(),
            dir: dir.path().to_owned(),
            log: NginxLogDestination::Piped,
            endpoint,
            log_line: "$http_from $request_uri",
        })
        .unwrap();
        let lines = BufReader::new(server.lines().unwrap()).lines();
        let log = Arc::new(Log::default());
        let log_writer = Arc::clone(&log);
        // The thread ends with nginx, because the pipe of the log is then closed.
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let (from, path) = line.split_once(' ').unwrap();
                let (from, path) = (from.to_owned(), path.to_owned());
                log_writer
                    .requests
                    .lock()
                    .unwrap()
                    .push(LoggedRequest { path, from });
                log_writer.more.notify_all();
            }
        });
        Nginx {
            server,
            log,
            _dir: dir,
        }
    }

    /// Returns the server's URL, with a final slash.
    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// Returns the server's port.
    pub(crate) fn port(&self) -> u16 {
        self.server.port()
    }

    /// Waits until there are at least this many requests, and returns them.
    pub(crate) fn log(&self, least: usize) -> Vec<LoggedRequest> {
        let requests = self.log.requests.lock().unwrap();
        let few = |requests: &mut Vec<LoggedRequest>| requests.len() < least;
        let waited = self.log.more.wait_timeout_while(requests, PATIENCE, few);
        let (requests, waited) = waited.unwrap();
        let count = requests.len();
        assert!(!waited.timed_out(), "{count} requests, not {least}");
        requests.clone()
    }
}

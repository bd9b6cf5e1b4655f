//! nginx, and what it was asked for.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crawl_testweb::{NginxEndpoint, NginxLog, NginxSpec};
use tempfile::TempDir;

use crate::named;

/// A server of the files of one directory. It ends when this goes.
pub(crate) struct Nginx {
    server: crawl_testweb::Nginx,
    log: Arc<Log>,
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
        Nginx::serve_by(root, NginxEndpoint::Ipv4)
    }

    /// The same by another address or protocol.
    pub(crate) fn serve_by(root: &Path, endpoint: NginxEndpoint) -> Nginx {
        let dir = tempfile::Builder::new().prefix("nginx").tempdir().unwrap();
        let mut server = crawl_testweb::Nginx::start(&NginxSpec {
            program: named("CRAWL_NGINX"),
            mime_types: named("CRAWL_NGINX_MIME_TYPES"),
            root: root.to_owned(),
            dir: dir.path().to_owned(),
            log: NginxLog::Piped,
            endpoint,
            log_line: "$http_from $request_uri",
        })
        .unwrap();
        let lines = BufReader::new(server.lines().unwrap()).lines();
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
            server,
            log,
            _dir: dir,
        }
    }

    /// The URL at which it serves, with a slash at the end.
    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// The port at which it serves.
    pub(crate) fn port(&self) -> u16 {
        self.server.port()
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

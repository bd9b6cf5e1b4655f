//! A running web: its handle.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::log::{Log, LogEntry};
use crate::reply::Script;
use crate::server::{Shared, lock, serve};
use crate::site::Site;
use crate::sockets::{Bound, bind};
use crate::spec::{ConnectionMode, Spec};
use crate::truth::{CrawlReach, Truth, walk};
use crate::web_plan::Shape;

/// A web that listens on loopback until it is dropped.
///
/// It runs on a thread of its own, so blocking tests, async tests and child processes can use it
/// alike. All methods are quick and may be called in an async context, but for
/// [`TestWeb::wait_for`], which blocks.
pub struct TestWeb {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    doors: Mutex<Vec<Door>>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl TestWeb {
    /// A web of one host and 20 pages, to be changed and started.
    pub fn builder() -> Spec {
        Spec::default()
    }

    pub(crate) fn try_start(spec: Spec) -> io::Result<TestWeb> {
        let Bound {
            addresses,
            listeners,
        } = bind(&spec)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("testweb")
            .enable_all()
            .build()?;
        let shared = Arc::new(shared(spec, &addresses));
        let mut web = TestWeb {
            shared,
            addresses,
            doors: Mutex::default(),
            runtime: Some(runtime),
        };
        let mut doors = Vec::new();
        for (host, listener) in (0..).zip(listeners) {
            let open = web.shared.connection_mode(host) != ConnectionMode::Refused;
            doors.push(if open {
                web.open(host, || TcpListener::from_std(listener))?
            } else {
                drop(listener);
                Door::shut(web.addresses[host as usize])?
            });
        }
        web.doors = Mutex::new(doors);
        Ok(web)
    }

    /// The number of hosts.
    pub fn hosts(&self) -> u32 {
        self.shared.site.shape.hosts
    }

    /// The URL of a path (with its query) on a host. The path starts with `/`.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn url(&self, host: u32, path: &str) -> String {
        assert!(host < self.hosts(), "there is no host {host}");
        self.shared.site.url_of(host, path)
    }

    /// `ADDRESS:PORT` or `NAME:PORT` of a host, as its URLs have it.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn authority(&self, host: u32) -> &str {
        &self.shared.site.authorities[host as usize]
    }

    /// The address on which a host listens.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn address(&self, host: u32) -> SocketAddr {
        self.addresses[host as usize]
    }

    /// `NAME:PORT:ADDRESS` for each host, as `curl --resolve` takes it; of use if the hosts have
    /// names ([`Spec::domain`]).
    pub fn resolve(&self) -> Vec<String> {
        let hosts = self.shared.site.authorities.iter().zip(&self.addresses);
        hosts
            .map(|(authority, address)| format!("{authority}:{}", address.ip()))
            .collect()
    }

    /// The findings that a crawl from the root of host 0 must have.
    pub fn truth(&self, reach: CrawlReach) -> Truth {
        walk(&self.shared.site, reach)
    }

    /// All requests so far, in the order in which their heads were read.
    pub fn log(&self) -> Vec<LogEntry> {
        self.shared.log.entries()
    }

    /// The requests that one host got so far.
    pub fn log_of(&self, host: u32) -> Vec<LogEntry> {
        let mut entries = self.log();
        entries.retain(|entry| entry.host == host);
        entries
    }

    /// All requests so far, which the log then forgets.
    pub fn take_log(&self) -> Vec<LogEntry> {
        self.shared.log.take()
    }

    /// Blocks until the log is as wanted; false if it is not within `limit`. It is looked at
    /// when a request begins or ends.
    pub fn wait_for(&self, limit: Duration, wanted: impl Fn(&[LogEntry]) -> bool) -> bool {
        self.shared.log.wait(limit, wanted)
    }

    /// The number of connections that were taken so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// The time by the log's scale: microseconds since the Unix epoch, never going backwards.
    pub fn now_us(&self) -> u64 {
        self.shared.log.now_us()
    }

    /// Sets the replies of a host to requests for one path from now on.
    pub fn script(&self, host: u32, path: &str, script: impl Into<Script>) {
        lock(&self.shared.scripts).insert((host, path.to_owned()), script.into());
    }

    /// Sets how a host meets connections from now on. [`ConnectionMode::Refused`] also ends those
    /// that are open.
    ///
    /// # Errors
    /// If the host's port was taken by somebody else in the moment after it was closed.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn connection_mode(&self, host: u32, mode: ConnectionMode) -> io::Result<()> {
        lock(&self.shared.connection_modes).insert(host, mode);
        let mut doors = lock(&self.doors);
        let door = &mut doors[host as usize];
        match (mode, &mut *door) {
            (ConnectionMode::Refused, Door::Open(task)) => {
                close(task);
                *door = Door::shut(self.addresses[host as usize])?;
            }
            (ConnectionMode::Refused, Door::Shut(_)) | (_, Door::Open(_)) => {}
            (_, Door::Shut(socket)) => {
                if let Some(socket) = socket.take() {
                    *door = self.open(host, || socket.listen(BACKLOG))?;
                }
            }
        }
        Ok(())
    }

    fn open(
        &self,
        host: u32,
        listener: impl FnOnce() -> io::Result<TcpListener>,
    ) -> io::Result<Door> {
        let Some(runtime) = &self.runtime else {
            return Ok(Door::Shut(None));
        };
        let _context = runtime.enter();
        let task = serve(Arc::clone(&self.shared), listener()?, host);
        Ok(Door::Open(runtime.spawn(task)))
    }
}

impl Drop for TestWeb {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            for door in lock(&self.doors).iter() {
                if let Door::Open(task) = door {
                    close(task);
                }
            }
            // Does not block, so it may happen in an async context.
            runtime.shutdown_background();
        }
    }
}

impl std::fmt::Debug for TestWeb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestWeb")
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

/// Connections that may wait to be taken.
const BACKLOG: u32 = 1024;

/// How a host meets connections.
enum Door {
    /// The task that takes them.
    Open(JoinHandle<()>),
    /// The socket that keeps the port from others, and does not listen.
    Shut(Option<TcpSocket>),
}

impl Door {
    fn shut(address: SocketAddr) -> io::Result<Door> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // Its last connections may still be there.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(Door::Shut(Some(socket)))
    }
}

/// Ends a task and returns when its socket is closed, so that its port is free.
fn close(task: &JoinHandle<()>) {
    task.abort();
    let patience = Instant::now() + Duration::from_secs(30);
    // A handler that blocks holds the web's only thread: its end is not waited for.
    while !task.is_finished() && Instant::now() < patience {
        std::thread::yield_now();
    }
}

fn shared(spec: Spec, addresses: &[SocketAddr]) -> Shared {
    let name = |(host, address): (u32, &SocketAddr)| match &spec.domain {
        Some(domain) => format!("h{host}.{domain}:{}", address.port()),
        None => address.to_string(),
    };
    Shared {
        site: Site {
            authorities: (0..).zip(addresses).map(name).collect(),
            shape: Shape {
                seed: spec.seed,
                hosts: spec.hosts,
                pages: spec.pages,
                mix: spec.mix,
            },
            crawl_delay: spec.crawl_delay,
            sitemap: spec.sitemap,
        },
        log: Log::new(),
        gzip: spec.gzip,
        latency: spec.latency,
        latencies: spec.latencies,
        handlers: spec.handlers,
        scripts: Mutex::new(spec.scripts),
        connection_modes: Mutex::new(spec.connection_modes),
        connections: AtomicU64::new(0),
    }
}

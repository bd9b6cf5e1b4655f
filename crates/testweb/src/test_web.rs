//! The handle of a running web.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::ground_truth::{GroundTruth, HostsInScope, walk};
use crate::request_log::{LogEntry, RequestLog};
use crate::scripted_reply::{HttpAnswer, ReplySequence};
use crate::server::{ServerState, lock, serve};
use crate::sockets::{BoundSockets, bind};
use crate::synthetic_web::SyntheticWeb;
use crate::test_web_builder::{ConnectionBehaviour, TestWebBuilder};
use crate::web_plan::{LinkMix, WebParameters};

/// A web that listens on loopback until it is dropped.
///
/// It runs on its own thread, so blocking tests, async tests and child processes can all use it.
/// Its methods are quick and may be called in an async context, except [`TestWeb::wait_for`], which
/// blocks.
pub struct TestWeb {
    shared: Arc<ServerState>,
    addresses: Vec<SocketAddr>,
    port_states: Mutex<Vec<HostPortState>>,
    /// The runtime. `None` only while the web is being dropped.
    runtime: Option<Runtime>,
}

impl TestWeb {
    /// Returns the settings of a web with one host and 20 pages, to modify and start.
    pub fn builder() -> TestWebBuilder {
        TestWebBuilder::default()
    }

    /// Returns the settings of hosts with one page each, without generated links or sitemaps, for
    /// tests that script their pages.
    pub fn scripted(hosts: u32) -> TestWebBuilder {
        let links = LinkMix::plain();
        TestWeb::builder()
            .hosts(hosts)
            .pages(1)
            .mix(links)
            .sitemap(false)
    }

    pub(crate) fn try_start(spec: TestWebBuilder) -> io::Result<TestWeb> {
        let BoundSockets {
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
            port_states: Mutex::default(),
            runtime: Some(runtime),
        };
        let mut port_states = Vec::new();
        for (host, listener) in (0..).zip(listeners) {
            let open = web.shared.connection_mode(host) != ConnectionBehaviour::Refused;
            port_states.push(if open {
                web.open(host, || TcpListener::from_std(listener))?
            } else {
                drop(listener);
                HostPortState::closed(web.addresses[host as usize])?
            });
        }
        web.port_states = Mutex::new(port_states);
        Ok(web)
    }

    /// Returns the number of hosts.
    pub fn hosts(&self) -> u32 {
        self.shared.site.shape.hosts
    }

    /// Returns the URL of a path (with query) on a host. The path starts with `/`.
    pub fn url(&self, host: u32, path: &str) -> String {
        assert!(host < self.hosts(), "there is no host {host}");
        self.shared.site.url_of(host, path)
    }

    /// Returns `ADDRESS:PORT` or `NAME:PORT` of a host, as in its URLs.
    pub fn authority(&self, host: u32) -> &str {
        &self.shared.site.authorities[host as usize]
    }

    /// Returns the address on which a host listens.
    pub fn address(&self, host: u32) -> SocketAddr {
        self.addresses[host as usize]
    }

    /// Returns `NAME:PORT:ADDRESS` for each host, as `curl --resolve` takes it, for hosts with
    /// names ([`TestWebBuilder::domain`]).
    pub fn resolve(&self) -> Vec<String> {
        let hosts = self.shared.site.authorities.iter().zip(&self.addresses);
        hosts
            .map(|(authority, address)| format!("{authority}:{}", address.ip()))
            .collect()
    }

    /// Returns the expected result of a crawl that starts at the root of host 0 and may enter the
    /// hosts in `reach`.
    pub fn truth(&self, reach: HostsInScope) -> GroundTruth {
        walk(&self.shared.site, reach)
    }

    /// Returns all requests so far, in the order in which their heads were read.
    pub fn log(&self) -> Vec<LogEntry> {
        self.shared.log.entries()
    }

    /// Returns the requests to one host so far.
    pub fn log_of(&self, host: u32) -> Vec<LogEntry> {
        let mut entries = self.log();
        entries.retain(|entry| entry.host == host);
        entries
    }

    /// Returns all requests so far and clears the log.
    pub fn take_log(&self) -> Vec<LogEntry> {
        self.shared.log.take()
    }

    /// Blocks until `wanted` returns true for the log. Calls `wanted` whenever a request begins or
    /// ends. Returns false if that does not happen within `limit`.
    pub fn wait_for(&self, limit: Duration, wanted: impl Fn(&[LogEntry]) -> bool) -> bool {
        self.shared.log.wait(limit, wanted)
    }

    /// Returns the number of connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Returns the time on the log's scale: microseconds since the Unix epoch, never going
    /// backwards.
    pub fn now_us(&self) -> u64 {
        self.shared.log.now_us()
    }

    /// Returns the computed answer to a path, ignoring scripts and handlers.
    pub fn usual(&self, host: u32, path: &str) -> HttpAnswer {
        self.shared.site.answer(host, path)
    }

    /// Replaces the replies of a host to later requests for one path.
    pub fn script(&self, host: u32, path: &str, script: impl Into<ReplySequence>) {
        lock(&self.shared.scripts).insert((host, path.to_owned()), script.into());
    }

    /// Sets how a host treats connections from now on. [`ConnectionBehaviour::Refused`] also closes
    /// the open ones.
    ///
    /// # Errors
    /// If another process took the host's port just after it was closed.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn connection_mode(&self, host: u32, mode: ConnectionBehaviour) -> io::Result<()> {
        lock(&self.shared.connection_modes).insert(host, mode);
        let mut port_states = lock(&self.port_states);
        let port_state = &mut port_states[host as usize];
        match (mode, &mut *port_state) {
            (ConnectionBehaviour::Refused, HostPortState::Listening(task)) => {
                close(task);
                *port_state = HostPortState::closed(self.addresses[host as usize])?;
            }
            (ConnectionBehaviour::Refused, HostPortState::Closed(_))
            | (_, HostPortState::Listening(_)) => {}
            (_, HostPortState::Closed(socket)) => {
                if let Some(socket) = socket.take() {
                    *port_state = self.open(host, || socket.listen(BACKLOG))?;
                }
            }
        }
        Ok(())
    }

    fn open(
        &self,
        host: u32,
        listener: impl FnOnce() -> io::Result<TcpListener>,
    ) -> io::Result<HostPortState> {
        let Some(runtime) = &self.runtime else {
            return Ok(HostPortState::Closed(None));
        };
        let _context = runtime.enter();
        let task = serve(Arc::clone(&self.shared), listener()?, host);
        Ok(HostPortState::Listening(runtime.spawn(task)))
    }
}

impl Drop for TestWeb {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            for port_state in lock(&self.port_states).iter() {
                if let HostPortState::Listening(task) = port_state {
                    close(task);
                }
            }
            // Use the shutdown that doesn't block, because this may run in an async context.
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

/// Maximum number of connections of one host that wait to be accepted.
const BACKLOG: u32 = 1024;

/// Whether a host listens.
enum HostPortState {
    /// The host listens. The value is the task that accepts connections.
    Listening(JoinHandle<()>),
    /// The host does not listen. The value is the socket that reserves the port.
    Closed(Option<TcpSocket>),
}

impl HostPortState {
    fn closed(address: SocketAddr) -> io::Result<HostPortState> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // Reuse the address, because the host's last connections may still exist.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(HostPortState::Closed(Some(socket)))
    }
}

/// Ends a host's accepting task and returns once its socket is closed, so that the host's port is
/// free.
fn close(task: &JoinHandle<()>) {
    task.abort();
    let patience = Instant::now() + Duration::from_secs(30);
    // A blocking handler occupies the web's only thread, so don't wait forever.
    while !task.is_finished() && Instant::now() < patience {
        std::thread::yield_now();
    }
}

fn shared(spec: TestWebBuilder, addresses: &[SocketAddr]) -> ServerState {
    let name = |(host, address): (u32, &SocketAddr)| match &spec.domain {
        Some(domain) => format!("h{host}.{domain}:{}", address.port()),
        None => address.to_string(),
    };
    ServerState {
        site: SyntheticWeb {
            authorities: (0..).zip(addresses).map(name).collect(),
            shape: WebParameters {
                seed: spec.seed,
                hosts: spec.hosts,
                pages: spec.pages,
                mix: spec.mix,
            },
            crawl_delay: spec.crawl_delay,
            sitemap: spec.sitemap,
        },
        log: RequestLog::new(),
        gzip: spec.gzip,
        latency: spec.latency,
        latencies: spec.latencies,
        handlers: spec.handlers,
        scripts: Mutex::new(spec.scripts),
        connection_modes: Mutex::new(spec.connection_modes),
        connections: AtomicU64::new(0),
    }
}

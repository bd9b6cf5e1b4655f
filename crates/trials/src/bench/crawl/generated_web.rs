//! Many hosts on loopback, with pages generated on request by one thread of this process, so that
//! the server costs little compared with the measured crawler.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use memchr::memmem;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use super::page_generator::{PageGenerator, ROBOTS};

/// Maximum number of ports to draw in search of one that is free at all addresses.
const MAX_DRAWS: usize = 20;
/// Maximum length of a request's head, in bytes. Requests with a longer head are not answered.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// The web to serve.
#[derive(Clone, Copy, Debug)]
pub(in crate::bench) struct WebPlan {
    pub(in crate::bench) hosts: u32,
    pub(in crate::bench) pages_a_host: u32,
    /// How long the server waits before it sends each answer.
    pub(in crate::bench) latency: Duration,
}

/// The requests that the hosts received.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceivedRequestCounts {
    pub(super) connections: u64,
    pub(super) pages: u64,
    /// Pages requested in each second since the web began.
    pub(super) pages_by_second: Vec<u64>,
    /// The shortest time from the end of an answer to the host's next request.
    pub(super) least_gap: Option<Duration>,
}

impl ReceivedRequestCounts {
    /// Returns the rate in pages per second, ignoring the first and the last tenth of the time.
    pub(super) fn rate(&self) -> f64 {
        let seconds = &self.pages_by_second;
        let is_busy = |pages: &u64| *pages > 0;
        let first = seconds.iter().position(is_busy).unwrap_or(0);
        let end = seconds.iter().rposition(is_busy).map_or(0, |at| at + 1);
        let edge = (end - first).div_ceil(10);
        let middle = seconds.get(first + edge..end.saturating_sub(edge));
        let middle = middle.filter(|middle| !middle.is_empty());
        let middle = middle.unwrap_or(&seconds[first..end]);
        middle.iter().sum::<u64>() as f64 / middle.len().max(1) as f64
    }
}

/// A web that is served until it is dropped.
pub(in crate::bench) struct GeneratedWeb {
    plan: WebPlan,
    addresses: Vec<SocketAddr>,
    visits: Arc<Mutex<ReceivedRequestCounts>>,
    /// Ends the server when it is dropped. Nothing is ever sent on this channel.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl GeneratedWeb {
    /// Starts the web. The sockets already listen when this function returns.
    pub(in crate::bench) fn start(plan: WebPlan) -> Result<GeneratedWeb> {
        let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
        setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
        let listeners = listen(plan.hosts).with_context(|| {
            format!(
                "cannot listen as {} hosts with {most} open files",
                plan.hosts
            )
        })?;
        let addresses = listeners.iter().map(TcpListener::local_addr);
        let addresses = addresses.collect::<io::Result<_>>()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let visits = Arc::new(Mutex::new(ReceivedRequestCounts::default()));
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&visits);
        let thread = thread::spawn(move || {
            let server = Rc::new(GeneratedWebServer {
                plan,
                pages: PageGenerator::new(plan.pages_a_host),
                began: Instant::now(),
                visits: shared,
            });
            LocalSet::new().block_on(&runtime, async move {
                for (host, listener) in (0..).zip(listeners) {
                    tokio::task::spawn_local(Rc::clone(&server).take_connections(listener, host));
                }
                let _ = stopped.await;
            });
        });
        Ok(GeneratedWeb {
            plan,
            addresses,
            visits,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns the URL of the first page of each host.
    pub(in crate::bench) fn seeds(&self) -> Vec<String> {
        let seeds = self.addresses.iter();
        seeds.map(|address| format!("http://{address}/")).collect()
    }

    pub(super) fn pages(&self) -> u64 {
        u64::from(self.plan.hosts) * u64::from(self.plan.pages_a_host)
    }

    pub(super) fn visits(&self) -> ReceivedRequestCounts {
        lock(&self.visits).clone()
    }
}

impl Drop for GeneratedWeb {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// State shared by all connections.
struct GeneratedWebServer {
    plan: WebPlan,
    pages: PageGenerator,
    began: Instant,
    visits: Arc<Mutex<ReceivedRequestCounts>>,
}

/// When the last answer of a host ended. `None` before its first answer.
type LastAnswer = Rc<std::cell::Cell<Option<Instant>>>;

impl GeneratedWebServer {
    async fn take_connections(self: Rc<Self>, listener: TcpListener, host: u32) {
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
            return;
        };
        let last = LastAnswer::default();
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    lock(&self.visits).connections += 1;
                    let (server, last) = (Rc::clone(&self), Rc::clone(&last));
                    tokio::task::spawn_local(async move {
                        // Ignore the result: whether the client's disconnection shows up as an
                        // error makes no difference.
                        let _ = server.converse(stream, host, &last).await;
                    });
                }
                // File descriptors have run out, so wait for connections to end.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    async fn converse(
        &self,
        mut stream: TcpStream,
        host: u32,
        last: &LastAnswer,
    ) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut received = Vec::with_capacity(1024);
        let mut answer = Vec::with_capacity(16 << 10);
        loop {
            let end = loop {
                if let Some(at) = memmem::find(&received, b"\r\n\r\n") {
                    break at + 4;
                }
                let is_over =
                    received.len() > MAX_HEAD_BYTES || stream.read_buf(&mut received).await? == 0;
                if is_over {
                    return Ok(());
                }
            };
            let target = target(&received[..end]);
            let page = page_number(target).filter(|page| *page < self.plan.pages_a_host);
            self.note(page, last);
            answer.clear();
            self.answer(host, page, target, &mut answer);
            received.drain(..end);
            if !self.plan.latency.is_zero() {
                tokio::time::sleep(self.plan.latency).await;
            }
            stream.write_all(&answer).await?;
            last.set(Some(Instant::now()));
        }
    }

    fn note(&self, page: Option<u32>, last: &LastAnswer) {
        let now = Instant::now();
        let gap = last.get().map(|last| now - last);
        let mut visits = lock(&self.visits);
        visits.least_gap = visits.least_gap.into_iter().chain(gap).min();
        if page.is_none() {
            return;
        }
        visits.pages += 1;
        let second = (now - self.began).as_secs() as usize;
        if visits.pages_by_second.len() <= second {
            visits.pages_by_second.resize(second + 1, 0);
        }
        visits.pages_by_second[second] += 1;
    }

    fn answer(&self, host: u32, page: Option<u32>, target: &str, answer: &mut Vec<u8>) {
        let (status, kind, body) = match page {
            Some(page) => (
                "200 OK",
                "text/html; charset=utf-8",
                self.pages.html(host, page),
            ),
            None if target == "/robots.txt" => ("200 OK", "text/plain", ROBOTS.to_owned()),
            None => ("404 Not Found", "text/plain", "no such page\n".to_owned()),
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
        );
        answer.extend_from_slice(head.as_bytes());
        answer.extend_from_slice(body.as_bytes());
    }
}

/// Returns the request target in the head of a request.
fn target(head: &[u8]) -> &str {
    let line = head.split(|byte| *byte == b' ').nth(1);
    line.and_then(|target| std::str::from_utf8(target).ok())
        .unwrap_or_default()
}

/// Parses the number of a page from a request target, such as 17 from `/d7/p17.html`.
fn page_number(target: &str) -> Option<u32> {
    if target == "/" {
        return Some(0);
    }
    let (_, rest) = target.strip_prefix("/d")?.split_once("/p")?;
    rest.strip_suffix(".html")?.parse().ok()
}

/// Opens a socket for each host. The addresses start at 127.16.0.1, and all sockets have the same
/// port.
fn listen(hosts: u32) -> Result<Vec<TcpListener>> {
    let mut earlier = Vec::new();
    for _ in 0..MAX_DRAWS {
        let first = TcpListener::bind((address(0), 0))?;
        let port = first.local_addr()?.port();
        let mut listeners = vec![first];
        for host in 1..hosts {
            match TcpListener::bind((address(host), port)) {
                Ok(listener) => listeners.push(listener),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => break,
                Err(error) => return Err(error.into()),
            }
        }
        if listeners.len() == hosts.max(1) as usize {
            for listener in &listeners {
                listener.set_nonblocking(true)?;
            }
            return Ok(listeners);
        }
        // Keep these sockets open while another port is drawn. Otherwise the same port could be
        // drawn again.
        earlier = listeners;
    }
    bail!(
        "no port is free on all of {} addresses",
        earlier.len().max(1)
    )
}

/// Returns the address of a host. Never ends in 0 or 255.
fn address(host: u32) -> Ipv4Addr {
    let byte = |value: u32| u8::try_from(value).unwrap_or(u8::MAX);
    Ipv4Addr::new(
        127,
        byte(16 + host / 62_500),
        byte(host / 250 % 250),
        byte(1 + host % 250),
    )
}

fn lock(visits: &Mutex<ReceivedRequestCounts>) -> MutexGuard<'_, ReceivedRequestCounts> {
    // Ignore a poisoned lock: the counters are valid even if another thread panicked while it held
    // the lock.
    visits.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpStream};
    use std::time::Duration;

    use super::{GeneratedWeb, ReceivedRequestCounts, WebPlan, address, page_number, target};

    #[test]
    fn each_host_has_an_address_of_its_own() {
        let addresses: BTreeSet<_> = (0..100_000).map(address).collect();
        assert_eq!(addresses.len(), 100_000);
        assert!(addresses.iter().all(Ipv4Addr::is_loopback));
    }

    #[test]
    fn targets_name_pages() {
        assert_eq!(target(b"GET /d4/p14.html HTTP/1.1\r\n\r\n"), "/d4/p14.html");
        assert_eq!(target(b"\r\n\r\n"), "");
        assert_eq!(page_number("/"), Some(0));
        assert_eq!(page_number("/d4/p14.html"), Some(14));
        assert_eq!(page_number("/robots.txt"), None);
    }

    #[test]
    fn the_rate_is_that_of_the_middle() {
        let mut visits = ReceivedRequestCounts::default();
        assert_eq!(visits.rate(), 0.0);
        visits.pages_by_second = vec![7];
        assert_eq!(visits.rate(), 7.0);
        visits.pages_by_second = vec![0, 0, 1, 10, 10, 10, 10, 10, 10, 10, 10, 2, 0];
        assert_eq!(visits.rate(), 10.0);
    }

    #[test]
    fn hosts_answer_and_count() {
        let web = GeneratedWeb::start(WebPlan {
            hosts: 2,
            pages_a_host: 3,
            latency: Duration::ZERO,
        });
        let web = web.unwrap();
        let request = |host: usize, target: &str| {
            let mut stream = TcpStream::connect(web.addresses[host]).unwrap();
            write!(stream, "GET {target} HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let home = request(1, "/");
        assert!(home.starts_with("HTTP/1.1 200 OK\r\n"), "{home}");
        assert!(home.contains("href=\"/d2/p2.html\""), "{home}");
        assert!(request(0, "/d2/p2.html").contains("<title>Page 2 of host 0</title>"));
        assert!(request(0, "/d3/p3.html").starts_with("HTTP/1.1 404 "));
        assert!(request(0, "/robots.txt").contains("User-agent: *"));
        let visits = web.visits();
        assert_eq!((visits.connections, visits.pages), (4, 2));
        assert_eq!((web.pages(), web.seeds().len()), (6, 2));
        assert!(visits.least_gap.is_some());
    }
}

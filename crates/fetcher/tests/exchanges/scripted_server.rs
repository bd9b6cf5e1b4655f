//! A server on loopback that sends scripted bytes, and permits for requests to it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use crawl_fetcher::{
    Exchange, ExchangeFailure, FetchConfig, FetchRequest, Fetcher, MonotonicClock, ResolveOverride,
};
use crawl_scheduler::{Permit, Politeness, PollOutcome, Scheduler, Tick};
use crawl_weburl::{CanonicalUrl, HostKey, canonicalize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Returns an address without a listener. While the socket exists, no other program can listen
/// there.
pub(crate) fn unused_address() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Resolves a name to loopback without a look-up.
pub(crate) fn resolve_to_loopback(host: &str, port: u16) -> ResolveOverride {
    ResolveOverride {
        host: host.to_owned(),
        port,
        addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
    }
}

/// A step of the server after it has read the head of a request. After its last step, the server
/// waits for the next request on the same connection.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes again and again until the client stops reading.
    Endless(Vec<u8>),
    /// Closes the connection cleanly.
    Close,
    /// Resets the connection.
    Reset,
    /// Stalls forever.
    Stall,
}

/// A scripted server. Stops when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    heads: Vec<String>,
    connections: usize,
}

impl Server {
    /// Starts a server. `script` is called with the number of the request (from 0).
    pub(crate) async fn start(
        script: impl Fn(usize) -> Vec<Act> + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let script = Arc::new(script);
        let task = tokio::spawn({
            let seen = Arc::clone(&seen);
            async move {
                let mut connections = tokio::task::JoinSet::new();
                while let Ok((stream, _)) = listener.accept().await {
                    seen.lock().unwrap().connections += 1;
                    connections.spawn(serve(stream, Arc::clone(&script), Arc::clone(&seen)));
                }
            }
        });
        Server {
            address,
            seen,
            task,
        }
    }

    /// Starts a server that answers every request with the same bytes.
    pub(crate) async fn answering(bytes: impl Into<Vec<u8>>) -> Server {
        let bytes = bytes.into();
        Server::start(move |_| vec![Act::Send(bytes.clone())]).await
    }

    pub(crate) fn url(&self, path: &str) -> CanonicalUrl {
        canonicalize(None, &format!("http://{}{path}", self.address)).unwrap()
    }

    /// Returns the heads of the requests received, in order.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.seen.lock().unwrap().heads.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    script: Arc<impl Fn(usize) -> Vec<Act>>,
    seen: Arc<Mutex<Seen>>,
) {
    loop {
        let Some(head) = read_head(&mut stream).await else {
            return;
        };
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.heads.push(head);
            seen.heads.len() - 1
        };
        for act in script(number) {
            match act {
                Act::Send(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Act::Endless(bytes) => while stream.write_all(&bytes).await.is_ok() {},
                Act::Close => return,
                Act::Reset => {
                    stream.set_zero_linger().unwrap();
                    return;
                }
                Act::Stall => std::future::pending().await,
            }
        }
    }
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).await.ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// Returns a configuration that allows this host.
pub(crate) fn config(own: &CanonicalUrl) -> FetchConfig {
    FetchConfig {
        typed: vec![own.clone()],
        ..FetchConfig::new("crawl/0.1 (+mailto:a@b.example)")
    }
}

pub(crate) fn fetcher(config: FetchConfig) -> Fetcher {
    Fetcher::new(config, MonotonicClock::start()).unwrap()
}

/// Fetches a page with a permit for the URL's host.
pub(crate) async fn fetch(
    fetcher: &Fetcher,
    url: &CanonicalUrl,
) -> Result<Exchange, ExchangeFailure> {
    fetch_with(fetcher, FetchRequest::page(url.clone())).await
}

pub(crate) async fn fetch_with(
    fetcher: &Fetcher,
    request: FetchRequest,
) -> Result<Exchange, ExchangeFailure> {
    let permit = permit(&request.url);
    let host: HostKey = permit.host().clone();
    let (spent, result) = fetcher.fetch(permit, request).await;
    assert_eq!(*spent.host(), host);
    result
}

/// Returns the first permit of a new scheduler for this host.
pub(crate) fn permit(url: &CanonicalUrl) -> Permit {
    let mut scheduler = Scheduler::new(Politeness::default(), 0);
    let now = Tick::from_micros(1_000_000);
    scheduler.set_pending(now, &url.origin(), 1);
    match scheduler.poll(now) {
        PollOutcome::Issue(permit) => permit,
        other => panic!("no permit: {other:?}"),
    }
}

//! The hosts at work: connections in, replies out, everything noted in the log.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::directory;
use crate::log::{EntryKey, Log, LogEntry};
use crate::random::SeededRandom;
use crate::reply::{Act, Answer, Reply, Script};
use crate::reply_queue::{Outbox, Then};
use crate::request::{Inbox, Incoming, ReceivedRequest};
use crate::site::Site;
use crate::spec::{ConnectionMode, Handler};

/// The state that all connections share.
pub(crate) struct Shared {
    pub(crate) site: Site,
    pub(crate) log: Log,
    pub(crate) gzip: bool,
    pub(crate) latency: Duration,
    pub(crate) latencies: HashMap<u32, Duration>,
    pub(crate) handlers: HashMap<u32, Handler>,
    pub(crate) directories: HashMap<u32, PathBuf>,
    pub(crate) scripts: Mutex<HashMap<(u32, String), Script>>,
    pub(crate) doors: Mutex<HashMap<u32, ConnectionMode>>,
    pub(crate) hosts_by_address: HashMap<SocketAddr, u32>,
    pub(crate) connections: AtomicU64,
}

/// Takes connections until it is dropped; its open connections end with it.
pub(crate) async fn serve(shared: Arc<Shared>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let host = stream.local_addr().ok();
                let host = host.and_then(|address| shared.hosts_by_address.get(&address).copied());
                if let Some(host) = host {
                    connections.spawn(connection(Arc::clone(&shared), stream, host, peer));
                }
            }
            // Out of file handles: those under way end some day.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(shared: Arc<Shared>, mut stream: TcpStream, host: u32, peer: SocketAddr) {
    let connection = shared.connections.fetch_add(1, Ordering::Relaxed);
    // A connection ends by an error where the client goes away; the log says how far it came.
    let _ = match shared.door(host) {
        ConnectionMode::Open => converse(&shared, &mut stream, host, connection, peer).await,
        ConnectionMode::Silent => until_closed(&mut stream).await,
        ConnectionMode::Greets => greet(&mut stream).await,
        ConnectionMode::Refused | ConnectionMode::Resets => stream.set_zero_linger(),
    };
}

async fn converse(
    shared: &Shared,
    stream: &mut TcpStream,
    host: u32,
    connection: u64,
    peer: SocketAddr,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut inbox = Inbox::default();
    loop {
        let (mut request, start_us) =
            match inbox.request(stream, host, || shared.log.now_us()).await? {
                Incoming::Request(request, start_us) => (request, start_us),
                Incoming::Closed => return Ok(()),
                Incoming::Bad(why) => {
                    let answer = Answer::of(400).header("connection", "close").body(why);
                    let mut outbox = Outbox::new(stream, &shared.log);
                    return outbox.answer(&answer, false).await.map(|_| ());
                }
            };
        let via_proxy = request.authority.is_some();
        if let Some(named) = shared.host_named(request.authority.as_deref()) {
            request.host = named;
        }
        let mut visit = Visit::begin(shared, &request, via_proxy, connection, peer, start_us);
        let reply = shared.reply(&request).await;
        let latency = shared
            .latencies
            .get(&request.host)
            .unwrap_or(&shared.latency);
        tokio::time::sleep(*latency + reply.delay).await;
        let mut outbox = Outbox::new(stream, &shared.log);
        let then = outbox.play(&reply, request.method == "HEAD").await;
        (visit.status, visit.sent, visit.last_us) = (outbox.status, outbox.sent, outbox.last_us);
        drop(visit);
        if then? == Then::Close || !request.keeps_alive {
            return Ok(());
        }
    }
}

async fn greet(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"220 mail.test ESMTP\r\n").await?;
    until_closed(stream).await
}

pub(crate) async fn until_closed(stream: &mut TcpStream) -> io::Result<()> {
    let mut waste = [0; 4096];
    while stream.read(&mut waste).await? > 0 {}
    Ok(())
}

/// A request under way; the log learns its end when this is dropped, however that comes about.
struct Visit<'a> {
    log: &'a Log,
    key: EntryKey,
    status: Option<u16>,
    sent: u64,
    last_us: Option<u64>,
}

impl<'a> Visit<'a> {
    fn begin(
        shared: &'a Shared,
        request: &ReceivedRequest,
        via_proxy: bool,
        connection: u64,
        peer: SocketAddr,
        start_us: u64,
    ) -> Visit<'a> {
        let key = shared.log.begin(LogEntry {
            host: request.host,
            connection,
            peer,
            via_proxy,
            method: request.method.clone(),
            path: request.path.clone(),
            headers: request.headers.clone(),
            start_us,
            end_us: None,
            status: None,
            sent: 0,
        });
        Visit {
            log: &shared.log,
            key,
            status: None,
            sent: 0,
            last_us: None,
        }
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let end_us = self.last_us.unwrap_or_else(|| self.log.now_us());
        self.log.end(self.key, end_us, self.status, self.sent);
    }
}

impl Shared {
    pub(crate) fn door(&self, host: u32) -> ConnectionMode {
        lock(&self.doors).get(&host).copied().unwrap_or_default()
    }

    fn host_named(&self, authority: Option<&str>) -> Option<u32> {
        let authority = authority?;
        let at = self
            .site
            .authorities
            .iter()
            .position(|known| known == authority)?;
        u32::try_from(at).ok()
    }

    async fn reply(&self, request: &ReceivedRequest) -> Reply {
        let scripted = {
            let mut scripts = lock(&self.scripts);
            scripts
                .get_mut(&(request.host, request.path.clone()))
                .map(Script::take)
        };
        let handled = || {
            self.handlers
                .get(&request.host)
                .and_then(|handler| handler(request))
        };
        match scripted {
            None => match handled() {
                None => self.usual(request).await.into(),
                Some(reply) => self.fill_in(reply, request).await,
            },
            Some(reply) => self.fill_in(reply, request).await,
        }
    }

    async fn fill_in(&self, reply: Reply, request: &ReceivedRequest) -> Reply {
        if reply.act == Act::Usual {
            Reply::from(self.usual(request).await).after(reply.delay)
        } else {
            reply
        }
    }

    async fn usual(&self, request: &ReceivedRequest) -> Answer {
        if let Some(root) = self.directories.get(&request.host) {
            let (root, path) = (root.clone(), request.path.clone());
            return tokio::task::spawn_blocking(move || directory::answer(&root, &path))
                .await
                .unwrap_or_else(|_| Answer::of(500));
        }
        let answer = self.site.answer(request.host, &request.path);
        let etag = answer
            .headers
            .iter()
            .find(|(name, _)| name == "etag")
            .map(|(_, etag)| etag);
        if etag.is_some() && request.header("if-none-match") == etag.map(String::as_str) {
            return Answer {
                status: 304,
                body: Vec::new(),
                ..answer
            };
        }
        if self.gzip && takes_gzip(request) && answer.status == 200 && chosen_for_gzip(request) {
            return answer.gzip();
        }
        answer
    }
}

fn takes_gzip(request: &ReceivedRequest) -> bool {
    request
        .header("accept-encoding")
        .is_some_and(|codings| codings.contains("gzip"))
}

/// Half of the paths, the same ones in every run.
fn chosen_for_gzip(request: &ReceivedRequest) -> bool {
    let bytes = request.path.bytes().map(u64::from);
    let seeds: Vec<u64> = std::iter::once(u64::from(request.host))
        .chain(bytes)
        .collect();
    SeededRandom::of(&seeds).below(2) == 0
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What these guard is changed by single inserts, so a panic elsewhere breaks nothing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Accepts connections, sends replies and records everything in the log.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::random::SeededRandom;
use crate::reply_sender::{ConnectionAfterReply, ReplySender, until_closed};
use crate::request_log::{LogEntry, LogEntryId, RequestLog};
use crate::request_reader::{ReadBuffer, ReceivedRequest, RequestReadResult};
use crate::scripted_reply::{HttpAnswer, ReplySequence, ScriptedReply, ScriptedReplyContent};
use crate::synthetic_web::SyntheticWeb;
use crate::test_web_builder::{ConnectionBehaviour, ReplyHandler};

/// The state that all connections share.
pub(crate) struct ServerState {
    pub(crate) site: SyntheticWeb,
    pub(crate) log: RequestLog,
    pub(crate) gzip: bool,
    pub(crate) latency: Duration,
    pub(crate) latencies: HashMap<u32, Duration>,
    pub(crate) handlers: HashMap<u32, ReplyHandler>,
    pub(crate) scripts: Mutex<HashMap<(u32, String), ReplySequence>>,
    pub(crate) connection_modes: Mutex<HashMap<u32, ConnectionBehaviour>>,
    pub(crate) connections: AtomicU64,
}

/// Accepts a host's connections until this future is dropped, which also closes open connections.
pub(crate) async fn serve(shared: Arc<ServerState>, listener: TcpListener, host: u32) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                connections.spawn(connection(Arc::clone(&shared), stream, host, peer));
            }
            // File handles have run out: wait until a connection ends.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(shared: Arc<ServerState>, mut stream: TcpStream, host: u32, peer: SocketAddr) {
    let connection = shared.connections.fetch_add(1, Ordering::Relaxed);
    // Ignore errors: an error only means that the client disconnected, and the log shows how far
    // the exchange got.
    let _ = match shared.connection_mode(host) {
        ConnectionBehaviour::Open => converse(&shared, &mut stream, host, connection, peer).await,
        ConnectionBehaviour::Silent => until_closed(&mut stream).await,
        ConnectionBehaviour::Greets => greet(&mut stream).await,
        // Reset the connection: it was accepted just before the host stopped listening.
        ConnectionBehaviour::Refused => stream.set_zero_linger(),
    };
}

async fn converse(
    shared: &ServerState,
    stream: &mut TcpStream,
    host: u32,
    connection: u64,
    peer: SocketAddr,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut inbox = ReadBuffer::default();
    loop {
        let (request, start_us) = match inbox.request(stream, host, || shared.log.now_us()).await? {
            RequestReadResult::Request(request, start_us) => (request, start_us),
            RequestReadResult::Closed => return Ok(()),
            RequestReadResult::Bad(why) => {
                let answer = HttpAnswer::of(400).header("connection", "close").body(why);
                let mut outbox = ReplySender::new(stream, &shared.log);
                return outbox.answer(&answer, false).await.map(|_| ());
            }
        };
        let mut visit = ServedRequest::begin(shared, &request, connection, peer, start_us);
        let reply = shared.reply(&request);
        let latency = shared
            .latencies
            .get(&request.host)
            .unwrap_or(&shared.latency);
        tokio::time::sleep(*latency + reply.delay).await;
        let mut outbox = ReplySender::new(stream, &shared.log);
        let then = outbox.play(&reply, request.method == "HEAD").await;
        (visit.status, visit.sent, visit.last_us) = (outbox.status, outbox.sent, outbox.last_us);
        drop(visit);
        if then? == ConnectionAfterReply::Close || !request.keeps_alive {
            return Ok(());
        }
    }
}

async fn greet(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"220 mail.test ESMTP\r\n").await?;
    until_closed(stream).await
}

/// A request being served. Dropping this value records the request's end in the log, whatever the
/// reason for the end.
struct ServedRequest<'a> {
    log: &'a RequestLog,
    key: LogEntryId,
    status: Option<u16>,
    sent: u64,
    last_us: Option<u64>,
}

impl<'a> ServedRequest<'a> {
    fn begin(
        shared: &'a ServerState,
        request: &ReceivedRequest,
        connection: u64,
        peer: SocketAddr,
        start_us: u64,
    ) -> ServedRequest<'a> {
        let key = shared.log.begin(LogEntry {
            host: request.host,
            connection,
            peer,
            method: request.method.clone(),
            path: request.path.clone(),
            headers: request.headers.clone(),
            start_us,
            end_us: None,
            status: None,
            sent: 0,
        });
        ServedRequest {
            log: &shared.log,
            key,
            status: None,
            sent: 0,
            last_us: None,
        }
    }
}

impl Drop for ServedRequest<'_> {
    fn drop(&mut self) {
        let end_us = self.last_us.unwrap_or_else(|| self.log.now_us());
        self.log.end(self.key, end_us, self.status, self.sent);
    }
}

impl ServerState {
    pub(crate) fn connection_mode(&self, host: u32) -> ConnectionBehaviour {
        lock(&self.connection_modes)
            .get(&host)
            .copied()
            .unwrap_or_default()
    }

    fn reply(&self, request: &ReceivedRequest) -> ScriptedReply {
        let scripted = {
            let mut scripts = lock(&self.scripts);
            scripts
                .get_mut(&(request.host, request.path.clone()))
                .map(ReplySequence::take)
        };
        let handled = || {
            self.handlers
                .get(&request.host)
                .and_then(|handler| handler(request))
        };
        match scripted
            .or_else(handled)
            .unwrap_or_else(ScriptedReply::usual)
        {
            ScriptedReply {
                delay,
                act: ScriptedReplyContent::Usual,
            } => ScriptedReply::from(self.usual(request)).after(delay),
            reply => reply,
        }
    }

    fn usual(&self, request: &ReceivedRequest) -> HttpAnswer {
        let answer = self.site.answer(request.host, &request.path);
        let etag = answer
            .headers
            .iter()
            .find(|(name, _)| name == "etag")
            .map(|(_, etag)| etag);
        if etag.is_some() && request.header("if-none-match") == etag.map(String::as_str) {
            return HttpAnswer {
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

/// Returns true for about half of the paths, the same ones in every run.
fn chosen_for_gzip(request: &ReceivedRequest) -> bool {
    let bytes = request.path.bytes().map(u64::from);
    let seeds: Vec<u64> = std::iter::once(u64::from(request.host))
        .chain(bytes)
        .collect();
    SeededRandom::of(&seeds).below(2) == 0
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data is valid even if another thread panicked, because it changes only by single inserts.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

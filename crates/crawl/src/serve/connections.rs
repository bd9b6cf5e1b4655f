//! Connection handling: limits, timeouts and shutdown.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tower_service::Service as _;

use crate::error::CommandError;

/// Maximum connections to `crawl serve`.
/// Beyond the limit: the oldest silent one is closed, or the new one waits.
pub(crate) const MAX_CONNECTIONS: usize = 512;
/// Maximum connections to `crawl serve` from one address, without a proxy.
/// Beyond the limit: its oldest silent one is closed, or the new one.
pub(crate) const MAX_CONNECTIONS_PER_CLIENT: usize = 64;
/// Maximum time to receive a request's head in `crawl serve`, from the start of the connection or
/// the end of its last response.
/// Beyond the limit: closed.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum size of a request's head in bytes.
/// Beyond the limit: 431.
pub(crate) const MAX_HEAD_BYTES: usize = 32 * 1024;
/// Maximum header fields of a request.
/// Beyond the limit: 431.
const MAX_FIELDS: usize = 64;
/// How long a client of `crawl serve` may stop reading.
/// Beyond the limit: closed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a shutdown waits for requests to finish.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Address and port of the client on whose connection a request arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub(crate) SocketAddr);

/// Limits on a server's connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerConnectionLimits {
    /// Maximum connections in total.
    pub(crate) connections: usize,
    /// Maximum connections from one address. `None` if clients connect through a proxy.
    pub(crate) per_client: Option<usize>,
}

/// Listens on `address`, which the user set with `flag`. Returns the listener and its address with
/// the actual port.
pub(crate) async fn listen(
    address: SocketAddr,
    flag: &str,
) -> Result<(TcpListener, SocketAddr), CommandError> {
    let bound = TcpListener::bind(address).await;
    let bound = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = bound.map_err(|why| unheard(address, flag, &why))?;
    Ok((listener, address))
}

fn unheard(address: SocketAddr, flag: &str, why: &io::Error) -> CommandError {
    match why.kind() {
        ErrorKind::AddrInUse => CommandError::disk(format!("{address} is in use")).hint(format!(
            "another server uses it; set {flag} to another port, or to 0 for a free one"
        )),
        ErrorKind::AddrNotAvailable => {
            CommandError::usage(format!("{address} isn't an address of this machine")).hint(
                format!("set {flag} to an address of this machine, such as 127.0.0.1:8787"),
            )
        }
        ErrorKind::PermissionDenied => {
            CommandError::disk(format!("not allowed to listen on {address}"))
                .hint("ports below 1024 need privileges; listen on 8787 behind a reverse proxy")
        }
        _ => CommandError::disk(format!("can't listen on {address}: {why}")),
    }
}

/// Serves connections until `stop` is set. Then waits up to `DRAIN_TIMEOUT` for requests in
/// progress.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    mut stop: watch::Receiver<bool>,
    bounds: ServerConnectionLimits,
) {
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(bounds.connections));
    let clients = Arc::new(ConnectionsByAddress::default());
    let silent = Arc::new(SilentConnectionRegistry::default());
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &room, &silent) => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let (stream, peer, permit) = accepted;
        let seat = match bounds.per_client {
            None => None,
            Some(most) => {
                let seat = || ConnectionsByAddress::seat(&clients, peer.ip(), most);
                let evicting = || silent.evict(Some(peer.ip())).then(seat).flatten();
                match seat().or_else(evicting) {
                    None => continue,
                    seat => seat,
                }
            }
        };
        spawn(stream, peer, &router, &graceful, &silent, (permit, seat));
    }
    drop(listener);
    // After the timeout, the connections that are still open are dropped.
    let _ = timeout(DRAIN_TIMEOUT, graceful.shutdown()).await;
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
    silent: &SilentConnectionRegistry,
) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                if room.available_permits() == 0 {
                    silent.evict(None);
                }
                let Ok(permit) = Arc::clone(room).acquire_owned().await else {
                    // Unreachable: the semaphore is never closed.
                    return std::future::pending().await;
                };
                return (stream, peer, permit);
            }
            // Keep accepting, because the next connection may succeed. Either the file descriptors
            // have run out, or the client has disconnected.
            Err(why) => {
                tracing::debug!(%why, "a connection could not be accepted");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Serves the requests of one connection, and drops `held` when the connection ends.
fn spawn(
    stream: TcpStream,
    peer: SocketAddr,
    router: &Router,
    graceful: &GracefulShutdown,
    silent: &Arc<SilentConnectionRegistry>,
    held: ConnectionPermits,
) {
    let router = router.clone();
    let (place, evicted) = silent.add(peer.ip(), held);
    let place = Arc::new(place);
    let spoken = Arc::clone(&place);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        spoken.has_spoken();
        let mut router = router.clone();
        let mut request: Request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(PeerAddress(peer));
        async move { Ok::<_, Infallible>(router.call(request).await.unwrap_or_else(|no| match no {})) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_FIELDS)
        .serve_connection(TokioIo::new(impatient(stream, WRITE_TIMEOUT)), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        tokio::select! {
            ended = connection => if let Err(why) = ended {
                tracing::debug!(%peer, %why, "a connection ended early");
            },
            _ = evicted => tracing::debug!(%peer, "a silent connection was closed for a new one"),
        }
        drop(place);
    });
}

/// Wraps the stream so that writes fail after `patience` without progress. Otherwise a client that
/// never reads would keep its connection forever.
fn impatient(stream: TcpStream, patience: Duration) -> Pin<Box<TimeoutStream<TcpStream>>> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(patience));
    Box::pin(stream)
}

/// The resources that a connection holds: a permit, which counts toward the limit of all
/// connections, and a seat, which counts toward the limit of the client's address.
type ConnectionPermits = (OwnedSemaphorePermit, Option<AddressConnectionSlot>);

/// Connections that have not sent a request head yet, oldest first.
#[derive(Debug, Default)]
struct SilentConnectionRegistry(Mutex<SilentConnections>);

#[derive(Debug, Default)]
struct SilentConnections {
    next: u64,
    by_number: BTreeMap<u64, SilentConnection>,
}

/// A silent connection: one that has not sent a request head yet. Dropping `_evict` closes it.
#[derive(Debug)]
struct SilentConnection {
    client: IpAddr,
    _held: ConnectionPermits,
    _evict: oneshot::Sender<()>,
}

/// Registers a connection as silent until it has sent a request head. Only silent connections can
/// be evicted.
#[derive(Debug)]
struct SilentRegistration {
    silent: Arc<SilentConnectionRegistry>,
    number: u64,
    spoken: Mutex<Option<SilentConnection>>,
}

impl SilentConnectionRegistry {
    fn lock(&self) -> std::sync::MutexGuard<'_, SilentConnections> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a connection. The receiver resolves when the connection is evicted.
    fn add(
        self: &Arc<Self>,
        client: IpAddr,
        held: ConnectionPermits,
    ) -> (SilentRegistration, oneshot::Receiver<()>) {
        let (evict, evicted) = oneshot::channel();
        let mut connections = self.lock();
        let number = connections.next;
        connections.next += 1;
        let connection = SilentConnection {
            client: client.to_canonical(),
            _held: held,
            _evict: evict,
        };
        connections.by_number.insert(number, connection);
        drop(connections);
        let place = SilentRegistration {
            silent: Arc::clone(self),
            number,
            spoken: Mutex::new(None),
        };
        (place, evicted)
    }

    /// Closes the oldest silent connection, or the oldest silent connection of `client` if given.
    /// Returns whether there was one.
    fn evict(&self, client: Option<IpAddr>) -> bool {
        let client = client.map(|client| client.to_canonical());
        let mut connections = self.lock();
        let mut by_age = connections.by_number.iter();
        let oldest = by_age.find(|(_, other)| client.is_none_or(|client| client == other.client));
        let oldest = oldest.map(|(number, _)| *number);
        let evicted = oldest.and_then(|number| connections.by_number.remove(&number));
        drop(connections);
        evicted.is_some()
    }
}

impl SilentRegistration {
    /// Protects the connection from eviction, since it has sent a request head.
    fn has_spoken(&self) {
        let connection = self.silent.lock().by_number.remove(&self.number);
        if connection.is_some() {
            let mut spoken = self.spoken.lock().unwrap_or_else(PoisonError::into_inner);
            *spoken = connection;
        }
    }
}

impl Drop for SilentRegistration {
    fn drop(&mut self) {
        let connection = self.silent.lock().by_number.remove(&self.number);
        drop(connection);
    }
}

/// Number of connections of each client address.
#[derive(Debug, Default)]
struct ConnectionsByAddress(Mutex<HashMap<IpAddr, usize>>);

/// A counted connection of a client address. Dropping the seat lowers the address's count.
#[derive(Debug)]
struct AddressConnectionSlot {
    clients: Arc<ConnectionsByAddress>,
    client: IpAddr,
}

impl ConnectionsByAddress {
    /// Reserves a seat for a connection from this address. `None` if the address already has `most`
    /// connections.
    fn seat(
        clients: &Arc<ConnectionsByAddress>,
        client: IpAddr,
        most: usize,
    ) -> Option<AddressConnectionSlot> {
        let client = client.to_canonical();
        let mut counts = clients.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(client).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(AddressConnectionSlot {
            clients: Arc::clone(clients),
            client,
        })
    }
}

impl Drop for AddressConnectionSlot {
    fn drop(&mut self) {
        let mut counts = self
            .clients
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream};

    use super::{ConnectionsByAddress, SilentConnectionRegistry, impatient};

    #[tokio::test]
    async fn a_client_that_never_reads_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _silent = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = impatient(stream, Duration::from_millis(50));
        let sent = loop {
            if let Err(why) = stream.write_all(&[0; 65536]).await {
                break why;
            }
        };
        assert_eq!(sent.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn a_new_connection_evicts_the_oldest_silent_one_of_its_client() {
        let room = Arc::new(tokio::sync::Semaphore::new(4));
        let silent = Arc::new(SilentConnectionRegistry::default());
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|ip| ip.parse().unwrap());
        let add = |client| {
            let permit = Arc::clone(&room).try_acquire_owned().unwrap();
            silent.add(client, (permit, None))
        };
        let (speaking, mut kept) = add(one);
        speaking.has_spoken();
        let (_others, mut of_other) = add(other);
        let (_first, mut first) = add(one);
        let (_second, mut second) = add(one);
        let is_open = |end: &mut tokio::sync::oneshot::Receiver<()>| {
            end.try_recv() == Err(tokio::sync::oneshot::error::TryRecvError::Empty)
        };
        assert!(silent.evict(Some(one)));
        assert_eq!(room.available_permits(), 1);
        assert!(!is_open(&mut first) && is_open(&mut second) && is_open(&mut of_other));
        assert!(silent.evict(None) && !is_open(&mut of_other));
        assert!(silent.evict(None) && !is_open(&mut second));
        assert!(!silent.evict(None) && is_open(&mut kept));
        drop(speaking);
        assert!(!is_open(&mut kept));
        assert_eq!(room.available_permits(), 4);
    }

    #[test]
    fn seats_of_one_address_are_bounded_and_given_back() {
        let clients = Arc::new(ConnectionsByAddress::default());
        let one = "192.0.2.1".parse().unwrap();
        let seats: Vec<_> = (0..3)
            .map(|_| ConnectionsByAddress::seat(&clients, one, 3).unwrap())
            .collect();
        assert!(ConnectionsByAddress::seat(&clients, one, 3).is_none());
        assert!(ConnectionsByAddress::seat(&clients, "192.0.2.2".parse().unwrap(), 3).is_some());
        drop(seats);
        assert!(ConnectionsByAddress::seat(&clients, one, 3).is_some());
        assert!(clients.0.lock().unwrap().is_empty());
    }
}

//! A proxy on loopback that refuses and counts all connections.
//!
//! The browser uses the proxy for all its connections. So a request that the crawler didn't
//! intercept reaches only the proxy, not the network.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const REFUSAL: &[u8] = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// How long a client may take to send its request. Also the pause after a failure to accept a
/// connection.
const PATIENCE: Duration = Duration::from_secs(1);

/// A running proxy that refuses all connections. Stops when dropped.
#[derive(Debug)]
pub(crate) struct RefusingProxy {
    port: u16,
    hits: Arc<AtomicU32>,
    listener: JoinHandle<()>,
}

impl RefusingProxy {
    pub(crate) async fn start() -> io::Result<RefusingProxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let hits = Arc::new(AtomicU32::new(0));
        let count = hits.clone();
        let listener = tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((client, _)) => {
                        count.fetch_add(1, Ordering::Relaxed);
                        tokio::spawn(tokio::time::timeout(PATIENCE, refuse(client)));
                    }
                    Err(_) => tokio::time::sleep(PATIENCE).await,
                }
            }
        });
        Ok(RefusingProxy {
            port,
            hits,
            listener,
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the number of connections that the proxy has accepted and refused to forward.
    pub(crate) fn hits(&self) -> u32 {
        self.hits.load(Ordering::Relaxed)
    }
}

impl Drop for RefusingProxy {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

/// Refuses a request with status 403. Reads the request first, because closing a socket with unread
/// data would reset the connection.
async fn refuse(mut client: TcpStream) -> io::Result<()> {
    let mut head = [0; 8192];
    let _ = client.read(&mut head).await?;
    client.write_all(REFUSAL).await?;
    client.shutdown().await
}

//! A proxy in front of the database server that cuts a connection in the middle of a commit,
//! delays replies, or is down for a while.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::postgres_server::Served;

/// The end of a commit, as it appears both in the client's request and in the database server's
/// reply.
const COMMIT: &[u8] = b"COMMIT\0";

/// When the proxy cuts the connection of the next commit.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Cut {
    Never,
    /// The connection is cut before the database server receives the commit.
    Before,
    /// The connection is cut after the database server committed, but before the client receives
    /// the reply.
    After,
}

/// A proxy that cuts connections. Each cut that a test arms happens once.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    cut: Arc<AtomicU8>,
    /// How many of the next connections to close without a reply.
    refused: Arc<AtomicU32>,
}

impl Proxy {
    /// Starts a proxy that serves until the program ends.
    pub(crate) fn before(server: u16) -> Proxy {
        Proxy::late(server, Duration::ZERO)
    }

    /// Starts a proxy that delays each reply of the database server.
    pub(crate) fn late(server: u16, late: Duration) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = Arc::new(AtomicU8::new(Cut::Never as u8));
        let armed = Arc::clone(&cut);
        let refused = Arc::new(AtomicU32::new(0));
        let to_refuse = Arc::clone(&refused);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let order = Ordering::SeqCst;
                let refuse = |count: u32| count.checked_sub(1);
                if to_refuse.fetch_update(order, order, refuse).is_ok() {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                    return;
                };
                relay((&client, &server), Cut::Before, &armed, Duration::ZERO);
                relay((&server, &client), Cut::After, &armed, late);
            }
        });
        Proxy { port, cut, refused }
    }

    /// Returns the URL of the database server through the proxy.
    pub(crate) fn url(&self, served: &Served) -> String {
        let port = |port: u16| format!(":{port}/");
        served.url.replace(&port(served.port), &port(self.port))
    }

    pub(crate) fn arm(&self, cut: Cut) {
        self.cut.store(cut as u8, Ordering::SeqCst);
    }

    /// Closes each of the next `count` connections without a reply.
    pub(crate) fn refuse(&self, count: u32) {
        self.refused.store(count, Ordering::SeqCst);
    }

    /// Returns the number of connections that are still to be closed.
    pub(crate) fn left_to_refuse(&self) -> u32 {
        self.refused.load(Ordering::SeqCst)
    }

    /// Returns whether the armed cut has not happened yet.
    pub(crate) fn is_armed(&self) -> bool {
        self.cut.load(Ordering::SeqCst) != Cut::Never as u8
    }
}

/// Copies bytes from one stream to the other on a new thread. Closes both streams at the end of a
/// commit, if `cut` is armed.
fn relay((from, to): (&TcpStream, &TcpStream), cut: Cut, armed: &Arc<AtomicU8>, late: Duration) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    let armed = Arc::clone(armed);
    thread::spawn(move || {
        let mut last: Vec<u8> = Vec::new();
        let mut buffer = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            // Keep the end of the previous read, because `COMMIT` may be split between two reads.
            last.extend_from_slice(&buffer[..count]);
            let ends = last.windows(COMMIT.len()).any(|part| part == COMMIT);
            let disarm = || {
                let order = Ordering::SeqCst;
                armed.compare_exchange(cut as u8, Cut::Never as u8, order, order)
            };
            if ends && disarm().is_ok() {
                break;
            }
            let end = last.len().saturating_sub(COMMIT.len() - 1);
            last.drain(..end);
            thread::sleep(late);
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    });
}

//! The network between a worker and the database servers: a proxy that can be cut or stalled.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Result;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NetworkState {
    Whole,
    /// Existing connections are closed, and new connections are closed immediately.
    Cut,
    /// Nothing arrives, but connections stay open.
    Stalled,
}

/// The ports of a group's two database servers.
pub(super) type PostgresPairPorts = [u16; 2];

/// The network of one worker: proxies that run until the program ends.
pub(super) struct WorkerNetwork {
    /// For each group, the proxy's ports, through which the worker reaches the group's database
    /// servers.
    pub(super) ports: Vec<PostgresPairPorts>,
    shared: Arc<SharedProxyState>,
}

struct SharedProxyState {
    state: Mutex<WorkerNetworkState>,
    /// Notified whenever `state` changes.
    changed: Condvar,
}

struct WorkerNetworkState {
    network: NetworkState,
    /// The connections of this network. A cut closes them.
    open: Vec<TcpStream>,
}

impl WorkerNetwork {
    /// Creates a network in front of server groups at these ports.
    pub(super) fn to(groups: &[PostgresPairPorts]) -> Result<WorkerNetwork> {
        let shared = Arc::new(SharedProxyState {
            state: Mutex::new(WorkerNetworkState {
                network: NetworkState::Whole,
                open: Vec::new(),
            }),
            changed: Condvar::new(),
        });
        let mut ports = groups.to_vec();
        for port in ports.as_flattened_mut() {
            let server_port = *port;
            let listener = TcpListener::bind("127.0.0.1:0")?;
            *port = listener.local_addr()?.port();
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                for client in listener.incoming().flatten() {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || join(&client, server_port, &shared));
                }
            });
        }
        Ok(WorkerNetwork { ports, shared })
    }

    pub(super) fn set(&self, network: NetworkState) {
        let mut state = self.shared.state();
        state.network = network;
        if network == NetworkState::Cut {
            for stream in state.open.drain(..) {
                // Ignore errors: the stream may already be closed.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        self.shared.changed.notify_all();
    }
}

impl SharedProxyState {
    fn state(&self) -> MutexGuard<'_, WorkerNetworkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the network is stalled. Returns false if it is cut.
    fn passes(&self) -> bool {
        let mut state = self.state();
        while state.network == NetworkState::Stalled {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.network == NetworkState::Whole
    }

    /// Records a connection, so that a cut closes it. Returns false if the network is already cut.
    fn note(&self, streams: [&TcpStream; 2]) -> bool {
        let mut state = self.state();
        if state.network == NetworkState::Cut {
            return false;
        }
        let copies = streams
            .into_iter()
            .filter_map(|stream| stream.try_clone().ok());
        state.open.extend(copies);
        true
    }
}

/// Forwards a connection to a database server.
fn join(client: &TcpStream, server_port: u16, shared: &Arc<SharedProxyState>) {
    if !shared.passes() {
        return;
    }
    // If no database server listens, the client's connection is closed.
    let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)) else {
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    if shared.note([client, &server]) {
        carry(client, &server, shared);
        carry(&server, client, shared);
    }
}

/// Copies bytes in one direction on a separate thread, until a connection ends or the network is
/// cut.
fn carry(from: &TcpStream, to: &TcpStream, shared: &Arc<SharedProxyState>) {
    let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else {
        return;
    };
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if !shared.passes() || to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    });
}

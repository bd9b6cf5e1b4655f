//! `--metrics`: the numbers of a crawl that runs, over HTTP, for Prometheus.
//!
//! An answer is written from the progress that the crawl tells anyway: nobody who asks makes the
//! crawl do anything.

#[cfg(test)]
mod docs_page;
mod families;
mod process;
mod text;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri, header};
use axum::routing::get;
use axum::{Extension, Router};
use crawl_engine::Progress;
use tokio::sync::watch;

use crate::error::CommandError;
use crate::serve::authority;
use crate::serve::connections::{self, ConnectionRoom, Peer};
use crate::serve::rate_limit::Rates;

use families::families;

/// The media type of Prometheus' text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Connections at once. Prometheus keeps one open.
const ROOM: ConnectionRoom = ConnectionRoom {
    connections: 16,
    per_client: Some(8),
};

/// Requests a second of one client; twice as many at once.
const RATE: NonZeroU32 = NonZeroU32::new(10).expect("a constant that is not 0");

/// A server of metrics. It ends with the runtime.
#[derive(Clone)]
pub(crate) struct MetricsServer(Arc<Inner>);

struct Inner {
    /// The address that it listens on.
    address: SocketAddr,
    rates: Rates,
    /// The progress of the round that runs, or that was the last.
    progress: Mutex<watch::Receiver<Progress>>,
    started: SystemTime,
}

impl MetricsServer {
    /// Listens on an address. To be called within a tokio runtime.
    ///
    /// # Errors
    /// Nobody can listen there.
    pub(crate) async fn start(address: SocketAddr) -> Result<MetricsServer, CommandError> {
        let (listener, address) = connections::listen(address, "--metrics").await?;
        let server = MetricsServer(Arc::new(Inner {
            address,
            rates: Rates::new(RATE),
            progress: Mutex::new(watch::channel(Progress::default()).1),
            started: SystemTime::now(),
        }));
        let router = Router::new()
            .route("/metrics", get(metrics))
            .fallback(|| async { (StatusCode::NOT_FOUND, "the metrics are at /metrics\n") })
            .with_state(server.clone());
        tokio::spawn(async move {
            let (_never, stop) = watch::channel(false);
            connections::serve(listener, router, stop, ROOM).await;
        });
        Ok(server)
    }

    /// The URL of the metrics.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/metrics", self.0.address)
    }

    /// Tells of another round from now on.
    pub(crate) fn follow(&self, progress: watch::Receiver<Progress>) {
        *self.progress() = progress;
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, watch::Receiver<Progress>> {
        // It is replaced whole, so a panic elsewhere leaves nothing half done.
        let progress = self.0.progress.lock();
        progress.unwrap_or_else(PoisonError::into_inner)
    }
}

type Answer = (StatusCode, [(HeaderName, &'static str); 1], String);

async fn metrics(
    State(server): State<MetricsServer>,
    Extension(Peer(peer)): Extension<Peer>,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    let answer = |status, text| (status, [(header::CONTENT_TYPE, TEXT_FORMAT)], text);
    if let Err(seconds) = server.0.rates.admit(peer.ip()) {
        let text = format!("too many requests: ask again in {seconds} s\n");
        return answer(StatusCode::TOO_MANY_REQUESTS, text);
    }
    // A page of another site whose name leads here (DNS rebinding) sends that name.
    if server.0.address.ip().is_loopback() && !authority::names_loopback(&uri, &headers) {
        let text = "this server answers by the names of this machine alone, such as 127.0.0.1\n";
        return answer(StatusCode::MISDIRECTED_REQUEST, text.to_owned());
    }
    let progress = server.progress().borrow().clone();
    let process = process::numbers(server.0.started);
    answer(StatusCode::OK, text::of(&families(&progress, process)))
}

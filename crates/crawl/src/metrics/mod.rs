//! `--metrics`: serves the metrics of a running crawl over HTTP, for Prometheus.
//!
//! Responses are built from the progress that the crawl publishes anyway, so a scrape causes no
//! work in the crawl.

#[cfg(test)]
mod docs_page;
mod families;
mod process;
mod prometheus_text;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri, header};
use axum::routing::get;
use axum::{Extension, Router};
use crawl_engine::{CrawlPhase, ProgressSnapshot};
use tokio::sync::watch;

use crate::error::CommandError;
use crate::serve::authority;
use crate::serve::connections::{self, PeerAddress, ServerConnectionLimits};
use crate::serve::rate_limit::ClientRateLimits;

use families::families;

/// The media type of Prometheus' text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Connection limits. They may be low, because Prometheus keeps only one connection open.
const ROOM: ServerConnectionLimits = ServerConnectionLimits {
    connections: 16,
    per_client: Some(8),
};

/// Requests per second from one client. Bursts may be twice as large.
const RATE: NonZeroU32 = NonZeroU32::new(10).expect("a constant that is not 0");

/// A metrics server that runs until the tokio runtime ends.
#[derive(Clone)]
pub(crate) struct MetricsServer(Arc<Inner>);

struct Inner {
    /// The listening address.
    address: SocketAddr,
    rates: ClientRateLimits,
    /// The progress of the current round, or of the last one.
    progress: Mutex<watch::Receiver<ProgressSnapshot>>,
    started: SystemTime,
}

impl MetricsServer {
    /// Listens on an address. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The address can't be listened on.
    pub(crate) async fn start(address: SocketAddr) -> Result<MetricsServer, CommandError> {
        let (listener, address) = connections::listen(address, "--metrics").await?;
        let server = MetricsServer(Arc::new(Inner {
            address,
            rates: ClientRateLimits::new(RATE),
            progress: Mutex::new(watch::channel(ProgressSnapshot::default()).1),
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

    /// Returns the URL of the metrics.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/metrics", self.0.address)
    }

    /// Switches to the progress of another round.
    pub(crate) fn follow(&self, progress: watch::Receiver<ProgressSnapshot>) {
        *self.progress() = progress;
    }

    /// Reports that the crawl waits for its next round.
    pub(crate) fn rest(&self) {
        let mut progress = self.progress();
        let last = ProgressSnapshot {
            phase: CrawlPhase::Waiting,
            ..progress.borrow().clone()
        };
        *progress = watch::channel(last).1;
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, watch::Receiver<ProgressSnapshot>> {
        // Ignore a poisoned lock: the value is only replaced as a whole, so it is complete.
        let progress = self.0.progress.lock();
        progress.unwrap_or_else(PoisonError::into_inner)
    }
}

type Answer = (StatusCode, [(HeaderName, &'static str); 1], String);

async fn metrics(
    State(server): State<MetricsServer>,
    Extension(PeerAddress(peer)): Extension<PeerAddress>,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    let answer = |status, text| (status, [(header::CONTENT_TYPE, TEXT_FORMAT)], text);
    if let Err(seconds) = server.0.rates.admit(peer.ip()) {
        let text = format!("too many requests: try again in {seconds} s\n");
        return answer(StatusCode::TOO_MANY_REQUESTS, text);
    }
    // Reject the names of other hosts: with DNS rebinding, a page of another site can send requests
    // to this server, but their `Host` field has that site's name.
    if server.0.address.ip().is_loopback() && !authority::names_loopback(&uri, &headers) {
        let text = "this server accepts only the names of this machine, such as 127.0.0.1\n";
        return answer(StatusCode::MISDIRECTED_REQUEST, text.to_owned());
    }
    let progress = server.progress().borrow().clone();
    let process = process::numbers(server.0.started);
    answer(
        StatusCode::OK,
        prometheus_text::of(&families(&progress, process)),
    )
}

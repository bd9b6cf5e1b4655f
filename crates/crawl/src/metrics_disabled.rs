//! Replaces `--metrics` in a build without the feature `search`, which has no server.

use std::net::SocketAddr;

use crawl_engine::ProgressSnapshot;
use tokio::sync::watch;

use crate::error::{CommandError, left_out};

/// A metrics server, which can't exist in this build.
#[derive(Clone)]
pub(crate) enum MetricsServer {}

impl MetricsServer {
    /// Returns an error, because this build has no metrics server.
    pub(crate) async fn start(_address: SocketAddr) -> Result<MetricsServer, CommandError> {
        Err(left_out("--metrics", "search"))
    }

    pub(crate) fn url(&self) -> String {
        match *self {}
    }

    pub(crate) fn follow(&self, _progress: watch::Receiver<ProgressSnapshot>) {
        match *self {}
    }

    pub(crate) fn rest(&self) {
        match *self {}
    }
}

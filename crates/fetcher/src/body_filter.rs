//! Decides which response bodies are read.

use std::fmt;
use std::sync::Arc;

use http::HeaderMap;

type WantsBody = dyn Fn(u16, &HeaderMap) -> bool + Send + Sync;

/// Decides by an answer's status and headers whether to read the body, and how much of the body.
#[derive(Clone)]
pub struct BodyFilter {
    wants: Arc<WantsBody>,
    max_bytes: Option<u64>,
}

impl BodyFilter {
    /// Creates a filter that reads a body if `wants` returns true for the status and the headers.
    /// At most `max_bytes` of it are read; `None` leaves the general limit in force.
    #[must_use]
    pub fn new(
        max_bytes: Option<u64>,
        wants: impl Fn(u16, &HeaderMap) -> bool + Send + Sync + 'static,
    ) -> BodyFilter {
        BodyFilter {
            wants: Arc::new(wants),
            max_bytes,
        }
    }

    /// Returns whether to read the body of an answer.
    #[must_use]
    pub fn wants(&self, status: u16, headers: &HeaderMap) -> bool {
        (self.wants)(status, headers)
    }

    /// Returns the maximum number of bytes to read from a body, given a general limit of `bytes`.
    #[must_use]
    pub fn at_most(&self, bytes: u64) -> u64 {
        self.max_bytes.map_or(bytes, |max| max.min(bytes))
    }
}

impl fmt::Debug for BodyFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyFilter")
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

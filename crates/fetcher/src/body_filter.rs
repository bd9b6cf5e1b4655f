//! Which bodies are read at all.

use std::fmt;
use std::sync::Arc;

use http::HeaderMap;

type WantsBody = dyn Fn(u16, &HeaderMap) -> bool + Send + Sync;

/// Decides by the status and the fields of an answer whether its body is read, and how far.
#[derive(Clone)]
pub struct BodyFilter {
    wants: Arc<WantsBody>,
    max_bytes: Option<u64>,
}

impl BodyFilter {
    /// A filter that asks `wants`, and has no more than `max_bytes` of a body read.
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

    /// Returns whether the body of an answer is read.
    #[must_use]
    pub fn wants(&self, status: u16, headers: &HeaderMap) -> bool {
        (self.wants)(status, headers)
    }

    /// The bytes of a body that are read at most, where a body may have as many as `bytes`.
    #[must_use]
    pub fn at_most(&self, bytes: u64) -> u64 {
        self.max_bytes.map_or(bytes, |most| most.min(bytes))
    }
}

impl fmt::Debug for BodyFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyFilter")
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

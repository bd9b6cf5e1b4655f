//! A request as a log or a WARC file has it.

use crawl_identity::Message;

/// A request in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoggedRequest {
    pub(super) message: Message,
    /// When the request came, in seconds since 1970. `None` if the log doesn't have it.
    pub(super) at: Option<u64>,
    /// Whether `message` has all header fields of the request.
    pub(super) is_whole: bool,
}

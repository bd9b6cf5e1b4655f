//! A request in a log or a WARC file.

use crawl_identity::SignableMessage;

/// A request in a server's log or in a WARC file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoggedRequest {
    pub(super) message: SignableMessage,
    /// When the request arrived, in seconds since 1970. `None` if the log lacks the time.
    pub(super) at: Option<u64>,
    /// Whether `message` has all header fields of the request.
    pub(super) is_whole: bool,
}

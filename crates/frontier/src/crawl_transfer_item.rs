//! The parts of a frontier's contents, for moving a crawl to another frontier.

use crawl_weburl::{CanonicalUrl, HostKey, Origin};

use crate::last_visit::StoredVisit;
use crate::url_record::UrlRecord;

/// A part of a frontier's contents: a URL, the state of a host, a robots.txt, a visit, or a value
/// of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrawlTransferItem {
    /// A URL and its state.
    Url {
        /// The URL.
        url: CanonicalUrl,
        /// The URL's state, queue place and `via`.
        record: UrlRecord,
    },
    /// The stored state of a host.
    Host {
        /// The host.
        host: HostKey,
        /// No requests to the host are allowed before this time, in microseconds since the Unix
        /// epoch.
        wake: u64,
        /// The host's state, as opaque bytes.
        bytes: Vec<u8>,
    },
    /// The stored copy of an origin's robots.txt.
    Robots {
        /// The origin.
        origin: Origin,
        /// The copy, as opaque bytes.
        bytes: Vec<u8>,
    },
    /// The last visit of a URL, stored for the URL's next visit.
    Visit(StoredVisit),
    /// A value that the caller stored under a name.
    Meta {
        /// The name.
        name: String,
        /// The value, as opaque bytes.
        bytes: Vec<u8>,
    },
}

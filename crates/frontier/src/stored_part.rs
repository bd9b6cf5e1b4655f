//! The parts of a frontier's contents, for moving a crawl.

use crawl_weburl::{CanonicalUrl, HostKey, Origin};

use crate::record::UrlRecord;
use crate::visit::StoredVisit;

/// A part of a frontier's contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredPart {
    /// A URL and its state.
    Url {
        /// The URL.
        url: CanonicalUrl,
        /// The URL's state and place.
        record: UrlRecord,
    },
    /// The stored state of a host.
    Host {
        /// The host.
        host: HostKey,
        /// The wake time of the host, in microseconds since the Unix epoch.
        wake: u64,
        /// The caller's bytes.
        bytes: Vec<u8>,
    },
    /// A copy of robots.txt.
    Robots {
        /// The origin.
        origin: Origin,
        /// The caller's bytes.
        bytes: Vec<u8>,
    },
    /// The last visit of a URL.
    Visit(StoredVisit),
    /// A value stored under a name.
    Meta {
        /// The name.
        name: String,
        /// The caller's bytes.
        bytes: Vec<u8>,
    },
}

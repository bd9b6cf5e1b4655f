//! The parts of what a frontier holds.

use crawl_weburl::{CanonicalUrl, HostKey, Origin};

use crate::record::UrlRecord;
use crate::visit::StoredVisit;

/// A part of what a frontier holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredPart {
    /// A URL and its state.
    Url {
        /// The URL.
        url: CanonicalUrl,
        /// Its state and its place.
        record: UrlRecord,
    },
    /// A host's row.
    Host {
        /// The host.
        host: HostKey,
        /// Its wake time, microseconds since the Unix epoch.
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
    /// A named value.
    Meta {
        /// The name.
        name: String,
        /// The caller's bytes.
        bytes: Vec<u8>,
    },
}

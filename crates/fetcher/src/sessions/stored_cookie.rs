//! A cookie in the state of a crawl or in a file.

use serde::{Deserialize, Serialize};

/// A cookie as stored in the state of a crawl or read from a cookie file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredCookie {
    pub(crate) name: String,
    pub(crate) value: String,
    /// A host without a port, or a domain without a leading dot.
    pub(crate) domain: String,
    /// Whether the cookie goes to exactly `domain`, not to its subdomains.
    pub(crate) host_only: bool,
    pub(crate) path: String,
    /// When the cookie expires, in seconds since 1970 UTC. `None` for a session cookie, which lasts
    /// as long as the crawl.
    pub(crate) expires: Option<i64>,
    pub(crate) secure: bool,
    pub(crate) http_only: bool,
}

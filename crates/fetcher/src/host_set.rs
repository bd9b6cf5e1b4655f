//! A bounded set of hosts. It records which hosts need a special kind of connection, such as
//! HTTP/1.1 only.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

use crawl_weburl::{CanonicalUrl, HostKey};

/// Maximum hosts that refuse HTTP/2, and maximum hosts that close kept connections.
/// Beyond the limit: requests to further such hosts keep failing.
const MAX_HOSTS: usize = 10_000;

/// A set of at most [`MAX_HOSTS`] hosts.
#[derive(Debug, Default)]
pub(crate) struct HostSet {
    hosts: RwLock<HashSet<HostKey>>,
}

impl HostSet {
    /// Returns whether the set has the host of a URL.
    pub(crate) fn contains(&self, url: &CanonicalUrl) -> bool {
        let hosts = self.hosts.read().unwrap_or_else(PoisonError::into_inner);
        !hosts.is_empty() && hosts.contains(&url.host_key())
    }

    /// Adds the host of a URL.
    pub(crate) fn add(&self, url: &CanonicalUrl) {
        let mut hosts = self.hosts.write().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() < MAX_HOSTS {
            hosts.insert(url.host_key());
        }
    }
}

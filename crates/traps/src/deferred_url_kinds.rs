//! The deferred kinds of URLs, and the hosts that these kinds belong to.

use std::collections::HashMap;

use crawl_weburl::HostKey;

/// A kind of URLs that are deferred because they brought nothing new.
#[derive(Clone, Debug)]
pub(super) struct DeferredUrlKind {
    /// The host of the kind's URLs, or of the pages on which these URLs were found. `None` if an
    /// earlier version stored the kind without a host.
    pub(super) host: Option<HostKey>,
    pub(super) rule: String,
    /// True if all URLs of the kind are deferred. False if only those found on pages with nothing
    /// new are deferred, because the URLs have no trap signs (such as dates or session ids).
    pub(super) by_looks: bool,
    /// Names of parameters that never brought anything new. If set, only URLs with such a parameter
    /// are deferred.
    pub(super) names: Option<Vec<String>>,
    /// How many URLs of the kind were deferred so far.
    pub(super) put_aside: u64,
    /// When `put_aside` reaches this value, the next probe is fetched.
    pub(super) next_probe: u64,
}

/// The deferred kinds by key.
#[derive(Debug, Default)]
pub(super) struct DeferredUrlKinds {
    kinds: HashMap<u64, DeferredUrlKind>,
    /// The number of deferred kinds of URLs of each host. The key `None` counts kinds without a
    /// host.
    hosts: HashMap<Option<HostKey>, u32>,
}

impl DeferredUrlKinds {
    pub(super) fn len(&self) -> usize {
        self.kinds.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&u64, &DeferredUrlKind)> {
        self.kinds.iter()
    }

    pub(super) fn get(&self, place: u64) -> Option<&DeferredUrlKind> {
        self.kinds.get(&place)
    }

    pub(super) fn get_mut(&mut self, place: u64) -> Option<&mut DeferredUrlKind> {
        self.kinds.get_mut(&place)
    }

    /// Returns true if a deferred kind of URLs may match URLs of `host`, or URLs found on its
    /// pages.
    pub(super) fn speak_of(&self, host: &HostKey) -> bool {
        let has = |host| self.hosts.contains_key(&host);
        !self.is_empty() && (has(None) || has(Some(host.clone())))
    }

    pub(super) fn insert(&mut self, place: u64, kind: DeferredUrlKind) {
        self.remove(place);
        *self.hosts.entry(kind.host.clone()).or_default() += 1;
        self.kinds.insert(place, kind);
    }

    /// Removes the kind of URLs with this key. Returns whether it existed.
    pub(super) fn remove(&mut self, place: u64) -> bool {
        let Some(kind) = self.kinds.remove(&place) else {
            return false;
        };
        if let Some(count) = self.hosts.get_mut(&kind.host) {
            *count -= 1;
            if *count == 0 {
                self.hosts.remove(&kind.host);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::HostKey;

    use super::{DeferredUrlKind, DeferredUrlKinds};

    #[test]
    fn kinds_affect_their_own_hosts_only() {
        let host = |name: &str| HostKey::parse(name).unwrap();
        let kind = |name: &str| DeferredUrlKind {
            host: Some(host(name)),
            rule: "calendar".to_owned(),
            by_looks: true,
            names: None,
            put_aside: 0,
            next_probe: 0,
        };
        let mut kinds = DeferredUrlKinds::default();
        let affected = |kinds: &DeferredUrlKinds| {
            ["a.example", "b.example"].map(|of| kinds.speak_of(&host(of)))
        };
        assert_eq!(affected(&kinds), [false, false]);
        kinds.insert(1, kind("a.example"));
        kinds.insert(2, kind("a.example"));
        // The second kind with key 2 replaces the first.
        kinds.insert(2, kind("b.example"));
        assert_eq!((kinds.len(), affected(&kinds)), (2, [true, true]));
        assert!(kinds.remove(1) && !kinds.remove(1));
        assert_eq!(affected(&kinds), [false, true]);
        assert!(kinds.remove(2));
        // A kind without a host, stored by an earlier version, may belong to any host.
        kinds.insert(
            3,
            DeferredUrlKind {
                host: None,
                ..kind("a.example")
            },
        );
        assert_eq!(affected(&kinds), [true, true]);
        assert!(kinds.remove(3));
        assert_eq!((kinds.is_empty(), affected(&kinds)), (true, [false, false]));
    }
}

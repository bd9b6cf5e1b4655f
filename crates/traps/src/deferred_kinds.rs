//! The kinds of URLs that are deferred, and whose they are.

use std::collections::HashMap;

use crawl_weburl::HostKey;

/// A kind of URLs that is deferred.
#[derive(Clone, Debug)]
pub(super) struct DeferredKind {
    /// The host of its URLs, or of the pages that they were found on; none where an earlier version
    /// stored it without.
    pub(super) host: Option<HostKey>,
    pub(super) rule: String,
    /// URLs without such looks are deferred only where they were found on pages that said nothing.
    pub(super) by_looks: bool,
    /// The parameters that never brought anything: what has one of them brings nothing.
    pub(super) names: Option<Vec<String>>,
    /// URLs that were put aside, and the number of the next that is asked for.
    pub(super) put_aside: u64,
    pub(super) next_probe: u64,
}

/// The deferred kinds, by their places.
#[derive(Debug, Default)]
pub(super) struct DeferredKinds {
    kinds: HashMap<u64, DeferredKind>,
    /// The number of kinds of each host, and of those without one.
    hosts: HashMap<Option<HostKey>, u32>,
}

impl DeferredKinds {
    pub(super) fn len(&self) -> usize {
        self.kinds.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&u64, &DeferredKind)> {
        self.kinds.iter()
    }

    pub(super) fn get(&self, place: u64) -> Option<&DeferredKind> {
        self.kinds.get(&place)
    }

    pub(super) fn get_mut(&mut self, place: u64) -> Option<&mut DeferredKind> {
        self.kinds.get_mut(&place)
    }

    /// Returns whether any may speak of a host's URLs, or of those found on its pages.
    pub(super) fn speak_of(&self, host: &HostKey) -> bool {
        let has = |host| self.hosts.contains_key(&host);
        !self.is_empty() && (has(None) || has(Some(host.clone())))
    }

    pub(super) fn insert(&mut self, place: u64, kind: DeferredKind) {
        self.remove(place);
        *self.hosts.entry(kind.host.clone()).or_default() += 1;
        self.kinds.insert(place, kind);
    }

    /// Returns whether there was one.
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

    use super::{DeferredKind, DeferredKinds};

    #[test]
    fn ours_kinds_speak_of_their_own_hosts() {
        let host = |name: &str| HostKey::parse(name).unwrap();
        let kind = |name: &str| DeferredKind {
            host: Some(host(name)),
            rule: "calendar".to_owned(),
            by_looks: true,
            names: None,
            put_aside: 0,
            next_probe: 0,
        };
        let mut kinds = DeferredKinds::default();
        let told =
            |kinds: &DeferredKinds| ["a.example", "b.example"].map(|of| kinds.speak_of(&host(of)));
        assert_eq!(told(&kinds), [false, false]);
        kinds.insert(1, kind("a.example"));
        kinds.insert(2, kind("a.example"));
        // In the place of one.
        kinds.insert(2, kind("b.example"));
        assert_eq!((kinds.len(), told(&kinds)), (2, [true, true]));
        assert!(kinds.remove(1) && !kinds.remove(1));
        assert_eq!(told(&kinds), [false, true]);
        assert!(kinds.remove(2));
        // One that an earlier version stored may be anybody's.
        kinds.insert(
            3,
            DeferredKind {
                host: None,
                ..kind("a.example")
            },
        );
        assert_eq!(told(&kinds), [true, true]);
        assert!(kinds.remove(3));
        assert_eq!((kinds.is_empty(), told(&kinds)), (true, [false, false]));
    }
}

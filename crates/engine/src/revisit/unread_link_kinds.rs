//! The kinds of links of a page that a visit leaves unread. A later visit with other settings reads
//! the page again.

use crawl_frontier::Lease;
use crawl_scope::Scope;
use serde::{Deserialize, Serialize};

use crate::config::{Config, EmbeddedResourcePolicy};

/// Returns whether a leased page is the last allowed hop out of the scope, so that its links to pages
/// are not followed.
pub(crate) fn is_last_hop(lease: &Lease, scope: &Scope) -> bool {
    lease.hops_off > 0 && lease.hops_off >= scope.hops_off() && !scope.holds(&lease.url)
}

/// The kinds of links that a visit leaves unread, one bit each. `DocumentLinkCollector` in
/// `page_reading` follows the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct UnreadLinkKinds(u8);

impl UnreadLinkKinds {
    const PAGES: u8 = 1;
    const FEEDS: u8 = 2;
    const FORMS: u8 = 4;
    const OWN_RESOURCES: u8 = 8;
    const OTHER_RESOURCES: u8 = 16;

    /// Returns what a visit of a leased page leaves unread, with the settings and the scope in
    /// force.
    pub(crate) fn of(lease: &Lease, scope: &Scope, config: &Config) -> UnreadLinkKinds {
        let is_outside = lease.hops_off > 0 && !scope.holds(&lease.url);
        let is_last = is_last_hop(lease, scope);
        let resources = config.resources;
        let no_own = match is_outside {
            true => resources != EmbeddedResourcePolicy::All,
            false => resources == EmbeddedResourcePolicy::Off,
        };
        let bits = [
            (is_last, UnreadLinkKinds::PAGES),
            (is_last || !config.feeds, UnreadLinkKinds::FEEDS),
            (is_last || !config.forms, UnreadLinkKinds::FORMS),
            (no_own, UnreadLinkKinds::OWN_RESOURCES),
            (
                resources != EmbeddedResourcePolicy::All,
                UnreadLinkKinds::OTHER_RESOURCES,
            ),
        ];
        let unread = bits.into_iter().filter(|(is_unread, _)| *is_unread);
        UnreadLinkKinds(unread.fold(0, |all, (_, bit)| all | bit))
    }

    /// Returns whether a visit that leaves `now` unread would read links that this one left unread.
    pub(crate) fn are_wanted(self, now: UnreadLinkKinds) -> bool {
        self.0 & !now.0 != 0
    }

    /// Returns what two visits of the same content both left unread.
    #[must_use]
    pub(crate) fn both(self, other: UnreadLinkKinds) -> UnreadLinkKinds {
        UnreadLinkKinds(self.0 & other.0)
    }

    pub(crate) fn are_none(&self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crawl_frontier::{Frontier as _, MemoryFrontier, UrlToAdmit};
    use crawl_scope::{Scope, ScopeMode};
    use crawl_weburl::{HostKey, canonicalize};

    use super::UnreadLinkKinds;
    use crate::config::{Config, EmbeddedResourcePolicy};
    use crate::simulated_crawl_tests::config;

    fn unread(hops_off: u8, change: impl FnOnce(&mut Config, &mut Scope)) -> UnreadLinkKinds {
        let url = canonicalize(None, "http://b.example/").unwrap();
        let frontier = MemoryFrontier::new();
        let mut transaction = frontier.begin().unwrap();
        let admission = UrlToAdmit {
            hops_off,
            ..UrlToAdmit::seed(url.clone())
        };
        transaction.admit(admission).unwrap();
        transaction.commit().unwrap();
        let lease = frontier.lease(&url.origin()).unwrap().unwrap();
        let mut scope = Scope::new(ScopeMode::Host, &[], &[], None).unwrap();
        scope.add_seed(&canonicalize(None, "http://a.example/").unwrap());
        scope.allow_hops_off(1);
        let mut config = config(Path::new("c"));
        config.feeds = true;
        change(&mut config, &mut scope);
        UnreadLinkKinds::of(&lease, &scope, &config)
    }

    #[test]
    fn links_are_wanted_once_settings_or_scope_include_them() {
        let first = || unread(1, |_, _| {});
        assert!(!first().are_wanted(first()));
        let later = [
            ("hops", unread(1, |_, scope| scope.allow_hops_off(2))),
            (
                "host",
                unread(1, |_, scope| {
                    scope.add_host(&HostKey::parse("b.example").unwrap());
                }),
            ),
            (
                "resources",
                unread(1, |config, _| {
                    config.resources = EmbeddedResourcePolicy::All;
                }),
            ),
        ];
        for (what, later) in later {
            assert!(first().are_wanted(later), "{what}");
            assert!(!later.are_wanted(first()), "{what}");
        }
        // A page in scope.
        let first = unread(0, |_, _| {});
        let own = unread(0, |config, _| {
            config.resources = EmbeddedResourcePolicy::Own;
        });
        let all = unread(0, |config, _| {
            config.resources = EmbeddedResourcePolicy::All;
        });
        let forms = unread(0, |config, _| config.forms = true);
        assert!(first.are_wanted(own) && own.are_wanted(all) && first.are_wanted(forms));
        assert!(!own.are_wanted(first));
        let everything = unread(0, |config, _| {
            config.resources = EmbeddedResourcePolicy::All;
            config.forms = true;
        });
        assert!(everything.are_none());
        assert_eq!(first.both(everything), everything);
    }
}

//! The state of the trap detector, shared by the crawl loop, the readers and the writer.
//!
//! There is one [`TrapDetector`](crawl_traps::TrapDetector) behind a lock. The writer updates the
//! traps with each page that it settles, in commit order. The coordinator uses the traps to judge
//! each leased URL. Readers check whether the traps affect the links of a page.
//!
//! The lock is usually held only for microseconds. It is held longer if the writer must compare a
//! page with the words of its host. This is rare, because a reader has usually compared the page
//! already. A reader releases the lock before it locks the words of a host.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crawl_frontier::{Lease, NotFetchedReason, Reason, UrlToAdmit};
use crawl_traps::{PageFingerprint, TrapDetector};
use crawl_weburl::CanonicalUrl;

use crate::config::TrapAvoidance;
use crate::priority::Priority;

/// The state of the trap detector that several threads share.
#[derive(Clone, Debug)]
pub(crate) struct SharedTrapDetector {
    rules: TrapAvoidance,
    traps: Arc<Mutex<TrapDetector>>,
    /// The number of the last completed commit.
    settled: Arc<AtomicU64>,
}

impl SharedTrapDetector {
    pub(crate) fn new(rules: &TrapAvoidance, stored: Option<&[u8]>) -> SharedTrapDetector {
        let mut traps = TrapDetector::new(rules.naming, rules.traps);
        if let Some(stored) = stored.filter(|_| rules.traps) {
            traps.restore(stored);
        }
        SharedTrapDetector {
            rules: *rules,
            traps: Arc::new(Mutex::new(traps)),
            settled: Arc::default(),
        }
    }

    pub(crate) fn rules(&self) -> TrapAvoidance {
        self.rules
    }

    /// Compares a page with the words of its host, if it is uncertain how much of the page is new.
    /// Called by readers, because the writer would otherwise have to look up each word.
    pub(crate) fn compare(&self, lease: &Lease, fingerprint: &mut PageFingerprint) {
        let level = Priority::of(lease).level();
        let words = self.lock().words_to_compare(&lease.url, level, fingerprint);
        if let Some(words) = words {
            words.compare(fingerprint);
        }
    }

    /// Returns whether the trap detector may change or defer a link of a page.
    pub(crate) fn may_change(&self, via: &CanonicalUrl, links: &[UrlToAdmit]) -> bool {
        let traps = self.lock();
        // Look up a host only once for consecutive links to the same origin, since most links of a
        // page lead to one origin.
        let mut last = via;
        traps.knows_of(&via.host_key())
            || links.iter().any(|link| {
                let is_of_last = link.url.origin_text() == last.origin_text();
                last = &link.url;
                !is_of_last && traps.knows_of(&link.url.host_key())
            })
    }

    /// Records that the commit with this number has settled all pages observed so far.
    pub(crate) fn settled(&self, number: u64) {
        let mut traps = self.lock();
        traps.settled();
        self.settled.store(number, Ordering::Relaxed);
    }

    /// Returns the number of the last completed commit, which can't change while the traps are
    /// locked.
    pub(crate) fn settled_by(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }

    /// Locks the traps. Ignores a panic of another thread, because the traps are consistent between
    /// any two calls.
    pub(crate) fn lock(&self) -> MutexGuard<'_, TrapDetector> {
        self.traps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the exclusion of a URL that is deferred for this reason.
pub(crate) fn put_aside(reason: Reason, rule: String) -> NotFetchedReason {
    NotFetchedReason {
        rule: Some(rule),
        ..NotFetchedReason::of(reason)
    }
}

#[cfg(test)]
mod tests {
    use crawl_frontier::UrlToAdmit;
    use crawl_weburl::canonicalize;

    use super::SharedTrapDetector;
    use crate::config::TrapAvoidance;

    #[test]
    fn traps_affect_links_to_their_host_and_from_it() {
        let stored = "parked 2\n0000000000000001\ttrap.example\t1\t-\tcalendar";
        let traps = SharedTrapDetector::new(&TrapAvoidance::default(), Some(stored.as_bytes()));
        let url = |host: &str| canonicalize(None, &format!("http://{host}.example/")).unwrap();
        for (from, to, is_told) in [
            ("a", &["a", "b"][..], false),
            ("a", &["a", "trap"], true),
            ("a", &["trap", "a"], true),
            ("trap", &["a"], true),
            ("trap", &[], true),
        ] {
            let links = to.iter().map(|to| UrlToAdmit::link(url(to), 1, url(from)));
            let links: Vec<_> = links.collect();
            assert_eq!(
                traps.may_change(&url(from), &links),
                is_told,
                "{from} {to:?}"
            );
        }
    }
}

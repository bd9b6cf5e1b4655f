//! The state of traps, as the crawl loop, the readers and the writer share it.
//!
//! It is one value, [`Traps`](crawl_traps::Traps), behind a lock: the writer tells it of
//! each page as it settles it, in the order of the commits, the coordinator asks it of each URL
//! that it leases, and a reader whether it has a say in the links of a page. All hold the lock for
//! microseconds, but where the writer compares a page that became doubtful since it was read. A
//! reader takes the lock of a host's words after it gave this one back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crawl_frontier::{Admission, Exclusion, Lease, Reason};
use crawl_traps::{PageFingerprint, Traps};
use crawl_weburl::CanonicalUrl;

use crate::config::TrapRules;
use crate::priority::Priority;

/// The state of traps, for the coordinator, the readers and the writer.
#[derive(Clone, Debug)]
pub(crate) struct SharedTraps {
    rules: TrapRules,
    traps: Arc<Mutex<Traps>>,
    /// The number of the last commit that is over.
    settled: Arc<AtomicU64>,
}

impl SharedTraps {
    pub(crate) fn new(rules: &TrapRules, stored: Option<&[u8]>) -> SharedTraps {
        let mut traps = Traps::new(rules.naming, rules.traps);
        if let Some(stored) = stored.filter(|_| rules.traps) {
            traps.restore(stored);
        }
        SharedTraps {
            rules: *rules,
            traps: Arc::new(Mutex::new(traps)),
            settled: Arc::default(),
        }
    }

    /// The rules of this run.
    pub(crate) fn rules(&self) -> TrapRules {
        self.rules
    }

    /// Notes how much of a page is new on its host, where that is in doubt, so that the writer need
    /// not look at each of its words.
    pub(crate) fn compare(&self, lease: &Lease, fingerprint: &mut PageFingerprint) {
        let level = Priority::of(lease).level();
        let words = self.lock().words_to_compare(&lease.url, level, fingerprint);
        if let Some(words) = words {
            words.compare(fingerprint);
        }
    }

    /// Returns whether anything is known by which a link of a page may be named otherwise or put
    /// aside.
    pub(crate) fn may_change(&self, via: &CanonicalUrl, links: &[Admission]) -> bool {
        let traps = self.lock();
        // Most links of a page lead to one origin, so its host is asked about once.
        let mut last = via;
        traps.knows_of(&via.host_key())
            || links.iter().any(|link| {
                let is_of_last = link.url.origin_text() == last.origin_text();
                last = &link.url;
                !is_of_last && traps.knows_of(&link.url.host_key())
            })
    }

    /// The commit of this number settles what was taken in.
    pub(crate) fn settled(&self, number: u64) {
        let mut traps = self.lock();
        traps.settled();
        self.settled.store(number, Ordering::Relaxed);
    }

    /// The number of the last commit that is over. Read while the traps are locked, it does not
    /// change.
    pub(crate) fn settled_by(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }

    /// It is whole between any two calls, so a panic elsewhere leaves nothing half done.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Traps> {
        self.traps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The exclusion of a URL that is put aside.
pub(crate) fn put_aside(reason: Reason, rule: String) -> Exclusion {
    Exclusion {
        rule: Some(rule),
        ..Exclusion::of(reason)
    }
}

#[cfg(test)]
mod tests {
    use crawl_frontier::Admission;
    use crawl_weburl::canonicalize;

    use super::SharedTraps;
    use crate::config::TrapRules;

    #[test]
    fn ours_traps_have_a_say_in_links_of_their_host_and_in_those_found_on_it() {
        let stored = "parked 2\n0000000000000001\ttrap.example\t1\t-\tcalendar";
        let traps = SharedTraps::new(&TrapRules::default(), Some(stored.as_bytes()));
        let url = |host: &str| canonicalize(None, &format!("http://{host}.example/")).unwrap();
        for (from, to, is_told) in [
            ("a", &["a", "b"][..], false),
            ("a", &["a", "trap"], true),
            ("a", &["trap", "a"], true),
            ("trap", &["a"], true),
            ("trap", &[], true),
        ] {
            let links = to.iter().map(|to| Admission::link(url(to), 1, url(from)));
            let links: Vec<_> = links.collect();
            assert_eq!(
                traps.may_change(&url(from), &links),
                is_told,
                "{from} {to:?}"
            );
        }
    }
}

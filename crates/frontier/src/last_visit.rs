//! Visits of settled URLs: the last visit, and when the next one is due.

use crawl_weburl::CanonicalUrl;

use crate::admit_rule::{PendingUrlFields, QueuedUrl};
use crate::lease::Lease;
use crate::url_to_admit::distance;

/// The last visit of a settled URL, stored for its next visit.
///
/// Times are in seconds since the Unix epoch. A frontier compares them only with times that the
/// caller passes, and never reads a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastVisit {
    /// When the visit was made, in seconds since the Unix epoch.
    pub at: u32,
    /// When the next visit is due, in seconds since the Unix epoch.
    pub due: u32,
    /// Opaque bytes, in which the caller stores values such as validators and a digest.
    pub bytes: Vec<u8>,
}

impl LastVisit {
    /// Returns whether the due time can't be right, as [`crate::Transaction::visit_misdated`]
    /// defines it.
    #[must_use]
    pub fn is_misdated(&self, now: u32, longest: Option<u32>) -> bool {
        let is_dated_ahead = self.at > now;
        let is_old = longest.is_some_and(|longest| self.at.saturating_add(longest) <= now);
        self.due > now.saturating_add(longest.unwrap_or(0)) && (is_dated_ahead || is_old)
    }
}

/// The stored visit of a URL, with the queue place and the `via` that the URL gets when it becomes
/// pending again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVisit {
    /// The URL.
    pub url: CanonicalUrl,
    /// The page that the URL was found on.
    pub via: Option<CanonicalUrl>,
    /// The queue place that the URL gets when it becomes pending again. `seq` is 0, because
    /// [`StoredVisit::queued`] sets it.
    pub place: PendingUrlFields,
    /// The visit.
    pub visit: LastVisit,
    /// Whether the URL is settled and waits for its next visit at `visit.due`. If false, the URL is
    /// pending or leased, or was settled for good.
    pub is_settled: bool,
}

impl StoredVisit {
    /// Creates the record of the visit that ended `lease`.
    #[must_use]
    pub fn new(lease: &Lease, visit: LastVisit) -> StoredVisit {
        StoredVisit {
            url: lease.url.clone(),
            via: lease.via.clone(),
            place: PendingUrlFields {
                retried: false,
                priority: lease.priority,
                depth: distance(lease.depth, lease.hops_off),
                redirects: lease.redirects,
                is_seed: lease.is_seed,
                kind: lease.kind,
                seq: 0,
            },
            visit,
            is_settled: true,
        }
    }

    /// Returns the queue entry that the URL gets when it becomes pending again, with the sequence
    /// number `seq`.
    #[must_use]
    pub fn queued(&self, seq: u64) -> QueuedUrl {
        QueuedUrl {
            place: PendingUrlFields { seq, ..self.place },
            attempt: 1,
            url: self.url.clone(),
            via: self.via.clone(),
        }
    }
}

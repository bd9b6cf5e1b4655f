//! Visits of settled URLs: what was kept of the last, and when the next is due.

use crawl_weburl::CanonicalUrl;

use crate::admission::distance;
use crate::admit_rule::{QueuePlace, Queued};
use crate::lease::Lease;

/// The record of a visit that settled a URL, kept for the next one.
///
/// Times are seconds since the Unix epoch; they are compared here, and never with a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// When it was.
    pub at: u32,
    /// From when on the URL is to be visited again.
    pub due: u32,
    /// The caller's own, such as validators and digest.
    pub bytes: Vec<u8>,
}

impl Visit {
    /// As [`crate::Transaction::visit_misdated`] has it.
    #[must_use]
    pub fn is_misdated(&self, now: u32, longest: u32) -> bool {
        let is_dated_ahead = self.at > now;
        let is_old = self.at.saturating_add(longest) <= now;
        self.due > now.saturating_add(longest) && (is_dated_ahead || is_old)
    }
}

/// A visit, and the way by which its URL is pending when it is due again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVisit {
    /// The URL.
    pub url: CanonicalUrl,
    /// The page that names it.
    pub via: Option<CanonicalUrl>,
    /// Without a number of its own.
    pub place: QueuePlace,
    /// The bytes that were kept of the visit.
    pub visit: Visit,
    /// The URL is settled, and `visit.due` counts. Where not, it is pending or leased, or
    /// settled for ever.
    pub is_settled: bool,
}

impl StoredVisit {
    /// The visit that ended a lease.
    #[must_use]
    pub fn new(lease: &Lease, visit: Visit) -> StoredVisit {
        StoredVisit {
            url: lease.url.clone(),
            via: lease.via.clone(),
            place: QueuePlace {
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

    /// The entry by which its URL is pending again.
    #[must_use]
    pub fn queued(&self, seq: u64) -> Queued {
        Queued {
            place: QueuePlace { seq, ..self.place },
            attempt: 1,
            url: self.url.clone(),
            via: self.via.clone(),
        }
    }
}

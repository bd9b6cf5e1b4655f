//! The record that a frontier stores for a URL, for frontiers that keep one record per URL.

use crawl_weburl::CanonicalUrl;

use crate::admit_rule::{CurrentState, PendingUrlFields, QueueRank, capped, capped_exclusion};
use crate::lease::LeaseOutcome;
use crate::not_fetched_reason::NotFetchedReason;
use crate::url_state::{KnownState, KnownUrlDetails, UnsettledUrl, UrlCounts};
use crate::url_to_admit::{RequestedState, UrlToAdmit, depth_and_hops, distance};

/// Everything that a frontier stores about one URL, except its visits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlRecord {
    /// The URL's state. Leases are not stored, so a leased URL is pending.
    pub state: UrlRecordState,
    /// The URL's queue place. If the URL is not pending, its priority, seed and kind are unused.
    pub place: PendingUrlFields,
    /// The page that the URL was found on.
    pub via: Option<CanonicalUrl>,
}

/// The stored state of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlRecordState {
    /// Waiting to be fetched, or leased.
    Pending {
        /// The number of the next attempt, from 1.
        attempt: u32,
    },
    /// Deferred, with the reason.
    Deferred(NotFetchedReason),
    /// Settled with a response.
    Fetched {
        /// The HTTP status.
        status: u16,
    },
    /// Settled without a response.
    Failed {
        /// The reason.
        why: String,
    },
    /// Settled without being fetched.
    Excluded(NotFetchedReason),
}

impl UrlRecord {
    /// Returns the record that `admission` requests, with the sequence number `seq`.
    #[must_use]
    pub fn admitted(admission: UrlToAdmit, seq: u64) -> UrlRecord {
        let place = PendingUrlFields::of(&admission, seq);
        let state = match admission.state {
            RequestedState::Pending => UrlRecordState::Pending { attempt: 1 },
            RequestedState::Deferred(why) => UrlRecordState::Deferred(capped_exclusion(why)),
            RequestedState::Excluded(why) => UrlRecordState::Excluded(capped_exclusion(why)),
        };
        let via = admission.via;
        UrlRecord { state, place, via }
    }

    /// Returns the record of a settled URL, or `None` if `known` is pending, leased or deferred.
    #[must_use]
    pub fn settled(known: KnownUrlDetails) -> Option<UrlRecord> {
        let state = match known.state {
            KnownState::Fetched { status } => UrlRecordState::Fetched { status },
            KnownState::Failed { why } => UrlRecordState::Failed { why },
            KnownState::Excluded(exclusion) => UrlRecordState::Excluded(exclusion),
            KnownState::Pending { .. } | KnownState::Leased { .. } | KnownState::Deferred(_) => {
                return None;
            }
        };
        Some(UrlRecord {
            state,
            place: PendingUrlFields::at(distance(known.depth, known.hops_off)),
            via: None,
        })
    }

    /// Returns the record after a lease ended with `outcome`. If the URL is to be retried, it gets
    /// the sequence number `seq`.
    #[must_use]
    pub fn ended(mut self, outcome: LeaseOutcome, seq: u64) -> UrlRecord {
        self.state = match outcome {
            LeaseOutcome::Fetched { status } => UrlRecordState::Fetched { status },
            LeaseOutcome::Failed { why } => UrlRecordState::Failed { why: capped(why) },
            LeaseOutcome::Excluded(why) => UrlRecordState::Excluded(capped_exclusion(why)),
            LeaseOutcome::Deferred(why) => UrlRecordState::Deferred(capped_exclusion(why)),
            LeaseOutcome::Retry => {
                let attempt = self.attempt().saturating_add(1);
                self.place.retried = true;
                self.place.seq = seq;
                UrlRecordState::Pending { attempt }
            }
        };
        self
    }

    /// Returns the URL's rank in its queue, if it is pending.
    #[must_use]
    pub fn rank(&self) -> Option<QueueRank> {
        match self.state {
            UrlRecordState::Pending { .. } => Some(self.place.rank()),
            _ => None,
        }
    }

    /// Returns the number of the next attempt, or 0 if the URL is not pending.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        match self.state {
            UrlRecordState::Pending { attempt } => attempt,
            _ => 0,
        }
    }

    /// Returns the URL's state in the form that the admission rule takes. If `leased` is true, a
    /// pending URL counts as leased.
    #[must_use]
    pub fn now(&self, leased: bool) -> CurrentState {
        match self.state {
            UrlRecordState::Pending { .. } if leased => CurrentState::Leased,
            UrlRecordState::Pending { .. } => CurrentState::Pending(self.place),
            UrlRecordState::Deferred(_) => CurrentState::Deferred {
                depth: self.place.depth,
                redirects: self.place.redirects,
            },
            _ => CurrentState::Settled,
        }
    }

    /// Returns the URL's state in the form that [`Frontier::known`](crate::Frontier::known)
    /// returns. If `leased` is true, a pending URL counts as leased.
    #[must_use]
    pub fn known(&self, leased: bool) -> KnownUrlDetails {
        let (state, waits) = match &self.state {
            &UrlRecordState::Pending { attempt } if leased => {
                (KnownState::Leased { attempt }, true)
            }
            &UrlRecordState::Pending { attempt } => (KnownState::Pending { attempt }, true),
            UrlRecordState::Deferred(why) => (KnownState::Deferred(why.clone()), true),
            &UrlRecordState::Fetched { status } => (KnownState::Fetched { status }, false),
            UrlRecordState::Failed { why } => (KnownState::Failed { why: why.clone() }, false),
            UrlRecordState::Excluded(why) => (KnownState::Excluded(why.clone()), false),
        };
        let (depth, hops_off) = depth_and_hops(self.place.depth);
        KnownUrlDetails {
            state,
            depth,
            hops_off,
            via: self.via.clone().filter(|_| waits),
        }
    }

    /// Returns a pending or deferred URL in the form that
    /// [`Frontier::each_pending`](crate::Frontier::each_pending) and
    /// [`Frontier::each_deferred`](crate::Frontier::each_deferred) pass.
    #[must_use]
    pub fn waiting<'a>(&'a self, url: &'a CanonicalUrl) -> UnsettledUrl<'a> {
        let (depth, hops_off) = depth_and_hops(self.place.depth);
        UnsettledUrl {
            url,
            depth,
            hops_off,
            via: self.via.as_ref(),
            exclusion: match &self.state {
                UrlRecordState::Deferred(exclusion) => Some(exclusion),
                _ => None,
            },
        }
    }

    /// Returns the field of `counts` that counts URLs in the state of this record.
    pub(crate) fn counter<'a>(&self, counts: &'a mut UrlCounts) -> &'a mut u64 {
        match self.state {
            UrlRecordState::Pending { .. } => &mut counts.pending,
            UrlRecordState::Deferred(_) => &mut counts.deferred,
            UrlRecordState::Fetched { .. } => &mut counts.fetched,
            UrlRecordState::Failed { .. } => &mut counts.failed,
            UrlRecordState::Excluded(_) => &mut counts.excluded,
        }
    }
}

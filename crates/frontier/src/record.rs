//! The record of a URL, as frontiers that keep one for each store it.

use crawl_weburl::CanonicalUrl;

use crate::admission::{Admission, NewState, depth_and_hops, distance};
use crate::admit_rule::{CurrentState, QueuePlace, Rank, capped, capped_exclusion};
use crate::exclusion::Exclusion;
use crate::lease::Outcome;
use crate::url_state::{KnownState, KnownUrl, UrlCounts, WaitingUrl};

/// The record that is stored of one URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlRecord {
    /// The state that it is in; one that is leased is pending.
    pub state: RecordState,
    /// Its place. Priority, seed and kind mean something while it is pending only.
    pub place: QueuePlace,
    /// The page that names it.
    pub via: Option<CanonicalUrl>,
}

/// The state of a URL as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordState {
    /// It waits for its turn, or is being worked on.
    Pending {
        /// The number of the next try, from 1.
        attempt: u32,
    },
    /// It was put aside.
    Deferred(Exclusion),
    /// Settled with an answer.
    Fetched {
        /// The HTTP status.
        status: u16,
    },
    /// Settled without an answer.
    Failed {
        /// The reason.
        why: String,
    },
    /// Settled and not asked for.
    Excluded(Exclusion),
}

impl UrlRecord {
    /// The record that an admission asks for.
    #[must_use]
    pub fn admitted(admission: Admission, seq: u64) -> UrlRecord {
        let place = QueuePlace::of(&admission, seq);
        let state = match admission.state {
            NewState::Pending => RecordState::Pending { attempt: 1 },
            NewState::Deferred(why) => RecordState::Deferred(capped_exclusion(why)),
            NewState::Excluded(why) => RecordState::Excluded(capped_exclusion(why)),
        };
        let via = admission.via;
        UrlRecord { state, place, via }
    }

    /// The record of a URL that is known to be settled; none of one that waits.
    #[must_use]
    pub fn settled(known: KnownUrl) -> Option<UrlRecord> {
        let state = match known.state {
            KnownState::Fetched { status } => RecordState::Fetched { status },
            KnownState::Failed { why } => RecordState::Failed { why },
            KnownState::Excluded(exclusion) => RecordState::Excluded(exclusion),
            KnownState::Pending { .. } | KnownState::Leased { .. } | KnownState::Deferred(_) => {
                return None;
            }
        };
        Some(UrlRecord {
            state,
            place: QueuePlace::at(distance(known.depth, known.hops_off)),
            via: None,
        })
    }

    /// The record after a lease ended so; a URL that is tried again takes the place `seq`.
    #[must_use]
    pub fn ended(mut self, outcome: Outcome, seq: u64) -> UrlRecord {
        self.state = match outcome {
            Outcome::Fetched { status } => RecordState::Fetched { status },
            Outcome::Failed { why } => RecordState::Failed { why: capped(why) },
            Outcome::Excluded(why) => RecordState::Excluded(capped_exclusion(why)),
            Outcome::Deferred(why) => RecordState::Deferred(capped_exclusion(why)),
            Outcome::Retry => {
                let attempt = self.attempt().saturating_add(1);
                self.place.retried = true;
                self.place.seq = seq;
                RecordState::Pending { attempt }
            }
        };
        self
    }

    /// Its rank in its queue, if it is pending.
    #[must_use]
    pub fn rank(&self) -> Option<Rank> {
        match self.state {
            RecordState::Pending { .. } => Some(self.place.rank()),
            _ => None,
        }
    }

    /// The number of the next try; 0 if it is not pending.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        match self.state {
            RecordState::Pending { attempt } => attempt,
            _ => 0,
        }
    }

    /// The state before an admission.
    #[must_use]
    pub fn now(&self, leased: bool) -> CurrentState {
        match self.state {
            RecordState::Pending { .. } if leased => CurrentState::Leased,
            RecordState::Pending { .. } => CurrentState::Pending(self.place),
            RecordState::Deferred(_) => CurrentState::Deferred {
                depth: self.place.depth,
                redirects: self.place.redirects,
            },
            _ => CurrentState::Settled,
        }
    }

    /// The state as a reader sees it.
    #[must_use]
    pub fn known(&self, leased: bool) -> KnownUrl {
        let (state, waits) = match &self.state {
            &RecordState::Pending { attempt } if leased => (KnownState::Leased { attempt }, true),
            &RecordState::Pending { attempt } => (KnownState::Pending { attempt }, true),
            RecordState::Deferred(why) => (KnownState::Deferred(why.clone()), true),
            &RecordState::Fetched { status } => (KnownState::Fetched { status }, false),
            RecordState::Failed { why } => (KnownState::Failed { why: why.clone() }, false),
            RecordState::Excluded(why) => (KnownState::Excluded(why.clone()), false),
        };
        let (depth, hops_off) = depth_and_hops(self.place.depth);
        KnownUrl {
            state,
            depth,
            hops_off,
            via: self.via.clone().filter(|_| waits),
        }
    }

    /// A URL that waits, as a reader sees it.
    #[must_use]
    pub fn waiting<'a>(&'a self, url: &'a CanonicalUrl) -> WaitingUrl<'a> {
        let (depth, hops_off) = depth_and_hops(self.place.depth);
        WaitingUrl {
            url,
            depth,
            hops_off,
            via: self.via.as_ref(),
            exclusion: match &self.state {
                RecordState::Deferred(exclusion) => Some(exclusion),
                _ => None,
            },
        }
    }

    /// The counter that this record is counted under.
    pub(crate) fn counter<'a>(&self, counts: &'a mut UrlCounts) -> &'a mut u64 {
        match self.state {
            RecordState::Pending { .. } => &mut counts.pending,
            RecordState::Deferred(_) => &mut counts.deferred,
            RecordState::Fetched { .. } => &mut counts.fetched,
            RecordState::Failed { .. } => &mut counts.failed,
            RecordState::Excluded(_) => &mut counts.excluded,
        }
    }
}

//! The admission rule: how an admission changes a URL that may already be known.

use crawl_weburl::CanonicalUrl;

use crate::not_fetched_reason::NotFetchedReason;
use crate::url_state::UnsettledUrl;
use crate::url_to_admit::{RequestedState, UrlKind, UrlToAdmit, depth_and_hops};

/// Maximum length of a stored text (a reason or a rule), in bytes.
const MAX_TEXT_BYTES: usize = 1024;

/// The values that a queue stores for a pending URL. The values decide the URL's position in the
/// queue, and record the path that led to the URL (depth and redirects).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingUrlFields {
    /// Whether the URL was tried before.
    pub retried: bool,
    /// The priority. URLs with the lowest number are leased first.
    pub priority: u8,
    /// A [`distance`](crate::parts::distance). The low bits hold the depth, and the highest byte
    /// holds the number of links followed outside the crawl's scope.
    pub depth: u32,
    /// The number of consecutive redirects on the path to the URL.
    pub redirects: u8,
    /// Whether the user named the URL.
    pub is_seed: bool,
    /// The kind of document that the response is read as.
    pub kind: UrlKind,
    /// A unique number. A URL that is queued later gets a higher number.
    pub seq: u64,
}

/// The position of a pending URL among the URLs of its origin. The lowest rank is leased first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueRank {
    /// 0 for a first attempt, 1 for a retry. So retries are leased after all first attempts.
    pub round: u8,
    /// The priority of the URL's [`PendingUrlFields`]; 0 for a retry.
    pub priority: u8,
    /// The distance of the URL's [`PendingUrlFields`]; 0 for a retry.
    pub depth: u32,
    /// The `seq` of the URL's [`PendingUrlFields`].
    pub seq: u64,
}

/// A queue entry: a pending URL with everything stored about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedUrl {
    /// The URL's place in its queue.
    pub place: PendingUrlFields,
    /// The number of the next attempt, from 1.
    pub attempt: u32,
    /// The URL.
    pub url: CanonicalUrl,
    /// The page that the URL was found on.
    pub via: Option<CanonicalUrl>,
}

/// A deferred URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeferredUrl {
    pub(crate) url: CanonicalUrl,
    pub(crate) via: Option<CanonicalUrl>,
    /// A distance, as in [`PendingUrlFields::depth`].
    pub(crate) depth: u32,
    pub(crate) redirects: u8,
    pub(crate) exclusion: NotFetchedReason,
}

/// The state of a URL before an admission.
#[derive(Clone, Copy, Debug)]
pub enum CurrentState {
    /// Never admitted.
    Unknown,
    /// Pending, with this place in its queue.
    Pending(PendingUrlFields),
    /// Leased.
    Leased,
    /// Deferred.
    Deferred {
        /// A distance, as in [`PendingUrlFields::depth`].
        depth: u32,
        /// The number of consecutive redirects on the path to the URL.
        redirects: u8,
    },
    /// Settled.
    Settled,
}

/// The change that an admission makes to its URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmitAction {
    /// The URL is new and gets the state of the admission.
    Enter,
    /// The URL was deferred and becomes pending with the values of the admission.
    Revive,
    /// The URL stays pending, but its stored values change: it moves forward in its queue, takes a
    /// nearer path, or becomes a seed or another kind.
    Improve {
        /// The new place.
        place: PendingUrlFields,
        /// Whether the admission's path to the URL is nearer than the stored one: it has a lower
        /// distance, or the same distance and fewer redirects. If so, the admission's `via`
        /// replaces the stored one.
        nearer: bool,
    },
    /// The URL stays deferred. The path and the exclusion of the admission replace the stored ones,
    /// because the path is nearer.
    DeferNearer,
    /// Nothing changes.
    Stay,
}

impl PendingUrlFields {
    /// Returns the queue place that `admission` requests, with the sequence number `seq`.
    #[must_use]
    pub fn of(admission: &UrlToAdmit, seq: u64) -> PendingUrlFields {
        PendingUrlFields {
            retried: false,
            priority: admission.priority,
            depth: admission.distance(),
            redirects: admission.redirects,
            is_seed: admission.is_seed,
            kind: admission.kind,
            seq,
        }
    }

    /// Returns placeholder values for a URL that is not pending. Only their distance is used.
    pub(crate) fn at(distance: u32) -> PendingUrlFields {
        PendingUrlFields {
            retried: false,
            priority: 0,
            depth: distance,
            redirects: 0,
            is_seed: false,
            kind: UrlKind::Page,
            seq: 0,
        }
    }

    /// Returns the rank of this queue place. A retry goes behind all first attempts, and retries
    /// are ordered by `seq` alone.
    #[must_use]
    pub fn rank(&self) -> QueueRank {
        QueueRank {
            round: u8::from(self.retried),
            priority: if self.retried { 0 } else { self.priority },
            depth: if self.retried { 0 } else { self.depth },
            seq: self.seq,
        }
    }
}

impl QueuedUrl {
    /// Creates the queue entry of a URL that is admitted as pending, with the sequence number
    /// `seq`.
    #[must_use]
    pub fn new(admission: UrlToAdmit, seq: u64) -> QueuedUrl {
        QueuedUrl {
            place: PendingUrlFields::of(&admission, seq),
            attempt: 1,
            url: admission.url,
            via: admission.via,
        }
    }

    /// Returns the entry for the next attempt. The new `seq` must be higher than any other, so that
    /// the retry goes last.
    #[must_use]
    pub fn retry(mut self, seq: u64) -> QueuedUrl {
        self.attempt = self.attempt.saturating_add(1);
        self.place.retried = true;
        self.place.seq = seq;
        self
    }

    /// Returns the URL in the form that [`Frontier::each_pending`](crate::Frontier::each_pending)
    /// passes.
    #[must_use]
    pub fn waiting(&self) -> UnsettledUrl<'_> {
        let (depth, hops_off) = depth_and_hops(self.place.depth);
        UnsettledUrl {
            url: &self.url,
            depth,
            hops_off,
            via: self.via.as_ref(),
            exclusion: None,
        }
    }

    /// Converts the entry into a deferred URL.
    pub(crate) fn deferred(self, exclusion: NotFetchedReason) -> DeferredUrl {
        DeferredUrl {
            url: self.url,
            via: self.via,
            depth: self.place.depth,
            redirects: self.place.redirects,
            exclusion: capped_exclusion(exclusion),
        }
    }
}

impl DeferredUrl {
    pub(crate) fn new(admission: UrlToAdmit, exclusion: NotFetchedReason) -> DeferredUrl {
        DeferredUrl {
            depth: admission.distance(),
            url: admission.url,
            via: admission.via,
            redirects: admission.redirects,
            exclusion: capped_exclusion(exclusion),
        }
    }
}

/// Decides what `admission` changes for a URL in state `now`. The place of [`AdmitAction::Improve`]
/// has the old `seq`. If the new rank differs from the old one, the caller must assign a new `seq`.
#[must_use]
pub fn decide_admission(now: CurrentState, admission: &UrlToAdmit) -> AdmitAction {
    let pending = matches!(admission.state, RequestedState::Pending);
    let nearer =
        |depth, redirects| (admission.distance(), admission.redirects) < (depth, redirects);
    match now {
        CurrentState::Unknown => AdmitAction::Enter,
        CurrentState::Leased | CurrentState::Settled => AdmitAction::Stay,
        CurrentState::Pending(old) if pending => {
            improve(old, admission, nearer(old.depth, old.redirects))
        }
        CurrentState::Pending(_) => AdmitAction::Stay,
        CurrentState::Deferred { .. } if pending => AdmitAction::Revive,
        CurrentState::Deferred { depth, redirects } => match admission.state {
            RequestedState::Deferred(_) if nearer(depth, redirects) => AdmitAction::DeferNearer,
            _ => AdmitAction::Stay,
        },
    }
}

fn improve(old: PendingUrlFields, admission: &UrlToAdmit, nearer: bool) -> AdmitAction {
    let mut place = old;
    place.priority = old.priority.min(admission.priority);
    place.is_seed |= admission.is_seed;
    place.kind = old.kind.max(admission.kind);
    if nearer {
        place.depth = admission.distance();
        place.redirects = admission.redirects;
    }
    if place == old {
        AdmitAction::Stay
    } else {
        AdmitAction::Improve { place, nearer }
    }
}

/// Truncates a text to the maximum stored length, between characters.
#[must_use]
pub fn capped(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    text
}

/// Truncates an exclusion's rule to the maximum stored length.
#[must_use]
pub fn capped_exclusion(exclusion: NotFetchedReason) -> NotFetchedReason {
    NotFetchedReason {
        rule: exclusion.rule.map(capped),
        ..exclusion
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;

    use super::{
        AdmitAction, CurrentState, MAX_TEXT_BYTES, PendingUrlFields, capped, decide_admission,
    };
    use crate::not_fetched_reason::{NotFetchedReason, Reason};
    use crate::url_to_admit::{RequestedState, UrlKind, UrlToAdmit, depth_and_hops, distance};

    /// A page at depth 3 behind two redirects, of priority 9.
    const OLD: PendingUrlFields = PendingUrlFields {
        retried: false,
        priority: 9,
        depth: 3,
        redirects: 2,
        is_seed: false,
        kind: UrlKind::Page,
        seq: 7,
    };

    fn admission(depth: u32, redirects: u8, state: RequestedState) -> UrlToAdmit {
        let url = canonicalize(None, "http://a.example/").unwrap();
        UrlToAdmit {
            redirects,
            priority: 9,
            state,
            ..UrlToAdmit::link(url.clone(), depth, url)
        }
    }

    #[test]
    fn only_a_nearer_path_changes_a_known_url() {
        let put_aside = || RequestedState::Deferred(NotFetchedReason::of(Reason::Depth));
        let excluded = || RequestedState::Excluded(NotFetchedReason::of(Reason::Scope));
        let old = CurrentState::Deferred {
            depth: 3,
            redirects: 2,
        };
        for (depth, redirects, is_nearer) in [
            (2, 9, true),
            (3, 1, true),
            (3, 2, false),
            (3, 3, false),
            (4, 0, false),
        ] {
            let to = |state: RequestedState| admission(depth, redirects, state);
            let place = PendingUrlFields {
                depth,
                redirects,
                ..OLD
            };
            let improved = match is_nearer {
                true => AdmitAction::Improve {
                    place,
                    nearer: true,
                },
                false => AdmitAction::Stay,
            };
            let pending = CurrentState::Pending(OLD);
            assert_eq!(
                decide_admission(pending, &to(RequestedState::Pending)),
                improved
            );
            assert_eq!(
                decide_admission(pending, &to(put_aside())),
                AdmitAction::Stay
            );
            let deferred = match is_nearer {
                true => AdmitAction::DeferNearer,
                false => AdmitAction::Stay,
            };
            assert_eq!(decide_admission(old, &to(put_aside())), deferred);
            assert_eq!(decide_admission(old, &to(excluded())), AdmitAction::Stay);
            assert_eq!(
                decide_admission(old, &to(RequestedState::Pending)),
                AdmitAction::Revive
            );
            for settled in [CurrentState::Leased, CurrentState::Settled] {
                assert_eq!(
                    decide_admission(settled, &to(RequestedState::Pending)),
                    AdmitAction::Stay
                );
            }
            assert_eq!(
                decide_admission(CurrentState::Unknown, &to(excluded())),
                AdmitAction::Enter
            );
        }
    }

    #[test]
    fn fewer_hops_off_scope_are_nearer_than_fewer_links() {
        let by = |hops_off, depth| UrlToAdmit {
            hops_off,
            ..admission(depth, 0, RequestedState::Pending)
        };
        let at = |hops_off, depth| {
            CurrentState::Pending(PendingUrlFields::of(&by(hops_off, depth), OLD.seq))
        };
        let improves = |old, new: &UrlToAdmit| {
            matches!(decide_admission(old, new), AdmitAction::Improve { .. })
        };
        assert!(improves(at(2, 1), &by(1, 9)));
        assert!(improves(at(1, 9), &by(1, 8)));
        assert!(!improves(at(1, 9), &by(2, 1)));
        assert!(!improves(at(0, 90), &by(1, 1)));
        assert_eq!(depth_and_hops(distance(7, 3)), (7, 3));
        assert_eq!(
            depth_and_hops(distance(u32::MAX, 255)),
            ((1 << 24) - 1, 255)
        );
        assert_eq!(distance(7, 0), 7);
    }

    #[test]
    fn a_longer_path_may_still_improve_priority_seed_and_kind() {
        let improved = |change: fn(&mut UrlToAdmit)| {
            let mut admission = admission(4, 0, RequestedState::Pending);
            change(&mut admission);
            match decide_admission(CurrentState::Pending(OLD), &admission) {
                AdmitAction::Improve { place, nearer } => Some((place, nearer)),
                _ => None,
            }
        };
        let to = |change: fn(&mut PendingUrlFields)| {
            let mut place = OLD;
            change(&mut place);
            Some((place, false))
        };
        assert_eq!(
            improved(|admission| admission.priority = 8),
            to(|place| place.priority = 8)
        );
        assert_eq!(improved(|admission| admission.priority = 10), None);
        assert_eq!(
            improved(|admission| admission.is_seed = true),
            to(|place| place.is_seed = true)
        );
        assert_eq!(
            improved(|admission| admission.kind = UrlKind::Sitemap),
            to(|place| place.kind = UrlKind::Sitemap)
        );
        assert_eq!(
            improved(|admission| admission.kind = UrlKind::Resource),
            None
        );
    }

    #[test]
    fn retries_are_queued_last_in_order() {
        let near = PendingUrlFields {
            retried: true,
            priority: 0,
            depth: 0,
            seq: 9,
            ..OLD
        };
        let far = PendingUrlFields {
            priority: 200,
            depth: 90,
            seq: 8,
            ..near
        };
        assert!(OLD.rank() < far.rank() && far.rank() < near.rank());
        let deeper = PendingUrlFields {
            depth: 4,
            seq: 1,
            ..OLD
        };
        let later = PendingUrlFields {
            priority: 10,
            depth: 0,
            seq: 1,
            ..OLD
        };
        assert!(OLD.rank() < deeper.rank() && deeper.rank() < later.rank());
    }

    #[test]
    fn long_texts_are_truncated_between_characters() {
        assert_eq!(capped("short".into()), "short");
        let cut = capped(format!("a{}", "ü".repeat(MAX_TEXT_BYTES)));
        assert_eq!(cut.len(), MAX_TEXT_BYTES - 1);
        assert!(cut.ends_with('ü'));
    }
}

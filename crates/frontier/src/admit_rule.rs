//! The rule that decides what an admission does to a URL that may be known.

use crawl_weburl::CanonicalUrl;

use crate::admission::{Admission, NewState, UrlKind, depth_and_hops};
use crate::exclusion::Exclusion;
use crate::url_state::WaitingUrl;

/// The longest text (a reason, a rule) that is kept, in bytes.
const MAX_TEXT_BYTES: usize = 1024;

/// The values that decide the position of a pending URL, and the way that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePlace {
    /// It was tried before.
    pub retried: bool,
    /// The lower goes first.
    pub priority: u8,
    /// A distance: the depth, and the hops off the scope above it.
    pub depth: u32,
    /// Redirects in a row on the way to it.
    pub redirects: u8,
    /// The user named it.
    pub is_seed: bool,
    /// The kind of document that its answer will be read as.
    pub kind: UrlKind,
    /// Grows with each URL that takes a place; unique.
    pub seq: u64,
}

/// The place of a pending URL among those of its origin; the least goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// 1 for what was tried before, else 0.
    pub round: u8,
    /// That of the place; 0 for what was tried before.
    pub priority: u8,
    /// That of the place; 0 for what was tried before.
    pub depth: u32,
    /// That of the place.
    pub seq: u64,
}

/// A pending URL in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Its place.
    pub place: QueuePlace,
    /// The number of the next try, from 1.
    pub attempt: u32,
    /// The URL.
    pub url: CanonicalUrl,
    /// The page that names it.
    pub via: Option<CanonicalUrl>,
}

/// A URL that was put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deferred {
    pub(crate) url: CanonicalUrl,
    pub(crate) via: Option<CanonicalUrl>,
    /// A distance, as that of a place.
    pub(crate) depth: u32,
    pub(crate) redirects: u8,
    pub(crate) exclusion: Exclusion,
}

/// The state of a URL before an admission.
#[derive(Clone, Copy, Debug)]
pub enum CurrentState {
    /// It was never admitted.
    Unknown,
    /// It waits at this place.
    Pending(QueuePlace),
    /// It is being worked on.
    Leased,
    /// It was put aside.
    Deferred {
        /// A distance, as that of a place.
        depth: u32,
        /// Redirects in a row on the way to it.
        redirects: u8,
    },
    /// It was settled.
    Settled,
}

/// The change that an admission makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmitAction {
    /// It is new and stands as the admission says.
    Enter,
    /// It was deferred and is pending by the admission's way.
    Revive,
    /// It stays pending, with this place; `nearer` where the admission's way counts.
    Improve {
        /// The place that it has then.
        place: QueuePlace,
        /// The admission's way is the one to name.
        nearer: bool,
    },
    /// It stays deferred, by the admission's way and for its reason.
    DeferNearer,
    /// Nothing changes.
    Stay,
}

impl QueuePlace {
    /// The place that an admission asks for.
    #[must_use]
    pub fn of(admission: &Admission, seq: u64) -> QueuePlace {
        QueuePlace {
            retried: false,
            priority: admission.priority,
            depth: admission.distance(),
            redirects: admission.redirects,
            is_seed: admission.is_seed,
            kind: admission.kind,
            seq,
        }
    }

    /// That of a URL that does not wait, at a distance.
    pub(crate) fn at(distance: u32) -> QueuePlace {
        QueuePlace {
            retried: false,
            priority: 0,
            depth: distance,
            redirects: 0,
            is_seed: false,
            kind: UrlKind::Page,
            seq: 0,
        }
    }

    /// Retries are ordered by `seq` alone, which puts each behind all that wait.
    #[must_use]
    pub fn rank(&self) -> Rank {
        Rank {
            round: u8::from(self.retried),
            priority: if self.retried { 0 } else { self.priority },
            depth: if self.retried { 0 } else { self.depth },
            seq: self.seq,
        }
    }
}

impl Queued {
    /// The entry of a URL that is admitted as pending.
    #[must_use]
    pub fn new(admission: Admission, seq: u64) -> Queued {
        Queued {
            place: QueuePlace::of(&admission, seq),
            attempt: 1,
            url: admission.url,
            via: admission.via,
        }
    }

    /// The entry of the next try, behind all.
    #[must_use]
    pub fn retry(mut self, seq: u64) -> Queued {
        self.attempt = self.attempt.saturating_add(1);
        self.place.retried = true;
        self.place.seq = seq;
        self
    }

    /// The URL as a reader sees it.
    #[must_use]
    pub fn waiting(&self) -> WaitingUrl<'_> {
        let (depth, hops_off) = depth_and_hops(self.place.depth);
        WaitingUrl {
            url: &self.url,
            depth,
            hops_off,
            via: self.via.as_ref(),
            exclusion: None,
        }
    }

    /// The part of it that stays when it is put aside.
    pub(crate) fn deferred(self, exclusion: Exclusion) -> Deferred {
        Deferred {
            url: self.url,
            via: self.via,
            depth: self.place.depth,
            redirects: self.place.redirects,
            exclusion: capped_exclusion(exclusion),
        }
    }
}

impl Deferred {
    pub(crate) fn new(admission: Admission, exclusion: Exclusion) -> Deferred {
        Deferred {
            depth: admission.distance(),
            url: admission.url,
            via: admission.via,
            redirects: admission.redirects,
            exclusion: capped_exclusion(exclusion),
        }
    }
}

/// Decides the change that an admission makes to a known URL. An improved place has the old
/// `seq`; where its rank is another it wants a new one.
#[must_use]
pub fn meet(now: CurrentState, admission: &Admission) -> AdmitAction {
    let pending = matches!(admission.state, NewState::Pending);
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
            NewState::Deferred(_) if nearer(depth, redirects) => AdmitAction::DeferNearer,
            _ => AdmitAction::Stay,
        },
    }
}

fn improve(old: QueuePlace, admission: &Admission, nearer: bool) -> AdmitAction {
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

/// Cuts a text to what is kept, between characters.
#[must_use]
pub fn capped(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    text
}

/// Cuts an exclusion's rule to what is kept.
#[must_use]
pub fn capped_exclusion(exclusion: Exclusion) -> Exclusion {
    Exclusion {
        rule: exclusion.rule.map(capped),
        ..exclusion
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;

    use super::{AdmitAction, CurrentState, MAX_TEXT_BYTES, QueuePlace, capped, meet};
    use crate::admission::{Admission, NewState, UrlKind, depth_and_hops, distance};
    use crate::exclusion::{Exclusion, Reason};

    /// A page at depth 3 behind two redirects, of priority 9.
    const OLD: QueuePlace = QueuePlace {
        retried: false,
        priority: 9,
        depth: 3,
        redirects: 2,
        is_seed: false,
        kind: UrlKind::Page,
        seq: 7,
    };

    fn admission(depth: u32, redirects: u8, state: NewState) -> Admission {
        let url = canonicalize(None, "http://a.example/").unwrap();
        Admission {
            redirects,
            priority: 9,
            state,
            ..Admission::link(url.clone(), depth, url)
        }
    }

    #[test]
    fn ours_only_a_nearer_way_changes_what_is_known() {
        let put_aside = || NewState::Deferred(Exclusion::of(Reason::Depth));
        let excluded = || NewState::Excluded(Exclusion::of(Reason::Scope));
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
            let to = |state: NewState| admission(depth, redirects, state);
            let place = QueuePlace {
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
            assert_eq!(meet(pending, &to(NewState::Pending)), improved);
            assert_eq!(meet(pending, &to(put_aside())), AdmitAction::Stay);
            let deferred = match is_nearer {
                true => AdmitAction::DeferNearer,
                false => AdmitAction::Stay,
            };
            assert_eq!(meet(old, &to(put_aside())), deferred);
            assert_eq!(meet(old, &to(excluded())), AdmitAction::Stay);
            assert_eq!(meet(old, &to(NewState::Pending)), AdmitAction::Revive);
            for settled in [CurrentState::Leased, CurrentState::Settled] {
                assert_eq!(meet(settled, &to(NewState::Pending)), AdmitAction::Stay);
            }
            assert_eq!(
                meet(CurrentState::Unknown, &to(excluded())),
                AdmitAction::Enter
            );
        }
    }

    #[test]
    fn ours_fewer_hops_off_the_scope_are_nearer_than_fewer_links() {
        let by = |hops_off, depth| Admission {
            hops_off,
            ..admission(depth, 0, NewState::Pending)
        };
        let at =
            |hops_off, depth| CurrentState::Pending(QueuePlace::of(&by(hops_off, depth), OLD.seq));
        let improves = |old, new: &Admission| matches!(meet(old, new), AdmitAction::Improve { .. });
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
    fn ours_a_longer_way_may_still_say_more_of_a_url() {
        let improved = |change: fn(&mut Admission)| {
            let mut admission = admission(4, 0, NewState::Pending);
            change(&mut admission);
            match meet(CurrentState::Pending(OLD), &admission) {
                AdmitAction::Improve { place, nearer } => Some((place, nearer)),
                _ => None,
            }
        };
        let to = |change: fn(&mut QueuePlace)| {
            let mut place = OLD;
            change(&mut place);
            Some((place, false))
        };
        assert_eq!(
            improved(|admission| admission.priority = 8),
            to(|place| place.priority = 8)
        );
        assert_eq!(improved(|it| it.priority = 10), None);
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
    fn ours_what_was_tried_comes_behind_all_else_in_the_order_of_its_tries() {
        let near = QueuePlace {
            retried: true,
            priority: 0,
            depth: 0,
            seq: 9,
            ..OLD
        };
        let far = QueuePlace {
            priority: 200,
            depth: 90,
            seq: 8,
            ..near
        };
        assert!(OLD.rank() < far.rank() && far.rank() < near.rank());
        let deeper = QueuePlace {
            depth: 4,
            seq: 1,
            ..OLD
        };
        let later = QueuePlace {
            priority: 10,
            depth: 0,
            seq: 1,
            ..OLD
        };
        assert!(OLD.rank() < deeper.rank() && deeper.rank() < later.rank());
    }

    #[test]
    fn ours_long_texts_are_cut_between_characters() {
        assert_eq!(capped("short".into()), "short");
        let cut = capped(format!("a{}", "ü".repeat(MAX_TEXT_BYTES)));
        assert_eq!(cut.len(), MAX_TEXT_BYTES - 1);
        assert!(cut.ends_with('ü'));
    }
}

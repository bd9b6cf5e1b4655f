//! The rule that decides what an admission does to a URL that may be known.

use crawl_weburl::CanonicalUrl;

use crate::admission::{Admission, NewState, UrlKind};
use crate::exclusion::Exclusion;

/// The longest text (a reason, a rule) that is kept, in bytes.
const MAX_TEXT_BYTES: usize = 1024;

/// The values that decide the position of a pending URL, and the way that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuePlace {
    /// It was tried before.
    pub(crate) retried: bool,
    pub(crate) priority: u8,
    pub(crate) depth: u32,
    pub(crate) redirects: u8,
    pub(crate) is_seed: bool,
    pub(crate) kind: UrlKind,
    /// Grows with each URL that takes a place; unique.
    pub(crate) seq: u64,
}

/// The place of a pending URL among those of its origin; the least goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) round: u8,
    pub(crate) priority: u8,
    pub(crate) depth: u32,
    pub(crate) seq: u64,
}

/// A pending URL in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    pub(crate) place: QueuePlace,
    pub(crate) attempt: u32,
    pub(crate) url: CanonicalUrl,
    pub(crate) via: Option<CanonicalUrl>,
}

/// A URL that was put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deferred {
    pub(crate) url: CanonicalUrl,
    pub(crate) via: Option<CanonicalUrl>,
    pub(crate) depth: u32,
    pub(crate) redirects: u8,
    pub(crate) exclusion: Exclusion,
}

/// The state of a URL before an admission.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CurrentState {
    Unknown,
    Pending(QueuePlace),
    Leased,
    Deferred { depth: u32, redirects: u8 },
    Settled,
}

/// The change that an admission makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdmitAction {
    /// It is new and stands as the admission says.
    Enter,
    /// It was deferred and is pending by the admission's way.
    Revive,
    /// It stays pending, with this place; `nearer` where the admission's way counts.
    Improve { place: QueuePlace, nearer: bool },
    /// It stays deferred, by the admission's way and for its reason.
    DeferNearer,
    /// Nothing changes.
    Stay,
}

impl QueuePlace {
    /// The place that an admission asks for.
    pub(crate) fn of(admission: &Admission, seq: u64) -> QueuePlace {
        QueuePlace {
            retried: false,
            priority: admission.priority,
            depth: admission.depth,
            redirects: admission.redirects,
            is_seed: admission.is_seed,
            kind: admission.kind,
            seq,
        }
    }

    /// Retries are ordered by `seq` alone, which puts each behind all that wait.
    pub(crate) fn rank(&self) -> Rank {
        Rank {
            round: u8::from(self.retried),
            priority: if self.retried { 0 } else { self.priority },
            depth: if self.retried { 0 } else { self.depth },
            seq: self.seq,
        }
    }
}

impl Queued {
    pub(crate) fn new(admission: Admission, seq: u64) -> Queued {
        Queued {
            place: QueuePlace::of(&admission, seq),
            attempt: 1,
            url: admission.url,
            via: admission.via,
        }
    }

    /// The entry of the next try, behind all.
    pub(crate) fn retry(mut self, seq: u64) -> Queued {
        self.attempt = self.attempt.saturating_add(1);
        self.place.retried = true;
        self.place.seq = seq;
        self
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
            url: admission.url,
            via: admission.via,
            depth: admission.depth,
            redirects: admission.redirects,
            exclusion: capped_exclusion(exclusion),
        }
    }
}

/// Decides the change that an admission makes to a known URL. An improved place has the old
/// `seq`; where its rank is another it wants a new one.
pub(crate) fn meet(now: CurrentState, admission: &Admission) -> AdmitAction {
    let pending = matches!(admission.state, NewState::Pending);
    let nearer = |depth, redirects| (admission.depth, admission.redirects) < (depth, redirects);
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
        place.depth = admission.depth;
        place.redirects = admission.redirects;
    }
    if place == old {
        AdmitAction::Stay
    } else {
        AdmitAction::Improve { place, nearer }
    }
}

/// Cuts a text to what is kept, between characters.
pub(crate) fn capped(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    text
}

/// Cuts an exclusion's rule to what is kept.
pub(crate) fn capped_exclusion(exclusion: Exclusion) -> Exclusion {
    Exclusion {
        rule: exclusion.rule.map(capped),
        ..exclusion
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_TEXT_BYTES, capped};

    #[test]
    fn ours_long_texts_are_cut_between_characters() {
        assert_eq!(capped("short".into()), "short");
        let cut = capped(format!("a{}", "ü".repeat(MAX_TEXT_BYTES)));
        assert_eq!(cut.len(), MAX_TEXT_BYTES - 1);
        assert!(cut.ends_with('ü'));
    }
}

//! The changes that a transaction has made so far, one per URL.

use crawl_weburl::Origin;
use foldhash::{HashMap, HashMapExt as _};

use super::record_codec::{FailureOrExclusionNote, SieveUrlState};
use crate::admit_rule::{DeferredUrl, QueuedUrl};
use crate::fingerprint::Fingerprint;

/// The changes of a transaction, in the order in which their URLs were first changed.
pub(super) struct TransactionUrlChanges {
    list: Vec<UrlStateChange>,
    places: HashMap<Fingerprint, usize>,
}

/// The change of one URL: its committed state and its new state.
pub(super) struct UrlStateChange {
    pub(super) key: Fingerprint,
    pub(super) origin: Origin,
    /// The committed state; `None` if the URL was unknown.
    pub(super) before: Option<SieveUrlState>,
    pub(super) now: FullUrlState,
}

/// The state of a URL, with everything that the store keeps about it.
pub(super) enum FullUrlState {
    Pending(QueuedUrl),
    Deferred(DeferredUrl),
    Fetched {
        depth: u32,
        status: u16,
    },
    /// Failed or excluded. The note has the reason.
    Noted {
        depth: u32,
        note: FailureOrExclusionNote,
    },
}

impl FullUrlState {
    /// Returns the state as stored in the sieve. If the state has a note, the note's ID is 0 here,
    /// because only the commit assigns the ID.
    pub(super) fn state(&self) -> SieveUrlState {
        match *self {
            FullUrlState::Pending(ref queued) => SieveUrlState::Pending(queued.place),
            FullUrlState::Deferred(ref deferred) => SieveUrlState::Deferred {
                depth: deferred.depth,
                redirects: deferred.redirects,
            },
            FullUrlState::Fetched { depth, status } => SieveUrlState::Fetched { depth, status },
            FullUrlState::Noted { depth, ref note } => note.state(depth, 0),
        }
    }
}

impl FailureOrExclusionNote {
    pub(super) fn state(&self, depth: u32, number: u64) -> SieveUrlState {
        match self {
            FailureOrExclusionNote::Why(_) => SieveUrlState::Failed {
                depth,
                note: number,
            },
            FailureOrExclusionNote::Exclusion(_) => SieveUrlState::Excluded {
                depth,
                note: number,
            },
        }
    }
}

impl TransactionUrlChanges {
    pub(super) fn with_capacity(count: usize) -> TransactionUrlChanges {
        TransactionUrlChanges {
            list: Vec::with_capacity(count),
            places: HashMap::with_capacity(count),
        }
    }

    pub(super) fn get(&self, key: Fingerprint) -> Option<&UrlStateChange> {
        self.places.get(&key).map(|index| &self.list[*index])
    }

    /// Adds a change, where `change.before` is the URL's state as this transaction saw it. If the
    /// transaction has changed the URL already, only the new state is replaced, so that `before`
    /// remains the committed state.
    pub(super) fn put(&mut self, change: UrlStateChange) {
        match self.places.get(&change.key) {
            Some(at) => self.list[*at].now = change.now,
            None => {
                self.places.insert(change.key, self.list.len());
                self.list.push(change);
            }
        }
    }

    pub(super) fn take(&mut self) -> Vec<UrlStateChange> {
        self.places.clear();
        std::mem::take(&mut self.list)
    }
}

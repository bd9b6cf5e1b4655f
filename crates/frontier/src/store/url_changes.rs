//! The changes that a transaction has made so far, one per URL.

use crawl_weburl::Origin;
use foldhash::{HashMap, HashMapExt as _};

use super::record_codec::{SieveState, StateNote};
use crate::admit_rule::{DeferredUrl, QueuedUrl};
use crate::fingerprint::Fingerprint;

/// The changes of a transaction, in the order in which their URLs were first changed.
pub(super) struct Changes {
    list: Vec<Change>,
    places: HashMap<Fingerprint, usize>,
}

/// The change of one URL: its committed state and its new state.
pub(super) struct Change {
    pub(super) key: Fingerprint,
    pub(super) origin: Origin,
    /// The committed state; `None` if the URL was unknown.
    pub(super) before: Option<SieveState>,
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
        note: StateNote,
    },
}

impl FullUrlState {
    /// Returns the state as stored in the sieve. If the state has a note, the note's number is 0
    /// here, because only the commit assigns the number.
    pub(super) fn state(&self) -> SieveState {
        match *self {
            FullUrlState::Pending(ref queued) => SieveState::Pending(queued.place),
            FullUrlState::Deferred(ref deferred) => SieveState::Deferred {
                depth: deferred.depth,
                redirects: deferred.redirects,
            },
            FullUrlState::Fetched { depth, status } => SieveState::Fetched { depth, status },
            FullUrlState::Noted { depth, ref note } => note.state(depth, 0),
        }
    }
}

impl StateNote {
    pub(super) fn state(&self, depth: u32, number: u64) -> SieveState {
        match self {
            StateNote::Why(_) => SieveState::Failed {
                depth,
                note: number,
            },
            StateNote::Exclusion(_) => SieveState::Excluded {
                depth,
                note: number,
            },
        }
    }
}

impl Changes {
    pub(super) fn with_capacity(count: usize) -> Changes {
        Changes {
            list: Vec::with_capacity(count),
            places: HashMap::with_capacity(count),
        }
    }

    pub(super) fn get(&self, key: Fingerprint) -> Option<&Change> {
        self.places.get(&key).map(|index| &self.list[*index])
    }

    /// Adds a change, where `change.before` is the URL's state as this transaction saw it. If the
    /// transaction has changed the URL already, only the new state is replaced, so that `before`
    /// remains the committed state.
    pub(super) fn put(&mut self, change: Change) {
        match self.places.get(&change.key) {
            Some(at) => self.list[*at].now = change.now,
            None => {
                self.places.insert(change.key, self.list.len());
                self.list.push(change);
            }
        }
    }

    pub(super) fn take(&mut self) -> Vec<Change> {
        self.places.clear();
        std::mem::take(&mut self.list)
    }
}

//! The changes of a transaction so far, URL by URL.

use crawl_weburl::Origin;
use foldhash::{HashMap, HashMapExt as _};

use super::record_codec::{Note, State};
use crate::admit_rule::{Deferred, Queued};
use crate::fingerprint::Fingerprint;

/// The changes, in the order in which the URLs were first changed.
pub(super) struct Changes {
    list: Vec<Change>,
    places: HashMap<Fingerprint, usize>,
}

/// The new state of one URL.
pub(super) struct Change {
    pub(super) key: Fingerprint,
    pub(super) origin: Origin,
    /// The committed state; `None` if the URL was unknown.
    pub(super) before: Option<State>,
    pub(super) now: StoredState,
}

/// A state of a URL, with everything stored about it.
pub(super) enum StoredState {
    Pending(Queued),
    Deferred(Deferred),
    Fetched {
        depth: u32,
        status: u16,
    },
    /// Failed or excluded. The note has the reason.
    Noted {
        depth: u32,
        note: Note,
    },
}

impl StoredState {
    /// Returns the state to store in the sieve. Its note has the number 0, because the commit
    /// assigns the number.
    pub(super) fn state(&self) -> State {
        match *self {
            StoredState::Pending(ref queued) => State::Pending(queued.place),
            StoredState::Deferred(ref deferred) => State::Deferred {
                depth: deferred.depth,
                redirects: deferred.redirects,
            },
            StoredState::Fetched { depth, status } => State::Fetched { depth, status },
            StoredState::Noted { depth, ref note } => note.state(depth, 0),
        }
    }
}

impl Note {
    pub(super) fn state(&self, depth: u32, number: u64) -> State {
        match self {
            Note::Why(_) => State::Failed {
                depth,
                note: number,
            },
            Note::Exclusion(_) => State::Excluded {
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

    /// Adds a change. `change.before` is the URL's state as this transaction saw it. If the
    /// transaction has changed the URL before, the committed state in the first change is kept.
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

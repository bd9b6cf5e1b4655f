//! The changes of a transaction so far, URL by URL.

use crawl_weburl::Origin;
use foldhash::{HashMap, HashMapExt as _};

use super::record_codec::{Note, State};
use crate::admit_rule::{Deferred, Queued};
use crate::fingerprint::Fingerprint;

/// In the order in which the URLs were first changed.
pub(super) struct Changes {
    list: Vec<Change>,
    places: HashMap<Fingerprint, usize>,
}

/// The new state of one URL.
pub(super) struct Change {
    pub(super) key: Fingerprint,
    pub(super) origin: Origin,
    /// As committed.
    pub(super) before: Option<State>,
    pub(super) now: StoredState,
}

/// A state with all that is kept beside it.
pub(super) enum StoredState {
    Pending(Queued),
    Deferred(Deferred),
    Fetched {
        depth: u32,
        status: u16,
    },
    /// Failed or excluded.
    Noted {
        depth: u32,
        note: Note,
    },
}

impl StoredState {
    /// The number of a note is not known before the commit.
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
    pub(super) fn state(&self, depth: u32, note: u64) -> State {
        match self {
            Note::Why(_) => State::Failed { depth, note },
            Note::Exclusion(_) => State::Excluded { depth, note },
        }
    }
}

impl Changes {
    /// None, with room for so many.
    pub(super) fn with_capacity(count: usize) -> Changes {
        Changes {
            list: Vec::with_capacity(count),
            places: HashMap::with_capacity(count),
        }
    }

    pub(super) fn get(&self, key: Fingerprint) -> Option<&Change> {
        self.places.get(&key).map(|at| &self.list[*at])
    }

    /// `change.before` is what this transaction saw before; of a URL that it changed
    /// already, what is committed stays noted.
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

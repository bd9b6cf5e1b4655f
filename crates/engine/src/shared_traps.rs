//! The state of traps, as the crawl loop and the writer share it.
//!
//! It is one value, [`Traps`](crawl_policy::traps::Traps), behind a lock: the writer tells it of
//! each page as it settles it, in the order of the commits, and the coordinator asks it of each
//! URL that it leases. Both hold the lock for microseconds and nothing else meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crawl_frontier::{Exclusion, Reason};
use crawl_policy::traps::Traps;

use crate::config::TrapRules;

/// The state of traps, for the coordinator and the writer.
#[derive(Clone, Debug)]
pub(crate) struct SharedTraps {
    rules: TrapRules,
    traps: Arc<Mutex<Traps>>,
}

impl SharedTraps {
    pub(crate) fn new(rules: &TrapRules, stored: Option<&[u8]>) -> SharedTraps {
        let mut traps = Traps::new(rules.naming, rules.traps);
        if let Some(stored) = stored.filter(|_| rules.traps) {
            traps.restore(stored);
        }
        SharedTraps {
            rules: *rules,
            traps: Arc::new(Mutex::new(traps)),
        }
    }

    /// The rules of this run.
    pub(crate) fn rules(&self) -> TrapRules {
        self.rules
    }

    /// It is whole between any two calls, so a panic elsewhere leaves nothing half done.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Traps> {
        self.traps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The exclusion of a URL that is put aside.
pub(crate) fn put_aside(reason: Reason, rule: String) -> Exclusion {
    Exclusion {
        rule: Some(rule),
        ..Exclusion::of(reason)
    }
}

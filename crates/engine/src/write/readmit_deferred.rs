//! Readmits deferred URLs that may be fetched now.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crawl_frontier::{Frontier, Reason, UnsettledUrl, UrlToAdmit};
use crawl_scope::{Scope, ScopeVerdict};
use crawl_traps::{TrapKind, UrlDisposition};

use crate::error::EngineError;
use crate::priority::Priority;
use crate::shared_trap_detector::SharedTrapDetector;

/// Maximum URLs to admit again in one transaction, to limit the memory for them.
const MAX_BATCH: usize = 4096;

/// Passes to `admit` all deferred URLs whose reason no longer holds. URLs that were too deep are
/// judged again by `scope`.
///
/// Runs on the writer's thread, reads the whole list of deferred URLs from disk, and stops if
/// `abandon` is set. If it stops early, or if a crash happens between two batches, the next start
/// repeats the scan. The trap detector is locked for one URL at a time, so the crawl loop never
/// waits for a disk read.
pub(super) fn each_batch(
    frontier: &dyn Frontier,
    traps: Option<&SharedTrapDetector>,
    scope: Option<&Scope>,
    abandon: &AtomicBool,
    admit: &mut dyn FnMut(&[UrlToAdmit]) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let mut batch = Vec::new();
    let mut admitted = Ok(());
    frontier.each_deferred(&mut |waiting| {
        if abandon.load(Ordering::Relaxed) {
            batch.clear();
            return ControlFlow::Break(());
        }
        let priority = match is_in_reach(&waiting, scope) {
            true => Some(Priority::LINK),
            false => traps.and_then(|traps| place(&waiting, traps)),
        };
        if let Some(priority) = priority {
            let via = waiting.via.unwrap_or(waiting.url).clone();
            batch.push(UrlToAdmit {
                priority: priority.byte(),
                hops_off: waiting.hops_off,
                ..UrlToAdmit::link(waiting.url.clone(), waiting.depth, via)
            });
        }
        if batch.len() == MAX_BATCH {
            admitted = admit(&batch);
            batch.clear();
        }
        match admitted {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    admitted?;
    match batch.is_empty() {
        true => Ok(()),
        false => admit(&batch),
    }
}

/// Returns whether a URL was deferred because it was too deep, but is in scope now.
fn is_in_reach(waiting: &UnsettledUrl<'_>, scope: Option<&Scope>) -> bool {
    let is_deep = waiting
        .exclusion
        .is_some_and(|why| why.reason == Reason::Depth);
    is_deep
        && scope.is_some_and(|scope| {
            let verdict = scope.judge_at(waiting.url, waiting.depth, waiting.hops_off);
            verdict == ScopeVerdict::In
        })
}

/// Returns the new priority of a URL that was deferred as a trap, a duplicate or an action, but may
/// be fetched now. `None` for any other URL.
fn place(waiting: &UnsettledUrl<'_>, traps: &SharedTrapDetector) -> Option<Priority> {
    let exclusion = waiting.exclusion?;
    let rules = traps.rules();
    match exclusion.reason {
        Reason::Trap
            if exclusion
                .rule
                .as_deref()
                .and_then(TrapKind::of_rule)
                .is_some() =>
        {
            match traps.lock().standing(waiting.url, waiting.via, 1) {
                UrlDisposition::Defer(_) => None,
                _ => Some(Priority::at_level(1)),
            }
        }
        Reason::Duplicate if !rules.traps => Some(Priority::at_level(0)),
        Reason::Action if !rules.skip_actions => Some(Priority::ACTION),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use crawl_frontier::{
        Frontier as _, MemoryFrontier, NotFetchedReason, Reason, RequestedState, UrlToAdmit,
    };
    use crawl_scope::{Scope, ScopeMode};
    use crawl_weburl::canonicalize;

    use super::{MAX_BATCH, each_batch};

    #[test]
    fn a_scan_admits_in_batches_and_stops_when_abandoned() {
        let frontier = MemoryFrontier::new();
        let seed = canonicalize(None, "http://a.example/").unwrap();
        let mut scope = Scope::new(ScopeMode::Host, &[], &[], Some(9)).unwrap();
        scope.add_seed(&seed);
        let mut transaction = frontier.begin().unwrap();
        for number in 0..MAX_BATCH + 2 {
            let url = canonicalize(Some(&seed), &number.to_string()).unwrap();
            let deep = UrlToAdmit {
                state: RequestedState::Deferred(NotFetchedReason::of(Reason::Depth)),
                ..UrlToAdmit::link(url, 5, seed.clone())
            };
            transaction.admit(deep).unwrap();
        }
        transaction.commit().unwrap();
        let taken_back = |abandon: &AtomicBool, abandon_after: usize| {
            let mut batches = Vec::new();
            let mut admit = |batch: &[UrlToAdmit]| {
                batches.push(batch.len());
                abandon.fetch_or(batches.len() == abandon_after, Ordering::Relaxed);
                Ok(())
            };
            each_batch(&frontier, None, Some(&scope), abandon, &mut admit).unwrap();
            batches
        };
        assert_eq!(taken_back(&AtomicBool::new(false), 9), [MAX_BATCH, 2]);
        assert_eq!(taken_back(&AtomicBool::new(false), 1), [MAX_BATCH]);
        assert_eq!(taken_back(&AtomicBool::new(true), 9), [0; 0]);
    }
}

//! URLs that were put aside and may be asked for now.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crawl_frontier::{Admission, Frontier, FrontierError, Reason, WaitingUrl};
use crawl_policy::scope::{Scope, ScopeVerdict};
use crawl_policy::traps::{Disposition, Trap};

use crate::priority::Priority;
use crate::shared_traps::SharedTraps;

/// All that were put aside and are not what they were taken for, or may be asked for in this run;
/// `scope` judges again those that lay too deep.
///
/// The whole list is read from the disk, on the writer's thread, unless `abandon` is set: then
/// there are none, and the next start looks again. What is known of traps is locked for one URL at
/// a time, so the crawl loop waits for no read.
pub(super) fn candidates(
    frontier: &dyn Frontier,
    traps: Option<&SharedTraps>,
    scope: Option<&Scope>,
    abandon: &AtomicBool,
) -> Result<Vec<Admission>, FrontierError> {
    let mut again = Vec::new();
    frontier.each_deferred(&mut |waiting| {
        if abandon.load(Ordering::Relaxed) {
            again.clear();
            return ControlFlow::Break(());
        }
        let priority = match is_in_reach(&waiting, scope) {
            true => Some(Priority::LINK),
            false => traps.and_then(|traps| place(&waiting, traps)),
        };
        if let Some(priority) = priority {
            let via = waiting.via.unwrap_or(waiting.url).clone();
            again.push(Admission {
                priority: priority.byte(),
                ..Admission::link(waiting.url.clone(), waiting.depth, via)
            });
        }
        ControlFlow::Continue(())
    })?;
    Ok(again)
}

/// Returns whether a URL lay too deep for an earlier run, and does not for this one.
fn is_in_reach(waiting: &WaitingUrl<'_>, scope: Option<&Scope>) -> bool {
    let is_deep = waiting
        .exclusion
        .is_some_and(|why| why.reason == Reason::Depth);
    is_deep
        && scope.is_some_and(|scope| scope.judge(waiting.url, waiting.depth) == ScopeVerdict::In)
}

/// The next state of a URL that is no trap, no other name of a page, or no action any more.
fn place(waiting: &WaitingUrl<'_>, traps: &SharedTraps) -> Option<Priority> {
    let why = waiting.exclusion?;
    let rules = traps.rules();
    match why.reason {
        Reason::Trap if why.rule.as_deref().and_then(Trap::of_rule).is_some() => {
            match traps.lock().standing(waiting.url, waiting.via, 1) {
                Disposition::Defer(_) => None,
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
    use std::sync::atomic::AtomicBool;

    use crawl_frontier::{Admission, Exclusion, Frontier as _, MemoryFrontier, NewState, Reason};
    use crawl_policy::scope::{Scope, ScopeMode};
    use crawl_weburl::canonicalize;

    use super::candidates;

    #[test]
    fn ours_a_scan_that_is_given_up_takes_nothing_back() {
        let frontier = MemoryFrontier::new();
        let seed = canonicalize(None, "http://a.example/").unwrap();
        let mut scope = Scope::new(ScopeMode::Host, &[], &[], Some(9)).unwrap();
        scope.add_seed(&seed);
        let mut transaction = frontier.begin().unwrap();
        for name in ["x", "y"] {
            let url = canonicalize(Some(&seed), name).unwrap();
            let deep = Admission {
                state: NewState::Deferred(Exclusion::of(Reason::Depth)),
                ..Admission::link(url, 5, seed.clone())
            };
            transaction.admit(deep).unwrap();
        }
        transaction.commit().unwrap();
        let found = |abandon: bool| {
            let abandon = AtomicBool::new(abandon);
            let found = candidates(&frontier, None, Some(&scope), &abandon);
            found.unwrap().len()
        };
        assert_eq!(found(false), 2);
        assert_eq!(found(true), 0);
    }
}

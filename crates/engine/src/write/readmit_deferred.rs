//! Readmits deferred URLs that may be fetched now.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crawl_frontier::{
    Frontier, FrontierError, KnownState, NotFetchedReason, Reason, UnsettledUrl, UrlToAdmit,
};
use crawl_scope::{Scope, ScopeVerdict};
use crawl_traps::{TrapKind, UrlDisposition, fetched_instead, mirrored_page};
use crawl_weburl::CanonicalUrl;

use super::links_awaiting_other_spelling::{LinksAwaitingOtherSpelling, OtherSpellingState};
use crate::error::EngineError;
use crate::priority::Priority;
use crate::shared_trap_detector::SharedTrapDetector;

/// Maximum URLs to admit again in one transaction, to limit the memory for them.
const MAX_BATCH: usize = 4096;

/// Returns the priority that a deferred URL gets if it may be fetched now. `None` if it stays
/// deferred.
pub(super) type ReadmissionJudge<'a> =
    dyn FnMut(&UnsettledUrl<'_>) -> Result<Option<Priority>, FrontierError> + 'a;

/// Passes to `admit` all deferred URLs for which `judge` returns a priority.
///
/// Runs on the writer's thread, reads the whole list of deferred URLs from disk, and stops if
/// `abandon` is set. If it stops early, or if a crash happens between two batches, the next start
/// repeats the scan.
pub(super) fn each_batch(
    frontier: &dyn Frontier,
    judge: &mut ReadmissionJudge<'_>,
    abandon: &AtomicBool,
    admit: &mut dyn FnMut(&[UrlToAdmit]) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let mut batch = Vec::new();
    let mut admitted = Ok(());
    // Sort the URLs, because the frontier of a replay may pass them in another order. If there are
    // several batches, the order still differs.
    let mut admit_sorted = |batch: &mut Vec<UrlToAdmit>| {
        batch.sort_unstable_by(|one, other| one.url.cmp(&other.url));
        admit(batch)
    };
    frontier.each_deferred(&mut |waiting| {
        if abandon.load(Ordering::Relaxed) {
            batch.clear();
            return ControlFlow::Break(());
        }
        let priority = match judge(&waiting) {
            Ok(priority) => priority,
            Err(why) => {
                admitted = Err(why.into());
                return ControlFlow::Break(());
            }
        };
        if let Some(priority) = priority {
            batch.push(admission(&waiting, priority));
        }
        if batch.len() == MAX_BATCH {
            admitted = admit_sorted(&mut batch);
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
        false => admit_sorted(&mut batch),
    }
}

fn admission(waiting: &UnsettledUrl<'_>, priority: Priority) -> UrlToAdmit {
    let via = waiting.via.unwrap_or(waiting.url).clone();
    UrlToAdmit {
        priority: priority.byte(),
        hops_off: waiting.hops_off,
        ..UrlToAdmit::link(waiting.url.clone(), waiting.depth, via)
    }
}

/// Judges a deferred URL whose reason may no longer hold. A URL that was too deep is judged again
/// by `scope`. A link whose other spelling is still awaited is added to
/// `links_awaiting_other_spelling`. The trap detector is locked for one URL at a time, so the crawl
/// loop never waits for a disk read.
pub(super) fn judge(
    waiting: &UnsettledUrl<'_>,
    frontier: &dyn Frontier,
    (traps, scope): (Option<&SharedTrapDetector>, Option<&Scope>),
    links_awaiting_other_spelling: &mut LinksAwaitingOtherSpelling,
) -> Result<Option<Priority>, FrontierError> {
    if is_in_reach(waiting, scope) {
        return Ok(Some(Priority::LINK));
    }
    let priority = traps.and_then(|traps| place(waiting, traps));
    let spelling = waiting.exclusion.and_then(other_spelling);
    let (None, Some(spelling)) = (priority, spelling) else {
        return Ok(priority);
    };
    if traps.is_none_or(|traps| !traps.rules().naming.learns()) {
        return Ok(Some(Priority::LINK));
    }
    let link = admission(waiting, Priority::LINK);
    let is_answered =
        is_answered_elsewhere(frontier, &spelling, &link, links_awaiting_other_spelling)?;
    Ok((!is_answered).then_some(Priority::LINK))
}

/// Judges a deferred URL once no further page can be fetched. A page of a mirror may be fetched
/// unless its copy on the mirrored origin was fetched with a 2xx status.
pub(super) fn judge_mirrored(
    waiting: &UnsettledUrl<'_>,
    frontier: &dyn Frontier,
) -> Result<Option<Priority>, FrontierError> {
    let duplicate = waiting
        .exclusion
        .filter(|exclusion| exclusion.reason == Reason::Duplicate);
    let rule = duplicate.and_then(|exclusion| exclusion.rule.as_deref());
    let Some(copy) = rule.and_then(|rule| mirrored_page(waiting.url, rule)) else {
        return Ok(None);
    };
    let is_fetched = frontier.known(&copy)?.is_some_and(
        |copy| matches!(copy.state, KnownState::Fetched { status } if (200..300).contains(&status)),
    );
    Ok((!is_fetched).then_some(Priority::COPY_MISSING))
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
        Reason::Duplicate if !rules.traps && other_spelling(exclusion).is_none() => {
            Some(Priority::at_level(0))
        }
        Reason::Action if !rules.skip_actions => Some(Priority::ACTION),
        _ => None,
    }
}

/// Returns the other spelling that a link waits for. `None` if the URL was deferred for another
/// reason.
fn other_spelling(exclusion: &NotFetchedReason) -> Option<CanonicalUrl> {
    let rule = exclusion.rule.as_deref();
    let is_duplicate = exclusion.reason == Reason::Duplicate;
    rule.filter(|_| is_duplicate).and_then(fetched_instead)
}

/// Returns whether a link stays deferred because of another spelling of its URL: either the other
/// spelling gave a page, or its answer is still awaited. In the second case, adds the link to
/// `links_awaiting_other_spelling`.
fn is_answered_elsewhere(
    frontier: &dyn Frontier,
    other: &CanonicalUrl,
    link: &UrlToAdmit,
    links_awaiting_other_spelling: &mut LinksAwaitingOtherSpelling,
) -> Result<bool, FrontierError> {
    let details = frontier.known(other)?;
    let state = details.as_ref().map(|details| &details.state);
    Ok(match OtherSpellingState::of(state) {
        OtherSpellingState::Works => true,
        OtherSpellingState::Awaited => links_awaiting_other_spelling.add(other, link.clone()),
        OtherSpellingState::Fails
        | OtherSpellingState::Unclear
        | OtherSpellingState::NotFetched => false,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use crawl_frontier::conformance::helpers::{admit, settle};
    use crawl_frontier::{
        Frontier as _, LeaseOutcome, MemoryFrontier, NotFetchedReason, Reason, RequestedState,
        UnsettledUrl, UrlToAdmit,
    };
    use crawl_scope::{Scope, ScopeMode};
    use crawl_weburl::canonicalize;

    use super::{LinksAwaitingOtherSpelling, MAX_BATCH, each_batch, judge, judge_mirrored};
    use crate::config::TrapAvoidance;
    use crate::priority::Priority;
    use crate::shared_trap_detector::{SharedTrapDetector, put_aside};

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
                assert!(batch.is_sorted_by(|one, other| one.url < other.url));
                batches.push(batch.len());
                abandon.fetch_or(batches.len() == abandon_after, Ordering::Relaxed);
                Ok(())
            };
            let mut links_awaiting_other_spelling = LinksAwaitingOtherSpelling::default();
            let mut judge = |waiting: &UnsettledUrl<'_>| {
                judge(
                    waiting,
                    &frontier,
                    (None, Some(&scope)),
                    &mut links_awaiting_other_spelling,
                )
            };
            each_batch(&frontier, &mut judge, abandon, &mut admit).unwrap();
            batches
        };
        assert_eq!(taken_back(&AtomicBool::new(false), 9), [MAX_BATCH, 2]);
        assert_eq!(taken_back(&AtomicBool::new(false), 1), [MAX_BATCH]);
        assert_eq!(taken_back(&AtomicBool::new(true), 9), [0; 0]);
    }

    #[test]
    fn a_page_of_a_mirror_is_admitted_again_unless_its_copy_was_fetched() {
        let mirror_of = "mirror of http://a.example:81: 8 of 8 pages were the same";
        let fetched = |status| Some(LeaseOutcome::Fetched { status });
        let failed = Some(LeaseOutcome::Failed {
            why: "timeout".to_owned(),
        });
        for (rule, copy, is_admitted) in [
            (mirror_of, fetched(200), false),
            (mirror_of, fetched(299), false),
            (mirror_of, fetched(301), true),
            (mirror_of, fetched(404), true),
            (mirror_of, failed, true),
            // The copy is still pending, for example because its host has no budget left.
            (mirror_of, None, true),
            ("Clean-param: sid", None, false),
        ] {
            let frontier = MemoryFrontier::new();
            let shown = format!("{rule} {copy:?}");
            let copied = canonicalize(None, "http://a.example:81/p?q").unwrap();
            admit(&frontier, [UrlToAdmit::seed(copied.clone())]);
            if let Some(outcome) = copy {
                let lease = frontier.lease(&copied.origin()).unwrap().unwrap();
                settle(&frontier, lease, outcome);
            }
            let page = canonicalize(None, "http://b.example/p?q").unwrap();
            let exclusion = NotFetchedReason {
                rule: Some(rule.to_owned()),
                ..NotFetchedReason::of(Reason::Duplicate)
            };
            let waiting = UnsettledUrl {
                url: &page,
                depth: 1,
                hops_off: 0,
                via: None,
                exclusion: Some(&exclusion),
            };
            let priority = judge_mirrored(&waiting, &frontier).unwrap();
            let expected = is_admitted.then_some(Priority::COPY_MISSING);
            assert_eq!(priority, expected, "{shown}");
        }
    }
    #[test]
    fn a_link_is_readmitted_unless_another_spelling_has_or_may_have_its_page() {
        let frontier = MemoryFrontier::new();
        let seed = canonicalize(None, "http://a.example/").unwrap();
        let url = |path: &str| canonicalize(Some(&seed), path).unwrap();
        for (path, status) in [("/page/", 200), ("/gone/", 403)] {
            admit(&frontier, [UrlToAdmit::seed(url(path))]);
            let lease = frontier.lease(&seed.origin()).unwrap().unwrap();
            settle(&frontier, lease, LeaseOutcome::Fetched { status });
        }
        admit(&frontier, [UrlToAdmit::seed(url("/pending/"))]);
        for folder in ["/page/", "/gone/", "/pending/", "/unknown/"] {
            let rule = format!(
                "default-document index.html: 3 of 3 pairs of pages were the same; asked for as {}",
                url(folder)
            );
            let link = UrlToAdmit {
                state: RequestedState::Deferred(put_aside(Reason::Duplicate, rule)),
                ..UrlToAdmit::link(url(&format!("{folder}index.html")), 1, seed.clone())
            };
            admit(&frontier, [link]);
        }
        let traps = SharedTrapDetector::new(&TrapAvoidance::default(), None);
        let mut links_awaiting_other_spelling = LinksAwaitingOtherSpelling::default();
        let mut readmitted = Vec::new();
        let mut admit = |batch: &[UrlToAdmit]| {
            readmitted.extend(batch.iter().map(|link| link.url.path().to_owned()));
            Ok(())
        };
        let mut judge = |waiting: &UnsettledUrl<'_>| {
            judge(
                waiting,
                &frontier,
                (Some(&traps), None),
                &mut links_awaiting_other_spelling,
            )
        };
        each_batch(&frontier, &mut judge, &AtomicBool::new(false), &mut admit).unwrap();
        readmitted.sort();
        assert_eq!(readmitted, ["/gone/index.html", "/unknown/index.html"]);
        let waiting = links_awaiting_other_spelling.take(&url("/pending/"));
        assert_eq!(waiting.len(), 1);
    }
}

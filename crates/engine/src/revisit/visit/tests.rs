//! Tests of what a visit stores, and of when the next one is due.

use std::time::Duration;

use super::*;
use crawl_frontier::Reason;

const DAY: u32 = 86_400;

fn visits(began: u32) -> RevisitRules {
    RevisitRules {
        round: Round {
            number: 2,
            began,
            ..Round::first(began)
        },
        revisits: RevisitIntervals::default(),
    }
}

fn page(digest: &str) -> VisitResult {
    VisitResult::Page(KnownPage::new(200, digest.into(), Validators::default()))
}

/// Simulates one round per day. `content` returns the page's content on a given day. Returns the
/// days on which the page was visited.
fn days(content: impl Fn(u32) -> u32, declared: Option<DocumentStateMeta>) -> Vec<u32> {
    let mut visited = Vec::new();
    let (mut due, mut past) = (0, None);
    for day in 0..60 {
        let began = DAY * (day + 1);
        if due > began {
            continue;
        }
        visited.push(day);
        let result = page(&content(day).to_string());
        let visit = visits(began).after(began + 60, UrlKind::Page, past, result, declared);
        due = visit.due;
        past = PreviousVisit::read(&visit);
    }
    visited
}

#[test]
fn intervals_follow_changes() {
    let unchanged = days(|_| 0, None);
    assert_eq!(unchanged, [0, 1, 3, 6, 11, 19, 31, 49]);
    assert_eq!(days(|_| 0, Some(DocumentStateMeta::Static)), [0, 1, 31]);
    let all: Vec<u32> = (0..60).collect();
    assert_eq!(days(|_| 0, Some(DocumentStateMeta::Dynamic)), all);
    assert_eq!(days(|day| day, None), all);
    // If a page changes after a long time without changes, it is visited more often again.
    let changed_later = days(|day| day.max(11), None);
    assert_eq!(changed_later[..9], [0, 1, 3, 6, 11, 19, 23, 25, 26]);
}

#[test]
fn intervals_keep_their_bounds() {
    let revisits = RevisitIntervals {
        least: Duration::from_secs(3600),
        most: Duration::from_secs(7200),
    };
    let visits = RevisitRules {
        revisits,
        ..visits(DAY)
    };
    let first = visits.after(DAY, UrlKind::Page, None, page("a"), None);
    assert_eq!(first.due, DAY + 3600);
    let later = RevisitRules {
        round: Round::first(9 * DAY),
        ..visits
    };
    let second = later.after(
        9 * DAY,
        UrlKind::Page,
        PreviousVisit::read(&first),
        page("a"),
        None,
    );
    assert_eq!(second.due, 9 * DAY + 7200);
    let sitemap = later.after(
        9 * DAY,
        UrlKind::Sitemap,
        PreviousVisit::read(&first),
        page("a"),
        None,
    );
    assert_eq!(sitemap.due, EACH_ROUND);
}

#[test]
fn a_round_with_a_clock_ahead_does_not_delay_later_rounds() {
    let next = |began: u32, now: u32| {
        let round = Round::first(began).next(now, CrawlTotals::default());
        (round.began, round.first_began)
    };
    assert_eq!(next(DAY, 2 * DAY), (2 * DAY, DAY));
    assert_eq!(next(DAY, DAY), (DAY + 1, DAY));
    assert_eq!(next(DAY + 3600, DAY), (DAY + 3601, DAY + 3600));
    assert_eq!(next(1500 * DAY, DAY), (DAY, DAY));
    assert_eq!(next(u32::MAX, DAY), (DAY, DAY));
}

#[test]
fn the_result_is_compared_with_the_last_page() {
    let visits = visits(DAY);
    let after = |past: Option<PreviousVisit>, found: VisitResult| {
        let change = RevisitRules::change(past.as_ref(), &found);
        let visit = visits.after(1, UrlKind::Page, past, found, None);
        (change.map(PageChange::name), PreviousVisit::read(&visit))
    };
    let (change, past) = after(None, page("a"));
    assert_eq!(change, Some("new"));
    let (change, past) = after(past, page("a"));
    assert_eq!(change, Some("same"));
    let (change, past) = after(past, VisitResult::Same);
    assert_eq!(change, Some("same"));
    let (change, past) = after(past, VisitResult::Unknown);
    assert_eq!(change, None);
    let barred = NotFetchedReason::of(Reason::Robots);
    let (change, past) = after(past, VisitResult::Excluded(barred.clone()));
    assert_eq!(change, None);
    assert!(past.as_ref().unwrap().was_excluded_by(&barred));
    let (change, past) = after(past, page("b"));
    assert_eq!(change, Some("changed"));
    let (change, past) = after(past, VisitResult::Nothing);
    assert_eq!(change, Some("gone"));
    let (change, past) = after(past, VisitResult::Nothing);
    assert_eq!(change, None);
    assert_eq!(after(past, page("b")).0, Some("new"));
}

#[test]
fn the_record_of_an_unchanged_page_stays_the_original() {
    let visits = visits(DAY);
    let page_with = |digest: &str, archived| {
        let page = KnownPage::new(200, digest.into(), Validators::default());
        VisitResult::Page(KnownPage { archived, ..page })
    };
    let after = |past, result| {
        let visit = visits.after(1, UrlKind::Page, past, result, None);
        PreviousVisit::read(&visit)
    };
    let archived = |past: &Option<PreviousVisit>| past.as_ref().unwrap().page().unwrap().archived;
    let render_need = |past: &Option<PreviousVisit>| {
        let page = past.as_ref().unwrap().page().unwrap();
        page.render_need
    };
    let past = after(None, page_with("a", Some(7)));
    assert_eq!(render_need(&past), RenderNeed::IfAll);
    let scripted = KnownPage {
        render_need: RenderNeed::IfScripted,
        ..KnownPage::new(200, "a".into(), Validators::default())
    };
    let past = after(past, VisitResult::Page(scripted));
    assert_eq!(archived(&past), Some(7));
    assert_eq!(render_need(&past), RenderNeed::IfScripted);
    let past = after(past, VisitResult::Same);
    assert_eq!(archived(&past), Some(7));
    assert_eq!(render_need(&past), RenderNeed::IfScripted);
    assert_eq!(archived(&after(past, page_with("b", Some(9)))), Some(9));
}

#[test]
fn a_declared_state_outlives_an_answer_without_it() {
    let declared = Some(DocumentStateMeta::Static);
    let first = visits(DAY).after(DAY, UrlKind::Page, None, page("a"), declared);
    let second = visits(2 * DAY).after(
        0,
        UrlKind::Page,
        PreviousVisit::read(&first),
        VisitResult::Same,
        None,
    );
    assert_eq!(second.due, 2 * DAY + 30 * DAY);
    // The visit counts as part of its round, although the clock showed an earlier time.
    assert_eq!(second.at, 2 * DAY);
    let third = visits(3 * DAY).after(
        0,
        UrlKind::Page,
        PreviousVisit::read(&second),
        page("b"),
        None,
    );
    assert_eq!(third.due, 3 * DAY + DAY / 2);
}

#[test]
fn a_failure_keeps_the_interval() {
    let past = |day: u32, past: Option<PreviousVisit>, found| {
        let visit = visits(day * DAY).after(0, UrlKind::Page, past, found, None);
        (visit.due, PreviousVisit::read(&visit))
    };
    let (_, first) = past(1, None, page("a"));
    let (due, failed) = past(11, first, VisitResult::Unknown);
    assert_eq!(due, 11 * DAY);
    let again = past(12, failed.clone(), VisitResult::Same).0;
    assert_eq!(again, 12 * DAY + 11 * DAY + 11 * DAY / 2);
    assert_eq!(past(12, failed, VisitResult::Deadly).0, 42 * DAY);
}

#[test]
fn a_rule_that_moved_is_the_same() {
    let barred = |line| NotFetchedReason {
        reason: Reason::Robots,
        rule: Some("Disallow: /".into()),
        line: Some(line),
    };
    let result = VisitResult::Excluded(barred(1));
    let visit = visits(DAY).after(1, UrlKind::Page, None, result, None);
    let past = PreviousVisit::read(&visit).unwrap();
    assert!(past.was_excluded_by(&barred(2)));
    assert!(!past.was_excluded_by(&NotFetchedReason::of(Reason::Robots)));
}

//! One worker of a shared crawl. All hosts but one are in one bucket, the unit that workers own.

use crawl_fetcher::{FetchRequest, Validators};
use crawl_frontier::UrlToAdmit;
use crawl_scheduler::{Permit, PollOutcome, RequestPurpose};
use crawl_weburl::canonicalize;

use super::super::request_rows;
use super::*;
use crate::crawl_loop::fixtures::{at, coordinator};
use crate::crawl_loop::{Coordinator, DriverStep};
use crate::messages::{Event, GroupCommitResult, RequestJob, WriterMessage};
use crate::simulated_crawl_tests::scripted_servers::moved;

/// A worker that owns every host. All hosts but one are in one bucket.
struct OwnsAllHosts;

/// The host that is in another bucket, and the number of that bucket.
const APART: (&str, i32) = ("apart.example", 8);

impl HostOwnership for OwnsAllHosts {
    fn bucket_of(&self, host: &HostKey) -> i32 {
        match host.as_str() == APART.0 {
            true => APART.1,
            false => 7,
        }
    }

    fn owns(&self, _: &HostKey) -> bool {
        true
    }

    fn bucket_epochs(&self) -> BTreeMap<i32, i64> {
        BTreeMap::from([(7, 1), (APART.1, 3)])
    }

    fn taken_over_for(&self, _: &HostKey) -> Option<Duration> {
        None
    }

    fn leased_buckets(&self) -> BTreeSet<i32> {
        BTreeSet::new()
    }

    fn may_send(&self) -> bool {
        true
    }
}

fn shared(allowed: Option<u64>) -> WorkerCoordination {
    let mut shared = WorkerCoordination::default();
    shared.share(Arc::new(OwnsAllHosts), allowed);
    shared
}

fn idle(pages: u64) -> WorkerState {
    WorkerState {
        pages,
        leases: 0,
        is_busy: false,
        is_ending: false,
    }
}

#[test]
fn the_loop_reacts_to_news_of_other_workers() {
    let origin = Origin::parse("http://a.example").unwrap();
    let origins = vec![(origin, 3)];
    for (news, expected) in [
        (
            SharedFrontierNews::Taken(origins.clone()),
            WorkerNewsReaction::Wake(origins),
        ),
        (SharedFrontierNews::LinksWait, WorkerNewsReaction::TakeLinks),
        // Links are already being admitted, so no further admission begins.
        (SharedFrontierNews::LinksWait, WorkerNewsReaction::Nothing),
        (
            SharedFrontierNews::OthersBytes(7),
            WorkerNewsReaction::Nothing,
        ),
        (SharedFrontierNews::PagesSpent, WorkerNewsReaction::Nothing),
        (SharedFrontierNews::Drain, WorkerNewsReaction::End),
    ] {
        let mut worker = shared(None);
        worker.takes_links = expected == WorkerNewsReaction::Nothing;
        let reaction = worker.take_in(news, 0, &mut Vec::new());
        assert_eq!(reaction, expected);
    }
}

#[test]
fn more_pages_are_requested_once_before_there_are_none() {
    for (allowed, pages, is_asked) in [
        (None, 1_000, false),
        (Some(100), 100 - FEW_PAGES, false),
        (Some(100), 101 - FEW_PAGES, true),
    ] {
        let mut worker = shared(allowed);
        let mut out = Vec::new();
        worker.step(at(20), idle(pages), &mut out);
        worker.step(at(20), idle(pages), &mut out);
        assert_eq!(out.len(), usize::from(is_asked), "{allowed:?} {pages}");
        assert_eq!(worker.may_fetch(100), allowed.is_none());
    }
    for state in [
        WorkerState {
            is_ending: true,
            ..idle(100)
        },
        WorkerState {
            leases: 1,
            ..idle(100 - FEW_PAGES - 1)
        },
    ] {
        let mut out = Vec::new();
        shared(Some(100)).step(at(20), state, &mut out);
        assert!(out.is_empty(), "{state:?}");
    }
}

#[test]
fn a_bucket_is_handed_over_once_and_when_nothing_of_it_is_busy() {
    let mut worker = shared(None);
    let host = HostKey::parse("a.example").unwrap();
    assert!(worker.keeps(&host) && !worker.step(at(20), idle(0), &mut Vec::new()));
    worker.take_in(SharedFrontierNews::Leave(vec![7]), 0, &mut Vec::new());
    assert!(!worker.keeps(&host));
    let mut out = Vec::new();
    assert!(worker.step(at(20), idle(0), &mut out));
    // The next check for hosts to hand over is due only after an interval.
    assert!(!worker.step(at(20), idle(0), &mut out));
    let busy = worker.busy_buckets([&host]);
    assert!(worker.hand_over(&busy, &mut out).is_empty() && out.is_empty());
    // The run doesn't end before its hosts are handed over.
    assert_eq!(
        worker.end_with_others(EndReason::Finished, 0, &mut out),
        None
    );
    assert!(!worker.rests());
    assert_eq!(worker.hand_over(&BTreeSet::new(), &mut out), [7]);
    assert!(worker.hand_over(&BTreeSet::new(), &mut out).is_empty());
    assert_eq!(out.len(), 1);
    worker.take_in(SharedFrontierNews::HandedOver(vec![7]), 0, &mut out);
    assert!(worker.keeps(&host));
}

/// The sharing thread may report the end of all workers before it learns that this worker has work
/// again, so the worker must ignore that report.
#[test]
fn the_end_seen_in_one_rest_does_not_end_a_later_one() {
    let mut coordinator = coordinator(|_| {});
    coordinator.share_crawl(Arc::new(OwnsAllHosts));
    let mut step = |event: Option<Event>| {
        let mut out = Vec::new();
        if let Some(event) = event {
            coordinator.handle(at(20), event, &mut out);
        }
        let is_done = matches!(coordinator.advance(at(20), &mut out), DriverStep::Done);
        let rests = out.iter().filter_map(|effect| match effect {
            Effect::Share(SharedFrontierRequest::Rest {
                rest, work_news, ..
            }) => Some((*rest, *work_news)),
            _ => None,
        });
        (is_done, rests.collect::<Vec<_>>())
    };
    let over = |rest| Some(Event::Shared(SharedFrontierNews::Over { rest }));
    let taken_over = || Some(Event::Shared(SharedFrontierNews::Taken(Vec::new())));
    assert_eq!(step(None), (false, vec![(Some(1), 0)]));
    assert_eq!(step(taken_over()), (false, vec![(None, 1), (Some(2), 1)]));
    assert_eq!(step(over(1)), (false, Vec::new()));
    assert_eq!(
        step(Some(Event::Shared(SharedFrontierNews::LinksWait))),
        (false, vec![(None, 2)])
    );
    let committed = GroupCommitResult {
        items: WriterMessage::TakeLinks.weight(),
        leaves_links: Some(false),
        ..GroupCommitResult::default()
    };
    assert_eq!(
        step(Some(Event::Committed(Box::new(committed)))),
        (false, vec![(Some(3), 2)])
    );
    assert_eq!(step(over(2)), (false, Vec::new()));
    assert_eq!(step(over(3)), (true, Vec::new()));
}

/// After a rest (time without work), the store counts the pages granted before the rest as free,
/// and may grant them to another worker.
#[test]
fn pages_requested_before_a_rest_are_not_used() {
    let mut coordinator = coordinator(|config| config.budgets.max_pages = Some(57));
    coordinator.share_crawl(Arc::new(OwnsAllHosts));
    let mut step = |news: Option<SharedFrontierNews>| {
        let mut out = Vec::new();
        if let Some(news) = news {
            coordinator.handle(at(20), Event::Shared(news), &mut out);
        }
        coordinator.attend_to_workers(at(20), &mut out);
        let requested = out.iter().find_map(|effect| match effect {
            Effect::Share(SharedFrontierRequest::MorePages { rests, .. }) => Some(*rests),
            _ => None,
        });
        let may_fetch = coordinator.shared.may_fetch(0);
        let _ = coordinator.advance(at(20), &mut out);
        (requested, may_fetch)
    };
    let allowed = |rests| Some(SharedFrontierNews::Allowed { pages: 7, rests });
    assert_eq!(step(None), (Some(0), false));
    assert_eq!(step(allowed(0)), (None, false), "it rested meanwhile");
    assert_eq!(
        step(Some(SharedFrontierNews::Taken(Vec::new()))),
        (Some(1), false)
    );
    assert_eq!(step(allowed(1)), (None, false), "and once more");
    let mut out = Vec::new();
    let shared = &mut coordinator.shared;
    shared.end_rest(0, &mut out);
    let rests = shared.rests;
    let news = SharedFrontierNews::Allowed { pages: 7, rests };
    coordinator.handle(at(20), Event::Shared(news), &mut out);
    assert!(coordinator.shared.may_fetch(0));
}

/// Near the end of the budget, a worker may get so few pages that it would immediately request
/// more.
#[test]
fn a_small_grant_is_followed_by_a_request_only_after_a_page() {
    let mut shared = shared(Some(0));
    let requests = |shared: &mut WorkerCoordination, pages| {
        let mut out = Vec::new();
        shared.step(at(20), idle(pages), &mut out);
        out.len()
    };
    let grant = |shared: &mut WorkerCoordination, pages| {
        let news = SharedFrontierNews::Allowed { pages, rests: 0 };
        shared.take_in(news, 0, &mut Vec::new());
    };
    assert_eq!(requests(&mut shared, 0), 1);
    grant(&mut shared, 2);
    assert_eq!(requests(&mut shared, 0), 0);
    assert_eq!(requests(&mut shared, 1), 1);
    grant(&mut shared, 3);
    assert_eq!(requests(&mut shared, 1), 0);
    assert_eq!(requests(&mut shared, 3), 1);
}

/// Shares the crawl, and issues the permit for robots.txt of an origin.
fn robots_permit(coordinator: &mut Coordinator) -> (Origin, Permit) {
    coordinator.share_crawl(Arc::new(OwnsAllHosts));
    let origin = Origin::parse("http://a.example").unwrap();
    coordinator.hosts.set_pending(at(20), &origin, 1);
    let PollOutcome::Issue(permit) = coordinator.hosts.poll(at(20)) else {
        panic!("no permit");
    };
    coordinator.hosts.sent();
    (origin, permit)
}

/// If this worker stored that the redirect leads to another worker's host, the next owner would
/// consider the rules unreachable, and would not fetch the pages.
#[test]
fn the_next_owner_fetches_robots_txt_of_a_host_that_is_handed_over() {
    for leaves in [false, true] {
        let mut coordinator = coordinator(|_| {});
        let (origin, permit) = robots_permit(&mut coordinator);
        let mut out = Vec::new();
        if leaves {
            let news = Event::Shared(SharedFrontierNews::Leave(vec![7]));
            coordinator.handle(at(21), news, &mut out);
            coordinator.attend_to_workers(at(21), &mut out);
        }
        let request = FetchRequest::robots(origin.robots_url(), Validators::default());
        let redirect = moved("/rules.txt");
        let result = redirect.result(&request.url, at(22));
        let job = RequestJob::Robots {
            of: origin.clone(),
            request,
            hop: 0,
        };
        let none = tracing::Span::none();
        let fetched = request_rows::ended(job, permit.spend(), result, none);
        coordinator.handle(at(22), fetched, &mut out);
        let copies = out.iter().filter(|effect| match effect {
            Effect::Write(WriterMessage::Side(robots)) => robots.copy.is_some(),
            _ => false,
        });
        assert_eq!(copies.count(), 0, "{leaves}: {out:?}");
        let follows = coordinator.robots.take_pending_fetch(&origin).is_some();
        assert_eq!(follows, !leaves);
        let next = coordinator.hosts.poll(at(40));
        assert_eq!(matches!(next, PollOutcome::Issue(_)), !leaves, "{next:?}");
    }
}

/// If robots.txt were not fetched again, the pages of the origin would stay pending, while the
/// worker is idle and the crawl ends.
#[test]
fn robots_txt_is_fetched_again_if_the_host_that_it_redirects_to_is_handed_over() {
    let mut coordinator = coordinator(|_| {});
    let (origin, permit) = robots_permit(&mut coordinator);
    let request = FetchRequest::robots(origin.robots_url(), Validators::default());
    let redirect = moved(&format!("http://{}/rules.txt", APART.0));
    let result = redirect.result(&request.url, at(22));
    let job = RequestJob::Robots {
        of: origin.clone(),
        request,
        hop: 0,
    };
    let none = tracing::Span::none();
    let fetched = request_rows::ended(job, permit.spend(), result, none);
    let mut out = Vec::new();
    coordinator.handle(at(22), fetched, &mut out);
    assert!(coordinator.robots.pending_hop(&origin).is_some());
    let news = Event::Shared(SharedFrontierNews::Leave(vec![APART.1]));
    coordinator.handle(at(22), news, &mut out);
    coordinator.attend_to_workers(at(22), &mut out);
    assert!(coordinator.robots.pending_hop(&origin).is_none());
    match coordinator.hosts.poll(at(40)) {
        PollOutcome::Issue(permit) => {
            assert_eq!(*permit.purpose(), RequestPurpose::Robots { origin });
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_of_pending_urls_name_the_buckets() {
    let mut coordinator = coordinator(|_| {});
    coordinator.share_crawl(Arc::new(OwnsAllHosts));
    let frontier = Arc::clone(&coordinator.frontier);
    let mut transaction = frontier.begin().unwrap();
    for host in [APART.0, "b.example"] {
        let url = canonicalize(None, &format!("http://{host}/")).unwrap();
        transaction.admit(UrlToAdmit::seed(url)).unwrap();
    }
    transaction.commit().unwrap();
    let rows = coordinator.waiting_urls(at(20), &EndReason::Interrupted);
    let rows = rows.unwrap();
    let buckets: Vec<_> = rows.iter().map(|row| row.bucket).collect();
    assert_eq!(buckets, [None, Some(APART.1), Some(7)]);
    assert_eq!(rows[0].buckets, BTreeMap::from([(7, 1), (APART.1, 3)]));
}

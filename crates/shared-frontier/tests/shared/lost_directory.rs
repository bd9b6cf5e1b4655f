//! Tests with workers whose directories are lost. The fetched and failed URLs of these workers
//! become pending again, and their excluded URLs are listed again.

use std::collections::BTreeMap;

use crawl_frontier::conformance::helpers::{admit, excluded, lease, link, origin, settle, url};
use crawl_frontier::worker_frontier::{SharedFrontierError, WorkerFrontier as _};
use crawl_frontier::{
    Frontier as _, FrontierError, KnownState, LastVisit, Lease, LeaseOutcome, NotFetchedReason,
    Reason, RequestedState, UrlKind, UrlToAdmit,
};
use crawl_shared_frontier::{
    LostDirectoryCounts, PasswordSources, SharedCrawlError, SharedFrontier, SharedFrontierOptions,
    overview, reopen,
};
use crawl_weburl::CanonicalUrl;

use crate::crash_harness::{end_leases, new_crawl, options};
use crate::postgres_server::Served;

const FETCHED: LeaseOutcome = LeaseOutcome::Fetched { status: 200 };

fn open(served: &Served, options: &SharedFrontierOptions) -> SharedFrontier {
    SharedFrontier::open(&served.url, options).unwrap()
}

fn lose(
    served: &Served,
    crawl: &str,
    worker: &str,
) -> Result<LostDirectoryCounts, SharedCrawlError> {
    reopen(
        std::slice::from_ref(&served.url),
        &PasswordSources::default(),
        crawl,
        worker,
    )
}

/// The values of a lease. A reopened URL must have the same values when it is leased again.
type LeasedAs = (u32, u8, u8, UrlKind, bool, Option<CanonicalUrl>);

fn leased_as(lease: &Lease) -> LeasedAs {
    let via = lease.via.clone();
    let (depth, redirects) = (lease.depth, lease.redirects);
    (
        depth,
        redirects,
        lease.priority,
        lease.kind,
        lease.is_seed,
        via,
    )
}

/// The URLs that a worker settled: the values of each lease, and the state of each URL afterwards.
struct Settled {
    leases: Vec<(CanonicalUrl, LeasedAs)>,
    states: BTreeMap<CanonicalUrl, KnownState>,
}

/// The number of URLs in the test crawl, spread over 12 hosts.
const URLS: u32 = 96;

fn urls() -> impl Iterator<Item = CanonicalUrl> {
    (0..URLS).map(|n| url(&format!("http://h{}.example/{n}", n % 12)))
}

/// Returns the admission of a link to a URL. The values of the link depend on `n`, so that the URLs
/// differ.
fn admission(n: u32, url: CanonicalUrl) -> UrlToAdmit {
    UrlToAdmit {
        priority: (n % 7) as u8,
        redirects: (n % 3) as u8,
        is_seed: n.is_multiple_of(11),
        kind: match n % 5 {
            0 => UrlKind::Sitemap,
            1 => UrlKind::Resource,
            _ => UrlKind::Page,
        },
        state: match n % 8 {
            7 => RequestedState::Excluded(NotFetchedReason::of(Reason::Scope)),
            _ => RequestedState::Pending,
        },
        ..UrlToAdmit::link(url, n % 4, self::url(&format!("/via/{n}")))
    }
}

/// Leases all pending URLs and settles them as failed, excluded, deferred or fetched.
fn settle_all(frontier: &SharedFrontier) -> Settled {
    let mut leases = Vec::new();
    for n in 0_u32.. {
        let mut origins = frontier.origins().into_iter();
        let Some(lease) = origins.find_map(|(origin, _)| frontier.lease(&origin).unwrap()) else {
            break;
        };
        let mut transaction = frontier.begin_worker().unwrap();
        let visit = LastVisit {
            at: n,
            due: n + 1,
            bytes: b"kept".to_vec(),
        };
        let outcome = match n % 5 {
            0 => LeaseOutcome::Failed {
                why: "silent".to_owned(),
            },
            1 => LeaseOutcome::Excluded(NotFetchedReason::of(Reason::Robots)),
            2 => LeaseOutcome::Deferred(NotFetchedReason::of(Reason::Trap)),
            _ => FETCHED,
        };
        leases.push((lease.url.clone(), leased_as(&lease)));
        transaction.settle_until(lease, outcome, visit).unwrap();
        transaction.mark("pages.jsonl", u64::from(n) + 1);
        transaction.keep_meta("totals", b"some");
        transaction.note_spent(u64::from(n) + 1, 100);
        transaction.commit().unwrap();
    }
    let state_of = |url| Some((frontier.known(&url).unwrap()?.state, url));
    let own = urls().filter(|url| frontier.owns(&url.host_key()));
    let states = own.filter_map(state_of).map(|(state, url)| (url, state));
    Settled {
        states: states.collect(),
        leases,
    }
}

/// Opens two workers, and makes each settle the URLs of its half of the hosts.
fn two_workers(served: &Served, crawl: &str) -> [(SharedFrontier, Settled); 2] {
    let half = |name: &str| SharedFrontierOptions {
        most_buckets: 2,
        ..options(crawl, name)
    };
    let (first, second) = (open(served, &half("w1")), open(served, &half("w2")));
    let links = urls().enumerate();
    admit(&first, links.map(|(n, url)| admission(n as u32, url)));
    second.take_links(999).unwrap();
    [first, second].map(|frontier| {
        let settled = settle_all(&frontier);
        // A random key divides the hosts, so one worker may own more hosts than the other. Even a
        // worker with a single host has at least four URLs.
        assert!(settled.leases.len() > 3, "hosts are divided");
        (frontier, settled)
    })
}

/// Reopens lost URLs in `parts` small parts.
fn take_all(frontier: &SharedFrontier, parts: usize) {
    for _ in 0..parts {
        frontier.take_links(7).unwrap();
    }
}

/// Checks that each URL of the lost worker is pending as before or still excluded, and that the
/// URLs of the other worker are unchanged.
fn check(frontier: &SharedFrontier, lost: &Settled, other: &Settled) {
    let state = |url: &CanonicalUrl| frontier.known(url).unwrap().unwrap().state;
    let mut pending = 0;
    for (url, before) in &lost.states {
        let expected = match before {
            KnownState::Fetched { .. } | KnownState::Failed { .. } => {
                pending += 1;
                KnownState::Pending { attempt: 1 }
            }
            stays => stays.clone(),
        };
        assert_eq!(state(url), expected, "{url}");
    }
    for (url, before) in &other.states {
        assert_eq!(state(url), *before, "{url}");
    }
    let counts = frontier.counts();
    assert_eq!((counts.pending, counts.known), (pending, u64::from(URLS)));
    // The URLs are leased in the original order, with the same values.
    let origins = frontier.origins();
    assert_eq!(origins.iter().map(|(_, count)| count).sum::<u64>(), pending);
    for (origin, _) in origins {
        let mut leases = Vec::new();
        while let Some(lease) = frontier.lease(&origin).unwrap() {
            leases.push(lease);
        }
        let is_again = |url: &CanonicalUrl| leases.iter().any(|lease| lease.url == *url);
        let before = lost.leases.iter().filter(|(url, _)| is_again(url));
        let before: Vec<_> = before.cloned().collect();
        let again: Vec<_> = leases
            .iter()
            .map(|lease| (lease.url.clone(), leased_as(lease)))
            .collect();
        assert_eq!(again, before);
        for lease in &leases {
            assert_eq!(frontier.visit(&lease.url).unwrap(), None);
        }
        for lease in leases {
            frontier.release(lease);
        }
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn urls_of_a_lost_worker_are_reopened_and_those_of_others_are_not() {
    let (served, crawl) = (Served::new(), new_crawl());
    let [(first, lost), (second, other)] = two_workers(&served, &crawl);
    first.give_up().unwrap();
    second.give_up().unwrap();
    let lost_worker = lose(&served, &crawl, "w1").unwrap();
    assert_eq!(lost_worker.pages, lost.leases.len() as u64);
    assert!(lost_worker.buckets_to_reopen > 0);
    // The directory may be declared lost twice, for example after a lost reply. The second time has
    // no effect.
    let again = lose(&served, &crawl, "w1").unwrap();
    assert_eq!(again.pages, 0);
    assert_eq!(again.buckets_to_reopen, lost_worker.buckets_to_reopen);
    // The first worker that reopens URLs dies before it has finished.
    let third = open(&served, &options(&crawl, "w3"));
    take_all(&third, 2);
    assert!(third.survey().unwrap().has_own_unqueued_work);
    end_leases(&served.url, &crawl);
    let fourth = open(&served, &options(&crawl, "w1"));
    assert!(fourth.marks().unwrap().is_empty(), "the name is free");
    assert_eq!(fourth.meta("totals").unwrap(), None);
    take_all(&fourth, 40);
    let survey = fourth.survey().unwrap();
    assert!(!survey.has_own_unqueued_work && !survey.has_unqueued_work);
    assert_eq!(survey.pages, other.leases.len() as u64, "of w2 alone");
    check(&fourth, &lost, &other);
    // A worker that reads everything from the database server sees the same state.
    fourth.give_up().unwrap();
    let fifth = open(&served, &options(&crawl, "w1"));
    check(&fifth, &lost, &other);
    // URLs settled by the restarted w1 belong to the restarted w1: if its directory is lost too,
    // only these URLs are reopened.
    let settled = settle_all(&fifth);
    fifth.give_up().unwrap();
    lose(&served, &crawl, "w1").unwrap();
    let sixth = open(&served, &options(&crawl, "w6"));
    take_all(&sixth, 40);
    let pending = settled.leases.iter().filter(|(url, _)| {
        matches!(
            settled.states[url],
            KnownState::Fetched { .. } | KnownState::Failed { .. }
        )
    });
    assert_eq!(sixth.counts().pending, pending.count() as u64);
    for (url, before) in &other.states {
        assert_eq!(sixth.known(url).unwrap().unwrap().state, *before, "{url}");
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn living_owners_forget_settled_states_of_reopened_urls() {
    let (served, crawl) = (Served::new(), new_crawl());
    let first = open(&served, &options(&crawl, "w1"));
    let second = open(&served, &options(&crawl, "w2"));
    admit(&first, [link("/a", 3), excluded("/never", 1)]);
    settle(&first, lease(&first), FETCHED);
    let elsewhere = url("http://b.example/").origin();
    let mut transaction = first.begin().unwrap();
    for origin in [&origin(), &elsewhere] {
        transaction.keep_robots(origin, b"copy");
    }
    transaction.commit().unwrap();
    first.give_up().unwrap();
    second.take_free(4).unwrap();
    // The second worker remembers that both URLs are settled.
    admit(&second, [link("/a", 5), link("/never", 5)]);
    let before = second.reopenings();
    assert_eq!(second.counts().pending, 0);
    lose(&served, &crawl, "w1").unwrap();
    let survey = second.survey().unwrap();
    assert!(survey.has_own_unqueued_work && survey.has_unqueued_work);
    let mut transaction = second.begin_worker().unwrap();
    let reopened = transaction.reopen_lost(99).unwrap();
    let listed: Vec<_> = reopened
        .excluded
        .iter()
        .map(|admission| admission.url.path())
        .collect();
    assert_eq!((listed, reopened.is_more), (vec!["/never"], false));
    assert!(matches!(
        reopened.excluded[0].state,
        RequestedState::Excluded(_)
    ));
    assert_eq!(reopened.origins, [origin()]);
    // The transaction reopened `/a`, so an admitted link to `/a` finds the URL pending, and
    // shortens its path.
    transaction.admit(link("/a", 2)).unwrap();
    let committed = transaction.commit().unwrap();
    assert_eq!(committed.origins, [(origin(), 1)]);
    assert_eq!(second.reopenings(), before + 1);
    // The record of the first robots.txt was only in the lost directory, so the stored copy was
    // dropped. The copy for the other origin is kept, because no URL of that origin was lost.
    assert_eq!(second.robots(&origin()).unwrap(), None);
    assert_eq!(second.robots(&elsewhere).unwrap().unwrap(), b"copy");
    assert!(!second.survey().unwrap().has_unqueued_work);
    let mut links = vec![link("/a", 1)];
    second.drop_known(&mut links, &mut |url| panic!("{url} is not settled"));
    assert_eq!(links.len(), 1);
    let again = lease(&second);
    assert_eq!((again.url.path(), again.depth, again.attempt), ("/a", 2, 1));
    // A second check for lost URLs finds nothing.
    second.take_links(99).unwrap();
    settle(&second, again, FETCHED);
    assert_eq!((second.counts().fetched, second.counts().excluded), (1, 1));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_dropped_transaction_reopens_nothing() {
    let (served, crawl) = (Served::new(), new_crawl());
    let first = open(&served, &options(&crawl, "w1"));
    admit(&first, [link("/a", 1), link("/b", 1)]);
    settle(&first, lease(&first), FETCHED);
    settle(&first, lease(&first), FETCHED);
    first.give_up().unwrap();
    lose(&served, &crawl, "w1").unwrap();
    let second = open(&served, &options(&crawl, "w2"));
    let mut transaction = second.begin_worker().unwrap();
    transaction.reopen_lost(1).unwrap();
    drop(transaction);
    assert_eq!(second.counts().pending, 0);
    // Another worker takes the bucket over before the commit, and reopens both URLs.
    let mut transaction = second.begin_worker().unwrap();
    assert!(transaction.reopen_lost(1).unwrap().is_more);
    end_leases(&served.url, &crawl);
    let third = open(&served, &options(&crawl, "w3"));
    third.take_links(99).unwrap();
    let refused = transaction.commit().unwrap_err();
    assert!(matches!(
        refused,
        FrontierError::Shared(SharedFrontierError::LeaseLost { .. })
    ));
    assert_eq!((third.counts().pending, third.counts().known), (2, 2));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_living_worker_is_not_given_up_and_a_given_up_one_commits_nothing() {
    let (served, crawl) = (Served::new(), new_crawl());
    let first = open(&served, &options(&crawl, "w1"));
    admit(&first, [link("/a", 1), link("/b", 1)]);
    settle(&first, lease(&first), FETCHED);
    let refused = lose(&served, &crawl, "w1").unwrap_err();
    assert!(matches!(refused, SharedCrawlError::WorkerAlive { .. }));
    assert!(refused.to_string().contains("\nhint: "), "{refused}");
    for (crawl, worker) in [(crawl.as_str(), "w2"), ("no such crawl", "w1")] {
        let refused = lose(&served, crawl, worker).unwrap_err();
        assert!(matches!(refused, SharedCrawlError::NoSuchWorker { .. }));
    }
    // The worker is frozen before its commit. In the meantime its directory is declared lost.
    let mut transaction = first.begin().unwrap();
    transaction.settle(lease(&first), FETCHED).unwrap();
    end_leases(&served.url, &crawl);
    lose(&served, &crawl, "w1").unwrap();
    let refused = transaction.commit().unwrap_err();
    assert!(matches!(
        refused,
        FrontierError::Shared(SharedFrontierError::LeaseLost { .. })
    ));
    let crawls = overview(
        std::slice::from_ref(&served.url),
        &PasswordSources::default(),
        Some(&crawl),
    )
    .unwrap();
    assert_eq!((crawls[0].buckets_to_reopen, crawls[0].pending), (1, 1));
    let second = open(&served, &options(&crawl, "w1"));
    second.take_links(99).unwrap();
    assert_eq!((second.counts().pending, second.counts().fetched), (2, 0));
    let crawls = overview(
        std::slice::from_ref(&served.url),
        &PasswordSources::default(),
        Some(&crawl),
    )
    .unwrap();
    assert_eq!((crawls[0].buckets_to_reopen, crawls[0].pending), (0, 2));
}

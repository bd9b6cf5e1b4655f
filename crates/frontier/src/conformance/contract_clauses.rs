//! Checks of the contract that every [`Frontier`] has to meet, one function per clause. Each check
//! gets a new frontier.

use std::ops::ControlFlow;

use crawl_weburl::HostKey;

use super::helpers::{
    admit, deferred, drain, excluded, lease, link, order, origin, settle, settle_until, url,
    visit_due,
};
use super::{MemoryFrontierHarness, RestartableFrontier};
use crate::{
    AdmissionResult, Frontier, FrontierError, KnownState, LastVisit, LeaseOutcome,
    NotFetchedReason, Reason, UnsettledUrl, UrlCounts, UrlKind, UrlToAdmit,
};

/// A clause's name and its check.
pub(super) type ContractClause = (&'static str, fn(&mut dyn RestartableFrontier));

macro_rules! clauses {
    ($(fn $name:ident($bench:ident) $body:block)*) => {
        pub(super) const CLAUSES: &[ContractClause] = &[$((stringify!($name), $name)),*];
        $(fn $name($bench: &mut dyn RestartableFrontier) $body)*
    };
}

clauses! {
    fn an_empty_frontier_knows_nothing(bench) {
        let frontier = bench.frontier();
        assert_eq!(frontier.counts(), UrlCounts::default());
        assert_eq!(frontier.origins(), []);
        assert!(frontier.lease(&origin()).unwrap().is_none());
        assert!(frontier.known(&url("/")).unwrap().is_none());
        assert!(frontier.robots(&origin()).unwrap().is_none());
        assert!(frontier.meta("x").unwrap().is_none());
        assert!(frontier.marks().unwrap().is_empty());
        assert!(frontier.begin().unwrap().commit().unwrap().origins.is_empty());
    }

    fn a_lease_has_the_number_of_the_last_commit(bench) {
        admit(bench.frontier(), [UrlToAdmit::seed(url("/")), link("/a", 1), link("/b", 1)]);
        assert_eq!(lease(bench.frontier()).after, 0);
        let mut transaction = bench.frontier().begin().unwrap();
        transaction.number(7);
        transaction.commit().unwrap();
        admit(bench.frontier(), [link("/c", 1)]);
        assert_eq!(lease(bench.frontier()).after, 7);
        bench.die();
        assert_eq!(lease(bench.frontier()).after, 0);
    }

    fn a_url_walks_from_admitted_to_settled(bench) {
        let committed = admit(bench.frontier(), [UrlToAdmit::seed(url("/")), link("/a", 1)]);
        assert_eq!(committed.origins, [(origin(), 2)]);
        let first = lease(bench.frontier());
        assert_eq!((first.url.path(), first.depth, first.attempt), ("/", 0, 1));
        assert!(first.is_seed && first.via.is_none());
        let frontier = bench.frontier();
        assert_eq!((frontier.counts().leased, frontier.counts().pending), (1, 1));
        assert_eq!(frontier.pending(&origin()), 1);
        let record = frontier.known(&url("/")).unwrap().unwrap();
        assert_eq!(record.state, KnownState::Leased { attempt: 1 });
        settle(frontier, first, LeaseOutcome::Fetched { status: 200 });
        let record = frontier.known(&url("/")).unwrap().unwrap();
        assert_eq!(record.state, KnownState::Fetched { status: 200 });
        let record = frontier.known(&url("/a")).unwrap().unwrap();
        assert_eq!(record.state, KnownState::Pending { attempt: 1 });
        assert_eq!((record.depth, record.via), (1, Some(url("/"))));
        let counts = UrlCounts { known: 2, pending: 1, fetched: 1, ..UrlCounts::default() };
        assert_eq!(frontier.counts(), counts);
    }

    fn each_outcome_has_its_state(bench) {
        let frontier = bench.frontier();
        admit(frontier, [link("/a", 0), link("/b", 0)]);
        settle(frontier, lease(frontier), LeaseOutcome::Failed { why: "reset".into() });
        let robots = NotFetchedReason {
            reason: Reason::Robots,
            rule: Some("Disallow: /b".into()),
            line: Some(7),
        };
        settle(frontier, lease(frontier), LeaseOutcome::Excluded(robots.clone()));
        bench.die();
        let state = |path| bench.frontier().known(&url(path)).unwrap().unwrap().state;
        assert_eq!(state("/a"), KnownState::Failed { why: "reset".into() });
        assert_eq!(state("/b"), KnownState::Excluded(robots));
        let counts = UrlCounts { known: 2, failed: 1, excluded: 1, ..UrlCounts::default() };
        assert_eq!(bench.frontier().counts(), counts);
        assert_eq!(bench.frontier().origins(), []);
    }

    fn only_links_that_would_change_nothing_are_left_out(bench) {
        let frontier = bench.frontier();
        admit(frontier, [link("/settled", 0), link("/leased", 1), link("/waits", 3)]);
        settle(frontier, lease(frontier), LeaseOutcome::Fetched { status: 200 });
        let leased = lease(frontier);
        admit(frontier, [deferred("/aside", 3, Reason::Depth)]);
        let seed = UrlToAdmit { is_seed: true, ..link("/waits", 4) };
        let first = UrlToAdmit { priority: 9, ..link("/waits", 4) };
        let sitemap = UrlToAdmit { kind: UrlKind::Sitemap, ..link("/waits", 4) };
        for (link, may_be_left_out) in [
            (link("/new", 1), false),
            (excluded("/new", 1), false),
            (link("/settled", 0), true),
            (excluded("/settled", 0), true),
            (link("/leased", 1), true),
            (link("/waits", 3), true),
            (link("/waits", 2), false),
            (deferred("/waits", 2, Reason::Nofollow), true),
            (excluded("/waits", 2), true),
            (seed, false),
            (first, false),
            (sitemap, false),
            (link("/aside", 9), false),
            (deferred("/aside", 3, Reason::Nofollow), true),
            (deferred("/aside", 2, Reason::Nofollow), false),
        ] {
            let (mut links, mut settled) = (vec![link.clone()], Vec::new());
            frontier.drop_known(&mut links, &mut |url| settled.push(url.clone()));
            assert!(links == [link.clone()] || may_be_left_out && links.is_empty(), "{link:?}");
            assert!(settled.iter().all(|found| *found == url("/settled")), "{link:?}");
        }
        frontier.release(leased);
    }

    fn reopenings_are_counted(bench) {
        let frontier = bench.frontier();
        admit(frontier, [link("/a", 0)]);
        settle_until(frontier, lease(frontier), 5, 7);
        let before = frontier.reopenings();
        assert_eq!(visit_due(frontier, 6, 9), 0);
        admit(frontier, [link("/a", 0), link("/b", 0)]);
        assert_eq!(frontier.reopenings(), before);
        assert_eq!(visit_due(frontier, 7, 9), 1);
        assert_eq!(frontier.reopenings(), before + 1);
    }

    fn a_lease_may_be_put_aside(bench) {
        let far = UrlToAdmit { priority: 9, ..link("/a", 3) };
        admit(bench.frontier(), [far, link("/b", 1)]);
        let trap = NotFetchedReason { rule: Some("calendar".into()), ..NotFetchedReason::of(Reason::Trap) };
        settle(bench.frontier(), lease(bench.frontier()), LeaseOutcome::Deferred(trap.clone()));
        bench.die();
        let record = bench.frontier().known(&url("/a")).unwrap().unwrap();
        assert_eq!((record.state, record.depth), (KnownState::Deferred(trap.clone()), 3));
        assert_eq!(record.via, Some(url("/")));
        let counts = UrlCounts { known: 2, pending: 1, deferred: 1, ..UrlCounts::default() };
        assert_eq!(bench.frontier().counts(), counts);
        assert_eq!(order(bench.frontier()), "/b");
        let later = UrlToAdmit { priority: 200, ..link("/a", 3) };
        admit(bench.frontier(), [later]);
        assert_eq!(order(bench.frontier()), "/b /a");
        // A URL deferred and revived in one transaction is queued last.
        let first = lease(bench.frontier());
        let mut transaction = bench.frontier().begin().unwrap();
        transaction.settle(first, LeaseOutcome::Deferred(trap)).unwrap();
        let last = UrlToAdmit { priority: 201, ..link("/b", 1) };
        assert_eq!(transaction.admit(last).unwrap(), AdmissionResult::Revived);
        transaction.commit().unwrap();
        bench.die();
        assert_eq!(order(bench.frontier()), "/a /b");
    }

    fn a_url_is_admitted_once(bench) {
        let mut transaction = bench.frontier().begin().unwrap();
        assert_eq!(transaction.admit(link("/a", 1)).unwrap(), AdmissionResult::New);
        assert_eq!(transaction.admit(link("/a", 1)).unwrap(), AdmissionResult::Known);
        transaction.commit().unwrap();
        let mut transaction = bench.frontier().begin().unwrap();
        let admitted = transaction.admit_all(&[link("/b", 1), link("/a", 1), link("/b", 1)]);
        assert_eq!(admitted.unwrap(), [AdmissionResult::New, AdmissionResult::Known, AdmissionResult::Known]);
        transaction.commit().unwrap();
        assert_eq!(order(bench.frontier()), "/a /b");
        settle(bench.frontier(), lease(bench.frontier()), LeaseOutcome::Fetched { status: 404 });
        let mut transaction = bench.frontier().begin().unwrap();
        assert_eq!(transaction.admit(link("/a", 0)).unwrap(), AdmissionResult::Known);
        transaction.commit().unwrap();
        assert_eq!(order(bench.frontier()), "/b");
    }

    fn a_dropped_transaction_has_no_effect(bench) {
        admit(bench.frontier(), [link("/a", 1), link("/b", 1)]);
        let held = lease(bench.frontier());
        let mut transaction = bench.frontier().begin().unwrap();
        transaction.settle(held, LeaseOutcome::Fetched { status: 200 }).unwrap();
        transaction.admit(link("/c", 1)).unwrap();
        transaction.admit(link("/b", 0)).unwrap();
        transaction.mark("pages.jsonl", 7);
        transaction.keep_meta("x", b"y");
        drop(transaction);
        for _ in 0..2 {
            assert_eq!(order(bench.frontier()), "/a /b");
            assert_eq!(bench.frontier().counts().known, 2);
            assert!(bench.frontier().known(&url("/c")).unwrap().is_none());
            assert!(bench.frontier().marks().unwrap().is_empty());
            assert!(bench.frontier().meta("x").unwrap().is_none());
            bench.die();
        }
    }

    fn nobody_sees_an_open_transaction(bench) {
        let frontier = bench.frontier();
        let mut transaction = frontier.begin().unwrap();
        transaction.admit(link("/a", 1)).unwrap();
        assert!(frontier.lease(&origin()).unwrap().is_none());
        assert_eq!(frontier.counts().known, 0);
        assert!(frontier.known(&url("/a")).unwrap().is_none());
        assert_eq!(transaction.commit().unwrap().origins, [(origin(), 1)]);
        assert_eq!(order(frontier), "/a");
    }

    fn a_visit_that_is_due_is_pending_again(bench) {
        let seed = UrlToAdmit { kind: UrlKind::Sitemap, ..UrlToAdmit::seed(url("/")) };
        admit(bench.frontier(), [seed, link("/a", 2), link("/b", 1)]);
        for (at, due) in [(10, 100), (11, 50), (12, 101)] {
            settle_until(bench.frontier(), lease(bench.frontier()), at, due);
        }
        bench.die();
        let found_on = |path| bench.frontier().found_on(&url(path)).unwrap();
        assert_eq!([found_on("/"), found_on("/a"), found_on("/c")], [None, Some(url("/")), None]);
        assert_eq!(bench.frontier().next_due(0).unwrap(), Some(50));
        assert_eq!(bench.frontier().next_due(50).unwrap(), Some(100));
        assert_eq!(bench.frontier().next_due(101).unwrap(), None);
        assert_eq!(visit_due(bench.frontier(), 49, 9), 0);
        assert_eq!(order(bench.frontier()), "");
        assert_eq!(visit_due(bench.frontier(), 100, 9), 2);
        assert_eq!(visit_due(bench.frontier(), 100, 9), 0);
        bench.die();
        let frontier = bench.frontier();
        let counts = UrlCounts { known: 3, pending: 2, fetched: 1, ..UrlCounts::default() };
        assert_eq!((frontier.counts(), frontier.next_due(0).unwrap()), (counts, Some(101)));
        let first = lease(frontier);
        assert_eq!((first.url.path(), first.depth, first.attempt), ("/", 0, 1));
        assert!(first.is_seed && first.kind == UrlKind::Sitemap && first.via.is_none());
        let second = lease(frontier);
        assert_eq!((second.url.path(), second.depth, second.priority), ("/b", 1, 128));
        assert_eq!(second.via, Some(url("/")));
        assert_eq!(frontier.found_on(&second.url).unwrap(), second.via);
        // The stored visit remains until another one replaces it.
        let stored = LastVisit { at: 10, due: 100, bytes: b"/".to_vec() };
        assert_eq!(frontier.visit(&first.url).unwrap(), Some(stored));
        settle_until(frontier, first, 200, 300);
        let stored = LastVisit { at: 200, due: 300, bytes: b"/".to_vec() };
        assert_eq!(frontier.visit(&url("/")).unwrap(), Some(stored));
        settle(frontier, second, LeaseOutcome::Failed { why: "reset".into() });
        assert_eq!(visit_due(frontier, u32::MAX, 9), 2);
        assert_eq!(order(frontier), "/ /a");
    }

    fn the_longest_due_are_first(bench) {
        admit(bench.frontier(), (0..4).map(|n| link(&format!("/{n}"), 1)));
        for due in [40, 20, 30, 10] {
            settle_until(bench.frontier(), lease(bench.frontier()), 10, due);
        }
        assert_eq!(visit_due(bench.frontier(), 50, 3), 3);
        assert_eq!(order(bench.frontier()), "/3 /1 /2");
        assert_eq!(visit_due(bench.frontier(), 50, 3), 1);
        assert_eq!(order(bench.frontier()), "/3 /1 /2 /0");
        // This visit is due earlier than all previous visits.
        settle_until(bench.frontier(), lease(bench.frontier()), 50, 1);
        assert_eq!(visit_due(bench.frontier(), 50, 9), 1);
        assert_eq!(order(bench.frontier()), "/1 /2 /0 /3");
    }

    fn a_visit_that_is_due_too_late_is_pending_again(bench) {
        // Each visit is (at, due). The current time is 100, and the longest interval between two
        // visits is 10. The second and third visits are wrong: they are due after 110, but were not
        // made between 91 and 100.
        let visits = [(90, 108), (9_000, 9_008), (80, 9_000), (101, 110), (95, 9_000)];
        admit(bench.frontier(), (0..5).map(|n| link(&format!("/{n}"), 1)));
        for (at, due) in visits {
            settle_until(bench.frontier(), lease(bench.frontier()), at, due);
        }
        bench.die();
        let visit = |longest, most| {
            let mut transaction = bench.frontier().begin().unwrap();
            let count = transaction.visit_misdated(100, longest, most).unwrap();
            transaction.commit().unwrap();
            count
        };
        let longest = Some(10);
        assert_eq!([visit(longest, 1), visit(longest, 9), visit(longest, 9)], [1, 1, 0]);
        assert_eq!(order(bench.frontier()), "/2 /1");
        assert_eq!(bench.frontier().next_due(0).unwrap(), Some(108));
        // If the longest interval is unknown, the visit dated 101 is wrong too.
        assert_eq!([visit(None, 9), visit(None, 9)], [1, 0]);
        assert_eq!(order(bench.frontier()), "/2 /1 /3");
        assert_eq!(visit_due(bench.frontier(), u32::MAX, 9), 2);
    }

    fn a_visit_comes_again_as_far_off_the_scope_as_it_was(bench) {
        admit(bench.frontier(), [UrlToAdmit { hops_off: 2, ..link("/off", 3) }]);
        settle_until(bench.frontier(), lease(bench.frontier()), 10, 20);
        bench.die();
        assert_eq!(visit_due(bench.frontier(), 50, 9), 1);
        let again = lease(bench.frontier());
        assert_eq!((again.depth, again.hops_off), (3, 2));
    }

    fn one_url_is_visited_again(bench) {
        let frontier = bench.frontier();
        admit(frontier, [link("/a", 1), link("/b", 1), link("/c", 1)]);
        settle_until(frontier, lease(frontier), 10, u32::MAX);
        settle(frontier, lease(frontier), LeaseOutcome::Fetched { status: 200 });
        let mut transaction = frontier.begin().unwrap();
        assert!(!transaction.visit_again(&url("/a"), 10).unwrap());
        assert!(!transaction.visit_again(&url("/b"), u32::MAX).unwrap());
        assert!(!transaction.visit_again(&url("/c"), u32::MAX).unwrap());
        assert!(!transaction.visit_again(&url("/d"), u32::MAX).unwrap());
        assert!(transaction.visit_again(&url("/a"), 11).unwrap());
        assert!(!transaction.visit_again(&url("/a"), 11).unwrap());
        transaction.commit().unwrap();
        assert_eq!(order(frontier), "/c /a");
        assert_eq!(frontier.next_due(0).unwrap(), None);
    }

    fn a_url_settled_again_until_the_same_time_is_due_once(bench) {
        let settle_all = |frontier: &dyn Frontier, at| {
            let visit = LastVisit { at, due: 50, bytes: Vec::new() };
            let mut transaction = frontier.begin().unwrap();
            while let Some(lease) = frontier.lease(&origin()).unwrap() {
                let fetched = LeaseOutcome::Fetched { status: 200 };
                transaction.settle_until(lease, fetched, visit.clone()).unwrap();
            }
            transaction.commit().unwrap();
        };
        let visit_again = |frontier: &dyn Frontier, path: &str| {
            let mut transaction = frontier.begin().unwrap();
            assert!(transaction.visit_again(&url(path), 40).unwrap());
            transaction.commit().unwrap();
        };
        admit(bench.frontier(), [link("/a", 1), link("/b", 1), link("/c", 1)]);
        settle_all(bench.frontier(), 10);
        visit_again(bench.frontier(), "/a");
        settle_all(bench.frontier(), 20);
        bench.die();
        let frontier = bench.frontier();
        admit(frontier, [link("/d", 1)]);
        settle_all(frontier, 30);
        visit_again(frontier, "/b");
        assert_eq!(frontier.next_due(0).unwrap(), Some(50));
        assert_eq!(visit_due(frontier, 50, 1), 1);
        assert_eq!(frontier.next_due(0).unwrap(), Some(50));
        assert_eq!(visit_due(frontier, 50, 9), 2);
        assert_eq!((visit_due(frontier, 50, 9), frontier.next_due(0).unwrap()), (0, None));
        assert!(frontier.lease(&origin()).unwrap().is_some_and(|first| first.url == url("/b")));
        assert_eq!(frontier.counts().pending, 3);
    }

    fn a_visit_that_is_dropped_was_none(bench) {
        let frontier = bench.frontier();
        admit(frontier, [link("/a", 1)]);
        let visit = LastVisit { at: 1, due: 2, bytes: Vec::new() };
        let mut transaction = frontier.begin().unwrap();
        transaction.settle_until(lease(frontier), LeaseOutcome::Retry, visit.clone()).unwrap();
        assert_eq!(transaction.visit_due(9, 9).unwrap(), 0);
        transaction.commit().unwrap();
        assert_eq!(frontier.visit(&url("/a")).unwrap(), None);
        let mut transaction = frontier.begin().unwrap();
        let fetched = LeaseOutcome::Fetched { status: 200 };
        transaction.settle_until(lease(frontier), fetched, visit).unwrap();
        assert_eq!(transaction.visit_due(9, 9).unwrap(), 1);
        drop(transaction);
        assert_eq!(frontier.visit(&url("/a")).unwrap(), None);
        assert_eq!((order(frontier).as_str(), frontier.next_due(0).unwrap()), ("/a", None));
    }

    fn leases_die_and_count_no_attempt(bench) {
        admit(bench.frontier(), [link("/a", 1), link("/b", 1)]);
        let held = lease(bench.frontier());
        bench.die();
        assert_eq!(bench.frontier().counts().pending, 2);
        let again = lease(bench.frontier());
        assert_eq!((again.url.path(), again.attempt), ("/a", 1));
        drop(held);
    }

    fn a_released_lease_is_back_at_its_place(bench) {
        let frontier = bench.frontier();
        admit(frontier, (0..9).map(|n| link(&format!("/{n}"), 1)));
        let held: Vec<_> = (0..5).map(|_| lease(frontier)).collect();
        assert_eq!(order(frontier), "/5 /6 /7 /8");
        for lease in held {
            frontier.release(lease);
        }
        assert_eq!(order(frontier), "/0 /1 /2 /3 /4 /5 /6 /7 /8");
        assert_eq!(lease(frontier).attempt, 1);
    }

    fn order_is_priority_then_depth_then_admission(bench) {
        let priority = |path, depth, priority| UrlToAdmit { priority, ..link(path, depth) };
        admit(bench.frontier(), [
            link("/deep", 2),
            link("/first", 1),
            priority("/low", 0, 200),
            link("/second", 1),
            priority("/high", 9, 1),
            UrlToAdmit::seed(url("/seed")),
        ]);
        let expected = "/seed /high /first /second /deep /low";
        assert_eq!(order(bench.frontier()), expected);
        bench.die();
        assert_eq!(order(bench.frontier()), expected);
    }

    fn urls_admitted_later_take_their_place(bench) {
        let frontier = bench.frontier();
        admit(frontier, (0..9).map(|n| link(&format!("/{n}"), 5)));
        let held = lease(frontier);
        assert_eq!(held.url.path(), "/0");
        admit(frontier, [link("/late", 5), link("/near", 1)]);
        admit(frontier, [link("/nearer", 0), link("/far", 6)]);
        assert_eq!(order(frontier), "/nearer /near /1 /2 /3 /4 /5 /6 /7 /8 /late /far");
    }

    fn retries_go_behind_all_in_their_order(bench) {
        let frontier = bench.frontier();
        admit(frontier, [UrlToAdmit::seed(url("/seed")), link("/a", 1), link("/b", 9)]);
        settle(frontier, lease(frontier), LeaseOutcome::Retry);
        settle(frontier, lease(frontier), LeaseOutcome::Retry);
        admit(frontier, [link("/late", 99)]);
        assert_eq!(order(frontier), "/b /late /seed /a");
        settle(frontier, lease(frontier), LeaseOutcome::Fetched { status: 200 });
        settle(frontier, lease(frontier), LeaseOutcome::Fetched { status: 200 });
        bench.die();
        let seed = lease(bench.frontier());
        assert_eq!((seed.url.path(), seed.attempt, seed.is_seed), ("/seed", 2, true));
        settle(bench.frontier(), seed, LeaseOutcome::Retry);
        assert_eq!(order(bench.frontier()), "/a /seed");
    }

    fn the_least_depth_of_a_pending_url_counts(bench) {
        let frontier = bench.frontier();
        admit(frontier, [link("/a", 2), link("/b", 3), link("/c", 2)]);
        let nearer = UrlToAdmit { via: Some(url("/n")), ..link("/b", 1) };
        let committed = admit(frontier, [nearer, link("/a", 7)]);
        assert_eq!(committed.origins, [(origin(), 3)]);
        assert_eq!(order(frontier), "/b /a /c");
        let first = lease(frontier);
        assert_eq!((first.depth, first.via.clone()), (1, Some(url("/n"))));
        frontier.release(first);
        bench.die();
        assert_eq!(order(bench.frontier()), "/b /a /c");
        assert_eq!(bench.frontier().known(&url("/a")).unwrap().unwrap().depth, 2);
        assert_eq!(bench.frontier().counts().known, 3);
    }

    fn a_moved_url_is_not_met_again_at_its_old_place(bench) {
        let frontier = bench.frontier();
        admit(frontier, (0..9).map(|n| link(&format!("/{n}"), 5)));
        assert_eq!(order(frontier), "/0 /1 /2 /3 /4 /5 /6 /7 /8");
        admit(frontier, [link("/1", 4), link("/7", 3)]);
        admit(frontier, [link("/1", 2), link("/0", 4)]);
        assert_eq!(drain(frontier), "/1 /7 /0 /2 /3 /4 /5 /6 /8");
        assert_eq!(frontier.counts().fetched, 9);
    }

    fn fewer_redirects_count_at_the_same_depth(bench) {
        let redirected = |redirects| UrlToAdmit { redirects, ..link("/a", 1) };
        admit(bench.frontier(), [redirected(5)]);
        admit(bench.frontier(), [redirected(2), redirected(3)]);
        assert_eq!(lease(bench.frontier()).redirects, 2);
    }

    fn a_pending_url_becomes_a_seed_or_a_sitemap_when_named_so(bench) {
        admit(bench.frontier(), [link("/a", 1), link("/b", 1), link("/map", 1)]);
        admit(bench.frontier(), [
            UrlToAdmit { kind: UrlKind::Sitemap, ..link("/map", 1) },
            UrlToAdmit::seed(url("/b")),
        ]);
        assert_eq!(order(bench.frontier()), "/b /a /map");
        let seed = lease(bench.frontier());
        assert!(seed.is_seed && seed.kind == UrlKind::Page);
        let _a = lease(bench.frontier());
        assert_eq!(lease(bench.frontier()).kind, UrlKind::Sitemap);
    }

    fn a_leased_url_stays_as_it_is(bench) {
        admit(bench.frontier(), [link("/a", 3)]);
        let held = lease(bench.frontier());
        admit(bench.frontier(), [link("/a", 1)]);
        assert!(bench.frontier().lease(&origin()).unwrap().is_none());
        bench.frontier().release(held);
        assert_eq!(lease(bench.frontier()).depth, 3);
    }

    fn a_url_leased_while_it_is_moved_is_leased_once(bench) {
        let frontier = bench.frontier();
        admit(frontier, [link("/a", 3), link("/b", 3)]);
        for outcome in [Some(LeaseOutcome::Retry), None, Some(LeaseOutcome::Fetched { status: 200 })] {
            let depth = frontier.known(&url("/a")).unwrap().unwrap().depth;
            let mut transaction = frontier.begin().unwrap();
            transaction.admit(link("/a", depth - 1)).unwrap();
            let held = lease(frontier);
            transaction.commit().unwrap();
            assert_eq!(held.url.path(), "/a");
            assert_eq!(order(frontier), "/b");
            match outcome {
                Some(outcome) => settle(frontier, held, outcome),
                None => frontier.release(held),
            }
            if frontier.counts().fetched == 0 && order(frontier) == "/b /a" {
                // The retry put /a behind /b. Retry /b as well, so that /a is first again.
                settle(frontier, lease(frontier), LeaseOutcome::Retry);
            }
        }
        assert_eq!(order(frontier), "/b");
        bench.die();
        assert_eq!(order(bench.frontier()), "/b");
    }

    fn a_deferred_url_is_fetched_when_met_another_way(bench) {
        let mut transaction = bench.frontier().begin().unwrap();
        let first = transaction.admit(deferred("/a", 9, Reason::Depth));
        assert_eq!(first.unwrap(), AdmissionResult::New);
        transaction.commit().unwrap();
        assert!(bench.frontier().lease(&origin()).unwrap().is_none());
        assert_eq!(bench.frontier().counts().deferred, 1);
        bench.die();
        let mut transaction = bench.frontier().begin().unwrap();
        assert_eq!(transaction.admit(excluded("/a", 1)).unwrap(), AdmissionResult::Known);
        assert_eq!(transaction.admit(link("/a", 2)).unwrap(), AdmissionResult::Revived);
        assert_eq!(transaction.admit(link("/a", 2)).unwrap(), AdmissionResult::Known);
        assert_eq!(transaction.commit().unwrap().origins, [(origin(), 1)]);
        assert_eq!(bench.frontier().counts().deferred, 0);
        bench.die();
        assert_eq!(lease(bench.frontier()).depth, 2);
        let mut seen = 0;
        let mut visit = |_: UnsettledUrl<'_>| { seen += 1; ControlFlow::Continue(()) };
        bench.frontier().each_deferred(&mut visit).unwrap();
        assert_eq!(seen, 0);
    }

    fn the_nearest_deferral_is_kept(bench) {
        admit(bench.frontier(), [deferred("/a", 9, Reason::Depth), deferred("/a", 2, Reason::Nofollow)]);
        admit(bench.frontier(), [deferred("/a", 3, Reason::Redirects), deferred("/b", 1, Reason::Trap)]);
        bench.die();
        let mut seen = Vec::new();
        bench.frontier().each_deferred(&mut |waiting| {
            let reason = waiting.exclusion.unwrap().reason;
            seen.push((waiting.url.clone(), waiting.depth, reason, waiting.via.cloned()));
            ControlFlow::Continue(())
        }).unwrap();
        seen.sort();
        assert_eq!(seen, [
            (url("/a"), 2, Reason::Nofollow, Some(url("/"))),
            (url("/b"), 1, Reason::Trap, Some(url("/"))),
        ]);
    }

    fn an_excluded_url_is_settled(bench) {
        admit(bench.frontier(), [excluded("/a", 4)]);
        let mut transaction = bench.frontier().begin().unwrap();
        assert_eq!(transaction.admit(link("/a", 1)).unwrap(), AdmissionResult::Known);
        assert_eq!(transaction.admit(deferred("/a", 1, Reason::Depth)).unwrap(), AdmissionResult::Known);
        transaction.commit().unwrap();
        assert!(bench.frontier().lease(&origin()).unwrap().is_none());
        let record = bench.frontier().known(&url("/a")).unwrap().unwrap();
        assert_eq!(record.state, KnownState::Excluded(NotFetchedReason::of(Reason::Scope)));
        assert_eq!((record.depth, record.via), (4, None));
    }

    fn an_excluded_url_without_a_visit_is_readmitted(bench) {
        admit(bench.frontier(), [excluded("/a", 4), excluded("/deep", 4), link("/visited", 1)]);
        let held = lease(bench.frontier());
        let mut transaction = bench.frontier().begin().unwrap();
        let visit = LastVisit { at: 10, due: 20, bytes: Vec::new() };
        let by_scope = LeaseOutcome::Excluded(NotFetchedReason::of(Reason::Scope));
        transaction.settle_until(held, by_scope, visit).unwrap();
        assert!(!transaction.readmit(link("/visited", 1)).unwrap());
        transaction.commit().unwrap();
        bench.die();
        let before = bench.frontier().reopenings();
        let mut transaction = bench.frontier().begin().unwrap();
        assert!(transaction.readmit(link("/a", 2)).unwrap());
        assert!(!transaction.readmit(link("/a", 1)).unwrap());
        assert!(transaction.readmit(deferred("/deep", 4, Reason::Depth)).unwrap());
        assert!(!transaction.readmit(link("/deep", 4)).unwrap());
        assert!(!transaction.readmit(link("/visited", 1)).unwrap());
        assert!(!transaction.readmit(link("/unknown", 1)).unwrap());
        assert_eq!(transaction.commit().unwrap().origins, [(origin(), 1)]);
        assert_eq!(bench.frontier().reopenings(), before + 1);
        assert_eq!(visit_due(bench.frontier(), 20, 9), 1);
        bench.die();
        let counts = bench.frontier().counts();
        assert_eq!((counts.pending, counts.deferred, counts.excluded, counts.known), (2, 1, 0, 3));
        assert_eq!(order(bench.frontier()), "/visited /a");
        let _visited = lease(bench.frontier());
        let readmitted = lease(bench.frontier());
        assert_eq!((readmitted.depth, readmitted.attempt), (2, 1));
        settle(bench.frontier(), readmitted, LeaseOutcome::Fetched { status: 200 });
        let mut transaction = bench.frontier().begin().unwrap();
        assert!(!transaction.readmit(link("/a", 1)).unwrap());
    }

    fn a_settled_lease_and_its_links_share_a_transaction(bench) {
        let frontier = bench.frontier();
        admit(frontier, [link("/a", 0)]);
        let held = lease(frontier);
        let mut transaction = frontier.begin().unwrap();
        transaction.settle(held, LeaseOutcome::Retry).unwrap();
        // The transaction sees /a as pending again. Admitting /a as a link doesn't change its
        // place.
        transaction.admit(link("/b", 1)).unwrap();
        assert_eq!(transaction.admit(link("/a", 0)).unwrap(), AdmissionResult::Known);
        assert_eq!(transaction.commit().unwrap().origins, [(origin(), 2)]);
        assert_eq!(order(frontier), "/b /a");
    }

    fn a_lease_of_another_frontier_is_refused(bench) {
        let other_frontier = MemoryFrontierHarness::default();
        admit(other_frontier.frontier(), [link("/a", 0)]);
        admit(bench.frontier(), [link("/a", 0)]);
        let foreign = lease(other_frontier.frontier());
        let mut transaction = bench.frontier().begin().unwrap();
        let refused = transaction.settle(foreign, LeaseOutcome::Fetched { status: 200 });
        assert!(matches!(refused, Err(FrontierError::NotLeased { url: refused }) if refused == url("/a")));
        transaction.commit().unwrap();
        assert_eq!(order(bench.frontier()), "/a");
    }

    fn origins_have_queues_of_their_own(bench) {
        let texts = ["http://a.example/", "https://a.example/", "http://a.example:81/"];
        let mut origins: Vec<_> = texts.iter().map(|text| url(text).origin()).collect();
        for text in texts {
            admit(bench.frontier(), [UrlToAdmit::seed(url(text)), link(&format!("{text}x"), 1)]);
        }
        origins.sort();
        let expected: Vec<_> = origins.iter().map(|origin| (origin.clone(), 2)).collect();
        assert_eq!(bench.frontier().origins(), expected);
        bench.die();
        assert_eq!(bench.frontier().origins(), expected);
        let first = lease(bench.frontier());
        assert_eq!((&first.origin, first.url.as_str()), (&origin(), "http://a.example/"));
        assert_eq!(bench.frontier().pending(&origins[2]), 2);
    }

    fn pending_urls_are_shown_in_their_order_without_leased_ones(bench) {
        admit(bench.frontier(), [link("/c", 1), link("/a", 1), link("/b", 0), link("//b.example/", 1)]);
        let _held = lease(bench.frontier());
        let mut seen = Vec::new();
        bench.frontier().each_pending(&mut |waiting| {
            seen.push((waiting.url.to_string(), waiting.depth));
            if seen.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }).unwrap();
        assert_eq!(seen, [("http://a.example/c".into(), 1), ("http://a.example/a".into(), 1)]);
        let mut count = 0;
        bench.frontier().each_pending(&mut |_| { count += 1; ControlFlow::Continue(()) }).unwrap();
        assert_eq!(count, 3);
    }

    fn stored_bytes_are_returned_unchanged(bench) {
        let host = HostKey::parse("a.example").unwrap();
        let loopback = HostKey::parse("127.0.0.1:8080").unwrap();
        let mut transaction = bench.frontier().begin().unwrap();
        transaction.keep_host(&host, 1, b"old");
        transaction.keep_host(&host, u64::MAX, b"\0\xff");
        transaction.keep_host(&loopback, 2, b"");
        transaction.keep_robots(&origin(), b"robots");
        transaction.mark("pages.jsonl", 7);
        transaction.mark("archive/1.warc.gz", 9);
        transaction.keep_meta("", b"empty name");
        transaction.keep_meta("layout", b"mine");
        transaction.commit().unwrap();
        let mut transaction = bench.frontier().begin().unwrap();
        transaction.mark("pages.jsonl", 8);
        transaction.commit().unwrap();
        for _ in 0..2 {
            let frontier = bench.frontier();
            assert_eq!(frontier.host(&host).unwrap(), Some((u64::MAX, b"\0\xff".to_vec())));
            assert_eq!(frontier.hosts().unwrap(), [
                (loopback.clone(), 2, vec![]),
                (host.clone(), u64::MAX, b"\0\xff".to_vec()),
            ]);
            assert_eq!(frontier.robots(&origin()).unwrap().unwrap(), b"robots");
            let marks: Vec<_> = frontier.marks().unwrap().into_iter().collect();
            assert_eq!(marks, [("archive/1.warc.gz".into(), 9), ("pages.jsonl".into(), 8)]);
            assert_eq!(frontier.meta("").unwrap().unwrap(), b"empty name");
            assert_eq!(frontier.meta("layout").unwrap().unwrap(), b"mine");
            bench.die();
        }
    }

    fn long_texts_are_cut(bench) {
        admit(bench.frontier(), [link("/a", 0)]);
        let text = "w".repeat(5000);
        settle(bench.frontier(), lease(bench.frontier()), LeaseOutcome::Failed { why: text });
        let record = bench.frontier().known(&url("/a")).unwrap().unwrap();
        assert_eq!(record.state, KnownState::Failed { why: "w".repeat(1024) });
    }
}

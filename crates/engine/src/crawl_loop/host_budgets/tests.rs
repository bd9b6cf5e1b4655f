use std::iter::once;
use std::sync::Arc;
use std::time::Duration;

use crawl_scheduler::Tick;
use crawl_weburl::{HostKey, HostPatternMap, Origin, canonicalize};

use super::HostBudgetTracker;
use crate::config::{CrawlBudgets, HostBudget, HostGroupBudget};
use crate::summary::EndReason;

const SECOND: Duration = Duration::from_secs(1);

fn origin(text: &str) -> Origin {
    canonicalize(None, text).unwrap().origin()
}

fn at(seconds: u64) -> Tick {
    Tick::from_micros(seconds * 1_000_000)
}

fn budgets(per_host: HostBudget) -> HostBudgetTracker {
    let budgets = CrawlBudgets {
        per_host,
        ..CrawlBudgets::default()
    };
    HostBudgetTracker::new(&budgets)
}

fn two_pages() -> HostBudget {
    HostBudget {
        max_pages: Some(2),
        ..HostBudget::default()
    }
}

#[test]
fn each_budget_of_a_host_is_spent_when_it_is_reached() {
    let host = origin("http://a.example/").host_key();
    let none = HostBudget::default();
    for (budget, name) in [
        (two_pages(), "max-pages-per-host"),
        (
            HostBudget {
                max_bytes: Some(2_000),
                ..none
            },
            "max-bytes-per-host",
        ),
        (
            HostBudget {
                max_server_time: Some(2 * SECOND),
                ..none
            },
            "max-server-time-per-host",
        ),
        (
            HostBudget {
                max_time: Some(2 * SECOND),
                ..none
            },
            "max-time-per-host",
        ),
    ] {
        let mut budgets = budgets(budget);
        assert!(budgets.limit_hosts(), "{name}");
        // Each second, fetch a page of 1,000 bytes, which takes one second of server time.
        for page in 0..2 {
            assert!(!budgets.is_full(at(10 + page), &host), "{name}");
            assert_eq!(budgets.spent(), None, "{name}");
            budgets.request_ended(&host, at(10 + page), SECOND);
            budgets.settled(&host, 1_000);
        }
        assert!(budgets.is_full(at(12), &host), "{name}");
        assert_eq!(budgets.spent(), Some(EndReason::Budget(name)));
        assert_eq!(budgets.served(), 2 * SECOND);
        assert_eq!(budgets.served_micros(), (2_000_000, 2_000_000));
    }
    assert!(!budgets(none).limit_hosts());
}

#[test]
fn leases_fill_a_host_until_they_end() {
    let mut budgets = budgets(two_pages());
    let [http, https] = ["http://a.example/", "https://a.example/"].map(origin);
    let host = http.host_key();
    // The host has no lease whose end could make room.
    budgets.turn_away(&http);
    assert_eq!(budgets.lease_ended(&host), Vec::new());
    budgets.leased(&host);
    assert!(!budgets.is_full(at(0), &host));
    budgets.leased(&host);
    assert!(budgets.is_full(at(0), &host));
    assert_eq!((budgets.leases(&host), budgets.spent()), (2, None));
    for origin in [&http, &http, &https] {
        budgets.turn_away(origin);
    }
    assert_eq!(budgets.lease_ended(&host), [http, https]);
    assert_eq!(budgets.lease_ended(&host), Vec::new());
    assert_eq!(budgets.leases(&host), 0);
    assert!(!budgets.is_full(at(0), &host));
}

#[test]
fn an_account_outlives_its_run_but_not_its_round() {
    let host = origin("http://a.example/").host_key();
    let in_round = |round: u32| {
        let mut budgets = budgets(two_pages());
        budgets.enter_round(round);
        budgets
    };
    let mut before = in_round(2);
    before.request_ended(&host, at(1), 3 * SECOND);
    before.settled(&host, 500);
    let mut stored = before.stored(&host).to_vec();
    stored.extend(b"politeness");

    let mut after = in_round(2);
    assert_eq!(after.politeness(&stored), b"politeness");
    assert_eq!(after.restore(&host, &stored), b"politeness");
    assert_eq!(after.stored(&host), before.stored(&host));
    after.share(once((host.clone(), stored.clone())));
    after.request_ended(&host, at(9), SECOND);
    assert_eq!(after.served_micros(), (4_000_000, 1_000_000));
    // Restoring older stored spending doesn't lower what this run has counted.
    after.settled(&host, 0);
    assert_eq!(after.restore(&host, &stored), b"politeness");
    assert!(after.is_full(at(9), &host));
    assert_eq!(after.restore(&host, b"torn"), b"");

    let mut next = in_round(3);
    assert_eq!(next.restore(&host, &stored), b"politeness");
    assert!(next.stored(&host)[8..].iter().all(|byte| *byte == 0));
    next.share(once((host.clone(), stored.clone())));
    assert_eq!(next.served(), Duration::ZERO);
}

#[test]
fn only_urls_within_the_budgets_of_their_hosts_count() {
    let budgets = CrawlBudgets {
        per_host: HostBudget {
            max_pages: Some(10),
            ..HostBudget::default()
        },
        ..CrawlBudgets::default()
    };
    let mut host_budgets = HostBudgetTracker::new(&budgets);
    let [http, https] = ["http://a.example/", "https://a.example/"].map(origin);
    let [fresh, full] = ["http://b.example/", "http://c.example/"].map(origin);
    // Four pages and one lease leave room for five more pages of the host, over both schemes.
    for _ in 0..4 {
        host_budgets.settled(&http.host_key(), 0);
    }
    host_budgets.leased(&http.host_key());
    for _ in 0..10 {
        host_budgets.settled(&full.host_key(), 0);
    }
    assert!(host_budgets.is_full(Tick::from_micros(0), &full.host_key()));
    let waiting = vec![(http, 100), (https, 3), (fresh, 2), (full, 50)];
    assert_eq!(host_budgets.with_room(waiting), 5 + 2);
}

/// Creates the budgets of group `g` with `a.example` and `b.example`: at most three pages in all,
/// and two per host.
fn grouped() -> HostBudgetTracker {
    let group = Arc::new(HostGroupBudget {
        name: "g".to_owned(),
        max_pages: Some(3),
        ..HostGroupBudget::default()
    });
    let mut groups = HostPatternMap::default();
    for host in ["a.example", "b.example"] {
        groups.insert(host, Arc::clone(&group)).unwrap();
    }
    let budgets = CrawlBudgets {
        per_host: two_pages(),
        groups,
        ..CrawlBudgets::default()
    };
    HostBudgetTracker::new(&budgets)
}

#[test]
fn a_group_counts_spending_of_earlier_runs() {
    let [a, b] = ["http://a.example/", "http://b.example/"].map(origin);
    let mut before = grouped();
    assert!(before.are_shared() && before.limit_hosts());
    for host in [&a, &a, &b] {
        before.settled(&host.host_key(), 0);
    }
    let mut after = grouped();
    for host in [&a, &b] {
        let host = host.host_key();
        after.share(once((host.clone(), before.stored(&host).to_vec())));
        // Restoring a host a second time doesn't count its pages twice.
        after.restore(&host, &before.stored(&host));
    }
    for mut budgets in [before, after] {
        for (host, spent) in [(&a, "max-pages-per-host"), (&b, "max-pages of group g")] {
            let host = host.host_key();
            assert!(budgets.is_full(at(9), &host));
            assert_eq!(budgets.spent_by(&host).as_deref(), Some(spent));
        }
        // Once a page of `a.example` is pending again, the group has room for a page of
        // `b.example`.
        budgets.unsettled(&a.host_key(), 0);
        assert!(!budgets.is_full(at(9), &b.host_key()));
    }
}

#[test]
fn a_spent_group_ends_the_crawl() {
    let [a, b, c] = [
        "http://a.example/",
        "http://b.example/",
        "http://c.example/",
    ]
    .map(origin);
    let mut budgets = grouped();
    let waiting = vec![(a.clone(), 9), (b.clone(), 9), (c, 9)];
    assert_eq!(budgets.with_room(waiting.clone()), 3 + 2);
    budgets.settled(&a.host_key(), 0);
    budgets.settled(&b.host_key(), 0);
    assert_eq!(budgets.with_room(waiting.clone()), 1 + 2);
    budgets.leased(&a.host_key());
    assert!(budgets.is_full(at(9), &b.host_key()));
    budgets.turn_away(&b);
    assert_eq!(
        (budgets.spent(), budgets.spent_by(&b.host_key())),
        (None, None)
    );
    assert_eq!(budgets.lease_ended(&a.host_key()), []);
    assert_eq!(budgets.with_room_again(&a.host_key()), [b.clone()].into());
    budgets.settled(&b.host_key(), 0);
    assert_eq!(budgets.with_room(waiting), 2);
    let ended = EndReason::TableBudget("max-pages of group g".to_owned());
    assert_eq!(budgets.spent(), Some(ended));
}

#[test]
fn the_budget_of_a_site_overrides_that_of_every_host() {
    let only_b = |budget| {
        let mut table = HostPatternMap::default();
        table.insert("b.example", budget).unwrap();
        table
    };
    let own = HostBudget {
        max_pages: Some(1),
        ..HostBudget::default()
    };
    let usual = HostBudget {
        max_pages: Some(3),
        max_bytes: Some(2_000),
        max_server_time: Some(20 * SECOND),
        max_time: Some(30 * SECOND),
    };
    let own_bytes = HostBudget {
        max_bytes: Some(9_000),
        max_server_time: Some(9 * SECOND),
        max_time: Some(90 * SECOND),
        ..HostBudget::default()
    };
    // Each page has 100 bytes and takes one second.
    let pages_of_b = r#"max-pages of [site."b.example"]"#;
    let time_of_b = r#"max-server-time of [site."b.example"]"#;
    for (of_site, host, most, name) in [
        (own, "b.example", 1, pages_of_b),
        (own, "a.example", 3, "max-pages-per-host"),
        (own_bytes, "b.example", 3, "max-pages-per-host"),
        (
            HostBudget {
                max_pages: Some(50),
                ..own_bytes
            },
            "b.example",
            9,
            time_of_b,
        ),
    ] {
        let budgets = CrawlBudgets {
            per_host: usual,
            per_site: only_b(of_site),
            ..CrawlBudgets::default()
        };
        let mut budgets = HostBudgetTracker::new(&budgets);
        let host = HostKey::parse(host).unwrap();
        let mut pages = 0;
        while !budgets.is_full(at(10), &host) {
            pages += 1;
            budgets.request_ended(&host, at(10), SECOND);
            budgets.settled(&host, 100);
        }
        assert_eq!(pages, most, "{host} {of_site:?}");
        assert_eq!(budgets.spent_by(&host).as_deref(), Some(name));
        // `EndReason::Budget` names a command-line option, which a `[site]` table's budget lacks.
        assert_eq!(
            matches!(budgets.spent(), Some(EndReason::Budget(_))),
            name == "max-pages-per-host"
        );
    }
    let of_sites = CrawlBudgets {
        per_site: only_b(own),
        ..CrawlBudgets::default()
    };
    assert!(HostBudgetTracker::new(&of_sites).limit_hosts());
}

#[test]
fn spending_is_forgotten_if_no_host_has_a_budget() {
    let host = origin("http://a.example/").host_key();
    for (budget, is_kept) in [(two_pages(), true), (HostBudget::default(), false)] {
        let mut budgets = budgets(budget);
        budgets.settled(&host, 0);
        budgets.settled(&host, 0);
        budgets.unsettled(&host, 0);
        let before = budgets.stored(&host);
        assert_eq!(before[8], 1, "one page");
        budgets.forget(&host);
        assert_eq!(budgets.stored(&host) == before, is_kept);
    }
}

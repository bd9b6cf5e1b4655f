//! Tests of several workers on one database server, and of workers that are restarted.

use std::sync::Arc;
use std::time::Duration;

use crawl_frontier::conformance::helpers::{
    admit, deferred, excluded, lease, link, order, origin, settle, url,
};
use crawl_frontier::worker_frontier::{SharedFrontierError, WorkerFrontier as _};
use crawl_frontier::{Frontier as _, FrontierError, LeaseOutcome, Reason, UrlToAdmit};
use crawl_shared_frontier::{SharedCrawlError, SharedFrontier, SharedFrontierOptions};

use crate::crash_harness::{end_leases, new_crawl, options};
use crate::faulty_proxy::{Cut, Proxy};
use crate::postgres_server::{Postgres, Served, Setup, execute, number};

const FETCHED: LeaseOutcome = LeaseOutcome::Fetched { status: 200 };

fn open(served: &Served, options: &SharedFrontierOptions) -> SharedFrontier {
    SharedFrontier::open(&served.url, options).unwrap()
}

/// Returns the error of opening, with its causes.
fn refusal(url: &str, options: &SharedFrontierOptions) -> String {
    let refused = SharedFrontier::open(url, options).err().unwrap();
    let mut text = refused.to_string();
    let mut source = std::error::Error::source(&refused);
    while let Some(why) = source {
        text += &format!(": {why}");
        source = why.source();
    }
    text
}

fn is_lost(why: &FrontierError) -> bool {
    matches!(
        why,
        FrontierError::Shared(SharedFrontierError::LeaseLost { .. })
    )
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_commit_of_a_worker_that_lost_its_buckets_has_no_effect() {
    let (served, crawl) = (Served::new(), new_crawl());
    let first = open(&served, &options(&crawl, "w1"));
    admit(&first, [link("/a", 1), link("/b", 1)]);
    let held = lease(&first);
    let mut transaction = first.begin().unwrap();
    transaction.settle(held, FETCHED).unwrap();
    transaction.admit(link("/c", 1)).unwrap();
    transaction.mark("pages.jsonl", 7);
    // Simulate a frozen process: another worker takes its buckets over.
    end_leases(&served.url, &crawl);
    let second = open(&served, &options(&crawl, "w2"));
    let refused = transaction.commit().unwrap_err();
    assert!(is_lost(&refused), "{refused}");
    assert!(is_lost(&first.begin().err().unwrap()));
    assert!(is_lost(&first.lease(&url("/").origin()).unwrap_err()));
    assert_eq!(order(&second), "/a /b");
    assert!(first.marks().unwrap().is_empty());
    assert_eq!((second.counts().known, second.counts().pending), (2, 2));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn another_life_under_the_same_name_has_the_commits_to_itself() {
    let (served, crawl) = (Served::new(), new_crawl());
    let first = open(&served, &options(&crawl, "w1"));
    // A commit that changes no bucket is fenced too.
    let mut transaction = first.begin().unwrap();
    transaction.mark("pages.jsonl", 7);
    end_leases(&served.url, &crawl);
    let second = open(&served, &options(&crawl, "w1"));
    assert!(is_lost(&transaction.commit().unwrap_err()));
    assert!(second.marks().unwrap().is_empty());
    admit(&second, [link("/a", 1)]);
    assert_eq!(order(&second), "/a");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_heartbeat_renews_held_leases_and_no_expired_ones() {
    let (served, crawl) = (Served::new(), new_crawl());
    let frontier = open(&served, &options(&crawl, "w1"));
    assert_eq!(frontier.buckets(), 4);
    let until = || {
        let text = format!(
            "SELECT min((extract(epoch FROM k.lease_until) * 1000)::bigint)
            FROM crawl_frontier.bucket k JOIN crawl_frontier.crawl c ON c.number = k.crawl
            WHERE c.name = '{crawl}'"
        );
        number(&served.url, &text)
    };
    let before = until();
    frontier.renew().unwrap();
    assert!(until() > before);
    assert!(frontier.held_for() > Duration::from_secs(3600));
    end_leases(&served.url, &crawl);
    frontier.renew().unwrap();
    assert!(is_lost(&frontier.begin().err().unwrap()));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_name_is_used_once_at_a_time() {
    let (served, crawl) = (Served::new(), new_crawl());
    let first = open(&served, &options(&crawl, "w1"));
    let refused = SharedFrontier::open(&served.url, &options(&crawl, "w1"));
    assert!(matches!(refused, Err(SharedCrawlError::WorkerInUse { .. })));
    // Another worker's name is free, but all buckets are owned.
    let second = open(&served, &options(&crawl, "w2"));
    assert_eq!(second.buckets(), 0);
    // Once no other worker is alive, a new process gets all buckets.
    second.give_up().unwrap();
    first.give_up().unwrap();
    assert!(is_lost(&first.begin().err().unwrap()));
    assert_eq!(open(&served, &options(&crawl, "w1")).buckets(), 4);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn crawls_of_one_database_server_are_independent() {
    let served = Served::new();
    let one = open(&served, &options(&new_crawl(), "w1"));
    let other_crawl = open(&served, &options(&new_crawl(), "w1"));
    admit(&one, [link("/a", 1)]);
    assert!(other_crawl.known(&url("/a")).unwrap().is_none());
    admit(&other_crawl, [link("/b", 1)]);
    assert_eq!(
        (order(&one).as_str(), order(&other_crawl).as_str()),
        ("/a", "/b")
    );
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_connection_that_is_cut_is_made_again() {
    let (served, crawl) = (Served::new(), new_crawl());
    // The test uses a separate database, so that no other test's connections are cut.
    execute(&served.url, "CREATE DATABASE cut");
    let proxy = Proxy::before(served.port);
    let at = proxy.url(&served).replace("/postgres", "/cut");
    let frontier = SharedFrontier::open(&at, &options(&crawl, "w1")).unwrap();
    let cut = || {
        execute(
            &served.url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'cut'",
        );
    };
    admit(&frontier, [link("/a", 1), link("/b", 1)]);
    cut();
    settle(&frontier, lease(&frontier), FETCHED);
    cut();
    assert!(frontier.known(&url("/a")).unwrap().is_some());
    assert_eq!(order(&frontier), "/b");
    assert_eq!(frontier.counts().fetched, 1);
    // A database server that restarts refuses connections for a while.
    cut();
    proxy.refuse(3);
    assert!(frontier.known(&url("/b")).unwrap().is_some());
    assert_eq!(proxy.left_to_refuse(), 0);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_commit_that_is_cut_in_the_middle_takes_effect_once() {
    let (served, crawl) = (Served::new(), new_crawl());
    let proxy = Proxy::before(served.port);
    let at = proxy.url(&served);
    let frontier = SharedFrontier::open(&at, &options(&crawl, "w1")).unwrap();
    admit(&frontier, [link("/0", 1), link("/1", 1), link("/2", 1)]);
    for (n, cut) in [Cut::Before, Cut::After].into_iter().enumerate() {
        proxy.arm(cut);
        let mut transaction = frontier.begin().unwrap();
        transaction.settle(lease(&frontier), FETCHED).unwrap();
        transaction.admit(link(&format!("/new{n}"), 9)).unwrap();
        transaction.mark("pages.jsonl", n as u64 + 1);
        transaction.commit().unwrap();
        assert!(!proxy.is_armed());
    }
    let before = (frontier.counts(), order(&frontier));
    assert_eq!((before.0.known, before.0.fetched), (5, 2));
    assert_eq!(before.1, "/2 /new0 /new1");
    // A worker that reads everything from the database server sees the same state.
    drop(frontier);
    end_leases(&served.url, &crawl);
    let again = open(&served, &options(&crawl, "w1"));
    assert_eq!((again.counts(), order(&again)), before);
    assert_eq!(again.marks().unwrap()["pages.jsonl"], 2);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_cut_commit_is_not_sent_again_after_the_buckets_are_lost() {
    let (served, crawl) = (Served::new(), new_crawl());
    let proxy = Proxy::before(served.port);
    let at = proxy.url(&served);
    let frontier = SharedFrontier::open(&at, &options(&crawl, "w1")).unwrap();
    admit(&frontier, [link("/a", 1)]);
    let mut transaction = frontier.begin().unwrap();
    transaction.settle(lease(&frontier), FETCHED).unwrap();
    end_leases(&served.url, &crawl);
    let second = open(&served, &options(&crawl, "w2"));
    proxy.arm(Cut::Before);
    assert!(is_lost(&transaction.commit().unwrap_err()));
    assert_eq!(
        (order(&second).as_str(), second.counts().fetched),
        ("/a", 0)
    );
}

#[test]
#[ignore = "needs PostgreSQL"]
fn workers_that_start_at_once_make_one_crawl_and_share_no_bucket() {
    let (served, crawl) = (Arc::new(Served::new()), new_crawl());
    let threads = (0..4).map(|n| {
        let (served, crawl) = (Arc::clone(&served), crawl.clone());
        std::thread::spawn(move || {
            let options = SharedFrontierOptions {
                buckets: 64,
                most_buckets: 24,
                // The settings are equal, so no worker is refused for different settings.
                program: "1".to_owned(),
                settings: "a = 1".to_owned(),
                ..options(&crawl, &format!("w{n}"))
            };
            open(&served, &options)
        })
    });
    let threads: Vec<_> = threads.collect();
    let workers: Vec<_> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    let buckets: Vec<_> = workers.iter().map(SharedFrontier::buckets).collect();
    assert!(buckets.iter().all(|count| *count <= 24), "{buckets:?}");
    assert_eq!(buckets.iter().sum::<usize>(), 64);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn links_to_hosts_of_another_worker_reach_it_by_the_same_rules() {
    let (served, crawl) = (Served::new(), new_crawl());
    let owner = open(&served, &options(&crawl, "w1"));
    // A small memory of recent URLs drops unpredictable entries, so this one has room for all URLs.
    let remembering = SharedFrontierOptions {
        recent_urls: 64,
        ..options(&crawl, "w2")
    };
    let sender = open(&served, &remembering);
    let aside = deferred("/aside", 9, Reason::Depth);
    let admitted = admit(
        &sender,
        [link("/far", 3), link("/b", 2), aside, excluded("/never", 1)],
    );
    assert_eq!(admitted.origins, []);
    assert_eq!((sender.counts().known, owner.counts().known), (0, 0));
    assert_eq!(owner.take_links(99).unwrap().origins, [(origin(), 2)]);
    assert_eq!(order(&owner), "/b /far");
    // Links that the owner has already received are sent again only if their path is shorter.
    let waiting = || {
        let text = format!(
            "SELECT count(*) FROM crawl_frontier.link l
            JOIN crawl_frontier.crawl c ON c.number = l.crawl WHERE c.name = '{crawl}'"
        );
        number(&served.url, &text)
    };
    assert_eq!(waiting(), 0);
    let mut links = vec![link("/b", 2), link("/b", 7), link("/new", 7)];
    sender.drop_known(&mut links, &mut |url| panic!("{url} is not settled"));
    let mut transaction = sender.begin().unwrap();
    transaction
        .admit_all(&[link("/b", 2), link("/b", 3), excluded("/never", 0)])
        .unwrap();
    transaction.commit().unwrap();
    assert_eq!(waiting(), 0);
    let nearer = UrlToAdmit {
        via: Some(url("/n")),
        ..link("/far", 1)
    };
    admit(&sender, [nearer, link("/far", 2), link("/aside", 4)]);
    assert_eq!(waiting(), 2);
    // The owner takes the links part by part, in the order in which they were sent.
    owner.take_links(1).unwrap();
    assert_eq!((order(&owner).as_str(), waiting()), ("/far /b", 1));
    owner.take_links(1).unwrap();
    assert_eq!((order(&owner).as_str(), waiting()), ("/far /b /aside", 0));
    let first = lease(&owner);
    assert_eq!((first.depth, first.via.clone()), (1, Some(url("/n"))));
    owner.release(first);
    assert_eq!(owner.counts().excluded, 1);
    assert!(owner.take_links(99).unwrap().origins.is_empty());
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_link_is_sent_with_the_page_that_has_it_or_not_at_all() {
    let (served, crawl) = (Served::new(), new_crawl());
    let owner = open(&served, &options(&crawl, "w1"));
    let sender = open(&served, &options(&crawl, "w2"));
    let mut transaction = sender.begin().unwrap();
    transaction.admit(link("/a", 1)).unwrap();
    drop(transaction);
    owner.take_links(99).unwrap();
    assert_eq!(owner.counts().known, 0);
    // The transaction was dropped, so its link was not sent. Send it now.
    admit(&sender, [link("/a", 1)]);
    owner.take_links(99).unwrap();
    assert_eq!(order(&owner), "/a");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn links_that_are_expected_are_looked_up_in_one_round_trip() {
    let server = Postgres::start(&Setup {
        settings: &["shared_preload_libraries=pg_stat_statements"],
        files: &[],
    });
    let url = format!("postgres://crawl@127.0.0.1:{}/postgres", server.port);
    execute(&url, "CREATE EXTENSION pg_stat_statements");
    let frontier = SharedFrontier::open(&url, &options("x", "w1")).unwrap();
    let pages: Vec<Vec<UrlToAdmit>> = (0..30)
        .map(|page| {
            let links = (0..5).map(|at| link(&format!("/{}", 2 * page + at), 1));
            links.collect()
        })
        .collect();
    let questions = |is_expected: bool| {
        execute(&url, "SELECT pg_stat_statements_reset()");
        let mut transaction = frontier.begin_worker().unwrap();
        if is_expected {
            transaction.expect(&mut pages.iter().flatten()).unwrap();
        }
        for links in &pages {
            transaction.admit_all(links).unwrap();
        }
        drop(transaction);
        let count_of_reads = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements
            WHERE query LIKE 'SELECT k.at, u.state%'";
        number(&url, count_of_reads)
    };
    assert_eq!((questions(false), questions(true)), (30, 1));
}

/// If one worker hands a bucket over while the other worker stops, the bucket has no owner. But one
/// of these workers must still list the bucket's deferred URLs.
#[test]
#[ignore = "needs PostgreSQL"]
fn each_bucket_is_listed_by_one_of_those_that_end() {
    let (served, crawl) = (Served::new(), new_crawl());
    let first = open(&served, &options(&crawl, "w1"));
    let second = open(&served, &options(&crawl, "w2"));
    let all = first.all_buckets() as usize;
    assert_eq!(
        (first.owned_buckets().len(), second.owned_buckets()),
        (all, vec![])
    );
    let seconds = second.buckets_to_list().unwrap();
    second.note_listed(&seconds).unwrap();
    second.give_up().unwrap();
    first.hand_over(&[0]).unwrap();
    let firsts = first.buckets_to_list().unwrap();
    assert_eq!((firsts.len(), seconds.len()), (all, 0));
    first.note_listed(&firsts).unwrap();
    first.give_up().unwrap();
    // A new process of `w2` has nothing to list, because `w1` has listed all buckets.
    let second = open(&served, &options(&crawl, "w2"));
    assert!(second.buckets_to_list().unwrap().is_empty());
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_worker_needs_the_settings_that_another_worker_reloaded() {
    let (served, crawl) = (Served::new(), new_crawl());
    let with = |worker: &str, settings: &str| SharedFrontierOptions {
        settings: settings.to_owned(),
        ..options(&crawl, worker)
    };
    let first = open(&served, &with("w1", "delay = 1s"));
    drop(open(&served, &with("w2", "delay = 1s")));
    first.replace_settings("delay = 2s").unwrap();
    let refused = refusal(&served.url, &with("w3", "delay = 1s"));
    assert!(refused.contains("- delay = 2s"), "{refused}");
    drop(open(&served, &with("w4", "delay = 2s")));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn states_of_hosts_of_another_worker_are_refused() {
    let (served, crawl) = (Served::new(), new_crawl());
    let owner = open(&served, &options(&crawl, "w1"));
    let second = open(&served, &options(&crawl, "w2"));
    let host = url("/").host_key();
    let mut transaction = second.begin().unwrap();
    transaction.keep_host(&host, 1, b"mine");
    assert!(is_lost(&transaction.commit().unwrap_err()));
    assert_eq!(owner.host(&host).unwrap(), None);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_reason_for_a_failed_open_is_named() {
    let served = Served::new();
    let open = |url: &str| refusal(url, &options("x", "w1"));
    let text = open("postgres://me:secret@db.example.org/crawl?sslmode=prefer");
    assert!(
        text.contains("sslmode=prefer doesn't verify") && !text.contains("secret"),
        "{text}"
    );
    let text = open("postgres://me:secret@127.0.0.1:port/crawl");
    assert!(
        text.contains("connection string") && !text.contains("secret"),
        "{text}"
    );
    // The listener is dropped before the connection attempt, so nothing listens on the port.
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = held.local_addr().unwrap().port();
    drop(held);
    let text = open(&format!("postgres://me:secret@127.0.0.1:{closed}/crawl"));
    assert!(
        text.contains("can't connect") && !text.contains("secret"),
        "{text}"
    );
    let read_only = format!("{}?options=-cdefault_transaction_read_only=on", served.url);
    assert!(open(&read_only).contains("is read-only"));
}

/// The tests run the oldest supported PostgreSQL, so this test simulates an older version.
#[test]
#[ignore = "needs PostgreSQL"]
fn a_database_server_that_is_too_old_is_refused() {
    let served = Served::new();
    let url = served.database("old");
    execute(
        &url,
        "CREATE SCHEMA old; CREATE FUNCTION old.current_setting(name text) RETURNS text
            RETURN CASE name WHEN 'server_version_num' THEN '140012' ELSE 'off' END;",
    );
    let old = format!("{url}?options=-csearch_path=old,pg_catalog");
    let message = refusal(&old, &options("x", "w1"));
    assert!(
        message.contains("runs PostgreSQL 14, which is too old")
            && message.contains("use 15 or newer"),
        "{message}"
    );
}

#[test]
#[ignore = "needs PostgreSQL"]
fn tables_of_another_layout_are_refused_and_left_as_they_are() {
    let served = Served::new();
    let url = served.database("layout");
    drop(SharedFrontier::open(&url, &options("x", "w1")).unwrap());
    execute(&url, "UPDATE crawl_frontier.layout SET version = 9999");
    let message = refusal(&url, &options("x", "w1"));
    assert!(
        message.contains("has layout 9999, but this program needs"),
        "{message}"
    );
    let crawls = number(&url, "SELECT count(*) FROM crawl_frontier.crawl");
    assert_eq!(crawls, 1);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_database_server_that_answers_too_late_for_its_leases_is_refused() {
    let served = Served::new();
    let late = Proxy::late(served.port, Duration::from_millis(150));
    let url = late.url(&served);
    let brief = SharedFrontierOptions {
        lease: Duration::from_secs(1),
        ..options("x", "w1")
    };
    let message = refusal(&url, &brief);
    assert!(
        message.contains("s to answer, more than a tenth of a lease (1.0 s)")
            && message.contains("--frontier-lease"),
        "{message}"
    );
    // With a longer lease, the same database server is accepted.
    let long = SharedFrontierOptions {
        lease: Duration::from_secs(3_600),
        ..options("x", "w1")
    };
    SharedFrontier::open(&url, &long).unwrap();
}

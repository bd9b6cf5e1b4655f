//! Tests of runs that resume a crawl.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crawl_engine::{
    EndReason, EngineError, HostLocks, RunSummary, RunningCrawlDescription, StopUrgency,
};
use crawl_scheduler::Tick;
use crawl_scope::ScopeMode;
use crawl_testweb::{HostsInScope, HttpAnswer, LinkMix, LogEntry, ScriptedReply, TestWeb};
use crawl_weburl::{HostKey, canonicalize};

use crate::support::{Crawl, expected};

#[test]
fn a_finished_crawl_started_again_does_nothing() {
    let web = TestWeb::builder().seed(7).pages(30).start();
    let crawl = Crawl::of(&web);
    crawl.run().unwrap();
    let (requests, pages) = (web.log().len(), crawl.pages());
    let excluded = crawl.excluded();
    let again = crawl.run().unwrap();
    assert_eq!(again.ended, EndReason::Finished);
    assert!(again.resumed);
    assert_eq!((again.requests, web.log().len()), (0, requests));
    assert_eq!(crawl.pages(), pages);
    assert_eq!(crawl.excluded(), excluded);
}

#[test]
fn interrupted_again_and_again_it_lists_every_page_once() {
    let web = TestWeb::builder().seed(7).pages(150).start();
    for urgency in [|_: &_| StopUrgency::Drain, |_: &_| StopUrgency::Now]
        as [fn(&crawl_engine::ProgressSnapshot) -> StopUrgency; 2]
    {
        let mut crawl = Crawl::of(&web);
        crawl.config.politeness.delay = Duration::from_millis(1);
        let mut interrupted = 0;
        loop {
            let summary = crawl.run_until(urgency).unwrap();
            if summary.ended == EndReason::Finished {
                break;
            }
            assert_eq!(summary.ended, EndReason::Interrupted);
            interrupted += 1;
            // If each run were stopped before noticing that nothing is left, the loop would never
            // end.
            if interrupted > 20 {
                assert_eq!(crawl.run().unwrap().ended, EndReason::Finished);
                break;
            }
        }
        assert!(interrupted > 0);
        assert_eq!(
            crawl.statuses().into_keys().collect::<BTreeSet<_>>(),
            expected(&web, HostsInScope::Host)
        );
        crawl.excluded();
    }
}

#[test]
fn a_stopped_crawl_ends_with_the_coverage_of_an_uninterrupted_one() {
    let web = TestWeb::builder().seed(7).pages(40).start();
    let whole = Crawl::of(&web);
    whole.run().unwrap();
    let mut crawl = Crawl::of(&web);
    let verdict = |crawl: &Crawl| crawl.coverage().remove(web.authority(0));
    crawl.config.budgets.max_pages = Some(5);
    crawl.run().unwrap();
    assert_eq!(verdict(&crawl).unwrap(), "partial, budget: max-pages");
    crawl.config.budgets.max_pages = None;
    // With this delay, the crawl is still running when the stop comes.
    crawl.config.politeness.delay = Duration::from_secs(2);
    // This stop acts like a kill: the run leaves no record of its end, only its rows.
    crawl.run_until(|_| StopUrgency::Now).unwrap();
    let unfinished = "partial, unfinished: no end of the last run is on record";
    assert_eq!(verdict(&crawl).unwrap(), unfinished);
    crawl.run_until(|_| StopUrgency::Drain).unwrap();
    assert_eq!(verdict(&crawl).unwrap(), "partial, waiting: interrupted");
    crawl.config.politeness.delay = Duration::ZERO;
    crawl.run().unwrap();
    assert_eq!(verdict(&crawl).unwrap(), "whole");
    assert_eq!(crawl.coverage(), whole.coverage());
}

#[test]
fn a_directory_of_something_else_is_refused() {
    let web = TestWeb::builder().start();
    let crawl = Crawl::of(&web);
    std::fs::create_dir_all(&crawl.config.output).unwrap();
    std::fs::write(crawl.output("thesis.tex"), "precious").unwrap();
    let error = crawl.run().unwrap_err();
    assert!(
        matches!(&error, EngineError::OutputForeign { found, .. } if found == "thesis.tex"),
        "{error}"
    );
    assert_eq!(std::fs::read_dir(&crawl.config.output).unwrap().count(), 1);
}

#[test]
fn a_file_and_a_link_that_leads_nowhere_are_not_directories() {
    let web = TestWeb::builder().start();
    let mut crawl = Crawl::of(&web);
    std::fs::create_dir_all(&crawl.config.output).unwrap();
    let (file, link) = (crawl.output("file"), crawl.output("link"));
    std::fs::write(&file, "precious").unwrap();
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    for output in [
        file.clone(),
        file.join("below"),
        link.join(""),
        link.join("below"),
        link,
    ] {
        crawl.config.output = output.clone();
        let error = crawl.run().unwrap_err();
        let is_refused = matches!(&error, EngineError::NotADirectory { dir } if *dir == output);
        assert!(is_refused, "{error}");
    }
    assert!(web.log().is_empty());
}

#[test]
fn an_empty_path_is_no_directory() {
    let web = TestWeb::builder().start();
    let mut crawl = Crawl::of(&web);
    crawl.config.output = PathBuf::new();
    let error = crawl.run().unwrap_err();
    assert!(matches!(error, EngineError::OutputUnnamed), "{error}");
    assert!(!Path::new("state").exists() && web.log().is_empty());
}

#[test]
fn records_without_their_state_are_left_alone() {
    let web = TestWeb::builder().pages(5).start();
    let crawl = Crawl::of(&web);
    crawl.run().unwrap();
    let pages = crawl.pages();
    std::fs::remove_dir_all(crawl.output("state")).unwrap();
    assert!(matches!(
        crawl.run().unwrap_err(),
        EngineError::StateMissing { .. }
    ));
    assert_eq!(crawl.pages(), pages);
}

#[test]
fn a_directory_in_use_is_refused() {
    let web = TestWeb::builder().start();
    let crawl = Crawl::of(&web);
    crawl.run().unwrap();
    let state = crawl_frontier::FjallFrontier::open(
        &crawl.output("state"),
        &crawl_frontier::FjallFrontierOptions::default(),
    );
    let error = crawl.run().unwrap_err();
    assert!(matches!(error, EngineError::OutputInUse { .. }), "{error}");
    drop(state);
    crawl.run().unwrap();
}

#[test]
fn without_seed_and_without_crawl_there_is_nothing_to_do() {
    let web = TestWeb::builder().start();
    let mut crawl = Crawl::of(&web);
    crawl.config.seeds.clear();
    assert!(matches!(
        crawl.run().unwrap_err(),
        EngineError::NothingToDo { .. }
    ));
    assert!(!crawl.config.output.exists());
}

#[test]
fn a_row_file_shorter_than_committed_is_a_clear_error() {
    let web = TestWeb::builder().pages(10).start();
    let crawl = Crawl::of(&web);
    crawl.run().unwrap();
    let path = crawl.output("pages.jsonl");
    let text = std::fs::read(&path).unwrap();
    std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    let error = crawl.run().unwrap_err();
    assert!(error.to_string().contains("pages.jsonl"), "{error}");
}

fn another() -> RunningCrawlDescription {
    RunningCrawlDescription {
        directory: "/srv/other".to_owned(),
        since: "2026-11-21T23:00:00Z".to_owned(),
    }
}

#[test]
fn crawls_of_one_user_use_a_host_one_after_the_other() {
    let web = TestWeb::builder().seed(6).pages(8).start();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hosts.lock");
    let mut other_locks = HostLocks::open(&path, &another(), Tick::ZERO).unwrap();
    assert!(
        other_locks
            .hold(
                &HostKey::parse(web.authority(0)).unwrap(),
                Duration::ZERO,
                Tick::ZERO
            )
            .is_ok()
    );
    let mut crawl = Crawl::of(&web);
    crawl.config.host_locks = Some(path);
    let summary = crawl.run().unwrap();
    let EndReason::NoFetchableHost(hosts) = &summary.ended else {
        panic!("{:?}", summary.ended)
    };
    assert_eq!(
        hosts[0].why,
        "another crawl is fetching from it, since 2026-11-21T23:00:00Z: /srv/other"
    );
    assert_eq!(web.log().len(), 0);
    drop(other_locks);
    let summary = crawl.run().unwrap();
    assert_eq!(summary.ended, EndReason::Finished);
    assert!(summary.pages >= 8);
}

/// The delay is also kept between the last request of one crawl and the first of the next.
#[test]
fn crawls_of_one_user_keep_the_delay_between_their_requests() {
    const DELAY: Duration = Duration::from_millis(300);
    let web = TestWeb::builder()
        .seed(6)
        .pages(2)
        .mix(LinkMix::plain())
        .start();
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let mut crawl = Crawl::of(&web);
        crawl.config.host_locks = Some(dir.path().join("hosts.lock"));
        crawl.config.politeness.delay = DELAY;
        assert_eq!(crawl.run().unwrap().ended, EndReason::Finished);
    }
    let log = web.log();
    let robots = log.iter().filter(|entry| entry.path == "/robots.txt");
    assert_eq!(robots.count(), 2);
    for pair in log.windows(2) {
        let gap = pair[1].start_us - pair[0].end_us.unwrap();
        assert!(Duration::from_micros(gap) >= DELAY, "{pair:?}");
    }
}

#[test]
fn a_long_rest_outlives_the_process() {
    let web = TestWeb::builder()
        .seed(6)
        .pages(8)
        .script(0, "/", HttpAnswer::of(503).header("retry-after", "3600"))
        .start();
    let crawl = Crawl::of(&web);
    let rest = |summary: RunSummary| match summary.ended {
        EndReason::NoFetchableHost(hosts) => (hosts[0].why.clone(), hosts[0].next_try.unwrap()),
        ended => panic!("{ended:?}"),
    };
    let (why, until) = rest(crawl.run().unwrap());
    assert_eq!(why, "it sent a Retry-After");
    let count = web.log().len();
    for _ in 0..2 {
        let again = rest(crawl.run_until(|_| StopUrgency::No).unwrap());
        assert_eq!(again.0, "it sent a Retry-After");
        // The two times may differ slightly, since the log of requests has milliseconds, but the
        // state has microseconds.
        let moved = again.1.since(until).max(until.since(again.1));
        assert!(moved < Duration::from_millis(2), "{moved:?}");
        assert_eq!(web.log().len(), count, "nothing is asked before");
    }
}

#[test]
fn queued_urls_are_judged_by_the_scope_of_the_run() {
    let web = TestWeb::builder().seed(6).pages(30).start();
    let mut crawl = Crawl::of(&web);
    crawl.config.budgets.max_pages = Some(3);
    crawl.run().unwrap();
    let before = crawl.statuses();
    crawl.config.budgets.max_pages = None;
    crawl.config.scope.exclude = vec!["/p".to_owned()];
    let summary = crawl.run().unwrap();
    assert_eq!(summary.ended, EndReason::Finished);
    let after = crawl.statuses();
    let late = after.keys().filter(|url| !before.contains_key(*url));
    assert!(
        late.clone().all(|url| !url.contains("/p")),
        "{:?}",
        late.collect::<Vec<_>>()
    );
    assert!(crawl.excluded().values().any(|reason| reason == "scope"));
}

#[test]
fn a_lower_depth_limit_defers_queued_urls_and_a_higher_one_readmits_them() {
    let web = TestWeb::builder().seed(9).pages(40).sitemap(false).start();
    let mut crawl = Crawl::of(&web);
    crawl.config.budgets.max_pages = Some(3);
    crawl.run().unwrap();
    let before = crawl.statuses();
    crawl.config.budgets.max_pages = None;
    crawl.config.scope.max_depth = Some(0);
    let summary = crawl.run().unwrap();
    assert_eq!((summary.ended, summary.pending), (EndReason::Finished, 0));
    assert!(summary.excluded["depth"] > 0);
    assert_eq!(crawl.statuses(), before);
    crawl.config.scope.max_depth = None;
    let summary = crawl.run().unwrap();
    assert_eq!(summary.excluded.get("depth"), None);
    let truth = web.truth(HostsInScope::Host).fetched;
    assert_eq!(
        crawl.statuses().into_keys().collect::<Vec<_>>(),
        truth.into_keys().collect::<Vec<_>>()
    );
}

#[test]
fn an_idle_host_is_free_for_other_crawls_while_the_crawl_runs() {
    static IS_SEEN: AtomicBool = AtomicBool::new(false);
    // The server's delay, much longer than the rest of the test: the crawl is stopped before the
    // answer arrives.
    const ANSWERED_AFTER: Duration = Duration::from_secs(100);
    let web = TestWeb::builder()
        .hosts(2)
        .sitemap(false)
        .script(0, "/", HttpAnswer::html("done"))
        .script(
            1,
            "/",
            ScriptedReply::from(HttpAnswer::html("slow")).after(ANSWERED_AFTER),
        )
        .start();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hosts.lock");
    let mut crawl = Crawl::of(&web);
    crawl.config.sitemaps = false;
    crawl.config.fetch.allow_private = true;
    crawl.config.host_locks = Some(path.clone());
    let slow = canonicalize(None, &web.url(1, "/")).unwrap();
    crawl.config.seeds.push(slow);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let until_seen = |_: &_| match IS_SEEN.load(Ordering::Relaxed) {
                true => StopUrgency::Now,
                false => StopUrgency::No,
            };
            crawl.run_until(until_seen).unwrap()
        });
        let page_of = |host: u32| {
            let seen = web.wait_for(ANSWERED_AFTER / 2, |log| {
                let is_root = |entry: &LogEntry| entry.host == host && entry.path == "/";
                log.iter().any(is_root)
            });
            assert!(seen);
        };
        page_of(0);
        page_of(1);
        // The first host is unlocked because its only page was answered. The second host has not
        // answered yet, so it is still locked.
        let mut other_locks = HostLocks::open(&path, &another(), Tick::ZERO).unwrap();
        let busy = HostKey::parse(web.authority(1)).unwrap();
        let done = HostKey::parse(web.authority(0)).unwrap();
        assert!(other_locks.hold(&busy, Duration::ZERO, Tick::ZERO).is_err());
        while other_locks.hold(&done, Duration::ZERO, Tick::ZERO).is_err() {
            assert!(!running.is_finished(), "it is free before the crawl ends");
            std::thread::yield_now();
        }
        IS_SEEN.store(true, Ordering::Relaxed);
        running.join().unwrap();
    });
}

#[test]
fn a_crawl_without_commit_delay_ends() {
    let web = TestWeb::builder().seed(7).pages(30).start();
    let mut crawl = Crawl::of(&web);
    crawl.config.commit_within = Duration::ZERO;
    assert_eq!(crawl.run().unwrap().ended, EndReason::Finished);
    assert_eq!(
        crawl.statuses().into_keys().collect::<BTreeSet<_>>(),
        expected(&web, HostsInScope::Host)
    );
}

#[test]
fn an_excluded_link_may_join_the_crawl_as_a_seed() {
    let web = TestWeb::builder().hosts(2).sitemap(false).start();
    let linked = canonicalize(None, &web.url(1, "/linked")).unwrap();
    let link = format!("<a href={linked}>other</a>");
    web.script(0, "/", HttpAnswer::html(&link));
    web.script(1, "/linked", HttpAnswer::html("other host"));
    // The link is out of scope, or leads to a private address.
    for mode in [ScopeMode::Host, ScopeMode::Any] {
        let mut crawl = Crawl::of(&web);
        crawl.config.sitemaps = false;
        crawl.config.scope.mode = mode;
        crawl.run().unwrap();
        assert_eq!(crawl.statuses().len(), 1);
        crawl.config.seeds.push(linked.clone());
        crawl.config.fetch.typed.push(linked.clone());
        assert_eq!(crawl.run().unwrap().ended, EndReason::Finished);
        assert_eq!(crawl.statuses()[linked.as_str()], Some(200), "{mode:?}");
    }
    // The second run's scope excludes the pending link.
    let mut crawl = Crawl::of(&web);
    crawl.config.sitemaps = false;
    crawl.config.scope.mode = ScopeMode::Any;
    crawl.config.fetch.typed.push(linked.clone());
    crawl.config.budgets.max_pages = Some(1);
    crawl.run().unwrap();
    crawl.config.scope.mode = ScopeMode::Host;
    crawl.config.budgets.max_pages = None;
    crawl.run().unwrap();
    assert_eq!(crawl.excluded()[linked.as_str()], "scope");
    crawl.config.seeds.push(linked.clone());
    crawl.run().unwrap();
    assert_eq!(crawl.statuses()[linked.as_str()], Some(200));
}

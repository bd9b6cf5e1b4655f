//! Tests of servers that fail, and of the requests that a crawl does not send because of the
//! failures.

use std::time::Duration;

use crawl_engine::EndReason;
use crawl_testweb::{ConnectionBehaviour, HttpAnswer, ReplySequence, ScriptedReply, TestWeb};

use crate::support::Crawl;

#[test]
fn rfc9309_2_3_1_4_no_page_where_robots_txt_is_unreachable() {
    for reply in [
        ScriptedReply::from(HttpAnswer::of(500)),
        HttpAnswer::of(503).into(),
        HttpAnswer::of(429).into(),
        ScriptedReply::reset(),
        ScriptedReply::garbage(),
    ] {
        let web = TestWeb::builder()
            .pages(5)
            .script(0, "/robots.txt", reply)
            .start();
        let crawl = Crawl::of(&web);
        let summary = crawl.run().unwrap();
        let EndReason::NoFetchableHost(hosts) = &summary.ended else {
            panic!("{:?}", summary.ended)
        };
        assert_eq!(hosts[0].host.as_str(), web.authority(0));
        assert!(
            web.log().iter().all(|entry| entry.path == "/robots.txt"),
            "{:?}",
            web.log()
        );
        assert_eq!(
            (summary.pages, summary.pending, summary.seeds_fetched),
            (0, 1, 0)
        );
    }
}

#[test]
fn rfc9309_2_3_1_3_no_robots_txt_bars_nothing() {
    let web = TestWeb::builder()
        .pages(5)
        .script(0, "/robots.txt", HttpAnswer::of(404))
        .start();
    let crawl = Crawl::of(&web);
    let summary = crawl.run().unwrap();
    assert_eq!(summary.ended, EndReason::Finished);
    assert!(summary.pages > 5);
}

#[test]
fn rfc9309_2_3_1_2_robots_txt_is_followed_over_hosts() {
    let web = TestWeb::builder().hosts(2).pages(5).start();
    web.script(
        0,
        "/robots.txt",
        HttpAnswer::redirect(302, &web.url(1, "/elsewhere.txt")),
    );
    web.script(
        1,
        "/elsewhere.txt",
        HttpAnswer::text("User-agent: *\nDisallow: /\n"),
    );
    let mut crawl = Crawl::of(&web);
    crawl.config.fetch.allow_private = true;
    let summary = crawl.run().unwrap();
    assert_eq!(summary.ended, EndReason::Finished);
    assert_eq!(summary.pages, 0);
    assert_eq!(summary.excluded["robots"], 1, "nobody named /sitemap.xml");
    assert_eq!(
        summary.seeds_failed[0].why,
        "excluded by robots (line 2: Disallow: /)"
    );
}

#[test]
fn a_host_that_refuses_connections_is_named_at_the_end() {
    let web = TestWeb::builder()
        .connection_mode(0, ConnectionBehaviour::Refused)
        .start();
    let crawl = Crawl::of(&web);
    let summary = crawl.run().unwrap();
    let EndReason::NoFetchableHost(hosts) = &summary.ended else {
        panic!("{:?}", summary.ended)
    };
    let reason = format!("{}: connect_refused", web.url(0, "/robots.txt"));
    assert_eq!(hosts[0].why, reason);
    assert_eq!(
        crawl.requests()[0].failure.as_deref(),
        Some("connect_refused")
    );
}

#[test]
fn failed_urls_are_retried_and_listed_if_they_keep_failing() {
    let flaky = ReplySequence::always(ScriptedReply::reset()).then(ScriptedReply::usual());
    let web = TestWeb::builder()
        .seed(1)
        .pages(10)
        .script(0, "/", flaky)
        .script(
            0,
            "/bad",
            ScriptedReply::short_body(&HttpAnswer::html("<p>x"), 10),
        )
        .script(0, "/error", HttpAnswer::of(500))
        .start();
    let mut crawl = Crawl::of(&web);
    for path in ["/bad", "/error"] {
        crawl
            .config
            .seeds
            .push(crawl_weburl::canonicalize(None, &web.url(0, path)).unwrap());
    }
    let summary = crawl.run().unwrap();
    assert_eq!(summary.ended, EndReason::Finished);
    let statuses = crawl.statuses();
    assert_eq!(statuses[&web.url(0, "/")], Some(200));
    assert_eq!(statuses[&web.url(0, "/bad")], Some(200));
    assert_eq!(statuses[&web.url(0, "/error")], Some(500));
    for path in ["/bad", "/error"] {
        let count = web.log().iter().filter(|entry| entry.path == path).count();
        assert_eq!(count, 3, "{path}: once, and two retries");
    }
    let bad = crawl
        .pages()
        .into_iter()
        .find(|page| page.url.ends_with("/bad"))
        .unwrap();
    assert_eq!(bad.error.as_deref(), Some("short_body"));
    assert!(bad.is_failed());
    assert!(bad.warc.is_some(), "what came of it is kept");
    assert!(crawl.archive_holds("WARC-Truncated: disconnect"));
}

#[test]
fn retry_after_is_waited_for_and_the_url_is_not_lost() {
    let busy = HttpAnswer::of(503).header("retry-after", "1");
    let web = TestWeb::builder()
        .seed(1)
        .pages(3)
        .script(
            0,
            "/",
            ReplySequence::always(busy).then(ScriptedReply::usual()),
        )
        .start();
    let mut crawl = Crawl::of(&web);
    crawl.config.wait_unreachable = Duration::from_secs(60);
    crawl.run().unwrap();
    let log = web.log();
    let busy = log
        .iter()
        .position(|entry| entry.status == Some(503))
        .unwrap();
    assert!(log[busy + 1].start_us >= log[busy].end_us.unwrap() + 1_000_000);
    assert_eq!(crawl.statuses()[&web.url(0, "/")], Some(200));
    assert_eq!(crawl.requests()[busy].wait_asked, Some(1000));
}

#[test]
fn a_url_that_is_always_busy_delays_no_other() {
    let busy = HttpAnswer::of(503).header("retry-after", "0");
    let web = TestWeb::builder()
        .seed(1)
        .pages(5)
        .script(0, "/p-busy", busy)
        .start();
    let mut crawl = Crawl::of(&web);
    let busy = crawl_weburl::canonicalize(None, &web.url(0, "/p-busy")).unwrap();
    crawl.config.seeds.insert(0, busy.clone());
    let summary = crawl.run().unwrap();
    assert_eq!(summary.ended, EndReason::Finished);
    assert!(summary.pages > 5);
    assert_eq!(crawl.statuses()[busy.as_str()], Some(503));
    let count = web
        .log()
        .iter()
        .filter(|entry| entry.path == "/p-busy")
        .count();
    assert_eq!(count, 3, "once, and two retries");
}

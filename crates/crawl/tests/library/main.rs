//! The library: a crawl as a stream of pages, and a polite client.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

mod polite_client;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crawl::{Crawl, CrawlError};
use crawl_testweb::{HostsInScope, HttpAnswer, TestWeb};

/// The gap for the tests' own servers.
const DELAY: Duration = Duration::from_millis(1);

fn quick(seed: String) -> Crawl {
    Crawl::new(seed).delay(DELAY).configure(|config| {
        config.politeness.delay_factor = 0.0;
    })
}

#[tokio::test]
async fn each_page_is_delivered_once_with_body_and_text() {
    let web = TestWeb::builder().hosts(1).pages(30).gzip(true).start();
    let mut pages = quick(web.url(0, "/")).run();
    let mut urls = BTreeSet::new();
    let mut texts = 0;
    let mut last = None;
    while let Some(page) = pages.next().await {
        let page = page.unwrap();
        assert!(urls.insert(page.url().to_owned()), "{} twice", page.url());
        if page.status() == Some(200) && page.title().is_some() {
            let body = page.body().unwrap();
            assert!(
                body.windows(6).any(|bytes| bytes == b"<title"),
                "{}",
                page.url()
            );
            texts += usize::from(page.text().is_some_and(|text| !text.is_empty()));
            last = Some(page);
        }
    }
    let summary = pages.summary().unwrap();
    let output = summary.output.clone();
    assert_eq!(summary.pages, urls.len() as u64);
    assert!(texts > 10, "{texts} texts");
    let mut expected = web.truth(HostsInScope::Host).fetched_with_sitemaps();
    expected.insert(web.url(0, "/sitemap.xml"));
    assert_eq!(urls, expected);
    // The temporary directory lives as long as any of its pages.
    assert!(output.is_dir());
    assert!(last.unwrap().body().is_some());
    assert!(!output.exists());
}

#[tokio::test]
async fn a_crawl_at_its_budget_resumes_in_its_directory() {
    let web = TestWeb::builder().hosts(1).pages(20).start();
    let dir = tempfile::tempdir().unwrap();
    let crawl = || quick(web.url(0, "/")).output(dir.path().join("c"));
    let mut pages = crawl().max_pages(5).run();
    while let Some(page) = pages.next().await {
        page.unwrap();
    }
    assert_eq!(pages.summary().unwrap().pages, 5);
    let mut rest = 0;
    let mut pages = crawl().run();
    while let Some(page) = pages.next().await {
        page.unwrap();
        rest += 1;
    }
    let summary = pages.summary().unwrap();
    assert!(summary.resumed && rest > 5, "{rest} more");
}

#[tokio::test]
async fn an_unchanged_page_has_the_body_and_the_text_of_its_earlier_visit() {
    let web = TestWeb::builder().hosts(1).pages(20).gzip(true).start();
    let dir = tempfile::tempdir().unwrap();
    let crawl = || {
        let crawl = quick(web.url(0, "/")).output(dir.path().join("c"));
        crawl.configure(|config| {
            config.recrawl = true;
            config.revisits.least = Duration::ZERO;
            config.revisits.most = Duration::ZERO;
        })
    };
    let mut before = BTreeMap::new();
    let mut pages = crawl().run();
    while let Some(page) = pages.next().await {
        let page = page.unwrap();
        before.insert(page.url().to_owned(), (page.body(), page.text()));
    }
    let mut unmodified = 0;
    let mut pages = crawl().run();
    while let Some(page) = pages.next().await {
        let page = page.unwrap();
        if page.status() == Some(304) {
            unmodified += 1;
            let now = (page.body(), page.text());
            assert_eq!(Some(&now), before.get(page.url()), "{}", page.url());
        }
    }
    assert!(unmodified > 5, "{unmodified} unmodified pages");
}

#[tokio::test]
async fn pages_are_read_from_the_directory_that_configure_sets() {
    let page = HttpAnswer::html("<p>tea</p>");
    let web = TestWeb::builder().hosts(1).sitemap(false);
    let web = web.script(0, "/", page).start();
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("c");
    let mut pages = quick(web.url(0, "/"))
        .configure(move |config| config.output = output)
        .run();
    let page = pages.next().await.unwrap().unwrap();
    assert_eq!(page.body().unwrap(), "<p>tea</p>");
    assert!(dir.path().join("c/pages.jsonl").is_file());
}

#[tokio::test]
async fn a_closed_crawl_no_longer_uses_its_directory() {
    let web = TestWeb::builder().hosts(1).pages(20).start();
    let dir = tempfile::tempdir().unwrap();
    let crawl = || Crawl::new(web.url(0, "/")).output(dir.path().join("c"));
    let mut pages = crawl().run();
    pages.next().await.unwrap().unwrap();
    let summary = pages.close().await.unwrap().unwrap();
    assert!(!summary.resumed && summary.pending > 0);
    let summary = crawl().run().close().await.unwrap().unwrap();
    assert!(summary.resumed);
    let failed = Crawl::new("example.org").run().close().await;
    assert!(matches!(failed, Err(CrawlError::Seed { .. })), "{failed:?}");
}

#[tokio::test]
async fn invalid_options_are_errors_of_the_stream() {
    type IsIt = fn(&CrawlError) -> bool;
    let cases: [(Crawl, IsIt); 3] = [
        (Crawl::new("example.org"), |why| {
            matches!(why, CrawlError::Seed { .. })
        }),
        (Crawl::new("http://127.0.0.1:9/").contact("me"), |why| {
            matches!(why, CrawlError::Contact(_))
        }),
        (
            Crawl::new("http://127.0.0.1:9/").agent("two words"),
            |why| matches!(why, CrawlError::Agent(_)),
        ),
    ];
    for (crawl, is_it) in cases {
        let mut pages = crawl.run();
        let error = pages.next().await.unwrap().unwrap_err();
        assert!(is_it(&error), "{error:?}");
        assert!(error.to_string().contains("\nhint: "), "{error}");
        assert!(pages.next().await.is_none() && pages.summary().is_none());
    }
}

#[test]
fn a_crawl_outside_of_a_runtime_is_an_error() {
    let mut pages = Crawl::new("http://127.0.0.1:9/").run();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let error = runtime.block_on(pages.next()).unwrap().unwrap_err();
    assert!(matches!(error, CrawlError::NoRuntime), "{error:?}");
}

#[tokio::test]
async fn a_stopped_crawl_ends_after_in_flight_requests() {
    let links: String = (0..500).map(|n| format!("<a href=/{n}>{n}</a>")).collect();
    let page = HttpAnswer::html(&format!("{links}<p>tea</p>"));
    let web = TestWeb::builder().hosts(1).sitemap(false);
    let web = web.script(0, "/", page).start();
    let mut pages = Crawl::new(web.url(0, "/")).run();
    let first = pages.next().await.unwrap().unwrap();
    assert!(first.text().unwrap().contains("tea"));
    pages.stop();
    let mut count = 0;
    while let Some(page) = pages.next().await {
        page.unwrap();
        count += 1;
    }
    // The stop took effect: 500 pages with a gap of one second would take more than eight minutes.
    assert!(count < 500 && pages.summary().is_some(), "{count} more");
}

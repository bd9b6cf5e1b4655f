//! Tests of URLs that were being read when the process crashed.

use std::fs;

use crawl_engine::EndReason;
use crawl_testweb::{HostsInScope, LinkMix, TestWeb};

use crate::support::{Crawl, expected};

/// The size of a line of the journal, in bytes: enough for the longest URL and its number of
/// crashes.
const LINE: usize = 8 * 1024 + 16;

/// Starts a crawl, and writes a journal as if the process had died while reading `url`, and
/// `deaths` times before.
fn begun(web: &TestWeb, url: &str, deaths: u32) -> Crawl {
    let mut crawl = Crawl::of(web);
    crawl.config.budgets.max_pages = Some(1);
    assert_eq!(crawl.run().unwrap().ended, EndReason::Budget("max-pages"));
    assert!(!crawl.statuses().contains_key(url));
    crawl.config.budgets.max_pages = None;
    let mut journal = b"reading 1 1\n".to_vec();
    journal.resize(LINE, 0);
    journal.extend(format!("{deaths} {url}\n").bytes());
    fs::write(crawl.output("state/reading"), journal).unwrap();
    crawl
}

/// Returns the URLs in the crawl's journal.
fn journal(crawl: &Crawl) -> Vec<String> {
    let bytes = fs::read(crawl.output("state/reading")).unwrap();
    let lines = bytes.chunks(LINE).skip(1).map(|line| {
        let line = line.split(|byte| matches!(byte, b'\n' | 0)).next();
        String::from_utf8(line.unwrap().to_vec()).unwrap()
    });
    lines.filter(|line| !line.is_empty()).collect()
}

fn web() -> TestWeb {
    let web = TestWeb::builder().seed(11).pages(30).mix(LinkMix::plain());
    web.sitemap(false).start()
}

/// Returns a page that the seed links to, so that it is known once the seed has been read.
fn child(web: &TestWeb) -> String {
    let truth = web.truth(HostsInScope::Host);
    let mut fetched = truth.fetched.iter();
    let child = fetched.find(|(_, expected)| expected.depth == 1);
    child.unwrap().0.clone()
}

#[test]
fn a_url_read_at_three_deaths_is_fetched_last() {
    let web = web();
    let url = child(&web);
    for deaths in [1, 2] {
        let crawl = begun(&web, &url, deaths);
        web.take_log();
        let summary = crawl.run().unwrap();
        assert_eq!((summary.ended, summary.pending), (EndReason::Finished, 0));
        let mut urls = expected(&web, HostsInScope::Host);
        urls.remove(&web.url(0, "/sitemap.xml"));
        assert!(crawl.statuses().into_keys().eq(urls));
        let log = web.log();
        let at = log.iter().position(|asked| web.url(0, &asked.path) == url);
        let before = log[..at.unwrap()].last().unwrap();
        let is_late = at.unwrap() > 8;
        assert_eq!(is_late, deaths == 2, "{deaths} deaths before: {at:?}");
        assert!(before.end_us.unwrap() <= log[at.unwrap()].start_us);
        assert_eq!(journal(&crawl), [""; 0]);
    }
}

#[test]
fn a_url_that_dies_alone_is_settled_as_failed() {
    let web = web();
    let url = child(&web);
    let crawl = begun(&web, &url, 3);
    web.take_log();
    let summary = crawl.run().unwrap();
    assert_eq!((summary.ended, summary.pending), (EndReason::Finished, 0));
    let row = crawl.page(&url);
    assert_eq!(
        (row.status, row.error.as_deref()),
        (None, Some("reader_killed"))
    );
    assert!(row.is_failed());
    assert!(web.log().iter().all(|asked| web.url(0, &asked.path) != url));
    assert_eq!(summary.failed, 1);
    let (pages, asked) = (crawl.pages(), web.log().len());
    crawl.run().unwrap();
    assert_eq!((crawl.pages(), web.log().len()), (pages, asked));
    assert_eq!(journal(&crawl), [""; 0]);
}

#[test]
fn a_budget_ends_the_crawl_before_a_suspect_is_read() {
    let web = web();
    let url = child(&web);
    let mut crawl = begun(&web, &url, 2);
    crawl.config.budgets.max_pages = Some(10);
    assert_eq!(crawl.run().unwrap().ended, EndReason::Budget("max-pages"));
    assert_eq!(
        crawl.excluded().get(&url).map(String::as_str),
        Some("budget")
    );
    assert_eq!(journal(&crawl), [format!("3 {url}")]);
    crawl.config.budgets.max_pages = None;
    assert_eq!(crawl.run().unwrap().ended, EndReason::Finished);
    assert_eq!(crawl.statuses()[&url], Some(200));
}

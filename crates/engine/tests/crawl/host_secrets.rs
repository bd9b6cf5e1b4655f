//! Tests of the secrets configured for a host: where they are sent, and what is stored if the
//! server echoes them.

use std::fs;
use std::path::Path;

use crawl_engine::{IndexRebuildSettings, reindex};
use crawl_fetcher::HostRequestHeaders;
use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};

use crate::support::Crawl;

const PASSWORD: &str = "pa55-w0rd-&-more";
const KEY: &str = "k3y-for-x";
const COOKIE: &str = "c00kie-value";

/// Starts a server that echoes the received secret in its page, in links and in a redirect.
fn echo() -> TestWeb {
    let basic = "bWU6cGE1NS13MHJkLSYtbW9yZQ==";
    let page = format!(
        "<title>For me:{shown}</title><meta name=description content='by {KEY}'>\
         <main><h1>About {COOKIE}</h1><p>You sent <b>Basic {basic}</b> and {KEY}.</p>\
         <h2>Behind</h2><p>What stands here is findable, and has words enough to be a text.\
         <p><a href=/plain>for {KEY}</a>\
         <a href=/q?k={KEY}>in the query</a> <a href=/redirect>r</a></main>",
        shown = PASSWORD.replace('&', "&amp;"),
    );
    TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(0, "/", HttpAnswer::html(&page))
        .script(
            0,
            "/plain",
            HttpAnswer::html("<title>Plain</title><p>nothing</p>"),
        )
        .script(
            0,
            "/redirect",
            HttpAnswer::redirect(302, &format!("/to?c={COOKIE}")),
        )
        .script(
            0,
            "/robots.txt",
            HttpAnswer::text(&format!("Sitemap: /map.xml?k={KEY}\n")),
        )
        .start()
}

/// Returns the text of all files in a folder and its subfolders. Leaves out the archive, which is
/// evidence and not redacted, and the store, which only the program reads.
fn all_text(dir: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.ends_with("archive") || path.ends_with("state/store") => {}
            true => text.push_str(&all_text(&path)),
            false => text.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap())),
        }
    }
    text
}

fn assert_none_in(crawl: &Crawl) {
    let text = all_text(&crawl.config.output);
    for secret in [PASSWORD, KEY, COOKIE, "bWU6cGE1NS13MHJkLSYtbW9yZQ"] {
        assert!(!text.contains(secret), "{secret} is kept");
    }
}

#[test]
fn echoed_secrets_are_stored_only_in_the_archive() {
    let web = echo();
    let mut crawl = Crawl::of(&web);
    let access = HostRequestHeaders::new("127.0.0.1").basic_auth(&format!("me:{PASSWORD}"));
    let access = access.unwrap().header("X-Key", KEY).unwrap();
    crawl.config.fetch.access = vec![access.cookie("session", COOKIE).unwrap()];
    (crawl.config.index, crawl.config.links) = (true, true);
    let summary = crawl.run().unwrap();
    assert_none_in(&crawl);
    assert!(crawl.archive_holds(KEY) && crawl.archive_holds(COOKIE));
    let home = crawl.page(&web.url(0, "/"));
    assert_eq!(home.title.as_deref(), Some("For [redacted]"));
    // URLs that contain a secret are counted as unusable and not fetched.
    assert_eq!(summary.unusable["secret"], 3);
    let redirect = crawl.page(&web.url(0, "/redirect"));
    assert_eq!(redirect.error.as_deref(), Some("redirect_secret"));
    let paths: Vec<_> = web.log().into_iter().map(|entry| entry.path).collect();
    assert!(paths.iter().all(|path| !path.contains('?')), "{paths:?}");
    assert!(paths.contains(&"/plain".to_owned()));

    // The index contains the redacted text, and the positions of its headings fit that text.
    let stored = |crawl: &Crawl| {
        let index = crawl_index::IndexSearcher::open(&crawl.output("index")).unwrap();
        index.stored(&web.url(0, "/")).unwrap().unwrap()
    };
    let page = stored(&crawl);
    assert_eq!(page.headings[0].text, "About [redacted]");
    let behind = &page.text[page.headings[1].at..];
    assert!(
        behind.contains("findable") && !behind.contains("You sent"),
        "{behind}"
    );
    // An index that is rebuilt from the archive is redacted, too.
    let rules = IndexRebuildSettings::of(&crawl.config);
    reindex(&crawl.config.output, &rules, &|| false, &mut |_| {}).unwrap();
    assert_none_in(&crawl);
    assert_eq!(stored(&crawl), page);
}

//! Servers that misbehave: what comes of each, kind by kind.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use crawl_archive::rows::PageRow;
use crawl_engine::Ended;
use crawl_testweb::{Answer, ConnectionMode, LogEntry, Misbehaviour, TestWeb, misbehaviours};
use crawl_weburl::{CanonicalUrl, canonicalize};
use expect_test::expect_file;

use crate::support::Crawl;

const MAX_BODY: u64 = 256 << 10;

const HEAD: &str = "\
# Servers that misbehave

For anyone who wonders what a broken or hostile server costs a crawl: what comes of a request, by what the server does.
A server that sends nothing, say, is given up after the time for the first byte, leaves nothing in the archive, and is
asked again.

- *Held until*: what ends the exchange; no request is under way for longer than the total time (`--timeout`).
- *Kept*: how much of the body is in the archive; a part of it is marked by `WARC-Truncated`.
- *Asked again*: whether the URL is tried again, `--retries` times, before this becomes its outcome. A host without a
  connection rests, and its URLs wait.

The table is written from a crawl of as many hosts on loopback, each of which does one of these things, by
`UPDATE_EXPECT=1 cargo test -p crawl-engine --test crawl misbehaviour`. What 256 such servers at once cost in memory
stands in [limits.md](limits.md#fetching).

| the server | outcome | held until | kept | asked again |
|---|---|---|---|---|
";

/// A kind that no reply can make: it is in how connections are met.
struct Doorway {
    name: &'static str,
    scheme: &'static str,
    mode: ConnectionMode,
}

fn doorways() -> [Doorway; 3] {
    let doorway = |name, scheme, mode| Doorway { name, scheme, mode };
    [
        doorway("refuses connections", "http", ConnectionMode::Refused),
        doorway(
            "accepts TLS and says nothing",
            "https",
            ConnectionMode::Silent,
        ),
        doorway("answers TLS in plain", "https", ConnectionMode::Greets),
    ]
}

/// A host for each kind, the kinds of connections after the others.
fn web(kinds: &[Misbehaviour]) -> TestWeb {
    let doorways = doorways();
    let hosts = u32::try_from(kinds.len() + doorways.len()).unwrap();
    let web = TestWeb::builder().hosts(hosts).sitemap(false).start();
    for (host, kind) in (0..).zip(kinds) {
        web.script(host, "/robots.txt", Answer::of(404));
        web.script(host, "/", kind.reply.clone());
    }
    for (host, doorway) in (u32::try_from(kinds.len()).unwrap()..).zip(doorways) {
        web.connection_mode(host, doorway.mode).unwrap();
    }
    web
}

fn seeds(web: &TestWeb, kinds: &[Misbehaviour]) -> Vec<CanonicalUrl> {
    let schemes = doorways().map(|doorway| doorway.scheme);
    let schemes = kinds.iter().map(|_| "http").chain(schemes);
    let url = |(host, scheme)| format!("{scheme}://{}/", web.authority(host));
    (0..)
        .zip(schemes)
        .map(|pair| canonicalize(None, &url(pair)).unwrap())
        .collect()
}

fn crawl_of(web: &TestWeb, kinds: &[Misbehaviour]) -> Crawl {
    let mut crawl = Crawl::of(web);
    let config = &mut crawl.config;
    config.seeds = seeds(web, kinds);
    config.sitemaps = false;
    config.retries = 1;
    let fetch = &mut config.fetch;
    fetch.typed.clone_from(&config.seeds);
    // Far from the others, so that a busy machine mixes none of them up.
    fetch.timeout = Duration::from_secs(40);
    fetch.first_byte_timeout = Duration::from_secs(15);
    fetch.idle_timeout = Duration::from_secs(15);
    fetch.connect_timeout = Duration::from_secs(15);
    fetch.max_body = MAX_BODY;
    crawl
}

/// The records that a crawl leaves of one host.
struct Left {
    page: Option<PageRow>,
    /// Of its requests, by the records.
    failures: Vec<String>,
    /// Why other URLs of it were not asked for.
    excluded: Vec<String>,
    /// The requests that it had, by its own log.
    asked: Vec<LogEntry>,
}

fn outcome(left: &Left) -> String {
    let mut words = match (&left.page, left.failures.first()) {
        (Some(page), _) => {
            let status = page.status.map(|status| status.to_string());
            // What comes after the name are words of libraries.
            let error = page.error.as_deref().map(name);
            let words: Vec<_> = status.iter().map(String::as_str).chain(error).collect();
            words.join(", ")
        }
        (None, Some(failure)) => format!("{failure}; the host rests"),
        (None, None) => "nothing".to_owned(),
    };
    for reason in &left.excluded {
        let _ = write!(words, "; a link is put aside: {reason}");
    }
    words
}

fn name(error: &str) -> &str {
    error.split(':').next().unwrap_or(error)
}

/// The limit that ends the exchange.
fn held(left: &Left) -> &'static str {
    let error = left.page.as_ref().and_then(|page| page.error.as_deref());
    match error
        .map(name)
        .or(left.failures.first().map(String::as_str))
    {
        Some("timeout") => "total time",
        Some("first_byte_timeout") => "first-byte time",
        Some("idle_timeout") => "idle time",
        Some("connect_timeout") => "connect time",
        Some("body_truncated") => "max-body",
        Some("headers_too_large") => "the bound on heads",
        _ => "what it sends",
    }
}

fn kept(left: &Left) -> String {
    let Some(page) = &left.page else {
        return "none".to_owned();
    };
    let part = page.error.as_deref().map(name);
    match (part, page.bytes) {
        (_, 0) => "none".to_owned(),
        (Some("body_truncated"), MAX_BODY) => "max-body".to_owned(),
        (Some("short_body" | "bad_body" | "reset" | "timeout" | "idle_timeout"), _) => {
            "what had come".to_owned()
        }
        _ => "all".to_owned(),
    }
}

fn again(left: &Left) -> &'static str {
    let asked = left.asked.iter().filter(|entry| entry.path == "/").count();
    match (asked, &left.page) {
        (0, _) => "when the host has rested",
        (1, _) => "no",
        (2, Some(_)) => "yes",
        (more, _) => panic!("asked {more} times"),
    }
}

#[test]
fn each_misbehaviour_has_its_outcome() {
    let kinds = misbehaviours();
    let web = web(&kinds);
    let crawl = crawl_of(&web, &kinds);
    let summary = crawl.run().unwrap();
    assert!(
        matches!(summary.ended, Ended::Unreachable(_)),
        "{:?}",
        summary.ended
    );
    let pages: BTreeMap<_, _> = crawl
        .pages()
        .into_iter()
        .map(|row| (row.url.clone(), row))
        .collect();
    let requests = crawl.requests();
    let excluded = crawl.excluded();
    let mut table = String::from(HEAD);
    let names = kinds.iter().map(|kind| kind.name);
    let names = names.chain(doorways().map(|doorway| doorway.name));
    for ((host, name), seed) in (0..).zip(names).zip(&crawl.config.seeds) {
        let authority = web.authority(host);
        let of_host = requests.iter().filter(|row| row.host == authority);
        let there = format!("http://{authority}/");
        let left = Left {
            page: pages.get(seed.as_str()).cloned(),
            failures: of_host.filter_map(|row| row.failure.clone()).collect(),
            excluded: excluded
                .iter()
                .filter(|(url, _)| url.starts_with(&there))
                .map(|(_, reason)| reason.clone())
                .collect(),
            asked: web.log_of(host),
        };
        if let Some(page) = &left.page {
            // Whatever had a head is in the archive.
            assert_eq!(page.status.is_some(), page.warc.is_some(), "{name}");
        }
        let (outcome, held) = (outcome(&left), held(&left));
        let (kept, again) = (kept(&left), again(&left));
        let _ = writeln!(table, "| {name} | {outcome} | {held} | {kept} | {again} |");
    }
    expect_file!["../../../../docs/misbehaviour.md"].assert_eq(&table);
}

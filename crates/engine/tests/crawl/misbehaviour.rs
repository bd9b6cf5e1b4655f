//! Misbehaving servers: the outcome of each kind.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use crawl_archive::rows::{PageRow, RequestRow};
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
- *Coverage*: the [coverage verdict](rows.md#hostsjsonl) of a host of which nothing else is known, and what is missing.
- *Asked again*: whether the URL is tried again, `--retries` times, before this becomes its outcome. A host without a
  connection rests, and its URLs wait.

The table is written from a crawl of as many hosts on loopback, each of which does one of these things, by
`UPDATE_EXPECT=1 cargo test -p crawl-engine --test crawl misbehaviour`. What 256 such servers at once cost in memory
stands in [limits.md](limits.md#fetching).

| the server | outcome | held until | kept | asked again | coverage |
|---|---|---|---|---|---|
";

/// A kind of misbehaviour that is not in a reply, but in how connections are accepted.
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

/// The time limits.
#[derive(Clone, Copy, PartialEq)]
enum TimeLimit {
    Connect,
    FirstByte,
    Idle,
    Total,
}

/// Misbehaviours that end by a time limit, and the limit.
const ENDED_BY_TIME: &[(&str, TimeLimit)] = &[
    ("sends nothing", TimeLimit::FirstByte),
    (
        "sends half a status line, then nothing",
        TimeLimit::FirstByte,
    ),
    (
        "a head one line at a time, without end",
        TimeLimit::FirstByte,
    ),
    (FLOOD, TimeLimit::FirstByte),
    ("100 Continue, then nothing", TimeLimit::FirstByte),
    (
        "a length of 10 GB, two bytes, then nothing",
        TimeLimit::Idle,
    ),
    ("half a body, then nothing", TimeLimit::Idle),
    ("chunks without the last one, then nothing", TimeLimit::Idle),
    ("a body one byte at a time", TimeLimit::Total),
    ("accepts TLS and says nothing", TimeLimit::Connect),
];

/// The misbehaviour that keeps a processor busy until its time is over.
const FLOOD: &str = "100 Continue without end";

fn time_limit(name: &str) -> Option<TimeLimit> {
    let of_name = ENDED_BY_TIME.iter().find(|(kind, _)| *kind == name);
    of_name.map(|(_, limit)| *limit)
}

/// Starts a host for each kind. The kinds of connections come last.
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

/// Returns the name and the first page of each host.
fn seeds(web: &TestWeb, kinds: &[Misbehaviour]) -> Vec<(&'static str, CanonicalUrl)> {
    let kinds = kinds.iter().map(|kind| (kind.name, "http"));
    let doorways = doorways().map(|doorway| (doorway.name, doorway.scheme));
    let url = |host, scheme| format!("{scheme}://{}/", web.authority(host));
    (0..)
        .zip(kinds.chain(doorways))
        .map(|(host, (name, scheme))| (name, canonicalize(None, &url(host, scheme)).unwrap()))
        .collect()
}

/// Crawls `seeds` so that only `limit` ends exchanges by time, and no outcome depends on the speed
/// of the machine.
fn crawl_of(web: &TestWeb, seeds: Vec<CanonicalUrl>, limit: Option<TimeLimit>) -> Crawl {
    let mut crawl = Crawl::of(web);
    let config = &mut crawl.config;
    config.seeds = seeds;
    config.sitemaps = false;
    config.retries = 1;
    let fetch = &mut config.fetch;
    fetch.typed.clone_from(&config.seeds);
    let time = |which| match limit {
        Some(limit) if limit == which => Duration::from_secs(10),
        _ => Duration::from_mins(10),
    };
    fetch.timeout = time(TimeLimit::Total);
    fetch.first_byte_timeout = time(TimeLimit::FirstByte);
    fetch.idle_timeout = time(TimeLimit::Idle);
    fetch.connect_timeout = time(TimeLimit::Connect);
    fetch.max_body = MAX_BODY;
    crawl
}

/// All records of several crawls.
#[derive(Default)]
struct Records {
    pages: BTreeMap<String, PageRow>,
    requests: Vec<RequestRow>,
    excluded: BTreeMap<String, String>,
    coverage: BTreeMap<String, String>,
}

impl Records {
    fn of(crawl: &Crawl) -> Records {
        let pages = crawl.pages().into_iter();
        Records {
            pages: pages.map(|row| (row.url.clone(), row)).collect(),
            requests: crawl.requests(),
            excluded: crawl.excluded(),
            coverage: crawl.coverage(),
        }
    }

    fn add(&mut self, mut other: Records) {
        self.pages.append(&mut other.pages);
        self.requests.append(&mut other.requests);
        self.excluded.append(&mut other.excluded);
        self.coverage.append(&mut other.coverage);
    }
}

/// Crawls the kinds that no time limit ends, then the flood alone, which would delay answers that
/// must arrive in time. The kinds that end by a time limit come last, all limits in parallel.
fn records(web: &TestWeb, seeds: &[(&str, CanonicalUrl)]) -> Records {
    let crawl = |limit, chosen: &dyn Fn(&str) -> bool| {
        let of_limit = seeds
            .iter()
            .filter(|(name, _)| time_limit(name) == limit && chosen(name));
        let urls = of_limit.map(|(_, url)| url.clone()).collect();
        let crawl = crawl_of(web, urls, limit);
        crawl.run().unwrap();
        Records::of(&crawl)
    };
    let mut all = crawl(None, &|_| true);
    all.add(crawl(Some(TimeLimit::FirstByte), &|name| name == FLOOD));
    let limits = [
        TimeLimit::Connect,
        TimeLimit::FirstByte,
        TimeLimit::Idle,
        TimeLimit::Total,
    ];
    std::thread::scope(|scope| {
        let crawls =
            limits.map(|limit| scope.spawn(move || crawl(Some(limit), &|name| name != FLOOD)));
        for crawl in crawls {
            all.add(crawl.join().unwrap());
        }
    });
    all
}

/// The records of a crawl for one host.
struct HostRecords {
    page: Option<PageRow>,
    /// Failures of its requests in the records.
    failures: Vec<String>,
    /// Why its other URLs were excluded.
    excluded: Vec<String>,
    /// The requests in the host's own log.
    asked: Vec<LogEntry>,
}

fn outcome(records_of_host: &HostRecords) -> String {
    let mut words = match (&records_of_host.page, records_of_host.failures.first()) {
        (Some(page), _) => {
            let status = page.status.map(|status| status.to_string());
            // The text after the name comes from libraries.
            let error = page.error.as_deref().map(name);
            let words: Vec<_> = status.iter().map(String::as_str).chain(error).collect();
            words.join(", ")
        }
        (None, Some(failure)) => format!("{failure}; it rests"),
        (None, None) => "nothing".to_owned(),
    };
    for reason in &records_of_host.excluded {
        let _ = write!(words, "; a link is put aside: {reason}");
    }
    words
}

fn name(error: &str) -> &str {
    error.split(':').next().unwrap_or(error)
}

/// Returns the limit that ends the exchange.
fn held(records_of_host: &HostRecords) -> &'static str {
    let error = records_of_host
        .page
        .as_ref()
        .and_then(|page| page.error.as_deref());
    match error
        .map(name)
        .or(records_of_host.failures.first().map(String::as_str))
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

fn kept(records_of_host: &HostRecords) -> String {
    let Some(page) = &records_of_host.page else {
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

fn again(records_of_host: &HostRecords) -> &'static str {
    let count = records_of_host
        .asked
        .iter()
        .filter(|entry| entry.path == "/")
        .count();
    match (count, &records_of_host.page) {
        (0, _) => "after a rest",
        (1, _) => "no",
        (2, Some(_)) => "yes",
        (more, _) => panic!("asked {more} times"),
    }
}

#[test]
fn each_misbehaviour_has_its_outcome() {
    let kinds = misbehaviours();
    let web = web(&kinds);
    let seeds = seeds(&web, &kinds);
    let records = records(&web, &seeds);
    let mut table = String::from(HEAD);
    for (host, (name, seed)) in (0..).zip(&seeds) {
        let authority = web.authority(host);
        let of_host = records.requests.iter().filter(|row| row.host == authority);
        let there = format!("http://{authority}/");
        let records_of_host = HostRecords {
            page: records.pages.get(seed.as_str()).cloned(),
            failures: of_host.filter_map(|row| row.failure.clone()).collect(),
            excluded: records
                .excluded
                .iter()
                .filter(|(url, _)| url.starts_with(&there))
                .map(|(_, reason)| reason.clone())
                .collect(),
            asked: web.log_of(host),
        };
        if let Some(page) = &records_of_host.page {
            // Every answer with a head is in the archive.
            assert_eq!(page.status.is_some(), page.warc.is_some(), "{name}");
        }
        let (outcome, held) = (outcome(&records_of_host), held(&records_of_host));
        let (kept, again) = (kept(&records_of_host), again(&records_of_host));
        let coverage = &records.coverage[authority];
        // Hosts that refused us are `blocked`, and hosts that withheld an answer are not `whole`.
        let status = records_of_host.page.as_ref().and_then(|page| page.status);
        let error = records_of_host
            .page
            .as_ref()
            .and_then(|page| page.error.as_deref());
        let is_refused = matches!(error, Some("login_page" | "challenge" | "block_page"));
        let is_refused = is_refused || records_of_host.page.is_none() || status == Some(403);
        assert_eq!(
            coverage.starts_with("blocked"),
            is_refused,
            "{name}: {coverage}"
        );
        if error.is_some() || status.is_none() {
            assert_ne!(coverage, "whole", "{name}");
        }
        // The evidence repeats the outcome.
        let coverage = coverage.split(':').next().unwrap();
        let _ = writeln!(
            table,
            "| {name} | {outcome} | {held} | {kept} | {again} | {coverage} |"
        );
    }
    expect_file!["../../../../docs/misbehaviour.md"].assert_eq(&table);
}

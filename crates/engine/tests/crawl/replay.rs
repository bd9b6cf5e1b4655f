//! Tests that crawl the test web and then replay the crawl from its archive.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crawl_archive::rows::{PageRow, RequestRow};
use crawl_engine::{Config, EngineError, RecordedCrawl, ReplayResult, ReplayTimingMode, replay};
use crawl_records::compare;
use crawl_scope::ScopeMode;
use crawl_testweb::{HttpAnswer, LinkMix, ReplySequence, ScriptedReply, TestWeb};

use crate::support::Crawl;

const HOSTS: u32 = 5;

/// Starts hosts that link to each other and have several kinds of errors and redirects.
fn web() -> TestWeb {
    let web = TestWeb::builder().seed(5).hosts(HOSTS).pages(8).start();
    let busy = ReplySequence::from(HttpAnswer::of(503).header("retry-after", "1"));
    web.script(
        1,
        "/busy",
        busy.then(HttpAnswer::html("<a href=/late>late</a>")),
    );
    web.script(1, "/late", HttpAnswer::html("late"));
    web.script(2, "/moved", HttpAnswer::redirect(302, "/there"));
    web.script(2, "/there", HttpAnswer::html("there"));
    web.script(3, "/broken", ScriptedReply::reset());
    web.script(
        4,
        "/cut",
        ScriptedReply::short_body(&HttpAnswer::html("<a href=/x>cut"), 9),
    );
    let urls = [(1, "/busy"), (2, "/moved"), (3, "/broken"), (4, "/cut")];
    let odd: String = urls
        .map(|(host, path)| format!("<a href={}>x</a>", web.url(host, path)))
        .concat();
    let roots: String = (0..HOSTS)
        .map(|host| format!("<a href={}>x</a>", web.url(host, "/")))
        .collect();
    web.script(0, "/odd", HttpAnswer::html(&format!("{odd}{roots}")));
    web
}

/// Returns a crawl of all hosts. The gap between two requests is longer than a commit takes, so
/// each request is chosen after the previous result is committed.
fn crawl(web: &TestWeb) -> Crawl {
    let mut crawl = Crawl::of(web);
    let config = &mut crawl.config;
    let odd = crawl_weburl::canonicalize(None, &web.url(0, "/odd")).unwrap();
    config.seeds.push(odd.clone());
    config.fetch.typed.push(odd);
    config.fetch.allow_private = true;
    config.scope.mode = ScopeMode::Any;
    config.politeness.delay = Duration::from_millis(150);
    config.commit_within = Duration::from_millis(150);
    config.wait_unreachable = Duration::from_secs(60);
    crawl
}

/// Replays a crawl with a changed configuration, into a directory next to that of the crawl.
fn replayed(
    crawl: &Crawl,
    name: &str,
    timing: ReplayTimingMode,
    change: impl FnOnce(&mut Config),
) -> (ReplayResult, PathBuf) {
    let mut config = crawl.config.clone();
    config.output = crawl.config.output.with_file_name(name);
    change(&mut config);
    let output = config.output.clone();
    let recorded = RecordedCrawl::open(&crawl.config.output).unwrap();
    (replay(config, recorded, timing).unwrap(), output)
}

fn requests(dir: &std::path::Path) -> Vec<RequestRow> {
    let rows: Result<Vec<_>, _> = crawl_records::requests(dir).unwrap().collect();
    rows.unwrap()
}

/// This test takes about 5 seconds.
#[test]
fn a_crawl_is_replayed_by_its_own_policy_in_the_same_order() {
    let web = web();
    let crawl = crawl(&web);
    crawl.run().unwrap();
    let connections = web.connections();
    web.take_log();
    let (replay, dir) = replayed(&crawl, "again", ReplayTimingMode::AsRecorded, |_| {});
    // The web still runs, but the replay sends no request to it.
    assert_eq!((web.connections(), web.log()), (connections, Vec::new()));
    assert_eq!(replay.difference, None);
    assert_eq!(replay.gaps.not_archived, 0);
    let sent = requests(&crawl.config.output);
    let again = requests(&dir);
    let summary = |row: &RequestRow| {
        let times = (row.start, row.end);
        (row.url.clone(), row.purpose.clone(), row.answer(), times)
    };
    // The requests are compared in the order in which they ended, over all hosts.
    assert_eq!(
        again.iter().map(summary).collect::<Vec<_>>(),
        sent.iter().map(summary).collect::<Vec<_>>()
    );
    let by_host = |rows: &[RequestRow]| {
        let mut hosts: BTreeMap<String, u32> = BTreeMap::new();
        for row in rows {
            *hosts.entry(row.host.clone()).or_default() += 1;
        }
        hosts
    };
    assert_eq!(by_host(&again).len(), HOSTS as usize);
    let compared = compare(&crawl.config.output, &dir).unwrap();
    assert!(compared.order.is_same, "{compared}");
    assert!(compared.has_same_pages(), "{compared}");
    assert!(compared.excluded.is_empty(), "{compared}");
    assert!(compared.hosts.is_empty(), "{compared}");
    for answer in ["503", "302", "404", "reset", "short_body"] {
        let has = sent.iter().any(|row| row.answer() == answer);
        assert!(has, "no request had the answer {answer}");
    }
}

#[test]
fn redirects_of_robots_txt_to_other_hosts_are_replayed() {
    let web = TestWeb::builder().seed(5).hosts(5).pages(4).start();
    let redirect = |target: &str| HttpAnswer::redirect(302, target);
    web.script(
        0,
        "/rules",
        HttpAnswer::text("User-agent: *\nDisallow: /p/3\n"),
    );
    web.script(1, "/robots.txt", redirect(&web.url(0, "/rules")));
    web.script(2, "/robots.txt", redirect(&web.url(1, "/rules")));
    web.script(1, "/rules", redirect(&web.url(3, "/rules")));
    web.script(3, "/rules", HttpAnswer::of(503));
    web.script(4, "/robots.txt", redirect("http://127.0.0.1:1/rules"));
    let roots = (0..5).map(|host| format!("<a href={}>x</a>", web.url(host, "/")));
    web.script(0, "/odd", HttpAnswer::html(&roots.collect::<String>()));
    let mut crawl = crawl(&web);
    crawl.config.wait_unreachable = Duration::ZERO;
    crawl.run().unwrap();
    let (replay, dir) = replayed(&crawl, "again", ReplayTimingMode::AsRecorded, |_| {});
    assert_eq!(replay.difference, None);
    let sent = requests(&crawl.config.output);
    let summary = |row: &RequestRow| (row.url.clone(), row.purpose.clone(), row.answer());
    assert_eq!(
        requests(&dir).iter().map(summary).collect::<Vec<_>>(),
        sent.iter().map(summary).collect::<Vec<_>>()
    );
    let hops: Vec<_> = sent.iter().filter(|row| row.purpose == "hop").collect();
    assert!(hops.len() >= 4, "{hops:#?}");
}

#[test]
fn another_policy_gets_archived_answers_and_the_rest_is_listed() {
    let web = TestWeb::builder()
        .hosts(2)
        .pages(3)
        .sitemap(false)
        .mix(LinkMix::plain())
        .start();
    let elsewhere = web.url(1, "/elsewhere");
    let links = format!("<a href=/a>a</a><a href=/out>b</a><a href={elsewhere}>c</a>");
    web.script(0, "/", HttpAnswer::html(&links));
    web.script(0, "/a", HttpAnswer::html("<a href=/b>b</a>"));
    web.script(0, "/b", HttpAnswer::html("b"));
    web.script(0, "/out", HttpAnswer::html("out"));
    let mut crawl = Crawl::of(&web);
    crawl.config.scope.exclude = vec!["/out$".to_owned()];
    crawl.run().unwrap();
    web.take_log();
    let (found, dir) = replayed(&crawl, "wide", ReplayTimingMode::ByPolicy, |config| {
        config.scope.mode = ScopeMode::Any;
        config.scope.exclude.clear();
        config.politeness.delay = Duration::from_secs(100);
    });
    assert_eq!(web.log(), []);
    // The archive lacks two URLs: the page that the crawl excluded, and the robots.txt of the other
    // host.
    assert_eq!(found.gaps.not_archived, 2);
    let took = found.summary.elapsed.as_secs();
    // Five gaps of 100 seconds: before /, /sitemap.xml, /a, /out and /b.
    assert!((500..502).contains(&took), "{took} s");
    let pages: Vec<PageRow> = crawl_records::pages(&dir)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let row = |path: &str| {
        let url = web.url(0, path);
        pages.iter().find(|row| row.url == url).unwrap()
    };
    assert_eq!(
        row("/out").error.as_deref(),
        Some("not_archived: the archive has no answer")
    );
    assert_eq!(
        (row("/b").status, row("/b").warc.clone()),
        (Some(200), None)
    );
    let excluded: Vec<_> = crawl_records::excluded(&dir)
        .unwrap()
        .map(|row| row.map(|row| (row.url, row.reason)))
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(excluded, [(elsewhere.clone(), "not_archived".to_owned())]);
    // This replay has a narrower scope, and cuts off bodies.
    let (found, dir) = replayed(&crawl, "narrow", ReplayTimingMode::ByPolicy, |config| {
        config.scope.max_depth = Some(1);
        config.fetch.max_body = 5;
    });
    assert_eq!(found.gaps.not_archived, 0);
    assert_eq!(found.summary.pages, 1, "a link that is cut leads nowhere");
    let row = crawl_records::pages(&dir).unwrap().next().unwrap().unwrap();
    assert_eq!(
        (row.bytes, row.error.as_deref()),
        (5, Some("body_truncated"))
    );
}

#[test]
fn a_replay_needs_a_new_directory_and_no_crawl_resumes_it() {
    let web = TestWeb::builder().pages(2).start();
    let crawl = Crawl::of(&web);
    crawl.run().unwrap();
    let (_, dir) = replayed(&crawl, "again", ReplayTimingMode::AsRecorded, |_| {});
    web.take_log();
    let open = || RecordedCrawl::open(&crawl.config.output).unwrap();
    let config = Config {
        output: dir.clone(),
        ..crawl.config.clone()
    };
    let refused = replay(config.clone(), open(), ReplayTimingMode::ByPolicy);
    assert!(matches!(refused, Err(EngineError::ReplayOutput { .. })));
    let onto_itself = replay(crawl.config.clone(), open(), ReplayTimingMode::ByPolicy);
    assert!(matches!(onto_itself, Err(EngineError::ReplayOutput { .. })));
    let mut going_on = crawl;
    going_on.config = config;
    let refused = going_on.run();
    assert!(matches!(refused, Err(EngineError::IsReplay { .. })));
    assert_eq!(web.log(), []);
    // A replay can't be replayed, since it has no archive.
    let nothing = RecordedCrawl::open(&dir);
    assert!(matches!(nothing, Err(EngineError::NothingToReplay { .. })));
}

#[test]
fn a_revisit_of_a_later_round_has_the_payload_of_the_first() {
    let web = TestWeb::builder().pages(3).sitemap(false).start();
    let mut crawl = Crawl::of(&web);
    crawl.run().unwrap();
    crawl.config.recrawl = true;
    crawl.run().unwrap();
    // Keep only the last row of each URL, as if the first round had not been logged.
    let rows = requests(&crawl.config.output);
    let last: BTreeMap<&str, &RequestRow> = rows.iter().map(|row| (&*row.url, row)).collect();
    let lines: String = last
        .values()
        .map(|row| serde_json::to_string(row).unwrap() + "\n")
        .collect();
    let again = rows.iter().filter(|row| row.url == web.url(0, "/"));
    assert_eq!(again.count(), 2);
    let pages: Vec<PageRow> = crawl.pages();
    std::fs::write(crawl.output("requests.jsonl"), lines).unwrap();
    crawl.config.recrawl = false;
    let (found, dir) = replayed(&crawl, "again", ReplayTimingMode::ByPolicy, |_| {});
    let again: Vec<PageRow> = crawl_records::pages(&dir)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(again.len() >= 3, "{again:?}");
    for row in again {
        let first = pages.iter().find(|page| page.url == row.url).unwrap();
        let outcome = |row: &PageRow| (row.status, row.digest.clone(), row.title.clone());
        assert_eq!(outcome(&row), outcome(first), "{}", row.url);
    }
    assert_eq!(found.gaps.withheld, 0);
}

//! Tests of every state that a robots.txt can be in, and of what is fetched in that state.

use std::fmt::Write as _;
use std::time::Duration;

use crawl_engine::{EndReason, ForbiddenRobotsPolicy};
use crawl_testweb::{
    ConnectionBehaviour, HttpAnswer, ReplySequence, ScriptedReply, TestWeb, TestWebBuilder,
};
use crawl_weburl::{CanonicalUrl, canonicalize};
use expect_test::expect_file;

use crate::support::Crawl;

const RULES: &str = "User-agent: *\nDisallow: /barred\n";

/// Returns a site of four pages. One is excluded by robots.txt, see [`RULES`].
fn site() -> TestWebBuilder {
    TestWeb::builder()
        .hosts(2)
        .sitemap(false)
        .script(
            0,
            "/",
            HttpAnswer::html("<a href=/one>1</a><a href=/two>2</a><a href=/barred>3</a>"),
        )
        .script(0, "/one", HttpAnswer::html("1"))
        .script(0, "/two", HttpAnswer::html("2"))
        .script(0, "/barred", HttpAnswer::html("3"))
        .script(1, "/elsewhere.txt", HttpAnswer::text(RULES))
}

fn crawl_of(web: &TestWeb) -> Crawl {
    let mut crawl = Crawl::of(web);
    crawl.config.sitemaps = false;
    crawl.config.fetch.allow_private = true;
    crawl.config.politeness.wait_first = Duration::from_millis(20);
    crawl.config.robots_times.first_wait = Duration::from_millis(20);
    crawl.config.robots_times.longest_wait = Duration::from_millis(40);
    crawl
}

/// A state of robots.txt, as a row of the table in `docs/robots-states.md`, and how to set it up.
struct State {
    name: &'static str,
    robots: Box<dyn Fn(&TestWeb) -> ReplySequence>,
    mode: ConnectionBehaviour,
    forbidden: ForbiddenRobotsPolicy,
    /// The time limit of an exchange, if this limit ends the exchange.
    timeout: Option<Duration>,
    /// Whether the crawl waits until robots.txt is available.
    waits: bool,
}

fn state<R: Into<ScriptedReply>>(
    name: &'static str,
    reply: impl Fn(&TestWeb) -> R + 'static,
) -> State {
    State {
        name,
        robots: Box::new(move |web| ReplySequence::always(reply(web))),
        mode: ConnectionBehaviour::Open,
        forbidden: ForbiddenRobotsPolicy::Allow,
        timeout: None,
        waits: false,
    }
}

fn states() -> Vec<State> {
    let hops = |web: &TestWeb, count: u32| {
        for hop in 1..count {
            let to = web.url(hop % 2, &format!("/hop{}", hop + 1));
            let at = format!("/hop{hop}");
            web.script((hop + 1) % 2, &at, HttpAnswer::redirect(301, &to));
        }
        let last = (count + 1) % 2;
        web.script(last, &format!("/hop{count}"), HttpAnswer::text(RULES));
        HttpAnswer::redirect(301, &web.url(0, "/hop1"))
    };
    let status = |name, status| state(name, move |_| HttpAnswer::of(status));
    let mut states = vec![
        state("200 and rules", |_| HttpAnswer::text(RULES)),
        state("200 and an empty file", |_| HttpAnswer::text("")),
        state("200 and an HTML page with a rule in it", |_| {
            HttpAnswer::html(&format!("<!doctype html><title>Oops</title>\n{RULES}"))
        }),
        state("206 and rules", |_| HttpAnswer {
            status: 206,
            ..HttpAnswer::text(RULES)
        }),
        state("206 and a part of the rules", |_| {
            let part = HttpAnswer::text(&RULES[..14]);
            HttpAnswer {
                status: 206,
                ..part.header("content-range", &format!("bytes 0-13/{}", RULES.len()))
            }
        }),
        state("200, compressed with gzip", |_| {
            HttpAnswer::text(RULES).gzip()
        }),
        state("200 and a broken gzip", |_| {
            HttpAnswer::text("no gzip at all").header("content-encoding", "gzip")
        }),
        state("200, an unknown encoding", |_| {
            HttpAnswer::text(RULES).header("content-encoding", "x-secret")
        }),
        state("a redirect to another host", |web| {
            HttpAnswer::redirect(302, &web.url(1, "/elsewhere.txt"))
        }),
        state("five redirects over two hosts", move |web| hops(web, 5)),
        state("six redirects", move |web| hops(web, 6)),
        state("a redirect to itself", |web| {
            HttpAnswer::redirect(301, &web.url(0, "/robots.txt"))
        }),
        state("a redirect without a target", |_| HttpAnswer::of(301)),
        status("300 without a target", 300),
        status("304 to a request without validators", 304),
        status("305", 305),
        status("400", 400),
        status("401", 401),
        status("403", 403),
        status("404", 404),
        status("410", 410),
        status("429", 429),
        state("429 with Retry-After", |_| {
            HttpAnswer::of(429).header("retry-after", "3600")
        }),
        status("500", 500),
        status("502", 502),
        status("503", 503),
        state("503 with Retry-After", |_| {
            HttpAnswer::of(503).header("retry-after", "3600")
        }),
        status("599", 599),
        State {
            timeout: Some(Duration::from_secs(2)),
            ..state("silence until the timeout", |_| ScriptedReply::silence())
        },
        state("a connection reset", |_| ScriptedReply::reset()),
        state("bytes that aren't HTTP", |_| ScriptedReply::garbage()),
        state("a body cut short", |_| {
            ScriptedReply::short_body(&HttpAnswer::text(RULES), 5)
        }),
        state("a broken chunk", |_| ScriptedReply::bad_chunk()),
        state("an unrequested transfer coding", |_| {
            ScriptedReply::unrequested_transfer_coding()
        }),
    ];
    states.push(State {
        forbidden: ForbiddenRobotsPolicy::Deny,
        ..status("401, --robots-forbidden deny", 401)
    });
    states.push(State {
        forbidden: ForbiddenRobotsPolicy::Deny,
        ..status("403, --robots-forbidden deny", 403)
    });
    states.push(State {
        mode: ConnectionBehaviour::Refused,
        ..status("a refused connection", 500)
    });
    states.push(State {
        robots: Box::new(|_| {
            ReplySequence::always(HttpAnswer::of(503))
                .then(ScriptedReply::reset())
                .then(HttpAnswer::text(RULES))
        }),
        waits: true,
        ..status("503, then a reset, then rules", 503)
    });
    states.push(State {
        robots: Box::new(|_| ReplySequence::always(HttpAnswer::of(503)).then(HttpAnswer::of(404))),
        waits: true,
        ..status("503, then 404", 503)
    });
    states.push(State {
        robots: Box::new(|_| {
            ReplySequence::always(HttpAnswer::of(503).header("retry-after", "0"))
                .then(HttpAnswer::text(RULES))
        }),
        ..status("503 with Retry-After: 0, then rules", 503)
    });
    states
}

/// Runs a crawl in this state of robots.txt. Returns the row of the table for that state.
fn play(state: &State) -> String {
    let web = site().start();
    web.script(0, "/robots.txt", (state.robots)(&web));
    web.connection_mode(0, state.mode).unwrap();
    let mut crawl = crawl_of(&web);
    crawl.config.robots_forbidden = state.forbidden;
    if let Some(timeout) = state.timeout {
        crawl.config.fetch.timeout = timeout;
    }
    if !state.waits {
        crawl.config.robots_times.first_wait = Duration::from_secs(300);
        crawl.config.robots_times.longest_wait = Duration::from_secs(6 * 3600);
    }
    crawl.config.wait_unreachable = Duration::from_secs(if state.waits { 60 } else { 0 });
    let summary = crawl.run().unwrap();
    let requests = crawl.requests();
    let robots = requests.iter().filter(|row| row.purpose != "page").count();
    let log = web.log();
    let is_page = |path: &str| ["/", "/one", "/two", "/barred"].contains(&path);
    let mut pages: Vec<_> = log
        .iter()
        .map(|entry| entry.path.as_str())
        .filter(|path| is_page(path))
        .collect();
    pages.sort_unstable();
    let pages = match pages.as_slice() {
        [] => "none".to_owned(),
        ["/", "/barred", "/one", "/two"] => "all".to_owned(),
        ["/", "/one", "/two"] => "what the rules allow".to_owned(),
        pages => format!("{pages:?}"),
    };
    let end = match &summary.ended {
        EndReason::Finished if summary.excluded.get("robots") == Some(&1) && summary.pages == 0 => {
            format!("finished: {}", summary.seeds_failed[0].why)
        }
        EndReason::Finished => "finished".to_owned(),
        EndReason::NoFetchableHost(hosts) => {
            assert_eq!(hosts[0].host.as_str(), web.authority(0));
            assert_eq!(summary.pending, 1, "its URLs wait for the next start");
            let reason = hosts[0]
                .why
                .replace(&web.url(0, "/robots.txt"), "robots.txt");
            format!("ended, host named: {reason}")
        }
        ended => format!("{ended:?}"),
    };
    let coverage = &crawl.coverage()[web.authority(0)];
    let expected = if pages == "none" {
        "blocked, "
    } else {
        "whole"
    };
    assert!(coverage.starts_with(expected), "{}: {coverage}", state.name);
    format!("| {} | {robots} | {pages} | {end} |", state.name)
}

#[test]
fn rfc9309_2_3_1_state_by_state() {
    let mut table = String::from(
        "# robots.txt, state by state\n\n\
         For site owners, and for anyone whose report names a robots.txt failure: what a crawl of a site with four\n\
         pages fetches after each response to `/robots.txt`. The rules, if they can be read, disallow one page.\n\n\
         For example, if robots.txt answers 503, nothing else is fetched from the server until that changes, unless\n\
         an earlier good copy is still valid (`--robots-last-good`, 30 days). The crawls below have no such copy.\n\
         An unreachable robots.txt is first retried after its `Retry-After` (up to `--max-retry-after`), or else\n\
         after 5 minutes (`--robots-retry`). Each further wait is twice as long, unless `Retry-After` is longer. If\n\
         only such hosts are left, the crawl waits at most a minute (`--wait-unreachable`), then ends, keeps their\n\
         URLs for the next start, and names each host and the reason.\n\n\
         RFC 9309: a 4xx other than 429, more than five redirects, or a redirect without a target means that there\n\
         are no rules. After 429, 5xx, 300 without a target, 304, 305, or no readable answer, the rules are\n\
         unknown, so nothing is fetched.\n\n\
         In this table, hosts without a fetched page have the [coverage verdict](rows.md#hostsjsonl) `blocked`, all\n\
         others `whole` (`complete` in reports). In the two rows before the last, the crawl is\n\
         set to retry after milliseconds, and to wait.\n\n\
         | response to `/robots.txt` | requests for it | pages fetched | the crawl |\n|---|---|---|---|\n",
    );
    for state in states() {
        let _ = writeln!(table, "{}", play(&state));
    }
    table += "\nA test writes this page from the requests that a server on loopback received:\n\
              `UPDATE_EXPECT=1 cargo test -p crawl-engine --test crawl state_by_state`.\n";
    expect_file!["../../../../docs/robots-states.md"].assert_eq(&table);
}

#[test]
fn rfc9309_2_3_1_4_the_last_good_copy_serves_while_the_file_is_unreachable() {
    let script = || ReplySequence::always(HttpAnswer::text(RULES)).then(HttpAnswer::of(503));
    let web = site().script(0, "/robots.txt", script()).start();
    let mut crawl = crawl_of(&web);
    // For each page, the copy of robots.txt is too old, and every request for a new copy is
    // answered with 503.
    crawl.config.robots_times.most = Duration::from_micros(1);
    crawl.config.wait_unreachable = Duration::from_secs(60);
    let summary = crawl.run().unwrap();
    assert_eq!(summary.ended, EndReason::Finished);
    assert_eq!((summary.pages, summary.excluded["robots"]), (3, 1));
    assert!(web.log().iter().any(|entry| entry.status == Some(503)));
    assert!(web.log().iter().all(|entry| entry.path != "/barred"));

    // Pages wait if the last good copy of robots.txt is too old as well.
    let web = site().script(0, "/robots.txt", script()).start();
    let mut crawl = crawl_of(&web);
    crawl.config.robots_times.most = Duration::from_micros(1);
    crawl.config.robots_times.last_good = Duration::ZERO;
    crawl.config.robots_times.first_wait = Duration::from_secs(300);
    crawl.config.robots_times.longest_wait = Duration::from_secs(300);
    let summary = crawl.run().unwrap();
    assert!(
        matches!(summary.ended, EndReason::NoFetchableHost(_)),
        "{:?}",
        summary.ended
    );
    assert_eq!((summary.pages, summary.pending), (1, 3));
}

#[test]
fn a_changed_file_applies_to_queued_urls() {
    let changed = ReplySequence::always(HttpAnswer::text("User-agent: *\nDisallow:\n")).then(
        HttpAnswer::text("User-agent: *\nDisallow: /two\nDisallow: /barred\n"),
    );
    let web = site().script(0, "/robots.txt", changed).start();
    let mut crawl = crawl_of(&web);
    crawl.config.robots_times.most = Duration::from_micros(1);
    crawl.run().unwrap();
    let paths: Vec<_> = web.log().into_iter().map(|entry| entry.path).collect();
    assert_eq!(paths[..3], ["/robots.txt", "/", "/robots.txt"]);
    assert!(!paths.contains(&"/two".to_owned()) && !paths.contains(&"/barred".to_owned()));
    let row = crawl.excluded_row(&web.url(0, "/two"));
    assert_eq!(
        (row.rule.as_deref(), row.line),
        (Some("Disallow: /two"), Some(2))
    );
    assert_eq!(row.found_on, Some(web.url(0, "/")));
}

#[test]
fn a_restart_does_not_refetch_a_fresh_copy() {
    let web = site()
        .script(0, "/robots.txt", HttpAnswer::text(RULES))
        .start();
    let mut crawl = crawl_of(&web);
    crawl.run().unwrap();
    let more = canonicalize(None, &web.url(0, "/barred?too")).unwrap();
    crawl.config.seeds.push(more);
    let more = canonicalize(None, &web.url(0, "/one?too")).unwrap();
    crawl.config.seeds.push(more);
    web.take_log();
    crawl.run().unwrap();
    let paths: Vec<_> = web.log().into_iter().map(|entry| entry.path).collect();
    assert_eq!(paths, ["/one?too"]);
}

#[test]
fn rfc9309_2_4_an_old_copy_is_revalidated() {
    let rules = HttpAnswer::text(RULES).header("etag", "\"v1\"");
    let script = ReplySequence::always(rules).then(HttpAnswer::of(304));
    let web = site().script(0, "/robots.txt", script).start();
    let mut crawl = crawl_of(&web);
    crawl.config.robots_times.most = Duration::from_micros(1);
    let summary = crawl.run().unwrap();
    assert_eq!((summary.pages, summary.excluded["robots"]), (3, 1));
    let log = web.log();
    let requests: Vec<_> = log
        .iter()
        .filter(|entry| entry.path == "/robots.txt")
        .collect();
    assert!(requests.len() > 1);
    assert_eq!(requests[0].header("if-none-match"), None);
    assert!(
        requests[1..]
            .iter()
            .all(|entry| entry.header("if-none-match") == Some("\"v1\""))
    );
}

#[test]
fn rfc9309_2_3_1_5_a_page_in_place_of_robots_txt_is_named() {
    let web = site()
        .script(
            0,
            "/robots.txt",
            HttpAnswer::html("<html>All our pages are lost"),
        )
        .start();
    let summary = crawl_of(&web).run().unwrap();
    assert_eq!(summary.pages, 4);
    let named: Vec<_> = summary
        .strange_robots
        .iter()
        .map(CanonicalUrl::as_str)
        .collect();
    assert_eq!(named, [web.url(0, "/robots.txt")]);
}

#[test]
fn exchanges_of_robots_txt_are_archived_and_rows_name_the_rule() {
    let allow = "User-agent: crawl\nDisallow: /\nAllow: /$\nAllow: /one\n";
    let web = site()
        .script(0, "/robots.txt", HttpAnswer::text(allow))
        .start();
    let crawl = crawl_of(&web);
    crawl.run().unwrap();
    assert!(crawl.archive_holds(allow));
    let row = crawl.page(&web.url(0, "/one"));
    let robots = row.robots.unwrap();
    assert_eq!(
        (robots.verdict.as_str(), robots.rule.as_deref(), robots.line),
        ("allowed", Some("Allow: /one"), Some(4))
    );
    for path in ["/two", "/barred"] {
        let row = crawl.excluded_row(&web.url(0, path));
        assert_eq!(
            (row.rule.as_deref(), row.line),
            (Some("Disallow: /"), Some(2))
        );
    }
}

/// Returns the smallest gap between two requests, in microseconds.
fn least_gap(web: &TestWeb) -> i64 {
    let gaps = crawl_testweb::gaps(&web.log());
    gaps.into_iter().min().unwrap()
}

#[test]
fn rfc9309_2_3_1_2_a_robots_txt_at_an_excluded_host_is_not_fetched() {
    let web = site().start();
    let to = web.url(1, "/elsewhere.txt");
    web.script(0, "/robots.txt", HttpAnswer::redirect(302, &to));
    let mut crawl = crawl_of(&web);
    let excluded = canonicalize(None, &to).unwrap().host_key();
    crawl
        .config
        .scope
        .exclude_hosts
        .insert(excluded.as_str(), ())
        .unwrap();
    let summary = crawl.run().unwrap();
    let EndReason::NoFetchableHost(hosts) = &summary.ended else {
        panic!("{:?}", summary.ended)
    };
    assert_eq!(
        hosts[0].why,
        format!(
            "{} answered 302, to a host that --exclude-host leaves out",
            web.url(0, "/robots.txt")
        )
    );
    let log = web.log();
    assert!(
        log.iter().all(|entry| entry.path == "/robots.txt"),
        "{log:?}"
    );
}

#[test]
fn a_request_rate_is_a_gap() {
    let rules = "User-agent: *\nDisallow: /barred\nRequest-rate: 10/1s\n";
    let web = site()
        .script(0, "/robots.txt", HttpAnswer::text(rules))
        .start();
    let crawl = crawl_of(&web);
    crawl.run().unwrap();
    assert!(least_gap(&web) >= 100_000, "{:?}", web.log());
    assert!(
        crawl.requests()[2..]
            .iter()
            .all(|row| row.why == "request-rate")
    );
}

#[test]
fn outside_its_visit_times_only_robots_txt_is_fetched() {
    let minute = |hours: u64| {
        let seconds = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() + hours * 3600;
        format!("{:02}{:02}", seconds / 3600 % 24, seconds / 60 % 60)
    };
    let rules = |from, to| {
        format!(
            "User-agent: *\nDisallow: /barred\nVisit-time: {}-{}\n",
            minute(from),
            minute(to)
        )
    };
    let web = site()
        .script(0, "/robots.txt", HttpAnswer::text(&rules(2, 4)))
        .start();
    let crawl = crawl_of(&web);
    let summary = crawl.run().unwrap();
    let EndReason::NoFetchableHost(hosts) = &summary.ended else {
        panic!("{:?}", summary.ended)
    };
    assert_eq!(hosts[0].why, "its robots.txt names another visit time");
    assert_eq!(summary.pending, 1);
    assert!(web.log().iter().all(|entry| entry.path == "/robots.txt"));

    let web = site()
        .script(0, "/robots.txt", HttpAnswer::text(&rules(23, 1)))
        .start();
    assert_eq!(crawl_of(&web).run().unwrap().pages, 3);
}

#[test]
fn rate_limit_fields_are_respected() {
    let page = HttpAnswer::html("<a href=/one>1</a><a href=/two>2</a>")
        .header("ratelimit-policy", "\"page\";q=400;w=100")
        .header("ratelimit", "\"page\";r=400;t=100");
    let web = site()
        .script(0, "/robots.txt", HttpAnswer::of(404))
        .script(0, "/", page)
        .start();
    let crawl = crawl_of(&web);
    crawl.run().unwrap();
    assert!(least_gap_after(&web, "/") >= 250_000, "{:?}", web.log());
    assert_eq!(crawl.requests()[2].why, "rate-limit");
}

/// Returns the microseconds from the end of the request for `path` to the start of the next one.
fn least_gap_after(web: &TestWeb, path: &str) -> u64 {
    let log = web.log();
    let at = log.iter().position(|entry| entry.path == path).unwrap();
    log[at + 1].start_us - log[at].end_us.unwrap()
}

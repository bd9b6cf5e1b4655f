//! Tests, in virtual time, of servers that do not simply answer 200: when each URL is requested,
//! and with what outcome.

use std::collections::HashMap;
use std::time::Duration;

use crawl_fetcher::FailureKind;
use crawl_scheduler::SnapshotCompleteness;
use crawl_scope::ScopeMode;
use crawl_weburl::canonicalize;
use expect_test::expect;

use super::scripted_servers::{SimulatedAnswer, SimulatedCrawl, answer, crawl, fails, moved, page};
use crate::config::{Config, TrapAvoidance};
use crate::control::CrawlCommand;

const ROBOTS: &str = "http://a.example/robots.txt";
const SEED: &str = "http://a.example/";

#[test]
fn a_failed_url_is_retried_if_that_may_help() {
    for (name, reply, expected) in [
        (
            "500",
            vec![answer(500, "")],
            expect![[r#"
            500
            0.000 robots http://a.example/robots.txt 200
            1.100 page http://a.example/ 500
            2.200 page http://a.example/ 500
            page http://a.example/: 500, 0 bytes
            1 pages, 1 failed, 0 seeds, 0 pending
            Finished, after 2 s
        "#]],
        ),
        (
            "500 once",
            vec![answer(500, ""), page("")],
            expect![[r#"
            500 once
            0.000 robots http://a.example/robots.txt 200
            1.100 page http://a.example/ 500
            2.200 page http://a.example/ 200
            page http://a.example/: 200, 0 bytes
            1 pages, 0 failed, 1 seeds, 0 pending
            Finished, after 2 s
        "#]],
        ),
        (
            "501",
            vec![answer(501, "")],
            expect![[r#"
            501
            0.000 robots http://a.example/robots.txt 200
            1.100 page http://a.example/ 501
            page http://a.example/: 501, 0 bytes
            1 pages, 1 failed, 0 seeds, 0 pending
            Finished, after 1 s
        "#]],
        ),
        (
            "502",
            vec![answer(502, ""), page("")],
            expect![[r#"
            502
            0.000 robots http://a.example/robots.txt 200
            1.100 page http://a.example/ 502
            2.200 page http://a.example/ 200
            page http://a.example/: 200, 0 bytes
            1 pages, 0 failed, 1 seeds, 0 pending
            Finished, after 2 s
        "#]],
        ),
        (
            "504",
            vec![answer(504, ""), page("")],
            expect![[r#"
            504
            0.000 robots http://a.example/robots.txt 200
            1.100 page http://a.example/ 504
            2.200 page http://a.example/ 200
            page http://a.example/: 200, 0 bytes
            1 pages, 0 failed, 1 seeds, 0 pending
            Finished, after 2 s
        "#]],
        ),
        (
            "timeout",
            vec![fails(FailureKind::Timeout)],
            expect![[r#"
            timeout
            0.000 robots http://a.example/robots.txt 200
            1.100 page http://a.example/ timeout
            2.200 page http://a.example/ timeout
            page http://a.example/: timeout: as the test says, 0 bytes
            1 pages, 1 failed, 0 seeds, 0 pending
            Finished, after 2 s
        "#]],
        ),
        (
            "refused",
            vec![fails(FailureKind::AddressRefused)],
            expect![[r#"
                refused
                0.000 robots http://a.example/robots.txt 200
                1.100 page http://a.example/ address_refused
                page http://a.example/: address_refused: as the test says, 0 bytes
                1 pages, 1 failed, 0 seeds, 0 pending
                Finished, after 1 s
            "#]],
        ),
        (
            "no connection",
            vec![fails(FailureKind::ConnectRefused), page("")],
            expect![[r#"
                no connection
                0.000 robots http://a.example/robots.txt 200
                1.100 page http://a.example/ connect_refused
                11.200 page http://a.example/ 200
                page http://a.example/: 200, 0 bytes
                1 pages, 0 failed, 1 seeds, 0 pending
                Finished, after 11 s
            "#]],
        ),
        (
            "no descriptors",
            vec![fails(FailureKind::NoDescriptors), page("")],
            expect![[r#"
                no descriptors
                0.000 robots http://a.example/robots.txt 200
                1.100 page http://a.example/ no_descriptors
                2.200 page http://a.example/ 200
                page http://a.example/: 200, 0 bytes
                1 pages, 0 failed, 1 seeds, 0 pending
                Finished, after 2 s
            "#]],
        ),
        (
            "broken off",
            vec![page("beginning").but(FailureKind::ShortBody)],
            expect![[r#"
                broken off
                0.000 robots http://a.example/robots.txt 200
                1.100 page http://a.example/ short_body
                2.200 page http://a.example/ short_body
                page http://a.example/: 200, 9 bytes
                1 pages, 0 failed, 1 seeds, 0 pending
                Finished, after 2 s
            "#]],
        ),
        (
            "429",
            vec![answer(429, ""), page("")],
            expect![[r#"
            429
            0.000 robots http://a.example/robots.txt 200
            1.100 page http://a.example/ 429
            61.200 page http://a.example/ 200
            page http://a.example/: 200, 0 bytes
            1 pages, 0 failed, 1 seeds, 0 pending
            Finished, after 61 s
        "#]],
        ),
        (
            "429 with a time",
            vec![answer(429, "").with("retry-after", "7")],
            expect![[r#"
                429 with a time
                0.000 robots http://a.example/robots.txt 200
                1.100 page http://a.example/ 429
                8.200 page http://a.example/ 429
                page http://a.example/: 429, 0 bytes
                1 pages, 1 failed, 0 seeds, 0 pending
                Finished, after 8 s
            "#]],
        ),
    ] {
        let report = crawl(
            |config| {
                config.sitemaps = false;
                config.retries = 1;
                config.wait_unreachable = Duration::from_secs(600);
            },
            &[(ROBOTS, vec![answer(200, "")]), (SEED, reply)],
        );
        expected.assert_eq(&format!("{name}\n{report}"));
    }
}

#[test]
fn a_redirect_is_followed_after_its_retry_after() {
    let report = crawl(
        |config| config.sitemaps = false,
        &[
            (SEED, vec![moved("/new").with("retry-after", "7")]),
            ("http://a.example/new", vec![page("")]),
        ],
    );
    expect![[r#"
        0.000 robots http://a.example/robots.txt 404
        1.100 page http://a.example/ 302
        8.200 page http://a.example/new 200
        page http://a.example/: 302, 0 bytes
        page http://a.example/new: 200, 0 bytes
        2 pages, 0 failed, 1 seeds, 0 pending
        Finished, after 8 s
    "#]]
    .assert_eq(&report);
}

/// In a 300 (RFC 9110 section 15.4.1), `Location` has the choice that the server prefers, and the
/// body lists all choices.
#[test]
fn rfc9110_15_4_1_the_choices_of_a_300_are_followed() {
    let choices = "<title>t</title><a href=/b.en>b</a><a href=/b.de>b</a>";
    let report = crawl(
        |config| config.sitemaps = false,
        &[
            (SEED, vec![page("<a href=/a>a</a><a href=/b>b</a>")]),
            (
                "http://a.example/a",
                vec![answer(300, choices).with("location", "/a.en")],
            ),
            ("http://a.example/b", vec![answer(300, choices)]),
            ("http://a.example/a.en", vec![page("")]),
            ("http://a.example/b.en", vec![page("")]),
            ("http://a.example/b.de", vec![page("")]),
        ],
    );
    expect![[r#"
        0.000 robots http://a.example/robots.txt 404
        1.100 page http://a.example/ 200
        2.200 page http://a.example/a 300
        3.300 page http://a.example/b 300
        4.400 page http://a.example/a.en 200
        5.500 page http://a.example/b.en 200
        6.600 page http://a.example/b.de 200
        page http://a.example/: 200, 32 bytes
        page http://a.example/a: 300, 54 bytes
        page http://a.example/b: 300, 54 bytes
        page http://a.example/a.en: 200, 0 bytes
        page http://a.example/b.en: 200, 0 bytes
        page http://a.example/b.de: 200, 0 bytes
        6 pages, 0 failed, 1 seeds, 0 pending
        Finished, after 6 s
    "#]]
    .assert_eq(&report);
}

#[test]
fn an_unreachable_host_has_its_last_failure_as_the_reason() {
    let report = crawl(
        |config| {
            config.sitemaps = false;
            config.wait_unreachable = Duration::from_secs(1);
        },
        &[(SEED, vec![fails(FailureKind::ConnectRefused)])],
    );
    expect![[r#"
        0.000 robots http://a.example/robots.txt 404
        1.100 page http://a.example/ connect_refused
        0 pages, 0 failed, 0 seeds, 1 pending
        unreachable: a.example until Some(11), a request failed: connect_refused, after 1 s
    "#]]
    .assert_eq(&report);
}

#[test]
fn a_retry_after_with_any_status_delays_the_next_request() {
    let report = crawl(
        |config| {
            config.sitemaps = false;
            config.retries = 1;
        },
        &[
            (
                SEED,
                vec![page("<a href=/a>1</a><a href=/b>2</a><a href=/c>3</a>")],
            ),
            (
                "http://a.example/a",
                vec![answer(500, "").with("retry-after", "7"), page("")],
            ),
            (
                "http://a.example/b",
                vec![answer(404, "").with("retry-after", "9")],
            ),
            (
                "http://a.example/c",
                vec![page("").with("retry-after", "11")],
            ),
        ],
    );
    expect![[r#"
        0.000 robots http://a.example/robots.txt 404
        1.100 page http://a.example/ 200
        2.200 page http://a.example/a 500
        9.300 page http://a.example/b 404
        18.400 page http://a.example/c 200
        19.500 page http://a.example/a 200
        page http://a.example/: 200, 48 bytes
        page http://a.example/b: 404, 0 bytes
        page http://a.example/c: 200, 0 bytes
        page http://a.example/a: 200, 0 bytes
        4 pages, 1 failed, 1 seeds, 0 pending
        Finished, after 19 s
    "#]]
    .assert_eq(&report);
}

/// The trap detector postpones URLs that were found on pages with nothing new.
#[test]
fn a_postponed_url_is_not_retried_more_often() {
    let names = "ant bee cat dog eel fox gnu hen ibis jay kite lark".split(' ');
    let failing: Vec<String> = names
        .map(|name| format!("http://a.example/{name}"))
        .collect();
    let mut links = String::new();
    let mut web = vec![];
    for (number, url) in failing.iter().enumerate() {
        let same: &'static str = format!("http://a.example/ok{number}").leak();
        links += &format!("<a href={url}>x</a><a href={same}>x</a>");
        let text = "<title>same</title><p>some text for the page here</p>";
        web.push((&*url.clone().leak(), vec![answer(500, "oops")]));
        web.push((same, vec![page(text)]));
    }
    web.push((SEED, vec![page(&links)]));
    let report = crawl(
        |config| {
            config.retries = 1;
            config.traps = TrapAvoidance::default();
        },
        &web,
    );
    for url in failing {
        let requests = report.matches(&format!("page {url} 500")).count();
        assert_eq!(requests, 2, "{report}");
    }
}

#[test]
fn only_redirects_of_seeds_extend_the_scope() {
    let report = crawl(
        |config| {
            config.sitemaps = false;
            config.scope.mode = ScopeMode::Host;
        },
        &[
            (SEED, vec![moved("http://b.example/")]),
            (
                "http://b.example/",
                vec![page(
                    "<a href=/p>p</a><a href=//a.example/q>q</a><a href=//c.example/>c</a>",
                )],
            ),
            ("http://b.example/p", vec![moved("http://d.example/")]),
            (
                "http://a.example/q",
                vec![page("<a href=//b.example/late>late</a>")],
            ),
            ("http://b.example/late", vec![page("")]),
        ],
    );
    expect![[r#"
        0.000 robots http://a.example/robots.txt 404
        1.100 page http://a.example/ 302
        1.200 robots http://b.example/robots.txt 404
        2.300 page http://b.example/ 200
        2.400 page http://a.example/q 200
        3.400 page http://b.example/p 302
        4.500 page http://b.example/late 200
        page http://a.example/: 302, 0 bytes
        page http://b.example/: 200, 69 bytes
        page http://a.example/q: 200, 33 bytes
        page http://b.example/p: 302, 0 bytes
        page http://b.example/late: 200, 0 bytes
        excluded http://c.example/: scope: host
        excluded http://d.example/: scope: host
        5 pages, 0 failed, 1 seeds, 0 pending
        Finished, after 4 s
    "#]]
    .assert_eq(&report);
}

#[test]
fn a_page_that_crashed_the_program_is_read_last_and_alone_or_never() {
    let links: String = (1..6).map(|n| format!("<a href=/{n}>{n}</a>")).collect();
    let urls = [1, 2, 3, 4, 5].map(|n| format!("http://a.example/{n}"));
    let answers = [(SEED, vec![page(&links)])];
    let deaths = [(0, 3), (1, 4), (2, 2), (3, 3)];
    let deaths: HashMap<_, _> = deaths
        .into_iter()
        .map(|(url, deaths): (usize, u32)| (canonicalize(None, &urls[url]).unwrap(), deaths))
        .collect();
    let (_, report) = SimulatedCrawl::default().run(
        |config| config.politeness.per_host = 4,
        |coordinator| coordinator.suspect(deaths.clone()),
        &answers,
    );
    expect![[r#"
        0.000 robots http://a.example/robots.txt 404
        0.100 page http://a.example/ 200
        0.100 sitemap http://a.example/sitemap.xml 404
        0.200 page http://a.example/3 404
        1.100 page http://a.example/5 404
        1.200 page http://a.example/4 404
        1.300 page http://a.example/1 404
        page http://a.example/: 200, 80 bytes
        page http://a.example/2: reader_killed, 0 bytes
        page http://a.example/3: 404, 0 bytes
        page http://a.example/5: 404, 0 bytes
        page http://a.example/4: 404, 0 bytes
        page http://a.example/1: 404, 0 bytes
        6 pages, 5 failed, 1 seeds, 0 pending
        Finished, after 1 s
    "#]]
    .assert_eq(&report);
}

#[test]
fn requests_in_flight_are_given_up_when_the_time_is_over() {
    let scenario = SimulatedCrawl::default();
    let slow = |answer: SimulatedAnswer| vec![answer.after(60)];
    let (_, first) = scenario.run(
        |config| config.budgets.max_time = Some(Duration::from_secs(2)),
        |_| {},
        &[
            (
                SEED,
                vec![page("<a href=//b.example/>b</a><a href=/2>2</a>")],
            ),
            ("http://a.example/sitemap.xml", slow(page(""))),
            ("http://b.example/robots.txt", slow(answer(503, ""))),
        ],
    );
    expect![[r#"
        0.000 robots http://a.example/robots.txt 404
        1.100 page http://a.example/ 200
        1.200 robots http://b.example/robots.txt given_up
        page http://a.example/: 200, 42 bytes
        1 pages, 0 failed, 1 seeds, 3 pending
        Budget("max-time"), after 2 s
    "#]]
    .assert_eq(&first);
    let (_, second) = scenario.run(
        |_| {},
        |coordinator| coordinator.restore(SnapshotCompleteness::Complete).unwrap(),
        &[],
    );
    expect![[r#"
        1.000 sitemap http://a.example/sitemap.xml 404
        2.100 page http://a.example/2 404
        2.600 robots http://b.example/robots.txt 404
        4.700 sitemap http://b.example/sitemap.xml 404
        6.350 page http://b.example/ 404
        page http://a.example/2: 404, 0 bytes
        page http://b.example/: 404, 0 bytes
        2 pages, 2 failed, 0 seeds, 0 pending
        Finished, after 6 s
    "#]]
    .assert_eq(&second);
}

#[test]
fn a_host_budget_counts_both_schemes() {
    let links: String = (1..6)
        .map(|n| format!("<a href=/{n}>{n}</a><a href=https://a.example/{n}>{n}</a>"))
        .collect();
    for (name, change, expected) in [
        (
            "per host",
            (|config| config.budgets.per_host.max_pages = Some(4)) as fn(&mut Config),
            expect![[r#"
                per host
                0.000 robots http://a.example/robots.txt 404
                0.100 page http://a.example/ 200
                0.200 robots https://a.example/robots.txt 404
                1.100 page http://a.example/1 404
                1.200 page https://a.example/1 404
                1.300 page http://a.example/2 404
                page http://a.example/: 200, 245 bytes
                page http://a.example/1: 404, 0 bytes
                page https://a.example/1: 404, 0 bytes
                page http://a.example/2: 404, 0 bytes
                4 pages, 3 failed, 1 seeds, 7 pending
                Budget("max-pages-per-host"), after 2 s
            "#]],
        ),
        (
            "per host, and a sitemap that nobody named does not count",
            |config| {
                config.budgets.per_host.max_pages = Some(3);
                config.sitemaps = true;
            },
            expect![[r#"
                per host, and a sitemap that nobody named does not count
                0.000 robots http://a.example/robots.txt 404
                0.100 page http://a.example/ 200
                0.100 sitemap http://a.example/sitemap.xml 404
                1.100 robots https://a.example/robots.txt 404
                1.200 page http://a.example/1 404
                1.200 sitemap https://a.example/sitemap.xml 404
                2.200 page http://a.example/2 404
                page http://a.example/: 200, 245 bytes
                page http://a.example/1: 404, 0 bytes
                page http://a.example/2: 404, 0 bytes
                3 pages, 2 failed, 1 seeds, 8 pending
                Budget("max-pages-per-host"), after 2 s
            "#]],
        ),
        (
            "time of the servers",
            |config| config.budgets.max_server_time = Some(Duration::from_millis(500)),
            expect![[r#"
                time of the servers
                0.000 robots http://a.example/robots.txt 404
                0.100 page http://a.example/ 200
                0.200 robots https://a.example/robots.txt 404
                1.100 page http://a.example/1 404
                1.200 page https://a.example/1 404
                page http://a.example/: 200, 245 bytes
                page http://a.example/1: 404, 0 bytes
                page https://a.example/1: 404, 0 bytes
                3 pages, 2 failed, 1 seeds, 8 pending
                Budget("max-server-time"), after 1 s
            "#]],
        ),
        (
            "in all",
            |config| config.budgets.max_pages = Some(4),
            expect![[r#"
                in all
                0.000 robots http://a.example/robots.txt 404
                0.100 page http://a.example/ 200
                0.200 robots https://a.example/robots.txt 404
                1.100 page http://a.example/1 404
                1.200 page https://a.example/1 404
                1.300 page http://a.example/2 404
                page http://a.example/: 200, 245 bytes
                page http://a.example/1: 404, 0 bytes
                page https://a.example/1: 404, 0 bytes
                page http://a.example/2: 404, 0 bytes
                4 pages, 3 failed, 1 seeds, 7 pending
                Budget("max-pages"), after 1 s
            "#]],
        ),
        (
            "bytes",
            |config| config.budgets.max_bytes = Some(200),
            expect![[r#"
                bytes
                0.000 robots http://a.example/robots.txt 404
                0.100 page http://a.example/ 200
                page http://a.example/: 200, 245 bytes
                1 pages, 0 failed, 1 seeds, 10 pending
                Budget("max-bytes"), after 0 s
            "#]],
        ),
    ] {
        let report = crawl(
            |config| {
                config.sitemaps = false;
                config.politeness.per_host = 3;
                change(config);
            },
            &[(SEED, vec![page(&links)])],
        );
        expected.assert_eq(&format!("{name}\n{report}"));
    }
}

/// Some servers answer any URL with a page. Such an answer for a guessed sitemap has no row, so it
/// doesn't count as a page of its host. A guessed sitemap that exists counts.
#[test]
fn a_host_budget_counts_only_guessed_sitemaps_that_exist() {
    let list = "<urlset><url><loc>http://a.example/1</loc></url></urlset>";
    for (name, sitemap, expected) in [
        (
            "no list",
            page("<p>This page does not exist."),
            expect![[r#"
                no list
                0.000 robots http://a.example/robots.txt 404
                1.100 page http://a.example/ 200
                2.200 sitemap http://a.example/sitemap.xml 200
                3.300 page http://a.example/1 404
                4.400 page http://a.example/2 404
                page http://a.example/: 200, 48 bytes
                page http://a.example/1: 404, 0 bytes
                page http://a.example/2: 404, 0 bytes
                3 pages, 2 failed, 1 seeds, 1 pending
                Budget("max-pages-per-host"), after 4 s
            "#]],
        ),
        (
            "a list",
            page(list),
            expect![[r#"
            a list
            0.000 robots http://a.example/robots.txt 404
            1.100 page http://a.example/ 200
            2.200 sitemap http://a.example/sitemap.xml 200
            3.300 page http://a.example/1 404
            page http://a.example/: 200, 48 bytes
            page http://a.example/sitemap.xml: 200, 57 bytes
            page http://a.example/1: 404, 0 bytes
            3 pages, 1 failed, 1 seeds, 2 pending
            Budget("max-pages-per-host"), after 3 s
        "#]],
        ),
    ] {
        let report = crawl(
            |config| config.budgets.per_host.max_pages = Some(3),
            &[
                (
                    SEED,
                    vec![page("<a href=/1>1</a><a href=/2>2</a><a href=/3>3</a>")],
                ),
                ("http://a.example/sitemap.xml", vec![sitemap]),
            ],
        );
        expected.assert_eq(&format!("{name}\n{report}"));
    }
}

#[test]
fn the_bytes_of_a_host_are_those_of_its_pages() {
    let rules = format!("User-agent: *\n# {}\nDisallow: /x\n", "a".repeat(1000));
    let report = crawl(
        |config| config.budgets.per_host.max_bytes = Some(50),
        &[
            ("http://a.example/robots.txt", vec![page(&rules)]),
            ("http://a.example/sitemap.xml", vec![page(&rules)]),
            (SEED, vec![page("<a href=/1>1</a><a href=/2>2</a>")]),
            (
                "http://a.example/1",
                vec![page("<p>The first of two pages.")],
            ),
        ],
    );
    expect![[r#"
        0.000 robots http://a.example/robots.txt 200
        1.100 page http://a.example/ 200
        2.200 sitemap http://a.example/sitemap.xml 200
        3.300 page http://a.example/1 200
        page http://a.example/: 200, 32 bytes
        page http://a.example/1: 200, 26 bytes
        2 pages, 0 failed, 1 seeds, 1 pending
        Budget("max-bytes-per-host"), after 3 s
    "#]]
    .assert_eq(&report);
}

#[test]
fn a_parked_host_is_listed_at_the_end() {
    let scenario = SimulatedCrawl {
        commands: vec![(
            0,
            CrawlCommand::Park(canonicalize(None, SEED).unwrap().host_key()),
        )],
        ..SimulatedCrawl::default()
    };
    let (_, report) = scenario.run(|_| {}, |_| {}, &[(SEED, vec![page("")])]);
    expect![[r#"
        0 pages, 0 failed, 0 seeds, 1 pending
        unreachable: a.example until None, it is parked, after 0 s
    "#]]
    .assert_eq(&report);
}

//! Tests, in virtual time, of the requests needed to learn an origin's rules: redirects and
//! failures of robots.txt, and `tdmrep.json`.

use crawl_fetcher::{FailureKind, HostRequestHeaders};
use crawl_policy::usage_statements::UsagePurpose;
use crawl_scope::ScopeMode;
use expect_test::expect;

use super::scripted_servers::{SimulatedCrawl, answer, crawl, fails, moved, page};
use crate::config::ForbiddenRobotsPolicy;

const ROBOTS: &str = "http://a.example/robots.txt";
const SEED: &str = "http://a.example/";

#[test]
fn rfc9309_2_3_1_2_hops_keep_the_pace_of_the_host_that_they_lead_to() {
    let report = crawl(
        |config| config.sitemaps = false,
        &[
            (ROBOTS, vec![moved("http://b.example/one")]),
            ("http://b.example/one", vec![moved("/two")]),
            (
                "http://b.example/two",
                vec![answer(200, "User-agent: *\nDisallow: /x\n")],
            ),
            (
                "http://b.example/robots.txt",
                vec![answer(200, "User-agent: *\nCrawl-delay: 5\n")],
            ),
            (
                SEED,
                vec![page(
                    "<a href=/x>x</a> <a href=//b.example/p>p</a><a href=//b.example/q>q</a>",
                )],
            ),
            ("http://b.example/p", vec![page("p")]),
        ],
    );
    expect![[r#"
        0.000 robots http://a.example/robots.txt 302
        0.100 hop http://b.example/one 302
        1.200 hop http://b.example/two 200
        1.300 page http://a.example/ 200
        2.300 robots http://b.example/robots.txt 200
        7.400 page http://b.example/p 200
        12.500 page http://b.example/q 404
        page http://a.example/: 200, 71 bytes
        page http://b.example/p: 200, 1 bytes
        page http://b.example/q: 404, 0 bytes
        excluded http://a.example/x: robots: Disallow: /x
        3 pages, 1 failed, 1 seeds, 0 pending
        Finished, after 12 s
    "#]]
    .assert_eq(&report);
}

#[test]
fn the_row_of_each_request_for_robots_txt_has_its_outcome() {
    let links = "<a href=//b.example/>b</a> <a href=//c.example/>c</a> <a href=//d.example/>d</a>";
    let (played, _) = SimulatedCrawl::default().run(
        |config| config.sitemaps = false,
        |_| {},
        &[
            (ROBOTS, vec![moved("http://b.example/one")]),
            ("http://b.example/one", vec![answer(200, "")]),
            (SEED, vec![page(links)]),
            (
                "http://b.example/robots.txt",
                vec![answer(200, "?").with("content-encoding", "gzip")],
            ),
            ("http://c.example/robots.txt", vec![answer(503, "")]),
        ],
    );
    let rows = played.requests.iter().take(6).map(|row| {
        let outcome = row.robots.clone().unwrap_or_default();
        let (of, state) = (outcome.of, outcome.state);
        format!(
            "{} {}: {of} {state} {:?}\n",
            row.url,
            row.answer(),
            outcome.why
        )
    });
    expect![[r#"
        http://a.example/robots.txt 302: http://a.example redirect None
        http://b.example/one 200: http://a.example rules None
        http://a.example/ 200:   None
        http://b.example/robots.txt 200: http://b.example unreachable Some("encoding")
        http://c.example/robots.txt 503: http://c.example unreachable None
        http://d.example/robots.txt 404: http://d.example none None
    "#]]
    .assert_eq(&rows.collect::<String>());
}

#[test]
fn rfc9309_2_3_1_2_after_five_hops_there_are_no_rules() {
    let report = crawl(
        |config| config.sitemaps = false,
        &[
            (ROBOTS, vec![moved("/0")]),
            ("http://a.example/0", vec![moved("/1")]),
            ("http://a.example/1", vec![moved("/2")]),
            ("http://a.example/2", vec![moved("/3")]),
            ("http://a.example/3", vec![moved("/4")]),
            ("http://a.example/4", vec![moved("/5")]),
            (SEED, vec![page("")]),
        ],
    );
    expect![[r#"
        0.000 robots http://a.example/robots.txt 302
        1.100 hop http://a.example/0 302
        2.200 hop http://a.example/1 302
        3.300 hop http://a.example/2 302
        4.400 hop http://a.example/3 302
        5.500 hop http://a.example/4 302
        6.600 page http://a.example/ 200
        page http://a.example/: 200, 0 bytes
        1 pages, 0 failed, 1 seeds, 0 pending
        Finished, after 6 s
    "#]]
    .assert_eq(&report);
}

#[test]
fn urls_of_an_origin_with_a_refused_address_are_excluded() {
    let refused = vec![fails(FailureKind::AddressRefused)];
    let report = crawl(
        |config| config.sitemaps = false,
        &[
            (ROBOTS, vec![answer(404, "")]),
            (
                SEED,
                vec![page(
                    "<a href=//b.example/1>1</a><a href=//b.example/2>2</a><a href=//c.example/>c</a>",
                )],
            ),
            ("http://b.example/robots.txt", refused.clone()),
            (
                "http://c.example/robots.txt",
                vec![moved("//b.example/rules")],
            ),
            ("http://b.example/rules", refused),
        ],
    );
    expect![[r#"
        0.000 robots http://a.example/robots.txt 404
        1.100 page http://a.example/ 200
        1.200 robots http://b.example/robots.txt address_refused
        1.200 robots http://c.example/robots.txt 302
        2.300 hop http://b.example/rules address_refused
        page http://a.example/: 200, 80 bytes
        excluded http://b.example/1: address: as the test says
        excluded http://b.example/2: address: as the test says
        1 pages, 0 failed, 1 seeds, 1 pending
        unreachable: c.example until Some(302), http://c.example/robots.txt: address_refused: redirected to http://b.example/rules, after 3 s
    "#]]
    .assert_eq(&report);
}

#[test]
fn rfc9309_2_3_1_4_without_a_robots_txt_nothing_is_fetched() {
    for (why, reply, expected) in [
        (
            "503",
            vec![answer(503, "")],
            expect![[r#"
                503
                0.000 robots http://a.example/robots.txt 503
                0 pages, 0 failed, 0 seeds, 1 pending
                unreachable: a.example until Some(300), http://a.example/robots.txt answered 503, after 0 s
            "#]],
        ),
        (
            "503 for 400 s",
            vec![answer(503, "").with("retry-after", "400")],
            expect![[r#"
                503 for 400 s
                0.000 robots http://a.example/robots.txt 503
                0 pages, 0 failed, 0 seeds, 1 pending
                unreachable: a.example until Some(400), http://a.example/robots.txt answered 503, after 0 s
            "#]],
        ),
        (
            "coding",
            vec![answer(200, "x").with("content-encoding", "br")],
            expect![[r#"
                coding
                0.000 robots http://a.example/robots.txt 200
                0 pages, 0 failed, 0 seeds, 1 pending
                unreachable: a.example until Some(300), http://a.example/robots.txt answered 200 in an encoding that can't be undone, after 0 s
            "#]],
        ),
        (
            "no connection",
            vec![fails(FailureKind::ConnectRefused)],
            expect![[r#"
                no connection
                0.000 robots http://a.example/robots.txt connect_refused
                0 pages, 0 failed, 0 seeds, 1 pending
                unreachable: a.example until Some(300), http://a.example/robots.txt: connect_refused, after 0 s
            "#]],
        ),
        (
            "TLS",
            vec![fails(FailureKind::TlsFailed)],
            expect![[r#"
                TLS
                0.000 robots http://a.example/robots.txt tls_failed
                0 pages, 0 failed, 0 seeds, 1 pending
                unreachable: a.example until Some(300), http://a.example/robots.txt: tls_failed: as the test says, after 0 s
            "#]],
        ),
    ] {
        let report = crawl(
            |config| config.sitemaps = false,
            &[(ROBOTS, reply), (SEED, vec![page("")])],
        );
        expected.assert_eq(&format!("{why}\n{report}"));
    }
}

#[test]
fn a_forbidden_robots_txt_closes_the_site_if_so_configured() {
    let report = crawl(
        |config| config.robots_forbidden = ForbiddenRobotsPolicy::Deny,
        &[(ROBOTS, vec![answer(403, "")]), (SEED, vec![page("")])],
    );
    expect![[r#"
        0.000 robots http://a.example/robots.txt 403
        excluded http://a.example/: robots: robots.txt answered 403
        0 pages, 0 failed, 0 seeds, 0 pending
        Finished, after 1 s
    "#]]
    .assert_eq(&report);
}

#[test]
fn tdmrep_json_is_fetched_before_pages_and_retried() {
    let tdmrep = "http://a.example/.well-known/tdmrep.json";
    let bars_x = r#"[{"location": "/x*", "tdm-reservation": 1}]"#;
    for (name, reply, expected) in [
        (
            "there",
            vec![answer(200, bars_x)],
            expect![[r#"
            there
            0.000 robots http://a.example/robots.txt 200
            3.100 tdmrep http://a.example/.well-known/tdmrep.json 200
            6.200 page http://a.example/ 200
            page http://a.example/: 200, 17 bytes
            excluded http://a.example/x1: usage: tdmrep.json: /x*: tdm-reservation: 1
            1 pages, 0 failed, 1 seeds, 0 pending
            Finished, after 9 s
        "#]],
        ),
        (
            "later",
            vec![
                answer(500, ""),
                fails(FailureKind::Timeout),
                answer(200, bars_x),
            ],
            expect![[r#"
                later
                0.000 robots http://a.example/robots.txt 200
                3.100 tdmrep http://a.example/.well-known/tdmrep.json 500
                6.200 tdmrep http://a.example/.well-known/tdmrep.json timeout
                9.300 tdmrep http://a.example/.well-known/tdmrep.json 200
                12.400 page http://a.example/ 200
                page http://a.example/: 200, 17 bytes
                excluded http://a.example/x1: usage: tdmrep.json: /x*: tdm-reservation: 1
                1 pages, 0 failed, 1 seeds, 0 pending
                Finished, after 15 s
            "#]],
        ),
        (
            "never",
            vec![answer(500, "")],
            expect![[r#"
            never
            0.000 robots http://a.example/robots.txt 200
            3.100 tdmrep http://a.example/.well-known/tdmrep.json 500
            6.200 tdmrep http://a.example/.well-known/tdmrep.json 500
            9.300 tdmrep http://a.example/.well-known/tdmrep.json 500
            12.400 page http://a.example/ 200
            15.500 page http://a.example/x1 200
            page http://a.example/: 200, 17 bytes
            page http://a.example/x1: 200, 0 bytes
            2 pages, 0 failed, 1 seeds, 0 pending
            Finished, after 15 s
        "#]],
        ),
        (
            "not there",
            vec![answer(404, "")],
            expect![[r#"
            not there
            0.000 robots http://a.example/robots.txt 200
            3.100 tdmrep http://a.example/.well-known/tdmrep.json 404
            6.200 page http://a.example/ 200
            9.300 page http://a.example/x1 200
            page http://a.example/: 200, 17 bytes
            page http://a.example/x1: 200, 0 bytes
            2 pages, 0 failed, 1 seeds, 0 pending
            Finished, after 9 s
        "#]],
        ),
    ] {
        let report = crawl(
            |config| {
                config.purpose = Some(UsagePurpose::TrainAi);
                config.retries = 2;
                config.sitemaps = false;
            },
            &[
                (ROBOTS, vec![answer(200, "User-agent: *\nCrawl-delay: 3\n")]),
                (tdmrep, reply),
                (SEED, vec![page("<a href=/x1>x</a>")]),
                ("http://a.example/x1", vec![page("")]),
            ],
        );
        expected.assert_eq(&format!("{name}\n{report}"));
    }
}

#[test]
fn sitemaps_are_read_if_robots_txt_lists_them_or_one_is_guessed() {
    let names = "Sitemap: /own.xml\nSitemap: http://a.example/no/x.xml\nSitemap: http://b.example/s.xml\nSitemap: /k3y-of-ours\n";
    let report = crawl(
        |config| {
            config.scope.mode = ScopeMode::Host;
            config.scope.exclude = vec!["/no/".to_owned()];
            config.fetch.access = vec![
                HostRequestHeaders::new("a.example")
                    .header("x-key", "k3y-of-ours")
                    .unwrap(),
            ];
        },
        &[
            (ROBOTS, vec![answer(200, names)]),
            (SEED, vec![page("")]),
            (
                "http://a.example/own.xml",
                vec![
                    answer(
                        200,
                        "<urlset><url><loc>http://a.example/p</loc></url></urlset>",
                    )
                    .with("content-type", "text/xml"),
                ],
            ),
            ("http://a.example/p", vec![page("")]),
        ],
    );
    expect![[r#"
        0.000 robots http://a.example/robots.txt 200
        1.100 page http://a.example/ 200
        2.200 sitemap http://a.example/own.xml 200
        3.300 page http://a.example/p 200
        page http://a.example/: 200, 0 bytes
        page http://a.example/own.xml: 200, 57 bytes
        page http://a.example/p: 200, 0 bytes
        excluded http://a.example/no/x.xml: scope: exclude /no/
        excluded http://b.example/s.xml: scope: host
        3 pages, 0 failed, 1 seeds, 0 pending
        Finished, after 3 s
    "#]]
    .assert_eq(&report);
    let guessed = crawl(
        |_| {},
        &[(ROBOTS, vec![answer(200, "")]), (SEED, vec![page("")])],
    );
    expect![[r#"
        0.000 robots http://a.example/robots.txt 200
        1.100 page http://a.example/ 200
        2.200 sitemap http://a.example/sitemap.xml 404
        page http://a.example/: 200, 0 bytes
        1 pages, 0 failed, 1 seeds, 0 pending
        Finished, after 2 s
    "#]]
    .assert_eq(&guessed);
    // No sitemap is guessed if the origin's rules are unknown.
    let unknown = crawl(|_| {}, &[(ROBOTS, vec![answer(503, "")])]);
    expect![[r#"
        0.000 robots http://a.example/robots.txt 503
        0 pages, 0 failed, 0 seeds, 1 pending
        unreachable: a.example until Some(300), http://a.example/robots.txt answered 503, after 0 s
    "#]]
    .assert_eq(&unknown);
}

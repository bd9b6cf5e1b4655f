//! Tests of the totals that are computed for each host from its rows.
#![expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is used"
)]

use crawl_archive::rows::{ExcludedRow, RequestRow, RobotsOutcome};
use crawl_weburl::canonicalize;
use expect_test::{Expect, expect};

use super::HostReportCollector;
use crate::audit::RequestsInFlightLimits;

/// The start and end of a request, the required delay, and the wait demanded by the response. All
/// in milliseconds.
type Times = (u64, u64, u64, Option<u64>);

fn request(url: &str, host: &str, times: Times) -> RequestRow {
    let (start, end, gap_asked, wait_asked) = times;
    RequestRow {
        url: url.to_owned(),
        host: host.to_owned(),
        address: None,
        purpose: "page".to_owned(),
        start,
        end,
        status: Some(200),
        failure: None,
        gap_asked,
        why: "delay".to_owned(),
        wait_asked,
        after: None,
        signed: false,
        challenged: false,
        unmet_signature: None,
        method: None,
        via: None,
        robots: None,
        worker: None,
    }
}

fn excluded(url: &str) -> ExcludedRow {
    ExcludedRow {
        url: url.to_owned(),
        reason: "robots".to_owned(),
        rule: None,
        line: None,
        found_as: None,
        found_on: None,
        label: None,
        round: Some(1),
        at: None,
    }
}

/// Reads the limits from a `crawl.toml`.
fn in_flight(crawl_toml: &str) -> RequestsInFlightLimits {
    RequestsInFlightLimits::read(&toml::from_str(crawl_toml).unwrap())
}

#[test]
fn the_limit_of_a_site_table_decides_which_gaps_are_short() {
    for (table, expected) in [("site.\"e.example\"", 0), ("site.\"f.example\"", 1)] {
        let limits = in_flight(&format!("[{table}]\nper-host = 2\n"));
        let mut hosts = HostReportCollector::new(limits);
        for times in [(0, 1_000, 500, None), (200, 1_100, 500, None)] {
            hosts.request(&request("http://e.example/a", "e.example", times));
        }
        assert_eq!(hosts.finish()[0].gaps.short, expected, "{table}");
    }
}

fn check(per_host: u32, requests: &[Times], expect: Expect) {
    let mut hosts =
        HostReportCollector::new(in_flight(&format!("[politeness]\nper-host = {per_host}")));
    for times in requests {
        hosts.request(&request("http://e.example/a", "e.example", *times));
    }
    let [host] = &hosts.finish()[..] else {
        panic!("one host");
    };
    let (gaps, waits) = (&host.gaps, &host.waits);
    expect.assert_eq(&format!(
        "{} gaps, least {:?} (asked {:?}), most asked {:?}, short {}; {} waits, longest {}, asked {}, given {}, short {}",
        gaps.count, gaps.least_seen_ms, gaps.asked_then_ms, gaps.most_asked_ms, gaps.short,
        waits.count, waits.longest_asked_ms, waits.asked_ms, waits.given_ms, waits.short,
    ));
}

#[test]
fn a_host_has_one_name_in_all_rows() {
    // A host key has no port, except on loopback (docs/rows.md).
    let check = |urls: &[&str], expected: &[&str]| {
        let mut hosts = HostReportCollector::new(RequestsInFlightLimits::default());
        for url in urls {
            hosts.excluded(&excluded(url));
            let key = canonicalize(None, url).unwrap().host_key();
            hosts.request(&request(url, key.as_str(), (0, 1, 0, None)));
        }
        let hosts = hosts.finish();
        let names: Vec<_> = hosts.iter().map(|host| host.host.as_str()).collect();
        assert_eq!(names, expected);
        assert!(hosts.iter().all(|host| host.excluded == host.requests));
    };
    let ports = [
        "http://e.example/",
        "https://E.example./",
        "http://e.example:8080/a",
    ];
    check(&ports, &["e.example"]);
    let loopback = [
        "http://127.0.0.1/",
        "http://127.0.0.1:8080/",
        "https://localhost/",
    ];
    check(
        &loopback,
        &["127.0.0.1:80", "127.0.0.1:8080", "localhost:443"],
    );
}

#[test]
fn robots_txt_has_its_last_outcome_at_the_host_whose_rules_it_states() {
    let robots = |purpose: &str, url: &str, status, outcome: Option<(&str, &str)>| RequestRow {
        purpose: purpose.to_owned(),
        status,
        robots: outcome.map(|(of, state)| RobotsOutcome {
            of: of.to_owned(),
            state: state.to_owned(),
            why: (state == "unreachable").then(|| "encoding".to_owned()),
        }),
        ..request(url, &super::host_key(url).unwrap(), (0, 100, 0, None))
    };
    let (a, b) = ("http://a.example/robots.txt", "http://b.example/rules");
    let (of_a, of_c) = ("http://a.example", "http://c.example");
    let mut hosts = HostReportCollector::new(RequestsInFlightLimits::default());
    for row in [
        robots("robots", a, Some(302), Some((of_a, "redirect"))),
        robots("hop", b, Some(404), Some((of_a, "none"))),
        robots(
            "robots",
            "http://c.example/robots.txt",
            Some(200),
            Some((of_c, "unreachable")),
        ),
        // Rows of earlier development versions have no outcome.
        robots("robots", "http://d.example/robots.txt", Some(503), None),
        robots("hop", "http://d.example/rules", Some(200), None),
        // The crawl refused to send this request.
        RequestRow {
            failure: Some("address_refused".to_owned()),
            ..robots("robots", "http://e.example/robots.txt", None, None)
        },
    ] {
        hosts.request(&row);
    }
    let hosts = hosts.finish();
    let requests: Vec<u64> = hosts.iter().map(|host| host.requests).collect();
    assert_eq!(requests, [1, 1, 1, 2, 0]);
    let lines = hosts.into_iter().flat_map(|host| {
        let line = move |(origin, robots)| {
            format!(
                "{}: {origin} {}\n",
                host.host,
                crate::report_text::robots_line(&robots)
            )
        };
        host.robots.into_iter().map(line)
    });
    expect![[r#"
        a.example: http://a.example none (404)
        c.example: http://c.example unreachable (200, encoding)
        d.example: http://d.example unreachable (503)
        e.example: http://e.example unreachable (address_refused)
    "#]]
    .assert_eq(&lines.collect::<String>());
}

#[test]
fn gaps_are_from_end_to_start() {
    check(
        1,
        &[(0, 100, 0, None)],
        expect![
            "0 gaps, least None (asked None), most asked None, short 0; 0 waits, longest 0, asked 0, given 0, short 0"
        ],
    );
    check(
        1,
        &[
            (0, 100, 0, None),
            (1100, 1200, 1000, None),
            (3000, 3100, 1000, None),
        ],
        expect![
            "2 gaps, least Some(1000) (asked Some(1000)), most asked Some(1000), short 0; 0 waits, longest 0, asked 0, given 0, short 0"
        ],
    );
    check(
        1,
        &[(0, 100, 0, None), (1099, 1200, 1000, None)],
        expect![
            "1 gaps, least Some(999) (asked Some(1000)), most asked Some(1000), short 0; 0 waits, longest 0, asked 0, given 0, short 0"
        ],
    );
    check(
        1,
        &[(0, 100, 0, None), (1050, 1200, 1000, None)],
        expect![
            "1 gaps, least Some(950) (asked Some(1000)), most asked Some(1000), short 1; 0 waits, longest 0, asked 0, given 0, short 0"
        ],
    );
}

#[test]
fn gaps_and_waits_end_where_the_clock_was_set_back() {
    check(
        1,
        &[
            (0, 100, 0, None),
            (1100, 5200, 1000, Some(8000)),
            (500, 600, 1000, None),
            (1600, 1700, 1000, None),
            (6000, 6100, 1000, None),
        ],
        expect![
            "3 gaps, least Some(1000) (asked Some(1000)), most asked Some(1000), short 0; 1 waits, longest 8000, asked 8000, given 0, short 0"
        ],
    );
}

#[test]
fn places_in_flight_have_gaps_of_their_own() {
    // The rows are not in the order in which the requests ended: the request of the first row ended
    // last.
    let requests = [
        (10, 20, 0, None),
        (1020, 1030, 1000, None),
        (0, 1500, 0, None),
        (2030, 2040, 1000, None),
        (2500, 2600, 1000, None),
    ];
    check(
        2,
        &requests,
        expect![
            "3 gaps, least Some(1000) (asked Some(1000)), most asked Some(1000), short 0; 0 waits, longest 0, asked 0, given 0, short 0"
        ],
    );
    check(
        2,
        &[(0, 10, 0, None), (0, 10, 0, None), (500, 510, 1000, None)],
        expect![
            "1 gaps, least Some(490) (asked Some(1000)), most asked Some(1000), short 1; 0 waits, longest 0, asked 0, given 0, short 0"
        ],
    );
}

#[test]
fn waits_demanded_and_given() {
    check(
        1,
        &[
            (0, 100, 0, Some(5000)),
            (5100, 5200, 5000, None),
            (6200, 6300, 1000, Some(3_600_000)),
        ],
        expect![
            "2 gaps, least Some(1000) (asked Some(1000)), most asked Some(5000), short 0; 2 waits, longest 3600000, asked 3605000, given 5000, short 0"
        ],
    );
    check(
        1,
        &[(0, 100, 0, Some(5000)), (2100, 2200, 1000, None)],
        expect![
            "1 gaps, least Some(2000) (asked Some(1000)), most asked Some(1000), short 0; 1 waits, longest 5000, asked 5000, given 2000, short 1"
        ],
    );
}

#[test]
fn gaps_and_waits_between_two_workers_allow_for_their_clocks() {
    let check = |start: u64, counts: (u64, u64)| {
        let mut hosts = HostReportCollector::new(RequestsInFlightLimits::default());
        let rows = [
            (Some("w1"), (0, 100, 0, Some(8000))),
            (Some("w2"), (start, start + 10, 8000, None)),
        ];
        for (worker, times) in rows {
            let mut row = request("http://e.example/a", "e.example", times);
            row.worker = worker.map(str::to_owned);
            hosts.request(&row);
        }
        let [host] = &hosts.finish()[..] else {
            panic!("one host");
        };
        assert_eq!((host.gaps.count, host.gaps.short), counts, "{start}");
        assert_eq!(
            (host.waits.given_ms > 0, host.waits.short),
            (counts.0 > 0, counts.1)
        );
    };
    check(8_100, (1, 0));
    check(4_200, (0, 0));
    check(4_000, (1, 1));
}

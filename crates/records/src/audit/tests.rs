//! Audits small crawls. Some of their records are falsified.
#![expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is used"
)]

mod clock_set_back;
mod crawl_directory_fixture;
mod lost_rows;

use std::fmt::Write as _;
use std::fs;

use crawl_weburl::HostKey;
use expect_test::{Expect, expect};

use super::{audit, conduct_page};
use crate::error::RecordsError;
use crawl_directory_fixture::{More, Sent, SettingsTrigger, page, robots, write};

/// Audits a crawl, and compares its findings with `expect`: the undecided checks, the breaches, and
/// the lines cited for them.
fn check_with(sent: &[Sent], more: More, expect: Expect) {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), sent, &more);
    let audit = audit(dir.path(), &[]).unwrap();
    let mut text = String::new();
    let gaps = audit.checked.get("gaps").copied().unwrap_or(0);
    let pages = audit.checked.get("page_requests").copied().unwrap_or(0);
    let _ = write!(text, "{gaps} gaps, {pages} pages");
    for (why, count) in &audit.undecided {
        let _ = write!(text, "\n{count} undecided: {why}");
    }
    for breach in &audit.breaches {
        let lines = breach
            .rows
            .iter()
            .map(|row| format!("{} {}", row.file, row.line));
        let lines: Vec<String> = lines.collect();
        let _ = write!(
            text,
            "\n{}: {} ({})",
            breach.rule,
            breach.what,
            lines.join(", ")
        );
    }
    expect.assert_eq(&text);
}

fn check(sent: &[Sent], expect: Expect) {
    check_with(sent, More::default(), expect);
}

const BARS_P: &str = "User-agent: *\nDisallow: /p\n";

#[test]
fn all_kept() {
    let sent = [
        robots((0, 100), 200, BARS_P),
        page((1100, 1200), "/"),
        page((2199, 2300), "/a?b"),
    ];
    let more = More {
        pages: &[(1100, "/", "allowed", None)],
        excluded: &[("/p/q", 2, "Disallow: /p")],
        ..More::default()
    };
    check_with(&sent, more, expect!["2 gaps, 2 pages"]);
    check(&sent, expect!["2 gaps, 2 pages"]);
}

#[test]
fn checks_that_need_rows_of_another_worker_are_undecided() {
    let sent = [
        page((0, 100), "/a"),
        robots((1_100, 1_200), 200, BARS_P),
        page((2_200, 2_300), "/p"),
        page((2_400, 2_500), "/a"),
    ];
    let crawl = |toml| More {
        toml,
        pages: &[(2_400, "/a", "disallowed", Some((2, "Disallow: /a")))],
        excluded: &[("/q", 2, "Disallow: /q")],
        ..More::default()
    };
    let shared = "[frontier]\ncrawl = \"study\"\n";
    check_with(
        &sent,
        crawl(""),
        expect![[r#"
        3 gaps, 3 pages
        robots-first: http://e.example/a was requested before its robots.txt was known (requests.jsonl 1)
        disallowed: http://e.example/p was requested although robots.txt disallows it: `Disallow: /p` on line 2 (requests.jsonl 2, requests.jsonl 3)
        gap: a gap of 100 ms, but 1000 ms were required (according to its own row) (requests.jsonl 3, requests.jsonl 4)
        page-row: the row of http://e.example/a says disallowed by `Disallow: /a` on line 2, but robots.txt says allowed by no rule (requests.jsonl 2, pages.jsonl 1)
        excluded-row: http://e.example/q is listed as excluded by robots.txt, but no copy of robots.txt excludes it (excluded.jsonl 1)"#]],
    );
    check_with(
        &sent,
        crawl(shared),
        expect![[r#"
        3 gaps, 2 pages
        2 undecided: needs rows of another worker
        disallowed: http://e.example/p was requested although robots.txt disallows it: `Disallow: /p` on line 2 (requests.jsonl 2, requests.jsonl 3)
        gap: a gap of 100 ms, but 1000 ms were required (according to its own row) (requests.jsonl 3, requests.jsonl 4)
        page-row: the row of http://e.example/a says disallowed by `Disallow: /a` on line 2, but robots.txt says allowed by no rule (requests.jsonl 2, pages.jsonl 1)"#]],
    );
    let of_one = "[frontier]\ncrawl = \"study\"\nworker = \"w1\"\n";
    check_with(
        &sent,
        crawl(of_one),
        expect![[r#"
        3 gaps, 1 pages
        4 undecided: needs rows of another worker
        gap: a gap of 100 ms, but 1000 ms were required (according to its own row) (requests.jsonl 3, requests.jsonl 4)"#]],
    );
}

#[test]
fn a_delay_set_during_the_crawl_is_checked() {
    let log = |gap| {
        let page = |start| Sent {
            gap_asked: gap,
            ..page((start, start + 10), "/")
        };
        [
            robots((0, 100), 404, ""),
            page(5_000),
            page(5_010 + gap),
            page(20_000),
            page(20_010 + gap),
        ]
    };
    let more = |delays| More {
        delays,
        ..More::default()
    };
    let lowered = &[(2_000, None, Some(300))];
    check_with(&log(300), more(lowered), expect!["4 gaps, 4 pages"]);
    let until_restart = &[(2_000, Some("e.example"), Some(300)), (10_000, None, None)];
    check_with(
        &log(300),
        more(until_restart),
        expect![[r#"
            4 gaps, 4 pages
            gap: a gap of 300 ms, but 1000 ms were required (the minimum delay) (requests.jsonl 4, requests.jsonl 5)"#]],
    );
    let raised = &[(6_500, None, Some(2_000))];
    check_with(
        &log(1_000),
        more(raised),
        expect![[r#"
            4 gaps, 4 pages
            gap: a gap of 1000 ms, but 2000 ms were required (the minimum delay) (requests.jsonl 4, requests.jsonl 5)"#]],
    );
}

#[test]
fn each_request_is_checked_against_the_settings_of_its_time() {
    let log = |gap| {
        let page = |start| Sent {
            gap_asked: gap,
            ..page((start, start + 10), "/")
        };
        [
            robots((0, 100), 404, ""),
            page(5_000),
            page(5_010 + gap),
            page(20_000),
            page(20_010 + gap),
        ]
    };
    let more = |settings| More {
        toml: "[politeness]\ndelay = \"7s\"\n",
        settings,
        ..More::default()
    };
    const FAST: &str = r#"{"politeness": {"delay": "300ms"}}"#;
    const SLOW: &str = r#"{"politeness": {"delay": "1s"}}"#;
    const OF_SITE: &str = r#"{"politeness": {"delay": "9s", "per-host": 2}, "site": {"e.example": {"delay": "300ms", "per-host": 1}}}"#;
    let slower: &[_] = &[
        (0, SettingsTrigger::Run, FAST),
        (10_000, SettingsTrigger::Reread, SLOW),
    ];
    check_with(&log(1_000), more(slower), expect!["4 gaps, 4 pages"]);
    let broken_after = [
        slower,
        &[
            (0, SettingsTrigger::Run, FAST),
            (10_000, SettingsTrigger::Run, SLOW),
        ],
        &[
            (0, SettingsTrigger::Run, OF_SITE),
            (10_000, SettingsTrigger::Reread, SLOW),
        ],
    ];
    for settings in broken_after {
        check_with(
            &log(300),
            more(settings),
            expect![[r#"
                4 gaps, 4 pages
                gap: a gap of 300 ms, but 1000 ms were required (the minimum delay) (requests.jsonl 4, requests.jsonl 5)"#]],
        );
    }
    check_with(
        &log(300),
        more(&[
            (0, SettingsTrigger::Run, SLOW),
            (10_000, SettingsTrigger::Run, FAST),
        ]),
        expect![[r#"
            4 gaps, 4 pages
            gap: a gap of 300 ms, but 1000 ms were required (the minimum delay) (requests.jsonl 2, requests.jsonl 3)"#]],
    );
    // The delay rises during a gap, so the gap only has to be as long as the shorter delay.
    check_with(
        &log(300),
        more(&[
            (0, SettingsTrigger::Run, FAST),
            (5_200, SettingsTrigger::Run, SLOW),
        ]),
        expect![[r#"
            4 gaps, 4 pages
            gap: a gap of 300 ms, but 1000 ms were required (the minimum delay) (requests.jsonl 4, requests.jsonl 5)"#]],
    );
    // Two requests may be in flight until the settings change, and one afterwards.
    let pages =
        [5_000, 5_001, 6_100, 6_101, 20_000, 20_001].map(|start| page((start, start + 10), "/"));
    let pages: Vec<_> = std::iter::once(robots((0, 100), 404, ""))
        .chain(pages)
        .collect();
    const TWO: &str = r#"{"politeness": {"per-host": 2}}"#;
    check_with(
        &pages,
        more(&[
            (0, SettingsTrigger::Run, TWO),
            (10_000, SettingsTrigger::Reread, SLOW),
        ]),
        expect![[r#"
        5 gaps, 6 pages
        in-flight: more than 1 in flight: a request began before an earlier one had ended (requests.jsonl 6, requests.jsonl 7)"#]],
    );
}

/// The agent, the meaning of statuses and the maximum age of robots.txt may change between runs.
#[test]
fn robots_txt_is_read_as_the_settings_of_the_time_say() {
    let body = "User-agent: one\nCrawl-delay: 3\nDisallow: /p\n\nUser-agent: two\nDisallow: /q\n";
    let sent = [
        robots((0, 100), 200, body),
        page((4_000, 4_010), "/p"),
        page((8_000, 8_010), "/q"),
        page((24_000, 24_010), "/p"),
        page((25_010, 25_020), "/q"),
    ];
    let more = || More {
        settings: &[
            (0, SettingsTrigger::Run, r#"{"operator": {"agent": "one"}}"#),
            (
                20_000,
                SettingsTrigger::Run,
                r#"{"operator": {"agent": "two"}}"#,
            ),
        ],
        pages: &[
            (8_000, "/q", "allowed", None),
            (24_000, "/p", "allowed", None),
        ],
        excluded: &[("/p", 3, "Disallow: /p"), ("/q", 6, "Disallow: /q")],
        ..More::default()
    };
    check_with(
        &sent,
        more(),
        expect![[r#"
            4 gaps, 4 pages
            disallowed: http://e.example/p was requested although robots.txt disallows it: `Disallow: /p` on line 3 (requests.jsonl 1, requests.jsonl 2)
            disallowed: http://e.example/q was requested although robots.txt disallows it: `Disallow: /q` on line 6 (requests.jsonl 1, requests.jsonl 5)"#]],
    );
    // The pace depends on the agent, too.
    let early = [
        robots((0, 100), 200, body),
        page((1_100, 1_110), "/q"),
        page((24_000, 24_010), "/p"),
    ];
    check_with(
        &early,
        more(),
        expect![[r#"
            2 gaps, 2 pages
            pace: a gap of 1000 ms, but Crawl-delay on line 2 of robots.txt requires 3000 ms (requests.jsonl 1, requests.jsonl 2)"#]],
    );
    let forbidden = [
        robots((0, 100), 403, ""),
        page((4_000, 4_010), "/"),
        page((24_000, 24_010), "/"),
    ];
    let denied = More {
        settings: &[
            (
                0,
                SettingsTrigger::Run,
                r#"{"exclusion": {"robots-forbidden": "deny"}}"#,
            ),
            (20_000, SettingsTrigger::Run, "{}"),
        ],
        ..More::default()
    };
    check_with(
        &forbidden,
        denied,
        expect![[r#"
            2 gaps, 2 pages
            disallowed: http://e.example/ was requested although robots.txt answered 403 (requests.jsonl 1, requests.jsonl 2)"#]],
    );
}

/// A page fetched under a stale copy of robots.txt is undecided only if there was a restart between
/// the copy and the page. Otherwise it is a breach, even in an earlier run.
#[test]
fn a_stale_copy_in_an_earlier_run_is_a_breach() {
    let hour = 3_600_000;
    let sent = [
        robots((0, 100), 404, ""),
        page((1_100, 1_200), "/"),
        page((2 * hour, 2 * hour + 10), "/"),
        page((4 * hour, 4 * hour + 10), "/"),
    ];
    let more = More {
        settings: &[
            (
                0,
                SettingsTrigger::Run,
                r#"{"exclusion": {"robots-max-age": "1h"}}"#,
            ),
            (
                3 * 3_600_000,
                SettingsTrigger::Run,
                r#"{"exclusion": {"robots-max-age": "30m"}}"#,
            ),
        ],
        ..More::default()
    };
    check_with(
        &sent,
        more,
        expect![[r#"
            3 gaps, 2 pages
            1 undecided: a copy that was too old after a restart
            stale: http://e.example/ was requested under a copy of robots.txt that was 7199900 ms old but valid for 3600000 ms (requests.jsonl 1, requests.jsonl 3)"#]],
    );
}

/// The settings allow four requests in flight. So a request may start at once in an unused slot,
/// before or after requests that waited for the delay of a used slot.
#[test]
fn an_unused_slot_is_left_to_the_request_that_needs_it() {
    let request = |(start, end), gap_asked| Sent {
        gap_asked,
        ..page((start, end), "/")
    };
    let sent = [
        robots((0, 100), 404, ""),
        request((2_100, 2_102), 2_000),
        request((2_103, 2_106), 0),
        request((2_103, 2_108), 2_000),
        request((2_104, 2_109), 2_000),
        request((2_105, 2_110), 2_000),
    ];
    let more = More {
        toml: "[politeness]\ndelay = \"0s\"\nper-host = 4\n",
        ..More::default()
    };
    check_with(&sent, more, expect!["2 gaps, 5 pages"]);
}

#[test]
fn face_gap_from_end_to_start() {
    let log = |start, gap_asked| {
        [
            robots((0, 100), 404, ""),
            Sent {
                gap_asked,
                ..page((start, start + 10), "/")
            },
        ]
    };
    check(&log(1099, 1000), expect!["1 gaps, 1 pages"]);
    check(
        &log(1098, 1000),
        expect![[r#"
            1 gaps, 1 pages
            gap: a gap of 998 ms, but 1000 ms were required (according to its own row) (requests.jsonl 1, requests.jsonl 2)"#]],
    );
    check(
        &log(2000, 3000),
        expect![[r#"
            1 gaps, 1 pages
            gap: a gap of 1900 ms, but 3000 ms were required (according to its own row) (requests.jsonl 1, requests.jsonl 2)"#]],
    );
    let two = More {
        toml: "[politeness]\ndelay = \"2s\"\n[site.\"e.example\"]\ndelay = \"500ms\"\n",
        ..More::default()
    };
    check_with(&log(700, 0), two, expect!["1 gaps, 1 pages"]);
}

#[test]
fn face_one_in_flight_per_host() {
    let sent = || {
        [
            robots((0, 100), 404, ""),
            page((1500, 1600), "/b"),
            page((1100, 5000), "/a"),
        ]
    };
    check(
        &sent(),
        expect![[r#"
        2 gaps, 2 pages
        in-flight: more than 1 in flight: a request began before an earlier one had ended (requests.jsonl 3, requests.jsonl 2)"#]],
    );
    let two = More {
        toml: "[politeness]\nper-host = 2\n",
        ..More::default()
    };
    check_with(&sent(), two, expect!["1 gaps, 2 pages"]);
}

#[test]
fn rfc9110_10_2_3_retry_after() {
    let asks = || Sent {
        wait_asked: Some(60_000),
        status: 503,
        ..page((1100, 1200), "/")
    };
    let log = |start| {
        [
            robots((0, 100), 404, ""),
            asks(),
            page((start, start + 10), "/"),
        ]
    };
    check(&log(61_200), expect!["2 gaps, 2 pages"]);
    check(
        &log(31_200),
        expect![[r#"
        2 gaps, 2 pages
        wait: requested again after 30000 ms, but the response required a wait of 60000 ms (requests.jsonl 2, requests.jsonl 3)"#]],
    );
}

#[test]
fn rfc9309_robots_first() {
    check(
        &[page((0, 10), "/"), robots((1010, 1020), 404, "")],
        expect![[r#"
            1 gaps, 1 pages
            robots-first: http://e.example/ was requested before its robots.txt was known (requests.jsonl 1)"#]],
    );
    // The robots.txt of another origin doesn't apply.
    check(
        &[
            robots((0, 10), 404, ""),
            page((1010, 1020), "https://e.example/"),
        ],
        expect![[r#"
            1 gaps, 1 pages
            robots-first: https://e.example/ was requested before its robots.txt was known (requests.jsonl 2)"#]],
    );
}

#[test]
fn rfc9309_2_2_2_disallowed_urls() {
    check(
        &[robots((0, 100), 200, BARS_P), page((1100, 1200), "/p/q")],
        expect![[r#"
            1 gaps, 1 pages
            disallowed: http://e.example/p/q was requested although robots.txt disallows it: `Disallow: /p` on line 2 (requests.jsonl 1, requests.jsonl 2)"#]],
    );
    let forbids = More {
        toml: "[exclusion]\nrobots-forbidden = \"deny\"\n",
        ..More::default()
    };
    check_with(
        &[robots((0, 100), 403, ""), page((1100, 1200), "/")],
        forbids,
        expect![[r#"
            1 gaps, 1 pages
            disallowed: http://e.example/ was requested although robots.txt answered 403 (requests.jsonl 1, requests.jsonl 2)"#]],
    );
    let agent = More {
        toml: "[operator]\nagent = \"other\"\n",
        ..More::default()
    };
    check_with(
        &[
            robots(
                (0, 100),
                200,
                "User-agent: other\nDisallow: /\nUser-agent: *\nAllow: /\n",
            ),
            page((1100, 1200), "/"),
        ],
        agent,
        expect![[r#"
            1 gaps, 1 pages
            disallowed: http://e.example/ was requested although robots.txt disallows it: `Disallow: /` on line 2 (requests.jsonl 1, requests.jsonl 2)"#]],
    );
}

#[test]
fn rfc9309_2_3_1_4_unreachable() {
    let log = |status| [robots((0, 100), status, ""), page((1100, 1200), "/")];
    check(
        &log(500),
        expect![[r#"
        1 gaps, 1 pages
        unreachable: http://e.example/ was requested while robots.txt could not be fetched (requests.jsonl 1, requests.jsonl 2)"#]],
    );
    check(
        &log(429),
        expect![[r#"
        1 gaps, 1 pages
        unreachable: http://e.example/ was requested while robots.txt could not be fetched (requests.jsonl 1, requests.jsonl 2)"#]],
    );
    check(
        &log(0),
        expect![[r#"
        1 gaps, 1 pages
        unreachable: http://e.example/ was requested while robots.txt could not be fetched (requests.jsonl 1, requests.jsonl 2)"#]],
    );
    // A 3xx that is no redirect says nothing about the rules.
    let unasked = Sent {
        is_conditional: false,
        ..robots((0, 100), 304, "")
    };
    for robots in [
        unasked,
        robots((0, 100), 300, ""),
        robots((0, 100), 305, ""),
    ] {
        check(
            &[robots, page((1100, 1200), "/")],
            expect![[r#"
            1 gaps, 1 pages
            unreachable: http://e.example/ was requested while robots.txt could not be fetched (requests.jsonl 1, requests.jsonl 2)"#]],
        );
    }
    // The last good copy of an unreachable robots.txt is used for 30 days.
    let again = |day: u64, status| {
        let at = day * 86_400_000;
        let robots = robots((at, at + 100), status, "");
        [robots, page((at + 1100, at + 1200), "/p")]
    };
    let log = |day| {
        let mut log = vec![robots((0, 100), 200, BARS_P)];
        log.extend(again(day, 503));
        log
    };
    check(
        &log(29),
        expect![[r#"
        2 gaps, 1 pages
        disallowed: http://e.example/p was requested although robots.txt disallows it: `Disallow: /p` on line 2 (requests.jsonl 2, requests.jsonl 3)"#]],
    );
    check(
        &log(31),
        expect![[r#"
        2 gaps, 1 pages
        unreachable: http://e.example/p was requested while robots.txt could not be fetched (requests.jsonl 2, requests.jsonl 3)"#]],
    );
}

#[test]
fn every_kind_of_request_is_checked_against_robots_txt() {
    for purpose in ["sitemap", "resource", "action"] {
        let disallowed = Sent {
            purpose,
            ..page((1100, 1200), "/p")
        };
        check(
            &[robots((0, 100), 200, BARS_P), disallowed],
            expect![[r#"
                1 gaps, 1 pages
                disallowed: http://e.example/p was requested although robots.txt disallows it: `Disallow: /p` on line 2 (requests.jsonl 1, requests.jsonl 2)"#]],
        );
    }
}

#[test]
fn rfc9309_2_3_1_2_hops_are_the_first_origins() {
    let moved = Sent {
        fields: &[("location", "http://other.example/r")],
        ..robots((0, 100), 301, "")
    };
    let hop = |status| Sent {
        purpose: "hop",
        path: "http://other.example/r",
        ..robots((200, 300), status, "User-agent: *\nDisallow: /p")
    };
    check(
        &[
            moved,
            hop(200),
            page((1100, 1200), "/"),
            page((2200, 2300), "/p"),
        ],
        expect![[r#"
            2 gaps, 2 pages
            disallowed: http://e.example/p was requested although robots.txt disallows it: `Disallow: /p` on line 2 (requests.jsonl 2, requests.jsonl 4)"#]],
    );
    let moved = Sent {
        fields: &[("location", "http://other.example/r")],
        ..robots((0, 100), 301, "")
    };
    check(
        &[moved, hop(0), page((1100, 1200), "/")],
        expect![[r#"
        1 gaps, 1 pages
        unreachable: http://e.example/ was requested while robots.txt could not be fetched (requests.jsonl 2, requests.jsonl 3)"#]],
    );
}

/// Renders the conduct page of `e.example`.
fn conduct(dir: &std::path::Path) -> String {
    let host = HostKey::parse("e.example").unwrap();
    let audit = audit(dir, &[]).unwrap();
    conduct_page(dir, &host, &audit, None).unwrap().unwrap()
}

#[test]
fn the_conduct_page_shows_the_copy_at_the_end_of_redirects() {
    let moved = |span, to: &'static [(&'static str, &'static str)]| Sent {
        fields: to,
        ..robots(span, 301, "")
    };
    let hop = Sent {
        purpose: "hop",
        path: "http://other.example/r",
        ..robots((200, 300), 200, BARS_P)
    };
    let dir = tempfile::tempdir().unwrap();
    let sent = [
        moved((0, 100), &[("location", "http://other.example/r")]),
        hop,
        page((1400, 1500), "/"),
        moved((5000, 5100), &[("location", "http://other.example/gone")]),
    ];
    write(dir.path(), &sent, &More::default());
    let html = conduct(dir.path());
    for part in [
        "http://e.example/robots.txt answered 301, then http://other.example/r answered 200",
        "   2  Disallow: /p",
        "answered 301, and the answer of its target is not known",
        "<a href=\"#robots-1\">copy 1</a>",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(!html.contains("so there are no rules"), "{html}");
}

/// After a restart, the row of a request has only the rest of the wait.
#[test]
fn the_conduct_page_shows_the_whole_wait_before_a_request() {
    let dir = tempfile::tempdir().unwrap();
    let busy = Sent {
        status: 503,
        wait_asked: Some(8_000),
        ..page((1_100, 1_200), "/")
    };
    let after = |start, gap_asked, path| Sent {
        gap_asked,
        why: "retry-after",
        ..page((start, start + 10), path)
    };
    let sent = [
        robots((0, 100), 404, ""),
        busy,
        after(9_202, 5_629, "/"),
        after(10_212, 1_000, "/a"),
    ];
    write(dir.path(), &sent, &More::default());
    let html = conduct(dir.path());
    assert!(html.contains("8,002 ms, 8,000 required"), "{html}");
    assert_eq!(
        html.matches("1,000 ms, 1,000 required").count(),
        2,
        "{html}"
    );
}

#[test]
fn the_conduct_page_names_the_last_good_copy_of_an_unreachable_robots_txt() {
    let sent = [
        robots((0, 100), 200, BARS_P),
        robots((2000, 2100), 503, ""),
        page((3200, 3300), "/"),
        robots((4400, 4500), 0, ""),
        page((5600, 5700), "/a"),
        Sent {
            is_conditional: false,
            ..robots((6800, 6900), 304, "")
        },
        page((8000, 8100), "/b"),
    ];
    let render = |toml| {
        let dir = tempfile::tempdir().unwrap();
        let more = More {
            toml,
            ..More::default()
        };
        write(dir.path(), &sent, &more);
        conduct(dir.path())
    };
    let html = render("");
    for part in [
        "answered 503, so copy 1 stays in force.",
        "answered timeout, so copy 1 stays in force.",
        "answered 304, so copy 1 stays in force.",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert_eq!(html.matches("<a href=\"#robots-1\">copy 1</a>").count(), 3);
    let expired = render("[exclusion]\nrobots-last-good = \"1s\"");
    assert!(
        expired.contains("answered 503, so nothing may be fetched."),
        "{expired}"
    );
}

#[test]
fn the_conduct_page_lists_undecided_checks() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        &[robots((0, 100), 404, ""), page((1200, 1300), "/")],
        &More::default(),
    );
    let all = "No breach of a rule was found in the whole crawl.";
    let html = conduct(dir.path());
    assert!(html.contains(all), "{html}");
    let log = dir.path().join("requests.jsonl");
    let rows = fs::read_to_string(&log).unwrap();
    fs::write(&log, format!("{rows}{{broken\n")).unwrap();
    let html = conduct(dir.path());
    assert!(!html.contains(all), "{html}");
    for part in [
        "in the part of the crawl that could be judged",
        "damaged records: one line of `requests.jsonl` can&#39;t be read",
    ] {
        let plain = part.replace("&#39;", "'");
        assert!(html.contains(part) || html.contains(&plain), "{html}");
    }
}

#[test]
fn rfc9309_2_4_no_older_than_its_life() {
    let short = || Sent {
        fields: &[("cache-control", "max-age=70")],
        ..robots((0, 100), 200, BARS_P)
    };
    // The first page after a robots.txt response may be requested even if the response is stale by
    // then, but no further page.
    let log = |first, second| {
        [
            short(),
            page((first, first + 10), "/a"),
            page((second, second + 10), "/b"),
        ]
    };
    check(
        &log(120_000, 122_000),
        expect![[r#"
            2 gaps, 2 pages
            stale: http://e.example/b was requested under a copy of robots.txt that was 121900 ms old but valid for 70000 ms (requests.jsonl 1, requests.jsonl 3)"#]],
    );
    check(&log(5000, 70_050), expect!["2 gaps, 2 pages"]);
    check(
        &log(5000, 80_000),
        expect![[r#"
            2 gaps, 2 pages
            stale: http://e.example/b was requested under a copy of robots.txt that was 79900 ms old but valid for 70000 ms (requests.jsonl 1, requests.jsonl 3)"#]],
    );
    // A 304 without header fields extends the copy by the copy's original lifetime.
    let confirmed = |start| {
        let again = robots((start, start + 100), 304, "");
        let page = page((start + 9000, start + 9100), "/p");
        [short(), again, page]
    };
    check(
        &confirmed(72_000),
        expect![[r#"
        2 gaps, 1 pages
        disallowed: http://e.example/p was requested although robots.txt disallows it: `Disallow: /p` on line 2 (requests.jsonl 2, requests.jsonl 3)"#]],
    );
}

#[test]
fn the_pace_of_robots_txt() {
    let log = |body, start| [robots((0, 100), 200, body), page((start, start + 10), "/")];
    let delay = "User-agent: *\nCrawl-delay: 5\n";
    check(&log(delay, 5099), expect!["1 gaps, 1 pages"]);
    check(
        &log(delay, 3100),
        expect![[r#"
            1 gaps, 1 pages
            pace: a gap of 3000 ms, but Crawl-delay on line 2 of robots.txt requires 5000 ms (requests.jsonl 1, requests.jsonl 2)"#]],
    );
    let rate = "User-agent: *\nRequest-rate: 1/8s 0000-0100\nRequest-rate: 1/20s 1200-1300\n";
    check(
        &log(rate, 6100),
        expect![[r#"
            1 gaps, 1 pages
            pace: a gap of 6000 ms, but Request-rate on line 2 of robots.txt requires 8000 ms (requests.jsonl 1, requests.jsonl 2)"#]],
    );
    check(&log(rate, 8100), expect!["1 gaps, 1 pages"]);
    let visit = "User-agent: *\nVisit-time: 0010-0020\n";
    check(
        &log(visit, 2000),
        expect![[r#"
        1 gaps, 1 pages
        visit-time: http://e.example/ was requested outside the Visit-time (requests.jsonl 1, requests.jsonl 2)"#]],
    );
    check(&log(visit, 21 * 60_000 + 500), expect!["1 gaps, 1 pages"]);
}

#[test]
fn rows_agree_with_robots_txt() {
    let sent = || {
        [
            robots((0, 100), 200, "User-agent: *\nAllow: /p/a\nDisallow: /p\n"),
            page((1100, 1200), "/p/a"),
        ]
    };
    let more = |pages, excluded| More {
        pages,
        excluded,
        ..More::default()
    };
    let good = more(
        &[(1100, "/p/a", "allowed", Some((2, "Allow: /p/a")))],
        &[("/p", 3, "Disallow: /p")],
    );
    check_with(&sent(), good, expect!["1 gaps, 1 pages"]);
    let bad = more(
        &[(1100, "/p/a", "allowed", Some((3, "Allow: /p/a")))],
        &[("/q", 3, "Disallow: /p")],
    );
    check_with(
        &sent(),
        bad,
        expect![[r#"
            1 gaps, 1 pages
            page-row: the row of http://e.example/p/a says allowed by `Allow: /p/a` on line 3, but robots.txt says allowed by `Allow: /p/a` on line 2 (requests.jsonl 1, pages.jsonl 1)
            excluded-row: http://e.example/q is listed as excluded by robots.txt, but no copy of robots.txt excludes it (excluded.jsonl 1)"#]],
    );
}

#[test]
fn undecided_checks_are_counted() {
    let sent = || [robots((0, 100), 200, BARS_P), page((500, 600), "/p")];
    let none = More {
        no_archive: true,
        toml: "[output]\nwarc = \"off\"\n",
        ..More::default()
    };
    check_with(
        &sent(),
        none,
        expect![[r#"
            1 gaps, 0 pages
            gap: a gap of 400 ms, but 1000 ms were required (according to its own row) (requests.jsonl 1, requests.jsonl 2)"#]],
    );
    let earlier = More {
        toml: "[crawl]\nstarted = \"2026-11-19T23:00:00Z\"\nlast-started = \"2026-11-20T12:00:00Z\"\n",
        ..More::default()
    };
    check_with(
        &sent(),
        earlier,
        expect![[r#"
        0 gaps, 0 pages
        2 undecided: an earlier run whose configuration is not known"#]],
    );
    // If the run was killed, the response may be in the log but not in the archive.
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &[], &More::default());
    let log = sent()
        .iter()
        .map(|sent| sent.row() + "\n")
        .collect::<String>();
    fs::write(dir.path().join("requests.jsonl"), log + "{\"url\":").unwrap();
    let report = audit(dir.path(), &[]).unwrap();
    expect![[r#"
        hosts      1
        requests   2 rows of requests.jsonl
        gaps       1 between requests to a host
        pace       0 gaps required by robots.txt
        waits      0 required by a response
        limits     2 requests checked against the limits of addresses and sites, and quiet hours
        pages      0 requests checked against robots.txt
        rows       0 of pages.jsonl checked against robots.txt
        excluded   0 rows of excluded.jsonl checked against robots.txt
        undecided  1: the robots.txt response is not in the archive
        flaw       the last line of `requests.jsonl` is torn
        breaches   1: gap 1
          gap: e.example: a gap of 400 ms, but 1000 ms were required (according to its own row)
            requests.jsonl line 1: robots http://e.example/robots.txt, 2026-11-20T00:00:00.000Z to 2026-11-20T00:00:00.100Z (200), required gap 0 ms (delay)
            requests.jsonl line 2: page http://e.example/p, 2026-11-20T00:00:00.500Z to 2026-11-20T00:00:00.600Z (200), required gap 1000 ms (delay)
    "#]].assert_eq(&report.to_string());
}

#[test]
fn capture_log_is_optional() {
    let dir = tempfile::tempdir().unwrap();
    let sent = [robots((0, 100), 200, BARS_P), page((1100, 1200), "/p")];
    write(dir.path(), &sent, &More::default());
    let with = audit(dir.path(), &[]).unwrap();
    fs::remove_file(dir.path().join("archive/captures.cdxj")).unwrap();
    assert_eq!(audit(dir.path(), &[]).unwrap(), with);
    expect![[r#"
        hosts      1
        requests   2 rows of requests.jsonl
        gaps       1 between requests to a host
        pace       0 gaps required by robots.txt
        waits      0 required by a response
        limits     2 requests checked against the limits of addresses and sites, and quiet hours
        pages      1 requests checked against robots.txt
        rows       0 of pages.jsonl checked against robots.txt
        excluded   0 rows of excluded.jsonl checked against robots.txt
        breaches   1: disallowed 1
          disallowed: e.example: http://e.example/p was requested although robots.txt disallows it: `Disallow: /p` on line 2
            requests.jsonl line 1: robots http://e.example/robots.txt, 2026-11-20T00:00:00.000Z to 2026-11-20T00:00:00.100Z (200), required gap 0 ms (delay)
            requests.jsonl line 2: page http://e.example/p, 2026-11-20T00:00:01.100Z to 2026-11-20T00:00:01.200Z (200), required gap 1000 ms (delay)
    "#]].assert_eq(&with.to_string());
}

#[test]
fn at_most_twenty_breaches_are_listed() {
    let pages = (0..30).map(|n| page((n * 100, n * 100 + 10), "/"));
    let dir = tempfile::tempdir().unwrap();
    let sent: Vec<Sent> = pages.collect();
    write(dir.path(), &sent, &More::default());
    let report = audit(dir.path(), &[]).unwrap();
    assert_eq!((report.breaches.len(), report.breach_count()), (20, 59));
    assert!(report.to_string().ends_with("\n  and 39 more\n"));
}

#[test]
fn unreadable_files_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let check = |wanted: fn(&RecordsError) -> bool| {
        let error = audit(dir.path(), &[]).unwrap_err();
        assert!(wanted(&error), "{error}");
    };
    check(|why| matches!(why, RecordsError::NoCrawl { .. }));
    fs::write(dir.path().join("requests.jsonl"), "{}\n").unwrap();
    check(|why| matches!(why, RecordsError::Io { .. }));
    fs::write(dir.path().join("crawl.toml"), "[politeness]\ndelay = 5\n").unwrap();
    check(|why| matches!(why, RecordsError::Config { .. }));
    fs::write(dir.path().join("crawl.toml"), "").unwrap();
}

//! Crawls whose clock was set back between two runs.

use expect_test::expect;

use super::crawl_directory_fixture::SettingsTrigger::{Reread, Run};
use super::{BARS_P, More, Sent, check_with, conduct, page, robots, write};

const MINUTE: u64 = 60_000;
const FAST: &str = r#"{"politeness": {"delay": "1s"}}"#;
const SLOW: &str = r#"{"politeness": {"delay": "4s"}}"#;
const TWO_HOURS: &str = r#"{"exclusion": {"robots-max-age": "2h"}}"#;

/// The first run, which begins an hour after midnight and requests two pages.
fn first_run() -> Vec<Sent> {
    let begun = 60 * MINUTE;
    vec![
        robots((begun, begun + 100), 200, BARS_P),
        page((begun + 1_100, begun + 1_200), "/"),
        page((begun + 2_200, begun + 2_300), "/a"),
    ]
}

fn two_runs(second: Vec<Sent>) -> Vec<Sent> {
    first_run().into_iter().chain(second).collect()
}

#[test]
fn the_gap_between_the_runs_is_undecided() {
    for start in [60 * MINUTE + 1_900, 60 * MINUTE + 1_000, 30 * MINUTE] {
        let sent = two_runs(vec![
            page((start, start + 10), "/b"),
            page((start + 1_010, start + 1_020), "/c"),
            page((start + 40 * MINUTE, start + 40 * MINUTE + 10), "/d"),
        ]);
        let more = More {
            settings: &[(60 * MINUTE, Run, FAST), (30 * MINUTE, Run, FAST)],
            ..More::default()
        };
        check_with(
            &sent,
            more,
            expect![[r#"
                4 gaps, 5 pages
                1 undecided: a clock that was set back between two runs"#]],
        );
    }
}

#[test]
fn breaches_within_a_run_are_found() {
    let start = 30 * MINUTE;
    let sent = two_runs(vec![
        page((start, start + 10), "/b"),
        page((start + 510, start + 2_000), "/p"),
        page((start + 1_900, start + 2_010), "/c"),
    ]);
    let more = More {
        settings: &[(60 * MINUTE, Run, FAST), (30 * MINUTE, Run, FAST)],
        ..More::default()
    };
    check_with(
        &sent,
        more,
        expect![[r#"
        4 gaps, 5 pages
        1 undecided: a clock that was set back between two runs
        gap: a gap of 500 ms, but 1000 ms were required (according to its own row) (requests.jsonl 4, requests.jsonl 5)
        disallowed: http://e.example/p was requested although robots.txt disallows it: `Disallow: /p` on line 2 (requests.jsonl 1, requests.jsonl 5)
        in-flight: more than 1 in flight: a request began before an earlier one had ended (requests.jsonl 5, requests.jsonl 6)"#]],
    );
}

/// Without a second run, the order of the rows doesn't excuse overlapping requests. If the clock
/// was not set back, a gap between two runs is checked.
#[test]
fn breaches_are_not_excused_by_a_clock_that_ran_on() {
    let sent = two_runs(vec![page((60 * MINUTE + 2_250, 60 * MINUTE + 2_290), "/b")]);
    let once = More {
        settings: &[(60 * MINUTE, Run, FAST), (30 * MINUTE, Reread, FAST)],
        ..More::default()
    };
    check_with(
        &sent,
        once,
        expect![[r#"
        3 gaps, 3 pages
        in-flight: more than 1 in flight: a request began before an earlier one had ended (requests.jsonl 3, requests.jsonl 4)"#]],
    );
    let sent = two_runs(vec![page((60 * MINUTE + 2_900, 60 * MINUTE + 3_000), "/b")]);
    let twice = More {
        settings: &[(60 * MINUTE, Run, FAST), (60 * MINUTE + 2_800, Run, FAST)],
        ..More::default()
    };
    check_with(
        &sent,
        twice,
        expect![[r#"
        3 gaps, 3 pages
        gap: a gap of 600 ms, but 1000 ms were required (according to its own row) (requests.jsonl 3, requests.jsonl 4)"#]],
    );
}

/// According to the recorded times, the first run's last request was in flight when the second run
/// began. This is impossible, so the clock must have been set back.
#[test]
fn a_run_that_seems_to_begin_during_a_request() {
    let mut sent = first_run();
    sent.push(page((60 * MINUTE + 3_300, 60 * MINUTE + 9_000), "/slow"));
    sent.push(page((60 * MINUTE + 6_000, 60 * MINUTE + 9_500), "/slow"));
    let more = More {
        settings: &[(60 * MINUTE, Run, FAST), (60 * MINUTE + 5_000, Run, FAST)],
        ..More::default()
    };
    check_with(
        &sent,
        more,
        expect![[r#"
        3 gaps, 4 pages
        1 undecided: a clock that was set back between two runs"#]],
    );
}

/// Each request is checked against the settings of its own run, although the recorded time of the
/// first run's settings is later than that of the second run's settings.
#[test]
fn the_settings_of_the_run_count() {
    let slow = |start| Sent {
        gap_asked: 4_000,
        ..page((start, start + 100), "/")
    };
    let sent = [
        robots((60 * MINUTE, 60 * MINUTE + 100), 404, ""),
        slow(60 * MINUTE + 4_100),
        page((30 * MINUTE, 30 * MINUTE + 100), "/"),
        page((70 * MINUTE, 70 * MINUTE + 100), "/"),
        page((70 * MINUTE + 1_100, 70 * MINUTE + 1_200), "/"),
    ];
    let more = More {
        settings: &[(60 * MINUTE, Run, SLOW), (30 * MINUTE, Run, FAST)],
        pages: &[
            (60 * MINUTE + 4_100, "/", "allowed", None),
            (30 * MINUTE, "/", "allowed", None),
        ],
        ..More::default()
    };
    check_with(
        &sent,
        more,
        expect![[r#"
        3 gaps, 4 pages
        1 undecided: a clock that was set back between two runs"#]],
    );
}

/// A copy of robots.txt from before the clock was set back is used until it expires by the clock
/// of the second run.
#[test]
fn a_copy_of_an_earlier_run_stays_in_force() {
    let start = 59 * MINUTE;
    let sent = two_runs(vec![
        page((start, start + 10), "/p/1"),
        page((start + 100 * MINUTE, start + 100 * MINUTE + 10), "/b"),
        page((start + 200 * MINUTE, start + 200 * MINUTE + 10), "/c"),
    ]);
    let more = More {
        settings: &[(60 * MINUTE, Run, TWO_HOURS), (59 * MINUTE, Run, TWO_HOURS)],
        ..More::default()
    };
    check_with(
        &sent,
        more,
        expect![[r#"
            4 gaps, 4 pages
            1 undecided: a clock that was set back between two runs
            1 undecided: a copy that was too old after a restart
            disallowed: http://e.example/p/1 was requested although robots.txt disallows it: `Disallow: /p` on line 2 (requests.jsonl 1, requests.jsonl 4)"#]],
    );
}

#[test]
fn the_page_for_the_owner_shows_no_pause_between_the_runs() {
    let dir = tempfile::tempdir().unwrap();
    let start = 60 * MINUTE + 1_210;
    let sent = two_runs(vec![
        page((start, start + 10), "/b"),
        page((start + 1_030, start + 1_040), "/c"),
    ]);
    let more = More {
        settings: &[(60 * MINUTE, Run, FAST), (60 * MINUTE + 500, Run, FAST)],
        ..More::default()
    };
    write(dir.path(), &sent, &more);
    let html = conduct(dir.path());
    assert!(html.contains("not known: the clock was set back"), "{html}");
    assert_eq!(html.matches(" ms, 1,000 required").count(), 3, "{html}");
}

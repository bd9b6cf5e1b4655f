use std::fmt::Write as _;

use crawl_archive::rows::{DelayRow, RequestRow};

use super::SharedLimitTracker;
use crate::audit::audit_findings::AuditFindings;
use crate::audit::operator_delays::OperatorDelayLog;
use crate::audit::settings_history::SettingsHistory;

/// A request: its host, address, start, and end.
type Sent = (&'static str, &'static str, u64, u64);

/// Returns the breaches and the undecided checks of a crawl with the settings in `toml`.
fn check(toml: &str, sent: &[Sent]) -> String {
    check_rows(toml, sent, |_| {})
}

fn check_rows(toml: &str, sent: &[Sent], change: impl Fn(&mut RequestRow)) -> String {
    check_with(toml, Vec::new(), sent, change)
}

/// Returns the breaches and the undecided checks of a crawl with recorded settings. `change` edits
/// each row of a request. Each entry of `recorded` has the time at which the settings came into
/// force, and the settings in JSON.
fn check_with(
    toml: &str,
    recorded: Vec<(u64, &str)>,
    sent: &[Sent],
    change: impl Fn(&mut RequestRow),
) -> String {
    let rows = recorded.into_iter().map(|(at, settings)| DelayRow {
        at,
        settings: Some(serde_json::from_str(settings).unwrap()),
        ..DelayRow::default()
    });
    let settings = SettingsHistory::of(toml, &OperatorDelayLog::of(rows.collect())).unwrap();
    let (mut checks, mut findings) = (SharedLimitTracker::default(), AuditFindings::default());
    for (line, (host, address, start, end)) in (1..).zip(sent) {
        let mut row: RequestRow = serde_json::from_value(serde_json::json!({
            "url": format!("https://{host}/"), "host": host, "address": address,
            "purpose": "page", "start": start, "end": end, "status": 200, "failure": null,
            "gap_asked": 0, "why": "delay", "wait_asked": null,
        }))
        .unwrap();
        change(&mut row);
        checks.request(&row, line, &settings, &mut findings);
    }
    checks.finish(&settings, &mut findings);
    let mut text = String::new();
    for breach in findings.breaches {
        let lines: Vec<u64> = breach.rows.iter().map(|row| row.line).collect();
        let _ = writeln!(text, "{}: {} {lines:?}", breach.rule, breach.what);
    }
    for (why, count) in findings.undecided {
        let _ = writeln!(text, "{count} undecided: {why}");
    }
    text
}

#[test]
fn requests_in_flight_per_address_and_site_are_counted() {
    let sent: [Sent; 3] = [
        ("a.e.example", "192.0.2.1", 5_000, 9_000),
        ("b.e.example", "192.0.2.1", 7_000, 9_500),
        ("c.e.example", "192.0.2.1", 9_500, 9_600),
    ];
    assert_eq!(check("", &sent), "");
    assert_eq!(
        check("[politeness]\nper-address = 1\n", &sent),
        "per-address: 2 requests in flight, but at most 1 were allowed to 192.0.2.1 [1, 2]\n"
    );
    assert_eq!(
        check("[site.\"e.example\"]\nper-site = 1\n", &sent),
        "per-site: 2 requests in flight, but at most 1 were allowed to the site e.example [1, 2]\n"
    );
    // The second host has another address, so its request doesn't count towards the limit of the
    // first address.
    let apart = [sent[0], ("b.e.example", "192.0.2.2", 7_000, 9_500)];
    assert_eq!(check("[politeness]\nper-address = 1\n", &apart), "");
    let moved = [
        ("b.e.example", "192.0.2.2", 1_000, 1_100),
        sent[0],
        ("b.e.example", "192.0.2.1", 7_000, 9_500),
    ];
    assert_eq!(
        check("[politeness]\nper-address = 1\n", &moved),
        "1 undecided: a limit of an address whose host has several\n"
    );
}

#[test]
fn a_host_named_by_its_address_counts_once_per_address_and_once_per_site() {
    let sent: [Sent; 3] = [
        ("192.0.2.1", "192.0.2.1", 5_000, 5_100),
        ("192.0.2.1", "192.0.2.1", 5_400, 5_500),
        ("192.0.2.1:8080", "192.0.2.1", 5_800, 5_900),
    ];
    let limits =
        "per-address = 1\naddress-delay = \"300ms\"\nper-site = 1\nsite-delay = \"300ms\"\n";
    assert_eq!(check(&format!("[politeness]\n{limits}"), &sent), "");
    let short = "[politeness]\naddress-delay = \"350ms\"\nsite-delay = \"350ms\"\n";
    assert_eq!(
        check(short, &sent[..2]),
        "per-site: a delay of 300 ms, but 350 ms were required to the site 192.0.2.1 [1, 2]\n\
         per-address: a delay of 300 ms, but 350 ms were required to 192.0.2.1 [1, 2]\n"
    );
}

#[test]
fn delays_per_address_and_site_count_from_the_last_start_or_end() {
    let sent: [Sent; 3] = [
        ("a.e.example", "192.0.2.1", 5_000, 6_000),
        ("b.e.example", "192.0.2.1", 9_000, 9_100),
        ("c.e.example", "192.0.2.1", 14_100, 14_200),
    ];
    assert_eq!(
        check("[politeness]\naddress-delay = \"5s\"\n", &sent),
        "per-address: a delay of 3000 ms, but 5000 ms were required to 192.0.2.1 [1, 2]\n"
    );
    assert_eq!(
        check("[politeness]\nsite-delay = \"5s\"\n", &sent),
        "per-site: a delay of 3000 ms, but 5000 ms were required to the site e.example [1, 2]\n"
    );
    assert_eq!(check("[politeness]\nsite-delay = \"3s\"\n", &sent), "");
}

#[test]
fn rates_are_checked_over_many_requests() {
    let burst = |gap: u64| -> Vec<Sent> {
        let start = |n: u64| 5_000 + n * gap;
        (0..200)
            .map(|n| ("a.example", "192.0.2.1", start(n), start(n) + 1))
            .collect()
    };
    // The default rate for an address is 16 requests per second.
    assert_eq!(check("", &burst(63)), "");
    let breaches = check("", &burst(50));
    assert!(
        breaches.starts_with(
            "per-address: 160 requests in 8000 ms, but 10000 ms were required to 192.0.2.1 [1, 161]"
        ),
        "{breaches}"
    );
    let total = check(
        "[politeness]\nmax-rate = 0.1\naddress-rate = 0\n",
        &[
            ("a.example", "192.0.2.1", 5_000, 5_001),
            ("b.example", "192.0.2.2", 14_500, 14_501),
            ("c.example", "192.0.2.3", 20_000, 20_001),
        ],
    );
    assert_eq!(
        total,
        "max-rate: 1 requests in 5500 ms, but 10000 ms were required in total [2, 3]\n"
    );
    // Each worker has its own limits.
    let apart = check_rows("[politeness]\nmax-rate = 0.1\n", &burst(9_000), |row| {
        row.worker = Some(format!("w{}", row.start / 1000 % 2));
    });
    assert_eq!(apart, "");
}

#[test]
fn requests_in_quiet_hours_are_breaches() {
    let minute = 60_000;
    let at = |start| ("a.example", "192.0.2.1", start, start + 1);
    let toml =
        "[politeness]\nquiet-hours = [\"23:00-01:00\"]\n[site.\"b.example\"]\nquiet-hours = []\n";
    let words = "quiet-hours: a request was sent in the quiet hours [1]\n";
    for (start, expected) in [
        (30 * minute, words),
        (60 * minute, ""),
        (23 * 60 * minute - 1, ""),
        // A request up to a second after the start of the quiet hours is accepted.
        (23 * 60 * minute + 500, ""),
        (23 * 60 * minute + 1500, words),
    ] {
        assert_eq!(check(toml, &[at(start)]), expected, "{start}");
    }
    let late = ("b.example", "192.0.2.1", 30 * minute, 30 * minute + 1);
    assert_eq!(check(toml, &[late]), "");
    // This request was sent in an earlier run, whose settings are unknown.
    let later = format!(
        "{toml}[crawl]\nstarted = \"1970-01-01T00:00:00Z\"\nlast-started = \"1970-01-02T00:00:00Z\"\n"
    );
    let undecided = "1 undecided: an earlier run whose configuration is not known\n";
    assert_eq!(check(&later, &[at(30 * minute)]), undecided);
}

#[test]
fn an_unsigned_request_of_a_crawl_that_always_signs_is_a_breach() {
    let sent: [Sent; 1] = [("a.example", "192.0.2.1", 5_000, 5_001)];
    let toml = "[operator]\nsignature = \"always\"\n";
    assert_eq!(
        check(toml, &sent),
        "unsigned: a request is not signed, although the settings say `always` [1]\n"
    );
    assert_eq!(check_rows(toml, &sent, |row| row.signed = true), "");
    assert_eq!(check("[operator]\nsignature = \"off\"\n", &sent), "");
}

#[test]
fn every_limit_is_that_of_the_time_of_the_request() {
    let host = |start| ("a.example", "192.0.2.1", start, start + 10);
    let slow = |start| ("b.example", "192.0.2.1", start, start + 5_000);
    let recorded = || {
        vec![
            (
                1_000,
                r#"{"politeness": {"max-rate": "unlimited", "per-address": 9}}"#,
            ),
            (
                60_000,
                r#"{"politeness": {"max-rate": 0.1, "per-address": 1, "site-delay": "20s"},
                    "operator": {"signature": "always"}}"#,
            ),
            (
                120_000,
                r#"{"politeness": {"quiet-hours": ["00:00-01:00"]}}"#,
            ),
        ]
    };
    let check = |sent: &[Sent], signed| check_with("", recorded(), sent, |row| row.signed = signed);
    // Everything is allowed in the first run. The second run follows soon, so its first request may
    // still follow the first run's limits.
    let quick = [host(5_000), slow(5_100), host(58_000), host(60_100)];
    assert_eq!(check(&quick, true), "");
    assert_eq!(
        check(&[host(5_000), slow(80_000), host(81_500)], true),
        "max-rate: 1 requests in 1500 ms, but 10000 ms were required in total [2, 3]\n\
         per-address: 2 requests in flight, but at most 1 were allowed to 192.0.2.1 [2, 3]\n"
    );
    assert_eq!(
        check(&[host(80_000), host(95_000)], false),
        "unsigned: a request is not signed, although the settings say `always` [1]\n\
         unsigned: a request is not signed, although the settings say `always` [2]\n\
         per-site: a delay of 14990 ms, but 20000 ms were required to the site a.example [1, 2]\n"
    );
    assert_eq!(
        check(&[host(120_100)], true),
        "quiet-hours: a request was sent in the quiet hours [1]\n"
    );
}

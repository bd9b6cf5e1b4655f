//! Progress of a crawl, on stderr.

use std::time::Duration;

use crawl_engine::{CrawlPhase, ProgressSnapshot};
use crawl_records::{counted, grouped, size};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::Terminal;
use super::status_line::columns;
use crate::settings::ProgressMode;
use crate::values::DurationSetting;

/// How often to redraw the bar.
const BAR_INTERVAL: Duration = Duration::from_millis(200);
/// Characters between the brackets of the bar.
const BAR_STEPS: usize = 20;
/// Columns of the bar with its brackets and a space.
const BAR_COLUMNS: usize = BAR_STEPS + 3;
/// Columns of the spinner and a space.
const SPINNER_COLUMNS: usize = 2;
/// How often to write an object with `--progress json`.
const JSON_INTERVAL: Duration = Duration::from_secs(1);
/// How often to write a line with `--progress plain`.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// Displays progress until the sender of `progress` is dropped.
pub(crate) async fn show(terminal: Terminal, mut progress: watch::Receiver<ProgressSnapshot>) {
    let every = match terminal.mode {
        ProgressMode::Bar => BAR_INTERVAL,
        ProgressMode::Json => JSON_INTERVAL,
        ProgressMode::Plain => PLAIN_INTERVAL,
        ProgressMode::Auto | ProgressMode::Off => return,
    };
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                let now = progress.borrow_and_update().clone();
                draw(&terminal, &now);
            }
            gone = gone(progress.clone()) => {
                if terminal.mode == ProgressMode::Json {
                    draw(&terminal, &gone);
                }
                break;
            }
        }
    }
    terminal.clear();
}

/// Waits until the sender of `progress` is dropped, and returns the last state.
async fn gone(mut progress: watch::Receiver<ProgressSnapshot>) -> ProgressSnapshot {
    while progress.changed().await.is_ok() {}
    progress.borrow().clone()
}

fn draw(terminal: &Terminal, now: &ProgressSnapshot) {
    match terminal.mode {
        ProgressMode::Bar => {
            let (has_bar, text) = fitted(now, columns());
            terminal.line.show(match has_bar {
                true => format!("{} {text}", bar(now.share_done)),
                false => text,
            });
        }
        ProgressMode::Plain => terminal.write(format!("{}\n", line(now)).as_bytes()),
        ProgressMode::Json => terminal.write(format!("{}\n", object(now)).as_bytes()),
        ProgressMode::Auto | ProgressMode::Off => {}
    }
}

fn bar(share_done: f64) -> String {
    // The cast turns NaN into 0.
    let full = (share_done.clamp(0.0, 1.0) * BAR_STEPS as f64) as usize;
    let tip = match share_done > 0.0 && full < BAR_STEPS {
        true => ">",
        false => "",
    };
    let done = "=".repeat(full) + tip;
    format!("[{done:BAR_STEPS$}]")
}

/// How long the numbers and words of the status line may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatusLineLength {
    Full,
    Short,
}

/// Formats the progress on one line.
fn line(now: &ProgressSnapshot) -> String {
    let mut parts = essentials(now, StatusLineLength::Full);
    parts.extend(extras(now));
    parts.join(", ")
}

/// Formats the progress for a line of this many columns. Returns whether the bar fits too, and the
/// text next to it. Narrow lines leave out first the least important parts, then the bar, and then
/// the digits of large numbers.
fn fitted(now: &ProgressSnapshot, columns: usize) -> (bool, String) {
    let room = columns.saturating_sub(SPINNER_COLUMNS);
    let mut text = essentials(now, StatusLineLength::Full).join(", ");
    let has_bar = text.chars().count() + BAR_COLUMNS <= room;
    let room = match has_bar {
        true => room - BAR_COLUMNS,
        false => room,
    };
    if text.chars().count() > room {
        return (false, essentials(now, StatusLineLength::Short).join(", "));
    }
    for extra in extras(now) {
        let longer = format!("{text}, {extra}");
        if longer.chars().count() > room {
            break;
        }
        text = longer;
    }
    (has_bar, text)
}

/// Returns the parts that every line shows: pages, rate, time left or phase, pending and failed.
fn essentials(now: &ProgressSnapshot, detail: StatusLineLength) -> Vec<String> {
    let number = |count| match detail {
        StatusLineLength::Full => grouped(count),
        StatusLineLength::Short => rounded(count),
    };
    let pages = match now.pages {
        1 => "1 page".to_owned(),
        pages => format!("{} pages", number(pages)),
    };
    let pages = match now.round {
        0 | 1 => pages,
        round => format!("round {round}: {pages}"),
    };
    let rate = format!("{:.1}/s", now.pages_per_second);
    let pending = format!("{} pending", number(now.pending));
    let failed = format!("{} failed", number(now.failed));
    [
        Some(pages),
        Some(rate),
        phase(now, detail),
        Some(pending),
        Some(failed),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Describes what the run waits for, or how long it will still take. `None` if the time left is
/// unknown.
fn phase(now: &ProgressSnapshot, detail: StatusLineLength) -> Option<String> {
    let is_short = detail == StatusLineLength::Short;
    Some(match (now.phase, now.left) {
        (CrawlPhase::Paused, _) => "paused".to_owned(),
        (CrawlPhase::DiskLow, _) if is_short => "disk low".to_owned(),
        (CrawlPhase::DiskLow, _) => format!(
            "waiting for disk space: {} free, {} required",
            size(now.disk_free.unwrap_or_default()),
            size(now.min_free)
        ),
        (CrawlPhase::WaitingForWorkers, _) if is_short => "waiting".to_owned(),
        (CrawlPhase::WaitingForWorkers, _) => "waiting for other workers".to_owned(),
        (CrawlPhase::Draining, _) => format!("stopping, {} in flight", now.in_flight),
        (CrawlPhase::Writing, _) if is_short => "writing".to_owned(),
        (CrawlPhase::Writing, _) => "writing the index".to_owned(),
        (CrawlPhase::Crawling, Some(left)) if is_short => {
            format!("{} left", roughly(whole_hours(left)))
        }
        (CrawlPhase::Crawling, Some(left)) => format!("about {} left", roughly(left)),
        (CrawlPhase::Crawling, None) | (CrawlPhase::Waiting, _) => return None,
    })
}

/// Returns the parts that a line shows if it has room for them, the most important one first.
fn extras(now: &ProgressSnapshot) -> Vec<String> {
    let waiting = u64::from(now.hosts_waiting);
    let mut parts = vec![format!("{} waiting", counted(waiting, "host", "hosts"))];
    if now.hosts_resting > 0 {
        let reasons: Vec<&str> = now.resting.keys().copied().collect();
        let count = grouped(u64::from(now.hosts_resting));
        parts.push(format!("{count} resting ({})", reasons.join(", ")));
    }
    if now.is_left_by_slowest_host && now.left.is_some() && now.phase == CrawlPhase::Crawling {
        parts.push("limited by the slowest host".to_owned());
    }
    parts.push(size(now.bytes));
    parts
}

/// Rounds a count down to two or three digits: `12k`, `1.2M`. Counts below 10,000 are exact.
fn rounded(count: u64) -> String {
    let (unit, name) = match count {
        0..10_000 => return grouped(count),
        10_000..1_000_000 => (1_000, "k"),
        1_000_000..1_000_000_000 => (1_000_000, "M"),
        _ => (1_000_000_000, "G"),
    };
    match count / unit {
        whole @ 0..10 => format!("{whole}.{}{name}", count % unit / (unit / 10)),
        whole => format!("{}{name}", grouped(whole)),
    }
}

/// Drops the minutes of a duration of a day or more.
fn whole_hours(time: Duration) -> Duration {
    match time.as_secs() {
        seconds if seconds >= 24 * 3600 => Duration::from_secs(seconds / 3600 * 3600),
        _ => time,
    }
}

fn object(now: &ProgressSnapshot) -> serde_json::Value {
    json!({
        "phase": now.phase,
        "round": now.round,
        "pages": now.pages,
        "failed": now.failed,
        "excluded": now.excluded,
        "pending": now.pending,
        "in_flight": now.in_flight,
        "hosts_waiting": now.hosts_waiting,
        "hosts_resting": now.hosts_resting,
        "bytes": now.bytes,
        "pages_per_second": now.pages_per_second,
        "elapsed_ms": millis(now.elapsed),
        "share_done": (now.share_done * 1000.0).round() / 1000.0,
        "left_ms": now.left.map(millis),
        "left_by": now.left.map(|_| match now.is_left_by_slowest_host {
            true => "slowest_host",
            false => "rate_or_max_time",
        }),
        "resting": now.resting,
        "outcomes": now.counters.pages,
    })
}

/// Formats a duration in whole seconds, or in whole minutes from an hour on.
pub(crate) fn roughly(time: Duration) -> String {
    let seconds = match time.as_secs() {
        seconds if seconds >= 3600 => seconds / 60 * 60,
        seconds => seconds,
    };
    DurationSetting::from_secs(seconds).to_string()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is used"
)]
mod tests {
    use std::time::Duration;

    use crawl_engine::{CrawlPhase, ProgressSnapshot};
    use expect_test::{Expect, expect};

    use super::{BAR_COLUMNS, SPINNER_COLUMNS, fitted, line, object, roughly, rounded};

    fn check(now: &ProgressSnapshot, expect: Expect) {
        expect.assert_eq(&format!("{}\n{}", line(now), object(now)));
    }

    fn moment() -> ProgressSnapshot {
        ProgressSnapshot {
            pages: 1234,
            pending: 56,
            hosts_waiting: 2,
            bytes: 12_345_678,
            pages_per_second: 3.25,
            share_done: 0.25,
            elapsed: Duration::from_millis(61_500),
            ..ProgressSnapshot::default()
        }
    }

    #[test]
    fn progress_is_shown_as_text_and_as_an_object() {
        check(
            &moment(),
            expect![[r#"
                1,234 pages, 3.2/s, 56 pending, 0 failed, 2 hosts waiting, 12.3 MB
                {"bytes":12345678,"elapsed_ms":61500,"excluded":0,"failed":0,"hosts_resting":0,"hosts_waiting":2,"in_flight":0,"left_by":null,"left_ms":null,"outcomes":{},"pages":1234,"pages_per_second":3.25,"pending":56,"phase":"crawling","resting":{},"round":0,"share_done":0.25}"#]],
        );
        let left = Some(Duration::from_secs(3_700));
        check(
            &ProgressSnapshot {
                left,
                failed: 1,
                hosts_resting: 1,
                resting: [("retry_after", 1)].into(),
                is_left_by_slowest_host: true,
                ..moment()
            },
            expect![[r#"
                1,234 pages, 3.2/s, about 1h1m left, 56 pending, 1 failed, 2 hosts waiting, 1 resting (retry_after), limited by the slowest host, 12.3 MB
                {"bytes":12345678,"elapsed_ms":61500,"excluded":0,"failed":1,"hosts_resting":1,"hosts_waiting":2,"in_flight":0,"left_by":"slowest_host","left_ms":3700000,"outcomes":{},"pages":1234,"pages_per_second":3.25,"pending":56,"phase":"crawling","resting":{"retry_after":1},"round":0,"share_done":0.25}"#]],
        );
        let phase = CrawlPhase::Draining;
        check(
            &ProgressSnapshot {
                phase,
                in_flight: 3,
                ..moment()
            },
            expect![[r#"
                1,234 pages, 3.2/s, stopping, 3 in flight, 56 pending, 0 failed, 2 hosts waiting, 12.3 MB
                {"bytes":12345678,"elapsed_ms":61500,"excluded":0,"failed":0,"hosts_resting":0,"hosts_waiting":2,"in_flight":3,"left_by":null,"left_ms":null,"outcomes":{},"pages":1234,"pages_per_second":3.25,"pending":56,"phase":"draining","resting":{},"round":0,"share_done":0.25}"#]],
        );
    }

    #[test]
    fn one_is_singular() {
        let one = ProgressSnapshot {
            pages: 1,
            hosts_waiting: 1,
            ..ProgressSnapshot::default()
        };
        assert_eq!(
            line(&one),
            "1 page, 0.0/s, 0 pending, 0 failed, 1 host waiting, 0 B"
        );
    }

    #[test]
    fn narrow_lines_show_rate_time_left_pending_and_failed() {
        let small = ProgressSnapshot {
            left: Some(Duration::from_secs(3_700)),
            failed: 7,
            ..moment()
        };
        let large = ProgressSnapshot {
            pages: 1_234_567,
            pages_per_second: 12.3,
            left: Some(Duration::from_secs(90_061)),
            pending: 123_456,
            failed: 12_345,
            ..moment()
        };
        let shown = [&small, &large].map(|now| {
            let lines = [59, 79, 119].map(|columns| {
                let (has_bar, text) = fitted(now, columns);
                let bar = if has_bar { BAR_COLUMNS } else { 0 };
                assert!(
                    SPINNER_COLUMNS + bar + text.chars().count() <= columns,
                    "{text}"
                );
                format!("{columns} {has_bar} {text}\n")
            });
            lines.concat()
        });
        expect![[r#"
            59 false 1,234 pages, 3.2/s, about 1h1m left, 56 pending, 7 failed
            79 false 1,234 pages, 3.2/s, about 1h1m left, 56 pending, 7 failed, 2 hosts waiting
            119 true 1,234 pages, 3.2/s, about 1h1m left, 56 pending, 7 failed, 2 hosts waiting, 12.3 MB
            59 false 1.2M pages, 12.3/s, 1d1h left, 123k pending, 12k failed
            79 false 1,234,567 pages, 12.3/s, about 1d1h1m left, 123,456 pending, 12,345 failed
            119 true 1,234,567 pages, 12.3/s, about 1d1h1m left, 123,456 pending, 12,345 failed, 2 hosts waiting
        "#]]
        .assert_eq(&shown.concat());
    }

    #[test]
    fn short_counts_are_rounded_down() {
        let counts = [
            0,
            9_999,
            10_000,
            99_999,
            999_999,
            1_999_999,
            12_000_000,
            9_999_999_999,
        ];
        let shown = counts.map(rounded);
        assert_eq!(
            shown,
            ["0", "9,999", "10k", "99k", "999k", "1.9M", "12M", "9.9G"]
        );
    }

    #[test]
    fn the_bar_follows_the_share_that_is_done() {
        let bars = [0.0, 0.01, 0.333_4, 0.999, 1.0, 7.0, f64::NAN].map(super::bar);
        expect![[r#"
            [                    ]
            [>                   ]
            [======>             ]
            [===================>]
            [====================]
            [====================]
            [                    ]"#]]
        .assert_eq(&bars.join("\n"));
    }

    #[test]
    fn time_left_is_rough() {
        let shown: Vec<String> = [0, 59, 61, 3_661, 90_061]
            .map(|seconds| roughly(Duration::from_secs(seconds)))
            .into();
        assert_eq!(shown, ["0s", "59s", "1m1s", "1h1m", "1d1h1m"]);
    }
}

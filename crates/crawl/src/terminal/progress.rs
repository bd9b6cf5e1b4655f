//! Progress of a crawl, on stderr.

use std::time::Duration;

use crawl_engine::{Phase, Progress};
use crawl_records::{counted, grouped, size};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::Terminal;
use crate::settings::ProgressMode;
use crate::values::Span;

/// How often to redraw the bar.
const BAR_INTERVAL: Duration = Duration::from_millis(200);
/// Steps of a full bar.
const BAR_STEPS: u64 = 1000;
/// How often to write an object with `--progress json`.
const JSON_INTERVAL: Duration = Duration::from_secs(1);
/// How often to write a line with `--progress plain`.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// Displays progress until the sender is dropped.
pub(crate) async fn show(terminal: Terminal, mut progress: watch::Receiver<Progress>) {
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

/// Waits until the sender is dropped, and returns the last state.
async fn gone(mut progress: watch::Receiver<Progress>) -> Progress {
    while progress.changed().await.is_ok() {}
    progress.borrow().clone()
}

pub(super) fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} [{bar:20}] {wide_msg}");
    // The template is a constant and can't fail to parse.
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
        .with_style(style.progress_chars("=> "))
}

fn draw(terminal: &Terminal, now: &Progress) {
    match terminal.mode {
        ProgressMode::Bar => {
            terminal.bar.set_length(BAR_STEPS);
            terminal.bar.set_position(steps(now.share_done));
            terminal.bar.set_message(line(now));
            terminal.bar.tick();
        }
        ProgressMode::Plain => terminal.write(format!("{}\n", line(now)).as_bytes()),
        ProgressMode::Json => terminal.write(format!("{}\n", object(now)).as_bytes()),
        ProgressMode::Auto | ProgressMode::Off => {}
    }
}

/// Converts a fraction done into steps of the bar.
fn steps(share_done: f64) -> u64 {
    (share_done.clamp(0.0, 1.0) * BAR_STEPS as f64) as u64
}

/// Formats the progress on one line. The most important part comes first, since a narrow terminal
/// cuts off the end.
fn line(now: &Progress) -> String {
    let waiting = u64::from(now.hosts_waiting);
    let pages = counted(now.pages, "page", "pages");
    let mut parts = vec![
        match now.round {
            0 | 1 => pages,
            round => format!("round {round}: {pages}"),
        },
        format!("{:.1}/s", now.pages_per_second),
        format!("{} waiting", counted(waiting, "host", "hosts")),
    ];
    match (now.phase, now.left) {
        (Phase::Paused, _) => parts.push("paused".to_owned()),
        (Phase::DiskLow, _) => parts.push(format!(
            "waiting for disk space: {} free, {} required",
            size(now.disk_free.unwrap_or_default()),
            size(now.min_free)
        )),
        (Phase::WaitingForWorkers, _) => parts.push("waiting for other workers".to_owned()),
        (Phase::Draining, _) => parts.push(format!("stopping, {} in flight", now.in_flight)),
        (Phase::Writing, _) => parts.push("writing the index".to_owned()),
        (Phase::Crawling, Some(left)) => {
            let by = match now.is_left_by_slowest_host {
                true => " (slowest host)",
                false => "",
            };
            parts.push(format!("about {} left{by}", roughly(left)));
        }
        (Phase::Crawling, None) => {}
    }
    parts.push(format!("{} pending", grouped(now.pending)));
    if now.hosts_resting > 0 {
        let reasons: Vec<&str> = now.resting.keys().copied().collect();
        let count = grouped(u64::from(now.hosts_resting));
        parts.push(format!("{count} resting ({})", reasons.join(", ")));
    }
    if now.failed > 0 {
        parts.push(format!("{} failed", grouped(now.failed)));
    }
    parts.push(size(now.bytes));
    parts.join(", ")
}

fn object(now: &Progress) -> serde_json::Value {
    json!({
        "phase": match now.phase {
            Phase::Crawling => "crawling",
            Phase::Paused => "paused",
            Phase::DiskLow => "disk_low",
            Phase::WaitingForWorkers => "waiting_for_workers",
            Phase::Draining => "draining",
            Phase::Writing => "writing",
        },
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
        // The share is rounded to thousandths.
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
    Span::from_secs(seconds).to_string()
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

    use crawl_engine::{Phase, Progress};
    use expect_test::{Expect, expect};

    use super::{line, object, roughly};

    fn check(now: &Progress, expect: Expect) {
        expect.assert_eq(&format!("{}\n{}", line(now), object(now)));
    }

    fn moment() -> Progress {
        Progress {
            pages: 1234,
            pending: 56,
            hosts_waiting: 2,
            bytes: 12_345_678,
            pages_per_second: 3.25,
            share_done: 0.25,
            elapsed: Duration::from_millis(61_500),
            ..Progress::default()
        }
    }

    #[test]
    fn progress_is_shown_as_text_and_as_an_object() {
        check(
            &moment(),
            expect![[r#"
                1,234 pages, 3.2/s, 2 hosts waiting, 56 pending, 12.3 MB
                {"bytes":12345678,"elapsed_ms":61500,"excluded":0,"failed":0,"hosts_resting":0,"hosts_waiting":2,"in_flight":0,"left_by":null,"left_ms":null,"outcomes":{},"pages":1234,"pages_per_second":3.25,"pending":56,"phase":"crawling","resting":{},"round":0,"share_done":0.25}"#]],
        );
        let left = Some(Duration::from_secs(3_700));
        check(
            &Progress {
                left,
                failed: 1,
                hosts_resting: 1,
                resting: [("retry_after", 1)].into(),
                is_left_by_slowest_host: true,
                ..moment()
            },
            expect![[r#"
                1,234 pages, 3.2/s, 2 hosts waiting, about 1h1m left (slowest host), 56 pending, 1 resting (retry_after), 1 failed, 12.3 MB
                {"bytes":12345678,"elapsed_ms":61500,"excluded":0,"failed":1,"hosts_resting":1,"hosts_waiting":2,"in_flight":0,"left_by":"slowest_host","left_ms":3700000,"outcomes":{},"pages":1234,"pages_per_second":3.25,"pending":56,"phase":"crawling","resting":{"retry_after":1},"round":0,"share_done":0.25}"#]],
        );
        let phase = Phase::Draining;
        check(
            &Progress {
                phase,
                in_flight: 3,
                ..moment()
            },
            expect![[r#"
                1,234 pages, 3.2/s, 2 hosts waiting, stopping, 3 in flight, 56 pending, 12.3 MB
                {"bytes":12345678,"elapsed_ms":61500,"excluded":0,"failed":0,"hosts_resting":0,"hosts_waiting":2,"in_flight":3,"left_by":null,"left_ms":null,"outcomes":{},"pages":1234,"pages_per_second":3.25,"pending":56,"phase":"draining","resting":{},"round":0,"share_done":0.25}"#]],
        );
    }

    #[test]
    fn one_is_singular() {
        let one = Progress {
            pages: 1,
            hosts_waiting: 1,
            ..Progress::default()
        };
        assert_eq!(line(&one), "1 page, 0.0/s, 1 host waiting, 0 pending, 0 B");
    }

    #[test]
    fn the_bar_follows_the_share_that_is_done() {
        let steps = [0.0, 0.333_4, 1.0, 7.0, f64::NAN].map(super::steps);
        assert_eq!(steps, [0, 333, 1000, 1000, 0]);
    }

    #[test]
    fn time_left_is_rough() {
        let shown: Vec<String> = [0, 59, 61, 3_661, 90_061]
            .map(|seconds| roughly(Duration::from_secs(seconds)))
            .into();
        assert_eq!(shown, ["0s", "59s", "1m1s", "1h1m", "1d1h1m"]);
    }
}

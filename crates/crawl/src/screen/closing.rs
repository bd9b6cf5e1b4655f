//! The last words of a run, and the exit code that they come with.

use std::fmt::Write as _;

use crawl_engine::{Ended, Summary};

use super::progress::roughly;
use super::{grouped, octets};
use crate::refusal::{FINISHED, INTERRUPTED, NOTHING_DONE};

/// Unreachable hosts and failed seeds that are named; the rest is counted.
const NAMED: usize = 10;

/// What was fetched, barred and failed, how long it took, where it lies, and how to go on.
///
/// `exe` is the name that the program was called by.
pub(crate) fn closing(summary: &Summary, exe: &str) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", how(summary));
    if let Ended::Unreachable(hosts) = &summary.ended {
        for host in hosts.iter().take(NAMED) {
            let when = jiff::Timestamp::from_microsecond(
                i64::try_from(host.next_try.as_micros()).unwrap_or(i64::MAX),
            );
            let when = when
                .map(|when| format!(", next try from {when:.0}"))
                .unwrap_or_default();
            let _ = writeln!(text, "  unreachable: {}: {}{when}", host.host, host.why);
        }
        more(&mut text, hosts.len());
    }
    for seed in summary.seeds_failed.iter().take(NAMED) {
        let _ = writeln!(text, "  seed failed: {}: {}", seed.url, seed.why);
    }
    more(&mut text, summary.seeds_failed.len());
    let _ = writeln!(
        text,
        "  fetched:  {} pages, {}{}",
        grouped(summary.pages),
        octets(summary.bytes),
        match summary.resumed {
            true => format!(" ({} pages in this run)", grouped(summary.pages_of_run)),
            false => String::new(),
        }
    );
    let _ = writeln!(text, "  barred:   {}", barred(summary));
    let _ = writeln!(text, "  failed:   {}", grouped(summary.failed));
    if summary.pending > 0 {
        let _ = writeln!(text, "  pending:  {}", grouped(summary.pending));
    }
    let _ = writeln!(
        text,
        "  took:     {}, {} requests, {} of them for robots.txt",
        roughly_or_millis(summary.elapsed),
        grouped(summary.requests),
        grouped(summary.robots_requests)
    );
    let output = summary.output.display();
    let _ = writeln!(text, "  lies in:  {output}");
    if summary.pending > 0 {
        let _ = writeln!(
            text,
            "  go on:    {exe} --output {}",
            quoted(&output.to_string())
        );
    }
    text
}

/// The exit code of a run that came to its end.
pub(crate) fn exit_code(summary: &Summary, fail_on_error: bool) -> u8 {
    let incomplete = summary.failed > 0 || matches!(summary.ended, Ended::Unreachable(_));
    match &summary.ended {
        Ended::Interrupted => INTERRUPTED,
        _ if summary.seeds_fetched == 0 && !summary.seeds_failed.is_empty() => NOTHING_DONE,
        Ended::Unreachable(_) if summary.seeds_fetched == 0 => NOTHING_DONE,
        _ if fail_on_error && incomplete => NOTHING_DONE,
        _ => FINISHED,
    }
}

fn how(summary: &Summary) -> String {
    match &summary.ended {
        Ended::Finished
            if summary.resumed && summary.pages_of_run == 0 && summary.requests == 0 =>
        {
            "finished: there was nothing left to do".to_owned()
        }
        Ended::Finished => "finished".to_owned(),
        Ended::Budget(which) => format!("ended by --{which}"),
        Ended::Interrupted => "interrupted; what was fetched is kept".to_owned(),
        Ended::Unreachable(hosts) => format!(
            "ended: {} can't be asked for longer than --wait-unreachable",
            match hosts.len() {
                1 => "the one host left".to_owned(),
                count => format!("the {} hosts left", grouped(count as u64)),
            }
        ),
    }
}

fn barred(summary: &Summary) -> String {
    let total: u64 = summary.excluded.values().sum();
    let reasons = summary
        .excluded
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(reason, count)| format!("{reason} {}", grouped(*count)));
    let reasons: Vec<String> = reasons.collect();
    match total {
        0 => "0".to_owned(),
        total => format!("{} ({})", grouped(total), reasons.join(", ")),
    }
}

fn more(text: &mut String, count: usize) {
    if count > NAMED {
        let _ = writeln!(text, "  and {} more", grouped((count - NAMED) as u64));
    }
}

fn roughly_or_millis(time: std::time::Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{:.1}s", time.as_secs_f64()),
        _ => roughly(time),
    }
}

/// A path as a shell takes it.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    match !path.is_empty() && path.chars().all(plain) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

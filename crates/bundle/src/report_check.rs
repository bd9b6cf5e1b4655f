//! Checks the report of a crawl against its row files.

use std::path::Path;

use crawl_archive::{BoundedLineResult, LineReader, MAX_LINE_BYTES, open_regular, read_text};
use crawl_records::report;
use serde::Serialize;
use serde_json::Value;

use crate::error::VerificationRunError;
use crate::verification_result::VerificationResult;

const REPORT: &str = "report.json";
const HOSTS: &str = "hosts.jsonl";
/// Maximum bytes of a `report.json`. A host takes about 500.
/// Beyond the limit: reported as a defect unread.
const MAX_REPORT_BYTES: u64 = 256 << 20;

/// Computes the report again from the row files, and compares each value of `report.json` and
/// `hosts.jsonl` with it.
pub(crate) fn check_report(
    dir: &Path,
    verification: &mut VerificationResult,
) -> Result<(), VerificationRunError> {
    let report = report(dir)?;
    let summed = as_read(&report);
    match read_text(&dir.join(REPORT), MAX_REPORT_BYTES) {
        Err(error) => verification.file(REPORT, format!("can't be read: {error}")),
        Ok(text) => match serde_json::from_str::<Value>(&text) {
            Err(error) => verification.file(REPORT, format!("not JSON: {error}")),
            Ok(stored) => {
                let mut differences = Vec::new();
                let values = compare(&stored, Some(&summed), "", &mut differences);
                verification.checked.report_values += values;
                for what in differences {
                    verification.file(REPORT, what);
                }
            }
        },
    }
    let path = dir.join(HOSTS);
    let hosts = report.hosts.iter().filter(|host| host.coverage.is_some());
    let mut hosts = hosts.map(as_read);
    let file = match open_regular(&path) {
        Err(error) => {
            verification.file(HOSTS, format!("can't be read: {error}"));
            return Ok(());
        }
        Ok(file) => file,
    };
    let mut lines = LineReader::new(std::io::BufReader::new(file), MAX_LINE_BYTES);
    let mut number = 0;
    while let Some(line) = lines
        .next_line()
        .map_err(VerificationRunError::read(&path))?
    {
        number += 1;
        verification.checked.rows += 1;
        let stored: Option<Value> = match line {
            BoundedLineResult::Whole(line) => serde_json::from_slice(line).ok(),
            _ => None,
        };
        let mut differences = Vec::new();
        match (stored, hosts.next()) {
            (None, _) => verification.line(HOSTS, number, "not a row"),
            (Some(_), None) => verification.line(HOSTS, number, "no row mentions this host"),
            (Some(stored), Some(host)) => {
                compare(&stored, Some(&host), "", &mut differences);
            }
        }
        for what in differences {
            verification.line(HOSTS, number, what);
        }
    }
    match hosts.count() {
        0 => {}
        more => verification.file(
            HOSTS,
            format!("{more} hosts that the rows mention are missing"),
        ),
    }
    Ok(())
}

/// Serialises a value and parses it again. Stored fractions went through the same steps, which may
/// change their last bit.
fn as_read<T: Serialize>(value: &T) -> Value {
    let text = serde_json::to_vec(value).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Compares a stored value with the one computed from the rows. Adds a message to `out` for each
/// difference, and returns the number of values in `stored`. A value that `stored` lacks is not a
/// difference, because older versions wrote fewer fields.
fn compare(stored: &Value, summed: Option<&Value>, path: &str, out: &mut Vec<String>) -> u64 {
    match (stored, summed) {
        (Value::Object(stored), Some(Value::Object(summed))) => stored
            .iter()
            .map(|(key, value)| compare(value, summed.get(key), &format!("{path}.{key}"), out))
            .sum(),
        (Value::Array(stored), Some(Value::Array(summed))) if stored.len() == summed.len() => {
            let pairs = stored.iter().zip(summed).enumerate();
            pairs
                .map(|(at, (stored, summed))| {
                    compare(stored, Some(summed), &format!("{path}[{at}]"), out)
                })
                .sum()
        }
        (stored, Some(summed)) if stored == summed => 1,
        (stored, summed) => {
            let name = path.trim_start_matches('.');
            let summed = summed.map_or("nothing".to_owned(), shown);
            out.push(format!(
                "`{name}` is {}, but the rows say {summed}",
                shown(stored)
            ));
            1
        }
    }
}

/// Returns the beginning of a value for a message.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::compare;

    #[test]
    fn each_value_that_differs_is_named() {
        let stored = json!({"a": {"b": [1, 2]}, "c": "x", "d": null});
        let check = |summed, expected: &[&str]| {
            let mut differences = Vec::new();
            assert_eq!(compare(&stored, Some(&summed), "", &mut differences), 4);
            assert_eq!(differences, expected);
        };
        check(stored.clone(), &[]);
        check(
            json!({"a": {"b": [1, 2]}, "c": "x", "d": null, "later": 1}),
            &[],
        );
        check(
            json!({"a": {"b": [1, 3]}, "d": null}),
            &[
                "`a.b[1]` is 2, but the rows say 3",
                "`c` is \"x\", but the rows say nothing",
            ],
        );
    }
}

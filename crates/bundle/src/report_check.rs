//! The report of a crawl, held against its rows.

use std::path::Path;

use crawl_archive::{BoundedLine, LineReader, MAX_LINE_BYTES, open_regular, read_text};
use crawl_records::report;
use serde::Serialize;
use serde_json::Value;

use crate::error::VerifyError;
use crate::verification::Verification;

const REPORT: &str = "report.json";
const HOSTS: &str = "hosts.jsonl";
/// A host takes some 500 bytes of `report.json`.
const MAX_REPORT_BYTES: u64 = 256 << 20;

/// Sums the rows up anew, and compares each value of `report.json` and of `hosts.jsonl`.
pub(crate) fn check_report(dir: &Path, verification: &mut Verification) -> Result<(), VerifyError> {
    let report = report(dir)?;
    let summed = as_read(&report);
    match read_text(&dir.join(REPORT), MAX_REPORT_BYTES) {
        Err(why) => verification.file(REPORT, format!("it can't be read: {why}")),
        Ok(text) => match serde_json::from_str::<Value>(&text) {
            Err(why) => verification.file(REPORT, format!("it is no JSON: {why}")),
            Ok(found) => {
                let mut differences = Vec::new();
                let values = compare(&found, Some(&summed), "", &mut differences);
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
        Err(why) => {
            verification.file(HOSTS, format!("it can't be read: {why}"));
            return Ok(());
        }
        Ok(file) => file,
    };
    let mut lines = LineReader::new(std::io::BufReader::new(file), MAX_LINE_BYTES);
    let mut number = 0;
    while let Some(line) = lines.next_line().map_err(VerifyError::read(&path))? {
        number += 1;
        verification.checked.rows += 1;
        let found: Option<Value> = match line {
            BoundedLine::Whole(line) => serde_json::from_slice(line).ok(),
            _ => None,
        };
        let mut differences = Vec::new();
        match (found, hosts.next()) {
            (None, _) => verification.line(HOSTS, number, "it is no row"),
            (Some(_), None) => verification.line(HOSTS, number, "the rows know no such host"),
            (Some(found), Some(host)) => {
                compare(&found, Some(&host), "", &mut differences);
            }
        }
        for what in differences {
            verification.line(HOSTS, number, what);
        }
    }
    match hosts.count() {
        0 => {}
        more => verification.file(HOSTS, format!("{more} hosts of the rows are missing")),
    }
    Ok(())
}

/// A value as it is read back from its text: of a fraction the last bit may differ.
fn as_read<T: Serialize>(value: &T) -> Value {
    let text = serde_json::to_vec(value).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Counts the values in `found`, and gathers those that are not what the rows say. What only the
/// rows say is no difference: an older version wrote fewer fields.
fn compare(found: &Value, summed: Option<&Value>, path: &str, out: &mut Vec<String>) -> u64 {
    match (found, summed) {
        (Value::Object(found), Some(Value::Object(summed))) => found
            .iter()
            .map(|(key, value)| compare(value, summed.get(key), &format!("{path}.{key}"), out))
            .sum(),
        (Value::Array(found), Some(Value::Array(summed))) if found.len() == summed.len() => {
            let pairs = found.iter().zip(summed).enumerate();
            pairs
                .map(|(at, (found, summed))| {
                    compare(found, Some(summed), &format!("{path}[{at}]"), out)
                })
                .sum()
        }
        (found, Some(summed)) if found == summed => 1,
        (found, summed) => {
            let name = path.trim_start_matches('.');
            let summed = summed.map_or("nothing of it".to_owned(), shown);
            out.push(format!(
                "`{name}` is {}, and the rows say {summed}",
                shown(found)
            ));
            1
        }
    }
}

/// The beginning of a value.
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
    fn ours_each_value_that_differs_is_named() {
        let found = json!({"a": {"b": [1, 2]}, "c": "x", "d": null});
        let check = |summed, expected: &[&str]| {
            let mut differences = Vec::new();
            assert_eq!(compare(&found, Some(&summed), "", &mut differences), 4);
            assert_eq!(differences, expected);
        };
        check(found.clone(), &[]);
        check(
            json!({"a": {"b": [1, 2]}, "c": "x", "d": null, "later": 1}),
            &[],
        );
        check(
            json!({"a": {"b": [1, 3]}, "d": null}),
            &[
                "`a.b[1]` is 2, and the rows say 3",
                "`c` is \"x\", and the rows say nothing of it",
            ],
        );
    }
}

//! Checks row files. Every line must be a row that the crawler could have written.

use std::collections::BTreeMap;
use std::io::{BufReader, ErrorKind};
use std::path::Path;

use crawl_archive::rows::PageRow;
use crawl_archive::{BoundedLineResult, LineReader, MAX_LINE_BYTES, open_regular};
use crawl_records::stored_settings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{VerificationRunError, is_damage};
use crate::verification_result::VerificationResult;

/// Checks every row of a file, which may be missing. Calls `each` with the line number and the row.
pub(crate) fn check_rows<T: DeserializeOwned + Serialize>(
    dir: &Path,
    name: &str,
    is_ended: bool,
    verification: &mut VerificationResult,
    mut each: impl FnMut(u64, &T, &mut VerificationResult) -> Result<(), VerificationRunError>,
) -> Result<(), VerificationRunError> {
    let path = dir.join(name);
    let file = match open_regular(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) if is_damage(&error) => {
            verification.file(name, format!("can't be read: {error}"));
            return Ok(());
        }
        file => file.map_err(VerificationRunError::read(&path))?,
    };
    let mut lines = LineReader::new(BufReader::new(file), MAX_LINE_BYTES);
    let mut number = 0;
    while let Some(line) = lines
        .next_line()
        .map_err(VerificationRunError::read(&path))?
    {
        number += 1;
        let row: T = match (line, line.row()) {
            (BoundedLineResult::Whole(line), Some(Ok(row))) => {
                if let Some(what) = foreign_value(line, &row) {
                    verification.line(name, number, what);
                }
                row
            }
            (_, Some(Err(error))) => {
                verification.line(name, number, format!("not a row: {error}"));
                continue;
            }
            (_, None) if !is_ended => {
                verification
                    .notes
                    .push(format!("{name}: the last line is incomplete"));
                continue;
            }
            (_, _) => {
                verification.line(name, number, "the line is incomplete");
                continue;
            }
        };
        verification.checked.rows += 1;
        each(number, &row, verification)?;
    }
    Ok(())
}

/// Returns a message if a column is null although other columns of the row require a value.
pub(crate) fn missing_column(row: &PageRow, is_archived: bool) -> Option<&'static str> {
    match row {
        PageRow {
            status: None,
            error: None,
            ..
        } => Some("columns `status` and `error` are both null"),
        PageRow { status: None, .. } => None,
        // The digest may be null if column `unwanted` is set, because then the body was not read.
        PageRow {
            digest: None,
            unwanted: None,
            ..
        } => Some("column `digest` is null, but the page was answered"),
        PageRow { warc: None, .. } if is_archived => {
            Some("column `warc` is null, but the page was answered")
        }
        _ => None,
    }
}

/// The numbers of a stratum of the sample, as a row states them. All rows of the same stratum must
/// state the same numbers.
#[derive(Clone, Copy, PartialEq)]
struct StratumNumbers {
    drawn: Option<u64>,
    of: Option<u64>,
    probability: Option<f64>,
}

/// Checks the column `sample` of all rows.
pub(crate) struct SampleColumnCheck {
    /// True if the configuration requests a sample or a walk.
    is_sampled: bool,
    strata: BTreeMap<String, StratumNumbers>,
}

impl SampleColumnCheck {
    pub(crate) fn new(dir: &Path) -> SampleColumnCheck {
        let settings = stored_settings(dir);
        let sample = settings.get("sample").and_then(toml::Value::as_table);
        SampleColumnCheck {
            is_sampled: ["sample", "walk"].iter().any(|key| {
                let value = sample.and_then(|table| table.get(*key));
                value.is_some_and(|pages| pages.as_str() != Some("unlimited"))
            }),
            strata: BTreeMap::new(),
        }
    }

    pub(crate) fn row(&mut self, line: u64, row: &PageRow, verification: &mut VerificationResult) {
        let Some(sample) = &row.sample else { return };
        let mut wrong = |what: &str| verification.line("pages.jsonl", line, what);
        if !self.is_sampled {
            wrong("column `sample` describes a sample, but crawl.toml has none");
        }
        let stratum_of_row = StratumNumbers {
            drawn: sample.drawn,
            of: sample.of,
            probability: sample.probability,
        };
        let share = |drawn: u64, of: u64| drawn as f64 / of as f64;
        let is_right = match (sample.how.as_str(), &sample.stratum) {
            ("drawn", Some(stratum)) => {
                let first_of_stratum = self.strata.entry(stratum.clone()).or_insert(stratum_of_row);
                let expected = stratum_of_row
                    .drawn
                    .zip(stratum_of_row.of)
                    .map(|(drawn, of)| share(drawn, of));
                let pair = expected.zip(stratum_of_row.probability);
                *first_of_stratum == stratum_of_row
                    && pair.is_some_and(|(one, other)| (one - other).abs() < 1e-9)
            }
            ("redirect", None) => stratum_of_row.probability.is_none(),
            ("frame", None) => stratum_of_row.probability == Some(1.0),
            ("drawn" | "redirect" | "frame", _) => false,
            // Rows of other kinds have no stratum.
            _ => true,
        };
        if !is_right {
            wrong("column `sample` contradicts the other rows of its stratum");
        }
    }
}

/// Returns a message about the first column that is unknown, or whose value the crawler would write
/// differently. Accepts a missing column, because older versions wrote fewer columns.
fn foreign_value<T: Serialize>(line: &[u8], row: &T) -> Option<String> {
    let mut again = serde_json::to_vec(row).ok()?;
    again.push(b'\n');
    if again == line {
        return None;
    }
    let columns: Map<String, Value> = serde_json::from_slice(line).ok()?;
    let Ok(Value::Object(expected)) = serde_json::to_value(row) else {
        return None;
    };
    columns
        .iter()
        .find_map(|(column, value)| match expected.get(column) {
            None => Some(format!("unknown column `{column}`")),
            Some(expected) if expected != value => {
                Some(format!("column `{column}` has an invalid value"))
            }
            Some(_) => None,
        })
}

//! Row files: every line is a row, and holds what the program writes.

use std::collections::BTreeMap;
use std::io::{BufReader, ErrorKind};
use std::path::Path;

use crawl_archive::rows::PageRow;
use crawl_archive::{BoundedLine, LineReader, MAX_LINE_BYTES, open_regular};
use crawl_records::stored_settings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{VerifyError, is_damage};
use crate::verification::Verification;

/// Goes through the rows of a file that may be missing. `each` takes the line's number and its row.
pub(crate) fn check_rows<T: DeserializeOwned + Serialize>(
    dir: &Path,
    name: &str,
    is_ended: bool,
    verification: &mut Verification,
    mut each: impl FnMut(u64, &T, &mut Verification) -> Result<(), VerifyError>,
) -> Result<(), VerifyError> {
    let path = dir.join(name);
    let file = match open_regular(&path) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
        Err(why) if is_damage(&why) => {
            verification.file(name, format!("it can't be read: {why}"));
            return Ok(());
        }
        file => file.map_err(VerifyError::read(&path))?,
    };
    let mut lines = LineReader::new(BufReader::new(file), MAX_LINE_BYTES);
    let mut number = 0;
    while let Some(line) = lines.next_line().map_err(VerifyError::read(&path))? {
        number += 1;
        let row: T = match (line, line.row()) {
            (BoundedLine::Whole(line), Some(Ok(row))) => {
                if let Some(what) = foreign_value(line, &row) {
                    verification.line(name, number, what);
                }
                row
            }
            (_, Some(Err(why))) => {
                verification.line(name, number, format!("it is no row: {why}"));
                continue;
            }
            (_, None) if !is_ended => {
                verification
                    .notes
                    .push(format!("{name}: the last line has no end"));
                continue;
            }
            (_, _) => {
                verification.line(name, number, "the line has no end");
                continue;
            }
        };
        verification.checked.rows += 1;
        each(number, &row, verification)?;
    }
    Ok(())
}

/// A column that is null and can't be, as others of the row say.
pub(crate) fn what_lacks(row: &PageRow, is_archived: bool) -> Option<&'static str> {
    match row {
        PageRow {
            status: None,
            error: None,
            ..
        } => Some("columns `status` and `error` are both null"),
        PageRow { status: None, .. } => None,
        // Of a body that nobody wanted and that was not read there is none.
        PageRow {
            digest: None,
            unwanted: None,
            ..
        } => Some("column `digest` is null, and the page was answered"),
        PageRow { warc: None, .. } if is_archived => {
            Some("column `warc` is null, and the page was answered")
        }
        _ => None,
    }
}

/// The numbers of a stratum, as all its rows must tell them.
#[derive(Clone, Copy, PartialEq)]
struct Stratum {
    drawn: Option<u64>,
    of: Option<u64>,
    probability: Option<f64>,
}

/// Column `sample` of all rows.
pub(crate) struct SampleCheck {
    /// True if the configuration asks for a sample.
    is_sampled: bool,
    strata: BTreeMap<String, Stratum>,
}

impl SampleCheck {
    pub(crate) fn new(dir: &Path) -> SampleCheck {
        let settings = stored_settings(dir);
        let sample = settings.get("sample").and_then(toml::Value::as_table);
        SampleCheck {
            is_sampled: ["sample", "walk"].iter().any(|key| {
                let asked = sample.and_then(|table| table.get(*key));
                asked.is_some_and(|pages| pages.as_str() != Some("unlimited"))
            }),
            strata: BTreeMap::new(),
        }
    }

    pub(crate) fn row(&mut self, line: u64, row: &PageRow, verification: &mut Verification) {
        let Some(sample) = &row.sample else { return };
        let mut wrong = |what: &str| verification.line("pages.jsonl", line, what);
        if !self.is_sampled {
            wrong("column `sample` tells of a sample, and crawl.toml of none");
        }
        let told = Stratum {
            drawn: sample.drawn,
            of: sample.of,
            probability: sample.probability,
        };
        let share = |drawn: u64, of: u64| drawn as f64 / of as f64;
        let is_right = match (sample.how.as_str(), &sample.stratum) {
            ("drawn", Some(stratum)) => {
                let known = self.strata.entry(stratum.clone()).or_insert(told);
                let expected = told.drawn.zip(told.of).map(|(drawn, of)| share(drawn, of));
                let pair = expected.zip(told.probability);
                *known == told && pair.is_some_and(|(one, other)| (one - other).abs() < 1e-9)
            }
            ("redirect", None) => told.probability.is_none(),
            ("frame", None) => told.probability == Some(1.0),
            ("drawn" | "redirect" | "frame", _) => false,
            // Other kinds of sample know no such numbers.
            _ => true,
        };
        if !is_right {
            wrong("column `sample` is not what the other rows of its stratum say");
        }
    }
}

/// A column of a line that no row of ours has, or a value that would be written otherwise. Columns
/// may be missing, as older versions had fewer.
fn foreign_value<T: Serialize>(line: &[u8], row: &T) -> Option<String> {
    let mut again = serde_json::to_vec(row).ok()?;
    again.push(b'\n');
    if again == line {
        return None;
    }
    let found: Map<String, Value> = serde_json::from_slice(line).ok()?;
    let Ok(Value::Object(known)) = serde_json::to_value(row) else {
        return None;
    };
    found
        .iter()
        .find_map(|(column, value)| match known.get(column) {
            None => Some(format!("no row has a column `{column}`")),
            Some(known) if known != value => {
                Some(format!("column `{column}` holds no value of its kind"))
            }
            Some(_) => None,
        })
}

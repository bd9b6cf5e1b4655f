//! Row files: every line is a row, and holds what the program writes.

use std::io::{BufReader, ErrorKind};
use std::path::Path;

use crawl_archive::{BoundedLine, LineReader, MAX_LINE_BYTES, open_regular};
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

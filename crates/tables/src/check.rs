//! Tables that were exported, held against the rows that they were made from.

use std::path::Path;

use crawl_records::Rounds;

use crate::export::{TablesError, sums_of_rows};
use crate::pages::{CRAWL_COLUMN, PAGES};
use crate::row_tables::{EXCLUDED, HOSTS, LINKS, REQUESTS, ROBOTS, WALK};
use crate::sums::sums_of_parquet;
use crate::table::{Kind, Table};

/// A table that is not what the rows say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDefect {
    /// Its file, as seen from the folder of tables.
    pub file: String,
    /// The defect.
    pub what: String,
}

/// The columns of a table, for those who describe its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumns {
    /// Its name: that of its file without the ending.
    pub name: &'static str,
    /// The exchange or page that a row stands for.
    pub row: &'static str,
    /// Its columns in their order.
    pub columns: Vec<ColumnMeaning>,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnMeaning {
    /// Its name.
    pub name: &'static str,
    /// The type of its values.
    pub kind: Kind,
    /// Its unit, or its form.
    pub unit: &'static str,
    /// The meaning.
    pub meaning: &'static str,
}

/// All tables with their columns.
#[must_use]
pub fn table_columns() -> Vec<TableColumns> {
    vec![
        columns(&PAGES),
        columns(&LINKS),
        columns(&WALK),
        columns(&HOSTS),
        columns(&REQUESTS),
        columns(&EXCLUDED),
        columns(&ROBOTS),
    ]
}

fn columns<R>(table: &Table<R>) -> TableColumns {
    let about = table.about().into_iter().map(|column| ColumnMeaning {
        name: column.name,
        kind: column.kind,
        unit: column.unit,
        meaning: column.meaning,
    });
    TableColumns {
        name: table.name,
        row: table.row,
        columns: about.collect(),
    }
}

/// Holds the Parquet files in `folder` against the row files of the crawl in `dir`: the number of
/// rows of all rounds, and each value but the name of the crawl. Memory is bounded as for
/// [`export`](crate::export()).
///
/// # Errors
/// Those of reading the rows. A table that can't be read is a defect.
pub fn check_tables(dir: &Path, folder: &Path) -> Result<Vec<TableDefect>, TablesError> {
    let expected = sums_of_rows(dir, Rounds::All)?;
    let known = table_columns();
    let mut defects = Vec::new();
    for (name, expected) in expected {
        let file = format!("{name}.parquet");
        let what = match sums_of_parquet(&folder.join(&file)) {
            Err(why) => Some(format!("it can't be read: {why}")),
            Ok(found) if found.rows != expected.rows => {
                let (found, rows) = (found.rows, expected.rows);
                Some(format!(
                    "it has {found} rows, and the row files give {rows}"
                ))
            }
            Ok(found) => {
                let table = known.iter().find(|table| table.name == name);
                let columns = table.map_or(&[][..], |table| &table.columns);
                let sums = found.columns.iter().zip(&expected.columns);
                let mut pairs = columns.iter().zip(sums);
                let wrong = pairs.find(|(column, (found, expected))| {
                    found != expected && !(name == PAGES.name && column.name == CRAWL_COLUMN)
                });
                let is_short = found.columns.len() != expected.columns.len();
                match wrong {
                    Some((column, _)) => Some(format!(
                        "column `{}` holds a value that the row files do not give",
                        column.name
                    )),
                    None => is_short.then(|| "it has other columns".to_owned()),
                }
            }
        };
        defects.extend(what.map(|what| TableDefect { file, what }));
    }
    Ok(defects)
}

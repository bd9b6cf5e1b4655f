//! Compares exported tables with the rows of the crawl, and describes the tables for the
//! documentation.

use std::path::Path;

use crawl_records::RoundSelection;

use crate::export::{TablesError, sums_of_rows};
use crate::non_page_tables::{EXCLUDED, HOSTS, LINKS, REQUESTS, ROBOTS, WALK};
use crate::pages_table::{CRAWL_COLUMN, PAGES};
use crate::table_checksums::sums_of_parquet;
use crate::table_definition::{ColumnKind, TableDefinition};

/// A difference between an exported table and the row files of the crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferenceFromRows {
    /// The path of the file, relative to the folder of tables.
    pub file: String,
    /// A description of the difference.
    pub what: String,
}

/// The description of a table: its name, its columns, and the meaning of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDocumentation {
    /// The name of the table, which is its file name without the extension.
    pub name: &'static str,
    /// A description of what a row of the table contains.
    pub row: &'static str,
    /// The columns in the order of the file.
    pub columns: Vec<ColumnDocumentation>,
}

/// What the documentation says of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnDocumentation {
    /// The name of the column.
    pub name: &'static str,
    /// The type of the column's values.
    pub kind: ColumnKind,
    /// The unit or format of the column's values.
    pub unit: &'static str,
    /// The meaning of the column's values.
    pub meaning: &'static str,
}

/// Returns the descriptions of all tables with fixed columns.
#[must_use]
pub fn table_columns() -> Vec<TableDocumentation> {
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

fn columns<R>(table: &TableDefinition<R>) -> TableDocumentation {
    let about = table.about().into_iter().map(|column| ColumnDocumentation {
        name: column.name,
        kind: column.kind,
        unit: column.unit,
        meaning: column.meaning,
    });
    TableDocumentation {
        name: table.name,
        row: table.row,
        columns: about.collect(),
    }
}

/// Compares the Parquet files in `folder`, which must cover all rounds, with the row files of the
/// crawl in `dir`: the number of rows, and every value except the name of the crawl. Memory is
/// bounded as in [`export`](crate::export()).
///
/// # Errors
/// [`TablesError`] if the rows can't be read. A table that can't be read is reported as a
/// defect.
pub fn check_tables(dir: &Path, folder: &Path) -> Result<Vec<DifferenceFromRows>, TablesError> {
    let expected = sums_of_rows(dir, RoundSelection::All)?;
    let tables = table_columns();
    let mut defects = Vec::new();
    for (name, expected) in expected {
        let file = format!("{name}.parquet");
        let problem = match sums_of_parquet(&folder.join(&file)) {
            Err(error) => Some(format!("it can't be read: {error}")),
            Ok(found) if found.rows != expected.rows => {
                let (found, rows) = (found.rows, expected.rows);
                Some(format!(
                    "{found} rows instead of {rows} as in the row files"
                ))
            }
            Ok(found) => {
                let table = tables.iter().find(|table| table.name == name);
                let columns = table.map_or(&[][..], |table| &table.columns);
                let sums = found.columns.iter().zip(&expected.columns);
                let mut pairs = columns.iter().zip(sums);
                let wrong = pairs.find(|(column, (found, expected))| {
                    found != expected && !(name == PAGES.name && column.name == CRAWL_COLUMN)
                });
                let is_short = found.columns.len() != expected.columns.len();
                match wrong {
                    Some((column, _)) => Some(format!(
                        "column `{}` has a value that is not in the row files",
                        column.name
                    )),
                    None => is_short.then(|| "its columns differ".to_owned()),
                }
            }
        };
        defects.extend(problem.map(|what| DifferenceFromRows { file, what }));
    }
    Ok(defects)
}

//! Computes checksums of tables, so that an exported table can be compared with the rows of the
//! crawl.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::rc::Rc;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use xxhash_rust::xxh3::Xxh3;

use crate::table_definition::{ColumnValue, RowSink};

/// The checksums of several tables, by table name.
pub(crate) type ChecksumsByTable = Rc<RefCell<BTreeMap<&'static str, TableChecksums>>>;

/// The checksums of a table: the number of rows, and for each column the sum of the hashes of its
/// values. The sums don't depend on the order of rows. Each hash also covers the first value of the
/// row, so values swapped between rows are detected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableChecksums {
    pub(crate) rows: u64,
    pub(crate) columns: Vec<u128>,
}

impl TableChecksums {
    fn row<'v>(&mut self, values: impl Iterator<Item = TableValue<'v>>) {
        self.rows += 1;
        let mut first = 0;
        for (at, value) in values.enumerate() {
            let hash = value.hash(first);
            if at == 0 {
                first = hash;
            }
            if self.columns.len() <= at {
                self.columns.resize(at + 1, 0);
            }
            self.columns[at] = self.columns[at].wrapping_add(hash);
        }
    }
}

/// A value of a table, before it is written or after it was read.
enum TableValue<'v> {
    Null,
    Bytes(&'v [u8]),
    Number(i64),
}

impl TableValue<'_> {
    fn hash(&self, row: u128) -> u128 {
        let mut hash = Xxh3::new();
        hash.update(&row.to_le_bytes());
        match self {
            TableValue::Null => hash.update(&[0]),
            TableValue::Bytes(bytes) => {
                hash.update(&[1]);
                hash.update(bytes);
            }
            TableValue::Number(number) => {
                hash.update(&[2]);
                hash.update(&number.to_le_bytes());
            }
        }
        hash.digest128()
    }
}

/// Adds rows to the checksums of a table instead of writing them.
pub(crate) struct ChecksumSink {
    pub(crate) table: &'static str,
    pub(crate) sums: TableChecksums,
    pub(crate) into: ChecksumsByTable,
}

impl RowSink for ChecksumSink {
    fn row(&mut self, values: &[ColumnValue<'_>]) -> io::Result<()> {
        self.sums.row(values.iter().map(|value| match value {
            ColumnValue::Null => TableValue::Null,
            ColumnValue::Text(text) => TableValue::Bytes(text.as_bytes()),
            ColumnValue::Bytes(bytes) => TableValue::Bytes(bytes),
            ColumnValue::Number(number) => TableValue::Number(*number),
        }));
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.into.borrow_mut().insert(self.table, self.sums);
        Ok(())
    }
}

/// Computes the checksums of a Parquet file, row by row.
pub(crate) fn sums_of_parquet(path: &Path) -> io::Result<TableChecksums> {
    let reader = SerializedFileReader::new(File::open(path)?).map_err(io::Error::other)?;
    let mut sums = TableChecksums::default();
    for row in reader.get_row_iter(None).map_err(io::Error::other)? {
        let row = row.map_err(io::Error::other)?;
        sums.row(row.get_column_iter().map(|(_, field)| match field {
            Field::Str(text) => TableValue::Bytes(text.as_bytes()),
            Field::Bytes(bytes) => TableValue::Bytes(bytes.data()),
            Field::Short(number) => TableValue::Number((*number).into()),
            Field::Int(number) => TableValue::Number((*number).into()),
            Field::Long(number) | Field::TimestampMillis(number) => TableValue::Number(*number),
            _ => TableValue::Null,
        }));
    }
    Ok(sums)
}

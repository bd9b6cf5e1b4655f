//! Defines tables: a table is a list of columns, each with a type, a meaning, and a function that
//! computes its value.

use std::borrow::Cow;
use std::io;

/// The latest time that a table can contain, in milliseconds since 1970: the end of the year 9999.
const MAX_TIME_MS: i64 = 253_402_300_799_999;

/// The definition of a table. Each row is computed from a value of type `R`.
pub(crate) struct TableDefinition<R: 'static> {
    pub(crate) name: &'static str,
    /// A description of what a row of the table contains.
    pub(crate) row: &'static str,
    pub(crate) order: RowOrder,
    /// The groups of columns, in order. Each group has a heading.
    pub(crate) parts: &'static [(&'static str, &'static [ColumnDefinition<R>])],
}

/// The order of rows in a Parquet file. CSV files always have the order of the row file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowOrder {
    /// The order of the row file.
    AsRead,
    /// Sorted by the first column, but only within each row group.
    ByFirstColumn,
}

/// The definition of a column.
pub(crate) struct ColumnDefinition<R> {
    pub(crate) about: ColumnDescription,
    value: fn(&R) -> ColumnValue<'_>,
}

/// What is known of a column besides its values: name, type, unit, meaning and source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnDescription {
    pub(crate) name: &'static str,
    pub(crate) kind: ColumnKind,
    /// The unit or format of the column's values.
    pub(crate) unit: &'static str,
    pub(crate) meaning: &'static str,
    /// The file or header from which the value is taken.
    pub(crate) source: &'static str,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// UTF-8 text.
    Text,
    /// Bytes.
    Bytes,
    /// A 16-bit integer.
    Short,
    /// A 32-bit integer.
    Integer,
    /// A 64-bit integer.
    Long,
    /// Milliseconds since 1970, UTC.
    Time,
}

/// A value in a row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ColumnValue<'a> {
    Null,
    Text(Cow<'a, str>),
    Bytes(Vec<u8>),
    /// A number, or a time in milliseconds since 1970.
    Number(i64),
}

/// A destination for the rows of a table, such as a file.
pub(crate) trait RowSink {
    /// Writes a row. `values` contains a value for each column.
    fn row(&mut self, values: &[ColumnValue<'_>]) -> io::Result<()>;

    /// Writes all buffered rows and syncs the file to disk.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Creates a column from its description and the function that computes its value.
pub(crate) const fn column<R>(
    name: &'static str,
    kind: ColumnKind,
    unit: &'static str,
    meaning: &'static str,
    source: &'static str,
    value: fn(&R) -> ColumnValue<'_>,
) -> ColumnDefinition<R> {
    let about = ColumnDescription {
        name,
        kind,
        unit,
        meaning,
        source,
    };
    ColumnDefinition { about, value }
}

impl<R> TableDefinition<R> {
    pub(crate) fn columns(&self) -> impl Iterator<Item = &'static ColumnDefinition<R>> + use<R> {
        self.parts.iter().flat_map(|(_, columns)| *columns)
    }

    pub(crate) fn about(&self) -> Vec<ColumnDescription> {
        self.columns().map(|column| column.about).collect()
    }

    /// Computes the values of a row of the table. A number that doesn't fit the column's type
    /// becomes null.
    pub(crate) fn values<'r>(&self, row: &'r R) -> Vec<ColumnValue<'r>> {
        let values = self.columns().map(|column| {
            let value = (column.value)(row);
            match value {
                ColumnValue::Number(number) if !column.about.kind.holds(number) => {
                    ColumnValue::Null
                }
                value => value,
            }
        });
        values.collect()
    }
}

impl ColumnKind {
    fn holds(self, number: i64) -> bool {
        match self {
            ColumnKind::Short => i16::try_from(number).is_ok(),
            ColumnKind::Integer => i32::try_from(number).is_ok(),
            ColumnKind::Time => (0..=MAX_TIME_MS).contains(&number),
            ColumnKind::Text | ColumnKind::Bytes | ColumnKind::Long => true,
        }
    }
}

impl<'a> From<&'a str> for ColumnValue<'a> {
    fn from(text: &'a str) -> ColumnValue<'a> {
        ColumnValue::Text(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a String> for ColumnValue<'a> {
    fn from(text: &'a String) -> ColumnValue<'a> {
        ColumnValue::from(text.as_str())
    }
}

impl From<String> for ColumnValue<'_> {
    fn from(text: String) -> Self {
        ColumnValue::Text(Cow::Owned(text))
    }
}

impl From<u64> for ColumnValue<'_> {
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or(ColumnValue::Null, ColumnValue::Number)
    }
}

impl From<u32> for ColumnValue<'_> {
    fn from(number: u32) -> Self {
        ColumnValue::Number(number.into())
    }
}

impl From<u16> for ColumnValue<'_> {
    fn from(number: u16) -> Self {
        ColumnValue::Number(number.into())
    }
}

impl<'a, T: Into<ColumnValue<'a>>> From<Option<T>> for ColumnValue<'a> {
    fn from(value: Option<T>) -> ColumnValue<'a> {
        value.map_or(ColumnValue::Null, Into::into)
    }
}

//! Writes a table as a Parquet file.

use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{
    Compression, LogicalType, Repetition, TimeUnit, Type as PhysicalType, ZstdLevel,
};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use serde_json::json;

use crate::table_definition::{
    ColumnDescription, ColumnKind, ColumnValue, RowOrder, RowSink, TableDefinition,
};

/// Maximum rows in a Parquet row group: the number that DuckDB reads at once.
/// Beyond the limit: the next row group.
const MAX_GROUP_ROWS: usize = 122_880;
/// Maximum bytes of values buffered for a Parquet row group. A single row may have megabytes.
/// Beyond the limit: the next row group.
const MAX_GROUP_BYTES: usize = 48 * 1024 * 1024;
/// Number of values to pass to the encoder at a time.
const BATCH_ROWS: usize = 4096;
/// The key in the Parquet metadata under which the columns are described.
const DESCRIPTION: &str = "crawl.description";
/// The zstd compression level, the default of zstd.
const COMPRESSION_LEVEL: i32 = 3;

pub(crate) struct ParquetFileWriter {
    writer: SerializedFileWriter<BufWriter<File>>,
    order: RowOrder,
    columns: Vec<Buffer>,
    rows: usize,
    bytes: usize,
}

/// The values of a column in the current row group, including nulls.
struct Buffer {
    is_present: Vec<bool>,
    values: Values,
}

enum Values {
    /// The concatenated texts, and the byte offset at which each text ends.
    Text(Vec<u8>, Vec<usize>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
}

impl ParquetFileWriter {
    /// Begins a Parquet file whose metadata contains a description of each column.
    pub(crate) fn begin<R>(
        file: File,
        table: &TableDefinition<R>,
    ) -> io::Result<ParquetFileWriter> {
        let (columns, order) = (table.about(), table.order);
        let fields = columns.iter().map(field).collect::<Result<_, _>>();
        let schema = fields.and_then(|fields| {
            Type::group_type_builder(table.name)
                .with_repetition(Repetition::REQUIRED)
                .with_fields(fields)
                .build()
        });
        let schema = schema.map_err(as_io)?;
        let level = ZstdLevel::try_new(COMPRESSION_LEVEL).map_err(as_io)?;
        let by_first = SortingColumn {
            column_idx: 0,
            descending: false,
            nulls_first: true,
        };
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_sorting_columns((order == RowOrder::ByFirstColumn).then(|| vec![by_first]))
            .set_key_value_metadata(Some(vec![description(table.row, &columns)]))
            .build();
        let out = BufWriter::new(file);
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties));
        Ok(ParquetFileWriter {
            writer: writer.map_err(as_io)?,
            order,
            columns: columns
                .iter()
                .map(|column| Buffer::new(column.kind))
                .collect(),
            rows: 0,
            bytes: 0,
        })
    }

    fn write_group(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let order = self.row_order();
        let mut group = self.writer.next_row_group().map_err(as_io)?;
        for buffer in &mut self.columns {
            let Some(mut column) = group.next_column().map_err(as_io)? else {
                break;
            };
            let written = buffer.write(&order, column.untyped());
            written.and_then(|()| column.close()).map_err(as_io)?;
        }
        group.close().map_err(as_io)?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }

    /// Returns the indices of the buffered rows in the order in which to write them.
    fn row_order(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.rows).collect();
        if self.order == RowOrder::ByFirstColumn
            && let Some(Buffer {
                is_present,
                values: Values::Text(bytes, ends),
            }) = self.columns.first()
        {
            rows.sort_by_key(|&row| (is_present[row], text_of(bytes, ends, row)));
        }
        rows
    }
}

impl RowSink for ParquetFileWriter {
    fn row(&mut self, values: &[ColumnValue<'_>]) -> io::Result<()> {
        for (buffer, value) in self.columns.iter_mut().zip(values) {
            self.bytes += buffer.push(value);
        }
        self.rows += 1;
        match self.rows >= MAX_GROUP_ROWS || self.bytes >= MAX_GROUP_BYTES {
            true => self.write_group(),
            false => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.write_group()?;
        self.writer.finish().map_err(as_io)?;
        self.writer.inner().get_ref().sync_all()
    }
}

impl Buffer {
    fn new(kind: ColumnKind) -> Buffer {
        Buffer {
            is_present: Vec::new(),
            values: match kind {
                ColumnKind::Text | ColumnKind::Bytes => Values::Text(Vec::new(), Vec::new()),
                ColumnKind::Short | ColumnKind::Integer => Values::Int32(Vec::new()),
                ColumnKind::Long | ColumnKind::Time => Values::Int64(Vec::new()),
            },
        }
    }

    /// Adds a value and returns the number of bytes of memory that it takes.
    fn push(&mut self, value: &ColumnValue<'_>) -> usize {
        self.is_present.push(*value != ColumnValue::Null);
        let number = match value {
            ColumnValue::Number(number) => *number,
            ColumnValue::Null | ColumnValue::Text(_) | ColumnValue::Bytes(_) => 0,
        };
        1 + match &mut self.values {
            Values::Text(bytes, ends) => {
                let text = match value {
                    ColumnValue::Text(text) => text.as_bytes(),
                    ColumnValue::Bytes(bytes) => bytes,
                    ColumnValue::Null | ColumnValue::Number(_) => &[],
                };
                bytes.extend_from_slice(text);
                ends.push(bytes.len());
                text.len() + size_of::<usize>()
            }
            Values::Int32(numbers) => {
                // The conversion never fails: `TableDefinition::values` has replaced numbers that
                // don't fit by null.
                numbers.push(i32::try_from(number).unwrap_or_default());
                size_of::<i32>()
            }
            Values::Int64(numbers) => {
                numbers.push(number);
                size_of::<i64>()
            }
        }
    }

    /// Writes the values of the rows with these indices to the column, and empties the buffer.
    fn write(&mut self, rows: &[usize], column: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let is_present = std::mem::take(&mut self.is_present);
        let batches = rows.chunks(BATCH_ROWS).map(|batch| {
            let levels: Vec<i16> = batch.iter().map(|&row| is_present[row].into()).collect();
            let present = batch.iter().copied().filter(|&row| is_present[row]);
            (levels, present)
        });
        match (&mut self.values, column) {
            (Values::Text(bytes, ends), ColumnWriter::ByteArrayColumnWriter(column)) => {
                let (bytes, ends) = (Bytes::from(std::mem::take(bytes)), std::mem::take(ends));
                for (levels, present) in batches {
                    let slice = |row| ByteArray::from(bytes.slice(range_of(&ends, row)));
                    let texts: Vec<ByteArray> = present.map(slice).collect();
                    column.write_batch(&texts, Some(&levels), None)?;
                }
            }
            (Values::Int32(numbers), ColumnWriter::Int32ColumnWriter(column)) => {
                let numbers = std::mem::take(numbers);
                for (levels, present) in batches {
                    let numbers: Vec<i32> = present.map(|row| numbers[row]).collect();
                    column.write_batch(&numbers, Some(&levels), None)?;
                }
            }
            (Values::Int64(numbers), ColumnWriter::Int64ColumnWriter(column)) => {
                let numbers = std::mem::take(numbers);
                for (levels, present) in batches {
                    let numbers: Vec<i64> = present.map(|row| numbers[row]).collect();
                    column.write_batch(&numbers, Some(&levels), None)?;
                }
            }
            // Unreachable: the types of buffers and the schema are derived from the same columns.
            _ => return Err(ParquetError::General("a column of another type".to_owned())),
        }
        Ok(())
    }
}

fn text_of<'b>(bytes: &'b [u8], ends: &[usize], row: usize) -> &'b [u8] {
    &bytes[range_of(ends, row)]
}

fn range_of(ends: &[usize], row: usize) -> std::ops::Range<usize> {
    let begin = if row == 0 { 0 } else { ends[row - 1] };
    begin..ends[row]
}

/// Returns the descriptions of the columns as JSON, with the same texts as in `docs/tables.md`.
fn description(row: &str, columns: &[ColumnDescription]) -> KeyValue {
    let columns = columns.iter().map(|column| {
        json!({"name": column.name, "unit": column.unit, "meaning": column.meaning,
            "source": column.source})
    });
    let text = json!({"row": row, "columns": columns.collect::<Vec<_>>()});
    KeyValue::new(DESCRIPTION.to_owned(), text.to_string())
}

/// Returns the schema of a column. Every column may be null, because our tables also contain failed
/// requests. Common Crawl's tables contain only responses.
fn field(column: &ColumnDescription) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match column.kind {
        ColumnKind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnKind::Bytes => (PhysicalType::BYTE_ARRAY, None),
        ColumnKind::Short => (PhysicalType::INT32, Some(LogicalType::integer(16, true))),
        ColumnKind::Integer => (PhysicalType::INT32, None),
        ColumnKind::Long => (PhysicalType::INT64, None),
        ColumnKind::Time => {
            let utc_millis = LogicalType::timestamp(true, TimeUnit::MILLIS);
            (PhysicalType::INT64, Some(utc_millis))
        }
    };
    let field = Type::primitive_type_builder(column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical);
    field.build().map(Arc::new)
}

/// Converts a Parquet error to the I/O error that caused it or, without one, to a new I/O error.
fn as_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}

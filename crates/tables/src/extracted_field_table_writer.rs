//! Writes the fields that rules extracted as tables with typed columns.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crawl_archive::replace_file;
use crawl_fields::FieldType;
use crawl_records::{ExtractRow, RoundRowFilter, RoundSelection, extract_rules, extracts};
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use serde_json::{Map, Value};

use crate::csv_file_writer::push_text;
use crate::export::{ReadRowCounts, TableFormat, TablesError, each_row, unwritable};
use crate::extracted_field_tables::{ExtractTable, FieldColumn, tables_of};

/// Maximum rows in a Parquet row group of extracted fields.
/// Beyond the limit: the next row group.
const MAX_GROUP_ROWS: usize = 65_536;
/// Maximum bytes buffered for a Parquet row group of extracted fields.
/// Beyond the limit: the next row group.
const MAX_GROUP_BYTES: usize = 48 << 20;
/// The text between the values of a list in a CSV file.
const LIST_SEPARATOR: &str = "; ";
/// The number of days from 0000-03-01 to 1970-01-01 in the proleptic Gregorian calendar.
const DAYS_TO_1970: i64 = 719_468;

/// The result of writing the table of a rule, or of a list of groups in a rule. A group is a field
/// that consists of other fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenRuleTable {
    /// The name of the table, which is its file name without the extension.
    pub name: String,
    /// The number of rows in the table.
    pub rows: u64,
}

/// Writes the extracted fields of the crawl in `dir` as tables into the folder `out`. The table of
/// a rule has a row for each page and a column for each field. A field that extracts a list of
/// objects, such as the offers on a page, has a table of its own, with a row for each object.
/// `rounds` selects the rows. Writes nothing if the crawl has no rules.
///
/// # Errors
/// I/O errors. Malformed lines don't cause an error, but are counted.
pub fn export_extracts(
    dir: &Path,
    out: &Path,
    format: TableFormat,
    rounds: RoundSelection,
) -> Result<(Vec<WrittenRuleTable>, ReadRowCounts), TablesError> {
    let rules = extract_rules(dir);
    if rules.is_empty() {
        return Ok((Vec::new(), ReadRowCounts::default()));
    }
    let mut tables = Vec::new();
    for rule in &rules {
        for table in tables_of(rule) {
            tables.push(OpenFieldTable::begin(&rule.name, table, out, format)?);
        }
    }
    let view = RoundRowFilter::read(dir, rounds)?;
    let read = each_row(extracts(dir)?, |row: ExtractRow| {
        if rounds == RoundSelection::All || view.holds_extract(&row) {
            for table in tables.iter_mut().filter(|table| table.rule == row.rule) {
                table.add(&row)?;
            }
        }
        Ok(())
    })?;
    let written = tables.into_iter().map(OpenFieldTable::finish);
    Ok((written.collect::<Result<_, _>>()?, read))
}

/// A table that is being written.
struct OpenFieldTable {
    rule: String,
    table: ExtractTable,
    path: PathBuf,
    sink: FieldTableSink,
    rows: u64,
}

enum FieldTableSink {
    Csv(BufWriter<File>),
    Parquet(Box<ParquetSink>),
}

impl OpenFieldTable {
    fn begin(
        rule: &str,
        table: ExtractTable,
        out: &Path,
        format: TableFormat,
    ) -> Result<OpenFieldTable, TablesError> {
        let ending = match format {
            TableFormat::Csv => "csv",
            TableFormat::Parquet => "parquet",
        };
        let path = out.join(format!("{}.{ending}", table.name));
        let sink = replace_file(&path).and_then(|file| match format {
            TableFormat::Csv => csv(file, &table).map(FieldTableSink::Csv),
            TableFormat::Parquet => {
                ParquetSink::begin(file, &table).map(|sink| FieldTableSink::Parquet(sink.into()))
            }
        });
        Ok(OpenFieldTable {
            rule: rule.to_owned(),
            sink: sink.map_err(|source| unwritable(&path, source))?,
            table,
            path,
            rows: 0,
        })
    }

    fn add(&mut self, row: &ExtractRow) -> Result<(), TablesError> {
        for (item, object) in (1..).zip(self.table.objects(row)) {
            self.rows += 1;
            let written = match &mut self.sink {
                FieldTableSink::Csv(out) => csv_line(out, &self.table, row, item, object),
                FieldTableSink::Parquet(sink) => sink.add(&self.table, row, item, object),
            };
            written.map_err(|source| unwritable(&self.path, source))?;
        }
        Ok(())
    }

    fn finish(self) -> Result<WrittenRuleTable, TablesError> {
        let finished = match self.sink {
            FieldTableSink::Csv(mut out) => out.flush().and_then(|()| out.get_ref().sync_all()),
            FieldTableSink::Parquet(sink) => sink.finish(),
        };
        finished.map_err(|source| unwritable(&self.path, source))?;
        Ok(WrittenRuleTable {
            name: self.table.name,
            rows: self.rows,
        })
    }
}

/// Writes the header line to a new CSV file.
fn csv(file: File, table: &ExtractTable) -> io::Result<BufWriter<File>> {
    let mut out = BufWriter::new(file);
    let item = if table.has_items() { ",item" } else { "" };
    let mut line = format!("page_url,page_round{item}");
    for column in &table.columns {
        line.push(',');
        push_text(&column.name, &mut line);
    }
    write!(out, "{line}\r\n")?;
    Ok(out)
}

fn csv_line(
    out: &mut BufWriter<File>,
    table: &ExtractTable,
    row: &ExtractRow,
    item: i32,
    object: &Map<String, Value>,
) -> io::Result<()> {
    let mut line = String::new();
    push_text(&row.url, &mut line);
    line.push_str(&format!(",{}", row.round));
    if table.has_items() {
        line.push_str(&format!(",{item}"));
    }
    for column in &table.columns {
        line.push(',');
        let values = column.values(object).unwrap_or_default();
        let texts: Vec<String> = values.iter().map(|value| text_of(value)).collect();
        if !texts.is_empty() {
            push_text(&texts.join(LIST_SEPARATOR), &mut line);
        }
    }
    write!(out, "{line}\r\n")
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

struct ParquetSink {
    writer: SerializedFileWriter<BufWriter<File>>,
    columns: Vec<ColumnBuffer>,
    rows: usize,
    bytes: usize,
}

/// The values of a column in the current row group, with their Parquet levels. The definition level
/// says whether a value is present. The repetition level is 1 if the value belongs to the same list
/// as the value before it.
struct ColumnBuffer {
    is_list: bool,
    definition: Vec<i16>,
    repetition: Vec<i16>,
    values: ColumnValues,
}

enum ColumnValues {
    Text(Vec<ByteArray>),
    Number(Vec<f64>),
    Integer(Vec<i32>),
    Bool(Vec<bool>),
}

impl ParquetSink {
    fn begin(file: File, table: &ExtractTable) -> io::Result<ParquetSink> {
        let schema = schema(table).map_err(io::Error::other)?;
        let level = ZstdLevel::try_new(3).map_err(io::Error::other)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .build();
        let out = BufWriter::new(file);
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties));
        let new = |is_list, values| ColumnBuffer {
            is_list,
            definition: Vec::new(),
            repetition: Vec::new(),
            values,
        };
        let mut columns = vec![
            new(false, ColumnValues::Text(Vec::new())),
            new(false, ColumnValues::Integer(Vec::new())),
        ];
        if table.has_items() {
            columns.push(new(false, ColumnValues::Integer(Vec::new())));
        }
        columns.extend(table.columns.iter().map(|column| {
            let values = match column.kind {
                FieldType::Text | FieldType::Url => ColumnValues::Text(Vec::new()),
                FieldType::Number => ColumnValues::Number(Vec::new()),
                FieldType::Date => ColumnValues::Integer(Vec::new()),
                FieldType::Bool => ColumnValues::Bool(Vec::new()),
            };
            new(column.is_list, values)
        }));
        Ok(ParquetSink {
            writer: writer.map_err(io::Error::other)?,
            columns,
            rows: 0,
            bytes: 0,
        })
    }

    fn add(
        &mut self,
        table: &ExtractTable,
        row: &ExtractRow,
        item: i32,
        object: &Map<String, Value>,
    ) -> io::Result<()> {
        let url = Value::from(row.url.as_str());
        let (round, item) = (Value::from(row.round), Value::from(item));
        let mut fixed = vec![Some(vec![&url]), Some(vec![&round])];
        if table.has_items() {
            fixed.push(Some(vec![&item]));
        }
        let values = table.columns.iter().map(|column| column.values(object));
        for (buffer, values) in self.columns.iter_mut().zip(fixed.into_iter().chain(values)) {
            self.bytes += buffer.push(values.as_deref());
        }
        self.rows += 1;
        match self.rows >= MAX_GROUP_ROWS || self.bytes >= MAX_GROUP_BYTES {
            true => self.write_group(),
            false => Ok(()),
        }
    }

    fn write_group(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group().map_err(io::Error::other)?;
        for buffer in &mut self.columns {
            let Some(mut column) = group.next_column().map_err(io::Error::other)? else {
                break;
            };
            let written = buffer.write(column.untyped());
            written
                .and_then(|()| column.close())
                .map_err(io::Error::other)?;
        }
        group.close().map_err(io::Error::other)?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.write_group()?;
        self.writer.finish().map_err(io::Error::other)?;
        self.writer.inner().get_ref().sync_all()
    }
}

impl ColumnBuffer {
    /// Adds the values of a row, or a null if `values` is `None`. Returns how many bytes of memory
    /// they take.
    fn push(&mut self, values: Option<&[&Value]>) -> usize {
        let mut bytes = 0;
        let present = if self.is_list { 3 } else { 1 };
        let is_empty_list = self.is_list && values.is_some();
        let values = values.unwrap_or_default();
        if values.is_empty() {
            self.definition.push(i16::from(is_empty_list));
            self.repetition.push(0);
        }
        for (at, value) in values.iter().enumerate() {
            let added = self.values.push(value);
            bytes += added.unwrap_or(0);
            let is_present = i16::from(added.is_some());
            self.definition.push(present - 1 + is_present);
            self.repetition.push(i16::from(at > 0));
        }
        bytes + 8
    }

    fn write(&mut self, column: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let definition = std::mem::take(&mut self.definition);
        let repetition = std::mem::take(&mut self.repetition);
        let levels = (Some(&*definition), self.is_list.then_some(&*repetition));
        match (&mut self.values, column) {
            (ColumnValues::Text(values), ColumnWriter::ByteArrayColumnWriter(column)) => {
                column.write_batch(&std::mem::take(values), levels.0, levels.1)?;
            }
            (ColumnValues::Number(values), ColumnWriter::DoubleColumnWriter(column)) => {
                column.write_batch(&std::mem::take(values), levels.0, levels.1)?;
            }
            (ColumnValues::Integer(values), ColumnWriter::Int32ColumnWriter(column)) => {
                column.write_batch(&std::mem::take(values), levels.0, levels.1)?;
            }
            (ColumnValues::Bool(values), ColumnWriter::BoolColumnWriter(column)) => {
                column.write_batch(&std::mem::take(values), levels.0, levels.1)?;
            }
            _ => {
                return Err(ParquetError::General(
                    "a column has another type".to_owned(),
                ));
            }
        }
        Ok(())
    }
}

impl ColumnValues {
    /// Adds a value and returns how many bytes of memory it takes. `None` if the value is null or
    /// is not of the column's type, as in rows that an earlier version of the rule extracted.
    fn push(&mut self, value: &Value) -> Option<usize> {
        match self {
            ColumnValues::Text(values) => {
                let text = match value {
                    Value::Null => return None,
                    value => text_of(value),
                };
                let bytes = text.len() + size_of::<ByteArray>();
                values.push(ByteArray::from(text.into_bytes()));
                Some(bytes)
            }
            ColumnValues::Number(values) => {
                values.push(value.as_f64()?);
                Some(size_of::<f64>())
            }
            ColumnValues::Integer(values) => {
                let number = value.as_i64().or_else(|| days_of(value.as_str()?))?;
                values.push(i32::try_from(number).ok()?);
                Some(size_of::<i32>())
            }
            ColumnValues::Bool(values) => {
                values.push(value.as_bool()?);
                Some(1)
            }
        }
    }
}

/// Converts a date such as `2026-03-08` to the number of days since 1970-01-01.
fn days_of(day: &str) -> Option<i64> {
    let mut parts = day.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let [year, month, day] = [parts.next()??, parts.next()??, parts.next()??];
    // Count years from March. Then a leap day is the last day of its year.
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - DAYS_TO_1970)
}

fn schema(table: &ExtractTable) -> Result<Type, ParquetError> {
    let mut fields = vec![
        value("page_url", FieldType::Text)?,
        Arc::new(
            Type::primitive_type_builder("page_round", PhysicalType::INT32)
                .with_repetition(Repetition::OPTIONAL)
                .build()?,
        ),
    ];
    if table.has_items() {
        let item = Type::primitive_type_builder("item", PhysicalType::INT32);
        fields.push(Arc::new(
            item.with_repetition(Repetition::OPTIONAL).build()?,
        ));
    }
    for column in &table.columns {
        fields.push(column_type(column)?);
    }
    Type::group_type_builder("extracts")
        .with_repetition(Repetition::REQUIRED)
        .with_fields(fields)
        .build()
}

fn column_type(column: &FieldColumn) -> Result<TypePtr, ParquetError> {
    if !column.is_list {
        return value(&column.name, column.kind);
    }
    let items = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![value("element", column.kind)?])
        .build()?;
    let list = Type::group_type_builder(&column.name)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::List))
        .with_fields(vec![Arc::new(items)])
        .build()?;
    Ok(Arc::new(list))
}

fn value(name: &str, kind: FieldType) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match kind {
        FieldType::Text | FieldType::Url => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        FieldType::Number => (PhysicalType::DOUBLE, None),
        FieldType::Date => (PhysicalType::INT32, Some(LogicalType::Date)),
        FieldType::Bool => (PhysicalType::BOOLEAN, None),
    };
    let built = Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(built))
}

#[cfg(test)]
mod tests {
    use super::days_of;

    #[test]
    fn days_are_counted_from_1970() {
        for (day, expected) in [
            ("1970-01-01", Some(0)),
            ("2000-02-29", Some(11_016)),
            ("2026-03-08", Some(20_520)),
            ("1969-12-31", Some(-1)),
            ("soon", None),
        ] {
            assert_eq!(days_of(day), expected, "{day}");
        }
    }
}

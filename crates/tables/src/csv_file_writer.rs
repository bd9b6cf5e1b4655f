//! Writes a table as a CSV file (RFC 4180).

use std::fs::File;
use std::io::{self, BufWriter, Write as _};

use crawl_archive::Timestamp;

use crate::table_definition::{ColumnDescription, ColumnKind, ColumnValue, RowSink};

/// Size of the write buffer in bytes.
const BUFFER_BYTES: usize = 1 << 16;

pub(crate) struct CsvFileWriter {
    out: BufWriter<File>,
    kinds: Vec<ColumnKind>,
    line: String,
}

impl CsvFileWriter {
    /// Writes the header line to a new file.
    pub(crate) fn begin(file: File, columns: &[ColumnDescription]) -> io::Result<CsvFileWriter> {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
        let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        write!(out, "{}\r\n", names.join(","))?;
        Ok(CsvFileWriter {
            out,
            kinds: columns.iter().map(|column| column.kind).collect(),
            line: String::new(),
        })
    }
}

impl RowSink for CsvFileWriter {
    fn row(&mut self, values: &[ColumnValue<'_>]) -> io::Result<()> {
        self.line.clear();
        for (at, (value, kind)) in values.iter().zip(&self.kinds).enumerate() {
            if at > 0 {
                self.line.push(',');
            }
            match value {
                ColumnValue::Null => {}
                ColumnValue::Text(text) => push_text(text, &mut self.line),
                ColumnValue::Bytes(bytes) => {
                    for byte in bytes {
                        self.line.push_str(&format!("{byte:02x}"));
                    }
                }
                ColumnValue::Number(number) if *kind == ColumnKind::Time => {
                    let micros = number.unsigned_abs() * 1000;
                    let moment = Timestamp::from_micros(micros);
                    self.line.push_str(&moment.rfc3339_millis());
                }
                ColumnValue::Number(number) => self.line.push_str(&number.to_string()),
            }
        }
        self.line.push_str("\r\n");
        self.out.write_all(self.line.as_bytes())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()?;
        self.out.get_ref().sync_all()
    }
}

/// Appends a text to a line, in quotes if necessary. An empty text is put in quotes, so that it
/// differs from null.
pub(crate) fn push_text(text: &str, line: &mut String) {
    if !text.is_empty() && !text.contains(['"', ',', '\r', '\n']) {
        line.push_str(text);
        return;
    }
    line.push('"');
    line.push_str(&text.replace('"', "\"\""));
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::push_text;

    fn check(text: &str, expected: &str) {
        let mut line = String::new();
        push_text(text, &mut line);
        assert_eq!(line, expected);
    }

    #[test]
    fn rfc4180_2_6_and_2_7_breaks_commas_and_quotes_are_quoted() {
        check("plain text", "plain text");
        check("a,b", "\"a,b\"");
        check("a\r\nb", "\"a\r\nb\"");
        check("say \"yes\"", "\"say \"\"yes\"\"\"");
        check("=1+1", "=1+1");
    }

    #[test]
    fn empty_text_is_not_null() {
        check("", "\"\"");
    }
}

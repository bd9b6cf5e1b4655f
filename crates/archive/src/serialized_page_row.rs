//! Serialises rows of `pages.jsonl` before the file and offset of their WARC record are known.

use crate::rows::{PageRow, WarcRecordLocation};

/// The column `warc` (the file and offset of the record) as serialised without a value. Its null is
/// replaced later. Quotes in a JSON string are escaped, so this text can't occur within another
/// value.
const HOLE: &[u8] = b"\"warc\":null";
const NULL: &[u8] = b"null";

/// A serialised row of `pages.jsonl` whose WARC record has no file and offset yet. The thread that
/// read the page serialises it, so that the single writer thread has less work.
#[derive(Clone, Debug)]
pub struct SerializedPageRow {
    text: Vec<u8>,
    /// The byte offset in `text` of the value of the column `warc`.
    hole: usize,
}

impl SerializedPageRow {
    /// Serialises a row. `None` if its column `warc` is already set.
    #[must_use]
    pub fn of(row: &PageRow) -> Option<SerializedPageRow> {
        let text = serde_json::to_vec(row).ok()?;
        let at = text.windows(HOLE.len()).position(|bytes| bytes == HOLE)?;
        let hole = at + HOLE.len() - NULL.len();
        Some(SerializedPageRow { text, hole })
    }

    /// Returns whether this is the serialised form of `row`, ignoring the column `warc`.
    #[must_use]
    pub fn is_of(&self, row: &PageRow) -> bool {
        let mut line = Vec::new();
        let is_put = self.put(&mut line, row.warc.as_ref()).is_ok();
        line.pop();
        is_put && serde_json::to_vec(row).is_ok_and(|row| row == line)
    }

    /// Appends the row as a line, with `place` as the value of the column `warc`.
    pub(crate) fn put(
        &self,
        out: &mut Vec<u8>,
        place: Option<&WarcRecordLocation>,
    ) -> Result<(), serde_json::Error> {
        match place {
            None => out.extend_from_slice(&self.text),
            Some(place) => {
                out.extend_from_slice(&self.text[..self.hole]);
                serde_json::to_writer(&mut *out, place)?;
                out.extend_from_slice(&self.text[self.hole + NULL.len()..]);
            }
        }
        out.push(b'\n');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::SerializedPageRow;
    use crate::rows::{PageRow, WarcRecordLocation};

    #[test]
    fn a_line_equals_the_row_with_the_place_filled_in() {
        let json = r#"{"url":"http://a.example/\"warc\":null","status":200,"fetched_at":
            "2026-11-20T23:59:59.123Z","ms":1,"bytes":3,"content_type":null,"digest":null,"depth":0,
            "via":null,"title":"\"warc\":null,\\\"warc\":null","robots":null,"usage":null,"warc":null,
            "withheld":null,"error":"after it"}"#;
        let mut row: PageRow = serde_json::from_str(json).unwrap();
        let line = SerializedPageRow::of(&row).unwrap();
        for offset in [None, Some(512)] {
            let file = "crawl-a-00000.warc.gz".to_owned();
            row.warc = offset.map(|offset| WarcRecordLocation {
                file: file.clone(),
                offset,
            });
            let mut out = b"before".to_vec();
            line.put(&mut out, row.warc.as_ref()).unwrap();
            let expected = format!("before{}\n", serde_json::to_string(&row).unwrap());
            assert_eq!(String::from_utf8(out).unwrap(), expected);
            assert!(line.is_of(&row));
        }
        assert!(SerializedPageRow::of(&row).is_none(), "it has a place");
        row.round = 2;
        assert!(!line.is_of(&row));
    }
}

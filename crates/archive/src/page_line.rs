//! Rows of `pages.jsonl` that are put into JSON before the place of their record is known.

use crate::rows::{PageRow, WarcPlace};

/// The column that is filled in last, as a row without it has it. In a string of JSON each quote has
/// a backslash before it, so no value can look like this.
const HOLE: &[u8] = b"\"warc\":null";
const NULL: &[u8] = b"null";

/// The line of a page's row. It is made by the thread that read the page, as one thread writes the
/// lines of all.
#[derive(Clone, Debug)]
pub struct PageLine {
    text: Vec<u8>,
    /// The byte at which the place goes, if there is one.
    hole: usize,
}

impl PageLine {
    /// The line of a row; none where its record has a place already.
    #[must_use]
    pub fn of(row: &PageRow) -> Option<PageLine> {
        let text = serde_json::to_vec(row).ok()?;
        let at = text.windows(HOLE.len()).position(|bytes| bytes == HOLE)?;
        let hole = at + HOLE.len() - NULL.len();
        Some(PageLine { text, hole })
    }

    /// Returns whether it is the line of this row, whatever the place of its record.
    #[must_use]
    pub fn is_of(&self, row: &PageRow) -> bool {
        let mut line = Vec::new();
        let is_put = self.put(&mut line, row.warc.as_ref()).is_ok();
        line.pop();
        is_put && serde_json::to_vec(row).is_ok_and(|row| row == line)
    }

    /// Adds the line with the place of its record, and a line end.
    pub(crate) fn put(
        &self,
        out: &mut Vec<u8>,
        place: Option<&WarcPlace>,
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
    use super::PageLine;
    use crate::rows::{PageRow, WarcPlace};

    #[test]
    fn ours_a_line_is_that_of_the_row_with_the_place_filled_in() {
        let json = r#"{"url":"http://a.example/\"warc\":null","status":200,"fetched_at":
            "2026-11-20T23:59:59.123Z","ms":1,"bytes":3,"content_type":null,"digest":null,"depth":0,
            "via":null,"title":"\"warc\":null,\\\"warc\":null","robots":null,"usage":null,"warc":null,
            "withheld":null,"error":"after it"}"#;
        let mut row: PageRow = serde_json::from_str(json).unwrap();
        let line = PageLine::of(&row).unwrap();
        for offset in [None, Some(512)] {
            let file = "crawl-a-00000.warc.gz".to_owned();
            row.warc = offset.map(|offset| WarcPlace {
                file: file.clone(),
                offset,
            });
            let mut out = b"before".to_vec();
            line.put(&mut out, row.warc.as_ref()).unwrap();
            let expected = format!("before{}\n", serde_json::to_string(&row).unwrap());
            assert_eq!(String::from_utf8(out).unwrap(), expected);
            assert!(line.is_of(&row));
        }
        assert!(PageLine::of(&row).is_none(), "it has a place");
        row.round = 2;
        assert!(!line.is_of(&row));
    }
}

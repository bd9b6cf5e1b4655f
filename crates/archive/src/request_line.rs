//! Rows of `requests.jsonl` that are put into JSON before all of them is known.

use crate::rows::RequestRow;

/// A request's row, with its line: made by the thread that had the answer, as one thread appends the
/// lines of all.
#[derive(Clone, Debug)]
pub struct RequestLine {
    row: RequestRow,
    /// None where the row is another since: then the line is made when it is appended.
    text: Option<Vec<u8>>,
}

impl RequestLine {
    /// The line of a row.
    #[must_use]
    pub fn of(row: RequestRow) -> RequestLine {
        let text = serde_json::to_vec(&row).ok();
        RequestLine { row, text }
    }

    /// The row.
    #[must_use]
    pub fn row(&self) -> &RequestRow {
        &self.row
    }

    /// Notes the wait that the answer asks for, in milliseconds, where the row has none.
    pub fn note_wait(&mut self, wait: Option<u64>) {
        if self.row.wait_asked.is_none() && wait.is_some() {
            self.row.wait_asked = wait;
            self.text = None;
        }
    }

    /// Adds the line, and a line end.
    pub(crate) fn put(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        match &self.text {
            Some(text) => out.extend_from_slice(text),
            None => serde_json::to_writer(&mut *out, &self.row)?,
        }
        out.push(b'\n');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::RequestLine;
    use crate::rows::RequestRow;

    #[test]
    fn ours_a_line_is_that_of_its_row_whatever_was_noted_since() {
        for (asked, noted, expected) in [
            (None, None, None),
            (None, Some(7), Some(7)),
            (Some(5), Some(7), Some(5)),
            (Some(5), None, Some(5)),
        ] {
            let row = |wait_asked| RequestRow {
                url: "http://e.example/\"a\"".into(),
                wait_asked,
                ..RequestRow::default()
            };
            let mut line = RequestLine::of(row(asked));
            line.note_wait(noted);
            let mut found = Vec::new();
            line.put(&mut found).unwrap();
            assert_eq!(*line.row(), row(expected));
            let mut all = serde_json::to_vec(&row(expected)).unwrap();
            all.push(b'\n');
            assert_eq!(found, all);
        }
    }
}

//! Serialises rows of `requests.jsonl` on the thread that received the response.

use crate::rows::{RequestRow, RobotsOutcome};

/// A row of `requests.jsonl` and its serialised form. The thread that received the response
/// serialises the row, so that the single thread that appends rows has less work.
#[derive(Clone, Debug)]
pub struct SerializedRequestRow {
    row: RequestRow,
    /// The serialised row. `None` if the row has changed since; it is then serialised again when it
    /// is appended.
    text: Option<Vec<u8>>,
}

impl SerializedRequestRow {
    /// Serialises a row.
    #[must_use]
    pub fn of(row: RequestRow) -> SerializedRequestRow {
        let text = serde_json::to_vec(&row).ok();
        SerializedRequestRow { row, text }
    }

    /// Returns the row.
    #[must_use]
    pub fn row(&self) -> &RequestRow {
        &self.row
    }

    /// Records the wait that the response demands, in milliseconds. Does nothing if the row already
    /// has a wait.
    pub fn note_wait(&mut self, wait: Option<u64>) {
        if self.row.wait_asked.is_none() && wait.is_some() {
            self.row.wait_asked = wait;
            self.text = None;
        }
    }

    /// Records what the response means for an origin's rules.
    pub fn note_robots(&mut self, outcome: RobotsOutcome) {
        self.row.robots = Some(outcome);
        self.text = None;
    }

    /// Appends the serialised row and a line end.
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
    use super::SerializedRequestRow;
    use crate::rows::{RequestRow, RobotsOutcome};

    #[test]
    fn a_line_equals_its_row_after_later_changes() {
        for (asked, noted, expected) in [
            (None, None, None),
            (None, Some(7), Some(7)),
            (Some(5), Some(7), Some(5)),
            (Some(5), None, Some(5)),
        ] {
            let outcome = RobotsOutcome {
                of: "http://e.example".into(),
                state: "none".into(),
                why: None,
            };
            let is_noted = noted.is_some();
            let row = |wait_asked, robots| RequestRow {
                url: "http://e.example/\"a\"".into(),
                wait_asked,
                robots,
                ..RequestRow::default()
            };
            let mut line = SerializedRequestRow::of(row(asked, None));
            line.note_wait(noted);
            if is_noted {
                line.note_robots(outcome.clone());
            }
            let expected = row(expected, is_noted.then_some(outcome));
            let mut actual = Vec::new();
            line.put(&mut actual).unwrap();
            assert_eq!(*line.row(), expected);
            let mut all = serde_json::to_vec(&expected).unwrap();
            all.push(b'\n');
            assert_eq!(actual, all);
        }
    }
}

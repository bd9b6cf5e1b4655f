//! The line of stderr that shows progress.

use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};

use console::Term;
use indicatif::TermLike;

/// A line of the terminal that is redrawn in place.
///
/// The cursor rests at the start of the line. If the window gets narrower, the terminal may wrap
/// the line, but the cursor stays at its start, so that the next redraw erases all of it. Otherwise
/// the first part of a wrapped line would remain.
#[derive(Debug)]
pub(super) struct StatusLine {
    term: Term,
    /// The text since the last flush.
    text: Mutex<String>,
}

impl StatusLine {
    pub(super) fn stderr() -> StatusLine {
        StatusLine {
            term: Term::stderr(),
            text: Mutex::default(),
        }
    }

    fn with_text<T>(&self, change: impl FnOnce(&mut String) -> T) -> T {
        change(&mut self.text.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the columns that the line may use. The last column stays free, since a terminal may
/// begin a new line after it.
pub(super) fn columns() -> usize {
    usize::from(Term::stderr().size().1).saturating_sub(1)
}

/// Returns the bytes that replace the line, and put the cursor at its start.
fn redrawn(text: &str) -> String {
    // The second sequence erases from the end of the text to the end of the screen.
    format!("\r{}\u{1b}[J\r", text.trim_end())
}

impl TermLike for StatusLine {
    fn width(&self) -> u16 {
        u16::try_from(columns()).unwrap_or(u16::MAX)
    }

    fn height(&self) -> u16 {
        self.term.size().0
    }

    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        // There is only one line.
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.with_text(|line| line.push_str(text));
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.with_text(String::clear);
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let text = self.with_text(std::mem::take);
        io::stderr().write_all(redrawn(&text).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::redrawn;

    #[test]
    fn the_cursor_rests_at_the_start_of_the_line() {
        assert_eq!(redrawn("5 pages   "), "\r5 pages\u{1b}[J\r");
        assert_eq!(redrawn(""), "\r\u{1b}[J\r");
    }
}

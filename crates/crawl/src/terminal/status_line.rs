//! The line of stderr that shows progress.

use std::env;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use terminal_size::terminal_size_of;

/// Columns to assume if the terminal doesn't report its size.
const USUAL_COLUMNS: usize = 80;
/// The characters of the spinner at the start of the line, shown in turn.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// Minimum time between two redraws.
const MIN_BETWEEN_DRAWS: Duration = Duration::from_millis(50);

/// A line of the terminal that is redrawn in place. Clones redraw the same line.
///
/// The cursor is left at the start of the line. If the window gets narrower, the terminal may wrap
/// the line, but the cursor stays at its start, so that the next redraw erases the whole line. With
/// the cursor at the end, the first part of a wrapped line would remain.
#[derive(Clone, Debug)]
pub(crate) struct StatusLine(Option<Arc<Mutex<StatusLineState>>>);

/// The state of a status line: its text, and when it was drawn.
#[derive(Debug, Default)]
struct StatusLineState {
    text: String,
    draws: usize,
    /// When the line was drawn. `None` while nothing is shown.
    drawn_at: Option<Instant>,
}

impl StatusLine {
    /// Returns a line that shows nothing.
    pub(crate) fn hidden() -> StatusLine {
        StatusLine(None)
    }

    /// Returns a line of stderr. This line shows nothing if stderr isn't a terminal that can redraw
    /// lines.
    pub(crate) fn stderr() -> StatusLine {
        let can_redraw = env::var_os("TERM").is_some_and(|term| term != "dumb");
        match io::stderr().is_terminal() && can_redraw {
            true => StatusLine(Some(Arc::default())),
            false => StatusLine::hidden(),
        }
    }

    /// Shows `text`, which must not contain characters that control the terminal.
    pub(crate) fn show(&self, text: String) {
        let Some(mut shown) = self.lock() else {
            return;
        };
        shown.text = text;
        let is_due = |drawn: Instant| drawn.elapsed() >= MIN_BETWEEN_DRAWS;
        if shown.drawn_at.is_none_or(is_due) {
            shown.draws += 1;
            shown.draw();
        }
    }

    /// Removes the line while `write` writes whole lines to the terminal, and then shows it again.
    pub(crate) fn suspend(&self, write: impl FnOnce()) {
        let Some(mut shown) = self.lock().filter(|shown| shown.drawn_at.is_some()) else {
            return write();
        };
        put("");
        write();
        shown.draw();
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        if let Some(mut shown) = self.lock()
            && shown.drawn_at.take().is_some()
        {
            put("");
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, StatusLineState>> {
        let shown = self.0.as_ref()?.lock();
        Some(shown.unwrap_or_else(PoisonError::into_inner))
    }
}

impl StatusLineState {
    fn draw(&mut self) {
        put(&fitted(self.draws, &self.text, columns()));
        self.drawn_at = Some(Instant::now());
    }
}

/// Returns the columns that the line may use. The last column stays free, since some terminals
/// begin a new line after a character in this column.
pub(super) fn columns() -> usize {
    let size = terminal_size_of(io::stderr());
    size.map_or(USUAL_COLUMNS, |(columns, _)| usize::from(columns.0))
        .saturating_sub(1)
}

/// Returns a character of the spinner, followed by as much of `text` as fits into the columns.
/// `draws` is the number of earlier draws, which selects the character.
fn fitted(draws: usize, text: &str, columns: usize) -> String {
    let spinner = SPINNER[draws % SPINNER.len()];
    let whole = [spinner, ' '].into_iter().chain(text.chars());
    whole.take(columns).collect()
}

/// Replaces the line. A closed stderr is no reason to stop a crawl.
fn put(text: &str) {
    let _ = io::stderr().write_all(redrawn(text).as_bytes());
}

/// Returns the bytes that replace the line, and put the cursor at its start.
fn redrawn(text: &str) -> String {
    // The second sequence erases from the end of the text to the end of the screen.
    format!("\r{}\u{1b}[J\r", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::{fitted, redrawn};

    #[test]
    fn the_cursor_rests_at_the_start_of_the_line() {
        assert_eq!(redrawn("5 pages   "), "\r5 pages\u{1b}[J\r");
        assert_eq!(redrawn(""), "\r\u{1b}[J\r");
    }

    #[test]
    fn a_line_never_wraps() {
        let lines = [0, 1, 6, 80].map(|columns| fitted(11, "5 pages", columns));
        assert_eq!(lines, ["", "⠙", "⠙ 5 pa", "⠙ 5 pages"]);
    }
}

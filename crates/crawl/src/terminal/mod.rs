//! Output for a person: progress, the log, the summary, and text or JSON on stdout.

mod index_counts;
mod json_log;
mod log;
mod log_file;
mod progress;
mod summary;

use std::fmt::Write as _;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use crawl_weburl::{is_bidi_control, safe_lines};
use indicatif::ProgressBar;
use serde::Serialize;

use crate::error::{CommandError, FINISHED};
use crate::settings::{ProgressMode, Settings};

#[cfg(feature = "search")]
pub(crate) use index_counts::index_counts;
pub(crate) use log::start_log;
pub(crate) use progress::{roughly as lasting, show};
pub(crate) use summary::{HasMark, closing, exit_code};

/// stderr, shared by progress, log lines and messages: one that is written never cuts
/// through the bar. Clones write to the same terminal.
#[derive(Clone, Debug)]
pub(crate) struct Terminal {
    /// Never `Auto`: it is known what stderr is.
    mode: ProgressMode,
    quiet: bool,
    bar: ProgressBar,
}

impl Terminal {
    /// The terminal as the settings ask for it.
    pub(crate) fn new(settings: &Settings) -> Terminal {
        let quiet = settings.display.quiet.is_on();
        let mode = match settings.display.progress {
            _ if quiet => ProgressMode::Off,
            ProgressMode::Auto if io::stderr().is_terminal() => ProgressMode::Bar,
            ProgressMode::Auto => ProgressMode::Plain,
            asked => asked,
        };
        let bar = match mode {
            ProgressMode::Bar => progress::bar(),
            _ => ProgressBar::hidden(),
        };
        Terminal { mode, quiet, bar }
    }

    /// A message of its own line, unless `--quiet`.
    pub(crate) fn say(&self, message: &str) {
        if !self.quiet {
            self.write(format!("{message}\n").as_bytes());
        }
    }

    /// A message that `--quiet` does not keep back: the run did not do what it was for.
    pub(crate) fn insist(&self, message: &str) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// Writes whole lines, with the bar out of the way. What a server said in them is harmless.
    fn write(&self, lines: &[u8]) {
        let lines = String::from_utf8_lossy(lines);
        // A stderr that is gone is no reason to stop a crawl.
        self.bar.suspend(|| {
            let _ = io::stderr().write_all(safe_lines(&lines).as_bytes());
        });
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Writes text to stdout. Whatever a server or a page said in it neither steers the terminal nor
/// changes the direction of the text around it.
pub(crate) fn print(text: &[u8]) -> Result<u8, CommandError> {
    let text = String::from_utf8_lossy(text);
    print_as_is(safe_lines(&text).as_bytes())
}

/// Writes data to stdout that is harmless already; a reader that went away (`| head`) is no error.
pub(crate) fn print_as_is(data: &[u8]) -> Result<u8, CommandError> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(data).and_then(|()| stdout.flush()) {
        Err(why) if why.kind() != ErrorKind::BrokenPipe => {
            Err(CommandError::disk(format!("can't write to stdout: {why}")))
        }
        _ => Ok(FINISHED),
    }
}

/// Writes a value to stdout as JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<u8, CommandError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|why| CommandError::disk(format!("can't write JSON: {why}")))?;
    print_json_lines(&format!("{text}\n"))
}

/// Writes lines of JSON to stdout.
pub(crate) fn print_json_lines(lines: &str) -> Result<u8, CommandError> {
    print_as_is(escaped_json(lines).as_bytes())
}

/// JSON in which what would steer a terminal or change the direction of text is escaped, so that
/// the value is the same. serde escapes the control characters of ASCII alone.
fn escaped_json(text: &str) -> String {
    let is_told = |c: char| is_bidi_control(c) || matches!(c, '\u{7f}'..='\u{9f}');
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match is_told(c) {
            true => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            false => escaped.push(c),
        }
    }
    escaped
}

/// A line to stderr.
pub(crate) fn note(message: &str) {
    // Nobody is left to tell if it is gone.
    let _ = writeln!(io::stderr(), "{}", safe_lines(message));
}

/// A sign on a terminal that work goes on.
#[cfg(feature = "search")]
pub(crate) fn spinner() -> ProgressBar {
    match io::stderr().is_terminal() {
        true => ProgressBar::new_spinner(),
        false => ProgressBar::hidden(),
    }
}

#[cfg(test)]
mod tests {
    use super::escaped_json;

    #[test]
    fn json_says_the_same_and_turns_nothing_around() {
        let value = serde_json::json!("a\u{202e}b\u{9b}\u{7f}\u{1b}\u{fc}");
        let text = escaped_json(&value.to_string());
        assert_eq!(text, "\"a\\u202eb\\u009b\\u007f\\u001b\u{fc}\"");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
    }
}

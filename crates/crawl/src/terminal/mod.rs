//! Output for people: progress, log, summary, and text or JSON on stdout.

mod index_count_descriptions;
mod json_log;
mod log;
mod log_file;
mod progress;
mod status_line;
mod summary;
mod unfetchable_hosts;

use std::fmt::Write as _;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use crawl_weburl::{is_bidi_control, safe_lines};
use serde::Serialize;

use crate::error::{CommandError, FINISHED};
use crate::settings::{ProgressMode, Settings};

#[cfg(feature = "search")]
pub(crate) use index_count_descriptions::index_counts;
pub(crate) use log::start_log;
pub(crate) use progress::{roughly as lasting, show};
pub(crate) use status_line::StatusLine;
pub(crate) use summary::{ConfigTrustStatus, closing, exit_code};
pub(crate) use unfetchable_hosts::{nothing_reached, unfetchable_hosts};

/// Stderr. Progress, log lines and messages share it, so that other output doesn't break the
/// progress bar. Clones write to the same terminal.
#[derive(Clone, Debug)]
pub(crate) struct Terminal {
    /// The progress mode. Never `Auto`, which `new` replaces with the mode that suits stderr.
    mode: ProgressMode,
    quiet: bool,
    line: StatusLine,
}

impl Terminal {
    /// Creates the terminal with the progress mode of the settings.
    pub(crate) fn new(settings: &Settings) -> Terminal {
        let quiet = settings.display.quiet.is_on();
        let mode = match settings.display.progress {
            _ if quiet => ProgressMode::Off,
            ProgressMode::Auto if io::stderr().is_terminal() => ProgressMode::Bar,
            ProgressMode::Auto => ProgressMode::Plain,
            asked => asked,
        };
        let line = match mode {
            ProgressMode::Bar => StatusLine::stderr(),
            _ => StatusLine::hidden(),
        };
        Terminal { mode, quiet, line }
    }

    /// Writes a message on its own line, unless `--quiet` is given.
    pub(crate) fn say(&self, message: &str) {
        if !self.quiet {
            self.write(format!("{message}\n").as_bytes());
        }
    }

    /// Writes a message even with `--quiet`, such as an error.
    pub(crate) fn insist(&self, message: &str) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// Writes whole lines, and hides the bar while writing. Makes control characters harmless,
    /// since they may come from servers.
    fn write(&self, lines: &[u8]) {
        let lines = String::from_utf8_lossy(lines);
        // Ignore errors: a closed stderr is no reason to stop a crawl.
        self.line.suspend(|| {
            let _ = io::stderr().write_all(safe_lines(&lines).as_bytes());
        });
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.line.clear();
    }
}

/// Writes text to stdout. Makes control characters and bidi controls harmless, since the text may
/// come from servers and pages.
pub(crate) fn print(text: &[u8]) -> Result<u8, CommandError> {
    let text = String::from_utf8_lossy(text);
    print_as_is(safe_lines(&text).as_bytes())
}

/// Writes data to stdout unchanged, so the data must be safe for a terminal. A closed pipe (`|
/// head`) is not an error.
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

/// Escapes characters in JSON that would control a terminal or change the text direction, without
/// changing the value. Serde escapes only ASCII control characters.
fn escaped_json(text: &str) -> String {
    let needs_escape = |c: char| is_bidi_control(c) || matches!(c, '\u{7f}'..='\u{9f}');
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match needs_escape(c) {
            true => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            false => escaped.push(c),
        }
    }
    escaped
}

/// Writes a message and a line break to stderr.
pub(crate) fn note(message: &str) {
    // Failing to write to a closed stderr is not an error.
    let _ = writeln!(io::stderr(), "{}", safe_lines(message));
}

#[cfg(test)]
mod tests {
    use super::escaped_json;

    #[test]
    fn escaping_json_keeps_the_value_and_removes_bidi_controls() {
        let value = serde_json::json!("a\u{202e}b\u{9b}\u{7f}\u{1b}\u{fc}");
        let text = escaped_json(&value.to_string());
        assert_eq!(text, "\"a\\u202eb\\u009b\\u007f\\u001b\u{fc}\"");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
    }
}

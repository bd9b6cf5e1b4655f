//! What a person sees: progress, the log, the last words.

mod closing;
mod log;
mod progress;

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use indicatif::ProgressBar;
use serde::Serialize;

use crate::refusal::{FINISHED, Refusal};
use crate::settings::{ProgressMode, Settings};

pub(crate) use closing::{closing, exit_code};
pub(crate) use log::start_log;
pub(crate) use progress::{roughly as lasting, show};

/// stderr, shared by progress, log lines and messages: one that is written never cuts
/// through the bar. Clones are the same screen.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    mode: Mode,
    quiet: bool,
    bar: ProgressBar,
}

/// How progress is shown, once it is known what stderr is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Bar,
    Plain,
    Json,
    Off,
}

impl Screen {
    /// The screen that the settings ask for.
    pub(crate) fn new(settings: &Settings) -> Screen {
        let quiet = settings.display.quiet.is_on();
        let mode = match settings.display.progress {
            _ if quiet => Mode::Off,
            ProgressMode::Auto if io::stderr().is_terminal() => Mode::Bar,
            ProgressMode::Auto | ProgressMode::Plain => Mode::Plain,
            ProgressMode::Bar => Mode::Bar,
            ProgressMode::Json => Mode::Json,
            ProgressMode::Off => Mode::Off,
        };
        let bar = match mode {
            Mode::Bar => progress::bar(),
            _ => ProgressBar::hidden(),
        };
        Screen { mode, quiet, bar }
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

    /// Writes whole lines, with the bar out of the way.
    fn write(&self, lines: &[u8]) {
        // A stderr that is gone is no reason to stop a crawl.
        self.bar.suspend(|| {
            let _ = io::stderr().write_all(lines);
        });
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Writes data to stdout; a reader that went away (`| head`) is no error.
pub(crate) fn print(data: &[u8]) -> Result<u8, Refusal> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(data).and_then(|()| stdout.flush()) {
        Err(why) if why.kind() != ErrorKind::BrokenPipe => {
            Err(Refusal::disk(format!("can't write to stdout: {why}")))
        }
        _ => Ok(FINISHED),
    }
}

/// Writes a value to stdout as JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<u8, Refusal> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|why| Refusal::disk(format!("can't write JSON: {why}")))?;
    text.push('\n');
    print(text.as_bytes())
}

/// A line to stderr.
pub(crate) fn note(message: &str) {
    // Nobody is left to tell if it is gone.
    let _ = writeln!(io::stderr(), "{message}");
}

/// What shows on a terminal that something goes on.
pub(crate) fn spinner() -> ProgressBar {
    match io::stderr().is_terminal() {
        true => ProgressBar::new_spinner(),
        false => ProgressBar::hidden(),
    }
}

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Octets to three digits, as `1.23 MB`.
fn octets(number: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if number < 1000 {
        return format!("{number} B");
    }
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let mut value = number as f64 / 1000.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    match value {
        value if value < 9.995 => format!("{value:.2} {unit}"),
        value if value < 99.95 => format!("{value:.1} {unit}"),
        value => format!("{value:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{grouped, octets};

    #[test]
    fn numbers_are_easy_to_read() {
        let shown: Vec<String> = [0, 999, 1000, 1_234_567].map(grouped).into();
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
        let shown: Vec<String> = [0, 999, 1000, 12_345, 999_499, 999_600, 5 << 30]
            .map(octets)
            .into();
        let expected = [
            "0 B", "999 B", "1.00 kB", "12.3 kB", "999 kB", "1.00 MB", "5.37 GB",
        ];
        assert_eq!(shown, expected);
    }
}

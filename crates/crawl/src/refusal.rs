//! How the program says no: a message, a hint and an exit code.

use std::fmt;
use std::process::ExitCode;

/// Finished, also by a budget; `crawl robots`: allowed.
pub(crate) const FINISHED: u8 = 0;
/// No seed could be fetched, or pages failed under `--fail-on-error`; `crawl robots`: disallowed;
/// `crawl report`: pages are broken, under `--fail-on-broken`.
pub(crate) const NOTHING_DONE: u8 = 1;
/// The command line or the configuration is wrong.
pub(crate) const USAGE: u8 = 2;
/// The disk or the state failed.
pub(crate) const DISK: u8 = 3;
/// `crawl audit` found a breach.
pub(crate) const BREACH: u8 = 4;
/// Interrupted; the same command goes on from there.
pub(crate) const INTERRUPTED: u8 = 130;

/// An end that is not a success, in words for the person at the keyboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// What is wrong, with the offending value in it; lower case, no full stop.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    /// The exit code.
    pub(crate) code: u8,
}

impl Refusal {
    /// The command line or the configuration is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Refusal {
        Refusal {
            message: message.into(),
            hint: None,
            code: USAGE,
        }
    }

    /// The disk or the state failed.
    pub(crate) fn disk(message: impl Into<String>) -> Refusal {
        Refusal {
            code: DISK,
            ..Refusal::usage(message)
        }
    }

    /// The same with advice.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Refusal {
        Refusal {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// The exit code as the operating system gets it.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

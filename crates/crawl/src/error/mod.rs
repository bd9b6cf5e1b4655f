//! User-facing errors: a message, a hint and an exit code.

pub(crate) mod engine;
pub(crate) mod records;
#[cfg(feature = "search")]
pub(crate) mod search_index;
#[cfg(feature = "shared-frontier")]
pub(crate) mod shared_frontier;

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitCode;

use crawl_weburl::safe_lines;

/// Exit code of a command that succeeded. A crawl that stopped at a budget has succeeded, too.
pub(crate) const FINISHED: u8 = 0;
/// Exit code of a command that ran to its end with a negative result. Crawls: no seed could be
/// fetched, or a `--fail-on-..` flag applies. `crawl plan`: no host could be reached. `crawl
/// recheck`: the rules of every page are unknown. `crawl robots`: a URL is disallowed. `crawl
/// check` and `crawl report --fail-on-..`: there are faults, broken pages or incomplete hosts.
/// `crawl identity`: the published keys can't be used, or no signature is valid.
pub(crate) const NEGATIVE_RESULT: u8 = 1;
/// Exit code if the command line or the configuration is wrong.
pub(crate) const USAGE: u8 = 2;
/// Exit code if the disk, the stored state of a crawl or the system failed.
pub(crate) const DISK: u8 = 3;
/// Exit code of a check that found something wrong: a breach (`crawl audit`), a defect (`crawl
/// verify`), a failed clause (`crawl conformance`), or an invalid signature (`crawl identity
/// verify`).
pub(crate) const CHECK_FAILED: u8 = 4;
/// Exit code of a command that a signal interrupted. The same command resumes a crawl; other
/// commands start over.
pub(crate) const INTERRUPTED: u8 = 130;

/// Maximum characters of a word in a message.
/// Beyond the limit: the middle is left out.
const MAX_WORD_CHARS: usize = 200;
/// Maximum characters of a line in a message.
/// Beyond the limit: the middle is left out.
const MAX_LINE_CHARS: usize = 2000;

/// A `[site]` or `[group]` table of a settings file: its kind and its name, such as `site` and
/// `example.org`.
pub(crate) type ConfigTableName = (&'static str, String);

/// Why a command failed, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandError {
    /// The cause, including the offending value, in lower case without a full stop.
    pub(crate) message: String,
    /// How to fix the cause.
    pub(crate) hint: Option<String>,
    pub(crate) code: u8,
    /// The settings that the error concerns. Empty if it concerns none.
    pub(crate) subject: Box<AffectedSettings>,
    /// Errors that were detected in the same pass and are reported together with this one.
    pub(crate) others: Vec<CommandError>,
}

/// The settings that an error concerns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AffectedSettings {
    /// The key to correct, if the error is in a file.
    pub(crate) key: Option<&'static str>,
    /// The table `[site."NAME"]` or `[group.NAME]` that contains the key.
    pub(crate) table: Option<ConfigTableName>,
    /// Keys of settings whose values the error depends on: another value could remove or change the
    /// error. If `table` is set, keys that this kind of table can have are those of the table. All
    /// other keys are settings of the whole crawl.
    pub(crate) rests_on: Vec<&'static str>,
    /// Settings that could not be read because of the error.
    pub(crate) unread: UnreadSettings,
}

/// Settings that could not be read because of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum UnreadSettings {
    /// All settings could be read.
    #[default]
    Nothing,
    /// The settings with these keys could not be read.
    Keys {
        /// The `[site]` or `[group]` table that contains the keys, if they are in one.
        table: Option<ConfigTableName>,
        /// The keys as written in a file.
        keys: Vec<String>,
    },
    /// Possibly any setting, because a line that can't be parsed could set any key.
    Anything,
}

/// Collects errors to report them all at once.
#[derive(Debug, Default)]
pub(crate) struct ErrorCollector(Vec<CommandError>);

impl ErrorCollector {
    /// Returns the value of `result`. If `result` is an error, records it and returns `None`.
    pub(crate) fn note<T>(&mut self, result: Result<T, CommandError>) -> Option<T> {
        let note = |mut problem: CommandError| {
            let other_problems = std::mem::take(&mut problem.others);
            self.0.push(problem);
            self.0.extend(other_problems);
        };
        result.map_err(note).ok()
    }

    /// Returns whether no errors have been recorded.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the errors recorded so far.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &CommandError> {
        self.0.iter()
    }

    /// Appends the errors of another collection.
    pub(crate) fn extend(&mut self, further: ErrorCollector) {
        self.0.extend(further.0);
    }

    /// Applies `change` to every error.
    pub(crate) fn map(self, change: impl FnMut(CommandError) -> CommandError) -> ErrorCollector {
        ErrorCollector(self.0.into_iter().map(change).collect())
    }

    /// Keeps only the errors for which `is_meant` returns true.
    pub(crate) fn filter(mut self, is_meant: impl FnMut(&CommandError) -> bool) -> ErrorCollector {
        self.0.retain(is_meant);
        self
    }

    /// Returns `value` if no errors have been recorded.
    ///
    /// # Errors
    /// All recorded errors, in order.
    pub(crate) fn or<T>(self, value: T) -> Result<T, CommandError> {
        let mut all = self.0.into_iter();
        match all.next() {
            None => Ok(value),
            Some(mut first) => {
                first.others.extend(all);
                Err(first)
            }
        }
    }
}

/// Returns the error for a command whose feature is not part of this build.
pub(crate) fn left_out(what: &str, feature: &str) -> CommandError {
    CommandError::usage(format!("this build doesn't include {what}")).hint(format!(
        "build with `cargo build --release --package crawl --features {feature}`"
    ))
}

impl CommandError {
    /// Creates an error with the exit code [`USAGE`]: the command line or the configuration is
    /// wrong.
    pub(crate) fn usage(message: impl Into<String>) -> CommandError {
        CommandError {
            message: message.into(),
            hint: None,
            code: USAGE,
            subject: Box::default(),
            others: Vec::new(),
        }
    }

    /// Creates an error with the exit code [`DISK`]: the disk, the stored state or the system
    /// failed.
    pub(crate) fn disk(message: impl Into<String>) -> CommandError {
        CommandError {
            code: DISK,
            ..CommandError::usage(message)
        }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> CommandError {
        CommandError {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Sets the key of the setting to correct. The error also depends on that key's value (see
    /// [`AffectedSettings::rests_on`]).
    pub(crate) fn about(mut self, key: &'static str) -> CommandError {
        self.subject.key = Some(key);
        self.resting_on(&[key])
    }

    /// Adds keys of settings whose values the error depends on: another value could remove or
    /// change the error.
    pub(crate) fn resting_on(mut self, keys: &[&'static str]) -> CommandError {
        self.subject.rests_on.extend(keys);
        self
    }

    /// Sets the site table that the error concerns.
    pub(crate) fn about_site(self, name: &str) -> CommandError {
        self.about_table(Some(("site", name.to_owned())))
    }

    /// Sets the group table that the error concerns.
    pub(crate) fn about_group(self, name: &str) -> CommandError {
        self.about_table(Some(("group", name.to_owned())))
    }

    /// Sets the `[site]` or `[group]` table that the error concerns, if any.
    pub(crate) fn about_table(mut self, table: Option<ConfigTableName>) -> CommandError {
        self.subject.table = table;
        self
    }

    /// Sets which settings could not be read because of the error.
    pub(crate) fn hiding(mut self, unread: UnreadSettings) -> CommandError {
        self.subject.unread = unread;
        self
    }

    /// Converts `code` to the exit code that `main` returns.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", cut(&self.message))?;
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {}", cut(hint))?;
        }
        self.others
            .iter()
            .try_for_each(|other| write!(f, "\n{other}"))
    }
}

/// Returns the value whose name in `known` is most similar to `word`. `None` if no name is similar
/// enough.
pub(crate) fn nearest<T>(word: &str, known: impl IntoIterator<Item = (String, T)>) -> Option<T> {
    let likeness = |(known, value): (String, T)| (strsim::jaro_winkler(word, &known), value);
    let candidates = known.into_iter().map(likeness);
    candidates
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, value)| value)
}

/// Quotes a path as a shell argument, for a command in a message. A name that begins with `-` gets
/// `./` in front, so that it isn't read as a flag.
pub(crate) fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let path = match path.starts_with('-') {
        true => format!("./{path}"),
        false => path,
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    match !path.is_empty() && path.chars().all(is_plain) {
        true => path,
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

/// Returns the error for a directory that does not contain a crawl.
pub(crate) fn no_crawl(dir: &Path) -> CommandError {
    CommandError::usage(format!("no crawl in `{}`", dir.display()))
        .hint("give the directory of a crawl, such as crawl-example.org")
}

/// Returns the error for a failure to start the program's threads.
pub(crate) fn no_threads(why: &io::Error) -> CommandError {
    CommandError::disk(format!("can't start the program's threads: {why}"))
}

/// Returns the error for a user-named file that can't be written.
pub(crate) fn unwritable(path: &Path, why: &io::Error) -> CommandError {
    let refusal = CommandError::disk(format!("can't write {}: {why}", path.display()));
    match unwritable_hint(path, why.kind()) {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
}

/// Returns the hint for a path that can't be written, if the kind of error suggests one.
pub(crate) fn unwritable_hint(path: &Path, why: ErrorKind) -> Option<String> {
    let folder = path.parent().unwrap_or(path).display();
    match why {
        ErrorKind::NotFound => Some(format!(
            "the folder `{folder}` doesn't exist: create it, or choose another"
        )),
        ErrorKind::NotADirectory => Some(format!("`{folder}` isn't a folder: choose another")),
        ErrorKind::IsADirectory => Some("that is a folder: choose a file in it".to_owned()),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Some("choose a place that you may write to".to_owned())
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Some("free some disk space".to_owned())
        }
        _ => None,
    }
}

/// Prepares a message for display. Shortens long words and then long lines, so that a value pasted
/// by mistake doesn't push its explanation off the screen. Makes control characters and bidi
/// controls harmless, since a quoted value may come from someone else.
pub(crate) fn cut(message: &str) -> String {
    let message = safe_lines(message);
    let line = |line: &str| {
        let words = line.split(' ').map(|word| shortened(word, MAX_WORD_CHARS));
        shortened(&words.collect::<Vec<_>>().join(" "), MAX_LINE_CHARS)
    };
    message.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Shortens a text of more than `max` characters to its beginning and end.
fn shortened(text: &str, max: usize) -> String {
    let count = text.chars().count();
    if count <= max {
        return text.to_owned();
    }
    let head: String = text.chars().take(max / 2).collect();
    let tail: String = text.chars().skip(count - max / 4).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{cut, quoted};

    #[test]
    fn a_path_is_quoted_for_a_shell() {
        for (path, expected) in [
            ("crawl-e.example", "crawl-e.example"),
            ("my site", "'my site'"),
            ("it's", r"'it'\''s'"),
            ("-x", "./-x"),
            ("- y", "'./- y'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(Path::new(path)), expected);
        }
    }

    #[test]
    fn long_words_and_lines_are_cut() {
        let message = "`short` stays, and so does\nits line";
        assert_eq!(cut(message), message);
        assert_eq!(cut("`a\u{202e}b\u{1b}[31m`"), "`ab\u{fffd}[31m`");
        let long = format!("unusable `{}`: no host", "ä".repeat(5000));
        let shown = format!("unusable `{}…{}`: no host", "ä".repeat(99), "ä".repeat(48));
        assert_eq!(cut(&long), shown);
        let lines = format!("{}\nend", "many words ".repeat(1000));
        let shown = cut(&lines);
        assert!(shown.chars().count() < 1600, "{shown}");
        assert!(shown.ends_with("\nend"), "{shown}");
    }
}

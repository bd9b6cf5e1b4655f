//! Errors as the user gets them: a message, a hint and an exit code.

pub(crate) mod engine;
#[cfg(feature = "search")]
pub(crate) mod index;
pub(crate) mod records;
#[cfg(feature = "shared-frontier")]
pub(crate) mod shared;

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitCode;

use crawl_weburl::safe_lines;

/// Finished, also by a budget; `crawl robots`: allowed.
pub(crate) const FINISHED: u8 = 0;
/// No seed could be fetched, pages failed under `--fail-on-error`, or a host is not complete under
/// `--fail-on-partial`; `crawl plan`: no host could be asked; `crawl robots`: disallowed;
/// `crawl report`: pages are broken, under `--fail-on-broken`.
pub(crate) const NOTHING_DONE: u8 = 1;
/// The command line or the configuration is wrong.
pub(crate) const USAGE: u8 = 2;
/// The disk or the state failed.
pub(crate) const DISK: u8 = 3;
/// `crawl audit` found a breach, or `crawl verify` a defect.
pub(crate) const BREACH: u8 = 4;
/// Interrupted; the same command goes on from there.
pub(crate) const INTERRUPTED: u8 = 130;

/// Characters of a word in a message; of a longer one its beginning and its end are shown.
const MAX_WORD_CHARS: usize = 200;
/// The same of a line.
const MAX_LINE_CHARS: usize = 2000;

/// The kind of a table that has a name, and that name.
pub(crate) type NamedTable = (&'static str, String);

/// Why a command failed, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandError {
    /// The cause, with the offending value in it; lower case, no full stop.
    pub(crate) message: String,
    /// The remedy.
    pub(crate) hint: Option<String>,
    /// The exit code.
    pub(crate) code: u8,
    /// The settings that it is about, where it is about some.
    pub(crate) subject: Box<Subject>,
    /// What else is wrong, found in the same look.
    pub(crate) others: Vec<CommandError>,
}

/// The settings that a problem is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The key of the one where a file is to be mended.
    pub(crate) key: Option<&'static str>,
    /// The table `[site."NAME"]` or `[group.NAME]` that holds it.
    pub(crate) table: Option<NamedTable>,
    /// The keys of those without which there may be no problem, or another one: of that table or,
    /// where it has none of them, of the crawl.
    pub(crate) rests_on: Vec<&'static str>,
    /// What was not read because of the problem.
    pub(crate) unread: Unread,
}

/// The settings that a problem keeps from being read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unread {
    /// None.
    #[default]
    Nothing,
    /// Those that have these keys.
    Keys {
        /// The table `[site."NAME"]` or `[group.NAME]` that holds them, if it is one.
        table: Option<NamedTable>,
        /// As a file has them.
        keys: Vec<String>,
    },
    /// Some, and no one can say which: a line that can't be read may be any.
    Anything,
}

/// What is wrong, gathered so that all of it is told at once.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<CommandError>);

impl Problems {
    /// Notes what is wrong; gives the value where nothing is.
    pub(crate) fn note<T>(&mut self, found: Result<T, CommandError>) -> Option<T> {
        let note = |mut problem: CommandError| {
            let others = std::mem::take(&mut problem.others);
            self.0.push(problem);
            self.0.extend(others);
        };
        found.map_err(note).ok()
    }

    /// Returns whether nothing is wrong so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The faults found so far.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &CommandError> {
        self.0.iter()
    }

    /// Notes what was noted elsewhere.
    pub(crate) fn extend(&mut self, further: Problems) {
        self.0.extend(further.0);
    }

    /// The same with each as `change` leaves it.
    pub(crate) fn map(self, change: impl FnMut(CommandError) -> CommandError) -> Problems {
        Problems(self.0.into_iter().map(change).collect())
    }

    /// Those of them that `is_meant`.
    pub(crate) fn filter(mut self, is_meant: impl FnMut(&CommandError) -> bool) -> Problems {
        self.0.retain(is_meant);
        self
    }

    /// The value, where nothing is wrong.
    ///
    /// # Errors
    /// All that is wrong, in the order in which it was noted.
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

/// The error for a command whose feature is not in this build.
pub(crate) fn left_out(what: &str, feature: &str) -> CommandError {
    CommandError::usage(format!("{what} is not in this build")).hint(format!(
        "build it: `cargo build --release --package crawl --features {feature}`"
    ))
}

impl CommandError {
    /// The command line or the configuration is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> CommandError {
        CommandError {
            message: message.into(),
            hint: None,
            code: USAGE,
            subject: Box::default(),
            others: Vec::new(),
        }
    }

    /// The disk or the state failed.
    pub(crate) fn disk(message: impl Into<String>) -> CommandError {
        CommandError {
            code: DISK,
            ..CommandError::usage(message)
        }
    }

    /// The same with advice.
    pub(crate) fn hint(self, hint: impl Into<String>) -> CommandError {
        CommandError {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// The same about a setting, by its key.
    pub(crate) fn about(mut self, key: &'static str) -> CommandError {
        self.subject.key = Some(key);
        self.resting_on(&[key])
    }

    /// The same, which further settings might undo.
    pub(crate) fn resting_on(mut self, keys: &[&'static str]) -> CommandError {
        self.subject.rests_on.extend(keys);
        self
    }

    /// The same about the table of a site, by its name.
    pub(crate) fn about_site(self, name: &str) -> CommandError {
        self.about_table(Some(("site", name.to_owned())))
    }

    /// The same about the table of a group, by its name.
    pub(crate) fn about_group(self, name: &str) -> CommandError {
        self.about_table(Some(("group", name.to_owned())))
    }

    /// The same about a table that has a name, if it is about one.
    pub(crate) fn about_table(mut self, table: Option<NamedTable>) -> CommandError {
        self.subject.table = table;
        self
    }

    /// The same, which keeps settings from being read.
    pub(crate) fn hiding(mut self, unread: Unread) -> CommandError {
        self.subject.unread = unread;
        self
    }

    /// The exit code as the operating system gets it.
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

/// The value of the known name that is most like a word, if any is like it at all.
pub(crate) fn nearest<T>(word: &str, known: impl IntoIterator<Item = (String, T)>) -> Option<T> {
    let likeness = |(known, what): (String, T)| (strsim::jaro_winkler(word, &known), what);
    let known = known.into_iter().map(likeness);
    known
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, what)| what)
}

/// The error where a directory is not what a crawl left.
pub(crate) fn no_crawl(dir: &Path) -> CommandError {
    CommandError::usage(format!("`{}` holds no crawl", dir.display()))
        .hint("give the directory that a crawl left, such as crawl-example.org")
}

/// The error where the system has no room for the program's threads.
pub(crate) fn no_threads(why: &io::Error) -> CommandError {
    CommandError::disk(format!("can't start the program's threads: {why}"))
}

/// The error where a file that the user named can't be written.
pub(crate) fn unwritable(path: &Path, why: &io::Error) -> CommandError {
    let refusal = CommandError::disk(format!("can't write {}: {why}", path.display()));
    match unwritable_hint(path, why.kind()) {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
}

/// The remedy where nothing can be written to a path, if the kind of error tells.
pub(crate) fn unwritable_hint(path: &Path, why: ErrorKind) -> Option<String> {
    let folder = path.parent().unwrap_or(path).display();
    match why {
        ErrorKind::NotFound => Some(format!(
            "the folder `{folder}` does not exist: make it first, or name another"
        )),
        ErrorKind::NotADirectory => Some(format!("`{folder}` is no folder: name another")),
        ErrorKind::IsADirectory => Some("it is a folder: name a file in it".to_owned()),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Some("this user may not write there: name another place".to_owned())
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Some("free some space on the disk".to_owned())
        }
        _ => None,
    }
}

/// A message as it is shown. What is very long in it is shortened, each word and then each line: a
/// value that was pasted by mistake pushes what is said of it off the screen. What a terminal
/// obeys, or would reorder, is left out: a value may be somebody else's.
pub(crate) fn cut(message: &str) -> String {
    let message = safe_lines(message);
    let line = |line: &str| {
        let words = line.split(' ').map(|word| shortened(word, MAX_WORD_CHARS));
        shortened(&words.collect::<Vec<_>>().join(" "), MAX_LINE_CHARS)
    };
    message.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// The beginning and the end of a text that has more than `max` characters.
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
    use super::cut;

    #[test]
    fn ours_long_words_and_lines_are_cut() {
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

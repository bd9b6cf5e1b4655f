//! Oddities of a robots.txt, reported to its author.

use std::fmt;

/// Something in a robots.txt that its author may want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RobotsOddity {
    /// The number of the line in the robots.txt, from 1.
    pub line: u32,
    /// The kind of oddity.
    pub what: RobotsOddityKind,
}

/// Defines each kind with its short fixed name and its message.
macro_rules! oddities {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $words:literal;)*) => {
        /// The kinds of oddities.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum RobotsOddityKind {
            $($(#[$doc])* $kind,)*
        }

        impl RobotsOddityKind {
            /// Returns a short fixed name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(RobotsOddityKind::$kind => $name,)*
                }
            }
        }

        impl fmt::Display for RobotsOddityKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(RobotsOddityKind::$kind => $words,)*
                })
            }
        }
    };
}

oddities! {
    /// The file is longer than [`MAX_ROBOTS_BYTES`](crate::MAX_ROBOTS_BYTES). Reported for the
    /// first line not read.
    Cut = "cut", "the file is longer than 512 KiB: the rest is ignored";
    /// The byte order mark says that the file is UTF-16, but robots.txt is UTF-8.
    Utf16 = "utf16", "the file is UTF-16; robots.txt is UTF-8";
    /// The file begins like markup, so it is probably an error page.
    Markup = "markup", "the file looks like markup";
    /// The line contains a NUL. The rest of the line is not read.
    Nul = "nul", "a NUL: the rest of the line is ignored";
    /// The line is neither a field nor a comment.
    NoField = "no_field", "neither a field nor a comment";
    /// The line has a blank instead of the colon.
    NoColon = "no_colon", "no colon after the field name";
    /// A misspelt field name that is accepted.
    Misspelt = "misspelt", "a misspelt field name, which is accepted anyway";
    /// A rule before any user-agent line, which applies to no robot.
    RuleWithoutGroup = "rule_without_group", "a rule before any user-agent line is ignored";
    /// A user-agent line whose value is not a name, so it can't match any robot.
    NamesNobody = "names_nobody", "names no robot";
    /// A pattern that begins with neither `/` nor `*` and so matches nothing.
    NoLeadingSlash = "no_leading_slash", "a path that begins with neither `/` nor `*` matches nothing";
    /// The value is not valid for its field.
    BadValue = "bad_value", "an invalid value for this field";
    /// A field outside RFC 9309 that robots commonly ignore.
    UnknownField = "unknown_field", "a field that robots commonly ignore";
    /// A record without a user-agent or without a disallow line (1994).
    IncompleteRecord = "incomplete_record", "a record needs a user-agent and a disallow line";
    /// A blank line between a user-agent line and its rules (1994).
    SplitRecord = "split_record", "a blank line separates the user-agent line from its rules";
}

/// Maximum oddities to keep per file. The first ones are kept.
const MAX_ODDITIES: usize = 1000;

pub(super) fn note(oddities: &mut Vec<RobotsOddity>, line: u32, what: RobotsOddityKind) {
    if oddities.len() < MAX_ODDITIES {
        oddities.push(RobotsOddity { line, what });
    }
}

//! Oddities of a robots.txt: for whoever wrote it.

use std::fmt;

/// Something in a robots.txt that its writer may want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RobotsOddity {
    /// The line, from 1.
    pub line: u32,
    /// The kind of oddity.
    pub what: RobotsOddityKind,
}

/// The kinds of oddities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RobotsOddityKind {
    /// The file is longer than [`MAX_ROBOTS_BYTES`](crate::MAX_ROBOTS_BYTES); this is the
    /// first line that was not read.
    Cut,
    /// UTF-16 by its byte order mark; robots.txt is UTF-8.
    Utf16,
    /// Begins as markup does: probably an error page.
    Markup,
    /// A NUL; the rest of the line was not read.
    Nul,
    /// Neither a field nor a comment.
    NoField,
    /// A blank stands where the colon belongs.
    NoColon,
    /// A misspelt field name that is understood all the same.
    Misspelt,
    /// A rule before any user-agent line binds nobody.
    RuleWithoutGroup,
    /// A user-agent line that can name no robot.
    NamesNobody,
    /// A pattern that begins with neither `/` nor `*` matches nothing.
    NoLeadingSlash,
    /// A value that its field does not know.
    BadValue,
    /// A field that is no part of RFC 9309 and that robots commonly ignore.
    UnknownField,
    /// A record without a user-agent or without a disallow line (1994).
    IncompleteRecord,
    /// A blank line parts a user-agent line from its rules (1994).
    SplitRecord,
    /// Bytes that are no UTF-8.
    NotUtf8,
    /// A comma or a blank in a user-agent value: the first name alone counts.
    SeveralNames,
    /// A blank in a path: one path to a line.
    BlankInPath,
    /// A `$` that does not stand at the end means itself.
    DollarInside,
    /// A `%` without two hex digits means itself.
    BadEscape,
    /// The group has this rule already.
    Repeated,
    /// The group allows and disallows the same path: it is allowed.
    Contradiction,
    /// A sitemap is named by an absolute URL.
    RelativeSitemap,
    /// A record between user-agent lines: the lines below share the rules, though some robots
    /// part them here.
    RecordInHeader,
    /// A group without rules allows its robots everything.
    NoRules,
}

impl RobotsOddityKind {
    /// A short fixed name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RobotsOddityKind::Cut => "cut",
            RobotsOddityKind::Utf16 => "utf16",
            RobotsOddityKind::Markup => "markup",
            RobotsOddityKind::Nul => "nul",
            RobotsOddityKind::NoField => "no_field",
            RobotsOddityKind::NoColon => "no_colon",
            RobotsOddityKind::Misspelt => "misspelt",
            RobotsOddityKind::RuleWithoutGroup => "rule_without_group",
            RobotsOddityKind::NamesNobody => "names_nobody",
            RobotsOddityKind::NoLeadingSlash => "no_leading_slash",
            RobotsOddityKind::BadValue => "bad_value",
            RobotsOddityKind::UnknownField => "unknown_field",
            RobotsOddityKind::IncompleteRecord => "incomplete_record",
            RobotsOddityKind::SplitRecord => "split_record",
            RobotsOddityKind::NotUtf8 => "not_utf8",
            RobotsOddityKind::SeveralNames => "several_names",
            RobotsOddityKind::BlankInPath => "blank_in_path",
            RobotsOddityKind::DollarInside => "dollar_inside",
            RobotsOddityKind::BadEscape => "bad_escape",
            RobotsOddityKind::Repeated => "repeated",
            RobotsOddityKind::Contradiction => "contradiction",
            RobotsOddityKind::RelativeSitemap => "relative_sitemap",
            RobotsOddityKind::RecordInHeader => "record_in_header",
            RobotsOddityKind::NoRules => "no_rules",
        }
    }
}

impl fmt::Display for RobotsOddityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RobotsOddityKind::Cut => "the file is longer than 512 KiB: from here on it is not read",
            RobotsOddityKind::Utf16 => "the file is UTF-16; robots.txt is UTF-8",
            RobotsOddityKind::Markup => "the file begins as markup does",
            RobotsOddityKind::Nul => "a NUL: the rest of the line is not read",
            RobotsOddityKind::NoField => "neither a field nor a comment",
            RobotsOddityKind::NoColon => "no colon after the field name",
            RobotsOddityKind::Misspelt => "a misspelt field name, understood all the same",
            RobotsOddityKind::RuleWithoutGroup => "a rule before any user-agent line binds nobody",
            RobotsOddityKind::NamesNobody => "names no robot",
            RobotsOddityKind::NoLeadingSlash => {
                "a path that begins with neither `/` nor `*` matches nothing"
            }
            RobotsOddityKind::BadValue => "a value that this field does not know",
            RobotsOddityKind::UnknownField => "a field that robots commonly ignore",
            RobotsOddityKind::IncompleteRecord => "a record needs a user-agent and a disallow line",
            RobotsOddityKind::SplitRecord => {
                "a blank line parts the user-agent line from its rules"
            }
            RobotsOddityKind::NotUtf8 => "bytes that are no UTF-8",
            RobotsOddityKind::SeveralNames => "several names: the first alone counts",
            RobotsOddityKind::BlankInPath => "a blank in a path: one path to a line",
            RobotsOddityKind::DollarInside => "a `$` that does not stand at the end means itself",
            RobotsOddityKind::BadEscape => "a `%` without two hex digits means itself",
            RobotsOddityKind::Repeated => "the group has this rule already",
            RobotsOddityKind::Contradiction => {
                "the group both allows and disallows this path: it is allowed"
            }
            RobotsOddityKind::RelativeSitemap => "a sitemap is named by an absolute URL",
            RobotsOddityKind::RecordInHeader => {
                "a record between user-agent lines: they share the rules all the same"
            }
            RobotsOddityKind::NoRules => "a group without rules allows its robots everything",
        })
    }
}

/// Oddities kept per file; the first ones stay.
pub(super) const MAX_ODDITIES: usize = 1000;

pub(super) fn note(oddities: &mut Vec<RobotsOddity>, line: u32, what: RobotsOddityKind) {
    if oddities.len() < MAX_ODDITIES {
        oddities.push(RobotsOddity { line, what });
    }
}

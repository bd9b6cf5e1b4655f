//! What is odd about a robots.txt: for whoever wrote it.

use std::fmt;

/// Something in a robots.txt that its writer may want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oddity {
    /// The line, from 1.
    pub line: u32,
    /// What is odd there.
    pub what: What,
}

/// The kinds of oddities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum What {
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
    /// A record between user-agent lines: the lines below share the rules, though some robots part them here.
    RecordInHeader,
    /// A group without rules allows its robots everything.
    NoRules,
}

impl What {
    /// A short fixed name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            What::Cut => "cut",
            What::Utf16 => "utf16",
            What::Markup => "markup",
            What::Nul => "nul",
            What::NoField => "no_field",
            What::NoColon => "no_colon",
            What::Misspelt => "misspelt",
            What::RuleWithoutGroup => "rule_without_group",
            What::NamesNobody => "names_nobody",
            What::NoLeadingSlash => "no_leading_slash",
            What::BadValue => "bad_value",
            What::UnknownField => "unknown_field",
            What::IncompleteRecord => "incomplete_record",
            What::SplitRecord => "split_record",
            What::NotUtf8 => "not_utf8",
            What::SeveralNames => "several_names",
            What::BlankInPath => "blank_in_path",
            What::DollarInside => "dollar_inside",
            What::BadEscape => "bad_escape",
            What::Repeated => "repeated",
            What::Contradiction => "contradiction",
            What::RelativeSitemap => "relative_sitemap",
            What::RecordInHeader => "record_in_header",
            What::NoRules => "no_rules",
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            What::Cut => "the file is longer than 512 KiB: from here on it is not read",
            What::Utf16 => "the file is UTF-16; robots.txt is UTF-8",
            What::Markup => "the file begins as markup does",
            What::Nul => "a NUL: the rest of the line is not read",
            What::NoField => "neither a field nor a comment",
            What::NoColon => "no colon after the field name",
            What::Misspelt => "a misspelt field name, understood all the same",
            What::RuleWithoutGroup => "a rule before any user-agent line binds nobody",
            What::NamesNobody => "names no robot",
            What::NoLeadingSlash => "a path that begins with neither `/` nor `*` matches nothing",
            What::BadValue => "a value that this field does not know",
            What::UnknownField => "a field that robots commonly ignore",
            What::IncompleteRecord => "a record needs a user-agent and a disallow line",
            What::SplitRecord => "a blank line parts the user-agent line from its rules",
            What::NotUtf8 => "bytes that are no UTF-8",
            What::SeveralNames => "several names: the first alone counts",
            What::BlankInPath => "a blank in a path: one path to a line",
            What::DollarInside => "a `$` that does not stand at the end means itself",
            What::BadEscape => "a `%` without two hex digits means itself",
            What::Repeated => "the group has this rule already",
            What::Contradiction => "the group both allows and disallows this path: it is allowed",
            What::RelativeSitemap => "a sitemap is named by an absolute URL",
            What::RecordInHeader => {
                "a record between user-agent lines: they share the rules all the same"
            }
            What::NoRules => "a group without rules allows its robots everything",
        })
    }
}

/// Oddities kept per file; the first ones stay.
pub(super) const MAX_ODDITIES: usize = 1000;

pub(super) fn note(oddities: &mut Vec<Oddity>, line: u32, what: What) {
    if oddities.len() < MAX_ODDITIES {
        oddities.push(Oddity { line, what });
    }
}

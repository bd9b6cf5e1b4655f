//! Reads a robots.txt by RFC 9309, accepting the misspellings that Google's parser accepts.

use crate::product_token::ProductToken;

use super::line_parser::{
    RobotsFieldName, RobotsLine, RobotsLineIterator, field, forgiving_key, plain_rule, spelling,
};
use super::merged_group_rules::MergedGroupRules;
use super::non_rule_lines::{NonGroupLines, NonRuleGroupLines};
use super::oddity::{RobotsOddity, RobotsOddityKind, note};
use super::pattern::SpecialCharacters;

/// A robots.txt as read for one agent: its rules, its other lines, and its oddities.
#[derive(Debug, Default)]
pub(super) struct ParsedRobots {
    pub(super) rules: MergedGroupRules,
    pub(super) group: NonRuleGroupLines,
    pub(super) file: NonGroupLines,
    pub(super) oddities: Vec<RobotsOddity>,
}

/// Whether `Allow: /dir/index.html` also allows `/dir/`, as in Google's parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndexPageHandling {
    AllowFolder,
    AsWritten,
}

/// Parses the robots.txt `body` for `agent`.
pub(super) fn read(
    body: &[u8],
    agent: &ProductToken,
    index_pages: IndexPageHandling,
) -> ParsedRobots {
    let mut reader = Rfc9309Reader {
        body,
        agent,
        index_pages,
        named_ever: false,
        named: false,
        star: false,
        any_group: false,
        header_ended: false,
        found: ParsedRobots::default(),
    };
    for line in RobotsLineIterator::of(body) {
        reader.line(&line);
    }
    reader.found.rules.keep(body);
    reader.found
}

struct Rfc9309Reader<'a> {
    body: &'a [u8],
    agent: &'a ProductToken,
    index_pages: IndexPageHandling,
    /// Whether any group so far names the agent. If a group names it, all groups for `*` are
    /// ignored, including earlier groups.
    named_ever: bool,
    /// Whether the current group names the agent.
    named: bool,
    /// Whether the current group is for `*`.
    star: bool,
    /// Whether a user-agent line has been seen.
    any_group: bool,
    /// Whether a rule has been seen since the last user-agent line.
    header_ended: bool,
    found: ParsedRobots,
}

impl Rfc9309Reader<'_> {
    #[inline]
    fn line(&mut self, line: &RobotsLine<'_>) {
        if line.nul {
            self.note(line, RobotsOddityKind::Nul);
        }
        if let Some((allow, value)) = plain_rule(line.text) {
            return self.rule(line, allow, value);
        }
        let Some(field) = field(line.text) else {
            if !line.text.is_empty() {
                self.note(line, RobotsOddityKind::NoField);
            }
            return;
        };
        let key = forgiving_key(field.key);
        match key {
            RobotsFieldName::Allow | RobotsFieldName::Disallow => {
                self.rule(line, key == RobotsFieldName::Allow, field.value);
            }
            RobotsFieldName::UserAgent => self.user_agent(line, field.value),
            RobotsFieldName::Unknown => {
                self.note(line, RobotsOddityKind::UnknownField);
                return;
            }
            _ => self.record(line, key, field.value),
        }
        if field.no_colon {
            self.note(line, RobotsOddityKind::NoColon);
        }
        if spelling(key).is_some_and(|name| name.len() != field.key.len()) {
            self.note(line, RobotsOddityKind::Misspelt);
        }
    }

    #[inline]
    fn rule(&mut self, line: &RobotsLine<'_>, allow: bool, value: &[u8]) {
        self.header_ended = true;
        if !self.speaks() {
            if !self.any_group {
                self.note(line, RobotsOddityKind::RuleWithoutGroup);
            }
            return;
        }
        let rules = &mut self.found.rules;
        let place = (self.body, line.text, line.number);
        rules.push(allow, value, SpecialCharacters::Meant, place);
        match value.first() {
            Some(b'/' | b'*') | None => {}
            Some(_) => self.note(line, RobotsOddityKind::NoLeadingSlash),
        }
        if allow && self.index_pages == IndexPageHandling::AllowFolder {
            self.index_page(value);
        }
    }

    /// If `value` is the path of an index page such as `/dir/index.html`, adds a rule that allows
    /// the folder `/dir/` too.
    fn index_page(&mut self, value: &[u8]) {
        let Some(slash) = memchr::memrchr(b'/', value) else {
            return;
        };
        if value[slash..].starts_with(b"/index.htm") {
            let folder = [&value[..=slash], b"$"].concat();
            self.found
                .rules
                .push_derived(&folder, SpecialCharacters::Meant);
        }
    }

    fn user_agent(&mut self, line: &RobotsLine<'_>, value: &[u8]) {
        self.any_group = true;
        if self.header_ended {
            (self.named, self.star, self.header_ended) = (false, false, false);
        }
        let spoke = self.speaks();
        if is_star(value) {
            self.star = true;
        } else if names(value, self.agent.as_str().as_bytes()) {
            self.named = true;
            if !self.named_ever {
                self.named_ever = true;
                self.found.rules.clear();
                self.found.group = NonRuleGroupLines::default();
                self.found.rules.begin_group(self.body, value, line.number);
                return;
            }
        } else if !value.first().is_some_and(|&b| is_name_byte(b)) {
            self.note(line, RobotsOddityKind::NamesNobody);
        }
        if self.speaks() && !spoke {
            self.found.rules.begin_group(self.body, value, line.number);
        }
    }

    /// Returns whether the current group applies to the agent, according to the lines read so far.
    #[inline]
    fn speaks(&self) -> bool {
        self.named || (self.star && !self.named_ever)
    }

    /// Adds a line that is not a rule to the current group or to the whole file. Unlike a rule,
    /// such a line doesn't end the user-agent lines of the group: one that follows still adds to
    /// them.
    fn record(&mut self, line: &RobotsLine<'_>, key: RobotsFieldName, value: &[u8]) {
        let of_file = matches!(
            key,
            RobotsFieldName::Sitemap | RobotsFieldName::Host | RobotsFieldName::CleanParam
        );
        let signal = matches!(
            key,
            RobotsFieldName::ContentSignal | RobotsFieldName::License
        );
        let good = if of_file || (signal && !self.any_group) {
            self.found.file.take(key, value, line.number)
        } else if self.speaks() {
            self.found.group.take(key, value, line.number)
        } else {
            self.any_group
        };
        if !good {
            let oddity = match self.any_group || of_file {
                true => RobotsOddityKind::BadValue,
                false => RobotsOddityKind::RuleWithoutGroup,
            };
            self.note(line, oddity);
        }
    }

    #[cold]
    fn note(&mut self, line: &RobotsLine<'_>, what: RobotsOddityKind) {
        note(&mut self.found.oddities, line.number, what);
    }
}

/// Returns whether a value is `*`, either alone or followed by a blank and any text.
fn is_star(value: &[u8]) -> bool {
    match value {
        [b'*'] => true,
        [b'*', next, ..] => next.is_ascii_whitespace() || *next == 0x0B,
        _ => false,
    }
}

/// Returns whether a user-agent value names the token. The value's name is cut before the first
/// byte that is not allowed in a token. Digits are allowed only if the token contains digits.
pub(super) fn names(value: &[u8], token: &[u8]) -> bool {
    if token.is_empty() {
        return false;
    }
    if value.len() < token.len() || !value[..token.len()].eq_ignore_ascii_case(token) {
        return false;
    }
    let digits = token.iter().any(u8::is_ascii_digit);
    match value.get(token.len()) {
        None => true,
        Some(b) if is_name_byte(*b) => false,
        // `bot2` and `bot` are different robots, but Google's parser cuts names at the first digit,
        // so `bot2` matches `bot` here too.
        Some(b) => !(digits && b.is_ascii_digit()),
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-')
}

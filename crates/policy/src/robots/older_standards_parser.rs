//! Reads a robots.txt by the standards before RFC 9309.
//!
//! 1994, "A Standard for Robot Exclusion": blank lines separate records, but a line with only a
//! comment doesn't. A record has one or more user-agent lines, followed by one or more disallow
//! lines. It applies to a robot whose name contains the value of a user-agent line, ignoring
//! version and case. The first record that names the robot applies, or else the first one for `*`.
//! A disallow value is a literal prefix.
//!
//! 1997, "Robot Exclusion Standard Revisited": the same, but a user-agent line takes several names
//! and a disallow line several paths, separated by blanks. A record without a disallow line allows
//! everything to its robots.

use crate::product_token::ProductToken;

use super::line_parser::{
    RobotsFieldName, RobotsLine, RobotsLineIterator, exact_key, field, is_blank,
};
use super::merged_group_rules::MergedGroupRules;
use super::non_rule_lines::NonRuleGroupLines;
use super::oddity::{RobotsOddityKind, note};
use super::pattern::SpecialCharacters;
use super::rfc9309_parser::ParsedRobots;

/// A robots.txt standard older than RFC 9309.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OlderStandard {
    Koster1994,
    Extended1997,
}

/// Which record applies if several name the robot. By the 1997 standard the robot may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RobotsRecordSelection {
    First,
    Every,
}

/// Parses the robots.txt `body` for `agent`.
pub(super) fn read(
    body: &[u8],
    agent: &ProductToken,
    dialect: OlderStandard,
    pick: RobotsRecordSelection,
) -> ParsedRobots {
    let mut reader = OlderStandardsReader {
        body,
        agent: agent.as_str().as_bytes(),
        dialect,
        pick,
        record: RecordState::default(),
        split_at: None,
        named: None,
        star: None,
        found: ParsedRobots::default(),
    };
    for line in RobotsLineIterator::of(body) {
        reader.line(&line);
    }
    reader.end_record();
    let mut chosen = reader.named.or(reader.star).unwrap_or_default();
    chosen.rules.keep(body);
    ParsedRobots {
        rules: chosen.rules,
        group: chosen.group,
        ..reader.found
    }
}

#[derive(Default)]
struct RecordState {
    begin: u32,
    agents: bool,
    disallows: bool,
    named: bool,
    star: bool,
    rules: MergedGroupRules,
    group: NonRuleGroupLines,
}

struct OlderStandardsReader<'a> {
    body: &'a [u8],
    agent: &'a [u8],
    dialect: OlderStandard,
    pick: RobotsRecordSelection,
    record: RecordState,
    /// The first line of the last record, if that record had user-agent lines but no disallow line.
    /// `None` if another record has begun since.
    split_at: Option<u32>,
    named: Option<RecordState>,
    star: Option<RecordState>,
    found: ParsedRobots,
}

impl OlderStandardsReader<'_> {
    fn line(&mut self, line: &RobotsLine<'_>) {
        if line.nul {
            self.note(line.number, RobotsOddityKind::Nul);
        }
        if line.text.is_empty() {
            if !line.comment {
                self.end_record();
            }
            return;
        }
        let Some(field) = field(line.text).filter(|field| !field.no_colon) else {
            return self.note(line.number, RobotsOddityKind::NoField);
        };
        match exact_key(field.key) {
            RobotsFieldName::UserAgent => self.user_agent(line, field.value),
            RobotsFieldName::Disallow => self.disallow(line, field.value),
            RobotsFieldName::Unknown => self.note(line.number, RobotsOddityKind::UnknownField),
            key => self.other(line.number, key, field.value),
        }
    }

    fn user_agent(&mut self, line: &RobotsLine<'_>, value: &[u8]) {
        if self.record.disallows {
            self.end_record();
        }
        if !self.record.agents {
            self.record.begin = line.number;
        }
        self.record.agents = true;
        self.split_at = None;
        let (mut named, mut star, mut any) = (false, false, false);
        for name in self.words(value) {
            let name = without_version(name);
            any |= !name.is_empty();
            star |= name == b"*";
            named |= !name.is_empty() && holds(self.agent, name);
        }
        if !any {
            self.note(line.number, RobotsOddityKind::NamesNobody);
        }
        let record = &mut self.record;
        if (named && !record.named) || (star && !record.named && !record.star) {
            record.rules.begin_group(self.body, value, line.number);
        }
        record.named |= named;
        record.star |= star;
    }

    fn disallow(&mut self, line: &RobotsLine<'_>, value: &[u8]) {
        if !self.record.agents {
            let oddity = match self.split_at.take() {
                Some(_) => RobotsOddityKind::SplitRecord,
                None => RobotsOddityKind::RuleWithoutGroup,
            };
            return self.note(line.number, oddity);
        }
        self.record.disallows = true;
        if !self.record.named && !self.record.star {
            return;
        }
        let mut first = true;
        let place = (self.body, line.text, line.number);
        for path in self.words(value).filter(|path| !path.is_empty()) {
            let rules = &mut self.record.rules;
            match first {
                true => rules.push(false, path, SpecialCharacters::Literal, place),
                false => rules.push_derived(path, SpecialCharacters::Literal),
            }
            first = false;
            if path[0] != b'/' {
                self.note(line.number, RobotsOddityKind::NoLeadingSlash);
            }
        }
    }

    /// Handles all other fields, including `Allow`, which later standards introduced.
    fn other(&mut self, line: u32, key: RobotsFieldName, value: &[u8]) {
        let good = match key {
            RobotsFieldName::Allow => {
                self.note(line, RobotsOddityKind::UnknownField);
                true
            }
            RobotsFieldName::Sitemap | RobotsFieldName::Host | RobotsFieldName::CleanParam => {
                self.found.file.take(key, value, line)
            }
            RobotsFieldName::ContentSignal | RobotsFieldName::License if !self.record.agents => {
                self.found.file.take(key, value, line)
            }
            _ if self.record.named || self.record.star => self.record.group.take(key, value, line),
            _ => true,
        };
        if !good {
            self.note(line, RobotsOddityKind::BadValue);
        }
    }

    fn end_record(&mut self) {
        let record = std::mem::take(&mut self.record);
        if !record.agents {
            return;
        }
        if !record.disallows {
            self.split_at = Some(record.begin);
            if self.dialect == OlderStandard::Koster1994 {
                return self.note(record.begin, RobotsOddityKind::IncompleteRecord);
            }
        }
        let slot = match (record.named, record.star) {
            (true, _) => &mut self.named,
            (false, true) => &mut self.star,
            (false, false) => return,
        };
        match slot {
            None => *slot = Some(record),
            Some(kept) if self.pick == RobotsRecordSelection::Every => {
                kept.rules.append(record.rules);
                kept.group.append(record.group);
            }
            Some(_) => {}
        }
    }

    fn words<'v>(&self, value: &'v [u8]) -> impl Iterator<Item = &'v [u8]> + use<'v> {
        let list = self.dialect == OlderStandard::Extended1997;
        value.split(move |&b| list && is_blank(b))
    }

    fn note(&mut self, line: u32, what: RobotsOddityKind) {
        note(&mut self.found.oddities, line, what);
    }
}

/// Removes a version and a trailing comma from a name. The comma is accepted as a separator between
/// names.
fn without_version(name: &[u8]) -> &[u8] {
    let end = name.iter().position(|&b| b == b'/');
    let name = &name[..end.unwrap_or(name.len())];
    name.strip_suffix(b",").unwrap_or(name).trim_ascii()
}

/// Returns whether `whole` contains `part`, ignoring case.
fn holds(whole: &[u8], part: &[u8]) -> bool {
    whole
        .windows(part.len())
        .any(|window| window.eq_ignore_ascii_case(part))
}

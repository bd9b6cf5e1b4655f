//! Everything odd about a robots.txt, whoever it speaks to: for whoever wrote it.

use std::collections::HashMap;

use super::lines::{Body, Field, Key, Line, Lines, field, forgiving_key, is_blank, spelling};
use super::note_body;
use super::oddity::{RobotsOddity, RobotsOddityKind, note};
use super::other_lines::{FileRecords, GroupRecords};
use super::pattern::{Specials, push_pattern};

/// Goes through a whole robots.txt as RFC 9309 reads it and lists what is odd, by line; the
/// first thousand. Unlike [`Robots::oddities`](crate::Robots::oddities) it looks at every
/// group.
#[must_use]
pub fn lint(file: &[u8]) -> Vec<RobotsOddity> {
    let body = Body::of(file);
    let mut linter = Linter::default();
    for line in Lines::of(&body.bytes) {
        linter.line(&line);
    }
    linter.end_group();
    note_body(&body, &mut linter.found);
    linter.found.sort_by_key(|oddity| oddity.line);
    linter.found
}

#[derive(Default)]
struct Linter {
    found: Vec<RobotsOddity>,
    /// The user-agent line that the group begins with; none before the first.
    group: Option<u32>,
    rules: usize,
    /// A record stands in the header of the group.
    record: Option<u32>,
    /// Patterns of the group in normal form, and whether they allow.
    patterns: HashMap<(Vec<u8>, bool), bool>,
}

impl Linter {
    fn line(&mut self, line: &Line<'_>) {
        if line.nul {
            self.note(line, RobotsOddityKind::Nul);
        }
        if std::str::from_utf8(line.text).is_err() {
            self.note(line, RobotsOddityKind::NotUtf8);
        }
        let Some(field) = field(line.text) else {
            if !line.text.is_empty() {
                self.note(line, RobotsOddityKind::NoField);
            }
            return;
        };
        let key = forgiving_key(field.key);
        match key {
            Key::UserAgent => self.user_agent(line, field.value),
            Key::Allow | Key::Disallow => self.rule(line, key == Key::Allow, field.value),
            Key::Unknown | Key::Noindex => return self.note(line, RobotsOddityKind::UnknownField),
            _ => self.record(line, key, field.value),
        }
        self.spelling(line, key, &field);
    }

    fn spelling(&mut self, line: &Line<'_>, key: Key, field: &Field<'_>) {
        if field.no_colon {
            self.note(line, RobotsOddityKind::NoColon);
        }
        let right = |name: &str| field.key.eq_ignore_ascii_case(name.as_bytes());
        if spelling(key).is_some_and(|name| !right(name)) {
            self.note(line, RobotsOddityKind::Misspelt);
        }
    }

    fn user_agent(&mut self, line: &Line<'_>, value: &[u8]) {
        if self.rules > 0 || self.group.is_none() {
            self.end_group();
            self.group = Some(line.number);
        } else if let Some(record) = self.record.take() {
            note(&mut self.found, record, RobotsOddityKind::RecordInHeader);
        }
        if value.iter().any(|&b| b == b',' || is_blank(b)) {
            self.note(line, RobotsOddityKind::SeveralNames);
        }
        let names = value
            .first()
            .is_some_and(|b| b.is_ascii_alphabetic() || b"*_-".contains(b));
        if !names || (value.starts_with(b"*") && value.len() > 1) {
            self.note(line, RobotsOddityKind::NamesNobody);
        }
    }

    fn rule(&mut self, line: &Line<'_>, allow: bool, value: &[u8]) {
        if self.group.is_none() {
            return self.note(line, RobotsOddityKind::RuleWithoutGroup);
        }
        self.rules += 1;
        if value.is_empty() {
            return;
        }
        if !matches!(value.first(), Some(b'/' | b'*')) {
            self.note(line, RobotsOddityKind::NoLeadingSlash);
        }
        if value.iter().any(|&b| is_blank(b)) {
            self.note(line, RobotsOddityKind::BlankInPath);
        }
        if value[..value.len() - 1].contains(&b'$') {
            self.note(line, RobotsOddityKind::DollarInside);
        }
        if has_bad_escape(value) {
            self.note(line, RobotsOddityKind::BadEscape);
        }
        let mut pattern = Vec::new();
        let shape = push_pattern(value, Specials::Meant, &mut pattern);
        match self.patterns.insert((pattern, shape.anchored), allow) {
            Some(before) if before == allow => self.note(line, RobotsOddityKind::Repeated),
            Some(_) => self.note(line, RobotsOddityKind::Contradiction),
            None => {}
        }
    }

    fn record(&mut self, line: &Line<'_>, key: Key, value: &[u8]) {
        let of_file = matches!(key, Key::Sitemap | Key::Host | Key::CleanParam);
        let good = match of_file {
            true => FileRecords::default().take(key, value, line.number),
            false => GroupRecords::default().take(key, value, line.number),
        };
        if !good {
            self.note(line, RobotsOddityKind::BadValue);
        }
        let absolute = |scheme: &[u8]| {
            let start = value.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        };
        if key == Key::Sitemap && good && !absolute(b"http://") && !absolute(b"https://") {
            self.note(line, RobotsOddityKind::RelativeSitemap);
        }
        if !of_file && self.group.is_some() && self.rules == 0 {
            self.record = Some(line.number);
        }
    }

    fn end_group(&mut self) {
        if let Some(line) = self.group.take()
            && self.rules == 0
        {
            note(&mut self.found, line, RobotsOddityKind::NoRules);
        }
        (self.rules, self.record) = (0, None);
        self.patterns.clear();
    }

    fn note(&mut self, line: &Line<'_>, what: RobotsOddityKind) {
        note(&mut self.found, line.number, what);
    }
}

fn has_bad_escape(value: &[u8]) -> bool {
    memchr::memchr_iter(b'%', value).any(|at| {
        let digits = value.get(at + 1..at + 3);
        !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

#[cfg(test)]
mod tests {
    use super::lint;

    fn check(file: &[u8], expect: &[(u32, &str)]) {
        let found: Vec<_> = lint(file).iter().map(|o| (o.line, o.what.name())).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn ours_a_plain_file_has_nothing_odd() {
        check(
            b"\xEF\xBB\xBF# hello\nUser-agent: *\nUser-Agent: bot\nCrawl-delay: 1\nDisallow:\nAllow: /a*b$\n\nSitemap: https://a.example/s.xml\n",
            &[],
        );
    }

    #[test]
    fn ours_lines_that_are_odd() {
        check(
            b"Disallow: /\nUser-agent: a, b\nUser-agent: 7\nuser agent c\ndisalow: x\nAllow: /a b$c%2\nDisallow: /%7e\nDisallow: /~\nAllow: /~\nSitemap: s.xml\nCrawl-delay: soon\n\xFFoo: 1\nNoindex: /\n",
            &[
                (1, "rule_without_group"),
                (2, "several_names"),
                (3, "names_nobody"),
                (4, "no_field"),
                (5, "no_leading_slash"),
                (5, "misspelt"),
                (6, "blank_in_path"),
                (6, "dollar_inside"),
                (6, "bad_escape"),
                (8, "repeated"),
                (9, "contradiction"),
                (10, "relative_sitemap"),
                (11, "bad_value"),
                (12, "not_utf8"),
                (12, "unknown_field"),
                (13, "unknown_field"),
            ],
        );
    }

    #[test]
    fn ours_groups_that_are_odd() {
        check(
            b"User-agent: a\nCrawl-delay: 5\n\nUser-agent: *\nDisallow: /\n\nUser-agent: b\n",
            &[(2, "record_in_header"), (7, "no_rules")],
        );
        check(b"<html>\n", &[(1, "no_field"), (1, "markup")]);
    }
}

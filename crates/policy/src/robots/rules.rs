//! The rules of one reading that bind one agent, and the judging of a path by them.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::index::{Index, Indexed};
use super::pattern::{self, Shape, Specials};

/// One rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    text: Span,
    pattern: Span,
    pub(super) octets: u32,
    pub(super) line: u32,
    group: u16,
    pub(super) allow: bool,
    wild: bool,
    anchored: bool,
    // The pattern is a part of the text as it stands; else it lies in `patterns`.
    in_text: bool,
}

/// A group whose rules are among those kept.
#[derive(Clone, Copy, Debug)]
struct Header {
    agent: Span,
    line: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u32,
    len: u32,
}

impl Span {
    fn new(start: usize, end: usize) -> Span {
        // A body has at most 512 KiB; lossy decoding makes at most three octets of one.
        Span {
            start: narrow(start),
            len: narrow(end - start),
        }
    }

    /// Where `part`, a slice of `body`, lies in it.
    fn of(part: &[u8], body: &[u8]) -> Span {
        let start = part.as_ptr().addr().saturating_sub(body.as_ptr().addr());
        Span::new(start, start + part.len())
    }

    fn range(self) -> Range<usize> {
        self.start as usize..(self.start as usize + self.len as usize)
    }
}

/// The rules of all groups that speak for the agent, merged, in the order of the file.
///
/// While a file is read, texts are places in its body; [`Rules::keep`] then takes along
/// what is needed of it.
#[derive(Debug, Default)]
pub(super) struct Rules {
    entries: Vec<Entry>,
    headers: Vec<Header>,
    texts: String,
    // Patterns whose normal form is not what is written.
    patterns: Vec<u8>,
    // A file that is asked once is searched plainly; an index would cost more than it saves.
    asked: AtomicBool,
    index: OnceLock<Index>,
}

/// Up to so many rules are tried one by one: no index is as quick.
const FEW: usize = 4;

impl Rules {
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.headers.clear();
        self.patterns.clear();
    }

    /// A group begins whose user-agent line names the agent by `agent`, a slice of `body`.
    pub(super) fn begin_group(&mut self, body: &[u8], agent: &[u8], line: u32) {
        // Half of all files have a dozen rules or fewer for a robot.
        self.entries.reserve(16);
        let agent = Span::of(agent, body);
        self.headers.push(Header { agent, line });
    }

    /// Adds a rule of the group begun last. `value` and `written`, the whole line, are slices
    /// of `body`. An empty pattern never decides and is not kept.
    #[inline]
    pub(super) fn push(
        &mut self,
        allow: bool,
        value: &[u8],
        specials: Specials,
        (body, written, line): (&[u8], &[u8], u32),
    ) {
        if value.is_empty() {
            return;
        }
        let in_text = pattern::is_normal(value);
        let (pattern, shape) = match in_text {
            true => (Span::of(value, body), Shape::plain(value)),
            false => self.push_pattern(value, specials),
        };
        self.entries.push(Entry {
            text: Span::of(written, body),
            pattern,
            octets: shape.octets,
            line,
            group: u16::try_from(self.headers.len().saturating_sub(1)).unwrap_or(u16::MAX),
            allow,
            wild: shape.wild,
            anchored: shape.anchored,
            in_text,
        });
    }

    /// Adds a rule that follows from the one pushed last and stands on the same line.
    pub(super) fn push_derived(&mut self, value: &[u8], specials: Specials) {
        let (pattern, shape) = self.push_pattern(value, specials);
        if let Some(&last) = self.entries.last() {
            self.entries.push(Entry {
                pattern,
                octets: shape.octets,
                wild: shape.wild,
                anchored: shape.anchored,
                in_text: false,
                ..last
            });
        }
    }

    fn push_pattern(&mut self, value: &[u8], specials: Specials) -> (Span, Shape) {
        let begin = self.patterns.len();
        let shape = pattern::push_pattern(value, specials, &mut self.patterns);
        (Span::new(begin, self.patterns.len()), shape)
    }

    /// Adds the rules of another group of the same body behind these.
    pub(super) fn append(&mut self, other: Rules) {
        let (groups, patterns) = (self.headers.len(), self.patterns.len());
        self.headers.extend(other.headers);
        self.patterns.extend_from_slice(&other.patterns);
        let moved = |mut entry: Entry| {
            entry.group = u16::try_from(groups + entry.group as usize).unwrap_or(u16::MAX);
            if !entry.in_text {
                entry.pattern.start += narrow(patterns);
            }
            entry
        };
        self.entries.extend(other.entries.into_iter().map(moved));
    }

    /// Takes the texts out of the body: the whole of it where most of it is needed, else the
    /// lines. What is no UTF-8 is shown as U+FFFD.
    pub(super) fn keep(&mut self, body: &[u8]) {
        if self.entries.is_empty() && self.headers.is_empty() {
            return;
        }
        let needed: usize = self
            .entries
            .iter()
            .map(|entry| entry.text.len as usize)
            .sum();
        if needed * 3 >= body.len()
            && let Ok(text) = std::str::from_utf8(body)
        {
            self.texts = text.to_owned();
            return;
        }
        self.texts.reserve(needed);
        for header in &mut self.headers {
            let agent = &body[header.agent.range()];
            header.agent = push_text(&mut self.texts, agent);
        }
        for entry in &mut self.entries {
            let (text, pattern) = (&body[entry.text.range()], entry.pattern);
            let old = entry.text.start;
            entry.text = push_text(&mut self.texts, text);
            if !entry.in_text {
                continue;
            }
            if std::str::from_utf8(text).is_ok() {
                entry.pattern.start = entry.text.start + (pattern.start - old);
            } else {
                let begin = self.patterns.len();
                self.patterns.extend_from_slice(&body[pattern.range()]);
                entry.pattern = Span::new(begin, self.patterns.len());
                entry.in_text = false;
            }
        }
    }

    /// The rule that decides over a normal path: the longest match, allow where lengths are
    /// equal, the earlier line where kinds are equal too.
    pub(super) fn decide(&self, path: &[u8]) -> Option<&Entry> {
        if self.entries.len() <= FEW {
            return self.decide_plainly(path);
        }
        let index = match self.index.get() {
            Some(index) => index,
            None if self.asked.swap(true, Ordering::Relaxed) => {
                self.index.get_or_init(|| self.new_index())
            }
            None => return self.decide_plainly(path),
        };
        self.entries.get(index.decide(path)? as usize)
    }

    /// The same, rule by rule.
    pub(super) fn decide_plainly(&self, path: &[u8]) -> Option<&Entry> {
        let mut best: Option<&Entry> = None;
        for entry in &self.entries {
            if best.is_none_or(|best| outweighs(entry.weight(), best.weight()))
                && pattern::matches(self.pattern(entry), entry.shape(), path)
            {
                best = Some(entry);
            }
        }
        best
    }

    fn new_index(&self) -> Index {
        Index::new(self.entries.iter().map(|entry| Indexed {
            pattern: self.pattern(entry),
            shape: entry.shape(),
            allow: entry.allow,
        }))
    }

    #[inline]
    fn pattern(&self, entry: &Entry) -> &[u8] {
        let arena = match entry.in_text {
            true => self.texts.as_bytes(),
            false => &self.patterns,
        };
        &arena[entry.pattern.range()]
    }

    pub(super) fn text(&self, entry: &Entry) -> &str {
        &self.texts[entry.text.range()]
    }

    pub(super) fn group(&self, entry: &Entry) -> Option<(&str, u32)> {
        let header = self.headers.get(entry.group as usize)?;
        Some((&self.texts[header.agent.range()], header.line))
    }

    pub(super) fn first_group(&self) -> Option<(&str, u32)> {
        let header = self.headers.first()?;
        Some((&self.texts[header.agent.range()], header.line))
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// With the index that is there, or a bound for the one that may come.
    pub(super) fn memory_octets(&self) -> usize {
        let index = match self.index.get() {
            Some(index) => index.memory_octets(),
            None if self.entries.len() <= FEW => 0,
            None => {
                let octets = |entry: &Entry| entry.pattern.len as usize;
                let patterns: usize = self.entries.iter().map(octets).sum();
                INDEX_BASE + 100 * self.entries.len() + 38 * patterns
            }
        };
        self.entries.capacity() * size_of::<Entry>()
            + self.headers.capacity() * size_of::<Header>()
            + self.texts.capacity()
            + self.patterns.capacity()
            + index
    }
}

/// What an index takes whatever its rules, in octets.
const INDEX_BASE: usize = 10 * 1024;

impl Entry {
    fn weight(&self) -> (u32, bool) {
        (self.octets, self.allow)
    }

    fn shape(&self) -> Shape {
        Shape {
            wild: self.wild,
            anchored: self.anchored,
            octets: self.octets,
        }
    }
}

/// Whether a rule would decide where both match (RFC 9309 section 2.2.2). Rules are given by
/// the octets of their pattern and whether they allow.
#[inline]
pub(super) fn outweighs(rule: (u32, bool), best: (u32, bool)) -> bool {
    rule > best
}

/// Appends `text`; what is no UTF-8 in it is shown as U+FFFD.
fn push_text(texts: &mut String, text: &[u8]) -> Span {
    let start = texts.len();
    match std::str::from_utf8(text) {
        Ok(text) => texts.push_str(text),
        Err(_) => texts.push_str(&String::from_utf8_lossy(text)),
    }
    Span::new(start, texts.len())
}

fn narrow(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{FEW, Rules, Specials};
    use crate::robots::pattern::normal_path;

    fn rules(file: &str) -> Rules {
        let mut rules = Rules::default();
        rules.begin_group(file.as_bytes(), b"", 1);
        for (line, written) in (1..).zip(file.lines()) {
            let (kind, value) = written.split_at(1);
            rules.push(
                kind == "+",
                value.as_bytes(),
                Specials::Meant,
                (file.as_bytes(), written.as_bytes(), line),
            );
        }
        rules.keep(file.as_bytes());
        rules
    }

    fn same_by_index(file: &str, path: &str) {
        let rules = rules(file);
        let path = normal_path(path);
        let plainly = rules.decide_plainly(&path).map(|entry| entry.line);
        let bound = rules.memory_octets();
        for _ in 0..3 {
            assert_eq!(rules.decide(&path).map(|entry| entry.line), plainly);
        }
        assert_eq!(rules.index.get().is_some(), rules.entries.len() > FEW);
        assert!(
            rules.memory_octets() <= bound,
            "{} > {bound}",
            rules.memory_octets()
        );
    }

    #[test]
    fn parts_are_found_behind_one_another() {
        let file = "-/*ab*ab$\n-/*a*b\n-/*b*a\n-/x*a*b*c\n+/*c\n+/a*$\n-/ab\n-/ab$\n-*bb*\n";
        for path in [
            "/", "/ab", "/abab", "/aba", "/ba", "/xabc", "/xacb", "/c", "/aab", "/abb",
        ] {
            same_by_index(file, path);
        }
    }

    proptest! {
        #[test]
        fn the_index_finds_what_a_plain_search_finds(
            file in "([+-]/[ab*]{0,6}\\$?\n|[+-][abc/*]{1,5}\n){0,30}",
            path in "/[abc/]{0,14}",
        ) {
            same_by_index(&file, &path);
        }

        #[test]
        fn trees_of_many_parts_are_no_different(
            file in "([+-]/[abcdef]\\*[abcdef]{1,2}\\*[abcdef]{1,2}(\\*|\\$)?\n){5,200}",
            path in "/[abcdef]{0,60}",
        ) {
            same_by_index(&file, &path);
        }
    }
}

//! The rules of one reading that bind one agent, and the judging of a path by them.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::index::{Index, Indexed};
use super::pattern::{self, Shape, Specials};

/// One rule. Its texts lie in the arenas of [`Rules`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    text: Span,
    pattern: Span,
    pub(super) shape: Shape,
    pub(super) line: u32,
    group: u32,
    pub(super) allow: bool,
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
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Span {
            start: narrow(start),
            len: narrow(end - start),
        }
    }

    fn moved(self, by: usize) -> Span {
        let start = self.start as usize + by;
        Span::new(start, start + self.len as usize)
    }

    fn range(self) -> Range<usize> {
        self.start as usize..(self.start as usize + self.len as usize)
    }
}

/// The rules of all groups that speak for the agent, merged, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Rules {
    entries: Vec<Entry>,
    headers: Vec<Header>,
    // Lines as written, without comment and outer blanks.
    texts: String,
    // Patterns in normal form.
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
        self.texts.clear();
        self.patterns.clear();
    }

    pub(super) fn shrink(&mut self) {
        self.entries.shrink_to_fit();
        self.texts.shrink_to_fit();
        self.patterns.shrink_to_fit();
    }

    /// A group begins whose user-agent line names the agent by `agent`.
    pub(super) fn begin_group(&mut self, agent: &[u8], line: u32) {
        let agent = push_text(&mut self.texts, agent);
        self.headers.push(Header { agent, line });
    }

    /// Adds a rule of the group begun last. An empty pattern never decides and is not kept.
    pub(super) fn push(
        &mut self,
        allow: bool,
        value: &[u8],
        specials: Specials,
        written: &[u8],
        line: u32,
    ) {
        if value.is_empty() {
            return;
        }
        let text = push_text(&mut self.texts, written);
        self.push_entry(allow, value, specials, text, line);
    }

    /// Adds a rule that follows from the one pushed last and stands on the same line.
    pub(super) fn push_derived(&mut self, allow: bool, value: &[u8], specials: Specials) {
        if let Some(&Entry { text, line, .. }) = self.entries.last() {
            self.push_entry(allow, value, specials, text, line);
        }
    }

    /// Adds the rules of another group behind these.
    pub(super) fn append(&mut self, other: Rules) {
        let (texts, patterns) = (self.texts.len(), self.patterns.len());
        let groups = self.headers.len();
        self.texts.push_str(&other.texts);
        self.patterns.extend_from_slice(&other.patterns);
        self.headers.extend(other.headers.into_iter().map(|header| Header {
            agent: header.agent.moved(texts),
            ..header
        }));
        self.entries.extend(other.entries.into_iter().map(|entry| Entry {
            text: entry.text.moved(texts),
            pattern: entry.pattern.moved(patterns),
            group: entry.group + u32::try_from(groups).unwrap_or(u32::MAX),
            ..entry
        }));
    }

    fn push_entry(&mut self, allow: bool, value: &[u8], specials: Specials, text: Span, line: u32) {
        let begin = self.patterns.len();
        let shape = pattern::push_pattern(value, specials, &mut self.patterns);
        self.entries.push(Entry {
            text,
            pattern: Span::new(begin, self.patterns.len()),
            shape,
            line,
            group: u32::try_from(self.headers.len().saturating_sub(1)).unwrap_or(u32::MAX),
            allow,
        });
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
                && pattern::matches(&self.patterns[entry.pattern.range()], entry.shape, path)
            {
                best = Some(entry);
            }
        }
        best
    }

    fn new_index(&self) -> Index {
        Index::new(self.entries.iter().map(|entry| Indexed {
            pattern: &self.patterns[entry.pattern.range()],
            shape: entry.shape,
            allow: entry.allow,
        }))
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
            None => INDEX_BASE + 100 * self.entries.len() + 34 * self.patterns.len(),
        };
        self.entries.capacity() * size_of::<Entry>()
            + self.headers.capacity() * size_of::<Header>()
            + self.texts.capacity()
            + self.patterns.capacity()
            + index
    }
}

/// What an index takes whatever its rules, in octets.
const INDEX_BASE: usize = 1024;

impl Entry {
    fn weight(&self) -> (u32, bool) {
        (self.shape.octets, self.allow)
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

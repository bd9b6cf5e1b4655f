//! The rules of one reading that bind one agent, and the judging of a path by them.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::pattern::{self, Path, Shape, Specials, WILD};
use super::prefilter::{HEAD, PatternSummary, marks};
use super::rule_index::{Index, Indexed, TooMuchWork};

/// One rule. What tells that it does not match comes first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    demand: PatternSummary,
    weight: Weight,
    pattern: Span,
    text: Span,
    pub(super) line: u32,
    group: u16,
    wild: bool,
    anchored: bool,
    // The pattern is a part of the text as it stands; else it lies in `patterns`.
    in_text: bool,
}

/// Of two rules that match, the one of more weight decides (RFC 9309 section 2.2.2): that
/// with more bytes, of equal ones that which allows. No rule has the weight zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Weight(u32);

impl Weight {
    fn new(bytes: u32, allow: bool) -> Weight {
        Weight(bytes << 1 | u32::from(allow))
    }

    fn allows(self) -> bool {
        self.0 & 1 == 1
    }

    fn bytes(self) -> u32 {
        self.0 >> 1
    }
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
        // A body has at most 512 KiB; lossy decoding makes at most three bytes of one.
        Span {
            start: narrow(start),
            len: narrow(end - start),
        }
    }

    /// The place in `body` of `part`, a slice of it.
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
    // What has been spent on searching without an index, in rules looked at.
    spent: AtomicU32,
    index: OnceLock<Box<Index>>,
}

/// Up to so many rules are looked at one by one: no index is as quick.
const FEW: usize = 128;

/// An index is made once so much has been spent on each rule without it. Making one costs
/// about as much, so at worst the work is doubled; most files are never asked so often.
const INDEX_COST: u32 = 100;

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
        let marks = marks(value);
        let in_text = pattern::is_normal(marks);
        let group = u16::try_from(self.headers.len().saturating_sub(1)).unwrap_or(u16::MAX);
        let entry = Entry {
            demand: PatternSummary::of(value, marks),
            weight: Weight::new(narrow(value.len()), allow),
            pattern: Span::of(value, body),
            text: Span::of(written, body),
            line,
            group,
            wild: false,
            anchored: false,
            in_text,
        };
        match in_text {
            true => self.entries.push(entry),
            false => self.push_odd(value, specials, entry),
        }
    }

    /// Adds a rule that follows from the one pushed last and stands on the same line.
    pub(super) fn push_derived(&mut self, value: &[u8], specials: Specials) {
        if let Some(&last) = self.entries.last() {
            self.push_odd(value, specials, last);
        }
    }

    /// Adds a rule like `entry`, but for its pattern, which is brought to normal form.
    fn push_odd(&mut self, value: &[u8], specials: Specials, entry: Entry) {
        let begin = self.patterns.len();
        let shape = pattern::push_pattern(value, specials, &mut self.patterns);
        let pattern = &self.patterns[begin..];
        let head = match shape.wild {
            true => pattern.split(|&b| b == WILD).next().unwrap_or_default(),
            false => pattern,
        };
        self.entries.push(Entry {
            demand: PatternSummary::of(head, marks(pattern)),
            weight: Weight::new(shape.bytes, entry.weight.allows()),
            pattern: Span::new(begin, self.patterns.len()),
            wild: shape.wild,
            anchored: shape.anchored,
            in_text: false,
            ..entry
        });
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

    /// The rule that decides over a path: the longest match, allow where lengths are equal,
    /// the earlier line where kinds are equal too.
    pub(super) fn decide(&self, path: &Path<'_>) -> Option<&Entry> {
        if self.entries.len() <= FEW {
            return self.decide_plainly(path).0;
        }
        if let Some(index) = self.index() {
            match index.decide(&path.bytes) {
                Ok(number) => return self.entries.get(number? as usize),
                Err(TooMuchWork) => return self.decide_plainly(path).0,
            }
        }
        let (decided, tried) = self.decide_plainly(path);
        let spent = self.entries.len() + tried * (8 + path.bytes.len() / 16);
        let before = self.spent.load(Ordering::Relaxed);
        let spent = before.saturating_add(narrow(spent));
        self.spent.store(spent, Ordering::Relaxed);
        decided
    }

    fn index(&self) -> Option<&Index> {
        if let Some(index) = self.index.get() {
            return Some(index);
        }
        let enough = INDEX_COST.saturating_mul(narrow(self.entries.len()));
        let spent = self.spent.load(Ordering::Relaxed);
        (spent >= enough).then(|| &**self.index.get_or_init(|| Box::new(self.new_index())))
    }

    /// The same, rule by rule; and how many patterns had to be tried.
    fn decide_plainly(&self, path: &Path<'_>) -> (Option<&Entry>, usize) {
        let (mut best, mut most, mut tried) = (None, Weight::default(), 0);
        for entry in &self.entries {
            if entry.demand.may_match(path.glance) && entry.weight > most {
                tried += 1;
                if entry.is_short_prefix() || self.matches(entry, &path.bytes) {
                    (best, most) = (Some(entry), entry.weight);
                }
            }
        }
        (best, tried)
    }

    fn matches(&self, entry: &Entry, path: &[u8]) -> bool {
        pattern::matches(self.pattern(entry), entry.shape(), path)
    }

    fn new_index(&self) -> Index {
        Index::new(self.entries.iter().map(|entry| Indexed {
            pattern: self.pattern(entry),
            anchored: entry.anchored,
            weight: entry.weight,
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
    pub(super) fn memory_bytes(&self) -> usize {
        let index = match self.index.get() {
            Some(index) => index.memory_bytes(),
            None if self.entries.len() <= FEW => 0,
            None => self.index_bound(),
        };
        self.entries.capacity() * size_of::<Entry>()
            + self.headers.capacity() * size_of::<Header>()
            + self.texts.capacity()
            + self.patterns.capacity()
            + index
    }

    /// A pattern brings two nodes at most to the trie of heads; parts have one for each byte.
    fn index_bound(&self) -> usize {
        let bytes = |entry: &Entry| match (entry.wild, entry.pattern.len as usize) {
            (true, bytes) => 100 + 38 * bytes,
            (false, bytes) => 64 + bytes,
        };
        INDEX_BASE + self.entries.iter().map(bytes).sum::<usize>()
    }
}

/// The memory that an index takes whatever its rules, in bytes.
const INDEX_BASE: usize = 1024;

impl Entry {
    pub(super) fn allows(&self) -> bool {
        self.weight.allows()
    }

    /// Returns whether a path that may match by its first bytes does.
    fn is_short_prefix(&self) -> bool {
        !self.wild && !self.anchored && self.pattern.len as usize <= HEAD
    }

    fn shape(&self) -> Shape {
        Shape {
            wild: self.wild,
            anchored: self.anchored,
            bytes: self.weight.bytes(),
        }
    }
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

    use super::{FEW, INDEX_COST, Path, Rules, Specials};

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
        let path = Path::of(path);
        let plainly = rules.decide_plainly(&path).0.map(|entry| entry.line);
        let index = rules.new_index();
        if let Ok(number) = index.decide(&path.bytes) {
            let entry = number.and_then(|number| rules.entries.get(number as usize));
            assert_eq!(entry.map(|entry| entry.line), plainly);
        }
        assert!(index.memory_bytes() <= rules.index_bound());
    }

    #[test]
    fn an_index_is_made_where_it_pays() {
        let many = |count: usize| {
            let file: String = (0..count).map(|n| format!("-/{n}*a\n")).collect();
            let rules = rules(&file);
            let bound = rules.memory_bytes();
            for _ in 0..2 * INDEX_COST {
                let entry = rules.decide(&Path::of("/100/a"));
                assert_eq!(entry.map(|entry| entry.line), (count > 100).then_some(101));
            }
            assert!(rules.memory_bytes() <= bound);
            rules.index.get().is_some()
        };
        assert!(!many(FEW));
        assert!(many(FEW + 1));
    }

    #[test]
    fn parts_that_end_everywhere_are_too_much_work() {
        let file: String = (1..500)
            .map(|n| format!("-/*{}*b\n", "a".repeat(n)))
            .collect();
        let rules = rules(&file);
        let path = "/".to_owned() + &"a".repeat(900);
        assert!(rules.new_index().decide(path.as_bytes()).is_err());
        assert!(rules.decide(&Path::of(&path)).is_none());
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

//! The rules of a file that apply to one agent, and how they judge a path.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use memchr::memchr_iter;

use super::literal_index::{LiteralIndex, LiteralOccurrences, WildcardRulePattern};
use super::pattern::{self, NormalizedPath, PatternProperties, SpecialCharacters, WILD};
use super::prefilter::{HEAD, PatternByteSummary, marks};
use super::rule_prefix_index::RulePrefixIndex;

/// A rule, compiled for matching. The fields that reject most paths come first.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompiledRule {
    demand: PatternByteSummary,
    weight: RulePrecedence,
    pattern: LineSpan,
    text: LineSpan,
    pub(super) line: u32,
    group: u16,
    wild: bool,
    anchored: bool,
    // True if the pattern is stored in the text as written, false if it is in `patterns`.
    in_text: bool,
}

/// The precedence of a matching rule (RFC 9309 section 2.2.2). The rule with the most bytes wins.
/// If two rules are equally long, the allowing rule wins. No rule has weight zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RulePrecedence(u32);

impl RulePrecedence {
    fn new(bytes: u32, allow: bool) -> RulePrecedence {
        RulePrecedence(bytes << 1 | u32::from(allow))
    }

    fn allows(self) -> bool {
        self.0 & 1 == 1
    }

    fn bytes(self) -> u32 {
        self.0 >> 1
    }
}

/// The user-agent line of a group that applies to the agent.
#[derive(Clone, Copy, Debug)]
struct UserAgentLineSpan {
    agent: LineSpan,
    line: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct LineSpan {
    start: u32,
    len: u32,
}

impl LineSpan {
    fn new(start: usize, end: usize) -> LineSpan {
        // 32 bits suffice: a body has at most 512 KiB, and lossy decoding turns one byte into at
        // most three.
        LineSpan {
            start: narrow(start),
            len: narrow(end - start),
        }
    }

    /// Returns the position in `body` of its slice `part`.
    fn of(part: &[u8], body: &[u8]) -> LineSpan {
        let start = part.as_ptr().addr().saturating_sub(body.as_ptr().addr());
        LineSpan::new(start, start + part.len())
    }

    fn range(self) -> Range<usize> {
        self.start as usize..(self.start as usize + self.len as usize)
    }
}

/// The rules of all groups that apply to the agent, merged, in file order.
///
/// While a file is read, texts are positions in its body. [`MergedGroupRules::keep`] then copies
/// the parts that are needed.
#[derive(Debug, Default)]
pub(super) struct MergedGroupRules {
    entries: Vec<CompiledRule>,
    headers: Vec<UserAgentLineSpan>,
    texts: String,
    // The patterns whose normal form differs from the text as written.
    patterns: Vec<u8>,
    // Number of paths that were judged before `heads` was built.
    asked: AtomicU32,
    heads: OnceLock<RulePrefixIndex>,
    // Number of searches so far, summed over all paths that needed more than `FEW_SEARCHES`.
    searches: AtomicU32,
    parts: OnceLock<LiteralIndex>,
}

/// The state of judging one path.
struct PathMatchState<'p, 'a> {
    path: &'p NormalizedPath<'a>,
    /// The weight and index of the best matching rule so far.
    best: (RulePrecedence, Reverse<u32>),
    /// Number of wildcard rules for which the path was searched.
    searches: u32,
    /// The positions of the literal parts in the path. Found when first needed.
    occurrences: Option<LiteralOccurrences>,
}

/// With up to this many rules, every rule is tried for each path, because an index would not be
/// faster.
const FEW: usize = 128;

/// Number of judged paths after which rules are sorted by their heads (the texts before the first
/// wildcard). Sorting costs about as much as judging this many paths, and most files are used for
/// fewer paths.
const MANY_QUESTIONS: u32 = 128;

/// Maximum number of wildcard rules for which one path is searched directly. Further rules use the
/// index of literal parts, if it was built.
const FEW_SEARCHES: u32 = 64;

/// Number of searches after which the literal parts of wildcard rules are indexed. This many
/// searches cost about as much as indexing the longest possible file.
const MANY_SEARCHES: u32 = 1 << 16;

impl MergedGroupRules {
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.headers.clear();
        self.patterns.clear();
    }

    /// Begins a group whose user-agent line matches the agent. `agent` is the matching value, a
    /// slice of `body`.
    pub(super) fn begin_group(&mut self, body: &[u8], agent: &[u8], line: u32) {
        // Reserve little, because half of all files have at most a dozen rules for a robot.
        self.entries.reserve(16);
        let agent = LineSpan::of(agent, body);
        self.headers.push(UserAgentLineSpan { agent, line });
    }

    /// Adds a rule to the last group. `value` and `written` (the whole line) are slices of `body`.
    /// A rule with an empty pattern is dropped, because it never affects a verdict.
    #[inline]
    pub(super) fn push(
        &mut self,
        allow: bool,
        value: &[u8],
        specials: SpecialCharacters,
        (body, written, line): (&[u8], &[u8], u32),
    ) {
        if value.is_empty() {
            return;
        }
        let marks = marks(value);
        let in_text = pattern::is_normal(marks);
        let group = u16::try_from(self.headers.len().saturating_sub(1)).unwrap_or(u16::MAX);
        let entry = CompiledRule {
            demand: PatternByteSummary::of(value, marks),
            weight: RulePrecedence::new(narrow(value.len()), allow),
            pattern: LineSpan::of(value, body),
            text: LineSpan::of(written, body),
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

    /// Adds a rule derived from the last rule, with the same line number.
    pub(super) fn push_derived(&mut self, value: &[u8], specials: SpecialCharacters) {
        if let Some(&last) = self.entries.last() {
            self.push_odd(value, specials, last);
        }
    }

    /// Adds a copy of `entry` with the pattern `value`, which is normalised first.
    fn push_odd(&mut self, value: &[u8], specials: SpecialCharacters, entry: CompiledRule) {
        let begin = self.patterns.len();
        let shape = pattern::push_pattern(value, specials, &mut self.patterns);
        let pattern = &self.patterns[begin..];
        let head = match shape.wild {
            true => pattern.split(|&b| b == WILD).next().unwrap_or_default(),
            false => pattern,
        };
        self.entries.push(CompiledRule {
            demand: PatternByteSummary::of(head, marks(pattern)),
            weight: RulePrecedence::new(shape.bytes, entry.weight.allows()),
            pattern: LineSpan::new(begin, self.patterns.len()),
            wild: shape.wild,
            anchored: shape.anchored,
            in_text: false,
            ..entry
        });
    }

    /// Appends the rules of another group of the same file.
    pub(super) fn append(&mut self, other: MergedGroupRules) {
        let (groups, patterns) = (self.headers.len(), self.patterns.len());
        self.headers.extend(other.headers);
        self.patterns.extend_from_slice(&other.patterns);
        let moved = |mut entry: CompiledRule| {
            entry.group = u16::try_from(groups + entry.group as usize).unwrap_or(u16::MAX);
            if !entry.in_text {
                entry.pattern.start += narrow(patterns);
            }
            entry
        };
        self.entries.extend(other.entries.into_iter().map(moved));
    }

    /// Copies the texts of rules out of the body. Copies the whole body if most of it is needed,
    /// otherwise single lines. Invalid UTF-8 becomes U+FFFD.
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
                entry.pattern = LineSpan::new(begin, self.patterns.len());
                entry.in_text = false;
            }
        }
    }

    /// Returns the rule that decides about a path: the longest match. If several are equally long,
    /// an allowing rule wins, then the rule in the earliest line.
    pub(super) fn decide(&self, path: &NormalizedPath<'_>) -> Option<&CompiledRule> {
        let question = self.answer(path);
        let (weight, Reverse(number)) = question.best;
        if question.searches > FEW_SEARCHES && self.parts.get().is_none() {
            let before = self
                .searches
                .fetch_add(question.searches, Ordering::Relaxed);
            if before >= MANY_SEARCHES {
                self.parts.get_or_init(|| self.index_parts());
            }
        }
        (weight != RulePrecedence::default()).then(|| &self.entries[number as usize])
    }

    fn answer<'p, 'a>(&self, path: &'p NormalizedPath<'a>) -> PathMatchState<'p, 'a> {
        let mut question = PathMatchState {
            path,
            // The default weight is less than that of any rule.
            best: (RulePrecedence::default(), Reverse(0)),
            searches: 0,
            occurrences: None,
        };
        match self.heads() {
            None => self.weigh((0..).zip(&self.entries), &mut question),
            Some(heads) => {
                let head = |number| self.head(number);
                heads.visit(&path.bytes, head, |numbers| {
                    let entry = |number: &u32| (*number, &self.entries[*number as usize]);
                    self.weigh(numbers.iter().map(entry), &mut question);
                });
            }
        }
        question
    }

    /// Returns the rules sorted by their heads (the texts before the first wildcard). `None` until
    /// sorting pays off.
    fn heads(&self) -> Option<&RulePrefixIndex> {
        if self.entries.len() <= FEW {
            return None;
        }
        let heads = self.heads.get();
        if heads.is_some() || self.asked.fetch_add(1, Ordering::Relaxed) < MANY_QUESTIONS {
            return heads;
        }
        let new = || RulePrefixIndex::new(self.entries.len(), |number| self.head(number));
        Some(self.heads.get_or_init(new))
    }

    /// Returns the text before the first wildcard of a rule's pattern.
    fn head(&self, number: u32) -> &[u8] {
        let entry = &self.entries[number as usize];
        let pattern = self.pattern(entry);
        match entry.wild {
            true => pattern.split(|&b| b == WILD).next().unwrap_or_default(),
            false => pattern,
        }
    }

    /// Updates `best` if one of `rules` takes precedence.
    #[inline]
    fn weigh<'r>(
        &self,
        rules: impl Iterator<Item = (u32, &'r CompiledRule)>,
        question: &mut PathMatchState<'_, '_>,
    ) {
        let glance = question.path.glance;
        for (number, entry) in rules {
            if entry.demand.may_match(glance)
                && (entry.weight, Reverse(number)) > question.best
                && (entry.is_short_prefix() || self.matches(number, entry, question))
            {
                question.best = (entry.weight, Reverse(number));
            }
        }
    }

    fn matches(
        &self,
        number: u32,
        entry: &CompiledRule,
        question: &mut PathMatchState<'_, '_>,
    ) -> bool {
        let (pattern, path) = (self.pattern(entry), &*question.path.bytes);
        if entry.wild {
            if question.searches >= FEW_SEARCHES
                && let Some(index) = self.parts.get()
            {
                let occurrences = &mut question.occurrences;
                let positions = occurrences.get_or_insert_with(|| index.occurrences(path));
                let anchored = entry.anchored;
                return index.matches(
                    number,
                    WildcardRulePattern { pattern, anchored },
                    path,
                    positions,
                );
            }
            question.searches += 1;
        }
        pattern::matches(pattern, entry.shape(), path)
    }

    fn index_parts(&self) -> LiteralIndex {
        LiteralIndex::new(self.entries.iter().map(|entry| {
            let (pattern, anchored) = (self.pattern(entry), entry.anchored);
            entry
                .wild
                .then_some(WildcardRulePattern { pattern, anchored })
        }))
    }

    #[inline]
    fn pattern(&self, entry: &CompiledRule) -> &[u8] {
        let arena = match entry.in_text {
            true => self.texts.as_bytes(),
            false => &self.patterns,
        };
        &arena[entry.pattern.range()]
    }

    pub(super) fn text(&self, entry: &CompiledRule) -> &str {
        &self.texts[entry.text.range()]
    }

    pub(super) fn group(&self, entry: &CompiledRule) -> Option<(&str, u32)> {
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

    /// Returns the memory used in bytes. Lookup tables that may be built later are included with
    /// their maximum size.
    pub(super) fn memory_bytes(&self) -> usize {
        let heads = match self.heads.get() {
            Some(heads) => heads.memory_bytes(),
            None if self.entries.len() <= FEW => 0,
            None => RulePrefixIndex::memory_bound(self.entries.len()),
        };
        let parts = match self.parts.get() {
            Some(parts) => parts.memory_bytes(),
            None if self.entries.len() <= FEW_SEARCHES as usize => 0,
            None => {
                // All wildcards are in `patterns`, because a pattern with a wildcard is never in
                // normal form as written.
                let wildcards = memchr_iter(WILD, &self.patterns).count();
                match wildcards > FEW_SEARCHES as usize {
                    true => LiteralIndex::memory_bound(self.entries.len(), wildcards),
                    false => 0,
                }
            }
        };
        self.entries.capacity() * size_of::<CompiledRule>()
            + self.headers.capacity() * size_of::<UserAgentLineSpan>()
            + self.texts.capacity()
            + self.patterns.capacity()
            + heads
            + parts
    }
}

impl CompiledRule {
    pub(super) fn allows(&self) -> bool {
        self.weight.allows()
    }

    /// Returns whether the prefilter's comparison alone decides a match.
    fn is_short_prefix(&self) -> bool {
        !self.wild && !self.anchored && self.pattern.len as usize <= HEAD
    }

    fn shape(&self) -> PatternProperties {
        PatternProperties {
            wild: self.wild,
            anchored: self.anchored,
            bytes: self.weight.bytes(),
        }
    }
}

/// Appends `text`, replacing invalid UTF-8 by U+FFFD.
fn push_text(texts: &mut String, text: &[u8]) -> LineSpan {
    let start = texts.len();
    match std::str::from_utf8(text) {
        Ok(text) => texts.push_str(text),
        Err(_) => texts.push_str(&String::from_utf8_lossy(text)),
    }
    LineSpan::new(start, texts.len())
}

fn narrow(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        FEW_SEARCHES, MANY_QUESTIONS, MANY_SEARCHES, MergedGroupRules, NormalizedPath,
        SpecialCharacters,
    };

    /// Returns for each path the number of the line that decides it: first with unsorted rules,
    /// then with sorted ones.
    fn by_both(lines: &[String], paths: &[String]) -> [Vec<Option<u32>>; 2] {
        let ballast = (0..super::FEW).map(|n| format!("-/q{n}/*"));
        let file: Vec<String> = ballast.chain(lines.iter().cloned()).collect();
        let file = file.join("\n");
        let mut rules = MergedGroupRules::default();
        rules.begin_group(file.as_bytes(), b"", 1);
        for (line, written) in (1..).zip(file.lines()) {
            let (kind, value) = written.split_at(1);
            let place = (file.as_bytes(), written.as_bytes(), line);
            rules.push(
                kind == "+",
                value.as_bytes(),
                SpecialCharacters::Meant,
                place,
            );
        }
        rules.keep(file.as_bytes());
        assert_eq!(rules.head(0), b"/q0/");
        let decide = |path: &String| {
            rules
                .decide(&NormalizedPath::of(path))
                .map(|entry| entry.line)
        };
        let plainly = paths.iter().map(decide).collect();
        let bound = rules.memory_bytes();
        for _ in 0..MANY_QUESTIONS {
            let _ = rules.decide(&NormalizedPath::of("/"));
        }
        assert!(rules.heads.get().is_some() && rules.memory_bytes() <= bound);
        [plainly, paths.iter().map(decide).collect()]
    }

    proptest! {
        #[test]
        fn rules_by_their_heads_decide_as_all_of_them_do(
            lines in prop::collection::vec("[+-]/[ab]{0,4}([*][ab]{0,2}){0,2}[$]?|[+-][ab*]{1,3}", 1..40),
            paths in prop::collection::vec("/[ab]{0,8}", 1..20),
        ) {
            let [plainly, by_heads] = by_both(&lines, &paths);
            prop_assert_eq!(plainly, by_heads);
        }
    }

    /// Tests rules like `/*xy*zw*0ab` with a path that contains nearly all their parts except the
    /// last.
    #[test]
    fn thousands_of_wildcard_rules_search_a_path_at_most_64_times() {
        let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
        let pair = |n: usize| [letter(n), letter(n / 26)].iter().collect::<String>();
        let rule = |n: usize| format!("/*{}*{}*0{}", pair(n), pair(n * 7 + 3), pair(n / 5));
        let file: Vec<String> = (0..20_000).map(rule).collect();
        let file = file.join("\n");
        let mut rules = MergedGroupRules::default();
        rules.begin_group(file.as_bytes(), b"", 1);
        for (line, written) in (1..).zip(file.lines()) {
            let place = (file.as_bytes(), written.as_bytes(), line);
            rules.push(false, written.as_bytes(), SpecialCharacters::Meant, place);
        }
        rules.keep(file.as_bytes());
        let bound = rules.memory_bytes();
        let path = (0..900).map(|n| pair(n * 11 + 5)).collect::<String>();
        let path = format!("/{path}0");
        let path = NormalizedPath::of(&path);
        let before = rules.decide(&path).map(|entry| entry.line);
        for _ in 0..=MANY_SEARCHES / 10_000 {
            let _ = rules.decide(&path);
        }
        assert!(rules.parts.get().is_some());
        assert!(rules.memory_bytes() <= bound);
        let answer = rules.answer(&path);
        assert!(answer.occurrences.is_some());
        assert_eq!(answer.searches, FEW_SEARCHES);
        assert_eq!(rules.decide(&path).map(|entry| entry.line), before);
    }
}

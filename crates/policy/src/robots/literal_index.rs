//! An index of the literal parts between wildcards, for files with many wildcard rules.
//!
//! One pass over a path finds every position where a part may begin. After that, each part of a
//! rule costs only a lookup in a sorted list, however long the path is, instead of a search of the
//! path.

use foldhash::{HashMap, HashMapExt as _};
use memchr::{memchr, memmem};

use super::pattern::WILD;

/// Number of leading bytes by which the index looks up a literal part. A part with more bytes is
/// then compared in full at each candidate position.
const KEY_BYTES: usize = size_of::<u64>();

/// Maximum candidate positions to compare with a long literal part. After that, the part is
/// searched in the rest of the path.
const MAX_COMPARED: usize = 8;

/// The literal parts of all wildcard rules of a file.
#[derive(Debug)]
pub(super) struct LiteralIndex {
    /// Maps the first bytes of a literal part (its key) to the number of the key.
    keys: HashMap<u64, u32>,
    /// The lengths of keys in bytes, without duplicates.
    lengths: Vec<usize>,
    /// The literal parts of all rules, rule by rule. The text before a rule's first wildcard is not
    /// included. The only part that may be empty is the last part of an anchored rule (`$`).
    parts: Box<[LiteralPart]>,
    /// For each rule, the index in `parts` of its first literal part. An additional entry marks the
    /// end of `parts`.
    first: Box<[u32]>,
}

#[derive(Clone, Copy, Debug)]
struct LiteralPart {
    key: u32,
    /// The offset of this literal part in its pattern.
    start: u32,
    len: u32,
}

/// The properties of a wildcard rule that the index needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct WildcardRulePattern<'a> {
    pub(super) pattern: &'a [u8],
    pub(super) anchored: bool,
}

/// The positions of each key (the first bytes of a literal part) in one path.
#[derive(Debug)]
pub(super) struct LiteralOccurrences {
    /// For each key, the number of its list of positions, from 1; 0 if the path does not contain
    /// the key.
    lists: Vec<u32>,
    /// For each list number, the end of the list in `positions`. The first entry is 0.
    ends: Vec<u32>,
    /// Positions in the path: the lists of all keys, one after another, each in ascending order.
    positions: Vec<u32>,
}

impl LiteralIndex {
    /// Indexes `rules` in the order of their numbers; `None` stands for a rule without wildcard.
    pub(super) fn new<'a>(
        rules: impl Iterator<Item = Option<WildcardRulePattern<'a>>>,
    ) -> LiteralIndex {
        let mut keys = HashMap::new();
        let mut has_length = [false; KEY_BYTES + 1];
        let mut parts = Vec::new();
        let mut first = vec![0];
        for rule in rules {
            if let Some(WildcardRulePattern { pattern, anchored }) = rule {
                let mut start = memchr(WILD, pattern).map_or(pattern.len(), |head| head + 1);
                while start <= pattern.len() {
                    let rest = &pattern[start..];
                    let len = memchr(WILD, rest).unwrap_or(rest.len());
                    let is_tail = anchored && start + len == pattern.len();
                    if len > 0 || is_tail {
                        let number = narrow(keys.len());
                        let key = *keys.entry(first_bytes(&rest[..len])).or_insert(number);
                        has_length[len.min(KEY_BYTES)] = true;
                        parts.push(LiteralPart {
                            key,
                            start: narrow(start),
                            len: narrow(len),
                        });
                    }
                    start += len + 1;
                }
            }
            first.push(narrow(parts.len()));
        }
        LiteralIndex {
            keys,
            lengths: (1..=KEY_BYTES).filter(|len| has_length[*len]).collect(),
            parts: parts.into(),
            first: first.into(),
        }
    }

    /// Finds all keys in a normalised path.
    pub(super) fn occurrences(&self, path: &[u8]) -> LiteralOccurrences {
        let mut lists = vec![0; self.keys.len()];
        let mut ends = vec![0];
        let mut hits = Vec::new();
        for at in 0..path.len() {
            let word = first_bytes(&path[at..]);
            let remaining = path.len() - at;
            for len in self.lengths.iter().filter(|len| **len <= remaining) {
                let bytes = word & (u64::MAX >> (8 * (KEY_BYTES - len)));
                let Some(key) = self.keys.get(&bytes) else {
                    continue;
                };
                let list = &mut lists[*key as usize];
                if *list == 0 {
                    *list = narrow(ends.len());
                    ends.push(0);
                }
                ends[*list as usize] += 1;
                hits.push((*list, narrow(at)));
            }
        }
        // Replace each list's count by its start. The next loop advances the start to the end.
        let mut sum = 0;
        for end in &mut ends[1..] {
            sum += std::mem::replace(end, sum);
        }
        let mut positions = vec![0; hits.len()];
        for (list, at) in hits {
            let end = &mut ends[list as usize];
            positions[*end as usize] = at;
            *end += 1;
        }
        LiteralOccurrences {
            lists,
            ends,
            positions,
        }
    }

    /// Returns whether the rule with this number matches `path`. `found` has the positions of the
    /// keys in `path`. The result is the same as that of [`matches`](super::pattern::matches).
    pub(super) fn matches(
        &self,
        number: u32,
        rule: WildcardRulePattern<'_>,
        path: &[u8],
        found: &LiteralOccurrences,
    ) -> bool {
        let number = number as usize;
        let parts = &self.parts[self.first[number] as usize..self.first[number + 1] as usize];
        let (tail, parts) = match (rule.anchored, parts) {
            (true, [parts @ .., tail]) => (tail.of(rule.pattern), parts),
            _ => (&b""[..], parts),
        };
        // Check first whether every part occurs at all, because this rules out most rules that
        // don't match.
        if parts.iter().any(|part| !found.contains(part.key)) {
            return false;
        }
        let head = memchr(WILD, rule.pattern).unwrap_or(rule.pattern.len());
        if !path.starts_with(&rule.pattern[..head]) {
            return false;
        }
        let mut from = head;
        for part in parts {
            match found.next(*part, part.of(rule.pattern), path, from) {
                Some(at) => from = at + part.len as usize,
                None => return false,
            }
        }
        path[from..].ends_with(tail)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.keys.capacity() * KEY_MEMORY
            + size_of_val(&*self.parts)
            + size_of_val(&*self.first)
            + size_of_val(&*self.lengths)
    }

    /// Returns the maximum memory of an index of this many rules with this many wildcards.
    pub(super) fn memory_bound(rules: usize, wildcards: usize) -> usize {
        // A hash table doubles its size when it is full, so count each key twice.
        wildcards * (2 * KEY_MEMORY + size_of::<LiteralPart>())
            + (rules + 1) * size_of::<u32>()
            + KEY_BYTES * size_of::<usize>()
            + 8 * KEY_MEMORY
    }
}

/// Bytes that a key takes in the hash table: its entry, its control byte, and its share of the
/// slots that stay empty (one in eight).
const KEY_MEMORY: usize = 20;

impl LiteralPart {
    fn of<'a>(&self, pattern: &'a [u8]) -> &'a [u8] {
        &pattern[self.start as usize..][..self.len as usize]
    }
}

impl LiteralOccurrences {
    fn contains(&self, key: u32) -> bool {
        self.lists[key as usize] != 0
    }

    /// Returns the first position of `part` in `path` that is not before `from`. `text` is the text
    /// of `part`.
    fn next(&self, part: LiteralPart, text: &[u8], path: &[u8], from: usize) -> Option<usize> {
        let list = self.lists[part.key as usize].checked_sub(1)? as usize;
        let all = &self.positions[self.ends[list] as usize..self.ends[list + 1] as usize];
        let behind = all.partition_point(|at| (*at as usize) < from);
        let mut candidates = all[behind..].iter().map(|at| *at as usize);
        if text.len() <= KEY_BYTES {
            return candidates.next();
        }
        let is_there = |at: &usize| path[*at..].starts_with(text);
        if let Some(at) = candidates.by_ref().take(MAX_COMPARED).find(is_there) {
            return Some(at);
        }
        let rest = candidates.next()?;
        memmem::find(&path[rest..], text).map(|at| rest + at)
    }
}

/// Returns the first eight bytes of `text`, followed by zeros if it is shorter. The zeros are
/// unambiguous, because no part contains a zero byte.
fn first_bytes(text: &[u8]) -> u64 {
    let mut bytes = [0; KEY_BYTES];
    let len = text.len().min(KEY_BYTES);
    bytes[..len].copy_from_slice(&text[..len]);
    u64::from_le_bytes(bytes)
}

fn narrow(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::pattern::{NormalizedPath, SpecialCharacters, matches, push_pattern};
    use super::{LiteralIndex, WildcardRulePattern};

    proptest! {
        #[test]
        fn the_index_matches_like_a_search_of_the_path(
            patterns in prop::collection::vec("/?[ab]{0,3}([*][ab]{0,12}){0,3}[*]?[$]?", 1..40),
            paths in prop::collection::vec("/[ab]{0,40}", 1..10),
        ) {
            let patterns: Vec<_> = patterns.iter().map(|pattern| {
                let mut bytes = Vec::new();
                let shape = push_pattern(pattern.as_bytes(), SpecialCharacters::Meant, &mut bytes);
                (bytes, shape)
            }).collect();
            let rules: Vec<_> = patterns.iter().map(|(pattern, shape)| {
                let anchored = shape.anchored;
                shape.wild.then_some(WildcardRulePattern { pattern, anchored })
            }).collect();
            let index = LiteralIndex::new(rules.iter().copied());
            let wildcards = patterns.iter().map(|(pattern, _)| pattern.len()).sum();
            prop_assert!(index.memory_bytes() <= LiteralIndex::memory_bound(rules.len(), wildcards));
            for path in &paths {
                let path = NormalizedPath::of(path);
                let occurrences = index.occurrences(&path.bytes);
                for ((number, rule), (pattern, shape)) in (0..).zip(&rules).zip(&patterns) {
                    if let Some(rule) = rule {
                        let expected = matches(pattern, *shape, &path.bytes);
                        prop_assert_eq!(index.matches(number, *rule, &path.bytes, &occurrences), expected);
                    }
                }
            }
        }
    }
}

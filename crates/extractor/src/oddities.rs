//! Oddities: the defects and omissions that are collected while a document is read.

use memchr::memchr_iter;

/// A defect of a document, or an omission caused by a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oddity<K> {
    /// The kind of oddity. Each kind occurs at most once in a document's oddities.
    pub what: K,
    /// The line of the first occurrence, from 1. Oddities of the whole document (its charset, its
    /// size) have line 1.
    pub line: u64,
    /// Number of occurrences.
    pub count: u64,
}

/// The oddities of a page, one per kind, so that the list stays short on any input. Each is stored
/// with a byte offset. The line numbers are computed at the end.
#[derive(Debug)]
pub(crate) struct OddityList<K> {
    list: Vec<(K, usize, u64)>,
}

impl<K> Default for OddityList<K> {
    fn default() -> Self {
        OddityList { list: Vec::new() }
    }
}

impl<K: Copy + PartialEq> OddityList<K> {
    /// Notes an oddity at the byte at `offset`.
    pub(crate) fn note(&mut self, kind: K, offset: usize) {
        match self.list.iter_mut().find(|(noted, ..)| *noted == kind) {
            Some((_, _, count)) => *count += 1,
            None => self.list.push((kind, offset, 1)),
        }
    }

    /// Returns the oddities, with their lines in `text`.
    pub(crate) fn into_list(self, text: &str) -> Vec<Oddity<K>> {
        let list = self.list.into_iter().map(|(what, offset, count)| {
            let before = &text.as_bytes()[..offset.min(text.len())];
            let line = 1 + memchr_iter(b'\n', before).count() as u64;
            Oddity { what, line, count }
        });
        list.collect()
    }
}

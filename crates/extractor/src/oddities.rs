//! The oddities of a page while it is read.

use memchr::memchr_iter;

/// Something in a document that was wrong, or that was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oddity<K> {
    /// The kind of oddity. A document's oddities hold each kind once.
    pub what: K,
    /// The line where it was first met; the first line is 1. Where the matter is the
    /// whole document's (its charset, its size), 1.
    pub line: u64,
    /// The number of times that it was met.
    pub count: u64,
}

/// The kinds of oddities that were met, each once, so that they stay few on any input. Where each
/// was first met is kept as a byte of the text: lines are counted for these alone.
#[derive(Debug)]
pub(crate) struct Oddities<K> {
    list: Vec<(K, usize, u64)>,
}

impl<K> Default for Oddities<K> {
    fn default() -> Self {
        Oddities { list: Vec::new() }
    }
}

impl<K: Copy + PartialEq> Oddities<K> {
    /// Notes `kind`, met before the byte at `offset`.
    pub(crate) fn note(&mut self, kind: K, offset: usize) {
        match self.list.iter_mut().find(|(known, ..)| *known == kind) {
            Some((_, _, count)) => *count += 1,
            None => self.list.push((kind, offset, 1)),
        }
    }

    /// The oddities, with their lines in `text`.
    pub(crate) fn into_list(self, text: &str) -> Vec<Oddity<K>> {
        let list = self.list.into_iter().map(|(what, offset, count)| {
            let before = &text.as_bytes()[..offset.min(text.len())];
            let line = 1 + memchr_iter(b'\n', before).count() as u64;
            Oddity { what, line, count }
        });
        list.collect()
    }
}

//! The oddities of a page while it is read.

use memchr::memchr_iter;

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

    /// An oddity of each kind, made of it, its line in `text` and its count.
    pub(crate) fn into_list<O>(self, text: &str, oddity: impl Fn(K, u64, u64) -> O) -> Vec<O> {
        let line = |offset: usize| {
            let before = &text.as_bytes()[..offset.min(text.len())];
            1 + memchr_iter(b'\n', before).count() as u64
        };
        let list = self.list.into_iter();
        list.map(|(kind, offset, count)| oddity(kind, line(offset), count))
            .collect()
    }
}

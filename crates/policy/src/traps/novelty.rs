//! Novelty: how many words of a page were not said before on its host.

use std::collections::VecDeque;

use super::page_fingerprint::{PageFingerprint, SHINGLE};

/// Bytes of the first filter; each further one has twice as many.
const FIRST_BYTES: usize = 2 << 10;
/// Bytes of a filter at most: it holds 32,768 shingles.
const MAX_BYTES: usize = 64 << 10;
/// Bytes of all filters of a host: each page is compared with some 64,000 words of those
/// before it at least, or with all.
const MAX_HOST_BYTES: usize = 3 * MAX_BYTES;
/// Bits for each shingle in a filter: of those that were never seen one in fifty or so is taken for
/// seen by one of them.
const BITS_A_SHINGLE: usize = 16;
const BITS_SET: usize = 3;
/// An image says as much as so many words.
const WORDS_AN_IMAGE: usize = 6;

/// The words that were said lately on one host: filters, of which the oldest is dropped when
/// they take too much room.
#[derive(Debug, Default)]
pub(super) struct Novelty {
    /// The latest is the last.
    filters: VecDeque<Filter>,
}

impl Novelty {
    /// The number of words of a page that are new, images included; takes the page in.
    ///
    /// One new word makes five shingles new, and so does a place where words were left out.
    pub(super) fn meet(&mut self, gist: &PageFingerprint) -> usize {
        let known: Vec<bool> = gist
            .shingles
            .iter()
            .map(|hash| self.is_known(*hash))
            .collect();
        let runs = known
            .chunk_by(|one, next| one == next)
            .filter(|run| !run[0]);
        let at_an_end = known.first() == Some(&false);
        let at_the_other = known.last() == Some(&false);
        let mut new_words: usize = runs.map(|run| words_in(run.len())).sum();
        // A new word at an end of the text is in fewer shingles.
        new_words = match (at_an_end, at_the_other) {
            _ if known.iter().all(|known| !known) => gist.words as usize,
            (true, true) => new_words + 2 * (SHINGLE - 1),
            (false, false) => new_words,
            _ => new_words + SHINGLE - 1,
        };
        let images = gist.images.iter().filter(|image| !self.is_known(**image));
        new_words += WORDS_AN_IMAGE * images.count();
        for hash in gist.shingles.iter().chain(&gist.images) {
            self.insert(*hash);
        }
        new_words
    }

    /// Memory held.
    pub(super) fn bytes(&self) -> usize {
        self.filters.iter().map(Filter::bytes).sum()
    }

    fn is_known(&self, hash: u32) -> bool {
        self.filters.iter().any(|filter| filter.contains(hash))
    }

    fn insert(&mut self, hash: u32) {
        if self.filters.back().is_none_or(Filter::is_full) {
            let last = self.filters.back().map_or(FIRST_BYTES / 2, Filter::bytes);
            self.filters
                .push_back(Filter::new((2 * last).min(MAX_BYTES)));
            while self.bytes() > MAX_HOST_BYTES {
                self.filters.pop_front();
            }
        }
        if let Some(latest) = self.filters.back_mut() {
            latest.insert(hash);
        }
    }
}

/// New words that a run of new shingles comes from.
fn words_in(run: usize) -> usize {
    run.saturating_sub(SHINGLE - 1).max(1)
}

/// A Bloom filter.
#[derive(Debug)]
struct Filter {
    bits: Vec<u64>,
    held: usize,
}

impl Filter {
    fn new(bytes: usize) -> Filter {
        Filter {
            bits: vec![0; bytes / 8],
            held: 0,
        }
    }

    fn bytes(&self) -> usize {
        self.bits.len() * 8
    }

    fn is_full(&self) -> bool {
        self.held * BITS_A_SHINGLE >= self.bits.len() * 64
    }

    /// Bits of a hash: 21 of its spread ones each. A filter has fewer than 2^21 bits, and a
    /// power of two of them.
    fn places(&self, hash: u32) -> [(usize, u64); BITS_SET] {
        let spread = u64::from(hash)
            .wrapping_add(1)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let spread = spread ^ (spread >> 29);
        let mask = self.bits.len() * 64 - 1;
        [0, 21, 42].map(|shift| {
            let bit = (spread >> shift) as usize & mask;
            (bit / 64, 1 << (bit % 64))
        })
    }

    fn contains(&self, hash: u32) -> bool {
        self.places(hash)
            .iter()
            .all(|(word, bit)| self.bits[*word] & bit != 0)
    }

    fn insert(&mut self, hash: u32) {
        let mut grew = false;
        for (word, bit) in self.places(hash) {
            grew |= self.bits[word] & bit == 0;
            self.bits[word] |= bit;
        }
        self.held += usize::from(grew);
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;

    use super::{MAX_HOST_BYTES, Novelty, SHINGLE, WORDS_AN_IMAGE};
    use crate::traps::PageFingerprint;

    fn gist(text: &str) -> PageFingerprint {
        PageFingerprint::of_markup(text, &canonicalize(None, "http://a.example/").unwrap())
    }

    #[test]
    fn words_that_were_not_said_before_are_counted() {
        let mut novelty = Novelty::default();
        let text = "This is the first page of a host, and so all that it says was never said";
        let other = text.replace("host", "site");
        assert_eq!(novelty.meet(&gist(text)), 17);
        assert_eq!(novelty.meet(&gist(text)), 0);
        assert_eq!(novelty.meet(&gist(&other)), 1);
        assert_eq!(
            novelty.meet(&gist(&format!("{text} before"))),
            1 + SHINGLE - 1
        );
        assert_eq!(
            novelty.meet(&gist(&format!("{text} <img src=x>"))),
            WORDS_AN_IMAGE
        );
        assert_eq!(novelty.meet(&gist(&format!("{text} <img src=x>"))), 0);
    }

    #[test]
    fn what_was_said_long_ago_is_forgotten_and_the_memory_is_bounded() {
        let mut novelty = Novelty::default();
        let words = |from: u32| {
            let text: Vec<String> = (from..from + 3000).map(|n| format!("w{n}")).collect();
            gist(&text.join(" "))
        };
        novelty.meet(&words(0));
        assert!(novelty.meet(&words(0)) < 30);
        for n in 1..80 {
            // Some of what was never said passes for said.
            assert!(novelty.meet(&words(n * 3000)) > 2000);
        }
        assert!(novelty.meet(&words(0)) > 2000);
        assert_eq!(novelty.bytes(), MAX_HOST_BYTES);
    }
}

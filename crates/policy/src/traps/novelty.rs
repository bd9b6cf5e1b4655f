//! How much of a page was said before on its host.

use super::gist::{Gist, SHINGLE};

/// Octets of a filter at first.
const FIRST_OCTETS: usize = 2 << 10;
/// Octets of a filter at most: it holds 32,768 shingles, and each page of a host is compared with
/// that many words at least, and twice as many at most, of those before it.
const MOST_OCTETS: usize = 64 << 10;
/// Bits for each shingle in a filter: of those that were never seen one in forty is taken for seen.
const BITS_A_SHINGLE: usize = 16;
/// An image says as much as so many words.
const WORDS_AN_IMAGE: usize = 6;

/// What was said lately on one host: two filters, of which the older one is dropped when
/// the younger is full.
#[derive(Debug)]
pub(super) struct Novelty {
    young: Filter,
    old: Filter,
}

impl Default for Novelty {
    fn default() -> Novelty {
        Novelty {
            young: Filter::new(FIRST_OCTETS),
            old: Filter::new(0),
        }
    }
}

impl Novelty {
    /// How many words of a page are new, images included; takes the page in.
    ///
    /// One new word makes five shingles new, and so does a place where words were left out.
    pub(super) fn meet(&mut self, gist: &Gist) -> usize {
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
    pub(super) fn octets(&self) -> usize {
        (self.young.bits.len() + self.old.bits.len()) * 8
    }

    fn is_known(&self, hash: u32) -> bool {
        self.young.contains(hash) || self.old.contains(hash)
    }

    fn insert(&mut self, hash: u32) {
        if self.young.held * BITS_A_SHINGLE >= self.young.bits.len() * 64 {
            let octets = (self.young.bits.len() * 16).min(MOST_OCTETS);
            self.old = std::mem::replace(&mut self.young, Filter::new(octets));
        }
        self.young.insert(hash);
    }
}

/// New words that a run of new shingles comes from.
fn words_in(run: usize) -> usize {
    run.saturating_sub(SHINGLE - 1).max(1)
}

/// A Bloom filter with two bits a hash.
#[derive(Debug)]
struct Filter {
    bits: Vec<u64>,
    held: usize,
}

impl Filter {
    fn new(octets: usize) -> Filter {
        Filter {
            bits: vec![0; octets / 8],
            held: 0,
        }
    }

    fn places(&self, hash: u32) -> [(usize, u64); 2] {
        let spread = u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        [spread >> 40, spread >> 8 & 0xFF_FFFF].map(|place| {
            let bit = place as usize % (self.bits.len() * 64);
            (bit / 64, 1 << (bit % 64))
        })
    }

    fn contains(&self, hash: u32) -> bool {
        !self.bits.is_empty()
            && self
                .places(hash)
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

    use super::{MOST_OCTETS, Novelty, SHINGLE, WORDS_AN_IMAGE};
    use crate::traps::Gist;

    fn gist(text: &str) -> Gist {
        Gist::of_html(
            text.as_bytes(),
            &canonicalize(None, "http://a.example/").unwrap(),
        )
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
        for n in 1..60 {
            // One in forty of what was never said passes for said.
            assert!(novelty.meet(&words(n * 3000)) > 2000);
        }
        assert!(novelty.meet(&words(0)) > 2000);
        assert_eq!(novelty.octets(), 2 * MOST_OCTETS);
    }
}

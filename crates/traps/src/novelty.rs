//! Novelty: how many words of a page were not said before on its host.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wide::u16x16;

use super::page_fingerprint::{PageFingerprint, SHINGLE};
use super::recent_map::RecentMap;

/// Pages whose number of new words is remembered: more than are under way at one host.
const MAX_TEXTS: usize = 64;
/// The memory of one of them, about.
const TEXT_BYTES: usize = 24;
/// Shingles in one bucket: half a cache line, which is all that a look-up reads.
const BUCKET: usize = 16;
/// Buckets of a host's first page: 2 KiB.
const FIRST_BUCKETS: usize = 64;
/// Buckets of a host at most: 64 KiB. Each page is compared with some 32,000 shingles that were
/// said last, or with all.
const MAX_BUCKETS: usize = 2048;
/// Beyond five eighths of its slots a table grows, as some buckets overflow where others are half
/// full: of what it holds, one shingle in two hundred is lost to that.
const MAX_LOAD: (usize, usize) = (5, 8);
/// An image says as much as so many words.
const WORDS_AN_IMAGE: usize = 6;

/// The words that were said lately on one host. Clones are one memory, which several threads may
/// compare pages with.
#[derive(Clone, Debug, Default)]
pub struct HostWords(Arc<Said>);

#[derive(Debug, Default)]
struct Said {
    compared: Mutex<Compared>,
    /// Memory that it holds.
    bytes: AtomicUsize,
}

/// The words, and the pages that were compared with them last.
#[derive(Debug)]
struct Compared {
    novelty: Novelty,
    /// New words by text. Which of two pages with one text is taken for the first is decided
    /// later, so they say the same.
    by_text: RecentMap<u32>,
}

impl Default for Compared {
    fn default() -> Compared {
        Compared {
            novelty: Novelty::default(),
            by_text: RecentMap::new(MAX_TEXTS),
        }
    }
}

impl HostWords {
    /// Notes in a page's fingerprint how many of its words are new here, and takes them in.
    pub fn compare(&self, fingerprint: &mut PageFingerprint) {
        fingerprint.new_words = Some(self.new_words(fingerprint));
    }

    /// The number of words of a page that are new, images included; takes the page in.
    pub(super) fn new_words(&self, fingerprint: &PageFingerprint) -> u32 {
        let compared = self.0.compared.lock();
        let Compared { novelty, by_text } = &mut *compared.unwrap_or_else(PoisonError::into_inner);
        let new_words = *by_text.entry(fingerprint.said, || {
            u32::try_from(novelty.meet(fingerprint)).unwrap_or(u32::MAX)
        });
        let bytes = novelty.bytes() + by_text.len() * TEXT_BYTES;
        self.0.bytes.store(bytes, Ordering::Relaxed);
        new_words
    }

    /// Memory held.
    pub(super) fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }
}

/// The shingles that were said lately on one host: a hash table of tags of 16 bits, the latest
/// first in each bucket, so that a full bucket forgets what was not said for longest.
///
/// A tag holds the bits by which its bucket is split when the table grows, and 11 or more that tell
/// it from others: of the shingles that were never said, one in a hundred or so passes for said.
#[derive(Debug, Default)]
pub(super) struct Novelty {
    /// A power of two of them. Tag 0 is an empty slot.
    buckets: Vec<[u16; BUCKET]>,
    held: usize,
}

impl Novelty {
    /// The number of words of a page that are new, images included; takes the page in.
    ///
    /// One new word makes five shingles new, and so does a place where words were left out.
    pub(super) fn meet(&mut self, gist: &PageFingerprint) -> usize {
        self.make_room(gist.shingles.len() + gist.images.len());
        // Of each bucket the slots that this page filled: what it says twice is as new as it was.
        let mut from_page = vec![0; self.buckets.len()];
        let mut is_new = |hash: &u32| self.take(*hash, &mut from_page);
        let (mut new_words, mut run, mut known) = (0, 0, 0);
        for hash in &gist.shingles {
            if is_new(hash) {
                run += 1;
                continue;
            }
            // A new word at the begin of the text is in fewer shingles.
            if run > 0 && known == 0 {
                new_words += SHINGLE - 1;
            }
            new_words += words_in(run);
            (run, known) = (0, known + 1);
        }
        new_words += match run {
            _ if known == 0 => gist.words as usize,
            0 => 0,
            // And so is one at its end.
            run => words_in(run) + SHINGLE - 1,
        };
        new_words + WORDS_AN_IMAGE * gist.images.iter().filter(|image| is_new(image)).count()
    }

    /// Memory held.
    pub(super) fn bytes(&self) -> usize {
        self.buckets.len() * size_of::<[u16; BUCKET]>()
    }

    /// Puts a shingle first in its bucket. Returns whether it was not there before this page.
    fn take(&mut self, hash: u32, from_page: &mut [u16]) -> bool {
        let spread = u64::from(hash)
            .wrapping_add(1)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            >> 32;
        let at = spread as usize & (self.buckets.len() - 1);
        let tag = (spread >> FIRST_BUCKETS.trailing_zeros()) as u16;
        let (bucket, filled) = (&mut self.buckets[at], &mut from_page[at]);
        let held = u16x16::new(*bucket);
        let same = held.simd_eq(u16x16::splat(tag)).to_bitmask();
        if same & 1 == 1 {
            // Nothing moves.
            return *filled & 1 == 1;
        }
        let is_known = same != 0;
        let slot = match is_known {
            true => same.trailing_zeros() as usize,
            false => BUCKET - 1,
        };
        self.held += usize::from(!is_known && bucket[slot] == 0);
        bucket.copy_within(..slot, 1);
        bucket[0] = tag;
        let is_new = !is_known || *filled >> slot & 1 == 1;
        let before = *filled & ((1 << slot) - 1);
        let behind = *filled & !(u16::MAX >> (BUCKET - 1 - slot));
        *filled = behind | before << 1 | u16::from(is_new);
        is_new
    }

    /// Grows the table as far as so many more shingles need it.
    fn make_room(&mut self, more: usize) {
        if self.buckets.is_empty() {
            self.buckets.resize(FIRST_BUCKETS, [0; BUCKET]);
        }
        let is_full =
            |buckets: usize| (self.held + more) * MAX_LOAD.1 > buckets * BUCKET * MAX_LOAD.0;
        let mut wanted = self.buckets.len();
        while wanted < MAX_BUCKETS && is_full(wanted) {
            wanted *= 2;
        }
        while self.buckets.len() < wanted {
            self.split();
        }
    }

    /// Doubles the table: each tag says which half its shingle belongs to.
    fn split(&mut self) {
        let half = self.buckets.len();
        let bit = (half / FIRST_BUCKETS).trailing_zeros();
        self.buckets.resize(2 * half, [0; BUCKET]);
        let (lower, upper) = self.buckets.split_at_mut(half);
        for (lower, upper) in lower.iter_mut().zip(upper) {
            let mut ends = [0, 0];
            for tag in std::mem::take(lower).into_iter().filter(|tag| *tag != 0) {
                let is_upper = tag >> bit & 1 == 1;
                let (bucket, end) = match is_upper {
                    true => (&mut *upper, &mut ends[1]),
                    false => (&mut *lower, &mut ends[0]),
                };
                bucket[*end] = tag;
                *end += 1;
            }
        }
    }
}

/// New words that a run of new shingles comes from.
fn words_in(run: usize) -> usize {
    match run {
        0 => 0,
        run => run.saturating_sub(SHINGLE - 1).max(1),
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;

    use super::{Novelty, SHINGLE, WORDS_AN_IMAGE};
    use crate::PageFingerprint;

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
            assert!(novelty.meet(&words(n * 3000)) > 2700);
        }
        assert!(novelty.meet(&words(0)) > 2700);
        assert_eq!(novelty.bytes(), 64 << 10);
    }

    #[test]
    fn what_a_page_says_twice_is_as_new_as_it_was() {
        let mut novelty = Novelty::default();
        let line = "one line that stands in a table again and again ";
        let page = gist(&line.repeat(40));
        assert_eq!(novelty.meet(&page), 400);
        assert_eq!(novelty.meet(&page), 0);
    }

    #[test]
    fn what_is_said_on_each_page_is_kept_while_the_table_grows_and_forgets() {
        let mut novelty = Novelty::default();
        let menu: String = (0..200).map(|n| format!("menu{n} ")).collect();
        let page = |n: u32| {
            let own: String = (0..100).map(|word| format!("w{n}x{word} ")).collect();
            gist(&format!("{menu}{own}"))
        };
        novelty.meet(&page(0));
        for n in 1..1000 {
            // The 100 words of its own, and 4 shingles that reach into the menu.
            let new_words = novelty.meet(&page(n));
            assert!((70..=110).contains(&new_words), "page {n}: {new_words}");
        }
        assert_eq!(novelty.bytes(), 64 << 10);
    }

    /// Shingles of a page share buckets, and each moves the others of its bucket.
    #[test]
    fn ours_a_long_page_that_says_all_twice_is_as_new_as_it_was() {
        let mut novelty = Novelty::default();
        let words: String = (0..1500).map(|n| format!("w{n} ")).collect();
        novelty.meet(&gist(&words.replace('w', "v")));
        let page = gist(&words.repeat(2));
        // Some of what was never said passes for said.
        let (first, again) = (novelty.meet(&page), novelty.meet(&page));
        assert!(first > 2_900 && again < 30, "{first} {again}");
    }
}

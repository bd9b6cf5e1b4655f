//! Novelty: how many words of a page are new on its host.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wide::u16x16;

use super::page_fingerprint::{PageFingerprint, SHINGLE};
use super::recent_map::RecentMap;

/// The number of recent pages whose count of new words is remembered. It exceeds the number of
/// pages of one host that are processed at a time.
const MAX_TEXTS: usize = 64;
/// The approximate memory of one remembered page, in bytes.
const TEXT_BYTES: usize = 24;
/// The number of shingles in one bucket. A bucket is half a cache line, so a look-up reads only one
/// line.
const BUCKET: usize = 16;
/// The number of buckets that a host's table begins with, which take 2 KiB.
const FIRST_BUCKETS: usize = 64;
/// Maximum number of buckets of a host, which take 64 KiB. Each page is compared with all shingles
/// of the host or, if the table is full, with about the latest 32,000.
const MAX_BUCKETS: usize = 2048;
/// The table grows when more than five eighths of its slots are used. At this load some buckets
/// overflow while others are half full, which loses one shingle in two hundred.
const MAX_LOAD: (usize, usize) = (5, 8);
/// The number of words that each new image counts as.
const WORDS_AN_IMAGE: usize = 6;

/// The recent words of one host. Clones share their memory, so several threads can compare pages
/// with the same words.
#[derive(Clone, Debug, Default)]
pub struct HostWords(Arc<SharedHostWords>);

#[derive(Debug, Default)]
struct SharedHostWords {
    compared: Mutex<HostWordsState>,
    /// The memory in use, in bytes.
    bytes: AtomicUsize,
}

/// The recent words of a host, and the counts of the pages that were compared last.
#[derive(Debug)]
struct HostWordsState {
    novelty: RecentShingles,
    /// The number of new words of recent pages, by text. Pages with the same text get the same
    /// number, because it is decided later which of these pages counts as the first.
    by_text: RecentMap<u32>,
}

impl Default for HostWordsState {
    fn default() -> HostWordsState {
        HostWordsState {
            novelty: RecentShingles::default(),
            by_text: RecentMap::new(MAX_TEXTS),
        }
    }
}

impl HostWords {
    /// Counts the words of a page that are new on this host. Stores the count in the page's
    /// fingerprint, and adds the words to the host's words.
    pub fn compare(&self, fingerprint: &mut PageFingerprint) {
        fingerprint.new_words = Some(self.new_words(fingerprint));
    }

    /// Returns the number of new words of a page, including images. Adds the words to the host's
    /// words.
    pub(super) fn new_words(&self, fingerprint: &PageFingerprint) -> u32 {
        let compared = self.0.compared.lock();
        let HostWordsState { novelty, by_text } =
            &mut *compared.unwrap_or_else(PoisonError::into_inner);
        let new_words = *by_text.entry(fingerprint.said, || {
            u32::try_from(novelty.count_new(fingerprint)).unwrap_or(u32::MAX)
        });
        let bytes = novelty.bytes() + by_text.len() * TEXT_BYTES;
        self.0.bytes.store(bytes, Ordering::Relaxed);
        new_words
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }
}

/// The recent shingles of one host, in a hash table of 16-bit tags. In each bucket the latest
/// shingle comes first, so a full bucket drops the shingle that was least recently seen.
///
/// A tag contains the bits that select a bucket when the table grows, and at least 11 bits that
/// distinguish shingles. About one in a hundred new shingles is mistaken for a known one.
#[derive(Debug, Default)]
pub(super) struct RecentShingles {
    /// The number of buckets is a power of two. Tag 0 marks an empty slot.
    buckets: Vec<[u16; BUCKET]>,
    held: usize,
}

impl RecentShingles {
    /// Returns the number of new words of a page, including images, and adds the page's shingles.
    ///
    /// All five shingles that contain a new word are new. Omitting a word from a known text also
    /// makes shingles new.
    pub(super) fn count_new(&mut self, gist: &PageFingerprint) -> usize {
        self.make_room(gist.shingles.len() + gist.images.len());
        // One bit per slot, set if this page filled the slot. The bits let a new shingle count as
        // new each time that the page repeats it.
        let mut from_page = vec![0; self.buckets.len()];
        let mut is_new = |hash: &u32| self.take(*hash, &mut from_page);
        let (mut new_words, mut run, mut known) = (0, 0, 0);
        for hash in &gist.shingles {
            if is_new(hash) {
                run += 1;
                continue;
            }
            // New words at the beginning of a text are in fewer shingles than words in the middle,
            // so add the words that `words_in` misses.
            if run > 0 && known == 0 {
                new_words += SHINGLE - 1;
            }
            new_words += words_in(run);
            (run, known) = (0, known + 1);
        }
        new_words += match run {
            _ if known == 0 => gist.words as usize,
            0 => 0,
            // New words at the end of a text are in fewer shingles too.
            run => words_in(run) + SHINGLE - 1,
        };
        new_words + WORDS_AN_IMAGE * gist.images.iter().filter(|image| is_new(image)).count()
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.buckets.len() * size_of::<[u16; BUCKET]>()
    }

    /// Moves a shingle to the front of its bucket. Returns whether the shingle is new, that is, was
    /// not in the bucket before this page.
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
            // The shingle is already in front.
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

    /// Grows the table if it is too small for `more` further shingles.
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

    /// Doubles the number of buckets. A bit of each tag determines which half its shingle moves to.
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

/// Returns the number of new words that explain `run` consecutive new shingles.
fn words_in(run: usize) -> usize {
    match run {
        0 => 0,
        run => run.saturating_sub(SHINGLE - 1).max(1),
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;

    use super::{RecentShingles, SHINGLE, WORDS_AN_IMAGE};
    use crate::PageFingerprint;

    fn gist(text: &str) -> PageFingerprint {
        PageFingerprint::of_markup(text, &canonicalize(None, "http://a.example/").unwrap())
    }

    #[test]
    fn new_words_are_counted() {
        let mut novelty = RecentShingles::default();
        let text = "This is the first page of a host, and so all that it says was never said";
        let changed_text = text.replace("host", "site");
        assert_eq!(novelty.count_new(&gist(text)), 17);
        assert_eq!(novelty.count_new(&gist(text)), 0);
        assert_eq!(novelty.count_new(&gist(&changed_text)), 1);
        assert_eq!(
            novelty.count_new(&gist(&format!("{text} before"))),
            1 + SHINGLE - 1
        );
        assert_eq!(
            novelty.count_new(&gist(&format!("{text} <img src=x>"))),
            WORDS_AN_IMAGE
        );
        assert_eq!(novelty.count_new(&gist(&format!("{text} <img src=x>"))), 0);
    }

    #[test]
    fn old_words_are_forgotten_and_memory_is_bounded() {
        let mut novelty = RecentShingles::default();
        let words = |from: u32| {
            let text: Vec<String> = (from..from + 3000).map(|n| format!("w{n}")).collect();
            gist(&text.join(" "))
        };
        novelty.count_new(&words(0));
        assert!(novelty.count_new(&words(0)) < 30);
        for n in 1..80 {
            // The bound is lower than 3,000, since some new shingles are mistaken for known ones.
            assert!(novelty.count_new(&words(n * 3000)) > 2700);
        }
        assert!(novelty.count_new(&words(0)) > 2700);
        assert_eq!(novelty.bytes(), 64 << 10);
    }

    #[test]
    fn words_repeated_within_a_page_stay_new() {
        let mut novelty = RecentShingles::default();
        let line = "one line that stands in a table again and again ";
        let page = gist(&line.repeat(40));
        assert_eq!(novelty.count_new(&page), 400);
        assert_eq!(novelty.count_new(&page), 0);
    }

    #[test]
    fn words_of_every_page_are_kept_while_the_table_grows_and_forgets() {
        let mut novelty = RecentShingles::default();
        let menu: String = (0..200).map(|n| format!("menu{n} ")).collect();
        let page = |n: u32| {
            let own: String = (0..100).map(|word| format!("w{n}x{word} ")).collect();
            gist(&format!("{menu}{own}"))
        };
        novelty.count_new(&page(0));
        for n in 1..1000 {
            // Each page has 100 new words. Four shingles that contain both menu words and new words
            // are new, too.
            let new_words = novelty.count_new(&page(n));
            assert!((70..=110).contains(&new_words), "page {n}: {new_words}");
        }
        assert_eq!(novelty.bytes(), 64 << 10);
    }

    /// Repeated shingles count as new even though look-ups reorder the buckets that they share.
    #[test]
    fn a_long_page_that_repeats_everything_is_new() {
        let mut novelty = RecentShingles::default();
        let words: String = (0..1500).map(|n| format!("w{n} ")).collect();
        novelty.count_new(&gist(&words.replace('w', "v")));
        let page = gist(&words.repeat(2));
        // The bound is lower than 3,000, since some new shingles are mistaken for known ones.
        let (first, again) = (novelty.count_new(&page), novelty.count_new(&page));
        assert!(first > 2_900 && again < 30, "{first} {again}");
    }
}

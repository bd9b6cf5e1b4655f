//! The fingerprint of a page's text and images: a few numbers that show whether another page has
//! the same content.

use std::array;
use std::ops::Range;

use crawl_weburl::CanonicalUrl;
use memchr::memchr;

use super::simhash::BitVoteCounts;
use super::stable_hash::{mix, of, of_lower_case, of_word};
use super::word_scan::{WordScan, is_word, word_bytes};

/// Maximum number of words of a page that count: the first ones.
/// Beyond the limit: ignored.
const MAX_WORDS: usize = 4096;
/// The initial capacity for words, enough for most pages.
const USUAL_WORDS: usize = 1024;
/// Maximum number of images of a page that count: the first ones.
/// Beyond the limit: ignored.
const MAX_IMAGES: usize = 64;
/// The number of words in a shingle. Each word is in five shingles, so one changed word affects
/// five shingles.
pub(super) const SHINGLE: usize = 5;
/// Maximum number of words of the page's own URL that are recognized in the page's text.
const MAX_OWN_WORDS: usize = 32;
/// The minimum length in bytes of a word of the page's own URL that is recognized in the page's
/// text. Shorter words are too common.
const MIN_OWN_WORD: usize = 3;
/// The number that replaces a date or a word of the page's own URL. Several such words in a row
/// become a single placeholder.
const PLACEHOLDER: u64 = 1;

/// The text and the images of a page as a few numbers.
///
/// The text is everything between the tags, without scripts and styles, in lower case. Days, years,
/// names of months and weekdays, and words of the page's own URL are all treated as equal, because
/// the pages of a calendar differ in nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFingerprint {
    /// The number of words, at most 4,096.
    pub words: u32,
    /// The hash of the text including dates and words of the page's own URL.
    pub text: u64,
    /// The hash of the content: the images, and the text in which dates and words of the page's own
    /// URL are all replaced by the same placeholder.
    pub said: u64,
    /// The simhash of the content without images. The simhashes of nearly equal pages differ in few
    /// bits.
    pub simhash: u64,
    /// The number of words that are new on the page's host. `None` if the page was not compared
    /// with the host's words.
    pub(super) new_words: Option<u32>,
    /// The hash of each shingle (five consecutive words of the content).
    pub(super) shingles: Box<[u32]>,
    /// The hash of each image.
    pub(super) images: Box<[u32]>,
}

impl PageFingerprint {
    /// Returns the number of words that are new on the page's host. `None` if the page was not
    /// compared with the host's words.
    #[must_use]
    pub fn new_words(&self) -> Option<u32> {
        self.new_words
    }

    /// Sets the number of words that are new on the page's host. For callers that know this number
    /// already.
    pub fn set_new_words(&mut self, words: u32) {
        self.new_words = Some(words);
    }
}

/// Computes the fingerprint of a page from its texts and images, in page order.
#[derive(Debug)]
pub struct PageFingerprintBuilder {
    /// Hashes of the words of the page's own URL.
    own: Vec<u64>,
    /// A set with a bit for each hash in `own`. Testing the bit avoids most comparisons with `own`.
    own_bits: u64,
    text: u64,
    said: u64,
    words: Vec<u64>,
    images: Vec<u32>,
}

impl PageFingerprintBuilder {
    /// Creates a builder for the page at `url`.
    #[must_use]
    pub fn new(url: &CanonicalUrl) -> PageFingerprintBuilder {
        let path = url.path_and_query().as_bytes();
        let words = path.split(|byte| !is_word(*byte));
        let long = words.filter(|word| word.len() >= MIN_OWN_WORD);
        let hashes = long.map(|word| of_lower_case(word, word.len()));
        let own: Vec<_> = hashes.take(MAX_OWN_WORDS).collect();
        PageFingerprintBuilder {
            own_bits: own.iter().fold(0, |bits, hash| bits | bit_of(*hash)),
            own,
            text: 0,
            said: 0,
            words: Vec::with_capacity(USUAL_WORDS),
            images: Vec::new(),
        }
    }

    /// Returns true if the maximum number of words was reached, so that further words are ignored.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.words.len() >= MAX_WORDS
    }

    /// Adds texts in page order. Each text is a part of `page` between two tags, as written.
    /// Character references don't count as words.
    pub fn texts(&mut self, page: &str, texts: &[Range<usize>]) {
        for text in texts {
            let mut at = text.start;
            while at < text.end && !self.is_full() {
                at += self.first_words(page.as_bytes(), at..text.end);
            }
        }
    }

    /// Adds the words at the beginning of a text. Returns the number of bytes consumed.
    #[inline]
    fn first_words(&mut self, page: &[u8], text: Range<usize>) -> usize {
        let block = WordScan::at(page, text.clone());
        let mut words = block.words;
        while words != 0 {
            let from = words.trailing_zeros() as usize;
            let length = (!(words >> from)).trailing_zeros() as usize;
            let may_continue = from + length == block.length && block.length < text.len();
            if may_continue && !block.is_before_reference {
                return self.word_at_the_end(page, text, from);
            }
            self.word(&page[text.start + from..], length);
            if self.is_full() {
                break;
            }
            // Clear the bits of this word. The addition carries through all of them, because they
            // are consecutive ones.
            words &= words.wrapping_add(1 << from);
        }
        match block.is_before_reference {
            true => block.length + reference_bytes(&page[text.start + block.length..text.end]),
            false => block.length,
        }
    }

    /// Adds a word at the end of a block. The word begins `from` bytes into the text and may
    /// continue past the block. Returns the number of bytes consumed.
    #[cold]
    fn word_at_the_end(&mut self, page: &[u8], text: Range<usize>, from: usize) -> usize {
        // Consume only the bytes before the word, so that the word begins the next block.
        if from > 0 {
            return from;
        }
        let length = word_bytes(&page[text.clone()]);
        self.word(&page[text.start..], length);
        length
    }

    /// Adds the word at the beginning of `page`. `length` is the length of the word in bytes.
    #[inline(always)]
    fn word(&mut self, page: &[u8], length: usize) {
        let (hash, beginning) = of_word(page, length);
        self.text = mix(self.text, hash);
        let word = match is_of_a_date(&page[..length], beginning) || self.is_own(hash) {
            false => hash,
            true if self.words.last() == Some(&PLACEHOLDER) => return,
            true => PLACEHOLDER,
        };
        self.words.push(word);
        self.said = mix(self.said, word);
    }

    /// Returns whether the hash is that of a word of the page's own URL.
    #[inline]
    fn is_own(&self, hash: u64) -> bool {
        self.own_bits & bit_of(hash) != 0 && self.own.contains(&hash)
    }

    /// Adds an image, given its tag as written.
    pub fn image(&mut self, tag: &str) {
        if self.images.len() < MAX_IMAGES && !self.is_full() {
            self.images.push(of(tag.as_bytes()) as u32);
        }
    }

    /// Returns the fingerprint of all texts and images that were added.
    #[must_use]
    pub fn finish(self) -> PageFingerprint {
        let (shingles, simhash) = shingles(&self.words);
        PageFingerprint {
            words: u32::try_from(self.words.len()).unwrap_or(u32::MAX),
            text: self.text,
            said: self
                .images
                .iter()
                .fold(self.said, |hash, image| mix(hash, u64::from(*image))),
            simhash,
            new_words: None,
            shingles,
            images: self.images.into(),
        }
    }
}

/// Returns the hash of each shingle (five consecutive words), and the simhash of all shingles.
/// Fewer than five words form one shingle.
fn shingles(words: &[u64]) -> (Box<[u32]>, u64) {
    /// The number of shingles that are computed together.
    const AT_ONCE: usize = 4;
    /// The number of words in the shingles that are computed together.
    const WORDS_AT_ONCE: usize = AT_ONCE + SHINGLE - 1;
    let shingle = |words: &[u64]| words.iter().fold(0, |hash, word| mix(hash, *word));
    let count = match words.len() {
        0 => 0,
        1..SHINGLE => 1,
        count => count - (SHINGLE - 1),
    };
    let mut votes = BitVoteCounts::default();
    let mut shingles = vec![0; count];
    let (fours, rest) = shingles.as_chunks_mut::<AT_ONCE>();
    let mut words = words;
    for four in fours {
        if let Some(some) = words.first_chunk::<WORDS_AT_ONCE>() {
            let [a, b, c, d] = array::from_fn(|n| shingle(&some[n..n + SHINGLE]));
            votes.add_four([a, b, c, d]);
            *four = [a as u32, b as u32, c as u32, d as u32];
            words = &words[AT_ONCE..];
        }
    }
    for (n, place) in rest.iter_mut().enumerate() {
        let hash = shingle(&words[n..words.len().min(n + SHINGLE)]);
        votes.add(hash);
        *place = hash as u32;
    }
    (shingles.into(), votes.result())
}

/// Returns the bit of a hash in a bit set.
#[inline]
fn bit_of(hash: u64) -> u64 {
    1 << (hash % 64)
}

/// Returns the length of a character reference such as `&amp;`. Returns 1, the length of the
/// ampersand, if no character reference begins there.
fn reference_bytes(text: &[u8]) -> usize {
    const MAX: usize = 10;
    let near = &text[..text.len().min(MAX)];
    let name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
    match memchr(b';', near) {
        Some(end) if near[1..end].iter().all(name) => end + 1,
        _ => 1,
    }
}

/// Returns whether a word is a day, an hour, a year, or the name of a month or weekday. `beginning`
/// contains the word's first bytes in lower case.
#[inline(always)]
fn is_of_a_date(word: &[u8], beginning: u64) -> bool {
    let [a, b, c, ..] = beginning.to_le_bytes();
    match a {
        b'0'..=b'9' => is_number_of_a_date(word),
        _ => MAY_BEGIN_A_NAME[place_of([a, b, c])] && is_name([a, b, c], word),
    }
}

#[inline(never)]
fn is_number_of_a_date(word: &[u8]) -> bool {
    let year = word.len() == 4 && matches!(&word[..2], b"19" | b"20" | b"21");
    (word.len() <= 2 || year) && word.iter().all(u8::is_ascii_digit)
}

/// Returns whether a word is the name of a month or weekday. `beginning` contains the word's first
/// three letters.
#[inline(never)]
fn is_name(beginning: [u8; 3], word: &[u8]) -> bool {
    let named = NAMES_OF_DAYS.iter().find(|name| *name.0 == beginning);
    let rest = word.get(beginning.len()..).unwrap_or_default();
    named
        .is_some_and(|(_, rest_of_name)| rest.is_empty() || rest.eq_ignore_ascii_case(rest_of_name))
}

/// The names of months and weekdays. Each is split into its first three letters, which count as a
/// name too, and the remaining letters.
const NAMES_OF_DAYS: [(&[u8; 3], &[u8]); 19] = [
    (b"jan", b"uary"),
    (b"feb", b"ruary"),
    (b"mar", b"ch"),
    (b"apr", b"il"),
    (b"may", b""),
    (b"jun", b"e"),
    (b"jul", b"y"),
    (b"aug", b"ust"),
    (b"sep", b"tember"),
    (b"oct", b"ober"),
    (b"nov", b"ember"),
    (b"dec", b"ember"),
    (b"mon", b"day"),
    (b"tue", b"sday"),
    (b"wed", b"nesday"),
    (b"thu", b"rsday"),
    (b"fri", b"day"),
    (b"sat", b"urday"),
    (b"sun", b"day"),
];

/// Whether a word may be in `NAMES_OF_DAYS`, by the value of `place_of` for its first three
/// letters. This is a quick test that excludes most other words.
static MAY_BEGIN_A_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut name = 0;
    while name < NAMES_OF_DAYS.len() {
        table[place_of(*NAMES_OF_DAYS[name].0)] = true;
        name += 1;
    }
    table
};

#[inline]
const fn place_of([a, b, c]: [u8; 3]) -> usize {
    let letters = u32::from_le_bytes([a, b, c, 0]);
    (letters.wrapping_mul(0x9E37_79B9) >> 24) as usize
}

#[cfg(test)]
impl PageFingerprint {
    /// Computes the fingerprint of markup that contains no comments, scripts or styles.
    pub(super) fn of_markup(html: &str, url: &CanonicalUrl) -> PageFingerprint {
        let mut reader = PageFingerprintBuilder::new(url);
        let mut at = 0;
        for part in html.split_inclusive('>') {
            let (text, tag) = part.split_at(part.find('<').unwrap_or(part.len()));
            reader.texts(html, std::slice::from_ref(&(at..at + text.len())));
            at += part.len();
            if tag.starts_with("<img") {
                reader.image(tag);
            }
        }
        reader.finish()
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;
    use proptest::prelude::*;

    use super::super::stable_hash::{mix, of};
    use super::{MAX_WORDS, PLACEHOLDER, PageFingerprint};

    const NAMES: [&str; 19] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];

    /// Computes the hashes of text and content word by word. The text must contain no character
    /// references.
    fn hashes_by_words(text: &str, own: &[&str]) -> (u64, u64) {
        let is_date = |word: &str| match word.bytes().all(|byte| byte.is_ascii_digit()) {
            true => {
                let year = ["19", "20", "21"].iter().any(|year| word.starts_with(year));
                word.len() <= 2 || word.len() == 4 && year
            }
            false => NAMES.iter().any(|name| word == *name || word == &name[..3]),
        };
        let lower = text.to_ascii_lowercase();
        let words = lower.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric());
        let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
        let text = words.iter().map(|word| of(word.as_bytes()));
        let content = words
            .iter()
            .map(|word| match is_date(word) || own.contains(word) {
                true => PLACEHOLDER,
                false => of(word.as_bytes()),
            });
        let mut content: Vec<_> = content.collect();
        content.dedup_by(|word, last| [*word, *last] == [PLACEHOLDER; 2]);
        (text.fold(0, mix), content.into_iter().fold(0, mix))
    }

    fn gist_at(html: &str, url: &str) -> PageFingerprint {
        PageFingerprint::of_markup(html, &canonicalize(None, url).unwrap())
    }

    fn gist(html: &str) -> PageFingerprint {
        gist_at(html, "http://a.example/")
    }

    #[test]
    fn letter_case_and_character_references_are_ignored() {
        let plain = gist("Hello wide world");
        for html in [
            "<p>Hello<b> wide</b>\nWORLD</p>",
            "Hello&nbsp;wide &amp; world",
            "Hello&#160;wide &#x26; world",
            "Hello & wide; world",
        ] {
            assert_eq!(gist(html).text, plain.text, "{html}");
            assert_eq!(gist(html).words, 3, "{html}");
        }
    }

    #[test]
    fn a_calendar_has_the_same_content_each_month() {
        let page = |month: &str, year: u32, days: u32| {
            let days: String = (1..=days).map(|day| format!("<td>{day}</td>")).collect();
            gist(&format!(
                "<title>{month} {year}</title><h1>No events in {month}</h1>{days}"
            ))
        };
        let (one, other) = (page("February", 2031, 28), page("Mar", 2032, 31));
        assert_eq!(one.said, other.said);
        assert_ne!(one.text, other.text);
        assert_ne!(
            one.said,
            gist("<title>March 2031</title><h1>A concert in March</h1>").said
        );
    }

    #[test]
    fn words_of_a_date_are_recognised() {
        for (one, other, is_same) in [
            ("1999", "2031", true),
            ("1999", "2131", true),
            ("1899", "2031", false),
            ("2231", "2031", false),
            ("7", "31", true),
            ("7", "731", false),
            ("123", "456", false),
            ("12345", "20315", false),
            ("july", "Mon", true),
            ("September", "wed", true),
            ("fox", "dog", false),
            ("sept", "march", false),
            ("mayor", "may", false),
            ("marches", "fridays", false),
        ] {
            let content_of = |word: &str| gist(&format!("Nothing on {word} here")).said;
            assert_eq!(
                content_of(one) == content_of(other),
                is_same,
                "{one} {other}"
            );
        }
    }

    #[test]
    fn words_of_the_own_url_are_ignored() {
        let lost = |name: &str| {
            gist_at(
                &format!("<h1>Nothing at {name}</h1>"),
                &format!("http://a.example/x/{name}"),
            )
        };
        assert_eq!(lost("lantern").said, lost("Harbour").said);
        assert_ne!(
            lost("lantern").said,
            gist("<h1>Something at lantern</h1>").said
        );
    }

    #[test]
    fn images_are_content() {
        assert_ne!(
            gist("Next <img src=1.jpg>").said,
            gist("Next <img src=2.jpg>").said
        );
    }

    #[test]
    fn near_texts_have_near_simhashes() {
        let words: Vec<String> = (0..400_u32)
            .map(|n| format!("w{}", n * 7919 % 1009))
            .collect();
        let text = words.join(" ");
        let near = text.replacen(&words[200], "changed", 1);
        let far: Vec<&str> = words.iter().rev().map(String::as_str).collect();
        let distance = |other: &str| (gist(&text).simhash ^ gist(other).simhash).count_ones();
        assert!(distance(&near) <= 6, "{}", distance(&near));
        assert!(distance(&far.join(" ")) > 12);
    }

    #[test]
    fn only_the_first_words_of_a_long_page_count() {
        let long = "word ".repeat(3 * MAX_WORDS);
        assert_eq!(gist(&long).words as usize, MAX_WORDS);
    }

    #[test]
    fn names_of_days_and_months_are_equal() {
        for name in NAMES {
            for word in [
                name,
                &name[..3],
                &name.to_ascii_uppercase(),
                "7",
                "31",
                "2031",
            ] {
                assert_eq!(gist(word).said, gist("1").said, "{word}");
            }
            for word in [&name[..name.len() - 1], &format!("{name}s"), "777", "1876"] {
                let is_short = word.len() == 3 && name.starts_with(word);
                assert_eq!(gist(word).said == gist("1").said, is_short, "{word}");
            }
        }
    }

    proptest! {
        #[test]
        fn words_hash_equally_in_bulk_and_one_at_a_time(
            text in "([a-zA-Z0-9é]{0,18}|May|monday|OCTOBER|19[0-9]{2}|lantern|[ .,\n-]{1,3}| ){0,60}",
        ) {
            let gist = gist_at(&text, "http://a.example/lantern?x");
            prop_assert_eq!((gist.text, gist.said), hashes_by_words(&text, &["lantern"]));
        }

        #[test]
        fn any_text_gives_a_fingerprint(text in ".{0,300}") {
            let gist = gist(&text);
            prop_assert!(gist.words as usize <= text.len());
        }
    }
}

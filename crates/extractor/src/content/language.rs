//! The language of a page, as declared and as detected from its text.

use super::content_limits::{ContentLimits, ContentOddityKind, ContentOddityList};
use super::text_amount::TextAmountCounter;

/// Minimum length of a text for guessing its language, in half words (see [`TextAmountCounter`]).
const MIN_WEIGHT: u32 = 24;
/// Minimum confidence of a guess. Less confident guesses are dropped.
const MIN_CONFIDENCE: f64 = 0.5;
/// Minimum confidence of a guess that overrides the declared language. No more text is examined
/// once a guess has this confidence.
const CLEAR: f64 = 0.9;
/// Number of bytes of text to examine first, which usually suffices for a confident guess. More
/// text is examined only if the guess is not confident, because detection is slow.
const FIRST_BYTES: usize = 1024;

/// The language of a page.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PageLanguage {
    /// The declared language, from the strongest source.
    pub declared: Option<DeclaredLanguage>,
    /// The language detected in the text. `None` if the text is short or ambiguous.
    pub detected: Option<DetectedLanguage>,
}

/// A declared language.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeclaredLanguage {
    /// The language tag (BCP 47) as written, but with each `_` replaced by `-`.
    pub tag: String,
    /// The source of the declaration.
    pub by: LanguageSource,
}

/// The source of a declared language, strongest first. The HTML Standard (3.2.6.2) defines all
/// except the last one, which is from OpenGraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::Display)]
#[non_exhaustive]
#[strum(serialize_all = "snake_case")]
pub enum LanguageSource {
    /// `lang` of the `html` element or, if missing, of the `body`.
    Lang,
    /// `xml:lang` of `html` or `body`.
    #[strum(serialize = "xml:lang")]
    XmlLang,
    /// `meta http-equiv=content-language`
    Meta,
    /// The `Content-Language` header.
    Header,
    /// `og:locale`
    #[strum(serialize = "og:locale")]
    OpenGraph,
}

/// A language detected in the text.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct DetectedLanguage {
    /// The ISO 639-1 code of the language, or its ISO 639-3 code if it has no ISO 639-1 code.
    pub code: &'static str,
    /// The confidence of the detector, from 0.5 to 1.
    pub confidence: f64,
}

impl DeclaredLanguage {
    /// Returns the first subtag in lower case.
    fn primary(&self) -> String {
        let primary = self.tag.split('-').next().unwrap_or_default();
        primary.to_ascii_lowercase()
    }
}

impl PageLanguage {
    /// Returns the language without region or script, in lower case. Usually this is the declared
    /// language. The detected language overrides it if the detection is certain and the detector
    /// also knows the declared language, because many templates declare English for any text.
    #[must_use]
    pub fn code(&self) -> Option<String> {
        let declared = self.declared.as_ref().map(DeclaredLanguage::primary);
        let Some(detected) = self.detected else {
            return declared;
        };
        let wins = |declared: &String| detected.confidence >= CLEAR && is_detectable(declared);
        let declared = declared.filter(|declared| !wins(declared));
        Some(declared.unwrap_or_else(|| detected.code.to_owned()))
    }

    /// Returns the tag of the language that [`PageLanguage::code`] returns. If that is the declared
    /// language, the tag includes the declared region and script.
    #[must_use]
    pub fn tag(&self) -> Option<String> {
        let code = self.code()?;
        let declared = self.declared.as_ref();
        let declared = declared.filter(|declared| declared.primary() == code);
        Some(declared.map_or(code, |declared| declared.tag.clone()))
    }

    /// Records a declared language, if its source is stronger than the source of the previous
    /// declaration. A list of languages, which only `Meta` and `Header` allow, is ignored.
    pub(super) fn declare(
        &mut self,
        value: &str,
        by: LanguageSource,
        offset: usize,
        oddities: &mut ContentOddityList,
    ) {
        let value = value.trim();
        let is_list =
            matches!(by, LanguageSource::Meta | LanguageSource::Header) && value.contains(',');
        if value.is_empty() || is_list {
            return;
        }
        if !is_tag(value) {
            return oddities.note(ContentOddityKind::BadLanguageTag, offset);
        }
        if self.declared.as_ref().is_none_or(|other| by < other.by) {
            self.declared = Some(DeclaredLanguage {
                tag: value.replace('_', "-"),
                by,
            });
        }
    }
}

/// Detects the language of `text` from its beginning. `None` if the text is short or ambiguous.
/// `declared` is the language that the page declares: if it is English, a shorter text is enough to
/// detect English.
pub(super) fn detect<'a>(
    mut text: impl Iterator<Item = &'a str>,
    declared: Option<&DeclaredLanguage>,
    limits: &ContentLimits,
) -> Option<DetectedLanguage> {
    let english = DetectedLanguage {
        code: "en",
        confidence: 1.0,
    };
    let proof = EnglishProof::of(declared);
    let max_bytes = limits.language_bytes;
    let mut sample = LanguageSample::default();
    sample.fill(&mut text, FIRST_BYTES.min(max_bytes));
    if proof.holds_for(&sample.text) {
        return Some(english);
    }
    let first = sample.guess();
    if first.is_some_and(|guess| guess.confidence >= CLEAR) || sample.bytes() >= max_bytes {
        return first;
    }
    match sample.fill(&mut text, max_bytes) {
        0 => first,
        _ if proof.holds_for(&sample.text) => Some(english),
        _ => sample.guess(),
    }
}

/// The beginning of a text, for detecting its language.
#[derive(Debug, Default)]
struct LanguageSample<'a> {
    text: String,
    /// The rest of the last part, which did not fit into `text`.
    rest: &'a str,
    weigher: TextAmountCounter,
    weight: u32,
}

impl<'a> LanguageSample<'a> {
    fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Adds text from `parts` until the sample has `bytes` bytes. Returns the number of bytes
    /// added.
    fn fill(&mut self, parts: &mut impl Iterator<Item = &'a str>, bytes: usize) -> usize {
        let before = self.bytes();
        while self.bytes() < bytes {
            if self.rest.is_empty() {
                match parts.next() {
                    Some(part) => self.rest = part,
                    None => break,
                }
            }
            let room = bytes - self.bytes();
            let (part, rest) = self.rest.split_at(self.rest.floor_char_boundary(room));
            self.weight += part.chars().map(|c| self.weigher.add(c)).sum::<u32>();
            self.text.push_str(part);
            self.rest = rest;
            match rest.is_empty() {
                true => self.text.push(' '),
                // The next character doesn't fit into the sample.
                false => break,
            }
        }
        self.bytes() - before
    }

    fn guess(&self) -> Option<DetectedLanguage> {
        if self.weight < MIN_WEIGHT {
            return None;
        }
        let info = whatlang::detect(&self.text)?;
        let confidence = info.confidence();
        let is_confident = confidence >= MIN_CONFIDENCE;
        is_confident.then(|| DetectedLanguage {
            code: two_letters(info.lang().code()),
            confidence,
        })
    }
}

/// Frequent words that nearly every English text contains, whatever its topic.
const ENGLISH: [&str; 24] = [
    "the", "of", "and", "to", "in", "is", "that", "for", "it", "as", "be", "by", "this", "with",
    "are", "or", "from", "which", "not", "an", "was", "you", "at", "on",
];
/// A text with more than one non-ASCII byte in this many bytes doesn't count as English. English
/// texts have non-ASCII bytes only in quotation marks, dashes and names.
const BYTES_PER_NON_ASCII: usize = 10;
/// Maximum bytes of a word that counts in an [`EnglishProof`]. Longer words are not looked up.
const MAX_ENGLISH_BYTES: usize = 5;

/// A test that proves that a text is in English. The full detector takes twenty times as long,
/// because it compares dozens of languages.
struct EnglishProof {
    /// The words to count: frequent English words.
    words: &'static [&'static str],
    /// Minimum number of different words of `words` in the text.
    different: u32,
    /// At least one in this many words of the text must be in `words`.
    one_in: usize,
}

impl EnglishProof {
    /// The test for any page. The full detector returns English for every text that passes this
    /// test.
    const OF_ANY: EnglishProof = EnglishProof {
        words: &ENGLISH,
        different: 7,
        one_in: 5,
    };
    /// The test for a page that declares English. The reference of a programming language has few
    /// frequent words, so this test requires fewer. To exclude other languages, it counts only
    /// words that are rare in them. For example, `for`, `to` and `by` don't count, because they are
    /// frequent in Danish.
    const OF_DECLARED: EnglishProof = EnglishProof {
        words: &[
            "the", "that", "this", "with", "are", "from", "which", "not", "you",
        ],
        different: 4,
        one_in: 16,
    };

    fn of(declared: Option<&DeclaredLanguage>) -> EnglishProof {
        match declared.is_some_and(|declared| declared.primary() == "en") {
            true => EnglishProof::OF_DECLARED,
            false => EnglishProof::OF_ANY,
        }
    }

    fn holds_for(&self, text: &str) -> bool {
        // Reject a text in another script, even if it contains an English sentence. If the script
        // has no spaces between words, the rest of the text would count as only a few words.
        let non_ascii = text.bytes().filter(|byte| !byte.is_ascii()).count();
        if non_ascii * BYTES_PER_NON_ASCII > text.len() {
            return false;
        }
        let (mut words, mut matches, mut different) = (0_usize, 0_usize, 0_u32);
        let bounds = |byte: &u8| !byte.is_ascii_alphabetic() && *byte < 0x80;
        for word in text.as_bytes().split(bounds) {
            words += usize::from(!word.is_empty());
            if !(2..=MAX_ENGLISH_BYTES).contains(&word.len()) {
                continue;
            }
            let is = |other: &&str| word.eq_ignore_ascii_case(other.as_bytes());
            if let Some(at) = self.words.iter().position(is) {
                matches += 1;
                different |= 1 << at;
            }
        }
        different.count_ones() >= self.different && matches * self.one_in >= words
    }
}

/// Checks loosely whether a value is a language tag (RFC 5646 section 2.1, and `_` is allowed too).
/// Subtags have 1 to 8 letters and digits. The first one has 2 to 8 letters, or is `x` or `i` if
/// more subtags follow.
fn is_tag(value: &str) -> bool {
    let mut subtags = value.split(['-', '_']);
    let first = subtags.next().unwrap_or_default();
    let is_language =
        first.bytes().all(|byte| byte.is_ascii_alphabetic()) && (2..=8).contains(&first.len());
    let is_grandfathered = matches!(first, "x" | "X" | "i" | "I") && value.len() > 2;
    let mut rest = subtags.take(8);
    value.len() <= 64
        && (is_language || is_grandfathered)
        && rest.all(|subtag| {
            (1..=8).contains(&subtag.len())
                && subtag.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}

/// Returns whether the detector knows the language with this ISO 639-1 or 639-3 code.
fn is_detectable(code: &str) -> bool {
    CODES
        .iter()
        .any(|(three, two)| code == *two || code == *three)
}

/// Converts an ISO 639-3 code to ISO 639-1. Returns the code itself if it isn't in `CODES`.
fn two_letters(code: &'static str) -> &'static str {
    let codes = CODES.iter().find(|(three, _)| *three == code);
    codes.map_or(code, |(_, two)| two)
}

/// ISO 639-3 and 639-1 codes of the detectable languages.
const CODES: &[(&str, &str)] = &[
    ("afr", "af"),
    ("aka", "ak"),
    ("amh", "am"),
    ("ara", "ar"),
    ("aze", "az"),
    ("bel", "be"),
    ("ben", "bn"),
    ("bul", "bg"),
    ("cat", "ca"),
    ("ces", "cs"),
    ("cmn", "zh"),
    ("cym", "cy"),
    ("dan", "da"),
    ("deu", "de"),
    ("ell", "el"),
    ("eng", "en"),
    ("epo", "eo"),
    ("est", "et"),
    ("fin", "fi"),
    ("fra", "fr"),
    ("guj", "gu"),
    ("heb", "he"),
    ("hin", "hi"),
    ("hrv", "hr"),
    ("hun", "hu"),
    ("hye", "hy"),
    ("ind", "id"),
    ("ita", "it"),
    ("jav", "jv"),
    ("jpn", "ja"),
    ("kan", "kn"),
    ("kat", "ka"),
    ("khm", "km"),
    ("kor", "ko"),
    ("lat", "la"),
    ("lav", "lv"),
    ("lit", "lt"),
    ("mal", "ml"),
    ("mar", "mr"),
    ("mkd", "mk"),
    ("mya", "my"),
    ("nep", "ne"),
    ("nld", "nl"),
    ("nob", "nb"),
    ("ori", "or"),
    ("pan", "pa"),
    ("pes", "fa"),
    ("pol", "pl"),
    ("por", "pt"),
    ("ron", "ro"),
    ("rus", "ru"),
    ("sin", "si"),
    ("slk", "sk"),
    ("slv", "sl"),
    ("sna", "sn"),
    ("spa", "es"),
    ("srp", "sr"),
    ("swe", "sv"),
    ("tam", "ta"),
    ("tel", "te"),
    ("tgl", "tl"),
    ("tha", "th"),
    ("tuk", "tk"),
    ("tur", "tr"),
    ("ukr", "uk"),
    ("urd", "ur"),
    ("uzb", "uz"),
    ("vie", "vi"),
    ("yid", "yi"),
    ("zul", "zu"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_detectable_language_has_a_short_code() {
        for lang in whatlang::Lang::all() {
            assert_eq!(two_letters(lang.code()).len(), 2, "{lang:?}");
        }
    }

    #[test]
    fn more_of_a_text_is_examined_if_its_beginning_is_ambiguous() {
        let guess = |parts: &[&str]| {
            let parts = parts.iter().copied();
            detect(parts, None, &ContentLimits::default()).map(|guess| guess.code)
        };
        let unclear = "Kan det vare en dag til, var det en god dag for dem. ".repeat(20);
        let swedish = "Jag vill inte att han ska göra något som de andra också skulle kunna. ";
        assert_ne!(guess(&[&unclear]), Some("sv"));
        assert_eq!(guess(&[&unclear, &swedish.repeat(60)]), Some("sv"));
        let clear = "There is nothing more to be said about what they have been through. ";
        assert_eq!(guess(&[&clear.repeat(20), &swedish.repeat(60)]), Some("en"));
        assert_eq!(guess(&["two words"]), None);
    }

    #[test]
    fn little_english_proves_a_declared_language_and_none_proves_another() {
        let (any, declared) = (EnglishProof::OF_ANY, EnglishProof::OF_DECLARED);
        let reference = "Returns the field from this list. Throws NullPointerException if name \
            is null. Parameters: name - key; value - not null. ";
        assert!(!any.holds_for(reference) && declared.holds_for(reference));
        let sentence = "Returns the value that this field has, to be used with the parser. ";
        assert!(declared.holds_for(sentence));
        let danish = "Han var to dage i en by, og for at komme til den by tog han bussen. At det \
            var for dyrt at bo der, vidste han. ";
        let dutch = "Het is de eerste dag van de week en wie in de stad was of er nog is, ging in \
            de ochtend naar de markt of was aan het werk; an sich is dat as usual. ";
        let german = "An jenem Tag war in der Stadt nichts los, und an sich war es in Ordnung, dass \
            man in den Zeitungen las, was man in der Regel glaubt. ";
        let chinese =
            "\u{8fd9}\u{662f}\u{4e00}\u{4e2a}\u{5173}\u{4e8e}\u{8336}\u{7684}\u{7f51}\u{7ad9}";
        let russian = "\u{42d}\u{442}\u{43e} \u{441}\u{442}\u{440}\u{430}\u{43d}\u{438}\u{446}\u{430} \u{43e} \u{447}\u{430}\u{435}. ";
        for (text, times) in [
            (dutch, 6),
            (danish, 6),
            (german, 6),
            (chinese, 12),
            (russian, 12),
        ] {
            assert!(!declared.holds_for(text), "{text}");
            let mixed = text.repeat(times) + sentence;
            assert!(!declared.holds_for(&mixed), "{mixed}");
        }
    }

    #[test]
    fn a_declaration_of_english_needs_less_text_and_does_not_hide_another_language() {
        let declared = |tag: &str| DeclaredLanguage {
            tag: tag.to_owned(),
            by: LanguageSource::Lang,
        };
        for (tag, different) in [("en-GB", 4), ("EN", 4), ("fr", 7)] {
            let proof = EnglishProof::of(Some(&declared(tag)));
            assert_eq!(proof.different, different, "{tag}");
        }
        let guess = |text: &str, tag: &str| {
            let limits = ContentLimits::default();
            detect([text].into_iter(), Some(&declared(tag)), &limits)
                .map(|guess| (guess.code, guess.confidence == 1.0))
        };
        let names = "Gtk Glib Gio Atk Pango Cairo Soup ".repeat(5);
        let mixed = (names.clone() + "That is not from the list with this name. ").repeat(20);
        assert_eq!(guess(&mixed, "en-GB"), Some(("en", true)));
        // The beginning of this text doesn't prove that it is English, but the rest does.
        let later = names.repeat(6) + &mixed;
        assert_eq!(guess(&later, "en"), Some(("en", true)));
        let swedish =
            "Jag vill inte att han ska g\u{f6}ra n\u{e5}got som de andra ocks\u{e5} kunde. ";
        assert_eq!(
            guess(&swedish.repeat(20), "en").map(|(code, _)| code),
            Some("sv")
        );
    }

    #[test]
    fn a_sample_ends_between_two_characters() {
        let mut sample = LanguageSample::default();
        let mut parts = ["aé", "東京", "", "b"].into_iter();
        for (bytes, text) in [(2, "a"), (3, "aé "), (8, "aé 東"), (99, "aé 東京  b ")] {
            sample.fill(&mut parts, bytes);
            assert_eq!(sample.text, text, "{bytes}");
        }
        assert_eq!(sample.fill(&mut parts, 99), 0);
    }

    #[test]
    fn rfc5646_2_1_the_form_of_a_tag() {
        for good in [
            "en",
            "en-GB",
            "zh-Hant-TW",
            "de_AT",
            "x-klingon",
            "sr-Latn",
            "es-419",
        ] {
            assert!(is_tag(good), "{good}");
        }
        for bad in [
            "e",
            "english language",
            "en-",
            "en--GB",
            "123",
            "x-",
            "de;at",
            "<?php",
        ] {
            assert!(!is_tag(bad), "{bad}");
        }
    }
}

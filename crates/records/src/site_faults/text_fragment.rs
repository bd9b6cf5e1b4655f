//! Text fragments: `#:~:text=[prefix-,]start[,end][,-suffix]` (URL Fragment Text Directives, W3C
//! community group draft).

use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use percent_encoding::percent_decode_str;

/// A text in a page that a link's text fragment points to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextDirective {
    /// The whole directive as in the link, without percent-encoding.
    pub(super) words: String,
    prefix: Option<String>,
    start: String,
    end: Option<String>,
    suffix: Option<String>,
}

impl TextDirective {
    /// Parses the value after `text=`. `None` if the value is malformed, because browsers ignore
    /// such a value.
    pub(super) fn parse(value: &str) -> Option<TextDirective> {
        let mut parts: Vec<&str> = value.split(',').collect();
        let prefix = parts.first().and_then(|part| part.strip_suffix('-'));
        if prefix.is_some() {
            parts.remove(0);
        }
        let suffix = parts.last().and_then(|part| part.strip_prefix('-'));
        if suffix.is_some() {
            parts.pop();
        }
        let words = |part: &str| normal(&percent_decode_str(part).decode_utf8_lossy());
        let (start, end) = match parts[..] {
            [start] => (words(start), None),
            [start, end] => (words(start), Some(words(end))),
            _ => return None,
        };
        (!start.is_empty()).then(|| TextDirective {
            words: percent_decode_str(value).decode_utf8_lossy().into_owned(),
            prefix: prefix.map(words),
            start,
            end,
            suffix: suffix.map(words),
        })
    }
}

/// The text of a page, prepared for searching.
#[derive(Debug)]
pub(super) struct SearchableText(String);

impl SearchableText {
    pub(super) fn new(visible_text: &str) -> SearchableText {
        SearchableText(normal(visible_text))
    }

    /// Returns whether the page contains the text of a directive, ignoring case, accents and
    /// differences in white space.
    pub(super) fn hold(&self, wanted: &TextDirective) -> bool {
        let text = self.0.as_str();
        let mut starts = words_in(text, &wanted.start);
        starts.any(|(from, to)| {
            let is_behind = wanted
                .prefix
                .as_ref()
                .is_none_or(|prefix| text[..from].trim_end().ends_with(prefix.as_str()));
            let is_before = |at: usize| {
                wanted
                    .suffix
                    .as_ref()
                    .is_none_or(|suffix| text[at..].trim_start().starts_with(suffix.as_str()))
            };
            is_behind
                && match &wanted.end {
                    None => is_before(to),
                    Some(end) => words_in(&text[to..], end).any(|(_, at)| is_before(to + at)),
                }
        })
    }
}

/// Returns the start and end of each occurrence of `words` in a text. Occurrences that begin or end
/// within a word are skipped.
fn words_in<'t>(text: &'t str, words: &'t str) -> impl Iterator<Item = (usize, usize)> + 't {
    let is_word = |c: char| c.is_alphanumeric();
    let places = text.match_indices(words);
    places.filter_map(move |(from, matched)| {
        let to = from + matched.len();
        let goes_on = |before: Option<char>, inside: Option<char>| {
            before.is_some_and(is_word) && inside.is_some_and(is_word)
        };
        let is_cut = goes_on(text[..from].chars().next_back(), matched.chars().next())
            || goes_on(text[to..].chars().next(), matched.chars().next_back());
        // Accept a match within a word if it has non-ASCII characters, because scripts without
        // spaces have no word boundaries.
        (!is_cut || !matched.is_ascii()).then_some((from, to))
    })
}

/// Normalizes to base characters in lower case, and to single spaces. Browsers compare texts so
/// (the primary level of UTS #10).
fn normal(text: &str) -> String {
    let decomposed = DecomposingNormalizerBorrowed::new_nfkd().normalize(text);
    let classes = CanonicalCombiningClassMapBorrowed::new();
    let base = decomposed.chars().filter(|c| classes.get_u8(*c) == 0);
    let lower: String = base.flat_map(char::to_lowercase).collect();
    let words: Vec<&str> = lower.split_whitespace().collect();
    words.join(" ").replace('\u{df}', "ss")
}

#[cfg(test)]
mod tests {
    use super::{SearchableText, TextDirective};

    #[test]
    fn a_text_is_found_as_browsers_find_it() {
        let page = SearchableText::new(
            "Pour the water over\nthe Leaves, and wait four minutes. Teapot. Café STRASSE",
        );
        let holds = |value: &str| {
            let directive = TextDirective::parse(value);
            directive.is_some_and(|directive| page.hold(&directive))
        };
        for there in [
            "water",
            "the%20leaves",
            "Over%20the",
            "pour,minutes",
            "the-,water,-over",
            "water,-over%20the",
            "over-,the",
            "cafe",
            "CAF%C3%89",
            "stra%C3%9Fe",
        ] {
            assert!(holds(there), "{there}");
        }
        for missing in [
            "milk",
            "tea",
            "minutes,pour",
            "the-,water,-under",
            "milk-,water",
        ] {
            assert!(!holds(missing), "{missing}");
        }
        assert_eq!(TextDirective::parse("a,b,c"), None);
        assert_eq!(TextDirective::parse(""), None);
    }
}

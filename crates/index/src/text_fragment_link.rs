//! Makes links to the passage that an excerpt shows, so that the browser scrolls to it and
//! highlights it.

use std::ops::Range;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::excerpt::Excerpt;

/// Maximum length of a linked passage in bytes, from the start of its first query word to the end
/// of its last.
const MAX_BYTES: usize = 160;
/// Maximum length in bytes of a word that is added to the link before or after a passage to
/// identify it.
const MAX_WORD_BYTES: usize = 60;

/// Returns `address` with a text fragment (WICG URL Fragment Text Directives, section 3.3) for the
/// query words in the excerpt. `None` if the excerpt has no query words, or if the URL already has
/// a text fragment. A browser that can't find the passage opens the page at its start.
pub(crate) fn passage_url(address: &str, text: &str, excerpt: &Excerpt) -> Option<String> {
    if address.contains(":~:") {
        return None;
    }
    let directive = directive(text, &excerpt.hits, excerpt.at, &excerpt.shown)?;
    let mark = if address.contains('#') { "" } else { "#" };
    Some(format!("{address}{mark}:~:text={directive}"))
}

fn directive(
    text: &str,
    hits: &[(Range<usize>, usize)],
    at: usize,
    shown: &Range<usize>,
) -> Option<String> {
    let is_shown = |hit: &&Range<usize>| hit.start >= at && hit.end <= shown.end;
    let mut hits = hits.iter().map(|(hit, _)| hit).filter(is_shown);
    let first = hits.next()?;
    // Stay within one line, because a browser requires the start of a passage to be in one block.
    let begin = text[..first.start].rfind('\n').map_or(0, |at| at + 1);
    let block = &text[first.end..shown.end];
    let end = block.find('\n').map_or(shown.end, |at| first.end + at);
    let limit = end.min(first.start + MAX_BYTES);
    let last = hits.take_while(|hit| hit.end <= limit).last();
    let passage = whole_words(text, first.start..last.unwrap_or(first).end, begin..end);
    let mut directive = encoded(&text[passage.clone()]);
    // A single word may occur often in the page, so add the words around it to identify the
    // passage.
    if !text[passage.clone()].contains(char::is_whitespace) {
        let before = text[begin.max(shown.start)..passage.start].split_whitespace();
        if let Some(word) = before.last().filter(|word| word.len() <= MAX_WORD_BYTES) {
            directive = format!("{}-,{directive}", encoded(word));
        }
        let mut after = text[passage.end..end].split_whitespace();
        if let Some(word) = after.next().filter(|word| word.len() <= MAX_WORD_BYTES) {
            directive = format!("{directive},-{}", encoded(word));
        }
    }
    Some(directive)
}

/// Extends a range to whole words within `within`, because browsers find only whole words. Does not
/// extend it by more than `MAX_WORD_BYTES` on a side.
fn whole_words(text: &str, range: Range<usize>, within: Range<usize>) -> Range<usize> {
    let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
    let bytes = |chars: usize, c: char| chars + c.len_utf8();
    let before = text[within.start..range.start].chars().rev();
    let before = before.take_while(is_word).fold(0, bytes);
    let after = text[range.end..within.end].chars().take_while(is_word);
    let after = after.fold(0, bytes);
    let if_short = |bytes: usize| if bytes > MAX_WORD_BYTES { 0 } else { bytes };
    range.start - if_short(before)..range.end + if_short(after)
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::passage_url;
    use crate::excerpt::Excerpt;

    /// Returns the passage URL for a text. In `marked`, the query words are in brackets.
    fn check(marked: &str, shown: usize) -> Option<String> {
        let mut text = String::new();
        let mut hits = Vec::new();
        for (n, part) in marked.split(['[', ']']).enumerate() {
            let start = text.len();
            text += part;
            if n % 2 == 1 {
                hits.push((start..text.len(), n));
            }
        }
        let excerpt = Excerpt {
            at: hits.first().map_or(0, |hit| hit.0.start),
            shown: 0..shown.min(text.len()),
            hits,
            ..Excerpt::default()
        };
        passage_url("http://e.example/#tea", &text, &excerpt)
    }

    #[test]
    fn wicg_text_fragment_3_3_a_passage_is_marked_in_one_block() {
        let url = |text: &str| Some(format!("http://e.example/#tea:~:text={text}"));
        let text = "Tea\nPour [boiling] water, over [leaves].\nMore [leaves]";
        assert_eq!(check(text, 99), url("boiling%20water%2C%20over%20leaves"));
        let alone = "Pour the [water]-jug, now";
        assert_eq!(check(alone, 99), url("the-,water,-%2Djug%2C"));
        assert_eq!(check("[Green]\ntea", 99), url("Green"));
        assert_eq!(check("a user_[path] b", 99), url("a-,user%5Fpath,-b"));
    }

    #[test]
    fn only_shown_words_are_in_the_fragment() {
        assert_eq!(check("Pour [water]", 4), None);
        assert_eq!(check("Pour water", 99), None);
        let excerpt = Excerpt {
            hits: vec![(0..5, 0)],
            shown: 0..5,
            ..Excerpt::default()
        };
        let address = "http://e.example/#:~:text=Tea";
        assert_eq!(passage_url(address, "water", &excerpt), None);
        let address = "http://e.example/";
        let url = passage_url(address, "water", &excerpt).unwrap();
        assert_eq!(url, "http://e.example/#:~:text=water");
    }
}

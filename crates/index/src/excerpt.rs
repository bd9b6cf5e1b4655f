//! Selects the part of a page that matches a query best, and marks the query's words in this part.

use std::collections::HashMap;
use std::ops::Range;

use crawl_weburl::without_bidi_controls;
use foldhash::fast::RandomState;

use crate::query_plan::{MarkedWords, MatchedTerm};
use crate::results::MarkedTextPart;
use crate::words::{Stemmer, WordIterator, WordRelation};
use crawl_index_entry::IndexedPage;

/// An excerpt of a page's text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Excerpt {
    pub(crate) parts: Vec<MarkedTextPart>,
    /// The byte offset in the page's text at which the best match starts.
    pub(crate) at: usize,
    /// The byte range of the page's main text that the excerpt shows. Empty if the excerpt is taken
    /// from the text outside the main text.
    pub(crate) shown: Range<usize>,
    /// The query's words in the main text: the byte range of each, and the number of the query term
    /// that matches there.
    pub(crate) hits: Vec<(Range<usize>, usize)>,
}

/// Returns an excerpt of at most about `max_chars` characters: the part of the main text with the
/// most query terms. If the main text contains none, the excerpt is taken from the text outside it
/// (`page.beside`). If that text contains none either, the excerpt is the start of the main text.
pub(crate) fn excerpt(page: &IndexedPage, wanted: &MarkedWords, max_chars: usize) -> Excerpt {
    let max_chars = page
        .max_snippet
        .map_or(max_chars, |n| max_chars.min(n as usize));
    let language = page.language.as_deref();
    if max_chars == 0 {
        return Excerpt::default();
    }
    let hits = hits_in(&page.text, language, wanted);
    if hits.is_empty() && !page.beside.is_empty() {
        let hits = hits_in(&page.beside, language, wanted);
        if !hits.is_empty() || page.text.is_empty() {
            let (parts, ..) = excerpt_of(&page.beside, &hits, max_chars);
            return Excerpt {
                parts,
                ..Excerpt::default()
            };
        }
    }
    let (parts, at, shown) = excerpt_of(&page.text, &hits, max_chars);
    Excerpt {
        parts,
        at,
        shown,
        hits,
    }
}

/// Returns an excerpt of a text, the offset where the best match starts, and the range of the
/// excerpt in the text.
fn excerpt_of(
    text: &str,
    hits: &[(Range<usize>, usize)],
    max_chars: usize,
) -> (Vec<MarkedTextPart>, usize, Range<usize>) {
    let around = best(text, hits, max_chars);
    let range = stretch(text, around, max_chars);
    let mut parts = cut(text, &range, hits);
    tidy(&mut parts, range.start > 0, range.end < text.len());
    (parts, around.map_or(0, |around| around.0), range)
}

/// Splits a whole text into spans with the query's words marked. Also returns the numbers of the
/// query terms that the text contains.
pub(crate) fn marked(
    text: &str,
    language: Option<&str>,
    wanted: &MarkedWords,
) -> (Vec<MarkedTextPart>, Vec<usize>) {
    let hits = without_isolated_words(text, hits(text, Stemmer::of(language), wanted));
    let mut parts = cut(text, &(0..text.len()), &hits);
    tidy(&mut parts, false, false);
    (parts, hits.into_iter().map(|(_, term)| term).collect())
}

/// Concatenates the texts of all spans.
pub(crate) fn joined(parts: &[MarkedTextPart]) -> String {
    parts.iter().map(|part| part.text.as_str()).collect()
}

/// Returns the query's words in a long text. To save time, only those pieces of the text that may
/// contain a match are split into words, and equal pieces only once.
fn hits_in(text: &str, language: Option<&str>, wanted: &MarkedWords) -> Vec<(Range<usize>, usize)> {
    let stemmer = Stemmer::of(language);
    let mut all = Vec::new();
    let mut hits_by_piece: HashMap<&str, Vec<(Range<usize>, MatchedTerm)>, RandomState> =
        HashMap::default();
    for piece in wanted.likely_in(text) {
        let start = piece.start;
        let piece = &text[piece];
        let piece_hits = hits_by_piece
            .entry(piece)
            .or_insert_with(|| hits(piece, stemmer, wanted));
        let place = |(range, term): &(Range<usize>, MatchedTerm)| {
            (start + range.start..start + range.end, *term)
        };
        all.extend(piece_hits.iter().map(place));
    }
    without_isolated_words(text, all)
}

/// Drops each hit with `needs_another` that is not next to a marked word of a different query term.
fn without_isolated_words(
    text: &str,
    hits: Vec<(Range<usize>, MatchedTerm)>,
) -> Vec<(Range<usize>, usize)> {
    // Mark a word with `needs_another` if it is next to a marked word of another term. Newly marked
    // words can cause further marks, so pass over the words once in each direction.
    let is_adjacent = |a: &(Range<usize>, MatchedTerm), b: &(Range<usize>, MatchedTerm)| {
        a.1.term != b.1.term && are_adjacent(text, &a.0, &b.0)
    };
    let mut is_marked: Vec<bool> = hits.iter().map(|hit| !hit.1.needs_another).collect();
    for n in 1..hits.len() {
        is_marked[n] = is_marked[n] || is_marked[n - 1] && is_adjacent(&hits[n - 1], &hits[n]);
    }
    for n in (1..hits.len()).rev() {
        is_marked[n - 1] = is_marked[n - 1] || is_marked[n] && is_adjacent(&hits[n - 1], &hits[n]);
    }
    let marked_hits = hits
        .into_iter()
        .zip(is_marked)
        .filter(|(_, is_kept)| *is_kept);
    marked_hits
        .map(|((range, term), _)| (range, term.term))
        .collect()
}

/// Returns true if only spaces and punctuation on the same line are between two ranges. `second`
/// must come after `first`.
fn are_adjacent(text: &str, first: &Range<usize>, second: &Range<usize>) -> bool {
    let between = text.get(first.end..second.start);
    between.is_some_and(|between| !between.contains(|c: char| c.is_alphanumeric() || c == '\n'))
}

/// Returns the query's words in a text: the byte range of each, and the term that it matches. A
/// part of a longer word counts only if the longer word matches no term.
fn hits(text: &str, stemmer: Stemmer, wanted: &MarkedWords) -> Vec<(Range<usize>, MatchedTerm)> {
    let mut hits: Vec<(Range<usize>, MatchedTerm)> = Vec::new();
    let mut text_words = WordIterator::new(text, stemmer);
    while let Some(word) = text_words.next_borrowed() {
        let Some(term) = wanted.term(&word) else {
            continue;
        };
        match hits.last_mut() {
            Some((last, _)) if word.range.start < last.end => {
                if word.kind == WordRelation::Pair {
                    last.end = last.end.max(word.range.end);
                }
            }
            _ => hits.push((word.range, term)),
        }
    }
    hits
}

/// The rank of a part of a text, as three counts compared in order: the distinct query terms in it,
/// the pairs of adjacent terms, and the query words, at most six.
type ExcerptRank = (usize, usize, usize);

/// Returns the start and end of the part with the most distinct terms. Ties are broken by the most
/// adjacent terms, then by the most words, then by the earliest start.
fn best(text: &str, hits: &[(Range<usize>, usize)], max_chars: usize) -> Option<(usize, usize)> {
    let mut best: Option<(ExcerptRank, (usize, usize))> = None;
    let mut last = 0;
    for (first, hit) in hits.iter().enumerate() {
        last = last.max(first);
        while hits
            .get(last + 1)
            .is_some_and(|next| next.0.end - hit.0.start <= max_chars * 3 / 4)
        {
            last += 1;
        }
        let within = &hits[first..=last];
        let mut terms: Vec<_> = within.iter().map(|hit| hit.1).collect();
        terms.sort_unstable();
        terms.dedup();
        let mut beside: Vec<_> = within
            .windows(2)
            .filter(|pair| pair[0].1 != pair[1].1 && are_adjacent(text, &pair[0].0, &pair[1].0))
            .map(|pair| (pair[0].1, pair[1].1))
            .collect();
        beside.sort_unstable();
        beside.dedup();
        let worth = (terms.len(), beside.len(), within.len().min(6));
        if best.is_none_or(|(known, _)| worth > known) {
            best = Some((worth, (hit.0.start, within[within.len() - 1].0.end)));
        }
    }
    best.map(|(_, range)| range)
}

/// Returns the range of the excerpt: the text around a range, starting at a sentence or block if
/// one starts nearby.
fn stretch(text: &str, around: Option<(usize, usize)>, max_chars: usize) -> Range<usize> {
    let (first, last) = around.unwrap_or((0, 0));
    let room = max_chars.saturating_sub(text[first..last].chars().count());
    let back = back_by(text, first, room / 2);
    let before = &text[back..first];
    let sentence = before.rfind('\n').map(|at| at + 1);
    let sentence = sentence.or_else(|| before.rfind(". ").map(|at| at + 2));
    let word = || match back {
        0 => 0,
        _ => before.find(' ').map_or(0, |at| at + 1),
    };
    let start = back + sentence.unwrap_or_else(word);
    let end = forward_by(text, start, max_chars);
    if end == text.len() {
        return start..end;
    }
    let shown = &text[start..end];
    let cut = shown
        .rfind(char::is_whitespace)
        .filter(|cut| start + cut >= last);
    start..cut.map_or(end, |cut| start + cut)
}

fn back_by(text: &str, from: usize, chars: usize) -> usize {
    let mut before = text[..from].char_indices().rev();
    match chars {
        0 => from,
        n => before.nth(n - 1).map_or(0, |(at, _)| at),
    }
}

fn forward_by(text: &str, from: usize, chars: usize) -> usize {
    let mut after = text[from..].char_indices();
    after.nth(chars).map_or(text.len(), |(at, _)| from + at)
}

fn cut(text: &str, range: &Range<usize>, hits: &[(Range<usize>, usize)]) -> Vec<MarkedTextPart> {
    let mut parts = Vec::new();
    let mut push = |range: Range<usize>, is_match| {
        if let Some(text) = text.get(range).filter(|text| !text.is_empty()) {
            parts.push(MarkedTextPart {
                text: text.to_owned(),
                is_match,
            });
        }
    };
    let mut at = range.start;
    for (hit, _) in hits {
        if hit.start < at || hit.end > range.end {
            continue;
        }
        push(at..hit.start, false);
        push(hit.clone(), true);
        at = hit.end;
    }
    push(at..range.end, false);
    parts
}

/// Puts the text on one line: collapses white space, removes characters that move the cursor or
/// change the text direction, and adds an ellipsis on each side that is cut off.
fn tidy(parts: &mut Vec<MarkedTextPart>, cut_before: bool, cut_after: bool) {
    let mut after_space = true;
    for part in parts.iter_mut() {
        let mut line = String::with_capacity(part.text.len());
        for c in without_bidi_controls(&part.text).chars() {
            let is_space = c.is_whitespace() || c.is_control();
            if !(is_space && after_space) {
                line.push(if is_space { ' ' } else { c });
            }
            after_space = is_space;
        }
        part.text = line;
    }
    if let Some(last) = parts.last_mut() {
        last.text.truncate(last.text.trim_end().len());
    }
    parts.retain(|part| !part.text.is_empty());
    let dots = |text: &str| MarkedTextPart {
        text: text.to_owned(),
        is_match: false,
    };
    if cut_before && !parts.is_empty() {
        parts.insert(0, dots("… "));
    }
    if cut_after && !parts.is_empty() {
        parts.push(dots(" …"));
    }
}

//! The part of a page that fits a query best, and its words marked.

use std::ops::Range;

use crawl_weburl::without_bidi_controls;

use crate::query_plan::{MarkedTerm, MarkedWords};
use crate::results::TextPart;
use crate::words::{Stemmer, Word, WordRelation, words};
use crawl_index_entry::IndexedPage;

/// An excerpt of a page's text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Excerpt {
    pub(crate) parts: Vec<TextPart>,
    /// The place at which it begins in the text, in bytes.
    pub(crate) at: usize,
    /// What it shows of the page's text, in bytes; nothing where it is of the text beside that.
    pub(crate) shown: Range<usize>,
    /// The places in the text that have words of the query, and which term each is of.
    pub(crate) hits: Vec<(Range<usize>, usize)>,
}

/// The stretch of at most `most` characters of the page's text that has the most of what is
/// wanted; of the text beside it where only that has any; else its beginning.
pub(crate) fn excerpt(page: &IndexedPage, wanted: &MarkedWords, most: usize) -> Excerpt {
    let most = page.max_snippet.map_or(most, |n| most.min(n as usize));
    let language = page.language.as_deref();
    if most == 0 {
        return Excerpt::default();
    }
    let hits = hits_in(&page.text, language, wanted);
    if hits.is_empty() && !page.beside.is_empty() {
        let hits = hits_in(&page.beside, language, wanted);
        if !hits.is_empty() || page.text.is_empty() {
            let (parts, ..) = excerpt_of(&page.beside, &hits, most);
            return Excerpt {
                parts,
                ..Excerpt::default()
            };
        }
    }
    let (parts, at, shown) = excerpt_of(&page.text, &hits, most);
    Excerpt {
        parts,
        at,
        shown,
        hits,
    }
}

/// An excerpt of a text with what is wanted in it, the place of what it is about, and that of all
/// of it.
fn excerpt_of(
    text: &str,
    hits: &[(Range<usize>, usize)],
    most: usize,
) -> (Vec<TextPart>, usize, Range<usize>) {
    let around = best(text, hits, most);
    let range = stretch(text, around, most);
    let mut parts = cut(text, &range, hits);
    tidy(&mut parts, range.start > 0, range.end < text.len());
    (parts, around.map_or(0, |around| around.0), range)
}

/// A text that is shown whole, with what is wanted marked, and the terms that it has.
pub(crate) fn marked(
    text: &str,
    language: Option<&str>,
    wanted: &MarkedWords,
) -> (Vec<TextPart>, Vec<usize>) {
    let found = words(text, &Stemmer::of(language));
    let hits = beside_others(text, hits(&found, wanted));
    let mut parts = cut(text, &(0..text.len()), &hits);
    tidy(&mut parts, false, false);
    (parts, hits.into_iter().map(|(_, term)| term).collect())
}

/// The text of pieces, joined.
pub(crate) fn joined(parts: &[TextPart]) -> String {
    parts.iter().map(|part| part.text.as_str()).collect()
}

/// Words of a long text that are wanted. What has nothing like them is not looked at closely.
fn hits_in(text: &str, language: Option<&str>, wanted: &MarkedWords) -> Vec<(Range<usize>, usize)> {
    let stemmer = Stemmer::of(language);
    let mut all = Vec::new();
    for piece in wanted.likely_in(text) {
        let found = hits(&words(&text[piece.clone()], &stemmer), wanted);
        let place = |(range, term): (Range<usize>, MarkedTerm)| {
            (piece.start + range.start..piece.start + range.end, term)
        };
        all.extend(found.into_iter().map(place));
    }
    beside_others(text, all)
}

/// Leaves out words that are marked only beside another term, and do not stand beside one.
fn beside_others(text: &str, hits: Vec<(Range<usize>, MarkedTerm)>) -> Vec<(Range<usize>, usize)> {
    // Ones that stand together hold each other up only where one of them needs no other.
    let is_beside = |a: &(Range<usize>, MarkedTerm), b: &(Range<usize>, MarkedTerm)| {
        a.1.term != b.1.term && stand_beside(text, &a.0, &b.0)
    };
    let mut kept: Vec<bool> = hits.iter().map(|hit| !hit.1.needs_another).collect();
    for n in 1..hits.len() {
        kept[n] = kept[n] || kept[n - 1] && is_beside(&hits[n - 1], &hits[n]);
    }
    for n in (1..hits.len()).rev() {
        kept[n - 1] = kept[n - 1] || kept[n] && is_beside(&hits[n - 1], &hits[n]);
    }
    let kept = hits.into_iter().zip(kept).filter(|(_, is_kept)| *is_kept);
    kept.map(|((range, term), _)| (range, term.term)).collect()
}

/// Returns whether no other word stands between two places, the second after the first.
fn stand_beside(text: &str, first: &Range<usize>, second: &Range<usize>) -> bool {
    let between = text.get(first.end..second.start);
    between.is_some_and(|between| !between.contains(|c: char| c.is_alphanumeric() || c == '\n'))
}

/// Words of the text that are wanted: where, and which term. A part of a longer word counts
/// where the whole is not wanted.
fn hits(found: &[Word], wanted: &MarkedWords) -> Vec<(Range<usize>, MarkedTerm)> {
    let mut hits: Vec<(Range<usize>, MarkedTerm)> = Vec::new();
    for word in found {
        let Some(term) = wanted.term(word) else {
            continue;
        };
        match hits.last_mut() {
            Some((last, _)) if word.range.start < last.end => {
                if word.kind == WordRelation::Pair {
                    last.end = last.end.max(word.range.end);
                }
            }
            _ => hits.push((word.range.clone(), term)),
        }
    }
    hits
}

/// Terms of a stretch, those that stand beside each other, and its words.
type Worth = (usize, usize, usize);

/// The beginning and end of the stretch with most different terms; of several the one where most
/// of them stand beside each other, then the one with most words, then the first.
fn best(text: &str, hits: &[(Range<usize>, usize)], most: usize) -> Option<(usize, usize)> {
    let mut best: Option<(Worth, (usize, usize))> = None;
    let mut last = 0;
    for (first, hit) in hits.iter().enumerate() {
        last = last.max(first);
        while hits
            .get(last + 1)
            .is_some_and(|next| next.0.end - hit.0.start <= most * 3 / 4)
        {
            last += 1;
        }
        let within = &hits[first..=last];
        let mut terms: Vec<_> = within.iter().map(|hit| hit.1).collect();
        terms.sort_unstable();
        terms.dedup();
        let mut beside: Vec<_> = within
            .windows(2)
            .filter(|pair| pair[0].1 != pair[1].1 && stand_beside(text, &pair[0].0, &pair[1].0))
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

/// The text around a place, from the beginning of a sentence or block where one is near.
fn stretch(text: &str, around: Option<(usize, usize)>, most: usize) -> Range<usize> {
    let (first, last) = around.unwrap_or((0, 0));
    let room = most.saturating_sub(text[first..last].chars().count());
    let back = back_by(text, first, room / 2);
    let before = &text[back..first];
    let sentence = before.rfind('\n').map(|at| at + 1);
    let sentence = sentence.or_else(|| before.rfind(". ").map(|at| at + 2));
    let word = || match back {
        0 => 0,
        _ => before.find(' ').map_or(0, |at| at + 1),
    };
    let start = back + sentence.unwrap_or_else(word);
    let end = forward_by(text, start, most);
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

fn cut(text: &str, range: &Range<usize>, hits: &[(Range<usize>, usize)]) -> Vec<TextPart> {
    let mut parts = Vec::new();
    let mut push = |range: Range<usize>, is_match| {
        if let Some(text) = text.get(range).filter(|text| !text.is_empty()) {
            parts.push(TextPart {
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

/// One line: white space is one space, what moves the cursor or changes the direction of the text
/// is gone, and dots stand where something is left out.
fn tidy(parts: &mut Vec<TextPart>, cut_before: bool, cut_after: bool) {
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
    let dots = |text: &str| TextPart {
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

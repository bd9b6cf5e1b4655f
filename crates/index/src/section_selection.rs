//! Selects the sections of a page that match a query.

use std::ops::Range;

use crawl_weburl::safe_line;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::results::ResultSection;
use crawl_index_entry::{Heading, IndexedPage};

/// Maximum sections to show for a page.
const MAX_SECTIONS: usize = 3;
/// Maximum parent headings to show for a section.
const MAX_PARENTS: usize = 3;
/// Maximum characters of a heading in a text fragment.
const MAX_FRAGMENT_CHARS: usize = 120;

/// The fragment percent-encode set (WHATWG URL, URL code points), plus all non-ASCII characters.
const FRAGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'%')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b'-')
    .remove(b'.')
    .remove(b'/')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'?')
    .remove(b'@')
    .remove(b'[')
    .remove(b'\\')
    .remove(b']')
    .remove(b'^')
    .remove(b'_')
    .remove(b'{')
    .remove(b'|')
    .remove(b'}')
    .remove(b'~');

/// The rank of a section, as three counts compared in order: the distinct query terms in it, the
/// distinct terms in its heading, and the query words in it, at most six.
type SectionRank = (usize, usize, usize);

/// Returns the sections of a page that match a query best, best first. Also returns whether results
/// should link to the best section instead of the page, because its heading matches terms that the
/// title lacks. `hits` are the query words in the page's text, with the terms that they match.
/// `in_title` are the terms in the title.
pub(crate) fn sections(
    page: &IndexedPage,
    hits: &[(Range<usize>, usize)],
    in_title: &[usize],
) -> (Vec<ResultSection>, bool) {
    // Skip the text before the second heading. It belongs to the page itself, not to a section.
    let mut candidates: Vec<(SectionRank, usize, bool)> = Vec::new();
    for n in 1..page.headings.len() {
        let heading = &page.headings[n];
        let end = page.headings.get(n + 1);
        let end = end.map_or(page.text.len(), |next| next.at);
        let from = hits.partition_point(|hit| hit.0.start < heading.at);
        let to = hits.partition_point(|hit| hit.0.start < end);
        let Some(within) = hits.get(from..to).filter(|within| !within.is_empty()) else {
            continue;
        };
        let own = heading.at + heading.text.len();
        let named = distinct(
            within
                .iter()
                .filter(|hit| hit.0.end <= own)
                .map(|hit| hit.1),
        );
        let says_more = named.iter().any(|term| !in_title.contains(term));
        let terms = distinct(within.iter().map(|hit| hit.1)).len();
        let worth = (terms, named.len(), within.len().min(6));
        candidates.push((worth, n, says_more));
    }
    // Equally good sections stay in page order.
    candidates.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let best = candidates.first().map_or(0, |(worth, ..)| worth.0);
    let page_itself = page.headings.get(1).map_or(page.text.len(), |next| next.at);
    let before = hits.partition_point(|hit| hit.0.start < page_itself);
    let before = distinct(hits[..before].iter().map(|hit| hit.1)).len();
    candidates.retain(|(worth, ..)| worth.0 * 2 > best);
    candidates.truncate(MAX_SECTIONS);
    let enters = candidates
        .first()
        .is_some_and(|(worth, _, says_more)| *says_more && worth.0 >= before);
    let sections = candidates.iter().map(|(_, n, _)| section(page, *n));
    (sections.collect(), enters)
}

/// Returns the section that contains a byte offset in the text. `None` before the second heading,
/// because that text belongs to the page itself.
pub(crate) fn section_at(page: &IndexedPage, at: usize) -> Option<ResultSection> {
    let under = page.headings.iter().skip(1);
    let under = under.take_while(|heading| heading.at <= at).count();
    (under > 0).then(|| section(page, under))
}

/// Returns the section below the heading with index `n`.
fn section(page: &IndexedPage, n: usize) -> ResultSection {
    let heading = &page.headings[n];
    let fragment = match &heading.id {
        Some(id) => utf8_percent_encode(id, FRAGMENT).to_string(),
        None => text_fragment(&heading.text),
    };
    ResultSection {
        heading: safe_line(&heading.text).into_owned(),
        parents: parents(&page.headings, n),
        url: format!("{}#{fragment}", page.url),
    }
}

/// Returns the headings above the heading with index `n`, nearest first. The page's first heading
/// is left out, because it is the title.
fn parents(headings: &[Heading], n: usize) -> Vec<String> {
    let mut level = headings[n].level;
    let mut parents = Vec::new();
    for above in headings[1..n].iter().rev() {
        if above.level < level && parents.len() < MAX_PARENTS {
            level = above.level;
            parents.push(safe_line(&above.text).into_owned());
        }
    }
    parents
}

/// Returns a text fragment (WICG URL Fragment Text Directives, section 3.3).
fn text_fragment(text: &str) -> String {
    let end = text.char_indices().nth(MAX_FRAGMENT_CHARS);
    let words = match end {
        // Cut at a space, because browsers don't find partial words.
        Some((end, _)) => text[..end].rsplit_once(' ').map_or("", |(words, _)| words),
        None => text,
    };
    format!(":~:text={}", utf8_percent_encode(words, NON_ALPHANUMERIC))
}

fn distinct(terms: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut terms: Vec<_> = terms.collect();
    terms.sort_unstable();
    terms.dedup();
    terms
}

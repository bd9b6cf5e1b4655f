//! Distinguishes a minus that excludes a word from a minus that is part of the word, as in
//! `-DNDEBUG`.

use tantivy::collector::TopDocs;
use tantivy::{Searcher, TantivyDocument};

use crate::query::{Query, QueryTerm, QueryTermKind};
use crate::query_plan::QueryPlanner;
use crate::stored_page_reader::stored;
use crawl_index_entry::IndexedPage;

/// Maximum number of pages to search for a word with its minus.
const MAX_PAGES_READ: usize = 20;

/// Decides for each minus in a query whether it excludes the word or is part of it. It is part of
/// the word if a page contains the word with the minus, or if the query consists only of
/// exclusions.
pub(crate) fn with_resolved_minus(
    mut query: Query,
    planner: &QueryPlanner<'_>,
    searcher: &Searcher,
) -> tantivy::Result<Query> {
    let is_sign =
        |term: &QueryTerm| term.is_not && !term.in_title && term.how == QueryTermKind::Words;
    let is_only_exclusions = query.terms.iter().all(|term| term.is_not) && query.sites.is_empty();
    for term in query.terms.iter_mut().filter(|term| is_sign(term)) {
        let written = format!("-{}", term.text);
        if is_only_exclusions || is_on_a_page(&written, &term.text, planner, searcher)? {
            term.is_not = false;
        }
    }
    Ok(query)
}

/// Returns true if one of the top results for `text` contains `written`, which is `text` with the
/// minus.
fn is_on_a_page(
    written: &str,
    text: &str,
    planner: &QueryPlanner<'_>,
    searcher: &Searcher,
) -> tantivy::Result<bool> {
    let lookup = planner.look_up_text(text);
    let pages = searcher.search(
        &*lookup,
        &TopDocs::with_limit(MAX_PAGES_READ).order_by_score(),
    )?;
    for (_, address) in pages {
        let document: TantivyDocument = searcher.doc(address)?;
        let page = stored(planner.fields, &document);
        if page.is_some_and(|page| writes(&page, written)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if the page's text, title or headings contain `word` after a space or opening
/// punctuation, and not as the start of a longer word.
fn writes(page: &IndexedPage, word: &str) -> bool {
    let headings = page.headings.iter().map(|heading| heading.text.as_str());
    let mut texts = [page.text.as_str(), page.name()]
        .into_iter()
        .chain(headings);
    texts.any(|text| {
        text.match_indices(word).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + word.len()..]);
            let opens = before.chars().next_back();
            opens.is_none_or(|c| c.is_whitespace() || "\"'`([{<=|".contains(c))
                && !after.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        })
    })
}

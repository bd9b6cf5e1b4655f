//! The body of the fuzz target for queries. Checks properties that hold for any text that a user
//! types.

#![allow(clippy::unwrap_used, reason = "a check that fails should panic")]

#[cfg(test)]
#[path = "../../fuzz/src/run_without_fuzzer.rs"]
mod run_without_fuzzer;

use crate::query::{MAX_QUERY_BYTES, MAX_TERMS, Query, QueryTerm, QueryTermKind};
use crate::words::{Stemmer, WordRelation, words};

/// Checks a query and the words of its text. Writing the parsed terms as a query again must yield a
/// query with the same terms.
pub fn search_query(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    check_words(&text);
    let Ok(query) = Query::parse(&text) else {
        assert!(text.len() > MAX_QUERY_BYTES);
        return;
    };
    assert!(query.terms.len() <= MAX_TERMS);
    for term in &query.terms {
        assert!(text.contains(&term.text) && !term.text.trim().is_empty());
    }
    let sites = [&query.sites, &query.not_sites];
    assert!(
        sites
            .iter()
            .all(|sites| sites.iter().all(|site| !site.is_empty()))
    );
    let written: Vec<_> = query.terms.iter().map(written).collect();
    let again = Query::parse(&written.join(" ")).unwrap();
    assert_eq!(again.terms, query.terms, "{written:?}");
    assert_eq!(again.text(), query.text());
}

fn written(term: &QueryTerm) -> String {
    let not = if term.is_not { "-" } else { "" };
    let title = if term.in_title { "title:" } else { "" };
    match term.how {
        QueryTermKind::Words => format!("{not}{title}{}", term.text),
        QueryTermKind::Phrase => format!("{not}{title}\"{}\"", term.text),
        QueryTermKind::Prefix => format!("{not}{title}{}*", term.text),
    }
}

/// Checks that words have text and are in order.
fn check_words(text: &str) {
    let stemmer = Stemmer::default();
    let mut last_position = 0;
    let mut last_start = 0;
    for word in words(text, &stemmer) {
        assert!(!text[word.range.clone()].is_empty() && !word.text.is_empty());
        assert!(word.position >= last_position);
        if word.kind != WordRelation::Part {
            assert!(word.range.start >= last_start);
            (last_position, last_start) = (word.position, word.range.start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::run_without_fuzzer::run_without_fuzzer;

    #[test]
    fn any_query_is_parsed() {
        run_without_fuzzer("search_query", 2_000, super::search_query);
    }
}

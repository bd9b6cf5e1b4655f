//! Pages to index, and helpers that format results for comparison.

use std::path::Path;

use crawl_index::{
    Heading, IndexSearcher, IndexWriter, IndexedPage, MarkedTextPart, OutgoingLink, SearchOptions,
    SearchResults,
};
use tempfile::TempDir;

pub(crate) const NOTE: &str = "note";

/// Returns an English page with this title and text.
pub(crate) fn page(url: &str, title: &str, text: &str) -> IndexedPage {
    IndexedPage {
        url: url.to_owned(),
        title: title.to_owned(),
        text: text.to_owned(),
        language: Some("en".to_owned()),
        fetched_at: 1_700_000_000,
        ..IndexedPage::default()
    }
}

pub(crate) fn heading(level: u8, text: &str, id: &str, at: usize) -> Heading {
    Heading {
        level,
        text: text.to_owned(),
        id: Some(id.to_owned()),
        at,
    }
}

pub(crate) fn anchor(url: &str, text: &str) -> OutgoingLink {
    OutgoingLink {
        url: url.to_owned(),
        text: text.to_owned(),
    }
}

/// Indexes these pages in a new directory.
pub(crate) fn indexed(pages: &[IndexedPage]) -> (TempDir, IndexSearcher) {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), pages);
    let index = IndexSearcher::open(dir.path()).unwrap();
    (dir, index)
}

pub(crate) fn write(dir: &Path, pages: &[IndexedPage]) {
    let mut writer = IndexWriter::open(dir).unwrap();
    for page in pages {
        writer.put(page).unwrap();
    }
    writer.reconcile(NOTE, 0).unwrap();
    writer.close().unwrap();
}

pub(crate) fn search(index: &IndexSearcher, query: &str) -> SearchResults {
    index.search(query, &SearchOptions::default()).unwrap()
}

/// Returns the shortened URLs of a query's results, best first.
pub(crate) fn found(index: &IndexSearcher, query: &str) -> String {
    let answer = search(index, query);
    let names = answer.results.iter().map(|hit| {
        let url = hit.url.trim_start_matches("http://a.example");
        url.to_owned()
    });
    let mut all: Vec<_> = names.collect();
    assert_eq!(answer.total, all.len(), "{query}");
    all.extend(
        answer
            .did_you_mean
            .map(|suggestion| format!("({suggestion}?)")),
    );
    all.join(" ")
}

/// Returns a text with the words of the query in brackets.
pub(crate) fn shown(parts: &[MarkedTextPart]) -> String {
    let part = |part: &MarkedTextPart| match part.is_match {
        true => format!("[{}]", part.text),
        false => part.text.clone(),
    };
    parts.iter().map(part).collect()
}

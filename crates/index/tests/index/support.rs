//! Pages to index, and answers to compare.

use std::path::Path;

use crawl_index::{
    Anchor, Heading, IndexWriter, IndexedPage, SearchIndex, SearchOptions, SearchResults, TextPart,
};
use tempfile::TempDir;

pub(crate) const NOTE: &str = "note";

/// A page in English: URL, title, text.
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

pub(crate) fn anchor(url: &str, text: &str) -> Anchor {
    Anchor {
        url: url.to_owned(),
        text: text.to_owned(),
    }
}

/// An index of these pages in a directory of its own.
pub(crate) fn indexed(pages: &[IndexedPage]) -> (TempDir, SearchIndex) {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), pages);
    let index = SearchIndex::open(dir.path()).unwrap();
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

pub(crate) fn search(index: &SearchIndex, query: &str) -> SearchResults {
    index.search(query, &SearchOptions::default()).unwrap()
}

/// The URLs' ends of what a query finds, best first.
pub(crate) fn found(index: &SearchIndex, query: &str) -> String {
    let answer = search(index, query);
    let names = answer.results.iter().map(|hit| {
        let url = hit.url.trim_start_matches("http://a.example");
        url.to_owned()
    });
    let mut all: Vec<_> = names.collect();
    assert_eq!(answer.total, all.len(), "{query}");
    all.extend(answer.did_you_mean.map(|meant| format!("({meant}?)")));
    all.join(" ")
}

/// Pieces of a text, with marks around what is a word of the query.
pub(crate) fn shown(parts: &[TextPart]) -> String {
    let part = |part: &TextPart| match part.is_match {
        true => format!("[{}]", part.text),
        false => part.text.clone(),
    };
    parts.iter().map(part).collect()
}

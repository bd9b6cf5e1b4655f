//! Descriptions of the counts of a search index.

use std::collections::BTreeMap;

use crawl_records::{counted, grouped};

/// Describes the pages of an index, and those left out of it, on one line.
pub(crate) fn index_counts(
    pages: Option<u64>,
    duplicates: u64,
    left_out: &BTreeMap<String, u64>,
    canonical_elsewhere: u64,
) -> String {
    let mut words = match pages {
        Some(pages) => counted(pages, "page", "pages"),
        None => "partial; duplicates are resolved when a run finishes normally".to_owned(),
    };
    let mut out = left_out.clone();
    if duplicates > 0 {
        out.insert("duplicates".to_owned(), duplicates);
    }
    if !out.is_empty() {
        words.push_str(&format!(" (left out: {})", by_reason(&out)));
    }
    if canonical_elsewhere > 0 {
        words.push_str(&format!(
            "; {} a canonical URL outside the crawl",
            match canonical_elsewhere {
                1 => "1 page has".to_owned(),
                more => format!("{} pages have", grouped(more)),
            }
        ));
    }
    words
}

/// Lists reasons with their counts, most frequent first.
pub(crate) fn by_reason(counts: &BTreeMap<String, u64>) -> String {
    let mut counts: Vec<_> = counts.iter().map(|(why, count)| (*count, why)).collect();
    counts.sort_by(|a, b| b.cmp(a));
    let counts = counts.into_iter();
    let counts: Vec<_> = counts
        .map(|(count, why)| format!("{why} {}", grouped(count)))
        .collect();
    counts.join(", ")
}

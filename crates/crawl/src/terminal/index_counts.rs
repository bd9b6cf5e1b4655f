//! The counts of a search index in words.

use std::collections::BTreeMap;

use crawl_records::{counted, grouped};

/// The pages of an index, and those that were left out of it, in a line.
pub(crate) fn index_counts(
    pages: Option<u64>,
    duplicates: u64,
    left_out: &BTreeMap<String, u64>,
) -> String {
    let mut words = match pages {
        Some(pages) => counted(pages, "page", "pages"),
        None => "as far as the run came; names and duplicates are told when one ends by itself"
            .to_owned(),
    };
    let mut out: Vec<_> = left_out
        .iter()
        .map(|(why, count)| (*count, why.as_str()))
        .collect();
    if duplicates > 0 {
        out.push((duplicates, "duplicates"));
    }
    out.sort_by(|a, b| b.cmp(a));
    let out: Vec<_> = out
        .into_iter()
        .map(|(count, why)| format!("{why} {}", grouped(count)))
        .collect();
    if !out.is_empty() {
        words.push_str(&format!(" (left out: {})", out.join(", ")));
    }
    words
}

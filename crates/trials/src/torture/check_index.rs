//! Checks the search index of a crawl against its rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Result;
use crawl_archive::rows::PageRow;
use crawl_index::{IndexError, IndexSearcher};

use super::checked_counts_and_breaches::BrokenRules;

/// Checks after a kill that every page in the index has a row. Torn rows are not read.
pub(super) fn holds_no_more(output: &Path) -> Result<()> {
    let mut breaches = BrokenRules::default();
    let rows = fs::read_to_string(output.join("pages.jsonl")).unwrap_or_default();
    let rows = rows
        .lines()
        .filter_map(|line| serde_json::from_str::<PageRow>(line).ok());
    let row_urls: BTreeSet<String> = rows.map(|row| row.url).collect();
    for url in pages(output)? {
        if !row_urls.contains(&url) {
            breaches.add(format!("the index holds {url}, which has no row"));
        }
    }
    breaches.end()
}

/// Checks after the end of a crawl that the index has exactly the pages that are indexed according
/// to their last rows, and returns their number. Pages with the same text as another page are
/// counted too.
pub(super) fn holds_all(
    output: &Path,
    rows: &[PageRow],
    breaches: &mut BrokenRules,
) -> Result<u64> {
    let mut latest: BTreeMap<&str, bool> = BTreeMap::new();
    for row in rows {
        let word = row.indexed.as_deref();
        // An answer without a page (503, no answer, 304) doesn't change what is in the index.
        if let Some(word) = word {
            latest.insert(&row.url, word == "yes");
        }
    }
    let expected = latest.iter().filter(|(_, is_in)| **is_in);
    let expected: BTreeSet<&str> = expected.map(|(url, _)| *url).collect();
    let indexed = pages(output)?;
    for url in &indexed {
        if !expected.contains(url.as_str()) {
            breaches.add(format!("the index contains {url} against its row"));
        }
    }
    let duplicates = IndexSearcher::open(&output.join("index"))?
        .stats()?
        .duplicates;
    let held = indexed.len() as u64 + duplicates;
    if held != expected.len() as u64 {
        let wanted = expected.len();
        breaches.add(format!("the index holds {held} pages of {wanted}"));
    }
    Ok(held)
}

/// Returns the pages that a search can find. Leaves out pages that are still in the index although
/// their last visit gave a reason to remove them. Empty before the index exists.
fn pages(output: &Path) -> Result<BTreeSet<String>> {
    let mut pages = BTreeSet::new();
    match IndexSearcher::open(&output.join("index")) {
        // The crawl was killed before the first commit of the index.
        Err(IndexError::Missing { .. }) => {}
        index => index?.each_page(|page| {
            if page.leaving.is_none() {
                pages.insert(page.url);
            }
            Ok::<(), IndexError>(())
        })?,
    }
    Ok(pages)
}

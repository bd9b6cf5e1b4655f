//! Finds links to broken pages in `links.jsonl`.

use std::collections::HashMap;
use std::path::Path;

use crawl_archive::rows::LinkRow;
use crawl_weburl::canonicalize;

use super::broken_link_search::BrokenLinkSearch;
use super::latest_rows::{LatestRows, key};
use crate::error::RecordsError;
use crate::row_file_reader::links as link_rows;

/// Adds the links in `links.jsonl` of all current pages to `wanted`. A page is current if the last
/// row of its URL is a page. The links of a page are a group of consecutive rows. Each time the
/// page changes, a new group is written, and only the page's last group counts.
pub(super) fn links(
    dir: &Path,
    latest: &LatestRows,
    wanted: &mut BrokenLinkSearch<'_>,
) -> Result<(), RecordsError> {
    let last = match latest.round() {
        1 => None,
        _ => Some(last_groups(dir)?),
    };
    each_in_group(dir, |row, group| {
        let is_old = last
            .as_ref()
            .is_some_and(|last| last.get(&key(&row.from)) != Some(&group));
        if is_old || !latest.is_page(&row.from) {
            return;
        }
        if let Ok(to) = canonicalize(None, &row.to) {
            wanted.link(&row.from, &to, || row.rel, row.text.as_deref());
        }
    })
}

/// Returns the number of the last group of rows of each page. Keys are the keys of the pages' URLs.
fn last_groups(dir: &Path) -> Result<HashMap<u64, u64>, RecordsError> {
    let mut last = HashMap::new();
    each_in_group(dir, |row, group| {
        last.insert(key(&row.from), group);
    })?;
    Ok(last)
}

/// Calls `visit` for each row, with the number of its group. A group consists of consecutive rows
/// from the same page.
fn each_in_group(dir: &Path, mut visit: impl FnMut(LinkRow, u64)) -> Result<(), RecordsError> {
    let (mut from, mut group) = (String::new(), 0);
    for row in link_rows(dir)? {
        let row = row?;
        if row.from != from {
            from.clone_from(&row.from);
            group += 1;
        }
        visit(row, group);
    }
    Ok(())
}

//! Links that lead nowhere: pages that are broken, and every page that leads to them.

mod archived_links;
mod latest_rows;
mod link_search;
mod redirects;
mod row_links;
mod text;

use std::path::Path;

use crawl_archive::Timestamp;
use serde::{Deserialize, Serialize};

use crate::directory::holds_any;
use crate::error::RecordsError;
use crate::rows::{pages, waiting};
pub(crate) use archived_links::Archived;
pub(crate) use latest_rows::{LatestRows, key};
use link_search::LinkSearch;
pub(crate) use link_search::naming;
use redirects::Redirects;
pub use text::EveryLink;

/// The pages of a crawl that are broken, as of the last row of each URL.
///
/// Field names stay; a later version of the program may add fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenLinks {
    /// The layout of this object: 1.
    pub format: u32,
    /// The last round of the crawl, from 1.
    pub round: u32,
    /// The files that links were looked for in: `links.jsonl`, `archive` (the pages themselves
    /// are read again), or `via` (neither was kept: each page is known by the one that led
    /// there first).
    pub source: String,
    /// Pages without an answer, with a status of 400 and above, or a redirect without an end, in
    /// the order of their URLs. A loop of redirects is named once, by the first of its URLs.
    pub pages: Vec<BrokenPage>,
    /// Links to them, over all pages.
    pub links: u64,
    /// Pages whose own links could not be looked at, since the archive has no body of them.
    pub unread: u64,
}

/// A page that is broken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenPage {
    /// Its URL.
    pub url: String,
    /// The status of the answer; null where there was none.
    pub status: Option<u16>,
    /// The error, where there was no answer.
    pub error: Option<String>,
    /// Time of the last request, RFC 3339. For a host without a reachable robots.txt, time of the crawl's
    /// last page.
    pub fetched_at: String,
    /// In which round that was.
    pub round: u32,
    /// The page that led there first; none for a seed. It need not link there any more.
    pub via: Option<String>,
    /// The places of links to it, in the order of the pages.
    pub links: Vec<BrokenLink>,
}

/// A link to a page that is broken.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BrokenLink {
    /// The page that it stands on.
    pub page: String,
    /// Its text, where it has one and that is known.
    pub text: Option<String>,
    /// Its relation, such as `nofollow`.
    pub rel: Option<String>,
    /// The redirects on the way from it to the broken page, in their order.
    pub through: Vec<String>,
}

/// Finds the broken pages of the crawl that lies in `dir`, and the links that lead to them.
///
/// Goes through `pages.jsonl` two times or three, and through `links.jsonl` or the archived pages
/// once. `links.jsonl` serves where the crawl kept it and had one round, or has no archive; else
/// each page is read as it was archived last. Memory: some 40 bytes for each URL, the redirects,
/// and the links to broken pages.
///
/// # Errors
/// [`RecordsError::NoCrawl`] where `dir` holds no crawl; [`RecordsError::Row`] for a whole line
/// that is no row; errors of the file system.
pub fn broken(dir: &Path) -> Result<BrokenLinks, RecordsError> {
    holds_any(dir, &["pages.jsonl"])?;
    let latest = LatestRows::read(dir)?;
    let mut found = BrokenLinks {
        format: 1,
        round: latest.round(),
        ..BrokenLinks::default()
    };
    let mut redirects = Redirects::default();
    let mut rows = pages(dir)?;
    let mut fetched_at = None;
    while let Some(row) = rows.next() {
        let row = row?;
        fetched_at = fetched_at.max(Some(row.fetched_at));
        if !latest.is_last(&row, rows.line()) {
            continue;
        }
        redirects.note(&row, &latest);
        if row.is_broken() {
            found.pages.push(BrokenPage {
                url: row.url,
                status: row.status,
                error: row.error,
                fetched_at: row.fetched_at.rfc3339_millis(),
                round: row.round,
                via: row.via,
                links: Vec::new(),
            });
        }
    }
    redirects.name_loops(&mut found.pages);
    let fetched_at = fetched_at.map(Timestamp::rfc3339_millis);
    add_unreachable(dir, &latest, fetched_at.as_deref(), &mut found)?;
    let archived = Archived::open(dir);
    let mut wanted = LinkSearch::new(dir, &found.pages, &redirects);
    let has_rows = dir.join("links.jsonl").is_file();
    found.source = match archived {
        _ if wanted.is_empty() => source_name(has_rows, archived.is_some()).to_owned(),
        Some(archived) if !has_rows || found.round > 1 => {
            let unread = archived.links(dir, &latest, &mut wanted)?;
            found.unread = unread.len() as u64;
            // What was read has no such link any more.
            wanted.add_vias(&found.pages, &redirects, |via| {
                !latest.knows(via) || unread.contains(&key(via))
            });
            "archive".to_owned()
        }
        _ if has_rows => {
            row_links::links(dir, &latest, &mut wanted)?;
            wanted.add_vias(&found.pages, &redirects, |_| true);
            "links.jsonl".to_owned()
        }
        _ => {
            wanted.add_vias(&found.pages, &redirects, |_| true);
            "via".to_owned()
        }
    };
    for (page, links) in found.pages.iter_mut().zip(wanted.into_links()) {
        page.links = links;
    }
    found.links = found.pages.iter().map(|page| page.links.len() as u64).sum();
    found.pages.sort_by(|one, other| one.url.cmp(&other.url));
    Ok(found)
}

/// Adds the pending URLs of origins without a reachable robots.txt, except those that answered 429.
fn add_unreachable(
    dir: &Path,
    latest: &LatestRows,
    fetched_at: Option<&str>,
    found: &mut BrokenLinks,
) -> Result<(), RecordsError> {
    let is_wait = |detail: &str| detail.contains(" 429");
    let mut rows = waiting(dir)?;
    while let Some(row) = rows.next_sound() {
        let row = row?;
        if row.detail.as_deref().is_some_and(is_wait) {
            continue;
        }
        for listed in row.listed {
            if !latest.knows(&listed.url) {
                found.pages.push(BrokenPage {
                    url: listed.url,
                    error: row.detail.clone(),
                    fetched_at: fetched_at.unwrap_or_default().to_owned(),
                    round: found.round,
                    via: listed.found_on,
                    ..BrokenPage::default()
                });
            }
        }
    }
    Ok(())
}

fn source_name(has_rows: bool, has_archive: bool) -> &'static str {
    match (has_rows, has_archive) {
        (true, _) => "links.jsonl",
        (false, true) => "archive",
        (false, false) => "via",
    }
}

#[cfg(test)]
mod tests;

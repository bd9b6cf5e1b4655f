//! Finds broken pages and all links to them.

mod archived_links;
mod broken_link_search;
mod latest_rows;
mod link_row_search;
mod redirect_targets;
mod text;
mod unreachable_origins;

use std::collections::HashSet;
use std::path::Path;

use crawl_archive::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::RecordsError;
use crate::link_spelling_rules::LinkSpellingRules;
use crate::recognize_directory::holds_any;
use crate::row_file_reader::{pages, round_of_last_run, waiting};
pub(crate) use archived_links::ArchivedPageReader;
pub use archived_links::location_fragment;
use broken_link_search::BrokenLinkSearch;
pub(crate) use latest_rows::{LatestRows, key};
use redirect_targets::RedirectTargets;
pub use text::EveryLinkDisplay;
use unreachable_origins::UnreachableOrigins;

/// The broken pages of a crawl, as of the last row of each URL. If an origin was unreachable in the
/// last round, pages that it served in earlier rounds are listed too: every page outside the scope,
/// but only one page of each origin in scope.
///
/// Field names are stable; later versions of the program may add fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenLinkReport {
    /// Version of this format: 1.
    pub format: u32,
    /// The last round of the crawl, starting at 1.
    pub round: u32,
    /// The source of the links: `links.jsonl`, `archive` (the archived pages), or `via`, if the
    /// crawl has neither. With `via`, only the page that first led to a broken page is listed.
    pub source: String,
    /// The pages for which [`PageRow::is_broken`](crawl_archive::rows::PageRow::is_broken) is true,
    /// in URL order. A redirect loop is listed once, under the first of its URLs.
    pub pages: Vec<BrokenPage>,
    /// Total number of links to the broken pages.
    pub links: u64,
    /// Number of pages whose links could not be checked, because their body is not archived.
    pub unread: u64,
    /// Number of `pages` that were not requested in the last run, because their host could not be
    /// reached. Reports of the whole crawl do not count them as broken.
    #[serde(default)]
    pub unreachable: u64,
    /// The origins in scope that became unreachable after an earlier round. `pages` has one page of
    /// each.
    #[serde(skip)]
    pub(crate) outages: HashSet<String>,
}

/// A broken page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenPage {
    /// The URL of the page. For a redirect loop, the first of its URLs.
    pub url: String,
    /// The status of the response; `None` if there was none.
    pub status: Option<u16>,
    /// The error, if there was no response.
    pub error: Option<String>,
    /// Time of the last request for the page, in RFC 3339. For a page that was never requested,
    /// because the robots.txt of its host was unreachable, the time of the crawl's last page.
    pub fetched_at: String,
    /// The round of the last request for the page.
    pub round: u32,
    /// The page that first led to the broken page; `None` for a seed. The link may have been
    /// removed since.
    pub via: Option<String>,
    /// The links to the page, in the order of the linking pages.
    pub links: Vec<BrokenLink>,
}

/// A link to a broken page.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BrokenLink {
    /// The page that has the link.
    pub page: String,
    /// The link's text, if it has one and it is known.
    pub text: Option<String>,
    /// The link's relation, such as `nofollow`.
    pub rel: Option<String>,
    /// The redirects between the link and the broken page, in order.
    pub through: Vec<String>,
}

/// Finds the broken pages of the crawl in `dir`, and the links to them.
///
/// Reads `pages.jsonl` two or three times, and `links.jsonl` or the archived pages once.
/// `links.jsonl` is used if it exists and the crawl has only one round or no archive. Otherwise
/// each page is read as last archived. Memory: about 40 bytes per URL, the redirects, and the links
/// to broken pages.
///
/// # Errors
/// [`RecordsError::NoCrawl`] if `dir` has no crawl; [`RecordsError::Row`] for a complete line
/// that isn't a row; file system errors.
pub fn broken_links(dir: &Path) -> Result<BrokenLinkReport, RecordsError> {
    holds_any(dir, &["pages.jsonl"])?;
    let latest = LatestRows::read(dir)?;
    let mut result = BrokenLinkReport {
        format: 1,
        round: latest.round().max(round_of_last_run(dir)?.unwrap_or(1)),
        ..BrokenLinkReport::default()
    };
    let mut redirects = RedirectTargets::default();
    let mut outages = UnreachableOrigins::read(dir)?;
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
            result.pages.push(BrokenPage {
                url: row.url.clone(),
                status: row.status,
                error: row.broken_redirect().map(str::to_owned).or(row.error),
                fetched_at: row.fetched_at.rfc3339_millis(),
                round: row.round,
                via: row.via,
                links: Vec::new(),
            });
        } else if let Some(page) = outages.page(&row) {
            result.pages.push(page);
            result.unreachable += 1;
        }
    }
    redirects.name_loops(&mut result.pages);
    let requested = result.pages.len();
    let fetched_at = fetched_at.map(Timestamp::rfc3339_millis);
    result.outages = outages.origins_in_scope();
    add_unreachable(dir, &latest, fetched_at.as_deref(), &mut result)?;
    let archived = ArchivedPageReader::open(dir)?;
    let mut wanted = BrokenLinkSearch::new(
        &result.pages,
        &redirects,
        LinkSpellingRules::read(dir)?,
        &latest,
    );
    let has_rows = dir.join("links.jsonl").is_file();
    result.source = match archived {
        _ if wanted.is_empty() => source_name(has_rows, archived.is_some()).to_owned(),
        Some(archived) if !has_rows || latest.round() > 1 => {
            let unread = archived.links(dir, &latest, &mut wanted)?;
            result.unread = unread.len() as u64;
            // Add a link from the page that first led to a broken page (its `via`) only if the
            // `via` page could not be read. If it could be read, and still has the link, the search
            // has already found the link.
            wanted.add_vias(&result.pages, &redirects, |via| {
                !latest.knows(via) || unread.contains(&key(via))
            });
            "archive".to_owned()
        }
        _ if has_rows => {
            link_row_search::links(dir, &latest, &mut wanted)?;
            wanted.add_vias(&result.pages, &redirects, |_| true);
            "links.jsonl".to_owned()
        }
        _ => {
            wanted.add_vias(&result.pages, &redirects, |_| true);
            "via".to_owned()
        }
    };
    for (page, links) in result.pages.iter_mut().zip(wanted.into_links()) {
        page.links = links;
    }
    result.pages.extend(outages.into_pages());
    result.unreachable += (result.pages.len() - requested) as u64;
    result.links = result
        .pages
        .iter()
        .map(|page| page.links.len() as u64)
        .sum();
    result.pages.sort_by(|one, other| one.url.cmp(&other.url));
    Ok(result)
}

/// Adds the pending URLs of origins that could not be reached. Skips origins that the crawl only
/// has to wait for, and those of [`BrokenLinkReport::unreachable_origins`].
fn add_unreachable(
    dir: &Path,
    latest: &LatestRows,
    fetched_at: Option<&str>,
    found: &mut BrokenLinkReport,
) -> Result<(), RecordsError> {
    let mut rows = waiting(dir)?;
    while let Some(row) = rows.next_sound() {
        let row = row?;
        let is_outage = |origin: &String| found.outages.contains(origin);
        if row.detail.as_deref().is_some_and(is_wait) || row.origin.as_ref().is_some_and(is_outage)
        {
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

/// Returns whether the URLs of an origin are pending only because the crawl has to wait, for
/// example for a `Retry-After`, for the end of quiet hours or for another crawl. False if the host
/// could not be reached. `detail` is from the origin's row in `waiting.jsonl`.
pub(crate) fn is_wait(detail: &str) -> bool {
    let is_pause = matches!(
        detail,
        "its robots.txt names another visit time"
            | "its rate limit is used up"
            | "it has quiet hours"
            | "it is parked"
    );
    is_pause || is_demanded(detail) || detail.starts_with("another crawl")
}

/// Returns whether a host demanded a wait, with a 429 or a `Retry-After`. `detail` is from a row of
/// `waiting.jsonl`.
pub(crate) fn is_demanded(detail: &str) -> bool {
    detail.contains(" 429") || detail.contains("Retry-After")
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

//! Pages of earlier rounds whose origin was unreachable in the last round.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crawl_archive::rows::PageRow;
use crawl_weburl::canonicalize;

use super::{BrokenPage, is_wait};
use crate::error::RecordsError;
use crate::reported_crawl::unreachable_origin;
use crate::row_file_reader::{round_of_last_run, waiting};

/// The origins that were unreachable in the last round.
///
/// Pass the last row of each URL to [`page`](Self::page), unless the row is broken. At the end,
/// call [`into_pages`](Self::into_pages).
#[derive(Debug, Default)]
pub(super) struct UnreachableOrigins {
    round: u32,
    /// The unreachable origins.
    origins: HashMap<String, UnreachableOrigin>,
}

#[derive(Debug)]
struct UnreachableOrigin {
    why: String,
    /// The page of this origin that represents it, with its depth. `None` before the first page in
    /// scope.
    page: Option<(u32, BrokenPage)>,
}

impl UnreachableOrigins {
    /// Reads `waiting.jsonl` in `dir`. Skips origins that the crawl only has to wait for.
    pub(super) fn read(dir: &Path) -> Result<UnreachableOrigins, RecordsError> {
        let Some(round) = round_of_last_run(dir)? else {
            return Ok(UnreachableOrigins::default());
        };
        let mut origins = HashMap::new();
        let mut rows = waiting(dir)?;
        while let Some(row) = rows.next_sound() {
            let row = row?;
            if let Some((origin, why)) = unreachable_origin(&row)
                && !is_wait(why)
            {
                let outage = UnreachableOrigin {
                    why: why.to_owned(),
                    page: None,
                };
                origins.insert(origin.to_owned(), outage);
            }
        }
        Ok(UnreachableOrigins { round, origins })
    }

    /// Returns the page of `row` as a broken page if it is outside the scope, and its origin became
    /// unreachable after the visit. For an origin in scope, only keeps the page that represents it,
    /// because a site that is down is one fault, not one fault for each of its links.
    pub(super) fn page(&mut self, row: &PageRow) -> Option<BrokenPage> {
        if self.origins.is_empty() || row.round >= self.round {
            return None;
        }
        let url = canonicalize(None, &row.url).ok()?;
        let outage = self.origins.get_mut(url.origin_text())?;
        let page = BrokenPage {
            url: row.url.clone(),
            error: Some(outage.why.clone()),
            fetched_at: row.fetched_at.rfc3339_millis(),
            round: row.round,
            via: row.via.clone(),
            ..BrokenPage::default()
        };
        if row.hops_off_scope > 0 {
            return Some(page);
        }
        let is_nearer = outage
            .page
            .as_ref()
            .is_none_or(|(depth, nearest)| (row.depth, &page.url) < (*depth, &nearest.url));
        if is_nearer {
            outage.page = Some((row.depth, BrokenPage { via: None, ..page }));
        }
        None
    }

    /// Returns the unreachable origins with pages in scope.
    pub(super) fn origins_in_scope(&self) -> HashSet<String> {
        let origins = self.origins.iter();
        let in_scope = origins.filter(|(_, outage)| outage.page.is_some());
        in_scope.map(|(origin, _)| origin.clone()).collect()
    }

    /// Returns one page, without its links, for each unreachable origin in scope: the page with the
    /// smallest depth. If several pages have this depth, returns the first in URL order.
    pub(super) fn into_pages(self) -> impl Iterator<Item = BrokenPage> {
        let outages = self.origins.into_values();
        outages.filter_map(|outage| outage.page.map(|(_, page)| page))
    }
}

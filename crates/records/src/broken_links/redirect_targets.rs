//! The targets of redirects.

use std::collections::{HashMap, HashSet};

use crawl_archive::Timestamp;
use crawl_archive::rows::{PageRow, REDIRECT_LOOP};

use super::BrokenPage;
use super::latest_rows::LatestRows;

/// Maximum length of a chain of redirects to trace back. No crawl follows a chain of more than 255
/// redirects.
pub(super) const MAX_CHAIN: usize = 256;

/// All URLs that currently redirect or are in a redirect loop.
#[derive(Debug, Default)]
pub(super) struct RedirectTargets {
    /// The last visit of each URL that redirects.
    visits: HashMap<String, RedirectVisit>,
    /// The target of each redirect whose row names the target.
    targets: HashMap<String, String>,
    /// For each redirect, the URL that was first discovered through it.
    first_met: HashMap<String, String>,
}

#[derive(Debug)]
struct RedirectVisit {
    status: Option<u16>,
    fetched_at: Timestamp,
    round: u32,
    /// The URL that led to the redirect. `None` for a seed.
    via: Option<String>,
}

impl RedirectTargets {
    /// Adds the last row of a URL. If the crawl discovered the URL through a redirect whose row
    /// names no target, the URL counts as the redirect's target.
    pub(super) fn note(&mut self, row: &PageRow, latest: &LatestRows) {
        if let Some(via) = row.via.as_ref().filter(|via| latest.redirects(via)) {
            self.first_met.insert(via.clone(), row.url.clone());
        }
        if latest.redirects(&row.url) || row.broken_redirect() == Some(REDIRECT_LOOP) {
            if let Some(target) = &row.redirect {
                self.targets.insert(row.url.clone(), target.clone());
            }
            let visit = RedirectVisit {
                status: row.status,
                fetched_at: row.fetched_at,
                round: row.round,
                via: row.via.clone(),
            };
            self.visits.insert(row.url.clone(), visit);
        }
    }

    /// Reports each redirect loop once, under the first of its URLs in sort order. Depending on
    /// timing, the row of any URL in the loop may have the loop error. Sorting makes two reports
    /// about the same site agree.
    pub(super) fn name_loops(&self, pages: &mut Vec<BrokenPage>) {
        let mut named = HashSet::new();
        pages.retain_mut(|page| {
            let first = self.first_of_loop(&page.url);
            let Some((first, visit)) = first.and_then(|url| self.visits.get_key_value(url)) else {
                return true;
            };
            page.url.clone_from(first);
            page.status = visit.status;
            page.fetched_at = visit.fetched_at.rfc3339_millis();
            page.round = visit.round;
            page.via.clone_from(&visit.via);
            named.insert(first)
        });
    }

    /// Returns the first URL, in sort order, of the redirect loop that contains `url`. `None` if it
    /// is in no loop.
    fn first_of_loop<'a>(&'a self, url: &'a str) -> Option<&'a str> {
        let next = |at: &&'a str| self.targets.get(*at).map(String::as_str);
        let mut first = url;
        for at in std::iter::successors(next(&url), next).take(MAX_CHAIN) {
            if at == url {
                return Some(first);
            }
            first = first.min(at);
        }
        None
    }

    /// Returns the URL that led to a redirect. `None` if no such URL is known.
    pub(super) fn via(&self, url: &str) -> Option<&str> {
        self.visits.get(url)?.via.as_deref()
    }

    /// Returns the sources of redirects, by target.
    pub(super) fn backwards(&self) -> HashMap<&str, Vec<&str>> {
        let mut backwards: HashMap<&str, Vec<&str>> = HashMap::new();
        let inferred = self.first_met.iter();
        let inferred = inferred.filter(|(from, _)| !self.targets.contains_key(*from));
        for (from, to) in self.targets.iter().chain(inferred) {
            backwards.entry(to).or_default().push(from);
        }
        backwards
    }
}

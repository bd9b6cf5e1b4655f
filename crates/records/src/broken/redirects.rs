//! The targets of redirects.

use std::collections::{HashMap, HashSet};

use crawl_archive::Timestamp;
use crawl_archive::rows::{PageRow, REDIRECT_LOOP};

use super::BrokenPage;
use super::latest_rows::LatestRows;

/// A chain of redirects is followed so far back, at most: crawls follow 255 at most.
pub(super) const MAX_CHAIN: usize = 256;

/// All URLs that redirect now.
#[derive(Debug, Default)]
pub(super) struct Redirects {
    /// The last visit of each.
    visits: HashMap<String, RedirectVisit>,
    /// The target of each, by its own word.
    targets: HashMap<String, String>,
    /// The URLs that were first met by way of each.
    first_met: HashMap<String, String>,
}

#[derive(Debug)]
struct RedirectVisit {
    status: Option<u16>,
    fetched_at: Timestamp,
    round: u32,
    /// The URL that led there, where one did.
    via: Option<String>,
}

impl Redirects {
    /// Takes the last row of a URL. What a redirect led to was met by way of it, unless it was
    /// known already.
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

    /// Names each loop once, by the first of its URLs in their order. Which of them has the row
    /// that tells of the loop depends on which was settled last, and two reports of one site
    /// should not differ by that.
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

    /// The first URL, in their order, of the loop that one is part of.
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

    /// The URL that led to one that redirects.
    pub(super) fn via(&self, url: &str) -> Option<&str> {
        self.visits.get(url)?.via.as_deref()
    }

    /// The URLs that lead to others, by those.
    pub(super) fn backwards(&self) -> HashMap<&str, Vec<&str>> {
        let mut backwards: HashMap<&str, Vec<&str>> = HashMap::new();
        let unsaid = self.first_met.iter();
        let unsaid = unsaid.filter(|(from, _)| !self.targets.contains_key(*from));
        for (from, to) in self.targets.iter().chain(unsaid) {
            backwards.entry(to).or_default().push(from);
        }
        backwards
    }
}

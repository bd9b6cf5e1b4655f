//! The targets of redirects.

use std::collections::HashMap;

use crawl_archive::rows::PageRow;

use super::latest_rows::LatestRows;

/// All URLs that redirect now.
#[derive(Debug, Default)]
pub(super) struct Redirects {
    /// The URL that led to each, where one did.
    vias: HashMap<String, Option<String>>,
    /// The target of each, by its own word.
    targets: HashMap<String, String>,
    /// The URLs that were first met by way of each.
    first_met: HashMap<String, String>,
}

impl Redirects {
    /// Takes the last row of a URL. What a redirect led to was met by way of it, unless it was
    /// known already.
    pub(super) fn note(&mut self, row: &PageRow, latest: &LatestRows) {
        if let Some(via) = row.via.as_ref().filter(|via| latest.redirects(via)) {
            self.first_met.insert(via.clone(), row.url.clone());
        }
        if latest.redirects(&row.url) {
            if let Some(target) = &row.redirect {
                self.targets.insert(row.url.clone(), target.clone());
            }
            self.vias.insert(row.url.clone(), row.via.clone());
        }
    }

    /// The URL that led to one that redirects.
    pub(super) fn via(&self, url: &str) -> Option<&str> {
        self.vias.get(url)?.as_deref()
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

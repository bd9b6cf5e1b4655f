//! Readmits URLs that the scope excluded in an earlier round, and doesn't exclude any more.

use std::path::Path;

use crawl_archive::rows::ExcludedRow;
use crawl_archive::{ReadError, RowReader};
use crawl_frontier::{
    Frontier, FrontierError, KnownState, KnownUrlDetails, Reason, RequestedState, UrlToAdmit,
};
use crawl_scope::{OutOfScopeReason, Scope, ScopeVerdict};
use crawl_weburl::{CanonicalUrl, canonicalize};

use crate::error::EngineError;
use crate::sampling::SampleState;
use crate::seed_and_sitemap_admissions::{seed_admission, sitemap_admission};
use crate::tombstones::Tombstones;

/// Maximum URLs to readmit in one transaction, to limit the memory for them.
const MAX_BATCH: usize = 4096;

/// The exclusions of earlier rounds, and what decides whether they still hold.
pub(crate) struct EarlierScopeExclusions<'a> {
    /// The file `excluded.jsonl`.
    pub(crate) rows: &'a Path,
    /// The scope in force.
    pub(crate) scope: &'a Scope,
    /// The pages and hosts that must never be fetched again.
    pub(crate) tombstones: &'a Tombstones,
    /// The sample, if the crawl draws one.
    pub(crate) sampling: Option<&'a SampleState>,
}

impl EarlierScopeExclusions<'_> {
    /// Readmits all URLs whose exclusion no longer holds. Reads the whole file, and holds only one
    /// batch of URLs in memory. Returns false if stopped before the end: then a later call repeats
    /// the scan.
    ///
    /// # Errors
    /// The file can't be read, or the frontier fails. Malformed rows are skipped.
    pub(crate) fn readmit(
        &self,
        frontier: &dyn Frontier,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<bool, EngineError> {
        let mut batch = Vec::new();
        let mut count = 0;
        for row in RowReader::<ExcludedRow>::open_if_any(self.rows)? {
            if is_stopped() {
                return Ok(false);
            }
            match row {
                Ok(row) => batch.extend(self.admission(&row, frontier)?),
                Err(ReadError::Row { .. }) => {}
                Err(why) => return Err(why.into()),
            }
            if batch.len() == MAX_BATCH {
                count += self.admit(&std::mem::take(&mut batch), frontier)?;
            }
        }
        count += self.admit(&batch, frontier)?;
        tracing::debug!(count, "exclusions lifted");
        Ok(true)
    }

    /// Returns the number of URLs that changed.
    fn admit(&self, batch: &[UrlToAdmit], frontier: &dyn Frontier) -> Result<usize, FrontierError> {
        if batch.is_empty() {
            return Ok(0);
        }
        let sampled = self.sampling.and_then(|sampling| sampling.outside(batch));
        let mut transaction = frontier.begin()?;
        let mut count = 0;
        for admission in sampled.as_deref().unwrap_or(batch) {
            count += usize::from(transaction.readmit(admission.clone())?);
        }
        transaction.commit()?;
        Ok(count)
    }

    /// Returns the admission of an excluded URL that is in scope now. The URL is admitted as a
    /// seed, a sitemap or a link, as when it was excluded. `None` if the URL is still excluded, or
    /// was admitted since.
    fn admission(
        &self,
        row: &ExcludedRow,
        frontier: &dyn Frontier,
    ) -> Result<Option<UrlToAdmit>, FrontierError> {
        let Some(url) = self.excluded_url(row) else {
            return Ok(None);
        };
        let found_on = row.found_on.as_deref().map(|via| canonicalize(None, via));
        let via = match found_on {
            None => {
                let seed = seed_admission(&url, self.scope);
                return Ok((seed.state == RequestedState::Pending).then_some(seed));
            }
            Some(Err(_)) => return Ok(None),
            Some(Ok(via)) => via,
        };
        let verdict = self.scope.judge(&url, 0);
        if via == via.origin().robots_url() {
            let is_in = verdict == ScopeVerdict::In;
            return Ok(is_in.then(|| sitemap_admission(url, &via)));
        }
        // Only the admission of a plain link can be restored from a row.
        if row.found_as.is_some() {
            return Ok(None);
        }
        let is_beyond = match verdict {
            ScopeVerdict::Out {
                reason: OutOfScopeReason::Scope,
                ..
            } => return Ok(None),
            ScopeVerdict::Out { reason, .. } => reason == OutOfScopeReason::Beyond,
            ScopeVerdict::In => false,
        };
        let details = frontier.known(&url)?;
        let excluded = details.filter(|url| matches!(url.state, KnownState::Excluded(_)));
        let Some(KnownUrlDetails { depth, .. }) = excluded else {
            return Ok(None);
        };
        let hops_off = match is_beyond {
            true => self.hops_of(&via, frontier)?.saturating_add(1),
            false => 0,
        };
        let is_in = self.scope.judge_at(&url, depth, hops_off) == ScopeVerdict::In;
        Ok(is_in.then(|| UrlToAdmit {
            hops_off,
            ..UrlToAdmit::link(url, depth, via)
        }))
    }

    /// Returns the URL of a row about the scope, unless the operator made the crawl forget the URL.
    fn excluded_url(&self, row: &ExcludedRow) -> Option<CanonicalUrl> {
        let is_by_scope = row.reason == Reason::Scope.name();
        let url = is_by_scope.then(|| canonicalize(None, &row.url))?.ok()?;
        (!self.tombstones.holds(&url)).then_some(url)
    }

    /// Returns how many links were followed from the scope to a page; 0 for a page in scope.
    fn hops_of(&self, page: &CanonicalUrl, frontier: &dyn Frontier) -> Result<u8, FrontierError> {
        if self.scope.holds(page) {
            return Ok(0);
        }
        let details = frontier.known(page)?;
        Ok(details.map_or(1, |page| page.hops_off.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crawl_frontier::conformance::helpers::{admit, lease};
    use crawl_frontier::{
        Frontier as _, KnownState, MemoryFrontier, NotFetchedReason, Reason, RequestedState,
        UrlKind, UrlToAdmit,
    };
    use crawl_scope::{Scope, ScopeMode};
    use crawl_weburl::{CanonicalUrl, canonicalize};

    use super::{EarlierScopeExclusions, ExcludedRow, MAX_BATCH};
    use crate::excluded_jsonl_rows::{excluded_row, found_as};
    use crate::priority::Priority;
    use crate::tombstones::Tombstones;

    fn url(text: &str) -> CanonicalUrl {
        let base = canonicalize(None, "http://a.example/").unwrap();
        canonicalize(Some(&base), text).unwrap()
    }

    fn by(reason: Reason) -> NotFetchedReason {
        NotFetchedReason::of(reason)
    }

    /// Admits links as excluded by `reason`, and returns their rows.
    fn excluded(frontier: &MemoryFrontier, links: Vec<(UrlToAdmit, Reason)>) -> String {
        let rows = links.iter().map(|(link, reason)| {
            let row = ExcludedRow {
                found_as: found_as(link).map(str::to_owned),
                ..excluded_row(&link.url, &by(*reason), link.via.as_ref(), None, None)
            };
            serde_json::to_string(&row).unwrap() + "\n"
        });
        let rows = rows.collect();
        let links = links.into_iter().map(|(link, reason)| UrlToAdmit {
            state: RequestedState::Excluded(by(reason)),
            ..link
        });
        admit(frontier, links);
        rows
    }

    /// Readmits the URLs of these rows. The scope is the host of `/`, with a maximum depth of 3 and
    /// at most `hops` links off scope. Returns the text, depth and hops of each pending URL.
    fn readmitted(frontier: &MemoryFrontier, rows: &str, hops: u8) -> Vec<(String, u32, u8)> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("excluded.jsonl");
        fs::write(&path, format!("{rows}no row\n")).unwrap();
        let exclude = ["/still".to_owned()];
        let mut scope = Scope::new(ScopeMode::Host, &[], &exclude, Some(3)).unwrap();
        scope.add_seed(&url("/"));
        scope.allow_hops_off(hops);
        let exclusions = EarlierScopeExclusions {
            rows: &path,
            scope: &scope,
            tombstones: &Tombstones::default(),
            sampling: None,
        };
        assert!(!exclusions.readmit(frontier, &|| true).unwrap());
        assert_eq!(frontier.counts().pending, 0);
        assert!(exclusions.readmit(frontier, &|| false).unwrap());
        let mut pending = Vec::new();
        let mut note = |waiting: crawl_frontier::UnsettledUrl<'_>| {
            pending.push((waiting.url.to_string(), waiting.depth, waiting.hops_off));
            std::ops::ControlFlow::Continue(())
        };
        frontier.each_pending(&mut note).unwrap();
        pending
    }

    #[test]
    fn only_urls_that_are_in_scope_now_are_readmitted_as_they_were_found() {
        let frontier = MemoryFrontier::new();
        let link = |path: &str, depth| UrlToAdmit::link(url(path), depth, url("/"));
        let sitemap = UrlToAdmit {
            kind: UrlKind::Sitemap,
            ..UrlToAdmit::link(url("/map.xml"), 0, url("/robots.txt"))
        };
        let resource = UrlToAdmit {
            kind: UrlKind::Resource,
            ..link("/picture", 2)
        };
        let entry = UrlToAdmit {
            priority: Priority::FOREIGN_ENTRY.byte(),
            ..link("/entry", 0)
        };
        let rows = excluded(
            &frontier,
            vec![
                (link("/lifted", 2), Reason::Scope),
                (link("/still", 2), Reason::Scope),
                (link("/deep", 4), Reason::Scope),
                (link("/barred", 2), Reason::Robots),
                (resource, Reason::Scope),
                (entry, Reason::Scope),
                (link("http://b.example/", 2), Reason::Scope),
                (UrlToAdmit::seed(url("/seed")), Reason::Scope),
                (sitemap, Reason::Scope),
            ],
        );
        let pending = readmitted(&frontier, &rows, 0);
        let expected = [("seed", 0), ("map.xml", 0), ("lifted", 2)];
        let expected = expected.map(|(path, depth)| (format!("http://a.example/{path}"), depth, 0));
        assert_eq!(pending, expected);
        let (seed, sitemap, lifted) = (lease(&frontier), lease(&frontier), lease(&frontier));
        assert!(seed.is_seed && seed.via.is_none());
        assert_eq!(sitemap.kind, UrlKind::Sitemap);
        assert_eq!((lifted.kind, lifted.via), (UrlKind::Page, Some(url("/"))));
        let still = frontier.known(&url("/still")).unwrap().unwrap();
        assert_eq!(still.state, KnownState::Excluded(by(Reason::Scope)));
    }

    #[test]
    fn a_url_off_scope_is_readmitted_if_few_enough_links_lead_to_it() {
        let frontier = MemoryFrontier::new();
        let link = |url: &CanonicalUrl, depth, via: &CanonicalUrl| {
            let link = UrlToAdmit::link(url.clone(), depth, via.clone());
            (link, Reason::Scope)
        };
        let [off, near, far] = ["b", "c", "d"].map(|host| url(&format!("http://{host}.example/")));
        let rows = excluded(
            &frontier,
            vec![link(&near, 1, &url("/")), link(&far, 2, &off)],
        );
        assert_eq!(readmitted(&frontier, &rows, 0), []);
        let near = (near.to_string(), 1, 1);
        assert_eq!(readmitted(&frontier, &rows, 1), [near]);
    }

    #[test]
    fn many_urls_are_readmitted_in_batches() {
        let frontier = MemoryFrontier::new();
        let links = (0..MAX_BATCH + 2).map(|number| {
            let link = UrlToAdmit::link(url(&format!("/{number}")), 1, url("/"));
            (link, Reason::Scope)
        });
        let rows = excluded(&frontier, links.collect());
        assert_eq!(readmitted(&frontier, &rows, 0).len(), MAX_BATCH + 2);
    }
}

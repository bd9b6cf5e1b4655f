//! The random walk of a crawl: how often its walkers visited each page.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::Path;

use crawl_archive::rows::RandomWalkStep;
use serde::{Deserialize, Serialize};

use crate::error::RecordsError;
use crate::number_format::{counted, grouped};
use crate::row_file_reader::walk;
use crate::sample_report::LastSampledRows;

/// Maximum number of pages to list. The pages visited most often are listed.
const MAX_NAMED: usize = 10;

/// A random walk and its results. Shares are shares of steps, not of pages, so a page with many
/// incoming links counts more often. No confidence interval is known for such shares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RandomWalkReport {
    /// Number of walkers that took a step.
    pub walkers: u64,
    /// Number of steps, including the start at a seed.
    pub steps: u64,
    /// Number of distinct URLs visited. A step to a redirect counts as a visit to its target.
    pub pages: u64,
    /// Steps that restarted at a seed, by reason.
    pub restarts: BTreeMap<String, u64>,
    /// The share of steps that led to a page: a readable response with a status from 200 to 299.
    pub answered: f64,
    /// The share of steps by the status of their URL: `none` without a response, `excluded` if the
    /// URL may not be fetched, and `pending` if the walk was cut short before it was fetched.
    pub statuses: BTreeMap<String, f64>,
    /// The share of each content type among steps that led to a page.
    pub types: BTreeMap<String, f64>,
    /// The URLs visited most often.
    pub most_visited: Vec<RandomWalkPage>,
}

/// A URL that walkers visited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RandomWalkPage {
    /// The URL of the page.
    pub url: String,
    /// Number of steps that ended at the URL.
    pub steps: u64,
}

/// Counts the visits to each URL. Takes about 150 bytes per URL.
#[derive(Debug, Default)]
pub(crate) struct WalkVisitCounter {
    /// For each walker, the number and the URL of its last step so far.
    last: HashMap<u32, (u64, String)>,
    visits: HashMap<String, u64>,
    restarts: BTreeMap<String, u64>,
}

impl WalkVisitCounter {
    /// Reads the steps of the walk in `dir`. `sound` returns `None` for a malformed row. Also
    /// returns whether the file ends in the middle of a line.
    pub(crate) fn read(
        dir: &Path,
        mut sound: impl FnMut(
            Result<RandomWalkStep, RecordsError>,
        ) -> Result<Option<RandomWalkStep>, RecordsError>,
    ) -> Result<(WalkVisitCounter, bool), RecordsError> {
        let mut steps = WalkVisitCounter::default();
        let mut rows = walk(dir)?;
        for row in rows.by_ref() {
            if let Some(row) = sound(row)? {
                steps.add(row);
            }
        }
        Ok((steps, rows.is_torn()))
    }

    /// Adds the next row. The rows of each walker must be in step order.
    fn add(&mut self, row: RandomWalkStep) {
        if let Some(why) = row.why {
            *self.restarts.entry(why).or_default() += 1;
        }
        let last = self.last.insert(row.walker, (row.step, row.url));
        // A row with the same step number as the previous row is the target of a redirect, which
        // belongs to the same step. So it is not another visit.
        if let Some((_, url)) = last.filter(|(step, _)| *step != row.step) {
            *self.visits.entry(url).or_default() += 1;
        }
    }

    /// Returns the URLs without a row that walkers stepped to last. They are pending, or excluded if
    /// the walk ended there. A URL that a walker left was excluded.
    pub(crate) fn unanswered_ends(&self, pages: &LastSampledRows) -> HashSet<String> {
        let ends = self.last.values().map(|(_, url)| url);
        let ends = ends.filter(|url| !pages.knows(url) && !self.visits.contains_key(*url));
        ends.cloned().collect()
    }

    /// Returns the report of the walk; `None` if no step was taken. `pages` has the results of the
    /// visited pages.
    pub(crate) fn report(
        mut self,
        pages: &LastSampledRows,
        pending: &HashSet<String>,
    ) -> Option<RandomWalkReport> {
        let last = std::mem::take(&mut self.last);
        let walkers = last.len() as u64;
        for (_, url) in last.into_values() {
            *self.visits.entry(url).or_default() += 1;
        }
        if self.visits.is_empty() {
            return None;
        }
        let mut report = RandomWalkReport {
            walkers,
            steps: self.visits.values().sum(),
            pages: self.visits.len() as u64,
            restarts: self.restarts,
            ..RandomWalkReport::default()
        };
        let mut answered = 0;
        let (mut statuses, mut types) = (BTreeMap::new(), BTreeMap::new());
        for (url, steps) in &self.visits {
            let (status, kind) = match pending.contains(url) {
                true => ("pending".to_owned(), None),
                false => pages.answer_of(url),
            };
            *statuses.entry(status).or_insert(0) += steps;
            if let Some(kind) = kind {
                answered += steps;
                *types.entry(kind).or_insert(0) += steps;
            }
        }
        let shares = |counts: BTreeMap<String, u64>, of: u64| {
            let share = |(name, steps)| (name, steps as f64 / of as f64);
            counts.into_iter().map(share).collect()
        };
        report.answered = answered as f64 / report.steps as f64;
        report.statuses = shares(statuses, report.steps);
        report.types = shares(types, answered);
        let visits = self.visits.into_iter();
        let mut visits: Vec<_> = visits
            .map(|(url, steps)| RandomWalkPage { url, steps })
            .collect();
        visits.sort_by(|one, other| (other.steps, &one.url).cmp(&(one.steps, &other.url)));
        visits.truncate(MAX_NAMED);
        report.most_visited = visits;
        Some(report)
    }
}

/// Formats the walk as part of the report.
impl fmt::Display for RandomWalkReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let walkers = counted(self.walkers, "walker", "walkers");
        let (steps, pages) = (grouped(self.steps), counted(self.pages, "URL", "URLs"));
        writeln!(f, "walk      {walkers}, {steps} steps to {pages}")?;
        if !self.restarts.is_empty() {
            let restarts = self.restarts.iter();
            let restarts: Vec<_> = restarts
                .map(|(why, steps)| format!("{why}: {}", grouped(*steps)))
                .collect();
            let restarts = restarts.join(", ");
            writeln!(f, "  restarts: {}", crawl_weburl::safe_line(&restarts))?;
        }
        writeln!(f, "  shares of the steps (intervals are unknown):")?;
        let percent = |share: &f64| format!("{:.1} %", 100.0 * share);
        writeln!(f, "    return a page: {}", percent(&self.answered))?;
        for (status, share) in &self.statuses {
            writeln!(f, "    status {status}: {}", percent(share))?;
        }
        if !self.types.is_empty() {
            writeln!(f, "  of those that return a page:")?;
        }
        for (kind, share) in &self.types {
            let kind = crawl_weburl::safe_line(kind);
            writeln!(f, "    type {kind}: {}", percent(share))?;
        }
        writeln!(f, "  most visited:")?;
        for page in &self.most_visited {
            let url = crawl_weburl::safe_line(&page.url);
            writeln!(f, "    {} {url}", grouped(page.steps))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crawl_archive::rows::{PageRow, RandomWalkStep};
    use expect_test::expect;
    use serde_json::json;

    use super::WalkVisitCounter;
    use crate::sample_report::LastSampledRows;

    /// Walkers with interleaved rows. One reaches a page by a redirect, two reach a URL that
    /// robots.txt excludes, one of them last, and one waits for its page.
    #[test]
    fn a_walk_is_reported_by_its_steps() {
        let mut steps = WalkVisitCounter::default();
        for (walker, step, how, why, url) in [
            (1, 1, "start", None, "http://a.example/"),
            (2, 1, "start", None, "http://a.example/"),
            (1, 2, "link", None, "http://a.example/old"),
            (1, 2, "redirect", None, "http://a.example/new"),
            (2, 2, "link", None, "http://a.example/private"),
            (2, 3, "restart", Some("excluded"), "http://a.example/"),
            (1, 3, "restart", Some("chance"), "http://a.example/"),
            (1, 4, "link", None, "http://a.example/gone"),
            (3, 1, "start", None, "http://a.example/next"),
            (4, 1, "start", None, "http://a.example/forbidden"),
        ] {
            steps.add(RandomWalkStep {
                walker,
                step,
                how: how.to_owned(),
                why: why.map(str::to_owned),
                url: url.to_owned(),
                from: None,
                links: None,
            });
        }
        let mut pages = LastSampledRows::default();
        for (url, status, kind) in [
            ("http://a.example/", 200, "text/html; charset=utf-8"),
            ("http://a.example/old", 301, "text/html"),
            ("http://a.example/new", 200, "application/pdf"),
            ("http://a.example/gone", 404, "text/html"),
        ] {
            let row: PageRow = serde_json::from_value(json!({"url": url, "status": status,
                "fetched_at": "2026-11-20T23:59:59.123Z", "ms": 1, "bytes": 10,
                "content_type": kind, "digest": null, "depth": 1, "via": null, "title": null,
                "robots": null, "warc": null, "error": null, "sample": {"how": "walk",
                "stratum": null, "drawn": null, "of": null, "probability": null,
                "unknown": "a walk"}}))
            .unwrap();
            pages.add(&row);
        }
        assert!(pages.report().is_none(), "a walk is no draw");
        let mut pending = steps.unanswered_ends(&pages);
        assert_eq!(pending.len(), 2);
        pending.remove("http://a.example/forbidden");
        let report = steps.report(&pages, &pending).unwrap();
        expect![[r#"
            walk      4 walkers, 9 steps to 6 URLs
              restarts: chance: 1, excluded: 1
              shares of the steps (intervals are unknown):
                return a page: 55.6 %
                status 200: 55.6 %
                status 404: 11.1 %
                status excluded: 22.2 %
                status pending: 11.1 %
              of those that return a page:
                type application/pdf: 20.0 %
                type text/html: 80.0 %
              most visited:
                4 http://a.example/
                1 http://a.example/forbidden
                1 http://a.example/gone
                1 http://a.example/new
                1 http://a.example/next
                1 http://a.example/private
        "#]]
        .assert_eq(&report.to_string());
        assert!(
            WalkVisitCounter::default()
                .report(&pages, &HashSet::new())
                .is_none()
        );
    }
}

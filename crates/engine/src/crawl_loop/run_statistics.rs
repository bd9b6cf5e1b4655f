//! The committed totals and the counts of a run, for its summary and for progress reports.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crawl_scheduler::Tick;
use crawl_weburl::CanonicalUrl;

use crate::control::RecentPage;
use crate::crawl_totals::CrawlTotals;
use crate::revisit::visit::{RevisitRules, Round};
use crate::run_counters::{CommitMeasurement, EndedRequest, RunCounters};
use crate::summary::SeedFailure;

/// Maximum pages in [`RunStatistics::latest`].
const MAX_LATEST_PAGES: usize = 10;

/// Collects the data for the summary and the progress of a run: the totals of all runs, of the
/// round and of this run, and counts of this run.
///
/// [`enter_round`](Self::enter_round) comes before the first commit. After that, the caller
/// reports, in any order, ended requests ([`request_ended`](Self::request_ended)), answers for
/// robots.txt, settled pages ([`settled`](Self::settled)) and commits. At the end of the run,
/// [`take_unusable`](Self::take_unusable) and [`take_seeds_failed`](Self::take_seeds_failed) return
/// what was collected. Emits no effects.
#[derive(Debug)]
pub(super) struct RunStatistics {
    totals: CrawlTotals,
    at_start: CrawlTotals,
    round: Round,
    counters: RunCounters,
    robots_requests: u64,
    refused_requests: u64,
    /// Numbers of links that don't lead to a fetchable URL, by reason.
    unusable: BTreeMap<&'static str, u64>,
    seeds_failed: Vec<SeedFailure>,
    latest: VecDeque<RecentPage>,
}

impl RunStatistics {
    /// Begins a run of the first round. `at_start` are the totals of all earlier runs.
    pub(super) fn new(at_start: CrawlTotals, now: Tick) -> RunStatistics {
        RunStatistics {
            totals: at_start,
            at_start,
            round: Round::first(crate::time_conversions::seconds(now)),
            counters: RunCounters::default(),
            robots_requests: 0,
            refused_requests: 0,
            unusable: BTreeMap::new(),
            seeds_failed: Vec::new(),
            latest: VecDeque::new(),
        }
    }

    /// Sets the round that this run belongs to.
    pub(super) fn enter_round(&mut self, visits: &RevisitRules) {
        self.round = visits.round;
    }

    pub(super) fn request_ended(&mut self, request: EndedRequest) {
        self.counters.request(request);
    }

    /// Counts a request that was not sent because the crawl refuses its address.
    pub(super) fn request_refused(&mut self) {
        self.refused_requests += 1;
    }

    /// Counts a request for a robots.txt, or for the target of its redirect, that was answered or
    /// failed.
    pub(super) fn robots_answered(&mut self) {
        self.robots_requests += 1;
    }

    /// Counts links that don't lead to a fetchable URL, for this reason.
    pub(super) fn add_unusable(&mut self, why: &'static str, count: u64) {
        *self.unusable.entry(why).or_default() += count;
    }

    /// Records a page that was fetched or failed; `status` is `None` if it failed.
    pub(super) fn settled(&mut self, url: &CanonicalUrl, status: Option<u16>, at: Tick) {
        self.latest.truncate(MAX_LATEST_PAGES - 1);
        let url = url.clone();
        self.latest.push_front(RecentPage { url, status, at });
    }

    /// Records a commit, with the new totals of all runs.
    pub(super) fn committed(
        &mut self,
        totals: CrawlTotals,
        counts: &CommitMeasurement,
        unusable: HashMap<&'static str, u64>,
        seeds_failed: Vec<SeedFailure>,
    ) {
        self.totals = totals;
        self.counters.commit(counts);
        for (why, count) in unusable {
            self.add_unusable(why, count);
        }
        self.seeds_failed.extend(seeds_failed);
    }

    /// Returns the totals over all runs, as of the last commit.
    pub(super) fn of_all_runs(&self) -> &CrawlTotals {
        &self.totals
    }

    /// Returns the totals since the round began.
    pub(super) fn of_round(&self) -> CrawlTotals {
        self.totals.since(&self.round.before)
    }

    pub(super) fn of_run(&self) -> CrawlTotals {
        self.totals.since(&self.at_start)
    }

    pub(super) fn round(&self) -> &Round {
        &self.round
    }

    pub(super) fn counters(&self) -> &RunCounters {
        &self.counters
    }

    pub(super) fn refused_requests(&self) -> u64 {
        self.refused_requests
    }

    pub(super) fn robots_requests(&self) -> u64 {
        self.robots_requests
    }

    /// Returns the latest settled pages, newest first.
    pub(super) fn latest(&self) -> Vec<RecentPage> {
        self.latest.iter().cloned().collect()
    }

    /// Takes the numbers of links that don't lead to a fetchable URL, by reason.
    pub(super) fn take_unusable(&mut self) -> BTreeMap<&'static str, u64> {
        std::mem::take(&mut self.unusable)
    }

    /// Takes the seeds that failed, in the order of their commits.
    pub(super) fn take_seeds_failed(&mut self) -> Vec<SeedFailure> {
        std::mem::take(&mut self.seeds_failed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use crawl_weburl::{CanonicalUrl, canonicalize};

    use super::super::fixtures::{at, config, pages};
    use super::{MAX_LATEST_PAGES, RunStatistics};
    use crate::revisit::visit::{RevisitRules, Round};
    use crate::run_counters::CommitMeasurement;
    use crate::summary::SeedFailure;

    fn url(path: u16) -> CanonicalUrl {
        canonicalize(None, &format!("http://a.example/{path}")).unwrap()
    }

    #[test]
    fn commits_add_up_and_are_handed_over_once() {
        let mut report = RunStatistics::new(pages(0), at(10));
        report.add_unusable("mailto", 1);
        for path in [1, 2] {
            let failed = vec![SeedFailure {
                url: url(path),
                why: "timeout".to_owned(),
            }];
            let unusable = HashMap::from([("mailto", 2)]);
            report.committed(
                pages(path.into()),
                &CommitMeasurement::default(),
                unusable,
                failed,
            );
        }
        report.robots_answered();
        assert_eq!(report.robots_requests(), 1);
        assert_eq!(report.take_unusable(), BTreeMap::from([("mailto", 5)]));
        assert_eq!(report.take_seeds_failed().len(), 2);
        assert!(report.take_unusable().is_empty() && report.take_seeds_failed().is_empty());
    }

    #[test]
    fn totals_are_summed_by_run_and_by_round() {
        let mut report = RunStatistics::new(pages(110), at(10));
        assert_eq!(report.round().number, 1);
        report.enter_round(&RevisitRules {
            round: Round {
                number: 2,
                before: pages(100),
                ..Round::first(5)
            },
            revisits: config().revisits,
        });
        assert_eq!((report.of_round().pages, report.of_run().pages), (10, 0));
        report.committed(
            pages(150),
            &CommitMeasurement::default(),
            HashMap::new(),
            Vec::new(),
        );
        assert_eq!(report.of_all_runs().pages, 150);
        assert_eq!((report.of_round().pages, report.of_run().pages), (50, 40));
        assert_eq!(report.round().number, 2);
    }

    #[test]
    fn only_the_latest_pages_are_kept_the_last_one_first() {
        let mut report = RunStatistics::new(pages(0), at(10));
        for page in 0..12_u16 {
            report.settled(&url(page), Some(200 + page), at(page.into()));
        }
        let latest = report.latest().into_iter();
        let latest: Vec<_> = latest.map(|page| (page.status, page.at)).collect();
        let expected: Vec<_> = (2..12)
            .rev()
            .map(|n| (Some(200 + n), at(n.into())))
            .collect();
        assert_eq!(latest, expected);
        assert_eq!(latest.len(), MAX_LATEST_PAGES);
    }
}

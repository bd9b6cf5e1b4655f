//! The counts of a run for its summary and for those who watch it.

use std::collections::{BTreeMap, HashMap};

use crate::counters::{Commit, Counters, EndedRequest};
use crate::summary::SeedFailure;

/// Collects what a run reports besides its totals.
///
/// Receives each request that [`ended`](Self::request_ended), each answer for a robots.txt, and each
/// commit, in any order; emits nothing. At the end of the run
/// [`take_unusable`](Self::take_unusable) and [`take_seeds_failed`](Self::take_seeds_failed) hand the
/// collections over.
#[derive(Debug, Default)]
pub(super) struct RunReport {
    counters: Counters,
    robots_requests: u64,
    /// Links that name nothing to fetch, by reason.
    unusable: BTreeMap<&'static str, u64>,
    seeds_failed: Vec<SeedFailure>,
}

impl RunReport {
    /// A request ended.
    pub(super) fn request_ended(&mut self, request: EndedRequest) {
        self.counters.request(request);
    }

    /// A request for a robots.txt, or a hop of it, was answered or failed.
    pub(super) fn robots_answered(&mut self) {
        self.robots_requests += 1;
    }

    /// Counts links that name nothing to fetch, for this reason.
    pub(super) fn add_unusable(&mut self, why: &'static str, count: u64) {
        *self.unusable.entry(why).or_default() += count;
    }

    /// The writer committed something.
    pub(super) fn committed(
        &mut self,
        counts: &Commit,
        unusable: HashMap<&'static str, u64>,
        seeds_failed: Vec<SeedFailure>,
    ) {
        self.counters.commit(counts);
        for (why, count) in unusable {
            self.add_unusable(why, count);
        }
        self.seeds_failed.extend(seeds_failed);
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn robots_requests(&self) -> u64 {
        self.robots_requests
    }

    /// Takes the number of links that name nothing to fetch, by reason.
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

    use crawl_weburl::canonicalize;

    use super::RunReport;
    use crate::counters::Commit;
    use crate::summary::SeedFailure;

    #[test]
    fn ours_commits_add_up_and_are_handed_over_once() {
        let seed = |host: &str| SeedFailure {
            url: canonicalize(None, &format!("http://{host}.example/")).unwrap(),
            why: "timeout".to_owned(),
        };
        let mut report = RunReport::default();
        report.add_unusable("mailto", 1);
        for host in ["a", "b"] {
            let unusable = HashMap::from([("mailto", 2)]);
            report.committed(&Commit::default(), unusable, vec![seed(host)]);
        }
        report.robots_answered();
        assert_eq!(report.robots_requests(), 1);
        assert_eq!(report.take_unusable(), BTreeMap::from([("mailto", 5)]));
        assert_eq!(report.take_seeds_failed().len(), 2);
        assert!(report.take_unusable().is_empty() && report.take_seeds_failed().is_empty());
    }
}

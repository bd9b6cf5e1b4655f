//! Creates the summary of a run from the state of the crawl loop.

use std::collections::{BTreeMap, HashSet};
use std::iter;
use std::time::Duration;

use crawl_frontier::{Frontier, KnownState};
use crawl_weburl::{CanonicalUrl, HostKey};

use super::Coordinator;
use crate::config::{Config, RunMode};
use crate::frontier_meta_keys::META_SHARED_SEED;
use crate::revisit::visit::PreviousVisit;
use crate::summary::{EndReason, IndexSummary, RunConnectivity, RunSummary, SeedFailure};

/// Maximum number of redirects of a seed to follow to its host.
const MAX_SEED_REDIRECTS: usize = 10;

impl Coordinator {
    /// Returns the summary of a run that is over.
    pub(crate) fn into_summary(
        mut self,
        ended: EndReason,
        elapsed: Duration,
        resumed: bool,
        excluded: BTreeMap<String, u64>,
        indexed: Option<IndexSummary>,
    ) -> RunSummary {
        let totals = self.totals();
        let of_round = self.report.of_round();
        // Leave out sitemaps, since they don't show whether pages can be fetched.
        let pages_of_round = of_round.pages.saturating_sub(of_round.sitemaps);
        let failed_of_round = of_round.failed.saturating_sub(of_round.failed_sitemaps);
        let round = *self.report.round();
        let mut seeds_failed = self.report.take_seeds_failed();
        // In a shared crawl, another worker may have fetched the seeds. If the database can't be
        // read, assume that another worker did. Otherwise the summary might report a failure that
        // did not happen.
        let seed_mark = self
            .shared
            .is_shared()
            .then(|| self.frontier.meta(META_SHARED_SEED));
        let by_others = u64::from(seed_mark.is_some_and(|mark| !matches!(mark, Ok(None))));
        if totals.seeds_fetched + by_others == 0 && seeds_failed.is_empty() {
            seeds_failed = unfetched_seeds(&self.config, &*self.frontier);
        }
        let are_seeds_unreachable =
            are_seeds_unreachable(&self.config.seeds, &*self.frontier, &ended);
        RunSummary {
            ended,
            pages: of_round.pages,
            pages_of_run: self.report.of_run().pages,
            failed: of_round.failed,
            pending: self.frontier.counts().pending,
            round: round.number,
            changes: totals.changes,
            next_due: self.frontier.next_due(round.began).ok().flatten(),
            requests: (self.hosts.requests().sent_in_run())
                .saturating_sub(self.report.refused_requests()),
            robots_requests: self.report.robots_requests(),
            bytes: of_round.bytes,
            excluded,
            indexed,
            unusable: self.report.take_unusable(),
            seeds_fetched: match of_round.seeds_fetched.max(by_others) {
                // The round fetched some pages, so count one seed as fetched, even if no seed was
                // due. 0 would mean that the round failed.
                0 if round.number > 1 && pages_of_round > failed_of_round => 1,
                // No page was fetched although pages of the seeds' hosts were due.
                0 if are_seeds_unreachable => 0,
                0 if pages_of_round == 0 => totals.seeds_fetched,
                // All pages of the round failed, but no seed was due, so report the seeds fetched
                // in earlier rounds.
                0 if round.number > 1 && seeds_failed.is_empty() => totals.seeds_fetched,
                fetched => fetched,
            },
            seeds_failed,
            strange_robots: self.robots.take_strange(),
            rules: match self.config.extent {
                RunMode::Plan => self.robots.rules(),
                RunMode::Crawl | RunMode::Rules => Vec::new(),
            },
            elapsed,
            parked: self.hosts.parked().cloned().collect(),
            reach: RunConnectivity::of(self.report.counters()),
            output: self.config.output.clone(),
            created: Vec::new(),
            resumed,
        }
    }
}

/// Returns whether the run left URLs pending on the host of each seed, because it could not fetch
/// from that host. If a seed redirected, the host of its target counts too.
fn are_seeds_unreachable(
    seeds: &[CanonicalUrl],
    frontier: &dyn Frontier,
    ended: &EndReason,
) -> bool {
    let EndReason::NoFetchableHost(hosts) = ended else {
        return false;
    };
    let hosts: HashSet<&HostKey> = hosts.iter().map(|host| &host.host).collect();
    let is_unreachable = |seed: &CanonicalUrl| {
        redirect_chain(seed, frontier).any(|url| hosts.contains(&url.host_key()))
    };
    !seeds.is_empty() && seeds.iter().all(is_unreachable)
}

/// Returns a seed and then each target of its redirects. Ends with the first URL that did not
/// redirect or was not fetched.
fn redirect_chain(
    seed: &CanonicalUrl,
    frontier: &dyn Frontier,
) -> impl Iterator<Item = CanonicalUrl> {
    let target = |url: &CanonicalUrl| {
        let visit = frontier.visit(url).ok()??;
        PreviousVisit::read(&visit)?.redirect()
    };
    iter::successors(Some(seed.clone()), target).take(MAX_SEED_REDIRECTS)
}

/// Returns the seeds that led to no page, each with the reason. Skips seeds that are still pending
/// or redirect to a pending URL.
fn unfetched_seeds(config: &Config, frontier: &dyn Frontier) -> Vec<SeedFailure> {
    let is_pending = |url: CanonicalUrl| {
        let details = frontier.known(&url).ok().flatten();
        details.is_some_and(|known| {
            matches!(
                known.state,
                KnownState::Pending { .. } | KnownState::Leased { .. }
            )
        })
    };
    let failure = |seed: &CanonicalUrl| {
        if redirect_chain(seed, frontier).any(is_pending) {
            return None;
        }
        let why = match frontier.known(seed).ok()??.state {
            KnownState::Fetched { status: 300..=399 } => "its redirects lead to no page".to_owned(),
            KnownState::Fetched { status } => status.to_string(),
            KnownState::Failed { why } => why,
            KnownState::Excluded(exclusion) | KnownState::Deferred(exclusion) => {
                exclusion.to_string()
            }
            KnownState::Pending { .. } | KnownState::Leased { .. } => return None,
        };
        Some(SeedFailure {
            url: seed.clone(),
            why,
        })
    };
    config.seeds.iter().filter_map(failure).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};
    use std::sync::Arc;
    use std::time::Duration;

    use crawl_frontier::{LastVisit, LeaseOutcome, UrlToAdmit};
    use crawl_weburl::{CanonicalUrl, canonicalize};

    use super::super::fixtures::{at, coordinator, leased, pages, run_report};
    use crate::crawl_totals::CrawlTotals;
    use crate::run_counters::CommitMeasurement;
    use crate::summary::{EndReason, RunSummary, SeedFailure, UnfetchableHost};

    fn totals(pages: u64, failed: u64, seeds_fetched: u64) -> CrawlTotals {
        CrawlTotals {
            pages,
            failed,
            seeds_fetched,
            ..CrawlTotals::default()
        }
    }

    /// Returns the summary of a run with one seed and that seed's outcome, in a round that began
    /// with the totals `before`.
    fn summary_of(
        seed: Option<LeaseOutcome>,
        round: u32,
        before: CrawlTotals,
        totals: CrawlTotals,
    ) -> RunSummary {
        let mut coordinator = coordinator(|_| {});
        let frontier = Arc::clone(&coordinator.frontier);
        let admission = UrlToAdmit::seed(coordinator.config.seeds[0].clone());
        let lease = leased(&*frontier, admission);
        match seed {
            Some(outcome) => {
                let mut transaction = frontier.begin().unwrap();
                transaction.settle(lease, outcome).unwrap();
                transaction.commit().unwrap();
            }
            None => frontier.release(lease),
        }
        let at_start = pages(totals.pages.min(before.pages + 1));
        coordinator.report = run_report(round, before, at_start, totals);
        let elapsed = Duration::from_secs(1);
        coordinator.into_summary(EndReason::Finished, elapsed, true, BTreeMap::new(), None)
    }

    /// Returns the visit of a URL that redirects to `target`, if there is one.
    fn visit(target: Option<&CanonicalUrl>) -> LastVisit {
        let redirect = |url| format!(r#"{{"r":1,"p":{{"s":301,"d":"","t":"{url}"}}}}"#);
        LastVisit {
            at: 1,
            due: 9,
            bytes: target.map(redirect).unwrap_or_default().into_bytes(),
        }
    }

    #[test]
    fn a_summary_counts_this_round_and_this_run() {
        let summary = summary_of(None, 1, totals(2, 1, 0), totals(7, 3, 1));
        assert_eq!(
            (summary.pages, summary.failed, summary.pages_of_run),
            (5, 2, 4)
        );
        assert_eq!((summary.seeds_fetched, summary.pending), (1, 1));
        assert!(summary.seeds_failed.is_empty());
    }

    #[test]
    fn a_crawl_without_pages_has_a_reason_for_each_seed() {
        let redirected = LeaseOutcome::Fetched { status: 301 };
        let missing = LeaseOutcome::Fetched { status: 404 };
        let failed = LeaseOutcome::Failed {
            why: "timeout".to_owned(),
        };
        for (outcome, fetched, words) in [
            (Some(redirected), 0, Some("its redirects lead to no page")),
            (Some(missing.clone()), 0, Some("404")),
            (Some(failed), 0, Some("timeout")),
            (None, 0, None),
            (Some(missing), 1, None),
        ] {
            let summary = summary_of(outcome, 1, CrawlTotals::default(), totals(1, 0, fetched));
            let reasons: Vec<_> = summary.seeds_failed.iter().map(|seed| &*seed.why).collect();
            assert_eq!(reasons, Vec::from_iter(words));
        }
    }

    #[test]
    fn a_seed_that_redirects_to_a_pending_url_has_not_failed() {
        for (is_pending, reasons) in [
            (true, &[][..]),
            (false, &["its redirects lead to no page"][..]),
        ] {
            let coordinator = coordinator(|_| {});
            let frontier = Arc::clone(&coordinator.frontier);
            let seed = coordinator.config.seeds[0].clone();
            let target = canonicalize(None, "http://a.example/target").unwrap();
            let lease = leased(&*frontier, UrlToAdmit::seed(seed.clone()));
            let mut transaction = frontier.begin().unwrap();
            let outcome = LeaseOutcome::Fetched { status: 301 };
            let visit = visit(Some(&target));
            transaction.settle_until(lease, outcome, visit).unwrap();
            if is_pending {
                let admission = UrlToAdmit::link(target, 0, seed);
                transaction.admit(admission).unwrap();
            }
            transaction.commit().unwrap();
            let (ended, elapsed) = (EndReason::Budget("max-pages"), Duration::from_secs(1));
            let summary = coordinator.into_summary(ended, elapsed, false, BTreeMap::new(), None);
            let failed = summary.seeds_failed.iter();
            assert_eq!(Vec::from_iter(failed.map(|seed| &*seed.why)), reasons);
        }
    }

    #[test]
    fn in_a_later_round_seeds_may_not_be_due() {
        // Each row has the round; the number of pages, failed pages and fetched seeds before it and
        // at its end; and the expected number of fetched seeds.
        for (round, before, now, fetched) in [
            (1, (0, 0, 0), (3, 1, 0), 0),
            (2, (5, 0, 3), (5, 0, 3), 3),
            (2, (5, 0, 4), (8, 2, 4), 1),
            (2, (5, 0, 4), (8, 3, 4), 4),
            (2, (5, 0, 1), (8, 3, 3), 2),
        ] {
            let of = |(pages, failed, seeds)| totals(pages, failed, seeds);
            let summary = summary_of(None, round, of(before), of(now));
            assert_eq!(summary.seeds_fetched, fetched, "{round} {before:?} {now:?}");
        }
    }

    #[test]
    fn a_later_round_in_which_the_seeds_are_unreachable_fetched_no_seed() {
        let before = totals(5, 0, 3);
        // Each row has the name of the unreachable host, whether the seed redirected to it, the
        // pages and failed pages of this round, and the expected number of fetched seeds.
        for (host, is_target, pages, failed, fetched) in [
            ("e.example", false, 0, 0, 0),
            ("e.example", false, 2, 2, 0),
            ("e.example", false, 2, 1, 1),
            ("www.e.example", true, 0, 0, 0),
            ("www.e.example", false, 0, 0, 3),
        ] {
            let mut coordinator = coordinator(|_| {});
            let seed = canonicalize(None, "http://e.example/").unwrap();
            Arc::make_mut(&mut coordinator.config).seeds = vec![seed.clone()];
            let url = canonicalize(None, &format!("http://{host}/")).unwrap();
            let frontier = Arc::clone(&coordinator.frontier);
            let lease = leased(&*frontier, UrlToAdmit::seed(seed));
            let mut transaction = frontier.begin().unwrap();
            let visit = visit(is_target.then_some(&url));
            let outcome = LeaseOutcome::Fetched { status: 301 };
            transaction.settle_until(lease, outcome, visit).unwrap();
            transaction.commit().unwrap();
            let now = totals(5 + pages, failed, 3);
            coordinator.report = run_report(2, before, before, now);
            let ended = EndReason::NoFetchableHost(vec![UnfetchableHost {
                host: url.host_key(),
                why: "connect_refused".to_owned(),
                next_try: Some(at(500)),
                is_tried_at_start: false,
            }]);
            let elapsed = Duration::from_secs(1);
            let summary = coordinator.into_summary(ended, elapsed, true, BTreeMap::new(), None);
            assert_eq!(
                summary.seeds_fetched, fetched,
                "{host} {is_target} {pages} {failed}"
            );
        }
    }

    #[test]
    fn seeds_of_earlier_rounds_count_unless_due_pages_failed() {
        // Each row has the numbers of rows, sitemaps and failed pages of this round, and the
        // expected number of fetched seeds.
        for (pages, sitemaps, failed, fetched) in [
            (0, 0, 0, 3),
            (1, 1, 0, 3),
            (2, 0, 2, 0),
            (3, 1, 2, 0),
            (2, 0, 1, 1),
        ] {
            let mut coordinator = coordinator(|_| {});
            let before = totals(5, 0, 3);
            let now = CrawlTotals {
                sitemaps,
                ..totals(5 + pages, failed, 3)
            };
            coordinator.report = run_report(2, before, now, now);
            let url = coordinator.config.seeds[0].clone();
            let seeds_failed = vec![SeedFailure {
                url,
                why: "excluded".to_owned(),
            }];
            let unusable = HashMap::from([("mailto", 4)]);
            let counts = CommitMeasurement::default();
            coordinator
                .report
                .committed(now, &counts, unusable, seeds_failed);
            (0..7).for_each(|_| coordinator.hosts.sent());
            (0..2).for_each(|_| coordinator.report.robots_answered());
            let (elapsed, excluded) = (Duration::from_secs(1), BTreeMap::new());
            let summary =
                coordinator.into_summary(EndReason::Finished, elapsed, true, excluded, None);
            assert_eq!(
                (summary.seeds_fetched, summary.seeds_failed.len()),
                (fetched, 1)
            );
            assert_eq!((summary.requests, summary.robots_requests), (7, 2));
            assert_eq!(summary.unusable, BTreeMap::from([("mailto", 4)]));
        }
    }
}

//! The summary of a run that is over.

use std::collections::BTreeMap;
use std::time::Duration;

use crawl_frontier::{Frontier, KnownState};
use crawl_weburl::CanonicalUrl;

use super::Coordinator;
use crate::config::Config;
use crate::summary::{Ended, Indexed, SeedFailure, Summary};

impl Coordinator {
    /// The summary of a run that is over.
    pub(crate) fn into_summary(
        mut self,
        ended: Ended,
        elapsed: Duration,
        resumed: bool,
        excluded: BTreeMap<String, u64>,
        indexed: Option<Indexed>,
    ) -> Summary {
        let totals = self.totals();
        let of_round = totals.since(&self.visits.round.before);
        let mut seeds_failed = std::mem::take(&mut self.seeds_failed);
        if totals.seeds_fetched == 0 && seeds_failed.is_empty() {
            seeds_failed = unfetched_seeds(&self.config, &*self.frontier);
        }
        Summary {
            ended,
            pages: of_round.pages,
            pages_of_run: totals.pages - self.totals_at_start.pages,
            failed: of_round.failed,
            pending: self.frontier.counts().pending,
            round: self.visits.round.number,
            changes: totals.changes,
            next_due: self
                .frontier
                .next_due(self.visits.round.began)
                .ok()
                .flatten(),
            requests: self.requests,
            robots_requests: self.robots_requests,
            bytes: of_round.bytes,
            excluded,
            indexed,
            unusable: std::mem::take(&mut self.unusable),
            seeds_fetched: match of_round.seeds_fetched {
                // In a later round a seed may not have been due.
                0 if self.visits.round.number > 1 && of_round.pages > of_round.failed => 1,
                0 if of_round.pages == 0 => totals.seeds_fetched,
                // Those that were due failed, and no seed was among them.
                0 if self.visits.round.number > 1 && seeds_failed.is_empty() => {
                    totals.seeds_fetched
                }
                fetched => fetched,
            },
            seeds_failed,
            strange_robots: self.origins.take_strange(),
            elapsed,
            parked: self.scheduler.parked().cloned().collect(),
            output: self.config.output.clone(),
            resumed,
        }
    }
}

/// The outcome of each seed, for a crawl of which none led to a page.
fn unfetched_seeds(config: &Config, frontier: &dyn Frontier) -> Vec<SeedFailure> {
    let failure = |seed: &CanonicalUrl| {
        let why = match frontier.known(seed).ok()??.state {
            KnownState::Fetched { status: 300..=399 } => "its redirects lead to no page".to_owned(),
            KnownState::Fetched { status } => format!("status {status}"),
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

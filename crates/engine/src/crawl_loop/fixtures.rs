//! Helpers for unit tests of the crawl loop, without a driver.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::RobotsVerdict;
use crawl_fetcher::Validators;
use crawl_fetcher::robots::{CompiledRobots, RobotsCopy, RobotsRulesState, TdmReservationCopy};
use crawl_frontier::{Frontier, Lease, MemoryFrontier, UrlToAdmit};
use crawl_policy::{ProductToken, RobotsProfile};
use crawl_scheduler::{PaceFromRobots, RobotsState, Tick};
use crawl_scope::{Scope, ScopeMode};
use crawl_weburl::{Origin, canonicalize};

use super::Coordinator;
use super::run_statistics::RunStatistics;
use crate::config::Config;
use crate::crawl_totals::CrawlTotals;
use crate::messages::page_pipeline_stages::FactsBeforeFetch;
use crate::revisit::unread_link_kinds::UnreadLinkKinds;
use crate::revisit::visit::{RevisitRules, Round};
use crate::run_counters::CommitMeasurement;

pub(super) fn at(second: u64) -> Tick {
    Tick::from_micros(second * 1_000_000)
}

pub(super) fn config() -> Config {
    let seed = canonicalize(None, "http://a.example/").unwrap();
    let agent = ProductToken::new("crawl").unwrap();
    let mut config = Config::new(agent, "0.0", None, vec![seed], "c");
    // Issue no permits for address look-ups. Tests of look-ups set another number.
    config.politeness.look_ups = 0;
    // All hosts in these tests have the same address, so a limit per address would delay their
    // requests.
    config.politeness.address_rate = None;
    config
}

/// Creates the loop of a new crawl that begins at second 10.
pub(super) fn coordinator(change: impl FnOnce(&mut Config)) -> Coordinator {
    let mut config = config();
    change(&mut config);
    let scope = Scope::new(ScopeMode::Any, &[], &[], None).unwrap();
    let frontier = Arc::new(MemoryFrontier::new());
    let totals = CrawlTotals::default();
    Coordinator::new(Arc::new(config), frontier, scope, totals, at(10), 1)
}

/// Returns totals with this number of pages, and nothing else.
pub(super) fn pages(pages: u64) -> CrawlTotals {
    CrawlTotals {
        pages,
        ..CrawlTotals::default()
    }
}

/// Returns the statistics of a run that has the totals `totals` now. `at_start` are the totals when
/// the run began, and `before` when its round began.
pub(super) fn run_report(
    round: u32,
    before: CrawlTotals,
    at_start: CrawlTotals,
    totals: CrawlTotals,
) -> RunStatistics {
    let mut run = RunStatistics::new(at_start, at(10));
    run.enter_round(&RevisitRules {
        round: Round {
            number: round,
            before,
            ..Round::first(10)
        },
        revisits: config().revisits,
    });
    run.committed(
        totals,
        &CommitMeasurement::default(),
        HashMap::new(),
        Vec::new(),
    );
    run
}

/// Admits a URL and leases it.
pub(super) fn leased(frontier: &dyn Frontier, admission: UrlToAdmit) -> Lease {
    let origin = admission.url.origin();
    let mut transaction = frontier.begin().unwrap();
    transaction.admit(admission).unwrap();
    transaction.commit().unwrap();
    frontier.lease(&origin).unwrap().unwrap()
}

/// Returns a robots.txt state without restrictions that does not expire.
pub(super) fn open_to_all() -> RobotsState {
    RobotsState::InForce {
        pace: PaceFromRobots::default(),
        until: at(1_000_000_000),
    }
}

/// Returns the copy of a robots.txt that was fetched at second 10.
pub(super) fn copy(origin: &Origin, body: &'static str) -> RobotsCopy {
    RobotsCopy {
        origin: origin.clone(),
        state: RobotsRulesState::Rules,
        status: Some(200),
        fetched_at: at(10),
        expires: at(100),
        lasts: Duration::from_secs(90),
        body: body.into(),
        good_at: Some(at(10)),
        url: origin.robots_url(),
        validators: Validators::default(),
        tdmrep: TdmReservationCopy::default(),
    }
}

/// Returns the context for fetching a URL that a robots.txt with this body allows.
pub(super) fn context(lease: &Lease, body: &'static str) -> FactsBeforeFetch {
    let agent = ProductToken::new("crawl").unwrap();
    let copy = copy(&lease.origin, body);
    FactsBeforeFetch {
        robots: RobotsVerdict {
            verdict: "allowed".to_owned(),
            line: None,
            rule: None,
        },
        rules: Arc::new(CompiledRobots::new(copy, &agent, RobotsProfile::Rfc9309)),
        past: None,
        unread_link_kinds: UnreadLinkKinds::default(),
        label: None,
        is_only_checked: false,
        session: None,
    }
}

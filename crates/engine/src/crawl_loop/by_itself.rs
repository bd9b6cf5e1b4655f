//! A crawl loop without a driver, for tests of single rules.

use std::sync::Arc;

use crawl_frontier::{Admission, Frontier, Lease, MemoryFrontier};
use crawl_policy::ProductToken;
use crawl_policy::scope::{Scope, ScopeMode};
use crawl_scheduler::{RobotsPace, RobotsState, Tick};
use crawl_weburl::canonicalize;

use super::Coordinator;
use crate::config::Config;
use crate::totals::Totals;

pub(super) fn at(second: u64) -> Tick {
    Tick::from_micros(second * 1_000_000)
}

pub(super) fn config() -> Config {
    let seed = canonicalize(None, "http://a.example/").unwrap();
    let agent = ProductToken::new("crawl").unwrap();
    Config::new(agent, "0.0", None, vec![seed], "c")
}

/// A crawl that begins at second 10, of which nothing is known.
pub(super) fn coordinator(change: impl FnOnce(&mut Config)) -> Coordinator {
    let mut config = config();
    change(&mut config);
    let scope = Scope::new(ScopeMode::Any, &[], &[], None).unwrap();
    let frontier = Arc::new(MemoryFrontier::new());
    let totals = Totals::default();
    Coordinator::new(Arc::new(config), frontier, scope, totals, at(10), 1)
}

/// Admits a URL that is pending then, and leases it.
pub(super) fn leased(frontier: &dyn Frontier, admission: Admission) -> Lease {
    let origin = admission.url.origin();
    let mut transaction = frontier.begin().unwrap();
    transaction.admit(admission).unwrap();
    transaction.commit().unwrap();
    frontier.lease(&origin).unwrap().unwrap()
}

/// Rules that ask for nothing and hold for long.
pub(super) fn open_to_all() -> RobotsState {
    RobotsState::InForce {
        pace: RobotsPace::default(),
        until: at(1_000_000_000),
    }
}

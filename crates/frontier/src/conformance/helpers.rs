//! Helpers for the checks of the contract and other tests: they create URLs and admissions, and
//! lease and settle URLs. Most helpers use one default origin.

use crawl_weburl::{CanonicalUrl, Origin, canonicalize};

use crate::{
    CommitResult, Frontier, LastVisit, Lease, LeaseOutcome, NotFetchedReason, Reason,
    RequestedState, UrlToAdmit,
};

/// Parses a URL. A path alone is resolved against the default origin, `http://a.example`.
#[must_use]
pub fn url(text: &str) -> CanonicalUrl {
    let base = canonicalize(None, "http://a.example/").unwrap();
    canonicalize(Some(&base), text).unwrap()
}

/// Returns the default origin.
#[must_use]
pub fn origin() -> Origin {
    url("/").origin()
}

/// Creates the admission of a link to `path` at the default origin, in the state pending.
#[must_use]
pub fn link(path: &str, depth: u32) -> UrlToAdmit {
    UrlToAdmit::link(url(path), depth, url("/"))
}

/// Creates the admission of a link to `path` at the default origin, in the state deferred.
#[must_use]
pub fn deferred(path: &str, depth: u32, reason: Reason) -> UrlToAdmit {
    UrlToAdmit {
        state: RequestedState::Deferred(NotFetchedReason::of(reason)),
        ..link(path, depth)
    }
}

/// Creates the admission of a link to `path` at the default origin that is out of scope.
#[must_use]
pub fn excluded(path: &str, depth: u32) -> UrlToAdmit {
    UrlToAdmit {
        state: RequestedState::Excluded(NotFetchedReason::of(Reason::Scope)),
        ..link(path, depth)
    }
}

/// Admits all of `admissions` in one transaction.
pub fn admit(
    frontier: &dyn Frontier,
    admissions: impl IntoIterator<Item = UrlToAdmit>,
) -> CommitResult {
    let mut transaction = frontier.begin().unwrap();
    for admission in admissions {
        transaction.admit(admission).unwrap();
    }
    transaction.commit().unwrap()
}

/// Leases the first pending URL of the default origin.
pub fn lease(frontier: &dyn Frontier) -> Lease {
    frontier.lease(&origin()).unwrap().expect("a pending URL")
}

/// Settles a lease in its own transaction.
pub fn settle(frontier: &dyn Frontier, lease: Lease, outcome: LeaseOutcome) {
    let mut transaction = frontier.begin().unwrap();
    transaction.settle(lease, outcome).unwrap();
    transaction.commit().unwrap();
}

/// Settles a lease as fetched at time `at`, with the next visit due at time `due`.
pub fn settle_until(frontier: &dyn Frontier, lease: Lease, at: u32, due: u32) {
    let visit = LastVisit {
        at,
        due,
        bytes: lease.url.path().into(),
    };
    let mut transaction = frontier.begin().unwrap();
    let outcome = LeaseOutcome::Fetched { status: 200 };
    transaction.settle_until(lease, outcome, visit).unwrap();
    transaction.commit().unwrap();
}

/// Makes up to `most` settled URLs pending again, if their visits are due at time `until`. Returns
/// how many URLs became pending.
pub fn visit_due(frontier: &dyn Frontier, until: u32, most: usize) -> usize {
    let mut transaction = frontier.begin().unwrap();
    let count = transaction.visit_due(until, most).unwrap();
    transaction.commit().unwrap();
    count
}

/// Returns the paths of the pending URLs of the default origin in queue order, joined by spaces.
/// Leases all these URLs, then releases them.
#[must_use]
pub fn order(frontier: &dyn Frontier) -> String {
    let mut leases = Vec::new();
    while let Some(lease) = frontier.lease(&origin()).unwrap() {
        leases.push(lease);
    }
    let paths: Vec<_> = leases.iter().map(|lease| lease.url.path()).collect();
    let order = paths.join(" ");
    for lease in leases {
        frontier.release(lease);
    }
    order
}

/// Settles all pending URLs of the default origin one by one, and returns their paths in order.
#[must_use]
pub fn drain(frontier: &dyn Frontier) -> String {
    let mut paths = Vec::new();
    while let Some(lease) = frontier.lease(&origin()).unwrap() {
        paths.push(lease.url.path().to_owned());
        settle(frontier, lease, LeaseOutcome::Fetched { status: 200 });
    }
    paths.join(" ")
}

//! Helpers for clauses and tests: URLs, admissions, leases and settles, most of them at one origin.

use crawl_weburl::{CanonicalUrl, Origin, canonicalize};

use crate::{
    Admission, CommitResult, Exclusion, Frontier, Lease, NewState, Outcome, Reason, Visit,
};

/// A URL; a path alone is of the default origin, `http://a.example`.
#[must_use]
pub fn url(text: &str) -> CanonicalUrl {
    let base = canonicalize(None, "http://a.example/").unwrap();
    canonicalize(Some(&base), text).unwrap()
}

/// The default origin.
#[must_use]
pub fn origin() -> Origin {
    url("/").origin()
}

/// A pending link of the default origin.
#[must_use]
pub fn link(path: &str, depth: u32) -> Admission {
    Admission::link(url(path), depth, url("/"))
}

/// A link that is put aside.
#[must_use]
pub fn deferred(path: &str, depth: u32, reason: Reason) -> Admission {
    Admission {
        state: NewState::Deferred(Exclusion::of(reason)),
        ..link(path, depth)
    }
}

/// A link that is out of scope.
#[must_use]
pub fn excluded(path: &str, depth: u32) -> Admission {
    Admission {
        state: NewState::Excluded(Exclusion::of(Reason::Scope)),
        ..link(path, depth)
    }
}

/// Admits all in one transaction.
pub fn admit(
    frontier: &dyn Frontier,
    admissions: impl IntoIterator<Item = Admission>,
) -> CommitResult {
    let mut transaction = frontier.begin().unwrap();
    for admission in admissions {
        transaction.admit(admission).unwrap();
    }
    transaction.commit().unwrap()
}

/// The first lease of the default origin.
pub fn lease(frontier: &dyn Frontier) -> Lease {
    frontier.lease(&origin()).unwrap().expect("a pending URL")
}

/// Settles one lease in a transaction of its own.
pub fn settle(frontier: &dyn Frontier, lease: Lease, outcome: Outcome) {
    let mut transaction = frontier.begin().unwrap();
    transaction.settle(lease, outcome).unwrap();
    transaction.commit().unwrap();
}

/// Settles one lease, as fetched at `at`, until `due`.
pub fn settle_until(frontier: &dyn Frontier, lease: Lease, at: u32, due: u32) {
    let visit = Visit {
        at,
        due,
        bytes: lease.url.path().into(),
    };
    let mut transaction = frontier.begin().unwrap();
    let outcome = Outcome::Fetched { status: 200 };
    transaction.settle_until(lease, outcome, visit).unwrap();
    transaction.commit().unwrap();
}

/// Makes pending again what is due.
pub fn visit_due(frontier: &dyn Frontier, until: u32, most: usize) -> usize {
    let mut transaction = frontier.begin().unwrap();
    let count = transaction.visit_due(until, most).unwrap();
    transaction.commit().unwrap();
    count
}

/// Leases all that is pending at the default origin and gives it back: the order.
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

/// Settles all that is pending at the default origin, one by one: what is done, in order.
#[must_use]
pub fn drain(frontier: &dyn Frontier) -> String {
    let mut paths = Vec::new();
    while let Some(lease) = frontier.lease(&origin()).unwrap() {
        paths.push(lease.url.path().to_owned());
        settle(frontier, lease, Outcome::Fetched { status: 200 });
    }
    paths.join(" ")
}

//! Tests what happens between the write of a commit and its merge into the lease table, when no
//! lock is held.

use crawl_weburl::{CanonicalUrl, canonicalize};
use tempfile::TempDir;

use super::{CommitBatch, FjallTransaction};
use crate::lease_table::LeaseChanges;
use crate::{
    FjallFrontier, FjallFrontierOptions, Frontier, Lease, LeaseOutcome, Transaction, UrlToAdmit,
};

fn url(path: &str) -> CanonicalUrl {
    canonicalize(None, &format!("http://a.example{path}")).unwrap()
}

fn link(path: &str, depth: u32) -> UrlToAdmit {
    UrlToAdmit::link(url(path), depth, url("/"))
}

/// Creates a frontier with `/a` and `/b` pending at depth 5. The queue head in memory has at most
/// one of these URLs.
fn frontier_with_two_urls() -> (TempDir, FjallFrontier) {
    let dir = TempDir::new().unwrap();
    let frontier = FjallFrontier::open(dir.path(), &FjallFrontierOptions::default()).unwrap();
    let mut transaction = frontier.begin().unwrap();
    transaction.admit(link("/a", 5)).unwrap();
    transaction.admit(link("/b", 5)).unwrap();
    transaction.commit().unwrap();
    (dir, frontier)
}

fn lease(frontier: &FjallFrontier) -> Option<Lease> {
    frontier.lease(&url("/").origin()).unwrap()
}

fn path(lease: Option<&Lease>) -> Option<&str> {
    lease.map(|lease| lease.url.path())
}

/// Commits a transaction, but stops before the commit is merged into the lease table.
fn commit_without_merge(
    frontier: &FjallFrontier,
    changes: impl FnOnce(&mut dyn Transaction),
) -> LeaseChanges {
    let mut transaction = FjallTransaction::new(frontier, frontier.writer.lock().unwrap());
    changes(&mut transaction);
    let CommitBatch {
        batch,
        records,
        merge,
        ..
    } = transaction.write().unwrap();
    let sequence = transaction.sequence;
    let sieve = &frontier.sieve;
    sieve
        .commit(sequence.commit, &records, || batch.commit())
        .unwrap();
    transaction.writer.sequence = sequence;
    transaction.settled.clear();
    merge
}

/// Settles all pending URLs one by one, and returns them in order.
fn drain(frontier: &FjallFrontier) -> Vec<String> {
    let mut paths = Vec::new();
    while let Some(lease) = lease(frontier) {
        paths.push(lease.url.path().to_owned());
        let mut transaction = frontier.begin().unwrap();
        let outcome = LeaseOutcome::Fetched { status: 200 };
        transaction.settle(lease, outcome).unwrap();
        transaction.commit().unwrap();
    }
    assert_eq!(frontier.counts().pending + frontier.counts().leased, 0);
    paths
}

#[test]
fn a_retry_is_not_leased_before_its_lease_is_over() {
    for forgotten in [false, true] {
        let (_dir, frontier) = frontier_with_two_urls();
        let a = lease(&frontier).unwrap();
        let merge = commit_without_merge(&frontier, |transaction| {
            transaction.settle(a, LeaseOutcome::Retry).unwrap();
        });
        if forgotten {
            frontier.leases().forget_heads();
        }
        let b = lease(&frontier);
        assert_eq!(path(b.as_ref()), Some("/b"));
        assert_eq!(path(lease(&frontier).as_ref()), None);
        frontier.leases().merge(merge);
        frontier.release(b.unwrap());
        assert_eq!(drain(&frontier), ["/b", "/a"]);
    }
}

#[test]
fn a_url_leased_at_its_old_place_is_leased_once() {
    for (released_before, forgotten) in [(false, false), (true, false), (false, true), (true, true)]
    {
        let (_dir, frontier) = frontier_with_two_urls();
        frontier.release(lease(&frontier).unwrap());
        let merge = commit_without_merge(&frontier, |transaction| {
            transaction.admit(link("/a", 1)).unwrap();
            transaction.admit(link("/b", 2)).unwrap();
        });
        if forgotten {
            frontier.leases().forget_heads();
        }
        let a = lease(&frontier).unwrap();
        assert_eq!(a.url, url("/a"));
        if released_before {
            frontier.release(a);
            frontier.leases().merge(merge);
        } else {
            frontier.leases().merge(merge);
            frontier.release(a);
        }
        assert_eq!(drain(&frontier), ["/a", "/b"]);
    }
}

#[test]
fn a_settled_url_is_not_leased_again() {
    let (_dir, frontier) = frontier_with_two_urls();
    let a = lease(&frontier).unwrap();
    let merge = commit_without_merge(&frontier, |transaction| {
        transaction.admit(link("/c", 1)).unwrap();
        transaction
            .settle(a, LeaseOutcome::Fetched { status: 200 })
            .unwrap();
    });
    frontier.leases().forget_heads();
    let c = lease(&frontier).unwrap();
    assert_eq!(c.url, url("/c"));
    frontier.leases().merge(merge);
    frontier.release(c);
    assert_eq!(drain(&frontier), ["/c", "/b"]);
}

#[test]
fn a_url_leased_before_it_moved_is_not_leased_at_its_new_place() {
    let (_dir, frontier) = frontier_with_two_urls();
    let mut a = None;
    let merge = commit_without_merge(&frontier, |transaction| {
        transaction.admit(link("/a", 1)).unwrap();
        a = lease(&frontier);
    });
    assert_eq!(path(a.as_ref()), Some("/a"));
    frontier.leases().forget_heads();
    let b = lease(&frontier);
    assert_eq!(path(b.as_ref()), Some("/b"));
    frontier.leases().merge(merge);
    frontier.release(b.unwrap());
    frontier.release(a.unwrap());
    assert_eq!(drain(&frontier), ["/a", "/b"]);
}

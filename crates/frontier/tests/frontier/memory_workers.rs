//! Tests of a crawl in memory that several workers share.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crawl_frontier::conformance::RestartableFrontier;
use crawl_frontier::conformance::helpers::{link, origin, url};
use crawl_frontier::worker_frontier::{SharedFrontierError, WorkerFrontier as _};
use crawl_frontier::{
    Frontier, FrontierError, KnownState, Lease, LeaseOutcome, MemoryCrawl, MemoryWorker,
    Transaction, UrlToAdmit,
};

const TERM: Duration = Duration::from_secs(30);

/// A crawl with one worker, which can crash and restart.
pub(crate) struct OneWorker {
    crawl: MemoryCrawl,
    worker: Arc<MemoryWorker>,
}

impl OneWorker {
    pub(crate) fn new() -> OneWorker {
        let now = Instant::now();
        let crawl = MemoryCrawl::new(4, TERM, move || now);
        let worker = crawl.open("w1", None).unwrap();
        OneWorker { crawl, worker }
    }
}

impl RestartableFrontier for OneWorker {
    fn frontier(&self) -> &dyn Frontier {
        &*self.worker
    }

    fn begin_expecting(
        &self,
        expected: &mut dyn Iterator<Item = &UrlToAdmit>,
    ) -> Result<Box<dyn Transaction + '_>, FrontierError> {
        let mut transaction = self.worker.begin_worker()?;
        transaction.expect(expected)?;
        Ok(transaction)
    }

    fn die(&mut self) {
        let life = self.worker.life().to_owned();
        self.worker = self.crawl.open("w1", Some(&life)).unwrap();
    }
}

/// A crawl of two workers, with a clock that the test sets.
struct Two {
    crawl: MemoryCrawl,
    now: Arc<Mutex<Instant>>,
}

impl Two {
    fn new() -> Two {
        let now = Arc::new(Mutex::new(Instant::now()));
        let clock = Arc::clone(&now);
        let clock = move || *clock.lock().unwrap();
        let crawl = MemoryCrawl::new(1, TERM, clock);
        Two { crawl, now }
    }

    fn pass(&self, time: Duration) {
        *self.now.lock().unwrap() += time;
    }

    fn worker_with_lease(&self) -> (Arc<MemoryWorker>, Lease) {
        let worker = self.crawl.open("w1", None).unwrap();
        let mut transaction = worker.begin().unwrap();
        transaction.admit(link("/a", 1)).unwrap();
        transaction.commit().unwrap();
        let lease = worker.lease(&origin()).unwrap().unwrap();
        (worker, lease)
    }
}

fn is_lost<T>(result: Result<T, FrontierError>) -> bool {
    matches!(
        result,
        Err(FrontierError::Shared(SharedFrontierError::LeaseLost { .. }))
    )
}

#[test]
fn a_worker_whose_hosts_were_taken_over_changes_nothing() {
    let two = Two::new();
    let (one, lease) = two.worker_with_lease();
    let second = two.crawl.open("w2", None).unwrap();
    assert!(second.owned_buckets().is_empty());
    two.pass(TERM);
    assert!(is_lost(one.begin()) && is_lost(one.renew()) && is_lost(one.lease(&origin())));
    assert!(one.send_deadline().is_over());

    // The leases of w2 have ended as well, so open w2 again.
    let second = two.crawl.open("w2", Some(second.life())).unwrap();
    assert_eq!(
        second.taken_over_for(&url("/").host_key()),
        Some(Duration::ZERO)
    );
    let lease_again = second.lease(&origin()).unwrap().unwrap();
    assert_eq!((&lease_again.url, lease_again.attempt), (&lease.url, 1));
    // The first worker lost this lease, so releasing it must not release the new owner's lease.
    one.release(lease);
    let state = second.known(&url("/a")).unwrap().unwrap().state;
    assert_eq!(state, KnownState::Leased { attempt: 1 });
    let mut transaction = second.begin().unwrap();
    let outcome = LeaseOutcome::Fetched { status: 200 };
    transaction.settle(lease_again, outcome).unwrap();
    transaction.commit().unwrap();
    assert_eq!(two.crawl.all_urls().counts().fetched, 1);
}

#[test]
fn a_commit_is_refused_if_a_frozen_worker_lost_its_hosts_without_noticing() {
    let two = Two::new();
    let (one, lease) = two.worker_with_lease();
    // A new process of `w1` takes over the leases of `one`, a frozen process that doesn't notice
    // the takeover.
    let again = two.crawl.open("w1", Some(one.life())).unwrap();
    let mut late = one.begin().unwrap();
    late.mark("pages.jsonl", 10);
    assert!(is_lost(
        late.settle(lease, LeaseOutcome::Fetched { status: 200 })
    ));
    assert!(is_lost(late.commit()));
    assert!(again.marks().unwrap().is_empty());
    let state = again.known(&url("/a")).unwrap().unwrap().state;
    assert_eq!(state, KnownState::Pending { attempt: 1 });
}

#[test]
fn links_wait_for_the_owner_of_their_hosts() {
    let two = Two::new();
    let (one, lease) = two.worker_with_lease();
    let second = two.crawl.open("w2", None).unwrap();
    let mut transaction = second.begin().unwrap();
    for found in [link("/b", 2), link("/b", 2), link("/a", 1)] {
        transaction.admit(found).unwrap();
    }
    transaction.commit().unwrap();
    assert_eq!(one.known(&url("/b")).unwrap(), None);
    assert_eq!(two.crawl.waiting_links(), 2);
    let survey = one.survey().unwrap();
    assert!(survey.has_unqueued_work && survey.has_own_unqueued_work);
    assert!(!second.survey().unwrap().has_own_unqueued_work);

    // Links that were taken in a transaction without a commit are still waiting.
    drop(one.begin_worker().unwrap().take_links(9).unwrap());
    let mut transaction = one.begin_worker().unwrap();
    let links = transaction.take_links(9).unwrap();
    transaction.admit_all(&links).unwrap();
    transaction.commit().unwrap();
    assert_eq!((two.crawl.waiting_links(), one.counts().known), (0, 2));
    one.release(lease);
    one.hand_over(&[0]).unwrap();
    assert_eq!((one.counts().known, one.origins()), (0, Vec::new()));
    assert_eq!(second.take_free(9).unwrap(), (1, vec![(origin(), 2)]));
}

#[test]
fn workers_together_never_get_more_pages_than_the_budget() {
    let two = Two::new();
    let one = two.crawl.open("w1", None).unwrap();
    let second = two.crawl.open("w2", None).unwrap();
    assert_eq!(one.allow(0, 6, 10).unwrap(), 6);
    assert_eq!(second.allow(0, 6, 10).unwrap(), 4);
    one.set_idle(true, Some(3)).unwrap();
    assert_eq!(second.allow(4, 6, 10).unwrap(), 7);
    // For a worker whose lease ended, only its committed pages count.
    two.pass(TERM);
    let third = two.crawl.open("w3", None).unwrap();
    assert_eq!(third.allow(0, 99, 10).unwrap(), 10);
    let survey = third.survey().unwrap();
    assert_eq!((survey.living, survey.pending_open), (1, 0));
}

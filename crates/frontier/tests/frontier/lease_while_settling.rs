//! One thread leases URLs while another thread settles and admits URLs.

use std::collections::BTreeSet;
use std::sync::mpsc;

use crawl_frontier::{Frontier, Lease, LeaseOutcome};
use crawl_weburl::Origin;

use crawl_frontier::conformance::helpers::{admit, link, url};
use crawl_frontier::conformance::{MemoryFrontierHarness, RestartableFrontier};

use crate::crash_harness::OnDisk;

const ORIGINS: u64 = 4;
const URLS: u64 = 300;

/// Crawls a web in which each page links to the next URLs of its origin and to a known URL.
fn run(frontier: &dyn Frontier) {
    let name = |host: u64, n: u64| format!("http://h{host}.example/{n}");
    let origins: Vec<Origin> = (0..ORIGINS)
        .map(|host| url(&name(host, 0)).origin())
        .collect();
    admit(
        frontier,
        (0..ORIGINS).map(|host| link(&name(host, 0), 1000)),
    );
    let (to_writer, leases) = mpsc::sync_channel::<Lease>(16);
    let (to_leaser, committed) = mpsc::channel::<()>();
    // The closure owns the channels, so that a panic in one thread closes them and ends the other
    // thread.
    let fetched = std::thread::scope(move |scope| {
        scope.spawn(move || {
            // Loop until nothing is pending or leased. The thread that settles URLs is also done by
            // then.
            let mut counts = frontier.counts();
            while counts.pending + counts.leased > 0 {
                let mut any = false;
                for origin in &origins {
                    if let Some(lease) = frontier.lease(origin).unwrap() {
                        any = true;
                        to_writer.send(lease).unwrap();
                    }
                }
                if !any && committed.recv().is_err() {
                    break;
                }
                counts = frontier.counts();
            }
        });
        let mut fetched = BTreeSet::new();
        let mut turn = 0_u64;
        while let Ok(lease) = leases.recv() {
            turn += 1;
            let mut transaction = frontier.begin().unwrap();
            let n: u64 = lease.url.path()[1..].parse().unwrap();
            let host: u64 = lease.url.host()[1..2].parse().unwrap();
            for next in [2 * n + 1, 2 * n + 2, n / 2, n + 7] {
                if next < URLS {
                    // The depth decreases from time to time, so that pending URLs move forward.
                    let depth = u32::try_from(1000 - turn % 1000).unwrap();
                    transaction.admit(link(&name(host, next), depth)).unwrap();
                }
            }
            if lease.attempt == 1 && n.is_multiple_of(5) {
                transaction.settle(lease, LeaseOutcome::Retry).unwrap();
            } else {
                assert!(fetched.insert(lease.url.clone()), "{} twice", lease.url);
                transaction
                    .settle(lease, LeaseOutcome::Fetched { status: 200 })
                    .unwrap();
            }
            transaction.commit().unwrap();
            let _ = to_leaser.send(());
        }
        drop(to_leaser);
        fetched
    });
    let counts = frontier.counts();
    assert_eq!(fetched.len() as u64, ORIGINS * URLS);
    assert_eq!(
        (counts.fetched, counts.known),
        (ORIGINS * URLS, ORIGINS * URLS)
    );
    assert_eq!((counts.pending, counts.leased), (0, 0));
}

#[test]
fn every_url_is_settled_once_in_memory() {
    run(MemoryFrontierHarness::default().frontier());
}

#[test]
fn every_url_is_settled_once_on_disk() {
    let mut disk = OnDisk::new();
    run(disk.frontier());
    disk.die();
    assert_eq!(disk.frontier().counts().fetched, ORIGINS * URLS);
}

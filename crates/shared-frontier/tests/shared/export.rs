//! Tests of moving crawls out of their database servers.

use crawl_frontier::conformance::RestartableFrontier;
use crawl_frontier::conformance::helpers::admit;
use crawl_frontier::parts::{CommittedUrlCounts, CrawlTransferItem, UrlRecord};
use crawl_frontier::worker_frontier::{
    CrawlMoveTarget as _, OutgoingCrawl as _, WorkerFrontier as _, WorkerOfImportedCrawl,
};
use crawl_frontier::{
    Durability, FjallFrontier, FjallFrontierOptions, Frontier, FrontierError, UrlCounts,
};
use crawl_shared_frontier::{
    CrawlExporter, ImportTargetSettings, PasswordSources, SharedCrawlError,
};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::crash_harness::new_crawl;
use crate::database_server_groups::{TwoGroups, link_to, url_in};
use crate::postgres_server::Served;
use crate::random_steps::{all_urls, run, step};

/// A frontier on disk. At each crash it is moved into a database server, and from there to another
/// directory.
struct Moved {
    frontier: Option<FjallFrontier>,
    dir: TempDir,
    served: Served,
}

impl Moved {
    fn new() -> Moved {
        let dir = TempDir::new().unwrap();
        Moved {
            frontier: Some(on_disk(&dir)),
            dir,
            served: Served::new(),
        }
    }

    /// Moves the frontier into a database server.
    fn import(&self, crawl: &str) {
        let from = self.frontier.as_ref().unwrap();
        let target = ImportTargetSettings {
            url: self.served.url.clone(),
            credentials: PasswordSources::default(),
            crawl: crawl.to_owned(),
        };
        let mut import = target.begin().unwrap();
        let shown = from.each_part::<FrontierError>(&mut |part| import.put(part));
        shown.unwrap();
        for url in all_urls() {
            let stored = from.known(&url).unwrap();
            if let Some(record) = stored.and_then(UrlRecord::settled) {
                import.put(CrawlTransferItem::Url { url, record }).unwrap();
            }
        }
        let worker = WorkerOfImportedCrawl {
            name: "w1".to_owned(),
            life: format!("the life of {crawl}"),
            pages: 0,
            bytes: 0,
            marks: from.marks().unwrap(),
        };
        import.finish(worker, totals(from.counts())).unwrap();
    }

    /// Moves everything in a database server into a new frontier.
    fn export(&mut self, crawl: &str) {
        let urls = [self.served.url.clone()];
        let begun = CrawlExporter::begin(&urls, &PasswordSources::default(), crawl, "there");
        let export = begun.unwrap();
        let dir = TempDir::new().unwrap();
        let to = on_disk(&dir);
        let shown = export.each_part(&mut |part| Ok(to.put_parts([part])?));
        shown.unwrap();
        assert_eq!(totals(to.counts()), export.totals());
        let [worker] = export.workers() else {
            panic!("{:?}", export.workers());
        };
        let mut transaction = to.begin().unwrap();
        for (file, length) in &worker.marks {
            transaction.mark(file, *length);
        }
        for (name, bytes) in &worker.meta {
            transaction.keep_meta(name, bytes);
        }
        transaction.commit().unwrap();
        export.finish().unwrap();
        (self.frontier, self.dir) = (Some(to), dir);
    }
}

impl RestartableFrontier for Moved {
    fn frontier(&self) -> &dyn Frontier {
        self.frontier.as_ref().unwrap()
    }

    fn die(&mut self) {
        // The crash ends all leases, so leased URLs are pending again.
        self.frontier = None;
        self.frontier = Some(on_disk(&self.dir));
        let crawl = new_crawl();
        self.import(&crawl);
        self.export(&crawl);
    }
}

fn on_disk(dir: &TempDir) -> FjallFrontier {
    let options = FjallFrontierOptions {
        durability: Durability::ProcessDeath,
        ..FjallFrontierOptions::default()
    };
    FjallFrontier::open(dir.path(), &options).unwrap()
}

fn totals(counts: UrlCounts) -> CommittedUrlCounts {
    CommittedUrlCounts {
        pending: counts.pending + counts.leased,
        deferred: counts.deferred,
        fetched: counts.fetched,
        failed: counts.failed,
        excluded: counts.excluded,
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_frontier_survives_import_and_export_unchanged() {
    let _served = Served::new();
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(12)
    };
    proptest!(config, |(steps in prop::collection::vec(step(), 20..60))| {
        prop_assert_eq!(run(steps, &mut Moved::new()), 0);
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn no_worker_continues_a_moved_crawl() {
    let two = TwoGroups::new();
    let begin = |to| CrawlExporter::begin(&two.urls, &PasswordSources::default(), &two.crawl, to);
    let [one, other] = two.two_workers();
    let buckets = [one.owned_buckets(), other.owned_buckets()];
    let [own, foreign] = [buckets[0][0], buckets[1][0]];
    admit(&one, [link_to(url_in(&one, own, "own"))]);
    admit(&one, [link_to(url_in(&one, foreign, "foreign"))]);
    let at_work = begin("there").err().unwrap();
    assert!(
        matches!(at_work, SharedCrawlError::StillAtWork { .. }),
        "{at_work}"
    );
    one.give_up().unwrap();
    other.give_up().unwrap();

    // If a worker commits during the move, the move fails.
    let export = begin("there").unwrap();
    assert_eq!(export.totals().pending, 1);
    let mut links = Vec::new();
    let shown = export.each_link(&mut |link| {
        links.push(link.url);
        Ok(())
    });
    shown.unwrap();
    assert_eq!(links, [url_in(&one, foreign, "foreign")]);
    let again = two.open("w2");
    let living = export.finish().unwrap_err();
    assert!(
        matches!(living, SharedCrawlError::WentOn { .. }),
        "{living}"
    );
    admit(&again, [link_to(url_in(&one, foreign, "more"))]);
    again.give_up().unwrap();
    let went_on = export.finish().unwrap_err();
    assert!(
        matches!(went_on, SharedCrawlError::WentOn { .. }),
        "{went_on}"
    );
    two.open("w2").give_up().unwrap();

    let elsewhere_too = begin("elsewhere").unwrap();
    begin("there").unwrap().finish().unwrap();
    // Of two moves at the same time, only the first to finish succeeds.
    let moved = elsewhere_too.finish().unwrap_err();
    assert!(matches!(moved, SharedCrawlError::WentOn { .. }), "{moved}");
    for worker in ["w1", "w2", "w3", "w4"] {
        let refused = two.try_open(worker).err().unwrap();
        let is_so = matches!(&refused, SharedCrawlError::Exported { to, .. } if to == "there");
        assert!(is_so, "{worker}: {refused}");
    }
    let elsewhere = begin("elsewhere").err().unwrap();
    assert!(
        matches!(elsewhere, SharedCrawlError::Exported { .. }),
        "{elsewhere}"
    );
    // A move to the same directory can be repeated, and can be undone.
    let again = begin("there").unwrap();
    again.finish().unwrap();
    again.take_back().unwrap();
    two.open("w1").give_up().unwrap();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_crawl_with_urls_to_reopen_or_moving_buckets_is_not_moved() {
    let two = TwoGroups::new();
    let begin =
        || CrawlExporter::begin(&two.urls, &PasswordSources::default(), &two.crawl, "there");
    let [one, other] = two.two_workers();
    let own = one.owned_buckets()[0];
    admit(&one, [link_to(url_in(&one, own, "own"))]);
    one.give_up().unwrap();
    other.give_up().unwrap();
    two.execute(
        0,
        &format!("UPDATE crawl_frontier.bucket SET moving_to = 1 WHERE crawl = $K AND b = {own}"),
    );
    let moves = begin().err().unwrap();
    assert!(
        matches!(moves, SharedCrawlError::BucketsMove { .. }),
        "{moves}"
    );
    two.execute(
        0,
        "UPDATE crawl_frontier.bucket SET moving_to = NULL WHERE crawl = $K",
    );
    two.execute(
        1,
        "INSERT INTO crawl_frontier.bucket_to_reopen (crawl, b, worker, origin, fingerprint)
        VALUES ($K, 1, 7, 0, 0)",
    );
    let to_reopen = begin().err().unwrap();
    assert!(
        matches!(to_reopen, SharedCrawlError::ToReopen { buckets: 1, .. }),
        "{to_reopen}"
    );
}

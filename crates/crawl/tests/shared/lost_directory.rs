//! Workers whose directories are lost: their pages are fetched again.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crawl_testweb::TestWeb;
use serde_json::{Value, json};

use crate::shared_crawl_harness::{Crawl, Ended};

/// The maximum wait until a killed worker's lease has expired, on any machine.
const MAX_LEASE: Duration = Duration::from_secs(240);

/// Creates a crawl of a web that takes some seconds to crawl.
fn crawl(seed: u64) -> Crawl {
    let web = TestWeb::builder().seed(seed).hosts(12).pages(60);
    Crawl::of(web.latency(Duration::from_millis(10)))
}

impl Crawl {
    /// Removes the directory of a stopped worker.
    fn lose(&self, worker: &str) {
        fs::remove_dir_all(self.output(worker)).unwrap();
    }

    /// Makes the URLs that a lost worker settled pending again. Retries until the worker's lease
    /// has expired. Returns how many pages the worker had.
    fn reopen(&self, worker: &str) -> u64 {
        let begin = Instant::now();
        loop {
            let output = self.frontier(&["reopen", worker, "--json"]);
            let ended = Ended::of(&output);
            if ended.code == Some(0) {
                let counts: Value = serde_json::from_str(&ended.stdout).unwrap();
                return counts["pages"].as_u64().unwrap();
            }
            let stderr = ended.expect(2);
            assert!(stderr.contains("running on crawl"), "{stderr}");
            assert!(begin.elapsed() < MAX_LEASE, "{stderr}");
            sleep(Duration::from_millis(200));
        }
    }

    /// Checks that no row is duplicated, and that no URL is left to reopen.
    fn check_rows(&self, workers: &[&str]) {
        let count = self.excluded(workers).len();
        let output = self.frontier(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        let status = &status["crawls"][0];
        let number = |name: &str| status[name].as_u64().unwrap();
        assert_eq!(number("buckets_to_reopen"), 0, "{status}");
        assert_eq!(
            number("excluded") + number("deferred"),
            count as u64,
            "{status}"
        );
        let pages = self.pages(workers).len() as u64;
        assert_eq!(number("fetched") + number("failed"), pages, "{status}");
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn pages_of_a_lost_directory_are_fetched_by_the_other_workers() {
    let crawl = crawl(41);
    let (first, second) = crawl.start_mortal_beside_paused();
    crawl.wait_for_pages("w1", 60);
    crawl.control("w2", "resume");
    let stderr = Ended::of(&crawl.frontier(&["reopen", "w2"])).expect(2);
    assert!(
        stderr.contains("is still running") && stderr.contains("hint: "),
        "{stderr}"
    );
    first.kill();
    crawl.lose("w1");
    assert!(crawl.reopen("w1") > 20);
    second.wait().expect(0);
    // Run the second worker again, because it may have ended before the URLs were reopened.
    crawl.start("w2").wait().expect(0);
    crawl.check_whole(&["w2"]);
    crawl.check_rows(&["w2"]);
    let stderr = Ended::of(&crawl.frontier(&["reopen", "w7"])).expect(2);
    assert!(stderr.contains("has no worker `w7`"), "{stderr}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_worker_starts_over_in_an_empty_directory() {
    let crawl = crawl(42);
    let (first, second) = crawl.start_mortal_beside_paused();
    crawl.control("w2", "resume");
    crawl.wait_for_requests(240);
    first.kill();
    crawl.lose("w1");
    crawl.reopen("w1");
    // The restarted worker begins with no rows. At the end of the crawl, the workers list each
    // excluded URL once.
    crawl.start("w1").wait().expect(0);
    second.wait().expect(0);
    crawl.check_whole(&["w1", "w2"]);
    crawl.check_rows(&["w1", "w2"]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_finished_crawl_fetches_only_the_lost_pages() {
    let crawl = Crawl::of(TestWeb::builder().seed(43).hosts(24).pages(40));
    let (first, second) = crawl.start_two();
    first.wait().expect(0);
    second.wait().expect(0);
    let kept_pages = crawl.pages(&["w2"]);
    let lost_pages = crawl.pages(&["w1"]);
    assert!(!kept_pages.is_empty() && !lost_pages.is_empty());
    crawl.lose("w1");
    // The worker's name can't be used before its URLs are reopened.
    let flags = "--scope any --allow-private";
    let stderr = Ended::of(&crawl.command("w1", flags).output().unwrap()).expect(2);
    assert!(stderr.contains("frontier reopen"), "{stderr}");
    crawl.lose("w1");
    assert_eq!(crawl.reopen("w1"), lost_pages.len() as u64);
    assert_eq!(crawl.reopen("w1"), 0, "once");
    let request_count = crawl.web.log().len();
    crawl.start("w2").wait().expect(0);
    crawl.check_whole(&["w2"]);
    crawl.check_rows(&["w2"]);
    let log = crawl.web.log();
    for entry in &log[request_count..] {
        let url = crawl.web.url(entry.host, &entry.path);
        assert!(
            !kept_pages.contains(&url),
            "{url} is fetched, and was not lost"
        );
    }
    let mut audit = crawl.program();
    let audited = audit.args(["audit", "w2", "--json"]).output().unwrap();
    let audited: Value = serde_json::from_slice(&audited.stdout).unwrap();
    // The audit must report no breach. Some checks may be undecided, because the record of a
    // robots.txt request may have been lost with a worker's directory.
    assert_eq!(audited["by_rule"], json!({}), "{audited}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn pages_that_are_lost_count_against_no_budget() {
    let crawl = Crawl::of(TestWeb::builder().seed(44).hosts(12).pages(50));
    let flags = "--scope any --allow-private --max-pages 57";
    crawl.start_with("w1", flags).wait().expect(0);
    assert_eq!(crawl.pages(&["w1"]).len(), 57);
    crawl.lose("w1");
    assert_eq!(crawl.reopen("w1"), 57);
    crawl.start_with("w2", flags).wait().expect(0);
    assert_eq!(crawl.pages(&["w2"]).len(), 57);
    crawl.check_gaps();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_directory_that_was_imported_may_be_lost() {
    let crawl = Crawl::of(TestWeb::builder().seed(45).hosts(12).pages(50));
    let everywhere = "--scope any --allow-private --max-pages 120";
    Ended::of(&crawl.command_alone("w1", everywhere).output().unwrap()).expect(0);
    Ended::of(&crawl.frontier(&["import", "w1"])).expect(0);
    crawl.lose("w1");
    assert_eq!(crawl.reopen("w1"), 120);
    crawl.start("w2").wait().expect(0);
    crawl.check_whole(&["w2"]);
    crawl.check_rows(&["w2"]);
}

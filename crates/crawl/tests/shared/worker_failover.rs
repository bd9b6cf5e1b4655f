//! Workers that die, freeze, are stopped or drained, and workers that take over their hosts.

use std::fs;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use crawl_testweb::{TestWeb, TestWebBuilder};

use crate::shared_crawl_harness::{Crawl, Ended};

/// Creates a crawl of a web that takes some seconds to crawl.
fn crawl(seed: u64) -> Crawl {
    let web = TestWeb::builder().seed(seed).hosts(12).pages(60);
    Crawl::of(web.latency(Duration::from_millis(10)))
}

/// Holds back the pages of a host until the returned sender is dropped. The first request for such
/// a page makes the web hold back all later requests too, so no crawl of the web can end before
/// then.
fn held_back(web: TestWebBuilder, host: u32) -> (TestWebBuilder, Sender<()>) {
    let (hold, held) = channel();
    let held = Mutex::new(held);
    let web = web.handler(host, move |request| {
        if request.path != "/robots.txt" {
            let _ = held.lock().unwrap().recv();
        }
        None
    });
    (web, hold)
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_hosts_of_a_worker_that_is_killed_are_taken_over() {
    let crawl = crawl(11);
    let (first, second) = crawl.start_mortal_beside_paused();
    crawl.control("w2", "resume");
    crawl.wait_for_requests(120);
    first.kill();
    second.wait().expect(0);
    // Start the killed worker again after the crawl has finished, so that it truncates its files to
    // their committed lengths.
    crawl.start("w1").wait().expect(0);
    crawl.check_whole(&["w1", "w2"]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_killed_worker_resumes_at_once() {
    let crawl = crawl(12);
    let first = crawl.start("w1");
    crawl.wait_for_requests(100);
    first.kill();
    // The directory proves that the earlier process is gone, so the worker doesn't wait for the old
    // lease to expire.
    crawl.start("w1").wait().expect(0);
    crawl.check_whole(&["w1"]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_worker_frozen_too_long_ends_and_can_be_restarted() {
    let crawl = crawl(13);
    let (first, second) = crawl.start_mortal_beside_paused();
    crawl.control("w2", "resume");
    crawl.wait_for_requests(120);
    first.signal("STOP");
    // The second worker ends only when no URL is left, so it must have taken over the first one's
    // hosts.
    second.wait().expect(0);
    first.signal("CONT");
    let stderr = first.wait().expect(3);
    assert!(
        stderr.contains("lost its hosts") && stderr.contains("hint: "),
        "{stderr}"
    );
    crawl.start("w1").wait().expect(0);
    crawl.check_whole(&["w1", "w2"]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_worker_that_is_stopped_hands_its_hosts_over_at_once() {
    let crawl = crawl(14);
    let (first, second) = crawl.start_two();
    crawl.wait_for_requests(120);
    first.signal("INT");
    let stderr = first.wait().expect(130);
    assert!(stderr.contains("interrupted"), "{stderr}");
    second.wait().expect(0);
    crawl.check_whole(&["w1", "w2"]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_worker_that_is_drained_ends_and_the_others_go_on() {
    let crawl = crawl(15);
    let (mut first, second) = crawl.start_two();
    crawl.wait_for_requests(120);
    assert!(!first.has_ended());
    let drained = crawl.frontier(&["drain", "w1"]);
    assert!(drained.status.success(), "{drained:?}");
    let stderr = first.wait().expect(0);
    assert!(stderr.contains("handed its hosts over"), "{stderr}");
    second.wait().expect(0);
    crawl.check_whole(&["w1", "w2"]);
    let refused = crawl.frontier(&["drain", "w1"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_worker_is_restarted_with_reloaded_settings_and_not_with_older_ones() {
    let (web, hold) = held_back(TestWeb::builder().seed(16).hosts(12).pages(60), 0);
    let crawl = Crawl::of(web);
    let file = crawl.output("crawl.toml");
    let exclude = |pattern: &str| {
        fs::write(&file, format!("[scope]\nexclude = [\"{pattern}\"]\n")).unwrap();
    };
    exclude("/older$");
    let flags = format!("--scope any --allow-private --config {}", file.display());
    let (first, second) = (
        crawl.start_with("w1", &flags),
        crawl.start_with("w2", &flags),
    );
    crawl.control("w2", "pause");
    let older = crawl.output("older.toml");
    fs::copy(&file, &older).unwrap();
    exclude("/newer$");
    crawl.control("w1", "reload");
    crawl.wait_for_settings("/newer$");
    first.kill();
    // `w2` is paused and has not reloaded its settings. A worker with the older settings is refused
    // all the same, because new workers must have the reloaded ones.
    let flags_older = flags.replace("crawl.toml", "older.toml");
    let refused = crawl.command("w1", &flags_older).output().unwrap();
    let stderr = Ended::of(&refused).expect(2);
    assert!(stderr.contains("/newer$"), "{stderr}");
    let first = crawl.start_with("w1", &flags);
    drop(hold);
    crawl.control("w2", "resume");
    for worker in [first, second] {
        worker.wait().expect(0);
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_host_is_unparked_after_its_worker_has_ended() {
    let (web, hold) = held_back(TestWeb::builder().seed(17).hosts(2).pages(120), 1);
    let crawl = Crawl::of(web);
    let first = crawl.start("w1");
    crawl.wait_for_requests_to(1);
    crawl.wait_for_control("w1");
    let url = crawl.web.url(1, "/");
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    let parking = |command: &str| {
        let mut control = crawl.program();
        let output = control.args(["control", "w1", command, host]).output();
        Ended::of(&output.unwrap()).expect(0)
    };
    parking("park");
    drop(hold);
    let stderr = first.wait().expect(0);
    assert!(stderr.contains("is parked"), "{stderr}");
    let count = crawl.pages(&["w1"]).len();
    // Only the last of several commands has an effect.
    for command in ["unpark", "park", "unpark"] {
        parking(command);
    }
    crawl.start("w1").wait().expect(0);
    assert!(crawl.pages(&["w1"]).len() > count);
    crawl.check_whole(&["w1"]);
    let recorded = crawl.output("w1").join("state/parking.json");
    assert!(!recorded.exists(), "it would take effect again");
}

//! Workers that start together and finish normally.

use crawl_testweb::{HttpAnswer, TestWeb};

use crate::shared_crawl_harness::{Crawl, repeated_paths};

#[test]
#[ignore = "needs PostgreSQL"]
fn two_workers_fetch_each_page_once_and_share_no_host() {
    let crawl = Crawl::of(TestWeb::builder().seed(1).hosts(24).pages(40));
    let first = crawl.start("w1");
    let second = crawl.start_beside("w1", "w2");
    for worker in [first, second] {
        let stderr = worker.wait().expect(0);
        assert!(stderr.contains("finished"), "{stderr}");
    }
    crawl.check_whole(&["w1", "w2"]);
    assert_eq!(repeated_paths(&crawl.web.log()), 0, "nobody died");
    for worker in ["w1", "w2"] {
        assert!(
            !crawl.pages(&[worker]).is_empty(),
            "{worker} had nothing to do"
        );
    }
    // No URL is listed by both workers.
    let mut excluded: Vec<String> = crawl
        .rows(&["w1", "w2"], "excluded.jsonl")
        .iter()
        .map(|row| row["url"].as_str().unwrap().to_owned())
        .collect();
    let count = excluded.len();
    excluded.sort_unstable();
    excluded.dedup();
    assert_eq!((excluded.len(), count > 0), (count, true));
    // Run again, the same commands find nothing left to do.
    for worker in ["w1", "w2"] {
        let stderr = crawl.start(worker).wait().expect(0);
        assert!(stderr.contains("nothing left to do"), "{stderr}");
    }
    crawl.check_whole(&["w1", "w2"]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_worker_that_joins_later_gets_its_share_of_the_hosts() {
    let crawl = Crawl::of(TestWeb::builder().seed(2).hosts(24).pages(100));
    let first = crawl.start("w1");
    crawl.wait_for_requests(200);
    assert_eq!(
        crawl.buckets().into_iter().collect::<Vec<_>>(),
        [("w1".to_owned(), 1_024)]
    );
    let second = crawl.start_beside("w1", "w2");
    // A third worker joins while the first two are running.
    let third = crawl.start_beside("w1", "w3");
    for worker in [first, second, third] {
        worker.wait().expect(0);
    }
    let workers = ["w1", "w2", "w3"];
    crawl.check_whole(&workers);
    assert!(!crawl.pages(&["w2"]).is_empty());
    assert_eq!(
        repeated_paths(&crawl.web.log()),
        0,
        "hosts were handed over, nobody died"
    );
}

#[test]
#[ignore = "needs PostgreSQL"]
fn pages_of_the_whole_crawl_are_bounded_over_all_workers() {
    let crawl = Crawl::of(TestWeb::builder().seed(3).hosts(12).pages(50));
    let flags = "--scope any --allow-private --max-pages 57";
    let workers = [crawl.start_with("w1", flags), crawl.start_with("w2", flags)];
    for worker in workers {
        let stderr = worker.wait().expect(0);
        assert!(stderr.contains("ended by --max-pages"), "{stderr}");
    }
    assert_eq!(crawl.pages(&["w1", "w2"]).len(), 57);
    crawl.check_gaps();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_seed_s_redirect_target_joins_the_scope_of_all_workers() {
    let web = TestWeb::builder().seed(4).hosts(2).pages(40);
    let crawl = Crawl::of(web);
    let target = crawl.web.url(1, "/");
    crawl.web.script(0, "/", HttpAnswer::redirect(301, &target));
    let flags = "--allow-private";
    let workers = [crawl.start_with("w1", flags), crawl.start_with("w2", flags)];
    for worker in workers {
        worker.wait().expect(0);
    }
    let pages = crawl.pages(&["w1", "w2"]);
    let of_target = pages.iter().filter(|url| url.starts_with(&target));
    assert!(of_target.count() >= 40, "{pages:?}");
    crawl.check_gaps();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_database_server_is_checked_and_the_crawls_of_the_check_are_gone() {
    let crawl = Crawl::of(TestWeb::builder().hosts(1).pages(2));
    let mut check = crawl.program();
    let checked = check
        .args(["frontier", "check", &crawl.served.url])
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(
        checked.status.success() && stdout.contains("satisfies all"),
        "{checked:?}"
    );
    let mut status = crawl.program();
    let status = status.args(["frontier", "status", "--frontier", &crawl.served.url]);
    let stdout = String::from_utf8_lossy(&status.output().unwrap().stdout).into_owned();
    assert!(!stdout.contains("crawl frontier check"), "{stdout}");
}

//! A crawl that is killed repeatedly.

use std::os::unix::process::ExitStatusExt as _;

use crate::crawl_harness::Crawl;
use crate::expected_files_walk::{Walk, differences};
use crate::nginx_harness::Nginx;
use crate::{archive_external_check, named};

/// How many requests each run sends before it is killed: some runs have just started, others are
/// well under way.
const LIVES: [usize; 5] = [1, 17, 60, 101, 154];

/// A pace slow enough that pages are read and settled while others are fetched.
const PACE: &str = "--delay 25ms --delay-factor 0 --per-host 2";

#[test]
#[ignore = "needs nginx and Python's documentation: cargo xtask test sets it up"]
fn nothing_is_lost_or_listed_twice_when_it_is_killed() {
    let root = named("CRAWL_PYTHON_DOC");
    let nginx = Nginx::serve(&root);
    let walk = Walk::start(&root, "/");
    let crawl = Crawl::new(&nginx.url(), PACE);
    for life in LIVES {
        let min_requests = nginx.log(0).len() + life;
        let mut run = crawl.start(&format!("killed-after-{life}@example.org"));
        nginx.log(min_requests);
        run.kill().unwrap();
        let ended = run.wait().unwrap();
        assert_eq!(ended.signal(), Some(9), "no kill: {ended}");
    }
    crawl.finish("last@example.org");

    let pages = crawl.pages();
    archive_external_check::check_places(&crawl.output(), &pages);
    archive_external_check::check(&crawl.output());
    assert_eq!(
        differences(&crawl.url_statuses(&pages), &walk.end()),
        [""; 0]
    );

    // No run requests a URL twice. Requests of different runs are never equal here, because each
    // run sends another `From`.
    let mut requests = nginx.log(pages.len());
    requests.sort();
    for pair in requests.windows(2) {
        assert_ne!(pair[0], pair[1]);
    }
    let again = requests.len() - pages.len() - 1;
    println!("{} pages, {again} requests more", pages.len());
    assert!(again < pages.len(), "{again} requests more");
}

//! A crawl of a site from beginning to end, without interruption.

use std::collections::HashSet;

use crate::crawl_harness::Crawl;
use crate::expected_files_walk::{Walk, differences};
use crate::nginx_harness::Nginx;
use crate::{archive_external_check, named};

/// The documentation of Java's module `java.base`: about 2,800 HTML files, including dead links and
/// pages of 6 MB.
#[test]
#[ignore = "needs nginx and openjdk's documentation: cargo xtask test sets it up"]
fn a_site_is_crawled_whole_and_each_url_once() {
    let root = named("CRAWL_JAVA_DOC").join("api/java.base");
    let nginx = Nginx::serve(&root);
    let walk = Walk::start(&root, "/module-summary.html");
    let seed = format!("{}module-summary.html", nginx.url());
    let crawl = Crawl::new(&seed, "--delay 0s --delay-factor 0 --per-host 8");
    crawl.finish("a@example.org");

    let pages = crawl.pages();
    let crawled = crawl.url_statuses(&pages);
    let besides = ["/robots.txt", "/sitemap.xml"];
    let mut requested = HashSet::new();
    for request in nginx.log(crawled.len() + besides.len()) {
        let path = &request.path;
        assert!(requested.insert(path.clone()), "requested twice: {path}");
    }
    assert!(besides.iter().all(|path| requested.contains(*path)));
    assert_eq!(requested.len(), crawled.len() + besides.len());

    archive_external_check::check_places(&crawl.output(), &pages);
    archive_external_check::check(&crawl.output());

    let walked = walk.end();
    assert_eq!(differences(&crawled, &walked), [""; 0]);
    assert!(walked.len() > 2_500, "{} paths", walked.len());
}

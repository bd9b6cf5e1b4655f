//! A crawl from beginning to end.

use std::collections::HashSet;

use crate::crawl::Crawl;
use crate::nginx::Nginx;
use crate::walk::{Walk, differences};
use crate::{archive, named};

/// The documentation of Java's module `java.base`: some 2,800 files of HTML, links that lead
/// nowhere and pages of 6 MB among them.
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
    let found = crawl.found(&pages);
    let besides = ["/robots.txt", "/sitemap.xml"];
    let mut asked = HashSet::new();
    for request in nginx.log(found.len() + besides.len()) {
        let path = &request.path;
        assert!(asked.insert(path.clone()), "asked for twice: {path}");
    }
    assert!(besides.iter().all(|path| asked.contains(*path)));
    assert_eq!(asked.len(), found.len() + besides.len());

    archive::check_places(&crawl.output(), &pages);
    archive::check(&crawl.output());

    let walked = walk.end();
    assert_eq!(differences(&found, &walked), [""; 0]);
    assert!(walked.len() > 2_500, "{} paths", walked.len());
}

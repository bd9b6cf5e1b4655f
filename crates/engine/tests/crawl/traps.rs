//! Tests of sites with traps: a crawl fetches few pages of traps, and finds all real pages.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crawl_archive::rows::ExcludedRow;
use crawl_engine::{EndReason, TrapAvoidance};
use crawl_testweb::{HttpAnswer, TRAPS, TestWeb, TrapWeb};

use crate::support::Crawl;

/// Returns a crawl that sends no request while a commit is pending, so that its requests depend
/// only on the answers and not on timing.
fn steady(web: &TestWeb) -> Crawl {
    let mut crawl = Crawl::of(web);
    crawl.config.commit_within = Duration::ZERO;
    crawl.config.sitemaps = false;
    crawl
}

/// Counts the requests that each trap got.
fn in_traps(web: &TestWeb, traps: TrapWeb) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for entry in web.log() {
        if let Some(trap) = traps.trap_of(&entry.path) {
            *counts.entry(trap).or_default() += 1;
        }
    }
    counts
}

fn paths(crawl: &Crawl) -> BTreeSet<String> {
    let path = |url: &str| format!("/{}", url.splitn(4, '/').nth(3).unwrap());
    crawl.statuses().keys().map(|url| path(url)).collect()
}

#[test]
fn six_traps_cost_less_than_a_tenth_and_all_real_pages_are_found() {
    for seed in 1..=6 {
        let traps = TrapWeb::new(seed);
        let web = traps.start();
        let crawl = steady(&web);
        let summary = crawl.run().unwrap();
        assert_eq!(summary.ended, EndReason::Finished);
        let real = traps.real();
        let crawled = paths(&crawl);
        let missing: Vec<_> = real.difference(&crawled).collect();
        assert_eq!(missing, [""; 0], "seed {seed}");
        let mut spent = in_traps(&web, traps);
        assert_eq!(
            spent.keys().count(),
            TRAPS.len(),
            "each trap was met: {spent:?}"
        );
        // Four pages link to chains of redirects, which are followed up to the limit.
        let redirects = spent.remove("redirects").unwrap();
        let of_chain = u64::from(crawl.config.max_redirects) + 1;
        assert!(redirects <= 4 * of_chain, "seed {seed}: {redirects}");
        let all = web.log().len() as u64;
        assert!(
            10 * spent.values().sum::<u64>() < all,
            "seed {seed}: {spent:?} of {all}"
        );
        // The rows list each trap with its kind and its evidence.
        let rows = crawl.excluded_rows();
        let mut named = BTreeSet::new();
        for row in rows.iter().filter(|row| row.reason == "trap") {
            let path = format!("/{}", row.url.splitn(4, '/').nth(3).unwrap());
            let trap = traps.trap_of(&path);
            assert!(trap.is_some(), "seed {seed}: {row:?}");
            let rule = row.rule.as_deref().unwrap();
            assert!(
                rule.contains("; such as http://") && rule.contains(" first found on "),
                "{rule}"
            );
            named.insert((trap.unwrap(), rule.split(' ').next().unwrap()));
        }
        let wanted = [
            ("calendar", "calendar"),
            ("facets", "facets"),
            ("missing", "soft-404"),
            ("path", "repeated-path"),
            ("session", "session-ids"),
        ];
        assert!(rows.iter().any(|row| row.reason == "redirects"));
        // The host is only partly covered, because deferred URLs may have led to more pages.
        let coverage = crawl.coverage();
        let verdict = &coverage[web.authority(0)];
        assert!(
            verdict.starts_with("partial, ") && verdict.contains(", traps: "),
            "{coverage:?}"
        );
        for pair in wanted {
            assert!(
                named.contains(&pair),
                "seed {seed}: {pair:?} not in {named:?}"
            );
        }
    }
}

#[test]
fn without_trap_detection_the_same_web_is_endless() {
    let traps = TrapWeb::new(1);
    let web = traps.start();
    let mut crawl = steady(&web);
    crawl.config.traps = TrapAvoidance::OFF;
    crawl.config.budgets.max_pages = Some(600);
    assert_eq!(crawl.run().unwrap().ended, EndReason::Budget("max-pages"));
    assert!(in_traps(&web, traps).values().sum::<u64>() > 300);
    // Once trap detection is enabled, it also judges the URLs found so far, and the crawl ends.
    crawl.config.traps = TrapAvoidance::default();
    crawl.config.budgets.max_pages = Some(2_000);
    assert_eq!(crawl.run().unwrap().ended, EndReason::Finished);
    let crawled = paths(&crawl);
    assert_eq!(traps.real().difference(&crawled).count(), 0);
}

#[test]
fn the_same_web_costs_the_same_again() {
    let requests = || {
        let traps = TrapWeb::new(4);
        let web = traps.start();
        steady(&web).run().unwrap();
        in_traps(&web, traps)
    };
    assert_eq!(requests(), requests());
}

#[test]
fn parked_traps_stay_parked_after_a_restart() {
    let traps = TrapWeb::new(5);
    let web = traps.start();
    let crawl = steady(&web);
    crawl.run().unwrap();
    let (rows, requests) = (crawl.excluded_rows(), web.log().len());
    assert_eq!(crawl.run().unwrap().ended, EndReason::Finished);
    assert_eq!(crawl.excluded_rows(), rows);
    assert_eq!(web.log().len(), requests);
}

#[test]
fn action_links_are_fetched_last_or_never() {
    let page = |links: &[&str]| {
        let links: Vec<String> = links
            .iter()
            .map(|to| format!("<a href='{to}'>x</a>"))
            .collect();
        HttpAnswer::html(&links.concat())
    };
    let web = TestWeb::builder()
        .sitemap(false)
        .robots(0, "User-agent: *\nDisallow:\n")
        .script(0, "/", page(&["/logout", "/wiki?action=edit", "/a"]))
        .script(0, "/a", page(&["/cgi-bin/count?x=1", "/b"]))
        .script(0, "/b", HttpAnswer::html("b"))
        .script(0, "/logout", HttpAnswer::html("bye"))
        .script(0, "/wiki?action=edit", HttpAnswer::html("edit"))
        .script(0, "/cgi-bin/count?x=1", HttpAnswer::html("1"))
        .start();
    let crawl = steady(&web);
    crawl.run().unwrap();
    let log: Vec<String> = web.take_log().into_iter().map(|entry| entry.path).collect();
    let plain = ["/robots.txt", "/", "/a", "/b"];
    let actions = ["/logout", "/wiki?action=edit", "/cgi-bin/count?x=1"];
    assert_eq!(log, [&plain[..], &actions].concat());
    let rows = crawl.requests().into_iter();
    let listed: Vec<String> = rows
        .filter(|row| row.purpose == "action")
        .map(|row| row.url)
        .collect();
    assert_eq!(listed, actions.map(|path| web.url(0, path)));

    let mut crawl = steady(&web);
    crawl.config.traps.skip_actions = true;
    crawl.run().unwrap();
    let log: Vec<String> = web.take_log().into_iter().map(|entry| entry.path).collect();
    assert_eq!(log, plain);
    let barred: BTreeMap<String, String> = crawl
        .excluded_rows()
        .into_iter()
        .map(|row| (row.url, format!("{}: {}", row.reason, row.rule.unwrap())))
        .collect();
    assert_eq!(
        barred[&web.url(0, "/logout")],
        "action: path ends in logout"
    );
    assert_eq!(
        barred[&web.url(0, "/wiki?action=edit")],
        "action: parameter action=edit"
    );
    assert_eq!(
        barred[&web.url(0, "/cgi-bin/count?x=1")],
        "action: cgi-bin with a query"
    );
    // Once URLs that look like actions may be fetched, the next start admits them again.
    crawl.config.traps.skip_actions = false;
    crawl.run().unwrap();
    assert_eq!(web.take_log().len(), actions.len());
    assert!(crawl.excluded_rows().is_empty());

    // This crawl begins without `skip_actions`, and leaves URLs that look like actions pending.
    let mut crawl = steady(&web);
    crawl.config.budgets.max_pages = Some(3);
    crawl.run().unwrap();
    crawl.config.budgets.max_pages = None;
    crawl.config.traps.skip_actions = true;
    crawl.run().unwrap();
    let log: Vec<String> = web.take_log().into_iter().map(|entry| entry.path).collect();
    assert_eq!(log, plain);
    let rows = crawl.excluded_rows();
    assert!(rows.len() == 3 && rows.iter().all(|row| row.reason == "action"));
}

/// Crawls a page that has these links, on a host with this robots.txt. Returns the paths that were
/// requested after the page, and the rows of excluded URLs.
fn named(robots: &str, links: &[&str]) -> (Vec<String>, Vec<ExcludedRow>) {
    let html: String = links
        .iter()
        .map(|to| format!("<a href='{to}'>x</a>"))
        .collect();
    let web = TestWeb::builder()
        .sitemap(false)
        .script(0, "/robots.txt", HttpAnswer::text(robots))
        .script(0, "/", HttpAnswer::html(&html))
        .start();
    let mut crawl = steady(&web);
    crawl.config.links = true;
    crawl.run().unwrap();
    let log = web
        .log()
        .into_iter()
        .map(|entry| entry.path)
        .skip(2)
        .collect();
    let linked = std::fs::read_to_string(crawl.output("links.jsonl")).unwrap();
    for link in links {
        assert!(
            linked.contains(&web.url(0, link)),
            "{link} as it was linked"
        );
    }
    (log, crawl.excluded_rows())
}

#[test]
fn tracking_parameters_and_clean_params_are_ignored() {
    let robots = "User-agent: *\nDisallow:\nClean-param: ref /list\n";
    let links = [
        "/x?utm_source=a&id=1",
        "/x?id=1&fbclid=q",
        "/x?id=1",
        "/list?ref=1&p=2",
        "/list?p=2",
        "/other?ref=1",
    ];
    let (asked, barred) = named(robots, &links);
    assert_eq!(asked, ["/x?id=1", "/list?p=2", "/other?ref=1"]);
    assert!(barred.is_empty());
}

#[test]
fn a_chain_of_similar_redirects_is_followed_up_to_the_limit() {
    let web = TestWeb::scripted(1).start();
    web.script(0, "/", HttpAnswer::html("<a href=/hop/1>hop</a>"));
    for hop in 1..=9 {
        let next = format!("/hop/{}", hop + 1);
        web.script(0, &format!("/hop/{hop}"), HttpAnswer::redirect(302, &next));
    }
    web.script(0, "/hop/10", HttpAnswer::html("the end of the chain"));
    for (max_redirects, is_reached) in [(9, true), (8, false)] {
        let mut crawl = steady(&web);
        crawl.config.max_redirects = max_redirects;
        crawl.run().unwrap();
        let is_end = |path: &String| path == "/hop/10";
        assert_eq!(
            paths(&crawl).iter().any(is_end),
            is_reached,
            "{max_redirects}"
        );
        let excluded = crawl.excluded();
        let expected = (!is_reached).then_some("redirects");
        assert_eq!(
            excluded.get(&web.url(0, "/hop/10")).map(String::as_str),
            expected
        );
    }
}

#[test]
fn a_redirect_to_a_tracked_url_is_followed_unchanged() {
    let web = TestWeb::builder()
        .sitemap(false)
        .script(
            0,
            "/robots.txt",
            HttpAnswer::text("User-agent: *\nDisallow:\nClean-param: s\n"),
        )
        .script(0, "/", HttpAnswer::redirect(302, "/?s=1"))
        .script(0, "/?s=1", HttpAnswer::redirect(302, "/?utm_id=2"))
        .script(0, "/?utm_id=2", HttpAnswer::html("here at last"))
        .start();
    let crawl = steady(&web);
    crawl.run().unwrap();
    assert_eq!(crawl.page(&web.url(0, "/?utm_id=2")).status, Some(200));
}

/// Returns a page with thirty words of its own, and these links.
fn page_of_words(name: &str, links: &str) -> HttpAnswer {
    let words: Vec<String> = (0..30).map(|n| format!("{name}{n}x")).collect();
    HttpAnswer::html(&format!("{}{links}", words.join(" ")))
}

/// Starts a site with three folders whose `index.html` is the same page as the folder itself. The
/// first page links to the folders, to their documents, and to the page `/late`, which has these
/// links.
fn site_with_default_documents(late: &str) -> TestWeb {
    let mut home = String::new();
    let mut web = TestWeb::builder().sitemap(false);
    for name in ["one", "two", "three"] {
        home += &format!("<a href='/{name}/'>x</a><a href='/{name}/index.html'>x</a>");
        for path in [format!("/{name}/"), format!("/{name}/index.html")] {
            web = web.script(0, &path, page_of_words(name, ""));
        }
    }
    home += "<a href='/late'>x</a>";
    web.script(0, "/", HttpAnswer::html(&home))
        .script(0, "/late", HttpAnswer::html(late))
        .start()
}

#[test]
fn default_documents_equal_their_folder_once_that_is_learned() {
    let web = site_with_default_documents("<a href='/four/'>x</a><a href='/four/index.html'>x</a>");
    web.script(0, "/four/", page_of_words("four", ""));
    let mut crawl = steady(&web);
    crawl.config.budgets.max_pages = Some(8);
    crawl.run().unwrap();
    crawl.config.budgets.max_pages = None;
    crawl.run().unwrap();
    let log: Vec<String> = web.log().into_iter().map(|entry| entry.path).collect();
    assert!(log.contains(&"/four/".to_owned()), "{log:?}");
}

#[test]
fn a_document_is_fetched_if_its_folder_is_not_linked_or_has_no_page() {
    let web = site_with_default_documents(
        "<a href='/four/index.html'>x</a> <a href='/five/index.html'>x</a><a href='/five/'>x</a> \
         <a href='/six/'>x</a><a href='/six/index.html'>x</a>",
    );
    for name in ["four", "five", "six", "seven"] {
        let links = "<a href='/seven/'>x</a><a href='/seven/index.html'>x</a>";
        let page = page_of_words(name, if name == "five" { links } else { "" });
        web.script(0, &format!("/{name}/index.html"), page);
    }
    for name in ["six", "seven"] {
        web.script(0, &format!("/{name}/"), page_of_words(name, ""));
    }
    let crawl = steady(&web);
    crawl.run().unwrap();
    let paths = paths(&crawl);
    let of = |name: &str| {
        let pages = [format!("/{name}/"), format!("/{name}/index.html")];
        pages.map(|path| paths.contains(&path))
    };
    assert_eq!(of("four"), [false, true]);
    assert_eq!(of("five"), [true, true]);
    assert_eq!(of("six"), [true, false]);
    // `/five/` has no page, but `/five/index.html` has one. So the rule that a folder and its
    // document are the same page no longer applies.
    assert_eq!(of("seven"), [true, true]);
    let rows = crawl.excluded_rows();
    let duplicates: Vec<_> = rows.iter().map(|row| row.url.as_str()).collect();
    assert_eq!(duplicates, [web.url(0, "/six/index.html")]);
}

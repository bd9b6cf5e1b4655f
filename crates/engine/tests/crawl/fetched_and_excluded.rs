//! Tests of which pages are fetched, which URLs are excluded, and how both are recorded.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crawl_archive::WarcReader;
use crawl_engine::{CrawlBudgets, EndReason, HostBudget, HostGroupBudget};
use crawl_fetcher::ResolveOverride;
use crawl_scheduler::PolitenessOverride;
use crawl_scope::ScopeMode;
use crawl_testweb::{ExclusionReason, HostsInScope, HttpAnswer, LinkMix, LogEntry, TestWeb, gaps};
use crawl_weburl::canonicalize;
use tokio::runtime::Runtime;

use crate::name_server::{NameServer, ScriptedAnswer};
use crate::support::{Crawl, expected};

#[test]
fn every_allowed_page_once_and_nothing_that_is_barred() {
    let web = TestWeb::builder().seed(7).hosts(2).pages(60).start();
    let crawl = Crawl::of(&web);
    let summary = crawl.run().unwrap();
    assert_eq!(summary.ended, EndReason::Finished);

    let statuses = crawl.statuses();
    assert_eq!(
        statuses.keys().cloned().collect::<BTreeSet<_>>(),
        expected(&web, HostsInScope::Host)
    );
    let truth = web.truth(HostsInScope::Host);
    for page in crawl.pages() {
        if let Some(expected) = truth.fetched.get(&page.url) {
            assert_eq!(page.status, Some(expected.status), "{}", page.url);
        }
    }
    let excluded = crawl.excluded();
    for (url, barred) in &truth.barred {
        // The nofollow may be in the link's rel, or in a META or a header of its page.
        let reasons: &[&str] = match barred {
            ExclusionReason::Robots(_) => &["robots"],
            ExclusionReason::Nofollow => &["nofollow", "meta", "header"],
            ExclusionReason::Scope => &["scope"],
        };
        assert!(reasons.contains(&excluded[url].as_str()), "{url}");
    }
    let requested = web
        .log()
        .iter()
        .filter(|entry| entry.host == 0)
        .map(|entry| entry.path.clone())
        .collect::<Vec<_>>();
    assert_eq!(requested[0], "/robots.txt");
    assert_eq!(
        requested.len(),
        statuses.len() + 1,
        "each URL once, and robots.txt"
    );
    assert_eq!(requested.len() as u64, summary.requests);
    assert!(
        web.log().iter().all(|entry| entry.host == 0),
        "out of scope"
    );
}

#[test]
fn least_depth_is_the_row_s_depth() {
    let web = TestWeb::builder().seed(3).pages(80).sitemap(false).start();
    let mut crawl = Crawl::of(&web);
    crawl.config.sitemaps = false;
    crawl.run().unwrap();
    let truth = web.truth(HostsInScope::Host);
    for page in crawl.pages() {
        assert_eq!(page.depth, truth.fetched[&page.url].depth, "{}", page.url);
    }
}

#[test]
fn scope_any_crawls_all_hosts_each_after_its_robots() {
    let web = TestWeb::builder()
        .seed(11)
        .hosts(4)
        .pages(25)
        .sitemap(false)
        .start();
    let mut crawl = Crawl::of(&web);
    crawl.config.scope.mode = ScopeMode::Any;
    crawl.config.fetch.allow_private = true;
    crawl.config.sitemaps = false;
    crawl.run().unwrap();
    let truth = web.truth(HostsInScope::Any);
    assert_eq!(
        crawl.statuses().into_keys().collect::<Vec<_>>(),
        truth.fetched.into_keys().collect::<Vec<_>>()
    );
    for host in 0..web.hosts() {
        let log = web.log();
        let first = log.iter().find(|entry| entry.host == host).unwrap();
        assert_eq!(first.path, "/robots.txt");
    }
}

#[test]
fn private_addresses_that_are_not_seeds_are_listed_and_not_fetched() {
    let web = TestWeb::builder().seed(11).hosts(3).pages(20).start();
    let mut crawl = Crawl::of(&web);
    crawl.config.scope.mode = ScopeMode::Any;
    let summary = crawl.run().unwrap();
    assert_eq!(summary.ended, EndReason::Finished);
    assert!(web.log().iter().all(|entry| entry.host == 0));
    // Refused requests have rows, but don't count.
    let sent = (summary.requests, summary.robots_requests);
    assert_eq!(sent, (web.log().len() as u64, 1));
    let rows = crawl.requests();
    let rows_of_sent = rows.iter().filter(|row| row.is_sent());
    assert!(rows_of_sent.clone().count() < rows.len());
    assert_eq!(rows_of_sent.count() as u64, summary.requests);
    assert!(summary.excluded["address"] > 0);
}

#[test]
fn the_gap_is_kept_from_end_to_start() {
    let web = TestWeb::builder()
        .seed(5)
        .pages(12)
        .latency(Duration::from_millis(5))
        .start();
    let mut crawl = Crawl::of(&web);
    crawl.config.politeness.delay = Duration::from_millis(40);
    crawl.run().unwrap();
    let log = web.log();
    // The server sees the end of an answer before the client does, so gaps in its log are not
    // shorter than the client's.
    assert!(
        gaps(&log).into_iter().all(|gap| gap >= 40_000),
        "{:?}",
        gaps(&log)
    );
    let requests = crawl.requests();
    assert_eq!(requests.len(), log.len());
    for pair in requests.windows(2) {
        assert!(pair[1].start >= pair[0].end + 40, "{pair:?}");
    }
}

#[test]
fn crawl_delay_is_kept() {
    let web = TestWeb::builder()
        .seed(5)
        .pages(6)
        .crawl_delay("0.06")
        .start();
    let crawl = Crawl::of(&web);
    crawl.run().unwrap();
    let log = web.log();
    assert!(
        gaps(&log).into_iter().skip(1).all(|gap| gap >= 60_000),
        "{:?}",
        gaps(&log)
    );
    assert!(
        crawl
            .requests()
            .iter()
            .skip(2)
            .all(|row| row.why == "crawl-delay"),
        "{:?}",
        crawl.requests()
    );
}

#[test]
fn redirects_are_links_and_a_seed_s_redirect_moves_the_scope() {
    let web = TestWeb::builder()
        .seed(2)
        .hosts(2)
        .pages(10)
        .sitemap(false)
        .start();
    let away = web.url(1, "/");
    web.script(0, "/", HttpAnswer::redirect(301, &away));
    let mut crawl = Crawl::of(&web);
    crawl.config.fetch.allow_private = true;
    let summary = crawl.run().unwrap();
    assert_eq!(summary.ended, EndReason::Finished);
    let statuses = crawl.statuses();
    assert_eq!(statuses[&web.url(0, "/")], Some(301));
    assert_eq!(statuses[&away], Some(200));
    assert!(
        statuses.len() > 10,
        "the target's host is in scope: {statuses:?}"
    );
}

#[test]
fn depth_and_budget_are_listed_with_their_rule() {
    let web = TestWeb::builder().seed(9).pages(60).start();
    let mut crawl = Crawl::of(&web);
    crawl.config.sitemaps = false;
    crawl.config.scope.max_depth = Some(1);
    let summary = crawl.run().unwrap();
    assert!(crawl.pages().iter().all(|page| page.depth <= 1));
    assert!(summary.excluded["depth"] > 0);

    // Repeat the crawl with a budget and no depth limit. Every URL that is still pending is listed
    // because of the budget.
    let mut crawl = Crawl::of(&web);
    crawl.config.budgets.max_pages = Some(10);
    let summary = crawl.run().unwrap();
    assert_eq!(summary.ended, EndReason::Budget("max-pages"));
    assert_eq!(crawl.pages().len(), 10);
    assert_eq!(summary.excluded["budget"], summary.pending);

    // Without the budget the crawl continues. URLs that were listed because of the budget are no
    // longer listed.
    crawl.config.budgets.max_pages = None;
    let summary = crawl.run().unwrap();
    assert_eq!(summary.ended, EndReason::Finished);
    assert_eq!(
        crawl.statuses().into_keys().collect::<BTreeSet<_>>(),
        expected(&web, HostsInScope::Host)
    );
    assert_eq!(summary.excluded.get("budget"), None);
}

#[test]
fn the_archive_holds_every_settled_exchange_and_robots_txt() {
    let web = TestWeb::builder().seed(4).pages(30).start();
    let crawl = Crawl::of(&web);
    crawl.run().unwrap();
    let mut archived = BTreeSet::new();
    for entry in std::fs::read_dir(crawl.output("archive")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "gz") {
            for record in WarcReader::open(&path).unwrap() {
                let record = record.unwrap();
                if record.kind() == "response" {
                    let url = record.url().unwrap().to_owned();
                    assert!(archived.insert(url.clone()), "{url} is archived twice");
                }
            }
        }
    }
    let mut expected = expected(&web, HostsInScope::Host);
    expected.insert(web.url(0, "/robots.txt"));
    assert_eq!(archived, expected);
    let index = std::fs::read_to_string(crawl.output("archive/index.cdxj")).unwrap();
    assert_eq!(index.lines().count(), expected.len());
    assert!(index.lines().is_sorted());
}

#[test]
fn a_page_listed_as_a_sitemap_is_read_as_a_page() {
    let web = TestWeb::builder()
        .seed(6)
        .pages(20)
        .robots(0, "Sitemap: /\n")
        .start();
    let crawl = Crawl::of(&web);
    crawl.run().unwrap();
    assert!(crawl.statuses().len() > 20);
}

#[test]
fn a_page_named_as_a_sitemap_has_an_error_but_does_not_fail() {
    let web = TestWeb::builder()
        .pages(1)
        .robots(0, "Sitemap: /map.html\nSitemap: /moved.xml\n")
        .script(0, "/map.html", HttpAnswer::html("<a href=/>home</a>"))
        .script(0, "/moved.xml", HttpAnswer::redirect(301, "/other"))
        .script(0, "/other", HttpAnswer::html("other"))
        .start();
    let crawl = Crawl::of(&web);
    crawl.run().unwrap();
    let rows = crawl.pages();
    let error_of = |path: &str| {
        let row = rows.iter().find(|row| row.url == web.url(0, path)).unwrap();
        assert!(!row.is_failed() && !row.is_broken(), "{row:?}");
        row.error.clone()
    };
    assert_eq!(error_of("/map.html").as_deref(), Some("not_a_sitemap"));
    assert_eq!(error_of("/other"), None);
}

#[test]
fn exclude_holds_for_seeds_and_sitemaps_too() {
    let web = TestWeb::builder().seed(6).pages(5).start();
    let mut crawl = Crawl::of(&web);
    crawl.config.scope.exclude = vec!["/$".to_owned(), "sitemap".to_owned()];
    let summary = crawl.run().unwrap();
    assert!(web.log().iter().all(|entry| entry.path == "/robots.txt"));
    assert_eq!((summary.pages, summary.seeds_failed.len()), (0, 1));
    assert_eq!(
        summary.seeds_failed[0].why,
        "excluded by scope (exclude /$)"
    );
}

#[test]
fn a_sitemap_index_is_read_outside_the_scope_and_to_a_limited_depth() {
    let web = TestWeb::builder()
        .seed(6)
        .pages(5)
        .robots(0, "Sitemap: /maps/0\n")
        .start();
    for level in 0..20 {
        let index = format!(
            "<sitemapindex><sitemap><loc>/maps/{}</loc></sitemap></sitemapindex>",
            level + 1
        );
        web.script(
            0,
            &format!("/maps/{level}"),
            HttpAnswer::of(200).body(index),
        );
    }
    let mut crawl = Crawl::of(&web);
    crawl.config.scope.include = vec!["/$".to_owned()];
    let summary = crawl.run().unwrap();
    let maps = web
        .log()
        .iter()
        .filter(|entry| entry.path.starts_with("/maps/"))
        .count();
    assert_eq!(maps, 6);
    assert_eq!(summary.excluded["trap"], 1);
}

#[test]
fn max_pages_per_host_is_kept_with_many_in_flight() {
    let web = TestWeb::builder().seed(6).pages(60).start();
    let mut crawl = Crawl::of(&web);
    crawl.config.politeness.per_host = 8;
    crawl.config.budgets.per_host.max_pages = Some(7);
    let summary = crawl.run().unwrap();
    assert_eq!(crawl.pages().len(), 7);
    assert_eq!(summary.ended, EndReason::Budget("max-pages-per-host"));
}

#[test]
fn a_guessed_sitemap_that_is_missing_has_no_row() {
    let web = TestWeb::builder().seed(6).pages(5).sitemap(false).start();
    web.script(0, "/sitemap.xml", HttpAnswer::of(404));
    let crawl = Crawl::of(&web);
    let summary = crawl.run().unwrap();
    assert!(web.log().iter().any(|entry| entry.path == "/sitemap.xml"));
    let statuses = crawl.statuses();
    assert!(!statuses.contains_key(&web.url(0, "/sitemap.xml")));
    assert_eq!(summary.pages, statuses.len() as u64);
}

#[test]
fn a_higher_depth_limit_readmits_deferred_urls() {
    let mix = LinkMix {
        shunned: 20,
        ..LinkMix::default()
    };
    let web = TestWeb::builder().seed(9).pages(40).sitemap(false);
    let web = web.mix(mix).start();
    let mut crawl = Crawl::of(&web);
    crawl.config.scope.max_depth = Some(0);
    assert_eq!(crawl.run().unwrap().pages, 1);
    // URLs that only `nofollow` links lead to stay deferred at each depth.
    for max_depth in [Some(1), Some(2), None] {
        crawl.config.scope.max_depth = max_depth;
        crawl.run().unwrap();
    }
    let truth = web.truth(HostsInScope::Host).fetched;
    assert_eq!(
        crawl.statuses().into_keys().collect::<Vec<_>>(),
        truth.into_keys().collect::<Vec<_>>()
    );
}

#[test]
fn a_host_budget_is_not_exceeded() {
    let budget = |change: fn(&mut HostBudget)| {
        let web = TestWeb::builder()
            .seed(3)
            .pages(20)
            .latency(Duration::from_millis(2))
            .start();
        let mut crawl = Crawl::of(&web);
        change(&mut crawl.config.budgets.per_host);
        let first = crawl.run().unwrap();
        assert!(first.pages < 20, "{first:?}");
        let count = web.log().len();
        let again = crawl.run().unwrap();
        (first.ended, again.ended, web.log().len() - count)
    };
    let spent = |name| (EndReason::Budget(name), EndReason::Budget(name), 0);
    assert_eq!(
        budget(|of| of.max_bytes = Some(1)),
        spent("max-bytes-per-host")
    );
    assert_eq!(
        budget(|of| of.max_server_time = Some(Duration::from_millis(1))),
        spent("max-server-time-per-host")
    );
    let (first, again, _) = budget(|of| of.max_time = Some(Duration::from_millis(1)));
    assert_eq!(first, EndReason::Budget("max-time-per-host"));
    assert_eq!(again, first, "each run has its own time");
}

#[test]
fn hosts_of_a_group_share_its_budget_over_all_runs() {
    let web = TestWeb::builder().hosts(3).seed(3).pages(20).start();
    let mut crawl = Crawl::of(&web);
    crawl.config.seeds = (0..3)
        .map(|host| canonicalize(None, &web.url(host, "/")).unwrap())
        .collect();
    crawl.config.fetch.typed = crawl.config.seeds.clone();
    crawl.config.politeness.per_host = 4;
    let group = Arc::new(HostGroupBudget {
        name: "two".to_owned(),
        max_pages: Some(9),
        ..HostGroupBudget::default()
    });
    let groups = &mut crawl.config.budgets.groups;
    for host in 0..2 {
        groups
            .insert(web.authority(host), Arc::clone(&group))
            .unwrap();
    }
    // Pages of the first run count towards the budget, so the second run gets the rest.
    crawl.config.budgets.max_pages = Some(8);
    assert_eq!(crawl.run().unwrap().ended, EndReason::Budget("max-pages"));
    crawl.config.budgets.max_pages = None;
    let ended = EndReason::TableBudget("max-pages of group two".to_owned());
    assert_eq!(crawl.run().unwrap().ended, ended);
    let is_of = |host: u32, url: &str| url.starts_with(&web.url(host, "/"));
    let pages = crawl.statuses();
    let of_group = pages.keys().filter(|url| is_of(0, url) || is_of(1, url));
    assert_eq!(of_group.count(), 9);
    assert!(pages.keys().filter(|url| is_of(2, url)).count() >= 20);
    for row in crawl.excluded_rows() {
        assert!(!is_of(2, &row.url) || row.reason != "budget", "{row:?}");
        if row.reason == "budget" {
            assert_eq!(row.rule.as_deref(), Some("max-pages of group two"));
        }
    }
    web.take_log();
    assert_eq!(crawl.run().unwrap().ended, ended);
    assert_eq!(web.log().len(), 0, "nothing is left");
}

#[test]
fn server_time_ends_the_crawl_over_all_runs() {
    let web = TestWeb::builder()
        .seed(3)
        .pages(20)
        .latency(Duration::from_millis(2))
        .start();
    let mut crawl = Crawl::of(&web);
    crawl.config.budgets.max_server_time = Some(Duration::from_millis(10));
    assert_eq!(
        crawl.run().unwrap().ended,
        EndReason::Budget("max-server-time")
    );
    web.take_log();
    assert_eq!(
        crawl.run().unwrap().ended,
        EndReason::Budget("max-server-time")
    );
    assert_eq!(web.log().len(), 0);
}

#[test]
fn a_site_of_its_own_table_has_its_own_delay_and_budget() {
    let web = TestWeb::builder().hosts(2).seed(4).pages(12).start();
    let mut crawl = Crawl::of(&web);
    crawl.config.scope.mode = ScopeMode::Any;
    crawl.config.fetch.allow_private = true;
    let own = web.authority(1).to_owned();
    let terms = PolitenessOverride {
        delay: Some(Duration::from_millis(50)),
        ..PolitenessOverride::default()
    };
    crawl.config.politeness.sites.insert(&own, terms).unwrap();
    let budget = HostBudget {
        max_pages: Some(3),
        ..HostBudget::default()
    };
    crawl.config.budgets.per_site.insert(&own, budget).unwrap();
    let summary = crawl.run().unwrap();
    let ended = EndReason::TableBudget(format!("max-pages of [site.\"{own}\"]"));
    assert_eq!(summary.ended, ended);
    let gaps = gaps(&web.log_of(1));
    assert!(
        gaps.len() >= 3 && gaps.iter().all(|gap| *gap >= 50_000),
        "{gaps:?}"
    );
    let own = crawl
        .pages()
        .into_iter()
        .filter(|page| page.url.contains(&own));
    assert_eq!(own.count(), 3);
    assert!(summary.pages > 6);
}

#[test]
fn evicted_hosts_lose_nothing() {
    let web = TestWeb::builder().hosts(8).seed(9).pages(12).start();
    let mut crawl = Crawl::of(&web);
    crawl.config.scope.mode = ScopeMode::Any;
    crawl.config.fetch.allow_private = true;
    crawl.config.politeness.delay = Duration::from_millis(5);
    crawl.config.hosts_in_memory = 0;
    crawl.run().unwrap();
    let fetched: BTreeSet<String> = crawl.statuses().into_keys().collect();
    let wanted = web.truth(HostsInScope::Any).fetched_with_sitemaps();
    assert!(
        wanted.is_subset(&fetched),
        "{:?}",
        wanted.difference(&fetched)
    );
    for host in 0..8 {
        let log = web.log_of(host);
        let fetches = log.iter().filter(|entry| entry.path == "/robots.txt");
        assert_eq!(fetches.count(), 1, "a copy is known as long as it holds");
        assert!(
            gaps(&log).iter().all(|gap| *gap >= 5_000),
            "{:?}",
            gaps(&log)
        );
    }
}

#[test]
fn a_guessed_sitemap_does_not_count_in_a_budget() {
    let web = TestWeb::builder()
        .sitemap(false)
        .script(0, "/", HttpAnswer::html("<a href=/two>2</a>"))
        .script(0, "/two", HttpAnswer::html("<a href=/three>3</a>"))
        .start();
    let mut crawl = Crawl::of(&web);
    crawl.config.budgets.per_host.max_pages = Some(2);
    crawl.run().unwrap();
    let pages: Vec<_> = crawl.statuses().into_keys().collect();
    assert_eq!(pages, [web.url(0, "/"), web.url(0, "/two")]);
    let is_sitemap = |entry: &LogEntry| entry.path == "/sitemap.xml";
    assert!(web.log().iter().any(is_sitemap));
}

/// Returns the maximum number of simultaneous requests according to the server's own log.
fn max_at_once(web: &TestWeb) -> usize {
    let log = web.log();
    let at = |moment: u64| {
        let under_way = log.iter().filter(|entry| {
            entry.start_us <= moment && entry.end_us.is_none_or(|end| moment < end)
        });
        under_way.count()
    };
    let max = log.iter().map(|entry| at(entry.start_us)).max();
    max.unwrap_or_default()
}

/// Crawls 256 hosts on one address and checks that at most four requests are in flight at once.
/// `set_names` makes the host names resolvable.
fn crawl_hosts_of_one_address(set_names: impl FnOnce(&TestWeb, &mut Crawl)) {
    const HOSTS: u32 = 256;
    let web = TestWeb::builder()
        .hosts(HOSTS)
        .pages(1)
        .domain("names.example")
        .addresses(1)
        .latency(Duration::from_millis(20))
        .start();
    let mut crawl = Crawl::of(&web);
    let seeds = (0..HOSTS).map(|host| canonicalize(None, &web.url(host, "/")).unwrap());
    crawl.config.seeds = seeds.collect();
    crawl.config.fetch.typed = crawl.config.seeds.clone();
    set_names(&web, &mut crawl);
    crawl.config.sitemaps = false;
    crawl.config.politeness.per_address = 4;
    crawl.config.politeness.per_site = None;
    crawl.run().unwrap();
    let robots = |entry: &&LogEntry| entry.path == "/robots.txt";
    assert_eq!(web.log().iter().filter(robots).count(), HOSTS as usize);
    assert!(max_at_once(&web) <= 4, "{} at once", max_at_once(&web));
}

#[test]
fn hosts_on_one_address_share_its_limit_from_the_first_request() {
    crawl_hosts_of_one_address(|web, crawl| {
        let overrides = (0..).zip(&crawl.config.seeds);
        let overrides = overrides.map(|(host, seed)| ResolveOverride {
            host: seed.host().to_owned(),
            port: web.address(host).port(),
            addresses: vec![web.address(host).ip()],
        });
        crawl.config.fetch.resolve = overrides.collect();
    });
}

#[test]
fn hosts_resolved_by_a_name_server_share_the_limit_of_their_address() {
    let runtime = Runtime::new().unwrap();
    // Holds the name server that the closure starts, so that it runs until the end of the crawl.
    let mut names = None;
    crawl_hosts_of_one_address(|web, crawl| {
        let home = web.address(0).ip();
        let say = move |_: &str| ScriptedAnswer::Addresses(vec![home], 300);
        let server = runtime.block_on(NameServer::start(say));
        crawl.config.fetch.name_servers = vec![server.address];
        names = Some(server);
    });
    drop(names);
}

#[test]
fn a_run_that_fetched_everything_is_finished_even_if_it_spent_a_budget() {
    let web = TestWeb::builder()
        .seed(3)
        .pages(6)
        .mix(LinkMix::plain())
        .start();
    let whole = Crawl::of(&web).run().unwrap();
    assert_eq!(whole.ended, EndReason::Finished);
    let budgets = [
        CrawlBudgets {
            max_pages: Some(whole.pages),
            ..CrawlBudgets::default()
        },
        CrawlBudgets {
            max_bytes: Some(whole.bytes),
            ..CrawlBudgets::default()
        },
    ];
    for budgets in budgets {
        let mut crawl = Crawl::of(&web);
        crawl.config.budgets = budgets;
        let first = crawl.run().unwrap();
        assert_eq!(
            (first.ended, first.pages),
            (EndReason::Finished, whole.pages)
        );
        let again = crawl.run().unwrap();
        assert_eq!((again.ended, again.requests), (EndReason::Finished, 0));
    }
    let mut crawl = Crawl::of(&web);
    crawl.config.budgets.max_pages = Some(whole.pages - 1);
    assert_eq!(crawl.run().unwrap().ended, EndReason::Budget("max-pages"));
}

#[test]
fn a_seed_that_redirects_to_another_scheme_names_the_redirect_as_the_cause() {
    let redirect = HttpAnswer::redirect(302, "ftp://127.0.0.1/");
    let web = TestWeb::builder().pages(2).script(0, "/", redirect).start();
    let summary = Crawl::of(&web).run().unwrap();
    assert_eq!(summary.seeds_failed[0].why, "redirect_scheme");
}

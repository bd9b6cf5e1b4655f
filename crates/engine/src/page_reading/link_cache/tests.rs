//! Compares the results of reading links with and without a cache.

use std::cell::RefCell;
use std::sync::Arc;

use crawl_extractor::{ReadingLimits, read_html};
use crawl_frontier::{Frontier, Lease, MemoryFrontier, UrlKind, UrlToAdmit};
use crawl_policy::{AgentRules, ProductToken, RobotsProfile};
use crawl_scope::{Scope, ScopeMode};
use crawl_weburl::{CanonicalUrl, canonicalize};

use super::{CachedLink, CurrentBase, LinkCache, MAX_HREF_BYTES};
use crate::config::{Config, EmbeddedResourcePolicy, TrapAvoidance};
use crate::messages::page_pipeline_stages::PageFindings;
use crate::page_reading::document_links::{DocumentLinkCollector, LinkPolicy};
use crate::page_reading::document_result::ReadDocument;

const BASES: [&str; 7] = [
    "http://a.example/",
    "http://a.example/b",
    "http://a.example/b?c=/d/e",
    "http://a.example/b/",
    "http://a.example/b/c;d/e",
    "https://a.example/b/c?d",
    "http://b.example/b/c",
];
const PARTS: [&str; 31] = [
    "..",
    ".",
    "~",
    "/",
    "//",
    "../",
    "./",
    "http:",
    "https://",
    "HTTP://",
    "http://a.example",
    "b.example",
    "mailto:",
    "?",
    "#",
    " ",
    "\t",
    "\\",
    "b",
    "c.html",
    "index.html",
    "?utm_source=x",
    "&ref=1",
    "?q=1",
    "logout",
    "%2e",
    ":",
    "@",
    "1",
    "é",
    "",
];

/// A reproducible sequence of numbers (an LCG).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    /// Returns a page with links of all kinds.
    fn page(&mut self, hrefs: &[String]) -> String {
        let mut page = String::new();
        for _ in 0..self.below(12) {
            let href = &hrefs[self.below(hrefs.len())];
            page += &match self.below(8) {
                0 => format!("<img src='{href}'>"),
                1 => format!("<a href='{href}' rel=nofollow>x</a>"),
                2 => format!("<form action='{href}'></form>"),
                _ => format!("<a href='{href}'>x</a>"),
            };
        }
        page
    }
}

fn url(raw: &str) -> CanonicalUrl {
    canonicalize(None, raw).unwrap()
}

fn robots(text: &str) -> AgentRules {
    let agent = ProductToken::new("crawl").unwrap();
    AgentRules::parse(text.as_bytes(), &agent, RobotsProfile::default())
}

fn lease(url: &CanonicalUrl, depth: u32) -> Lease {
    let frontier = MemoryFrontier::new();
    let mut transaction = frontier.begin().unwrap();
    transaction.admit(UrlToAdmit::seed(url.clone())).unwrap();
    transaction.commit().unwrap();
    let mut lease = frontier.lease(&url.origin()).unwrap().unwrap();
    lease.depth = depth;
    lease
}

fn config() -> Config {
    let agent = ProductToken::new("crawl").unwrap();
    let mut config = Config::new(agent, "0.0", None, vec![url(BASES[0])], "out");
    config.resources = EmbeddedResourcePolicy::All;
    config.forms = true;
    config.links = true;
    config
}

/// Reads the links of a page with this cache.
fn read_links(
    (html, from): (&str, &Lease),
    scope: &Arc<Scope>,
    (policy, robots): (&LinkPolicy, &AgentRules),
    (cache, settled_at): (&RefCell<LinkCache>, Option<u64>),
) -> PageFindings {
    let page = read_html(html.as_bytes(), None, &ReadingLimits::default());
    let mut links =
        DocumentLinkCollector::new(from, scope, policy, Some(robots), (cache, settled_at));
    for link in &page.links {
        links.link(&from.url, link, None);
    }
    links.finish(ReadDocument::default()).findings
}

#[test]
fn a_page_has_the_same_links_with_and_without_a_cache() {
    let mut numbers = Numbers(1);
    let robots = ["", "Clean-param: ref", "Clean-param: q /b"].map(robots);
    let scopes = [Some(1), None].map(|depth| {
        let exclude = ["c[.]html[?]".to_owned()];
        let mut scope = Scope::new(ScopeMode::Host, &[], &exclude, depth).unwrap();
        scope.add_seed(&url(BASES[0]));
        Arc::new(scope)
    });
    let policy = LinkPolicy::new(&config());
    let (mut remembered, mut pages) = (0, 0);
    for max_bytes in [super::MAX_CACHE_BYTES, 20_000] {
        let cache = RefCell::new(LinkCache::of_size(max_bytes));
        for _ in 0..60 {
            let hrefs: Vec<String> = (0..20)
                .map(|_| {
                    (0..1 + numbers.below(4))
                        .map(|_| numbers.one_of(&PARTS))
                        .collect()
                })
                .collect();
            let scope = &scopes[numbers.below(4).min(1)];
            for _ in 0..20 {
                let from = lease(&url(numbers.one_of(&BASES)), numbers.below(3) as u32);
                let html = numbers.page(&hrefs);
                let rules = (&policy, &robots[numbers.below(5).min(2)]);
                let cached = read_links((&html, &from), scope, rules, (&cache, None));
                let none = RefCell::new(LinkCache::of_size(0));
                let plain = read_links((&html, &from), scope, rules, (&none, None));
                assert_eq!(cached.links, plain.links, "{} {html}", from.url);
                assert_eq!(cached.link_rows, plain.link_rows, "{} {html}", from.url);
                assert_eq!(cached.unusable, plain.unusable, "{} {html}", from.url);
                assert!(none.borrow().targets.is_empty());
                pages += usize::from(!plain.links.is_empty());
                remembered += usize::from(!cache.borrow().targets.is_empty());
            }
        }
    }
    assert!(pages > 1000 && remembered > 1000, "{pages} {remembered}");
}

#[test]
fn settled_urls_of_the_pages_host_are_dropped_until_a_reopening() {
    let (policy, robots) = (LinkPolicy::new(&config()), robots(""));
    let scope = Arc::new(Scope::new(ScopeMode::Any, &[], &[], None).unwrap());
    let cache = RefCell::new(LinkCache::default());
    let from = lease(&url("http://a.example/b/c"), 0);
    let html = "<a href=d></a><a href=e></a><a href=d></a><a href=http://b.example/d></a>";
    let read = |settled_at| {
        let cache = (&cache, settled_at);
        let findings = read_links((html, &from), &scope, (&policy, &robots), cache);
        let links: Vec<_> = findings
            .links
            .iter()
            .map(|link| link.url.to_string())
            .collect();
        (links.join(" "), findings.settled_links)
    };
    let all = "http://a.example/b/d http://a.example/b/e http://b.example/d";
    let all = || (all.to_owned(), 0);
    assert_eq!(read(Some(3)), all());
    for settled in ["http://a.example/b/d", "http://b.example/d"] {
        cache.borrow_mut().note_settled(&url(settled));
    }
    let rest = "http://a.example/b/e http://b.example/d".to_owned();
    assert_eq!(read(Some(3)), (rest, 1));
    assert_eq!(read(None), all());
    assert_eq!(read(Some(4)), all());
}

#[test]
fn links_beyond_the_cache_limits_are_not_cached() {
    let (policy, robots) = (LinkPolicy::new(&config()), robots(""));
    let scope = Arc::new(Scope::new(ScopeMode::Any, &[], &[], None).unwrap());
    let cache = RefCell::new(LinkCache::of_size(2_000));
    let from = lease(&url("http://a.example/b/c"), 0);
    let read = |html: &str| read_links((html, &from), &scope, (&policy, &robots), (&cache, None));
    let long = "d".repeat(MAX_HREF_BYTES + 1);
    assert_eq!(read(&format!("<a href='{long}'>")).links.len(), 1);
    assert!(cache.borrow().targets.is_empty());
    let many: String = (0..100).map(|n| format!("<a href='d{n}'></a>")).collect();
    assert_eq!(read(&format!("{many}{many}")).links.len(), 100);
    assert!(cache.borrow().bytes < 2_600, "{}", cache.borrow().bytes);
    // The cache is full, so the next page clears it first.
    assert_eq!(read("<a href=d99>").links.len(), 1);
    assert_eq!(cache.borrow().targets.len(), 1);
}

#[test]
fn ordinary_paths_resolve_as_the_standard_requires() {
    for base in BASES {
        let base = CurrentBase {
            url: url(base),
            folder: 0,
            origin: 0,
            own: None,
        };
        let mut resolved = String::new();
        for path in [
            "b",
            "./b",
            "../b",
            "../../b/",
            "/b",
            "/",
            ".",
            "..",
            "./",
            "../",
            "b/..",
            "b/.",
            "b/../..",
            "/../b",
            "b//c",
            "b//../c",
            "/b/./../c/",
            "~b/.c/..d/...",
            "B-1_2.html",
        ] {
            assert!(base.resolve(path, &mut resolved).is_some());
            let by_standard = canonicalize(Some(&base.url), path).unwrap();
            assert_eq!(resolved, by_standard.as_str(), "{path} on {}", base.url);
        }
        for other in [
            "//b", "?b", "b?c", "b:c", "b c", "b\\c", "%2e%2e/b", "b;c", "\u{e9}",
        ] {
            assert!(base.resolve(other, &mut resolved).is_none(), "{other}");
        }
    }
}

#[test]
fn a_url_is_cached_for_each_folder_that_leads_to_it() {
    let scope = Arc::new(Scope::new(ScopeMode::Any, &[], &[], None).unwrap());
    let (a, b) = (url("http://a.example/a/b"), url("http://a.example/b/c/d/"));
    let target = canonicalize(Some(&a), "../c.html").unwrap();
    let mut cache = LinkCache::default();
    cache.begin(&a, &scope, None);
    let number = cache.keep(
        (&a, "../c.html", UrlKind::Page),
        Ok(&target),
        &TrapAvoidance::default(),
    );
    let cached = |cache: &mut LinkCache, href, kind| match cache.get(&b, href, kind) {
        Some(CachedLink::Usable(number)) => Some(number),
        _ => None,
    };
    assert!(number.is_some());
    for _ in 0..2 {
        assert_eq!(
            cached(&mut cache, "../../../c.html#d", UrlKind::Page),
            number
        );
        // The cached link leads to a page, so its URL was replaced by another spelling. A
        // resource's URL keeps its spelling, so the link to the resource must not use the cached
        // one.
        assert_eq!(
            cached(&mut cache, "../../../c.html", UrlKind::Resource),
            None
        );
        assert_eq!(cached(&mut cache, "../../c.html", UrlKind::Page), None);
    }
}

//! Tests of the state that the links of a document get.

use std::cell::RefCell;
use std::sync::Arc;

use crawl_extractor::{ReadingLimits, read_html};
use crawl_frontier::{
    Frontier as _, KnownState, Lease, MemoryFrontier, NotFetchedReason, Reason, RequestedState,
    UrlKind, UrlToAdmit,
};
use crawl_policy::ProductToken;
use crawl_scope::{Scope, ScopeMode};
use crawl_weburl::{CanonicalUrl, canonicalize};

use super::{DiscoveryAttributes, DocumentLinkCollector, LinkPolicy};
use crate::config::{Config, EmbeddedResourcePolicy};
use crate::page_reading::document_result::ReadDocument;
use crate::page_reading::link_cache::LinkCache;
use crate::priority::MAX_RESOURCE_LEVELS;

fn url(path: &str) -> CanonicalUrl {
    let home = canonicalize(None, "http://a.example/").unwrap();
    canonicalize(Some(&home), path).unwrap()
}

fn leased(admission: UrlToAdmit) -> Lease {
    let origin = admission.url.origin();
    let frontier = MemoryFrontier::new();
    let mut transaction = frontier.begin().unwrap();
    transaction.admit(admission).unwrap();
    transaction.commit().unwrap();
    frontier.lease(&origin).unwrap().unwrap()
}

/// Reads the links of a page. The crawl wants all resources, skips actions, and has the scope of
/// the page's host with a maximum depth of 1.
fn links(from: &Lease, html: &str, page_bar: Option<Reason>) -> Vec<UrlToAdmit> {
    let agent = ProductToken::new("crawl").unwrap();
    let mut config = Config::new(agent, "0.0", None, vec![url("/")], "out");
    config.resources = EmbeddedResourcePolicy::All;
    config.traps.skip_actions = true;
    let mut scope = Scope::new(ScopeMode::Host, &[], &[], Some(1)).unwrap();
    scope.add_seed(&url("/"));
    let (scope, policy) = (Arc::new(scope), LinkPolicy::new(&config));
    let cache = RefCell::new(LinkCache::default());
    let page = read_html(html.as_bytes(), None, &ReadingLimits::default());
    let bar = page_bar.map(NotFetchedReason::of);
    let mut links = DocumentLinkCollector::new(from, &scope, &policy, None, (&cache, None));
    for link in &page.links {
        links.link(&from.url, link, bar.as_ref());
    }
    links.finish(ReadDocument::default()).findings.links
}

#[test]
fn a_barred_link_stays_barred_if_it_is_too_deep() {
    for depth in [0, 1] {
        let page = leased(UrlToAdmit::link(url("/page"), depth, url("/")));
        for (html, page_bar, expected) in [
            ("<a href=/x>", None, (depth == 1).then_some(Reason::Depth)),
            ("<a href=/x rel=nofollow>", None, Some(Reason::Nofollow)),
            ("<a href=/logout>", None, Some(Reason::Action)),
            ("<a href=/x>", Some(Reason::Meta), Some(Reason::Meta)),
            ("<a href=/x>", Some(Reason::Header), Some(Reason::Header)),
        ] {
            let [link] = links(&page, html, page_bar).try_into().unwrap();
            let reason = match link.state {
                RequestedState::Deferred(exclusion) => Some(exclusion.reason),
                _ => None,
            };
            assert_eq!(reason, expected, "{depth} {html} {page_bar:?}");
        }
    }
}

/// A higher depth limit must readmit the URL, whichever link was found first.
#[test]
fn a_permitted_link_that_is_too_deep_prevails_over_a_barred_one() {
    let page = leased(UrlToAdmit::link(url("/page"), 1, url("/")));
    let (permitted, barred) = ("<a href=/x>", "<a href=/x rel=nofollow>");
    for order in [[permitted, barred], [barred, permitted]] {
        let on_one_page = links(&page, &order.concat(), None);
        let on_two_pages = order.map(|html| links(&page, html, None)).concat();
        for found in [on_one_page, on_two_pages] {
            let frontier = MemoryFrontier::new();
            let mut transaction = frontier.begin().unwrap();
            for link in found {
                transaction.admit(link).unwrap();
            }
            transaction.commit().unwrap();
            let known = frontier.known(&url("/x")).unwrap().unwrap();
            match known.state {
                KnownState::Deferred(exclusion) => assert_eq!(exclusion.reason, Reason::Depth),
                state => panic!("{order:?}: {state:?}"),
            }
        }
    }
}

/// Only links of pages count as hops. A page that a sitemap lists out of scope is fetched only if a
/// page links to it.
#[test]
fn a_page_that_only_a_sitemap_lists_out_of_scope_is_not_a_hop() {
    let agent = ProductToken::new("crawl").unwrap();
    let config = Config::new(agent, "0.0", None, vec![url("/docs/")], "out");
    let mut scope = Scope::new(ScopeMode::Prefix, &[], &[], None).unwrap();
    scope.add_seed(&url("/docs/"));
    scope.allow_hops_off(1);
    let (scope, policy) = (Arc::new(scope), LinkPolicy::new(&config));
    let sitemap = UrlToAdmit {
        kind: UrlKind::Sitemap,
        ..UrlToAdmit::link(url("/sitemap.xml"), 0, url("/robots.txt"))
    };
    let (sitemap, page) = (leased(sitemap), leased(UrlToAdmit::seed(url("/docs/"))));
    let frontier = MemoryFrontier::new();
    let seed = leased(UrlToAdmit {
        kind: UrlKind::Sitemap,
        ..UrlToAdmit::seed(url("/chosen.xml"))
    });
    let admitted = |from: &Lease, path: &str| {
        let cache = RefCell::new(LinkCache::default());
        let mut links = DocumentLinkCollector::new(from, &scope, &policy, None, (&cache, None));
        let discovery = DiscoveryAttributes {
            is_seed: from.is_seed && from.kind == UrlKind::Sitemap,
            ..DiscoveryAttributes::link(from)
        };
        links.add(discovery, Ok(url(path)), None);
        let [link] = links
            .finish(ReadDocument::default())
            .findings
            .links
            .try_into()
            .unwrap();
        let mut transaction = frontier.begin().unwrap();
        transaction.admit(link).unwrap();
        transaction.commit().unwrap();
        frontier.known(&url(path)).unwrap().unwrap()
    };
    let listed = admitted(&sitemap, "/shop/1");
    let KnownState::Deferred(exclusion) = listed.state else {
        panic!("{listed:?}");
    };
    assert_eq!(exclusion.reason, Reason::Scope);
    let within = admitted(&sitemap, "/docs/b");
    assert_eq!(
        (within.state, within.hops_off),
        (KnownState::Pending { attempt: 1 }, 0)
    );
    let chosen = admitted(&seed, "/shop/2");
    assert_eq!(
        (chosen.state, chosen.hops_off),
        (KnownState::Pending { attempt: 1 }, 1)
    );
    let linked = admitted(&page, "/shop/1");
    assert_eq!(
        (linked.state, linked.hops_off),
        (KnownState::Pending { attempt: 1 }, 1)
    );
}

#[test]
fn a_resource_is_fetched_even_if_its_page_has_a_barred_link_to_it() {
    let page = leased(UrlToAdmit::link(url("/page"), 1, url("/")));
    let top = leased(UrlToAdmit::seed(url("/")));
    let (own, other) = ("/x", "http://b.example/x");
    for (from, to, anchor, page_bar, kind) in [
        (&top, own, "", None, UrlKind::Page),
        (&top, own, "rel=nofollow", None, UrlKind::Resource),
        (&top, own, "", Some(Reason::Meta), UrlKind::Resource),
        // The page link leads out of scope, or too deep.
        (&top, other, "", None, UrlKind::Resource),
        (&page, own, "", None, UrlKind::Resource),
    ] {
        let (link, image) = (format!("<a href={to} {anchor}>"), format!("<img src={to}>"));
        for html in [format!("{link}{image}"), format!("{image}{link}")] {
            let [link] = links(from, &html, page_bar).try_into().unwrap();
            assert_eq!(
                (link.state, link.kind),
                (RequestedState::Pending, kind),
                "{} {html} {page_bar:?}",
                from.url
            );
        }
    }
}

#[test]
fn a_chain_of_resources_ends() {
    let mut from = leased(UrlToAdmit::link(url("/page"), 1, url("/")));
    for level in 1..=MAX_RESOURCE_LEVELS + 1 {
        // The hosts of the chain are out of scope.
        let html = format!("<img src=http://h{level}.example/x><a href=/{level}>");
        let [resource, page] = links(&from, &html, None).try_into().unwrap();
        assert_eq!((resource.depth, page.depth), (1, 2));
        if level > MAX_RESOURCE_LEVELS {
            let RequestedState::Deferred(exclusion) = resource.state else {
                panic!("{resource:?}");
            };
            assert_eq!(
                exclusion.to_string(),
                "trap: more than 5 levels of resources"
            );
            return;
        }
        assert_eq!(resource.state, RequestedState::Pending, "{level}");
        from = leased(resource);
    }
}

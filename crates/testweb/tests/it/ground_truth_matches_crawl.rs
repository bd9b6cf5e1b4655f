//! Compares the truth with the results of a small crawler that knows only what the hosts send.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use crawl_testweb::{ExclusionReason, HostsInScope, LinkMix, TestWeb};
use url::Url;

use crate::raw_http_client::get;

/// The fetched URLs with their status, and the excluded URLs.
type Found = (BTreeMap<String, u16>, BTreeSet<String>);

fn crawl(web: &TestWeb, reach: HostsInScope, with_sitemap: bool) -> Found {
    let mut crawled = Found::default();
    let root = Url::parse(&web.url(0, "/")).unwrap();
    let mut queue = vec![root.clone()];
    if with_sitemap {
        queue.extend(sitemap(web, 0));
    }
    while let Some(mut url) = queue.pop() {
        url.set_fragment(None);
        let outside = reach == HostsInScope::Host && url.authority() != root.authority();
        let private =
            url.path().starts_with("/private/") && !url.path().starts_with("/private/open/");
        if outside || private || url.query().is_some_and(|query| query.contains("action=")) {
            crawled.1.insert(url.into());
            continue;
        }
        if crawled.0.contains_key(url.as_str()) {
            continue;
        }
        let address: SocketAddr = url.authority().parse().unwrap();
        let path = &url[url::Position::BeforePath..];
        let got = get(address, path);
        crawled.0.insert(url.to_string(), got.status);
        if let Some(location) = got.headers.get("location") {
            queue.push(url.join(location).unwrap());
        }
        let html = got.text();
        let nofollow = html.contains("NOFOLLOW") || got.headers.contains_key("x-robots-tag");
        for (rel, target) in links(&url, &html) {
            if nofollow || rel {
                crawled.1.insert(target.into());
            } else {
                queue.push(target);
            }
        }
    }
    let fetched = &crawled.0;
    crawled.1.retain(|barred| !fetched.contains_key(barred));
    crawled
}

/// Returns the links of a page's `a` elements. The flag of each link is true if it is nofollow.
fn links(url: &Url, html: &str) -> Vec<(bool, Url)> {
    let mut base = url.clone();
    if let Some((_, rest)) = html.split_once("<base href=\"") {
        base = base.join(rest.split('"').next().unwrap()).unwrap();
    }
    let body = html.split("-->").nth(1).unwrap_or("");
    let mut links = Vec::new();
    for tag in body.split("<a").skip(1) {
        let (rel, rest) = tag.split_once("href=").unwrap();
        let value = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => rest[1..].split(quote).next().unwrap(),
            _ => rest.split('>').next().unwrap(),
        };
        let value = value.replace("&amp;", "&").replace("&#38;", "&");
        let mut target = base.join(&value).unwrap();
        target.set_fragment(None);
        if target.scheme() == "http" {
            links.push((rel.contains("nofollow"), target));
        }
    }
    links
}

fn sitemap(web: &TestWeb, host: u32) -> Vec<Url> {
    let xml = get(web.address(host), "/sitemap.xml").text();
    let locs = xml
        .split("<loc>")
        .skip(1)
        .map(|rest| rest.split("</loc>").next().unwrap());
    locs.map(|loc| Url::parse(&loc.replace("&amp;", "&")).unwrap())
        .collect()
}

#[test]
fn the_ground_truth_equals_a_crawl() {
    for (seed, reach) in [
        (1, HostsInScope::Host),
        (2, HostsInScope::Any),
        (3, HostsInScope::Any),
    ] {
        let mix = LinkMix {
            shunned: 50,
            ..LinkMix::default()
        };
        let web = TestWeb::builder()
            .seed(seed)
            .hosts(4)
            .pages(60)
            .mix(mix)
            .start();
        let truth = web.truth(reach);
        let (fetched, barred) = crawl(&web, reach, false);
        let expected: BTreeMap<String, u16> = truth
            .fetched
            .iter()
            .map(|(url, page)| (url.clone(), page.status))
            .collect();
        assert_eq!(fetched, expected, "seed {seed}");
        assert_eq!(
            barred,
            truth.barred.keys().cloned().collect(),
            "seed {seed}"
        );
    }
}

#[test]
fn the_truth_includes_pages_listed_only_in_the_sitemap() {
    let web = TestWeb::builder().seed(4).pages(100).start();
    let truth = web.truth(HostsInScope::Host);
    assert!(!truth.by_sitemap.is_empty());
    let fetched: BTreeSet<String> = crawl(&web, HostsInScope::Host, true)
        .0
        .into_keys()
        .collect();
    assert_eq!(fetched, truth.fetched_with_sitemaps());
}

#[test]
fn the_smallest_web_has_one_of_every_kind() {
    let mix = LinkMix {
        shunned: 1,
        ..LinkMix::default()
    };
    let truth = TestWeb::builder()
        .hosts(2)
        .pages(1)
        .mix(mix)
        .start()
        .truth(HostsInScope::Host);
    let statuses: BTreeSet<u16> = truth.fetched.values().map(|page| page.status).collect();
    assert!(
        statuses.contains(&200) && statuses.contains(&404),
        "{statuses:?}"
    );
    assert!(
        statuses.iter().any(|status| status / 100 == 3),
        "{statuses:?}"
    );
    let barred: BTreeSet<ExclusionReason> = truth.barred.values().copied().collect();
    assert_eq!(barred.len(), 4, "{barred:?}");
}

#[test]
fn plain_webs_are_pages_and_nothing_else() {
    let web = TestWeb::builder()
        .hosts(3)
        .pages(500)
        .mix(LinkMix::plain())
        .start();
    let truth = web.truth(HostsInScope::Any);
    assert_eq!(truth.fetched.len(), 1500);
    assert!(truth.barred.is_empty() && truth.by_sitemap.is_empty());
    assert!(truth.fetched.values().all(|page| page.status == 200));
}

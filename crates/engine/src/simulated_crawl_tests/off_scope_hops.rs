//! Tests of pages outside the scope: how many hops a crawl follows, and how its rows show the hops.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use crawl_archive::rows::PageRow;
use crawl_frontier::MemoryFrontier;
use crawl_scope::ScopeMode;

use super::{SimulatedWeb, SimulationResult, config, play};
use crate::revisit::visit::Round;
use crate::summary::EndReason;

const HOME: &str = "http://h0.example/";
const SEED: u64 = 11;

/// Returns the pages that a page links to, except those that robots.txt excludes.
fn links(url: &str) -> Vec<String> {
    let web = SimulatedWeb {
        seed: SEED,
        has_calendar: false,
        asked: BTreeMap::new(),
        padding: 0,
    };
    let (host, page) = url.split_once(".example/p").unwrap();
    let number = host.strip_prefix("http://h").unwrap().parse().unwrap();
    let html = web.page(number, page.parse().unwrap());
    let hrefs = html.split("href=").skip(1);
    let hrefs = hrefs.filter_map(|rest| rest.split('>').next());
    let urls = hrefs.map(|href| match href.strip_prefix('/') {
        Some(page) => format!("{host}.example/{page}"),
        None => href.to_owned(),
    });
    urls.filter(|url| !url.ends_with("/p0")).collect()
}

/// Runs a crawl. Returns the fetched pages, each with its hops off scope and the page that linked
/// to it.
fn crawl(hops_off: u8) -> (BTreeMap<String, (u8, Option<String>)>, SimulationResult) {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.scope.mode = ScopeMode::Host;
    config.scope.hops_off = hops_off;
    let frontier = Arc::new(MemoryFrontier::new());
    let played = play(config, frontier, SEED, Round::first(0), &mut |_, _| {
        Vec::new()
    });
    assert_eq!(played.ended, EndReason::Finished);
    let rows = fs::read_to_string(dir.path().join("pages.jsonl")).unwrap();
    let rows = rows.lines().map(|line| {
        let row: PageRow = serde_json::from_str(line).unwrap();
        (row.url, (row.hops_off_scope, row.via))
    });
    (rows.collect(), played)
}

/// Returns all pages within the scope, each with 0 hops.
fn within() -> BTreeMap<String, u8> {
    let mut pages = BTreeMap::from([(format!("{HOME}p1"), 0)]);
    let mut open: Vec<String> = pages.keys().cloned().collect();
    while let Some(url) = open.pop() {
        let inner = links(&url);
        for url in inner.into_iter().filter(|url| url.starts_with(HOME)) {
            if pages.insert(url.clone(), 0).is_none() {
                open.push(url);
            }
        }
    }
    pages
}

#[test]
fn one_hop_off_scope_covers_exactly_the_links_of_pages_in_scope() {
    let mut expected = within();
    let (none, _) = crawl(0);
    let hops = |rows: &BTreeMap<String, (u8, Option<String>)>| -> BTreeMap<String, u8> {
        let rows = rows.iter();
        rows.map(|(url, (hops, _))| (url.clone(), *hops)).collect()
    };
    assert_eq!(hops(&none), expected);
    for url in within().keys().flat_map(|url| links(url)) {
        expected.entry(url).or_insert(1);
    }
    let (one, played) = crawl(1);
    assert!(expected.len() > within().len());
    assert_eq!(hops(&one), expected);
    let mut requests = played.requests.iter();
    assert!(requests.all(|row| row.purpose != "sitemap" || row.host == "h0.example"));
}

#[test]
fn each_hop_off_scope_begins_where_the_previous_one_ends() {
    let (rows, _) = crawl(2);
    let (one, _) = crawl(1);
    assert!(rows.len() > one.len());
    for (url, (hops, via)) in &rows {
        assert_eq!(*hops == 0, url.starts_with(HOME), "{url}");
        let Some(via) = via else { continue };
        assert!(links(via).contains(url), "{via} {url}");
        let (before, _) = rows[via];
        match hops {
            0 => assert!(before < 2, "{via} {url}"),
            hops => assert_eq!(before + 1, *hops, "{via} {url}"),
        }
    }
    for (url, (hops, _)) in &one {
        let hops_here = rows.get(url).map(|(hops, _)| *hops);
        assert!(hops_here >= Some(*hops), "{url}");
    }
}

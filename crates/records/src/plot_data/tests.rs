//! Figures of generated crawls.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::plotted_link_graph::MAX_NODES;
use super::{LinkDataSource, MAX_HOST_SECTIONS, PlotData, ResponseClass, figures};
use crate::report::report_with_gaps;

fn lines(dir: &Path, name: &str, rows: &[serde_json::Value]) {
    let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::write(dir.join(name), rows).unwrap();
}

fn request(url: &str, host: &str, end: u64, status: Option<u16>) -> serde_json::Value {
    json!({"url": url, "host": host, "address": null, "purpose": "page", "start": end - 50,
        "end": end, "status": status, "failure": status.is_none().then_some("timeout"),
        "gap_asked": 1000, "why": "delay", "wait_asked": null})
}

fn page(url: &str, via: Option<&str>, bytes: u64) -> serde_json::Value {
    json!({"url": url, "status": 200, "fetched_at": "1970-01-01T00:16:40.000Z", "ms": 50,
        "bytes": bytes, "content_type": null, "digest": null, "depth": 1, "via": via,
        "title": null, "robots": {"verdict": "allowed", "line": 1, "rule": "Allow: /"},
        "usage": {"search": null, "ai-input": null, "train-ai": "refused", "archive": "allowed",
            "said": [{"vocabulary": "content-usage", "channel": "robots", "line": 2, "raw": "train-ai=n"}]},
        "warc": null, "withheld": null, "error": null})
}

fn link(from: &str, to: &str) -> serde_json::Value {
    json!({"from": from, "to": to, "rel": null, "text": null})
}

fn read(dir: &Path) -> PlotData {
    let (report, gaps) = report_with_gaps(dir).unwrap();
    let figures = figures(dir, &report).unwrap();
    // Each row is counted once in each plot.
    let sum_of = |counts: &[u64]| counts.iter().sum::<u64>();
    let requests = report.requests.total;
    assert_eq!(figures.response_times.total(), requests);
    assert_eq!(figures.sizes.total(), report.pages.total);
    if let Some(time) = &figures.time {
        assert_eq!(
            time.answers.iter().map(|bin| sum_of(bin)).sum::<u64>(),
            requests
        );
        assert_eq!(sum_of(&time.pages), report.pages.total);
    }
    let (asked, _) = report.hosts_asked();
    assert_eq!(figures.hosts.len(), asked.len().min(MAX_HOST_SECTIONS));
    for (host, of) in asked.iter().zip(&figures.hosts) {
        assert_eq!(
            [sum_of(&of.requests), sum_of(&of.answers)],
            [host.requests; 2]
        );
    }
    let of_hosts: u64 = report.hosts.iter().map(|host| host.gaps.count).sum();
    assert_eq!([gaps.asked.total(), gaps.seen.total()], [of_hosts; 2]);
    let links: u64 = figures.links.links.values().sum();
    assert_eq!(links + figures.links.elsewhere, figures.links.read);
    figures
}

#[test]
fn each_row_is_counted_once_in_each_figure() {
    let dir = tempfile::tempdir().unwrap();
    let toml = "[operator]\nagent = \"crawl\"\n[exclusion]\npurpose = \"train-ai\"\n";
    fs::write(dir.path().join("crawl.toml"), toml).unwrap();
    lines(
        dir.path(),
        "requests.jsonl",
        &[
            request("http://a.example/", "a.example", 1_000_050, Some(200)),
            request("http://b.example/", "b.example", 1_000_060, None),
            request("http://a.example/x", "a.example", 1_002_000, Some(304)),
            request("http://a.example/y", "a.example", 1_080_000, Some(404)),
            request("http://b.example/y", "b.example", 1_090_000, Some(503)),
        ],
    );
    lines(
        dir.path(),
        "pages.jsonl",
        &[
            page("http://a.example/", None, 0),
            page("http://a.example/x", Some("http://a.example/"), 999),
            page("http://b.example/y", Some("http://a.example/"), 1000),
        ],
    );
    let excluded = json!({"url": "http://a.example/p", "reason": "robots", "rule": "Disallow: /p",
        "line": 2, "found_on": null});
    let mut other = excluded.clone();
    other["url"] = json!("http://a.example/p2");
    lines(dir.path(), "excluded.jsonl", &[excluded, other]);
    let figures = read(dir.path());
    let [a, b] = &figures.hosts[..] else {
        panic!("two hosts");
    };
    assert_eq!((a.first_start_ms, a.last_end_ms), (1_000_000, 1_080_000));
    // 1,000 s is 40 s after the start of a minute, so the requests are in different minutes.
    assert_eq!((a.most_in_a_minute, b.most_in_a_minute), (2, 1));
    assert_eq!(a.answers[ResponseClass::Redirect as usize], 1);
    assert_eq!(b.answers[ResponseClass::None as usize], 1);
    assert_eq!(a.rules[&("robots: Disallow: /p".to_owned(), Some(2))], 2);
    let permissions = &figures.permissions;
    assert_eq!(
        (permissions.purpose_refused, permissions.purpose_allowed),
        (3, 0)
    );
    assert_eq!((permissions.allowed_by_rule, permissions.no_rule), (3, 0));
    // Without `links.jsonl`, the sketch shows the links through which pages were discovered.
    assert_eq!(figures.links.source, LinkDataSource::Via);
    assert_eq!(figures.links.links, [((0, 0), 1), ((0, 1), 1)].into());
}

#[test]
fn links_of_one_host_are_drawn_between_its_folders() {
    let dir = tempfile::tempdir().unwrap();
    let urls = ["/", "/a/1", "/a/2", "/b/1"].map(|path| format!("http://a.example{path}"));
    let requests = urls
        .each_ref()
        .map(|url| request(url, "a.example", 1_000_000, Some(200)));
    lines(dir.path(), "requests.jsonl", &requests);
    lines(
        dir.path(),
        "pages.jsonl",
        &urls.each_ref().map(|url| page(url, None, 1)),
    );
    let out = link(&urls[0], "http://out.example/a/");
    lines(
        dir.path(),
        "links.jsonl",
        &[
            link(&urls[0], &urls[1]),
            link(&urls[1], &urls[3]),
            out,
            json!({}),
        ],
    );
    let links = read(dir.path()).links;
    let nodes: Vec<_> = links
        .nodes
        .iter()
        .map(|(name, pages)| (name.as_str(), *pages))
        .collect();
    assert_eq!(nodes, [("/a/", 2), ("/", 1), ("/b/", 1)]);
    assert_eq!(
        (links.source, links.of_hosts),
        (LinkDataSource::Links, false)
    );
    assert_eq!(links.links, [((1, 0), 1), ((0, 2), 1)].into());
    assert_eq!((links.elsewhere, links.is_cut), (1, false));
}

#[test]
fn figures_do_not_grow_with_the_hosts() {
    let dir = tempfile::tempdir().unwrap();
    let hosts: Vec<_> = (0..300).map(|host| format!("h{host:03}.example")).collect();
    let requests: Vec<_> = hosts
        .iter()
        .enumerate()
        .map(|(at, host)| {
            request(
                &format!("http://{host}/"),
                host,
                1_000_000 + at as u64 * 86_400_000,
                Some(200),
            )
        })
        .collect();
    lines(dir.path(), "requests.jsonl", &requests);
    lines(dir.path(), "pages.jsonl", &[]);
    let links: Vec<_> = hosts
        .iter()
        .map(|host| link("http://h000.example/", &format!("http://{host}/")))
        .collect();
    lines(dir.path(), "links.jsonl", &links);
    let figures = read(dir.path());
    assert_eq!(figures.hosts.len(), MAX_HOST_SECTIONS);
    assert_eq!(figures.links.nodes.len(), MAX_NODES);
    assert_eq!(figures.links.elsewhere, 300 - MAX_NODES as u64);
    assert!(figures.time.unwrap().answers.len() <= 60);
}

#[test]
fn a_crawl_without_rows_has_figures() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("crawl.toml"), "").unwrap();
    let figures = read(dir.path());
    assert!(figures.time.is_none() && figures.hosts.is_empty());
}

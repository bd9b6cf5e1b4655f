use std::fs;
use std::path::Path;

use expect_test::expect;
use serde_json::{Value, json};

use super::{ComparedCrawlTotals, CrawlComparison, compare, compare_round};
use crate::error::RecordsError;

const TOML: &str = "[politeness]\nper-host = 1\n";

fn page(url: &str, status: Option<u16>, digest: &str, round: u32) -> Value {
    let error = status.is_none().then_some("timeout: after 60 s");
    json!({"url": url, "status": status, "fetched_at": "2026-11-20T23:59:59.123Z", "ms": 1,
        "bytes": 10, "content_type": null, "digest": digest, "depth": 0, "via": null,
        "title": null, "robots": null, "warc": null, "withheld": null, "round": round,
        "error": error})
}

fn request(url: &str, host: &str, start: u64) -> Value {
    json!({"url": url, "host": host, "address": null, "purpose": "page", "start": start,
        "end": start + 40, "status": 200, "failure": null, "gap_asked": 1000, "why": "delay",
        "wait_asked": (start == 3000).then_some(5000)})
}

fn excluded(url: &str, reason: &str, rule: &str) -> Value {
    json!({"url": url, "reason": reason, "rule": rule, "line": null, "found_on": null})
}

fn crawl(pages: &[Value], requests: &[Value], excluded: &[Value]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("crawl.toml"), TOML).unwrap();
    let ended = [json!({"origin": null, "urls": 0, "reason": "finished", "detail": null})];
    for (name, rows) in [
        ("pages.jsonl", pages),
        ("requests.jsonl", requests),
        ("excluded.jsonl", excluded),
        ("waiting.jsonl", &ended),
    ] {
        let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
        fs::write(dir.path().join(name), rows).unwrap();
    }
    dir
}

fn text(comparison: &CrawlComparison, a: &Path, b: &Path) -> String {
    let text = comparison.to_string();
    let text = text.replace(&a.display().to_string(), "one");
    text.replace(&b.display().to_string(), "other")
}

#[test]
fn all_differences_of_two_crawls_are_reported() {
    let a = crawl(
        &[
            page("http://a.example/", Some(200), "sha1:1", 1),
            page("http://a.example/x", Some(200), "sha1:2", 1),
            page("http://a.example/y", None, "sha1:0", 1),
            page("http://a.example/z", Some(200), "sha1:3", 1),
            page("http://b.example/", Some(200), "sha1:4", 1),
            // Only the last row of a URL counts.
            page("http://a.example/x", Some(404), "sha1:9", 2),
        ],
        &[
            request("http://a.example/", "a.example", 1000),
            request("http://b.example/", "b.example", 1000),
            request("http://a.example/x", "a.example", 3000),
        ],
        &[
            excluded("http://a.example/p", "robots", "Disallow: /p"),
            excluded("http://c.example/", "scope", "host"),
        ],
    );
    let b = crawl(
        &[
            page("http://a.example/", Some(200), "sha1:1", 1),
            page("http://a.example/x", Some(200), "sha1:2", 1),
            page("http://a.example/y", Some(503), "sha1:0", 1),
            page("http://a.example/new", Some(200), "sha1:5", 1),
            page("http://b.example/", Some(200), "sha1:6", 1),
            page("http://b.example/more", Some(200), "sha1:7", 1),
        ],
        &[
            request("http://b.example/", "b.example", 1000),
            request("http://a.example/x", "a.example", 1000),
            request("http://a.example/", "a.example", 2500),
        ],
        &[
            excluded("http://a.example/p", "robots", "Disallow: /p"),
            excluded("http://a.example/q", "robots", "Disallow: /q"),
            // A URL that a budget left pending isn't excluded.
            excluded("http://a.example/r", "budget", "max-pages"),
        ],
    );
    let comparison = compare(a.path(), b.path()).unwrap();
    assert!(!comparison.has_same_pages());
    expect![[r#"
        A         one
        B         other
        pages     A 5                          B 6
        received  A 60 B                       B 60 B
        requests  A 3                          B 3
        took      A 2.040 s                    B 1.540 s
        answers   A 0.120 s                    B 0.120 s
        gaps      A 1, at most 1.000 s         B 1, at most 1.000 s
        waits     A 1, 5.000 s in total        B none
        excluded  A 2                          B 2
        waiting   A 0                          B 0
        coverage  A 1 complete, 1 partial      B 1 complete, 1 partial
        order     the same for 1 host, different for 1; different overall
        in both   4
        only A    1
          http://a.example/z
        only B    2
          http://a.example/new
          http://b.example/more
        status    2
          http://a.example/y: timeout in A, 503 in B
          http://a.example/x: 404 in A, 200 in B
        digest    1
          http://b.example/: sha1:4 in A, sha1:6 in B
        rules     2
          robots: Disallow: /q: 0 in A, 1 in B
          scope: host: 1 in A, 0 in B
        hosts     1
          b.example: A complete, 1 page, 10 B, 1 request; B complete, 2 pages, 20 B, 1 request
    "#]]
    .assert_eq(&text(&comparison, a.path(), b.path()));
}

#[test]
fn a_crawl_differs_from_itself_in_nothing() {
    let pages = [page("http://a.example/", Some(200), "sha1:1", 1)];
    let requests = [request("http://a.example/", "a.example", 1000)];
    let rules = [excluded("http://a.example/p", "robots", "Disallow: /p")];
    let dir = crawl(&pages, &requests, &rules);
    let comparison = compare(dir.path(), dir.path()).unwrap();
    assert!(comparison.has_same_pages() && comparison.order.is_same);
    assert_eq!((comparison.pages.both, comparison.order.hosts_same), (1, 1));
    assert!(comparison.excluded.is_empty() && comparison.hosts.is_empty());
    let nothing = tempfile::tempdir().unwrap();
    assert!(matches!(
        compare(dir.path(), nothing.path()),
        Err(RecordsError::NoCrawl { .. })
    ));
}

#[test]
fn beyond_a_thousand_the_rules_of_a_reason_are_counted_together() {
    let rules: Vec<_> = (0..1_003)
        .map(|n| {
            let (url, rule) = (format!("http://a.example/{n}"), format!("Disallow: /{n}"));
            excluded(&url, "robots", &rule)
        })
        .collect();
    let (many, none) = (crawl(&[], &[], &rules), crawl(&[], &[], &[]));
    let comparison = compare(many.path(), none.path()).unwrap();
    assert_eq!(comparison.excluded.len(), 1_001);
    let first = &comparison.excluded[0];
    assert_eq!((first.rule.as_deref(), first.a, first.b), (None, 3, 0));
    let text = comparison.to_string();
    assert!(text.contains("and 981 more (--json lists all)"), "{text}");
}

#[test]
fn a_replay_is_compared_with_the_first_round_of_its_crawl() {
    let of_both = [
        page("http://a.example/", Some(200), "sha1:1", 1),
        page("http://a.example/x", Some(200), "sha1:2", 1),
    ];
    let later = [
        page("http://a.example/", Some(404), "sha1:9", 2),
        page("http://a.example/new", Some(200), "sha1:5", 2),
    ];
    let a = crawl(&[&of_both[..], &later].concat(), &[], &[]);
    let b = crawl(&of_both, &[], &[]);
    let comparison = compare(a.path(), b.path()).unwrap();
    assert!(!comparison.has_same_pages());
    assert!(!comparison.to_string().contains("round "), "{comparison}");
    let toml = format!("{TOML}[crawl]\nreplay-of = \"/a\"\n");
    fs::write(b.path().join("crawl.toml"), toml).unwrap();
    for (a, b, rounds) in [(&a, &b, "2 in A and 1 in B"), (&b, &a, "1 in A and 2 in B")] {
        let comparison = compare(a.path(), b.path()).unwrap();
        assert!(comparison.has_same_pages(), "{comparison}");
        let line = format!("round     1 of {rounds}; gaps");
        assert!(comparison.to_string().contains(&line), "{comparison}");
    }
}

#[test]
fn one_round_of_two_crawls_is_compared_with_its_requests() {
    let at = |mut page: Value, second: u32| {
        page["fetched_at"] = json!(format!("1970-01-01T00:00:{second:02}.000Z"));
        page
    };
    let rounds = |second: &str| {
        let pages = [
            at(page("http://a.example/", Some(200), "sha1:1", 1), 1),
            at(page("http://a.example/", Some(200), second, 2), 9),
        ];
        let requests = [
            request("http://a.example/robots.txt", "a.example", 500),
            request("http://a.example/", "a.example", 1000),
            request("http://a.example/robots.txt", "a.example", 8500),
            request("http://a.example/", "a.example", 9000),
        ];
        crawl(
            &pages,
            &requests[..if second == "sha1:3" { 4 } else { 3 }],
            &[],
        )
    };
    let (a, b) = (rounds("sha1:2"), rounds("sha1:3"));
    let of_round = |round| compare_round(a.path(), b.path(), Some(round));
    let first = of_round(1).unwrap();
    assert!(first.has_same_pages() && first.order.is_same, "{first}");
    let sums =
        |crawl: &ComparedCrawlTotals| (crawl.pages, crawl.bytes, crawl.requests, crawl.took_ms);
    assert_eq!(
        (sums(&first.a), sums(&first.b)),
        ((1, 10, 2, 540), (1, 10, 2, 540))
    );
    let second = of_round(2).unwrap();
    assert_eq!(
        (second.pages.digest.len(), second.order.is_same),
        (1, false)
    );
    assert_eq!(
        (sums(&second.a), sums(&second.b)),
        ((1, 10, 1, 40), (1, 10, 2, 540))
    );
    let none = of_round(3).unwrap_err();
    assert!(matches!(none, RecordsError::NoRound { rounds: 2, .. }));
}

#[test]
fn unfinished_runs_and_malformed_lines_are_reported() {
    let pages = [page("http://a.example/", Some(200), "sha1:1", 1)];
    let requests = [request("http://a.example/", "a.example", 1000)];
    let rules = [excluded("http://a.example/p", "robots", "Disallow: /p")];
    let (a, b) = (
        crawl(&pages, &requests, &rules),
        crawl(&pages, &requests, &rules),
    );
    fs::remove_file(a.path().join("waiting.jsonl")).unwrap();
    for file in ["pages.jsonl", "requests.jsonl", "excluded.jsonl"] {
        let path = a.path().join(file);
        let rows = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{{}}\n{rows}")).unwrap();
    }
    let comparison = compare(a.path(), b.path()).unwrap();
    assert!(comparison.has_same_pages() && comparison.order.is_same);
    assert_eq!((comparison.a.flaws.len(), comparison.b.flaws.len()), (3, 0));
    let text = comparison.to_string();
    assert!(
        text.contains("\nnote      the last run of A has not ended\n"),
        "{text}"
    );
    assert!(!text.contains("run of B"), "{text}");
    assert!(text.contains("\nflaw of A "), "{text}");
}

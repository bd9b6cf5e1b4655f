//! Reports of generated crawls.

#![expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is used"
)]

use std::fs;
use std::path::Path;

use expect_test::{Expect, expect};
use serde_json::json;

use super::{CrawlReport, report};
use crate::error::RecordsError;
use crate::host_reports::HostReport;
use crate::report_files::{report_page, write_report};

fn lines(dir: &Path, name: &str, rows: &[serde_json::Value], tail: &str) {
    let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::write(dir.join(name), rows + tail).unwrap();
}

fn page(url: &str, status: Option<u16>, bytes: u64, kind: Option<&str>) -> serde_json::Value {
    json!({"url": url, "status": status, "fetched_at": "2026-11-20T23:59:59.123Z", "ms": 12,
        "bytes": bytes, "content_type": kind, "digest": null, "depth": 1, "via": null,
        "title": null, "robots": null, "warc": null, "error": null})
}

fn request(url: &str, purpose: &str, start: u64, status: Option<u16>) -> serde_json::Value {
    json!({"url": url, "host": "e.example", "address": "192.0.2.1", "purpose": purpose,
        "start": start, "end": start + 50, "status": status,
        "failure": status.is_none().then_some("timeout"), "gap_asked": 1000, "why": "delay",
        "wait_asked": (status == Some(503)).then_some(60_000)})
}

fn crawl() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let toml = "seed = [\"http://e.example/\"]\n[politeness]\nper-host = 1\n[crawl]\nversion = \"0.1.0\"\nstarted = \"2026-11-20T23:59:00Z\"\n";
    fs::write(dir.path().join("crawl.toml"), toml).unwrap();
    let mut moved = page("http://e.example/r", Some(301), 0, None);
    moved["redirect"] = "http://other.example/x".into();
    let pages = [
        page(
            "http://e.example/",
            Some(200),
            100,
            Some("Text/HTML; charset=utf-8"),
        ),
        page("http://e.example/<b>", Some(404), 10, Some("text/html")),
        page("http://other.example/x", None, 0, None),
        moved,
    ];
    lines(dir.path(), "pages.jsonl", &pages, "");
    let excluded = [
        json!({"url": "http://e.example/p", "reason": "robots", "rule": "Disallow: /p", "line": 2, "found_on": null}),
        json!({"no": "row"}),
    ];
    lines(dir.path(), "excluded.jsonl", &excluded, "");
    let requests = [
        request(
            "http://e.example/robots.txt",
            "robots",
            1_000_000,
            Some(200),
        ),
        request("http://e.example/", "page", 1_001_050, Some(503)),
        request("http://e.example/", "page", 1_030_000, Some(200)),
        request("http://e.example/x", "page", 1_032_000, None),
    ];
    lines(dir.path(), "requests.jsonl", &requests, "{\"url\":");
    let ended = json!({"origin": null, "urls": 0, "reason": "finished", "detail": null});
    lines(dir.path(), "waiting.jsonl", &[ended], "");
    dir
}

fn check(found: &str, dir: &Path, expect: Expect) {
    expect.assert_eq(&found.replace(&dir.display().to_string(), "DIR"));
}

#[test]
fn an_interstitial_has_its_own_outcome() {
    let dir = crawl();
    let mut pages = Vec::new();
    for (status, error) in [
        (200, "login_page"),
        (403, "challenge"),
        (200, "block_page"),
        (200, "short_body"),
    ] {
        let mut row = page("http://e.example/", Some(status), 1, None);
        row["error"] = json!(error);
        pages.push(row);
    }
    lines(dir.path(), "pages.jsonl", &pages, "");
    let pages = report(dir.path()).unwrap().pages;
    let outcomes: Vec<_> = pages.by_outcome.iter().collect();
    let expect = ["block_page", "challenge", "login_page", "unread"].map(str::to_owned);
    assert!(outcomes.iter().map(|(name, _)| *name).eq(&expect));
    assert_eq!(pages.failed, 3, "a login page is what the server has");
}

#[test]
fn a_failed_sitemap_has_failed_unless_it_was_a_wrong_guess() {
    let dir = crawl();
    let sitemap = |path: &str, status| page(&format!("http://e.example{path}"), status, 1, None);
    let mut guess = sitemap("/sitemap.xml", Some(404));
    guess["error"] = json!("no_sitemap");
    let pages = [
        guess,
        sitemap("/seed.xml", Some(404)),
        sitemap("/named.xml", Some(500)),
        sitemap("/good.xml", Some(200)),
    ];
    let requests = pages.each_ref().map(|row| {
        let url = row["url"].as_str().unwrap();
        request(url, "sitemap", 1_000_000, Some(200))
    });
    lines(dir.path(), "pages.jsonl", &pages, "");
    lines(dir.path(), "requests.jsonl", &requests, "");
    let report = report(dir.path()).unwrap();
    let host = &report.hosts[0];
    assert_eq!((report.pages.failed, host.failed), (2, 2));
    assert_eq!(report.broken.pages, 2);
}

#[test]
fn pages_that_could_not_be_rendered_are_counted_by_reason() {
    let dir = crawl();
    let render = |path: &str, error: Option<&str>| {
        let mut row = page(&format!("http://e.example/{path}"), Some(200), 1, None);
        row["render"] = json!({"requests": 0, "refused": 0, "bytes": 0, "error": error});
        row
    };
    let pages = [
        render("1", Some("browser_missing")),
        render("2", Some("render_timeout")),
        render("3", Some("browser_missing")),
        render("4", None),
        page("http://e.example/5", Some(200), 1, None),
    ];
    lines(dir.path(), "pages.jsonl", &pages, "");
    let (report, html) = report_page(dir.path()).unwrap();
    let text = report.to_string();
    let line = "could not be rendered: browser missing: 2, render timeout: 1\n";
    assert!(text.contains(line), "{text}");
    assert!(html.contains("Pages that could not be rendered"));
}

/// Creates a crawl of two rounds: one page is unchanged, one vanished, and one came back.
fn crawl_of_two_rounds() -> tempfile::TempDir {
    let dir = crawl();
    let mut rows = Vec::new();
    for (round, url, status, bytes) in [
        (1, "http://e.example/", 200, 100),
        (1, "http://e.example/gone", 200, 50),
        (1, "http://e.example/back", 500, 7),
        (2, "http://e.example/", 200, 120),
        (2, "http://e.example/gone", 404, 9),
        (2, "http://e.example/back", 200, 60),
    ] {
        let mut row = page(url, Some(status), bytes, Some("text/html"));
        row["round"] = json!(round);
        row["label"] = json!("a");
        rows.push(row);
    }
    lines(dir.path(), "pages.jsonl", &rows, "");
    dir
}

#[test]
fn exclusions_of_earlier_rounds_do_not_count() {
    let dir = crawl_of_two_rounds();
    let row = |url: &str, reason: &str, round: u32| {
        json!({"url": format!("http://e.example/{url}"), "reason": reason, "rule": null,
            "line": null, "found_on": null, "round": round, "at": null})
    };
    let rows = [
        row("back", "robots", 1),
        row("private", "robots", 1),
        row("private", "usage", 2),
        row("gone", "robots", 2),
    ];
    lines(dir.path(), "excluded.jsonl", &rows, "");
    let report = report(dir.path()).unwrap();
    let by_reason = [("robots".to_owned(), 1), ("usage".to_owned(), 1)].into();
    assert_eq!(
        (report.excluded.total, report.excluded.by_reason),
        (2, by_reason)
    );
    let host = &report.hosts[0];
    assert_eq!((&*host.host, host.excluded), ("e.example", 2));
}

#[test]
fn each_url_counts_once_by_its_last_visit() {
    let dir = crawl_of_two_rounds();
    let report = report(dir.path()).unwrap();
    let pages = &report.pages;
    assert_eq!((pages.total, pages.failed, pages.bytes), (3, 1, 189));
    assert_eq!(pages.by_status, [(200, 2), (404, 1)].into());
    let label = pages.by_label["a"];
    assert_eq!((label.total, label.failed, label.bytes), (3, 1, 189));
    assert_eq!((pages.rounds[&1].rows, pages.rounds[&2].rows), (3, 3));
    let all = pages.all_rounds.unwrap();
    assert_eq!((all.visits, all.failed, all.bytes), (6, 2, 346));
    let host = &report.hosts[0];
    assert_eq!((host.pages, host.failed, host.bytes), (3, 1, 189));
    assert_eq!(report.broken.pages, 1);
    let text = report.to_string();
    assert!(text.contains("pages     3 (189 B)\n"), "{text}");
    assert!(text.contains("  client error (4xx): 1\n"), "{text}");
    assert!(
        text.contains("statuses  not found (404): 1, ok (200): 2\n"),
        "{text}"
    );
    assert!(
        text.contains("all rounds: 6 visits (346 B), 2 failed\n"),
        "{text}"
    );
    let (_, html) = report_page(dir.path()).unwrap();
    assert!(html.contains("3 URLs visited, 189 B; 1 failed; "), "{html}");
    assert!(
        html.contains("All rounds: 6 visits (346 B), 2 failed."),
        "{html}"
    );
}

#[test]
fn crawl_in_words() {
    let dir = crawl();
    let text = report(dir.path()).unwrap().to_string();
    check(
        &text,
        dir.path(),
        expect![[r#"
            seed      http://e.example/
            started   2026-11-20T23:59:00Z
            pages     4 (110 B)
              client error (4xx): 1
              fetched (2xx): 1
              no answer: 1
              redirect (3xx): 1
            statuses  moved permanently (301): 1, not found (404): 1, ok (200): 1
            failed    2
            broken    2
            round 1   0 new, 0 changed, 0 same, 0 gone, 2 broken
            excluded  1
              robots: 1
            requests  4
              page: 3
              robots: 1
              timeout: 1
            gaps      all respected
            waits     1 cut short
            coverage  1 complete, 1 empty
            hosts     2
              e.example: 3 pages, 110 B, 4 requests, 1 excluded
                coverage: complete (excluded: robots: 1)
                gaps: shortest 1,000 ms (1,000 ms required), all respected
                waits: 1 requested, the longest 60,000 ms, 60,000 ms in total; 28,900 ms waited; 1 cut short
                http://e.example/robots.txt: rules (200)
              other.example: 1 page, 0 B, 0 requests, 0 excluded
                coverage: empty: errors 1 (no answer: 1)
                gaps: none, a single request
            flaw      the last line of `requests.jsonl` is torn
            flaw      `DIR/excluded.jsonl` line 2: missing field `url` at line 1 column 12
        "#]],
    );
}

#[test]
fn report_json_keeps_its_field_names() {
    let dir = crawl();
    let written = write_report(dir.path()).unwrap();
    let json = fs::read_to_string(dir.path().join("report.json")).unwrap();
    assert_eq!(serde_json::from_str::<CrawlReport>(&json).unwrap(), written);
    check(
        &json,
        dir.path(),
        expect![[r#"
            {
              "format": 1,
              "crawl": {
                "seeds": [
                  "http://e.example/"
                ],
                "version": "0.1.0",
                "started": "2026-11-20T23:59:00Z",
                "replay_of": null,
                "per_host": 1,
                "operator": {
                  "contact": null,
                  "name": null,
                  "institution": null,
                  "study": null,
                  "study_page": null
                }
              },
              "pages": {
                "total": 4,
                "failed": 2,
                "bytes": 110,
                "by_outcome": {
                  "client_error": 1,
                  "no_answer": 1,
                  "ok": 1,
                  "redirect": 1
                },
                "by_status": {
                  "200": 1,
                  "301": 1,
                  "404": 1
                },
                "by_type": {
                  "text/html": 2
                },
                "by_depth": {
                  "1": 4
                },
                "rounds": {
                  "1": {
                    "rows": 4,
                    "new": 0,
                    "changed": 0,
                    "same": 0,
                    "gone": 0,
                    "broken": 2
                  }
                }
              },
              "broken": {
                "pages": 2,
                "first": [
                  {
                    "url": "http://e.example/<b>",
                    "status": 404,
                    "error": null,
                    "via": null
                  },
                  {
                    "url": "http://other.example/x",
                    "status": null,
                    "error": null,
                    "via": null
                  }
                ]
              },
              "excluded": {
                "total": 1,
                "by_reason": {
                  "robots": 1
                }
              },
              "pending": {
                "total": 0,
                "by_reason": {}
              },
              "requests": {
                "total": 4,
                "by_purpose": {
                  "page": 3,
                  "robots": 1
                },
                "by_failure": {
                  "timeout": 1
                },
                "first_start_ms": 1000000,
                "last_end_ms": 1032050,
                "short_gaps": 0,
                "short_waits": 1
              },
              "coverage": {
                "whole": 1,
                "empty": 1
              },
              "hosts": [
                {
                  "host": "e.example",
                  "pages": 3,
                  "failed": 1,
                  "bytes": 110,
                  "excluded": 1,
                  "excluded_by": {
                    "robots": 1
                  },
                  "waiting": 0,
                  "coverage": "whole",
                  "missing": [],
                  "requests": 4,
                  "robots_requests": 1,
                  "busy_ms": 200,
                  "gaps": {
                    "count": 3,
                    "least_seen_ms": 1000,
                    "asked_then_ms": 1000,
                    "most_asked_ms": 1000,
                    "most_asked_by": "delay",
                    "by_site": {},
                    "short": 0
                  },
                  "waits": {
                    "count": 1,
                    "longest_asked_ms": 60000,
                    "asked_ms": 60000,
                    "given_ms": 28900,
                    "short": 1
                  },
                  "robots": {
                    "http://e.example": {
                      "state": "rules",
                      "status": 200,
                      "failure": null,
                      "at_ms": 1000050
                    }
                  },
                  "labels": []
                },
                {
                  "host": "other.example",
                  "pages": 1,
                  "failed": 1,
                  "bytes": 0,
                  "excluded": 0,
                  "excluded_by": {},
                  "waiting": 0,
                  "coverage": "empty",
                  "missing": [
                    {
                      "reason": "errors",
                      "urls": 1,
                      "evidence": {
                        "no answer": 1
                      }
                    }
                  ],
                  "requests": 0,
                  "robots_requests": 0,
                  "busy_ms": 0,
                  "gaps": {
                    "count": 0,
                    "least_seen_ms": null,
                    "asked_then_ms": null,
                    "most_asked_ms": null,
                    "most_asked_by": null,
                    "by_site": {},
                    "short": 0
                  },
                  "waits": {
                    "count": 0,
                    "longest_asked_ms": 0,
                    "asked_ms": 0,
                    "given_ms": 0,
                    "short": 0
                  },
                  "robots": {},
                  "labels": []
                }
              ],
              "flaws": [
                "the last line of `requests.jsonl` is torn",
                "`DIR/excluded.jsonl` line 2: missing field `url` at line 1 column 12"
              ]
            }
        "#]],
    );
}

#[test]
fn page_of_the_report_is_escaped() {
    let dir = crawl();
    let seed = "seed = [\"http://e.example/<script>alert(1)</script>\"]";
    fs::write(dir.path().join("crawl.toml"), seed).unwrap();
    let html = report_page(dir.path()).unwrap().1;
    assert_eq!(html.matches("<script").count(), 1, "the page's own script");
    assert!(html.contains("&lt;script&gt;"));
    assert!(!html.contains("http-equiv") && !html.contains("src="));
}

#[test]
fn page_of_the_report_has_links_and_omits_hosts_without_requests() {
    let dir = crawl();
    let excluded: Vec<_> = (0..1214)
        .map(|host| {
            json!({"url": format!("http://h{host}.example/"), "reason": "scope", "rule": null,
                "line": null, "found_on": null})
        })
        .collect();
    lines(dir.path(), "excluded.jsonl", &excluded, "");
    let (report, html) = report_page(dir.path()).unwrap();
    let link = "<a href=\"http://e.example/&lt;b&gt;\" rel=\"nofollow noopener noreferrer\">\
                http://e.example/<wbr>&lt;b&gt;</a>";
    assert!(html.contains(link), "{html}");
    assert!(html.contains("prefers-color-scheme: dark"));
    assert!(html.contains("; 1,214 excluded; 4 requests."), "{html}");
    assert!(html.contains("<p>And 1,214 hosts that were never contacted.</p>"));
    assert!(!html.contains("<td>h7.example"));
    let text = report.to_string();
    assert!(
        text.contains("\nhosts     2\n")
            && text.contains("\n  and 1,214 hosts that were never contacted\n")
    );
}

#[test]
fn no_server_text_changes_the_text_direction() {
    let dir = crawl();
    let mut row = page("http://e.example/", None, 0, Some("a/\u{202e}lmth"));
    row["error"] = json!("bad_head: x\u{2066}y\u{1b}[2J");
    lines(dir.path(), "pages.jsonl", &[row], "");
    let html = report_page(dir.path()).unwrap().1;
    assert!(html.contains("<td>a/lmth<") && html.contains("bad head: xy\u{fffd}[2J"));
}

#[test]
fn directory_without_a_crawl_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(
        report(dir.path()),
        Err(RecordsError::NoCrawl { .. })
    ));
}

#[test]
fn the_last_row_of_a_url_decides_its_coverage() {
    let dir = crawl();
    let first = page("http://e.example/", Some(500), 1, None);
    let mut second = page("http://e.example/", Some(200), 1, None);
    lines(dir.path(), "pages.jsonl", std::slice::from_ref(&first), "");
    lines(dir.path(), "excluded.jsonl", &[], "");
    assert!(!report(dir.path()).unwrap().is_whole());
    second["round"] = json!(2);
    lines(dir.path(), "pages.jsonl", &[first, second], "");
    assert!(report(dir.path()).unwrap().is_whole());
    // Without `waiting.jsonl`, it is unknown which URLs are pending.
    fs::remove_file(dir.path().join("waiting.jsonl")).unwrap();
    assert!(!report(dir.path()).unwrap().is_whole());
}

#[test]
fn an_excluded_url_counts_once_by_its_last_row() {
    let dir = crawl();
    let rows = [
        ("/p", "robots", 1),
        ("/c", "scope", 2),
        ("/p", "scope", 2),
        ("/c", "depth", 3),
        ("/p", "scope", 3),
    ];
    let rows = rows.map(|(path, reason, round)| {
        json!({"url": format!("http://e.example{path}"), "reason": reason, "rule": "rule",
            "line": null, "found_on": null, "round": round})
    });
    lines(dir.path(), "excluded.jsonl", &rows, "");
    let report = report(dir.path()).unwrap();
    let by_reason = [("depth".to_owned(), 1), ("scope".to_owned(), 1)].into();
    assert_eq!(
        (report.excluded.total, &report.excluded.by_reason),
        (2, &by_reason)
    );
    let host = &report.hosts[0];
    assert_eq!((host.excluded, &host.excluded_by), (2, &by_reason));
}

#[test]
fn hosts_jsonl_equals_report_json_for_hosts_with_a_verdict() {
    let dir = crawl();
    let elsewhere = json!({"url": "http://out.example/p", "reason": "scope", "rule": "host",
        "line": null, "found_on": null});
    lines(dir.path(), "excluded.jsonl", &[elsewhere], "");
    let report = write_report(dir.path()).unwrap();
    let text = fs::read_to_string(dir.path().join("hosts.jsonl")).unwrap();
    let rows: Vec<HostReport> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (judged, others): (Vec<_>, Vec<_>) = report
        .hosts
        .into_iter()
        .partition(|host| host.coverage.is_some());
    assert_eq!(rows, judged);
    assert_eq!(others.len(), 1, "out.example was never to be asked");
}

/// The documentation's table must have every column of `hosts.jsonl`, in the same order.
#[test]
fn every_column_of_hosts_jsonl_is_documented() {
    let docs = include_str!("../../../../docs/rows.md");
    let (_, section) = docs.split_once("\n## hosts.jsonl\n").unwrap();
    let table = section
        .split("\n\n")
        .find(|part| part.starts_with("| column |"));
    let documented = table.unwrap().lines().filter_map(|line| {
        let cells = line.strip_prefix("| `")?;
        cells.split('`').next().map(str::to_owned)
    });
    let row = serde_json::to_string(&HostReport::default()).unwrap();
    let places = documented.map(|column| (row.find(&format!("\"{column}\":")).unwrap(), column));
    let (places, columns): (Vec<_>, Vec<_>) = places.unzip();
    assert!(places.is_sorted(), "{columns:?}");
    let row: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&row).unwrap();
    assert_eq!(columns.len(), row.len(), "{columns:?}");
}

#[test]
fn the_text_names_the_first_seeds_and_the_number_of_the_others() {
    let mut report = CrawlReport::default();
    report.crawl.seeds = (0..25)
        .map(|seed| format!("http://s{seed}.example/"))
        .collect();
    let text = report.to_string();
    assert!(
        text.contains("seed      http://s19.example/\n  and 5 seeds more\n"),
        "{text}"
    );
    assert!(!text.contains("s20.example"), "{text}");
    report.crawl.seeds.truncate(20);
    let text = report.to_string();
    assert!(
        text.contains("http://s19.example/\n") && !text.contains("more"),
        "{text}"
    );
}

#[test]
fn addresses_used_by_several_workers_are_counted() {
    let dir = crawl();
    let of = |worker: Option<&str>, address: &str| {
        let mut row = request("http://e.example/", "page", 1000, Some(200));
        row["address"] = address.into();
        row["worker"] = worker.into();
        row
    };
    let one_alone = [of(None, "192.0.2.1")];
    lines(dir.path(), "requests.jsonl", &one_alone, "");
    let counted = || {
        report(dir.path())
            .unwrap()
            .requests
            .addresses_of_several_workers
    };
    assert_eq!(counted(), None);
    let (w1, w2) = (Some("w1"), Some("w2"));
    let gathered = [
        of(w1, "192.0.2.1"),
        of(w2, "192.0.2.2"),
        of(w2, "192.0.2.1"),
        of(w1, "192.0.2.1"),
        of(w2, "192.0.2.2"),
    ];
    lines(dir.path(), "requests.jsonl", &gathered, "");
    assert_eq!(counted(), Some(1));
    let text = report(dir.path()).unwrap().to_string();
    assert!(
        text.contains("\nworkers   1 address contacted by more than one\n"),
        "{text}"
    );
}

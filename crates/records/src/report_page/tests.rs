//! The page of a generated crawl: its contents, and what it must not contain.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::report::CrawlReport;
use crate::report_files::report_page;
use crate::self_contained_report_page::SORT_SCRIPT;

/// A text from a hostile server, used in place of a URL or a content type.
const HOSTILE: &str = "\"><script>alert(1)</script><svg onload=x>'&\u{202e}";

fn lines(dir: &Path, name: &str, rows: &[Value]) {
    let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::write(dir.join(name), rows).unwrap();
}

/// Creates a crawl with three hosts, all kinds of responses, and hostile text wherever a server
/// could place it.
fn crawl() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let toml = "seed = [\"http://h0.example/\"]\n[operator]\nagent = \"crawl\"\n\
                contact = \"you@example.org\"\nstudy = \"Press <releases>\"\n\
                [exclusion]\npurpose = \"archive\"\n[politeness]\ndelay = \"1s\"\n";
    fs::write(dir.path().join("crawl.toml"), toml).unwrap();
    let statuses = [Some(200), Some(301), Some(404), Some(503), None];
    let at = |number: usize| {
        let path = if number == 7 { HOSTILE } else { "p" };
        format!("http://h{}.example/{path}/{number}", number % 3)
    };
    let requests = (0..40).map(|number| {
        let status = statuses[number % 5];
        let start = 1_795_219_199_000 + number as u64 * 1_500;
        json!({"url": at(number), "host": format!("h{}.example", number % 3), "address": null,
            "purpose": if number < 3 { "robots" } else { "page" }, "start": start,
            "end": start + 70 + 200 * (number as u64 % 2), "status": status, "failure": status.is_none().then_some(HOSTILE),
            "gap_asked": 1000, "why": if number % 2 == 0 { "crawl-delay" } else { "delay" },
            "wait_asked": (status == Some(503)).then_some(2_000)})
    });
    lines(dir.path(), "requests.jsonl", &requests.collect::<Vec<_>>());
    let pages = (3..40).map(|number| {
        let kind = if number == 8 { HOSTILE } else { "text/html" };
        json!({"url": at(number), "status": statuses[number % 5],
            "fetched_at": format!("2026-11-21T00:00:{number:02}.123Z"), "ms": 12, "bytes": number * number * 100,
            "content_type": (number != 9).then_some(kind), "digest": null, "depth": number / 2,
            "via": (number > 3).then(|| at(number - 1)), "title": HOSTILE, "robots": null,
            "usage": {"said": [{"vocabulary": HOSTILE, "channel": "header", "line": null, "raw": HOSTILE}]},
            "warc": null, "withheld": null, "error": statuses[number % 5].is_none().then_some(HOSTILE)})
    });
    lines(dir.path(), "pages.jsonl", &pages.collect::<Vec<_>>());
    let excluded =
        json!({"url": at(3), "reason": "robots", "rule": HOSTILE, "line": 2, "found_on": HOSTILE});
    lines(dir.path(), "excluded.jsonl", &[excluded]);
    dir
}

fn page(dir: &Path) -> (CrawlReport, String) {
    report_page(dir).unwrap()
}

/// Returns the parts of a text between two marks.
fn all_between<'a>(text: &'a str, before: &str, after: &str) -> Vec<&'a str> {
    let parts = text.split(before).skip(1);
    parts
        .map(|part| part.split(after).next().unwrap())
        .collect()
}

/// Returns the totals in the table of the figure with this id.
fn sums(html: &str, id: &str) -> Vec<u64> {
    let figure = all_between(html, &format!("<figure id=\"{id}\">"), "</figure>");
    let foot = all_between(figure[0], "<tfoot>", "</tfoot>")[0];
    let cells = all_between(foot, "<td class=\"n\">", "<");
    cells
        .iter()
        .map(|cell| cell.replace(',', "").parse().unwrap())
        .collect()
}

#[test]
fn sums_of_the_plots_are_those_of_report_json() {
    let dir = crawl();
    let (report, html) = page(dir.path());
    let (pages, requests) = (report.pages.total, report.requests.total);
    assert_eq!((pages, requests), (37, 40));
    for id in ["progress", "outcomes", "types", "depth", "sizes"] {
        assert_eq!(sums(&html, id), [pages], "{id}");
    }
    assert_eq!(sums(&html, "response-times"), [requests]);
    assert_eq!(sums(&html, "answers").iter().sum::<u64>(), requests);
    assert_eq!(sums(&html, "hosts-by-time")[0], requests);
    let gaps: u64 = report.hosts.iter().map(|host| host.gaps.count).sum();
    assert_eq!(sums(&html, "gaps"), [gaps; 2]);
    // A link leads to each page except the first one.
    assert_eq!(sums(&html, "links"), [pages - 1]);
}

#[test]
fn each_plot_has_its_words_and_its_table() {
    let dir = crawl();
    let (_, html) = page(dir.path());
    let figures = all_between(&html, "<figure ", "</figure>");
    assert_eq!(figures.len(), 10);
    assert_eq!(html.matches("<svg ").count(), figures.len());
    for figure in figures {
        let labels = all_between(figure, "aria-labelledby=\"", "\"")[0];
        assert!(figure.contains("role=\"img\""), "{figure}");
        for id in labels.split(' ') {
            let words = all_between(figure, &format!(" id=\"{id}\">"), "<")[0];
            assert!(words.len() > 4, "{figure}");
            assert_eq!(html.matches(&format!(" id=\"{id}\"")).count(), 1);
        }
        assert!(figure.contains("<table>"), "{figure}");
        assert!(
            !figure.contains("NaN") && !figure.contains("inf "),
            "{figure}"
        );
    }
}

#[test]
fn the_page_runs_nothing_and_loads_nothing() {
    let dir = crawl();
    let (_, html) = page(dir.path());
    // The page's own script makes tables sortable.
    let script = format!("<script>{SORT_SCRIPT}</script>");
    assert_eq!(html.matches(&script).count(), 1);
    let html = html.replace(&script, "");
    for sign in [
        "<script",
        " onload",
        "javascript:",
        "http-equiv",
        " src=",
        "@import",
        "<link",
        "<iframe",
        "\u{202e}",
    ] {
        let text = html.replace("&lt;svg onload=x", "");
        assert!(!text.contains(sign), "{sign}");
    }
    // The page must refer only to its own arrow marker.
    assert!(
        all_between(&html, "url(", ")")
            .iter()
            .all(|to| *to == "#arrow")
    );
    assert!(html.contains("&lt;script&gt;"));
    assert!(html.contains("Press &lt;releases&gt;"));
}

#[test]
fn the_page_has_fixes_then_the_crawl_then_plots_then_details() {
    let dir = crawl();
    let (report, html) = page(dir.path());
    let headings = all_between(&html, "<h2>", "</h2>");
    let headings: Vec<_> = headings
        .into_iter()
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(headings[0], "What to fix");
    let parts = ["What to fix", "How the crawl went", "Plots", "Details"];
    let places = parts.map(|part| headings.iter().position(|name| *name == part).unwrap());
    assert!(places.is_sorted(), "{headings:?}");
    // Without an archive, only the broken pages are known.
    let broken = all_between(&html, "aria-label=\"Broken pages\"", "</table>")[0];
    assert_eq!(
        broken.matches("<tr>").count(),
        1 + report.broken.pages.min(20) as usize
    );
    assert!(html.contains("crawl report DIR --site --html FILE"));
}

#[test]
fn a_plot_with_a_single_bar_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let row = |number: u32| {
        json!({"url": format!("http://h0.example/{number}"), "status": 200,
            "fetched_at": "2026-11-21T00:00:10.123Z", "ms": 12, "bytes": 5000 + number,
            "content_type": "text/html", "digest": null, "depth": 1, "via": null, "title": null,
            "robots": null, "usage": null, "warc": null, "withheld": null, "error": null})
    };
    lines(
        dir.path(),
        "pages.jsonl",
        &(0..9).map(row).collect::<Vec<_>>(),
    );
    let (report, html) = page(dir.path());
    assert_eq!(report.pages.total, 9);
    assert!(!html.contains("<svg") && !html.contains("Plots"), "{html}");
}

#[test]
fn pending_urls_of_a_budget_are_not_counted_as_excluded() {
    let dir = crawl();
    let excluded = |url: &str, reason: &str, rule: &str| {
        json!({"url": format!("http://h0.example/{url}"), "reason": reason, "rule": rule,
            "line": null, "found_on": null})
    };
    let rows = [
        excluded("a", "budget", "max-pages"),
        excluded("b", "budget", "max-pages"),
        excluded("c", "robots", "Disallow: /c"),
    ];
    lines(dir.path(), "excluded.jsonl", &rows);
    let waiting = |origin: Option<&str>| json!({"origin": origin, "urls": 2, "reason": "budget", "detail": "max-pages"});
    let rows = [waiting(None), waiting(Some("http://h0.example"))];
    lines(dir.path(), "waiting.jsonl", &rows);
    let (report, html) = page(dir.path());
    assert_eq!((report.excluded.total, report.excluded.decided()), (3, 1));
    assert!(
        html.contains("; 1 excluded; 2 (max-pages) pending; 40 requests."),
        "{html}"
    );
    let text = report.to_string();
    assert!(
        text.contains("excluded  1\n  robots: 1\npending   2 (max-pages)\n"),
        "{text}"
    );
    assert_eq!(report.pending.unwrap().budgets(), Some(vec!["max-pages"]));
}

#[test]
fn the_same_rows_give_the_same_page() {
    let dir = crawl();
    assert_eq!(page(dir.path()), page(dir.path()));
}

#[test]
fn the_page_shows_an_owner_the_requests_and_how_to_opt_out() {
    let dir = crawl();
    let (_, html) = page(dir.path());
    let site = all_between(&html, "<b>h0.example</b>", "</details>")[0];
    for words in [
        "14 requests, 1 of them for robots.txt; from 2026-11-20 23:59 to 2026-11-21 00:00 UTC",
        "by your crawl-delay",
        "waits that you required",
        "(line 2): 1 URL not fetched",
        "why it ended",
    ] {
        assert!(site.contains(words), "{words}: {site}");
    }
    assert!(html.contains("<pre>User-agent: crawl\nDisallow: /</pre>"));
    assert!(html.contains("<a href=\"mailto:you@example.org\">you@example.org</a>"));
}

#[test]
fn the_page_does_not_grow_with_the_crawl() {
    let dir = tempfile::tempdir().unwrap();
    let rows = |count: usize| {
        let requests = (0..count).map(|number| {
            let (host, start) = (
                format!("h{number}.example"),
                1_000_000 * (number as u64 + 1),
            );
            json!({"url": format!("http://{host}/"), "host": host, "address": null,
                "purpose": "page", "start": start, "end": start + 1, "status": 200,
                "failure": null, "gap_asked": 1000, "why": "delay", "wait_asked": null})
        });
        lines(dir.path(), "requests.jsonl", &requests.collect::<Vec<_>>());
        let pages = (0..count).map(|number| {
            json!({"url": format!("http://h{number}.example/"), "status": 200,
                "fetched_at": "2026-11-21T00:00:10.123Z", "ms": 12, "bytes": 1,
                "content_type": format!("a/{number}"), "digest": null, "depth": number,
                "via": null, "title": null, "robots": null, "usage": null, "warc": null,
                "withheld": null, "error": null})
        });
        lines(dir.path(), "pages.jsonl", &pages.collect::<Vec<_>>());
        page(dir.path()).1.len()
    };
    let (some, more) = (rows(1_200), rows(2_400));
    assert!(more < some + some / 20, "{some} and {more} bytes");
}

/// A crawl that drew ten pages from two hosts, one with a hostile type.
#[test]
fn the_page_of_a_sample_shows_its_design_and_estimates() {
    let dir = tempfile::tempdir().unwrap();
    let toml = "seed = [\"http://h0.example/\"]\n[sample]\nsample = 5\nsample-by = \"host\"\n\
                sample-seed = \"<wave> 2\"\nframe-depth = 1\n";
    fs::write(dir.path().join("crawl.toml"), toml).unwrap();
    let rows = (0..10).map(|number| {
        let host = format!("h{}.example", number % 2);
        let kind = if number == 4 { HOSTILE } else { "text/html" };
        json!({"url": format!("http://{host}/{number}"), "status": if number == 7 { 404 } else { 200 },
            "fetched_at": "2026-11-21T00:00:10.123Z", "ms": 12, "bytes": number * 100 + 1,
            "content_type": kind, "digest": null, "depth": 1, "via": null, "title": null,
            "robots": null, "usage": null, "warc": null, "withheld": null, "error": null,
            "sample": {"how": "drawn", "stratum": host, "drawn": 5, "of": 50, "probability": 0.1}})
    });
    lines(dir.path(), "pages.jsonl", &rows.collect::<Vec<_>>());
    let (report, html) = page(dir.path());
    for words in [
        "10 drawn from 100 URLs found, in 2 strata by host, at most 5 from each",
        "<code>&lt;wave&gt; 2</code>",
        "return a page",
        "95 % interval",
    ] {
        assert!(html.contains(words), "{words}");
    }
    let figure = all_between(&html, "<figure id=\"sample\">", "</figure>")[0];
    // There are five shares: pages, two statuses, and two types. Each has one mark and one
    // interval.
    assert_eq!(figure.matches("class=\"c0\"").count(), 5 + 1);
    assert_eq!(figure.matches("class=\"c1\"").count(), 5 + 1);
    let answered = report.sample.unwrap().estimates.unwrap().answered.unwrap();
    let words = crate::sample_report::share_words(&answered);
    assert_eq!(
        figure.matches(&words).count(),
        // Two shares have this value: the share of pages and the share of status 200. Each appears
        // twice.
        4,
        "in the plot and in the table: {words}"
    );
    assert_eq!(
        html.matches("<script").count(),
        1,
        "the words of a server are markup"
    );
}

#[test]
fn the_page_of_a_walk_claims_no_interval() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("crawl.toml"),
        "seed = [\"http://h0.example/\"]\n",
    )
    .unwrap();
    let url = format!("http://h0.example/{HOSTILE}");
    let step = |step: u32, how: &str| {
        json!({"walker": 1, "step": step, "how": how, "why": (how == "restart").then_some("chance"),
            "url": url, "from": null, "links": null})
    };
    let steps = [step(1, "start"), step(2, "link"), step(3, "restart")];
    lines(dir.path(), "walk.jsonl", &steps);
    let (report, html) = page(dir.path());
    assert_eq!(report.walk.unwrap().steps, 3);
    assert!(html.contains("1 walker took 3 steps to 1 URL"), "{html}");
    assert!(html.contains("is unknown, so there are no intervals"));
    assert!(html.contains("status excluded 100.0 %"));
    assert_eq!(
        html.matches("<script").count(),
        1,
        "the words of a server are markup"
    );
}

//! The numbers of one crawl, which are the same in all five places that show them.

use crawl_testweb::{Answer, LinkMix, TestWeb};
use serde_json::Value;

use crate::server::{Server, program};
use crate::site::Site;

/// A site with redirects, failures and disallowed pages.
fn web() -> TestWeb {
    let links = [
        "/a",
        "/gone",
        "/moved",
        "/loop",
        "/barred/1",
        "/barred/2",
        "/b",
        "/c",
    ];
    let links: String = links.map(|path| format!("<a href={path}>x</a>")).concat();
    TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .robots(0, "User-agent: *\nDisallow: /barred\n")
        .script(
            0,
            "/",
            Answer::html(&format!("{links}<a href=http://other.example/>o</a>")),
        )
        .script(0, "/a", Answer::html("a"))
        .script(0, "/gone", Answer::of(404))
        .script(0, "/moved", Answer::redirect(301, "/a"))
        .script(0, "/loop", Answer::redirect(302, "/loop"))
        .script(0, "/b", Answer::html(&"b".repeat(12_345)))
        .script(0, "/c", Answer::of(410))
        .start()
}

/// The numbers of pages, bytes, failed, excluded and requests shown in one place.
type Numbers = [String; 5];

/// Runs a command and returns its stdout and stderr.
fn run(site: &Site, args: &[&str]) -> (String, String) {
    let ran = program(site.path(), args).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(ran.stdout), text(ran.stderr))
}

/// Returns the text between `before` and `after`.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).expect(before);
    rest.split_once(after).expect(after).0
}

fn first_word(text: &str) -> String {
    text.split([' ', ';']).next().unwrap().to_owned()
}

fn by_summary(stderr: &str) -> Numbers {
    let line = |name: &str| between(stderr, &format!("\n  {name}"), "\n").trim();
    let (pages, bytes) = line("fetched:").split_once(", ").unwrap();
    let requests = line("took:").split(", ").nth(1).unwrap();
    let first = [pages, line("failed:"), line("excluded:"), requests].map(first_word);
    let [pages, failed, excluded, requests] = first;
    [pages, bytes.to_owned(), failed, excluded, requests]
}

fn by_report(text: &str) -> Numbers {
    let line = |name: &str| {
        between(&format!("\n{text}"), &format!("\n{name}"), "\n")
            .trim()
            .to_owned()
    };
    let pages = line("pages ");
    let bytes = between(&pages, "(", ")").to_owned();
    [
        first_word(&pages),
        bytes,
        line("failed "),
        line("excluded "),
        line("requests "),
    ]
}

fn by_page(html: &str) -> Numbers {
    let line = between(html, "<p class=\"sums\">", " Gaps: ");
    let (pages, rest) = line.split_once(", ").unwrap();
    let parts: Vec<&str> = rest.split("; ").collect();
    [
        first_word(pages),
        parts[0].to_owned(),
        first_word(parts[1]),
        first_word(parts[2]),
        first_word(parts[3]),
    ]
}

fn by_tiles(html: &str) -> Numbers {
    let report = html.split_once("<h2>Report</h2>").unwrap().1;
    ["Pages", "Received", "Failed", "Excluded", "Requests"]
        .map(|name| between(report, &format!("<dt>{name}</dt><dd>"), "</dd>").to_owned())
}

/// Crawls, checks that all places agree, and returns the numbers.
fn check(more: &[&str]) -> Numbers {
    let web = web();
    let site = Site::empty();
    let seed = web.url(0, "/");
    let args = [
        "--seed",
        &seed,
        "--output",
        ".",
        "--delay",
        "0s",
        "--delay-factor",
        "0",
    ];
    let (_, stderr) = run(
        &site,
        &[&args[..], &["--progress", "json", "--index", "on"], more].concat(),
    );
    let numbers = by_summary(&stderr);
    let (text, _) = run(&site, &["report", "."]);
    assert_eq!(by_report(&text), numbers, "{text}\n{stderr}");
    let html = std::fs::read_to_string(site.file("report.html")).unwrap();
    assert_eq!(by_page(&html), numbers);
    let server = Server::start(site.path(), &[]);
    let page = server.get_with("/crawl", &[("accept", "text/html")]).body;
    assert_eq!(by_tiles(&page), numbers);

    let (json, _) = run(&site, &["report", ".", "--json"]);
    let report: Value = serde_json::from_str(&json).unwrap();
    let last = stderr.lines().rfind(|line| line.starts_with('{'));
    let progress: Value = serde_json::from_str(last.unwrap()).unwrap();
    assert_eq!(progress["pages"], report["pages"]["total"]);
    assert_eq!(progress["bytes"], report["pages"]["bytes"]);
    for (name, place) in [("pages", &numbers[0]), ("failed", &numbers[2])] {
        assert_eq!(progress[name].to_string(), *place, "{name}");
    }
    let counts = [
        &report["pages"]["total"],
        &report["pages"]["failed"],
        &report["excluded"]["total"],
        &report["requests"]["total"],
    ];
    let plain = [0, 2, 3, 4].map(|at| numbers[at].replace(',', ""));
    assert_eq!(counts.map(ToString::to_string), plain);
    assert_eq!(progress["share_done"], 1.0, "{progress}");
    numbers
}

#[test]
fn summary_report_and_pages_agree() {
    let numbers = check(&[]);
    // Seven pages of the site; two failures and a redirect to itself; two URLs excluded by
    // robots.txt and one out of scope.
    assert_eq!([&numbers[0], &numbers[2], &numbers[3]], ["7", "3", "3"]);
    assert_eq!(numbers[1], "12.5 kB");
}

#[test]
fn pages_left_by_a_budget_are_counted_in_the_same_way() {
    let numbers = check(&["--max-pages", "1"]);
    assert_eq!(numbers[0], "1");
}

//! The numbers of one crawl, which are the same in all five places that show them.

use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};
use serde_json::Value;

use crate::indexed_crawl_directory::Site;
use crate::server_harness::{Server, program};

/// Starts a site with redirects, failures and disallowed pages.
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
            HttpAnswer::html(&format!("{links}<a href=http://other.example/>o</a>")),
        )
        .script(0, "/a", HttpAnswer::html("a"))
        .script(0, "/gone", HttpAnswer::of(404))
        .script(0, "/moved", HttpAnswer::redirect(301, "/a"))
        .script(0, "/loop", HttpAnswer::redirect(302, "/loop"))
        .script(0, "/b", HttpAnswer::html(&"b".repeat(12_345)))
        .script(0, "/c", HttpAnswer::of(410))
        .start()
}

/// The numbers of pages, bytes, failed, excluded, pending and requests shown in one place.
type Numbers = [String; 6];

/// Runs a command and returns its stdout and stderr.
fn run(site: &Site, args: &[&str]) -> (String, String) {
    let ran = program(site.path(), args).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(ran.stdout), text(ran.stderr))
}

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
    // Drop the pages of this run, which a continued crawl prints in parentheses.
    let bytes = bytes.split(" (").next().unwrap();
    let first = [pages, line("failed:"), line("excluded:"), requests].map(first_word);
    let [pages, failed, excluded, requests] = first;
    let pending = match stderr.contains("\n  pending:") {
        true => first_word(line("pending:")),
        false => "0".to_owned(),
    };
    [pages, bytes.to_owned(), failed, excluded, pending, requests]
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
        match text.contains("\npending ") {
            true => first_word(&line("pending ")),
            false => "0".to_owned(),
        },
        line("requests "),
    ]
}

fn by_page(html: &str) -> Numbers {
    let line = between(html, "<p class=\"sums\">", " Gaps: ");
    let (pages, rest) = line.split_once(", ").unwrap();
    let parts: Vec<&str> = rest.trim_end_matches('.').split("; ").collect();
    let number = |name: &str| {
        let part = parts.iter().find(|part| part.ends_with(name));
        part.map_or_else(|| "0".to_owned(), |part| first_word(part))
    };
    [
        first_word(pages),
        // Skip the number of HTML pages, which precedes the bytes.
        parts[0].rsplit(", ").next().unwrap().to_owned(),
        number(" failed"),
        number(" excluded"),
        number(" pending"),
        first_word(parts.last().unwrap()),
    ]
}

fn by_tiles(html: &str) -> Numbers {
    let report = html.split_once("<h2>How the crawl went</h2>").unwrap().1;
    let tile = |name: &str| {
        let before = format!("<dt>{name}</dt><dd>");
        match report.contains(&before) {
            true => between(report, &before, "</dd>").to_owned(),
            false => "0".to_owned(),
        }
    };
    let requests = match report.contains("Requests in all rounds") {
        true => "Requests in all rounds",
        false => "Requests",
    };
    [
        "Pages", "Received", "Failed", "Excluded", "Pending", requests,
    ]
    .map(tile)
}

/// Runs a crawl in the site's directory. Returns its messages.
fn crawl(site: &Site, web: &TestWeb, more: &[&str]) -> String {
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
        "--progress",
        "json",
        "--index",
        "on",
    ];
    run(site, &[&args, more].concat()).1
}

/// Checks that the summary, the report, its HTML page and the served page show the same numbers,
/// and returns them. The summary counts only the requests of its own run. Pass false for
/// `summary_requests` after a later run, so that the number of requests isn't compared.
fn agree(site: &Site, stderr: &str, summary_requests: bool) -> Numbers {
    let (text, _) = run(site, &["report", "."]);
    let numbers = by_report(&text);
    let mut of_summary = by_summary(stderr);
    if !summary_requests {
        of_summary[5].clone_from(&numbers[5]);
    }
    assert_eq!(numbers, of_summary, "{text}\n{stderr}");
    let html = std::fs::read_to_string(site.file("report.html")).unwrap();
    assert_eq!(by_page(&html), numbers);
    let server = Server::start(site.path(), &[]);
    let page = server.get_with("/crawl", &[("accept", "text/html")]).body;
    assert_eq!(by_tiles(&page), numbers);
    numbers
}

/// Crawls, checks that all places agree, and returns the numbers.
fn check(more: &[&str]) -> Numbers {
    let (web, site) = (web(), Site::empty());
    let stderr = crawl(&site, &web, more);
    let numbers = agree(&site, &stderr, true);

    let (json, _) = run(&site, &["report", ".", "--json"]);
    let report: Value = serde_json::from_str(&json).unwrap();
    let last = stderr.lines().rfind(|line| line.starts_with('{'));
    let progress: Value = serde_json::from_str(last.unwrap()).unwrap();
    assert_eq!(progress["pages"], report["pages"]["total"]);
    assert_eq!(progress["bytes"], report["pages"]["bytes"]);
    for (name, place) in [("pages", &numbers[0]), ("failed", &numbers[2])] {
        assert_eq!(progress[name].to_string(), *place, "{name}");
    }
    let of_budget = report["excluded"]["by_reason"]["budget"].as_u64();
    let excluded = report["excluded"]["total"].as_u64().unwrap() - of_budget.unwrap_or(0);
    let counts = [
        &report["pages"]["total"],
        &report["pages"]["failed"],
        &Value::from(excluded),
        &report["pending"]["total"],
        &report["requests"]["total"],
    ];
    let plain = [0, 2, 3, 4, 5].map(|at| numbers[at].replace(',', ""));
    assert_eq!(counts.map(ToString::to_string), plain);
    assert_eq!(progress["share_done"], 1.0, "{progress}");
    numbers
}

#[test]
fn summary_report_and_pages_agree() {
    let numbers = check(&[]);
    // Of the seven pages, two fail and one redirects to itself. robots.txt excludes two URLs, and
    // one URL is out of scope.
    assert_eq!([&numbers[0], &numbers[2], &numbers[3]], ["7", "3", "3"]);
    assert_eq!(numbers[1], "12.5 kB");
}

#[test]
fn pages_left_by_a_budget_are_counted_in_the_same_way() {
    let numbers = check(&["--max-pages", "1"]);
    // Nine URLs are pending: eight pages of the site that are linked but not yet checked against
    // robots.txt, and the guessed `/sitemap.xml`.
    assert_eq!([&numbers[0], &numbers[4]], ["1", "9"]);
}

#[test]
fn after_a_budget_and_a_second_round_each_url_is_counted_once_everywhere() {
    let (web, site) = (web(), Site::empty());
    let first = agree(&site, &crawl(&site, &web, &["--max-pages", "4"]), true);
    assert_eq!(first[0], "4");
    // The second round visits pages again and has room for new ones.
    let stderr = crawl(&site, &web, &["--recrawl", "--max-pages", "5"]);
    let second = agree(&site, &stderr, false);
    let (text, _) = run(&site, &["report", "."]);
    let visits = between(&text, "all rounds: ", " visits");
    assert_eq!(visits, "9", "{text}");
    let pages: u64 = second[0].parse().unwrap();
    assert!((5..9).contains(&pages), "{text}");
    // The budget of the third round is larger than the site. So nothing is pending, and every URL
    // is counted once.
    let stderr = crawl(&site, &web, &["--recrawl", "--max-pages", "100"]);
    let third = agree(&site, &stderr, false);
    assert_eq!([&third[0], &third[2], &third[4]], ["7", "3", "0"]);
}

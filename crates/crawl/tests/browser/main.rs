//! Runs the checks in `checks/`, which drive Chromium through Playwright, on the pages of a search
//! server, on a site that embeds the search, and on the page of a running crawl.
//!
//! Required variables, set by `cargo xtask test --step browser`: `CRAWL_PYTHON_BIN` (with
//! playwright), `CRAWL_CHROMIUM`, `CRAWL_CHROMIUM_LIBRARIES`, `CRAWL_CHROMIUM_FONTS`, `CRAWL_AXE`,
//! `CRAWL_APPS` (the bundles of `apps/`).
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

#[expect(dead_code, reason = "the tests without a browser ask more of it")]
#[path = "../serve/server_harness.rs"]
mod server;
#[expect(dead_code, reason = "the tests without a browser ask more of it")]
#[path = "../serve/indexed_crawl_directory.rs"]
mod site;

mod rendering;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};
use serde_json::{Value, json};

use server::{Lines, Server, program};
use site::Site;

const TOKEN: &str = "a-token-of-the-tests";

/// Returns the path in an environment variable.
fn named(variable: &str) -> PathBuf {
    std::env::var_os(variable)
        .unwrap_or_else(|| panic!("{variable} is not set: cargo xtask test --step browser sets it"))
        .into()
}

/// A process that is killed when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn pages_work_in_a_browser() {
    // The web has two hosts: one serves the pages that results lead to, and the other serves sites
    // that embed the search.
    let web = TestWeb::scripted(2).start();
    let origin = |host| web.url(host, "").trim_end_matches('/').to_owned();
    let site = Site::new(&origin(0));
    site.index_versions(&origin(0));
    add_long_words(&site);
    write_report(&site);
    let search = Server::start(
        site.path(),
        &["--rate", "1000", "--allow-origin", &origin(0)],
    );
    let snippet = format!("http://{}", search.address);
    serve_pages(&web, &snippet);

    // Crawl a site with every kind of fault, and write the HTML pages about its faults.
    let (_faulty, fixes) = pages_to_fix();

    // Start a crawl that the checks follow and control.
    let busy = TestWeb::builder().seed(5).pages(400).start();
    let crawled = Site::empty();
    let _crawl = start_crawl(&crawled, &busy);
    crawled.write("token", TOKEN);
    crawled.index("http://site.example");
    let live = Server::start(
        crawled.path(),
        &[
            "--rate",
            "1000",
            "--token-file",
            "token",
            "--title",
            "Find it",
        ],
    );
    let mirrored = Site::empty();
    let to_fix = ["report.html", "site.html", "faults.html", "plan.html"];
    let to_fix = to_fix.map(|name| fixes.file(name));
    let for_owners = ["bot.html", "host.html"].map(|name| fixes.file(name));
    let context = json!({
        "mirror": mirror(&mirrored),
        "search": snippet,
        "site": origin(0),
        "other": origin(1),
        "live": format!("http://{}", live.address),
        "token": TOKEN,
        "crawled": busy.url(0, "/added-by-hand"),
        "crawled_host": busy.authority(0),
        "report": site.file("report.html"),
        "to_fix": to_fix,
        "for_owners": for_owners,
    });
    let checks = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/checks");
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../index/tests/browser");
    let ended = Command::new(named("CRAWL_PYTHON_BIN").join("python"))
        .arg(checks.join("run.py"))
        .env("CRAWL_SETUP", context.to_string())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONPATH", shared)
        .stdin(Stdio::null())
        .status();
    assert!(
        ended.unwrap().success(),
        "a check failed; its name is above"
    );
    let log = busy.log();
    assert!(log.iter().any(|entry| entry.path == "/added-by-hand"));
}

/// Adds rows of a second round to the records. The rows have long values (host, URL, type, error,
/// rule), which must not break the layout of the pages, and name hosts that were never requested.
fn add_long_words(site: &Site) {
    let host = format!("{}.example:12345", ["a-label-of-a-host"; 5].join("."));
    let url = format!("http://{host}/{}", "a-path-without-end/".repeat(12));
    let add = |name: &str, rows: &[Value]| {
        let file = OpenOptions::new().append(true).open(site.file(name));
        let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
        file.unwrap().write_all(rows.as_bytes()).unwrap();
    };
    let page = |round: u32, status: Option<u32>, bytes: u64| {
        json!({"url": url, "status": status, "fetched_at": "2026-11-20T23:59:59.123Z", "ms": 12,
            "bytes": bytes, "content_type": format!("application/{}", "long-type.".repeat(8)),
            "digest": null, "depth": 1, "via": url, "title": null, "robots": null, "warc": null,
            "round": round, "change": "changed", "error": "connect_refused: no way"})
    };
    add(
        "pages.jsonl",
        &[page(1, Some(200), 123_456_789_012), page(2, None, 0)],
    );
    // Add the pages of a sample, whose type and stratum have long names.
    let drawn = |number: u32| {
        let mut row = page(1, Some(200 + number), 1_000 * u64::from(number));
        row["url"] = json!(format!("http://{host}/{number}"));
        row["sample"] = json!({"how": "drawn", "stratum": host, "drawn": 4, "of": 200,
            "probability": 0.02, "unknown": null});
        row["error"] = Value::Null;
        row
    };
    add("pages.jsonl", &(0..4).map(drawn).collect::<Vec<_>>());
    add(
        "requests.jsonl",
        &[
            json!({"url": url, "host": host, "address": "192.0.2.1", "purpose": "page",
            "start": 1_000_000, "end": 9_000_000_000_u64, "status": null, "failure": "timeout",
            "gap_asked": 1000, "why": "delay", "wait_asked": 86_400_000}),
        ],
    );
    let excluded = |number: u32| {
        json!({"url": format!("http://h{number}.{host}/"), "reason": "trap",
            "rule": format!("growing paths {url}#: 24 fetched"), "line": null, "found_on": url})
    };
    add("excluded.jsonl", &(0..30).map(excluded).collect::<Vec<_>>());
}

/// Writes the HTML page of the report, as a crawl does at its end.
fn write_report(site: &Site) {
    let args = ["report", ".", "--html", "report.html"];
    assert!(program(site.path(), &args).status().unwrap().success());
}

/// Crawls a site with broken links, redirects, missing and duplicate texts such as titles, images
/// without text, a large page and blocked links. Writes all HTML pages about it.
fn pages_to_fix() -> (TestWeb, Site) {
    let page = |head: &str, body: &str| {
        let nav = "<a href=/>Home</a> <a href=/old>Old</a> <a href=/barred/x>Plans</a>";
        HttpAnswer::html(&format!(
            "<html lang=en><head>{head}</head>{nav}{body}</html>"
        ))
    };
    let items: String = (0..30)
        .map(|item| format!("<a href=/item{item}>Item {item}</a> <a href=/gone{item}>Gone</a> "))
        .collect();
    let mut web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .robots(0, "User-agent: *\nCrawl-delay: 0\nDisallow: /barred\n")
        .script(
            0,
            "/",
            page(
                "<title>Tea</title>",
                &format!("<h1>Tea</h1>{items}<a href=/hop>h</a>"),
            ),
        )
        .script(0, "/old", HttpAnswer::redirect(301, "/new"))
        .script(
            0,
            "/new",
            page("", "<a href='/#nowhere'>there</a> <a href=/big>Big</a>"),
        )
        .script(0, "/hop", HttpAnswer::redirect(301, "/hop2"))
        .script(0, "/hop2", HttpAnswer::redirect(302, "/new"))
        .script(
            0,
            "/big",
            page("<title>Big</title>", &"Tea. ".repeat(130_000)),
        );
    for item in 0..30 {
        let head = "<title>Item</title><meta name=description content='An item'>";
        let body = format!("<img src=/{}.png>", "a-long-name-of-an-image".repeat(4));
        web = web
            .script(0, &format!("/item{item}"), page(head, &body))
            .script(0, &format!("/gone{item}"), HttpAnswer::of(404));
    }
    let web = web.start();
    let site = Site::empty();
    let seed = web.url(0, "/");
    let quick = ["--delay", "0s", "--delay-factor", "0"];
    let succeeds = |args: &[&str]| {
        let ran = program(site.path(), args).output().unwrap();
        assert!(ran.status.success(), "{args:?}: {ran:?}");
        ran.stdout
    };
    succeeds(&[&["--seed", &seed, "--output", "crawl"][..], &quick[..]].concat());
    succeeds(&["report", "crawl", "--html", "report.html"]);
    succeeds(&["report", "crawl", "--site", "--html", "site.html"]);
    let faults = succeeds(&["report", "crawl", "--faults", "--format", "html"]);
    std::fs::write(site.file("faults.html"), faults).unwrap();
    succeeds(&[&["plan", &seed, "--html", "plan.html"][..], &quick[..]].concat());
    let page = [
        "identity",
        "page",
        "--out",
        "bot.html",
        "--contact",
        "bot@e.example",
    ];
    let signature = [
        "--signature",
        "always",
        "--signature-agent",
        "https://bot.example",
    ];
    succeeds(&[&page[..], &signature].concat());
    let host = web.authority(0);
    let audit = ["audit", "crawl", "--host", host, "--html", "host.html"];
    succeeds(&audit);
    (web, site)
}

/// Serves the pages that results lead to, and pages that embed the snippet.
fn serve_pages(web: &TestWeb, snippet: &str) {
    let title = "<!doctype html><html lang=en><title>The page itself</title><h1>Here it is</h1>";
    // The indexed passage is far below the top of the page, so a browser must scroll to it.
    let rules = format!(
        "{title}<div style=\"height:3000px\"></div><p id=passage>The crawler reads robots.txt before any page.</p>\
         <div style=\"height:3000px\"></div>\
         <p>If robots.txt can't be fetched, no page is requested.</p>"
    );
    web.script(0, "/rules", HttpAnswer::html(&rules));
    let page = |head: &str, tag: &str| {
        format!(
            "<!doctype html><html lang=en><head><title>A site</title>{head}</head><body><main>\
             <h1>A site of its own</h1><h2>A part</h2><h3>Its own heading</h3><div id=here></div>\
             <p>Some text.</p><script src=\"{snippet}/embed.js\" {tag} async></script></main>\
             </body></html>"
        )
    };
    let loud =
        "<style>input{border:7px solid red}h3{color:rgb(1,2,3)}mark{background:lime}</style>";
    let plain = page(
        loud,
        "data-target=\"#here\" data-shortcut=\"/\" data-label=\"Search the site\"",
    );
    web.script(0, "/embedded", HttpAnswer::html(&plain));
    web.script(1, "/embedded", HttpAnswer::html(&plain));
    let policy = format!(
        "default-src 'none'; script-src {snippet}; connect-src {snippet}; base-uri 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    );
    let strict =
        HttpAnswer::html(&page("", "data-limit=\"3\"")).header("content-security-policy", &policy);
    web.script(0, "/strict", strict);
    let dark = page("<meta name=\"color-scheme\" content=\"dark\">", "");
    web.script(0, "/dark", HttpAnswer::html(&dark));
}

/// Crawls a small site whose pages use features that don't work in pages opened from files, such as
/// `<base>` and a content security policy. Exports the crawl as a mirror, and returns the file of
/// its first page.
fn mirror(site: &Site) -> PathBuf {
    let typed = |content_type: &str, body: &str| {
        HttpAnswer::of(200)
            .header("content-type", content_type)
            .body(body)
    };
    let home = "<!doctype html><html lang=en><head><base href=/docs/><title>Tea</title>\
        <meta http-equiv=content-security-policy content=\"default-src 'self'\">\
        <link rel=stylesheet href=/style.css integrity=sha256-x crossorigin>\
        <script src=/app.js integrity=sha256-x defer></script></head><body>\
        <h1>Tea \u{2013} th\u{e9}</h1><img src=/dot.svg alt=Dot> \
        <a href='green?page=2#brew'>Green tea</a></body></html>";
    let green = "<title>Green tea</title><a href=../>Home</a><div style='height:3000px'></div>\
        <p id=brew>Brew it.</p>";
    let svg = "<svg xmlns='http://www.w3.org/2000/svg' width='7' height='7'></svg>";
    let web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(0, "/", typed("text/html; charset=utf-8", home))
        .script(0, "/docs/green?page=2", HttpAnswer::html(green))
        .script(0, "/style.css", typed("text/css", "@import 'more.css';"))
        .script(0, "/more.css", typed("text/css", "h1{color:green}"))
        .script(
            0,
            "/app.js",
            typed("text/javascript", "document.title = 'Read by the script';"),
        )
        .script(0, "/dot.svg", typed("image/svg+xml", svg))
        .start();
    let seed = web.url(0, "/");
    let fast = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];
    let crawl = ["--seed", &seed, "--output", "crawl", "--resources", "all"];
    let export = ["export", "crawl", "--to", "mirror", "--out", "mirror"];
    for args in [&[&crawl[..], &fast[..]].concat()[..], &export[..]] {
        assert!(program(site.path(), args).status().unwrap().success());
    }
    let folder = web.authority(0).replace(':', "_");
    site.file("mirror").join(folder).join("index.html")
}

/// Starts a crawl that outlasts the checks, and waits until it accepts commands.
fn start_crawl(site: &Site, web: &TestWeb) -> Running {
    let seed = web.url(0, "/");
    let args = [
        "--seed",
        &seed,
        "--output",
        ".",
        "--delay",
        "2s",
        "--delay-factor",
        "0",
        "--progress",
        "off",
        "-v",
    ];
    let mut child = program(site.path(), &args).spawn().unwrap();
    Lines::of(child.stderr.take().unwrap()).until("takes commands");
    Running(child)
}

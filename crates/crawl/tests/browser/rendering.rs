//! Crawls of pages that scripts build, with a real browser.

mod auto_render_mode;
mod failures;
mod forbidden_addresses;
mod npm_apps;
mod post_requests;
mod replays;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crawl_testweb::{HttpAnswer, LinkMix, TestWeb, TestWebBuilder, gaps};
use serde_json::Value;
use tempfile::TempDir;

use crate::named;

/// A script that fills a page from JSON, and then tries everything that a page is not allowed to
/// do.
const APP: &str = r##"
const root = document.getElementById("root");
const script = (source) => URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
async function show() {
  const answer = await fetch("/api" + location.pathname);
  const page = await answer.json();
  document.title = page.title;
  root.innerHTML = "<h1>" + page.title + "</h1><p>" + page.text + "</p>"
    + page.links.map((link) => `<a href="${link}">${link}</a>`).join(" ");
}
function tries() {
  const quietly = (attempt) => { try { attempt(); } catch (error) { /* refused */ } };
  quietly(() => fetch("/private/data.json").catch(() => {}));
  quietly(() => fetch("http://169.254.169.254/latest/meta-data").catch(() => {}));
  quietly(() => fetch("/post", { method: "POST", body: "tea" }).catch(() => {}));
  quietly(() => navigator.sendBeacon("/beacon", "tea"));
  quietly(() => { new Image().src = "/pixel.png"; });
  quietly(() => new WebSocket("ws://" + location.host + "/socket"));
  quietly(() => new EventSource("/events"));
  quietly(() => new SharedWorker(script("fetch('/from-shared-worker')")));
  quietly(() => navigator.serviceWorker.register("/service-worker.js"));
  quietly(() => new RTCPeerConnection().createDataChannel("tea"));
  quietly(() => new WebTransport("https://" + location.host + "/transport"));
  quietly(() => window.open("/opened"));
  const head = document.head;
  head.insertAdjacentHTML("beforeend", '<link rel="prefetch" href="/prefetched">'
    + '<link rel="dns-prefetch" href="//dns.example"><link rel="preconnect"'
    + ' href="http://connect.example"><link rel="icon" href="/icon.png">');
  const rules = document.createElement("script");
  rules.type = "speculationrules";
  rules.textContent = JSON.stringify({ prefetch: [{ source: "list", urls: ["/speculated-1"] }],
    prerender: [{ source: "list", urls: ["/speculated-2"] }] });
  head.append(rules);
}
show().then(tries);
"##;

const SHELL: &str = "<!doctype html><title>..</title><noscript>This site needs JavaScript.</noscript>\
    <div id=\"root\"></div><script src=\"/app.js\"></script>";

/// The number of pages that link to each other through scripts.
const PAGES: usize = 5;

fn json(text: &str) -> HttpAnswer {
    HttpAnswer::of(200)
        .header("Content-Type", "application/json")
        .body(text)
}

fn script(text: &str) -> HttpAnswer {
    HttpAnswer::of(200)
        .header("Content-Type", "text/javascript")
        .body(text)
}

/// Returns the settings of a site whose pages, apart from a static one, are empty until scripts
/// fill them.
fn site(app: &str) -> TestWebBuilder {
    let links: Vec<String> = (1..PAGES).map(|page| format!("\"/{page}\"")).collect();
    let mut spec = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .robots(0, "User-agent: *\nDisallow: /private/\n")
        .script(0, "/", HttpAnswer::html(SHELL))
        .script(0, "/app.js", script(app))
        .script(
            0,
            "/api/",
            json(&format!(
                "{{\"title\":\"Tea\",\"text\":\"{}\",\"links\":[{},\"/plain\"]}}",
                "All about tea. ".repeat(20),
                links.join(",")
            )),
        )
        .script(
            0,
            "/plain",
            HttpAnswer::html(&format!(
                "<title>Plain</title><p>{}",
                "Static words. ".repeat(40)
            )),
        );
    for page in 1..PAGES {
        // The last page has no `Content-Type`.
        let shell = match page == PAGES - 1 {
            true => HttpAnswer::of(200).body(SHELL),
            false => HttpAnswer::html(SHELL),
        };
        spec = spec.script(0, &format!("/{page}"), shell).script(
            0,
            &format!("/api/{page}"),
            json(&format!(
                "{{\"title\":\"Tea {page}\",\"text\":\"{}\",\"links\":[\"/\"]}}",
                "Leaves and water. ".repeat(20)
            )),
        );
    }
    spec
}

/// Returns a command for the program, with the environment variables for the browser.
fn crawl(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
    command
        .current_dir(folder)
        .env("CRAWL_BROWSER", named("CRAWL_CHROMIUM"))
        .env("LD_LIBRARY_PATH", named("CRAWL_CHROMIUM_LIBRARIES"))
        .env("FONTCONFIG_FILE", named("CRAWL_CHROMIUM_FONTS"))
        .stdin(Stdio::null());
    command
}

/// A timeout that no page reaches, so that tests don't depend on the machine's speed. Only the
/// tests of the timeout set a shorter one.
const LONG_TIMEOUT: [&str; 2] = ["--render-timeout", "10m"];

fn run(folder: &Path, args: &[&str]) -> Output {
    let output = crawl(folder).args(args).output().unwrap();
    assert!(
        output.status.success(),
        "{args:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Crawls a site into the directory `out` of a new folder, with additional arguments. Returns the
/// folder.
fn render(web: &TestWeb, args: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let seed = web.url(0, "/");
    let base = [
        "--seed",
        &seed,
        "--output",
        "out",
        "--browser-sandbox",
        "off",
        "-q",
    ];
    let timeout: &[&str] = match args.contains(&LONG_TIMEOUT[0]) {
        true => &[],
        false => &LONG_TIMEOUT,
    };
    run(folder.path(), &[&base[..], timeout, args].concat());
    folder
}

fn rows(folder: &TempDir, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Counts requests by path, as the server saw them and as `requests.jsonl` lists them.
fn requests(web: &TestWeb, folder: &TempDir) -> [BTreeMap<String, u32>; 2] {
    let (mut seen, mut listed) = (BTreeMap::new(), BTreeMap::new());
    for entry in web.log() {
        *seen.entry(entry.path).or_default() += 1;
    }
    for row in rows(folder, "requests.jsonl") {
        let url = row["url"].as_str().unwrap();
        if let Some(path) = url.strip_prefix(web.url(0, "").trim_end_matches('/')) {
            *listed.entry(path.to_owned()).or_default() += 1;
        }
    }
    [seen, listed]
}

#[test]
fn no_request_of_a_page_bypasses_the_crawl() {
    let web = site(APP).start();
    let folder = render(
        &web,
        &["--render", "auto", "--delay", "100ms", "--index", "on"],
    );
    let [seen, listed] = requests(&web, &folder);
    assert_eq!(seen, listed);
    // Each page, the script and each JSON answer is requested once, even if several pages need it.
    let mut expected: Vec<String> = (1..PAGES).map(|page| format!("/{page}")).collect();
    expected.extend((1..PAGES).map(|page| format!("/api/{page}")));
    let fixed = [
        "/",
        "/api/",
        "/app.js",
        "/plain",
        "/robots.txt",
        "/sitemap.xml",
    ];
    expected.extend(fixed.map(str::to_owned));
    expected.sort();
    assert!(seen.keys().eq(&expected), "{seen:?}");
    assert!(seen.values().all(|count| *count == 1), "{seen:?}");
    // Allow for 5 ms, because the server measures each gap with a precision of a few milliseconds.
    let shortest = gaps(&web.log()).into_iter().min().unwrap();
    assert!(shortest >= 95_000, "{shortest}");
    let audit = run(folder.path(), &["audit", "out"]);
    let audit = String::from_utf8(audit.stdout).unwrap();
    assert!(audit.contains("breaches   none"), "{audit}");
    let refused = rows(&folder, "excluded.jsonl");
    let reasons: Vec<_> = refused
        .iter()
        .map(|row| row["reason"].as_str().unwrap())
        .collect();
    assert_eq!(reasons, ["robots", "address"], "{refused:?}");
    assert!(
        refused[0]["found_on"]
            .as_str()
            .unwrap()
            .starts_with(&web.url(0, ""))
    );
}

#[test]
fn a_rendered_page_is_read_as_a_visitor_sees_it() {
    let web = site(APP).start();
    let folder = render(
        &web,
        &["--render", "auto", "--delay", "0s", "--index", "on"],
    );
    let pages = rows(&folder, "pages.jsonl");
    assert_eq!(pages.len(), PAGES + 1);
    for page in &pages {
        let is_plain = page["url"].as_str().unwrap().ends_with("/plain");
        assert_eq!(
            page["title"].as_str().unwrap().starts_with("Tea"),
            !is_plain
        );
        assert_eq!(page["render"].is_null(), is_plain, "{page}");
        assert_eq!(page["indexed"], "yes");
    }
    run(
        folder.path(),
        &["export", "out", "--to", "markdown", "--out", "md"],
    );
    let name = web
        .url(0, "")
        .replace("http://", "")
        .replace([':', '/'], "_");
    let text = std::fs::read_to_string(
        folder
            .path()
            .join("md")
            .join(name.trim_end_matches('_'))
            .join("2.md"),
    );
    assert!(text.unwrap().contains("Leaves and water."));
    // A new index from the archive finds the same text.
    run(folder.path(), &["index", "out"]);
    let results = run(folder.path(), &["search", "out", "leaves"]);
    assert!(String::from_utf8(results.stdout).unwrap().contains("Tea 2"));
    run(folder.path(), &["verify", "out"]);
    let explained = run(folder.path(), &["explain", "out", &web.url(0, "/app.js")]);
    let explained = String::from_utf8(explained.stdout).unwrap();
    assert!(
        explained.contains("fetched to render a page"),
        "{explained}"
    );
    let requests = rows(&folder, "requests.jsonl");
    let script = requests
        .iter()
        .find(|row| row["url"] == web.url(0, "/app.js"));
    let page = script.unwrap()["via"].as_str().unwrap();
    assert!(
        explained.contains(&format!("render (200), for {page}\n")),
        "{explained}"
    );
    let refused = web.url(0, "/private/data.json");
    let explained = run(folder.path(), &["explain", "out", &refused]);
    let explained = String::from_utf8(explained.stdout).unwrap();
    let rows = rows(&folder, "excluded.jsonl");
    let row = rows.iter().find(|row| row["url"] == refused.as_str());
    let page = row.unwrap()["found_on"].as_str().unwrap();
    assert!(
        explained.contains(&format!("found on: {page}\n")),
        "{explained}"
    );
}

#[test]
fn polite_gaps_do_not_change_the_result() {
    // The page aborts its request after 250 ms of the page's own time.
    let impatient = APP.replace(
        "const answer = await fetch(\"/api\" + location.pathname);",
        "const patience = new AbortController();
         setTimeout(() => patience.abort(), 250);
         const answer = await fetch(\"/api\" + location.pathname, { signal: patience.signal });",
    );
    let digests = |delay: &str| {
        let web = site(&impatient).start();
        let folder = render(
            &web,
            &["--render", "on", "--delay", delay, "--max-pages", "3"],
        );
        let pages = rows(&folder, "pages.jsonl");
        let digest = |page: &Value| {
            let path = page["url"]
                .as_str()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap()
                .to_owned();
            (
                path,
                page["render"]["dom_digest"].to_string(),
                page["title"].clone().to_string(),
            )
        };
        let mut digests: Vec<_> = pages.iter().map(digest).collect();
        digests.sort();
        digests
    };
    let fast = digests("0s");
    assert!(fast[0].2.contains("Tea"), "{fast:?}");
    assert_eq!(fast, digests("500ms"));
}

#[test]
fn a_crawl_without_rendering_counts_app_pages_and_a_later_round_renders_them() {
    let web = site(APP).start();
    web.script(0, "/", HttpAnswer::html(SHELL).header("etag", "\"1\""));
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "--seed",
        &web.url(0, "/"),
        "--output",
        "out",
        "--delay",
        "0s",
    ];
    let output = run(folder.path(), &args);
    let summary = String::from_utf8(output.stderr).unwrap();
    assert!(
        summary.contains("1 page whose text seems to be built by scripts; read with --render auto"),
        "{summary}"
    );
    let args = [
        "--output",
        "out",
        "--recrawl",
        "--render",
        "auto",
        "--browser-sandbox",
        "off",
    ];
    run(folder.path(), &[&args[..], &LONG_TIMEOUT].concat());
    let pages = rows(&folder, "pages.jsonl");
    let page = pages.iter().rfind(|page| page["url"] == web.url(0, "/"));
    let page = page.unwrap();
    assert_eq!(
        (&page["status"], &page["title"]),
        (&200.into(), &"Tea".into())
    );
}

#[test]
fn a_crash_loses_nothing() {
    let web = site(APP).start();
    let folder = tempfile::tempdir().unwrap();
    let seed = web.url(0, "/");
    let args = [
        "--seed",
        &seed,
        "--output",
        "out",
        "--render",
        "on",
        "--browser-sandbox",
        "off",
        "--delay",
        "300ms",
        "-q",
    ];
    let args = [&args[..], &LONG_TIMEOUT].concat();
    let mut killed = crawl(folder.path()).args(&args).spawn().unwrap();
    // Wait until the page's script is requested, which shows that the browser is running.
    let limit = std::time::Duration::from_secs(60);
    assert!(web.wait_for(limit, |log| log.iter().any(|entry| entry.path == "/app.js")));
    killed.kill().unwrap();
    killed.wait().unwrap();
    run(folder.path(), &args);
    let pages = rows(&folder, "pages.jsonl");
    assert_eq!(pages.len(), PAGES + 1);
    assert!(
        pages.iter().all(|page| page["render"]["error"].is_null()),
        "{pages:?}"
    );
    let audit = run(folder.path(), &["audit", "out"]);
    assert!(
        String::from_utf8(audit.stdout)
            .unwrap()
            .contains("breaches   none")
    );
}

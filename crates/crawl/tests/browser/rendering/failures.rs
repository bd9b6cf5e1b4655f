//! Crawls in which the browser or a page fails.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crawl_testweb::{HttpAnswer, LinkMix, ScriptedReply, TestWeb, TestWebBuilder};
use serde_json::Value;
use tempfile::TempDir;

use super::{LONG_TIMEOUT, crawl, render, rows};

/// The text of each page without its scripts.
const STATIC_TEXT: &str = "What the server sent. ";

/// Returns the settings of a site with these pages, each given by its path and its script. The
/// first page links to the others.
fn site(pages: &[(&str, &str)]) -> TestWebBuilder {
    let links = pages
        .iter()
        .map(|(path, _)| format!("<a href=\"{path}\">x</a>"));
    let links: String = links.collect();
    let text = STATIC_TEXT.repeat(20);
    let mut spec = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(0, "/", HttpAnswer::html(&format!("<p>{text}{links}")));
    for (path, script) in pages {
        let page = format!("<title>sent</title><p>{text}<p id=x><script>{script}</script>");
        spec = spec.script(0, path, HttpAnswer::html(&page));
    }
    spec
}

/// Returns a function that maps a page's path to the page's row.
fn pages(web: &TestWeb, folder: &TempDir) -> impl Fn(&str) -> Value + use<> {
    let pages = rows(folder, "pages.jsonl");
    let site = web.url(0, "/");
    move |path| {
        let url = format!("{}{}", site, path.trim_start_matches('/'));
        let page = pages.iter().find(|page| page["url"] == url);
        page.unwrap_or_else(|| panic!("{url}: {pages:?}")).clone()
    }
}

/// The last statement of a page's script. The title then shows that the script reached its end.
const DONE: &str = "document.title = 'done'";

#[test]
fn pages_that_misbehave_do_not_stop_the_crawl() {
    let many =
        format!("for (let i = 0; i < 2000; i++) fetch('/data/' + i).catch(() => {{}}); {DONE}");
    let asks = format!("alert(1); confirm(2); prompt(3); onbeforeunload = () => 'stay'; {DONE}");
    let download = format!(
        "const a = document.createElement('a'); a.href = 'data:application/x-tea,tea';
         a.download = 'tea'; a.click(); location = '/file'; {DONE}"
    );
    let closes = format!("window.close(); {DONE}");
    let web = site(&[
        ("/requests", &many),
        ("/dialogs", &asks),
        ("/download", &download),
        ("/closes", &closes),
        (
            "/memory",
            "const all = []; for (;;) all.push(new Array(1e6).fill(1.5))",
        ),
        ("/good", DONE),
        ("/attached", DONE),
    ])
    .start();
    let attached = format!("<title>sent</title><script>{DONE}</script>");
    let attached = HttpAnswer::html(&attached).header("Content-Disposition", "attachment");
    web.script(0, "/attached", attached);
    // Limit the memory. The browser allows half of it for the scripts of one page.
    let args = ["--render", "on", "--delay", "0s", "--render-tabs", "1"];
    let memory = ["--render-memory", "1GiB"];
    let page = pages(&web, &render(&web, &[&args[..], &memory].concat()));
    for path in [
        "/requests",
        "/dialogs",
        "/download",
        "/closes",
        "/attached",
        "/good",
    ] {
        let page = page(path);
        assert_eq!(page["title"], "done", "{page}");
        assert!(page["render"]["error"].is_null(), "{page}");
    }
    let row = &page("/requests")["render"];
    assert_eq!(
        (&row["requests"], &row["refused"]),
        (&2000.into(), &1900.into())
    );
    assert_eq!(page("/memory")["title"], "sent");
    assert_eq!(page("/memory")["render"]["error"], "page_failed");
    // `/download` navigates to `/file`. The crawl follows this URL like a link, but the browser
    // stays on the page.
    assert!(web.log().iter().any(|entry| entry.path == "/file"));
}

#[test]
fn a_page_in_an_endless_loop_is_read_as_it_was_sent() {
    let web = site(&[("/loop", "for (;;);"), ("/next", "")]).start();
    let args = ["--render", "on", "--delay", "0s", "--render-timeout", "2s"];
    let page = pages(&web, &render(&web, &args));
    let looping = page("/loop");
    assert_eq!(looping["title"], "sent");
    assert_eq!(looping["render"]["error"], "render_timeout");
    assert_eq!(page("/next")["title"], "sent");
}

#[test]
fn a_dom_without_end_is_not_read() {
    let grow = "const text = 'x'.repeat(1 << 20); setInterval(() => { for (let i = 0; i < 64; i++) {
        const p = document.createElement('p'); p.textContent = text + i; document.body.append(p); } })";
    let web = site(&[("/dom", grow), ("/next", "")]).start();
    let args = ["--render", "on", "--delay", "0s", "--render-tabs", "1"];
    let memory = ["--render-memory", "700MiB"];
    let page = pages(&web, &render(&web, &[&args[..], &memory].concat()));
    assert_eq!(page("/dom")["title"], "sent");
    assert_eq!(page("/dom")["render"]["error"], "render_budget");
    assert_eq!(page("/next")["title"], "sent");
}

/// Returns the main process of the browser whose profile is below a folder.
fn browser_below(folder: &Path) -> Option<u32> {
    let profile = format!("--user-data-dir={}", folder.display());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut ids = processes.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let is_main = !line.starts_with("/bin/sh") && !line.contains("--type=");
        (is_main && line.contains(&profile)).then_some(id)
    });
    ids.next()
}

#[test]
fn a_browser_that_is_killed_is_started_again() {
    let waits = "const script = document.createElement('script'); script.src = '/slow.js';
        document.body.append(script)";
    let web = site(&[("/waits", waits), ("/good", DONE)]).start();
    web.script(0, "/slow.js", ScriptedReply::silence());
    let folder = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let mut running = crawl(folder.path())
        .env("TMPDIR", temporary.path())
        .args(["--seed", &web.url(0, "/"), "--output", "out", "-q"])
        .args([
            "--render",
            "on",
            "--browser-sandbox",
            "off",
            "--render-tabs",
            "1",
        ])
        .args(["--delay", "0s", "--timeout", "5s", "--retries", "0"])
        .args(LONG_TIMEOUT)
        .spawn()
        .unwrap();
    let limit = Duration::from_secs(60);
    assert!(web.wait_for(limit, |log| {
        log.iter().any(|entry| entry.path == "/slow.js")
    }));
    let browser = browser_below(temporary.path()).unwrap();
    let mut kill = Command::new("kill");
    kill.args(["-KILL", &browser.to_string()]);
    assert!(kill.status().unwrap().success());
    assert!(running.wait().unwrap().success());
    let page = pages(&web, &folder);
    assert_eq!(page("/waits")["title"], "sent");
    assert_eq!(page("/waits")["render"]["error"], "browser_crashed");
    assert_eq!(page("/good")["title"], "done");
}

#[test]
fn a_program_that_is_no_browser_is_given_up() {
    let web = site(&[("/1", DONE), ("/2", DONE), ("/3", DONE), ("/4", DONE)]).start();
    for program in ["#!/bin/sh\necho no display >&2\nexit 3\n", "not a program"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("browser");
        fs::write(&path, program).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let output = crawl(folder.path())
            .args([
                "--seed",
                &web.url(0, "/"),
                "--output",
                "out",
                "--delay",
                "0s",
            ])
            .args(["--render", "on", "--browser-sandbox", "off", "--browser"])
            .arg(&path)
            .output()
            .unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{log}");
        let warnings = log.matches("a page could not be rendered").count();
        assert_eq!(warnings, 1, "{log}");
        assert!(log.contains("the browser failed 3 times in a row"), "{log}");
        let summary = "5 pages read as sent, because rendering failed (browser missing 5)";
        assert!(log.contains(summary), "{log}");
        assert!(log.contains(&*path.to_string_lossy()), "{log}");
        let page = pages(&web, &folder);
        for path in ["/", "/1", "/2", "/3", "/4"] {
            assert_eq!(page(path)["render"]["error"], "browser_missing", "{path}");
        }
        assert_eq!(page("/4")["title"], "sent");
    }
}

#[test]
fn a_browser_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for (browser, message) in [
        (
            Some("/no/such/browser"),
            "there is no browser at /no/such/browser",
        ),
        (None, "no browser found"),
    ] {
        let mut command = crawl(folder.path());
        match browser {
            Some(path) => command.args(["--browser", path]),
            None => command
                .env_remove("CRAWL_BROWSER")
                .env("PATH", folder.path()),
        };
        let output = command
            .args([
                "--seed",
                "http://127.0.0.1:9/",
                "--output",
                "out",
                "--render",
                "auto",
            ])
            .output()
            .unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{log}");
        assert!(log.contains(message), "{log}");
        assert!(log.contains("hint: install chromium"), "{log}");
        assert!(!folder.path().join("out").exists());
    }
}

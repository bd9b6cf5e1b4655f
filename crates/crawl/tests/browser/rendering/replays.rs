//! Replays of crawls whose pages were rendered.

use std::fs;
use std::process::Output;

use crawl_testweb::{HttpAnswer, TestWeb};
use serde_json::Value;
use tempfile::TempDir;

use super::{crawl, json, render, rows, script};

/// Replays the crawl in `out` into another folder, and returns the report.
fn replay(folder: &TempDir, to: &str, args: &[&str]) -> Value {
    let base = [
        "replay",
        "out",
        "--output",
        to,
        "--json",
        "--browser-sandbox",
        "off",
    ];
    let mut command = crawl(folder.path());
    command.args(base).args(args);
    report(&command.output().unwrap())
}

fn report(output: &Output) -> Value {
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Starts a web of two hosts. Pages of the first host show the time, a random number and data from
/// both hosts. Each page also has three more scripts: a disallowed one, a missing one, and one of
/// the second host. The script of another page never finishes.
fn site() -> TestWeb {
    let web = TestWeb::scripted(2)
        .robots(0, "User-agent: *\nDisallow: /private/\n")
        .start();
    let show = "const show = (text) => document.body.insertAdjacentHTML('beforeend', '<p>' + text);
        const get = (url) => fetch(url).then((answer) => answer.text()).catch(() => 'none');";
    let app = format!(
        "{show} show(Date.now() + ' ' + Math.random());
         Promise.all([get('/data.json'), get('{}'), get('/private/data.json')])
           .then((all) => show(all.join(' ')));
         setTimeout(() => get('/late.json').then(show), 700);",
        web.url(1, "/data.json"),
    );
    let page = format!(
        "<title>Tea</title><script src=/app.js></script><script src='{}'></script>\
         <script src=/private/a.js></script><script src=/missing.js></script>",
        web.url(1, "/other.js"),
    );
    let endless = "<title>Sent</title><script>for (;;);</script>";
    let links = "<a href=/endless>x</a><a href=/two>x</a>";
    web.script(0, "/", HttpAnswer::html(&format!("{links}<body>{page}")));
    web.script(0, "/two", HttpAnswer::html(&format!("<body>{page}")));
    web.script(0, "/endless", HttpAnswer::html(endless));
    let body = format!("addEventListener('DOMContentLoaded', () => {{ {app} }});");
    web.script(0, "/app.js", script(&body));
    web.script(0, "/data.json", json("[1]"));
    web.script(0, "/late.json", json("[3]"));
    web.script(1, "/data.json", json("[2]"));
    let other = "addEventListener('load', () => { document.title += ' and cake'; });";
    web.script(1, "/other.js", script(other));
    web
}

#[test]
fn a_replay_renders_the_same_pages_without_a_request() {
    let web = site();
    let args = [
        "--render",
        "on",
        "--allow-private",
        "--delay",
        "50ms",
        "--render-timeout",
        "10s",
    ];
    let folder = render(&web, &args);
    let failed = rows(&folder, "pages.jsonl");
    let failed = failed
        .iter()
        .filter(|page| page["render"]["error"] == "render_timeout");
    assert_eq!(failed.count(), 1);
    let connections = web.connections();
    for name in ["one", "other"] {
        let found = replay(&folder, name, &[]);
        assert_eq!(found["difference"], Value::Null, "{found}");
        assert_eq!(found["settings"], serde_json::json!([]), "{found}");
        assert_eq!(found["not_archived"], 0, "{found}");
        let rendered = &found["rendered"];
        assert_eq!(rendered["differences"], serde_json::json!([]), "{rendered}");
        assert_eq!(rendered["same"], 2, "{rendered}");
    }
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    for file in ["pages.jsonl", "requests.jsonl", "excluded.jsonl"] {
        let [one, other] = ["one", "other"].map(|name| read(&format!("{name}/{file}")));
        assert_eq!(one, other, "{file}");
    }
    // A replay with another browser setting, such as a shorter page time, renders pages
    // differently.
    let found = replay(&folder, "shorter", &["--render-time", "500ms"]);
    assert_eq!(found["settings"].as_array().unwrap().len(), 1, "{found}");
    let late = read("shorter/requests.jsonl");
    assert!(!late.contains("/late.json") && late.contains("/other.js"));
    // Without a browser, a replay reads the archived pages.
    let mut command = crawl(folder.path());
    command
        .env_remove("CRAWL_BROWSER")
        .env("PATH", folder.path());
    let args = ["replay", "out", "--output", "archived", "--json"];
    let found = report(&command.args(args).output().unwrap());
    assert_eq!(found["difference"], Value::Null, "{found}");
    assert_eq!(found["rendered"]["from_archive"], 2, "{found}");
    assert_eq!(
        found["rendered"]["no_browser"], "no browser found",
        "{found}"
    );
    assert_eq!(web.connections(), connections);
}

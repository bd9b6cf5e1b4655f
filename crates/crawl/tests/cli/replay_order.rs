//! Replays reproduce the exact order of requests: with several hosts without gaps, in later rounds,
//! and in crawls that were killed and resumed.

use crawl_testweb::{HttpAnswer, ReplySequence, ScriptedReply, TestWeb};
use serde_json::{Value, json};

use crate::harness::{Cmd, Dir, MAX_WAIT, setup};

const HOSTS: u32 = 5;

/// Starts a web of hosts that link to each other, with servers that behave in various ways, and
/// with duplicate pages.
fn web(seed: u64, pages: u64) -> TestWeb {
    let web = TestWeb::builder()
        .seed(seed)
        .hosts(HOSTS)
        .pages(pages)
        .start();
    let busy = ReplySequence::from(HttpAnswer::of(503).header("retry-after", "0"));
    web.script(
        1,
        "/busy",
        busy.then(HttpAnswer::html("<a href=/late>late</a>")),
    );
    let failing = ReplySequence::from(HttpAnswer::of(500)).then(HttpAnswer::of(502));
    web.script(1, "/late", failing.then(HttpAnswer::html("late")));
    web.script(2, "/moved", HttpAnswer::redirect(302, "/there"));
    web.script(2, "/there", HttpAnswer::html("there"));
    web.script(3, "/broken", ScriptedReply::reset());
    let cut = ScriptedReply::short_body(&HttpAnswer::html("<a href=/x>cut"), 9);
    web.script(4, "/cut", cut);
    let urls = [(1, "/busy"), (2, "/moved"), (3, "/broken"), (4, "/cut")];
    let mut links: String = urls
        .map(|(host, path)| format!("<a href={}>x</a>", web.url(host, path)))
        .concat();
    for host in 0..HOSTS {
        links += &format!("<a href={}>x</a>", web.url(host, "/months/1"));
        // Add pages with the same text. Each page links to two of the others and to the root.
        for month in 1..40 {
            let html = format!(
                "<p>no events <a href=/months/{}>next</a><a href=/months/{}>later</a><a href=/>up</a>",
                month + 1,
                2 * month
            );
            web.script(host, &format!("/months/{month}"), HttpAnswer::html(&html));
        }
    }
    web.script(0, "/odd", HttpAnswer::html(&links));
    web
}

/// Returns the arguments of a crawl of all hosts, with no delay between requests.
fn crawl(web: &TestWeb) -> Vec<String> {
    let quick = "--output c --delay 0s --delay-factor 0 --per-host 4 --progress off";
    let mut args: Vec<String> = quick.split(' ').map(str::to_owned).collect();
    let roots = (0..web.hosts()).map(|host| web.url(host, "/"));
    for seed in roots.chain([web.url(0, "/odd")]) {
        args.extend(["--seed".to_owned(), seed]);
    }
    args
}

fn args(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

/// Returns the requests ordered by their ends, with times, host, URL and result.
fn requests(dir: &Dir, name: &str) -> Vec<String> {
    let rows = dir.rows(&format!("{name}/requests.jsonl"));
    let line = |row: &Value| {
        let columns = ["url", "purpose", "status", "failure", "start", "end"];
        columns.map(|name| row[name].to_string()).join(" ")
    };
    rows.iter().map(line).collect()
}

/// Replays the crawl and compares the requests.
fn check(dir: &Dir, cmd: &Cmd, web: &TestWeb) {
    web.take_log();
    let again = cmd.run(&["replay", "c", "--output", "again", "--json"]);
    let again: Value = serde_json::from_str(&again.ok()).unwrap();
    assert_eq!(again["settings"], json!([]));
    let (sent, found) = (requests(dir, "c"), requests(dir, "again"));
    let differ = sent
        .iter()
        .zip(&found)
        .position(|(sent, found)| sent != found);
    let around = |rows: &[String]| {
        let at = differ.unwrap_or(rows.len().saturating_sub(1));
        rows[at.saturating_sub(2)..rows.len().min(at + 3)].join("\n")
    };
    assert!(
        sent == found,
        "{differ:?} of {} and {}\n{}\n\n{}\n{:#}",
        sent.len(),
        found.len(),
        around(&sent),
        around(&found),
        again["difference"]
    );
    assert_eq!(again["difference"], Value::Null, "{again:#}");
    let compared = cmd.run(&["report", "--compare", "c", "again"]).ok();
    assert!(
        compared.contains("order     the same for 5 hosts, and overall\n"),
        "{compared}"
    );
    assert_eq!(web.log(), []);
}

#[test]
fn five_hosts_without_gaps_are_fetched_in_the_same_order() {
    let (dir, cmd) = setup("order-quick");
    let web = web(5, 60);
    assert_eq!(cmd.run(&args(&crawl(&web))).code, 0);
    assert!(requests(&dir, "c").len() > 300);
    check(&dir, &cmd, &web);
}

#[test]
fn later_rounds_are_replayed_in_the_same_order() {
    let (dir, cmd) = setup("order-rounds");
    let web = web(6, 25);
    let mut all = crawl(&web);
    all.push("--recrawl".to_owned());
    for _ in 0..3 {
        let ran = cmd.run(&args(&all));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    check(&dir, &cmd, &web);
}

#[test]
fn a_crawl_that_was_killed_twice_is_replayed_in_the_same_order() {
    let (dir, cmd) = setup("order-killed");
    let web = web(7, 60);
    let all = crawl(&web);
    for asked in [60, 180] {
        let mut child = cmd.command(&args(&all)).spawn().unwrap();
        assert!(web.wait_for(MAX_WAIT, |log| log.len() > asked));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let ran = cmd.run(&args(&all));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    check(&dir, &cmd, &web);
}

//! The log: `-v` logs each exchange, `-vv` each decision with its rule.

use crawl_testweb::{HttpAnswer, ReplySequence, TestWeb};
use expect_test::{Expect, expect};
use serde_json::Value;

use crate::harness::{Dir, setup};

const ROBOTS: &str = "User-agent: *\nAllow: /docs/\nDisallow: /private/\n";

fn site() -> TestWeb {
    let web = TestWeb::builder()
        .hosts(1)
        .sitemap(false)
        .robots(0, ROBOTS)
        .start();
    let links = "<a href=/docs/a>a</a><a href=/private/b>b</a><a href=http://other.test/>c</a>\
                 <a href=/busy>d</a><a href=/ad rel=sponsored>e</a>";
    web.script(0, "/", HttpAnswer::html(links));
    web.script(0, "/docs/a", HttpAnswer::html("<title>a</title>text"));
    let busy = ReplySequence::always(HttpAnswer::of(500)).then(HttpAnswer::html("text"));
    web.script(0, "/busy", busy);
    web
}

/// Crawls the site, and returns stderr without the site's address.
fn crawl(dir: &Dir, cmd: &crate::harness::Cmd, web: &TestWeb, more: &[&str]) -> String {
    let seed = web.url(0, "/");
    let gap = [
        "--delay",
        "50ms",
        "--delay-factor",
        "0",
        "--progress",
        "off",
    ];
    let args = [&["--seed", &seed, "--output", "c"], &gap[..], more].concat();
    let ran = cmd.run(&args);
    assert!(dir.file("c/pages.jsonl").is_file(), "{}", ran.stderr);
    ran.stderr
}

/// Returns the lines about a URL, without values that differ between runs.
fn life(log: &str, web: &TestWeb, path: &str) -> String {
    let base = web.url(0, "");
    let base = base.trim_end_matches('/');
    let host = base.trim_start_matches("http://");
    let named = format!(" url=\"{base}{path}\"");
    let mut life = String::new();
    for line in log.lines().filter(|line| line.contains(&named)) {
        let words = line.split(' ').skip(1).filter(|word| !word.is_empty());
        let words = words.map(|word| match word.split_once('=') {
            Some((name @ ("start" | "end" | "for_ms"), _)) => format!("{name}=.."),
            _ => word.replace(base, "").replace(host, "HOST"),
        });
        life.push_str(&words.collect::<Vec<_>>().join(" "));
        life.push('\n');
    }
    life
}

#[test]
fn the_steps_of_each_url_are_logged_in_order_with_deciding_rules() {
    let (dir, cmd) = setup("life");
    let web = site();
    let log = crawl(&dir, &cmd, &web, &["-vv"]);
    let check = |path: &str, expect: Expect| expect.assert_eq(&life(&log, &web, path));
    check(
        "/docs/a",
        expect![[r#"
            TRACE found url="/docs/a" found_on="/" depth=1 state="pending"
            TRACE leased url="/docs/a" attempt=1
            TRACE robots.txt allows it url="/docs/a" rule="Allow: /docs/" line=2
            TRACE due url="/docs/a" purpose="page" gap_asked=50 why="delay" host=HOST
            DEBUG answered 200 bytes=20 url="/docs/a" purpose="page" gap_asked=50 why="delay" status=200 address="127.16.0.1" start=.. end=.. host=HOST
            TRACE host waits url="/docs/a" host=HOST for_ms=..
            TRACE read url="/docs/a" links=0
            TRACE settled url="/docs/a" status=200 change="new"
        "#]],
    );
    check(
        "/private/b",
        expect![[r#"
        TRACE found url="/private/b" found_on="/" depth=1 state="pending"
        TRACE leased url="/private/b" attempt=1
        TRACE excluded url="/private/b" reason="robots" rule="Disallow: /private/" line=3
    "#]],
    );
    check(
        "/busy",
        expect![[r#"
            TRACE found url="/busy" found_on="/" depth=1 state="pending"
            TRACE leased url="/busy" attempt=1
            TRACE robots.txt allows it url="/busy"
            TRACE due url="/busy" purpose="page" gap_asked=50 why="delay" host=HOST
            DEBUG answered 500 bytes=0 url="/busy" purpose="page" gap_asked=50 why="delay" status=500 address="127.16.0.1" start=.. end=.. host=HOST
            TRACE host waits url="/busy" host=HOST for_ms=..
            TRACE will be retried url="/busy" attempt=1 status=500
            TRACE leased url="/busy" attempt=2
            TRACE robots.txt allows it url="/busy"
            TRACE due url="/busy" purpose="page" gap_asked=50 why="delay" host=HOST
            DEBUG answered 200 bytes=4 url="/busy" purpose="page" gap_asked=50 why="delay" status=200 address="127.16.0.1" start=.. end=.. host=HOST
            TRACE host waits url="/busy" host=HOST for_ms=..
            TRACE read url="/busy" links=0
            TRACE settled url="/busy" status=200 change="new"
        "#]],
    );
    check(
        "/robots.txt",
        expect![[r#"
            TRACE due url="/robots.txt" purpose="robots" gap_asked=0 why="first" host=HOST
            DEBUG answered 200 bytes=48 url="/robots.txt" purpose="robots" gap_asked=0 why="first" status=200 address="127.16.0.1" start=.. end=.. host=HOST
            TRACE host waits url="/robots.txt" host=HOST for_ms=..
            TRACE robots.txt is known url="/robots.txt" origin= status=200 state="rules"
        "#]],
    );
    for (url, why) in [
        (
            "http://other.test/",
            "state=\"excluded\" reason=\"scope\" rule=",
        ),
        (
            "/ad",
            "state=\"deferred\" reason=\"nofollow\" rule=\"rel=sponsored\"",
        ),
    ] {
        let line_of_url = log.lines().find(|line| line.contains(&format!("{url}\"")));
        assert!(line_of_url.unwrap().contains(why), "{why}: {line_of_url:?}");
    }
}

#[test]
fn one_v_has_a_line_for_each_request_with_the_fields_of_its_row() {
    let (dir, cmd) = setup("short");
    let web = site();
    let log = crawl(&dir, &cmd, &web, &["-v"]);
    assert!(!log.contains("TRACE"), "{log}");
    let lines: Vec<_> = log
        .lines()
        .filter(|line| line.contains("answered "))
        .collect();
    let rows = dir.rows("c/requests.jsonl");
    assert_eq!(lines.len(), rows.len(), "{log}");
    for (line, row) in lines.iter().zip(&rows) {
        let mut fields = row.as_object().unwrap().clone();
        // The log writes `host` last, as a field of the enclosing span, and without quotes.
        let host = fields.remove("host").unwrap();
        assert!(line.ends_with(&format!(" host={}", host.as_str().unwrap())));
        // The log omits `after`, which is only for replays, and `robots`, which is an object.
        fields.remove("after");
        fields.remove("robots");
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            let field = format!(" {name}={value}");
            assert!(line.contains(&field), "{field} in {line}");
        }
    }
    let other_lines = log.lines().filter(|line| line.contains("DEBUG")).count() - lines.len();
    assert!(other_lines <= 5, "{log}");
}

#[test]
fn each_field_is_logged_once_on_stderr_and_once_in_the_file() {
    let (dir, cmd) = setup("both");
    let web = site();
    let stderr = crawl(&dir, &cmd, &web, &["-v", "--log", "c.log"]);
    for log in [&stderr, &dir.read("c.log")] {
        let lines = log.lines().filter(|line| line.contains("answered "));
        let counts: Vec<_> = lines.map(|line| line.matches(" status=").count()).collect();
        assert!(
            !counts.is_empty() && counts.iter().all(|count| *count == 1),
            "{log}"
        );
    }
}

/// Returns the objects of a JSON log, oldest first. No file may be longer than `most`.
fn objects(dir: &Dir, names: &[&str], most: usize) -> Vec<Value> {
    let mut objects = Vec::new();
    for name in names {
        let text = dir.read(name);
        assert!(text.len() <= most || text.lines().count() == 1, "{name}");
        assert!(text.ends_with('\n'), "{name}");
        objects.extend(
            text.lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap()),
        );
    }
    objects
}

#[test]
fn a_log_of_objects_has_the_fields_of_the_rows_in_files_of_bounded_size() {
    let (dir, cmd) = setup("json-log");
    let web = site();
    let whole = ["-vv", "--log", "whole", "--log-format", "json"];
    crawl(&dir, &cmd, &web, &whole);
    let rows = dir.rows("c/requests.jsonl");
    let all = objects(&dir, &["whole"], usize::MAX);
    let answered = all.iter().filter(|object| {
        let message = object["message"].as_str().unwrap();
        message.starts_with("answered ")
    });
    let answered: Vec<_> = answered.collect();
    assert_eq!(answered.len(), rows.len());
    for (object, row) in answered.iter().zip(&rows) {
        assert_eq!(object["level"], "DEBUG");
        for name in ["host", "purpose", "status", "gap_asked", "why", "start"] {
            assert_eq!(object[name], row[name], "{object}");
        }
    }
    std::fs::remove_dir_all(dir.file("c")).unwrap();
    // Files of earlier runs. `log` is full, so the next line rotates the files, and `log.2` is
    // removed because of `--log-keep`.
    let full = format!("{{\"at\":\"{}\"}}\n", "x".repeat(65_500));
    for (name, text) in [
        ("log", &*full),
        ("log.1", "{\"at\":\"1\"}\n"),
        ("log.2", "{\"at\":\"2\"}\n"),
    ] {
        dir.write(name, text);
    }
    let bounds = ["--log-max-size", "64KiB", "--log-keep", "2"];
    let log = ["-vv", "--log", "log", "--log-format", "json"];
    crawl(&dir, &cmd, &web, &[&log[..], &bounds].concat());
    let lines_kept = objects(&dir, &["log.2", "log.1", "log"], 64 << 10);
    assert!(!dir.file("log.3").exists());
    assert_eq!(
        (&lines_kept[0]["at"], dir.read("log.1")),
        (&Value::from("1"), full)
    );
    let is_dated = |object: &Value| object["at"].is_string();
    assert!(
        lines_kept.len() > 3 && lines_kept.iter().all(is_dated),
        "{lines_kept:?}"
    );
}

#[test]
fn a_log_that_would_keep_next_to_nothing_is_refused() {
    let (_dir, cmd) = setup("small-log");
    let seed = [
        "--seed",
        "http://127.0.0.1:1/",
        "--output",
        "c",
        "--log",
        "log",
    ];
    for size in ["0", "65535"] {
        let ran = cmd.run(&[&seed[..], &["--log-max-size", size]].concat());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("is less than 64KiB"), "{}", ran.stderr);
        assert!(ran.stderr.contains("unlimited"), "{}", ran.stderr);
    }
}

#[test]
fn an_unwritable_log_is_reported_once() {
    let (dir, cmd) = setup("full-log");
    let shown = crawl(&dir, &cmd, &site(), &["--log", "/dev/full"]);
    let error = "can't write to the log `/dev/full`: No space left on device";
    assert_eq!(shown.matches(error).count(), 1, "{shown}");
}

#[test]
fn a_log_of_a_crawl_that_is_killed_has_whole_lines() {
    let (dir, cmd) = setup("killed-log");
    let web = TestWeb::builder().seed(5).hosts(1).pages(200).start();
    let seed = web.url(0, "/");
    let quick = ["--seed", &seed, "--output", "c", "--delay", "0s"];
    let log = ["--log", "log", "--log-format", "json", "-vv"];
    let bounds = ["--log-max-size", "64KiB", "--log-keep", "1000"];
    let crawl = cmd.start(&[&quick[..], &log, &bounds].concat());
    crawl.until("settled");
    crawl.signal("KILL");
    crawl.end();
    let numbered = |number: u32| format!("log.{number}");
    let mut names: Vec<_> = (1..)
        .map(numbered)
        .take_while(|name| dir.file(name).exists())
        .collect();
    names.reverse();
    names.extend(dir.file("log").exists().then(|| "log".to_owned()));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(!objects(&dir, &names, 64 << 10).is_empty());
}

#[test]
fn without_v_nothing_is_logged() {
    let (dir, cmd) = setup("quiet");
    let log = crawl(&dir, &cmd, &site(), &[]);
    assert!(log.starts_with("finished\n"), "{log}");
}

#[test]
fn no_line_contains_a_secret_repeated_by_a_server() {
    const KEY: &str = "k3y-of-the-file";
    let (dir, cmd) = setup("secret");
    let web = TestWeb::builder().hosts(1).sitemap(false).start();
    web.script(
        0,
        "/robots.txt",
        HttpAnswer::redirect(302, &format!("/{KEY}.txt")),
    );
    web.script(0, &format!("/{KEY}.txt"), HttpAnswer::text("Disallow:"));
    let page = format!(
        "<title>{KEY}</title><meta name=robots content='nofollow, {KEY}'>\
         <a href=/?{KEY}>{KEY}</a><a href='http://{KEY}'>x</a><a href=/next>y</a>"
    );
    web.script(0, "/", HttpAnswer::html(&page));
    web.script(0, "/to", HttpAnswer::redirect(302, &format!("/?{KEY}")));
    web.script(
        0,
        "/coded",
        HttpAnswer::html("x").header("content-encoding", KEY),
    );
    let host = web.address(0).ip().to_string();
    let config = format!("[site.\"{host}\".headers]\nX-Key = \"{KEY}\"\n");
    dir.write("c.toml", &config);
    let (to, coded) = (web.url(0, "/to"), web.url(0, "/coded"));
    let more = [
        "-vv", "--config", "c.toml", "--log", "log", "--seed", &to, "--seed", &coded,
    ];
    let log = crawl(&dir, &cmd, &web, &more);
    for (shown, name) in [(log, "stderr"), (dir.read("log"), "the file")] {
        assert!(shown.contains("settled"), "{name}: {shown}");
        assert!(shown.contains("[redacted]"), "{name}: {shown}");
        assert!(!shown.contains(KEY), "{name}: {shown}");
    }
}

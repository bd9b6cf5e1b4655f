//! Broken links, and what changed.

use crawl_testweb::{Answer, Mix, TestWeb};
use serde_json::{Value, json};

use crate::harness::{Cmd, setup};

/// A site with a page that is gone, linked in two places, once by way of a redirect.
fn site() -> TestWeb {
    TestWeb::builder()
        .pages(1)
        .mix(Mix::plain())
        .sitemap(false)
        .robots(0, "User-agent: *\nDisallow: /barred\n")
        .script(
            0,
            "/",
            Answer::html("<a href=/a>a</a><a href=/gone>our <i>news</i></a><a href=/barred>b</a>"),
        )
        .script(
            0,
            "/a",
            Answer::html("<a href=/moved rel=nofollow>x</a><a href=/moved>there</a>"),
        )
        .script(0, "/moved", Answer::redirect(302, "/gone"))
        .script(0, "/gone", Answer::of(404))
        .start()
}

fn crawl(cmd: &Cmd, web: &TestWeb, dir: &str, more: &[&str]) {
    let seed = web.url(0, "/");
    let args = [
        "--seed",
        &seed,
        "--output",
        dir,
        "--delay",
        "0s",
        "--delay-factor",
        "0",
    ];
    let ran = cmd.run(&[&args[..], &["--progress", "off"], more].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// What is listed as JSON, and as text with the host left out.
fn broken(cmd: &Cmd, web: &TestWeb, dir: &str) -> (Value, String) {
    let json = cmd.run(&["report", dir, "--broken", "--json"]).ok();
    let text = cmd.run(&["report", dir, "--broken"]).ok();
    let text = text.replace(&web.url(0, ""), "");
    (serde_json::from_str(&json).unwrap(), text)
}

#[test]
fn a_broken_page_is_listed_with_each_link_to_it() {
    let (_dir, cmd) = setup("broken");
    let web = site();
    let all = "1 page is broken, 3 links lead there\n\n404  /gone\n     on /  \"our news\"\n     \
               on /a  \"there\"\n        by way of /moved\n     on /a  \"x\"  (nofollow)\n        \
               by way of /moved\n";
    for (dir, more, source) in [
        ("a", &[][..], "archive"),
        ("l", &["--links", "on"], "links.jsonl"),
        ("w", &["--links", "on", "--warc", "off"], "links.jsonl"),
    ] {
        crawl(&cmd, &web, dir, more);
        let (json, text) = broken(&cmd, &web, dir);
        // Without an archive a redirect is known by what it led to first.
        let expected = match dir {
            "w" => "1 page is broken, 1 link leads there\n\n404  /gone\n     on /  \"our news\"\n",
            _ => all,
        };
        assert_eq!(
            (json["source"].as_str(), text.as_str()),
            (Some(source), expected)
        );
        assert_eq!(
            json["pages"][0]["links"].as_array().unwrap().len() as u64,
            json["links"]
        );
    }
    crawl(&cmd, &web, "n", &["--warc", "off"]);
    let (json, text) = broken(&cmd, &web, "n");
    assert_eq!(json["source"], "via");
    assert!(
        text.contains("\n     on /\n\nneither links nor an archive were kept"),
        "{text}"
    );
}

#[test]
fn a_broken_page_fails_a_build_where_that_is_asked_for() {
    let (dir, cmd) = setup("ci");
    let web = site();
    crawl(&cmd, &web, "c", &[]);
    for (flags, code) in [
        (&[][..], 0),
        (&["--broken"], 0),
        (&["--fail-on-broken"], 1),
        (&["--broken", "--fail-on-broken"], 1),
        (&["--changes", "--fail-on-broken", "--json"], 1),
        (&["--html", "r.html", "--fail-on-broken"], 1),
    ] {
        let ran = cmd.run(&[&["report", "c"], flags].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (code, ""), "{flags:?}");
    }
    assert!(dir.read("r.html").contains("<h2>Broken pages</h2>"));
    let report: Value = serde_json::from_str(&dir.read("c/report.json")).unwrap();
    assert_eq!(report["broken"]["pages"], 1);
    assert_eq!(report["broken"]["first"][0]["url"], web.url(0, "/gone"));

    // Once it is mended the next round is fine.
    web.script(0, "/gone", Answer::html("back"));
    crawl(&cmd, &web, "c", &["--recrawl"]);
    let ran = cmd.run(&["report", "c", "--broken", "--fail-on-broken"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "no page is broken\n"));
    let changes = cmd.run(&["report", "c", "--changes", "--json"]).ok();
    let changes: Value = serde_json::from_str(&changes).unwrap();
    assert_eq!(changes["round"], 2);
    assert_eq!(changes["new"], json!([web.url(0, "/gone")]));
    let text = cmd.run(&["report", "c", "--changes"]).ok();
    assert!(text.starts_with("round 2: 1 new, 0 changed, "), "{text}");
}

#[test]
fn lists_that_exclude_each_other_are_refused() {
    let (dir, cmd) = setup("lists");
    for flags in [
        ["--broken", "--changes"],
        ["--broken", "--html=x"],
        ["--changes", "--html=x"],
    ] {
        let ran = cmd.run(&[&["report", "c"], &flags[..]].concat());
        assert_eq!(ran.code, 2, "{flags:?}");
    }
    let ran = cmd.run(&["report", "c", "--broken"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains("\nhint: "));
    assert!(!dir.file("x").exists());
}

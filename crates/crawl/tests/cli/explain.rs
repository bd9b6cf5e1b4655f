//! `crawl explain` on real crawls.

use std::time::Duration;

use crawl_testweb::{HttpAnswer, ScriptedReply, TestWeb, TestWebBuilder};

use crate::harness::{Cmd, MAX_WAIT, setup};

const QUICK: [&str; 6] = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];

fn explained(cmd: &Cmd, url: &str) -> String {
    let text = cmd.run(&["explain", "c", url]).ok();
    text.lines().skip(1).collect::<Vec<_>>().join("\n")
}

fn web() -> TestWebBuilder {
    TestWeb::builder().hosts(1).sitemap(false)
}

#[test]
fn a_resource_not_fetched_is_explained_as_a_resource() {
    let (_dir, cmd) = setup("resource");
    let page = "<a href=/b>b</a><form action=/find><input name=q></form>";
    let page_with_resources =
        "<p>tea</p><img alt=cup src=img/cup.png><link rel=pingback href=/next>";
    let web = web()
        .script(0, "/", HttpAnswer::html(page))
        .script(0, "/b", HttpAnswer::html(page_with_resources))
        .start();
    let seed = web.url(0, "/");
    let ran = cmd.run(&[&[&*seed, "--output", "c"], &QUICK[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let image = explained(&cmd, &web.url(0, "/img/cup.png"));
    let reason = format!(
        "not fetched: it is a resource that a page is displayed with, and --resources off is in force\n  mentioned by: <img src> on {}\n",
        web.url(0, "/b")
    );
    assert!(image.starts_with(&reason), "{image}");
    let form = explained(&cmd, &web.url(0, "/find"));
    assert!(
        form.starts_with("not fetched: it is the target of a form, and --forms off is in force\n"),
        "{form}"
    );
    let next = explained(&cmd, &web.url(0, "/next"));
    assert!(
        next.contains(": it is a link that is not followed\n"),
        "{next}"
    );
    let nothing = explained(&cmd, &web.url(0, "/nothing"));
    assert!(
        nothing.starts_with("unknown: it was not a seed, and no page read so far mentions it\n"),
        "{nothing}"
    );
    // The JSON names the setting because of which the resource was not fetched.
    let json = cmd.run(&["explain", "c", &web.url(0, "/img/cup.png"), "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.ok()).unwrap();
    assert_eq!(json["named_by"]["kind"], "resource");
    assert_eq!(json["named_by"]["setting"], "--resources off");
}

#[test]
fn the_next_visit_of_a_page_is_explained() {
    let (_dir, cmd) = setup("again");
    let web = web()
        .script(
            0,
            "/",
            HttpAnswer::html("<a href=/b>b</a>").header("etag", "\"a\""),
        )
        .script(0, "/b", HttpAnswer::html("b"))
        .start();
    let (seed, b) = (web.url(0, "/"), web.url(0, "/b"));
    let words = [&[&*seed, "--output", "c", "--recrawl"], &QUICK[..]].concat();
    let crawl = |more: &[&str]| {
        let ran = cmd.run(&[&words[..], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    };
    crawl(&[]);
    let next = "  next visit: in the next round (--recrawl)\n";
    assert!(
        explained(&cmd, &b).contains(next),
        "{}",
        explained(&cmd, &b)
    );
    // The page is unchanged on the second visit, and the next visit is due at least an hour later.
    crawl(&["--revisit-least", "1h"]);
    let later = explained(&cmd, &b);
    assert!(later.contains("  next visit: from 20"), "{later}");
    assert!(later.contains(" on (--recrawl)\n"), "{later}");
}

#[test]
fn the_explanation_agrees_with_the_index() {
    let (_dir, cmd) = setup("explain-index");
    let page = |title: &str, more: &str| {
        let text = format!("This page of the garden has enough words, and its name is {title}.");
        HttpAnswer::html(&format!(
            "<title>{title}</title>{more}<main><h1>{title}</h1><p>{text}</p></main>"
        ))
    };
    let canonical = |path: &str| format!("<link rel=canonical href={path}>");
    let links = "<a href=/lead>a</a><a href=/d1>b</a><a href=/d2>c</a><a href=/copy>d</a>";
    let web = web()
        .script(0, "/", page("home", links).header("etag", "\"a\""))
        .script(0, "/lead", page("lead", &canonical("/gone")))
        .script(0, "/d1", page("twin", ""))
        .script(0, "/d2", page("twin", ""))
        .script(0, "/copy", page("copy", &canonical("/")))
        .start();
    let (seed, url) = (web.url(0, "/"), |path: &str| web.url(0, path));
    let words = [
        &[&*seed, "--output", "c", "--index", "on", "--recrawl"],
        &QUICK[..],
    ]
    .concat();
    for answer in [None, Some(HttpAnswer::of(304))] {
        if let Some(answer) = answer {
            web.script(0, "/", answer.header("etag", "\"a\""));
        }
        let ran = cmd.run(&words);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let index_line = |path: &str| {
        let text = explained(&cmd, &url(path));
        let line = text.lines().find(|line| line.starts_with("  index: "));
        line.map(str::to_owned).unwrap_or_default()
    };
    // The last answer for this page was 304.
    assert!(explained(&cmd, &url("/")).contains("  answer: 304"));
    assert_eq!(index_line("/"), "  index: yes");
    let lead = format!(
        "  index: yes; no page is indexed at its canonical URL {}",
        url("/gone")
    );
    assert_eq!(index_line("/lead"), lead);
    let copy = format!("  index: no; replaced by {seed} (canonical: {seed})");
    assert_eq!(index_line("/copy"), copy);
    let twins = [("/d1", "/d2"), ("/d2", "/d1")].map(|(path, other)| {
        let replaced = format!(
            "  index: no; replaced by {} (same title and text)",
            url(other)
        );
        let line = index_line(path);
        assert!(line == "  index: yes" || line == replaced, "{line}");
        line == replaced
    });
    assert_eq!(twins.iter().filter(|is_replaced| **is_replaced).count(), 1);
    let json = cmd.run(&["explain", "c", &url("/copy"), "--json"]).ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["index"]["state"], "replaced");
    assert_eq!(json["index"]["by"], *seed);
}

#[test]
fn a_barred_url_is_explained_in_a_round_that_was_interrupted() {
    let (_dir, cmd) = setup("interrupted");
    let rules = "User-agent: *\nDisallow: /secret\n";
    let web = web()
        .robots(0, rules)
        .script(
            0,
            "/",
            HttpAnswer::html("<a href=/b>b</a><a href=/secret>s</a>"),
        )
        .script(0, "/b", HttpAnswer::html("b"))
        .start();
    let (seed, secret) = (web.url(0, "/"), web.url(0, "/secret"));
    let words = [&[&*seed, "--output", "c"], &QUICK[..]].concat();
    let ran = cmd.run(&words);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let by = "robots, by `Disallow: /secret` on line 2\n";
    let barred = explained(&cmd, &secret);
    assert!(barred.starts_with("not fetched\n"), "{barred}");
    assert!(barred.contains(&format!("  reason: {by}")), "{barred}");
    let next = "  next visit: in the next round (--recrawl)\n";
    assert!(barred.contains(next), "{barred}");

    // The next round is interrupted before it has fetched anything.
    web.take_log();
    let words = [&words[..], &["--recrawl", "--robots-max-age", "1s"]].concat();
    for path in ["/robots.txt", "/"] {
        let late = ScriptedReply::from(HttpAnswer::of(200)).after(Duration::from_secs(3600));
        web.script(0, path, late);
    }
    let running = cmd.start(&words);
    assert!(web.wait_for(MAX_WAIT, |log| !log.is_empty()));
    running.signal("KILL");
    running.end();
    let pending = explained(&cmd, &secret);
    assert!(
        pending.starts_with("waiting to be visited again\n"),
        "{pending}"
    );
    assert!(
        pending.contains(&format!("  not fetched before: {by}")),
        "{pending}"
    );
}

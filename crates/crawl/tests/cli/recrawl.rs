//! Revisits of pages that are due.

use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};

use crate::harness::{Dir, setup};

const QUICK: [&str; 6] = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];

fn changes(dir: &Dir, round: u64) -> Vec<(String, String)> {
    let rows = dir.rows("c/pages.jsonl");
    let rows = rows.iter().filter(|row| row["round"] == round);
    let path = |url: &str| url.splitn(4, '/').last().unwrap_or_default().to_owned();
    let mut changes: Vec<_> = rows
        .map(|row| {
            let change = row["change"].as_str().unwrap_or("-").to_owned();
            (path(row["url"].as_str().unwrap()), change)
        })
        .collect();
    changes.sort();
    changes
}

#[test]
fn one_command_crawls_and_then_revisits() {
    let (dir, cmd) = setup("recrawl");
    let page = |text: &str| HttpAnswer::html(text).header("etag", &format!("\"{}\"", text.len()));
    let web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(0, "/", HttpAnswer::html("<a href=/a>a</a><a href=/b>b</a>"))
        .script(0, "/a", page("a"))
        .script(0, "/b", page("b"))
        .start();
    let seed = web.url(0, "/");
    let mut args = vec!["--seed", &seed, "--output", "c", "--recrawl"];
    args.extend(QUICK);
    let first = cmd.run(&args);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert!(!first.stderr.contains("round:"), "{}", first.stderr);

    web.script(0, "/a", page("another"));
    web.script(0, "/b", HttpAnswer::of(404));
    let second = cmd.run(&args);
    assert_eq!(second.code, 0, "{}", second.stderr);
    let summary = "round:    2: 0 new, 1 changed, 1 same, 1 gone, 1 broken; ";
    assert!(second.stderr.contains(summary), "{}", second.stderr);
    let expected = [("", "same"), ("a", "changed"), ("b", "gone")];
    let expected = expected.map(|(path, change)| (path.to_owned(), change.to_owned()));
    assert_eq!(changes(&dir, 2), expected);
    let report: serde_json::Value = serde_json::from_str(&dir.read("c/report.json")).unwrap();
    assert_eq!(report["pages"]["rounds"]["2"]["gone"], 1);

    // `--recrawl` is not remembered: the crawl is finished.
    web.take_log();
    let alone = cmd.run(&["--output", "c", "--progress", "off"]);
    assert_eq!(alone.code, 0, "{}", alone.stderr);
    assert!(web.take_log().is_empty());

    let audit = cmd.run(&["audit", "c"]);
    assert_eq!(audit.code, 0, "{}{}", audit.stdout, audit.stderr);
    let explained = cmd.run(&["explain", "c", &web.url(0, "/b")]);
    for line in ["  round 2: gone\n", "  visits: 2\n"] {
        assert!(explained.stdout.contains(line), "{}", explained.stdout);
    }
}

#[test]
fn bounds_that_contradict_are_refused() {
    let (_dir, cmd) = setup("bounds");
    let ran = cmd.run(&[
        "--seed",
        "http://127.0.0.1/",
        "--revisit-least",
        "2d",
        "--revisit-most",
        "1d",
    ]);
    assert_eq!(ran.code, 2);
    let error = "error: --revisit-least 2d is more than --revisit-most 1d\n";
    assert!(ran.stderr.starts_with(error), "{}", ran.stderr);
}

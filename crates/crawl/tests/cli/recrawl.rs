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
fn a_round_fetches_urls_that_the_scope_excluded_and_now_allows() {
    let (dir, cmd) = setup("lifted-exclusions");
    let home = "<a href=/a>a</a><a href=/b/1>1</a><a href=/b/2 rel=nofollow>2</a><a href=/c>c</a>";
    let web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(0, "/", HttpAnswer::html(home).header("etag", "\"1\""))
        .script(0, "/a", HttpAnswer::html("a"))
        .script(0, "/b/1", HttpAnswer::html("<a href=/b/3>3</a>"))
        .script(0, "/b/3", HttpAnswer::html("3"))
        .start();
    let seed = web.url(0, "/");
    let round = |exclude: &[&str]| {
        let args = ["--seed", &seed, "--output", "c", "--recrawl"];
        let each_round = ["--revisit-most", "1ms"];
        let ran = cmd.run(&[&args[..], exclude, &each_round, &QUICK].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let paths = web.take_log().into_iter().map(|entry| entry.path);
        let is_page = |path: &String| !matches!(path.as_str(), "/robots.txt" | "/sitemap.xml");
        let mut pages: Vec<_> = paths.filter(is_page).collect();
        pages.sort();
        pages
    };
    let both = ["--exclude", "/b/", "--exclude", "/c"];
    assert_eq!(round(&both), ["/", "/a"]);
    let excluded = |path: &str| {
        let rows = dir.rows("c/excluded.jsonl").into_iter();
        let rows = rows.filter(|row| row["url"] == web.url(0, path));
        rows.map(|row| row["reason"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(excluded("/b/2"), ["scope"]);
    // The page that links to `/b/` is unchanged, so its links aren't found again in this round. The
    // URLs that were excluded must be fetched all the same, except `/b/2`, whose link has nofollow.
    assert_eq!(round(&["--exclude", "/c"]), ["/", "/a", "/b/1", "/b/3"]);
    let rows = dir.rows("c/pages.jsonl");
    let page = rows.iter().find(|row| row["url"] == web.url(0, "/b/1"));
    let page = page.unwrap();
    assert_eq!((&page["round"], &page["depth"]), (&2.into(), &1.into()));
    assert_eq!(page["via"], seed);
    assert_eq!(round(&both), ["/", "/a"]);
    assert_eq!(round(&["--exclude", "/c"]), ["/", "/a", "/b/1", "/b/3"]);
    assert_eq!(cmd.run(&["verify", "c"]).code, 0);
    assert_eq!(cmd.run(&["audit", "c"]).code, 0);
}

#[test]
fn a_round_follows_a_seed_s_wider_scope() {
    let (dir, cmd) = setup("wider-seed");
    let web = TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(
            0,
            "/",
            HttpAnswer::html("<a href=/a>a</a>").header("etag", "\"1\""),
        )
        .script(0, "/a", HttpAnswer::html("a"))
        .start();
    let round = |scope: &str| {
        let seed = format!(
            "{{\"url\": \"{}\", \"scope\": \"{scope}\"}}\n",
            web.url(0, "/")
        );
        dir.write("seeds.jsonl", &seed);
        let args = ["--seed-file", "seeds.jsonl", "--output", "c", "--recrawl"];
        let ran = cmd.run(&[&args[..], &QUICK].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        web.take_log().iter().any(|entry| entry.path == "/a")
    };
    assert!(!round("page"));
    assert!(round("host"));
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

//! The search index from the command line: built during a crawl, rebuilt, and searched.

use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};
use serde_json::Value;

use crate::harness::{Cmd, setup};

const QUICK: [&str; 6] = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];

fn web() -> TestWeb {
    let text = |title: &str, words: &str| {
        HttpAnswer::html(&format!("<title>{title}</title><main><p>{words}</main>"))
    };
    let links =
        "<title>Home</title><a href=/tea>first</a><a href=/coffee>second</a><a href=/no>third</a>";
    TestWeb::builder()
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(0, "/", HttpAnswer::html(links))
        .script(
            0,
            "/tea",
            text("Green tea", "Steamed leaves of the tea bush."),
        )
        .script(
            0,
            "/coffee",
            text("Coffee", "Roasted beans; no tea at all."),
        )
        .script(
            0,
            "/no",
            text("Hidden", "tea").header("x-robots-tag", "noindex"),
        )
        .start()
}

fn crawl(cmd: &Cmd, web: &TestWeb, more: &[&str]) -> String {
    let seed = web.url(0, "/");
    let mut args = vec!["--seed", &seed, "--output", "c"];
    args.extend(QUICK);
    args.extend(more);
    let ran = cmd.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stderr
}

fn paths(answer: &Value) -> Vec<String> {
    let results = answer["results"].as_array().unwrap();
    let path = |hit: &Value| {
        let url = hit["url"].as_str().unwrap();
        format!("/{}", url.splitn(4, '/').last().unwrap())
    };
    results.iter().map(path).collect()
}

#[test]
fn a_crawl_builds_an_index_and_it_answers() {
    let (dir, cmd) = setup("search");
    let web = web();
    let stderr = crawl(&cmd, &web, &["--index", "on"]);
    assert!(
        stderr.contains("  index:    3 pages (left out: noindex 1)\n"),
        "{stderr}"
    );
    let answer: Value =
        serde_json::from_str(&cmd.run(&["search", "c", "tea", "--json"]).ok()).unwrap();
    assert_eq!(paths(&answer), ["/tea", "/coffee"]);
    assert_eq!(
        (&answer["query"], &answer["total"]),
        (&"tea".into(), &2.into())
    );
    for hit in answer["results"].as_array().unwrap() {
        assert!(
            hit["title"].is_string() && hit["score"].as_f64() > Some(0.0),
            "{hit}"
        );
        assert!(hit["excerpt"].as_str().unwrap().contains("tea"), "{hit}");
    }
    let text = cmd
        .run(&["search", "c", "\"green tea\"", "--limit", "1"])
        .ok();
    let url = web.url(0, "/tea");
    let expected =
        format!("1. Green tea\n   Steamed leaves of the tea bush.\n   {url}\n\n1 page\n");
    assert_eq!(text, expected);
    let correction = cmd.run(&["search", "c", "cofee"]).ok();
    assert!(
        correction.starts_with("results for `coffee`\n\n1. Coffee\n"),
        "{correction}"
    );
    let rows = dir.rows("c/pages.jsonl");
    let hidden = rows
        .iter()
        .find(|row| row["url"] == web.url(0, "/no").as_str())
        .unwrap();
    assert_eq!(hidden["indexed"], "noindex: X-Robots-Tag: noindex");
    let explained = cmd.run(&["explain", "c", &web.url(0, "/no")]);
    let line = "  index: noindex: X-Robots-Tag: noindex\n";
    assert!(explained.stdout.contains(line), "{}", explained.stdout);
}

#[test]
fn results_are_counted_and_narrowed_by_facets() {
    let (_dir, cmd) = setup("search-facets");
    let web = web();
    crawl(&cmd, &web, &["--index", "on"]);
    let all = cmd.run(&["search", "c", "tea", "--facets"]).ok();
    let counts: Vec<_> = all
        .lines()
        .skip_while(|line| !line.ends_with("pages"))
        .collect();
    assert!(
        counts.iter().any(|line| line.starts_with("type: html (")),
        "{all}"
    );
    assert!(!cmd.run(&["search", "c", "tea"]).ok().contains("type: "));
    let none = cmd.run(&["search", "c", "tea", "--filter", "type=pdf", "--facets"]);
    assert_eq!(none.ok(), "no results\n");
    let answer = cmd
        .run(&["search", "c", "tea", "--filter", "type=html", "--json"])
        .ok();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert!(answer["total"].as_u64().unwrap() > 0);
    assert_eq!(answer.get("facets"), None);
    let refused = cmd.run(&["search", "c", "tea", "--filter", "colour=red"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("folder, version, language, type"),
        "{refused:?}"
    );
}

#[test]
fn a_search_without_results_is_not_an_error() {
    let (_dir, cmd) = setup("search-none");
    crawl(&cmd, &web(), &["--index", "on"]);
    let ran = cmd.run(&["search", "c", "zzzz", "--json"]);
    let answer: Value = serde_json::from_str(&ran.ok()).unwrap();
    assert_eq!(
        (
            &answer["total"],
            answer["results"].as_array().unwrap().len()
        ),
        (&0.into(), 0)
    );
    assert_eq!(answer["unknown"], serde_json::json!(["zzzz"]));
    let ran = cmd.run(&["search", "c", "zzzz"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, "", "no results\n")
    );
    let ran = cmd.run(&["search", "c", "??"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, "", "no results: no page contains `??`\n")
    );
}

#[test]
fn an_index_is_built_of_a_crawl_that_had_none() {
    let (dir, cmd) = setup("search-later");
    let web = web();
    crawl(&cmd, &web, &[]);
    let refused = cmd.run(&["search", "c", "tea"]);
    expect_test::expect![[r#"
        2
        error: the crawl in `c` has no search index
        hint: build one with `crawl index c`, or crawl with `--index on`"#]]
    .assert_eq(&refused.refusal(&dir));
    let ran = cmd.run(&["index", "c"]);
    let counts = "index: 3 pages (left out: noindex 1)\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (0, counts));
    assert!(cmd.run(&["search", "c", "tea"]).ok().contains("2 pages\n"));
    let ran = cmd.run(&["index", "c", "--json"]).ok();
    let result: Value = serde_json::from_str(&ran).unwrap();
    assert_eq!(
        (&result["pages"], &result["left_out"]["noindex"]),
        (&3.into(), &1.into())
    );
}

#[test]
fn a_failed_search_gives_its_reason() {
    let (dir, cmd) = setup("search-bad");
    let refused = cmd.run(&["search", "nowhere", "tea"]);
    expect_test::expect![[r#"
        2
        error: no crawl in `nowhere`
        hint: give the directory of a crawl, such as crawl-example.org"#]]
    .assert_eq(&refused.refusal(&dir));
    let web = web();
    crawl(&cmd, &web, &["--warc", "off"]);
    let refused = cmd.run(&["index", "c"]);
    expect_test::expect![[r#"
        2
        error: can't build an index: the crawl in `c` has no archive: it ran with --warc off
        hint: crawl again into another --output, with --index on or --warc on"#]]
    .assert_eq(&refused.refusal(&dir));
    let refused = cmd.run(&["index", "nowhere"]);
    assert_eq!(refused.code, 2);

    let (dir, cmd) = setup("search-old");
    crawl(&cmd, &web, &["--index", "on"]);
    let long = cmd.run(&["search", "c", &"x".repeat(100 << 10)]);
    expect_test::expect![[r#"
        2
        error: the query has 102400 bytes, and at most 4096 are read
        hint: search for a few words"#]]
    .assert_eq(&long.refusal(&dir));
    assert_eq!(cmd.run(&["search", "c", "\u{1}\u{7}"]).code, 0);
    let by = |rules: &str| {
        dir.write("rules.toml", rules);
        cmd.run(&["search", "c", "brew", "--search-rules", "rules.toml"])
    };
    let refused = by("synonyms = [['a b', 'tea']]");
    expect_test::expect![[r#"
        2
        error: --search-rules rules.toml: the synonym `a b` is not one word
        hint: docs/search.md has an example"#]]
    .assert_eq(&refused.refusal(&dir));
    assert_eq!(by("").stdout, "");
    assert!(
        by("synonyms = [['brew', 'tea']]")
            .ok()
            .contains("2 pages\n")
    );
    let missing = cmd.run(&["search", "c", "tea", "--search-rules", "none.toml"]);
    assert!(
        missing
            .stderr
            .contains("can't read --search-rules none.toml")
    );
    dir.write("long.toml", &"#".repeat((4 << 20) + 1));
    let long = cmd.run(&["search", "c", "tea", "--search-rules", "long.toml"]);
    assert!(long.stderr.contains("longer than 4194304 bytes"));
    dir.write("c/index/format.json", "{\"format\":0}");
    let refused = cmd.run(&["search", "c", "tea"]);
    expect_test::expect![[r#"
        3
        error: the search index in c/index is of format 0, and this program reads 5
        hint: rebuild it from the archive with `crawl index c`"#]]
    .assert_eq(&refused.refusal(&dir));
    assert_eq!(cmd.run(&["index", "c"]).code, 0);
    assert!(cmd.run(&["search", "c", "tea"]).ok().contains("2 pages\n"));
    dir.write("c/index/meta.json", "{");
    let damaged = cmd.run(&["search", "c", "tea"]);
    assert_eq!(damaged.code, 3, "{}", damaged.stderr);
    assert!(
        damaged.stderr.contains("is damaged: "),
        "{}",
        damaged.stderr
    );
    assert!(!damaged.stderr.contains("panicked"), "{}", damaged.stderr);
}

//! Filters on the type, size and language of documents.

use std::collections::BTreeMap;

use crawl_archive::read_place;
use crawl_archive::rows::WarcRecordLocation;
use crawl_testweb::{HttpAnswer, ScriptedReply, TestWeb};
use expect_test::expect;
use serde_json::Value;

use crate::harness::{Dir, setup};

fn site() -> TestWeb {
    let web = TestWeb::builder().pages(1).sitemap(false).start();
    let paths = [
        "/de",
        "/fr",
        "/none",
        "/a.png",
        "/a.pdf",
        "/long.pdf",
        "/short.pdf",
        "/endless",
    ];
    let links = paths.map(|path| format!("<a href={path}>x</a>"));
    let page = |language: &str, text: &str| {
        HttpAnswer::html(&format!("<html lang={language}><title>t</title>{text}"))
    };
    let file = |kind: &str, bytes: usize| {
        let answer = HttpAnswer::of(200).header("content-type", kind);
        answer.body(vec![b'%'; bytes])
    };
    web.script(0, "/", page("en", &links.concat()));
    web.script(0, "/de", page("de", "<a href=/at>x</a>"));
    web.script(0, "/at", page("de-AT", "x".repeat(20).as_str()));
    web.script(0, "/beyond", page("fr", ""));
    web.script(0, "/fr", page("fr", "<a href=/beyond>x</a>"));
    web.script(
        0,
        "/none",
        HttpAnswer::html("<title>nothing is said here</title>"),
    );
    web.script(0, "/a.png", file("image/png", 100));
    web.script(0, "/a.pdf", file("application/pdf", 500));
    web.script(0, "/long.pdf", file("application/pdf", 5_000));
    web.script(0, "/short.pdf", file("application/pdf", 5));
    web.script(0, "/endless", ScriptedReply::endless_body());
    web
}

/// Returns the pages by path, with the filter that rejected them, the bytes received and the error.
fn rows(dir: &Dir, name: &str) -> String {
    let rows = dir.rows(&format!("{name}/pages.jsonl"));
    let rows = rows.iter().map(|row| {
        let path = row["url"].as_str().unwrap().splitn(4, '/').last().unwrap();
        let word = |key: &str| row[key].as_str().unwrap_or("-").to_owned();
        let line = format!("{} {} {}", word("unwanted"), row["bytes"], word("error"));
        (path.to_owned(), line)
    });
    let rows: BTreeMap<String, String> = rows.collect();
    rows.iter()
        .map(|(path, line)| format!("/{path}: {line}\n"))
        .collect()
}

#[test]
fn unwanted_documents_have_a_row_and_no_body() {
    let (dir, cmd) = setup("wanted");
    let web = site();
    let seed = web.url(0, "/");
    let crawl = |output: &'static str, filter: &[&'static str]| {
        let quick = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];
        let ran = cmd.run(&[&["--seed", &seed, "--output", output][..], &quick, filter].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    };
    let filter = [
        "--content-type",
        "text/html",
        "--content-type",
        "application/*",
        "--language",
        "de",
        "--min-size",
        "10",
        "--max-size",
        "2kB",
        "--fail-on-partial",
        "--index",
        "on",
    ];
    crawl("c", &filter);
    expect![[r"
        /: - 192 -
        /a.pdf: - 500 -
        /a.png: content-type image/png 0 -
        /at: - 53 -
        /de: - 47 -
        /endless: max-size 2000 2000 -
        /fr: language fr 51 -
        /long.pdf: max-size 2000 0 -
        /none: - 35 -
        /short.pdf: min-size 10 0 -
    "]]
    .assert_eq(&rows(&dir, "c"));
    for row in dir.rows("c/pages.jsonl") {
        let place: WarcRecordLocation = serde_json::from_value(row["warc"].clone()).unwrap();
        let record = read_place(&dir.file("c"), &place, 1 << 20).unwrap();
        let id = format!("<urn:uuid:{}>", row["record_id"].as_str().unwrap());
        assert_eq!(record.field("WARC-Record-ID"), Some(&*id));
        let is_at = row["url"].as_str().unwrap().ends_with("/at");
        assert_eq!(row["language"] == "de-AT", is_at, "{row}");
        let is_unread = row["bytes"] == 0 || row["unwanted"] == "max-size 2000";
        assert_eq!(row["detected_type"].is_null(), is_unread, "{row}");
    }
    let hosts = dir.rows("c/hosts.jsonl");
    assert_eq!(hosts[0]["coverage"], "whole", "{hosts:?}");
    let report: Value = serde_json::from_str(&dir.read("c/report.json")).unwrap();
    let outcomes = &report["pages"]["by_outcome"];
    for (outcome, count) in [
        ("ok", 5),
        ("unwanted_type", 1),
        ("unwanted_size", 3),
        ("unwanted_language", 1),
    ] {
        assert_eq!(outcomes[outcome], count, "{outcomes}");
    }
    let explained = cmd.run(&["explain", "c", &web.url(0, "/a.png")]).ok();
    let reason = "unwanted, so its body was not kept: content-type image/png";
    assert!(explained.contains(reason), "{explained}");
    let verified = cmd.run(&["verify", "c"]).ok();
    assert!(verified.contains("defects    none"), "{verified}");
    // A search doesn't find rejected pages, and a replay lacks the bodies that were read but not
    // kept.
    assert!(!cmd.run(&["search", "c", "t"]).ok().contains("/fr"));
    let again = cmd.run(&["replay", "c", "--output", "r", "--json"]).ok();
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["settings"], Value::Array(Vec::new()));
    assert_eq!(again["unwanted"], 2);
    assert_eq!(again["withheld"], 0);
    assert_eq!(again["not_archived"], 0);

    // HTML pages are read for their links even if their type isn't wanted.
    crawl(
        "p",
        &["--content-type", "application/pdf", "--max-body", "100kB"],
    );
    let pages = rows(&dir, "p");
    for line in [
        "/: content-type text/html 192 -\n",
        "/beyond: content-type text/html",
        "/long.pdf: - 5000 -\n",
        "/a.png: content-type image/png 0 -\n",
    ] {
        assert!(pages.contains(line), "{pages}");
    }
    // A directory remembers its filters.
    let request_count = web.log().len();
    let again = cmd.run(&["--output", "p", "--progress", "off"]);
    assert_eq!(
        (again.code, web.log().len()),
        (0, request_count),
        "{}",
        again.stderr
    );
    assert!(
        dir.read("p/crawl.toml")
            .contains("content-type = [\"application/pdf\"]")
    );
}

#[test]
fn pages_a_few_links_off_the_scope_are_fetched_and_marked() {
    let (dir, cmd) = setup("hops");
    let web = TestWeb::builder().hosts(3).pages(1).start();
    let links = |urls: &[String]| {
        let links = urls.iter().map(|url| format!("<a href={url}>x</a>"));
        HttpAnswer::html(&links.collect::<String>())
    };
    let url = |host, path| web.url(host, path);
    web.script(0, "/", links(&[url(1, "/a"), url(0, "/r"), url(0, "/in")]));
    web.script(0, "/r", HttpAnswer::redirect(302, &url(1, "/r")));
    web.script(0, "/in", links(&[]));
    web.script(
        1,
        "/a",
        links(&[url(1, "/b"), url(2, "/a"), url(0, "/back")]),
    );
    web.script(1, "/r", links(&[url(2, "/r")]));
    web.script(1, "/b", links(&[url(2, "/b")]));
    web.script(2, "/a", links(&[url(2, "/b")]));
    web.script(2, "/r", links(&[url(2, "/b")]));
    web.script(0, "/back", links(&[]));
    // This page is not linked: it is in the sitemap of the host in scope.
    web.script(0, "/orphan/0.html", links(&[]));
    let seed = url(0, "/");
    let crawl = |output: &'static str, hops: &'static str| {
        let quick = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];
        let more = [
            "--allow-private",
            "--fail-on-partial",
            "--hops-off-scope",
            hops,
        ];
        web.take_log();
        let ran = cmd.run(&[&["--seed", &seed, "--output", output][..], &quick, &more].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let rows = dir.rows(&format!("{output}/pages.jsonl"));
        let rows = rows
            .iter()
            .filter(|row| row["url"] != url(0, "/sitemap.xml"));
        let mut marked_pages: Vec<String> = rows
            .map(|row| {
                let page_url = row["url"].as_str().unwrap();
                let host = (0..3)
                    .find(|host| page_url.starts_with(&url(*host, "/")))
                    .unwrap();
                let path = page_url.splitn(4, '/').last().unwrap();
                format!("{host}/{path} {}", row["hops_off_scope"])
            })
            .collect();
        marked_pages.sort_unstable();
        assert!(
            web.log_of(1)
                .iter()
                .all(|entry| entry.path != "/sitemap.xml")
        );
        marked_pages
    };
    assert_eq!(
        crawl("one", "1"),
        [
            "0/ 0",
            "0/in 0",
            "0/orphan/0.html 0",
            "0/r 0",
            "1/a 1",
            "1/r 1"
        ]
    );
    let excluded = dir.rows("one/excluded.jsonl");
    assert!(excluded.is_empty(), "{excluded:?}");
    let hosts = dir.rows("one/hosts.jsonl");
    assert!(
        hosts.len() == 2 && hosts.iter().all(|host| host["coverage"] == "whole"),
        "{hosts:?}"
    );
    let explained = cmd.run(&["explain", "one", &url(1, "/a")]).ok();
    assert!(
        explained.contains("1 link out of scope, allowed by hops-off-scope"),
        "{explained}"
    );
    assert_eq!(
        crawl("two", "2"),
        [
            "0/ 0",
            "0/back 0",
            "0/in 0",
            "0/orphan/0.html 0",
            "0/r 0",
            "1/a 1",
            "1/b 2",
            "1/r 1",
            "2/a 2",
            "2/r 2"
        ]
    );
    let audited = cmd.run(&["audit", "two"]).ok();
    assert!(audited.contains("breaches   none"), "{audited}");
    // A run with a narrower scope excludes pending URLs of an earlier run that are no longer in
    // scope.
    let more = [
        "--delay",
        "0s",
        "--max-pages",
        "2",
        "--hops-off-scope",
        "1",
        "--allow-private",
    ];
    let first = cmd.run(
        &[
            &[
                "--seed",
                &seed,
                "--output",
                "less",
                "--progress",
                "off",
                "--sitemaps",
                "off",
            ][..],
            &more,
        ]
        .concat(),
    );
    assert_eq!(first.code, 0, "{}", first.stderr);
    let then = [
        "--output",
        "less",
        "--hops-off-scope",
        "0",
        "--max-pages",
        "unlimited",
    ];
    let second = cmd.run(&[&then[..], &["--progress", "off"]].concat());
    assert_eq!(second.code, 0, "{}", second.stderr);
    let pages = dir.rows("less/pages.jsonl");
    let off = pages
        .iter()
        .filter(|row| row["hops_off_scope"] != 0)
        .count();
    let out = dir.rows("less/excluded.jsonl");
    let out = out
        .iter()
        .filter(|row| row["reason"] == "scope" && row["rule"] == "host");
    assert_eq!(off + out.count(), 2, "{pages:?}");
}

#[test]
fn contradicting_filters_are_reported_with_their_place() {
    let (dir, cmd) = setup("wanted-refused");
    dir.write(
        "bad.toml",
        "seed = [\"http://127.0.0.1/\"]\n[scope]\ncontent-type = [\"html\"]\nlanguage = [\"de_AT\"]\n",
    );
    let refused = cmd.run(&["config", "--check", "bad.toml"]);
    expect![[r"
        2
        error: bad.toml:3:17: `content-type`: `html` isn't a media type: it looks like `text/html` or `image/*`
        hint: `crawl config` prints a configuration with every key
        error: bad.toml:4:13: `language`: `de_AT` isn't a language range: it looks like `de` or `de-AT`
        hint: `crawl config` prints a configuration with every key"]]
    .assert_eq(&refused.refusal(&dir));
    dir.write(
        "bad.toml",
        "seed = [\"http://127.0.0.1/\"]\n[scope]\nmin-size = \"3MiB\"\nmax-size = \"2MiB\"\n\
         [fetch]\nmax-body = \"1MiB\"\n",
    );
    let refused = cmd.run(&["config", "--check", "bad.toml"]);
    expect![[r"
        2
        error: bad.toml:3:1: --min-size 3MiB is more than --max-size 2MiB
        hint: no document could be kept
        error: bad.toml:4:1: --max-size 2MiB is more than --max-body 1MiB
        hint: bodies are truncated at --max-body: raise it too, or remove --max-size
        error: bad.toml:3:1: --min-size 3MiB is more than --max-body 1MiB
        hint: no document could be kept"]]
    .assert_eq(&refused.refusal(&dir));
}

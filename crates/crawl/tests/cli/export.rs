//! `crawl export`: files for other search engines, static searches, tables and graphs.

use std::path::Path;
use std::process::Command;

use crawl_index::{IndexWriter, IndexedPage};
use crawl_testweb::{HttpAnswer, TestWeb};
use expect_test::{Expect, expect};
use serde_json::Value;

use crate::harness::{Cmd, Dir, MAX_WAIT, Ran, setup};

fn indexed(pages: &[(&str, &str)]) -> (Dir, Cmd) {
    let (dir, cmd) = setup("export");
    dir.write("c/pages.jsonl", "");
    let mut writer = IndexWriter::open(&dir.file("c/index")).unwrap();
    for (url, text) in pages {
        let page = IndexedPage {
            url: (*url).to_owned(),
            title: "A \"title\"".to_owned(),
            text: (*text).to_owned(),
            ..IndexedPage::default()
        };
        writer.put(&page).unwrap();
    }
    writer.commit("").unwrap();
    writer.close().unwrap();
    (dir, cmd)
}

const PAGES: [(&str, &str); 2] = [
    ("http://e.example/a", "green tea\nand \u{1b}[31mred"),
    ("http://e.example/b?q=%22", "coffee"),
];

/// Runs a command that must succeed, and returns its stdout. A summary on stderr is expected.
fn done(cmd: &Cmd, args: &[&str]) -> String {
    let ran = cmd.run(args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("pages"), "{}", ran.stderr);
    ran.stdout
}

fn refused(args: &[&str], expected: Expect) {
    let (dir, cmd) = indexed(&PAGES);
    dir.write("letters/dear.txt", "love");
    dir.write("empty/pages.jsonl", "");
    let ran = cmd.run(args);
    assert_eq!(ran.stdout, "");
    expected.assert_eq(&ran.refusal(&dir));
    assert_eq!(dir.read("letters/dear.txt"), "love");
}

#[test]
fn opensearch_lines_and_their_mapping() {
    let (dir, cmd) = indexed(&PAGES);
    assert_eq!(
        done(
            &cmd,
            &["export", "c", "--to", "opensearch", "--out", "p.ndjson"]
        ),
        ""
    );
    let rows = dir.rows("p.ndjson");
    assert_eq!(rows.len(), 4);
    let ids: Vec<_> = rows
        .iter()
        .filter_map(|row| row["index"]["_id"].as_str())
        .collect();
    assert_eq!(ids.len(), 2);
    assert!(ids.contains(&PAGES[1].0));
    let mapping: Value = serde_json::from_str(&dir.read("p.mapping.json")).unwrap();
    assert_eq!(mapping["mappings"]["properties"]["text"]["type"], "text");
}

/// `CRAWL_SEARCH_CLIENTS_PYTHON` is the Python of an environment with the clients of both search
/// engines.
#[test]
#[ignore = "needs the clients of OpenSearch and Meilisearch: cargo xtask test sets them up"]
fn the_clients_of_other_searches_make_the_same_lines() {
    let python = std::env::var_os("CRAWL_SEARCH_CLIENTS_PYTHON").unwrap();
    let (dir, cmd) = indexed(&PAGES);
    for (format, file) in [("opensearch", "o.ndjson"), ("meilisearch", "m.ndjson")] {
        done(&cmd, &["export", "c", "--to", format, "--out", file]);
    }
    let mut client = Command::new(python);
    client.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/search_clients.py"));
    for file in ["o.ndjson", "o.mapping.json", "m.ndjson", "m.settings.json"] {
        client.arg(dir.file(file));
    }
    let ran = Ran::of_command(client.arg(PAGES.len().to_string()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn meilisearch_lines_on_stdout() {
    let (dir, cmd) = indexed(&PAGES);
    let out = done(&cmd, &["export", "c", "--to", "meilisearch", "--out", "-"]);
    let rows: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().any(|row| row["text"] == PAGES[0].1));
    assert!(!dir.file("-").exists());
}

#[test]
fn a_static_search_replaces_an_earlier_one() {
    let (dir, cmd) = indexed(&PAGES);
    let export = || {
        done(
            &cmd,
            &["export", "c", "--to", "static", "--out", "out/search"],
        )
    };
    dir.write("out/about.html", "stays");
    export();
    let first = dir.read("out/search/search.json");
    export();
    assert_eq!(dir.read("out/search/search.json"), first);
    assert!(
        dir.read("out/search/index.html")
            .contains("Content-Security-Policy")
    );
    assert_eq!(dir.read("out/about.html"), "stays");
}

#[test]
fn a_static_search_holds_to_the_owners_rules() {
    let (dir, cmd) = indexed(&PAGES);
    dir.write("rules.toml", "synonyms = [['cha', 'tea']]\n");
    let export = ["export", "c", "--out", "s", "--search-rules", "rules.toml"];
    done(&cmd, &[&export[..], &["--to", "static"]].concat());
    let manifest: Value = serde_json::from_str(&dir.read("s/search.json")).unwrap();
    assert_eq!(manifest["synonyms"]["cha"], serde_json::json!(["tea"]));
    let ran = cmd.run(&[&export[..], &["--to", "markdown"]].concat());
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("--search-rules is only for static"),
        "{}",
        ran.stderr
    );
    dir.write("rules.toml", "synonyms = [['a b']]\n");
    let ran = cmd.run(&[&export[..], &["--to", "static"]].concat());
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("is not one word"), "{}", ran.stderr);
}

#[test]
fn an_empty_index_is_exported_too() {
    let (dir, cmd) = indexed(&[]);
    assert_eq!(
        done(&cmd, &["export", "c", "--to", "opensearch", "--out", "-"]),
        ""
    );
    done(&cmd, &["export", "c", "--to", "static", "--out", "s"]);
    let manifest: Value = serde_json::from_str(&dir.read("s/search.json")).unwrap();
    assert_eq!(manifest["pages"], 0);
}

#[test]
fn unknown_formats_and_places_are_refused() {
    refused(
        &["export", "c", "--to", "warp", "--out", "x"],
        expect![[r#"
            2
            error: invalid value 'warp' for '--to <FORMAT>'
              [possible values: opensearch, meilisearch, static, markdown, llms-txt, sitemap, parquet, csv, graph, wacz, mirror, bundle]
            hint: `crawl export --help` lists its flags and arguments"#]],
    );
    refused(
        &["export", "c", "--to", "static", "--out", "-"],
        expect![[r#"
        2
        error: can't write a folder to stdout
        hint: choose a folder: `--out search`"#]],
    );
    refused(
        &["export", "c", "--to", "static", "--out", "letters"],
        expect![[r#"
            2
            error: letters already exists
            hint: choose a new folder, an empty one, or an earlier export"#]],
    );
    refused(
        &["export", "c", "--to", "static", "--out", "letters/dear.txt"],
        expect![[r#"
            2
            error: letters/dear.txt already exists
            hint: choose a new folder, an empty one, or an earlier export"#]],
    );
    refused(
        &[
            "export",
            "c",
            "--to",
            "opensearch",
            "--out",
            "none/x.ndjson",
        ],
        expect![[r#"
            3
            error: can't write none/x.ndjson: No such file or directory (os error 2)
            hint: the folder `none` doesn't exist: create it, or choose another"#]],
    );
    refused(
        &["export", "c", "--to", "llms-txt", "--out", "c/pages.jsonl"],
        expect![[r#"
            2
            error: c/pages.jsonl is inside the crawl's directory c, which may contain only the crawl's own files
            hint: choose a place outside that directory"#]],
    );
    refused(
        &["report", "c", "--html", "letters/../c/links.html"],
        expect![[r#"
            2
            error: letters/../c/links.html is inside the crawl's directory c, which may contain only the crawl's own files
            hint: choose a place outside that directory"#]],
    );
}

#[test]
fn without_an_index_the_command_to_build_one_is_named() {
    refused(
        &["export", "empty", "--to", "static", "--out", "x"],
        expect![[r#"
        2
        error: the crawl in `empty` has no search index
        hint: build one with `crawl index empty`, or crawl with `--index on`"#]],
    );
    refused(
        &["export", "letters", "--to", "static", "--out", "x"],
        expect![[r#"
        2
        error: no crawl in `letters`
        hint: give the directory of a crawl, such as crawl-example.org"#]],
    );
}

const PAGE: &str = r#"{"url":"http://e.example/","status":200,"fetched_at":"2026-11-20T23:59:59.123Z","ms":12,"bytes":3,"content_type":"text/html","digest":null,"depth":0,"via":null,"title":null,"robots":null,"warc":null,"error":null}"#;

#[test]
fn tables_of_a_crawl_without_an_index() {
    let (dir, cmd) = setup("tables");
    dir.write("c/pages.jsonl", &format!("{PAGE}\n{{}}\n{PAGE}"));
    for (format, ending) in [("parquet", "parquet"), ("csv", "csv")] {
        let ran = cmd.run(&["export", "c", "--to", format, "--out", format]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
        assert_eq!(
            ran.stderr,
            format!(
                "{format} written: pages 1 row, hosts 1 row, requests 0 rows, \
                 excluded 0 rows, robots 0 rows\n\
                 pages.jsonl: 1 bad line skipped\n\
                 pages.jsonl: incomplete last line skipped\n\
                 no table of links: the crawl didn't record links\nhint: crawl with `--links on` to record them\n"
            )
        );
        assert!(dir.file(&format!("{format}/pages.{ending}")).exists());
    }
    assert!(
        dir.read("csv/pages.csv")
            .contains(",http://e.example/,e.example,example,e,")
    );
}

#[test]
fn tables_replace_nothing() {
    refused(
        &["export", "empty", "--to", "csv", "--out", "letters"],
        expect![[r#"
            2
            error: letters already exists
            hint: choose a new or empty folder"#]],
    );
    refused(
        &["export", "empty", "--to", "parquet", "--out", "-"],
        expect![[r#"
            2
            error: can't write a folder to stdout
            hint: choose a folder: `--out tables`"#]],
    );
    refused(
        &["export", "letters", "--to", "parquet", "--out", "t"],
        expect![[r#"
            2
            error: no crawl in `letters`
            hint: give the directory of a crawl, with its pages.jsonl"#]],
    );
}

#[test]
fn a_graph_replaces_nothing_and_reports_omissions() {
    let (dir, cmd) = setup("graph");
    dir.write("c/pages.jsonl", &format!("{PAGE}\n"));
    let link = |to, text| {
        format!("{{\"from\":\"http://e.example/\",\"to\":\"{to}\",\"rel\":null,\"text\":{text}}}\n")
    };
    let links = [
        link("http://f.example/", "\"\\u001b[31mred\""),
        link("no url", "null"),
        "{\"from\"".to_owned(),
    ];
    dir.write("c/links.jsonl", &links.concat());
    let export = || cmd.run(&["export", "c", "--to", "graph", "--out", "g"]);
    let ran = export();
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    expect![[r#"
        g written: 3 nodes (1 page), 2 links, 1 pair of hosts
        links.jsonl: incomplete last line skipped
        hosts.csv: 1 link left out, since one end has no host
        pages.graphml: 1 character not allowed in XML replaced by U+FFFD
    "#]]
    .assert_eq(&ran.stderr);
    let graphml = dir.read("g/pages.graphml");
    assert!(graphml.contains("<data key=\"text\">\u{fffd}[31mred</data>"));
    assert_eq!(
        dir.read("g/hosts.csv"),
        "Source,Target,Weight\r\ne.example,f.example,1\r\n"
    );
    expect![[r#"
        2
        error: g already exists
        hint: choose a new or empty folder"#]]
    .assert_eq(&export().refusal(&dir));
}

#[test]
fn a_crawl_without_links_has_no_graph() {
    let args = |dir, out| ["export", dir, "--to", "graph", "--out", out];
    refused(
        &args("empty", "g"),
        expect![[r#"
        2
        error: `empty` has no links
        hint: only crawls started with `--links on` have a graph"#]],
    );
    refused(
        &args("letters", "g"),
        expect![[r#"
            2
            error: no crawl in `letters`
            hint: give the directory of a crawl, with its pages.jsonl"#]],
    );
    refused(
        &args("empty", "-"),
        expect![[r#"
        2
        error: can't write a folder to stdout
        hint: choose a folder: `--out graph`"#]],
    );
}

#[test]
fn a_crawl_that_was_killed_becomes_one_file_that_replays() {
    let (dir, cmd) = setup("wacz");
    let web = TestWeb::builder().seed(6).pages(200).start();
    let seed = web.url(0, "/");
    let args = ["--seed", &seed, "--output", "c", "--progress", "off"];
    let running = cmd.start(&[&args[..], &["--delay", "5ms", "--delay-factor", "0"]].concat());
    assert!(web.wait_for(MAX_WAIT, |log| log.len() > 30));
    running.signal("KILL");
    running.end();
    let export = |out: &str| cmd.run(&["export", "c", "--to", "wacz", "--out", out]);
    let ran = export("a.wacz");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("a.wacz written: "), "{}", ran.stderr);
    let again = export("a.wacz");
    expect![[r#"
        2
        error: a.wacz already exists
        hint: choose a file that doesn't exist yet"#]]
    .assert_eq(&again.refusal(&dir));
    let entries = std::fs::read_dir(dir.path()).unwrap();
    let mut entries: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    entries.sort();
    assert_eq!(entries, ["a.wacz", "c", "home"]);
}

#[test]
fn invalid_wacz_files_are_refused() {
    let args = |dir, out, more: &[&'static str]| {
        [&["export", dir, "--to", "wacz", "--out", out], more].concat()
    };
    refused(
        &args("empty", "a.zip", &[]),
        expect![[r#"
            2
            error: `a.zip` isn't the name of a WACZ file
            hint: use a name that ends in .wacz, which players require"#]],
    );
    refused(
        &args("empty", "a.wacz", &[]),
        expect![[r#"
            2
            error: `empty` has no captures in its archive
            hint: only crawls with an archive (`--warc on`) and at least one fetched page can be exported"#]],
    );
    refused(
        &args("empty", "a.wacz", &["--round", "2"]),
        expect![[r#"
            2
            error: there is no round 2: the last one is round 0
            hint: remove --round to export the whole crawl"#]],
    );
    for (to, round) in [("wacz", "all"), ("csv", "1")] {
        refused(
            &[
                "export",
                "empty",
                "--to",
                to,
                "--out",
                "a.wacz",
                "--round",
                round,
                "--earlier",
                "b.wacz",
            ],
            expect![[r#"
                2
                error: --earlier is only for a single round as wacz
                hint: choose the round with `--to wacz --round N`, or remove --earlier"#]],
        );
    }
    refused(
        &args("empty", "none/a.wacz", &[]),
        expect![[r#"
            3
            error: can't write none/a.wacz: entity not found
            hint: the folder `none` doesn't exist: create it, or choose another"#]],
    );
    refused(
        &args("letters", "a.wacz", &[]),
        expect![[r#"
            2
            error: no crawl in `letters`
            hint: give the directory of a crawl, with its pages.jsonl"#]],
    );
    refused(
        &[
            "export", "empty", "--to", "csv", "--out", "t", "--round", "1",
        ],
        expect![[r#"
            0
            t written: pages 0 rows, hosts 0 rows, requests 0 rows, excluded 0 rows, robots 0 rows
            no table of links: the crawl didn't record links
            hint: crawl with `--links on` to record them"#]],
    );
}

#[test]
fn a_later_round_keeps_the_round_of_urls_that_are_still_excluded() {
    let (dir, cmd) = setup("excluded-rounds");
    let page = |links: &str| HttpAnswer::html(&format!("<title>t</title>{links}"));
    let links = "<a href=deep>d</a> <a href=no rel=nofollow>n</a> <a href=next>x</a>";
    let web = TestWeb::builder().hosts(1).sitemap(false).pages(1).start();
    web.script(0, "/", page(links));
    let seed = web.url(0, "/");
    let args = [
        "--delay",
        "0s",
        "--delay-factor",
        "0",
        "--progress",
        "off",
        "--output",
        "c",
    ];
    let first = ["--seed", &seed, "--max-depth", "0"];
    assert_eq!(cmd.run(&[&first[..], &args].concat()).code, 0);
    let exported = |to: &str, round: &str| {
        done(
            &cmd,
            &["export", "c", "--to", "csv", "--out", to, "--round", round],
        );
        let rows = dir.read(&format!("{to}/excluded.csv"));
        let mut rows: Vec<_> = rows.lines().map(str::to_owned).collect();
        rows.sort();
        rows
    };
    let before = exported("before", "1");
    assert!(before.len() > 3, "{before:?}");
    web.script(0, "/", page(&format!("{links} <a href=new>y</a>")));
    for _ in 0..2 {
        assert_eq!(cmd.run(&[&["--recrawl"], &args[..]].concat()).code, 0);
    }
    assert_eq!(exported("after", "1"), before);
    assert_eq!(exported("last", "3").len(), before.len() + 1);
    let rows = dir.rows("c/excluded.jsonl");
    let row = rows.iter().find(|row| row["url"] == web.url(0, "/new"));
    assert_eq!(row.unwrap()["round"], 2);
    assert!(!dir.file("c/state/excluded.jsonl").exists());
}

//! `[[extract]]` and `crawl extract`: fields of a small shop, in the crawl and again from its
//! archive.

use std::path::{Path, PathBuf};
use std::process::Command;

use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};
use expect_test::expect;
use serde_json::json;

use crate::harness::{Cmd, Dir, Ran, setup};

const QUICK: [&str; 6] = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];

const RULES: &str = r#"
[[extract]]
name = "items"
path = "/item/"
[extract.fields]
title = "h1"
price = { select = ".price", type = "number", locale = "de" }
next = { select = "a.more", attr = "href", type = "url" }
colours = { select = "li", all = true }
day = { select = "time", attr = "datetime", type = "date" }
author = ".review span.author"
reviews = { select = ".review", all = true, fields = { by = { attr = "data-by" }, stars = { select = "b", type = "number" } } }
"#;

fn item(number: u32, price: &str) -> HttpAnswer {
    HttpAnswer::html(&format!(
        "<h1> Thing\n {number}</h1><b class=price>{price}</b><ul><li>red<li>blue</ul>\
         <a class=more href=/item/2>more</a><time datetime=2026-03-08>8. März</time>\
         <p class=review data-by=Ann><b>4</b></p><i class=note-{number}>ten</i>"
    ))
}

fn web() -> TestWeb {
    let web = TestWeb::builder()
        .hosts(1)
        .pages(1)
        .mix(LinkMix::plain())
        .start();
    let home = HttpAnswer::html("<a href=item/1>1</a> <a href=item/2>2</a> <a href=item/3>3</a>");
    web.script(0, "/", home);
    web.script(0, "/item/1", item(1, "1.207,50 €"));
    web.script(0, "/item/2", item(2, "auf Anfrage"));
    let kept_out = item(3, "7").header("Content-Usage", "search=n");
    web.script(0, "/item/3", kept_out);
    web
}

fn crawled(dir: &Dir, cmd: &Cmd, web: &TestWeb) {
    dir.write("rules.toml", RULES);
    let url = web.url(0, "/");
    let args = ["--seed", &url, "--output", "c", "--config", "rules.toml"];
    let ran = cmd.run(&[&args[..], &["--purpose", "search"], &QUICK].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_crawl_writes_a_row_for_each_page_and_rule() {
    let (dir, cmd) = setup("extract-crawl");
    let web = web();
    crawled(&dir, &cmd, &web);
    let mut rows = dir.rows("c/extracts.jsonl");
    rows.sort_by_key(|row| row["url"].to_string());
    // The third item has no row, because its usage preferences refuse the purpose of the crawl.
    let reviews = json!([{"by": "Ann", "stars": 4}]);
    let expected = |number: u32, price: serde_json::Value| {
        json!({
            "url": web.url(0, &format!("/item/{number}")), "rule": "items", "round": 1,
            "fields": {
                "title": format!("Thing {number}"), "price": price, "next": web.url(0, "/item/2"),
                "colours": ["red", "blue"], "day": "2026-03-08", "author": null, "reviews": reviews,
            },
            "missing": ["author"],
        })
    };
    let mut second = expected(2, json!(null));
    second["failed"] = json!({"price": "not a number in locale de: \"auf Anfrage\""});
    assert_eq!(rows, [expected(1, json!(1207.5)), second]);
    let report = cmd.run(&["report", "c"]).ok();
    assert!(
        report.contains(
            "warning   rule \"items\", field \"author\": not found on 2 pages; there is no \
             element \"span\"; the nearest match is \".review\""
        ),
        "{report}"
    );
    assert!(
        report.contains("  price: 1 filled, 0 missing, 1 failed\n"),
        "{report}"
    );
    let html = dir.read("c/report.html");
    assert!(html.contains("<h2>Fields</h2>"));
}

/// A rule that finds a value in some elements of each page is not wrong.
#[test]
fn a_field_of_some_elements_of_a_group_is_found_in_part() {
    let (dir, cmd) = setup("extract-partial");
    let web = TestWeb::builder()
        .hosts(1)
        .pages(1)
        .mix(LinkMix::plain())
        .start();
    let prices = "<p><b>10</b></p><p><b>free</b></p><p></p>";
    web.script(0, "/", HttpAnswer::html(prices));
    dir.write(
        "rules.toml",
        r#"
        [[extract]]
        name = "shop"
        path = "/"
        [extract.fields]
        all = { select = "b", all = true, type = "number" }
        items = { select = "p", all = true, fields = { price = { select = "b", type = "number" }, name = { select = "b" } } }
        "#,
    );
    let url = web.url(0, "/");
    let args = ["--seed", &url, "--output", "c", "--config", "rules.toml"];
    let ran = cmd.run(&[&args[..], &QUICK].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let report = cmd.run(&["report", "c"]).ok();
    for field in ["all", "items.price", "items.name"] {
        let counts = format!("  {field}: 0 filled, 1 in part, 0 missing, 0 failed\n");
        assert!(report.contains(&counts), "{report}");
    }
    assert!(report.contains("    such as 10 on"), "{report}");
}

#[test]
fn a_crawl_ends_with_warnings_about_rules_and_fields_that_matched_nothing() {
    let (dir, cmd) = setup("extract-warnings");
    let web = web();
    dir.write(
        "rules.toml",
        r##"
        [[extract]]
        name = "items"
        path = "/item/"
        [extract.fields]
        title = "h1"
        price = { select = "b.prices", type = "number", required = true }
        more = { select = "#next a", attr = "href" }
        reviews = { select = ".review", all = true, fields = { stars = ".Stars" } }
        day = { select = "h1", type = "date" }
        note = { select = ".note-2", type = "number" }
        code = { select = "h1", regex = "^[0-9]+$" }
        link = { select = "h1", attr = "href" }

        [[extract]]
        name = "moved"
        path = "/items/"
        fields = { title = "h1" }

        [[extract]]
        name = "labelled"
        label = "news"
        fields = { title = "h1" }
        "##,
    );
    let url = web.url(0, "/");
    let args = ["--seed", &url, "--output", "c", "--config", "rules.toml"];
    let ran = cmd.run(&[&args[..], &["--purpose", "search"], &QUICK].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines = |text: &str, mark: &str| {
        let warnings = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix(mark));
        warnings
            .map(|line| format!("{}\n", line.trim()))
            .collect::<String>()
            // Pages are read concurrently, so either page may be the example.
            .replace("Thing 2", "Thing 1")
    };
    let warnings = lines(&ran.stderr, "warning: ");
    expect![[r#"
        rule "items", field "price": not found on 2 pages; no element has class "prices"; 2 pages have ".price"
        rule "items", field "more": not found on 2 pages; no element has id "next"
        rule "items", field "reviews.stars": not found on 2 pages; no element has class "Stars"
        rule "items", field "day": no value on 2 pages; not a date: "Thing 1"
        rule "items", field "note": no value on 2 pages; not a number: "ten"; not found on 1
        rule "items", field "code": no value on 2 pages; its selector matches, but its text doesn't match the regex
        rule "items", field "link": no value on 2 pages; its selector matches, but the first match has no attribute "href"
        rule "moved": no page has a path that begins with "/items/"; 2 pages have one with "/item/"
        rule "labelled": no page meets its condition label = "news"
    "#]]
    .assert_eq(&warnings);
    assert!(
        ran.stderr
            .contains("hint: correct the rules in FILE; crawl extract c"),
        "{}",
        ran.stderr
    );
    assert_eq!(lines(&cmd.run(&["report", "c"]).ok(), "warning "), warnings);
    let again = cmd.run(&["extract", "c", "--config", "rules.toml"]);
    assert_eq!(lines(&again.stdout, "warning "), warnings);
}

#[test]
fn rules_run_again_over_the_archive_without_a_request() {
    let (dir, cmd) = setup("extract-again");
    let web = web();
    crawled(&dir, &cmd, &web);
    let (first, requests) = (dir.read("c/extracts.jsonl"), dir.read("c/requests.jsonl"));
    let again = ["extract", "c", "--config", "rules.toml"];
    assert_eq!(cmd.run(&again).code, 0);
    let lines = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&dir.read("c/extracts.jsonl")), lines(&first));
    dir.write("rules.toml", &RULES.replace("\"h1\"", "\".review b\""));
    assert_eq!(cmd.run(&again).code, 0);
    assert!(
        dir.rows("c/extracts.jsonl")
            .iter()
            .all(|row| row["fields"]["title"] == "4")
    );
    assert_eq!(dir.read("c/requests.jsonl"), requests);
    // Resuming the crawl leaves the rows unchanged, and all records still agree.
    let rows = dir.read("c/extracts.jsonl");
    assert_eq!(cmd.run(&[&["--output", "c"], &QUICK[..]].concat()).code, 0);
    assert_eq!(dir.read("c/extracts.jsonl"), rows);
    assert_eq!(cmd.run(&["verify", "c"]).code, 0);
    let gone = web.url(0, "/item/2");
    assert_eq!(cmd.run(&["forget", "c", &gone]).code, 0);
    let rows = dir.rows("c/extracts.jsonl");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["fields"]["next"], json!(null));
}

#[test]
fn new_rules_are_in_the_report_and_in_later_rounds() {
    let (dir, cmd) = setup("extract-rounds");
    let web = web();
    crawled(&dir, &cmd, &web);
    let titles = |file: &str| {
        let report: serde_json::Value = serde_json::from_str(&dir.read(file)).unwrap();
        report["extraction"]["rules"][0]["fields"][0].clone()
    };
    assert_eq!(titles("c/report.json")["missing"], 0);
    dir.write("rules.toml", &RULES.replace("\"h1\"", "\".none\""));
    let again = ["extract", "c", "--config", "rules.toml"];
    assert_eq!(cmd.run(&again).code, 0);
    assert_eq!(titles("c/report.json")["missing"], 2);
    assert!(dir.read("c/report.html").contains(".none"));
    let verified = cmd.run(&["verify", "c"]);
    assert_eq!(verified.code, 0, "{}", verified.stdout);
    // The settings are still proven to be the user's, so a later round needs no flags.
    web.script(0, "/item/1", item(7, "5"));
    let ran = cmd.run(&[&["--output", "c", "--recrawl"], &QUICK[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let rules = dir.read("c/extract-rules.json");
    assert!(
        rules.contains(".none") && !rules.contains("\"h1\""),
        "{rules}"
    );
    let rows = dir.rows("c/extracts.jsonl");
    assert!(rows.iter().any(|row| row["round"] == 2));
    assert!(rows.iter().all(|row| row["fields"]["title"].is_null()));
}

#[test]
fn a_rule_has_a_table_and_a_list_of_groups_has_another() {
    let (dir, cmd) = setup("extract-tables");
    let web = web();
    crawled(&dir, &cmd, &web);
    let ran = cmd.run(&["export", "c", "--to", "csv", "--out", "t"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let table = |name: &str| {
        let text = dir
            .read(name)
            .replace(&web.url(0, ""), "")
            .replace('\r', "");
        let (head, rows) = text.split_once('\n').unwrap();
        let mut rows: Vec<_> = rows.lines().collect();
        rows.sort_unstable();
        format!("{head}\n{}\n", rows.join("\n"))
    };
    expect![[r#"
        page_url,page_round,title,price,next,colours,day,author
        /item/1,1,Thing 1,1207.5,/item/2,red; blue,2026-03-08,
        /item/2,1,Thing 2,,/item/2,red; blue,2026-03-08,
    "#]]
    .assert_eq(&table("t/items.csv"));
    expect![[r#"
        page_url,page_round,item,by,stars
        /item/1,1,1,Ann,4
        /item/2,1,1,Ann,4
    "#]]
    .assert_eq(&table("t/items.reviews.csv"));
    let ran = cmd.run(&["export", "c", "--to", "parquet", "--out", "p"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let bytes = std::fs::read(dir.file("p/items.parquet")).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

/// Rules with each type, alone and in lists, in groups and in lists of groups.
const TYPED_RULES: &str = r#"
[[extract]]
name = "things"
path = "/thing/"
[extract.fields]
title = "h1"
price = { select = ".price", type = "number" }
prices = { select = ".price", type = "number", all = true }
day = { select = "time", type = "date" }
days = { select = "time", type = "date", all = true }
is-sold = { select = ".sold", type = "bool" }
flags = { select = ".flag", type = "bool", all = true }
next = { select = "a", attr = "href", type = "url" }
links = { select = "a", attr = "href", type = "url", all = true }
maker = { select = ".maker", fields = { name = "b", since = { select = "u", type = "date" }, tags = { select = "i", all = true } } }
[extract.fields.rows]
select = "tr"
all = true
[extract.fields.rows.fields]
name = "th"
amounts = { select = "td", type = "number", all = true }
seller = { select = ".seller", fields = { name = "b", shops = { select = "i", all = true } } }
parts = { select = "li", all = true, fields = { id = { attr = "id" }, size = { content = "own-text", type = "number" } } }

[[extract]]
name = "never"
path = "/never/"
fields = { lists = { select = "p", all = true }, day = { select = "p", type = "date" } }
"#;

/// A page with every field, one with failures, one with empty lists in groups, and one with
/// nothing.
const TYPED_PAGES: [&str; 4] = [
    "<h1>Tee \u{1fad6}; \"a, b\"</h1><b class=price>1,207.5</b><b class=price>-3</b><b class=price>0.1</b>\
     <time>2026-03-08</time><time>1 January 1969</time><p class=sold>yes<p class=flag>no<p class=flag>\
     <a href=/thing/2>2</a><a href=../x?a=1>x</a><div class=maker><b>M</b><u>1999-12-31</u><i>a<i>b</div>\
     <table><tr><th>one<td>1<td>none<td>NaN<td class=seller><b>S</b><i>s1</i><i>s2</i>\
     <td><ul><li id=p1>7<li id=p2>x</ul><tr><th>two<td><ul><li id=p3>9007199254740993</ul></table>",
    "<h1></h1><b class=price>NaN</b><b class=price>5</b><b class=price>inf</b><time>soon</time><time>2024-02-29</time>\
     <p class=sold>no<p class=flag>off<a href=http://[>bad</a><table><tr><td class=seller></table>",
    "<div class=maker></div><table><tr><tr></table>",
    "",
];

/// `CRAWL_PYTHON_BIN` is the folder of programs of a Python environment with pyarrow.
#[test]
#[ignore = "needs pyarrow: cargo xtask test sets it up"]
fn pyarrow_reads_the_values_of_the_rows_from_the_tables() {
    let (dir, cmd) = setup("extract-pyarrow");
    let web = TestWeb::builder()
        .hosts(1)
        .pages(1)
        .mix(LinkMix::plain())
        .start();
    let links = (1..=TYPED_PAGES.len()).map(|number| format!("<a href=/thing/{number}>x</a>"));
    web.script(0, "/", HttpAnswer::html(&links.collect::<String>()));
    for (number, html) in (1..).zip(TYPED_PAGES) {
        web.script(0, &format!("/thing/{number}"), HttpAnswer::html(html));
    }
    dir.write("rules.toml", TYPED_RULES);
    let url = web.url(0, "/");
    let args = ["--seed", &url, "--output", "c", "--config", "rules.toml"];
    let ran = cmd.run(&[&args[..], &QUICK].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = cmd.run(&["export", "c", "--to", "parquet", "--out", "p"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let python = PathBuf::from(std::env::var_os("CRAWL_PYTHON_BIN").unwrap()).join("python");
    let mut read = Command::new(python);
    read.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extract_tables.py"))
        .args(["c", "p"].map(|folder| dir.file(folder)));
    let read = Ran::of_command(&mut read);
    assert_eq!(read.code, 0, "{}", read.stderr);
    expect![[r#"
        things 4
        things.rows 5
        things.rows.parts 3
        never 0
    "#]]
    .assert_eq(&read.stdout);
}

#[test]
fn mistakes_in_rules_are_reported_with_line_and_column() {
    let (dir, cmd) = setup("extract-check");
    dir.write(
        "rules.toml",
        "[[extract]]\nname = \"a\"\npth = \"/\"\nfields = { t = \"h1\" }\n\
         [[extract]]\nname = \"b\"\nmatch = \"(\"\n[extract.fields]\nx = \"h1..y\"\n\
         y = { select = \"p::text\" }\nz = { select = \"p\", type = \"numbr\" }\n\
         [[extract]]\nname = \"c\"\nmatch = \"(\"\n[extract.fields]\nx = \"h1..y\"\n\
         y = { select = \"p\", locale = \"de\" }\n",
    );
    let ran = cmd.run(&["config", "--check", "rules.toml"]);
    assert_eq!(ran.code, 2);
    expect![[r#"
        error: rules.toml:3:1: unknown key `pth`
        hint: did you mean `path`?
        error: rules.toml:11:28: `numbr` isn't one of `text`, `number`, `date`, `url`, `bool`
        hint: did you mean `number`?
        error: rules.toml:14:9: [[extract]] "c", match: bad regular expression `(`: unclosed group
        hint: the syntax is that of https://docs.rs/regex; look-around doesn't exist
        error: rules.toml:16:10: [[extract]] "c", x: bad selector `h1..y`: this is not a CSS selector
        hint: selectors are CSS; use the keys `content` and `attr` for ::text and ::attr(..)
        error: rules.toml:17:30: [[extract]] "c", y.locale: `locale` of the field `y` has no effect
        hint: only numbers and dates have a locale: add `type`
    "#]].assert_eq(&ran.stderr);
    dir.write("none.toml", "[politeness]\ndelay = \"1s\"\n");
    let ran = cmd.run(&["extract", "c", "--config", "none.toml"]);
    assert_eq!(
        (ran.code, ran.stderr.contains("has no rules [[extract]]")),
        (2, true)
    );
}

#[test]
fn inspect_shows_the_fields_and_the_tree_of_a_page() {
    let (dir, cmd) = setup("extract-inspect");
    dir.write("rules.toml", RULES);
    dir.write("p.html", "<h1>A</h1><p class=price>1.207,50");
    let page = ["inspect", "p.html", "--base", "http://e.example/item/1"];
    let fields = cmd
        .run(&[&page[..], &["--config", "rules.toml"]].concat())
        .ok();
    let row: serde_json::Value = serde_json::from_str(&fields).unwrap();
    assert_eq!(
        (&row["fields"]["title"], &row["fields"]["price"]),
        (&json!("A"), &json!(1207.5))
    );
    expect![[r#"
        <html>
          <head>
          <body>
            <h1>
              "A"
            <p class="price">
              "1.207,50"
    "#]]
    .assert_eq(&cmd.run(&[&page[..], &["--tree"]].concat()).ok());
}

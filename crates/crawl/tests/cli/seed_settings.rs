//! Seeds with their own scope, depth and label.

use std::collections::BTreeMap;

use crawl_testweb::{HttpAnswer, TestWeb};
use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{Dir, setup};

const QUICK: [&str; 7] = [
    "--delay",
    "0s",
    "--delay-factor",
    "0",
    "--progress",
    "off",
    // The test web's hosts are on loopback.
    "--allow-private",
];

/// Starts a web of five hosts. The third host redirects to the fourth.
fn web() -> TestWeb {
    let page = |links: &[&str]| {
        let links = links.iter().map(|to| format!("<a href={to}>x</a>"));
        HttpAnswer::html(&links.collect::<String>())
    };
    let web = TestWeb::builder().hosts(5).sitemap(false);
    let web = web
        .script(0, "/", page(&["/a"]))
        .script(0, "/a", page(&["/b"]))
        .script(0, "/b", page(&[]))
        .script(1, "/docs/start", page(&["/docs/x", "/other", "/one"]))
        .script(1, "/docs/x", page(&[]))
        .script(1, "/other", page(&[]))
        .script(1, "/one", page(&["/two"]))
        .script(3, "/en", page(&["/more"]))
        .script(3, "/more", page(&[]))
        .script(4, "/", page(&[]));
    let web = web.start();
    web.script(2, "/", HttpAnswer::redirect(301, &web.url(3, "/en")));
    web
}

fn list(web: &TestWeb, depth: u32) -> String {
    let lines = [
        json!({"url": web.url(0, "/"), "depth": depth, "label": "press"}),
        json!({"url": web.url(1, "/docs/start"), "scope": "prefix", "label": "docs"}),
        json!({"url": web.url(1, "/one"), "scope": "page", "label": "one"}),
        json!({"url": web.url(2, "/"), "label": "moved"}),
    ];
    let lines = lines.map(|line| format!("{line}\n"));
    format!("# mixed\n{}{}\n", lines.concat(), web.url(4, "/"))
}

/// Returns the label of each URL in the rows of a directory.
fn labels(dir: &Dir, output: &str) -> BTreeMap<String, Value> {
    let rows = dir.rows(&format!("{output}/pages.jsonl")).into_iter();
    let rows = rows.map(|row| {
        (
            row["url"].as_str().unwrap().to_owned(),
            row["label"].clone(),
        )
    });
    rows.collect()
}

#[test]
fn settings_of_a_seed_apply_in_its_area_and_survive_an_interruption() {
    let (dir, cmd) = setup("terms");
    let web = web();
    dir.write("seeds.jsonl", &list(&web, 1));
    let begin = ["--seed-file", "seeds.jsonl", "--output", "c"];
    // The first run ends at its budget. The second run continues it, and is given only the
    // directory.
    let ran = cmd.run(&[&begin[..], &QUICK, &["--max-pages", "3"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = cmd.run(&[&["--output", "c", "--max-pages", "unlimited"], &QUICK[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut expected: BTreeMap<String, Value> = [
        (0, "/", json!("press")),
        (0, "/a", json!("press")),
        (1, "/docs/start", json!("docs")),
        (1, "/docs/x", json!("docs")),
        (1, "/one", json!("one")),
        (2, "/", json!("moved")),
        (3, "/en", json!("moved")),
        (3, "/more", json!("moved")),
        (4, "/", Value::Null),
    ]
    .map(|(host, path, label)| (web.url(host, path), label))
    .into();
    assert_eq!(labels(&dir, "c"), expected);
    let excluded = dir.rows("c/excluded.jsonl");
    let explain = |host, path: &str| {
        let url = web.url(host, path);
        let row = excluded.iter().find(|row| row["url"] == url.as_str());
        let row = row.unwrap_or_else(|| panic!("{url} has no row"));
        format!("{}: {}", row["reason"], row["rule"]).replace('"', "")
    };
    let depth = format!("depth: depth 1 of seed {}", web.url(0, "/"));
    assert_eq!(explain(0, "/b"), depth);
    assert_eq!(explain(1, "/other"), "scope: host");
    assert_eq!(explain(1, "/two"), "scope: host");

    let report: Value = serde_json::from_str(&cmd.run(&["report", "c", "--json"]).ok()).unwrap();
    let of_label = |label: &str| report["pages"]["by_label"][label]["total"].as_u64();
    let totals = ["press", "docs", "one", "moved"].map(of_label);
    assert_eq!(totals, [Some(2), Some(2), Some(1), Some(3)]);
    assert!(
        cmd.run(&["report", "c"])
            .ok()
            .contains("label     docs: 2 pages (")
    );
    let explanation = cmd.run(&["explain", "c", &web.url(3, "/more")]).ok();
    assert!(explanation.contains("\n  label: moved\n"), "{explanation}");
    cmd.run(&["export", "c", "--to", "csv", "--out", "tables"]);
    let table = dir.read("tables/pages.csv");
    assert!(
        table.lines().next().unwrap().contains("seed_label"),
        "{table}"
    );

    // Replay the same crawl from its archive.
    let replayed = cmd.run(&["replay", "c", "--output", "r"]);
    assert_eq!(replayed.code, 0, "{}", replayed.stderr);
    assert!(!replayed.stdout.contains("seed:"), "{}", replayed.stdout);
    assert_eq!(labels(&dir, "r"), expected);

    // A larger depth for one seed lets the crawl fetch deeper URLs of this seed, and doesn't affect
    // other seeds.
    let deeper = list(&web, 2);
    dir.write("seeds.jsonl", deeper.lines().nth(1).unwrap());
    let ran = cmd.run(&[&begin[..], &QUICK].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    expected.insert(web.url(0, "/b"), json!("press"));
    assert_eq!(labels(&dir, "c"), expected);
    let stored: toml::Table = dir.read("c/crawl.toml").parse().unwrap();
    let stored = serde_json::to_value(&stored["seed"]).unwrap();
    assert_eq!(stored.as_array().unwrap().len(), 5);
    assert_eq!(stored[0]["depth"], 2);
    assert_eq!(stored[1]["scope"], "prefix");
    assert_eq!(stored[4], web.url(4, "/").as_str());
    let replay_with_config = cmd.run(&["replay", "c", "--config", "c/crawl.toml", "--output", "s"]);
    assert!(
        !replay_with_config.stdout.contains("seed:"),
        "{}",
        replay_with_config.stdout
    );
}

#[test]
fn all_errors_in_seeds_are_reported_with_their_place() {
    let (dir, cmd) = setup("wrong");
    dir.write(
        "seeds.jsonl",
        "{\"url\": \"http://127.0.0.1:1/\", \"lable\": \"press\"}\n\
         http://127.0.0.1:2/\n{\"url\": \"http://127.0.0.1:3/\", \"scope\": \"any\"\n",
    );
    let ran = cmd.run(&["--seed-file", "seeds.jsonl"]);
    expect![[r#"
        2
        error: seeds.jsonl:1:32: unknown key `lable` in a seed
        hint: did you mean `label`?
        error: seeds.jsonl:3:1: not JSON: EOF while parsing an object, at character 45
        hint: a line starting with `{` must be a JSON object on one line"#]]
    .assert_eq(&ran.refusal(&dir));
    dir.write(
        "seeds.jsonl",
        "{\"url\": \"http://127.0.0.1:1/\", \"label\": \"press\"}\n\
         http://127.0.0.1:1/plain\n{\"url\": \"http://127.0.0.1:1/b\", \"label\": \"blog\"}\n",
    );
    let ran = cmd.run(&["--seed-file", "seeds.jsonl"]);
    expect![[r#"
        2
        error: seeds.jsonl:3:1: the seeds `http://127.0.0.1:1/b` and `http://127.0.0.1:1/` of seeds.jsonl:1:1 set a different depth or label for the same host 127.0.0.1:1
        hint: set the same values for both, or give one a smaller `scope`: `prefix` for its folder, `page` for only the page"#]]
    .assert_eq(&ran.refusal(&dir));
    dir.write(
        "study.toml",
        "seed = [\n  \"http://127.0.0.1:1/\",\n  { url = \"http://127.0.0.1:2/\", depht = 1 },\n  7,\n  \
         { url = \"http://127.0.0.1:3/\", depth = -1 },\n]\n",
    );
    let refused = cmd.run(&["config", "--check", "study.toml"]).refusal(&dir);
    expect![[r#"
        2
        error: study.toml:3:3: `seed`: unknown key `depht` in a seed; did you mean `depth`?
        hint: `crawl config` prints a configuration with every key
        error: study.toml:4:3: `seed`: expected a string or a table, found integer `7`
        hint: `crawl config` prints a configuration with every key
        error: study.toml:5:3: `seed`: `depth`: expected a whole number of links, 0 or more, found `-1`
        hint: `crawl config` prints a configuration with every key"#]].assert_eq(&refused);
}

#[test]
fn a_file_of_settings_holds_seeds_as_tables() {
    let (dir, cmd) = setup("tables");
    let text = "seed = [\"http://127.0.0.1:1/\", { url = \"http://127.0.0.1:2/x/\", scope = \"prefix\", \
                depth = 0, label = \"press \\\"x\\\"\" }]\n";
    dir.write("study.toml", text);
    let printed = cmd
        .run(&["config", "--effective", "--config", "study.toml"])
        .ok();
    let seeds = |text: &str| text.parse::<toml::Table>().unwrap()["seed"].clone();
    assert_eq!(seeds(&printed), seeds(text));
    // Each seed in a `[[seed]]` table has its own settings.
    let text =
        "[[seed]]\nurl = \"http://127.0.0.1:2/x/\"\nlabel = \"press\"\n[scope]\nmax-depth = 3\n";
    dir.write("study.toml", text);
    let printed = cmd
        .run(&["config", "--effective", "--config", "study.toml"])
        .ok();
    assert_eq!(seeds(&printed), seeds(text));
    dir.write("again.toml", &printed);
    let again = cmd
        .run(&["config", "--effective", "--config", "again.toml"])
        .ok();
    assert_eq!(again, printed);
}

#[test]
fn entries_of_a_seed_sitemap_are_seeds() {
    let (dir, cmd) = setup("sitemap");
    let page = |to: &str| HttpAnswer::html(&format!("<a href={to}>x</a>"));
    let web = TestWeb::builder()
        .hosts(3)
        .sitemap(false)
        .robots(0, "User-agent: *\nDisallow: /barred\n")
        .script(0, "/linked", page("/deeper"))
        .script(0, "/deeper", page("/"))
        .script(1, "/listed", page("/never"))
        .script(2, "/target", page("/never"))
        .script(0, "/listed", page("/linked"));
    let web = web.start();
    let map = |name: &str, entry: &str, urls: &[String]| {
        let space = "http://www.sitemaps.org/schemas/sitemap/0.9";
        let entries = urls
            .iter()
            .map(|url| format!("<{entry}><loc>{url}</loc></{entry}>"));
        let text = format!(
            "<{name} xmlns='{space}'>{}</{name}>",
            entries.collect::<String>()
        );
        HttpAnswer::text(&text).header("content-type", "application/xml")
    };
    let listed = [
        web.url(0, "/listed"),
        web.url(0, "/barred"),
        web.url(0, "/x/skipped"),
        web.url(1, "/listed"),
        web.url(1, "/moved"),
    ];
    web.script(
        1,
        "/moved",
        HttpAnswer::redirect(302, &web.url(2, "/target")),
    );
    web.script(0, "/maps/part", map("urlset", "url", &listed));
    web.script(
        0,
        "/maps/all",
        map("sitemapindex", "sitemap", &[web.url(0, "/maps/part")]),
    );
    dir.write(
        "seeds.jsonl",
        &json!({"sitemap": web.url(0, "/maps/all"), "label": "mapped"}).to_string(),
    );
    let words = [
        "--output",
        "c",
        "--max-depth",
        "1",
        "--exclude",
        "/skipped",
        "--include",
        "linked",
    ];
    let words = [&words[..], &QUICK].concat();
    let ran = cmd.run(&[&words[..], &["--seed-file", "seeds.jsonl"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let rows = dir.rows("c/pages.jsonl");
    let mut listed: Vec<_> = rows
        .iter()
        .map(|row| (row["url"].as_str().unwrap(), row["depth"].as_u64().unwrap()))
        .collect();
    listed.sort_unstable();
    let expected = [
        (0, "/maps/all", 0),
        (0, "/maps/part", 0),
        (0, "/listed", 0),
        (0, "/linked", 1),
        (1, "/listed", 0),
        (1, "/moved", 0),
        (2, "/target", 0),
    ];
    let expected = expected.map(|(host, path, depth)| (web.url(host, path), depth));
    let mut expected: Vec<_> = expected
        .iter()
        .map(|(url, depth)| (url.as_str(), *depth))
        .collect();
    expected.sort_unstable();
    assert_eq!(listed, expected);
    let label = |url: &str| labels(&dir, "c")[url].clone();
    assert_eq!(label(&web.url(0, "/linked")), "mapped");
    assert_eq!(label(&web.url(1, "/listed")), Value::Null);
    let excluded = dir.rows("c/excluded.jsonl");
    let reason = |url: String| {
        let row = excluded.iter().find(|row| row["url"] == url.as_str());
        row.unwrap_or_else(|| panic!("{url}"))["reason"].clone()
    };
    // Excluded URLs on the seed's host have the seed's label too, and the host's row lists the
    // label.
    for row in &excluded {
        let label = match row["url"].as_str().unwrap().starts_with(&web.url(0, "/")) {
            true => json!("mapped"),
            false => Value::Null,
        };
        assert_eq!(row["label"], label, "{row}");
    }
    let hosts = dir.rows("c/hosts.jsonl");
    let of_host = |host: u32| {
        let row = hosts.iter().find(|row| row["host"] == web.authority(host));
        row.unwrap()["labels"].clone()
    };
    assert_eq!((of_host(0), of_host(1)), (json!(["mapped"]), json!([])));
    assert_eq!(reason(web.url(0, "/barred")), "robots");
    assert_eq!(reason(web.url(0, "/x/skipped")), "scope");
    assert_eq!(reason(web.url(1, "/never")), "scope");
    assert_eq!(reason(web.url(2, "/never")), "scope");
    assert_eq!(reason(web.url(0, "/deeper")), "scope");

    // The first run gets the sitemap by a flag. The second run gets only the directory, which
    // remembers that the seed is a sitemap.
    let flag = [
        "--seed-sitemap",
        &web.url(0, "/maps/all"),
        "--output",
        "d",
        "--max-pages",
        "1",
    ];
    let ran = cmd.run(&[&flag[..], &QUICK].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = cmd.run(&[&["--output", "d", "--max-pages", "unlimited"], &QUICK[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(labels(&dir, "d").contains_key(&web.url(1, "/listed")));
    let stored: toml::Table = dir.read("d/crawl.toml").parse().unwrap();
    assert_eq!(
        stored["seed"][0]["sitemap"].as_str(),
        Some(&*web.url(0, "/maps/all"))
    );
    let sitemap = web.url(0, "/maps/all");
    let plan = ["plan", "--seed-sitemap", &sitemap, "--output", "p"];
    let planned = cmd.run(&[&plan[..], &QUICK].concat());
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    assert!(planned.stdout.contains(" known"), "{}", planned.stdout);
}

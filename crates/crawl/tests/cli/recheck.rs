//! `crawl recheck`: checks a crawl's pages against current rules.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};
use serde_json::Value;

use crate::harness::setup;

const QUICK: [&str; 6] = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];

/// Returns all files below a folder with their bytes.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut contents = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => contents.extend(files(&path)),
            false => {
                contents.insert(path.display().to_string(), fs::read(&path).unwrap());
            }
        }
    }
    contents
}

fn robots(text: &str) -> HttpAnswer {
    HttpAnswer::text(text)
}

#[test]
fn a_recheck_fetches_only_rules_and_lists_pages_they_now_exclude() {
    let (dir, mut cmd) = setup("recheck");
    fs::create_dir(dir.file("tmp")).unwrap();
    cmd.env("TMPDIR", dir.file("tmp").to_str().unwrap());
    let web = TestWeb::builder()
        .hosts(2)
        .pages(12)
        .mix(LinkMix::plain())
        .start();
    for host in 0..2 {
        web.script(
            host,
            "/robots.txt",
            robots("User-agent: *\nDisallow: /never/\n"),
        );
    }
    let (first, second) = (web.url(0, "/"), web.url(1, "/"));
    let crawl = [
        "--seed",
        &first,
        "--seed",
        &second,
        "--output",
        "c",
        "--purpose",
        "train-ai",
    ];
    let ran = cmd.run(&[&crawl[..], &QUICK].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let pages = dir.rows("c/pages.jsonl");
    let of_first = |row: &&Value| row["url"].as_str().unwrap().starts_with(&first);
    let (asked, mut before) = (web.log().len(), files(&dir.file("c")));
    let private = pages
        .iter()
        .find(|row| of_first(row) && row["url"] != first.as_str());
    let private = private.unwrap()["url"].as_str().unwrap().to_owned();
    let path = private.strip_prefix(first.trim_end_matches('/')).unwrap();
    let rules = format!("User-agent: *\nDisallow: {path}$\n");
    web.script(0, "/robots.txt", robots(&rules));
    // The rules of the second host are unknown while it is unreachable, so none of its pages are
    // excluded.
    web.script(1, "/robots.txt", HttpAnswer::of(500));

    let ran = cmd.run(&["recheck", "c", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let paths = web.log().split_off(asked);
    assert!(
        paths.iter().all(|entry| matches!(
            entry.path.as_str(),
            "/robots.txt" | "/.well-known/tdmrep.json"
        )),
        "{paths:?}"
    );
    let rows: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows, dir.rows("c/recheck.jsonl"));
    assert_eq!(
        (&rows[0]["verdict"], &rows[0]["reason"]),
        (&"rechecked".into(), &"train-ai".into())
    );
    assert_eq!(rows[0]["urls"], pages.len());
    assert_eq!(rows[1]["url"], private.as_str());
    assert_eq!(rows[1]["rule"], format!("Disallow: {path}$").as_str());
    assert_eq!(
        (&rows[1]["reason"], &rows[1]["line"]),
        (&"robots".into(), &2.into())
    );
    assert_eq!(rows[2]["verdict"], "unknown");
    assert_eq!(
        rows[2]["urls"],
        pages.iter().filter(|row| !of_first(row)).count()
    );
    assert_eq!(rows.len(), 3);
    // A recheck also changes the state and the list of digests, but no other file, and leaves no
    // files elsewhere.
    let mut after = files(&dir.file("c"));
    after.retain(|name, _| !name.ends_with("/recheck.jsonl") && !name.contains("/state/"));
    before.retain(|name, _| !name.contains("/state/"));
    let changed: Vec<_> = after
        .iter()
        .filter(|(name, bytes)| before.get(*name) != Some(*bytes))
        .filter(|(name, _)| !name.ends_with("/digests.jsonl"))
        .collect();
    assert!(
        changed.is_empty() && after.len() == before.len(),
        "{:?}",
        changed.iter().map(|(name, _)| name).collect::<Vec<_>>()
    );
    assert_eq!(dir.file("tmp").read_dir().unwrap().count(), 0);

    // A usage preference against the crawl's purpose excludes a page, as a robots.txt rule does.
    web.script(
        0,
        "/robots.txt",
        robots("User-agent: *\nContent-Signal: ai-train=no\n"),
    );
    let ran = cmd.run(&["recheck", "c"]);
    let all = pages.iter().filter(of_first).count();
    let line = format!("excluded: {private}  usage Content-Signal: ai-train=no");
    assert!(ran.stdout.contains(&line), "{}", ran.stdout);
    assert_eq!(
        ran.stdout.matches("\nexcluded: ").count(),
        all,
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains(&format!("excluded  {all} pages\n")),
        "{}",
        ran.stdout
    );
}

#[test]
fn the_next_round_follows_the_rules_that_a_recheck_found() {
    let (_dir, cmd) = setup("recheck-round");
    let web = TestWeb::builder().pages(1).sitemap(false).start();
    web.script(0, "/", HttpAnswer::html("<a href=/a>a</a><a href=/b>b</a>"));
    web.script(0, "/a", HttpAnswer::html("a"));
    web.script(0, "/b", HttpAnswer::html("b"));
    web.script(0, "/robots.txt", robots("User-agent: *\nAllow: /\n"));
    let seed = web.url(0, "/");
    let ran = cmd.run(&[&["--seed", &seed, "--output", "c"][..], &QUICK].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    web.script(0, "/robots.txt", robots("User-agent: *\nDisallow: /a\n"));
    let ran = cmd.run(&["recheck", "c"]);
    assert!(ran.stdout.contains("excluded  1 page\n"), "{}", ran.stdout);
    web.take_log();
    let ran = cmd.run(&[&["--output", "c", "--recrawl"][..], &QUICK].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut paths: Vec<String> = web.take_log().into_iter().map(|entry| entry.path).collect();
    paths.retain(|path| path != "/sitemap.xml");
    assert_eq!(paths, ["/robots.txt", "/", "/b"]);
    // Without another change, the copy stays in force.
    let ran = cmd.run(&["recheck", "c"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    web.take_log();
    let ran = cmd.run(&[&["--output", "c", "--recrawl"][..], &QUICK].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        web.take_log()
            .iter()
            .all(|entry| entry.path != "/robots.txt")
    );
    let replayed = cmd
        .run(&["replay", "c", "--output", "again", "--json"])
        .ok();
    let replayed: Value = serde_json::from_str(&replayed).unwrap();
    assert_eq!(replayed["difference"], Value::Null, "{replayed:#}");
    assert_eq!(cmd.run(&["audit", "c"]).code, 0);
}

#[test]
fn a_recheck_respects_a_wait_requested_during_the_crawl() {
    let (dir, cmd) = setup("owed");
    let web = TestWeb::builder().pages(3).mix(LinkMix::plain()).start();
    let seed = web.url(0, "/");
    let ran = cmd.run(&[&["--seed", &seed, "--output", "c"][..], &QUICK].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut log = dir.read("c/requests.jsonl");
    let last = log.lines().last().unwrap();
    let mut row: Value = serde_json::from_str(last).unwrap();
    row["wait_asked"] = 3_600_000.into();
    log.push_str(&format!("{row}\n"));
    fs::write(dir.file("c/requests.jsonl"), log).unwrap();
    let request_count = web.log().len();
    let ran = cmd.run(&["recheck", "c"]);
    assert_eq!(web.log().len(), request_count, "{}", ran.stdout);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let all = dir.rows("c/pages.jsonl").len();
    assert!(
        ran.stdout.contains(&format!("unknown   {all} pages\n")),
        "{}",
        ran.stdout
    );
    let ran = cmd.run(&["recheck", "nowhere"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
}

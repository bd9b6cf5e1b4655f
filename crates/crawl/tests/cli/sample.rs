//! Crawls that draw a sample or take a random walk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crawl_archive::rows::{PageRow, RequestRow};
use crawl_testweb::{HttpAnswer, TestWeb};
use serde_json::Value;

use crate::harness::{Cmd, Dir, setup};

const QUICK: [&str; 6] = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];

#[test]
fn a_sample_is_drawn_reported_and_explained() {
    let (dir, cmd) = setup("sample");
    let web = TestWeb::builder().hosts(1).pages(2).start();
    let listed: Vec<_> = (0..8)
        .map(|page| web.url(0, &format!("/l{page}")))
        .collect();
    let entries = listed
        .iter()
        .map(|url| format!("<url><loc>{url}</loc></url>"));
    let sitemap = format!("<urlset>{}</urlset>", entries.collect::<String>());
    let sitemap = HttpAnswer::of(200)
        .header("content-type", "application/xml")
        .body(sitemap);
    web.script(0, "/sitemap.xml", sitemap);
    for page in 0..8 {
        web.script(
            0,
            &format!("/l{page}"),
            HttpAnswer::html("<a href=/further>x</a>"),
        );
    }
    let seed = web.url(0, "/l0");
    let flags = ["--sample", "3", "--frame-depth", "0", "--output", "c"];
    let ran = cmd.run(&[&[&*seed], &flags[..], &QUICK[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let rows = |file: &str| -> Vec<Value> { dir.rows(&format!("c/{file}")) };
    let pages = rows("pages.jsonl");
    let sampled: Vec<_> = pages
        .iter()
        .filter(|row| !row["sample"].is_null())
        .collect();
    assert_eq!(sampled.len(), 3);
    for row in &sampled {
        assert_eq!(row["sample"]["how"], "drawn");
        assert_eq!(row["sample"]["probability"], 3.0 / 8.0);
    }
    let excluded = rows("excluded.jsonl");
    let of = |rule: &str| -> Vec<&str> {
        let rows = excluded.iter().filter(|row| row["rule"] == rule);
        rows.map(|row| row["url"].as_str().unwrap()).collect()
    };
    assert_eq!(of("not drawn").len(), 5);
    assert_eq!(of("found after the draw"), [web.url(0, "/further")]);
    let report = cmd.run(&["report", "c"]).ok();
    assert!(
        report.contains("sample    3 drawn from 8 URLs\n"),
        "{report}"
    );
    assert!(report.contains("    status 200: 100.0 % ("), "{report}");
    let explained = |url: &str| cmd.run(&["explain", "c", url]).ok();
    let explanation = explained(of("not drawn")[0]);
    assert!(
        explanation.contains("  sample: not drawn in stratum "),
        "{explanation}"
    );
    assert!(explanation.contains(" (3 of 8): rank "), "{explanation}");
    let explanation = explained(sampled[0]["url"].as_str().unwrap());
    assert!(
        explanation.contains("  sample: drawn in stratum "),
        "{explanation}"
    );
    let explanation = explained(&web.url(0, "/further"));
    assert!(
        explanation.contains("reason: sample, by `found after the draw`"),
        "{explanation}"
    );
    // The same command changes nothing, and another sample needs another directory.
    let before = rows("pages.jsonl");
    let again = cmd.run(&[&[&*seed], &flags[..], &QUICK[..]].concat());
    assert_eq!((again.code, rows("pages.jsonl")), (0, before));
    let files_before = files(&dir.file("c"));
    let other_seed = cmd.run(&[&[&*seed, "--sample-seed", "2"], &flags[..], &QUICK[..]].concat());
    assert_eq!(other_seed.code, 2);
    assert!(
        other_seed
            .stderr
            .contains("this crawl samples its pages with different settings"),
        "{}",
        other_seed.stderr
    );
    assert_eq!(files(&dir.file("c")), files_before);
}

/// Returns the files of a crawl with their bytes, except its state.
fn files(crawl: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = every_file(crawl);
    files.retain(|path, _| !path.starts_with(crawl.join("state")));
    files
}

fn every_file(crawl: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![crawl.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => drop(files.insert(path.clone(), fs::read(path).unwrap())),
            }
        }
    }
    files
}

/// The probabilities of pages that were fetched before the sample are unknown.
#[test]
fn a_crawl_that_began_without_a_sample_does_not_become_one() {
    let (dir, cmd) = setup("late-sample");
    let web = TestWeb::builder().pages(4).start();
    let seed = web.url(0, "/");
    let crawl = [&[&*seed, "--output", "c"][..], &QUICK].concat();
    assert_eq!(cmd.run(&crawl).code, 0);
    let files_before = files(&dir.file("c"));
    for sample in [["--sample", "2"], ["--walk", "3"]] {
        let ran = cmd.run(&[&crawl[..], &sample, &["--recrawl"]].concat());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        let words = "this crawl already fetched pages without a sample\nhint: draw the sample into a new --output\n";
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        assert_eq!(files(&dir.file("c")), files_before);
    }
    // A sample or walk stays what it is, even before its draw.
    for (begun, changed) in [
        (
            &["--walk", "3"][..],
            &["--walk", "unlimited", "--sample", "2"][..],
        ),
        (&["--walk", "3"], &["--walk", "unlimited"]),
        (&["--sample", "2"], &["--sample", "unlimited"]),
        (
            &["--sample", "2", "--max-pages", "1"],
            &["--sample", "unlimited", "--max-pages", "unlimited"],
        ),
    ] {
        let output = format!("w{}", begun.concat());
        let crawl = [&[&*seed, "--output", &output][..], &QUICK].concat();
        assert_eq!(cmd.run(&[&crawl[..], begun].concat()).code, 0);
        let ran = cmd.run(&[&crawl[..], changed, &["--recrawl"]].concat());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        let words = "this crawl samples its pages with different settings\n";
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        let verified = cmd.run(&["verify", &output]);
        assert_eq!(verified.code, 0, "{}", verified.stdout);
    }
    // A run that was killed before the draw began as a sample.
    let sample = [&[&*seed, "--output", "s", "--sample", "2"][..], &QUICK].concat();
    assert_eq!(
        cmd.run(&[&sample[..], &["--max-pages", "1"]].concat()).code,
        0
    );
    let ran = cmd.run(&sample);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_sample_of_one_page_is_refused() {
    let (_dir, cmd) = setup("sample-of-one");
    let ran = cmd.run(&["http://127.0.0.1:1/", "--sample", "1"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("--sample 1 is less than 2"),
        "{}",
        ran.stderr
    );
}

/// Starts a web of two hosts. Also returns the seeds of a crawl of the web.
fn two_hosts() -> (TestWeb, [String; 2]) {
    let web = TestWeb::builder().hosts(2).pages(60).start();
    let seeds = [web.url(0, "/"), web.url(1, "/")];
    (web, seeds)
}

fn typed<Row: serde::de::DeserializeOwned>(dir: &Dir, name: &str) -> Vec<Row> {
    let rows = dir.rows(name).into_iter();
    rows.map(|row| serde_json::from_value(row).unwrap())
        .collect()
}

/// Returns the pages of a sample with their sample fields, and the steps of a walk.
fn chosen(dir: &Dir, crawl: &str) -> (BTreeMap<String, Value>, Vec<String>) {
    let pages = dir.rows(&format!("{crawl}/pages.jsonl")).into_iter();
    let pages = pages.filter(|row| !row["sample"].is_null());
    let pages = pages.map(|row| (row["url"].to_string(), row["sample"].clone()));
    let mut steps = match dir.file(crawl).join("walk.jsonl").exists() {
        true => dir.rows(&format!("{crawl}/walk.jsonl")),
        false => Vec::new(),
    };
    steps.sort_by_key(|row| (row["walker"].as_u64(), row["step"].as_u64()));
    (
        pages.collect(),
        steps.iter().map(ToString::to_string).collect(),
    )
}

/// Kills a crawl repeatedly, at moments observed by its servers, and compares the result with an
/// undisturbed crawl.
fn check_kills(cmd: &Cmd, dir: &Dir, flags: &[&str]) {
    const KILLS: usize = 5;
    let (web, seeds) = two_hosts();
    let command = |crawl: &str| -> Vec<String> {
        let seeds = seeds.iter().flat_map(|seed| ["--seed", &**seed]);
        let more = [
            "--delay",
            "10ms",
            "--delay-factor",
            "0",
            "--progress",
            "off",
            "--output",
            crawl,
        ];
        let all = seeds.chain(flags.iter().copied()).chain(more);
        all.map(str::to_owned).collect()
    };
    let run = |crawl: &str| {
        let args = command(crawl);
        let ran = cmd.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    };
    run("whole");
    let requests = web.take_log().len();
    for kill in 1..=KILLS {
        let args = command("killed");
        let running = cmd.start(&args.iter().map(String::as_str).collect::<Vec<_>>());
        // Kill the crawl after this number of requests. Killed crawls send at least as many
        // requests as an undisturbed one, so they reach this number.
        let min_requests = requests * kill / (KILLS + 2);
        assert!(web.wait_for(Duration::from_secs(120), |log| log.len() >= min_requests));
        running.signal("KILL");
        running.end();
    }
    run("killed");
    assert_eq!(chosen(dir, "killed"), chosen(dir, "whole"));
    let requests: Vec<RequestRow> = typed(dir, "killed/requests.jsonl");
    for page in typed::<PageRow>(dir, "killed/pages.jsonl") {
        let settled = page.fetched_at.as_micros() / 1_000;
        let later = requests
            .iter()
            .filter(|row| row.url == page.url && row.start > settled);
        assert_eq!(
            later.count(),
            0,
            "{} is requested again, though it was settled",
            page.url
        );
    }
    for args in [["audit", "killed"], ["verify", "killed"]] {
        let ran = cmd.run(&args);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_sample_is_the_same_however_often_its_crawl_is_killed() {
    let (dir, cmd) = setup("sample-killed");
    check_kills(&cmd, &dir, &["--sample", "12", "--sample-by", "path"]);
    let (pages, _) = chosen(&dir, "whole");
    let is_drawn = |row: &&Value| row["how"] == "drawn";
    assert!(pages.values().filter(is_drawn).count() >= 12, "{pages:?}");
}

#[test]
fn a_walk_is_the_same_however_often_its_crawl_is_killed() {
    let (dir, cmd) = setup("walk-killed");
    check_kills(&cmd, &dir, &["--walk", "30", "--walkers", "3"]);
    let (_, steps) = chosen(&dir, "whole");
    assert!(steps.len() >= 90, "{}", steps.len());
}

#[test]
fn a_walk_is_taken_reported_and_explained() {
    let (dir, cmd) = setup("walk");
    let (web, seeds) = two_hosts();
    let flags = ["--walk", "40", "--walkers", "2", "--output", "c"];
    let ran = cmd.run(&[&[&*seeds[0]], &flags[..], &QUICK[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let steps = dir.rows("c/walk.jsonl");
    let walked = steps.iter().filter(|row| row["how"] != "redirect");
    assert_eq!(walked.count(), 80);
    // The rows contain only pages that were visited, and no sitemaps, which a walk doesn't read.
    let pages = dir.rows("c/pages.jsonl");
    let came_to: BTreeSet<_> = steps.iter().map(|row| row["url"].to_string()).collect();
    for row in &pages {
        assert_eq!(row["sample"]["how"], "walk");
        assert!(row["sample"]["probability"].is_null() && row["sample"]["unknown"].is_string());
        assert!(came_to.contains(&row["url"].to_string()), "{row}");
    }
    let excluded = dir.rows("c/excluded.jsonl");
    let unvisited = |row: &&Value| row["rule"] == "no walker came to it";
    let unvisited = excluded.iter().find(unvisited).unwrap()["url"].clone();
    let report = cmd.run(&["report", "c"]).ok();
    assert!(
        report.contains("walk      2 walkers, 80 steps to "),
        "{report}"
    );
    assert!(report.contains("(intervals are unknown)"), "{report}");
    let html = dir.read("c/report.html");
    assert!(html.contains("<h2>Random walk</h2>"));
    let explained = |url: &str| cmd.run(&["explain", "c", url]).ok();
    let explanation = explained(&seeds[0]);
    assert!(
        explanation.contains(" led to it, first step 1 of walker "),
        "{explanation}"
    );
    let explanation = explained(unvisited.as_str().unwrap());
    assert!(
        explanation.contains("reason: sample, by `no walker came to it`"),
        "{explanation}"
    );
    // The same command changes nothing, and another walk needs another directory.
    let request_count = web.log().len();
    let again = cmd.run(&[&[&*seeds[0]], &flags[..], &QUICK[..]].concat());
    assert_eq!((again.code, web.log().len()), (0, request_count));
    assert_eq!(dir.rows("c/walk.jsonl"), steps);
    let other_seed =
        cmd.run(&[&[&*seeds[0], "--sample-seed", "2"], &flags[..], &QUICK[..]].concat());
    assert_eq!(other_seed.code, 2, "{}", other_seed.stderr);
    // A forgotten page is in no step of the walk.
    let page = pages[1]["url"].as_str().unwrap();
    let ran = cmd.run(&["forget", "c", page, "--reason", "asked"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for (path, bytes) in every_file(&dir.file("c")) {
        let quoted = format!("\"{page}\"");
        let is_in = bytes
            .windows(quoted.len())
            .any(|part| part == quoted.as_bytes());
        assert!(!is_in, "{}", path.display());
    }
    let ran = cmd.run(&["verify", "c"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_walk_that_contradicts_itself_is_refused() {
    let (_dir, cmd) = setup("walk-refused");
    for (flags, words) in [
        (
            &["--walk", "9", "--sample", "9"][..],
            "can't combine --sample with --walk",
        ),
        (
            &["--walk", "9", "--max-depth", "3"][..],
            "can't combine --max-depth 3 with --walk",
        ),
        (&["--walk", "0"][..], "--walk 0 isn't between 1 and 1000000"),
        (
            &["--walk", "9", "--walkers", "0"][..],
            "--walkers 0 isn't between 1 and 1000",
        ),
        (
            &["--walk", "9", "--walk-restart", "1.5"][..],
            "--walk-restart 1.5 isn't a probability",
        ),
    ] {
        let ran = cmd.run(&[&["http://127.0.0.1:1/"], flags].concat());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

#[test]
fn a_sample_from_a_seed_sitemap_fetches_no_other_pages() {
    let (dir, cmd) = setup("sample-sitemap");
    let web = TestWeb::builder().hosts(1).sitemap(false).start();
    let entries = (0..8).map(|page| {
        let page = format!("/l{page}");
        web.script(0, &page, HttpAnswer::html("<a href=/further>x</a>"));
        format!("<url><loc>{}</loc></url>", web.url(0, &page))
    });
    let sitemap = format!("<urlset>{}</urlset>", entries.collect::<String>());
    let sitemap = HttpAnswer::of(200)
        .header("content-type", "application/xml")
        .body(sitemap);
    web.script(0, "/maps/all", sitemap);
    let seed = web.url(0, "/maps/all");
    let flags = ["--seed-sitemap", &seed, "--sample", "3", "--output", "c"];
    let refused = cmd.run(&[&flags[..], &QUICK].concat());
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let hint = "hint: --frame-depth 0 draws from the pages in the sitemap\n";
    assert!(refused.stderr.ends_with(hint), "{}", refused.stderr);
    assert!(web.log().is_empty());
    let ran = cmd.run(&[&flags[..], &["--frame-depth", "0"], &QUICK].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let (pages, _) = chosen(&dir, "c");
    let drawn = pages.values().filter(|row| row["how"] == "drawn");
    assert!(drawn.into_iter().all(|row| row["probability"] == 3.0 / 8.0));
    let requests = web.log();
    let requests = requests.iter().filter(|entry| entry.path.starts_with("/l"));
    assert_eq!(requests.count(), 3);
    assert!(web.log().iter().all(|entry| entry.path != "/further"));
}

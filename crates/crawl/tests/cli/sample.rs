//! A crawl that draws a sample.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crawl_testweb::{Answer, TestWeb};
use serde_json::Value;

use crate::harness::setup;

const QUICK: [&str; 6] = ["--delay", "0s", "--delay-factor", "0", "--progress", "off"];

#[test]
fn ours_a_sample_is_drawn_told_of_and_explained() {
    let (dir, cmd) = setup("sample");
    let web = TestWeb::builder().hosts(1).pages(2).start();
    let listed: Vec<_> = (0..8)
        .map(|page| web.url(0, &format!("/l{page}")))
        .collect();
    let entries = listed
        .iter()
        .map(|url| format!("<url><loc>{url}</loc></url>"));
    let sitemap = format!("<urlset>{}</urlset>", entries.collect::<String>());
    let sitemap = Answer::of(200)
        .header("content-type", "application/xml")
        .body(sitemap);
    web.script(0, "/sitemap.xml", sitemap);
    for page in 0..8 {
        web.script(
            0,
            &format!("/l{page}"),
            Answer::html("<a href=/further>x</a>"),
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
    assert!(report.contains("sample    3 drawn of 8 URLs\n"), "{report}");
    assert!(report.contains("    status 200: 100.0 % ("), "{report}");
    let explained = |url: &str| cmd.run(&["explain", "c", url]).ok();
    let told = explained(of("not drawn")[0]);
    assert!(told.contains("  sample: not drawn in stratum "), "{told}");
    assert!(told.contains(" (3 of 8): its rank "), "{told}");
    let told = explained(sampled[0]["url"].as_str().unwrap());
    assert!(told.contains("  sample: drawn in stratum "), "{told}");
    let told = explained(&web.url(0, "/further"));
    assert!(
        told.contains("reason: sample, by `found after the draw`"),
        "{told}"
    );
    // The same command changes nothing, and another sample needs another directory.
    let before = rows("pages.jsonl");
    let again = cmd.run(&[&[&*seed], &flags[..], &QUICK[..]].concat());
    assert_eq!((again.code, rows("pages.jsonl")), (0, before));
    let files_before = files(&dir.file("c"));
    let other = cmd.run(&[&[&*seed, "--sample-seed", "2"], &flags[..], &QUICK[..]].concat());
    assert_eq!(other.code, 2);
    assert!(
        other.stderr.contains("was drawn with other settings"),
        "{}",
        other.stderr
    );
    assert_eq!(files(&dir.file("c")), files_before);
}

/// The files of a crawl with their bytes, but for those of its state.
fn files(crawl: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![crawl.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true if path.ends_with("state") => {}
                true => folders.push(path),
                false => drop(files.insert(path.clone(), fs::read(path).unwrap())),
            }
        }
    }
    files
}

#[test]
fn ours_a_sample_of_one_page_is_refused() {
    let (_dir, cmd) = setup("sample-of-one");
    let ran = cmd.run(&["http://127.0.0.1:1/", "--sample", "1"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("--sample 1 is less than 2"),
        "{}",
        ran.stderr
    );
}

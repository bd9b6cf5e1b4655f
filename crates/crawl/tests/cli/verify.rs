//! `crawl verify`: crawls of all kinds are whole, and what was changed is named.

use std::fs;

use crawl_testweb::{Answer, Script, TestWeb};
use serde_json::Value;

use crate::harness::{Cmd, Dir, setup};

/// Two rounds over pages that stay, change and go, with redirects, robots rules, a site that wants
/// no copy kept, and links.
fn crawl(cmd: &Cmd, output: &str) {
    let front = "<title>front</title><a href=/gone>a</a><a href=/moved>b</a><a href=/barred>c</a>\
                 <a href=/same>d</a><a href=/kept-out>e</a><a href=/cut>f</a>";
    let unkept = Answer::html("<p>no copy").header("x-robots-tag", "noarchive");
    let web = TestWeb::builder()
        .seed(8)
        .hosts(2)
        .pages(12)
        .robots(0, "User-agent: *\nDisallow: /barred\n")
        .script(0, "/", Answer::html(front))
        .script(
            0,
            "/gone",
            Script::from(Answer::html("here")).then(Answer::of(410)),
        )
        .script(0, "/moved", Answer::redirect(301, "/same"))
        .script(0, "/same", Answer::html("<title>the same</title>"))
        .script(0, "/kept-out", unkept)
        .script(0, "/cut", Answer::html(&"long ".repeat(9000)))
        .start();
    let (first, second) = (web.url(0, "/"), web.url(1, "/"));
    for _ in 0..2 {
        let ran = cmd.run(&[
            "--output",
            output,
            "--seed",
            &first,
            "--seed",
            &second,
            "--links",
            "on",
            "--delay",
            "0s",
            "--delay-factor",
            "0",
            "--progress",
            "off",
            "--purpose",
            "archive",
            "--max-body",
            "30KiB",
            "--recrawl",
        ]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
}

/// Verifies and gives exit code and findings.
fn verify(cmd: &Cmd, dir: &str) -> (i32, Value) {
    let ran = cmd.run(&["verify", dir, "--json"]);
    assert_eq!(ran.stderr, "");
    (ran.code, serde_json::from_str(&ran.stdout).unwrap())
}

fn doctored(dir: &Dir, cmd: &Cmd, file: &str, change: impl FnOnce(&mut Vec<u8>)) -> Value {
    let path = dir.file(file);
    let before = fs::read(&path).unwrap();
    let mut bytes = before.clone();
    change(&mut bytes);
    assert!(bytes != before, "{file} is as it was");
    fs::write(&path, bytes).unwrap();
    let (code, found) = verify(cmd, "c");
    fs::write(&path, before).unwrap();
    assert_eq!(code, 4, "{file}: {found}");
    found["findings"].clone()
}

fn replaced(bytes: &mut Vec<u8>, from: &str, to: &str) {
    let text = String::from_utf8(std::mem::take(bytes)).unwrap();
    *bytes = text.replacen(from, to, 1).into_bytes();
}

#[test]
fn a_crawl_of_two_rounds_is_whole_and_what_is_changed_in_it_is_named() {
    let (dir, cmd) = setup("verify");
    crawl(&cmd, "c");
    let (code, found) = verify(&cmd, "c");
    assert_eq!(code, 0, "{found:#}");
    assert_eq!(found["is_ended"], true);
    let rows: usize = ["pages", "requests", "excluded", "links", "hosts", "waiting"]
        .map(|name| dir.rows(&format!("c/{name}.jsonl")).len())
        .iter()
        .sum();
    assert_eq!(found["checked"]["rows"], rows);
    assert!(found["checked"]["records"].as_u64() > Some(60), "{found:#}");
    let text = cmd.run(&["verify", "c"]).ok();
    assert!(text.ends_with("defects    none\n"), "{text}");

    let told = |found: &Value| found.to_string();
    let found = doctored(&dir, &cmd, "c/pages.jsonl", |bytes| {
        replaced(bytes, "\"depth\":1", "\"depth\":2");
    });
    assert!(
        told(&found).contains("column `depth` is not what the record"),
        "{found}"
    );
    let found = doctored(&dir, &cmd, "c/pages.jsonl", |bytes| {
        replaced(bytes, "\"status\":200", "\"status\":201");
    });
    assert!(
        told(&found).contains("its status is not that of line"),
        "{found}"
    );
    let found = doctored(&dir, &cmd, "c/pages.jsonl", |bytes| {
        replaced(bytes, "\"title\"", "\"tidle\"");
    });
    assert!(
        told(&found).contains("no row has a column `tidle`"),
        "{found}"
    );
    let found = doctored(&dir, &cmd, "c/requests.jsonl", |bytes| {
        replaced(bytes, "\"start\":1", "\"start\":2");
    });
    assert!(
        told(&found).contains("requests.jsonl has no row for this URL"),
        "{found}"
    );
    let found = doctored(&dir, &cmd, "c/report.json", |bytes| {
        replaced(bytes, "\"total\": ", "\"total\": 9");
    });
    assert!(told(&found).contains("`pages.total` is 9"), "{found}");
    let found = doctored(&dir, &cmd, "c/hosts.jsonl", |bytes| {
        replaced(bytes, "whole", "blocked");
    });
    assert!(told(&found).contains("\"line\":"), "{found}");
    let found = doctored(&dir, &cmd, "c/archive/index.cdxj", |bytes| {
        replaced(bytes, "\"status\": \"200\"", "\"status\": \"203\"");
    });
    assert!(
        told(&found).contains("it is not the line of the record at offset"),
        "{found}"
    );
    let found = doctored(&dir, &cmd, "c/archive/captures.cdxj", |bytes| {
        let end = bytes.iter().position(|&byte| byte == b'\n').unwrap();
        bytes.drain(..=end);
    });
    assert!(
        told(&found).contains("no line of archive/captures.cdxj names"),
        "{found}"
    );
}

#[test]
fn a_byte_that_changes_in_a_warc_file_is_named_by_the_record() {
    let (dir, cmd) = setup("verify-flips");
    crawl(&cmd, "c");
    let name = fs::read_dir(dir.file("c/archive"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .find(|name| name.ends_with(".warc.gz"))
        .unwrap();
    let file = format!("archive/{name}");
    let length = fs::metadata(dir.file("c").join(&file)).unwrap().len() as usize;
    for step in 0..12 {
        let at = step * length / 12 + 40;
        let found = doctored(&dir, &cmd, &format!("c/{file}"), |bytes| {
            bytes[at] ^= 1 << (step % 8);
        });
        let named = found.as_array().unwrap().iter().find(|finding| {
            finding["file"] == file && finding["offset"].as_u64() <= Some(at as u64)
        });
        assert!(named.is_some(), "byte {at}: {found}");
    }
}

#[test]
fn a_crawl_that_was_killed_is_verified_as_far_as_it_was_committed() {
    let (dir, cmd) = setup("verify-killed");
    crawl(&cmd, "c");
    fs::remove_file(dir.file("c/waiting.jsonl")).unwrap();
    fs::remove_file(dir.file("c/archive/index.cdxj")).unwrap();
    // As the beginning of a run leaves the list.
    crawl_archive::keep_archive_digests(&dir.file("c")).unwrap();
    let mut rows = fs::read(dir.file("c/pages.jsonl")).unwrap();
    rows.extend_from_slice(b"{\"url\":\"http");
    fs::write(dir.file("c/pages.jsonl"), rows).unwrap();
    let (code, found) = verify(&cmd, "c");
    let checked = &found["checked"];
    assert_eq!(checked["files"], checked["warc_files"], "{found:#}");
    assert_eq!(
        (code, &found["is_ended"]),
        (0, &Value::from(false)),
        "{found:#}"
    );
    assert!(
        found["notes"]
            .to_string()
            .contains("the last line has no end"),
        "{found:#}"
    );
}

#[test]
fn a_crawl_out_of_which_a_page_was_taken_is_whole() {
    let (dir, cmd) = setup("verify-forgotten");
    crawl(&cmd, "c");
    let rows = dir.rows("c/pages.jsonl");
    let url = rows.iter().find_map(|row| {
        row["url"]
            .as_str()?
            .strip_suffix("/same")
            .map(|_| &row["url"])
    });
    let forgotten = cmd.run(&[
        "forget",
        "c",
        url.unwrap().as_str().unwrap(),
        "--reason",
        "asked",
    ]);
    assert_eq!(forgotten.code, 0, "{}", forgotten.stderr);
    assert!(dir.rows("c/pages.jsonl").len() < rows.len());
    let (code, found) = verify(&cmd, "c");
    assert_eq!(code, 0, "{found:#}");
}

#[test]
fn directories_that_hold_no_crawl_can_not_be_verified() {
    let (dir, cmd) = setup("verify-none");
    dir.write("empty/note", "");
    let ran = cmd.run(&["verify", "empty"]);
    assert_eq!(
        ran.refusal(&dir),
        "2\nerror: `empty` holds no crawl\n\
         hint: give the directory that a crawl left, with its pages.jsonl"
    );
}

/// All files of a crawl's directory by their paths.
fn files(dir: &Dir, crawl: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![crawl.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(dir.file(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(path),
                false => found.push((path.clone(), fs::read(dir.file(&path)).unwrap())),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn each_flipped_bit_of_a_crawl_at_rest_is_named_by_its_file() {
    let (dir, cmd) = setup("verify-rest");
    crawl(&cmd, "c");
    let scratch = dir.file("scratch");
    fs::create_dir(&scratch).unwrap();
    let root = dir.file("c");
    let whole = crawl_bundle::verify(&root, &scratch).unwrap();
    assert!(whole.is_whole() && whole.unchecked.is_empty(), "{whole}");
    // To look at a crawl changes nothing in it.
    let seed = dir.rows("c/pages.jsonl")[0]["url"].clone();
    let seed = seed.as_str().unwrap();
    for looks in [
        &["explain", "c", seed][..],
        &["audit", "c"],
        &["report", "c"],
    ] {
        cmd.run(looks).ok();
    }
    let all = files(&dir, "c");
    for name in ["c/state/store/version", "c/report.html", "c/crawl.toml"] {
        assert!(all.iter().any(|(path, _)| path == name), "{name}");
    }
    let full: Vec<_> = all.iter().filter(|(_, bytes)| !bytes.is_empty()).collect();
    for flip in 0..2 * full.len() {
        let (path, bytes) = full[flip % full.len()];
        let at = (flip * 7919 + flip / full.len() * bytes.len() / 3) % bytes.len();
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (flip % 8);
        fs::write(dir.file(path), &flipped).unwrap();
        let found = crawl_bundle::verify(&root, &scratch).unwrap();
        fs::write(dir.file(path), bytes).unwrap();
        let name = path.strip_prefix("c/").unwrap();
        let is_named = found.findings.iter().any(|finding| finding.file == name);
        assert!(is_named, "bit {} of byte {at} of {name}: {found}", flip % 8);
    }
    let (code, found) = verify(&cmd, "c");
    assert_eq!(code, 0, "{found:#}");
    // What comes or goes is named too.
    dir.write("c/archive/crawl-x-00001.warc.gz", "");
    let found = crawl_bundle::verify(&root, &scratch).unwrap().to_string();
    let unlisted = "archive/crawl-x-00001.warc.gz: digests.jsonl does not list it";
    let unnamed = "archive/crawl-x-00001.warc.gz: neither captures.cdxj nor pages.jsonl names";
    assert!(
        found.contains(unlisted) && found.contains(unnamed),
        "{found}"
    );
    fs::remove_file(dir.file("c/archive/crawl-x-00001.warc.gz")).unwrap();
    fs::remove_file(dir.file("c/waiting.jsonl")).unwrap();
    let found = doctored(&dir, &cmd, "c/report.json", |bytes| {
        replaced(bytes, "\"total\": ", "\"total\": 9");
    });
    let found = found.to_string();
    for defect in ["waiting.jsonl", "`pages.total` is 9"] {
        assert!(found.contains(defect), "{defect} in {found}");
    }
}

#[test]
fn a_value_that_became_null_is_named_by_what_others_say() {
    let (dir, cmd) = setup("verify-null");
    crawl(&cmd, "c");
    // As in the directory of a version that left no digests.
    fs::remove_file(dir.file("c/digests.jsonl")).unwrap();
    assert_eq!(verify(&cmd, "c").0, 0);
    let nulled = |column: &str, is_it: &dyn Fn(&Value) -> bool| {
        let mut rows = dir.rows("c/pages.jsonl");
        let row = rows.iter_mut().find(|row| is_it(row)).unwrap();
        row[column] = Value::Null;
        let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
        let found = doctored(&dir, &cmd, "c/pages.jsonl", |bytes| {
            *bytes = lines.into_bytes();
        });
        found.to_string()
    };
    // Records of sitemaps do not say that they have a row.
    let is_page = |row: &Value| !row["url"].as_str().unwrap().ends_with("/sitemap.xml");
    let has = |column: &'static str| move |row: &Value| !row[column].is_null() && is_page(row);
    for (column, defect) in [
        (
            "digest",
            "column `digest` is null, and the page was answered",
        ),
        ("warc", "column `warc` is null, and the page was answered"),
        ("warc", "no row of pages.jsonl names this record of a page"),
        ("status", "columns `status` and `error` are both null"),
        ("redirect", "column `redirect` is not what the record"),
        ("withheld", "column `withheld` is not what the record"),
        ("via", "column `via` is not what the record"),
    ] {
        let found = nulled(column, &has(column));
        assert!(found.contains(defect), "{defect} in {found}");
    }
    let found = doctored(&dir, &cmd, "c/pages.jsonl", |bytes| {
        let sample = "\"sample\":{\"how\":\"drawn\",\"stratum\":\"a\",\"drawn\":1,\"of\":2,\"probability\":0.5}";
        replaced(bytes, "\"sample\":null", sample);
    });
    let defect = "column `sample` tells of a sample, and crawl.toml of none";
    assert!(found.to_string().contains(defect), "{found}");
}

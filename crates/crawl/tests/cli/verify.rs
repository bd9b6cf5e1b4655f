//! `crawl verify`: crawls of all kinds are intact, and every change is reported.

use std::fs;

use crawl_testweb::{HttpAnswer, ReplySequence, TestWeb};
use serde_json::Value;

use crate::harness::{Cmd, Dir, setup};

/// Crawls two rounds of a site. Between the rounds some pages stay the same, some change and some
/// disappear. Other pages redirect, are disallowed or forbid archiving.
fn crawl(cmd: &Cmd, output: &str) {
    crawl_with(cmd, output, ["gzip", "gzip"]);
}

/// Crawls the site of [`crawl`], each round with another compression of WARC files.
fn crawl_with(cmd: &Cmd, output: &str, compressions: [&str; 2]) {
    let front = "<title>front</title><a href=/gone>a</a><a href=/moved>b</a><a href=/barred>c</a>\
                 <a href=/same>d</a><a href=/kept-out>e</a><a href=/cut>f</a>";
    let unkept = HttpAnswer::html("<p>no copy").header("x-robots-tag", "noarchive");
    let web = TestWeb::builder()
        .seed(8)
        .hosts(2)
        .pages(12)
        .robots(0, "User-agent: *\nDisallow: /barred\n")
        .script(0, "/", HttpAnswer::html(front))
        .script(
            0,
            "/gone",
            ReplySequence::from(HttpAnswer::html("here")).then(HttpAnswer::of(410)),
        )
        .script(0, "/moved", HttpAnswer::redirect(301, "/same"))
        .script(0, "/same", HttpAnswer::html("<title>the same</title>"))
        .script(0, "/kept-out", unkept)
        .script(0, "/cut", HttpAnswer::html(&"long ".repeat(9000)))
        .start();
    let (first, second) = (web.url(0, "/"), web.url(1, "/"));
    for compression in compressions {
        let ran = cmd.run(&[
            "--output",
            output,
            "--warc-compression",
            compression,
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

/// Verifies the crawl, and returns the exit code and the findings.
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
fn a_crawl_of_two_rounds_is_intact_and_changes_to_it_are_reported() {
    let (dir, cmd) = setup("verify");
    crawl(&cmd, "c");
    let (code, findings) = verify(&cmd, "c");
    assert_eq!(code, 0, "{findings:#}");
    assert_eq!(findings["is_ended"], true);
    let files = [
        "pages",
        "requests",
        "excluded",
        "links",
        "hosts",
        "waiting",
        "state/delays",
    ];
    let rows: usize = files
        .map(|name| dir.rows(&format!("c/{name}.jsonl")).len())
        .iter()
        .sum();
    assert_eq!(findings["checked"]["rows"], rows);
    assert!(
        findings["checked"]["records"].as_u64() > Some(60),
        "{findings:#}"
    );
    let text = cmd.run(&["verify", "c"]).ok();
    assert!(text.ends_with("defects    none\n"), "{text}");

    let as_text = |findings: &Value| findings.to_string();
    let findings = doctored(&dir, &cmd, "c/pages.jsonl", |bytes| {
        replaced(bytes, "\"depth\":1", "\"depth\":2");
    });
    assert!(
        as_text(&findings).contains("column `depth` differs from the record"),
        "{findings}"
    );
    let findings = doctored(&dir, &cmd, "c/pages.jsonl", |bytes| {
        replaced(bytes, "\"status\":200", "\"status\":201");
    });
    assert!(
        as_text(&findings).contains("its status differs from line"),
        "{findings}"
    );
    let findings = doctored(&dir, &cmd, "c/pages.jsonl", |bytes| {
        replaced(bytes, "\"title\"", "\"tidle\"");
    });
    assert!(
        as_text(&findings).contains("unknown column `tidle`"),
        "{findings}"
    );
    let findings = doctored(&dir, &cmd, "c/requests.jsonl", |bytes| {
        replaced(bytes, "\"start\":1", "\"start\":2");
    });
    assert!(
        as_text(&findings).contains("requests.jsonl has no row for this URL"),
        "{findings}"
    );
    let findings = doctored(&dir, &cmd, "c/report.json", |bytes| {
        replaced(bytes, "\"total\": ", "\"total\": 9");
    });
    assert!(
        as_text(&findings).contains("`pages.total` is 9"),
        "{findings}"
    );
    let findings = doctored(&dir, &cmd, "c/hosts.jsonl", |bytes| {
        replaced(bytes, "whole", "blocked");
    });
    assert!(as_text(&findings).contains("\"line\":"), "{findings}");
    let findings = doctored(&dir, &cmd, "c/archive/index.cdxj", |bytes| {
        replaced(bytes, "\"status\": \"200\"", "\"status\": \"203\"");
    });
    assert!(
        as_text(&findings).contains("not the line of the record at offset"),
        "{findings}"
    );
    let findings = doctored(&dir, &cmd, "c/archive/captures.cdxj", |bytes| {
        let end = bytes.iter().position(|&byte| byte == b'\n').unwrap();
        bytes.drain(..=end);
    });
    assert!(
        as_text(&findings).contains("no line of archive/captures.cdxj names"),
        "{findings}"
    );
}

#[test]
fn a_changed_byte_in_a_warc_file_is_reported_by_its_record() {
    check_changed_bytes("gzip", ".warc.gz");
    check_changed_bytes("zstd", ".warc.zst");
    check_changed_bytes("none", ".warc");
}

fn check_changed_bytes(compression: &str, suffix: &str) {
    let (dir, cmd) = setup(&format!("verify-flips-{compression}"));
    crawl_with(&cmd, "c", [compression; 2]);
    let name = fs::read_dir(dir.file("c/archive"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .find(|name| name.ends_with(suffix))
        .unwrap();
    let file = format!("archive/{name}");
    let bytes = fs::read(dir.file("c").join(&file)).unwrap();
    for step in 0..12 {
        let at = step * bytes.len() / 12 + 40;
        // Skip the rest of the header of a gzip member or a zstd frame, because some changed bits
        // there go undetected: decoders ignore them, and no checksum covers them.
        let is_in_header = bytes[at - 9..at]
            .windows(3)
            .any(|part| part == [0x1f, 0x8b, 8] || part == [0xb5, 0x2f, 0xfd]);
        let at = if is_in_header { at + 10 } else { at };
        let findings = doctored(&dir, &cmd, &format!("c/{file}"), |bytes| {
            bytes[at] ^= 1 << (step % 8);
        });
        let is_named = |finding: &Value| {
            finding["file"] == file
                && match finding["offset"].as_u64() {
                    Some(offset) => offset <= at as u64,
                    // Only the digest of the whole file covers the header fields of a WARC record
                    // that isn't compressed, so the defect has no offset.
                    None => compression == "none",
                }
        };
        assert!(
            findings.as_array().unwrap().iter().any(is_named),
            "{compression}, byte {at}: {findings}"
        );
    }
}

/// Returns the suffixes of a crawl's WARC files, sorted.
fn warc_suffixes(dir: &Dir, crawl: &str) -> Vec<String> {
    let names = fs::read_dir(dir.file(crawl).join("archive")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let suffixes = names.filter_map(|name| {
        let stem = crawl_archive::strip_warc_suffix(&name)?;
        Some(name[stem.len()..].to_owned())
    });
    let mut suffixes: Vec<_> = suffixes.collect();
    suffixes.sort();
    suffixes
}

#[test]
fn every_command_reads_every_compression_of_an_archive() {
    let (dir, cmd) = setup("compressions");
    crawl_with(&cmd, "c", ["zstd", "none"]);
    assert_eq!(warc_suffixes(&dir, "c"), [".warc", ".warc.zst"]);
    let rows = dir.rows("c/pages.jsonl");
    let mut urls = rows.iter().filter_map(|row| row["url"].as_str());
    let same = urls.find(|url| url.ends_with("/same")).unwrap();
    for command in [
        "verify c",
        "audit c",
        "index c",
        "export c --to wacz --out crawl.wacz",
        "export c --to mirror --out mirror",
        "export c --to bundle --out bundle",
        "verify bundle",
        "replay c --output replayed",
        &format!("forget c {same}"),
        "verify c",
    ] {
        let ran = cmd.run(&command.split(' ').collect::<Vec<_>>());
        assert_eq!(ran.code, 0, "{command}: {}{}", ran.stdout, ran.stderr);
    }
    assert_eq!(warc_suffixes(&dir, "c"), [".warc", ".warc.zst"]);
    let results = cmd.run(&["search", "c", "front", "--json"]).ok();
    let results: Value = serde_json::from_str(&results).unwrap();
    assert_eq!(results["results"][0]["title"], "front", "{results}");
}

#[test]
fn a_killed_crawl_is_verified_up_to_its_last_commit() {
    let (dir, cmd) = setup("verify-killed");
    crawl(&cmd, "c");
    fs::remove_file(dir.file("c/waiting.jsonl")).unwrap();
    fs::remove_file(dir.file("c/archive/index.cdxj")).unwrap();
    // Write the list of digests as it is at the start of a run.
    crawl_archive::keep_archive_digests(&dir.file("c")).unwrap();
    let mut rows = fs::read(dir.file("c/pages.jsonl")).unwrap();
    rows.extend_from_slice(b"{\"url\":\"http");
    fs::write(dir.file("c/pages.jsonl"), rows).unwrap();
    let (code, findings) = verify(&cmd, "c");
    let checked = &findings["checked"];
    assert_eq!(checked["files"], checked["warc_files"], "{findings:#}");
    assert_eq!(
        (code, &findings["is_ended"]),
        (0, &Value::from(false)),
        "{findings:#}"
    );
    assert!(
        findings["notes"]
            .to_string()
            .contains("the last line is incomplete"),
        "{findings:#}"
    );
}

#[test]
fn a_crawl_without_a_forgotten_page_is_intact() {
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
    let (code, findings) = verify(&cmd, "c");
    assert_eq!(code, 0, "{findings:#}");
}

#[test]
fn directories_that_hold_no_crawl_can_not_be_verified() {
    let (dir, cmd) = setup("verify-none");
    dir.write("empty/note", "");
    let ran = cmd.run(&["verify", "empty"]);
    assert_eq!(
        ran.refusal(&dir),
        "2\nerror: no crawl in `empty`\n\
         hint: give the directory of a crawl, with its pages.jsonl"
    );
}

/// Returns all files of a crawl's directory by path.
fn files(dir: &Dir, crawl: &str) -> Vec<(String, Vec<u8>)> {
    let mut contents = Vec::new();
    let mut folders = vec![crawl.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(dir.file(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(path),
                false => contents.push((path.clone(), fs::read(dir.file(&path)).unwrap())),
            }
        }
    }
    contents.sort();
    contents
}

#[test]
fn a_flipped_bit_is_reported_by_its_file() {
    let (dir, cmd) = setup("verify-rest");
    crawl(&cmd, "c");
    let scratch = dir.file("scratch");
    fs::create_dir(&scratch).unwrap();
    let root = dir.file("c");
    let whole = crawl_bundle::verify(&root, &scratch).unwrap();
    assert!(whole.is_whole() && whole.unchecked.is_empty(), "{whole}");
    // Reading a crawl changes nothing in it.
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
        let findings = crawl_bundle::verify(&root, &scratch).unwrap();
        fs::write(dir.file(path), bytes).unwrap();
        let name = path.strip_prefix("c/").unwrap();
        let is_named = findings.findings.iter().any(|finding| finding.file == name);
        assert!(
            is_named,
            "bit {} of byte {at} of {name}: {findings}",
            flip % 8
        );
    }
    let (code, findings) = verify(&cmd, "c");
    assert_eq!(code, 0, "{findings:#}");
    // Added and removed files are reported too.
    dir.write("c/archive/crawl-x-00001.warc.gz", "");
    let findings = crawl_bundle::verify(&root, &scratch).unwrap().to_string();
    let unlisted = "archive/crawl-x-00001.warc.gz: digests.jsonl does not list it";
    let unnamed = "archive/crawl-x-00001.warc.gz: neither captures.cdxj nor pages.jsonl names";
    assert!(
        findings.contains(unlisted) && findings.contains(unnamed),
        "{findings}"
    );
    fs::remove_file(dir.file("c/archive/crawl-x-00001.warc.gz")).unwrap();
    fs::remove_file(dir.file("c/waiting.jsonl")).unwrap();
    let findings = doctored(&dir, &cmd, "c/report.json", |bytes| {
        replaced(bytes, "\"total\": ", "\"total\": 9");
    });
    let findings = findings.to_string();
    for defect in ["waiting.jsonl", "`pages.total` is 9"] {
        assert!(findings.contains(defect), "{defect} in {findings}");
    }
}

#[test]
fn a_nulled_value_is_detected_from_other_records() {
    let (dir, cmd) = setup("verify-null");
    crawl(&cmd, "c");
    // Simulate a crawl by an older version, which did not write the digests.
    fs::remove_file(dir.file("c/digests.jsonl")).unwrap();
    assert_eq!(verify(&cmd, "c").0, 0);
    let nulled = |column: &str, is_it: &dyn Fn(&Value) -> bool| {
        let mut rows = dir.rows("c/pages.jsonl");
        let row = rows.iter_mut().find(|row| is_it(row)).unwrap();
        row[column] = Value::Null;
        let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
        let findings = doctored(&dir, &cmd, "c/pages.jsonl", |bytes| {
            *bytes = lines.into_bytes();
        });
        findings.to_string()
    };
    // The records of sitemaps don't refer to a row.
    let is_page = |row: &Value| !row["url"].as_str().unwrap().ends_with("/sitemap.xml");
    let has = |column: &'static str| move |row: &Value| !row[column].is_null() && is_page(row);
    for (column, defect) in [
        (
            "digest",
            "column `digest` is null, but the page was answered",
        ),
        ("warc", "column `warc` is null, but the page was answered"),
        ("warc", "no row of pages.jsonl names this record of a page"),
        ("status", "columns `status` and `error` are both null"),
        ("redirect", "column `redirect` differs from the record"),
        ("withheld", "column `withheld` differs from the record"),
        ("via", "column `via` differs from the record"),
    ] {
        let findings = nulled(column, &has(column));
        assert!(findings.contains(defect), "{defect} in {findings}");
    }
    let findings = doctored(&dir, &cmd, "c/pages.jsonl", |bytes| {
        let sample = "\"sample\":{\"how\":\"drawn\",\"stratum\":\"a\",\"drawn\":1,\"of\":2,\"probability\":0.5}";
        replaced(bytes, "\"sample\":null", sample);
    });
    let defect = "column `sample` describes a sample, but crawl.toml has none";
    assert!(findings.to_string().contains(defect), "{findings}");
}

//! Tests that damage a hand-written crawl or bundle. Every kind of damage must be reported as a
//! defect, without ending the check early.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crawl_bundle::{VerificationResult, verify};

const PAGE: &str = r#"{"url":"http://e.example/","status":200,"fetched_at":"2026-11-20T23:59:59.123Z","ms":12,"bytes":3,"content_type":"text/html","digest":null,"depth":0,"via":null,"redirect":null,"title":null,"canonical":null,"indexed":null,"robots":{"verdict":"allowed","line":null,"rule":null},"warc":{"file":"crawl-e-20261120235959-00000.warc.gz","offset":512},"withheld":null,"round":1,"change":"new","error":null}
"#;
const ENDED: &str = r#"{"origin":null,"urls":0,"reason":"finished","detail":null}
"#;
/// Time limit of one check. A check that takes longer counts as hanging.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Calls `make` to fill an empty folder, verifies the folder and returns the result.
fn verify_made(make: impl FnOnce(&Path)) -> VerificationResult {
    let (dir, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make(dir.path());
    let (sender, receiver) = mpsc::channel();
    let (path, scratch_path) = (dir.path().to_owned(), scratch.path().to_owned());
    thread::spawn(move || drop(sender.send(verify(&path, &scratch_path))));
    let result = receiver.recv_timeout(TIMEOUT).expect("the check waits");
    result.unwrap()
}

fn crawl(dir: &Path) {
    fs::write(dir.join("crawl.toml"), "").unwrap();
    fs::write(dir.join("pages.jsonl"), PAGE).unwrap();
    fs::write(dir.join("waiting.jsonl"), ENDED).unwrap();
}

fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[track_caller]
fn names(verification: &VerificationResult, finding: &str) {
    let all: Vec<_> = verification
        .findings
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        all.iter().any(|text| text.starts_with(finding)),
        "no `{finding}` in {all:#?}"
    );
}

#[test]
fn a_row_whose_archive_is_gone_is_a_defect_whether_or_not_the_run_ended() {
    let finding = "pages.jsonl line 1: names a record of \
                   archive/crawl-e-20261120235959-00000.warc.gz, which is missing";
    names(&verify_made(crawl), finding);
    let unended = verify_made(|dir| {
        crawl(dir);
        fs::remove_file(dir.join("waiting.jsonl")).unwrap();
        fs::create_dir(dir.join("archive")).unwrap();
        let line = r#"example,e)/ 20261120235959 {"url": "http://e.example/", "length": "9", "offset": "512", "filename": "gone.warc.gz"}"#;
        fs::write(dir.join("archive/captures.cdxj"), format!("{line}\n")).unwrap();
    });
    assert!(!unended.is_ended);
    names(&unended, finding);
    names(
        &unended,
        "archive/captures.cdxj line 1: names a record of archive/gone.warc.gz, which is missing",
    );
}

#[test]
fn a_fifo_in_place_of_the_file_that_makes_a_bag_is_a_defect() {
    let verification = verify_made(|dir| {
        fs::create_dir(dir.join("data")).unwrap();
        fifo(&dir.join("bagit.txt"));
    });
    names(&verification, "bagit.txt: not the text of a bag");
}

#[test]
fn non_files_are_reported_and_do_not_abort_the_check() {
    let odd = verify_made(|dir| {
        crawl(dir);
        fifo(&dir.join("links.jsonl"));
        fs::write(dir.join("archive"), "").unwrap();
    });
    names(&odd, "links.jsonl: can't be read: not a regular file");
    names(&odd, "pages.jsonl line 1: names a record of archive/");
    let is_named = |finding: &crawl_bundle::VerificationDefect| {
        finding.what.starts_with("it is a") && !finding.file.contains('`')
    };
    assert!(odd.findings.iter().any(is_named), "{odd}");
    assert!(odd.findings.iter().all(|finding| !finding.file.is_empty()));

    let bag = verify_made(|dir| {
        fs::create_dir(dir.join("data")).unwrap();
        fs::write(dir.join("data/archive"), "").unwrap();
        fs::write(dir.join("tagmanifest-sha256.txt"), "").unwrap();
        let digest = "0".repeat(64);
        let long = "x".repeat(300);
        let lines = format!("{digest}  data/archive/captures.cdxj\n{digest}  data/{long}\n");
        fs::write(dir.join("manifest-sha256.txt"), lines).unwrap();
    });
    names(
        &bag,
        "data/archive/captures.cdxj: listed, but can't be read",
    );
    names(&bag, "data/xxx");
    names(&bag, "data/archive: no manifest lists it");
}

#[test]
fn a_report_that_is_too_long_is_not_read() {
    let verification = verify_made(|dir| {
        crawl(dir);
        let report = File::create(dir.join("report.json")).unwrap();
        report.set_len((256 << 20) + 1).unwrap();
    });
    names(
        &verification,
        "report.json: can't be read: longer than 268435456 bytes",
    );
}

//! Checks our files with WARC and CDXJ readers of other projects.
//!
//! `CRAWL_PYTHON_BIN` is the program folder of a Python environment with warcio 1.8.1, FastWARC
//! 2.0.1 and cdxj-indexer 1.5.0. The environment must not contain `brotli`, because warcio would
//! fail with an `AttributeError` at any body in that coding. FastWARC depends on `brotli` but does
//! not need it, so install FastWARC with `--no-deps`.

#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test that panics fails the test"
)]

#[path = "archive/odd_sample_captures.rs"]
mod odd_captures;
#[path = "archive/sample_captures.rs"]
mod sample;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crawl_archive::{
    ArchiveOptions, ArchiveWriter, CaptureEncoder, WarcCompression, WarcReader, Warcinfo,
    strip_warc_suffix,
};

use crate::odd_captures::{odd_captures, odd_urls};
use crate::sample::Sample;

#[test]
#[ignore = "needs the Python validators: cargo xtask test sets them up"]
fn warcio_fastwarc_and_cdxj_indexer_accept_odd_captures() {
    let python = PathBuf::from(
        std::env::var_os("CRAWL_PYTHON_BIN").expect("CRAWL_PYTHON_BIN names no environment"),
    );
    check(&python, WarcCompression::Gzip, 100_000, 20);
    check(&python, WarcCompression::Gzip, 1_000_000, 1);
    check(&python, WarcCompression::Plain, 1_000_000, 1);
    check(&python, WarcCompression::Zstd, 1_000_000, 1);
}

fn check(python: &Path, compression: WarcCompression, max_file_bytes: u64, least_files: usize) {
    let dir = tempfile::tempdir().unwrap();
    let files = archive(dir.path(), compression, max_file_bytes);
    assert!(files.len() >= least_files, "{} files", files.len());
    fastwarc(python, &files);
    if compression == WarcCompression::Zstd {
        // warcio, which cdxj-indexer uses too, doesn't read Zstandard.
        return;
    }
    run(python, "warcio", &["check"], &files);
    let theirs = run(python, "cdxj-indexer", &["--sort"], &files);
    let ours = fs::read_to_string(dir.path().join("archive/index.cdxj")).unwrap();
    assert_eq!(ours.lines().count(), theirs.lines().count());
    for (at, (ours, theirs)) in ours.lines().zip(theirs.lines()).enumerate() {
        match compression {
            // cdxj-indexer doesn't count the four bytes at the end of an uncompressed record.
            WarcCompression::Plain => assert_eq!(shorter(ours, 4), theirs, "line {}", at + 1),
            _ => assert_eq!(ours, theirs, "line {}", at + 1),
        }
    }
}

/// Returns an index line with the length of the record reduced by `bytes`.
fn shorter(line: &str, bytes: u64) -> String {
    let (head, rest) = line.split_once("\"length\": \"").unwrap();
    let (length, rest) = rest.split_once('"').unwrap();
    let length = length.parse::<u64>().unwrap() - bytes;
    format!("{head}\"length\": \"{length}\"{rest}")
}

/// Writes an archive of many files and returns their paths.
fn archive(dir: &Path, compression: WarcCompression, max_file_bytes: u64) -> Vec<PathBuf> {
    let options = ArchiveOptions {
        prefix: "example.org".into(),
        max_file_bytes,
        compression,
        warcinfo: Warcinfo {
            software: "crawl/0.1.0".into(),
            operator: Some("José <mailto:a@example.org>".into()),
            publisher: Some("Institute of Tea".into()),
            is_part_of: Some("Kettles, https://example.org/study".into()),
            user_agent: "crawl/0.1 (+mailto:a@example.org)".into(),
            from: Some("a@example.org".into()),
            robots: "RFC 9309, obeyed".into(),
            browser: None,
            config_digest: Some("sha256:x".into()),
        },
    };
    let mut archive = ArchiveWriter::open(dir, options, &BTreeMap::new()).unwrap();
    let mut encoder = CaptureEncoder::new(compression);
    let pages = (100..200).map(Sample::page);
    for sample in odd_captures().into_iter().chain(pages).chain(odd_urls()) {
        let mut capture = sample.encode(&mut encoder);
        encoder.add_dom(&mut capture, &sample.url, "<title>tea</title>");
        encoder.add_screenshot(&mut capture, &sample.url, b"\x89PNG");
        archive.append(&capture).unwrap();
    }
    archive.sync().unwrap();
    archive.write_index().unwrap();
    let files = archive.marks().map(|(name, _)| dir.join(name));
    files
        .filter(|path| strip_warc_suffix(&path.to_string_lossy()).is_some())
        .collect()
}

/// Checks that FastWARC accepts every digest, except the payload digest of revisits. There,
/// FastWARC hashes the bytes of the revisit record, but by definition (WARC 1.1 section 6.7.2) the
/// payload is in the original record.
fn fastwarc(python: &Path, files: &[PathBuf]) {
    let records = files
        .iter()
        .flat_map(|file| WarcReader::open(file).unwrap());
    let elsewhere = records
        .map(Result::unwrap)
        .filter(|record| record.kind() == "revisit")
        .filter_map(|record| record.field("WARC-Record-ID").map(str::to_owned))
        .collect::<Vec<_>>();
    if elsewhere.is_empty() {
        run(python, "fastwarc", &["check", "-q", "-p"], files);
        return;
    }
    let output = output(python, "fastwarc", &["check", "-q", "-p", "-o", "-"], files);
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in report.lines().filter(|line| line.contains("FAIL")) {
        assert!(
            line.ends_with(": OK, PAYLOAD_FAIL") && elsewhere.iter().any(|id| line.starts_with(id)),
            "{line}"
        );
    }
}

/// Runs a program of the Python environment, which must succeed, and returns its output.
fn run(python: &Path, program: &str, arguments: &[&str], files: &[PathBuf]) -> String {
    let output = output(python, program, arguments, files);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program} {files:?}: {stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    stdout
}

fn output(python: &Path, program: &str, arguments: &[&str], files: &[PathBuf]) -> Output {
    Command::new(python.join(program))
        .args(arguments)
        .args(files)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"))
}

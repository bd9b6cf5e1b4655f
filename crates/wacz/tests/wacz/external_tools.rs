//! Checks that independent programs accept our packages.
//!
//! The variable `CRAWL_PYTHON_BIN` names the folder with the programs of a Python environment. The
//! environment must contain the packages wacz, frictionless, warcio, FastWARC and cdxj-indexer.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::slice;

use crawl_archive::{ArchiveOptions, ArchiveWriter, CaptureEncoder};

use crate::odd_captures::{odd_captures, odd_urls};
use crate::sample::Sample;
use crate::single_round::of_three_rounds;
use crate::test_crawl::Package;

#[test]
#[ignore = "needs the Python validators: cargo xtask test sets them up"]
fn wacz_validate_frictionless_and_cdxj_indexer_take_odd_captures_and_a_round() {
    let dir = tempfile::tempdir().unwrap();
    let files = archive(dir.path());
    assert!(files >= 5, "{files} files");
    let package = Package::of(dir.path(), None, &[]).unwrap();
    assert_eq!(package.packaged.warc_files, files);
    assert!(package.packaged.pages > 100 && package.packaged.captures > 2000);
    check(&package);
    // The package of round 2 has revisits with an additional field, which names the file with their
    // payload.
    let crawl = of_three_rounds();
    let first = crawl.package(Some(1));
    let second = crawl.package_with_earlier(Some(2), slice::from_ref(&first.packaged.file));
    check(&second.unwrap());
}

fn check(package: &Package) {
    let python = PathBuf::from(
        std::env::var_os("CRAWL_PYTHON_BIN").expect("CRAWL_PYTHON_BIN names no environment"),
    );
    let unpacked = tempfile::tempdir().unwrap();
    let checked = Command::new(python.join("python"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wacz/check.py"))
        .args([&package.packaged.file, unpacked.path()])
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&checked.stdout);
    let complaint = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{output}\n{complaint}");
}

/// Makes an archive of unusual captures and some ordinary pages, with a row for each. Returns the
/// number of WARC files.
fn archive(dir: &Path) -> u64 {
    let options = ArchiveOptions {
        prefix: "example.org".into(),
        max_file_bytes: 200_000,
        ..ArchiveOptions::default()
    };
    let mut archive = ArchiveWriter::open(dir, options, &BTreeMap::new()).unwrap();
    let mut encoder = CaptureEncoder::default();
    let mut rows = String::new();
    let pages = (100..200).map(Sample::page);
    for sample in odd_captures().into_iter().chain(pages).chain(odd_urls()) {
        let mut capture = sample.encode(&mut encoder);
        encoder.add_dom(&mut capture, &sample.url, "<title>tea</title>");
        encoder.add_screenshot(&mut capture, &sample.url, b"\x89PNG");
        let receipt = archive.append(&capture).unwrap();
        let row = serde_json::json!({
            "url": sample.url.as_str(), "status": sample.status,
            "fetched_at": "2026-11-20T23:59:59.123Z", "ms": 1, "bytes": sample.body.len(),
            "content_type": null, "digest": null, "depth": sample.number % 3, "via": null,
            "title": null, "robots": null, "usage": null, "withheld": null, "error": null,
            "warc": { "file": receipt.file, "offset": receipt.offset }
        });
        rows.push_str(&format!("{row}\n"));
    }
    archive.sync().unwrap();
    fs::write(dir.join("pages.jsonl"), rows).unwrap();
    fs::write(
        dir.join("crawl.toml"),
        "seed = [\"http://www.example.org/\"]\n",
    )
    .unwrap();
    archive
        .marks()
        .filter(|(name, _)| name.ends_with(".gz"))
        .count() as u64
}

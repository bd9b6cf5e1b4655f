//! Other programs take the archive, and the rows say where in it each page lies.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crawl_archive::read_record;
use crawl_archive::rows::PageRow;

use crate::named;

/// warcio and FastWARC find every record and digest right, and cdxj-indexer makes the same
/// index as lies beside the archive.
pub(crate) fn check(output: &Path) {
    let folder = output.join("archive");
    let is_warc = |path: &PathBuf| path.to_string_lossy().ends_with(".warc.gz");
    let files = fs::read_dir(&folder).unwrap();
    let files: Vec<PathBuf> = files
        .map(|entry| entry.unwrap().path())
        .filter(is_warc)
        .collect();
    assert!(!files.is_empty());
    let ours = fs::read_to_string(folder.join("index.cdxj")).unwrap();
    // Each takes one processor.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for file in files.chunks(1) {
                run("fastwarc", &["check", "-q", "-p"], file);
            }
        });
        scope.spawn(|| run("warcio", &["check"], &files));
        let theirs = run("cdxj-indexer", &["--sort"], &files);
        for (at, (ours, theirs)) in ours.lines().zip(theirs.lines()).enumerate() {
            assert_eq!(ours, theirs, "line {}", at + 1);
        }
        assert_eq!(ours.lines().count(), theirs.lines().count());
    });
}

/// Each row's place in the archive is that of the response of its URL.
pub(crate) fn check_places(output: &Path, pages: &[PageRow]) {
    for row in pages {
        let place = row.warc.as_ref().unwrap_or_else(|| panic!("{row:?}"));
        let file = output.join("archive").join(&place.file);
        let record = read_record(&file, place.offset).unwrap();
        assert_eq!(record.kind(), "response", "{row:?}");
        assert_eq!(record.field("WARC-Target-URI"), Some(row.url.as_str()));
        let digest = record.field("WARC-Payload-Digest");
        assert_eq!(digest, row.digest.as_deref(), "{row:?}");
    }
}

/// Runs one of the Python programs; it must succeed. Gives what it printed.
fn run(program: &str, arguments: &[&str], files: &[PathBuf]) -> String {
    let mut command = Command::new(named("CRAWL_PYTHON_BIN").join(program));
    let output = command.args(arguments).args(files).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {said}\n{complaint}");
    said
}

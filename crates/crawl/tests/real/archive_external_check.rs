//! Checks the archive with other programs, and the positions of responses that rows record.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crawl_archive::read_record;
use crawl_archive::rows::PageRow;

use crate::named;

/// Checks that warcio and FastWARC accept every record and digest, and that cdxj-indexer generates
/// the same index as ours.
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
    // Run the programs concurrently, because each uses only one processor.
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

/// Checks that the archive has the response of each row's URL at the position that the row records.
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

/// Runs one of the Python programs, which must succeed, and returns its output.
fn run(program: &str, arguments: &[&str], files: &[PathBuf]) -> String {
    let mut command = Command::new(named("CRAWL_PYTHON_BIN").join(program));
    let output = command.args(arguments).args(files).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {stdout}\n{complaint}");
    stdout
}

//! Tests of the archive folder: names, rotation, and restarts after a crash.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crawl_archive::{
    ArchiveOptions, ArchiveWriteError, ArchiveWriter, CaptureEncoder, CaptureLocation,
    WarcCompression, WarcReader, Warcinfo, strip_warc_suffix,
};
use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::sample_captures::Sample;

fn options(max_file_bytes: u64) -> ArchiveOptions {
    ArchiveOptions {
        prefix: "[::1]:80/é".into(),
        max_file_bytes,
        warcinfo: Warcinfo {
            software: "crawl/0.1.0".into(),
            ..Warcinfo::default()
        },
        ..ArchiveOptions::default()
    }
}

type Marks = BTreeMap<String, u64>;

/// Syncs the archive and copies its lengths to `marks`, as the crawler's transaction does.
fn commit(archive: &mut ArchiveWriter, marks: &mut Marks) {
    archive.sync().unwrap();
    marks.extend(
        archive
            .marks()
            .map(|(name, length)| (name.to_owned(), length)),
    );
}

fn append(archive: &mut ArchiveWriter, number: u64) -> CaptureLocation {
    let encoded = Sample::page(number).encode(&mut CaptureEncoder::default());
    archive.append(&encoded).unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir.join("archive")).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Returns the URLs of all archived responses, in the order of files and records.
fn archived(dir: &Path) -> Vec<String> {
    let mut urls = Vec::new();
    for name in names(dir)
        .iter()
        .filter(|name| strip_warc_suffix(name).is_some())
    {
        for record in WarcReader::open(&dir.join("archive").join(name)).unwrap() {
            let record = record.unwrap();
            if record.kind() == "response" {
                urls.push(record.url().unwrap().to_owned());
            }
        }
    }
    urls
}

fn check_names(dir: &Path, expect: Expect) {
    expect.assert_eq(&names(dir).join("\n"));
}

#[test]
fn files_are_rotated_before_they_grow_too_long() {
    let dir = tempfile::tempdir().unwrap();
    let mut archive = ArchiveWriter::open(dir.path(), options(3000), &Marks::new()).unwrap();
    for number in 0..5 {
        append(&mut archive, number);
    }
    check_names(
        dir.path(),
        expect![[r#"
        captures.cdxj
        crawl-1--80-20261120235959-00000.warc.gz
        crawl-1--80-20261121000001-00001.warc.gz
        crawl-1--80-20261121000003-00002.warc.gz"#]],
    );
    for name in names(dir.path())
        .iter()
        .filter(|name| name.ends_with(".gz"))
    {
        let length = fs::metadata(dir.path().join("archive").join(name))
            .unwrap()
            .len();
        assert!(length <= 3000, "{name}: {length}");
    }
    assert_eq!(archived(dir.path()).len(), 5);
}

#[test]
fn a_capture_above_the_maximum_file_size_has_its_own_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut archive = ArchiveWriter::open(dir.path(), options(1), &Marks::new()).unwrap();
    let files: Vec<String> = (0..3).map(|n| append(&mut archive, n).file).collect();
    assert_eq!(names(dir.path())[1..], files);
}

#[test]
fn uncommitted_records_are_gone_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut marks = Marks::new();
    let mut archive = ArchiveWriter::open(dir.path(), options(2500), &marks).unwrap();
    append(&mut archive, 0);
    commit(&mut archive, &mut marks);
    for number in 1..5 {
        append(&mut archive, number);
    }
    archive.sync().unwrap();
    drop(archive);
    fs::write(dir.path().join("archive/index.cdxj.tmp3"), "half").unwrap();
    fs::write(dir.path().join("archive/notes.warc.gz"), "a person's").unwrap();
    assert!(names(dir.path()).len() > 4);

    let mut archive = ArchiveWriter::open(dir.path(), options(100_000), &marks).unwrap();
    check_names(
        dir.path(),
        expect![[r#"
        captures.cdxj
        crawl-1--80-20261120235959-00000.warc.gz
        notes.warc.gz"#]],
    );
    fs::remove_file(dir.path().join("archive/notes.warc.gz")).unwrap();
    assert_eq!(append(&mut archive, 9).file, names(dir.path())[1]);
    assert_eq!(archive.write_index().unwrap(), 2);
    assert_eq!(archived(dir.path()).len(), 2);
}

#[test]
fn a_changed_warcinfo_begins_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut marks = Marks::new();
    let mut archive = ArchiveWriter::open(dir.path(), options(100_000), &marks).unwrap();
    append(&mut archive, 0);
    commit(&mut archive, &mut marks);
    drop(archive);
    let mut changed = options(100_000);
    changed.warcinfo.software = "crawl/0.2.0".into();
    let mut archive = ArchiveWriter::open(dir.path(), changed, &marks).unwrap();
    append(&mut archive, 1);
    check_names(
        dir.path(),
        expect![[r#"
        captures.cdxj
        crawl-1--80-20261120235959-00000.warc.gz
        crawl-1--80-20261121000000-00001.warc.gz"#]],
    );
}

#[test]
fn a_changed_compression_begins_a_file_of_the_same_series() {
    let dir = tempfile::tempdir().unwrap();
    let mut marks = Marks::new();
    let changes = [
        WarcCompression::Gzip,
        WarcCompression::Zstd,
        WarcCompression::Zstd,
        WarcCompression::Plain,
        WarcCompression::Gzip,
    ];
    for (number, compression) in (0..).zip(changes) {
        let options = ArchiveOptions {
            compression,
            ..options(100_000)
        };
        let mut archive = ArchiveWriter::open(dir.path(), options, &marks).unwrap();
        let mut encoder = CaptureEncoder::new(compression);
        let encoded = Sample::page(number).encode(&mut encoder);
        archive.append(&encoded).unwrap();
        commit(&mut archive, &mut marks);
        // This record is not committed, so it must be gone after the next start.
        let encoded = Sample::page(number + 100).encode(&mut encoder);
        archive.append(&encoded).unwrap();
        archive.sync().unwrap();
    }
    let archive = ArchiveWriter::open(dir.path(), options(100_000), &marks).unwrap();
    drop(archive);
    check_names(
        dir.path(),
        expect![[r#"
        captures.cdxj
        crawl-1--80-20261120235959-00000.warc.gz
        crawl-1--80-20261121000000-00001.warc.zst
        crawl-1--80-20261121000002-00002.warc
        crawl-1--80-20261121000003-00003.warc.gz"#]],
    );
    let pages: Vec<String> = (0..5)
        .map(|number| Sample::page(number).url.to_string())
        .collect();
    assert_eq!(archived(dir.path()), pages);
}

#[test]
fn a_file_that_lost_committed_bytes_is_reported_and_nothing_changes() {
    let dir = tempfile::tempdir().unwrap();
    let mut marks = Marks::new();
    let mut archive = ArchiveWriter::open(dir.path(), options(100_000), &marks).unwrap();
    let file = append(&mut archive, 0).file;
    commit(&mut archive, &mut marks);
    drop(archive);
    let path = dir.path().join("archive").join(&file);
    let length = fs::metadata(&path).unwrap().len();
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(length - 1)
        .unwrap();
    fs::write(
        dir.path().join("archive/captures.cdxj"),
        "more than was committed".repeat(99),
    )
    .unwrap();
    let before = fs::read(dir.path().join("archive/captures.cdxj")).unwrap();
    match ArchiveWriter::open(dir.path(), options(100_000), &marks) {
        Err(ArchiveWriteError::Short {
            file,
            committed,
            found,
        }) => assert_eq!((file, committed, found), (path.clone(), length, length - 1)),
        _ => panic!("not short"),
    }
    fs::remove_file(&path).unwrap();
    match ArchiveWriter::open(dir.path(), options(100_000), &marks) {
        Err(ArchiveWriteError::Short { found: 0, .. }) => assert!(!path.exists()),
        _ => panic!("not short"),
    }
    assert_eq!(
        fs::read(dir.path().join("archive/captures.cdxj")).unwrap(),
        before
    );
}

#[test]
fn marks_of_other_files_are_refused_or_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let open = |mark: &str| {
        let marks = Marks::from([(mark.to_owned(), 0)]);
        ArchiveWriter::open(dir.path(), options(1), &marks).map(|_| ())
    };
    assert!(open("pages.jsonl").is_ok());
    for mark in [
        "archive/../pages.jsonl",
        "archive/crawl-20261120235959-00000.warc.gz/x",
    ] {
        assert!(
            matches!(open(mark), Err(ArchiveWriteError::ForeignMark { .. })),
            "{mark}"
        );
    }
}

#[test]
fn marks_are_those_of_the_last_sync() {
    let dir = tempfile::tempdir().unwrap();
    let mut archive = ArchiveWriter::open(dir.path(), options(1), &Marks::new()).unwrap();
    append(&mut archive, 0);
    assert_eq!(archive.marks().count(), 0);
    archive.sync().unwrap();
    assert_eq!(archive.marks().count(), 2);
    for (name, length) in archive.marks() {
        assert_eq!(fs::metadata(dir.path().join(name)).unwrap().len(), length);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Runs appends, some commits, and crashes at any moment with bytes half written. In the end
    /// the archive must contain each committed capture exactly once.
    #[test]
    fn committed_captures_survive_any_crashes(
        runs in prop::collection::vec(
            (prop::collection::vec(any::<bool>(), 0..8), prop::collection::vec(any::<u8>(), 0..40)),
            1..5,
        ),
        max_file_bytes in 1u64..8000,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut marks = Marks::new();
        let (mut committed, mut waiting) = (Vec::new(), Vec::new());
        let mut number = 0;
        for (steps, torn) in runs {
            let mut archive = ArchiveWriter::open(dir.path(), options(max_file_bytes), &marks).unwrap();
            let mut last = None;
            for commits in steps {
                let receipt = append(&mut archive, number);
                waiting.push(Sample::page(number).url.to_string());
                number += 1;
                if commits {
                    commit(&mut archive, &mut marks);
                    committed.append(&mut waiting);
                }
                last = Some(receipt.file);
            }
            drop(archive);
            waiting.clear();
            for name in last.iter().map(String::as_str).chain(["captures.cdxj"]) {
                let path = dir.path().join("archive").join(name);
                let mut bytes = fs::read(&path).unwrap();
                bytes.extend(&torn);
                fs::write(&path, bytes).unwrap();
            }
        }
        let mut archive = ArchiveWriter::open(dir.path(), options(max_file_bytes), &marks).unwrap();
        prop_assert_eq!(archived(dir.path()), committed.clone());
        prop_assert_eq!(archive.write_index().unwrap(), committed.len() as u64);
        let index = fs::read_to_string(dir.path().join("archive/index.cdxj")).unwrap();
        prop_assert!(index.lines().is_sorted());
        prop_assert_eq!(index.lines().count(), committed.len());
    }
}

#[test]
fn a_hard_linked_file_is_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let mut marks = Marks::new();
    let mut archive = ArchiveWriter::open(dir.path(), options(1_000_000), &marks).unwrap();
    let first = append(&mut archive, 0).file;
    commit(&mut archive, &mut marks);
    drop(archive);
    let link = dir.path().join("kept");
    fs::hard_link(dir.path().join("archive").join(&first), &link).unwrap();
    let before = fs::read(&link).unwrap();

    let mut archive = ArchiveWriter::open(dir.path(), options(1_000_000), &marks).unwrap();
    let second = append(&mut archive, 1).file;
    assert_ne!(first, second);
    append(&mut archive, 2);
    commit(&mut archive, &mut marks);
    append(&mut archive, 3);
    archive.sync().unwrap();
    drop(archive);
    assert_eq!(fs::read(&link).unwrap(), before);

    // While the file has a second name, opening fails, because truncating would also change the
    // file under that name.
    fs::remove_file(&link).unwrap();
    fs::hard_link(dir.path().join("archive").join(&second), &link).unwrap();
    let Err(error) = ArchiveWriter::open(dir.path(), options(1_000_000), &marks) else {
        panic!("it was cut");
    };
    assert_eq!(
        error.to_string(),
        format!(
            "can't cut back {}",
            dir.path().join("archive").join(&second).display()
        )
    );
    let message = std::error::Error::source(&error).unwrap().to_string();
    assert!(message.contains("hard links"), "{message}");
}

#[test]
fn nothing_is_written_through_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let outside = dir.path().join("outside");
    fs::write(&outside, "theirs").unwrap();
    fs::create_dir(dir.path().join("archive")).unwrap();
    let captures = dir.path().join("archive/captures.cdxj");
    std::os::unix::fs::symlink(&outside, captures).unwrap();
    assert!(ArchiveWriter::open(dir.path(), options(1000), &Marks::new()).is_err());
    assert_eq!(fs::read(&outside).unwrap(), b"theirs");
}

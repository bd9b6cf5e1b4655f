//! Tests of the disk model with handwritten traces.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::random::SeededRandom;
use super::disk_model::{FileContent, FolderImage};
use super::recorded_disk_changes::RecordedDiskChanges;

fn image(files: &[(&str, &str)]) -> FolderImage {
    let mut image = FolderImage::default();
    image.0.insert("c".to_owned(), None);
    for (name, text) in files {
        let content = FileContent::of(text.as_bytes().to_vec());
        image.0.insert(format!("c/{name}"), Some(content));
    }
    image
}

/// Shows the files with their bytes. Repeated bytes are counted, and zeros are `0`.
fn shown(image: &FolderImage) -> String {
    let files = image.0.iter().filter_map(|(name, content)| {
        let content = content.as_ref()?;
        let mut bytes = content.bytes().to_vec();
        bytes.resize(content.length() as usize, 0);
        let runs = bytes.chunk_by(|a, b| a == b).map(|run| {
            let byte = match run[0] {
                0 => '0',
                byte => char::from(byte),
            };
            match run.len() {
                count @ 0..9 => byte.to_string().repeat(count),
                count => format!("{byte}*{count} "),
            }
        });
        let text: String = runs.collect();
        Some(format!("{}={}", name.trim_start_matches("c/"), text.trim()))
    });
    files.collect::<Vec<_>>().join(" ")
}

fn recording(before: &[(&str, &str)], trace: &str) -> RecordedDiskChanges {
    RecordedDiskChanges::read(trace, Path::new("/d"), "c", &image(before)).unwrap()
}

/// Checks that a power cut at the end of a trace may leave exactly the `expected` states, in the
/// form that `shown` returns.
fn check(before: &[(&str, &str)], trace: &str, expected: &[&str]) {
    let recording = recording(before, trace);
    let cut = recording.changes.len();
    let states: BTreeSet<String> = (0..2000)
        .map(|seed| shown(&recording.changes.image(cut, &mut SeededRandom::of(seed))))
        .collect();
    let expected: BTreeSet<String> = expected.iter().map(|&text| text.to_owned()).collect();
    assert_eq!(states, expected);
}

#[test]
fn a_rename_before_a_sync_may_leave_a_file_without_its_bytes() {
    let trace = "\
1 openat(AT_FDCWD, \"c/b\", O_WRONLY|O_CREAT, 0666) = 3
1 write(3, \"new\", 3) = 3
1 rename(\"c/b\", \"c/a\") = 0
";
    let expected = [
        "a=old",
        "a=old b=",
        "a=old b=000",
        "a=old b=new",
        "a=",
        "a=000",
        "a=new",
    ];
    check(&[("a", "old")], trace, &expected);
}

#[test]
fn a_file_synced_before_its_rename_is_complete_under_either_name() {
    let trace = "\
1 openat(AT_FDCWD, \"c/b\", O_WRONLY|O_CREAT, 0666) = 3
1 write(3, \"new\", 3) = 3
1 fsync(3) = 0
1 rename(\"c/b\", \"c/a\") = 0
";
    check(&[("a", "old")], trace, &["a=old", "a=old b=new", "a=new"]);
}

#[test]
fn an_entry_is_durable_once_its_folder_is_synced() {
    let trace = "\
1 openat(AT_FDCWD, \"c/a\", O_WRONLY|O_CREAT, 0666) = 3
1 write(3, \"new\", 3) = 3
1 fdatasync(3) = 0
";
    check(&[], trace, &["", "a=new"]);
    let synced = trace.to_owned()
        + "1 openat(AT_FDCWD, \"/d/./c\", O_RDONLY|O_DIRECTORY) = 4\n1 fsync(4) = 0\n";
    check(&[], &synced, &["a=new"]);
    let without_file = synced.replace("1 fdatasync(3) = 0\n", "");
    check(&[], &without_file, &["a=", "a=000", "a=new"]);
}

#[test]
fn a_sync_covers_changes_that_ended_before_it_began() {
    let trace = "\
1 openat(AT_FDCWD, \"c/a\", O_WRONLY|O_APPEND) = 3
1 write(3, \"1\", 1) = 1
1 fdatasync(3 <unfinished ...>
2 write(3, \"2\", 1) = 1
1 <... fdatasync resumed>) = 0
";
    check(&[("a", "0")], trace, &["a=01", "a=010", "a=012"]);
}

#[test]
fn a_write_is_torn_only_between_sectors() {
    let (b, a) = ("b".repeat(1600), "a".repeat(1100));
    let trace = format!(
        "1 openat(AT_FDCWD, \"c/a\", O_RDWR) = 3\n\
         1 lseek(3, 300, SEEK_SET) = 300\n\
         1 write(3, \"{a}\", 1100) = 1100\n"
    );
    // The write from 300 to 1400 has three pieces: they begin at 300, and at the sector boundaries
    // 512 and 1024.
    let expected = [
        "a=b*1600",
        "a=b*300 a*212 b*1088",
        "a=b*512 a*512 b*576",
        "a=b*1024 a*376 b*200",
        "a=b*300 a*724 b*576",
        "a=b*300 a*212 b*512 a*376 b*200",
        "a=b*512 a*888 b*200",
        "a=b*300 a*1100 b*200",
    ];
    check(&[("a", &b)], &trace, &expected);
}

#[test]
fn truncated_bytes_may_reappear() {
    let trace = "\
1 openat(AT_FDCWD, \"c/a\", O_RDWR) = 3
1 ftruncate(3, 2) = 0
1 read(0x3, 0x7ffe, 0x8) = 0x2
1 write(3, \"x\", 1) = 1
";
    check(
        &[("a", "1234")],
        trace,
        &["a=1234", "a=12", "a=120", "a=12x"],
    );
}

#[test]
fn a_descriptor_refers_to_a_file_until_it_is_closed() {
    let trace = "\
1 openat(AT_FDCWD, \"c\", O_RDONLY|O_DIRECTORY) = 3
1 openat(3, \"a\", O_WRONLY) = 4
1 fcntl(4, F_DUPFD_CLOEXEC, 3) = 5
1 close(4) = 0
1 pwrite64(5, \"x\", 1, 1) = 1
1 fdatasync(5) = 0
1 close(5) = 0
1 write(5, \"to a socket\", 11) = 11
1 unlinkat(3, \"b\", 0) = 0
1 fsync(3) = 0
1 openat(AT_FDCWD, \"/d/elsewhere\", O_WRONLY|O_CREAT, 0600) = 5
1 write(5, \"elsewhere\", 9) = 9
";
    check(&[("a", "123"), ("b", "")], trace, &["a=1x3"]);
}

#[test]
fn an_unsupported_call_is_an_error() {
    let open = "1 openat(AT_FDCWD, \"c/a\", O_RDWR) = 3\n";
    let mapped = "1 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3, 0) = 0x7f00\n";
    recording(&[("a", "")], &format!("{open}{mapped}"));
    for call in [
        "1 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 3, 0) = 0x7f00\n",
        "1 copy_file_range(9, NULL, 3, NULL, 8, 0) = 8\n",
        "1 linkat(AT_FDCWD, \"/x\", AT_FDCWD, \"c/b\", 0) = 0\n",
        "1 rename(\"c/a\", \"/elsewhere\") = 0\n",
    ] {
        let trace = format!("{open}{call}");
        let read = RecordedDiskChanges::read(&trace, Path::new("/d"), "c", &image(&[("a", "")]));
        let error = format!("{:#}", read.err().unwrap());
        assert!(error.contains("does not follow"), "{error}");
    }
}

#[test]
fn rows_are_promised_when_a_later_commit_is_synced() {
    let trace = "\
1 openat(AT_FDCWD, \"c/rows\", O_WRONLY|O_APPEND) = 3
1 openat(AT_FDCWD, \"c/0.jnl\", O_WRONLY|O_APPEND) = 4
1 write(3, \"1\\x0a\", 2) = 2
1 write(4, \"early\", 5) = 5
1 fdatasync(3) = 0
1 fdatasync(4) = 0
1 write(4, \"commit\", 6) = 6
1 write(3, \"2\\x0a\", 2) = 2
1 fdatasync(4) = 0
1 fdatasync(3) = 0
";
    let recording = recording(&[("rows", ""), ("0.jnl", "")], trace);
    let end = recording.changes.len();
    let promised = |left| String::from_utf8(recording.promised(end - left, "rows")).unwrap();
    // The rows that must survive if the power is cut before the last 0, 1, 2 or 3 changes.
    assert_eq!([0, 1, 2, 3].map(promised), ["1\n", "1\n", "", ""]);
}

#[test]
fn a_torn_commit_lost_one_sector_inside_and_was_never_synced() {
    let (a, b) = ("a".repeat(1600), "b".repeat(2000));
    let trace = format!(
        "1 openat(AT_FDCWD, \"c/0.jnl\", O_WRONLY|O_APPEND) = 3\n\
         1 write(3, \"{a}\", 1600) = 1600\n\
         1 fdatasync(3) = 0\n\
         1 write(3, \"{b}\", 2000) = 2000\n\
         1 fdatasync(3) = 0\n"
    );
    let recording = recording(&[("0.jnl", "")], &trace);
    let torn = (0..200).map(|seed| recording.torn_commit(&mut SeededRandom::of(seed)));
    let states: BTreeSet<String> = torn.map(|torn| shown(&torn.unwrap().1)).collect();
    let expected = [
        "0.jnl=a*512 0*512 a*576",
        "0.jnl=a*1024 0*512 a*64",
        "0.jnl=a*1600 b*448 0*512 b*1040",
        "0.jnl=a*1600 b*960 0*512 b*528",
        "0.jnl=a*1600 b*1472 0*512 b*16",
    ];
    assert_eq!(states, expected.map(str::to_owned).into());
}

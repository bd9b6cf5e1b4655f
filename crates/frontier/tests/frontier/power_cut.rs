//! Tests of journals after a power cut, which loses some of the unsynced bytes.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crawl_frontier::conformance::RestartableFrontier;
use crawl_frontier::conformance::helpers::{admit, deferred, link, order};
use crawl_frontier::{
    DiskFile, DiskOpenError, FjallFrontier, FjallFrontierOptions, Frontier, Reason, RunDisk,
    SystemDisk,
};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::crash_harness::OnDisk;
use crate::disk_frontier::{image, journal, refusal, reopen};

const SECTOR: usize = 512;

/// The number of URLs per commit: more than fit into a few sectors.
const URLS: u64 = 60;

/// The bytes of a batch's sequence number, counted from the start of the batch. No checksum covers
/// these bytes.
const SEQUENCE: Range<usize> = 5..13;

/// A store that was closed after some commits, and the offset in its journal at which each commit
/// ends.
struct Closed {
    dir: TempDir,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

fn closed(commits: u64) -> Closed {
    let mut bench = OnDisk::quiet();
    let length = || fs::metadata(journal(bench.dir.path())).unwrap().len() as usize;
    let mut ends = vec![length()];
    for commit in 0..commits {
        admit(
            bench.frontier(),
            (0..URLS).map(|n| link(&format!("/{commit}/{n}"), 1)),
        );
        ends.push(length());
    }
    bench.frontier = None;
    let dir = image(bench.dir.path());
    let bytes = fs::read(journal(dir.path())).unwrap();
    assert_eq!(bytes.len(), ends[commits as usize]);
    Closed { dir, bytes, ends }
}

impl Closed {
    fn write(&self, bytes: &[u8]) -> PathBuf {
        let path = journal(self.dir.path());
        fs::write(&path, bytes).unwrap();
        path
    }

    fn last(&self) -> Range<usize> {
        self.ends[self.ends.len() - 2]..self.bytes.len()
    }

    /// Checks that the store opens with this many commits, can be opened again, and takes another
    /// commit.
    fn check_opens(&self, bytes: &[u8], commits: u64) {
        self.write(bytes);
        for _ in 0..2 {
            let frontier = reopen(self.dir.path()).unwrap();
            assert_eq!(frontier.counts().pending, commits * URLS);
            let queued = order(&frontier).split_whitespace().count() as u64;
            assert_eq!(queued, commits * URLS);
        }
        admit(&reopen(self.dir.path()).unwrap(), [link("/more", 1)]);
        let frontier = reopen(self.dir.path()).unwrap();
        assert_eq!(frontier.counts().pending, commits * URLS + 1);
    }

    /// Checks that opening the store fails each time, and that the journal is not changed.
    fn check_refused(&self, bytes: &[u8], reason: &str) {
        let path = self.write(bytes);
        for _ in 0..2 {
            let error = refusal(self.dir.path());
            assert!(
                matches!(&error, DiskOpenError::Corrupt { what, .. } if what.ends_with(reason)),
                "{error}"
            );
        }
        assert_eq!(fs::read(path).unwrap(), bytes, "nothing was cut");
    }
}

/// Returns `range` divided into parts, each within one sector.
fn sectors(range: Range<usize>) -> Vec<Range<usize>> {
    let first = range.start / SECTOR;
    let sectors = first..range.end.div_ceil(SECTOR);
    let bounds = |n: usize| (n * SECTOR).max(range.start)..((n + 1) * SECTOR).min(range.end);
    sectors.map(bounds).collect()
}

#[test]
fn a_commit_that_lost_a_sector_is_cut_off() {
    let closed = closed(3);
    let sectors = sectors(closed.last());
    assert!(sectors.len() > 4, "{sectors:?}");
    for lost in sectors {
        let mut bytes = closed.bytes.clone();
        bytes[lost].fill(0);
        closed.check_opens(&bytes, 2);
    }
}

/// Checks a journal in which zeros follow the written bytes, because the store preallocates space.
#[test]
fn a_commit_that_lost_a_sector_is_cut_off_a_preallocated_journal() {
    let closed = closed(2);
    let sectors = sectors(closed.last());
    for lost in [&sectors[0], &sectors[sectors.len() / 2]] {
        let mut bytes = closed.bytes.clone();
        bytes[lost.clone()].fill(0);
        bytes.resize(64 << 20, 0);
        closed.check_opens(&bytes, 1);
    }
    let mut bytes = closed.bytes.clone();
    bytes.resize(64 << 20, 0);
    closed.check_opens(&bytes, 2);
}

#[test]
fn a_commit_with_a_changed_byte_is_cut_off() {
    let closed = closed(2);
    let last = closed.last();
    for at in last.clone().step_by(97) {
        if SEQUENCE.contains(&(at - last.start)) {
            continue;
        }
        let mut bytes = closed.bytes.clone();
        bytes[at] ^= 0x55;
        closed.write(&bytes);
        let frontier = reopen(closed.dir.path()).unwrap();
        assert_eq!(frontier.counts().pending, URLS, "byte {at}");
    }
}

#[test]
fn damage_before_a_complete_commit_is_refused_and_cuts_nothing() {
    let closed = closed(3);
    let reason = "whole commits follow it";
    for range in [
        closed.ends[0]..closed.ends[1],
        closed.ends[1]..closed.ends[2],
    ] {
        for lost in sectors(range.clone()) {
            let mut bytes = closed.bytes.clone();
            bytes[lost].fill(0);
            closed.check_refused(&bytes, reason);
        }
        // The frontier must detect this damage before it opens the store, because the store would
        // silently cut off everything after it.
        let mut bytes = closed.bytes.clone();
        bytes[range.start] = 9;
        closed.check_refused(&bytes, reason);
    }
}

#[test]
fn damage_in_an_older_journal_is_refused() {
    let closed = closed(2);
    let newer = closed.dir.path().join("store/7.jnl");
    let path = journal(closed.dir.path());
    for end in [0, 1 << 20] {
        let mut bytes = closed.bytes.clone();
        bytes[closed.last().start + 700] ^= 1;
        fs::write(&path, bytes).unwrap();
        fs::write(&newer, vec![0; end]).unwrap();
        let message = refusal(closed.dir.path()).to_string();
        let reason = "it was written whole before the next one";
        assert!(message.ends_with(reason), "{message}");
    }
    // An intact older journal may end with unused space.
    let mut bytes = closed.bytes.clone();
    bytes.extend([0; 5000]);
    fs::write(&path, bytes).unwrap();
    assert_eq!(
        reopen(closed.dir.path()).unwrap().counts().pending,
        2 * URLS
    );
}

/// Checks that opening is refused if the journal lacks a commit that a table on disk contains. Such
/// a journal is damaged, because a commit is synced to the journal before any table is written.
#[test]
fn a_synced_commit_lost_from_the_journal_is_refused() {
    for table in ["deferred", "fresh"] {
        let mut bench = OnDisk::quiet();
        admit(bench.frontier(), [link("/a", 1)]);
        let before = fs::metadata(journal(bench.dir.path())).unwrap().len() as usize;
        admit(bench.frontier(), [deferred("/b", 1, Reason::Depth)]);
        bench.frontier = None;
        let dir = bench.dir.path();
        let db = fjall::Database::builder(dir.join("store")).open().unwrap();
        let keyspace = db.keyspace(table, Default::default).unwrap();
        keyspace.rotate_memtable_and_wait().unwrap();
        drop((keyspace, db));
        let path = journal(dir);
        let mut bytes = fs::read(&path).unwrap();
        bytes[before + 40] ^= 1;
        fs::write(&path, bytes).unwrap();
        for _ in 0..2 {
            let message = refusal(dir).to_string();
            let expected = "a commit that was synced is missing from its journal";
            assert!(message.ends_with(expected), "{table}: {message}");
        }
    }
}

/// A disk that records the folders that were synced, with their paths at that time.
#[derive(Clone, Default)]
struct SyncRecorder(Arc<Mutex<Vec<PathBuf>>>);

impl RunDisk for SyncRecorder {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        SystemDisk.create(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        SystemDisk.sync_dir(dir)?;
        self.0.lock().unwrap().push(dir.to_owned());
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        SystemDisk.remove(path)
    }
}

fn folders(folder: &Path, all: &mut Vec<PathBuf>) {
    all.push(folder.to_owned());
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            folders(&path, all);
        }
    }
}

#[test]
fn all_folders_of_a_new_store_are_synced_before_the_rename() {
    let above = TempDir::new().unwrap();
    let dir = above.path().join("state");
    let disk = SyncRecorder::default();
    let begun = FjallFrontier::open_on(
        &dir,
        &FjallFrontierOptions::default(),
        Arc::new(disk.clone()),
    );
    drop(begun.unwrap());
    let synced = disk.0.lock().unwrap().clone();
    let mut made = Vec::new();
    folders(&dir.join("store"), &mut made);
    assert!(made.len() > 20, "{made:?}");
    for folder in made {
        let new = dir
            .join("store.new")
            .join(folder.strip_prefix(dir.join("store")).unwrap());
        assert!(synced.contains(&new), "{}", new.display());
    }
    let renamed = synced.iter().position(|folder| *folder == dir).unwrap();
    assert!(
        synced[..renamed]
            .iter()
            .all(|folder| folder.starts_with(dir.join("store.new")))
    );
    assert!(
        synced[renamed..]
            .iter()
            .any(|folder| folder == above.path())
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Checks journals that lack some sectors of the last commit, and perhaps its end, as after a
    /// power cut.
    #[test]
    fn a_commit_torn_by_a_power_cut_opens(lost in prop::collection::vec(any::<bool>(), 40), cut in 0.0..1.0) {
        let closed = closed(2);
        let last = closed.last();
        let mut bytes = closed.bytes.clone();
        let mut any = false;
        for (sector, lost) in sectors(last.clone()).into_iter().zip(lost) {
            if lost {
                bytes[sector].fill(0);
                any = true;
            }
        }
        if !any {
            bytes.truncate(last.start + ((last.len() - 1) as f64 * cut) as usize);
        }
        closed.check_opens(&bytes, 1);
    }
}

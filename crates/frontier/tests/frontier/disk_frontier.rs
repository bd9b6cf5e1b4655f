//! Tests of the frontier on disk: how it opens, also after damage and after a crash.

use std::fs;
use std::path::{Path, PathBuf};

use crawl_frontier::{
    DiskOpenError, FjallFrontier, FjallFrontierOptions, Frontier, FrontierError, LeaseOutcome,
};
use tempfile::TempDir;

use crawl_frontier::conformance::RestartableFrontier;
use crawl_frontier::conformance::helpers::{admit, lease, link, order, origin, settle, url};

use crate::crash_harness::OnDisk;

pub(crate) fn journal(dir: &Path) -> PathBuf {
    let entries = fs::read_dir(dir.join("store")).unwrap();
    let mut journals: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "jnl"))
        .collect();
    assert_eq!(journals.len(), 1);
    journals.remove(0)
}

/// Returns a copy of the directory, as a kill of the process at this moment would leave it.
pub(crate) fn image(dir: &Path) -> TempDir {
    let image = TempDir::new().unwrap();
    copy(dir, image.path());
    image
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

pub(crate) fn reopen(dir: &Path) -> Result<FjallFrontier, DiskOpenError> {
    FjallFrontier::open(dir, &FjallFrontierOptions::default())
}

pub(crate) fn refusal(dir: &Path) -> DiskOpenError {
    reopen(dir).err().expect("a refusal")
}

#[test]
fn one_process_at_a_time() {
    let mut bench = OnDisk::quiet();
    let dir = bench.dir.path().to_owned();
    assert!(matches!(refusal(&dir), DiskOpenError::InUse { path } if path == dir));
    bench.frontier = None;
    reopen(&dir).unwrap();
}

#[test]
fn a_foreign_directory_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("thesis.tex"), "x").unwrap();
    let error = refusal(dir.path());
    assert!(
        matches!(&error, DiskOpenError::Foreign { found, .. } if found == "`thesis.tex`"),
        "{error}"
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);

    let dir = TempDir::new().unwrap();
    let db = fjall::Database::builder(dir.path().join("store"))
        .open()
        .unwrap();
    db.keyspace("meta", Default::default).unwrap();
    drop(db);
    let error = refusal(dir.path());
    assert!(!matches!(error, DiskOpenError::Io { .. }), "{error}");
}

#[test]
fn a_store_of_something_else_is_refused() {
    let dir = TempDir::new().unwrap();
    let db = fjall::Database::builder(dir.path().join("store"))
        .open()
        .unwrap();
    db.keyspace("theirs", Default::default).unwrap();
    drop(db);
    assert!(matches!(refusal(dir.path()), DiskOpenError::Foreign { .. }));
}

#[test]
fn another_layout_is_named() {
    for layout in [1_u32, 7] {
        let mut bench = OnDisk::quiet();
        bench.frontier = None;
        let dir = bench.dir.path();
        let db = fjall::Database::builder(dir.join("store")).open().unwrap();
        let meta = db.keyspace("meta", Default::default).unwrap();
        meta.insert("layout", layout.to_be_bytes()).unwrap();
        drop((meta, db));
        let message = refusal(dir).to_string();
        let expected = format!("has layout {layout}, this program reads layout 3");
        assert!(message.ends_with(&expected), "{message}");
    }
}

#[test]
fn runs_without_a_store_are_damage() {
    let mut bench = OnDisk::quiet();
    bench.frontier = None;
    fs::remove_dir_all(bench.dir.path().join("store")).unwrap();
    let error = refusal(bench.dir.path());
    assert!(
        matches!(&error, DiskOpenError::Corrupt { what, .. } if what == "`store` is missing"),
        "{error}"
    );
}

/// Creates a frontier with sorted runs of forty URLs, which are written and merged in the
/// background, and closes the frontier.
fn with_runs() -> OnDisk {
    let mut bench = OnDisk::new();
    for n in 0..40 {
        admit(bench.frontier(), [link(&format!("/{n}"), 1)]);
    }
    bench.frontier = None;
    bench
}

fn runs(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("known")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_damaged_run_is_named_and_never_a_panic() {
    let bench = with_runs();
    let dir = bench.dir.path();
    // Open the frontier once more, which removes the file that a background thread had not finished
    // when the frontier was closed.
    drop(reopen(dir).unwrap());
    let paths = runs(dir);
    assert!(!paths.is_empty());
    for path in paths {
        let whole = fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let error = refusal(dir);
        assert!(
            matches!(&error, DiskOpenError::Corrupt { what, .. } if what.contains(name)),
            "{error}"
        );
        let mut flipped = whole.clone();
        flipped[0] ^= 1;
        fs::write(&path, flipped).unwrap();
        // The damaged block is read only when one of its URLs is looked up, so opening succeeds.
        let frontier = reopen(dir).unwrap();
        let results = (0..40).map(|n| frontier.known(&url(&format!("/{n}"))));
        let broken: Vec<_> = results.filter_map(Result::err).collect();
        assert!(!broken.is_empty());
        for why in broken {
            assert!(matches!(&why, FrontierError::Corrupt { what, .. } if what.contains(name)));
        }
        drop(frontier);
        fs::write(&path, whole).unwrap();
    }
    assert_eq!(order(&reopen(dir).unwrap()).split_whitespace().count(), 40);
}

#[test]
fn a_crash_during_creation_does_not_prevent_the_next_one() {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join("store.new/keyspaces")).unwrap();
    fs::write(dir.path().join("store.new/0.jnl"), "").unwrap();
    fs::write(dir.path().join("lock"), "").unwrap();
    let frontier = reopen(dir.path()).unwrap();
    assert_eq!(frontier.counts().known, 0);
    assert!(!dir.path().join("store.new").exists());
}

#[test]
fn a_kill_between_commits_loses_nothing() {
    let bench = OnDisk::quiet();
    let dir = bench.dir.path();
    let frontier = bench.frontier();
    admit(frontier, (0..5).map(|n| link(&format!("/{n}"), 1)));
    settle(
        frontier,
        lease(frontier),
        LeaseOutcome::Fetched { status: 200 },
    );
    let _held = lease(frontier);
    let mut open = frontier.begin().unwrap();
    open.admit(link("/uncommitted", 1)).unwrap();
    let image = image(dir);
    drop(open);

    let killed = reopen(image.path()).unwrap();
    assert_eq!(order(&killed), "/1 /2 /3 /4");
    let counts = killed.counts();
    assert_eq!((counts.known, counts.pending, counts.fetched), (5, 4, 1));
}

#[test]
fn a_torn_tail_shows_the_commit_before() {
    let bench = OnDisk::quiet();
    let dir = bench.dir.path();
    let length = || fs::metadata(journal(dir)).unwrap().len();
    let mut ends = vec![length()];
    for n in 0..4 {
        let mut transaction = bench.frontier().begin().unwrap();
        transaction.admit(link(&format!("/{n}"), 1)).unwrap();
        transaction.mark("pages.jsonl", n);
        transaction.commit().unwrap();
        ends.push(length());
    }
    let whole = image(dir);
    for cut in (ends[0]..=ends[4]).step_by(37) {
        let image = image(whole.path());
        let file = fs::File::options()
            .write(true)
            .open(journal(image.path()))
            .unwrap();
        file.set_len(cut).unwrap();
        let commits = ends.iter().filter(|&&end| end <= cut).count() as u64 - 1;
        let frontier = reopen(image.path()).unwrap();
        assert_eq!(frontier.counts().pending, commits);
        let mark = frontier.marks().unwrap().get("pages.jsonl").copied();
        assert_eq!(mark, commits.checked_sub(1));
        assert_eq!(order(&frontier).split_whitespace().count() as u64, commits);
    }
}

#[test]
fn a_flipped_byte_is_damage_or_an_earlier_commit_and_never_a_panic() {
    let bench = OnDisk::quiet();
    let dir = bench.dir.path();
    let begin = fs::metadata(journal(dir)).unwrap().len();
    for n in 0..3 {
        admit(bench.frontier(), [link(&format!("/{n}"), 1)]);
    }
    let whole = image(dir);
    let bytes = fs::read(journal(dir)).unwrap();
    for at in (begin as usize..bytes.len()).step_by(53) {
        let image = image(whole.path());
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x55;
        fs::write(journal(image.path()), bytes).unwrap();
        match reopen(image.path()) {
            Ok(frontier) => assert!(frontier.counts().pending <= 3),
            Err(why) => assert!(matches!(why, DiskOpenError::Corrupt { .. }), "{at}: {why}"),
        }
    }
}

#[test]
fn records_that_do_not_decode_are_named() {
    let mut bench = OnDisk::quiet();
    admit(bench.frontier(), [link("/a", 1), link("/b", 1)]);
    bench.frontier = None;
    let dir = bench.dir.path();
    let db = fjall::Database::builder(dir.join("store")).open().unwrap();
    let garble = |table: &str| {
        let table = db.keyspace(table, Default::default).unwrap();
        let keys: Vec<_> = table.iter().map(|row| row.key().unwrap()).collect();
        for key in keys {
            table.insert(key, b"\xff\xff").unwrap();
        }
    };
    garble("queue");
    drop(db);

    let frontier = reopen(dir).unwrap();
    let lease = frontier.lease(&origin());
    assert!(matches!(lease, Err(FrontierError::Corrupt { .. })));
    let result = frontier.known(&url("/a"));
    assert!(matches!(result, Err(FrontierError::Corrupt { .. })));
    drop(frontier);

    let db = fjall::Database::builder(dir.join("store")).open().unwrap();
    let fresh = db.keyspace("fresh", Default::default).unwrap();
    fresh.insert(1_u64.to_be_bytes(), b"x").unwrap();
    drop((fresh, db));
    assert!(matches!(refusal(dir), DiskOpenError::Corrupt { .. }));
}

#[test]
fn counters_that_do_not_agree_are_damage() {
    let mut bench = OnDisk::quiet();
    admit(bench.frontier(), [link("/a", 1)]);
    bench.frontier = None;
    let dir = bench.dir.path();
    let db = fjall::Database::builder(dir.join("store")).open().unwrap();
    let origins = db.keyspace("origins", Default::default).unwrap();
    let key = origins.first_key_value().unwrap().key().unwrap();
    origins.insert(key, b"\x01\x02http://a.example").unwrap();
    drop((origins, db));
    let message = refusal(dir).to_string();
    assert!(
        message.ends_with("its queues hold 2 URLs where 1 were counted"),
        "{message}"
    );
}

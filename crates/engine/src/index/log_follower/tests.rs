//! Tests of how much of a log the index reads during a run.

use std::fs;
use std::sync::atomic::AtomicUsize;

use crawl_fetcher::Secrets;
use crawl_frontier::MemoryFrontier;
use crawl_index::{IndexLogEntry, IndexSearcher, IndexedPage, OutgoingLink};
use crawl_policy::{ProductToken, RobotsProfile};

use super::*;
use crate::document_conversion::DocumentIndexingSettings;

/// Follows a log until `halt` has been checked `max_checks` times.
fn follow(dir: &Path, max_checks: usize) -> IndexSummary {
    let folder = dir.join(INDEX_FOLDER);
    let writer = IndexWriter::open(&folder).unwrap();
    let note = crawl_index::note_in(&folder).unwrap();
    let read = place(note.as_deref(), 1, u64::MAX).unwrap();
    let checks = AtomicUsize::new(0);
    let halt =
        IndexingStopCondition::when(move || checks.fetch_add(1, Ordering::Relaxed) >= max_checks);
    let mut follower = follower(dir, writer, read, halt, false);
    follower
        .follow(&whole_log(dir), &AtomicBool::new(false))
        .unwrap();
    follower.stop_here()
}

fn follower(
    dir: &Path,
    writer: IndexWriter,
    read: IndexingLogPosition,
    halt: IndexingStopCondition,
    is_busy: bool,
) -> IndexingLogFollower {
    let questions: (IndexingStopCondition, ProcessorsBusyCheck) = (halt, Arc::new(move || is_busy));
    IndexingLogFollower::at(dir, writer, read, ArchivePresence::No, questions).unwrap()
}

/// Returns a receiver of the log's length, as if the whole log were committed.
fn whole_log(dir: &Path) -> Receiver<u64> {
    let (committed, lengths) = channel();
    let length = fs::metadata(log_path(dir)).unwrap().len();
    committed.send(length).unwrap();
    lengths
}

/// Writes a log with one page for each number in `ends`.
fn write_log(dir: &Path, ends: &[usize]) -> Vec<String> {
    fs::create_dir(dir.join("state")).unwrap();
    let line = |n: &usize| {
        let page = IndexedPage {
            url: format!("http://a.example/{n}"),
            title: "Tea".to_owned(),
            links: vec![OutgoingLink {
                url: "http://a.example/0".to_owned(),
                text: format!("name {n}"),
            }],
            ..IndexedPage::default()
        };
        serde_json::to_string(&IndexLogEntry::Put(Box::new(page))).unwrap() + "\n"
    };
    let lines: Vec<String> = ends.iter().map(line).collect();
    fs::write(log_path(dir), lines.concat()).unwrap();
    lines
}

#[test]
fn entries_held_for_busy_readers_are_indexed_once_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    // The log contains page 2 twice, but it counts once.
    write_log(dir.path(), &[0, 1, 2, 3, 2]);
    let folder = dir.path().join(INDEX_FOLDER);
    let mut writer = IndexWriter::open(&folder).unwrap();
    writer.commit(&note_of(1)).unwrap();
    let begin = IndexingLogPosition { log: 1, bytes: 0 };
    let mut follower = follower(
        dir.path(),
        writer,
        begin,
        IndexingStopCondition::when(|| false),
        true,
    );
    follower
        .follow(&whole_log(dir.path()), &AtomicBool::new(true))
        .unwrap();
    assert_eq!(follower.read, begin);
    let indexed = follower.finish(&MemoryFrontier::default(), 0).unwrap();
    assert_eq!((indexed.pages, indexed.waiting_bytes), (Some(4), 0));
    let index = IndexSearcher::open(&folder).unwrap();
    let first = index.page("http://a.example/0").unwrap().unwrap();
    assert_eq!(first.linked_from, 3);
    assert_eq!(first.anchors, ["name 1", "name 2", "name 3"]);
    // The log was read to its end, so a new log was started.
    let note = crawl_index::note_in(&folder).unwrap();
    assert!(place(note.as_deref(), 2, 0).is_ok());
}

#[test]
fn pages_that_stay_in_the_index_are_not_counted_as_left_out() {
    for is_busy in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(INDEX_FOLDER);
        let mut writer = IndexWriter::open(&folder).unwrap();
        let url = |n: usize| format!("http://a.example/{n}");
        let drop_of = |n: usize, why: &str| IndexLogEntry::Drop {
            url: url(n),
            why: why.to_owned(),
        };
        for n in 0..10 {
            let page = IndexedPage {
                url: url(n),
                text: format!("Tea {n}"),
                ..IndexedPage::default()
            };
            writer.put(&page).unwrap();
        }
        // Simulate an earlier run that ended before its final pass over all pages, with one entry
        // to drop.
        writer.commit(&note_of(1)).unwrap();
        writer.apply(&drop_of(9, "soft_404")).unwrap();
        writer.commit(&note_of(1)).unwrap();
        writer.close().unwrap();
        let writer = IndexWriter::open(&folder).unwrap();
        // Pages 20 and 21 were never in the index.
        let entries = [
            drop_of(0, "soft_404"),
            drop_of(1, "soft_404"),
            drop_of(2, "no_page"),
            drop_of(3, "noindex"),
            drop_of(20, "soft_404"),
            drop_of(21, "soft_404"),
        ];
        let line = |entry: &IndexLogEntry| serde_json::to_string(entry).unwrap() + "\n";
        let lines: Vec<String> = entries.iter().map(line).collect();
        fs::create_dir(dir.path().join("state")).unwrap();
        fs::write(log_path(dir.path()), lines.concat()).unwrap();
        let begin = IndexingLogPosition { log: 1, bytes: 0 };
        let mut follower = follower(
            dir.path(),
            writer,
            begin,
            IndexingStopCondition::when(|| false),
            is_busy,
        );
        follower
            .follow(&whole_log(dir.path()), &AtomicBool::new(is_busy))
            .unwrap();
        let indexed = follower.finish(&MemoryFrontier::default(), 0).unwrap();
        let counts = |counts: &[(&str, u64)]| -> BTreeMap<String, u64> {
            let each = counts.iter().map(|(why, n)| ((*why).to_owned(), *n));
            each.collect()
        };
        assert_eq!(indexed.pages, Some(9));
        assert_eq!(indexed.kept, counts(&[("soft_404", 3), ("no_page", 1)]));
        assert_eq!(
            indexed.left_out,
            counts(&[("soft_404", 2), ("noindex", 1)]),
            "{is_busy}"
        );
    }
}

#[test]
fn entries_without_time_stay_in_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let lines = write_log(dir.path(), &[0, 1, 2, 3, 4]);
    let pages = || {
        let index = IndexSearcher::open(&dir.path().join(INDEX_FOLDER)).unwrap();
        index.stats().unwrap().pages
    };
    let outcome = follow(dir.path(), 2);
    assert_eq!(outcome.waiting_bytes, lines[2..].concat().len() as u64);
    assert_eq!((outcome.pages, pages()), (None, 2));
    // The next start continues where this run stopped.
    let outcome = follow(dir.path(), 100);
    assert_eq!((outcome.waiting_bytes, pages()), (0, 5));
}

#[test]
fn entries_stay_in_the_log_if_there_is_no_time_to_check_the_index() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = IndexWriter::open(&dir.path().join(INDEX_FOLDER)).unwrap();
    // Put a page into the index, so that it has files to check.
    writer.put(&IndexedPage::default()).unwrap();
    writer.commit(&note_of(1)).unwrap();
    writer.close().unwrap();
    let read = |bytes| IndexingLogPosition { log: 1, bytes };
    let opening = IndexerStartup {
        setting: IndexerSettings {
            dir: dir.path().to_owned(),
            frontier: Arc::new(MemoryFrontier::default()),
            rules: IndexRebuildSettings {
                agent: ProductToken::new("t").unwrap(),
                profile: RobotsProfile::default(),
                secrets: Secrets::of(&[]),
                documents: DocumentIndexingSettings::default(),
            },
            halt: IndexingStopCondition::when(|| true),
            is_busy: Arc::new(|| false),
        },
        leaves_rest: Arc::default(),
        read: read(700),
        pages_committed: None,
        has_archive: ArchivePresence::Yes,
    };
    let (committed, lengths) = channel();
    for length in [700, 900, 1200] {
        committed.send(length).unwrap();
    }
    drop(committed);
    let IndexerOutcome::Without(left) = opening
        .run(IndexAtRunStart::At(read(500)), &lengths)
        .unwrap()
    else {
        panic!("nothing was looked at")
    };
    assert_eq!((left.waiting_bytes, left.fault), (700, None));
}

#[test]
fn a_late_or_removed_index_is_not_reported_as_damaged() {
    let fault = |has_pages, frontier: &MemoryFrontier| {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["state", FOLDER] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let indexing = IndexingStartState::open(dir.path(), frontier, has_pages).unwrap();
        match indexing.start {
            IndexAtRunStart::Without(fault) => Some(fault),
            IndexAtRunStart::At(_) => None,
        }
    };
    let frontier = MemoryFrontier::default();
    assert_eq!(fault(true, &frontier), Some(IndexRebuildReason::NotBuilt));
    assert_eq!(fault(false, &frontier), None);
    // The log number 2 means that an index has read the pages of log 1.
    follow_log(&frontier, 2).unwrap();
    assert_eq!(fault(true, &frontier), Some(IndexRebuildReason::NotBuilt));
}

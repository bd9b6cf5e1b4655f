//! Moves a crawl from a shared frontier into a directory that was gathered from the directories of
//! its workers. The crawl then has its own frontier there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crawl_archive::{DIGESTS, FilesToRehash, RowFileWriter, marks_at_rest, write_digests};
use crawl_frontier::parts::CrawlTransferItem;
use crawl_frontier::worker_frontier::{BoxError, ExportedWorker, OutgoingCrawl};
use crawl_frontier::{
    AdmissionResult, FjallFrontier, Frontier, FrontierError, RequestedState, Transaction,
    UrlToAdmit,
};
use crawl_traps::TrapDetector;
use crawl_weburl::HostKey;

use super::crawl_directory::{self, STATE};
use super::excluded_rows_of_last_run::EXCLUDED;
use super::extracted_field_files::EXTRACTS;
use super::frontier_move_counts::{MovedRecordCounts, states};
use super::parking_changes::copy_recorded_parking;
use super::stored_parked_hosts::listed;
use crate::crawl_totals::CrawlTotals;
use crate::error::EngineError;
use crate::excluded_jsonl_rows::excluded_row;
use crate::frontier_meta_keys::{
    META_PARKED, META_ROUND, META_SCOPE_SEEDS, META_SEED_TARGETS, META_TOTALS, META_TRAPS,
};
use crate::revisit::visit::Round;

/// Maximum number of stored records in a transaction.
const BATCH_PARTS: usize = 2_000;
/// Bytes of robots.txt copies at which a transaction is committed.
const BATCH_BYTES: usize = 8 << 20;

/// The row files whose committed lengths a frontier records.
const MARKED_FILES: [&str; 4] = ["pages.jsonl", EXCLUDED, "links.jsonl", EXTRACTS];

/// A worker's directory whose files were gathered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatheredWorkerDirectory {
    /// The worker's name.
    pub name: String,
    /// The number of rows read from the worker's `pages.jsonl`.
    pub pages: u64,
    /// The worker's directory.
    pub dir: PathBuf,
}

/// Moves a crawl from the shared frontier into `dir`, where it can continue. `dir` already has the
/// files gathered from the worker directories in `gathered`. Until the caller marks the crawl as
/// moved in the shared frontier, both the directory and the shared frontier have the crawl.
///
/// # Errors
/// [`EngineError`]. The directory is then unusable.
pub fn export(
    dir: &Path,
    source: &dyn OutgoingCrawl,
    gathered: &[GatheredWorkerDirectory],
) -> Result<MovedRecordCounts, EngineError> {
    check_workers(source.workers(), gathered)?;
    let frontier = crawl_directory::begin_at_rest(dir)?;
    let mut moved = put_all(source, &frontier)?;
    let exported = states(&frontier);
    let expected = source.totals();
    if exported != expected {
        return Err(EngineError::ExportDiffers {
            expected,
            found: exported,
        });
    }
    admit_links(source, &frontier, &dir.join(EXCLUDED))?;
    moved.states = states(&frontier);
    let mut transaction = frontier.begin()?;
    keep_merged(source, &mut *transaction);
    for (file, length) in marks(dir)? {
        transaction.mark(&file, length);
    }
    transaction.commit()?;
    for worker in gathered {
        copy_recorded_parking(&frontier, &worker.dir.join(STATE))?;
    }
    crawl_directory::note_end(&frontier)?;
    drop(frontier);
    let listed = write_digests(dir, FilesToRehash::Named(&[STATE, EXCLUDED]));
    listed.map_err(EngineError::disk(&dir.join(DIGESTS)))?;
    Ok(moved)
}

/// Checks that the gathered directories are those of all workers, and that they contain everything
/// that each worker committed.
fn check_workers(
    workers: &[ExportedWorker],
    gathered: &[GatheredWorkerDirectory],
) -> Result<(), EngineError> {
    let is_of = |name: &str| workers.iter().any(|worker| worker.name == name);
    if let Some(other) = gathered.iter().find(|worker| !is_of(&worker.name)) {
        return Err(EngineError::NotItsWorker {
            worker: other.name.clone(),
        });
    }
    for worker in workers {
        match gathered.iter().find(|other| other.name == worker.name) {
            Some(found) => check_records(worker, found)?,
            None if worker.marks.values().all(|length| *length == 0) => {}
            None => {
                return Err(EngineError::WorkerMissing {
                    worker: worker.name.clone(),
                    pages: worker.pages,
                });
            }
        }
    }
    Ok(())
}

/// Checks that a worker's files have their committed lengths, and that `pages.jsonl` has the
/// committed number of rows.
fn check_records(
    worker: &ExportedWorker,
    found: &GatheredWorkerDirectory,
) -> Result<(), EngineError> {
    let differs = |file: &str, found: u64, committed: u64| {
        Err(EngineError::RecordsDiffer {
            worker: worker.name.clone(),
            file: file.to_owned(),
            found,
            committed,
        })
    };
    for (file, &committed) in &worker.marks {
        let length = match fs::metadata(found.dir.join(file)) {
            Err(why) if why.kind() == ErrorKind::NotFound => 0,
            metadata => metadata.map_err(EngineError::disk(&found.dir))?.len(),
        };
        // At the end of a run, deferred URLs are appended to `excluded.jsonl` without a commit, so
        // the file may be longer than its committed length.
        let may_be_longer = file == EXCLUDED;
        if length < committed || (length > committed && !may_be_longer) {
            return differs(file, length, committed);
        }
    }
    match found.pages == worker.pages {
        true => Ok(()),
        false => differs("the rows of pages.jsonl", found.pages, worker.pages),
    }
}

fn put_all(
    source: &dyn OutgoingCrawl,
    frontier: &FjallFrontier,
) -> Result<MovedRecordCounts, EngineError> {
    let mut moved = MovedRecordCounts::default();
    let (mut parts, mut bytes) = (Vec::with_capacity(BATCH_PARTS), 0);
    let shown = source.each_part(&mut |part| {
        moved.count(&part);
        if let CrawlTransferItem::Robots { bytes: copy, .. } = &part {
            bytes += copy.len();
        }
        parts.push(part);
        if parts.len() >= BATCH_PARTS || bytes >= BATCH_BYTES {
            frontier.put_parts(parts.drain(..))?;
            bytes = 0;
        }
        Ok(())
    });
    shown.map_err(of_source)?;
    frontier.put_parts(parts)?;
    Ok(moved)
}

/// Admits links that a worker had received but not admitted yet. Appends the excluded ones to
/// `excluded.jsonl`, as the worker would have.
fn admit_links(
    source: &dyn OutgoingCrawl,
    frontier: &FjallFrontier,
    excluded: &Path,
) -> Result<(), EngineError> {
    let length = excluded.metadata().ok().map(|metadata| metadata.len());
    let mut rows = RowFileWriter::open(excluded, length)?;
    let mut links: Vec<UrlToAdmit> = Vec::with_capacity(BATCH_PARTS);
    let mut admit = |links: &mut Vec<UrlToAdmit>| -> Result<(), EngineError> {
        let mut transaction = frontier.begin()?;
        let admitted = transaction.admit_all(links)?;
        transaction.commit()?;
        let new = links.iter().zip(admitted);
        for (link, _) in new.filter(|(_, admitted)| *admitted == AdmissionResult::New) {
            if let RequestedState::Excluded(exclusion) = &link.state {
                rows.append(&excluded_row(
                    &link.url,
                    exclusion,
                    link.via.as_ref(),
                    None,
                    None,
                ))?;
            }
        }
        links.clear();
        Ok(())
    };
    let shown = source.each_link(&mut |link| {
        links.push(link);
        match links.len() >= BATCH_PARTS {
            true => Ok(admit(&mut links)?),
            false => Ok(()),
        }
    });
    shown.map_err(of_source)?;
    admit(&mut links)?;
    rows.sync()?;
    Ok(())
}

/// Unwraps an error of the engine or the frontier, and wraps any other error.
fn of_source(error: BoxError) -> EngineError {
    let error = match error.downcast::<EngineError>() {
        Ok(own) => return *own,
        Err(error) => error,
    };
    match error.downcast::<FrontierError>() {
        Ok(state) => EngineError::State(*state),
        Err(other) => EngineError::Shared(other),
    }
}

/// Returns the current lengths of the files whose committed lengths a frontier records.
fn marks(dir: &Path) -> Result<BTreeMap<String, u64>, EngineError> {
    let mut marks = marks_at_rest(dir).map_err(EngineError::disk(dir))?;
    for name in MARKED_FILES {
        let path = dir.join(name);
        if path.exists() {
            let metadata = fs::metadata(&path).map_err(EngineError::disk(&path))?;
            marks.insert(name.to_owned(), metadata.len());
        }
    }
    Ok(marks)
}

/// Merges the metadata of all workers into the metadata of one crawl.
fn keep_merged(source: &dyn OutgoingCrawl, transaction: &mut dyn Transaction) {
    let workers = source.workers();
    let all = |name: &str| -> Vec<&[u8]> {
        let meta = workers.iter().flat_map(|worker| &worker.meta);
        let meta = meta.filter(|(key, _)| key == name);
        meta.map(|(_, bytes)| bytes.as_slice()).collect()
    };
    let totals = all(META_TOTALS)
        .into_iter()
        .filter_map(CrawlTotals::from_bytes);
    let totals = totals.fold(CrawlTotals::default(), CrawlTotals::plus);
    transaction.keep_meta(META_TOTALS, &totals.to_bytes());
    if let Some(round) = merged_round(&all(META_ROUND)) {
        let bytes = serde_json::to_vec(&round).unwrap_or_default();
        transaction.keep_meta(META_ROUND, &bytes);
    }
    let parked = all(META_PARKED).into_iter();
    let parked = parked.filter_map(|bytes| serde_json::from_slice::<Vec<String>>(bytes).ok());
    let parked = parked
        .flatten()
        .filter_map(|host| HostKey::parse(&host).ok());
    let parked: BTreeSet<HostKey> = parked.collect();
    transaction.keep_meta(META_PARKED, &listed(parked.iter()));
    transaction.keep_meta(META_SCOPE_SEEDS, &lines(&all(META_SCOPE_SEEDS)));
    transaction.keep_meta(META_SEED_TARGETS, &lines(&all(META_SEED_TARGETS)));
    if let Some(traps) = TrapDetector::merge_stored(&all(META_TRAPS)) {
        transaction.keep_meta(META_TRAPS, &traps);
    }
}

/// Returns the latest round of the workers. If several workers are in that round, the round is over
/// only if it is over for all of them.
fn merged_round(kept: &[&[u8]]) -> Option<Round> {
    let rounds = kept
        .iter()
        .map(|bytes| serde_json::from_slice::<Round>(bytes));
    rounds.filter_map(Result::ok).reduce(|one, other| {
        let (last, before) = match one.number >= other.number {
            true => (one, other),
            false => (other, one),
        };
        let is_same = last.number == before.number;
        Round {
            began: match is_same {
                // Take the earlier time, because a worker with a later time joined after the round
                // had begun.
                true => last.began.min(before.began),
                false => last.began,
            },
            is_open: last.is_open && (before.is_open || !is_same),
            is_over: last.is_over && (before.is_over || !is_same),
            before: last.before.plus(before.before),
            first_began: last.first_began.min(before.first_began),
            ..last
        }
    })
}

/// Merges lists of lines. Drops repeated lines.
fn lines(kept: &[&[u8]]) -> Vec<u8> {
    let mut seen = BTreeSet::new();
    let lines = kept
        .iter()
        .flat_map(|bytes| bytes.split(|byte| *byte == b'\n'));
    let lines = lines.filter(|line| !line.is_empty() && seen.insert(*line));
    lines.collect::<Vec<_>>().join(&b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_merged_into_one() {
        let round = |number, is_over, pages| {
            let before = CrawlTotals {
                pages,
                ..CrawlTotals::default()
            };
            let first = Round::first(100 * number);
            let round = Round {
                number,
                is_over,
                before,
                first_began: 90 + number,
                ..first
            };
            serde_json::to_vec(&round).unwrap()
        };
        let (one, two) = (round(3, true, 40), round(1, false, 2));
        let merged = merged_round(&[&two, &one, b"nonsense"]).unwrap();
        assert_eq!(
            (merged.number, merged.began, merged.is_over),
            (3, 300, true)
        );
        assert_eq!((merged.first_began, merged.before.pages), (91, 42));
        let goes_on = round(3, false, 0);
        assert!(!merged_round(&[&one, &goes_on]).unwrap().is_over);
        assert_eq!(merged_round(&[]), None);
        assert_eq!(lines(&[b"a\nb", b"b\nc\n", b""]), b"a\nb\nc");
    }

    #[test]
    fn a_missing_worker_or_row_is_refused() {
        let dir = tempfile::TempDir::new().unwrap();
        fs::write(dir.path().join("pages.jsonl"), "a\nb\n").unwrap();
        fs::write(dir.path().join(EXCLUDED), "listed\n").unwrap();
        let worker = |name: &str, pages, bytes| ExportedWorker {
            name: name.to_owned(),
            pages,
            marks: BTreeMap::from([("pages.jsonl".to_owned(), bytes), (EXCLUDED.to_owned(), 0)]),
            meta: Vec::new(),
        };
        let check = |workers: &[ExportedWorker], gathered: &[(&str, u64)]| {
            let gathered = gathered
                .iter()
                .map(|(name, pages)| GatheredWorkerDirectory {
                    name: (*name).to_owned(),
                    pages: *pages,
                    dir: dir.path().to_owned(),
                });
            let checked = check_workers(workers, &gathered.collect::<Vec<_>>());
            checked
                .map_err(|why| why.to_string())
                .err()
                .unwrap_or_default()
        };
        let workers = [worker("w1", 2, 4), worker("w2", 0, 0), worker("w3", 2, 4)];
        let both = [("w1", 2), ("w3", 2)];
        assert_eq!(check(&workers, &both), "");
        assert!(check(&workers, &both[..1]).contains("worker `w3`, with 2 pages, is not among"));
        assert!(check(&workers, &[both[0], both[1], ("x", 1)]).contains("no worker `x`"));
        let one_row = [("w1", 1), both[1]];
        let message = check(&workers, &one_row);
        assert!(
            message.contains("`w1`") && message.contains("1 found, 2 committed"),
            "{message}"
        );
        for bytes in [3, 5] {
            let workers = [worker("w1", 2, bytes), worker("w3", 2, 4)];
            let message = check(&workers, &both);
            let expected = format!("pages.jsonl: 4 found, {bytes} committed");
            assert!(message.contains(&expected), "{message}");
        }
    }
}

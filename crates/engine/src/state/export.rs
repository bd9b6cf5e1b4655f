//! A crawl whose frontier workers shared, moved into a directory that was gathered from theirs: from
//! then on it has a frontier of its own there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crawl_archive::{ChangedFiles, DIGESTS, marks_at_rest, write_digests};
use crawl_frontier::parts::StoredPart;
use crawl_frontier::{Admission, FjallFrontier, Frontier, Transaction};
use crawl_policy::traps::Traps;
use crawl_shared_frontier::{Export, ExportedWorker};
use crawl_weburl::HostKey;

use super::directory::{self, STATE};
use super::moved_crawl::{MovedCrawl, states};
use super::parked_hosts::listed;
use crate::error::EngineError;
use crate::meta_keys::{
    META_PARKED, META_ROUND, META_SCOPE_SEEDS, META_SEED_TARGETS, META_TOTALS, META_TRAPS,
};
use crate::revisit::visit::Round;
use crate::totals::Totals;

/// Parts that are committed together.
const BATCH_PARTS: usize = 2_000;

/// The files of rows that a frontier knows the committed lengths of.
const MARKED_FILES: [&str; 3] = ["pages.jsonl", "excluded.jsonl", "links.jsonl"];

/// Moves a crawl into `dir`, which was gathered to go on from the directories of these workers, each
/// given with the rows of its `pages.jsonl`. The crawl is in both places until [`Export::finish`].
///
/// # Errors
/// [`EngineError`]; then the directory is of no use.
pub fn export(
    dir: &Path,
    source: &Export,
    gathered: &BTreeMap<String, u64>,
) -> Result<MovedCrawl, EngineError> {
    check_workers(source.workers(), gathered)?;
    let frontier = directory::begin_at_rest(dir)?;
    let mut moved = put_all(source, &frontier)?;
    let found = states(&frontier);
    let expected = source.totals();
    if found != expected {
        return Err(EngineError::ExportDiffers { expected, found });
    }
    admit_links(source, &frontier)?;
    moved.states = states(&frontier);
    let mut transaction = frontier.begin()?;
    keep_merged(source, &mut *transaction);
    for (file, length) in marks(dir)? {
        transaction.mark(&file, length);
    }
    transaction.commit()?;
    directory::note_end(&frontier)?;
    drop(frontier);
    let listed = write_digests(dir, ChangedFiles::Named(&[STATE]));
    listed.map_err(EngineError::disk(&dir.join(DIGESTS)))?;
    Ok(moved)
}

/// Refuses directories that are not those of all workers, or do not hold all that these committed.
fn check_workers(
    workers: &[ExportedWorker],
    gathered: &BTreeMap<String, u64>,
) -> Result<(), EngineError> {
    let names: BTreeSet<&str> = workers.iter().map(|worker| worker.name.as_str()).collect();
    if let Some(other) = gathered.keys().find(|name| !names.contains(name.as_str())) {
        return Err(EngineError::NotItsWorker {
            worker: other.clone(),
        });
    }
    for worker in workers {
        let rows = gathered.get(&worker.name).copied();
        let has_records = worker.pages > 0 || worker.marks.values().any(|length| *length > 0);
        match rows {
            None if has_records => {
                return Err(EngineError::WorkerMissing {
                    worker: worker.name.clone(),
                    pages: worker.pages,
                });
            }
            Some(rows) if rows != worker.pages => {
                return Err(EngineError::RecordsDiffer {
                    worker: worker.name.clone(),
                    rows,
                    committed: worker.pages,
                });
            }
            _ => {}
        }
    }
    Ok(())
}

fn put_all(source: &Export, frontier: &FjallFrontier) -> Result<MovedCrawl, EngineError> {
    let mut moved = MovedCrawl::default();
    let mut parts = Vec::with_capacity(BATCH_PARTS);
    source.each_part::<EngineError>(&mut |part| {
        moved.count(&part);
        // What is kept under names is merged below.
        if !matches!(part, StoredPart::Meta { .. }) {
            parts.push(part);
        }
        if parts.len() >= BATCH_PARTS {
            frontier.put_parts(parts.drain(..))?;
        }
        Ok(())
    })?;
    frontier.put_parts(parts)?;
    Ok(moved)
}

/// Admits the links that their owners had not taken.
fn admit_links(source: &Export, frontier: &FjallFrontier) -> Result<(), EngineError> {
    let mut links: Vec<Admission> = Vec::with_capacity(BATCH_PARTS);
    let admit = |links: &mut Vec<Admission>| -> Result<(), EngineError> {
        let mut transaction = frontier.begin()?;
        transaction.admit_all(links)?;
        transaction.commit()?;
        links.clear();
        Ok(())
    };
    source.each_link::<EngineError>(&mut |link| {
        links.push(link);
        match links.len() >= BATCH_PARTS {
            true => admit(&mut links),
            false => Ok(()),
        }
    })?;
    admit(&mut links)
}

/// The lengths of all files that stand for what is settled.
fn marks(dir: &Path) -> Result<BTreeMap<String, u64>, EngineError> {
    let mut marks = marks_at_rest(dir).map_err(EngineError::disk(dir))?;
    for name in MARKED_FILES {
        let path = dir.join(name);
        if path.exists() {
            let found = fs::metadata(&path).map_err(EngineError::disk(&path))?;
            marks.insert(name.to_owned(), found.len());
        }
    }
    Ok(marks)
}

/// Keeps what the workers kept, each of its own, as one of them all.
fn keep_merged(source: &Export, transaction: &mut dyn Transaction) {
    let workers = source.workers();
    let all = |name: &str| -> Vec<&[u8]> {
        let kept = workers.iter().flat_map(|worker| &worker.meta);
        let kept = kept.filter(|(key, _)| key == name);
        kept.map(|(_, bytes)| bytes.as_slice()).collect()
    };
    let totals = all(META_TOTALS).into_iter().filter_map(Totals::from_bytes);
    let totals = totals.fold(Totals::default(), Totals::plus);
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
    if let Some(traps) = Traps::merge_stored(&all(META_TRAPS)) {
        transaction.keep_meta(META_TRAPS, &traps);
    }
}

/// The last round that a worker was in: it is over where it is for all of those.
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
            is_open: last.is_open && (before.is_open || !is_same),
            is_over: last.is_over && (before.is_over || !is_same),
            before: last.before.plus(before.before),
            first_began: last.first_began.min(before.first_began),
            ..last
        }
    })
}

/// All lines, each where it comes first.
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
    fn ours_workers_are_merged_as_one_that_did_what_all_did() {
        let round = |number, is_over, pages| {
            let before = Totals {
                pages,
                ..Totals::default()
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
    fn ours_no_worker_s_directory_is_missing() {
        let worker = |name: &str, pages, bytes| ExportedWorker {
            name: name.to_owned(),
            pages,
            marks: BTreeMap::from([("pages.jsonl".to_owned(), bytes)]),
            meta: Vec::new(),
        };
        let workers = [worker("w1", 3, 90), worker("w2", 0, 0), worker("w3", 2, 60)];
        let check = |gathered: &[(&str, u64)]| {
            let gathered = gathered
                .iter()
                .map(|(name, rows)| ((*name).to_owned(), *rows));
            let checked = check_workers(&workers, &gathered.collect());
            checked
                .map_err(|why| why.to_string())
                .err()
                .unwrap_or_default()
        };
        assert_eq!(check(&[("w1", 3), ("w3", 2)]), "");
        assert_eq!(check(&[("w1", 3), ("w2", 0), ("w3", 2)]), "");
        assert!(check(&[("w1", 3)]).contains("worker `w3`, with 2 pages, is not among"));
        assert!(check(&[("w1", 2), ("w3", 2)]).contains("`w1` has 2 rows in pages.jsonl, and 3"));
        assert!(check(&[("w1", 3), ("w3", 2), ("x", 1)]).contains("no worker `x`"));
    }
}

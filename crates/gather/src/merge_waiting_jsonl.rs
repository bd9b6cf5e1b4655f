//! Combines the `waiting.jsonl` files of all workers: how each worker's last run ended, and how
//! many URLs of each host are still waiting.

use std::collections::BTreeMap;
use std::path::Path;

use crawl_archive::RowFileWriter;
use crawl_archive::rows::PendingOriginRow;

use crate::error::GatherError;
use crate::worker_directory::WorkerDirectory;

/// The reasons why a run may end, sorted by how much work they leave, the most first. A reason that
/// is not in the list counts as leaving more work than all others.
const REASONS: [&str; 8] = [
    "interrupted",
    "parked",
    "quiet_hours",
    "other_crawl",
    "unreachable",
    "robots",
    "budget",
    "finished",
];

/// Writes `waiting.jsonl`. Skips a worker's row about an origin if another worker took over the
/// origin later, because that worker may have fetched the URLs. Workers own whole buckets of
/// origins. Each change of owner increases the bucket's epoch, so the worker with the higher epoch
/// owned the origin later. If the epochs don't show the order, writes the row with the most URLs.
pub(crate) fn write_waiting(workers: &[WorkerDirectory], to: &Path) -> Result<(), GatherError> {
    let last = last_epochs(workers);
    let mut rows: BTreeMap<&str, &PendingOriginRow> = BTreeMap::new();
    let mut has_rows = vec![false; workers.len()];
    for (worker, has_rows) in workers.iter().zip(&mut has_rows) {
        for row in &worker.waiting {
            let own = row.bucket.and_then(|b| worker.ended.buckets.get(&b));
            let last = row.bucket.and_then(|b| last.get(&b));
            if own.is_some() && own < last {
                continue;
            }
            *has_rows = true;
            let origin = row.origin.as_deref().unwrap_or_default();
            let entry = rows.entry(origin).or_insert(row);
            if entry.urls < row.urls {
                *entry = row;
            }
        }
    }
    let urls = rows.values().map(|row| row.urls).sum();
    let mut file = RowFileWriter::open(&to.join("waiting.jsonl"), None)?;
    file.append(&PendingOriginRow {
        buckets: last,
        ..of_crawl(workers, &has_rows, urls)
    })?;
    for row in rows.values() {
        file.append(row)?;
    }
    file.sync()?;
    Ok(())
}

/// Returns the buckets (sets of hosts) that workers owned at the end of their runs, each with the
/// epoch of its last owner.
fn last_epochs(workers: &[WorkerDirectory]) -> BTreeMap<i32, i64> {
    let mut last = BTreeMap::new();
    for (b, epoch) in workers.iter().flat_map(|worker| &worker.ended.buckets) {
        let entry = last.entry(*b).or_insert(*epoch);
        *entry = (*entry).max(*epoch);
    }
    last
}

/// Returns the row about the whole crawl. The reason is the one that leaves the most work among the
/// workers with waiting URLs. If no worker has waiting URLs, the reason is the one that leaves the
/// least work among all workers.
fn of_crawl(workers: &[WorkerDirectory], has_rows: &[bool], urls: u64) -> PendingOriginRow {
    let rank = |row: &&PendingOriginRow| {
        let rank = REASONS.iter().position(|reason| *reason == row.reason);
        rank.map_or(0, |at| at + 1)
    };
    let ended = || workers.iter().map(|worker| &worker.ended);
    let unfinished = ended().zip(has_rows).filter(|(_, has_rows)| **has_rows);
    let row_of_crawl = unfinished.map(|(row, _)| row).min_by_key(rank);
    let row_of_crawl = row_of_crawl.or_else(|| ended().max_by_key(rank)).cloned();
    PendingOriginRow {
        origin: None,
        urls,
        ..row_of_crawl.unwrap_or_else(|| PendingOriginRow {
            reason: "finished".to_owned(),
            ..PendingOriginRow::default()
        })
    }
}

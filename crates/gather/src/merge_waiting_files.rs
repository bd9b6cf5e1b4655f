//! Combines the `waiting.jsonl` files of all workers: how each worker's last run ended, and how
//! many URLs of each host are still waiting.

use std::collections::BTreeMap;
use std::path::Path;

use crawl_archive::RowFileWriter;
use crawl_archive::rows::WaitingRow;
use crawl_weburl::Origin;

use crate::error::GatherError;
use crate::merge_rows::LastWorkerByHost;
use crate::worker_directory::WorkerDirectory;

/// The reasons why a run may end, sorted by how much work they leave, the most first. A reason that
/// is not in the list counts as leaving more work than all others.
const REASONS: [&str; 6] = [
    "interrupted",
    "parked",
    "unreachable",
    "robots",
    "budget",
    "finished",
];

/// Writes `waiting.jsonl`. A host may have been handed over to another worker after one worker's
/// run had ended. So the number of waiting URLs of a host is taken from the worker that sent the
/// last request to the host.
pub(crate) fn write_waiting(
    workers: &[WorkerDirectory],
    last: &LastWorkerByHost,
    to: &Path,
) -> Result<(), GatherError> {
    let mut rows: BTreeMap<&str, &WaitingRow> = BTreeMap::new();
    let mut has_rows = vec![false; workers.len()];
    for ((number, worker), has_rows) in workers.iter().enumerate().zip(&mut has_rows) {
        for row in &worker.waiting {
            let origin = row.origin.as_deref().unwrap_or_default();
            let last_worker = Origin::parse(origin).ok();
            let last_worker = last_worker.and_then(|origin| last.get(origin.host_key().as_str()));
            if last_worker.is_some_and(|last_worker| *last_worker != number) {
                continue;
            }
            *has_rows = true;
            let entry = rows.entry(origin).or_insert(row);
            if entry.urls < row.urls {
                *entry = row;
            }
        }
    }
    let mut file = RowFileWriter::open(&to.join("waiting.jsonl"), None)?;
    file.append(&of_crawl(
        workers,
        &has_rows,
        rows.values().map(|row| row.urls).sum(),
    ))?;
    for row in rows.values() {
        file.append(row)?;
    }
    file.sync()?;
    Ok(())
}

/// Returns the row about the whole crawl. If any worker has waiting URLs, the row's reason is the
/// one of these workers' reasons that leaves the most work. Otherwise it is the one of all workers'
/// reasons that leaves the least work.
fn of_crawl(workers: &[WorkerDirectory], has_rows: &[bool], urls: u64) -> WaitingRow {
    let rank = |row: &&WaitingRow| {
        let rank = REASONS.iter().position(|reason| *reason == row.reason);
        rank.map_or(0, |at| at + 1)
    };
    let ended = || workers.iter().map(|worker| &worker.ended);
    let unfinished = ended().zip(has_rows).filter(|(_, has_rows)| **has_rows);
    let row_of_crawl = unfinished.map(|(row, _)| row).min_by_key(rank);
    let row_of_crawl = row_of_crawl.or_else(|| ended().max_by_key(rank)).cloned();
    WaitingRow {
        origin: None,
        urls,
        ..row_of_crawl.unwrap_or_else(|| WaitingRow {
            origin: None,
            urls,
            reason: "finished".to_owned(),
            detail: None,
            round: None,
            listed: Vec::new(),
        })
    }
}

//! How the crawl ended and what waits, by what each worker's last run left.

use std::collections::BTreeMap;
use std::path::Path;

use crawl_archive::RowFile;
use crawl_archive::rows::WaitingRow;
use crawl_weburl::Origin;

use crate::error::GatherError;
use crate::rows::LastWorkers;
use crate::worker::Worker;

/// The reasons for which a run ends, those first that leave most undone. What is not listed comes
/// before all of them.
const REASONS: [&str; 6] = [
    "interrupted",
    "parked",
    "unreachable",
    "robots",
    "budget",
    "finished",
];

/// Writes `waiting.jsonl`. A host may have been handed on after a worker's run had ended: what waits
/// of it the worker tells that asked it last.
pub(crate) fn write_waiting(
    workers: &[Worker],
    last: &LastWorkers,
    to: &Path,
) -> Result<(), GatherError> {
    let mut rows: BTreeMap<&str, &WaitingRow> = BTreeMap::new();
    let mut has_rows = vec![false; workers.len()];
    for ((number, worker), has_rows) in workers.iter().enumerate().zip(&mut has_rows) {
        for row in &worker.waiting {
            let origin = row.origin.as_deref().unwrap_or_default();
            let asked = Origin::parse(origin).ok();
            let asked = asked.and_then(|origin| last.get(origin.host_key().as_str()));
            if asked.is_some_and(|asked| *asked != number) {
                continue;
            }
            *has_rows = true;
            let known = rows.entry(origin).or_insert(row);
            if known.urls < row.urls {
                *known = row;
            }
        }
    }
    let mut file = RowFile::open(&to.join("waiting.jsonl"), None)?;
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

/// The row of the crawl. A worker of whose hosts nothing waits has nothing to say, unless that is
/// so of all.
fn of_crawl(workers: &[Worker], has_rows: &[bool], urls: u64) -> WaitingRow {
    let rank = |row: &&WaitingRow| {
        let known = REASONS.iter().position(|reason| *reason == row.reason);
        known.map_or(0, |at| at + 1)
    };
    let ended = || workers.iter().map(|worker| &worker.ended);
    let left = ended().zip(has_rows).filter(|(_, has_rows)| **has_rows);
    let told = left.map(|(row, _)| row).min_by_key(rank);
    let told = told.or_else(|| ended().max_by_key(rank)).cloned();
    WaitingRow {
        origin: None,
        urls,
        ..told.unwrap_or_else(|| WaitingRow {
            origin: None,
            urls,
            reason: "finished".to_owned(),
            detail: None,
            listed: Vec::new(),
        })
    }
}

//! Merges the row files of all workers. Rows that have a time are ordered by time. Other rows are
//! written one worker after the other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use crawl_archive::rows::{
    DelayRow, ExtractRow, GatheredWorkerRow, LinkRow, PageRow, RequestRow, TombstoneRow,
};
use crawl_archive::{RowFileWriter, RowReader};
use crawl_records::{GATHERED_DELAYS, WORKERS};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::duplicate_rows::{DuplicateRowPositionReader, sound};
use crate::error::GatherError;
use crate::merge_archives::RelocatedRecords;
use crate::worker_directory::WorkerDirectory;

/// The file in a crawl's directory that lists the request delays set by operators.
const DELAYS: &str = "state/delays.jsonl";

/// Writes `pages.jsonl`, ordered by round and request time.
pub(crate) fn pages(
    workers: &mut [WorkerDirectory],
    places: &[RelocatedRecords],
    to: &Path,
) -> Result<(), GatherError> {
    let mut out = None;
    merge(
        workers,
        |_| "pages.jsonl",
        |row: &PageRow| (row.round, row.fetched_at.as_micros()),
        |number, worker, mut row| {
            worker.pages += 1;
            row.warc = row.warc.map(|place| match places.get(number) {
                Some(places) => places.of(place),
                None => place,
            });
            append(&mut out, to, "pages.jsonl", &row)
        },
    )?;
    sync(out)
}

/// Writes `requests.jsonl`, ordered by the end time of requests, as in a crawl without other
/// workers.
pub(crate) fn requests(workers: &mut [WorkerDirectory], to: &Path) -> Result<(), GatherError> {
    let mut out = None;
    merge(
        workers,
        |_| "requests.jsonl",
        |row: &RequestRow| (row.end, row.start),
        |_, worker, mut row| {
            worker.requests += 1;
            // `after` refers to commits of one worker, so it would be meaningless in the merged
            // file.
            row.after = None;
            row.worker.get_or_insert_with(|| worker.worker.clone());
            append(&mut out, to, "requests.jsonl", &row)
        },
    )?;
    sync(out)
}

/// Writes `excluded.jsonl`, without rows that repeat another worker's row.
pub(crate) fn excluded(
    workers: &mut [WorkerDirectory],
    duplicates: &mut DuplicateRowPositionReader,
    to: &Path,
) -> Result<(), GatherError> {
    const NAME: &str = "excluded.jsonl";
    let mut out = None;
    for (number, worker) in workers.iter_mut().enumerate() {
        let mut rows = worker.excluded()?;
        while let Some(row) = rows.next() {
            let Some(row) = sound(row)? else {
                worker.row.unreadable += 1;
                continue;
            };
            let is_duplicate = duplicates.holds(number, rows.line());
            if is_duplicate.map_err(GatherError::io(to))? {
                worker.row.told_by_others += 1;
                continue;
            }
            worker.row.excluded += 1;
            append(&mut out, to, NAME, &row)?;
        }
        worker.row.unreadable += u64::from(rows.is_torn());
    }
    sync(out)
}

/// Writes `links.jsonl`, keeping the links of each page together.
pub(crate) fn links(workers: &mut [WorkerDirectory], to: &Path) -> Result<(), GatherError> {
    const NAME: &str = "links.jsonl";
    let mut out = None;
    for worker in workers {
        let mut rows = RowReader::<LinkRow>::open_if_any(&worker.dir.join(NAME))?;
        for row in rows.by_ref() {
            let Some(row) = sound(row)? else {
                worker.row.unreadable += 1;
                continue;
            };
            worker.row.links += 1;
            append(&mut out, to, NAME, &row)?;
        }
        worker.row.unreadable += u64::from(rows.is_torn());
    }
    sync(out)
}

/// Writes `extracts.jsonl`, and the extraction rules. Copies the rules from the first worker that
/// has any, because all workers of a crawl have the same ones.
pub(crate) fn extracts(workers: &mut [WorkerDirectory], to: &Path) -> Result<(), GatherError> {
    const NAME: &str = "extracts.jsonl";
    const RULES: &str = "extract-rules.json";
    let mut out = None;
    for worker in &mut *workers {
        let mut rows = RowReader::<ExtractRow>::open_if_any(&worker.dir.join(NAME))?;
        for row in rows.by_ref() {
            match sound(row)? {
                Some(row) => append(&mut out, to, NAME, &row)?,
                None => worker.row.unreadable += 1,
            }
        }
        worker.row.unreadable += u64::from(rows.is_torn());
    }
    let rules = workers.iter().map(|worker| worker.dir.join(RULES));
    if let Some(rules) = rules.into_iter().find(|rules| rules.is_file()) {
        let copy = to.join(RULES);
        std::fs::copy(rules, &copy).map_err(GatherError::io(&copy))?;
    }
    sync(out)
}

/// Writes `tombstones.jsonl`, and the delays that operators set, each ordered by time. If a crawl
/// will resume in `to` (`goes_on`), the delays go to [`DELAYS`], which the crawl loads. Otherwise
/// they go to [`GATHERED_DELAYS`].
pub(crate) fn operators_rows(
    workers: &mut [WorkerDirectory],
    goes_on: bool,
    to: &Path,
) -> Result<(), GatherError> {
    let delays = match goes_on {
        true => DELAYS,
        false => GATHERED_DELAYS,
    };
    let mut out = None;
    merge(
        workers,
        |_| "tombstones.jsonl",
        |row: &TombstoneRow| row.at.as_micros(),
        |_, _, row| append(&mut out, to, "tombstones.jsonl", &row),
    )?;
    sync(out)?;
    let mut out = None;
    merge(
        workers,
        |dir| match dir.join(WORKERS).exists() {
            true => GATHERED_DELAYS,
            false => DELAYS,
        },
        |row: &DelayRow| row.at,
        |_, worker, mut row| {
            row.worker.get_or_insert_with(|| worker.worker.clone());
            append(&mut out, to, delays, &row)
        },
    )?;
    sync(out)
}

/// Writes `workers.jsonl`. Call this last, when all counts are known.
pub(crate) fn list_workers(workers: &[WorkerDirectory], to: &Path) -> Result<(), GatherError> {
    let mut out = None;
    for worker in workers {
        append(&mut out, to, WORKERS, &worker.row)?;
    }
    sync(out)
}

/// Merges one row file of all workers and visits its rows, ordered by `key`. The rows of one worker
/// keep their order even if a key is smaller than the one before: such a row is ordered by the
/// greatest key so far. A missing file has no rows. Skips and counts unreadable lines.
fn merge<T: DeserializeOwned, K: Ord + Copy>(
    workers: &mut [WorkerDirectory],
    name: impl Fn(&Path) -> &'static str,
    key: impl Fn(&T) -> K,
    mut visit: impl FnMut(usize, &mut GatheredWorkerRow, T) -> Result<(), GatherError>,
) -> Result<(), GatherError> {
    let mut sources = Vec::with_capacity(workers.len());
    let mut heads = BinaryHeap::new();
    for (number, worker) in workers.iter_mut().enumerate() {
        let path = worker.dir.join(name(&worker.dir));
        let mut source = WorkerRowFile {
            rows: RowReader::open_if_any(&path)?,
            head: None,
            latest: None,
        };
        heads.extend(source.step(&key, worker)?.map(|key| Reverse((key, number))));
        sources.push(source);
    }
    while let Some(Reverse((_, number))) = heads.pop() {
        let (Some(source), Some(worker)) = (sources.get_mut(number), workers.get_mut(number))
        else {
            continue;
        };
        if let Some(row) = source.head.take() {
            visit(number, &mut worker.row, row)?;
        }
        heads.extend(source.step(&key, worker)?.map(|key| Reverse((key, number))));
    }
    Ok(())
}

/// A worker's row file that is being merged, with the next row to visit.
struct WorkerRowFile<T, K> {
    rows: RowReader<T>,
    head: Option<T>,
    /// The greatest key of the rows read so far.
    latest: Option<K>,
}

impl<T: DeserializeOwned, K: Ord + Copy> WorkerRowFile<T, K> {
    /// Reads the next row and returns the key for ordering it, or `None` at the end of the file.
    fn step(
        &mut self,
        key: impl Fn(&T) -> K,
        worker: &mut WorkerDirectory,
    ) -> Result<Option<K>, GatherError> {
        for row in self.rows.by_ref() {
            let Some(row) = sound(row)? else {
                worker.row.unreadable += 1;
                continue;
            };
            let own = key(&row);
            let place = self.latest.map_or(own, |latest| latest.max(own));
            self.latest = Some(place);
            self.head = Some(row);
            return Ok(Some(place));
        }
        worker.row.unreadable += u64::from(self.rows.is_torn());
        Ok(None)
    }
}

/// Appends a row to a file. The file is created when the first row is written.
fn append(
    out: &mut Option<RowFileWriter>,
    to: &Path,
    name: &str,
    row: &impl Serialize,
) -> Result<(), GatherError> {
    let file = match out {
        Some(file) => file,
        None => out.insert(RowFileWriter::open(&to.join(name), None)?),
    };
    file.append(row)?;
    Ok(())
}

fn sync(out: Option<RowFileWriter>) -> Result<(), GatherError> {
    match out {
        Some(mut file) => Ok(file.sync()?),
        None => Ok(()),
    }
}

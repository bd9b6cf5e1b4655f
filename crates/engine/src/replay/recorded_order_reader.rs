//! Reads the logged order of a crawl from `state/order.jsonl` and `requests.jsonl`: turns (uses of
//! permits), commits, and ends of requests.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use crawl_archive::rows::{ReplayOrderRow, RequestRow, RunStartEvent};
use crawl_archive::{ReadError, RowReader, open_regular};

use crate::error::EngineError;
use crate::state::replay_order_log::ORDER;

/// Reads the rows of `state/order.jsonl`, and the rows of `requests.jsonl`, which are ordered by
/// when the requests ended. Reads both files row by row.
pub(super) struct RecordedOrderReader {
    order: RowReader<ReplayOrderRow>,
    requests: BufReader<File>,
    /// The number of bytes read from `requests.jsonl`.
    read: u64,
    /// The number of rows read from `requests.jsonl`.
    rows: u32,
    line: Vec<u8>,
}

impl RecordedOrderReader {
    /// Opens the logged order of the crawl in `dir`. Returns the order and the row that begins its
    /// first run. `None` if there is no log, or if the crawl began before its log.
    pub(super) fn open(
        dir: &Path,
    ) -> Result<Option<(RecordedOrderReader, RunStartEvent)>, EngineError> {
        let path = dir.join("requests.jsonl");
        let order = RowReader::open_if_any(&dir.join(ORDER))?;
        let requests = open_regular(&path).map_err(EngineError::disk(&path))?;
        let mut script = RecordedOrderReader {
            order,
            requests: BufReader::new(requests),
            read: 0,
            rows: 0,
            line: Vec::new(),
        };
        let first = script.next()?.and_then(|row| row.run);
        let is_whole = |run: &RunStartEvent| (run.requests, run.settled) == (0, 0);
        Ok(first.filter(is_whole).map(|run| (script, run)))
    }

    /// Returns the next row of `state/order.jsonl`. Skips lines that can't be parsed as a row.
    pub(super) fn next(&mut self) -> Result<Option<ReplayOrderRow>, EngineError> {
        loop {
            match self.order.next() {
                None => return Ok(None),
                Some(Ok(row)) => return Ok(Some(row)),
                Some(Err(ReadError::Row { .. })) => {}
                Some(Err(error)) => return Err(error.into()),
            }
        }
    }

    /// Returns the next request that ended, with its index among all requests. `None` once `bytes`
    /// bytes of `requests.jsonl` were read.
    pub(super) fn next_end(
        &mut self,
        bytes: u64,
    ) -> Result<Option<(u32, RequestRow)>, EngineError> {
        while self.read < bytes {
            self.line.clear();
            let read = self.requests.read_until(b'\n', &mut self.line);
            let read = read.map_err(EngineError::disk(Path::new("requests.jsonl")))?;
            if read == 0 {
                return Ok(None);
            }
            self.read += read as u64;
            if let Ok(row) = serde_json::from_slice(&self.line) {
                let place = self.rows;
                self.rows += 1;
                return Ok(Some((place, row)));
            }
        }
        Ok(None)
    }
}

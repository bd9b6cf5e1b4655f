//! The noted order of a crawl, as a replay goes through it: whose turn it was, in which order
//! messages were committed, and in which order requests ended.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use crawl_archive::rows::{OrderRow, RequestRow, RunBegan};
use crawl_archive::{ReadError, RowReader, open_regular};

use crate::error::EngineError;
use crate::state::order_log::ORDER;

/// The rows of `state/order.jsonl`, and those of `requests.jsonl` in the order of their ends. Both
/// stay on the disk.
pub(super) struct Script {
    order: RowReader<OrderRow>,
    requests: BufReader<File>,
    /// Bytes of `requests.jsonl` that were read.
    read: u64,
    /// Rows among them.
    rows: u32,
    line: Vec<u8>,
}

impl Script {
    /// The noted order of the crawl in `dir`, and its first run; none where it was not noted from
    /// the first request on.
    pub(super) fn open(dir: &Path) -> Result<Option<(Script, RunBegan)>, EngineError> {
        let path = dir.join("requests.jsonl");
        let order = RowReader::open_if_any(&dir.join(ORDER))?;
        let requests = open_regular(&path).map_err(EngineError::disk(&path))?;
        let mut script = Script {
            order,
            requests: BufReader::new(requests),
            read: 0,
            rows: 0,
            line: Vec::new(),
        };
        let first = script.next()?.and_then(|row| row.run);
        let is_whole = |run: &RunBegan| (run.requests, run.settled) == (0, 0);
        Ok(first.filter(is_whole).map(|run| (script, run)))
    }

    /// The next row of the order. What is no row is passed over.
    pub(super) fn next(&mut self) -> Result<Option<OrderRow>, EngineError> {
        loop {
            match self.order.next() {
                None => return Ok(None),
                Some(Ok(row)) => return Ok(Some(row)),
                Some(Err(ReadError::Row { .. })) => {}
                Some(Err(error)) => return Err(error.into()),
            }
        }
    }

    /// The next request that ended within the first so many bytes, and its place among all.
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

//! Writes sorted runs.

use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::bloom_filter::BloomFilter;
use super::run_block::{BLOCK_BYTES, BLOCK_RECORDS, RunBlock, SortedRunError, seal};
use super::run_disk::{DiskFile, RunDisk};
use super::sieve_record::{KEY_BYTES, RECORD_BYTES, SieveRecord};
use super::sorted_run::{RunManifestEntry, SortedRunFooter};

/// The number of bytes of blocks that are collected before they are written to the file.
const WRITE_BYTES: usize = 64 * BLOCK_BYTES;
/// The number of bytes of a sorted run that are written between two syncs. If the run were synced
/// only at its end, the sync of a commit might have to wait until the disk has written a gigabyte
/// of the run.
const SYNC_BYTES: u64 = 8 << 20;

/// Writes a sorted run. The records must come in key order, each key once.
pub(crate) struct SortedRunWriter<'d> {
    disk: &'d dyn RunDisk,
    path: PathBuf,
    file: Box<dyn DiskFile>,
    id: u64,
    records: u64,
    firsts: Vec<u8>,
    filter: BloomFilter,
    block: Box<RunBlock>,
    /// The number of records in `block`.
    held: usize,
    pending: Vec<u8>,
    unsynced: u64,
}

impl<'d> SortedRunWriter<'d> {
    /// Creates the file of a sorted run with at most `max_records` records.
    pub(crate) fn create(
        disk: &'d dyn RunDisk,
        path: &Path,
        id: u64,
        max_records: u64,
    ) -> Result<SortedRunWriter<'d>, SortedRunError> {
        let io = |source| SortedRunError::Io {
            path: path.to_owned(),
            source,
        };
        Ok(SortedRunWriter {
            disk,
            path: path.to_owned(),
            file: disk.create(path).map_err(io)?,
            id,
            records: 0,
            firsts: Vec::with_capacity(
                max_records.div_ceil(BLOCK_RECORDS as u64) as usize * KEY_BYTES,
            ),
            filter: BloomFilter::for_keys(max_records),
            block: Box::new([0; BLOCK_BYTES]),
            held: 0,
            pending: Vec::with_capacity(WRITE_BYTES),
            unsynced: 0,
        })
    }

    pub(crate) fn push(&mut self, record: SieveRecord) -> Result<(), SortedRunError> {
        if self.held == 0 {
            self.firsts.extend(record.key.bytes());
        }
        let at = self.held * RECORD_BYTES;
        self.block[at..at + KEY_BYTES].copy_from_slice(&record.key.bytes());
        self.block[at + KEY_BYTES..at + RECORD_BYTES].copy_from_slice(&record.state);
        self.filter.set(record.key);
        self.held += 1;
        self.records += 1;
        if self.held == BLOCK_RECORDS {
            self.end_block()?;
        }
        Ok(())
    }

    /// Writes the remaining records, the index, the filter and the footer. Returns when the file
    /// and its name are on disk.
    pub(crate) fn finish(mut self) -> Result<RunManifestEntry, SortedRunError> {
        if self.held > 0 {
            self.end_block()?;
        }
        let mut map = std::mem::take(&mut self.firsts);
        self.filter.put(&mut map);
        let footer = SortedRunFooter {
            id: self.id,
            records: self.records,
            lines: self.filter.lines(),
            checksum: xxh3_64(&map),
        };
        self.write_pending()?;
        for part in map.chunks(SYNC_BYTES as usize) {
            self.write(part)?;
        }
        self.write(&footer.bytes())?;
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let synced = self.file.sync().and_then(|()| self.disk.sync_dir(dir));
        synced.map_err(|source| self.io(source))?;
        Ok(footer.entry())
    }

    fn end_block(&mut self) -> Result<(), SortedRunError> {
        let number = (self.records - 1) / BLOCK_RECORDS as u64;
        self.block[self.held * RECORD_BYTES..].fill(0);
        seal(&mut self.block, self.id, number);
        self.pending.extend_from_slice(self.block.as_slice());
        self.held = 0;
        if self.pending.len() >= WRITE_BYTES {
            self.write_pending()?;
        }
        Ok(())
    }

    fn write_pending(&mut self) -> Result<(), SortedRunError> {
        let mut pending = std::mem::take(&mut self.pending);
        self.write(&pending)?;
        pending.clear();
        self.pending = pending;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SortedRunError> {
        let mut written = self.file.write(bytes);
        self.unsynced += bytes.len() as u64;
        if self.unsynced >= SYNC_BYTES {
            self.unsynced = 0;
            written = written.and_then(|()| self.file.sync());
        }
        written.map_err(|source| self.io(source))
    }

    fn io(&self, source: std::io::Error) -> SortedRunError {
        SortedRunError::Io {
            path: self.path.clone(),
            source,
        }
    }
}

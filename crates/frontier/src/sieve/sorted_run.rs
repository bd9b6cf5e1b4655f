//! A sorted run: records sorted by key in a file that never changes.
//!
//! ```text
//! blocks   4,096 bytes each: up to 146 records of 28, zeros, xxh3 of the bytes before
//! index    16 bytes for each block: its first key
//! filter   64 bytes for each line
//! footer   64 bytes: see `SortedRunFooter`
//! ```
//!
//! The checksum of a block is seeded with the numbers of the run and the block, so that a block in
//! the wrong place is detected as well. The index and the filter are held in memory.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::block_cache::BlockCache;
use super::bloom_filter::{BloomFilter, LINE_BYTES};
use super::run_block::{
    BLOCK_BYTES, BLOCK_RECORDS, RunBlock, SortedRunError, is_sealed, number_at,
};
use super::run_disk::read_at;
use super::sieve_record::{KEY_BYTES, PackedState, RECORD_BYTES, SieveRecord};
use crate::fingerprint::Fingerprint;

const FOOTER_BYTES: usize = 64;
const MAGIC: [u8; 8] = *b"crawlrun";
const VERSION: u64 = 1;

/// The entry of a sorted run in the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunManifestEntry {
    pub(crate) id: u64,
    pub(crate) records: u64,
    /// The checksum at the end of the footer, which identifies the file that was written.
    pub(crate) checksum: u64,
}

/// The end of a sorted run's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SortedRunFooter {
    pub(crate) id: u64,
    pub(crate) records: u64,
    pub(crate) lines: u64,
    /// xxh3 of index and filter, in this order.
    pub(crate) checksum: u64,
}

impl SortedRunFooter {
    fn blocks(&self) -> u64 {
        self.records.div_ceil(BLOCK_RECORDS as u64)
    }

    /// Returns the length of the index and the filter together, in bytes.
    fn map_bytes(&self) -> u64 {
        self.blocks() * KEY_BYTES as u64 + self.lines * LINE_BYTES as u64
    }

    /// Encodes the footer: magic, version, number, records, lines, checksum of index and filter,
    /// zeros, and the checksum of all these fields.
    pub(crate) fn bytes(&self) -> [u8; FOOTER_BYTES] {
        let mut out = [0; FOOTER_BYTES];
        out[..8].copy_from_slice(&MAGIC);
        let numbers = [VERSION, self.id, self.records, self.lines, self.checksum];
        for (slot, number) in out[8..].chunks_exact_mut(8).zip(numbers) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        let checksum = xxh3_64(&out[..FOOTER_BYTES - 8]);
        out[FOOTER_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    pub(crate) fn entry(&self) -> RunManifestEntry {
        let bytes = self.bytes();
        RunManifestEntry {
            id: self.id,
            records: self.records,
            checksum: number_at(&bytes, FOOTER_BYTES - 8),
        }
    }

    fn read(bytes: &[u8; FOOTER_BYTES]) -> Option<SortedRunFooter> {
        let footer = SortedRunFooter {
            id: number_at(bytes, 16),
            records: number_at(bytes, 24),
            lines: number_at(bytes, 32),
            checksum: number_at(bytes, 40),
        };
        (footer.bytes() == *bytes).then_some(footer)
    }
}

/// A sorted run, opened for reading.
pub(crate) struct SortedRun {
    path: PathBuf,
    file: File,
    pub(crate) entry: RunManifestEntry,
    index: SortedRunIndex,
    filter: BloomFilter,
}

/// The index of a sorted run: the first key of each block, and for each value of a key's top 16
/// bits the first block that starts at that value or later.
struct SortedRunIndex {
    firsts: Vec<Fingerprint>,
    starts: Vec<u32>,
}

impl SortedRunIndex {
    fn new(firsts: Vec<Fingerprint>) -> SortedRunIndex {
        let mut starts = Vec::with_capacity((1 << 16) + 1);
        let mut at = 0;
        for top in 0..=1_u32 << 16 {
            while at < firsts.len() && ((firsts[at].as_u128() >> 112) as u32) < top {
                at += 1;
            }
            starts.push(at as u32);
        }
        SortedRunIndex { firsts, starts }
    }

    /// Returns the number of the only block that can contain `key`, or `None` if no block can.
    fn block(&self, key: Fingerprint) -> Option<usize> {
        let top = (key.as_u128() >> 112) as usize;
        let (from, to) = (self.starts[top] as usize, self.starts[top + 1] as usize);
        let end = from + self.firsts[from..to].partition_point(|first| *first <= key);
        end.checked_sub(1)
    }
}

impl SortedRun {
    /// Opens the file of a sorted run that is listed in the manifest.
    pub(crate) fn open(path: &Path, entry: RunManifestEntry) -> Result<SortedRun, SortedRunError> {
        let io = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => damaged(path, "the file is missing".into()),
            _ => SortedRunError::Io {
                path: path.to_owned(),
                source,
            },
        };
        let file = File::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut bytes = [0; FOOTER_BYTES];
        let Some(footer_at) = length.checked_sub(FOOTER_BYTES as u64) else {
            return Err(damaged(path, format!("the file ends after {length} bytes")));
        };
        read_at(&file, &mut bytes, footer_at).map_err(io)?;
        let footer = SortedRunFooter::read(&bytes).filter(|footer| footer.entry() == entry);
        let footer = footer.ok_or_else(|| {
            damaged(
                path,
                "its end is not what was written: cut, changed or another's".into(),
            )
        })?;
        let blocks_bytes = footer.blocks() * BLOCK_BYTES as u64;
        if blocks_bytes + footer.map_bytes() != footer_at {
            return Err(damaged(path, format!("the file has {length} bytes")));
        }
        let mut map = vec![0; footer.map_bytes() as usize];
        read_at(&file, &mut map, blocks_bytes).map_err(io)?;
        if xxh3_64(&map) != footer.checksum {
            return Err(damaged(path, "its index or filter was changed".into()));
        }
        let (firsts, lines) = map.split_at(footer.blocks() as usize * KEY_BYTES);
        let firsts = firsts
            .as_chunks()
            .0
            .iter()
            .map(|key| Fingerprint::from_bytes(*key));
        let filter = BloomFilter::read(lines);
        Ok(SortedRun {
            path: path.to_owned(),
            file,
            entry,
            index: SortedRunIndex::new(firsts.collect()),
            filter: filter.ok_or_else(|| damaged(path, "it has no filter".into()))?,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn blocks(&self) -> usize {
        self.index.firsts.len()
    }

    pub(crate) fn get(
        &self,
        key: Fingerprint,
        cache: &mut BlockCache,
    ) -> Result<Option<PackedState>, SortedRunError> {
        if !self.filter.may_hold(key) {
            return Ok(None);
        }
        let Some(number) = self.index.block(key) else {
            return Ok(None);
        };
        let block = cache.block(self.entry.id, number, |block| self.read(number, block))?;
        Ok(find(block, self.records_in(number), key))
    }

    fn read(&self, number: usize, block: &mut RunBlock) -> Result<(), SortedRunError> {
        self.read_blocks(number, block.as_mut_slice())
    }

    /// Reads as many blocks as fit into `bytes`, starting with block `number`, and checks their
    /// checksums.
    pub(crate) fn read_blocks(
        &self,
        number: usize,
        bytes: &mut [u8],
    ) -> Result<(), SortedRunError> {
        let io = |source| SortedRunError::Io {
            path: self.path.clone(),
            source,
        };
        read_at(&self.file, bytes, (number * BLOCK_BYTES) as u64).map_err(io)?;
        for (block, number) in bytes.as_chunks::<BLOCK_BYTES>().0.iter().zip(number..) {
            if !is_sealed(block, self.entry.id, number as u64) {
                return Err(damaged(&self.path, format!("block {number} was changed")));
            }
        }
        Ok(())
    }

    pub(crate) fn records_in(&self, block: usize) -> usize {
        let before = block * BLOCK_RECORDS;
        (self.entry.records as usize)
            .saturating_sub(before)
            .min(BLOCK_RECORDS)
    }
}

/// Returns the first `count` records of a block.
pub(crate) fn records(block: &RunBlock, count: usize) -> &[[u8; RECORD_BYTES]] {
    &block.as_chunks().0[..count]
}

fn find(block: &RunBlock, count: usize, key: Fingerprint) -> Option<PackedState> {
    let records = records(block, count);
    let at = records
        .binary_search_by(|record| SieveRecord::read(record).key.cmp(&key))
        .ok()?;
    Some(SieveRecord::read(&records[at]).state)
}

fn damaged(path: &Path, what: String) -> SortedRunError {
    SortedRunError::Damaged {
        path: path.to_owned(),
        what,
    }
}

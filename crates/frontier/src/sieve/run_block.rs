//! A block of a sorted run (a file of sorted records). A block ends with a checksum, whose seed is
//! computed from the numbers of the run and the block.

use std::io;
use std::path::PathBuf;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::sieve_record::RECORD_BYTES;

/// The size of a block in bytes.
pub(crate) const BLOCK_BYTES: usize = 4096;
/// Maximum number of records in a block.
pub(crate) const BLOCK_RECORDS: usize = (BLOCK_BYTES - 8) / RECORD_BYTES;

/// The bytes of one block.
pub(crate) type RunBlock = [u8; BLOCK_BYTES];

/// The reason why a sorted run can't be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SortedRunError {
    #[error("can't read or write `{}`", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{}`: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
}

/// Reads the little-endian number in the eight bytes from offset `at`.
pub(crate) fn number_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

/// Writes the checksum of block `number` of sorted run `run` into the block's last eight bytes.
pub(crate) fn seal(block: &mut RunBlock, run: u64, number: u64) {
    let checksum = block_checksum(block, run, number);
    block[BLOCK_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
}

/// Returns whether `block` is intact and is block `number` of sorted run `run`, according to its
/// checksum.
pub(crate) fn is_sealed(block: &RunBlock, run: u64, number: u64) -> bool {
    number_at(block, BLOCK_BYTES - 8) == block_checksum(block, run, number)
}

fn block_checksum(block: &RunBlock, run: u64, number: u64) -> u64 {
    xxh3_64_with_seed(&block[..BLOCK_BYTES - 8], run << 32 ^ number)
}

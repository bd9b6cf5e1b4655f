//! A cache of recently read blocks, which serves most look-ups. Pages share many links, and most of
//! the other links lead to the page's own origin, whose URLs are in few blocks.

use super::run_block::{BLOCK_BYTES, RunBlock, SortedRunError};

/// A direct-mapped cache: each block has one possible slot, which is computed from its number and
/// the number of its sorted run. Sorted runs never change and their numbers are never reused, so a
/// cached block is never stale.
pub(crate) struct BlockCache {
    /// For each slot, the number of the sorted run and the number of the block that it holds.
    tags: Vec<Option<(u64, usize)>>,
    bytes: Vec<u8>,
}

impl BlockCache {
    /// Creates a cache of about `bytes` bytes.
    pub(crate) fn new(bytes: u64) -> BlockCache {
        let places = (bytes / BLOCK_BYTES as u64).clamp(1, 1 << 20) as usize;
        BlockCache {
            tags: vec![None; places],
            bytes: vec![0; places * BLOCK_BYTES],
        }
    }

    /// Returns block `number` of a sorted run. If the block is not cached, calls `read` to fill it.
    pub(crate) fn block(
        &mut self,
        run: u64,
        number: usize,
        read: impl FnOnce(&mut RunBlock) -> Result<(), SortedRunError>,
    ) -> Result<&RunBlock, SortedRunError> {
        let mixed = (run << 40 ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let at = ((u128::from(mixed) * self.tags.len() as u128) >> 64) as usize;
        let block = &mut self.bytes.as_chunks_mut::<BLOCK_BYTES>().0[at];
        let tag = &mut self.tags[at];
        if *tag != Some((run, number)) {
            *tag = None;
            read(block)?;
            *tag = Some((run, number));
        }
        Ok(block)
    }
}

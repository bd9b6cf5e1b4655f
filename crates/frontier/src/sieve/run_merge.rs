//! Merges several sorted runs into one.

use std::ops::Range;
use std::sync::Arc;

use super::run_block::{BLOCK_BYTES, SortedRunError};
use super::sieve_record::SieveRecord;
use super::sorted_run::{SortedRun, records};

/// The number of sorted runs of about the same size that are merged into one run of the next size.
/// A record is rewritten once each time the sieve has grown by this factor.
const RUNS_PER_MERGE: usize = 4;
/// The number of blocks that a scan reads at a time.
const READ_BLOCKS: usize = 64;

/// Returns the range of sorted runs to merge, if there are enough of about the same size. `sizes`
/// has the number of records in each run, newest first, and `unit` is the size of the smallest
/// runs.
///
/// Only runs of consecutive ages are merged, because the newest record of a key is the valid one.
/// If several groups of runs could be merged, the newest one is chosen, because it is the smallest.
pub(crate) fn runs_to_merge(sizes: &[u64], unit: u64) -> Option<Range<usize>> {
    let tier = |size: u64| (size / unit.max(1)).max(1).ilog(RUNS_PER_MERGE as u64);
    let groups = sizes.windows(RUNS_PER_MERGE).enumerate();
    groups
        .filter(|(_, group)| {
            let tiers = group.iter().map(|size| tier(*size));
            tiers.clone().max() == tiers.min()
        })
        .map(|(at, _)| at..at + RUNS_PER_MERGE)
        .next()
}

/// Iterates over the records of several sorted runs in key order. If several runs have a key, only
/// its newest record is returned.
pub(crate) struct RunMergeIterator {
    /// One scan per sorted run, newest first.
    scans: Vec<SortedRunScan>,
}

impl RunMergeIterator {
    pub(crate) fn new(runs: &[Arc<SortedRun>]) -> Result<RunMergeIterator, SortedRunError> {
        let scans = runs.iter().map(|run| SortedRunScan::new(Arc::clone(run)));
        Ok(RunMergeIterator {
            scans: scans.collect::<Result<_, _>>()?,
        })
    }

    pub(crate) fn next(&mut self) -> Result<Option<SieveRecord>, SortedRunError> {
        let mut least: Option<SieveRecord> = None;
        for scan in &self.scans {
            if let Some(head) = scan.head
                && least.is_none_or(|least| head.key < least.key)
            {
                least = Some(head);
            }
        }
        if let Some(least) = least {
            for scan in &mut self.scans {
                if scan.head.is_some_and(|head| head.key == least.key) {
                    scan.step()?;
                }
            }
        }
        Ok(least)
    }
}

struct SortedRunScan {
    run: Arc<SortedRun>,
    head: Option<SieveRecord>,
    /// The blocks read last, unparsed.
    bytes: Vec<u8>,
    /// The number of the first block in `bytes`.
    first: usize,
    /// The number of the block with the next record.
    block: usize,
    /// The index of the next record in its block.
    at: usize,
}

impl SortedRunScan {
    fn new(run: Arc<SortedRun>) -> Result<SortedRunScan, SortedRunError> {
        let mut scan = SortedRunScan {
            run,
            head: None,
            bytes: Vec::new(),
            first: 0,
            block: 0,
            at: 0,
        };
        scan.step()?;
        Ok(scan)
    }

    fn step(&mut self) -> Result<(), SortedRunError> {
        if self.at == self.run.records_in(self.block) {
            (self.block, self.at) = (self.block + 1, 0);
        }
        if self.block >= self.run.blocks() {
            self.head = None;
            return Ok(());
        }
        if self.block >= self.first + self.bytes.len() / BLOCK_BYTES {
            let count = READ_BLOCKS.min(self.run.blocks() - self.block);
            self.bytes.resize(count * BLOCK_BYTES, 0);
            self.run.read_blocks(self.block, &mut self.bytes)?;
            self.first = self.block;
        }
        let block = &self.bytes.as_chunks().0[self.block - self.first];
        let count = self.run.records_in(self.block);
        self.head = Some(SieveRecord::read(&records(block, count)[self.at]));
        self.at += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::runs_to_merge;

    #[test]
    fn four_neighbours_of_one_size_are_merged() {
        assert_eq!(runs_to_merge(&[], 10), None);
        assert_eq!(runs_to_merge(&[10, 11, 12], 10), None);
        assert_eq!(runs_to_merge(&[10, 19, 12, 39], 10), Some(0..4));
        assert_eq!(runs_to_merge(&[10, 10, 10, 40, 10], 10), None);
        assert_eq!(runs_to_merge(&[10, 45, 46, 47, 159, 640], 10), Some(1..5));
    }

    #[test]
    fn a_growing_sieve_has_few_runs_and_rewrites_little() {
        let (mut sizes, mut rewritten) = (Vec::new(), 0);
        for _ in 0..1000 {
            sizes.insert(0, 10_u64);
            while let Some(group) = runs_to_merge(&sizes, 10) {
                let merged = sizes.drain(group.clone()).sum();
                sizes.insert(group.start, merged);
                rewritten += merged;
            }
            assert!(sizes.len() <= 15, "{sizes:?}");
        }
        assert!(rewritten < 4 * 10_000, "{rewritten}");
    }
}

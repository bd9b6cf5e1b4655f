//! Tests of the sieve without a store: the list of sorted runs is in memory, and the disk may fail.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tempfile::TempDir;

use super::run_merge::runs_to_merge;
use super::{
    BlockCache, RunDisk, RunListStore, RunManifest, Sieve, SieveRecord, SieveSettings,
    SortedRunError, SystemDisk,
};
use crate::conformance::FaultyDisk;
use crate::error::FrontierError;
use crate::fingerprint::Fingerprint;

/// Returns a key that looks like a fingerprint, with fifty keys per origin.
pub(crate) fn key(n: u64) -> Fingerprint {
    let high = (n / 50).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 << 32;
    let low = (n + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let low = (low ^ (low >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let middle = (low >> 7).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
    Fingerprint::from_bytes((u128::from(high | middle) << 64 | u128::from(low)).to_be_bytes())
}

fn record(n: u64, value: u8) -> SieveRecord {
    SieveRecord {
        key: key(n),
        state: [value; 12],
    }
}

/// An in-memory substitute for the store: holds the list of runs, and the records of each commit.
#[derive(Default)]
struct StoredRows {
    manifest: RunManifest,
    fresh: BTreeMap<u64, Vec<SieveRecord>>,
}

#[derive(Default)]
struct MemoryRunList(Mutex<StoredRows>);

impl RunListStore for MemoryRunList {
    fn keep(&self, manifest: &RunManifest) -> Result<(), FrontierError> {
        self.0.lock().unwrap().manifest = manifest.clone();
        Ok(())
    }

    fn forget(&self, commits: RangeInclusive<u64>) -> Result<(), FrontierError> {
        self.0
            .lock()
            .unwrap()
            .fresh
            .retain(|commit, _| !commits.contains(commit));
        Ok(())
    }

    fn run_failed(&self, why: SortedRunError) -> FrontierError {
        FrontierError::Store {
            dir: PathBuf::new(),
            source: Box::new(why),
        }
    }
}

struct Bench {
    dir: TempDir,
    run_list: Arc<MemoryRunList>,
    commit: u64,
}

impl Bench {
    fn new() -> Bench {
        Bench {
            dir: TempDir::new().unwrap(),
            run_list: Arc::default(),
            commit: 0,
        }
    }

    fn open(&self, disk: Arc<dyn RunDisk>, gather: usize) -> Result<Sieve, SortedRunError> {
        let rows = self.run_list.0.lock().unwrap();
        let fresh = rows.fresh.range(rows.manifest.commit + 1..);
        let fresh: Vec<_> = fresh.flat_map(|(_, records)| records.clone()).collect();
        let (dir, run_list) = (self.dir.path().to_owned(), Arc::clone(&self.run_list) as _);
        let manifest = rows.manifest.clone();
        drop(rows);
        Sieve::open(
            SieveSettings {
                dir,
                disk,
                run_list,
                gather,
            },
            manifest,
            fresh.into_iter(),
        )
    }

    fn commit(&mut self, sieve: &Sieve, records: &[SieveRecord]) -> Result<(), FrontierError> {
        sieve.make_room()?;
        self.commit += 1;
        let commit = self.commit;
        sieve.commit(commit, records, || {
            self.run_list
                .0
                .lock()
                .unwrap()
                .fresh
                .insert(commit, records.to_vec());
            Ok::<(), FrontierError>(())
        })
    }

    /// Creates a sieve with one sorted run, and closes it.
    fn one_run(records: u64) -> (Bench, PathBuf) {
        let mut bench = Bench::new();
        let sieve = bench.open(Arc::new(SystemDisk), records as usize).unwrap();
        let all: Vec<_> = (0..records).map(|n| record(n, n as u8)).collect();
        bench.commit(&sieve, &all).unwrap();
        while sieve.view().full.is_some() {
            std::thread::yield_now();
        }
        drop(sieve);
        let path = bench.dir.path().join("00000001.run");
        assert!(path.exists());
        (bench, path)
    }

    fn get(&self, n: u64) -> Result<Option<u8>, SortedRunError> {
        let sieve = self.open(Arc::new(SystemDisk), 1000)?;
        let state = sieve.view().get(key(n), &mut BlockCache::new(0))?;
        Ok(state.map(|state| state[0]))
    }
}

#[test]
fn a_run_returns_the_records_written_and_no_others() {
    let (bench, _) = Bench::one_run(1000);
    let sieve = bench.open(Arc::new(SystemDisk), 1000).unwrap();
    let mut cache = BlockCache::new(1 << 16);
    for n in 0..3000 {
        let expected = (n < 1000).then_some([n as u8; 12]);
        assert_eq!(sieve.view().get(key(n), &mut cache).unwrap(), expected);
    }
}

#[test]
fn a_sieve_allocates_memory_for_its_records_only() {
    let mut bench = Bench::new();
    let sieve = bench.open(Arc::new(SystemDisk), 1_800_000).unwrap();
    let all: Vec<_> = (0..1000).map(|n| record(n, n as u8)).collect();
    bench.commit(&sieve, &all).unwrap();
    assert!(sieve.view().fresh.capacity() < 4 * all.len());
}

#[test]
fn a_truncated_run_is_named() {
    let (bench, path) = Bench::one_run(1000);
    let whole = fs::read(&path).unwrap();
    for length in [0, 1, 63, 64, 4096, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        let message = bench.get(1).unwrap_err().to_string();
        assert!(message.contains("00000001.run"), "{message}");
    }
    fs::remove_file(&path).unwrap();
    assert!(
        bench
            .get(1)
            .unwrap_err()
            .to_string()
            .ends_with("the file is missing")
    );
}

#[test]
fn every_flipped_byte_of_a_run_is_detected() {
    let (bench, path) = Bench::one_run(300);
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(29) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&path, bytes).unwrap();
        let read = || -> Result<(), SortedRunError> {
            let sieve = bench.open(Arc::new(SystemDisk), 1000)?;
            let mut cache = BlockCache::new(0);
            for n in (0..300).step_by(7) {
                let state = sieve.view().get(key(n), &mut cache)?;
                assert_eq!(state, Some([n as u8; 12]), "byte {at}");
            }
            Ok(())
        };
        if let Err(why) = read() {
            assert!(
                matches!(why, SortedRunError::Damaged { .. }),
                "byte {at}: {why}"
            );
        } else {
            panic!("byte {at} was not missed");
        }
    }
}

#[test]
fn another_run_in_its_place_is_named() {
    let (bench, path) = Bench::one_run(1000);
    let (_other, theirs) = Bench::one_run(999);
    fs::copy(theirs, path).unwrap();
    assert!(matches!(bench.get(1), Err(SortedRunError::Damaged { .. })));
}

#[test]
fn unlisted_runs_are_removed_and_foreign_files_stay() {
    let (bench, path) = Bench::one_run(1000);
    let [unlisted, foreign] = ["00000007.run", "notes.txt"].map(|name| path.with_file_name(name));
    fs::write(&unlisted, "half a run").unwrap();
    fs::write(&foreign, "").unwrap();
    assert_eq!(bench.get(7).unwrap(), Some(7));
    assert!(path.exists() && foreign.exists() && !unlisted.exists());
}

#[test]
fn a_full_disk_fails_every_later_transaction() {
    let mut bench = Bench::new();
    let sieve = bench
        .open(Arc::new(FaultyDisk::failing_after(3)), 10)
        .unwrap();
    let mut failures = Vec::new();
    for n in 0..10_000 {
        if let Err(why) = bench.commit(&sieve, &[record(n, 1)]) {
            failures.push(why);
        }
    }
    assert!(failures.len() > 9000);
    for why in [&failures[0], &failures[9000]] {
        let FrontierError::Store { source, .. } = why else {
            panic!("{why}");
        };
        let source = source
            .source()
            .and_then(|why| why.downcast_ref::<io::Error>());
        assert!(source.is_some());
    }
}

#[test]
fn tables_in_memory_are_bounded() {
    let mut bench = Bench::new();
    let sieve = bench.open(Arc::new(SystemDisk), 10).unwrap();
    for n in 0..2000 {
        bench
            .commit(
                &sieve,
                &[record(3 * n, 1), record(3 * n + 1, 1), record(3 * n + 2, 1)],
            )
            .unwrap();
        let view = sieve.view();
        assert!(view.fresh.len() <= 2 * 10 + 6, "{}", view.fresh.len());
        let full = view.full.as_ref().map_or(0, |full| full.table.len());
        assert!(full <= 2 * 10 + 6, "{full}");
    }
}

#[test]
fn runs_are_merged_until_no_neighbours_have_one_size() {
    let mut bench = Bench::new();
    let sieve = bench.open(Arc::new(SystemDisk), 10).unwrap();
    for n in 0..400 {
        bench.commit(&sieve, &[record(n, 1)]).unwrap();
    }
    let begin = Instant::now();
    loop {
        let view = sieve.view();
        let sizes: Vec<u64> = view.runs.iter().map(|run| run.entry.records).collect();
        if view.full.is_none() && runs_to_merge(&sizes, 10).is_none() {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{sizes:?}");
        drop(view);
        std::thread::yield_now();
    }
}

/// One run of a process that uses the sieve: its commits, and the number of disk operations after
/// which the disk fails.
type Life = (Vec<Vec<(u64, u8)>>, u64);

fn life() -> impl Strategy<Value = Life> {
    let commit = prop::collection::vec((0_u64..60, any::<u8>()), 0..12);
    (prop::collection::vec(commit, 0..30), 0_u64..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn committed_records_survive_each_crash(lives in prop::collection::vec(life(), 1..8)) {
        let mut bench = Bench::new();
        let mut model = BTreeMap::new();
        for (commits, operations) in lives {
            let disk = FaultyDisk::failing_after(operations);
            // Opening may fail on the faulty disk, because opening removes the files of unfinished
            // runs.
            if let Ok(sieve) = bench.open(Arc::new(disk.clone()), 5) {
                for commit in commits {
                    let records: Vec<_> = commit.iter().map(|&(n, value)| record(n, value)).collect();
                    if bench.commit(&sieve, &records).is_err() {
                        break;
                    }
                    model.extend(commit);
                    let view = sieve.view();
                    for n in 0..60 {
                        let state = view.get(key(n), &mut BlockCache::new(0)).unwrap();
                        prop_assert_eq!(state.map(|state| state[0]), model.get(&n).copied());
                    }
                }
            }
            disk.cut_power();
            let sieve = bench.open(Arc::new(SystemDisk), 1000).unwrap();
            for n in 0..60 {
                let state = sieve.view().get(key(n), &mut BlockCache::new(0)).unwrap();
                prop_assert_eq!(state.map(|state| state[0]), model.get(&n).copied());
            }
        }
    }
}

//! The body of the fuzz target for the store's records. Checks properties that must hold for any
//! bytes on disk.

#![allow(clippy::unwrap_used, reason = "a check that fails should panic")]

#[cfg(test)]
#[path = "../../../fuzz/src/run_without_fuzzer.rs"]
mod run_without_fuzzer;

use std::fmt::Debug;

use crawl_weburl::canonicalize;

use super::due_visit_rows::{DueVisitRow, due_key, due_value};
use super::queue_block::{MAX_BLOCK_ENTRIES, QueueBlock, row_of};
use super::record_codec::{
    FailureOrExclusionNote, RANK_BYTES, SieveUrlState, StoreCounters, decode_origin, encode_origin,
};
use super::record_primitives::{ByteReader, put_exclusion, put_number, put_text};
use crate::admit_rule::{DeferredUrl, QueueRank};
use crate::last_visit::StoredVisit;
use crate::sieve::{RunManifest, STATE_BYTES};

/// Decodes a record, and checks that it stays the same when it is encoded and decoded again. The
/// first byte of `data` chooses the kind of record, and the other bytes are decoded. A record
/// without URLs must also have only one encoding. Records with URLs may have several, because an
/// earlier version of the crawler may have spelled the URLs differently.
pub fn store_records(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else {
        return;
    };
    match kind % 10 {
        0 => exact(
            bytes,
            FailureOrExclusionNote::decode,
            FailureOrExclusionNote::encode,
        ),
        1 => exact(bytes, StoreCounters::decode, StoreCounters::encode),
        2 => exact(bytes, RunManifest::decode, RunManifest::encode),
        3 => stable(bytes, DeferredUrl::decode, DeferredUrl::encode),
        4 => stable(bytes, StoredVisit::decode, StoredVisit::encode),
        5 => origin(bytes),
        6 => exact(bytes, state, |state| state.packed().to_vec()),
        7 => due(bytes),
        8 => primitives(bytes),
        _ => block(bytes),
    }
}

fn exact<T: Debug>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Option<T>,
    encode: impl Fn(&T) -> Vec<u8>,
) {
    if let Some(record) = decode(bytes) {
        assert_eq!(encode(&record), bytes, "{record:?}");
    }
}

fn stable<T: Debug + PartialEq>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Option<T>,
    encode: impl Fn(&T) -> Vec<u8>,
) {
    if let Some(record) = decode(bytes) {
        let written = encode(&record);
        assert_eq!(decode(&written), Some(record));
        exact(&written, decode, encode);
    }
}

fn state(bytes: &[u8]) -> Option<SieveUrlState> {
    let packed: &[u8; STATE_BYTES] = bytes.try_into().ok()?;
    SieveUrlState::from_packed(*packed)
}

fn origin(bytes: &[u8]) {
    if let Some((id, queued, origin)) = decode_origin(bytes) {
        assert_eq!(encode_origin(id, queued, origin), bytes);
    }
}

fn due(bytes: &[u8]) {
    let (key, value) = bytes.split_at(bytes.len().min(12));
    if let Some(row) = DueVisitRow::parse(key, value) {
        assert!(!row.urls.is_empty());
        let commit = u64::from_be_bytes(key[4..].try_into().unwrap());
        assert_eq!(due_key(row.due, commit), key);
        assert_eq!(due_value(&row.urls), value);
    }
}

fn primitives(bytes: &[u8]) {
    let mut from = ByteReader(bytes);
    if let Some(number) = from.number() {
        is_written(bytes, &from, |out| put_number(out, number));
    }
    let mut from = ByteReader(bytes);
    if let Some(text) = from.text() {
        is_written(bytes, &from, |out| put_text(out, text));
    }
    let mut from = ByteReader(bytes);
    if let Some(exclusion) = from.exclusion() {
        is_written(bytes, &from, |out| put_exclusion(out, &exclusion));
    }
}

/// Checks that `put` appends exactly the bytes that were read: `bytes` without the unread `rest`.
fn is_written(bytes: &[u8], rest: &ByteReader<'_>, put: impl FnOnce(&mut Vec<u8>)) {
    let mut out = Vec::new();
    put(&mut out);
    assert_eq!(out, bytes[..bytes.len() - rest.0.len()]);
}

/// Decodes the rank of a row and then the queue block in the row. A new block with the same entries
/// must have the same contents.
fn block(bytes: &[u8]) {
    let (rank, bytes) = bytes.split_at(bytes.len().min(RANK_BYTES));
    let (Some(rank), Some(block)) = (QueueRank::from_bytes(rank), QueueBlock::parse(bytes)) else {
        return;
    };
    assert_eq!(block.encode(), bytes);
    let root = canonicalize(None, "http://a.example/").unwrap();
    let row = row_of(rank);
    let mut copy = QueueBlock::default();
    let mut entries = Vec::new();
    for entry in block.entries(&root, row) {
        assert!(entry.rank >= row);
        if let Some(queued) = entry.read() {
            assert_eq!(block.entry(&root, entry.rank).as_ref(), Some(&queued));
            copy.put(&queued);
            entries.push(queued);
        }
    }
    assert!(entries.len() <= MAX_BLOCK_ENTRIES);
    let written = copy.encode();
    let mut copy = QueueBlock::parse(&written).unwrap();
    assert_eq!(copy.encode(), written);
    let read: Option<Vec<_>> = copy.entries(&root, row).map(|entry| entry.read()).collect();
    assert_eq!(read.as_ref(), Some(&entries));
    for queued in entries {
        assert_eq!(queued.url.origin(), root.origin());
        assert!(copy.remove(queued.place.rank()));
    }
    assert!(copy.is_empty());
}

#[cfg(test)]
mod tests {
    use super::run_without_fuzzer::run_without_fuzzer;

    #[test]
    fn any_record_is_decoded() {
        run_without_fuzzer("store_records", 4_000, super::store_records);
    }
}

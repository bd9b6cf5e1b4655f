//! Queue blocks: queue entries that share one row of the table `queue`. The URLs of a block have
//! the same origin, priority and depth, and were admitted in one transaction, usually as links of
//! one page. The page's URL is written only once, and a page costs one row instead of one row per
//! link.
//!
//! An entry's sequence number consists of its block's number and its place in the block, so the row
//! can be found from the entry's rank alone. A removed entry leaves a gap, and the last removal
//! deletes the row.

use std::borrow::Cow;
use std::cell::RefCell;

use crawl_weburl::{CanonicalUrl, canonicalize};

use super::record_primitives::{
    ByteReader, before_path, near_url, put_number, put_place, put_text,
};
use crate::admit_rule::{QueueRank, QueuedUrl};

/// The number of low bits of a sequence number that hold the entry's place in its block.
const PLACE_BITS: u32 = 6;
/// Maximum number of entries in a queue block.
pub(super) const MAX_BLOCK_ENTRIES: usize = 1 << PLACE_BITS;
/// A block of at least this many bytes takes no more entries.
const FULL_BYTES: usize = 4096;

/// The exclusive upper bound of block numbers. A block number and a place fill the 40 bits of a
/// sequence number.
pub(super) const MAX_BLOCK: u64 = 1 << (40 - PLACE_BITS);

/// Returns the rank in the key of the row that contains the entry at `rank`.
pub(super) fn row_of(rank: QueueRank) -> QueueRank {
    let seq = rank.seq >> PLACE_BITS << PLACE_BITS;
    QueueRank { seq, ..rank }
}

/// Returns the sequence number of the entry at `place` in block number `block`.
pub(super) fn seq_of(block: u64, place: usize) -> u64 {
    block << PLACE_BITS | place as u64
}

fn place_of(seq: u64) -> u8 {
    (seq & (MAX_BLOCK_ENTRIES as u64 - 1)) as u8
}

/// A parsed queue block. The URLs in it are parsed on demand.
#[derive(Debug, Default)]
pub(super) struct QueueBlock<'a> {
    /// The pages that the entries were found on. If such a page is at the queue's own origin, only
    /// its path and query are stored.
    vias: Vec<Cow<'a, str>>,
    /// Each entry's place and its encoded bytes, sorted by place.
    entries: Vec<(u8, Cow<'a, [u8]>)>,
    bytes: usize,
    /// The `via` that was parsed last, and its number. Neighbouring entries often have the same
    /// `via`, so it is parsed only once.
    last_via: RefCell<Option<(u8, CanonicalUrl)>>,
}

impl<'a> QueueBlock<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Option<QueueBlock<'a>> {
        let mut from = ByteReader(bytes);
        let mut block = QueueBlock {
            bytes: bytes.len(),
            ..QueueBlock::default()
        };
        for _ in 0..from.byte()? {
            block.vias.push(Cow::Borrowed(from.text()?));
        }
        let mut next_place = 0;
        while !from.0.is_empty() {
            let place = from.byte()?;
            let length = from.number()?.try_into().ok()?;
            if place < next_place || usize::from(place) >= MAX_BLOCK_ENTRIES {
                return None;
            }
            next_place = place + 1;
            block
                .entries
                .push((place, Cow::Borrowed(from.bytes(length)?)));
        }
        Some(block)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes + 16);
        out.push(self.vias.len() as u8);
        for via in &self.vias {
            put_text(&mut out, via);
        }
        for (place, entry) in &self.entries {
            out.push(*place);
            put_number(&mut out, entry.len() as u64);
            out.extend_from_slice(entry);
        }
        out
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= MAX_BLOCK_ENTRIES || self.bytes >= FULL_BYTES
    }

    /// Encodes an entry and inserts it at its place. Replaces the entry at that place, if there is
    /// one.
    pub(super) fn put(&mut self, queued: &QueuedUrl) {
        let via = self.via_number(&queued.url, queued.via.as_ref());
        let mut entry = Vec::with_capacity(64);
        entry.push(via);
        put_place(&mut entry, &queued.place, 0);
        put_number(&mut entry, queued.attempt.into());
        entry.extend_from_slice(queued.url.path_and_query().as_bytes());
        self.bytes += entry.len() + 3;
        let place = place_of(queued.place.seq);
        match self.entries.binary_search_by_key(&place, |entry| entry.0) {
            Ok(at) => self.entries[at].1 = Cow::Owned(entry),
            Err(at) => self.entries.insert(at, (place, Cow::Owned(entry))),
        }
    }

    pub(super) fn remove(&mut self, rank: QueueRank) -> bool {
        let place = place_of(rank.seq);
        let at = self.entries.binary_search_by_key(&place, |entry| entry.0);
        at.map(|at| self.entries.remove(at)).is_ok()
    }

    /// Returns the 1-based number of `via` (the page that `url` was found on) in this block, or 0
    /// if `via` is `None`. Adds `via` to the block if necessary.
    fn via_number(&mut self, url: &CanonicalUrl, via: Option<&CanonicalUrl>) -> u8 {
        let Some(via) = via else {
            return 0;
        };
        let text = match before_path(via) == before_path(url) {
            true => via.path_and_query(),
            false => via.as_str(),
        };
        if let Some(at) = self.vias.iter().position(|stored| *stored == text) {
            return at as u8 + 1;
        }
        if self.vias.len() > MAX_BLOCK_ENTRIES {
            self.forget_unused_vias();
        }
        self.bytes += text.len() + 2;
        self.vias.push(Cow::Owned(text.to_owned()));
        self.vias.len() as u8
    }

    /// Drops the vias (pages that URLs were found on) that no entry uses any more, because the
    /// entries that used them were removed. Renumbers the remaining vias in the entries.
    fn forget_unused_vias(&mut self) {
        *self.last_via.get_mut() = None;
        let mut used = Vec::with_capacity(MAX_BLOCK_ENTRIES);
        for (_, entry) in &mut self.entries {
            let Some(number) = entry.to_mut().first_mut().filter(|number| **number > 0) else {
                continue;
            };
            let index = used.iter().position(|old| *old == *number);
            let at = index.unwrap_or_else(|| {
                used.push(*number);
                used.len() - 1
            });
            *number = at as u8 + 1;
        }
        let vias = used
            .iter()
            .filter_map(|old| self.vias.get(usize::from(*old) - 1));
        self.vias = vias.cloned().collect();
    }

    /// Returns all entries in order, unparsed. `root` is any URL of the queue's origin. The key of
    /// the block's row contains the rank `row`.
    pub(super) fn entries<'b>(
        &'b self,
        root: &'b CanonicalUrl,
        row: QueueRank,
    ) -> impl Iterator<Item = QueueBlockEntry<'b>> {
        self.entries
            .iter()
            .map(move |(place, bytes)| QueueBlockEntry {
                rank: QueueRank {
                    seq: row.seq | u64::from(*place),
                    ..row
                },
                root,
                block: self,
                bytes,
            })
    }

    /// Returns the entry at `rank`, or `None` if it is missing or can't be read.
    pub(super) fn entry(&self, root: &CanonicalUrl, rank: QueueRank) -> Option<QueuedUrl> {
        let mut entries = self.entries(root, row_of(rank));
        entries.find(|entry| entry.rank == rank)?.read()
    }
}

/// A queue entry in a block, not yet parsed.
pub(super) struct QueueBlockEntry<'b> {
    pub(super) rank: QueueRank,
    root: &'b CanonicalUrl,
    block: &'b QueueBlock<'b>,
    bytes: &'b [u8],
}

impl QueueBlockEntry<'_> {
    /// Parses the entry. Returns `None` if its bytes contradict the rank or the origin.
    pub(super) fn read(&self) -> Option<QueuedUrl> {
        let mut from = ByteReader(self.bytes);
        let via = match from.byte()? {
            0 => None,
            number => Some(self.via(number)?),
        };
        let (_, mut place) = from.place(0)?;
        place.seq = self.rank.seq;
        let attempt = from.number32()?;
        let url = near_url(self.root, std::str::from_utf8(from.0).ok()?)?;
        let queued = QueuedUrl {
            place,
            attempt,
            url,
            via,
        };
        let is_consistent = place.rank() == self.rank && queued.url.origin() == self.root.origin();
        is_consistent.then_some(queued)
    }

    fn via(&self, number: u8) -> Option<CanonicalUrl> {
        let mut last = self.block.last_via.borrow_mut();
        if let Some((last_number, via)) = &*last
            && *last_number == number
        {
            return Some(via.clone());
        }
        let text = self.block.vias.get(usize::from(number) - 1)?;
        let via = match text.starts_with('/') {
            true => near_url(self.root, text),
            false => canonicalize(None, text).ok(),
        }?;
        *last = Some((number, via.clone()));
        Some(via)
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;
    use proptest::prelude::*;

    use super::{FULL_BYTES, MAX_BLOCK_ENTRIES, QueueBlock, row_of, seq_of};
    use crate::admit_rule::{PendingUrlFields, QueueRank, QueuedUrl};
    use crate::url_to_admit::UrlToAdmit;

    fn queued(path: &str, via: Option<&str>, place: usize, retried: bool) -> QueuedUrl {
        let url = canonicalize(None, &format!("http://a.example{path}")).unwrap();
        let mut admission = UrlToAdmit::link(url.clone(), 3, url);
        admission.via = via.map(|via| canonicalize(None, via).unwrap());
        let mut queued = QueuedUrl::new(admission, seq_of(77, place));
        queued.place.retried = retried;
        queued
    }

    fn row() -> QueueRank {
        row_of(queued("/", None, 5, false).place.rank())
    }

    fn some_queued() -> impl Strategy<Value = QueuedUrl> {
        let vias = [
            "http://a.example/v",
            "http://a.example/w?x",
            "https://b.example/v",
        ];
        let via = prop::option::of(prop::sample::select(vias.to_vec()));
        ("/[a-z]{0,6}(\\?[a-z]{0,2})?", via, 0..MAX_BLOCK_ENTRIES)
            .prop_map(|(path, via, place)| queued(&path, via, place, false))
    }

    proptest! {
        #[test]
        fn entries_are_returned_in_order(
            puts in prop::collection::vec(some_queued(), 0..20),
            gone in prop::collection::vec(0..MAX_BLOCK_ENTRIES, 0..20),
        ) {
            let mut expected = std::collections::BTreeMap::new();
            let mut bytes = QueueBlock::default().encode();
            for queued in puts {
                let mut block = QueueBlock::parse(&bytes).unwrap();
                block.put(&queued);
                bytes = block.encode();
                expected.insert(queued.place.rank(), queued);
            }
            let mut block = QueueBlock::parse(&bytes).unwrap();
            for place in gone {
                let rank = QueueRank { seq: seq_of(77, place), ..row() };
                prop_assert_eq!(block.remove(rank), expected.remove(&rank).is_some());
            }
            let root = queued("/", None, 0, false).url;
            let bytes = block.encode();
            let block = QueueBlock::parse(&bytes).unwrap();
            prop_assert_eq!(block.is_empty(), expected.is_empty());
            let entries = block.entries(&root, row());
            let entries: Vec<_> = entries.map(|entry| entry.read().unwrap()).collect();
            prop_assert_eq!(entries, expected.into_values().collect::<Vec<_>>());
        }

        #[test]
        fn foreign_bytes_never_panic(bytes: Vec<u8>) {
            let root = queued("/", None, 0, false).url;
            if let Some(block) = QueueBlock::parse(&bytes) {
                for entry in block.entries(&root, row()) {
                    let _ = entry.read();
                }
                prop_assert_eq!(block.encode(), bytes);
            }
        }
    }

    #[test]
    fn a_path_that_looks_like_a_host_stays_a_path() {
        let paths = ["//b.example/x", "/a//b.example", "//"];
        let all: Vec<_> = (0..3)
            .map(|n| {
                let via = format!("http://a.example{}", paths[(n + 1) % 3]);
                queued(paths[n], Some(&via), n, false)
            })
            .collect();
        let mut block = QueueBlock::default();
        all.iter().for_each(|queued| block.put(queued));
        let root = queued("/", None, 0, false).url;
        let read = block.entries(&root, row()).map(|entry| entry.read());
        assert_eq!(read.collect::<Option<Vec<_>>>(), Some(all));
    }

    #[test]
    fn vias_of_removed_entries_are_forgotten() {
        let mut block = QueueBlock::default();
        let via = |n: usize| format!("http://a.example/via/{n}");
        for n in 0..1000 {
            block.put(&queued("/a", Some(&via(n)), n % 60, false));
        }
        let root = queued("/", None, 0, false).url;
        for (at, entry) in block.entries(&root, row()).enumerate() {
            let queued = entry.read().unwrap();
            let newest = (0..1000).rev().find(|n| n % 60 == at).unwrap();
            assert_eq!(queued.via.as_ref().unwrap().as_str(), via(newest));
        }
        assert!(block.vias.len() <= 2 * MAX_BLOCK_ENTRIES);
    }

    #[test]
    fn an_entry_that_belongs_elsewhere_is_none() {
        let mut block = QueueBlock::default();
        block.put(&queued("/a", None, 5, true));
        let root = queued("/", None, 0, false).url;
        assert!(
            block
                .entries(&root, row())
                .all(|entry| entry.read().is_none())
        );
        let other_origin = canonicalize(None, "http://b.example/").unwrap();
        let retried = PendingUrlFields {
            retried: true,
            ..queued("/a", None, 5, false).place
        };
        assert!(block.entry(&root, retried.rank()).is_some());
        assert!(
            block.entry(&other_origin, retried.rank()).is_some(),
            "the origin is the key's"
        );
    }

    #[test]
    fn links_of_one_page_share_their_via() {
        let mut block = QueueBlock::default();
        for place in 0..20 {
            let path = format!("/articles/{place:05}/title");
            block.put(&queued(
                &path,
                Some("http://a.example/articles/index"),
                place,
                false,
            ));
        }
        assert!(block.encode().len() < 20 * 35, "{}", block.encode().len());
        assert!(!block.is_full());
    }

    #[test]
    fn places_that_no_writer_writes_are_damage() {
        for (places, is_read) in [
            (&[0, 1, 63][..], true),
            (&[5, 5], false),
            (&[5, 4], false),
            (&[64], false),
        ] {
            let mut bytes = vec![0];
            for place in places {
                bytes.extend([*place, 0]);
            }
            assert_eq!(QueueBlock::parse(&bytes).is_some(), is_read, "{places:?}");
        }
    }

    #[test]
    fn a_block_is_full_by_entries_and_by_bytes() {
        let mut block = QueueBlock::default();
        for place in 0..MAX_BLOCK_ENTRIES {
            assert!(!block.is_full(), "{place}");
            block.put(&queued("/", None, place, false));
        }
        assert!(block.is_full());
        // An entry without a `via` takes up nine bytes besides its path.
        for (path, via, is_full) in [
            (FULL_BYTES - 9, None, true),
            (FULL_BYTES - 10, None, false),
            (FULL_BYTES - 16, Some("http://a.example/via"), false),
            (FULL_BYTES - 15, Some("http://a.example/via"), true),
        ] {
            let mut block = QueueBlock::default();
            let path = format!("/{}", "a".repeat(path - 1));
            block.put(&queued(&path, via, 0, false));
            assert_eq!(block.is_full(), is_full, "{} {via:?}", block.bytes);
        }
    }
}

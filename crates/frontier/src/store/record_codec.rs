//! Encodes and decodes the store's records. Each decoder reads all bytes, and returns `None` for
//! bytes that no encoder produces.

use crawl_weburl::canonicalize;

use super::queue_block::MAX_BLOCK;
use super::record_primitives::{
    ByteReader, VIA_FLAGS, put_exclusion, put_number, put_text, put_via, via_flags,
};
use crate::admit_rule::{CurrentState, DeferredUrl, PendingUrlFields, QueueRank};
use crate::lease_table::CommittedUrlCounts;
use crate::not_fetched_reason::NotFetchedReason;
use crate::sieve::{PackedState, RunManifest, RunManifestEntry, STATE_BYTES};
use crate::url_to_admit::UrlKind;

/// The state of a URL in the sieve (the set of known URLs). A failed or excluded URL has the number
/// of a note in the `notes` table, which has the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SieveUrlState {
    Pending(PendingUrlFields),
    Deferred { depth: u32, redirects: u8 },
    Fetched { depth: u32, status: u16 },
    Failed { depth: u32, note: u64 },
    Excluded { depth: u32, note: u64 },
}

/// A row of the `notes` table: why URLs failed or were excluded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FailureOrExclusionNote {
    Why(String),
    Exclusion(NotFetchedReason),
}

/// The store's counters, which continue after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StoreCounters {
    /// The last number that was assigned to a commit.
    pub(super) commit: u64,
    /// The last number that was assigned to a queue block.
    pub(super) block: u64,
    /// The last number that was assigned to an origin.
    pub(super) origin: u64,
    /// The last number that was assigned to a note.
    pub(super) note: u64,
    pub(super) totals: CommittedUrlCounts,
}

impl CommittedUrlCounts {
    pub(super) fn increment(&mut self, state: &SieveUrlState) {
        *self.of(state) += 1;
    }

    pub(super) fn decrement(&mut self, state: &SieveUrlState) {
        let count = self.of(state);
        *count = count.saturating_sub(1);
    }

    fn of(&mut self, state: &SieveUrlState) -> &mut u64 {
        match state {
            SieveUrlState::Pending(_) => &mut self.pending,
            SieveUrlState::Deferred { .. } => &mut self.deferred,
            SieveUrlState::Fetched { .. } => &mut self.fetched,
            SieveUrlState::Failed { .. } => &mut self.failed,
            SieveUrlState::Excluded { .. } => &mut self.excluded,
        }
    }
}

/// The number of bytes of an encoded rank, including 5 bytes (40 bits) for its sequence number.
pub(super) const RANK_BYTES: usize = 11;

/// A stored number that reaches this limit is reported as damage, because no crawl reaches it. Sums
/// and increments of numbers below the limit can't overflow.
const IMPLAUSIBLE: u64 = 1 << 56;
/// The exclusive upper bound of note numbers: a packed state has 40 bits for them.
const MAX_NOTE: u64 = 1 << 40;
/// The exclusive upper bound of origin numbers: a key of the table `queue` has 40 bits for them.
const MAX_ORIGIN: u64 = 1 << 40;

const RETRIED: u8 = 8;
const SEED: u8 = 16;
const SITEMAP: u8 = 32;
const RESOURCE: u8 = 64;

impl SieveUrlState {
    /// Returns the URL's state in the form that the admission rule takes. The caller has to check
    /// whether a pending URL is leased.
    pub(super) fn current(self) -> CurrentState {
        match self {
            SieveUrlState::Pending(place) => CurrentState::Pending(place),
            SieveUrlState::Deferred { depth, redirects } => {
                CurrentState::Deferred { depth, redirects }
            }
            SieveUrlState::Fetched { .. }
            | SieveUrlState::Failed { .. }
            | SieveUrlState::Excluded { .. } => CurrentState::Settled,
        }
    }

    /// Packs the state into twelve bytes: one with kind and flags, two that depend on the kind,
    /// four with the depth, and five with a number that depends on the kind.
    pub(super) fn packed(self) -> PackedState {
        let (head, depth, number) = match self {
            SieveUrlState::Pending(place) => {
                let flags = [
                    (RETRIED, place.retried),
                    (SEED, place.is_seed),
                    (SITEMAP, place.kind == UrlKind::Sitemap),
                    (RESOURCE, place.kind == UrlKind::Resource),
                ];
                let flags = flags.iter().filter(|(_, set)| *set).map(|(flag, _)| flag);
                let kind = 1 | flags.sum::<u8>();
                (
                    [kind, place.priority, place.redirects],
                    place.depth,
                    place.seq,
                )
            }
            SieveUrlState::Deferred { depth, redirects } => ([2, 0, redirects], depth, 0),
            SieveUrlState::Fetched { depth, status } => {
                let [high, low] = status.to_be_bytes();
                ([3, high, low], depth, 0)
            }
            SieveUrlState::Failed { depth, note } => ([4, 0, 0], depth, note),
            SieveUrlState::Excluded { depth, note } => ([5, 0, 0], depth, note),
        };
        let mut packed = [0; STATE_BYTES];
        packed[..3].copy_from_slice(&head);
        packed[3..7].copy_from_slice(&depth.to_be_bytes());
        packed[7..].copy_from_slice(&number.to_be_bytes()[3..]);
        packed
    }

    pub(super) fn from_packed(packed: PackedState) -> Option<SieveUrlState> {
        let [kind, a, b, d0, d1, d2, d3, number @ ..] = packed;
        let depth = u32::from_be_bytes([d0, d1, d2, d3]);
        let number = number
            .iter()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let state = match kind & 7 {
            1 => SieveUrlState::Pending(PendingUrlFields {
                retried: kind & RETRIED != 0,
                priority: a,
                depth,
                redirects: b,
                is_seed: kind & SEED != 0,
                kind: match (kind & SITEMAP != 0, kind & RESOURCE != 0) {
                    (true, _) => UrlKind::Sitemap,
                    (_, true) => UrlKind::Resource,
                    _ => UrlKind::Page,
                },
                seq: number,
            }),
            2 => SieveUrlState::Deferred {
                depth,
                redirects: b,
            },
            3 => SieveUrlState::Fetched {
                depth,
                status: u16::from_be_bytes([a, b]),
            },
            4 => SieveUrlState::Failed {
                depth,
                note: number,
            },
            5 => SieveUrlState::Excluded {
                depth,
                note: number,
            },
            _ => return None,
        };
        (state.packed() == packed).then_some(state)
    }
}

impl FailureOrExclusionNote {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        match self {
            FailureOrExclusionNote::Why(why) => {
                out.push(1);
                put_text(&mut out, why);
            }
            FailureOrExclusionNote::Exclusion(exclusion) => {
                out.push(2);
                put_exclusion(&mut out, exclusion);
            }
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<FailureOrExclusionNote> {
        let mut from = ByteReader(bytes);
        let note = match from.byte()? {
            1 => FailureOrExclusionNote::Why(from.text()?.to_owned()),
            2 => FailureOrExclusionNote::Exclusion(from.exclusion()?),
            _ => return None,
        };
        from.end(note)
    }
}

impl QueueRank {
    pub(super) fn bytes(self) -> [u8; RANK_BYTES] {
        let mut out = [0; RANK_BYTES];
        out[0] = self.round;
        out[1] = self.priority;
        out[2..6].copy_from_slice(&self.depth.to_be_bytes());
        out[6..].copy_from_slice(&self.seq.to_be_bytes()[3..]);
        out
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<QueueRank> {
        let bytes: &[u8; RANK_BYTES] = bytes.try_into().ok()?;
        Some(QueueRank {
            round: bytes[0],
            priority: bytes[1],
            depth: u32::from_be_bytes(bytes[2..6].try_into().ok()?),
            seq: bytes[6..]
                .iter()
                .fold(0, |seq, byte| seq << 8 | u64::from(*byte)),
        })
    }
}

impl DeferredUrl {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(96);
        out.push(via_flags(&self.url, self.via.as_ref()));
        out.push(self.redirects);
        put_number(&mut out, self.depth.into());
        put_exclusion(&mut out, &self.exclusion);
        put_text(&mut out, self.url.as_str());
        put_via(&mut out, &self.url, self.via.as_ref());
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<DeferredUrl> {
        let mut from = ByteReader(bytes);
        let flags = from.byte().filter(|flags| flags & !VIA_FLAGS == 0)?;
        let redirects = from.byte()?;
        let depth = from.number32()?;
        let exclusion = from.exclusion()?;
        let url = canonicalize(None, from.text()?).ok()?;
        let via = from.via(flags, &url)?;
        from.end(DeferredUrl {
            url,
            via,
            depth,
            redirects,
            exclusion,
        })
    }
}

impl StoreCounters {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        let totals = &self.totals;
        for number in [
            self.commit,
            self.block,
            self.origin,
            self.note,
            totals.pending,
            totals.deferred,
            totals.fetched,
            totals.failed,
            totals.excluded,
        ] {
            put_number(&mut out, number);
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<StoreCounters> {
        let mut from = ByteReader(bytes);
        let sequence = StoreCounters {
            commit: from.number()?,
            block: from.number()?,
            origin: from.number()?,
            note: from.number()?,
            totals: CommittedUrlCounts {
                pending: from.number()?,
                deferred: from.number()?,
                fetched: from.number()?,
                failed: from.number()?,
                excluded: from.number()?,
            },
        };
        let totals = &sequence.totals;
        let counts = [
            totals.pending,
            totals.deferred,
            totals.fetched,
            totals.failed,
        ];
        let numbers = [sequence.commit, totals.excluded];
        let is_plausible = counts
            .iter()
            .chain(&numbers)
            .all(|number| *number < IMPLAUSIBLE)
            && sequence.block < MAX_BLOCK
            && sequence.origin < MAX_ORIGIN
            && sequence.note < MAX_NOTE;
        from.end(sequence).filter(|_| is_plausible)
    }
}

impl RunManifest {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + 24 * self.runs.len());
        put_number(&mut out, self.commit);
        put_number(&mut out, self.last_run);
        for run in &self.runs {
            put_number(&mut out, run.id);
            put_number(&mut out, run.records);
            out.extend(run.checksum.to_be_bytes());
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<RunManifest> {
        let mut from = ByteReader(bytes);
        let mut manifest = RunManifest {
            commit: from.number()?,
            last_run: from.number()?,
            runs: Vec::new(),
        };
        while !from.0.is_empty() {
            manifest.runs.push(RunManifestEntry {
                id: from.number()?,
                records: from.number().filter(|records| *records < IMPLAUSIBLE)?,
                checksum: u64::from_be_bytes(from.bytes(8)?.try_into().ok()?),
            });
        }
        Some(manifest)
    }
}

/// Encodes the value of a row of the `origins` table: the origin's number, the number of its queued
/// URLs, and its text.
pub(super) fn encode_origin(id: u64, queued: u64, origin: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + origin.len());
    put_number(&mut out, id);
    put_number(&mut out, queued);
    out.extend_from_slice(origin.as_bytes());
    out
}

/// Decodes a value that [`encode_origin`] wrote.
pub(super) fn decode_origin(bytes: &[u8]) -> Option<(u64, u64, &str)> {
    let mut from = ByteReader(bytes);
    let (id, queued) = (from.number()?, from.number()?);
    let is_plausible = id < MAX_ORIGIN && queued < IMPLAUSIBLE;
    let origin = std::str::from_utf8(from.0).ok()?;
    is_plausible.then_some((id, queued, origin))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        CommittedUrlCounts, FailureOrExclusionNote, IMPLAUSIBLE, MAX_BLOCK, MAX_NOTE, MAX_ORIGIN,
        SieveUrlState, StoreCounters, decode_origin, encode_origin,
    };
    use crate::admit_rule::{DeferredUrl, PendingUrlFields, QueueRank, QueuedUrl};
    use crate::last_visit::StoredVisit;
    use crate::not_fetched_reason::{NotFetchedReason, Reason};
    use crate::sieve::{RunManifest, RunManifestEntry};
    use crate::url_to_admit::{UrlKind, UrlToAdmit};
    use crawl_weburl::{CanonicalUrl, canonicalize};

    fn url() -> impl Strategy<Value = CanonicalUrl> {
        "https?://[a-c]{1,3}\\.example(:8080)?/[a-z/]{0,8}(\\?[a-z=]{0,4})?"
            .prop_map(|text| canonicalize(None, &text).unwrap())
    }

    fn place() -> impl Strategy<Value = PendingUrlFields> {
        let kinds = vec![UrlKind::Resource, UrlKind::Page, UrlKind::Sitemap];
        let kind = prop::sample::select(kinds);
        (any::<(bool, u8, u32, u8, bool)>(), kind, 0..MAX_NOTE).prop_map(
            |((retried, priority, depth, redirects, is_seed), kind, seq)| PendingUrlFields {
                retried,
                priority,
                depth,
                redirects,
                is_seed,
                kind,
                seq,
            },
        )
    }

    fn exclusion() -> impl Strategy<Value = NotFetchedReason> {
        let reason = prop::sample::select(Reason::ALL);
        (reason, any::<Option<String>>(), any::<Option<u32>>())
            .prop_map(|(reason, rule, line)| NotFetchedReason { reason, rule, line })
    }

    fn state() -> impl Strategy<Value = SieveUrlState> {
        prop_oneof![
            place().prop_map(SieveUrlState::Pending),
            any::<(u32, u8)>()
                .prop_map(|(depth, redirects)| SieveUrlState::Deferred { depth, redirects }),
            any::<(u32, u16)>()
                .prop_map(|(depth, status)| SieveUrlState::Fetched { depth, status }),
            (any::<u32>(), 0..MAX_NOTE)
                .prop_map(|(depth, note)| SieveUrlState::Failed { depth, note }),
            (any::<u32>(), 0..MAX_NOTE)
                .prop_map(|(depth, note)| SieveUrlState::Excluded { depth, note }),
        ]
    }

    proptest! {
        #[test]
        fn states_round_trip(state in state()) {
            prop_assert_eq!(SieveUrlState::from_packed(state.packed()), Some(state));
        }

        #[test]
        fn notes_round_trip(why: String, exclusion in exclusion()) {
            for note in [FailureOrExclusionNote::Why(why), FailureOrExclusionNote::Exclusion(exclusion)] {
                prop_assert_eq!(FailureOrExclusionNote::decode(&note.encode()), Some(note));
            }
        }

        #[test]
        fn manifests_round_trip(commit: u64, last_run: u64, runs: Vec<(u64, u64)>) {
            let run = |(records, checksum)| RunManifestEntry {
                id: checksum / 2,
                records: records % IMPLAUSIBLE,
                checksum,
            };
            let runs = runs.into_iter().map(run).collect();
            let manifest = RunManifest { commit, last_run, runs };
            prop_assert_eq!(RunManifest::decode(&manifest.encode()), Some(manifest));
        }

        #[test]
        fn deferred_round_trip(url in url(), via in prop::option::of(url()), depth: u32, redirects: u8, exclusion in exclusion()) {
            let deferred = DeferredUrl { url, via, depth, redirects, exclusion };
            prop_assert_eq!(DeferredUrl::decode(&deferred.encode()), Some(deferred));
        }

        #[test]
        fn numbers_round_trip(
            commit in 0..IMPLAUSIBLE,
            block in 0..MAX_BLOCK,
            pending in 0..IMPLAUSIBLE,
            fetched in 0..IMPLAUSIBLE,
        ) {
            let totals = CommittedUrlCounts { pending, fetched, ..CommittedUrlCounts::default() };
            let sequence = StoreCounters { commit, block, origin: block, note: block, totals };
            prop_assert_eq!(StoreCounters::decode(&sequence.encode()), Some(sequence));
            let line = encode_origin(block, pending, "http://a.example");
            prop_assert_eq!(decode_origin(&line), Some((block, pending, "http://a.example")));
        }

        #[test]
        fn ranks_sort_as_their_bytes(a in place(), b in place()) {
            let (a, b) = (a.rank(), b.rank());
            prop_assert_eq!(a.cmp(&b), a.bytes().cmp(&b.bytes()));
            prop_assert_eq!(QueueRank::from_bytes(&a.bytes()), Some(a));
        }

        #[test]
        fn foreign_bytes_never_panic(bytes: Vec<u8>, packed: [u8; 12]) {
            let _ = SieveUrlState::from_packed(packed);
            let _ = FailureOrExclusionNote::decode(&bytes);
            let _ = DeferredUrl::decode(&bytes);
            let _ = StoreCounters::decode(&bytes);
            let _ = RunManifest::decode(&bytes);
            let _ = decode_origin(&bytes);
        }
    }

    #[test]
    fn bytes_that_no_encoder_produces_are_damage() {
        let url = b"http://a.example/";
        let deferred = |flags, reason_flags| {
            let mut bytes = vec![flags, 0, 0, 1, reason_flags, url.len() as u8];
            bytes.extend_from_slice(url);
            bytes
        };
        let visit = |flags| {
            let mut bytes = vec![flags, 0, 0, 0, 0, 0, url.len() as u8];
            bytes.extend_from_slice(url);
            bytes
        };
        assert!(FailureOrExclusionNote::decode(&[1, 1, b'x']).is_some());
        assert_eq!(
            FailureOrExclusionNote::decode(&[1, 0x81, 0, b'x']),
            None,
            "a long number"
        );
        assert!(DeferredUrl::decode(&deferred(0, 0)).is_some());
        for bytes in [deferred(1, 0), deferred(16, 0), deferred(0, 4)] {
            assert_eq!(DeferredUrl::decode(&bytes), None, "{bytes:?}");
        }
        assert!(StoredVisit::decode(&visit(32)).is_some());
        for flags in [128, 16] {
            assert_eq!(StoredVisit::decode(&visit(flags)), None, "{flags}");
        }
    }

    #[test]
    fn a_number_at_its_bound_is_damage() {
        type Field = fn(&mut StoreCounters) -> &mut u64;
        let set: [(Field, u64); 9] = [
            (|read| &mut read.commit, IMPLAUSIBLE),
            (|read| &mut read.block, MAX_BLOCK),
            (|read| &mut read.origin, MAX_ORIGIN),
            (|read| &mut read.note, MAX_NOTE),
            (|read| &mut read.totals.pending, IMPLAUSIBLE),
            (|read| &mut read.totals.deferred, IMPLAUSIBLE),
            (|read| &mut read.totals.fetched, IMPLAUSIBLE),
            (|read| &mut read.totals.failed, IMPLAUSIBLE),
            (|read| &mut read.totals.excluded, IMPLAUSIBLE),
        ];
        for (at, (field, bound)) in set.into_iter().enumerate() {
            let mut sequence = StoreCounters::default();
            *field(&mut sequence) = bound;
            assert_eq!(StoreCounters::decode(&sequence.encode()), None, "{at}");
            *field(&mut sequence) = bound - 1;
            let bytes = sequence.encode();
            assert_eq!(StoreCounters::decode(&bytes), Some(sequence), "{at}");
        }
        for (id, queued, is_read) in [
            (MAX_ORIGIN - 1, IMPLAUSIBLE - 1, true),
            (MAX_ORIGIN, 0, false),
            (0, IMPLAUSIBLE, false),
        ] {
            let bytes = encode_origin(id, queued, "http://a.example");
            assert_eq!(decode_origin(&bytes).is_some(), is_read, "{id} {queued}");
        }
        for (records, is_read) in [(IMPLAUSIBLE - 1, true), (IMPLAUSIBLE, false)] {
            let run = RunManifestEntry {
                id: 1,
                records,
                checksum: 2,
            };
            let manifest = RunManifest {
                commit: 1,
                last_run: 2,
                runs: vec![run],
            };
            let read = RunManifest::decode(&manifest.encode());
            assert_eq!(read.is_some(), is_read, "{records}");
        }
    }

    #[test]
    fn each_state_has_its_own_total() {
        let url = canonicalize(None, "http://a.example/").unwrap();
        let admission = UrlToAdmit::link(url.clone(), 3, url);
        let states = [
            SieveUrlState::Pending(QueuedUrl::new(admission, 1).place),
            SieveUrlState::Deferred {
                depth: 1,
                redirects: 0,
            },
            SieveUrlState::Fetched {
                depth: 1,
                status: 200,
            },
            SieveUrlState::Failed { depth: 1, note: 1 },
            SieveUrlState::Excluded { depth: 1, note: 1 },
        ];
        let mut totals = CommittedUrlCounts::default();
        for (count, state) in (1..).zip(&states) {
            for _ in 0..=count {
                totals.increment(state);
            }
            totals.decrement(state);
        }
        let expected = CommittedUrlCounts {
            pending: 1,
            deferred: 2,
            fetched: 3,
            failed: 4,
            excluded: 5,
        };
        assert_eq!(totals, expected);
        totals.decrement(&states[0]);
        totals.decrement(&states[0]);
        assert_eq!(totals.pending, 0);
    }
}

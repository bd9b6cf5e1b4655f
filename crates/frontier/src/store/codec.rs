//! Records as octets. Every decoder gives none for octets that no encoder wrote, and
//! reads to the end.

use crawl_weburl::{Origin, canonicalize};

use super::octets::{
    Cursor, near_url, put_exclusion, put_number, put_place, put_text, put_via, via_flags,
};
use crate::exclusion::Exclusion;
use crate::state::{Deferred, Place, Queued, Rank};

/// What the `seen` table says of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Pending(Place),
    Deferred { depth: u32, redirects: u8 },
    Fetched { depth: u32, status: u16 },
    Failed { depth: u32, why: String },
    Excluded { depth: u32, exclusion: Exclusion },
}

/// Counters that go on over a death.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sequence {
    pub(super) next_seq: u64,
    pub(super) next_origin: u64,
    pub(super) totals: Totals,
}

/// URLs by state, as committed: leased ones are pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) pending: u64,
    pub(super) deferred: u64,
    pub(super) fetched: u64,
    pub(super) failed: u64,
    pub(super) excluded: u64,
}

impl Totals {
    pub(super) fn enter(&mut self, state: &State) {
        *self.of(state) += 1;
    }

    pub(super) fn leave(&mut self, state: &State) {
        let count = self.of(state);
        *count = count.saturating_sub(1);
    }

    fn of(&mut self, state: &State) -> &mut u64 {
        match state {
            State::Pending(_) => &mut self.pending,
            State::Deferred { .. } => &mut self.deferred,
            State::Fetched { .. } => &mut self.fetched,
            State::Failed { .. } => &mut self.failed,
            State::Excluded { .. } => &mut self.excluded,
        }
    }
}

pub(super) const RANK_OCTETS: usize = 14;

/// No crawl counts as far; whoever reads such a number reads damage. Below it, sums and
/// steps can't overflow.
const IMPLAUSIBLE: u64 = 1 << 56;

impl State {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        match self {
            State::Pending(place) => {
                out.push(1);
                put_place(&mut out, place, 0);
                put_number(&mut out, place.seq);
            }
            &State::Deferred { depth, redirects } => {
                out.extend([2, redirects]);
                put_number(&mut out, depth.into());
            }
            &State::Fetched { depth, status } => {
                out.push(3);
                out.extend(status.to_be_bytes());
                put_number(&mut out, depth.into());
            }
            State::Failed { depth, why } => {
                out.push(4);
                put_number(&mut out, (*depth).into());
                put_text(&mut out, why);
            }
            State::Excluded { depth, exclusion } => {
                out.push(5);
                put_number(&mut out, (*depth).into());
                put_exclusion(&mut out, exclusion);
            }
        }
        out
    }

    pub(super) fn decode(octets: &[u8]) -> Option<State> {
        let mut from = Cursor(octets);
        let state = match from.octet()? {
            1 => {
                let (_, mut place) = from.place()?;
                place.seq = from.number()?;
                State::Pending(place)
            }
            2 => State::Deferred {
                redirects: from.octet()?,
                depth: from.number32()?,
            },
            3 => State::Fetched {
                status: u16::from_be_bytes(from.octets(2)?.try_into().ok()?),
                depth: from.number32()?,
            },
            4 => State::Failed {
                depth: from.number32()?,
                why: from.text()?.to_owned(),
            },
            5 => State::Excluded {
                depth: from.number32()?,
                exclusion: from.exclusion()?,
            },
            _ => return None,
        };
        from.end(state)
    }
}

impl Rank {
    pub(super) fn octets(self) -> [u8; RANK_OCTETS] {
        let mut out = [0; RANK_OCTETS];
        out[0] = self.round;
        out[1] = self.priority;
        out[2..6].copy_from_slice(&self.depth.to_be_bytes());
        out[6..].copy_from_slice(&self.seq.to_be_bytes());
        out
    }

    pub(super) fn from_octets(octets: &[u8]) -> Option<Rank> {
        let octets: &[u8; RANK_OCTETS] = octets.try_into().ok()?;
        Some(Rank {
            round: octets[0],
            priority: octets[1],
            depth: u32::from_be_bytes(octets[2..6].try_into().ok()?),
            seq: u64::from_be_bytes(octets[6..].try_into().ok()?),
        })
    }
}

impl Queued {
    /// The origin stands in the key by its number and is left out.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        put_place(
            &mut out,
            &self.place,
            via_flags(&self.url, self.via.as_ref()),
        );
        put_number(&mut out, self.attempt.into());
        put_text(&mut out, self.url.path_and_query());
        put_via(&mut out, &self.url, self.via.as_ref());
        out
    }

    pub(super) fn decode(origin: &Origin, rank: Rank, octets: &[u8]) -> Option<Queued> {
        let mut from = Cursor(octets);
        let (flags, mut place) = from.place()?;
        place.seq = rank.seq;
        let attempt = from.number32()?;
        let url = near_url(origin.as_str(), from.text()?)?;
        let via = from.via(flags, &url)?;
        let queued = Queued {
            place,
            attempt,
            url,
            via,
        };
        if place.rank() != rank || queued.url.origin() != *origin {
            return None;
        }
        from.end(queued)
    }
}

impl Deferred {
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

    pub(super) fn decode(octets: &[u8]) -> Option<Deferred> {
        let mut from = Cursor(octets);
        let flags = from.octet()?;
        let redirects = from.octet()?;
        let depth = from.number32()?;
        let exclusion = from.exclusion()?;
        let url = canonicalize(None, from.text()?).ok()?;
        let via = from.via(flags, &url)?;
        from.end(Deferred {
            url,
            via,
            depth,
            redirects,
            exclusion,
        })
    }
}

impl Sequence {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        let totals = &self.totals;
        for number in [
            self.next_seq,
            self.next_origin,
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

    pub(super) fn decode(octets: &[u8]) -> Option<Sequence> {
        let mut from = Cursor(octets);
        let sequence = Sequence {
            next_seq: from.number()?,
            next_origin: from.number()?,
            totals: Totals {
                pending: from.number()?,
                deferred: from.number()?,
                fetched: from.number()?,
                failed: from.number()?,
                excluded: from.number()?,
            },
        };
        let Totals {
            pending,
            deferred,
            fetched,
            failed,
            excluded,
        } = sequence.totals;
        let numbers = [pending, deferred, fetched, failed, excluded];
        let plausible = |number: &u64| *number < IMPLAUSIBLE;
        let plausible = numbers.iter().all(plausible)
            && plausible(&sequence.next_seq)
            && plausible(&sequence.next_origin);
        from.end(sequence).filter(|_| plausible)
    }
}

/// Two numbers, as the `origins` table holds them: an origin's own, and how many URLs
/// it has queued.
pub(super) fn encode_line(id: u64, queued: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(8);
    put_number(&mut out, id);
    put_number(&mut out, queued);
    out
}

/// The numbers that [`encode_line`] wrote.
pub(super) fn decode_line(octets: &[u8]) -> Option<(u64, u64)> {
    let mut from = Cursor(octets);
    let line = (from.number()?, from.number()?);
    from.end(line)
        .filter(|&(id, queued)| id < IMPLAUSIBLE && queued < IMPLAUSIBLE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{IMPLAUSIBLE, Sequence, State, Totals, decode_line, encode_line};
    use crate::admission::UrlKind;
    use crate::exclusion::{Exclusion, Reason};
    use crate::state::{Deferred, Place, Queued, Rank};
    use crawl_weburl::{CanonicalUrl, canonicalize};

    fn url() -> impl Strategy<Value = CanonicalUrl> {
        "https?://[a-c]{1,3}\\.example(:8080)?/[a-z/]{0,8}(\\?[a-z=]{0,4})?"
            .prop_map(|text| canonicalize(None, &text).unwrap())
    }

    fn place() -> impl Strategy<Value = Place> {
        any::<(bool, u8, u32, u8, bool, bool, u64)>().prop_map(
            |(retried, priority, depth, redirects, is_seed, sitemap, seq)| Place {
                retried,
                priority,
                depth,
                redirects,
                is_seed,
                kind: if sitemap {
                    UrlKind::Sitemap
                } else {
                    UrlKind::Page
                },
                seq,
            },
        )
    }

    fn exclusion() -> impl Strategy<Value = Exclusion> {
        let reason = prop::sample::select(Reason::ALL);
        (reason, any::<Option<String>>(), any::<Option<u32>>())
            .prop_map(|(reason, rule, line)| Exclusion { reason, rule, line })
    }

    fn state() -> impl Strategy<Value = State> {
        prop_oneof![
            place().prop_map(State::Pending),
            any::<(u32, u8)>().prop_map(|(depth, redirects)| State::Deferred { depth, redirects }),
            any::<(u32, u16)>().prop_map(|(depth, status)| State::Fetched { depth, status }),
            any::<(u32, String)>().prop_map(|(depth, why)| State::Failed { depth, why }),
            (any::<u32>(), exclusion())
                .prop_map(|(depth, exclusion)| State::Excluded { depth, exclusion }),
        ]
    }

    proptest! {
        #[test]
        fn states_lead_back(state in state()) {
            prop_assert_eq!(State::decode(&state.encode()), Some(state));
        }

        #[test]
        fn queued_lead_back(place in place(), attempt: u32, url in url(), via in prop::option::of(url())) {
            let queued = Queued { place, attempt, url, via };
            let rank = Rank::from_octets(&place.rank().octets()).unwrap();
            prop_assert_eq!(rank, place.rank());
            let origin = queued.url.origin();
            prop_assert_eq!(Queued::decode(&origin, rank, &queued.encode()), Some(queued));
        }

        #[test]
        fn deferred_lead_back(url in url(), via in prop::option::of(url()), depth: u32, redirects: u8, exclusion in exclusion()) {
            let deferred = Deferred { url, via, depth, redirects, exclusion };
            prop_assert_eq!(Deferred::decode(&deferred.encode()), Some(deferred));
        }

        #[test]
        fn numbers_lead_back(
            next_seq in 0..IMPLAUSIBLE,
            next_origin in 0..IMPLAUSIBLE,
            pending in 0..IMPLAUSIBLE,
            fetched in 0..IMPLAUSIBLE,
        ) {
            let totals = Totals { pending, fetched, ..Totals::default() };
            let sequence = Sequence { next_seq, next_origin, totals };
            prop_assert_eq!(Sequence::decode(&sequence.encode()), Some(sequence));
            prop_assert_eq!(decode_line(&encode_line(next_seq, pending)), Some((next_seq, pending)));
        }

        #[test]
        fn ranks_sort_as_their_octets(a in place(), b in place()) {
            let (a, b) = (a.rank(), b.rank());
            prop_assert_eq!(a.cmp(&b), a.octets().cmp(&b.octets()));
        }

        #[test]
        fn foreign_octets_never_panic(octets: Vec<u8>, rank in place()) {
            let origin = canonicalize(None, "http://a.example/").unwrap().origin();
            let _ = State::decode(&octets);
            let _ = Queued::decode(&origin, rank.rank(), &octets);
            let _ = Deferred::decode(&octets);
            let _ = Sequence::decode(&octets);
            let _ = decode_line(&octets);
        }
    }
}

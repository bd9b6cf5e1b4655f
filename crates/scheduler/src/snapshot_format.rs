//! The stored form of a host's state, read only by this crate.
//!
//! Little-endian, with a version first and a checksum last, to detect other versions and torn
//! writes.

use std::net::IpAddr;

use crate::backoff::{Backoff, HostRateLimit};
use crate::permit::{GapReason, HostRequestSlot};
use crate::tick::Tick;

const VERSION: u8 = 2;

/// The state of a host that outlives the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSnapshot {
    pub(crate) smoothed: u64,
    /// The gap in force when the state was stored, in microseconds.
    pub(crate) gap: u64,
    pub(crate) in_flight: u32,
    pub(crate) slots: Vec<HostRequestSlot>,
    pub(crate) address: Option<IpAddr>,
    pub(crate) backoff: Backoff,
}

impl Default for HostSnapshot {
    fn default() -> HostSnapshot {
        HostSnapshot {
            smoothed: 0,
            gap: 0,
            in_flight: 0,
            slots: Vec::new(),
            address: None,
            backoff: Backoff::NONE,
        }
    }
}

impl HostSnapshot {
    /// Returns the state as opaque bytes, for [`Scheduler::restore`](crate::Scheduler::restore).
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(120 + self.slots.len() * 17);
        bytes.push(VERSION);
        let backoff = &self.backoff;
        for number in [
            self.smoothed,
            self.gap,
            backoff.hold_until.as_micros(),
            backoff.trip_until.as_micros(),
        ] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend([
            backoff.hold_why as u8,
            backoff.hold_level,
            backoff.trip_level,
        ]);
        let slots = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        for number in [backoff.fails, self.in_flight, slots] {
            bytes.extend(number.to_le_bytes());
        }
        for slot in &self.slots {
            bytes.extend_from_slice(&slot.last_end.as_micros().to_le_bytes());
            bytes.extend_from_slice(&slot.next_at.as_micros().to_le_bytes());
            bytes.push(slot.why as u8);
        }
        match self.address {
            None => bytes.push(0),
            Some(IpAddr::V4(v4)) => {
                bytes.push(4);
                bytes.extend(v4.octets());
            }
            Some(IpAddr::V6(v6)) => {
                bytes.push(6);
                bytes.extend(v6.octets());
            }
        }
        let limit = &backoff.limit;
        bytes.push(backoff.ease);
        for number in [
            limit.gap,
            limit.gap_until.as_micros(),
            limit.wait_until.as_micros(),
        ] {
            bytes.extend(number.to_le_bytes());
        }
        let urls = u32::try_from(backoff.failed_urls.len()).unwrap_or(u32::MAX);
        bytes.extend(urls.to_le_bytes());
        for url in &backoff.failed_urls {
            bytes.extend(url.to_le_bytes());
        }
        bytes.extend(checksum(&bytes).to_le_bytes());
        bytes
    }

    /// Decodes a snapshot. Returns `None` if the bytes are damaged or have another version.
    pub(crate) fn decode(bytes: &[u8]) -> Option<HostSnapshot> {
        let (body, sum) = bytes.split_last_chunk::<4>()?;
        if checksum(body) != u32::from_le_bytes(*sum) {
            return None;
        }
        let mut rest = ByteReader(body);
        if rest.u8()? != VERSION {
            return None;
        }
        let mut stored = HostSnapshot {
            smoothed: rest.u64()?,
            gap: rest.u64()?,
            ..HostSnapshot::default()
        };
        stored.backoff = Backoff {
            hold_until: rest.tick()?,
            trip_until: rest.tick()?,
            hold_why: rest.reason()?,
            hold_level: rest.u8()?,
            trip_level: rest.u8()?,
            fails: rest.u32()?,
            ..Backoff::NONE
        };
        stored.in_flight = rest.u32()?;
        // Don't reserve capacity for a count from untrusted bytes.
        for _ in 0..rest.u32()? {
            stored.slots.push(HostRequestSlot {
                last_end: rest.tick()?,
                next_at: rest.tick()?,
                why: rest.reason()?,
            });
        }
        stored.address = match rest.u8()? {
            0 => None,
            4 => Some(IpAddr::from(rest.take::<4>()?)),
            6 => Some(IpAddr::from(rest.take::<16>()?)),
            _ => return None,
        };
        stored.backoff.ease = rest.u8()?;
        stored.backoff.limit = HostRateLimit {
            gap: rest.u64()?,
            gap_until: rest.tick()?,
            wait_until: rest.tick()?,
        };
        for _ in 0..rest.u32()? {
            stored.backoff.failed_urls.push(rest.u32()?);
        }
        rest.0.is_empty().then_some(stored)
    }
}

/// The bytes not read yet.
struct ByteReader<'a>(&'a [u8]);

impl ByteReader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn tick(&mut self) -> Option<Tick> {
        self.u64().map(Tick::from_micros)
    }

    fn reason(&mut self) -> Option<GapReason> {
        GapReason::from_repr(self.u8()?)
    }
}

/// Returns the FNV-1a hash of 32 bits, which detects torn writes and other versions, but not
/// tampering.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811C_9DC5, |sum, byte| {
        (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use strum::VariantArray as _;

    use super::HostSnapshot;
    use crate::backoff::{Backoff, HostRateLimit};
    use crate::permit::{GapReason, HostRequestSlot};
    use crate::tick::Tick;

    #[test]
    fn discriminants_of_reasons_are_stable() {
        let names = GapReason::VARIANTS.iter().map(ToString::to_string);
        assert_eq!(
            names.collect::<Vec<_>>().join(" "),
            "first delay delay-factor crawl-delay retry-after wait pause restart request-rate \
             visit-time rate-limit quiet-hours slow-restart other-crawl"
        );
    }

    proptest! {
        #[test]
        fn bytes_round_trip(
            numbers in proptest::array::uniform5(any::<u64>()),
            levels in any::<(u8, u8, u32, u32)>(),
            slots in proptest::collection::vec((any::<u64>(), any::<u64>(), 0..GapReason::VARIANTS.len()), 0..5),
            limit in any::<(u64, u64, u64, u8)>(),
            failed_urls in proptest::collection::vec(any::<u32>(), 0..5),
            address in proptest::option::of(any::<std::net::IpAddr>()),
        ) {
            let stored = HostSnapshot {
                smoothed: numbers[0],
                gap: numbers[1],
                in_flight: levels.3,
                slots: slots.into_iter().map(|(end, next, why)| HostRequestSlot {
                    last_end: Tick::from_micros(end),
                    next_at: Tick::from_micros(next),
                    why: GapReason::VARIANTS[why],
                }).collect(),
                address,
                backoff: Backoff {
                    hold_until: Tick::from_micros(numbers[2]),
                    hold_why: GapReason::VARIANTS[numbers[3] as usize % GapReason::VARIANTS.len()],
                    hold_level: levels.0,
                    zero_waits: 0,
                    trip_until: Tick::from_micros(numbers[4]),
                    trip_level: levels.1,
                    ease: limit.3,
                    fails: levels.2,
                    failed_urls,
                    limit: HostRateLimit {
                        gap: limit.0,
                        gap_until: Tick::from_micros(limit.1),
                        wait_until: Tick::from_micros(limit.2),
                    },
                },
            };
            let bytes = stored.encode();
            prop_assert_eq!(HostSnapshot::decode(&bytes), Some(stored));
            for cut in 0..bytes.len() {
                prop_assert_eq!(HostSnapshot::decode(&bytes[..cut]), None);
            }
        }

        #[test]
        fn garbage_decodes_to_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(HostSnapshot::decode(&bytes), None);
        }
    }
}

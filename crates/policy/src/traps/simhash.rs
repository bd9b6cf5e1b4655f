//! SimHash: one number for a set of hashes, so that like sets have like numbers
//! (Charikar, "Similarity estimation techniques from rounding algorithms", 2002), and an
//! index that finds the near ones among many without comparing them all (Manku, Jain and Das
//! Sarma, "Detecting near-duplicates for web crawling", 2007).

use std::collections::HashMap;

/// Texts whose SimHashes differ in so many bits at most are nearly the same.
const NEAR_BITS: u32 = 3;
/// One more than the bits that may differ, so that one band at least is the same.
const BANDS: usize = 4;
/// SimHashes of one index, the latest.
const MAX_KEPT: usize = 1024;
/// SimHashes that share a band and are compared, the latest.
const MAX_ALIKE: usize = 32;
/// Counts hold so many bits: no page has more shingles.
const PLANES: usize = 13;

/// The votes of hashes for each of 64 bits. Counters stand bit by bit in words, so that one
/// hash is added to all 64 at once.
#[derive(Debug, Default)]
pub(super) struct Votes {
    planes: [u64; PLANES],
    hashes: u32,
}

impl Votes {
    pub(super) fn add(&mut self, hash: u64) {
        self.hashes += 1;
        let mut carry = hash;
        for plane in &mut self.planes {
            let over = *plane & carry;
            *plane ^= carry;
            carry = over;
            if carry == 0 {
                break;
            }
        }
    }

    /// The bits that more than half of the hashes have.
    pub(super) fn result(&self) -> u64 {
        let votes = |bit: u32| {
            let planes = self.planes.iter().enumerate();
            planes
                .map(|(n, plane)| ((plane >> bit & 1) as u32) << n)
                .sum::<u32>()
        };
        let set = (0..64).filter(|bit| 2 * votes(*bit) > self.hashes);
        set.fold(0, |result, bit| result | 1 << bit)
    }
}

/// The latest SimHashes, by bands of 16 bits.
#[derive(Debug, Default)]
pub(super) struct NearDuplicates {
    latest: Vec<u64>,
    /// The place in `latest` that is overwritten next.
    next: usize,
    bands: [HashMap<u16, Vec<u16>>; BANDS],
}

impl NearDuplicates {
    /// Returns whether one of the latest is near; takes this one in.
    pub(super) fn meet(&mut self, simhash: u64) -> bool {
        let nearest = self.nearest(simhash);
        if nearest != Some(0) {
            self.insert(simhash);
        }
        nearest.is_some()
    }

    /// Memory held, about.
    pub(super) fn bytes(&self) -> usize {
        const ENTRY: usize = 8 + BANDS * 40;
        ENTRY * self.latest.len()
    }

    fn nearest(&self, simhash: u64) -> Option<u32> {
        let alike = self.bands.iter().zip(bands(simhash));
        let alike = alike.filter_map(|(band, key)| band.get(&key)).flatten();
        let distances = alike.map(|at| (self.latest[usize::from(*at)] ^ simhash).count_ones());
        distances.filter(|bits| *bits <= NEAR_BITS).min()
    }

    fn insert(&mut self, simhash: u64) {
        let at = self.next;
        let place = at as u16;
        self.next = (at + 1) % MAX_KEPT;
        if at < self.latest.len() {
            for (band, key) in self.bands.iter_mut().zip(bands(self.latest[at])) {
                if let Some(places) = band.get_mut(&key) {
                    places.retain(|known| *known != place);
                    if places.is_empty() {
                        band.remove(&key);
                    }
                }
            }
            self.latest[at] = simhash;
        } else {
            self.latest.push(simhash);
        }
        for (band, key) in self.bands.iter_mut().zip(bands(simhash)) {
            let places = band.entry(key).or_default();
            if places.len() == MAX_ALIKE {
                places.remove(0);
            }
            places.push(place);
        }
    }
}

fn bands(simhash: u64) -> [u16; BANDS] {
    [0, 16, 32, 48].map(|shift| (simhash >> shift) as u16)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MAX_KEPT, NearDuplicates, Votes};

    #[test]
    fn a_bit_is_set_where_most_hashes_have_it() {
        let mut votes = Votes::default();
        for hash in [0b1011, 0b0011, 0b0110] {
            votes.add(hash);
        }
        assert_eq!(votes.result(), 0b0011);
        assert_eq!(Votes::default().result(), 0);
    }

    #[test]
    fn three_bits_are_near_and_four_are_not() {
        let mut near = NearDuplicates::default();
        assert!(!near.meet(0xDEAD_BEEF_0123_4567));
        assert!(near.meet(0xDEAD_BEEF_0123_4567 ^ 0x8000_0001_0000_0001));
        assert!(!near.meet(0xDEAD_BEEF_0123_4567 ^ 0x8001_0001_0001_0100));
        // Three numbers, and the place of each in four bands.
        assert!((400..800).contains(&near.bytes()), "{}", near.bytes());
    }

    #[test]
    fn ours_only_the_latest_are_known() {
        let mut near = NearDuplicates::default();
        let spread = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        near.meet(spread(1));
        for n in 2..MAX_KEPT as u64 + 2 {
            near.meet(spread(n));
        }
        assert_eq!(near.nearest(spread(1)), None);
        assert_eq!(near.nearest(spread(2)), Some(0));
    }

    proptest! {
        #[test]
        fn votes_count_as_plain_counters_do(hashes in prop::collection::vec(any::<u64>(), 0..200)) {
            let mut votes = Votes::default();
            hashes.iter().for_each(|hash| votes.add(*hash));
            for bit in 0..64 {
                let count = hashes.iter().filter(|hash| *hash >> bit & 1 == 1).count();
                prop_assert_eq!(votes.result() >> bit & 1 == 1, 2 * count > hashes.len());
            }
        }

        #[test]
        fn what_differs_in_three_bits_is_always_found(hashes in prop::collection::vec(any::<u64>(), 1..30), which in 0_usize..30, flips in prop::collection::vec(0_u32..64, 0..=3)) {
            let mut near = NearDuplicates::default();
            for hash in &hashes {
                near.meet(*hash);
            }
            let flipped = flips.iter().fold(hashes[which % hashes.len()], |hash, bit| hash ^ (1 << bit));
            prop_assert!(near.nearest(flipped).is_some());
        }
    }
}

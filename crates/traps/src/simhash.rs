//! SimHash: one number for a set of hashes, so that similar sets have similar numbers (Charikar,
//! "Similarity estimation techniques from rounding algorithms", 2002).

/// The number of bits of each counter. A counter can count more shingles than any page has.
const PLANES: usize = 13;

/// 64 counters: each counts the hashes in which one of the 64 bits is set. Each `u64` holds one bit
/// of all 64 counters, so that a hash is added to all counters at once.
#[derive(Debug, Default)]
pub(super) struct BitVoteCounts {
    planes: [u64; PLANES],
    hashes: u32,
}

/// Adds three numbers bit by bit. Returns the sums and the carries.
fn sum(a: u64, b: u64, c: u64) -> (u64, u64) {
    (a ^ b ^ c, a & b | (a ^ b) & c)
}

impl BitVoteCounts {
    pub(super) fn add(&mut self, hash: u64) {
        self.hashes += 1;
        self.carry(hash, 0);
    }

    /// Adds four hashes at once, which is cheaper than adding them one by one.
    #[inline]
    pub(super) fn add_four(&mut self, [a, b, c, d]: [u64; 4]) {
        self.hashes += 4;
        let (ones, two) = sum(self.planes[0], a, b);
        let (ones, other_two) = sum(ones, c, d);
        let (twos, four) = sum(self.planes[1], two, other_two);
        self.planes[0] = ones;
        self.planes[1] = twos;
        self.carry(four, 2);
    }

    /// Adds a bit to each counter whose bit in `carry` is set. `plane` is the position of that bit
    /// in the counters.
    fn carry(&mut self, mut carry: u64, plane: usize) {
        for plane in &mut self.planes[plane..] {
            let over = *plane & carry;
            *plane ^= carry;
            carry = over;
            if carry == 0 {
                break;
            }
        }
    }

    /// Returns the bits that are set in more than half of the hashes.
    pub(super) fn result(self) -> u64 {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::BitVoteCounts;

    #[test]
    fn a_bit_is_set_where_most_hashes_have_it() {
        let mut votes = BitVoteCounts::default();
        for hash in [0b1011, 0b0011, 0b0110] {
            votes.add(hash);
        }
        assert_eq!(votes.result(), 0b0011);
        assert_eq!(BitVoteCounts::default().result(), 0);
    }

    proptest! {
        #[test]
        fn votes_count_as_plain_counters_do(hashes in prop::collection::vec(any::<u64>(), 0..200)) {
            let mut votes = BitVoteCounts::default();
            let (fours, rest) = hashes.as_chunks();
            fours.iter().for_each(|four| votes.add_four(*four));
            rest.iter().for_each(|hash| votes.add(*hash));
            let result = votes.result();
            for bit in 0..64 {
                let count = hashes.iter().filter(|hash| *hash >> bit & 1 == 1).count();
                prop_assert_eq!(result >> bit & 1 == 1, 2 * count > hashes.len());
            }
        }
    }
}

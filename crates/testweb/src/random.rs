//! Numbers that follow from a seed and from nothing else.

/// A stream of numbers that depends on its seeds only (SplitMix64).
///
/// Each page makes a stream of its own from (seed, host, page, purpose), so any page can be
/// computed without the pages before it.
#[derive(Debug, Clone)]
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
    pub(crate) fn of(seeds: &[u64]) -> SeededRandom {
        let mut state = 0x243F_6A88_85A3_08D3;
        for seed in seeds {
            state = scramble(state ^ seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        }
        SeededRandom(state)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        scramble(self.0)
    }

    /// A number in `0..end`; 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or(0)
    }

    /// True in `share` of 1,000 cases.
    pub(crate) fn per_mille(&mut self, share: u32) -> bool {
        self.below(1000) < u64::from(share)
    }
}

fn scramble(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

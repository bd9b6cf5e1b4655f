//! Pseudo-random numbers that depend only on a seed.

/// A stream of numbers that depends only on its seeds (SplitMix64).
///
/// Each page has its own stream from (seed, host, page, purpose), so a page can be computed without
/// computing the pages before it.
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

    /// Returns a number in `0..end`; 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or(0)
    }

    /// Returns true with probability `share` in 1,000.
    pub(crate) fn per_mille(&mut self, share: u32) -> bool {
        self.below(1000) < u64::from(share)
    }
}

fn scramble(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

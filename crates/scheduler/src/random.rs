//! The scheduler's only source of randomness. It is seeded, so a run can be replayed.

/// SplitMix64, after Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators" (2014). Good enough to spread requests, not for secrets.
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// Returns a fraction in 0..1.
    pub(crate) fn fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        // The upper 53 bits fill a mantissa exactly.
        (z >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::SplitMix64;

    /// The first outputs for seed 0, as printed by the authors' program.
    #[test]
    fn splitmix64_matches_the_reference_output() {
        let mut source = SplitMix64::new(0);
        for number in [
            0xE220_A839_7B1D_CDAF,
            0x6E78_9E6A_A1B9_65F4,
            0x06C4_5D18_8009_454F_u64,
        ] {
            let fraction = (number >> 11) as f64 / 9_007_199_254_740_992.0;
            assert_eq!(source.fraction(), fraction);
        }
    }
}

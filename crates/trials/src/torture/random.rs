//! Random numbers that depend only on a seed.

use std::time::Duration;

/// A SplitMix64 generator.
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
    pub(crate) fn of(seed: u64) -> SeededRandom {
        let mut dice = SeededRandom(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        value ^ (value >> 31)
    }

    /// Returns a number in `0..end`, or 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or(0)
    }

    /// Returns a random duration of up to `most` milliseconds, in whole microseconds.
    pub(super) fn millis(&mut self, most: u64) -> Duration {
        Duration::from_micros(self.below(most * 1000 + 1))
    }

    /// Returns a text of `count` random letters, which is hard to compress.
    pub(super) fn letters(&mut self, count: usize) -> String {
        let letter = |dice: &mut SeededRandom| char::from(b'a' + dice.below(26) as u8);
        (0..count).map(|_| letter(self)).collect()
    }

    /// Removes and returns a random item.
    pub(super) fn take<T>(&mut self, many: &mut Vec<T>) -> Option<T> {
        if many.is_empty() {
            return None;
        }
        let at = usize::try_from(self.below(many.len() as u64)).unwrap_or(0);
        Some(many.swap_remove(at))
    }
}

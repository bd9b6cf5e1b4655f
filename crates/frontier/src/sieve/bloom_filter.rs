//! A Bloom filter in lines of 64 bytes: one memory access shows that a key is absent.

use crate::fingerprint::Fingerprint;

/// The size of the filter in bits per key. With ten bits per key, seven of them set, the filter
/// wrongly reports about one absent key in eighty as possibly present.
const BITS_PER_KEY: u64 = 10;
/// Bits set per key, all in one line.
const BITS_SET_PER_KEY: u32 = 7;

pub(crate) const LINE_BYTES: usize = 64;
const LINE_BITS: u64 = 8 * LINE_BYTES as u64;
/// The number of bits that select a bit within a line.
const BIT_NUMBER_BITS: u32 = LINE_BITS.trailing_zeros();

#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct BloomFilterLine([u64; 8]);

/// A Bloom filter: it may report an absent key as present, but never a present key as absent.
pub(crate) struct BloomFilter {
    lines: Vec<BloomFilterLine>,
}

impl BloomFilter {
    pub(crate) fn for_keys(keys: u64) -> BloomFilter {
        let lines = (keys * BITS_PER_KEY).div_ceil(LINE_BITS).max(1);
        BloomFilter {
            lines: vec![BloomFilterLine::default(); lines as usize],
        }
    }

    pub(crate) fn set(&mut self, key: Fingerprint) {
        let at = self.line(key);
        for (word, bit) in bits(key) {
            self.lines[at].0[word] |= bit;
        }
    }

    pub(crate) fn may_hold(&self, key: Fingerprint) -> bool {
        let line = &self.lines[self.line(key)].0;
        bits(key).all(|(word, bit)| line[word] & bit != 0)
    }

    /// Returns the index of a key's line. Uses the low bits of the key, because all URLs of an
    /// origin have the same high bits.
    fn line(&self, key: Fingerprint) -> usize {
        let low = key.as_u128() as u64;
        ((u128::from(low) * self.lines.len() as u128) >> 64) as usize
    }

    pub(crate) fn lines(&self) -> u64 {
        self.lines.len() as u64
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.reserve(self.lines.len() * LINE_BYTES);
        for word in self.lines.iter().flat_map(|line| line.0) {
            out.extend(word.to_le_bytes());
        }
    }

    /// Reads the filter that [`BloomFilter::put`] wrote. Returns `None` if `bytes` are not a whole
    /// number of lines.
    pub(crate) fn read(bytes: &[u8]) -> Option<BloomFilter> {
        let (lines, rest) = bytes.as_chunks::<LINE_BYTES>();
        let line = |bytes: &[u8; LINE_BYTES]| {
            let mut words = bytes.as_chunks::<8>().0.iter();
            BloomFilterLine(std::array::from_fn(|_| {
                words.next().map_or(0, |word| u64::from_le_bytes(*word))
            }))
        };
        (rest.is_empty() && !lines.is_empty()).then(|| BloomFilter {
            lines: lines.iter().map(line).collect(),
        })
    }
}

/// Returns the bits of a key in its line, each as the index of a word and a mask. The result
/// depends on bits 32 to 95 of the fingerprint, of which only bits 32 to 63 also determine the
/// line.
fn bits(key: Fingerprint) -> impl Iterator<Item = (usize, u64)> {
    let middle = (key.as_u128() >> 32) as u64;
    let mut rest = middle.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..BITS_SET_PER_KEY).map(move |_| {
        let bit = rest % LINE_BITS;
        rest >>= BIT_NUMBER_BITS;
        ((bit / 64) as usize, 1 << (bit % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::BloomFilter;
    use crate::fingerprint::Fingerprint;
    use crate::sieve::tests::key;

    #[test]
    fn all_set_keys_pass_and_few_others_do() {
        let mut filter = BloomFilter::for_keys(10_000);
        for n in 0..10_000 {
            filter.set(key(n));
        }
        let mut bytes = Vec::new();
        filter.put(&mut bytes);
        let read = BloomFilter::read(&bytes).unwrap();
        assert!((0..10_000).all(|n| read.may_hold(key(n))));
        let wrong = (10_000..110_000).filter(|&n| read.may_hold(key(n))).count();
        assert!(wrong < 2_500, "{wrong} of 100000 pass");
    }

    #[test]
    fn truncated_filters_are_none() {
        assert!(BloomFilter::read(&[]).is_none());
        assert!(BloomFilter::read(&[0; 65]).is_none());
        assert!(
            !BloomFilter::read(&[0; 64])
                .unwrap()
                .may_hold(Fingerprint::from_bytes([7; 16]))
        );
    }
}

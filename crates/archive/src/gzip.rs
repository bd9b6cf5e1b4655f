//! Compresses each record as one gzip member.

#[cfg_attr(not(feature = "fast"), path = "gzip/compressor_of_zlib.rs")]
mod compressor;

use self::compressor::Compressor;

/// Maximum size of a buffer that is kept for the next record, in bytes.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// Compresses records. One compressor is used for many records, because creating one takes longer
/// than compressing a short record.
pub(crate) struct RecordCompressor {
    compressor: Compressor,
    /// The concatenated parts of a record.
    joined: Vec<u8>,
}

impl RecordCompressor {
    /// Creates a compressor with a level from 0 to 12.
    pub(crate) fn new(level: i32) -> RecordCompressor {
        RecordCompressor {
            compressor: Compressor::new(level),
            joined: Vec::new(),
        }
    }

    /// Joins the parts, compresses them to one gzip member, and appends it to `out`.
    pub(crate) fn member(&mut self, parts: &[&[u8]], out: &mut Vec<u8>) {
        let data = match parts {
            [only] => only,
            _ => {
                self.joined.clear();
                for part in parts {
                    self.joined.extend_from_slice(part);
                }
                &self.joined[..]
            }
        };
        self.compressor.member(data, out);
        shrink(&mut self.joined);
    }
}

/// Shrinks a large buffer. Long bodies are rare, so their memory shouldn't be kept for the rest of
/// the crawl.
fn shrink(buffer: &mut Vec<u8>) {
    buffer.truncate(MAX_KEPT_BYTES);
    buffer.shrink_to(MAX_KEPT_BYTES);
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::MultiGzDecoder;

    use super::RecordCompressor;

    #[test]
    fn a_reused_compressor_writes_the_same_bytes_as_a_new_one() {
        let noise: Vec<u8> = (0..300_000u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        let inputs: [&[&[u8]]; 4] = [&[], &[b"", b"a"], &[b"head", &noise], &[b"short"]];
        let mut used = RecordCompressor::new(1);
        let mut all = Vec::new();
        for parts in inputs {
            let (mut first, mut second) = (Vec::new(), Vec::new());
            used.member(parts, &mut first);
            RecordCompressor::new(1).member(parts, &mut second);
            assert!(first == second);
            all.extend(first);
        }
        let mut plain = Vec::new();
        MultiGzDecoder::new(&all[..])
            .read_to_end(&mut plain)
            .unwrap();
        assert!(plain == [b"ahead".as_slice(), &noise, b"short"].concat());
    }
}

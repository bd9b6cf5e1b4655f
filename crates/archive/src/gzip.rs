//! One gzip member per record.

use libdeflater::{CompressionLvl, Compressor};

/// The most bytes of a buffer that is kept from one record to the next.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// A compressor whose tables and buffers serve record after record: setting them up anew costs
/// more than compressing the short records that each capture has.
pub(crate) struct Gzip {
    compressor: Compressor,
    /// The parts of a record, one after the other.
    joined: Vec<u8>,
    /// A member, with room for one that can't be made shorter.
    member: Vec<u8>,
}

impl Gzip {
    /// Begins at a level from 0 to 12.
    pub(crate) fn new(level: i32) -> Gzip {
        Gzip {
            compressor: Compressor::new(CompressionLvl::new(level).unwrap_or_default()),
            joined: Vec::new(),
            member: Vec::new(),
        }
    }

    /// Appends to `out` one member that holds the parts one after the other.
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
        let most = self.compressor.gzip_compress_bound(data.len());
        if self.member.len() < most {
            self.member.resize(most, 0);
        }
        let length = self
            .compressor
            .gzip_compress(data, &mut self.member)
            .expect("invariant: no member is longer than its bound");
        out.extend_from_slice(&self.member[..length]);
        // A long body is rare, and its room would be held for the rest of the crawl.
        for buffer in [&mut self.joined, &mut self.member] {
            buffer.truncate(MAX_KEPT_BYTES);
            buffer.shrink_to(MAX_KEPT_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::MultiGzDecoder;

    use super::Gzip;

    #[test]
    fn ours_a_used_compressor_gives_the_bytes_of_a_new_one() {
        let noise: Vec<u8> = (0..300_000u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        let inputs: [&[&[u8]]; 4] = [&[], &[b"", b"a"], &[b"head", &noise], &[b"short"]];
        let mut used = Gzip::new(1);
        let mut all = Vec::new();
        for parts in inputs {
            let (mut first, mut second) = (Vec::new(), Vec::new());
            used.member(parts, &mut first);
            Gzip::new(1).member(parts, &mut second);
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

//! One gzip member per record.

use flate2::{Compress, Compression, FlushCompress, Status};

/// Largest window, which deflate and gzip allow: 32 KiB.
const WINDOW_BITS: u8 = 15;
/// The least that a member needs beyond its data: header, trailer, an empty block.
const MIN_OVERHEAD: usize = 512;

/// A compressor whose tables serve record after record: setting them up anew costs more
/// than compressing the short records that each capture has.
pub(crate) struct Gzip(Compress);

impl Gzip {
    pub(crate) fn new(level: u32) -> Gzip {
        Gzip(Compress::new_gzip(
            Compression::new(level.min(9)),
            WINDOW_BITS,
        ))
    }

    /// Appends to `out` one member that holds the parts one after the other. The parts
    /// are compressed where they lie, not joined first.
    pub(crate) fn member(&mut self, parts: &[&[u8]], out: &mut Vec<u8>) {
        self.0.reset();
        for part in parts {
            let begin = self.0.total_in();
            while let Some(rest) = usize::try_from(self.0.total_in() - begin)
                .ok()
                .and_then(|done| part.get(done..))
                .filter(|rest| !rest.is_empty())
            {
                out.reserve(MIN_OVERHEAD + rest.len() / 4);
                self.step(rest, out, FlushCompress::None);
            }
        }
        loop {
            out.reserve(MIN_OVERHEAD);
            if self.step(&[], out, FlushCompress::Finish) == Status::StreamEnd {
                return;
            }
        }
    }

    fn step(&mut self, input: &[u8], out: &mut Vec<u8>, flush: FlushCompress) -> Status {
        self.0
            .compress_vec(input, out, flush)
            .expect("invariant: deflate takes any input where it has room for output")
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

//! Compresses gzip members with zlib-rs, for builds without the feature `fast`. Members are a third
//! larger than with libdeflate.

use flate2::{Compress, Compression, FlushCompress, Status};

/// The largest window of gzip members, as a power of two.
const WINDOW_BITS: u8 = 15;

/// Compresses data to single gzip members with zlib-rs.
pub(super) struct GzipMemberCompressor(Compress);

impl GzipMemberCompressor {
    pub(super) fn new(level: i32) -> GzipMemberCompressor {
        let level = u32::try_from(level).unwrap_or_default().min(9);
        GzipMemberCompressor(Compress::new_gzip(Compression::new(level), WINDOW_BITS))
    }

    /// Compresses the data to one gzip member, and appends it to `out`.
    pub(super) fn member(&mut self, mut data: &[u8], out: &mut Vec<u8>) {
        self.0.reset();
        loop {
            out.reserve(data.len() / 2 + 256);
            let before = self.0.total_in();
            let status = self
                .0
                .compress_vec(data, out, FlushCompress::Finish)
                .expect("invariant: a stream that was reset takes any data");
            if status == Status::StreamEnd {
                return;
            }
            let read = usize::try_from(self.0.total_in() - before).unwrap_or(data.len());
            data = &data[read..];
        }
    }
}

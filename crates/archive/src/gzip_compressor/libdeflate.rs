//! Compresses gzip members with libdeflate.

use libdeflater::CompressionLvl;

use super::shrink;

/// Compresses data to single gzip members with libdeflate.
pub(super) struct GzipMemberCompressor {
    inner: libdeflater::Compressor,
    /// A buffer for the compressed member, long enough for data that can't be compressed.
    member: Vec<u8>,
}

impl GzipMemberCompressor {
    pub(super) fn new(level: i32) -> GzipMemberCompressor {
        GzipMemberCompressor {
            inner: libdeflater::Compressor::new(CompressionLvl::new(level).unwrap_or_default()),
            member: Vec::new(),
        }
    }

    /// Compresses the data to one gzip member, and appends it to `out`.
    pub(super) fn member(&mut self, data: &[u8], out: &mut Vec<u8>) {
        let bound = self.inner.gzip_compress_bound(data.len());
        if self.member.len() < bound {
            self.member.resize(bound, 0);
        }
        let length = self
            .inner
            .gzip_compress(data, &mut self.member)
            .expect("invariant: no member is longer than its bound");
        out.extend_from_slice(&self.member[..length]);
        shrink(&mut self.member);
    }
}

//! Zstandard frames (RFC 8878), each with one WARC record.

use std::io::{self, BufRead, ErrorKind, Read};

use crate::gzip_compressor::{join, shrink};

/// The level of compression. Level 1 takes two thirds of the time of gzip's level 1, for about as
/// many bytes.
const LEVEL: i32 = 1;

/// Compresses records to frames with checksums.
pub(crate) struct ZstdCompressor {
    inner: zstd::bulk::Compressor<'static>,
    joined: Vec<u8>,
    frame: Vec<u8>,
}

impl Default for ZstdCompressor {
    fn default() -> ZstdCompressor {
        let mut inner = zstd::bulk::Compressor::new(LEVEL).expect("invariant: the level is valid");
        inner
            .include_checksum(true)
            .expect("invariant: checksums are supported");
        ZstdCompressor {
            inner,
            joined: Vec::new(),
            frame: Vec::new(),
        }
    }
}

impl ZstdCompressor {
    /// Joins the parts, compresses them to one frame, and appends it to `out`.
    pub(crate) fn frame(&mut self, parts: &[&[u8]], out: &mut Vec<u8>) {
        join(parts, &mut self.joined);
        self.frame.clear();
        self.frame
            .reserve(zstd::zstd_safe::compress_bound(self.joined.len()));
        self.inner
            .compress_to_buffer(&self.joined, &mut self.frame)
            .expect("invariant: no frame is longer than its bound");
        out.extend_from_slice(&self.frame);
        shrink(&mut self.joined);
        shrink(&mut self.frame);
    }
}

/// Decodes one frame, and consumes no byte after it.
pub(crate) struct FrameDecoder<R: BufRead>(zstd::stream::read::Decoder<'static, R>);

impl<R: BufRead> FrameDecoder<R> {
    pub(crate) fn new(input: R) -> io::Result<FrameDecoder<R>> {
        let decoder = zstd::stream::read::Decoder::with_buffer(input)?;
        Ok(FrameDecoder(decoder.single_frame()))
    }
}

impl<R: BufRead> Read for FrameDecoder<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out).map_err(|error| match error.kind() {
            // libzstd reports damaged data as an error of the kind `Other`.
            ErrorKind::Other => io::Error::new(ErrorKind::InvalidData, error),
            _ => error,
        })
    }
}

//! Replaces the decoder in a build without the feature `zstd`.

use std::io::{self, BufRead, ErrorKind, Read};
use std::marker::PhantomData;

/// The first byte of a frame (RFC 8878 section 3.1.1).
pub(crate) const FIRST_BYTE: u8 = 0x28;

pub(crate) fn unsupported() -> io::Error {
    let reason = "it is compressed with Zstandard, which this build can't read (feature `zstd`)";
    io::Error::new(ErrorKind::Unsupported, reason)
}

/// Stands in for the decoder of Zstandard frames. Creating one fails.
pub(crate) struct FrameDecoder<R>(PhantomData<R>);

impl<R: BufRead> FrameDecoder<R> {
    pub(crate) fn new(_input: R) -> io::Result<FrameDecoder<R>> {
        Err(unsupported())
    }
}

impl<R> Read for FrameDecoder<R> {
    fn read(&mut self, _out: &mut [u8]) -> io::Result<usize> {
        Err(unsupported())
    }
}

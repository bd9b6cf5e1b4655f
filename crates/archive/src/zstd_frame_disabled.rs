//! Replaces the decoder in a build without the feature `zstd`.

use std::io::{self, BufRead, ErrorKind, Read};
use std::marker::PhantomData;

pub(crate) fn unsupported() -> io::Error {
    let reason = "it is compressed with Zstandard, which this build can't read (feature `zstd`)";
    io::Error::new(ErrorKind::Unsupported, reason)
}

/// Replaces the decoder of Zstandard frames. [`FrameDecoder::new`] always fails.
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

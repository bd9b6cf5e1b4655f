//! Replaces the decoder in a build without the feature `zstd`. In such a build the coding is
//! unknown, and `Accept-Encoding` doesn't list it.

use std::io::{self, BufRead, ErrorKind};

pub(super) const IS_BUILT_IN: bool = false;

pub(super) fn open(_inner: Box<dyn BufRead + '_>) -> io::Result<Box<dyn BufRead + '_>> {
    Err(io::Error::new(ErrorKind::Unsupported, "zstd"))
}

//! Decodes zstd (RFC 8878).

use std::io::{self, BufRead, BufReader};

pub(super) const IS_BUILT_IN: bool = true;
/// Maximum window of zstd frames in HTTP, as a power of two (RFC 9659): 8 MiB.
const WINDOW_LOG: u32 = 23;

pub(super) fn open<'a>(inner: Box<dyn BufRead + 'a>) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(inner)?;
    decoder.window_log_max(WINDOW_LOG)?;
    Ok(Box::new(BufReader::new(decoder)))
}

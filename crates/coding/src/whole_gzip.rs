//! Decodes a whole gzip body at once, in less than half the time of the decoder that also handles
//! other bodies.

use libdeflater::{Decompressor, crc32};
use memchr::memmem;

/// Returns the content of a body that is a single, valid gzip member (RFC 1952). `None` for any
/// other body, or if the content is longer than `max` bytes.
pub(super) fn decode(body: &[u8], max: usize) -> Option<Vec<u8>> {
    let (_, trailer) = body.split_last_chunk::<8>()?;
    let [crc, length] = [&trailer[..4], &trailer[4..]]
        .map(|field| u32::from_le_bytes(field.try_into().unwrap_or_default()));
    let length = usize::try_from(length)
        .ok()
        .filter(|&length| length <= max)?;
    // The decoder ignores bytes after the first member. If the first member's trailer equals the
    // last eight bytes of the body, and these occur only once, the member ends with the body.
    if memmem::find(body, trailer) != Some(body.len() - trailer.len()) {
        return None;
    }
    let mut content = vec![0; length];
    let written = Decompressor::new().gzip_decompress(body, &mut content);
    let is_single = written == Ok(length) && crc32(&content) == crc;
    is_single.then_some(content)
}

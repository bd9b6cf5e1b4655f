//! Compresses each WARC record as one gzip member.
//!
//! A body that is compressed already, such as a page with a content coding or an image, is stored
//! in the member as it is. Compressing it again would take longer than all other work on the
//! record, and would save about one percent.

#[cfg_attr(not(feature = "fast"), path = "gzip_compressor/zlib_rs.rs")]
mod libdeflate;

use flate2::{Compress, Compression, Crc, FlushCompress};

use self::libdeflate::GzipMemberCompressor;

/// Maximum capacity of a buffer that is kept for the next record, in bytes.
const MAX_KEPT_BYTES: usize = 1 << 20;
/// The deflate level of records that are not compressed yet. Level 1 takes half the time of the
/// usual level 6, and about an eighth more space. This suits a crawl, where one processor must keep
/// up with many hosts.
const LEVEL: i32 = 1;
/// Records shorter than this, in bytes, are compressed by zlib-rs: most requests and metadata. For
/// such records, zlib-rs takes a third of libdeflate's time, and its output is a tenth larger.
const SHORT_BYTES: usize = 2048;
/// The header of a member (RFC 1952 section 2.3): deflate, no name, no time, unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// An empty last block, which ends a deflate stream (RFC 1951 section 3.2.3).
const LAST_BLOCK: [u8; 2] = [3, 0];
/// Maximum length of a stored block, in bytes (RFC 1951 section 3.2.4).
const MAX_STORED_BYTES: usize = 0xffff;
/// Number of bytes that [`is_compressed`] examines.
const SAMPLE_BYTES: usize = 1024;

/// Compresses records to gzip members.
pub(crate) struct GzipCompressor {
    compressor: GzipMemberCompressor,
    /// Compresses short records, and the parts of a record before a stored body.
    quick: Compress,
    /// The concatenated parts of a record.
    joined: Vec<u8>,
}

impl Default for GzipCompressor {
    fn default() -> GzipCompressor {
        GzipCompressor {
            compressor: GzipMemberCompressor::new(LEVEL),
            quick: Compress::new(Compression::fast(), false),
            joined: Vec::new(),
        }
    }
}

impl GzipCompressor {
    /// Joins the parts, compresses them to one gzip member, and appends it to `out`.
    pub(crate) fn member(&mut self, parts: &[&[u8]], out: &mut Vec<u8>) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let stored = parts.iter().position(|part| is_compressed(part));
        if stored.is_some() || length < SHORT_BYTES {
            return self.quick_member(parts, stored.unwrap_or(parts.len()), out);
        }
        join(parts, &mut self.joined);
        self.compressor.member(&self.joined, out);
        shrink(&mut self.joined);
    }

    /// Appends a member. The parts before index `stored` are compressed, and all others stored.
    fn quick_member(&mut self, parts: &[&[u8]], stored: usize, out: &mut Vec<u8>) {
        let mut crc = Crc::new();
        parts.iter().for_each(|part| crc.update(part));
        let (compressed, stored) = parts.split_at(stored);
        out.extend_from_slice(&HEADER);
        self.quick.reset();
        for part in compressed {
            self.deflate(part, FlushCompress::None, out);
        }
        if stored.is_empty() {
            self.deflate(&[], FlushCompress::Finish, out);
        } else {
            // A stored block begins at a byte boundary. This flush advances to one.
            self.deflate(&[], FlushCompress::Sync, out);
            let bytes: usize = stored.iter().map(|part| part.len()).sum();
            out.reserve(bytes + bytes / 1000 + 64);
            let blocks = stored.iter().flat_map(|part| part.chunks(MAX_STORED_BYTES));
            blocks.for_each(|block| push_stored(block, out));
            out.extend_from_slice(&LAST_BLOCK);
        }
        out.extend_from_slice(&crc.sum().to_le_bytes());
        out.extend_from_slice(&crc.amount().to_le_bytes());
    }

    /// Compresses data into the current member, and writes all output that `flush` requires.
    fn deflate(&mut self, mut data: &[u8], flush: FlushCompress, out: &mut Vec<u8>) {
        loop {
            out.reserve(data.len() / 2 + 256);
            let before = self.quick.total_in();
            self.quick
                .compress_vec(data, out, flush)
                .expect("invariant: a stream that was reset takes any data");
            let read = usize::try_from(self.quick.total_in() - before).unwrap_or(data.len());
            data = &data[read..];
            // If the output buffer has room left, the compressor holds back no more output.
            if data.is_empty() && out.len() < out.capacity() {
                return;
            }
        }
    }
}

/// Replaces the content of `joined` with the concatenated parts.
pub(crate) fn join(parts: &[&[u8]], joined: &mut Vec<u8>) {
    joined.clear();
    joined.reserve(parts.iter().map(|part| part.len()).sum());
    parts.iter().for_each(|part| joined.extend_from_slice(part));
}

/// Appends a stored block that is not the last one (RFC 1951 section 3.2.4).
fn push_stored(block: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(block.len()).expect("invariant: no block is longer");
    out.push(0);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(block);
}

/// Returns whether data looks compressed (or random). Estimates how often two bytes from its middle
/// are equal: in one of 256 pairs if all values are equally frequent, in about one of 20 in text,
/// and in one of 64 in base64.
fn is_compressed(data: &[u8]) -> bool {
    let begin = data.len().saturating_sub(SAMPLE_BYTES) / 2;
    let sample = &data[begin..][..data.len().min(SAMPLE_BYTES)];
    if sample.len() < SAMPLE_BYTES / 4 {
        return false;
    }
    let mut counts = [0u32; 256];
    for &byte in sample {
        counts[usize::from(byte)] += 1;
    }
    let equal_pairs: u32 = counts.iter().map(|&n| n * n.saturating_sub(1)).sum();
    let pairs = sample.len() * (sample.len() - 1);
    (equal_pairs as usize) < pairs / 128
}

/// Shrinks a large buffer. Long bodies are rare, so their memory is not kept for the rest of the
/// crawl.
pub(crate) fn shrink(buffer: &mut Vec<u8>) {
    buffer.truncate(MAX_KEPT_BYTES);
    buffer.shrink_to(MAX_KEPT_BYTES);
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use flate2::Compression;
    use flate2::read::MultiGzDecoder;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::{GzipCompressor, MAX_STORED_BYTES, is_compressed};

    fn member(parts: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        GzipCompressor::default().member(parts, &mut out);
        out
    }

    fn plain(members: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        MultiGzDecoder::new(members)
            .read_to_end(&mut plain)
            .unwrap();
        plain
    }

    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 1u64;
        let next = |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        };
        (0..bytes).map(next).collect()
    }

    /// Returns a page of random words in tags, so that the compressed page looks random.
    fn page(words: usize) -> Vec<u8> {
        let letters = noise(5 * words);
        let words = letters
            .chunks_exact(5)
            .map(|word| data_encoding::BASE32.encode(word));
        words.collect::<Vec<_>>().join("</p><p>").into_bytes()
    }

    fn gzipped(data: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_reused_compressor_writes_the_same_bytes_as_a_new_one() {
        let noise = noise(300_000);
        let text = b"text of a page, ".repeat(1000);
        let inputs: [&[&[u8]]; 5] = [
            &[],
            &[b"", b"a"],
            &[b"head", &noise, b"end"],
            &[b"head", &text, b"end"],
            &[b"short"],
        ];
        let mut used = GzipCompressor::default();
        let mut all = Vec::new();
        for parts in inputs {
            let mut of_used = Vec::new();
            used.member(parts, &mut of_used);
            assert!(of_used == member(parts));
            all.extend(of_used);
        }
        let parts = [b"ahead".as_slice(), &noise, b"endhead", &text, b"endshort"];
        assert!(plain(&all) == parts.concat());
    }

    #[test]
    fn a_compressed_body_is_stored_between_compressed_header_fields() {
        let body = gzipped(&page(30_000));
        assert!(
            body.len() > MAX_STORED_BYTES,
            "one block holds {}",
            body.len()
        );
        let head = b"name: value\r\n".repeat(40);
        let out = member(&[&head, &body, b"\r\n\r\n"]);
        let begin = out.windows(1000).position(|window| *window == body[..1000]);
        assert!(
            begin.is_some_and(|begin| begin < head.len() / 2),
            "{begin:?}"
        );
        assert!(out.len() < body.len() + head.len() / 2);
        assert!(plain(&out) == [&head[..], &body, b"\r\n\r\n"].concat());
    }

    #[test]
    fn only_compressed_data_looks_compressed() {
        let html = String::from_utf8(page(500)).unwrap();
        let base64 = data_encoding::BASE64.encode(&noise(4_000));
        let wide: Vec<u8> = html.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let chinese: String = ('\u{4e00}'..'\u{5500}').collect();
        for text in [
            html.as_bytes(),
            base64.as_bytes(),
            &wide,
            chinese.as_bytes(),
            &[0; 4000],
        ] {
            assert!(!is_compressed(text));
        }
        assert!(is_compressed(&gzipped(html.as_bytes())));
        assert!(is_compressed(&noise(4_000)));
        assert!(!is_compressed(&noise(100)), "too short to tell");
    }

    proptest! {
        #[test]
        fn every_member_is_read_back(
            parts in prop::collection::vec(
                prop_oneof![
                    prop::collection::vec(any::<u8>(), 0..3_000),
                    "[a-z]{0,3000}".prop_map(String::into_bytes),
                    Just(noise(70_000)),
                ],
                0..6,
            )
        ) {
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            prop_assert!(plain(&member(&parts)) == parts.concat());
        }
    }
}

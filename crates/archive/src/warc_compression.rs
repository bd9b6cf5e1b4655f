//! The compressions of WARC files: their suffixes, and a compressor for records.

use std::io;

use crate::gzip_compressor::GzipCompressor;
#[cfg(feature = "zstd")]
use crate::zstd_frame::ZstdCompressor;

const GZIP_SUFFIX: &str = ".warc.gz";
const ZSTD_SUFFIX: &str = ".warc.zst";
const PLAIN_SUFFIX: &str = ".warc";

/// The first bytes of a Zstandard frame (RFC 8878 section 3.1.1).
pub const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How a WARC file is compressed: each record on its own, so that it can be read alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WarcCompression {
    /// A gzip member per record (WARC 1.1 annex D).
    #[default]
    Gzip,
    /// A Zstandard frame per record (IIPC's "Zstandard Compression in WARC Files").
    #[cfg(feature = "zstd")]
    Zstd,
    /// No compression. Only the block of a record has a checksum, not its fields.
    Plain,
}

impl WarcCompression {
    /// Returns the compression of a file, according to the suffix of its name. `None` if the name
    /// is not that of a WARC file.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] for Zstandard in a build without the feature `zstd`.
    pub fn of_file(name: &str) -> io::Result<Option<WarcCompression>> {
        if name.ends_with(GZIP_SUFFIX) {
            Ok(Some(WarcCompression::Gzip))
        } else if name.ends_with(PLAIN_SUFFIX) {
            Ok(Some(WarcCompression::Plain))
        } else if name.ends_with(ZSTD_SUFFIX) {
            #[cfg(feature = "zstd")]
            return Ok(Some(WarcCompression::Zstd));
            #[cfg(not(feature = "zstd"))]
            return Err(crate::zstd_frame::unsupported());
        } else {
            Ok(None)
        }
    }

    /// Returns the suffix of file names: `.warc.gz`, `.warc.zst` or `.warc`.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            WarcCompression::Gzip => GZIP_SUFFIX,
            #[cfg(feature = "zstd")]
            WarcCompression::Zstd => ZSTD_SUFFIX,
            WarcCompression::Plain => PLAIN_SUFFIX,
        }
    }
}

/// Returns a file name without the suffix of a WARC file. `None` if it has none of the suffixes.
#[must_use]
pub fn strip_warc_suffix(name: &str) -> Option<&str> {
    let mut suffixes = [GZIP_SUFFIX, ZSTD_SUFFIX, PLAIN_SUFFIX].into_iter();
    suffixes.find_map(|suffix| name.strip_suffix(suffix))
}

/// Compresses records. Reuse a compressor for many records, because creating one takes longer than
/// compressing a short record.
pub(crate) enum RecordCompressor {
    Gzip(Box<GzipCompressor>),
    #[cfg(feature = "zstd")]
    Zstd(ZstdCompressor),
    Plain,
}

impl RecordCompressor {
    pub(crate) fn new(compression: WarcCompression) -> RecordCompressor {
        match compression {
            WarcCompression::Gzip => RecordCompressor::Gzip(Box::default()),
            #[cfg(feature = "zstd")]
            WarcCompression::Zstd => RecordCompressor::Zstd(ZstdCompressor::default()),
            WarcCompression::Plain => RecordCompressor::Plain,
        }
    }

    /// Returns the approximate size in bytes of the records of a capture whose body has `body`
    /// bytes.
    pub(crate) fn expected_bytes(&self, body: usize) -> usize {
        let compressed = match self {
            RecordCompressor::Plain => body,
            _ => body / 3,
        };
        2048 + compressed
    }

    /// Compresses a record, given in parts, and appends it to `out`.
    pub(crate) fn append(&mut self, parts: &[&[u8]], out: &mut Vec<u8>) {
        match self {
            RecordCompressor::Gzip(gzip) => gzip.member(parts, out),
            #[cfg(feature = "zstd")]
            RecordCompressor::Zstd(zstd) => zstd.frame(parts, out),
            RecordCompressor::Plain => {
                out.reserve(parts.iter().map(|part| part.len()).sum());
                parts.iter().for_each(|part| out.extend_from_slice(part));
            }
        }
    }
}

//! Writes the files of a static search, compressed with gzip because not every server compresses
//! files.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use flate2::{Compression, GzBuilder};
use xxhash_rust::xxh3::xxh3_64;

use crate::export::ExportError;

/// The compressed size of a written file and a hash of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrittenGzipFile {
    pub(super) bytes: u64,
    pub(super) hash: u64,
}

/// Writes `raw` to a compressed file. The bytes of the file depend only on `raw`.
pub(super) fn write(path: &Path, raw: &[u8]) -> Result<WrittenGzipFile, ExportError> {
    let gzip = || -> io::Result<Vec<u8>> {
        // Write no time and no name into the gzip header, so that the bytes depend only on `raw`.
        let out = Vec::with_capacity(raw.len() / 3);
        let mut gzip = GzBuilder::new().write(out, Compression::best());
        gzip.write_all(raw)?;
        gzip.finish()
    };
    let bytes = gzip().map_err(ExportError::at(path))?;
    fs::write(path, &bytes).map_err(ExportError::at(path))?;
    Ok(WrittenGzipFile {
        bytes: bytes.len() as u64,
        hash: xxh3_64(&bytes),
    })
}

/// Appends a number in as few bytes as possible: 7 bits per byte, the lowest bits first.
pub(super) fn varint(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push((number & 0x7F) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::varint;

    #[test]
    fn numbers_take_seven_bits_a_byte() {
        let check = |number: u32, expected: &[u8]| {
            let mut out = Vec::new();
            varint(&mut out, number);
            assert_eq!(out, expected, "{number}");
        };
        check(0, &[0]);
        check(127, &[127]);
        check(128, &[128, 1]);
        check(u32::MAX, &[255, 255, 255, 255, 15]);
    }
}

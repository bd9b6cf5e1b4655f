//! Writes the index in compressed blocks (the ZipNum format). Each block is a gzip member with some
//! lines of the index, and a second file lists the offset of each block. To look up a URL in a
//! large package, a client fetches only one block.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::path::Path;

use crawl_archive::{DigestAlgorithm, MAX_LINE_BYTES, open_regular};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::zip_file_writer::ZipFileWriter;

/// The number of index lines per block. Other programs use this number too.
const LINES_OF_BLOCK: usize = 3000;
/// The names of the index file and of the list of its blocks.
const INDEX: &str = "index.cdx.gz";
const BLOCKS: &str = "index.idx";

/// Writes the sorted index and the list of its blocks to the package. The list is kept in memory:
/// about 150 bytes per 3,000 captures.
pub(crate) fn write(sorted: &Path, zip: &mut ZipFileWriter) -> io::Result<()> {
    let mut lines = BufReader::with_capacity(1 << 16, open_regular(sorted)?);
    let format = json!({ "format": "cdxj-gzip-1.0", "filename": INDEX });
    let mut blocks = format!("!meta 0 {format}\n").into_bytes();
    zip.begin_stored(&format!("indexes/{INDEX}"))?;
    while let Some(block) = next_block(&mut lines)? {
        let place = json!({
            "offset": zip.entry_bytes(),
            "length": block.gzip.len(),
            "digest": DigestAlgorithm::Sha256.of(&[&block.gzip]),
            "filename": INDEX,
        });
        blocks.extend_from_slice(&block.key);
        writeln!(blocks, " {place}")?;
        zip.write_all(&block.gzip)?;
    }
    zip.begin_deflated(&format!("indexes/{BLOCKS}"))?;
    zip.write_all(&blocks)
}

struct Block {
    /// The key and the time in the block's first line.
    key: Vec<u8>,
    gzip: Vec<u8>,
}

fn next_block(lines: &mut impl BufRead) -> io::Result<Option<Block>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    let mut line = Vec::new();
    let mut key = None;
    for _ in 0..LINES_OF_BLOCK {
        line.clear();
        // The limit never truncates a line, because this program wrote the index and never writes
        // longer lines.
        if (&mut *lines)
            .take(MAX_LINE_BYTES as u64)
            .read_until(b'\n', &mut line)?
            == 0
        {
            break;
        }
        let ends = line.iter().enumerate().filter(|(_, byte)| **byte == b' ');
        let end = ends.map(|(at, _)| at).nth(1).unwrap_or(line.len());
        key.get_or_insert_with(|| line[..end].to_vec());
        gzip.write_all(&line)?;
    }
    let gzip = gzip.finish()?;
    Ok(key.map(|key| Block { key, gzip }))
}

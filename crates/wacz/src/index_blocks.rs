//! Writes the index in blocks (ZipNum): each is a gzip member of some lines, and a second file
//! lists their offsets. A client of a large package fetches a single block to look up a URL.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::path::Path;

use crawl_archive::{MAX_LINE_BYTES, open_regular};
use data_encoding::HEXLOWER;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::zip_file::ZipFile;

/// Lines in a block, as other programs write it.
const LINES_OF_BLOCK: usize = 3000;
/// The index, and the list of its blocks.
const INDEX: &str = "index.cdx.gz";
const BLOCKS: &str = "index.idx";

/// Writes a sorted index as two entries. The list of blocks is kept in memory: about 150 bytes for
/// 3,000 captures.
pub(crate) fn write(sorted: &Path, zip: &mut ZipFile) -> io::Result<()> {
    let mut lines = BufReader::with_capacity(1 << 16, open_regular(sorted)?);
    let format = json!({ "format": "cdxj-gzip-1.0", "filename": INDEX });
    let mut blocks = format!("!meta 0 {format}\n").into_bytes();
    zip.begin_stored(&format!("indexes/{INDEX}"))?;
    while let Some(block) = next_block(&mut lines)? {
        let place = json!({
            "offset": zip.entry_bytes(),
            "length": block.gzip.len(),
            "digest": format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(&block.gzip))),
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
    /// Key and time of the block's first line.
    key: Vec<u8>,
    gzip: Vec<u8>,
}

fn next_block(lines: &mut impl BufRead) -> io::Result<Option<Block>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    let mut line = Vec::new();
    let mut key = None;
    for _ in 0..LINES_OF_BLOCK {
        line.clear();
        // Our own code wrote the index, so no line is longer.
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

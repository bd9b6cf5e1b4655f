//! The ZIP file: entries written one after the other, each with its digest.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crawl_archive::create_anew;
use data_encoding::HEXLOWER;
use serde::Serialize;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// An entry as `datapackage.json` lists it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Resource {
    name: String,
    path: String,
    hash: String,
    bytes: u64,
}

/// A ZIP file under way.
pub(crate) struct ZipFile {
    zip: ZipWriter<BufWriter<File>>,
    resources: Vec<Resource>,
    entry: Option<Entry>,
}

/// The entry that is being written.
struct Entry {
    path: String,
    hash: Sha256,
    bytes: u64,
}

impl ZipFile {
    pub(crate) fn create(path: &Path) -> io::Result<ZipFile> {
        let file = BufWriter::with_capacity(1 << 16, create_anew(path)?);
        Ok(ZipFile {
            zip: ZipWriter::new(file),
            resources: Vec::new(),
            entry: None,
        })
    }

    /// Begins an entry that is stored as it is: what is compressed already is read in pieces.
    pub(crate) fn begin_stored(&mut self, path: &str) -> io::Result<()> {
        self.begin(path, CompressionMethod::Stored)
    }

    /// Begins an entry that is compressed.
    pub(crate) fn begin_deflated(&mut self, path: &str) -> io::Result<()> {
        self.begin(path, CompressionMethod::Deflated)
    }

    fn begin(&mut self, path: &str, method: CompressionMethod) -> io::Result<()> {
        self.end_entry();
        let options = SimpleFileOptions::default()
            .compression_method(method)
            // The same crawl gives the same bytes; `datapackage.json` says when it was packed.
            .last_modified_time(DateTime::default())
            // An entry's size is known at its end only, and may be beyond 4 GiB.
            .large_file(true);
        self.zip.start_file(path, options)?;
        self.entry = Some(Entry {
            path: path.to_owned(),
            hash: Sha256::new(),
            bytes: 0,
        });
        Ok(())
    }

    fn end_entry(&mut self) {
        if let Some(entry) = self.entry.take() {
            let name = entry.path.rsplit('/').next().unwrap_or_default();
            self.resources.push(Resource {
                name: name.to_lowercase(),
                hash: labelled(entry.hash),
                bytes: entry.bytes,
                path: entry.path,
            });
        }
    }

    /// The bytes of the entry so far: the place where the next ones begin.
    pub(crate) fn entry_bytes(&self) -> u64 {
        self.entry.as_ref().map_or(0, |entry| entry.bytes)
    }

    /// All entries so far; the last one ends here.
    pub(crate) fn resources(&mut self) -> &[Resource] {
        self.end_entry();
        &self.resources
    }

    /// Ends the file; it is on the disk afterwards.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.end_entry();
        let file = self.zip.finish()?.into_inner()?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    }
}

impl Write for ZipFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.zip.write(bytes)?;
        if let Some(entry) = &mut self.entry {
            entry.hash.update(&bytes[..written]);
            entry.bytes += written as u64;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.zip.flush()
    }
}

/// The digest as WACZ writes it.
pub(crate) fn labelled(hash: Sha256) -> String {
    format!("sha256:{}", HEXLOWER.encode(&hash.finalize()))
}

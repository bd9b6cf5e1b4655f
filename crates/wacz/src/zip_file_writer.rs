//! Writes a ZIP file, entry by entry, and computes the digest of each entry.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crawl_archive::replace_file;
use data_encoding::HEXLOWER;
use ring::digest::{Context, SHA256};
use serde::Serialize;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// An entry of the ZIP file, in the form in which `datapackage.json` lists it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DataPackageResource {
    name: String,
    path: String,
    hash: String,
    bytes: u64,
}

/// Writes a ZIP file. For each entry, begin it and write its content. At the end, call
/// [`ZipFileWriter::finish`].
pub(crate) struct ZipFileWriter {
    zip: ZipWriter<BufWriter<File>>,
    resources: Vec<DataPackageResource>,
    entry: Option<OpenZipEntry>,
}

/// The entry that is being written.
struct OpenZipEntry {
    path: String,
    hash: Context,
    bytes: u64,
}

impl ZipFileWriter {
    pub(crate) fn create(path: &Path) -> io::Result<ZipFileWriter> {
        let file = BufWriter::with_capacity(1 << 16, replace_file(path)?);
        Ok(ZipFileWriter {
            zip: ZipWriter::new(file),
            resources: Vec::new(),
            entry: None,
        })
    }

    /// Begins an uncompressed entry. Use this for data that is already compressed and that clients
    /// read in parts.
    pub(crate) fn begin_stored(&mut self, path: &str) -> io::Result<()> {
        self.begin(path, CompressionMethod::Stored)
    }

    /// Begins a compressed entry.
    pub(crate) fn begin_deflated(&mut self, path: &str) -> io::Result<()> {
        self.begin(path, CompressionMethod::Deflated)
    }

    fn begin(&mut self, path: &str, method: CompressionMethod) -> io::Result<()> {
        self.end_entry();
        let options = SimpleFileOptions::default()
            .compression_method(method)
            // Use a fixed time, because the same crawl must yield the same bytes.
            // `datapackage.json` states the time of packaging.
            .last_modified_time(DateTime::default())
            // Allow entries above 4 GiB. The size of an entry is known only when it ends.
            .large_file(true);
        self.zip.start_file(path, options)?;
        self.entry = Some(OpenZipEntry {
            path: path.to_owned(),
            hash: Context::new(&SHA256),
            bytes: 0,
        });
        Ok(())
    }

    fn end_entry(&mut self) {
        if let Some(entry) = self.entry.take() {
            let name = entry.path.rsplit('/').next().unwrap_or_default();
            self.resources.push(DataPackageResource {
                name: name.to_lowercase(),
                hash: labelled(entry.hash),
                bytes: entry.bytes,
                path: entry.path,
            });
        }
    }

    /// Returns the length of the current entry so far, which is also the offset of the next byte
    /// written to it.
    pub(crate) fn entry_bytes(&self) -> u64 {
        self.entry.as_ref().map_or(0, |entry| entry.bytes)
    }

    /// Ends the current entry and returns all entries written so far.
    pub(crate) fn resources(&mut self) -> &[DataPackageResource] {
        self.end_entry();
        &self.resources
    }

    /// Finishes the file, syncs it to disk and returns its length.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.end_entry();
        let file = self.zip.finish()?.into_inner()?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    }
}

impl Write for ZipFileWriter {
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

/// Returns a SHA-256 digest with the prefix `sha256:`, as WACZ requires.
pub(crate) fn labelled(hash: Context) -> String {
    format!("sha256:{}", HEXLOWER.encode(hash.finish().as_ref()))
}

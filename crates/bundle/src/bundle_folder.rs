//! Fills the folder of a bundle. Each file is written or copied once, and its digest and length are
//! recorded.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crawl_archive::{open_regular, replace_file, sha256_of};
use data_encoding::HEXLOWER;
use ring::digest::{Context, SHA256};

use crate::error::BundleError;

/// A file in a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BundledFile {
    /// The path relative to the folder of the bundle that is being filled, with `/` between
    /// folders.
    pub(crate) path: String,
    /// SHA-256 in lower-case hexadecimal digits.
    pub(crate) sha256: String,
    pub(crate) bytes: u64,
}

/// A folder of a bundle that is being filled. Records the digest and length of each file.
#[derive(Debug)]
pub(crate) struct BundleFolderWriter {
    folder: PathBuf,
    files: Vec<BundledFile>,
}

impl BundleFolderWriter {
    pub(crate) fn create(folder: PathBuf) -> Result<BundleFolderWriter, BundleError> {
        fs::create_dir_all(&folder).map_err(BundleError::write(&folder))?;
        Ok(BundleFolderWriter {
            folder,
            files: Vec::new(),
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns all files so far, sorted by path.
    pub(crate) fn files(&self) -> Vec<BundledFile> {
        let mut files = self.files.clone();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        files
    }

    pub(crate) fn write(&mut self, path: &str, text: &str) -> Result<(), BundleError> {
        self.write_with(path, |out| {
            out.write_all(text.as_bytes()).map_err(BundleError::Stream)
        })
    }

    /// Copies a file of the crawl's directory unchanged to `path`.
    pub(crate) fn copy(&mut self, from: &Path, path: &str) -> Result<(), BundleError> {
        let unreadable = BundleError::read(from);
        let mut file = open_regular(from).map_err(unreadable)?;
        self.write_with(path, |out| {
            let copied = io::copy(&mut file, out);
            copied.map(drop).map_err(BundleError::Stream)
        })
    }

    /// Creates a file and calls `fill` to write its content.
    pub(crate) fn write_with(
        &mut self,
        path: &str,
        fill: impl FnOnce(&mut HashingWriter) -> Result<(), BundleError>,
    ) -> Result<(), BundleError> {
        let to = self.place(path)?;
        let file = replace_file(&to).map_err(BundleError::write(&to))?;
        let mut out = HashingWriter {
            file: BufWriter::with_capacity(1 << 16, file),
            hash: Context::new(&SHA256),
            bytes: 0,
        };
        match fill(&mut out) {
            Err(BundleError::Stream(error)) => return Err(BundleError::write(&to)(error)),
            filled => filled?,
        }
        let (hash, bytes) = (out.hash, out.bytes);
        let file = out
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error);
        let synced = file.and_then(|file| file.sync_all());
        synced.map_err(BundleError::write(&to))?;
        self.files.push(BundledFile {
            path: path.to_owned(),
            sha256: HEXLOWER.encode(hash.finish().as_ref()),
            bytes,
        });
        Ok(())
    }

    /// Records a file that other code has written into the folder.
    pub(crate) fn list(&mut self, path: &str) -> Result<(), BundleError> {
        let written = self.folder.join(path);
        let (sha256, bytes) = digest(&written).map_err(BundleError::read(&written))?;
        self.files.push(BundledFile {
            path: path.to_owned(),
            sha256,
            bytes,
        });
        Ok(())
    }

    fn place(&self, path: &str) -> Result<PathBuf, BundleError> {
        let to = self.folder.join(path);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(BundleError::write(parent))?;
        }
        Ok(to)
    }
}

/// A file that is hashed while it is written.
pub(crate) struct HashingWriter {
    file: BufWriter<File>,
    hash: Context,
    bytes: u64,
}

impl Write for HashingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns the SHA-256 and the length of a file.
pub(crate) fn digest(path: &Path) -> io::Result<(String, u64)> {
    sha256_of(open_regular(path)?)
}

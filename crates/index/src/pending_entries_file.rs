//! Stores the entries of a run in a file until the run ends. Then a single pass can write each page
//! once, with all facts about it.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Seek as _, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::cross_page_update::{EntryVisitor, PendingEntrySource};
use crate::error::IndexError;
use crate::summing_sorter::unnamed_file;
use crawl_index_entry::IndexEntry;

/// A file of index entries, deleted when its handle is closed. First push entries, then flush, then
/// read.
#[derive(Debug)]
pub struct PendingEntriesFile {
    dir: PathBuf,
    file: BufWriter<File>,
    bytes: u64,
}

impl PendingEntriesFile {
    /// Creates an empty file in the folder of the index.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn new(dir: &Path) -> Result<PendingEntriesFile, IndexError> {
        let file = unnamed_file(dir).map_err(IndexError::disk(dir))?;
        Ok(PendingEntriesFile {
            dir: dir.to_path_buf(),
            file: BufWriter::new(file),
            bytes: 0,
        })
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn push(&mut self, entry: &IndexEntry) -> Result<(), IndexError> {
        let mut line = serde_json::to_vec(entry).unwrap_or_default();
        line.push(b'\n');
        self.bytes += line.len() as u64;
        let written = self.file.write_all(&line);
        written.map_err(IndexError::disk(&self.dir))
    }

    /// Returns the total size of all entries in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes buffered entries to the file. Must be called before the entries are read.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn flush(&mut self) -> Result<(), IndexError> {
        self.file.flush().map_err(IndexError::disk(&self.dir))
    }
}

impl PendingEntrySource for PendingEntriesFile {
    fn each(&self, visit: &mut EntryVisitor<'_>) -> Result<ControlFlow<()>, IndexError> {
        let disk = || IndexError::disk(&self.dir);
        let mut file = self.file.get_ref().try_clone().map_err(disk())?;
        file.rewind().map_err(disk())?;
        let (mut lines, mut line) = (BufReader::new(file), Vec::new());
        loop {
            line.clear();
            if lines.read_until(b'\n', &mut line).map_err(disk())? == 0 {
                return Ok(ControlFlow::Continue(()));
            }
            let entry = serde_json::from_slice(&line)
                .map_err(|_| IndexError::damaged(&self.dir, "an entry that waits can't be read"))?;
            if visit(entry)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }
}

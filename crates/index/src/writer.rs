//! Writing: pages in, pages out, commits.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use tantivy::schema::Schema;
use tantivy::store::{Compressor, ZstdCompressor};
use tantivy::{Index, IndexSettings, IndexWriter as Inner, TantivyDocument, Term};

use crate::directory::IndexDirectory;
use crate::document::document;
use crate::error::IndexError;
use crate::page::Page;
use crate::reconcile::{self, Reconciled};
use crate::schema::{Fields, check_format, schema, write_format};

/// Memory for pages that are not committed yet. Octets.
const BUFFER_OCTETS: usize = 48 << 20;

/// Octets of stored pages that are compressed together: small enough to show one result
/// without unpacking many pages.
const BLOCK_OCTETS: usize = 16 << 10;

/// Writes an index. There is one at a time for a directory.
///
/// What is put or dropped is seen by searches, and outlives the process, from the next
/// [`commit`](IndexWriter::commit) on; a kill loses what came after the last one, no more.
pub struct IndexWriter {
    dir: PathBuf,
    pub(crate) fields: Fields,
    pub(crate) inner: Inner<TantivyDocument>,
    note: Option<String>,
}

impl IndexWriter {
    /// Opens the index in `dir`, or begins one where there is none.
    ///
    /// # Errors
    /// [`IndexError`]: of another format, in use, damaged, or the disk.
    pub fn open(dir: &Path) -> Result<IndexWriter, IndexError> {
        let (schema, fields) = schema();
        match check_format(dir) {
            Ok(()) => {}
            Err(IndexError::Missing { .. }) => write_format(dir)?,
            Err(other) => return Err(other),
        }
        let index = open_index(dir, schema)?;
        let note = index.load_metas().map_err(IndexError::of(dir))?.payload;
        let inner = index
            .writer_with_num_threads(1, BUFFER_OCTETS)
            .map_err(IndexError::of(dir))?;
        Ok(IndexWriter {
            dir: dir.to_path_buf(),
            fields,
            inner,
            note,
        })
    }

    /// The note of the last commit: up to where its source was read.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Adds a page, in place of what stands under its URL.
    ///
    /// # Errors
    /// The disk.
    pub fn put(&mut self, page: &Page) -> Result<(), IndexError> {
        self.drop_url(&page.url);
        // Rules of some language may fail on a text; that costs this page alone.
        let document = catch_unwind(AssertUnwindSafe(|| document(&self.fields, page)));
        let Ok(document) = document else {
            return Ok(());
        };
        let added = self.inner.add_document(document);
        added.map_err(IndexError::of(&self.dir)).map(|_| ())
    }

    /// Takes a page out, if it is there.
    pub fn drop_url(&mut self, url: &str) {
        self.inner
            .delete_term(Term::from_field_text(self.fields.url, url));
    }

    /// Makes all of it durable and visible, with a note to go along.
    ///
    /// # Errors
    /// The disk. What the last commit held stands as it was.
    pub fn commit(&mut self, note: &str) -> Result<(), IndexError> {
        let error = IndexError::of(&self.dir);
        let mut prepared = self.inner.prepare_commit().map_err(&error)?;
        prepared.set_payload(note);
        prepared.commit().map_err(&error)?;
        self.note = Some(note.to_owned());
        Ok(())
    }

    /// Commits, then settles what only all pages together can tell: what they call each other,
    /// which of them are the same, and which may not be shown any more at `now` (seconds since
    /// 1970 UTC); then commits again.
    ///
    /// Reads each page once. It takes memory for the words of all links.
    ///
    /// # Errors
    /// The disk, or a damaged index.
    pub fn reconcile(&mut self, note: &str, now: i64) -> Result<Reconciled, IndexError> {
        self.commit(note)?;
        let done = reconcile::reconcile(self, now)?;
        if done.changed() {
            self.commit(note)?;
        }
        Ok(done)
    }

    /// Ends: waits for merges that are under way.
    ///
    /// # Errors
    /// The disk.
    pub fn close(self) -> Result<(), IndexError> {
        let error = IndexError::of(&self.dir);
        self.inner.wait_merging_threads().map_err(error)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Removes an index of whatever format.
///
/// # Errors
/// The disk.
pub fn remove(dir: &Path) -> Result<(), IndexError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(IndexError::disk(dir)(error))
        }
        _ => Ok(()),
    }
}

fn open_index(dir: &Path, schema: Schema) -> Result<Index, IndexError> {
    // The format's file comes first, so a death in between leaves a directory without an index.
    if dir.join("meta.json").exists() {
        let index = IndexDirectory::open(dir).and_then(Index::open);
        let index = index.map_err(IndexError::of(dir))?;
        return match index.schema() == schema {
            true => Ok(index),
            false => Err(IndexError::damaged(
                dir,
                "its fields are not those of its format",
            )),
        };
    }
    let settings = IndexSettings {
        docstore_compression: Compressor::Zstd(ZstdCompressor::default()),
        docstore_blocksize: BLOCK_OCTETS,
        ..IndexSettings::default()
    };
    let begun = IndexDirectory::open(dir).and_then(|place| Index::create(place, schema, settings));
    begun.map_err(IndexError::of(dir))
}

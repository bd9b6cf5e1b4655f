//! Writing: pages in, pages out, commits.

use std::collections::HashSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use foldhash::fast::RandomState;
use tantivy::merge_policy::LogMergePolicy;
use tantivy::schema::Schema;
use tantivy::store::{Compressor, ZstdCompressor};
use tantivy::{Index, IndexSettings, IndexWriter as Inner, Searcher, Term};
use xxhash_rust::xxh3::xxh3_64;

use crate::document::{QueuedDocument, document, document_bytes};
use crate::error::{IndexError, guarded};
use crate::file_check::{check, metas};
use crate::schema::{Fields, check_format, schema, write_format};
use crate::stored_page::{page_at, searcher};
use crate::tantivy_directory::{IndexDirectory, META_FILE};
use crate::tokens::{PageTokenizer, Stop, TOKENIZER};
use crawl_index_entry::ByteGate;
use crawl_index_entry::IndexedPage;

/// Memory for pages that are not committed yet. Bytes.
const MAX_BUFFER_BYTES: usize = 48 << 20;

/// Threads that take words at a time, each with a part of that memory: of less it could not make
/// use.
const MAX_THREADS: usize = 3;

/// Bytes of pages whose words are not taken yet: further ones wait for them.
const MAX_QUEUED_BYTES: usize = 8 << 20;

/// Bytes of stored pages that are compressed together: small enough to show one result
/// without unpacking many pages.
const BLOCK_BYTES: usize = 16 << 10;

/// Level of zstd for stored pages. Each further one takes more time than it spares room.
const COMPRESSION_LEVEL: i32 = 1;

/// Segments of fewer pages count as of this size where eight of one size are merged: then a crawl
/// whose commits have few pages each writes a page anew some ten times on its way to a larger
/// segment, and not some hundred times.
const MIN_SEGMENT_PAGES: u32 = 1_024;

/// Writes an index. There is one at a time for a directory.
///
/// Pages that are put or dropped are seen by searches, and outlive the process, from the next
/// [`commit`](IndexWriter::commit) on; a kill loses what came after the last one, no more.
pub struct IndexWriter {
    dir: PathBuf,
    pub(crate) fields: Fields,
    pub(crate) inner: Inner<QueuedDocument>,
    queue: ByteGate,
    note: Option<String>,
    stop: Stop,
    /// The pages of the last commit, where they were asked for since.
    committed: Option<Searcher>,
    /// The pages that entries marked as leaving since this writer was opened, by the keys of their
    /// URLs.
    pub(crate) marked: HashSet<u64, RandomState>,
}

/// The outcome of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// It is durable, and searches see it.
    Done,
    /// The time was over before all words were read, so the index stands as the last commit left
    /// it. Drop the writer.
    Stopped,
}

impl IndexWriter {
    /// Opens the index in `dir`, or begins one where there is none. All of its files are held
    /// against their checksums first.
    ///
    /// # Errors
    /// [`IndexError`]: of another format, in use, damaged, or the disk.
    pub fn open(dir: &Path) -> Result<IndexWriter, IndexError> {
        let opened = IndexWriter::open_unless(dir, Arc::new(|| false))?;
        opened.ok_or_else(|| IndexError::damaged(dir, "its files were not looked at"))
    }

    /// The same; none where it `is_stopped` meanwhile, which is asked every few bytes. It is asked
    /// for as long as there is the writer: what is put is read to its end only until then, and
    /// not committed.
    ///
    /// # Errors
    /// [`IndexError`]: of another format, in use, damaged, or the disk.
    pub fn open_unless(
        dir: &Path,
        is_stopped: Arc<dyn Fn() -> bool + Send + Sync>,
    ) -> Result<Option<IndexWriter>, IndexError> {
        match check_format(dir) {
            Ok(()) => {}
            Err(IndexError::Missing { .. }) => write_format(dir)?,
            Err(other) => return Err(other),
        }
        if dir.join(META_FILE).exists() && !check(dir, &*is_stopped)? {
            return Ok(None);
        }
        guarded(dir, || {
            let (schema, fields) = schema();
            let index = open_index(dir, schema)?;
            let stop = Stop::when(is_stopped);
            let tokenizer = PageTokenizer { stop: stop.clone() };
            index.tokenizers().register(TOKENIZER, tokenizer);
            let note = index.load_metas().map_err(IndexError::of(dir))?.payload;
            let inner = tantivy_writer(&index, 1).map_err(IndexError::of(dir))?;
            Ok(Some(IndexWriter {
                dir: dir.to_path_buf(),
                fields,
                inner,
                queue: ByteGate::new(MAX_QUEUED_BYTES),
                note: note.map(|note| unsealed(dir, &note)).transpose()?,
                stop,
                committed: None,
                marked: HashSet::default(),
            }))
        })
    }

    /// The note of the last commit: up to where its source was read.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Adds a page, in place of what stands under its URL. Waits while `MAX_QUEUED_BYTES` of
    /// pages are not taken in yet.
    ///
    /// # Errors
    /// The disk.
    pub fn put(&mut self, page: &IndexedPage) -> Result<(), IndexError> {
        self.drop_url(&page.url);
        // Rules of some language may fail on a text; that costs this page alone.
        let document = catch_unwind(AssertUnwindSafe(|| document(&self.fields, page)));
        let Ok(document) = document else {
            return Ok(());
        };
        let added = self.inner.add_document(QueuedDocument {
            document,
            _pass: self.queue.enter(document_bytes(page)),
        });
        added.map_err(IndexError::of(&self.dir)).map(|_| ())
    }

    /// Takes a page out, if it is there.
    pub fn drop_url(&mut self, url: &str) {
        self.inner
            .delete_term(Term::from_field_text(self.fields.url, url));
    }

    /// The page that stands under a URL as of the last commit.
    ///
    /// # Errors
    /// A damaged index, or the disk.
    pub(crate) fn committed(&mut self, url: &str) -> Result<Option<IndexedPage>, IndexError> {
        let dir = self.dir.clone();
        guarded(&dir, || {
            let searcher = match self.committed.take() {
                Some(searcher) => searcher,
                None => searcher(&dir, self.inner.index())?,
            };
            let found = page_at(&searcher, &self.fields, url).map_err(IndexError::of(&dir));
            self.committed = Some(searcher);
            found
        })
    }

    /// Makes all of it durable and visible, with a note to go along.
    ///
    /// # Errors
    /// The disk. What the last commit held stands as it was.
    pub fn commit(&mut self, note: &str) -> Result<Commit, IndexError> {
        let commit = guarded(&self.dir, || {
            let error = IndexError::of(&self.dir);
            let mut prepared = self.inner.prepare_commit().map_err(&error)?;
            // By now the words of all pages are read.
            if self.stop.has_cut() {
                prepared.abort().map_err(&error)?;
                return Ok(Commit::Stopped);
            }
            prepared.set_payload(&sealed(note));
            prepared.commit().map_err(&error)?;
            Ok(Commit::Done)
        })?;
        if commit == Commit::Done {
            self.note = Some(note.to_owned());
            self.committed = None;
        }
        Ok(commit)
    }

    /// Commits, and takes the words of what is put from then on with one thread for each
    /// processor: worth it for many pages, as each thread writes segments of its own. None where
    /// not all that was put is committed: see [`Commit::Stopped`].
    ///
    /// # Errors
    /// The disk.
    pub fn with_all_processors(mut self, note: &str) -> Result<Option<IndexWriter>, IndexError> {
        if self.note() != Some(note) && self.commit(note)? == Commit::Stopped {
            return Ok(None);
        }
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let error = IndexError::of(&self.dir);
        let index = self.inner.index().clone();
        // One writer at a time has the lock.
        self.inner.wait_merging_threads().map_err(&error)?;
        let inner = tantivy_writer(&index, threads.min(MAX_THREADS));
        Ok(Some(IndexWriter {
            inner: inner.map_err(error)?,
            ..self
        }))
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

/// The note of the last commit of the index in `dir`, without a look at its other files; none
/// where there is no index, or no commit.
///
/// # Errors
/// [`IndexError`]: of another format, damaged, or the disk.
pub fn note_in(dir: &Path) -> Result<Option<String>, IndexError> {
    match check_format(dir) {
        Err(IndexError::Missing { .. }) => return Ok(None),
        other => other?,
    }
    if !dir.join(META_FILE).exists() {
        return Ok(None);
    }
    let note = metas(dir)?.payload;
    note.map(|note| unsealed(dir, &note)).transpose()
}

/// A note and its checksum: `meta.json`, which holds it, has none.
fn sealed(note: &str) -> String {
    format!("{note} {:016x}", xxh3_64(note.as_bytes()))
}

/// A note without its checksum, if it has one.
fn unsealed(dir: &Path, note: &str) -> Result<String, IndexError> {
    let is_sum = |sum: &str| sum.len() == 16 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
    match note.rsplit_once(' ') {
        Some((note, sum)) if is_sum(sum) => match sealed(note).ends_with(sum) {
            true => Ok(note.to_owned()),
            false => Err(IndexError::damaged(
                dir,
                "its note is not as it was written",
            )),
        },
        _ => Ok(note.to_owned()),
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

fn tantivy_writer(index: &Index, threads: usize) -> tantivy::Result<Inner<QueuedDocument>> {
    let inner = index.writer_with_num_threads(threads, MAX_BUFFER_BYTES)?;
    let mut policy = LogMergePolicy::default();
    policy.set_min_layer_size(MIN_SEGMENT_PAGES);
    inner.set_merge_policy(Box::new(policy));
    Ok(inner)
}

fn open_index(dir: &Path, schema: Schema) -> Result<Index, IndexError> {
    // The format's file comes first, so a death in between leaves a directory without an index.
    if dir.join(META_FILE).exists() {
        let index = IndexDirectory::open_to_write(dir).and_then(Index::open);
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
        docstore_compression: Compressor::Zstd(ZstdCompressor {
            compression_level: Some(COMPRESSION_LEVEL),
        }),
        docstore_blocksize: BLOCK_BYTES,
        ..IndexSettings::default()
    };
    let place = IndexDirectory::open_to_write(dir);
    let begun = place.and_then(|place| Index::create(place, schema, settings));
    begun.map_err(IndexError::of(dir))
}

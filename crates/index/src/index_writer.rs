//! Writes an index: adds and removes pages, and commits.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use foldhash::fast::RandomState;
use tantivy::merge_policy::LogMergePolicy;
use tantivy::schema::Schema;
use tantivy::store::{Compressor, ZstdCompressor};
use tantivy::{Index, IndexSettings, IndexWriter as Inner, Searcher};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{IndexError, guarded};
use crate::file_check::{check, metas};
use crate::index_document::{QueuedDocument, document, document_bytes};
use crate::page_tokenizer::{LanguagePrefixTokenizer, TOKENIZER, TokenizerDeadline};
use crate::schema::{IndexFields, check_format, schema, write_format};
use crate::stored_page_reader::{page_at, searcher};
use crate::tantivy_directory::{IndexDirectory, META_FILE};
use crate::url_deletion_query::UrlDeletionQuery;
use crawl_index_entry::BytesInTransitLimit;
use crawl_index_entry::IndexedPage;

/// Memory for pages that the index has not committed, in bytes.
/// Beyond the limit: written to a segment.
const MAX_BUFFER_BYTES: usize = 48 << 20;

/// Maximum number of threads that tokenize. The threads share the buffer memory, so with more
/// threads the share of each would be too small.
const MAX_THREADS: usize = 3;

/// Maximum bytes of pages waiting to be tokenized. Beyond it, [`IndexWriter::put`] blocks.
const MAX_QUEUED_BYTES: usize = 8 << 20;

/// Number of bytes of stored pages that are compressed together. With small blocks, showing a
/// result decompresses few pages.
const BLOCK_BYTES: usize = 16 << 10;

/// The zstd level for stored pages. Higher levels cost more time than the space they save is worth.
const COMPRESSION_LEVEL: i32 = 1;

/// Segments with fewer pages than this count as equally large in the merge policy, which merges
/// eight segments of about the same size. Otherwise, in a crawl with small commits, a page would be
/// rewritten some hundred times before it is in a larger segment, instead of about ten times.
const MIN_SEGMENT_PAGES: u32 = 1_024;

/// Writes an index. A directory can have only one writer at a time.
///
/// Changes become visible to searches and durable at the next [`commit`](IndexWriter::commit). A
/// crash loses only the changes after the last commit.
pub struct IndexWriter {
    dir: PathBuf,
    pub(crate) fields: IndexFields,
    pub(crate) inner: Inner<QueuedDocument>,
    queue: BytesInTransitLimit,
    note: Option<String>,
    stop: TokenizerDeadline,
    /// A searcher of the last commit, if one was needed since that commit.
    committed: Option<Searcher>,
    /// The URL keys of pages that an entry would have removed since this writer was opened, but
    /// that are kept until the end of the run.
    pub(crate) marked: HashSet<u64, RandomState>,
}

/// The outcome of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    /// The commit is durable and visible to searches.
    Done,
    /// Tokenizing was cut short, because time ran out. The index still has the state of the
    /// previous commit. Drop the writer.
    Stopped,
}

impl IndexWriter {
    /// Opens the index in `dir`, or creates one. All files are compared with their checksums first.
    ///
    /// # Errors
    /// [`IndexError`] if the index has another format, is in use or damaged, or the disk fails.
    pub fn open(dir: &Path) -> Result<IndexWriter, IndexError> {
        let opened = IndexWriter::open_unless(dir, Arc::new(|| false))?;
        opened.ok_or_else(|| IndexError::damaged(dir, "its files were not looked at"))
    }

    /// Opens the index like [`IndexWriter::open`], but calls `is_stopped` between small parts of
    /// the files. Returns `None` if `is_stopped` returned true. The writer keeps calling
    /// `is_stopped`. Once it returns true, tokenizing ends within the current pages, and nothing
    /// more is committed.
    ///
    /// # Errors
    /// [`IndexError`] if the index has another format, is in use or damaged, or the disk
    /// fails.
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
            let stop = TokenizerDeadline::when(is_stopped);
            let tokenizer = LanguagePrefixTokenizer { stop: stop.clone() };
            index.tokenizers().register(TOKENIZER, tokenizer);
            let note = index.load_metas().map_err(IndexError::of(dir))?.payload;
            let inner = tantivy_writer(&index, 1).map_err(IndexError::of(dir))?;
            Ok(Some(IndexWriter {
                dir: dir.to_path_buf(),
                fields,
                inner,
                queue: BytesInTransitLimit::new(MAX_QUEUED_BYTES),
                note: note.map(|note| unsealed(dir, &note)).transpose()?,
                stop,
                committed: None,
                marked: HashSet::default(),
            }))
        })
    }

    /// Returns the note of the last commit. Callers use it to record how far they had read the
    /// source of the pages.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Adds a page, replacing the one with the same URL. Blocks while `MAX_QUEUED_BYTES` of pages
    /// have not been tokenized.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn put(&mut self, page: &IndexedPage) -> Result<(), IndexError> {
        self.drop_url(&page.url);
        let added = self.inner.add_document(QueuedDocument {
            document: document(&self.fields, page),
            _pass: self.queue.enter(document_bytes(page)),
        });
        added.map_err(IndexError::of(&self.dir)).map(|_| ())
    }

    /// Removes the page with this URL, if there is one.
    pub fn drop_url(&mut self, url: &str) {
        let deletion = UrlDeletionQuery::new(self.fields.url, url);
        self.inner
            .delete_query(Box::new(deletion))
            .expect("invariant: the query needs nothing of the index");
    }

    /// Returns the page with this URL, as of the last commit.
    ///
    /// # Errors
    /// If the index is damaged or the disk fails.
    pub(crate) fn committed(&mut self, url: &str) -> Result<Option<IndexedPage>, IndexError> {
        let dir = self.dir.clone();
        guarded(&dir, || {
            let searcher = match self.committed.take() {
                Some(searcher) => searcher,
                None => searcher(&dir, self.inner.index())?,
            };
            let page = page_at(&searcher, &self.fields, url).map_err(IndexError::of(&dir));
            self.committed = Some(searcher);
            page
        })
    }

    /// Makes all changes durable and visible, and stores a note with them.
    ///
    /// # Errors
    /// If the disk fails. The last commit stays unchanged.
    pub fn commit(&mut self, note: &str) -> Result<CommitOutcome, IndexError> {
        let commit = guarded(&self.dir, || {
            let error = IndexError::of(&self.dir);
            let mut prepared = self.inner.prepare_commit().map_err(&error)?;
            // All pages have been tokenized at this point, so `has_cut` is final.
            if self.stop.has_cut() {
                prepared.abort().map_err(&error)?;
                return Ok(CommitOutcome::Stopped);
            }
            prepared.set_payload(&sealed(note));
            prepared.commit().map_err(&error)?;
            Ok(CommitOutcome::Done)
        })?;
        if commit == CommitOutcome::Done {
            self.note = Some(note.to_owned());
            self.committed = None;
        }
        Ok(commit)
    }

    /// Commits, then tokenizes further pages with one thread per processor, at most `MAX_THREADS`.
    /// Only worthwhile for many pages, because each thread writes its own segments. `None` if the
    /// commit was stopped: see [`CommitOutcome::Stopped`].
    ///
    /// # Errors
    /// If the disk fails.
    pub fn with_all_processors(mut self, note: &str) -> Result<Option<IndexWriter>, IndexError> {
        if self.note() != Some(note) && self.commit(note)? == CommitOutcome::Stopped {
            return Ok(None);
        }
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let error = IndexError::of(&self.dir);
        let index = self.inner.index().clone();
        // Close the tantivy writer, which releases the lock for the new writer.
        self.inner.wait_merging_threads().map_err(&error)?;
        let inner = tantivy_writer(&index, threads.min(MAX_THREADS));
        Ok(Some(IndexWriter {
            inner: inner.map_err(error)?,
            ..self
        }))
    }

    /// Waits for running merges and closes the writer.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn close(self) -> Result<(), IndexError> {
        let error = IndexError::of(&self.dir);
        self.inner.wait_merging_threads().map_err(error)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Returns the note of the last commit of the index in `dir`, without checking other files; `None`
/// if there is no index or no commit.
///
/// # Errors
/// [`IndexError`] if the index has another format or is damaged, or the disk fails.
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

/// Appends a checksum to a note. The note is stored in `meta.json`, which has no checksum itself.
fn sealed(note: &str) -> String {
    format!("{note} {:016x}", xxh3_64(note.as_bytes()))
}

/// Verifies and removes the checksum of a note. A note without a checksum is returned unchanged.
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

/// Removes an index of any format.
///
/// # Errors
/// If the disk fails.
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
    // If a crash followed after the format file was written, the directory has a format file but no
    // index.
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

#[cfg(test)]
mod tests {
    use crawl_index_entry::IndexedPage;

    use super::IndexWriter;
    use crate::words::PANICKING_WORD;

    #[test]
    fn a_page_on_which_a_stemmer_panics_replaces_its_old_version() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = IndexWriter::open(dir.path()).unwrap();
        let mut page = IndexedPage {
            url: "http://a.example/".to_owned(),
            title: "old".to_owned(),
            ..IndexedPage::default()
        };
        writer.put(&page).unwrap();
        writer.commit("1").unwrap();
        page.title = PANICKING_WORD.to_owned();
        page.text = format!("before\n{PANICKING_WORD}\nafter");
        writer.put(&page).unwrap();
        writer.commit("2").unwrap();
        assert_eq!(writer.committed(&page.url).unwrap(), Some(page));
    }
}

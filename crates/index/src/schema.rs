//! The fields of the index, and its format on disk.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
};

use crate::error::IndexError;
use crate::page_tokenizer::TOKENIZER;
use crate::tantivy_directory::check_files;

/// The number of the index format. An index of another format is rebuilt from the archive.
pub const FORMAT: u32 = 5;

/// The file with the format number of the index. It is written before all other files.
pub(crate) const FORMAT_FILE: &str = "format.json";

/// The value of [`IndexFields::kind`] for a page that a search can find.
pub(crate) const KIND_PAGE: &str = "page";
/// The value of [`IndexFields::kind`] for a page that is never found, because another page replaces
/// it: one with the same text, or the one at its canonical URL.
pub(crate) const KIND_DUPLICATE: &str = "duplicate";

/// The value of [`IndexFields::leaving`] for a page that its last visit would have removed, but
/// that is kept until the end of the run.
pub(crate) const LEAVING: &str = "yes";
/// The value of [`IndexFields::leaving`] for a page that is replaced by the page at its canonical
/// URL.
pub(crate) const GIVES_WAY: &str = "canonical";

#[derive(Debug, Serialize, Deserialize)]
struct IndexFormat {
    format: u32,
}

/// The tantivy fields of the index.
#[derive(Clone, Debug)]
pub(crate) struct IndexFields {
    /// The URL, the key for replacing and deleting a page.
    pub(crate) url: Field,
    /// [`KIND_PAGE`] or [`KIND_DUPLICATE`].
    pub(crate) kind: Field,
    /// The hosts and folders of the page, in the form that `site:` accepts.
    pub(crate) site: Field,
    pub(crate) host: Field,
    pub(crate) language: Field,
    /// The folders, language, version and type of the page, each with a prefix such as `language:`.
    pub(crate) facet: Field,
    /// For versioned pages: see [`ProductVersionKey`](crate::facets::ProductVersionKey).
    pub(crate) version_mark: Field,
    pub(crate) texts: TextFields,
    /// [`IndexedPage`](crate::IndexedPage) as JSON.
    pub(crate) page: Field,
    /// A hash of the page's text. Pages with the same text have the same hash.
    pub(crate) text_hash: Field,
    /// [`LEAVING`] if the page is kept although its last visit would have removed it, [`GIVES_WAY`]
    /// if the page at its canonical URL replaces it.
    pub(crate) leaving: Field,
    /// When the page expires, in seconds since 1970 UTC.
    pub(crate) until: Field,
    /// The number of binary digits of the number of pages that link to the page. Coarse, so that
    /// small changes don't cause a rewrite.
    pub(crate) linked: Field,
    /// The page's prior as [`worth`](crate::page_prior::worth) encodes it: how likely it answers
    /// any query.
    pub(crate) worth: Field,
    pub(crate) fetched_at: Field,
}

/// The text fields that queries search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextFields {
    pub(crate) title: Field,
    /// The fields for headings of level 1, of level 2, and of all other levels.
    pub(crate) headings: [Field; 3],
    /// The field for the start of the main text.
    pub(crate) lead: Field,
    pub(crate) body: Field,
    /// The field for the text outside the main text.
    pub(crate) beside: Field,
    pub(crate) description: Field,
    pub(crate) keywords: Field,
    pub(crate) anchors: Field,
    pub(crate) path: Field,
}

pub(crate) fn schema() -> (Schema, IndexFields) {
    let mut schema = Schema::builder();
    let words = |record| {
        TextOptions::default().set_indexing_options(
            TextFieldIndexing::default()
                .set_tokenizer(TOKENIZER)
                .set_index_option(record),
        )
    };
    let counted = words(IndexRecordOption::WithFreqs);
    let placed = words(IndexRecordOption::WithFreqsAndPositions);
    let fields = IndexFields {
        url: schema.add_text_field("url", STRING),
        kind: schema.add_text_field("kind", STRING),
        site: schema.add_text_field("site", STRING),
        host: schema.add_text_field("host", STRING),
        language: schema.add_text_field("language", STRING),
        facet: schema.add_text_field("facet", STRING | FAST),
        version_mark: schema.add_u64_field("version_mark", FAST),
        texts: TextFields {
            title: schema.add_text_field("title", placed.clone()),
            headings: ["h1", "h2", "h3"].map(|name| schema.add_text_field(name, placed.clone())),
            lead: schema.add_text_field("lead", counted.clone()),
            body: schema.add_text_field("body", placed.clone()),
            beside: schema.add_text_field("beside", placed),
            description: schema.add_text_field("description", counted.clone()),
            keywords: schema.add_text_field("keywords", counted.clone()),
            anchors: schema.add_text_field("anchors", counted.clone()),
            path: schema.add_text_field("path", counted),
        },
        page: schema.add_text_field("page", STORED),
        text_hash: schema.add_u64_field("text_hash", FAST | INDEXED),
        leaving: schema.add_text_field("leaving", STRING),
        until: schema.add_i64_field("until", FAST),
        linked: schema.add_u64_field("linked", FAST),
        worth: schema.add_u64_field("worth", FAST),
        fetched_at: schema.add_i64_field("fetched_at", FAST),
    };
    (schema.build(), fields)
}

/// Maximum bytes of the format file that are read.
const MAX_FORMAT_BYTES: u64 = 4096;

/// Checks that `dir` contains an index of this format.
///
/// # Errors
/// [`IndexError::Missing`], [`IndexError::OtherFormat`], or an I/O error.
pub(crate) fn check_format(dir: &Path) -> Result<(), IndexError> {
    check_files(dir)?;
    let path = dir.join(FORMAT_FILE);
    let mut text = String::new();
    let read = |file: fs::File| file.take(MAX_FORMAT_BYTES).read_to_string(&mut text);
    let text = match fs::File::open(&path).and_then(read).map(|_| text) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(IndexError::Missing {
                dir: dir.to_path_buf(),
            });
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(IndexError::damaged(dir, format!("{FORMAT_FILE}: {error}")));
        }
        Err(error) => return Err(IndexError::disk(&path)(error)),
    };
    let format: IndexFormat = serde_json::from_str(&text)
        .map_err(|error| IndexError::damaged(dir, format!("{FORMAT_FILE}: {error}")))?;
    match format.format {
        FORMAT => Ok(()),
        found => Err(IndexError::OtherFormat {
            dir: dir.to_path_buf(),
            found,
            wanted: FORMAT,
        }),
    }
}

/// Writes the format file into `dir`.
pub(crate) fn write_format(dir: &Path) -> Result<(), IndexError> {
    fs::create_dir_all(dir).map_err(IndexError::disk(dir))?;
    let path = dir.join(FORMAT_FILE);
    let beside = dir.join("format.json.new");
    let text = serde_json::to_vec(&IndexFormat { format: FORMAT }).unwrap_or_default();
    let write = || {
        fs::write(&beside, text)?;
        fs::File::open(&beside)?.sync_all()?;
        fs::rename(&beside, &path)
    };
    write().map_err(IndexError::disk(&path))
}

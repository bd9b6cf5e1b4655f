//! Exports a search that works on any static file server. The exported folder is called a bundle.
//!
//! The folder contains `index.html`, `search.js`, `search.css` and `search.json`. `search.json`
//! names the data folder, which contains two folders. Each file in `words/` has words with a common
//! beginning, and the pages that contain the words. Each file in `texts/` has one piece of a page's
//! text. A query loads the files of its words, and for each page in the results, one piece of text.
//! `search.js` reads these files. Their formats are described in `word_files.rs` and
//! `page_texts.rs`.
//!
//! The same pages always yield the same bytes, regardless of their order.

mod gzip_file;
mod inverted_index_builder;
mod page_texts;
mod postings;
mod stemmer_scripts;
#[cfg(test)]
mod tests;
mod word_files;
mod word_weights;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;

use self::inverted_index_builder::{InvertedIndexBuilder, PageRangeWithPrior};
use self::page_texts::PageTextsWriter;
use super::{ExportError, is_shown};
use crate::page_prior::{CHANGE_LISTS, CHANGE_WORDS};
use crate::query_plan::WEIGHTS;
use crate::search_box::BOX;
use crate::synonyms_and_pins::SearchRules;
use crawl_archive::AtomicFolder;
use crawl_index_entry::IndexedPage;

/// The version of the format. `search.js` refuses files of any other version.
const FORMAT: u32 = 8;
/// The file that describes the bundle and names its data folder.
const MANIFEST: &str = "search.json";
/// The prefix of the data folder's name.
const DATA: &str = "data-";

/// The files of every bundle that are copied unchanged: the HTML page and the style sheet.
const PAGE: [(&str, &str); 2] = [
    ("index.html", include_str!("assets/index.html")),
    ("search.css", include_str!("assets/search.css")),
];
/// The parts of `search.js` in the order in which they are concatenated. The script searches the
/// files and shows the search box.
const SCRIPT: [&str; 5] = [
    include_str!("assets/words.js"),
    include_str!("assets/files.js"),
    include_str!("assets/ranking.js"),
    include_str!("assets/sections.js"),
    include_str!("assets/mount.js"),
];

/// Writes a bundle. The folder appears only when [`StaticSearchWriter::finish`] succeeds. If the
/// writer is dropped before that, nothing remains.
#[derive(Debug)]
pub struct StaticSearchWriter {
    folder: AtomicFolder,
    texts: PageTextsWriter,
    gathered: InvertedIndexBuilder,
    rules: SearchRules,
    now: i64,
    report: StaticSearchReport,
}

/// The counts and sizes of an exported bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StaticSearchReport {
    /// The number of pages in the bundle.
    pub pages: u64,
    /// The number of pages that were left out, because another page replaces them (one with the
    /// same text, or the one at their canonical URL) or because they have expired.
    pub left_out: u64,
    /// The number of distinct words.
    pub words: u64,
    /// The number of files.
    pub files: u64,
    /// The total size of all files in bytes.
    pub bytes: u64,
    /// The size of the word files in bytes.
    pub word_bytes: u64,
    /// The size of the text files in bytes.
    pub text_bytes: u64,
}

/// The content of `search.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    /// The name of the data folder. The name contains a hash of the folder's content, so that a
    /// browser never mixes cached files of different versions.
    data: String,
    pages: usize,
    /// For each word file, the lower bound of its words in UTF-16 order. All words of the file are
    /// equal to or greater than this bound, and all words of earlier files are less.
    words: Vec<String>,
    /// The pages that expire: the number of each page, and its expiry time in seconds since 1970
    /// UTC.
    until: Vec<(u32, i64)>,
    /// The priors (factors for the scores) of all pages whose prior is not 1. Such pages are change
    /// lists and pages that many pages link to, for example.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    priors: Vec<PageRangeWithPrior>,
    /// True if the pages have a language that writes compounds as one word.
    #[serde(default)]
    compounds: bool,
    /// Maps a word to its synonyms.
    #[serde(default)]
    synonyms: BTreeMap<String, Vec<String>>,
    /// Maps the words of a query to the number of the page that is pinned to the first place.
    #[serde(default)]
    pins: BTreeMap<String, u32>,
}

impl StaticSearchWriter {
    /// Begins a bundle at `path`. `now` is in seconds since 1970 UTC; pages that have expired by
    /// then are left out.
    ///
    /// # Errors
    /// [`ExportError::File`] if `path` exists and is not a bundle, or if the disk fails.
    pub fn create(path: &Path, now: i64) -> Result<StaticSearchWriter, ExportError> {
        let folder = AtomicFolder::create(path, is_bundle)?;
        let texts = PageTextsWriter::create(&folder.beside().join("data/texts"))?;
        let gathered = InvertedIndexBuilder::new(&folder.beside().join("data"));
        Ok(StaticSearchWriter {
            folder,
            texts,
            gathered,
            rules: SearchRules::default(),
            now,
            report: StaticSearchReport::default(),
        })
    }

    /// Applies the site owner's search rules. A pin is ignored if its page is not in the bundle.
    #[must_use]
    pub fn with_rules(self, rules: SearchRules) -> StaticSearchWriter {
        StaticSearchWriter { rules, ..self }
    }

    /// Adds a page.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn page(&mut self, page: &IndexedPage) -> Result<(), ExportError> {
        if !is_shown(page, self.now) {
            self.report.left_out += 1;
            return Ok(());
        }
        let pieces = self.texts.page(page)?;
        let gathered = self.gathered.page(page, &pieces);
        gathered.map_err(ExportError::at(self.folder.beside()))?;
        self.report.pages += 1;
        Ok(())
    }

    /// Writes the files that depend on all pages, and moves the folder to its final path.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn finish(mut self) -> Result<StaticSearchReport, ExportError> {
        let root = self.folder.beside().to_path_buf();
        let data = root.join("data");
        let mut hash = Xxh3Default::new();
        let ranks = self.gathered.ranks();
        self.report.text_bytes = self.texts.finish(&ranks, &mut hash)?;
        let pins = self.gathered.numbers(&ranks, self.rules.all_pins());
        let stemmers = self.gathered.stemmers().script();
        let index = self.gathered.finish(&ranks);
        let index = index.map_err(ExportError::at(&data))?;
        self.report.words = index.forms() as u64;
        let words = word_files::write(&index, &data.join("words"), &mut hash)?;
        self.report.word_bytes = words.bytes;
        let name = format!("{DATA}{:016x}", hash.digest());
        fs::rename(&data, root.join(&name)).map_err(ExportError::at(&data))?;
        let manifest = Manifest {
            format: FORMAT,
            data: name,
            pages: ranks.len(),
            words: words.begins,
            until: index.until,
            priors: index.priors,
            compounds: index.has_compounds,
            synonyms: self.rules.all_synonyms(),
            pins,
        };
        let script = format!(
            "(function () {{\n'use strict';\n\n{}\nconst WEIGHTS = {};\nconst CHANGES = {};\n\n{stemmers}\n{}}})();\n",
            BOX.concat(),
            serde_json::to_string(&WEIGHTS).unwrap_or_default(),
            serde_json::to_string(&(CHANGE_LISTS, CHANGE_WORDS)).unwrap_or_default(),
            SCRIPT.join("\n")
        );
        let script = ascii_only(&script);
        let manifest = serde_json::to_string(&manifest).unwrap_or_default() + "\n";
        let mut bytes = self.report.text_bytes + self.report.word_bytes;
        let made = [
            ("search.js", script.as_str()),
            (MANIFEST, manifest.as_str()),
        ];
        for (name, text) in PAGE.into_iter().chain(made) {
            let path = root.join(name);
            fs::write(&path, text).map_err(ExportError::at(&path))?;
            bytes += text.len() as u64;
        }
        self.report.bytes = bytes;
        self.report.files = self.texts.files() + words.files + PAGE.len() as u64 + 2;
        self.folder.finish()?;
        Ok(self.report)
    }
}

/// Escapes all characters of a script that aren't ASCII. A browser reads a script in the encoding of
/// its page, unless the server names another, and few file servers do.
fn ascii_only(script: &str) -> String {
    let mut ascii = String::with_capacity(script.len());
    for c in script.chars() {
        match c {
            c if c.is_ascii() => ascii.push(c),
            c => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| ascii.push_str(&format!("\\u{unit:04X}"))),
        }
    }
    ascii
}

/// Returns true if a folder is a bundle, whatever its format version.
fn is_bundle(path: &Path) -> bool {
    let Ok(text) = fs::read_to_string(path.join(MANIFEST)) else {
        return false;
    };
    let manifest: Result<Manifest, _> = serde_json::from_str(&text);
    manifest
        .is_ok_and(|manifest| manifest.data.starts_with(DATA) && path.join(manifest.data).is_dir())
}

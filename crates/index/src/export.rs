//! Exports the pages of an index in formats that other programs read.
//!
//! Each format is a sink. Pass it the pages one by one, for example from
//! [`IndexSearcher::each_page`](crate::IndexSearcher::each_page), and finish it at the end.
//! [`opensearch`] and [`meilisearch`] write JSON lines for other search engines.
//! [`StaticSearchWriter`] writes a folder with a complete search that any static file server can
//! serve. [`MarkdownFolderWriter`] writes a file for each page. [`LlmsTxtWriter`] and
//! [`SitemapFolderWriter`] list the pages.

mod date;
mod error;
mod exported_page_metadata;
mod llms_txt;
mod markdown_file_name;
mod markdown_folder;
mod meilisearch;
mod opensearch;
mod page_ids_from_urls;
#[cfg(test)]
mod sample_pages;
mod sitemap;
mod static_search;

pub use error::ExportError;
pub use llms_txt::LlmsTxtWriter;
pub use markdown_folder::{FetchedBody, MarkdownExportReport, MarkdownFolderWriter, page_markdown};
pub use meilisearch::{meilisearch, meilisearch_settings};
pub use opensearch::{opensearch, opensearch_mapping};
pub use sitemap::{SitemapExportReport, SitemapFolderWriter};
pub use static_search::{StaticSearchReport, StaticSearchWriter};

use std::io::Write;

use serde::Serialize;

use crawl_index_entry::IndexedPage;

/// The counts of an export: what was written and what was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentExportReport {
    /// The number of pages that were written.
    pub pages: u64,
    /// The number of documents or list entries that were written for these pages. A page may have
    /// several documents.
    pub records: u64,
    /// The number of pages that were left out, because another page replaces them (one with the
    /// same text, or the one at their canonical URL) or because they have expired. For
    /// [`LlmsTxtWriter`], includes pages that language models may not use.
    pub left_out: u64,
}

/// Returns true if an export at the time `now` (seconds since 1970 UTC) includes a page.
fn is_shown(page: &IndexedPage, now: i64) -> bool {
    page.same_as.is_none() && page.until.is_none_or(|until| until > now)
}

/// A function that writes the lines of a page and returns the number of documents.
type WritePage<W> = fn(&mut W, &IndexedPage) -> Result<u64, ExportError>;

/// Writes pages as JSON lines, in a format of another search engine.
pub struct SearchEngineJsonExporter<W> {
    out: W,
    now: i64,
    write: WritePage<W>,
    done: DocumentExportReport,
}

impl<W: Write> SearchEngineJsonExporter<W> {
    fn new(out: W, now: i64, write: WritePage<W>) -> SearchEngineJsonExporter<W> {
        SearchEngineJsonExporter {
            out,
            now,
            write,
            done: DocumentExportReport::default(),
        }
    }

    /// Writes a page. A page that has expired, or that another page replaces, is left out.
    ///
    /// # Errors
    /// If the output fails.
    pub fn page(&mut self, page: &IndexedPage) -> Result<(), ExportError> {
        if !is_shown(page, self.now) {
            self.done.left_out += 1;
            return Ok(());
        }
        self.done.records += (self.write)(&mut self.out, page)?;
        self.done.pages += 1;
        Ok(())
    }

    /// Flushes the output and returns it.
    ///
    /// # Errors
    /// If the output fails.
    pub fn finish(mut self) -> Result<(W, DocumentExportReport), ExportError> {
        self.out.flush().map_err(ExportError::Stream)?;
        Ok((self.out, self.done))
    }
}

/// Writes a value as one line of JSON. Line breaks in the value are escaped by `serde_json`.
fn line(out: &mut impl Write, value: &impl Serialize) -> Result<(), ExportError> {
    serde_json::to_writer(&mut *out, value).map_err(|error| ExportError::Stream(error.into()))?;
    out.write_all(b"\n").map_err(ExportError::Stream)
}

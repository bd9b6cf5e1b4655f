//! The pages of an index in the forms that other searches read.
//!
//! Each form is a sink: it is told of pages one at a time, as
//! [`SearchIndex::each_page`](crate::SearchIndex::each_page) gives them, and is then finished.
//! [`opensearch`] and [`meilisearch`] write lines of JSON; a [`Bundle`] is a folder that holds
//! a whole search, for any server of files; a [`MarkdownFolder`] has a file for each page;
//! [`LlmsTxt`] and [`SitemapFolder`] list them.

mod bundle;
mod date;
mod error;
mod file_name;
mod llms_txt;
mod markdown_folder;
mod meilisearch;
mod opensearch;
mod page_id;
mod page_record;
#[cfg(test)]
mod samples;
mod sitemap;

pub use bundle::{Bundle, BundleReport};
pub use error::ExportError;
pub use llms_txt::LlmsTxt;
pub use markdown_folder::{MarkdownFolder, MarkdownReport, PageSource, page_markdown};
pub use meilisearch::{meilisearch, meilisearch_settings};
pub use opensearch::{opensearch, opensearch_mapping};
pub use sitemap::{SitemapFolder, SitemapReport};

use std::io::Write;

use serde::Serialize;

use crawl_index_entry::IndexedPage;

/// The size of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Pages that were written.
    pub pages: u64,
    /// Records that they became.
    pub records: u64,
    /// Pages that were left out, since others have the same text or their time is over.
    pub left_out: u64,
}

/// Returns whether a page belongs into an export that is made at `now`, in seconds since 1970 UTC.
fn is_shown(page: &IndexedPage, now: i64) -> bool {
    page.same_as.is_none() && page.until.is_none_or(|until| until > now)
}

/// Writes the lines of a page, and says how many records they are.
type WritePage<W> = fn(&mut W, &IndexedPage) -> Result<u64, ExportError>;

/// Lines of JSON for pages, in one of the forms.
pub struct JsonLines<W> {
    out: W,
    now: i64,
    write: WritePage<W>,
    done: Exported,
}

impl<W: Write> JsonLines<W> {
    fn new(out: W, now: i64, write: WritePage<W>) -> JsonLines<W> {
        JsonLines {
            out,
            now,
            write,
            done: Exported::default(),
        }
    }

    /// Writes a page, unless its time is over or another has its text.
    ///
    /// # Errors
    /// The error of the output.
    pub fn page(&mut self, page: &IndexedPage) -> Result<(), ExportError> {
        if !is_shown(page, self.now) {
            self.done.left_out += 1;
            return Ok(());
        }
        self.done.records += (self.write)(&mut self.out, page)?;
        self.done.pages += 1;
        Ok(())
    }

    /// Ends, and gives back what was written to.
    ///
    /// # Errors
    /// The error of the output.
    pub fn finish(mut self) -> Result<(W, Exported), ExportError> {
        self.out.flush().map_err(ExportError::Stream)?;
        Ok((self.out, self.done))
    }
}

/// A value on a line of its own: `serde_json` escapes what would break it.
fn line(out: &mut impl Write, value: &impl Serialize) -> Result<(), ExportError> {
    serde_json::to_writer(&mut *out, value).map_err(|error| ExportError::Stream(error.into()))?;
    out.write_all(b"\n").map_err(ExportError::Stream)
}

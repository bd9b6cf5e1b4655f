//! A requested page: its outcome, and its body in the archive.

use std::sync::Arc;

use bytes::Bytes;
use crawl_archive::rows::PageRow;
use crawl_extractor::{ContentLimits, PageContext, is_html, read_content};
use crawl_records::{ArchivedPageBody, read_archived};

use super::output_directory::OutputDirectory;

/// A page that the crawl requested: its outcome, and its body in the archive.
///
/// Every requested URL has a page, whatever its outcome: a redirect, an image, a 404 and a failed
/// exchange are pages too. [`Page::body`] and [`Page::text`] read from the disk, so they block the
/// thread for a moment.
#[derive(Clone, Debug)]
pub struct Page {
    row: PageRow,
    output: Arc<OutputDirectory>,
}

impl Page {
    pub(super) fn new(row: PageRow, output: Arc<OutputDirectory>) -> Page {
        Page { row, output }
    }

    /// Returns the requested URL in canonical form.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.row.url
    }

    /// Returns the status code. `None` if the exchange failed: see [`Page::error`].
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.row.status
    }

    /// Returns the name of the failure. `None` if the exchange was complete.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.row.error.as_deref()
    }

    /// Returns the title of an HTML page.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.row.title.as_deref()
    }

    /// Returns the number of links from a seed to this page.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.row.depth
    }

    /// Returns the `Content-Type` of the response, as sent.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.row.content_type.as_deref()
    }

    /// Returns the target of a redirect in canonical form. `None` if the response is not a
    /// redirect.
    #[must_use]
    pub fn redirect(&self) -> Option<&str> {
        self.row.redirect.as_deref()
    }

    /// Returns all recorded facts about the page: its row in `pages.jsonl`.
    #[must_use]
    pub fn row(&self) -> &PageRow {
        &self.row
    }

    /// Reads the body, without its content coding. If the page is unchanged since an earlier visit,
    /// this is the body of that visit. `None` if the page has no body, or if the body wasn't kept:
    /// the site forbids archiving, or the body contains a secret of the operator.
    #[must_use]
    pub fn body(&self) -> Option<Bytes> {
        self.archived().map(|page| page.body)
    }

    /// Reads the main text of an HTML page: no navigation, no boilerplate, a line for each block.
    /// `None` for other documents and for pages without a body.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let page = self.archived()?;
        let content_type = page.content_type.as_deref();
        if !is_html(content_type, &page.body) {
            return None;
        }
        let context = PageContext {
            content_type,
            ..PageContext::default()
        };
        let content = read_content(&page.body, &context, &ContentLimits::default());
        Some(content.main_text())
    }

    fn archived(&self) -> Option<ArchivedPageBody> {
        read_archived(self.output.path(), &self.row)
    }
}

//! Writes the page lists that replay tools show, with the title and text of each page.

use std::io::{self, Write};
use std::path::Path;

use crawl_archive::{WarcRecord, read_dom, read_place};
use crawl_extractor::{
    ContentLimits, PageContext, effective_content_type, is_html, may_be_read, read_content,
};
use crawl_records::{PageRow, RecordsError, decoded_body, pages};
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde_json::json;

use crate::capture_copier::CaptureCopyReport;
use crate::error::WaczError;
use crate::original_captures::OriginalCaptureFinder;
use crate::zip_file_writer::ZipFileWriter;

/// Maximum text of a page in a WACZ file's page list, in bytes.
/// Beyond the limit: its end is left out.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// One of the two page lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageListKind {
    /// The list of seeds, which a replay tool shows first.
    Seeds,
    /// The list of pages that the crawl discovered through links.
    Others,
}

impl PageListKind {
    fn path(self) -> &'static str {
        match self {
            PageListKind::Seeds => "pages/pages.jsonl",
            PageListKind::Others => "pages/extraPages.jsonl",
        }
    }

    fn head(self) -> serde_json::Value {
        let (id, title) = match self {
            PageListKind::Seeds => ("pages", "Seeds"),
            PageListKind::Others => ("extraPages", "Pages found"),
        };
        json!({ "format": "json-pages-1.0", "id": id, "title": title, "hasText": true })
    }
}

/// A line of a page list.
#[derive(Serialize)]
struct Page<'a> {
    id: String,
    url: &'a str,
    ts: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime: Option<&'a str>,
    depth: u32,
    seed: bool,
    text: &'a str,
}

/// The page that a replay tool opens first.
#[derive(Clone, Debug)]
pub(crate) struct MainPage {
    pub(crate) url: String,
    pub(crate) date: String,
}

/// Writes both page lists of a package.
pub(crate) struct PageListWriter<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) round: Option<u32>,
    pub(crate) copied: &'a CaptureCopyReport,
    pub(crate) originals: OriginalCaptureFinder<'a>,
    pub(crate) main: Option<MainPage>,
    /// The path of the package, for error messages.
    pub(crate) out: &'a Path,
}

impl PageListWriter<'_> {
    /// Writes a page list to the package, with a line for each HTML page that can be replayed, in
    /// crawl order. Returns the number of lines.
    pub(crate) fn write(
        &mut self,
        list: PageListKind,
        zip: &mut ZipFileWriter,
    ) -> Result<u64, WaczError> {
        let unwritable = WaczError::write(self.out);
        zip.begin_deflated(list.path()).map_err(&unwritable)?;
        writeln!(zip, "{}", list.head()).map_err(&unwritable)?;
        let mut count = 0;
        for row in pages(self.dir)? {
            let row = match row {
                Ok(row) => row,
                // Ignore a malformed row. Other exports report the number of such rows.
                Err(RecordsError::Row { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let is_wanted = (row.depth == 0) == (list == PageListKind::Seeds)
                && self.round.is_none_or(|round| round == row.round);
            if is_wanted
                && let Some(record) = self.response_of(&row)?
                && self.line(&row, &record, zip).map_err(&unwritable)?
            {
                count += 1;
            }
        }
        Ok(count)
    }

    /// Returns the response to show for a page row. This is the row's own response record or, for a
    /// revisit, the original response. `None` if the record doesn't exist or can't be a page.
    fn response_of(&mut self, row: &PageRow) -> Result<Option<WarcRecord>, WaczError> {
        let is_answer = matches!(row.status, Some(200..300 | 304));
        let may_be_page = row.status == Some(304) || may_be_read(row.content_type.as_deref());
        let Some(place) = row.warc.as_ref().filter(|_| is_answer && may_be_page) else {
            return Ok(None);
        };
        if !self.copied.reached(&place.file, place.offset) {
            return Ok(None);
        }
        // A page whose record can't be read is not listed.
        let Ok(record) = read_place(self.dir, place, row.bytes) else {
            return Ok(None);
        };
        match record.kind() {
            "revisit" => self.originals.of(&record),
            _ => Ok(Some(record)),
        }
    }

    /// Writes a line for a row if its response is HTML and its body was not withheld. Returns true
    /// if a line was written.
    fn line(
        &mut self,
        row: &PageRow,
        record: &WarcRecord,
        zip: &mut ZipFileWriter,
    ) -> io::Result<bool> {
        let Some(http) = record.http() else {
            return Ok(false);
        };
        // The body was withheld, because the site requested that no copy be kept.
        if http.body.is_empty() && record.field("WARC-Truncated").is_some() {
            return Ok(false);
        }
        let content_type = effective_content_type(http.fields_named("content-type"));
        let content_type = content_type.as_deref();
        let body = decoded_body(&http).unwrap_or_default();
        if !is_html(content_type, &body) {
            return Ok(false);
        }
        let dom = read_dom(self.dir, row);
        let body = dom.as_deref().unwrap_or(&body);
        let context = PageContext {
            content_type,
            ..PageContext::default()
        };
        let shown = match row.may_show_body() {
            true => body,
            false => &[],
        };
        let mut limits = ContentLimits::default();
        limits.text_bytes = MAX_TEXT_BYTES;
        let content = read_content(shown, &context, &limits);
        let date = row.fetched_at.rfc3339_millis();
        let id = digest(&SHA256, format!("{date} {}", row.url).as_bytes());
        let page = Page {
            id: HEXLOWER.encode(&id.as_ref()[..16]),
            url: &row.url,
            ts: &date,
            title: row.title.as_deref().or(content.title.as_deref()),
            status: row.status,
            mime: content_type
                .and_then(|content_type| content_type.split(';').next())
                .map(str::trim),
            depth: row.depth,
            seed: row.depth == 0,
            text: content.visible_text(),
        };
        writeln!(zip, "{}", serde_json::to_string(&page)?)?;
        if self.main.is_none() {
            self.main = Some(MainPage {
                url: row.url.clone(),
                date,
            });
        }
        Ok(true)
    }
}

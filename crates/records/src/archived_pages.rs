//! Reads the latest version of pages from the archive of a crawl.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use crawl_archive::rows::{PageRow, WarcRecordLocation};
use crawl_archive::{Timestamp, WarcRecord, dom_at, find_response, read_dom, read_place};
use crawl_extractor::effective_content_type;
use crawl_weburl::canonicalize;

use crate::broken_links::{LatestRows, key};
use crate::decoded_body::whole_or_part;
use crate::error::RecordsError;
use crate::row_file_reader::pages;

/// Locates the archived body of each current page. A page is current if the last row of its URL in
/// `pages.jsonl` is a page, and not a redirect or a failure. Memory: about 60 bytes per page.
#[derive(Debug)]
pub struct ArchivedPageLocator {
    dir: PathBuf,
    /// The names of the archive's files.
    files: Vec<String>,
    by_url: HashMap<u64, ArchivedPageLocation>,
}

#[derive(Clone, Copy, Debug)]
struct ArchivedPageLocation {
    /// Index in `files` of the file that holds the body; `None` if the body is not archived.
    file: Option<u32>,
    offset: u64,
    bytes: u64,
    /// The distance in bytes from the body's record to the record with the page's DOM, and the size
    /// of the DOM in bytes. `None` if the page was not rendered.
    dom: Option<(u64, u64)>,
    seen: PageDatesAndRestrictions,
}

/// When a page changed and was fetched, and which uses its site refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageDatesAndRestrictions {
    /// When the page was last found changed. `None` if it has not changed since the crawl found it.
    pub changed_at: Option<Timestamp>,
    /// When the current body was fetched.
    pub fetched_at: Timestamp,
    /// Whether the site refuses the use of the page as input of a model (`ai-input`).
    pub refuses_ai_input: bool,
    /// Whether the site forbids copies of the page ([`PageRow::withheld`]).
    pub is_withheld: bool,
}

/// The body of a page.
#[derive(Clone, Debug)]
pub struct ArchivedPageBody {
    /// The `Content-Type` of the response, as sent. If the page was rendered, the type of its DOM.
    pub content_type: Option<String>,
    /// The `Last-Modified` of the response in seconds since 1970 UTC, if it is a valid date.
    pub last_modified: Option<i64>,
    /// The body without content codings, or the DOM if the page was rendered.
    pub body: Bytes,
    /// Whether the crawl stored only a part of the body, because the server didn't send all of it
    /// or it exceeded a limit.
    pub is_truncated: bool,
}

impl ArchivedPageBody {
    /// Replaces the body with the DOM, if the page was rendered.
    fn show(&mut self, dom: Option<Vec<u8>>) {
        if let Some(dom) = dom {
            self.body = dom.into();
            self.content_type = Some("text/html; charset=utf-8".to_owned());
        }
    }
}

impl ArchivedPageLocator {
    /// Locates the current pages of the crawl in `dir`. Reads all rows of `pages.jsonl` twice.
    ///
    /// # Errors
    /// [`RecordsError`] if `dir` has no crawl, or a row can't be read.
    pub fn open(dir: &Path) -> Result<ArchivedPageLocator, RecordsError> {
        let latest = LatestRows::read(dir)?;
        let mut archived = ArchivedPageLocator {
            dir: dir.to_owned(),
            files: Vec::new(),
            by_url: HashMap::new(),
        };
        let mut changes = HashMap::new();
        let mut rows = pages(dir)?;
        while let Some(row) = rows.next() {
            let row = row?;
            match row.change.as_deref() {
                Some("changed") => drop(changes.insert(key(&row.url), row.fetched_at)),
                Some("new") => drop(changes.remove(&key(&row.url))),
                _ => {}
            }
            if latest.is_body(&row, rows.line()) {
                archived.add(&row, changes.get(&key(&row.url)).copied());
            } else if latest.is_last(&row, rows.line())
                && let Some(place) = archived.by_url.get_mut(&key(&row.url))
            {
                // After a 304, for example, the last row has no body, so an earlier row supplies
                // it. A refusal in either applies: a 304 has no `meta` elements.
                place.seen.refuses_ai_input |= refuses_ai_input(&row);
                place.seen.is_withheld |= row.withheld.is_some();
            }
        }
        Ok(archived)
    }

    /// Returns the history of a page; `None` if the URL's last row isn't a page.
    #[must_use]
    pub fn seen(&self, url: &str) -> Option<PageDatesAndRestrictions> {
        self.by_url.get(&key(url)).map(|place| place.seen)
    }

    /// Returns the body of a page. `None` if the URL's last row isn't a page, or the body is not
    /// archived, contains a secret ([`PageRow::may_show_body`]), or can't be read.
    #[must_use]
    pub fn read(&self, url: &str) -> Option<ArchivedPageBody> {
        let place = self.by_url.get(&key(url))?;
        let warc = WarcRecordLocation {
            file: self.files.get(place.file? as usize)?.clone(),
            offset: place.offset,
        };
        let mut page = read_record(&self.dir, url, &warc, place.bytes)?;
        if let Some((distance, bytes)) = place.dom {
            let offset = place.offset.saturating_add(distance);
            page.show(dom_at(
                &self.dir,
                url,
                &WarcRecordLocation { offset, ..warc },
                bytes,
            ));
        }
        Some(page)
    }

    fn add(&mut self, row: &PageRow, changed_at: Option<Timestamp>) {
        let warc = row.warc.as_ref().filter(|_| row.may_show_body());
        let file = warc.map(|warc| self.file_number(&warc.file));
        let place = ArchivedPageLocation {
            file,
            offset: warc.map_or(0, |warc| warc.offset),
            bytes: row.bytes,
            dom: row
                .render
                .as_ref()
                .and_then(|render| render.dom_after.zip(render.dom_bytes)),
            seen: PageDatesAndRestrictions {
                changed_at,
                fetched_at: row.fetched_at,
                refuses_ai_input: refuses_ai_input(row),
                is_withheld: row.withheld.is_some(),
            },
        };
        self.by_url.insert(key(&row.url), place);
    }

    fn file_number(&mut self, name: &str) -> u32 {
        // Rows are in the order of the archive's files, so the file is usually the last one. Search
        // from the end.
        let position = self.files.iter().rposition(|position| position == name);
        let number = position.unwrap_or_else(|| {
            self.files.push(name.to_owned());
            self.files.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }
}

/// Reads the body of the page in `row` from the archive of the crawl in `dir`. If the page repeats
/// the body of an earlier visit, reads the earlier record. Returns `None` if the page has no body,
/// or the body is not archived, contains a secret ([`PageRow::may_show_body`]), or can't be read.
#[must_use]
pub fn read_archived(dir: &Path, row: &PageRow) -> Option<ArchivedPageBody> {
    let mut page = read_as_sent(dir, row)?;
    page.show(read_dom(dir, row));
    Some(page)
}

/// Reads the body of a page like [`read_archived`], but as the server sent it if the page was
/// rendered.
#[must_use]
pub fn read_as_sent(dir: &Path, row: &PageRow) -> Option<ArchivedPageBody> {
    let warc = row.warc.as_ref().filter(|_| row.may_show_body())?;
    read_record(dir, &row.url, warc, row.bytes)
}

fn read_record(
    dir: &Path,
    url: &str,
    warc: &WarcRecordLocation,
    bytes: u64,
) -> Option<ArchivedPageBody> {
    let record = read_place(dir, warc, bytes).ok()?;
    let record = match record.kind() {
        "revisit" => original(dir, &record)?,
        _ => record,
    };
    let http = record.http().filter(|_| record.url() == Some(url))?;
    let field = |name| http.field(name).map(String::from_utf8_lossy);
    let last_modified = field("last-modified")
        .and_then(|value| httpdate::parse_http_date(&value).ok())
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
        .and_then(|since| i64::try_from(since.as_secs()).ok());
    let (body, is_whole) = whole_or_part(&http)?;
    Some(ArchivedPageBody {
        content_type: effective_content_type(http.fields_named("content-type"))
            .map(Cow::into_owned),
        last_modified,
        is_truncated: !is_whole || record.field("warc-truncated").is_some(),
        body,
    })
}

/// Reads the response that a revisit record refers to (WARC 1.1 section 6.7). `None` if the index
/// of the archive doesn't list the response, or if it can't be read.
fn original(dir: &Path, revisit: &WarcRecord) -> Option<WarcRecord> {
    let url = canonicalize(None, revisit.field("warc-refers-to-target-uri")?).ok()?;
    let date = Timestamp::parse(revisit.field("warc-refers-to-date")?)?;
    find_response(dir, &url, date).ok()?
}

fn refuses_ai_input(row: &PageRow) -> bool {
    let usage = row.usage.as_ref();
    usage.and_then(|usage| usage.ai_input.as_deref()) == Some("refused")
}

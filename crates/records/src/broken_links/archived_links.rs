//! Finds links to broken pages by reading the archived pages again.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use crawl_archive::rows::PageRow;
use crawl_archive::{FOLDER, HttpMessage, WarcRecord, read_dom, read_place};
use crawl_coding::{DecodeLimits, decode_gzip};
use crawl_extractor::{
    ContentKind, Link, LinkKind, ReadingLimits, SitemapKind, document_kind, essence, link_header,
    may_be_read, read_css, read_feed, read_html, read_sitemap, refresh_header,
};
use crawl_weburl::{CanonicalUrl, UnusableUrlError, canonicalize, reference_from_bytes};

use super::broken_link_search::BrokenLinkSearch;
use super::latest_rows::{LatestRows, key};
use crate::decoded_body::decoded_body;
use crate::error::RecordsError;
use crate::row_file_reader::{pages, requests};

/// A function that receives a link: the page that contains it, its target, the link itself (`None`
/// for an entry of a feed or sitemap), and its text.
type TakeLink<'a> =
    dyn FnMut(&CanonicalUrl, LinkTargetResult<'_>, Option<&Link>, Option<&str>) + 'a;

/// The target of a link, or the reason why the link's URL can't be fetched.
pub(crate) type LinkTargetResult<'a> = Result<&'a CanonicalUrl, &'a UnusableUrlError>;

/// Reads the archived pages of a crawl, and finds the links in them.
pub(crate) struct ArchivedPageReader {
    dir: PathBuf,
    limits: ReadingLimits,
    /// The keys of the URLs that the crawl requested as sitemaps.
    sitemaps: HashSet<u64>,
}

impl ArchivedPageReader {
    /// Opens the archive; `None` if the crawl has none. Reads `requests.jsonl` to find the
    /// sitemaps, and skips malformed lines.
    pub(crate) fn open(dir: &Path) -> Result<Option<ArchivedPageReader>, RecordsError> {
        if !dir.join(FOLDER).is_dir() {
            return Ok(None);
        }
        let mut sitemaps = HashSet::new();
        let mut rows = requests(dir)?;
        while let Some(row) = rows.next_with(b"\"sitemap\"") {
            match row {
                Ok(row) if row.purpose == "sitemap" => {
                    sitemaps.insert(key(&row.url));
                }
                Ok(_) | Err(RecordsError::Row { .. }) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(Some(ArchivedPageReader {
            dir: dir.to_owned(),
            limits: ReadingLimits::default(),
            sitemaps,
        }))
    }

    /// Returns whether the crawl looked for links in the body of a row's response, by its type. A
    /// sitemap may have any type. False for data without links whose body can't be shown, so that
    /// reports don't warn of links that they may have missed.
    pub(crate) fn may_be_read(&self, row: &PageRow) -> bool {
        self.is_sitemap(row)
            || may_be_read(row.content_type.as_deref())
                && (row.may_show_body() || !is_data_without_links(row))
    }

    fn is_sitemap(&self, row: &PageRow) -> bool {
        self.sitemaps.contains(&key(&row.url))
    }

    /// Adds the links of all current pages to `wanted`. A page is current if the last row of its
    /// URL is a page. Returns the keys of the pages that could not be read.
    pub(super) fn links(
        &self,
        dir: &Path,
        latest: &LatestRows,
        wanted: &mut BrokenLinkSearch<'_>,
    ) -> Result<HashSet<u64>, RecordsError> {
        let mut unread = HashSet::new();
        let mut rows = pages(dir)?;
        while let Some(row) = rows.next() {
            let row = row?;
            if latest.is_body(&row, rows.line())
                && self.may_be_read(&row)
                && self
                    .each_link(&row, &mut |page, to, link, text| {
                        // The answer to a GET request doesn't show whether a POST form works.
                        let is_post = link.is_some_and(|link| link.kind == LinkKind::PostForm);
                        let Some(to) = to.ok().filter(|_| !is_post) else {
                            return;
                        };
                        let rel = || link.filter(|link| !link.rel.is_empty());
                        let rel = || rel().map(|link| link.rel.to_string());
                        wanted.link(page.as_str(), to, rel, text);
                    })
                    .is_none()
            {
                unread.insert(key(&row.url));
            }
        }
        Ok(unread)
    }

    /// Passes each link of a page to `take`; `None` if the page can't be read.
    pub(crate) fn each_link(&self, row: &PageRow, take: &mut TakeLink<'_>) -> Option<()> {
        let url = canonicalize(None, &row.url).ok()?;
        if !row.may_show_body() {
            return None;
        }
        let record = self.record(row)?;
        let http = record.http()?;
        let dom = read_dom(&self.dir, row);
        let content_type = match dom {
            Some(_) => Some(HTML_IN_UTF8),
            None => row.content_type.as_deref(),
        };
        let body = match dom {
            Some(dom) => dom.into(),
            None => decoded_body(&http)?,
        };
        let mut page = PageLinkCollector {
            url,
            limits: &self.limits,
            take,
        };
        if !(self.is_sitemap(row) && page.of_sitemap_file(&body, content_type)) {
            page.of_body(&body, content_type);
        }
        page.of_headers(&http);
        Some(())
    }

    /// Returns the DOM of a page if it was rendered, and otherwise the body. `None` if it can't be
    /// read.
    pub(crate) fn body(&self, row: &PageRow) -> Option<Bytes> {
        if !row.may_show_body() {
            return None;
        }
        self.shown(row, &self.record(row)?.http()?)
    }

    /// Returns the DOM of the page if it was rendered, and otherwise the body of its response.
    fn shown(&self, row: &PageRow, http: &HttpMessage<'_>) -> Option<Bytes> {
        match read_dom(&self.dir, row) {
            Some(dom) => Some(dom.into()),
            None => decoded_body(http),
        }
    }

    /// Returns a page with its `X-Robots-Tag` headers. `None` if it can't be read.
    pub(crate) fn html_answer(&self, row: &PageRow) -> Option<ArchivedHtml> {
        if !row.may_show_body() {
            return None;
        }
        let record = self.record(row)?;
        let http = record.http()?;
        let is_tag = |name: &[u8]| name.eq_ignore_ascii_case(b"x-robots-tag");
        let tags = http.fields.iter().filter(|(name, _)| is_tag(name));
        let tags = tags.map(|(_, value)| String::from_utf8_lossy(value).into_owned());
        let is_coded = |(name, value): &(&[u8], &[u8])| {
            name.eq_ignore_ascii_case(b"content-encoding")
                && !value.eq_ignore_ascii_case(b"identity")
        };
        Some(ArchivedHtml {
            body: self.shown(row, &http)?,
            robots_tags: tags.collect(),
            is_coded: http.fields.iter().any(is_coded),
        })
    }

    /// Returns the fragment in the `Location` of a redirect. `None` if there is no fragment, or the
    /// response is not archived.
    pub(crate) fn location_fragment(&self, row: &PageRow) -> Option<String> {
        location_fragment(&self.dir, row)
    }

    fn record(&self, row: &PageRow) -> Option<WarcRecord> {
        read_place(&self.dir, row.warc.as_ref()?, row.bytes).ok()
    }
}

/// Returns whether a row's response is data in a JSON or XML format without links: for example, the
/// manifest of a web app (`application/manifest+json`) or a map (`application/gpx+xml`). A generic
/// type such as `application/json` doesn't show this, because feeds and sitemaps may have it.
fn is_data_without_links(row: &PageRow) -> bool {
    let Some(format) = essence(row.content_type.as_deref()) else {
        return false;
    };
    let is_json = format.ends_with("+json") && format != "application/feed+json";
    // The root element of a page or a feed in XML determines another detected type.
    let is_generic_xml = row.detected_type.as_deref() == Some("application/xml");
    is_json || format.ends_with("+xml") && is_generic_xml
}

/// Returns the fragment in the `Location` of a redirect in the crawl in `dir`. `None` if there is
/// no fragment, or the response is not archived.
#[must_use]
pub fn location_fragment(dir: &Path, row: &PageRow) -> Option<String> {
    let record = read_place(dir, row.warc.as_ref()?, row.bytes).ok()?;
    let http = record.http()?;
    let mut fields = http.fields.iter();
    let (_, location) = fields.find(|(name, _)| name.eq_ignore_ascii_case(b"location"))?;
    let location = reference_from_bytes(location);
    let (_, fragment) = location.split_once('#')?;
    Some(fragment.trim_end().to_owned())
}

/// The media type of each DOM in the archive.
const HTML_IN_UTF8: &str = "text/html; charset=utf-8";

/// A page as the server sent it or, if it was rendered, as the browser shows it.
pub(crate) struct ArchivedHtml {
    pub(crate) body: Bytes,
    /// The values of the `X-Robots-Tag` headers.
    pub(crate) robots_tags: Vec<String>,
    /// Whether the server sent the page with a content coding, such as gzip.
    pub(crate) is_coded: bool,
}

/// A page whose links are being collected.
struct PageLinkCollector<'a> {
    url: CanonicalUrl,
    limits: &'a ReadingLimits,
    take: &'a mut TakeLink<'a>,
}

impl PageLinkCollector<'_> {
    fn of_body(&mut self, body: &[u8], content_type: Option<&str>) {
        match document_kind(content_type, body) {
            ContentKind::Html => {
                let page = read_html(body, content_type, self.limits);
                let base = page.base_url(&self.url);
                for link in &page.links {
                    self.link(&base, link);
                }
            }
            ContentKind::Css => {
                let base = self.url.clone();
                for link in &read_css(body, content_type, self.limits).links {
                    self.link(&base, link);
                }
            }
            ContentKind::Feed => {
                let feed = read_feed(body, content_type, self.limits);
                let page = self.url.clone();
                for entry in &feed.entries {
                    for url in entry.url.iter().chain(&entry.enclosures) {
                        self.add(url.resolve(&page), entry.title.as_deref());
                    }
                }
                for url in feed.further_pages() {
                    self.add(url.resolve(&page), None);
                }
            }
            ContentKind::Sitemap | ContentKind::Text => {
                self.of_sitemap(body, content_type);
            }
            _ => {}
        }
    }

    /// Adds the entries of a URL that the crawl requested as a sitemap. Returns whether it is one.
    fn of_sitemap_file(&mut self, body: &Bytes, content_type: Option<&str>) -> bool {
        let unpacked = decode_gzip(body, &DecodeLimits::default());
        self.of_sitemap(&unpacked.bytes, content_type)
    }

    /// Adds the entries of a sitemap. A list of URLs in plain text is a sitemap too. Other text has
    /// no entries. Returns whether the body is a sitemap.
    fn of_sitemap(&mut self, body: &[u8], content_type: Option<&str>) -> bool {
        let sitemap = read_sitemap(body, content_type, self.limits);
        let page = self.url.clone();
        for entry in &sitemap.entries {
            let further = entry.further_pages().chain(entry.resources());
            for raw in std::iter::once(entry.loc.as_str()).chain(further) {
                self.add(canonicalize(Some(&page), raw), None);
            }
        }
        sitemap.kind != SitemapKind::Unknown
    }

    fn of_headers(&mut self, http: &HttpMessage<'_>) {
        let base = self.url.clone();
        for (name, value) in &http.fields {
            let value = reference_from_bytes(value);
            if name.eq_ignore_ascii_case(b"link") {
                for link in link_header(&value, self.limits) {
                    self.link(&base, &link);
                }
            } else if name.eq_ignore_ascii_case(b"refresh")
                && let Some(link) = refresh_header(&value, self.limits)
            {
                self.link(&base, &link);
            }
        }
    }

    fn link(&mut self, base: &CanonicalUrl, link: &Link) {
        let href = match link.kind {
            // A browser replaces the query of the address with the form data (HTML Standard
            // 4.10.21.3).
            LinkKind::Form => link.href.split(['?', '#']).next().unwrap_or_default(),
            _ => &link.href,
        };
        let to = canonicalize(Some(base), href);
        (self.take)(&self.url, to.as_ref(), Some(link), link.text.as_deref());
    }

    fn add(&mut self, to: Result<CanonicalUrl, UnusableUrlError>, text: Option<&str>) {
        if let Ok(to) = to {
            (self.take)(&self.url, Ok(&to), None, text);
        }
    }
}

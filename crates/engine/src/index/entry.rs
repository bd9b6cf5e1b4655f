//! What of an exchange goes into the search index. Runs on reader threads.

use crawl_extractor::{Content, ContentLimits, Limits, Page, PageContext, link_header, read_page};
use crawl_fetcher::Exchange;
use crawl_frontier::{Lease, UrlKind};
use crawl_index::{FetchedDocument, IndexEntry, judge};
use crawl_policy::PageDirectives;
use crawl_policy::usage::{Ledger, UsagePurpose};
use crawl_scheduler::Tick;
use crawl_weburl::CanonicalUrl;
use http::HeaderMap;

use crate::read::{PageReader, redirect_target};
use crate::usage;

/// Reads links and text of a page in one pass.
pub(crate) fn read_both(
    bytes: &[u8],
    content_type: Option<&str>,
    headers: &HeaderMap,
    at: i64,
    limits: &Limits,
) -> (Page, Content) {
    let language = headers.get(http::header::CONTENT_LANGUAGE);
    let language = language.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let given = PageContext {
        content_type,
        content_language: language.as_deref(),
        fetched_at: Some(at),
    };
    read_page(bytes, &given, limits, &ContentLimits::default())
}

/// What the index is told of a page that was read. `refused` is the statement by which its site
/// refuses the use.
pub(crate) fn entry(
    url: &CanonicalUrl,
    at: i64,
    headers: &HeaderMap,
    (page, content): (&Page, &Content),
    directives: &PageDirectives,
    refused: Option<&str>,
) -> IndexEntry {
    let canonical = canonical_of(headers);
    let came = FetchedDocument {
        url,
        at,
        page,
        content,
        directives,
        search_refused: refused,
        linked_canonical: canonical.as_deref(),
    };
    judge(&came).map_or_else(
        |why| left_out(url, why.to_string()),
        |page| IndexEntry::Put(Box::new(page)),
    )
}

/// That a URL stays out.
pub(crate) fn left_out(url: &CanonicalUrl, why: impl Into<String>) -> IndexEntry {
    IndexEntry::Drop {
        url: url.to_string(),
        why: why.into(),
    }
}

/// Seconds since 1970 UTC.
pub(crate) fn seconds_of(at: Tick) -> i64 {
    i64::try_from(at.as_micros() / 1_000_000).unwrap_or(i64::MAX)
}

impl PageReader {
    /// What the index is told of an answer that is no page to read: that the URL leads elsewhere,
    /// or to nothing any more. An answer that may pass (503, a login form) says nothing of the
    /// page.
    pub(crate) fn without_page(
        &self,
        lease: &Lease,
        exchange: &Exchange,
        said: &Ledger,
    ) -> Option<IndexEntry> {
        if !self.index || lease.kind != UrlKind::Page {
            return None;
        }
        if redirect_target(exchange).is_some() {
            return Some(left_out(&lease.url, "redirect"));
        }
        match exchange.status {
            404 => Some(left_out(&lease.url, "not_found")),
            410 => Some(left_out(&lease.url, "gone")),
            // What a 304 says of the page holds, RFC 9110 section 15.4.5.
            304 => {
                let directives = self.directives(exchange, &[]);
                let at = seconds_of(exchange.started);
                let over = directives.unavailable_after;
                let over = over.filter(|over| over.value <= at);
                let why = directives.noindex.map(|by| format!("noindex: {by}"));
                let why = why.or(over.map(|by| format!("unavailable_after: {}", by.source)));
                let usage = || Some(format!("usage: {}", self.search_refused(said)?));
                Some(left_out(&lease.url, why.or_else(usage)?))
            }
            200..=299 => Some(left_out(&lease.url, "no_page")),
            _ => None,
        }
    }

    /// The statement by which a page's site refuses it to a search index, or to what the crawl
    /// is for.
    pub(crate) fn search_refused(&self, said: &Ledger) -> Option<String> {
        let of = |purpose| usage::refused(said, purpose).map(usage::words);
        of(UsagePurpose::Search).or_else(|| of(self.purpose?))
    }
}

/// The target of a `Link` header with `rel=canonical` (RFC 6596 section 3).
fn canonical_of(headers: &HeaderMap) -> Option<String> {
    let limits = Limits::default();
    headers
        .get_all(http::header::LINK)
        .iter()
        .find_map(|value| {
            let value = String::from_utf8_lossy(value.as_bytes());
            let links = link_header(&value, &limits).into_iter();
            let mut links = links.filter(|link| link.rel.contains(crawl_extractor::Rel::CANONICAL));
            links.next().map(|link| link.href)
        })
}

//! Creates the index entry of an exchange. Runs on reader threads.

use crawl_archive::DigestAlgorithm;
use crawl_extractor::{
    ContentLimits, DecodedPage, ExtractedPage, NamedMeta, PageContent, PageContext, ReadingLimits,
    VisibleTextObserver, link_header, read_page_text,
};
use crawl_fetcher::{Interstitial, InterstitialSigns, interstitial};
#[cfg(feature = "search")]
use crawl_index::{IndexingCandidate, judge};
use crawl_index_entry::IndexLogEntry;
use crawl_policy::{PageDirectives, ProductToken, RobotsProfile};
use crawl_weburl::{CanonicalUrl, reference_from_bytes};
use http::{HeaderMap, HeaderName};

#[cfg(feature = "search")]
use crate::content_type::content_type;

/// The header field with robots directives.
pub(crate) const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");

/// Number of characters to store of a digest of header fields (80 bits).
const MAX_DIGEST_CHARS: usize = 16;

/// Reads the links and the text of a page in one pass. Passes the text and the images to `observer`
/// as well.
pub(crate) fn read_both(
    text: &DecodedPage<'_>,
    headers: &HeaderMap,
    at: i64,
    limits: &ReadingLimits,
    observer: &mut dyn VisibleTextObserver,
) -> (ExtractedPage, PageContent) {
    let language = headers.get(http::header::CONTENT_LANGUAGE);
    let language = language.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let context = PageContext {
        content_language: language.as_deref(),
        fetched_at: Some(at),
        ..PageContext::default()
    };
    read_page_text(text, &context, limits, &ContentLimits::default(), observer)
}

/// Returns the kind of interstitial that a page is. `None` if it is an ordinary page.
pub(crate) fn interstitial_of(
    status: u16,
    headers: &HeaderMap,
    page: &ExtractedPage,
    text: &DecodedPage<'_>,
) -> Option<Interstitial> {
    let outline = InterstitialSigns {
        title: page.title.as_deref().unwrap_or_default(),
        heading: page.outline.heading.as_deref().unwrap_or_default(),
        passwords: page.outline.passwords,
        links: page.outline.links,
        letters: page.outline.letters,
        markup: text.as_str(),
    };
    interstitial(status, headers, &outline)
}

/// Returns the robots directives for this agent in a page's META elements and header fields.
pub(crate) fn directives(
    headers: &HeaderMap,
    metas: &[NamedMeta],
    agent: &ProductToken,
    profile: RobotsProfile,
) -> PageDirectives {
    let headers = headers.get_all(X_ROBOTS_TAG).iter();
    let headers: Vec<_> = headers
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    let headers = headers.iter().map(AsRef::as_ref);
    PageDirectives::read(headers, pairs(metas), agent, profile)
}

/// Resolves the address of a link against the base URL of its page.
type ResolveLink<'a> = dyn FnMut(&CanonicalUrl, &str) -> Option<CanonicalUrl> + 'a;

/// Creates the index entry of a page. `refused` is the site's statement that refuses indexing, if
/// any. `is_in_crawl` returns whether the host of a URL is part of the crawl.
#[cfg(feature = "search")]
pub(crate) fn entry(
    url: &CanonicalUrl,
    at: i64,
    headers: &HeaderMap,
    (page, content): (&ExtractedPage, &PageContent),
    directives: &PageDirectives,
    refused: Option<&str>,
    (resolve, is_in_crawl): (&mut ResolveLink<'_>, &dyn Fn(&CanonicalUrl) -> bool),
) -> IndexLogEntry {
    let canonical = linked_canonical(headers);
    let content_type = content_type(headers);
    let document = IndexingCandidate {
        content_type: content_type.as_deref(),
        url,
        at,
        page,
        content,
        directives,
        search_refused: refused,
        linked_canonical: canonical.as_deref(),
        is_in_crawl,
    };
    judge(&document, resolve).map_or_else(
        |why| left_out(url, why.to_string()),
        |page| IndexLogEntry::Put(Box::new(page)),
    )
}

/// In a build without an index, creates an entry that leaves the page out.
#[cfg(not(feature = "search"))]
pub(crate) fn entry(
    url: &CanonicalUrl,
    _at: i64,
    _headers: &HeaderMap,
    _read: (&ExtractedPage, &PageContent),
    _directives: &PageDirectives,
    _refused: Option<&str>,
    _links: (&mut ResolveLink<'_>, &dyn Fn(&CanonicalUrl) -> bool),
) -> IndexLogEntry {
    left_out(url, "search_not_in_build")
}

/// Creates an entry that keeps a URL out of the index.
pub(crate) fn left_out(url: &CanonicalUrl, why: impl Into<String>) -> IndexLogEntry {
    IndexLogEntry::Drop {
        url: url.to_string(),
        why: why.into(),
    }
}

/// Returns the target of a `Link` header field with `rel=canonical` (RFC 6596 section 3).
pub(crate) fn linked_canonical(headers: &HeaderMap) -> Option<String> {
    let limits = ReadingLimits::default();
    headers
        .get_all(http::header::LINK)
        .iter()
        .find_map(|value| {
            let value = reference_from_bytes(value.as_bytes());
            let links = link_header(&value, &limits).into_iter();
            let mut links = links.filter(|link| link.rel.contains(crawl_extractor::Rel::CANONICAL));
            links.next().map(|link| link.href)
        })
}

/// Returns a digest of the header fields that decide how a page is indexed: `X-Robots-Tag`, and the
/// canonical URL in `Link`. `None` if there are none.
pub(crate) fn indexing_fields_digest(headers: &HeaderMap) -> Option<String> {
    let canonical = linked_canonical(headers);
    let tags = headers.get_all(X_ROBOTS_TAG).iter();
    let mut parts: Vec<&[u8]> = tags.flat_map(|tag| [tag.as_bytes(), b"\n"]).collect();
    parts.extend(canonical.iter().flat_map(|url| [b"<", url.as_bytes()]));
    if parts.is_empty() {
        return None;
    }
    let digest = DigestAlgorithm::default().of(&parts);
    let digits = digest
        .split_once(':')
        .map_or(&*digest, |(_, digits)| digits);
    Some(digits.chars().take(MAX_DIGEST_CHARS).collect())
}

/// Returns the name and content of each META element.
pub(crate) fn pairs(metas: &[NamedMeta]) -> impl Iterator<Item = (&str, &str)> {
    metas
        .iter()
        .map(|meta| (meta.name.as_str(), meta.content.as_str()))
}

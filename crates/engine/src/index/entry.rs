//! The index's entry of an exchange. Runs on reader threads.

use crawl_extractor::{
    Content, ContentLimits, Limits, Meta, Page, PageContext, PageObserver, PageText, link_header,
    read_page_text,
};
use crawl_fetcher::{Interstitial, PageOutline, interstitial};
#[cfg(feature = "search")]
use crawl_index::{FetchedDocument, judge};
use crawl_index_entry::IndexEntry;
use crawl_policy::{PageDirectives, ProductToken, Profile};
use crawl_weburl::CanonicalUrl;
use http::HeaderMap;

/// Reads links and text of a page in one pass, of which `observer` learns too.
pub(crate) fn read_both(
    text: &PageText<'_>,
    headers: &HeaderMap,
    at: i64,
    limits: &Limits,
    observer: &mut dyn PageObserver,
) -> (Page, Content) {
    let language = headers.get(http::header::CONTENT_LANGUAGE);
    let language = language.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let given = PageContext {
        content_language: language.as_deref(),
        fetched_at: Some(at),
        ..PageContext::default()
    };
    read_page_text(text, &given, limits, &ContentLimits::default(), observer)
}

/// The kind of interstitial that a page is, if it is one.
pub(crate) fn interstitial_of(
    status: u16,
    headers: &HeaderMap,
    page: &Page,
    text: &PageText<'_>,
) -> Option<Interstitial> {
    let outline = PageOutline {
        title: page.title.as_deref().unwrap_or_default(),
        heading: page.outline.heading.as_deref().unwrap_or_default(),
        passwords: page.outline.passwords,
        links: page.outline.links,
        letters: page.outline.letters,
        markup: text.as_str(),
    };
    interstitial(status, headers, &outline)
}

/// The directives for robots of a page and its headers, as far as they bind this agent.
pub(crate) fn directives(
    headers: &HeaderMap,
    metas: &[Meta],
    agent: &ProductToken,
    profile: Profile,
) -> PageDirectives {
    let headers = headers.get_all("x-robots-tag").iter();
    let headers: Vec<_> = headers
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    let headers = headers.iter().map(AsRef::as_ref);
    PageDirectives::read(headers, pairs(metas), agent, profile)
}

/// Resolves a link of a page against its base.
type ResolveLink<'a> = dyn FnMut(&CanonicalUrl, &str) -> Option<CanonicalUrl> + 'a;

/// The index's entry of a page that was read. `refused` is the statement by which its site
/// refuses the use; `is_in_crawl` tells whether the crawl asks the host of a URL.
#[cfg(feature = "search")]
pub(crate) fn entry(
    url: &CanonicalUrl,
    at: i64,
    headers: &HeaderMap,
    (page, content): (&Page, &Content),
    directives: &PageDirectives,
    refused: Option<&str>,
    (resolve, is_in_crawl): (&mut ResolveLink<'_>, &dyn Fn(&CanonicalUrl) -> bool),
) -> IndexEntry {
    let canonical = linked_canonical(headers);
    let content_type = headers.get(http::header::CONTENT_TYPE);
    let content_type = content_type.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let came = FetchedDocument {
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
    judge(&came, resolve).map_or_else(
        |why| left_out(url, why.to_string()),
        |page| IndexEntry::Put(Box::new(page)),
    )
}

/// The entry of a page in a build that has no index: it stays out.
#[cfg(not(feature = "search"))]
pub(crate) fn entry(
    url: &CanonicalUrl,
    _at: i64,
    _headers: &HeaderMap,
    _read: (&Page, &Content),
    _directives: &PageDirectives,
    _refused: Option<&str>,
    _links: (&mut ResolveLink<'_>, &dyn Fn(&CanonicalUrl) -> bool),
) -> IndexEntry {
    left_out(url, "search_not_in_build")
}

/// That a URL stays out.
pub(crate) fn left_out(url: &CanonicalUrl, why: impl Into<String>) -> IndexEntry {
    IndexEntry::Drop {
        url: url.to_string(),
        why: why.into(),
    }
}

/// The target of a `Link` header with `rel=canonical` (RFC 6596 section 3).
pub(crate) fn linked_canonical(headers: &HeaderMap) -> Option<String> {
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

/// The METAs of a page, as name and content.
pub(crate) fn pairs(metas: &[Meta]) -> impl Iterator<Item = (&str, &str)> {
    metas
        .iter()
        .map(|meta| (meta.name.as_str(), meta.content.as_str()))
}

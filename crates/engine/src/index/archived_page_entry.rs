//! Creates the index entry of an archived page.

use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use crawl_archive::HttpMessage;
use crawl_coding::{DecodeLimits, decode};
use crawl_extractor::{
    ContentKind, DecodedPage, ReadingLimits, document_kind, effective_content_type, may_be_read,
};
use crawl_fetcher::Secrets;
use crawl_index_entry::IndexLogEntry;
use crawl_policy::{ProductToken, RobotsProfile};
use crawl_weburl::{CanonicalUrl, canonicalize};
use http::header::{CONTENT_ENCODING, LINK};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::entry_creation::{
    X_ROBOTS_TAG, directives, entry, interstitial_of, left_out, linked_canonical, read_both,
};
use crate::document_conversion::{DocumentIndexingSettings, DocumentToConvert, HTML_IN_UTF8};
use crate::secret_redaction::redacted_entry;

/// The rules for indexing an archived page.
#[derive(Clone, Copy)]
pub(crate) struct ArchivedPageRules<'a> {
    pub(crate) agent: &'a ProductToken,
    pub(crate) profile: RobotsProfile,
    pub(crate) secrets: &'a Secrets,
    pub(crate) documents: &'a DocumentIndexingSettings,
    /// Returns whether the host of a URL is part of the crawl.
    pub(crate) is_in_crawl: &'a dyn Fn(&CanonicalUrl) -> bool,
}

/// An archived page.
pub(crate) struct ArchivedPage<'a> {
    pub(crate) url: &'a CanonicalUrl,
    /// When the page was last fetched, in seconds since 1970 UTC.
    pub(crate) at: i64,
    /// The archived response with the page's body.
    pub(crate) http: &'a HttpMessage<'a>,
    /// The header fields of the page, which differ from those of `http` if later responses without
    /// a body changed them.
    pub(crate) headers: &'a HeaderMap,
    /// The serialized DOM, if the page was rendered.
    pub(crate) dom: Option<Vec<u8>>,
    /// The site's statement that refuses indexing, if any.
    pub(crate) refused: Option<&'a str>,
}

impl ArchivedPage<'_> {
    /// Returns the index entry of the page. Stops the conversion of a document if `is_given_up`
    /// becomes true.
    pub(crate) fn entry(
        self,
        rules: ArchivedPageRules<'_>,
        is_given_up: &AtomicBool,
    ) -> IndexLogEntry {
        let ArchivedPage {
            url, http, headers, ..
        } = self;
        let content_type = effective_content_type(http.fields_named("content-type"));
        let content_type = content_type.as_deref();
        let documents = rules.documents;
        if !may_be_read(content_type) && !documents.may_be_read(content_type, url.path()) {
            return left_out(url, "no_page");
        }
        let body = Bytes::copy_from_slice(http.body);
        let content_type = self
            .dom
            .as_ref()
            .map_or(content_type, |_| Some(HTML_IN_UTF8));
        let codings = headers.get_all(CONTENT_ENCODING);
        let decoded = || decode(codings, &body, &DecodeLimits::default()).bytes;
        let bytes = self.dom.map_or_else(decoded, Bytes::from);
        let is_page = document_kind(content_type, &bytes) == ContentKind::Html;
        let kind = || documents.kind(content_type, url.path(), &bytes);
        let html = match is_page {
            true => None,
            false => match kind() {
                Some(kind) => {
                    let last_modified = http.field("Last-Modified").map(String::from_utf8_lossy);
                    let document = DocumentToConvert {
                        kind,
                        content_type,
                        last_modified: last_modified.as_deref(),
                        bytes: &bytes,
                    };
                    match documents.to_html(document, is_given_up) {
                        Ok(html) => Some(html),
                        Err(why) => return left_out(url, why.name()),
                    }
                }
                None => return left_out(url, "no_page"),
            },
        };
        if is_page && !documents.html {
            return left_out(url, "no_page");
        }
        let status = http.status().unwrap_or(200);
        let text = match &html {
            Some(html) => DecodedPage::decode(html.as_bytes(), Some(HTML_IN_UTF8)),
            None => DecodedPage::decode(&bytes, content_type),
        };
        let (page, content) =
            read_both(&text, headers, self.at, &ReadingLimits::default(), &mut ());
        if let Some(obstacle) = interstitial_of(status, headers, &page, &text) {
            return left_out(url, obstacle.name());
        }
        let directives = directives(headers, &page.metas, rules.agent, rules.profile);
        let mut resolve = |base: &CanonicalUrl, href: &str| canonicalize(Some(base), href).ok();
        let entry = entry(
            url,
            self.at,
            headers,
            (&page, &content),
            &directives,
            self.refused,
            (&mut resolve, rules.is_in_crawl),
        );
        redacted_entry(rules.secrets, entry)
    }
}

/// Returns the valid header fields among archived `fields` (names and values).
pub(crate) fn header_map<N, V>(fields: &[(N, V)]) -> HeaderMap
where
    N: AsRef<[u8]>,
    V: AsRef<[u8]>,
{
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_ref());
        let value = HeaderValue::from_bytes(value.as_ref());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}

/// Updates the header fields that decide how a page is indexed, from a later response for the same
/// body. A 304 response changes only the fields that it has (RFC 9111 section 3.2). If
/// `replaces_all` is true, as for a 200 response, fields that `newer` lacks are removed.
pub(crate) fn update_indexing_fields(
    headers: &mut HeaderMap,
    newer: &HeaderMap,
    replaces_all: bool,
) {
    let has_tag = newer.contains_key(X_ROBOTS_TAG);
    let has_canonical = linked_canonical(newer).is_some();
    for (name, is_in_newer) in [(X_ROBOTS_TAG, has_tag), (LINK, has_canonical)] {
        if replaces_all || is_in_newer {
            headers.remove(&name);
            for value in newer.get_all(&name) {
                headers.append(name.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::{header_map, update_indexing_fields};

    fn fields(headers: &HeaderMap) -> Vec<(&str, &str)> {
        let named =
            |name: &'static str| headers.get_all(name).iter().map(move |value| (name, value));
        let names = ["x-robots-tag", "link", "etag"];
        let fields = names.into_iter().flat_map(named);
        fields
            .map(|(name, value)| (name, value.to_str().unwrap()))
            .collect()
    }

    #[test]
    fn a_304_changes_only_the_fields_that_it_has() {
        let stored = [
            ("x-robots-tag", "nosnippet"),
            ("x-robots-tag", "noai"),
            ("link", "</a>; rel=canonical"),
            ("etag", "\"1\""),
        ];
        let updated = |newer: &[(&str, &str)], replaces_all| {
            let mut headers = header_map(&stored);
            update_indexing_fields(&mut headers, &header_map(newer), replaces_all);
            headers
        };
        let tag = [("x-robots-tag", "max-snippet:20"), ("etag", "\"2\"")];
        assert_eq!(
            fields(&updated(&tag, false)),
            [tag[0], stored[2], stored[3]]
        );
        assert_eq!(fields(&updated(&tag, true)), [tag[0], stored[3]]);
        // A `Link` field without a canonical URL leaves the stored canonical URL unchanged.
        let preload = [("link", "</a.css>; rel=preload")];
        assert_eq!(fields(&updated(&preload, false)), stored);
        let canonical = [("link", "</b>; rel=canonical")];
        let expected = [stored[0], stored[1], canonical[0], stored[3]];
        assert_eq!(fields(&updated(&canonical, false)), expected);
    }
}

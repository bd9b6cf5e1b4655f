//! Applies the operator's content filter to responses: first to the header, so that unwanted bodies
//! are not received, and again after a page is read.

use crawl_extractor::{ContentKind, may_be_read};
use crawl_fetcher::{BodyFilter, Exchange, TruncationReason};
use crawl_scope::{ContentFilter, UnwantedReason};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;

use crate::content_type::content_type;

/// Returns the part of the content filter that the fetcher needs. `None` if everything is wanted.
pub(crate) fn body_filter(filter: &ContentFilter) -> Option<BodyFilter> {
    if filter.wants_all() {
        return None;
    }
    let judge = filter.clone();
    Some(BodyFilter::new(filter.max_size, move |status, headers| {
        by_head(&judge, status, headers).is_none()
    }))
}

/// Returns why a response's body should not be read, judging by the response's status and header.
/// `None` if it should be read. A document that may contain links is read even if its type is
/// unwanted, unless it is too long.
fn by_head(filter: &ContentFilter, status: u16, headers: &HeaderMap) -> Option<UnwantedReason> {
    if !(200..300).contains(&status) {
        return None;
    }
    let announced = declared_length(headers);
    let too_long = announced.and_then(|bytes| filter.too_long(bytes));
    let content_type = content_type(headers);
    let by_type = || {
        let read = may_be_read(content_type.as_deref());
        let of_type = content_type.as_deref().filter(|_| !read);
        let too_short = || filter.too_short(announced.filter(|_| !read)?);
        of_type.and_then(|of| filter.of_type(of)).or_else(too_short)
    };
    too_long.or_else(by_type)
}

/// Returns the value of `Content-Length`; `None` if it is missing or malformed.
pub(crate) fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Returns why a page should not be read; `None` if it should be.
pub(crate) fn before_reading(
    filter: &ContentFilter,
    exchange: &Exchange,
) -> Option<UnwantedReason> {
    let at_limit = || {
        let is_cut = exchange.truncated == Some(TruncationReason::Length);
        // A body that was cut at the length limit is at least one byte longer than the received
        // bytes.
        let more = (exchange.body.len() as u64).saturating_add(1);
        filter.too_long(more).filter(|_| is_cut)
    };
    let of_method = exchange.sent.is_head.then_some(UnwantedReason::Body);
    of_method
        .or_else(|| by_head(filter, exchange.status, &exchange.headers))
        .or_else(at_limit)
}

/// Returns why a page that was read is not kept, judging by its type and length; `None` if it is
/// kept.
pub(crate) fn after_reading(
    filter: &ContentFilter,
    exchange: &Exchange,
    kind: ContentKind,
) -> Option<UnwantedReason> {
    let declared = content_type(&exchange.headers);
    let declared = declared.filter(|declared| !declared.trim().is_empty());
    let of_type = filter.of_type(declared.as_deref().unwrap_or_else(|| usual_type(kind)));
    let is_whole = exchange.truncated.is_none();
    let bytes = exchange.body.len() as u64;
    of_type.or_else(|| filter.too_short(bytes).filter(|_| is_whole))
}

/// Returns the media type to assume for a document without a `Content-Type`.
fn usual_type(kind: ContentKind) -> &'static str {
    match kind {
        ContentKind::Html => "text/html",
        ContentKind::Css => "text/css",
        ContentKind::Pdf => "application/pdf",
        ContentKind::Text => "text/plain",
        ContentKind::Feed | ContentKind::Sitemap => "application/xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use crawl_archive::rows::ONLY_CHECKED;
    use crawl_scope::{ContentFilter, UnwantedReason};
    use http::HeaderMap;
    use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};

    use super::{body_filter, by_head};

    #[test]
    fn rows_of_checked_links_are_recognised() {
        assert_eq!(UnwantedReason::Body.to_string(), ONLY_CHECKED);
    }

    fn filter() -> ContentFilter {
        ContentFilter {
            types: vec!["application/pdf".parse().unwrap()],
            min_size: 10,
            max_size: Some(1_000),
            ..ContentFilter::default()
        }
    }

    #[test]
    fn documents_that_may_have_links_are_read_whatever_their_type() {
        let check = |status, content_type: &str, length: &str, why: Option<&str>| {
            let mut headers = HeaderMap::new();
            for (name, value) in [(CONTENT_TYPE, content_type), (CONTENT_LENGTH, length)] {
                if !value.is_empty() {
                    headers.insert(name, HeaderValue::from_str(value).unwrap());
                }
            }
            let reason = by_head(&filter(), status, &headers).map(|why| why.to_string());
            assert_eq!(reason.as_deref(), why, "{status} {content_type} {length}");
            let body_filter = body_filter(&filter()).unwrap();
            assert_eq!(body_filter.wants(status, &headers), why.is_none());
        };
        check(200, "application/pdf", "500", None);
        check(200, "Application/PDF;a=b", "", None);
        check(200, "image/png", "500", Some("content-type image/png"));
        check(200, "image/png", "", Some("content-type image/png"));
        check(200, "text/html", "500", None);
        check(200, "application/rss+xml", "5", None);
        check(200, "", "5", None);
        check(200, "application/pdf", "5", Some("min-size 10"));
        check(200, "application/pdf", "1001", Some("max-size 1000"));
        check(200, "text/html", "1001", Some("max-size 1000"));
        check(200, "text/html", "many", None);
        check(404, "image/png", "5000", None);
        assert!(body_filter(&ContentFilter::default()).is_none());
    }
}

//! The `Content-Type` of an answer.

use std::borrow::Cow;

use crawl_extractor::effective_content_type;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};

/// Returns the `Content-Type` that applies (see [`effective_content_type`]).
pub(crate) fn content_type(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let fields = headers.get_all(CONTENT_TYPE).iter();
    effective_content_type(fields.map(HeaderValue::as_bytes))
}

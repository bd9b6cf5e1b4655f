//! Header fields common to all responses.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;

/// Content security policy of pages: same-origin resources only, nothing inline, no framing.
pub(crate) const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Content security policy of other responses, in case a browser mistakes one for a page.
const DATA_POLICY: &str =
    "default-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

const ALWAYS: [(HeaderName, &str); 8] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // A page's URL contains the search query, which other sites must not see.
    (header::REFERRER_POLICY, "same-origin"),
    (
        HeaderName::from_static("permissions-policy"),
        "accelerometer=(), autoplay=(), browsing-topics=(), camera=(), display-capture=(), \
         encrypted-media=(), fullscreen=(), geolocation=(), gyroscope=(), hid=(), \
         identity-credentials-get=(), idle-detection=(), magnetometer=(), microphone=(), \
         midi=(), payment=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), \
         storage-access=(), usb=(), xr-spatial-tracking=()",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-embedder-policy"),
        "require-corp",
    ),
    // Result pages should not appear in other search engines.
    (HeaderName::from_static("x-robots-tag"), "noindex"),
    (
        HeaderName::from_static("x-permitted-cross-domain-policies"),
        "none",
    ),
];

/// Sets the header fields that are the same in all responses. Adds default values for other header
/// fields that the response doesn't set.
pub(crate) fn complete(response: &mut Response) {
    let headers = response.headers_mut();
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let policy = match is_page(headers) {
        true => PAGE_POLICY,
        false => DATA_POLICY,
    };
    let defaults = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (CROSS_ORIGIN_RESOURCE_POLICY, "same-origin"),
        // Make caches revalidate, because the index changes while a crawl runs.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    for (name, value) in defaults {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
}

/// Name of the header field that controls which sites may load a resource without CORS.
pub(crate) const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");

fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

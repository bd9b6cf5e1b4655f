//! Replaces `http2.rs` in a build without the feature `http2`, whose client speaks only HTTP/1.1.

use reqwest::ClientBuilder;

/// The protocols offered in a TLS handshake.
pub(crate) const PROTOCOLS: &[&[u8]] = &[b"http/1.1"];

pub(crate) fn limits_of_http2(builder: ClientBuilder, _max_header_bytes: u32) -> ClientBuilder {
    builder
}

pub(crate) fn is_unprocessed(_error: &reqwest::Error) -> bool {
    false
}

pub(crate) fn requires_http1(_error: &reqwest::Error) -> bool {
    false
}

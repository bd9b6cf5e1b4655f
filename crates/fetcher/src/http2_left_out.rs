//! Replaces the bounds in a build without the feature `http2`, whose client speaks only HTTP/1.1.

use reqwest::ClientBuilder;

pub(crate) fn limits_of_http2(builder: ClientBuilder, _max_header_bytes: u32) -> ClientBuilder {
    builder
}

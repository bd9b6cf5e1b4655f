//! Bounds what an HTTP/2 server may send.

use reqwest::ClientBuilder;

use crate::client::MAX_HEADER_BYTES;

/// Maximum bytes that an HTTP/2 server may send before we read them, per body and per connection.
/// With the client's defaults, a server could fill buffers with 5 MiB that nobody has read.
const MAX_STREAM_AHEAD: u32 = 256 << 10;
const MAX_CONNECTION_AHEAD: u32 = 512 << 10;

pub(crate) fn limits_of_http2(builder: ClientBuilder) -> ClientBuilder {
    builder
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .http2_initial_stream_window_size(MAX_STREAM_AHEAD)
        .http2_initial_connection_window_size(MAX_CONNECTION_AHEAD)
}

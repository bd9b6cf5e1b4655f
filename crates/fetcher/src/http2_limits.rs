//! Limits what an HTTP/2 server may send before we read it.

use reqwest::ClientBuilder;

/// Maximum bytes of one body that an HTTP/2 server may send before we read them. With the client's
/// defaults, a server could fill buffers with 5 MiB that nobody has read.
const MAX_STREAM_AHEAD: u32 = 256 << 10;
/// Maximum bytes of all bodies on a connection that an HTTP/2 server may send before we read them.
const MAX_CONNECTION_AHEAD: u32 = 512 << 10;

/// The protocols offered in a TLS handshake, preferred ones first.
pub(crate) const PROTOCOLS: &[&[u8]] = &[b"h2", b"http/1.1"];

/// Sets the limits. `max_header_bytes` is the maximum size of an answer's headers.
pub(crate) fn limits_of_http2(builder: ClientBuilder, max_header_bytes: u32) -> ClientBuilder {
    builder
        .http2_max_header_list_size(max_header_bytes)
        .http2_initial_stream_window_size(MAX_STREAM_AHEAD)
        .http2_initial_connection_window_size(MAX_CONNECTION_AHEAD)
}

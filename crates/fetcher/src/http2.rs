//! The code that depends on HTTP/2: limits on what a server may send before we read it, and the
//! errors with which a server refuses a request over HTTP/2.

use h2::Reason;
use reqwest::ClientBuilder;

use crate::failure_classification::cause;

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

/// Returns whether the server did not process a request (RFC 9113 section 8.7): it refused the
/// stream, or closed the connection gracefully without processing the stream.
pub(crate) fn is_unprocessed(error: &reqwest::Error) -> bool {
    cause::<h2::Error>(error).is_some_and(|refusal| {
        let reason = refusal.reason();
        refusal.is_remote()
            && (refusal.is_reset() && reason == Some(Reason::REFUSED_STREAM)
                || refusal.is_go_away() && reason == Some(Reason::NO_ERROR))
    })
}

/// Returns whether the server refused a request because it came over HTTP/2, with the error
/// `HTTP_1_1_REQUIRED` (RFC 9113 section 7).
pub(crate) fn requires_http1(error: &reqwest::Error) -> bool {
    let refusal = cause::<h2::Error>(error).and_then(h2::Error::reason);
    refusal == Some(Reason::HTTP_1_1_REQUIRED)
}

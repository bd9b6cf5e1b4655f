//! Writes the HTTP message of a record in the form that readers of WARC files expect.
//!
//! Readers verify digests of the stored bytes and replay the bytes as they are. So the message is
//! *normalised*: its syntax is HTTP/1.1 for any protocol version, its content coding is kept, its
//! transfer coding is removed, and `Content-Length` is the length of the body. Header fields that
//! contradict this are kept under names that begin with `X-Archive-Orig-`.

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};

use crate::capture::{Capture, RevisitProfile};

/// Writes the status line, the header fields and the blank line of a response.
pub(crate) fn response_head(capture: &Capture<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("HTTP/1.1 {:03} ", capture.status).as_bytes());
    match capture.reason {
        Some(reason) => push_value(reason, out),
        None => push_value(usual_reason(capture.status).as_bytes(), out),
    }
    out.extend_from_slice(b"\r\n");
    let length = capture.body.len().to_string();
    let mut has_right_length = false;
    for (name, value) in capture.headers {
        let is_first_right =
            name == CONTENT_LENGTH && !has_right_length && value.as_bytes() == length.as_bytes();
        has_right_length |= is_first_right;
        let name = match name {
            name if name == TRANSFER_ENCODING => "X-Archive-Orig-Transfer-Encoding",
            name if name == CONTENT_LENGTH && !is_first_right => "X-Archive-Orig-Content-Length",
            name => name.as_str(),
        };
        push_field(name, value.as_bytes(), out);
    }
    if !has_right_length && needs_length(capture) {
        push_field("Content-Length", length.as_bytes(), out);
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes the request line, the header fields and the blank line of a request.
pub(crate) fn request_head(capture: &Capture<'_>, out: &mut Vec<u8>) {
    let request = &capture.request;
    push_value(request.method.as_bytes(), out);
    out.push(b' ');
    out.extend_from_slice(capture.url.path_and_query().as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let has_host = request
        .headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"));
    if !has_host {
        push_field("host", authority(capture).as_bytes(), out);
    }
    for (name, value) in request.headers {
        push_field(name, value.as_bytes(), out);
    }
    if request.method == "POST" {
        let length = request.body.len().to_string();
        push_field("Content-Length", length.as_bytes(), out);
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes `name: value` and a line end. CR, LF and NUL in the value become spaces (RFC 9110 section
/// 5.5), so that a value can't end its line. All other bytes stay.
pub(crate) fn push_field(name: &str, value: &[u8], out: &mut Vec<u8>) {
    push_value(name.as_bytes(), out);
    out.extend_from_slice(b": ");
    push_value(value, out);
    out.extend_from_slice(b"\r\n");
}

/// Returns the value of the first `Content-Type` field.
pub(crate) fn content_type(headers: &HeaderMap) -> Option<&[u8]> {
    headers
        .get(http::header::CONTENT_TYPE)
        .map(http::HeaderValue::as_bytes)
}

fn push_value(value: &[u8], out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend_from_slice(value);
    for byte in &mut out[begin..] {
        if matches!(byte, b'\r' | b'\n' | 0) {
            *byte = b' ';
        }
    }
}

/// Returns whether the header must contain `Content-Length`, so that a reader knows where the body
/// ends. Responses with status 204 or 304 never have a body; in a 304, `Content-Length` is the
/// length of the body that a plain request would get (RFC 9110 section 8.6).
fn needs_length(capture: &Capture<'_>) -> bool {
    !capture.body.is_empty()
        || !(matches!(capture.status, 204 | 304)
            || matches!(capture.revisit, Some(RevisitProfile::NotModified(_))))
}

fn usual_reason(status: u16) -> &'static str {
    StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or("Unknown")
}

fn authority<'a>(capture: &'a Capture<'_>) -> &'a str {
    let rest = &capture.url.as_str()[capture.url.scheme().len() + 3..];
    rest.split('/').next().unwrap_or(rest)
}

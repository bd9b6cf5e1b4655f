//! Reads from the head of an answer how its body ends.

use http::Version;
use http::header::{CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING};

use crate::exchange::Exchange;

/// Maximum characters of a header value in a message.
const MAX_SHOWN_CHARS: usize = 80;

/// How the body of an answer ends, and why the body can't be used as it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BodyFraming {
    /// Whether only the end of the connection marks the end of the body (RFC 9112 section 6.3).
    pub(crate) until_close: bool,
    /// Why the body can't be read: it has a transfer coding other than chunked. The fetcher
    /// requests none, and the client would return the coded bytes (RFC 9112 section 7).
    pub(crate) unknown_coding: Option<String>,
}

impl BodyFraming {
    /// Reads the head of an answer, whose body is not read yet.
    pub(crate) fn of(head: &Exchange) -> BodyFraming {
        // HTTP/2 has frames of its own. A 304 may name the coding that a 200 would have.
        if head.version > Version::HTTP_11 || head.status == 304 {
            return BodyFraming::default();
        }
        let codings: Vec<&[u8]> = head
            .headers
            .get_all(TRANSFER_ENCODING)
            .iter()
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
            .filter(|coding| !coding.is_empty())
            .collect();
        // RFC 2616 had the coding `identity`, which some servers still send.
        let is_identity = |coding: &&[u8]| coding.eq_ignore_ascii_case(b"identity");
        let is_chunked = |coding: &&[u8]| coding.eq_ignore_ascii_case(b"chunked");
        let is_unframed = codings.iter().all(is_identity);
        // The client removes chunks only if chunked is the last coding.
        let is_known = is_unframed
            || codings.last().is_some_and(is_chunked)
                && codings.iter().all(|c| is_chunked(c) || is_identity(c));
        let unknown_coding = (!is_known).then(|| {
            let mut values = head.headers.get_all(TRANSFER_ENCODING).iter();
            format!("unrequested transfer coding `{}`", shown(values.next()))
        });
        let has_length = codings.is_empty() && head.headers.contains_key(CONTENT_LENGTH);
        BodyFraming {
            until_close: is_unframed && !has_length,
            unknown_coding,
        }
    }
}

/// Returns the beginning of a header value for a message.
fn shown(value: Option<&HeaderValue>) -> String {
    let value = String::from_utf8_lossy(value.map_or(b"", HeaderValue::as_bytes));
    value.chars().take(MAX_SHOWN_CHARS).collect()
}

//! Reads from the head of an answer how its body ends, and whether the body is only a part.

use http::Version;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderValue, TRANSFER_ENCODING};

use crate::exchange::Exchange;

/// Maximum characters of a header value in a message.
const MAX_SHOWN_CHARS: usize = 80;

/// How the body of an answer ends, and why the body can't be used as it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BodyFraming {
    /// Whether only the end of the connection marks the end of the body (RFC 9112 section 6.3).
    pub(crate) until_close: bool,
    /// The length of the body in bytes if only the fetcher knows it: the client ignores a
    /// `Content-Length` beside the coding `identity`, and would wait for the end of the connection.
    pub(crate) length: Option<u64>,
    /// Why the body can't be read: it has a transfer coding other than chunked. The fetcher
    /// requests none, and the client would return the coded bytes (RFC 9112 section 7).
    pub(crate) unknown_coding: Option<String>,
    /// Why the body is incomplete even if all its bytes arrive: the server sent a part, although
    /// the fetcher never requests one.
    pub(crate) part: Option<String>,
}

impl BodyFraming {
    /// Reads the head of an answer, whose body is not read yet.
    pub(crate) fn of(head: &Exchange) -> BodyFraming {
        let part = part(head);
        // HTTP/2 has frames of its own. A 204 and a 304 have no body, whatever their header says
        // (RFC 9112 section 6.3). A 304 may name the coding that a 200 would have.
        if head.version > Version::HTTP_11 || matches!(head.status, 204 | 304) {
            return BodyFraming {
                part,
                ..BodyFraming::default()
            };
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
        let announced = head.headers.get(CONTENT_LENGTH);
        let number = announced.and_then(|length| length.to_str().ok()?.trim().parse().ok());
        BodyFraming {
            until_close: is_unframed
                && announced.is_none_or(|_| !codings.is_empty() && number.is_none()),
            length: number.filter(|_| is_unframed && !codings.is_empty()),
            unknown_coding,
            part,
        }
    }
}

/// Returns why the body is only a part (RFC 9110 section 15.3.7). `None` if the whole document was
/// sent. Some servers send a whole document with 206 and without `Content-Range`.
fn part(head: &Exchange) -> Option<String> {
    if head.status != 206 {
        return None;
    }
    let range = head.headers.get(CONTENT_RANGE);
    let media_type = head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_multipart = media_type.is_some_and(|media_type| {
        let name = b"multipart/byteranges";
        (media_type.get(..name.len())).is_some_and(|start| start.eq_ignore_ascii_case(name))
    });
    match range {
        Some(range) if !is_whole(range) => {
            Some(format!("an unrequested part: `{}`", shown(Some(range))))
        }
        _ if is_multipart => Some("unrequested parts".to_owned()),
        _ => None,
    }
}

/// Returns whether a `Content-Range`, such as `bytes 0-99/100`, spans the whole document.
fn is_whole(range: &HeaderValue) -> bool {
    let bounds = || {
        let (unit, range) = range.to_str().ok()?.trim().split_once(' ')?;
        let (range, length) = range.split_once('/')?;
        let (first, last) = range.trim().split_once('-')?;
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let (first, last, length) = (number(first)?, number(last)?, number(length)?);
        let is_whole = first == 0 && last.checked_add(1) == Some(length);
        Some(is_whole && unit.eq_ignore_ascii_case("bytes"))
    };
    bounds().unwrap_or(false)
}

/// Returns the beginning of a header value for a message.
fn shown(value: Option<&HeaderValue>) -> String {
    let value = String::from_utf8_lossy(value.map_or(b"", HeaderValue::as_bytes));
    value.chars().take(MAX_SHOWN_CHARS).collect()
}

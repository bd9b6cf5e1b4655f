//! One exchange with a server, as input for the WARC encoder.

use std::net::IpAddr;

use crawl_weburl::CanonicalUrl;
use http::{HeaderMap, Version};
use uuid::Uuid;

use crate::timestamp::Timestamp;

/// One request and its response, to be written as the records of one capture.
///
/// The HTTP library makes the names of header fields lower-case and puts fields of one name
/// together. Field values and the body are exactly the server's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Capture<'a> {
    /// The URL that was requested.
    pub url: &'a CanonicalUrl,
    /// When the request was sent.
    pub started: Timestamp,
    /// Duration of the exchange, in milliseconds.
    pub millis: u64,
    /// The IP address that responded.
    pub address: Option<IpAddr>,
    /// The HTTP version of the exchange, for the `WARC-Protocol` field of the record. The archived
    /// message always has HTTP/1.1 syntax, because readers refuse other status lines.
    pub protocol: Version,
    /// The TLS version of the connection, if known.
    pub tls: Option<TlsVersion>,
    /// The request as sent.
    pub request: CapturedRequest<'a>,
    /// The status code, three digits.
    pub status: u16,
    /// The reason phrase of the response. If it is missing, as in HTTP/2, the usual phrase of the
    /// status code is written.
    pub reason: Option<&'a [u8]>,
    /// The header fields of the response.
    pub headers: &'a HeaderMap,
    /// The body as received, in its content coding but without its transfer coding.
    pub body: &'a [u8],
    /// The reason why the body is incomplete. `None` if it is complete.
    pub truncated: Option<WarcTruncation>,
    /// The reason why the payload counts as already archived, if it does. Ignored if the body is
    /// truncated, because the digest of a part doesn't identify the payload.
    pub revisit: Option<RevisitProfile<'a>>,
    /// How the crawl found the URL, and other metadata.
    pub about: CaptureMetadata<'a>,
}

/// The request of a capture. The request target is the path and query of the URL.
#[derive(Clone, Copy, Debug)]
pub struct CapturedRequest<'a> {
    /// `GET`, `HEAD` or `POST`.
    pub method: &'a str,
    /// The header fields as sent. If `host` is missing (the HTTP library adds it while sending), it
    /// is derived from the URL.
    pub headers: &'a [(String, String)],
    /// The body of a POST. Empty for other methods.
    pub body: &'a [u8],
}

/// Returns the value for the `WARC-Protocol` field (an IIPC extension of WARC), such as `http/1.1`.
pub(crate) fn protocol_id(version: Version, scheme: &str) -> &'static str {
    match version {
        Version::HTTP_09 => "http/0.9",
        Version::HTTP_10 => "http/1.0",
        Version::HTTP_2 if scheme == "https" => "h2",
        Version::HTTP_2 => "h2c",
        Version::HTTP_3 => "h3",
        _ => "http/1.1",
    }
}

/// The TLS versions that HTTP clients still use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsVersion {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl TlsVersion {
    pub(crate) fn id(self) -> &'static str {
        match self {
            TlsVersion::Tls12 => "tls/1.2",
            TlsVersion::Tls13 => "tls/1.3",
        }
    }
}

/// The reason why a body is incomplete (WARC 1.1 section 5.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarcTruncation {
    /// The body is longer than the maximum to keep.
    Length,
    /// The body didn't end within the maximum time.
    Time,
    /// The connection ended before the body was complete.
    Disconnect,
    /// The body was complete but is not stored, because its site requests that no copy be kept.
    Withheld,
}

impl WarcTruncation {
    pub(crate) fn id(self) -> &'static str {
        match self {
            WarcTruncation::Length => "length",
            WarcTruncation::Time => "time",
            WarcTruncation::Disconnect => "disconnect",
            // WARC 1.1 has no value for a body that was withheld.
            WarcTruncation::Withheld => "unspecified",
        }
    }
}

/// The reason why a payload counts as already archived (WARC 1.1 section 6.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevisitProfile<'a> {
    /// The payload has the same digest as an archived payload. The record contains the header of
    /// this response.
    IdenticalPayload(RevisitOriginal<'a>),
    /// The payload differs from an archived payload only by its content coding. The header of this
    /// response doesn't fit the archived payload, so the record has an empty block.
    IdenticalContent {
        /// The capture that has the archived payload.
        original: RevisitOriginal<'a>,
        /// The labelled digest of the archived payload.
        payload_digest: &'a str,
    },
    /// The server replied to a conditional request with 304. The record has an empty block; the
    /// header of the response is in the metadata record.
    NotModified(RevisitOriginal<'a>),
}

impl RevisitProfile<'_> {
    /// Returns whether the record has no HTTP header. Replay tools then use the header of the
    /// original capture.
    pub(crate) fn is_without_head(&self) -> bool {
        !matches!(self, RevisitProfile::IdenticalPayload(_))
    }
}

/// The original capture that a revisit refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevisitOriginal<'a> {
    /// The URL of the capture.
    pub url: &'a str,
    /// The `WARC-Date` of the capture.
    pub date: Timestamp,
}

/// Optional facts about a capture, for its `metadata` record.
#[derive(Clone, Copy, Debug, Default)]
pub struct CaptureMetadata<'a> {
    /// The URL of the page or redirect that led to this URL.
    pub via: Option<&'a str>,
    /// Number of links followed from a seed.
    pub depth: Option<u32>,
    /// Number of redirects between the last link and this URL.
    pub redirects: Option<u32>,
    /// The charset that the page was decoded with.
    pub charset: Option<&'a str>,
    /// More fields by name, such as `purpose`. Line ends in values become spaces.
    pub more: &'a [(&'a str, &'a str)],
}

/// The record ids of the records of one capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordIds {
    /// Id of the response or revisit record.
    pub response: Uuid,
    /// Id of the request record.
    pub request: Uuid,
    /// Id of the metadata record.
    pub metadata: Uuid,
}

impl RecordIds {
    /// Returns random, globally unique ids.
    #[must_use]
    pub fn random() -> RecordIds {
        RecordIds {
            response: Uuid::new_v4(),
            request: Uuid::new_v4(),
            metadata: Uuid::new_v4(),
        }
    }

    /// Returns record ids derived from a number, so that the output is reproducible.
    #[must_use]
    pub fn numbered(number: u64) -> RecordIds {
        let id = |part: u64| Uuid::from_u64_pair(number, 0x8000_0000_0000_0000 | part);
        RecordIds {
            response: id(1),
            request: id(2),
            metadata: id(3),
        }
    }
}

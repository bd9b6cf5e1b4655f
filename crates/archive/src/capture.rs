//! One exchange with a server, as the archive is told of it.

use std::net::IpAddr;

use crawl_weburl::CanonicalUrl;
use http::{HeaderMap, Version};
use uuid::Uuid;

use crate::timestamp::Timestamp;

/// One answered request, to be written as records of one capture.
///
/// Names of header fields come from an HTTP library that lower-cases them and groups
/// fields of one name; the bytes of their values and of the body are the server's.
#[derive(Clone, Copy, Debug)]
pub struct Capture<'a> {
    /// The request.
    pub url: &'a CanonicalUrl,
    /// When the request was sent.
    pub started: Timestamp,
    /// The time that the exchange took, in milliseconds.
    pub millis: u64,
    /// The address that answered.
    pub address: Option<IpAddr>,
    /// The HTTP version that was spoken; records are written in HTTP/1.1 syntax whatever it
    /// was, because readers refuse other status lines.
    pub protocol: Version,
    /// The version of TLS beneath it, where known.
    pub tls: Option<TlsVersion>,
    /// The request as sent.
    pub request: CapturedRequest<'a>,
    /// The status code, three digits.
    pub status: u16,
    /// The reason phrase. Where there was none (HTTP/2 has none), the usual one of the
    /// status code is written.
    pub reason: Option<&'a [u8]>,
    /// The fields of the answer.
    pub headers: &'a HeaderMap,
    /// The body with its content coding as received, its transfer coding removed.
    pub body: &'a [u8],
    /// The reason why the body is not whole.
    pub truncated: Option<Truncated>,
    /// That the payload is archived already. Ignored for a truncated body, whose digest
    /// says nothing about the whole.
    pub revisit: Option<Revisit<'a>>,
    /// More about how the crawl came here.
    pub about: CaptureMetadata<'a>,
}

/// The request of a capture. Its target is the URL's path and query.
#[derive(Clone, Copy, Debug)]
pub struct CapturedRequest<'a> {
    /// `GET`.
    pub method: &'a str,
    /// Fields as sent. Where `host` is missing (the HTTP library adds it unseen) it is
    /// written from the URL.
    pub headers: &'a [(String, String)],
}

/// The value of a `WARC-Protocol` field (IIPC WARC-Protocol extension).
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

/// Versions of TLS that a client of today speaks.
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

/// The reason why a body is not whole (WARC 1.1 section 5.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncated {
    /// It reached the largest size that we keep.
    Length,
    /// It reached the longest time that we wait.
    Time,
    /// The connection ended before the body did.
    Disconnect,
    /// It came whole and is withheld, since its site asks that no copy be kept.
    Withheld,
}

impl Truncated {
    pub(crate) fn id(self) -> &'static str {
        match self {
            Truncated::Length => "length",
            Truncated::Time => "time",
            Truncated::Disconnect => "disconnect",
            // WARC 1.1 has no word for it but this.
            Truncated::Withheld => "unspecified",
        }
    }
}

/// The evidence that a payload is archived already (WARC 1.1 section 6.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revisit<'a> {
    /// The payload has the digest of an archived one. The record holds the head of the answer.
    IdenticalPayload(RevisitOriginal<'a>),
    /// The payload is another, and without its content coding the same. The record has an empty
    /// block: the head of this answer does not go with the payload of the other.
    IdenticalContent {
        /// The capture whose payload it is.
        original: RevisitOriginal<'a>,
        /// The labelled digest of that payload.
        payload_digest: &'a str,
    },
    /// The server said so: a 304 to a conditional request. The record has an empty block, and
    /// the head of the answer stands in the metadata record.
    NotModified(RevisitOriginal<'a>),
}

impl Revisit<'_> {
    /// Returns whether the payload that is referred to is shown with the head that it came with,
    /// and not with that of this answer.
    pub(crate) fn is_without_head(&self) -> bool {
        !matches!(self, Revisit::IdenticalPayload(_))
    }
}

/// The capture that a revisit refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevisitOriginal<'a> {
    /// Its URL.
    pub url: &'a str,
    /// Its `WARC-Date`.
    pub date: Timestamp,
}

/// Facts about a capture beyond the exchange; they become the `metadata` record.
#[derive(Clone, Copy, Debug, Default)]
pub struct CaptureMetadata<'a> {
    /// The URL that led here.
    pub via: Option<&'a str>,
    /// Links followed from a seed.
    pub depth: Option<u32>,
    /// Redirects followed on the last of those links.
    pub redirects: Option<u32>,
    /// The charset that the page was read as.
    pub charset: Option<&'a str>,
    /// More fields by name, such as `purpose`. Line ends in them become blanks.
    pub more: &'a [(&'a str, &'a str)],
}

/// The ids of the records of one capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordIds {
    /// Of the response or revisit record.
    pub response: Uuid,
    /// Of the request record.
    pub request: Uuid,
    /// Of the metadata record.
    pub metadata: Uuid,
}

impl RecordIds {
    /// Ids that no other record has.
    #[must_use]
    pub fn random() -> RecordIds {
        RecordIds {
            response: Uuid::new_v4(),
            request: Uuid::new_v4(),
            metadata: Uuid::new_v4(),
        }
    }

    /// Ids that follow from a number, for output that must be the same each time.
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

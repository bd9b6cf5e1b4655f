//! A request, and the answer to it.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use crawl_scheduler::{OutcomeKind, RequestOutcome, Tick};
use crawl_weburl::{CanonicalUrl, Unusable, canonicalize};
use http::header::{ETAG, HeaderMap, HeaderName, LAST_MODIFIED, LOCATION};
use http::{StatusCode, Version};
use serde::{Deserialize, Serialize};

use crate::body_memory::BodyMemory;
use crate::failure_kind::FailureKind;
use crate::host_access::REDACTED;
use crate::rate_limit::rate_limit;
use crate::retry_after::retry_after;
use crate::robots::MAX_ROBOTS_BYTES;

/// One GET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRequest {
    /// The URL that is asked for.
    pub url: CanonicalUrl,
    /// The validators of the copy that is held, so that the server may answer 304.
    pub validators: Validators,
    /// Kept bytes of the body, where it is not the configuration's.
    pub max_body: Option<u64>,
    /// True if the configuration's filter decides whether the body is read.
    pub is_filtered: bool,
    /// The document on which the URL was found, for the `Referer` field.
    pub found_on: Option<CanonicalUrl>,
}

impl FetchRequest {
    /// A page, or anything that is treated as one.
    #[must_use]
    pub fn page(url: CanonicalUrl) -> FetchRequest {
        FetchRequest {
            url,
            validators: Validators::default(),
            max_body: None,
            is_filtered: false,
            found_on: None,
        }
    }

    /// A robots.txt, a hop on the way to one, or what goes along with it. Its body has a bound
    /// of its own, so that a small `max_body` of the operator's never cuts rules off.
    #[must_use]
    pub fn robots(url: CanonicalUrl, validators: Validators) -> FetchRequest {
        FetchRequest {
            url,
            validators,
            max_body: Some(MAX_ROBOTS_BYTES),
            is_filtered: false,
            found_on: None,
        }
    }
}

/// The validators that a server gave with an earlier answer (RFC 9110 section 8.8), sent back as
/// `If-None-Match` and `If-Modified-Since`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validators {
    /// As it stood in `ETag`, with its quotes.
    pub etag: Option<String>,
    /// As it stood in `Last-Modified`.
    pub last_modified: Option<String>,
}

impl Validators {
    /// The validators of an answer.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Validators {
        let text = |name| headers.get(name)?.to_str().ok().map(str::to_owned);
        Validators {
            etag: text(ETAG),
            last_modified: text(LAST_MODIFIED),
        }
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}

/// A request and the answer to it.
///
/// The wire's own bytes are out of reach: header names come in lower case, fields of one
/// name stand together, broken header lines are missing, and of chunked bodies only the
/// content is left. The content coding is as the server sent it.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The URL that was asked for.
    pub url: CanonicalUrl,
    /// The fields that were sent beside `Host`.
    pub sent: SentFields,
    /// When the exchange began, before the name was looked up.
    pub started: Tick,
    /// When the body's last byte had come, or it was cut.
    pub ended: Tick,
    /// From the start to the whole head of the answer.
    pub first_byte: Duration,
    /// The server that answered. Unknown behind a proxy.
    pub address: Option<SocketAddr>,
    /// The status code.
    pub status: u16,
    /// The protocol of the answer.
    pub version: Version,
    /// The version of TLS beneath it, where there was one.
    pub tls: Option<TlsVersion>,
    /// The answer's fields.
    pub headers: HeaderMap,
    /// The body as it was encoded, without transfer coding.
    pub body: Bytes,
    /// The reason why the body is not whole.
    pub truncated: Option<Truncation>,
    /// The memory that a long body was given: free for others once the last clone is dropped.
    pub room: BodyMemory,
}

/// The fields of a request. The values of those that the operator gave for this host alone are not
/// kept.
#[derive(Clone, Debug, Default)]
pub struct SentFields {
    pub(crate) fields: HeaderMap,
    /// The names of this host's own, which replace others of their name.
    pub(crate) own: Vec<HeaderName>,
}

impl SentFields {
    /// The fields of a request for `url` as HTTP/1.1 writes them, `Host` first. The values of this
    /// host's own are `[redacted]`.
    #[must_use]
    pub fn as_written(&self, url: &CanonicalUrl) -> Vec<(String, String)> {
        let mut written = vec![("Host".to_owned(), url.as_url().authority().to_owned())];
        for (name, value) in &self.fields {
            if !self.own.contains(name) {
                let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                written.push((title_case(name.as_str()), value));
            }
        }
        let own = self.own.iter().map(|name| title_case(name.as_str()));
        written.extend(own.map(|name| (name, REDACTED.to_owned())));
        written
    }
}

fn title_case(name: &str) -> String {
    let mut up = true;
    let mut cased = |c: char| {
        let out = if up { c.to_ascii_uppercase() } else { c };
        up = c == '-';
        out
    };
    name.chars().map(&mut cased).collect()
}

/// The reason why a body is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// It is longer than was kept.
    Length,
    /// It was not read, since [`FetchConfig::body_filter`](crate::FetchConfig::body_filter) does
    /// not want it.
    Unwanted,
    /// Time ran out: which.
    Time(FailureKind),
    /// The server ended it, or broke its framing: how.
    Disconnect(FailureKind),
}

impl Truncation {
    /// The cut that a failure in the body makes.
    #[must_use]
    pub fn by(kind: FailureKind) -> Truncation {
        match kind {
            FailureKind::Timeout | FailureKind::IdleTimeout | FailureKind::NoRoom => {
                Truncation::Time(kind)
            }
            _ => Truncation::Disconnect(kind),
        }
    }

    /// A short fixed name, for rows and counters: `body_truncated`, `unwanted`, or that of the
    /// failure.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Truncation::Length => "body_truncated",
            Truncation::Unwanted => "unwanted",
            Truncation::Time(kind) | Truncation::Disconnect(kind) => kind.name(),
        }
    }
}

/// Versions of TLS that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsVersion {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl Exchange {
    /// Returns the target of a redirect (RFC 9110 section 15.4). `None` if the answer is not a redirect.
    #[must_use]
    pub fn redirect_target(&self) -> Option<Result<CanonicalUrl, Unusable>> {
        if !matches!(self.status, 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let location = self.headers.get(LOCATION)?;
        let location = String::from_utf8_lossy(location.as_bytes());
        Some(canonicalize(Some(&self.url), &location))
    }

    /// From the start to the end.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.ended.since(self.started)
    }

    /// The outcome of this exchange for the scheduler.
    #[must_use]
    pub fn signal(&self) -> RequestOutcome {
        RequestOutcome {
            end: self.ended,
            response_time: self.took(),
            address: self.address.map(|address| address.ip()),
            kind: self.signal_kind(),
            rate_limit: rate_limit(&self.headers, self.ended),
            url: None,
        }
    }

    /// The kind of outcome for the scheduler: 429 and 503 ask to wait, anything else is an
    /// answer.
    #[must_use]
    pub fn signal_kind(&self) -> OutcomeKind {
        let status = StatusCode::from_u16(self.status);
        match status {
            Ok(StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => {
                OutcomeKind::AskedToWait {
                    retry_after: retry_after(&self.headers, self.ended),
                }
            }
            _ => OutcomeKind::Answered,
        }
    }
}

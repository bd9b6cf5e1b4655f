//! A request and its answer.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use crawl_scheduler::{OutcomeKind, RequestOutcome, Tick};
use crawl_weburl::{CanonicalUrl, UnusableUrlError, location_target};
use http::Version;
use http::header::{ETAG, HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED, LOCATION};
use serde::{Deserialize, Serialize};

use crate::body_memory_pool::BodyMemoryReservation;
use crate::failure_kind::FailureKind;
use crate::host_request_headers::REDACTED;
use crate::rate_limit_fields::rate_limit;
use crate::retry_after::retry_after;
use crate::robots::MAX_ROBOTS_BYTES;
use crate::signature_demands::SIGNATURE_INPUT;

/// A request with GET or HEAD, or with POST and a body, such as a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRequest {
    /// The URL to fetch.
    pub url: CanonicalUrl,
    /// The validators of the stored copy, so that the server may answer 304.
    pub validators: Validators,
    /// Maximum bytes of the body to keep. `None` for the maximum of the configuration.
    pub max_body: Option<u64>,
    /// Whether to send HEAD instead of GET: the server answers without a body.
    pub is_head: bool,
    /// Whether the configuration's filter decides if the body is read.
    pub is_filtered: bool,
    /// The document that contains the URL, for the `Referer` field.
    pub found_on: Option<CanonicalUrl>,
    /// The form to send with POST. `None` for other requests.
    pub form: Option<FormBody>,
    /// The body to send with POST. Unlike a form, it is recorded with the exchange.
    pub post: Option<Box<PostBody>>,
    /// Whether to leave out the operator's own fields and the site's session. Cookies of the
    /// response are ignored too.
    pub is_anonymous: bool,
    /// Whether to use a new connection. A kept one may fail because the server closes it.
    pub needs_new_connection: bool,
}

/// A body to send with POST, and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostBody {
    /// The `Content-Type` to send. `None` sends none.
    pub content_type: Option<HeaderValue>,
    /// The bytes to send.
    pub bytes: Bytes,
}

/// A form as `application/x-www-form-urlencoded`. `Debug` hides it, since it may contain a
/// password.
#[derive(Clone, PartialEq, Eq)]
pub struct FormBody(String);

impl FormBody {
    /// Creates the body from fields that are already encoded.
    #[must_use]
    pub fn from_encoded(encoded: String) -> FormBody {
        FormBody(encoded)
    }

    /// Returns the encoded fields.
    #[must_use]
    pub fn encoded(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for FormBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl FetchRequest {
    /// Creates a request for a page, or for anything that is handled like a page.
    #[must_use]
    pub fn page(url: CanonicalUrl) -> FetchRequest {
        FetchRequest {
            url,
            validators: Validators::default(),
            max_body: None,
            is_head: false,
            is_filtered: false,
            found_on: None,
            form: None,
            post: None,
            is_anonymous: false,
            needs_new_connection: false,
        }
    }

    /// Creates a request for a robots.txt, for a redirect hop of a robots.txt, or for a file that
    /// is fetched along with it. The body of such a request has a separate limit, so that a small
    /// `max_body` never cuts off rules.
    #[must_use]
    pub fn robots(url: CanonicalUrl, validators: Validators) -> FetchRequest {
        FetchRequest {
            url,
            validators,
            max_body: Some(MAX_ROBOTS_BYTES),
            is_head: false,
            is_filtered: false,
            found_on: None,
            form: None,
            post: None,
            is_anonymous: false,
            needs_new_connection: false,
        }
    }
}

/// The validators from an earlier answer (RFC 9110 section 8.8), sent back as
/// `If-None-Match` and `If-Modified-Since`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validators {
    /// The value of `ETag`, including its quotes.
    pub etag: Option<String>,
    /// The value of `Last-Modified`.
    pub last_modified: Option<String>,
}

impl Validators {
    /// Returns the validators of an answer.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Validators {
        let text = |name| headers.get(name)?.to_str().ok().map(str::to_owned);
        Validators {
            etag: text(ETAG),
            last_modified: text(LAST_MODIFIED),
        }
    }

    /// Returns whether both validators are missing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}

/// A request and its answer.
///
/// The exact bytes on the wire are not available: header names are in lower case, fields of the
/// same name are adjacent, broken header lines are missing, and chunked bodies are without their
/// framing. The content coding is unchanged.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The fetched URL.
    pub url: CanonicalUrl,
    /// The method, and the fields sent, except `Host`.
    pub sent: SentRequestRecord,
    /// When the exchange began. If the address was looked up in advance, the look-up isn't part of
    /// the exchange.
    pub started: Tick,
    /// When the last byte of the body arrived or the body was cut.
    pub ended: Tick,
    /// Time from the start to the complete head of the answer.
    pub first_byte: Duration,
    /// The server's address. `None` behind a proxy.
    pub address: Option<SocketAddr>,
    /// The HTTP status code of the answer.
    pub status: u16,
    /// The protocol version of the answer.
    pub version: Version,
    /// The TLS version, if TLS was used.
    pub tls: Option<TlsVersion>,
    /// The answer's header fields.
    pub headers: HeaderMap,
    /// The body, still in its content coding but without transfer coding.
    pub body: Bytes,
    /// Why the body is incomplete. `None` if it is complete.
    pub truncated: Option<TruncationReason>,
    /// Whether the answer demands a signature that the next request to the host will carry. If so,
    /// send the same request again.
    pub challenged: bool,
    /// Why the signature that the server demands can't be made or was refused. `None` if the server
    /// demands none, or one that the next request will carry.
    pub unmet_signature: Option<String>,
    /// The memory reserved for a long body, released when the last clone is dropped.
    pub room: BodyMemoryReservation,
}

/// The method, the header fields and the recorded body of a request, without the values of secret
/// fields: those that the operator set for one host, and those of the site's session. The default
/// is a GET without fields.
#[derive(Clone, Debug, Default)]
pub struct SentRequestRecord {
    /// Whether the method was HEAD.
    pub is_head: bool,
    /// The body, if the request was a POST whose body is recorded.
    pub posted: Option<Bytes>,
    pub(crate) fields: HeaderMap,
    /// Names of the secret fields. These fields replace general fields of the same name.
    pub(crate) own: Vec<HeaderName>,
}

impl SentRequestRecord {
    /// Returns whether the request was signed.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.fields.contains_key(SIGNATURE_INPUT)
    }

    /// Returns the fields of a request for `url` as HTTP/1.1 writes them, `Host` first. The values
    /// of secret fields are `[redacted]`.
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

/// Why a body is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TruncationReason {
    /// The body is longer than the limit.
    Length,
    /// The body was not read, because [`FetchConfig::body_filter`](crate::FetchConfig::body_filter)
    /// rejects it, or was not requested, because the method was HEAD.
    Unwanted,
    /// Reading the body timed out. The value is the kind of timeout.
    Time(FailureKind),
    /// The server closed the connection or broke the framing of the body.
    Disconnect(FailureKind),
}

impl TruncationReason {
    /// Returns the truncation of an answer to HEAD. Only a successful answer counts as truncated,
    /// because a redirect's body contains nothing of the page.
    #[must_use]
    pub fn of_head(status: u16) -> Option<TruncationReason> {
        (200..300)
            .contains(&status)
            .then_some(TruncationReason::Unwanted)
    }

    /// Returns the truncation for a failure while reading the body.
    #[must_use]
    pub fn by(kind: FailureKind) -> TruncationReason {
        match kind {
            FailureKind::Timeout | FailureKind::IdleTimeout | FailureKind::NoRoom => {
                TruncationReason::Time(kind)
            }
            _ => TruncationReason::Disconnect(kind),
        }
    }

    /// Returns a short fixed name for records and counters: `body_truncated`, `unwanted`, or the
    /// name of the failure.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TruncationReason::Length => "body_truncated",
            TruncationReason::Unwanted => "unwanted",
            TruncationReason::Time(kind) | TruncationReason::Disconnect(kind) => kind.name(),
        }
    }
}

/// Supported TLS versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsVersion {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl Exchange {
    /// Returns the target of a redirect (RFC 9110 section 15.4). `None` if the answer is not a
    /// redirect. A 300 is one if it names the server's preferred choice.
    #[must_use]
    pub fn redirect_target(&self) -> Option<Result<CanonicalUrl, UnusableUrlError>> {
        if !matches!(self.status, 300..=303 | 307 | 308) {
            return None;
        }
        location_target(&self.url, self.headers.get(LOCATION)?.as_bytes())
    }

    /// Returns the time from start to end.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.ended.since(self.started)
    }

    /// Returns the outcome of this exchange, in the form that the scheduler takes.
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

    /// Returns the kind of outcome for the scheduler: 429, 503, and any other answer with
    /// `Retry-After` above zero ask us to wait (RFC 9110 section 10.2.3), except for a success
    /// (2xx) and a 304, which leave nothing to retry.
    #[must_use]
    pub fn signal_kind(&self) -> OutcomeKind {
        let retry_after = match self.status {
            200..=299 | 304 => None,
            _ => retry_after(&self.headers, self.ended),
        };
        match self.status {
            429 | 503 => OutcomeKind::AskedToWait { retry_after },
            _ if retry_after.is_some_and(|wait| !wait.is_zero()) => {
                OutcomeKind::AskedToWait { retry_after }
            }
            _ => OutcomeKind::Answered,
        }
    }
}

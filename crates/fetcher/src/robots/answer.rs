//! The meaning of an answer to a request for robots.txt.

use std::time::Duration;

use bytes::Bytes;
use crawl_coding::{DecodeEnd, DecodeLimits, decode};
use crawl_policy::RobotsStatus;
use crawl_weburl::{CanonicalUrl, canonicalize};
use http::header::{CONTENT_ENCODING, LOCATION};

use crate::exchange::{Exchange, FetchRequest};
use crate::failure::Failure;
use crate::retry_after::retry_after;

/// Redirects followed on the way to a robots.txt (RFC 9309 section 2.3.1.2).
pub const MAX_HOPS: u8 = 5;
/// Bytes of a robots.txt that are fetched and decoded. More than the rules' own limit
/// (512 KiB, RFC 9309 section 2.5 asks for 500), so that a file that was cut here is known
/// to be too long there, and loses its cut line.
pub const MAX_ROBOTS_BYTES: u64 = 1 << 20;

/// A redirect to a host that the crawl may not ask: what is not read is not known.
pub const EXCLUDED_HOST: &str = "excluded_host";

/// An answer, read by RFC 9309 section 2.3.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RobotsAnswer {
    /// A robots.txt, whatever it holds (2.3.1.1).
    Rules {
        /// Decoded, at most [`MAX_ROBOTS_BYTES`].
        body: Bytes,
        /// The status, 2xx.
        status: u16,
    },
    /// There is none, so nothing is disallowed (2.3.1.3): 4xx other than 429, and redirects
    /// that lead nowhere or too far.
    None {
        /// The status, 4xx or 3xx.
        status: u16,
    },
    /// The copy that is held is still the file: 304 to a request with validators.
    NotModified,
    /// The file is elsewhere (2.3.1.2). The rules found there are this origin's.
    Redirect {
        /// The URL to ask next.
        to: CanonicalUrl,
        /// The status, 3xx.
        status: u16,
    },
    /// Nobody knows whether there are rules, so nothing may be asked for (2.3.1.4): 429,
    /// 5xx, no connection, a broken answer or encoding.
    Unreachable {
        /// The failure's name, `status` for a status, `encoding`, or [`EXCLUDED_HOST`].
        why: String,
        /// The status, where there was an answer.
        status: Option<u16>,
        /// The wait that the server asked for.
        retry_after: Option<Duration>,
    },
}

impl RobotsAnswer {
    /// Reads the result of `request`, which was the `hops`-th redirect on the way (0: the
    /// origin's own /robots.txt).
    #[must_use]
    pub fn of(
        request: &FetchRequest,
        result: &Result<Exchange, Failure>,
        hops: u8,
    ) -> RobotsAnswer {
        let exchange = match result {
            Ok(exchange) => exchange,
            Err(failure) => {
                return RobotsAnswer::Unreachable {
                    why: failure.name().to_owned(),
                    status: None,
                    retry_after: None,
                };
            }
        };
        let status = exchange.status;
        match RobotsStatus::of(status) {
            RobotsStatus::Successful => rules(exchange),
            RobotsStatus::Redirect if status == 304 && !request.validators.is_empty() => {
                RobotsAnswer::NotModified
            }
            RobotsStatus::Redirect => match target(exchange) {
                Some(to) if hops < MAX_HOPS => RobotsAnswer::Redirect { to, status },
                _ => RobotsAnswer::None { status },
            },
            RobotsStatus::Unavailable => RobotsAnswer::None { status },
            RobotsStatus::Unreachable => unreachable(exchange, "status"),
        }
    }
}

fn rules(exchange: &Exchange) -> RobotsAnswer {
    let status = exchange.status;
    match decoded(exchange) {
        Some(body) => RobotsAnswer::Rules { body, status },
        None => unreachable(exchange, "encoding"),
    }
}

/// The decoded body, at most [`MAX_ROBOTS_BYTES`]; nothing where its encoding is broken.
pub(super) fn decoded(exchange: &Exchange) -> Option<Bytes> {
    let most = usize::try_from(MAX_ROBOTS_BYTES).unwrap_or(usize::MAX);
    let limits = DecodeLimits {
        bytes: most,
        ratio_from: most,
        ..DecodeLimits::default()
    };
    let codings = exchange.headers.get_all(CONTENT_ENCODING);
    let decoded = decode(codings, &exchange.body, &limits);
    let whole = match decoded.end {
        DecodeEnd::Whole | DecodeEnd::Truncated { .. } => true,
        // We cut it ourselves; what came out before is the beginning of the file.
        DecodeEnd::Short => exchange.truncated.is_some(),
        DecodeEnd::Broken { .. } | DecodeEnd::UnknownCoding { .. } => false,
    };
    // A copy of its own: the bytes at hand may hold a much larger read buffer alive, and
    // rules are kept for a day.
    whole.then(|| Bytes::copy_from_slice(&decoded.bytes[..decoded.bytes.len().min(most)]))
}

/// The target of a redirect, if it is one that a GET follows (RFC 9110 section 15.4) and
/// names a URL.
fn target(exchange: &Exchange) -> Option<CanonicalUrl> {
    if !matches!(exchange.status, 300..=303 | 307 | 308) {
        return None;
    }
    let location = exchange.headers.get(LOCATION)?;
    let location = String::from_utf8_lossy(location.as_bytes());
    canonicalize(Some(&exchange.url), &location).ok()
}

fn unreachable(exchange: &Exchange, why: &str) -> RobotsAnswer {
    RobotsAnswer::Unreachable {
        why: why.to_owned(),
        status: Some(exchange.status),
        retry_after: retry_after(&exchange.headers, exchange.ended),
    }
}

#[cfg(test)]
mod tests;

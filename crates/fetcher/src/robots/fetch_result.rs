//! Interprets an answer to a request for robots.txt.

use std::time::Duration;

use bytes::Bytes;
use crawl_coding::{DecodeEnd, DecodeLimits, DecodedBody, decode, decode_gzip};
use crawl_policy::RobotsStatus;
use crawl_weburl::CanonicalUrl;
use http::header::CONTENT_ENCODING;

use crate::exchange::{Exchange, FetchRequest};
use crate::failure::ExchangeFailure;
use crate::retry_after::retry_after;

/// Maximum redirects to follow to a robots.txt (RFC 9309 section 2.3.1.2).
/// Beyond the limit: unavailable, so all is allowed.
pub const MAX_HOPS: u8 = 5;
/// Maximum bytes of a robots.txt to fetch and decode. This is more than the parser's own limit of
/// 512 KiB (RFC 9309 section 2.5 requires 500). If a file is cut here, the parser therefore still
/// sees that it is too long, and drops the last line, which may be incomplete.
pub const MAX_ROBOTS_BYTES: u64 = 1 << 20;

/// The reason recorded if robots.txt redirects to a host that the crawl excludes, so that the rules
/// can't be read.
pub const EXCLUDED_HOST: &str = "excluded_host";

/// What an answer for robots.txt means by RFC 9309 section 2.3.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RobotsFetchResult {
    /// A robots.txt, whatever its content (2.3.1.1).
    Rules {
        /// The decoded file, at most [`MAX_ROBOTS_BYTES`].
        body: Bytes,
        /// The status, 2xx.
        status: u16,
    },
    /// There is no robots.txt, so nothing is disallowed (2.3.1.3). The answer was a 4xx other than
    /// 429, a redirect without a usable target, or one redirect too many.
    None {
        /// The status, 4xx or 3xx.
        status: u16,
    },
    /// The stored copy is current: the answer was 304 to a request with validators.
    NotModified,
    /// Fetch another URL instead (2.3.1.2), or the same URL again with a signature, if the server
    /// demands one. Rules found there apply to this origin.
    Redirect {
        /// The URL to fetch next.
        to: CanonicalUrl,
        /// The status: 3xx, or 401, 403 or 429 with a request for a signature.
        status: u16,
    },
    /// The rules are unknown, so nothing may be fetched (2.3.1.4). The answer was 429, 5xx or a 3xx
    /// that is no redirect, was incomplete or had a broken encoding, or there was no answer.
    Unreachable {
        /// The reason: the name of the failure, `status`, `encoding`, or [`EXCLUDED_HOST`].
        why: String,
        /// The status, if there was an answer.
        status: Option<u16>,
        /// The wait that the server requested.
        retry_after: Option<Duration>,
    },
}

impl RobotsFetchResult {
    /// Interprets the result of `request`, which was sent after `hops` redirects (0 for the
    /// origin's own /robots.txt).
    #[must_use]
    pub fn of(
        request: &FetchRequest,
        result: &Result<Exchange, ExchangeFailure>,
        hops: u8,
    ) -> RobotsFetchResult {
        let exchange = match result {
            Ok(exchange) => exchange,
            Err(failure) => {
                return RobotsFetchResult::Unreachable {
                    why: failure.name().to_owned(),
                    status: None,
                    retry_after: None,
                };
            }
        };
        let status = exchange.status;
        if exchange.challenged && hops < MAX_HOPS {
            let to = exchange.url.clone();
            return RobotsFetchResult::Redirect { to, status };
        }
        match RobotsStatus::of(status) {
            _ if status == 304 && !request.validators.is_empty() => RobotsFetchResult::NotModified,
            RobotsStatus::Successful => rules(exchange),
            RobotsStatus::Redirect => match exchange.redirect_target().and_then(Result::ok) {
                Some(to) if hops < MAX_HOPS => RobotsFetchResult::Redirect { to, status },
                // 300 without a target: the server has several variants of robots.txt, and doesn't
                // say which one applies.
                None if status == 300 => unreachable(exchange, "status"),
                _ => RobotsFetchResult::None { status },
            },
            RobotsStatus::Unavailable => RobotsFetchResult::None { status },
            RobotsStatus::Unreachable => unreachable(exchange, "status"),
        }
    }
}

fn rules(exchange: &Exchange) -> RobotsFetchResult {
    let status = exchange.status;
    match decoded(exchange) {
        Some(body) => RobotsFetchResult::Rules { body, status },
        None => unreachable(exchange, "encoding"),
    }
}

/// Returns the decoded body, at most [`MAX_ROBOTS_BYTES`]. Returns `None` if its encoding is
/// broken.
pub(super) fn decoded(exchange: &Exchange) -> Option<Bytes> {
    let max_bytes = usize::try_from(MAX_ROBOTS_BYTES).unwrap_or(usize::MAX);
    let limits = DecodeLimits {
        bytes: max_bytes,
        ratio_from: max_bytes,
        ..DecodeLimits::default()
    };
    let usable = |decoded: DecodedBody| match decoded.end {
        DecodeEnd::Whole | DecodeEnd::Truncated { .. } => Some(decoded.bytes),
        // An incomplete output is usable if we cut the encoded body ourselves, because it is the
        // beginning of the file.
        DecodeEnd::Short => exchange.truncated.is_some().then_some(decoded.bytes),
        DecodeEnd::Broken { .. } | DecodeEnd::UnknownCoding { .. } => None,
    };
    let codings = exchange.headers.get_all(CONTENT_ENCODING);
    let body = usable(decode(codings, &exchange.body, &limits))?;
    // Some servers compress the file without declaring it. Read as text, it would have no rules.
    let body = usable(decode_gzip(&body, &limits))?;
    // Copy the rules: they are kept for a day, and a slice could keep a much larger read buffer in
    // memory.
    Some(Bytes::copy_from_slice(&body[..body.len().min(max_bytes)]))
}

fn unreachable(exchange: &Exchange, why: &str) -> RobotsFetchResult {
    RobotsFetchResult::Unreachable {
        why: why.to_owned(),
        status: Some(exchange.status),
        retry_after: retry_after(&exchange.headers, exchange.ended),
    }
}

#[cfg(test)]
mod tests;

//! Translates the tokens of rows (statuses, failures, outcomes) into words.

use crate::host_coverage::UNFINISHED_RUN;

/// The detail of a TLS failure if the certificate has no trusted root.
const UNKNOWN_ISSUER: &str = "unknown issuer";

/// Describes a status with its number: `not found (404)`.
#[must_use]
pub fn status_words(status: u16) -> String {
    let reason = http::StatusCode::from_u16(status).ok();
    match reason.and_then(|status| status.canonical_reason()) {
        Some("OK") => format!("ok ({status})"),
        Some(reason) => format!("{} ({status})", reason.to_lowercase()),
        None => format!("status {status}"),
    }
}

/// Describes the outcome of a page request. `outcome` is a key of `by_outcome`.
#[must_use]
pub fn outcome_words(outcome: &str) -> String {
    match outcome {
        "ok" => "fetched (2xx)".to_owned(),
        "unread" => "body incomplete (2xx)".to_owned(),
        "unmodified" => "unchanged since the last visit (304)".to_owned(),
        "redirect" => "redirect (3xx)".to_owned(),
        "client_error" => "client error (4xx)".to_owned(),
        "server_error" => "server error (5xx)".to_owned(),
        "other" => "other status".to_owned(),
        "unwanted_type" => "unwanted content type".to_owned(),
        other => failure_words(other),
    }
}

/// Words before a failure in the reason why a host waits. The crawl loop writes them
/// (`describe_pause` and `why_unreachable` in `crates/engine`), so change both together.
const WORDS_BEFORE_FAILURE: [&str; 3] = [
    "robots.txt: ",
    "a request failed: ",
    "requests in a row failed: ",
];

/// Between a failure and the URL that failed, if a robots.txt redirects to that URL. `engine` has
/// the same text, so change both together.
pub const REDIRECTED_TO: &str = ": redirected to ";

/// Splits the reason why a host waits into its words and the failure after them. `None` if the
/// reason names no failure.
#[must_use]
pub fn split_failure(reason: &str) -> Option<(&str, &str)> {
    let mut ends = WORDS_BEFORE_FAILURE
        .iter()
        .filter_map(|words| Some(reason.find(words)? + words.len()));
    ends.next().map(|end| reason.split_at(end))
}

/// Describes a failure, or the error of a row. Keeps the detail after the first colon.
#[must_use]
pub fn failure_words(failure: &str) -> String {
    if let Some((words, failure)) = split_failure(failure) {
        return format!("{words}{}", failure_words(failure));
    }
    // The request for a robots.txt failed at the target of its redirect.
    if let Some((failure, target)) = failure.split_once(REDIRECTED_TO) {
        return format!("{}, redirected to {target}", failure_words(failure));
    }
    let (token, detail) = match failure.split_once(':') {
        Some((token, detail)) => (token, Some(detail)),
        None => (failure, None),
    };
    if token == "tls_failed"
        && let Some(why) = detail.and_then(certificate_words)
    {
        return format!("certificate error: {why}");
    }
    // The detail of this failure is complete without the token: `no answer within 3 s`.
    if let ("first_byte_timeout", Some(detail)) = (token, detail) {
        return detail.trim_start().to_owned();
    }
    let words = match token {
        "redirect_without_target" => "redirect without a target",
        "redirect_forgotten" => "redirect to a page that was removed from this crawl",
        "redirect_malformed" => "redirect to something that isn't a URL",
        "redirect_scheme" => "redirect to a URL that is neither http nor https",
        "redirect_too_long" => "redirect to a URL that is too long",
        "redirect_secret" => "redirect to a URL that contains a secret",
        "unexpected_304" => "304 to a request without a condition",
        "no_such_name" => "host name not found",
        "no_address" => "host name has no address",
        "dns_timeout" => "name server did not answer",
        "dns_failed" => "name lookup failed",
        "connect_refused" => "connection refused",
        "connect_unreachable" => "host unreachable",
        "connect_timeout" => "connection timed out",
        "connect_reset" => "connection reset",
        "connect_failed" => "connection failed",
        "tls_failed" => "TLS failed",
        "first_byte_timeout" => "no answer in time",
        "short_body" => "body cut short by the server",
        "idle_timeout" => "body without new data for too long",
        "reset" => "connection reset",
        "encoding_cut_short" | "encoding_broken" => "body that can't be decoded",
        "encoding_unknown" => "body in an unknown content coding",
        "not_a_sitemap" => "not a sitemap",
        "body_truncated" => "body longer than the limit",
        _ if is_token(token) => return failure.replacen(token, &token.replace('_', " "), 1),
        _ => return failure.to_owned(),
    };
    match detail {
        Some(detail) => format!("{words}:{detail}"),
        None => words.to_owned(),
    }
}

/// Describes the defect of a certificate, from the detail of a TLS failure. `None` if the
/// certificate is not the cause.
fn certificate_words(detail: &str) -> Option<&str> {
    let detail = detail.trim();
    match detail.split_once("invalid peer certificate: ") {
        Some((_, why)) => Some(why),
        None => (detail == UNKNOWN_ISSUER).then_some(detail),
    }
}

/// Describes the response of a broken page: its status, its error, or both if the status alone is
/// not an error.
#[must_use]
pub fn answer_words(status: Option<u16>, error: Option<&str>) -> String {
    match (status, error) {
        (Some(status), Some(error)) if status < 400 => {
            format!("{}, {}", status_words(status), failure_words(error))
        }
        (Some(status), _) => status_words(status),
        (None, Some(error)) => failure_words(error),
        (None, None) => "no answer".to_owned(),
    }
}

/// Describes the evidence of a verdict: a status, a failure, or plain words.
#[must_use]
pub fn evidence_words(evidence: &str) -> String {
    match evidence.parse() {
        Ok(status) => status_words(status),
        Err(_) if evidence == UNFINISHED_RUN => "the last run has not ended".to_owned(),
        Err(_) => failure_words(evidence),
    }
}

fn is_token(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::{answer_words, evidence_words, failure_words, outcome_words, status_words};

    #[test]
    fn a_person_reads_words() {
        assert_eq!(status_words(404), "not found (404)");
        assert_eq!(status_words(200), "ok (200)");
        assert_eq!(status_words(799), "status 799");
        assert_eq!(failure_words("no_such_name"), "host name not found");
        assert_eq!(
            failure_words("connect_refused: os error 111"),
            "connection refused: os error 111"
        );
        assert_eq!(failure_words("too_many_redirects"), "too many redirects");
        assert_eq!(
            failure_words("redirect_scheme"),
            "redirect to a URL that is neither http nor https"
        );
        for (failure, words) in [
            (
                "first_byte_timeout: no answer within 3 s",
                "no answer within 3 s",
            ),
            (
                "first_byte_timeout: redirected to http://b.example/rules",
                "no answer in time, redirected to http://b.example/rules",
            ),
            ("tls_failed", "TLS failed"),
            (
                "tls_failed: no shared version",
                "TLS failed: no shared version",
            ),
            (
                "tls_failed: unknown issuer",
                "certificate error: unknown issuer",
            ),
            (
                "tls_failed: client error: invalid peer certificate: certificate expired",
                "certificate error: certificate expired",
            ),
        ] {
            assert_eq!(failure_words(failure), words);
        }
        assert_eq!(
            failure_words("robots.txt answered 503"),
            "robots.txt answered 503"
        );
        assert_eq!(
            failure_words("http://a.example/robots.txt: connect_refused"),
            "http://a.example/robots.txt: connection refused"
        );
        assert_eq!(
            failure_words("3 requests in a row failed: connect_refused"),
            "3 requests in a row failed: connection refused"
        );
        assert_eq!(outcome_words("client_error"), "client error (4xx)");
        assert_eq!(outcome_words("login_page"), "login page");
        assert_eq!(
            answer_words(Some(302), Some("too_many_redirects")),
            "found (302), too many redirects"
        );
        assert_eq!(answer_words(None, None), "no answer");
        assert_eq!(evidence_words("410"), "gone (410)");
        assert_eq!(evidence_words("max-pages"), "max-pages");
    }
}

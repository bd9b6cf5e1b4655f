//! The rows of `requests.jsonl`.

use serde::{Deserialize, Serialize};

/// A line of `requests.jsonl`: a request. Unless [`RequestRow::is_sent`], the crawl refused to send
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRow {
    /// The requested URL.
    pub url: String,
    /// The key of the host that the gap between requests applies to: without a port, except on
    /// loopback.
    pub host: String,
    /// The IP address that the request was sent to.
    pub address: Option<String>,
    /// The purpose of the request: `page`, `robots`, `hop` ..
    pub purpose: String,
    /// When the request was sent, in milliseconds since the Unix epoch, UTC.
    pub start: u64,
    /// When the exchange ended, in milliseconds since the Unix epoch, UTC.
    pub end: u64,
    /// The status code of the response, if any.
    pub status: Option<u16>,
    /// The name of the failure, if there was no response.
    pub failure: Option<String>,
    /// The gap that was required between the previous request to the host and this request, in
    /// milliseconds.
    pub gap_asked: u64,
    /// The rule that required the gap: `delay`, `crawl-delay`, `retry-after` ..
    pub why: String,
    /// The wait that the response demands, in milliseconds.
    pub wait_asked: Option<u64>,
    /// How much was committed when the page was chosen from the queue. Null for robots.txt and
    /// other requests that don't come from a queue.
    #[serde(default)]
    pub after: Option<CommitCountsBeforeRequest>,
    /// Whether the request was signed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signed: bool,
    /// Whether the response demanded a signature and the request was sent again with one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub challenged: bool,
    /// The response's demand for a signature that can't be made. Null if there is no such demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet_signature: Option<String>,
    /// `POST`. Null for GET and HEAD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The page that is rendered with the response. If several pages use the response, the page
    /// that requested it first. Null for other requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The outcome for an origin's rules. Null if the request was not for robots.txt or a redirect
    /// on the way to it, if it was given up, and in rows of earlier development versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robots: Option<RobotsOutcome>,
    /// The worker that sent the request, if the requests of several workers were gathered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

/// What a response means for an origin's rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsOutcome {
    /// The origin that the rules apply to. After a redirect, the request may be to another one.
    pub of: String,
    /// `rules` (read, or confirmed by 304), `none` (nothing is disallowed), `redirect` (another
    /// request follows), `unreachable` (the rules are unknown).
    pub state: String,
    /// Why the rules are unknown, unless the status alone is the reason: the name of the failure,
    /// `encoding`, `excluded_host` ..
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// How much was committed before a request was chosen. From these counts a replay derives which
/// links were known when the request was chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CommitCountsBeforeRequest {
    /// Number of committed rows of `pages.jsonl`.
    pub pages: u64,
    /// Number of other commits in this run, for example of a robots.txt with its sitemaps, a page
    /// to retry, or URLs settled without a request.
    pub others: u64,
}

/// Failures of requests that the crawl refused to send because of the host's name or address.
const REFUSALS: [&str; 2] = ["address_refused", "name_too_long"];

impl RequestRow {
    /// Returns whether the crawl sent the request, or tried to. Requests that it refused to send
    /// have rows too, because replays follow all rows in order.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        let failure = self.failure.as_deref();
        failure.is_none_or(|failure| !REFUSALS.contains(&failure))
    }

    /// Returns the response's status code or the name of the failure, or `no answer` if there is
    /// neither.
    #[must_use]
    pub fn answer(&self) -> String {
        match (self.status, &self.failure) {
            (Some(status), _) => status.to_string(),
            (None, Some(failure)) => failure.clone(),
            (None, None) => "no answer".to_owned(),
        }
    }
}

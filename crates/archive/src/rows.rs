//! The types of the rows in each row file. A missing value is written as null, except in a few
//! columns that are left out instead.

mod page_outcome;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::page_outcome::{PAGE_OUTCOMES, is_obstacle};
use crate::timestamp::Timestamp;

/// A line of `pages.jsonl`: an exchange that settled a URL, whether it got a response or failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageRow {
    /// The requested URL, in canonical form.
    pub url: String,
    /// The status code. Null without a response.
    pub status: Option<u16>,
    /// When the request was sent.
    pub fetched_at: Timestamp,
    /// Duration of the exchange, in milliseconds.
    pub ms: u64,
    /// Size of the body as received, in its content coding, in bytes.
    pub bytes: u64,
    /// The `Content-Type` of the response.
    pub content_type: Option<String>,
    /// The media type that the body looks like, regardless of `content_type`. Null if this is
    /// unknown or was not examined.
    #[serde(default)]
    pub detected_type: Option<String>,
    /// The charset that a page was decoded with, by its name in the Encoding Standard.
    #[serde(default)]
    pub charset: Option<String>,
    /// The language tag (BCP 47) of a page. Null if the language is unknown or not needed.
    #[serde(default)]
    pub language: Option<String>,
    /// The labelled digest of the archived payload of this response. If the response differs from
    /// the previous response of the URL only in its content coding, this is the digest of the
    /// previous payload.
    pub digest: Option<String>,
    /// Number of links followed from a seed.
    pub depth: u32,
    /// Number of links followed since the path to the URL left the scope; 0 for a URL in scope.
    #[serde(default)]
    pub hops_off_scope: u8,
    /// The URL that led here. Null for a seed.
    pub via: Option<String>,
    /// The target of a redirect, in canonical form. Null if the response is not a redirect.
    #[serde(default)]
    pub redirect: Option<String>,
    /// The title of an HTML page.
    pub title: Option<String>,
    /// The canonical URL that the page declares (`rel=canonical`), if it is another URL. This is a
    /// hint that the other URL has the same content.
    #[serde(default)]
    pub canonical: Option<String>,
    /// If the crawl builds a search index: `yes`, or the reason why the page is not in the index
    /// (`noindex: ..`, `canonical: ..`, `soft_404` ..).
    #[serde(default)]
    pub indexed: Option<String>,
    /// The verdict of the site's robots.txt on the URL.
    pub robots: Option<RobotsVerdict>,
    /// The site's statements about the use of the page. Null if there are none.
    pub usage: Option<PageUsagePermissions>,
    /// The file and offset of the response record in the archive.
    pub warc: Option<WarcRecordLocation>,
    /// The UUID of the response record: its `WARC-Record-ID` without `urn:uuid:`.
    #[serde(default)]
    pub record_id: Option<String>,
    /// The site's statement that keeps the body out of the archive. Null if the body is archived.
    pub withheld: Option<String>,
    /// The operator's filter that keeps the body out of the archive: `content-type image/png`,
    /// `min-size 1000`, `max-size 1000`, `language fr`. Null if the document is wanted.
    #[serde(default)]
    pub unwanted: Option<String>,
    /// The size of an unwanted body by the `Content-Length` of the response, in bytes. Null if it
    /// was not declared, or if the document is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_bytes: Option<u64>,
    /// Whether the response contains a secret of the operator's `[site]` tables. The archive keeps
    /// the response unchanged, so commands never show or export its body: see
    /// [`PageRow::may_show_body`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub echoes_secret: bool,
    /// The crawl's round, from 1. A URL has at most one row per round.
    #[serde(default = "first_round")]
    pub round: u32,
    /// How the page changed since the last visit: `new`, `changed`, `same` or `gone`. Null if
    /// unknown.
    #[serde(default)]
    pub change: Option<String>,
    /// What changed on the page since the last visit: `bytes`, `markup` or `text`. Null if nothing
    /// changed, or if this is unknown.
    #[serde(default)]
    pub differs: Option<String>,
    /// The reason why there was no response, or why the response could not be read.
    pub error: Option<String>,
    /// The page's role in the sample. Null if the crawl draws no sample, or if the response is not
    /// a page.
    #[serde(default)]
    pub sample: Option<PageSampleMembership>,
    /// The label of the seed that the URL belongs to. Null if that seed has no label.
    #[serde(default)]
    pub label: Option<String>,
    /// How a browser rendered the page. Null if the page was not rendered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub render: Option<RenderStatistics>,
}

/// How a browser rendered a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderStatistics {
    /// Number of resources that the page requested.
    pub requests: u32,
    /// Number of resources that were refused to the page, or got no response.
    pub refused: u32,
    /// Size of all resources as received, in bytes. Resources that an earlier page fetched in this
    /// round are not counted.
    pub bytes: u64,
    /// The virtual time that passed for the page while it was rendered, in milliseconds. Null if
    /// the page could not be rendered.
    pub page_ms: Option<u64>,
    /// The labelled digest of the serialized DOM. Null if the page could not be rendered.
    pub dom_digest: Option<String>,
    /// Size of the serialized DOM, in bytes. Null if the page could not be rendered.
    pub dom_bytes: Option<u64>,
    /// Distance in bytes from the response record (`warc`) in the archive to the `conversion`
    /// record with the DOM. Null if the DOM is not archived.
    pub dom_after: Option<u64>,
    /// Size of the screenshot, in bytes. Null if none was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screenshot_bytes: Option<u64>,
    /// Distance in bytes from the response record (`warc`) in the archive to the `resource` record
    /// with the screenshot. Null if no screenshot is archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screenshot_after: Option<u64>,
    /// Why there is no screenshot: `failed`, `timeout` or `too_large`. Null if one was taken, or if
    /// screenshots are off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screenshot_error: Option<String>,
    /// Why the page could not be rendered: `browser_missing`, `browser_crashed`, `page_failed`,
    /// `render_timeout` or `render_budget`. The rest of the row then describes the page as sent by
    /// the server.
    pub error: Option<String>,
}

/// The role of a page in a sample, and its inclusion probability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageSampleMembership {
    /// Why the page was fetched: `drawn` for the sample; `frame`, because the sample is drawn from
    /// its links; `redirect`, because a page of the sample redirects to it; or `walk`, because a
    /// walker reached it.
    pub how: String,
    /// The name of the stratum that the page was drawn from.
    pub stratum: Option<String>,
    /// Number of pages drawn from the stratum.
    pub drawn: Option<u64>,
    /// Number of pages in the stratum, of which `drawn` are in the sample.
    pub of: Option<u64>,
    /// The probability with which the page was included in the sample, from 0 to 1. Null if it is
    /// unknown.
    pub probability: Option<f64>,
    /// Why the inclusion probability is unknown. Null if it is known.
    #[serde(default)]
    pub unknown: Option<String>,
}

/// A step of a random walk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RandomWalkStep {
    /// The number of the walker, from 1.
    pub walker: u32,
    /// The number of the step, from 1. A redirect has the number of the step that led to it.
    pub step: u64,
    /// The kind of step: `start` (the first one), `link`, `redirect`, or `restart` (to a seed).
    pub how: String,
    /// The reason of a restart: `chance`; `no links`, if the page has no links to follow; `no
    /// page`, after no response or an error; `excluded`, if the URL can't be fetched; `redirects`,
    /// if there were too many.
    pub why: Option<String>,
    /// The URL that the step leads to.
    pub url: String,
    /// The page that the walker was on before the step.
    pub from: Option<String>,
    /// Number of distinct URLs that the walker could have chosen from the links of the page `from`.
    pub links: Option<u64>,
}

fn first_round() -> u32 {
    1
}

/// Errors that don't count as failures: the page was read up to a limit of the crawler, the page is
/// a login page, `crawl forget` erased the target of a redirect, a guessed sitemap doesn't exist, or
/// the site named a page as a sitemap.
const NOT_FAILURES: [&str; 7] = [
    "body_truncated",
    "decoded_too_large",
    "decompression_bomb",
    "login_page",
    REDIRECT_FORGOTTEN,
    NO_SITEMAP,
    NOT_A_SITEMAP,
];

/// Errors of bodies that the server did not finish, or sent in a form that can't be decoded.
const BROKEN_BODIES: [&str; 7] = [
    "short_body",
    "bad_body",
    "reset",
    "idle_timeout",
    "encoding_cut_short",
    "encoding_broken",
    "encoding_unknown",
];

/// Errors of bodies that the crawler cut at one of its limits, or for lack of memory.
const CUT_BODIES: [&str; 5] = [
    "body_truncated",
    "decoded_too_large",
    "decompression_bomb",
    "timeout",
    "no_room",
];

/// The error of a URL that was given up because reading it crashed the crawler several times. A
/// link to the URL isn't broken.
pub const READER_KILLED: &str = "reader_killed";
/// The error of a `/sitemap.xml` that the crawl guessed and that doesn't exist: the server answers
/// 404 or 410, or sends a page that is not a sitemap. No link leads to this URL, so it doesn't
/// count as a broken link.
pub const NO_SITEMAP: &str = "no_sitemap";
/// The error of a 304 to a request without a condition. The crawl has no page that it could confirm.
pub const UNEXPECTED_304: &str = "unexpected_304";
/// The error of a page that the site named as a sitemap. Links to the page work.
pub const NOT_A_SITEMAP: &str = "not_a_sitemap";
/// The error of a page that made a parser panic.
pub const READER_PANICKED: &str = "reader_panicked";
/// The error of a redirect whose chain returns to a URL that it already visited.
pub const REDIRECT_LOOP: &str = "redirect_loop";
/// The error of a redirect whose chain is longer than the crawl follows.
pub const TOO_MANY_REDIRECTS: &str = "too_many_redirects";
/// The error of a redirect whose target is not a URL.
const REDIRECT_MALFORMED: &str = "redirect_malformed";
/// The error of a redirect whose target is a URL that is neither http nor https.
const REDIRECT_SCHEME: &str = "redirect_scheme";
/// The error of a redirect whose target `crawl forget` erased. The redirect isn't broken.
const REDIRECT_FORGOTTEN: &str = "redirect_forgotten";
/// The name for a redirect without a `Location` (RFC 9110 section 15.4). Rows don't record this as
/// an error, because browsers show the body of such a response.
const REDIRECT_WITHOUT_TARGET: &str = "redirect_without_target";

/// The value of `unwanted` for a page that was requested only with HEAD, to check its status.
pub const ONLY_CHECKED: &str = "off-scope-method head";

/// Errors of redirects that lead nowhere, whatever their status code.
const BROKEN_REDIRECTS: [&str; 4] = [
    REDIRECT_LOOP,
    TOO_MANY_REDIRECTS,
    REDIRECT_MALFORMED,
    REDIRECT_SCHEME,
];

impl PageRow {
    /// Returns the file and offset of the record with the page's DOM, and the size of the DOM in
    /// bytes. `None` if the DOM is not archived.
    #[must_use]
    pub fn dom(&self) -> Option<(WarcRecordLocation, u64)> {
        let (render, warc) = (self.render.as_ref()?, self.warc.as_ref()?);
        let place = WarcRecordLocation {
            file: warc.file.clone(),
            offset: warc.offset.checked_add(render.dom_after?)?,
        };
        Some((place, render.dom_bytes?))
    }

    /// Returns whether the archive lacks the body because of the site's statement or the operator's
    /// filter.
    #[must_use]
    pub fn is_body_omitted(&self) -> bool {
        self.withheld.is_some() || self.unwanted.is_some()
    }

    /// Returns whether the page was requested only with HEAD, to check its status.
    #[must_use]
    pub fn is_only_checked(&self) -> bool {
        self.unwanted.as_deref() == Some(ONLY_CHECKED)
    }

    /// Returns whether commands may show or export the archived body. If not, commands use the text
    /// in the search index, from which secrets are redacted.
    #[must_use]
    pub fn may_show_body(&self) -> bool {
        !self.is_body_omitted() && !self.echoes_secret
    }

    /// Returns whether the page's record has no body because the body is the same as at an earlier
    /// visit.
    #[must_use]
    pub fn repeats_body(&self) -> bool {
        self.change.as_deref() == Some("same") && self.differs.as_deref() != Some("markup")
    }

    /// Returns whether a link to the page is broken: there was no response, a status of 400 or
    /// above, an unexpected 304, a redirect that leads nowhere, or a body that the server did not
    /// finish or that can't be decoded. A page that crashed the crawler doesn't count, nor does a
    /// guessed sitemap that doesn't exist.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        match (self.error.as_deref(), self.status) {
            (Some(READER_KILLED | NO_SITEMAP), _) => false,
            (Some(UNEXPECTED_304), _) | (_, None | Some(400..)) => true,
            _ => self.broken_redirect().is_some() || self.has_body_error(&BROKEN_BODIES),
        }
    }

    /// Returns whether the end of the body was not read, because the server did not finish it, it
    /// can't be decoded, or the crawler cut it at a limit.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.has_body_error(&BROKEN_BODIES) || self.has_body_error(&CUT_BODIES)
    }

    fn has_body_error(&self, names: &[&str]) -> bool {
        let error = self.error.as_deref().unwrap_or_default();
        let name = error.split(':').next().unwrap_or(error);
        matches!(self.status, Some(200..=299)) && names.contains(&name)
    }

    /// Returns the error of a redirect that leads nowhere. `None` for any other page.
    #[must_use]
    pub fn broken_redirect(&self) -> Option<&'static str> {
        match (self.error.as_deref(), &self.redirect) {
            (None, None) if self.is_redirect() => Some(REDIRECT_WITHOUT_TARGET),
            (error, _) => BROKEN_REDIRECTS
                .into_iter()
                .find(|broken| error == Some(broken)),
        }
    }

    /// Returns whether a response with this status needs a `Location` (RFC 9110 section 15.4).
    fn is_redirect(&self) -> bool {
        matches!(self.status, Some(301 | 302 | 303 | 307 | 308))
    }

    /// Erases the target of the redirect if `is_forgotten` returns true for it. The row then states
    /// the reason, so that the redirect doesn't count as broken. Returns whether it was erased.
    pub fn clear_redirect(&mut self, is_forgotten: impl FnOnce(&str) -> bool) -> bool {
        let is_erased = self.redirect.as_deref().is_some_and(is_forgotten);
        if is_erased {
            self.redirect = None;
            if self.is_redirect() && self.error.is_none() {
                self.error = Some(REDIRECT_FORGOTTEN.to_owned());
            }
        }
        is_erased
    }

    /// Returns whether fetching failed. Failures are: no response, a status of 400 or above, an
    /// unexpected 304, a redirect that leads nowhere, and a body that the server didn't finish. A
    /// body that the crawler cut at a limit is not a failure, nor is a guessed sitemap that doesn't
    /// exist.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        let is_failure = |error: &str| !NOT_FAILURES.contains(&error);
        match self.error.as_deref() {
            Some(NO_SITEMAP) => false,
            error => {
                self.status.is_none_or(|status| status >= 400)
                    || self.broken_redirect().is_some()
                    || error.is_some_and(is_failure)
            }
        }
    }
}

/// The verdict of a robots.txt on a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsVerdict {
    /// `allowed` or `disallowed`.
    pub verdict: String,
    /// The line of the deciding rule, from 1. Null if no rule matched.
    pub line: Option<u32>,
    /// The deciding rule, as written.
    pub rule: Option<String>,
}

/// A site's statements about the use of a page, and the verdict for each purpose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PageUsagePermissions {
    /// Use for a search index: `allowed`, `refused`, or null if there is no statement about it.
    pub search: Option<String>,
    /// Use as input to a model. Values as for `search`.
    pub ai_input: Option<String>,
    /// Use for training a model. Values as for `search`.
    pub train_ai: Option<String>,
    /// Use as a copy that is kept for others. Values as for `search`.
    pub archive: Option<String>,
    /// The statements as written.
    pub said: Vec<UsageStatement>,
}

/// One statement about the use of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageStatement {
    /// The vocabulary: `content-usage`, `content-signal`, `tdm-reservation` ..
    pub vocabulary: String,
    /// Where the statement was found: `robots`, `tdmrep`, `header` or `meta`.
    pub channel: String,
    /// The line of the statement, if it is in robots.txt.
    pub line: Option<u32>,
    /// The raw text.
    pub raw: String,
}

/// The file and offset of a record in the archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarcRecordLocation {
    /// The name of the file in the folder `archive`, as in the index.
    pub file: String,
    /// Offset of the compressed record, in bytes.
    pub offset: u64,
}

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

/// A line of `digests.jsonl`: a file of the crawl as it was when no run was in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigestRow {
    /// The path relative to the crawl's directory. The last row is about the rows above it, and has
    /// the name of the list itself.
    pub file: String,
    /// The length of the file.
    pub bytes: u64,
    /// The SHA-256 in lower case hexadecimal digits.
    pub sha256: String,
    /// Only in the last row: true if all files are listed. False while a run is in progress: then
    /// only WARC files are listed, with their lengths before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_whole: Option<bool>,
}

/// A line of `state/delays.jsonl`: a change of a delay or of the settings, during a crawl or when a
/// run began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayRow {
    /// When the change took effect, in milliseconds since the Unix epoch, UTC.
    pub at: u64,
    /// The host key that the change applies to. Null if it applies to every host.
    pub host: Option<String>,
    /// The new minimum gap, in milliseconds. Null if `reread` is set. Also null at the start of a
    /// run, when the delays in the settings apply again.
    pub delay: Option<u64>,
    /// The settings that `crawl audit` checks requests against from this time on, with the tables
    /// and keys of `crawl.toml`. Null if they are the same as in an earlier row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Map<String, Value>>,
    /// Set if the crawl reread its settings and rewrote `crawl.toml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reread: Option<ExclusionsChangedByReload>,
    /// The worker that the change applies to, if the directories of several workers were gathered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

/// The exclusions that rereading the settings added and removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExclusionsChangedByReload {
    /// The exclusions added, named as in `excluded.jsonl`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// The exclusions removed, named as in `excluded.jsonl`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

/// A line of `state/order.jsonl`: an event that a replay must repeat in the same order. Exactly one
/// column is set in each line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayOrderRow {
    /// A run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunStartEvent>,
    /// A host's permit was used: a request was sent, or URLs of the host were settled without a
    /// request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<HostTurn>,
    /// The messages that the writer is about to commit together, in order. Each is named by the
    /// event that caused it: `e7` for the end of the 7th request of the run, `t7` for the 7th use
    /// of a host's permit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Vec<String>>,
    /// An operator's command took effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<OperatorCommand>,
    /// The crawl loop handled a message about a rendered page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub render: Option<RenderEventRow>,
}

/// A message to the crawl loop about rendered pages. The rows are in the order in which the loop
/// handled the messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderEventRow {
    /// When the loop handled the message, in milliseconds since the Unix epoch, UTC.
    pub at: u64,
    /// `scripted` (the thread that read a page found that scripts seem to build it), `wanted` (a
    /// page requested a resource), `dropped` (a page no longer waits for a resource), `expired`
    /// (resources waited too long) or `rendered` (a page was rendered, or could not be).
    pub step: String,
    /// The number of the page. The pages of a run are numbered from 1, in the order in which they
    /// are sent to the browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u64>,
    /// The URL of the page (`scripted`, `rendered`) or of the resource. Null if the resource's URL
    /// is unusable or if the URL contains a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The method of the request for a resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The kind of resource: `document`, `script`, `style`, `data`, `media` or `report`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether the request is a POST whose body may be sent. The log doesn't keep the body.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_post_body: bool,
    /// The result of rendering the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RenderResult>,
    /// Number of requests of this run that had ended when the loop handled the message.
    pub ended: u64,
    /// Number of messages to the writer thread, over all runs, that were committed when the loop
    /// handled this message.
    pub settled: u64,
}

/// The result of rendering a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderResult {
    /// How long the page's scripts ran by the page's own clock, in milliseconds.
    pub page_ms: u64,
    /// Number of characters on the page, without white space, up to a limit.
    pub letters: u64,
    /// Number of `a` elements on the page.
    pub links: u64,
    /// Number of requests that the browser refused, because the page made too many.
    pub withheld: u32,
    /// The URL that the page's scripts tried to navigate to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub navigation: Option<String>,
    /// Why the page could not be rendered, as in `pages.jsonl`. The other columns are zero then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// An operator's command that changes which requests are sent, or when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorCommand {
    /// When the command took effect, in milliseconds since the Unix epoch, UTC.
    pub at: u64,
    /// `add`, `delay`, `park` or `unpark`.
    pub command: String,
    /// The URL that was added, or the host that the command applies to. Null if it applies to every
    /// host.
    pub about: Option<String>,
    /// The new delay, in milliseconds.
    pub delay: Option<u64>,
    /// Number of requests of this run that had ended when the change was made.
    pub ended: u64,
    /// Number of messages to the writer thread, over all runs, that were committed when the change
    /// was made.
    pub settled: u64,
}

/// The start of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStartEvent {
    /// When the run started, in milliseconds since the Unix epoch, UTC.
    pub at: u64,
    /// The round of the run, from 1.
    pub round: u32,
    /// When the round began, in seconds since the Unix epoch, UTC.
    pub round_began: u32,
    /// Length of `requests.jsonl` at the start of the run, in bytes.
    pub requests: u64,
    /// Number of messages to the writer thread that were committed in all earlier runs.
    pub settled: u64,
    /// How the previous run ended, as in `waiting.jsonl`: the reason, and the detail if there is
    /// one. Null if the previous run was killed, or if this is the first run.
    pub before: Option<String>,
    /// A digest of the settings that affect what is fetched, or when. Null in rows of older
    /// versions.
    #[serde(default)]
    pub settings: Option<String>,
    /// Whether the file has the steps of rendered pages. False in rows of older versions.
    #[serde(default)]
    pub has_render_steps: bool,
    /// The parked hosts when the run started. Null in rows of older versions.
    #[serde(default)]
    pub parked: Option<Vec<String>>,
    /// The origins whose robots.txt had to be fetched again, because `crawl recheck` had found that
    /// its rules had changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rechecked: Vec<String>,
}

/// A turn of a host: the use of the host's permit to request its next URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostTurn {
    /// When the permit was used, in milliseconds since the Unix epoch, UTC.
    pub at: u64,
    /// Scheme, host and port.
    pub origin: String,
    /// What the permit was used for: `page`, `robots`, or `hop` (a redirect of a robots.txt, or a
    /// request right after a robots.txt).
    pub purpose: String,
    /// Number of requests of this run that had ended when the permit was used.
    pub ended: u64,
    /// Number of messages to the writer thread, over all runs, that were committed when the permit
    /// was used.
    pub settled: u64,
    /// Number of URLs that were settled or moved to the back of the queue without a request, plus
    /// the number of refused resources of rendered pages.
    pub passed: u64,
    /// Whether a request was sent.
    pub is_sent: bool,
}

/// A line of `excluded.jsonl`: a known URL that was not fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcludedRow {
    /// The URL.
    pub url: String,
    /// `robots`, `meta`, `header`, `nofollow`, `scope`, `depth`, `budget`, `trap` ..
    pub reason: String,
    /// The deciding rule, as written.
    pub rule: Option<String>,
    /// The line of the deciding rule, if the rule is in a file.
    pub line: Option<u32>,
    /// What the URL was found as, if not as a plain link: `resource`, `sitemap` or `entry` (of a
    /// sitemap that is a seed, or on another host). Absent for other URLs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_as: Option<String>,
    /// The page that the URL was found on. Null for a seed.
    pub found_on: Option<String>,
    /// The label of the seed that the URL belongs to. Null if that seed has no label.
    #[serde(default)]
    pub label: Option<String>,
    /// The round that excluded the URL, from 1. Null in rows of older versions.
    #[serde(default)]
    pub round: Option<u32>,
    /// Fetch time of the page that was settled last before this URL was excluded. In rows written
    /// at the end of a run, the start of the round. Null in rows of older versions.
    #[serde(default)]
    pub at: Option<Timestamp>,
}

/// A line of `waiting.jsonl`, written when a run ends: URLs that are still pending.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingRow {
    /// Scheme, host and port of the pending URLs. Null in the first line, which is about the whole
    /// crawl.
    pub origin: Option<String>,
    /// Number of pending URLs.
    pub urls: u64,
    /// Why the URLs are pending; in the first line, how the run ended. Values: `finished`,
    /// `budget`, `interrupted`, `unreachable`, `parked`, `robots`.
    pub reason: String,
    /// More about the reason: the name of the budget, or why no request was sent to the host.
    pub detail: Option<String>,
    /// When the host may get the next request, if the host or its robots.txt has to be waited for.
    /// Null in rows of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try: Option<Timestamp>,
    /// Whether a new start may request the robots.txt before `next_try`. True if the last request
    /// for it got no answer and the host is not paused for another reason. False in rows of older
    /// versions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tried_at_start: bool,
    /// In the first line, the round of the run, from 1. Null in other lines and in rows of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// Pending URLs that may be broken, because their server doesn't respond. If the robots.txt of
    /// the origin is unreachable, these are the first 100 pending URLs. If the origin is
    /// unreachable for another reason, these are the first 100 pending seeds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<WaitingUrl>,
    /// In a line of an origin, the bucket (set of hosts) that contains the origin. Null if the
    /// frontier is not shared, and in rows of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<i32>,
    /// In the first line, the buckets that the worker owned at the end of its run. Maps each bucket
    /// to the number of times that workers had taken it by then. So of two workers, the one with
    /// the larger number owned the bucket last. Empty if the frontier is not shared, and in rows of
    /// older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub buckets: BTreeMap<i32, i64>,
}

/// A pending URL in a line of `waiting.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingUrl {
    /// The URL.
    pub url: String,
    /// The page that the URL was found on. Null for a seed.
    pub found_on: Option<String>,
}

/// A line of `links.jsonl`: a link of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRow {
    /// The page that contains the link.
    pub from: String,
    /// The URL that the page links to.
    pub to: String,
    /// The `rel` of the link.
    pub rel: Option<String>,
    /// The text of the link.
    pub text: Option<String>,
    /// The round that read the page, from 1. Null in rows of older versions.
    #[serde(default)]
    pub round: Option<u32>,
    /// When the page was fetched. Null in rows of older versions.
    #[serde(default)]
    pub at: Option<Timestamp>,
}

/// A line of `extracts.jsonl`: the fields that a rule extracted from a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractRow {
    /// The page.
    pub url: String,
    /// The name of the rule.
    pub rule: String,
    /// The round that read the page, from 1.
    pub round: u32,
    /// A value for each field of the rule. Null if the field is missing or failed.
    pub fields: Map<String, Value>,
    /// The fields that the page doesn't have. Fields of a group are named `group.field`.
    #[serde(default)]
    pub missing: Vec<String>,
    /// Why fields failed, by field: the text is not of the field's type, or the field is required
    /// and missing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<String, String>,
    /// The limit at which reading the page ended: `bytes`, `nodes`, `depth`, `steps`, `values` or
    /// `size`. Absent if the page was read to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

/// A line of `recheck.jsonl`, written by `crawl recheck`: how today's rules apply to a crawled
/// page. The first line is about the recheck itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesRecheckRow {
    /// When the rules were fetched.
    pub at: Timestamp,
    /// `rechecked` (the first line), `excluded` (a page that the rules exclude now), or `unknown`
    /// (pages of an origin whose rules could not be fetched).
    pub verdict: String,
    /// The page. Null if the line is about several pages.
    pub url: Option<String>,
    /// Scheme, host and port of the pages. Null in the first line.
    pub origin: Option<String>,
    /// Number of pages that the line is about.
    pub urls: u64,
    /// Why the page is excluded now (`robots` or `usage`), or why the rules could not be fetched.
    /// In the first line, the purpose of the crawl.
    pub reason: Option<String>,
    /// The deciding rule, as written.
    pub rule: Option<String>,
    /// The line of the deciding rule in its robots.txt.
    pub line: Option<u32>,
}

/// A line of `tombstones.jsonl`: a page or a host that was removed from the crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TombstoneRow {
    /// When the page or host was removed.
    pub at: Timestamp,
    /// `page` or `host`.
    pub kind: String,
    /// The keyed digest of the page's URL or the host's name. The key is in `state/`.
    pub digest: String,
    /// The reason that the operator gave.
    pub reason: String,
}

/// A line of `workers.jsonl`: one of the workers whose directories were gathered into this
/// directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatheredWorkerRow {
    /// The name of the worker. Rows of its requests have the same name.
    pub worker: String,
    /// When the worker was first started.
    pub started: Option<String>,
    /// When the worker was last started.
    pub last_started: Option<String>,
    /// How the worker's last run ended, as in its `waiting.jsonl`.
    pub ended: String,
    /// Number of rows of `pages.jsonl`.
    pub pages: u64,
    /// Number of rows of `requests.jsonl`.
    pub requests: u64,
    /// Number of rows of `excluded.jsonl` that were copied.
    pub excluded: u64,
    /// Number of rows of `excluded.jsonl` that were not copied, because another worker has a row
    /// about the same URL.
    pub told_by_others: u64,
    /// Number of rows of `links.jsonl`.
    pub links: u64,
    /// Number of WARC files.
    pub warc_files: u64,
    /// Size of the WARC files, in bytes.
    pub warc_bytes: u64,
    /// Number of invalid lines in row files, which were dropped.
    pub unreadable: u64,
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use expect_test::{Expect, expect};
    use serde::de::{DeserializeOwned, Visitor};
    use serde::{Deserializer, Serialize};

    use super::{
        DelayRow, ExcludedRow, ExtractRow, GatheredWorkerRow, LinkRow, PageRow,
        PageSampleMembership, PageUsagePermissions, RandomWalkStep, ReplayOrderRow, RequestRow,
        RobotsOutcome, RobotsVerdict, RulesRecheckRow, TombstoneRow, UsageStatement, WaitingRow,
        WarcRecordLocation,
    };
    use crate::Timestamp;

    fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(row: &T, expect: Expect) {
        let json = serde_json::to_string(row).unwrap();
        assert_eq!(&serde_json::from_str::<T>(&json).unwrap(), row);
        expect.assert_eq(&json);
    }

    /// Returns the columns that the documentation lists for a row file, in order.
    fn documented(file: &str) -> Vec<String> {
        let docs = include_str!("../../../docs/rows.md");
        let (_, section) = docs.split_once(&format!("\n## {file}\n")).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        rows.map(|row| {
            let cells: Vec<_> = row.split(" | ").collect();
            assert!(
                cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty()),
                "{row}"
            );
            cells[0].trim_end_matches('`').to_owned()
        })
        .collect()
    }

    #[test]
    fn every_column_is_documented_with_its_unit() {
        let check = |file: &str, columns: &'static [&'static str]| {
            assert_eq!(documented(file), columns, "{file}");
        };
        check("pages.jsonl", columns::<PageRow>());
        check("requests.jsonl", columns::<RequestRow>());
        check("excluded.jsonl", columns::<ExcludedRow>());
        check("links.jsonl", columns::<LinkRow>());
        check("extracts.jsonl", columns::<ExtractRow>());
        check("walk.jsonl", columns::<RandomWalkStep>());
        check("waiting.jsonl", columns::<WaitingRow>());
        check("recheck.jsonl", columns::<RulesRecheckRow>());
        check("tombstones.jsonl", columns::<TombstoneRow>());
        check("workers.jsonl", columns::<GatheredWorkerRow>());
        check("state/delays.jsonl", columns::<DelayRow>());
        check("state/order.jsonl", columns::<ReplayOrderRow>());
    }

    /// Returns the names of a struct's fields in the serialised form.
    fn columns<T: DeserializeOwned>() -> &'static [&'static str] {
        struct Fields<'a>(&'a mut &'static [&'static str]);
        impl<'de> Deserializer<'de> for Fields<'_> {
            type Error = serde::de::value::Error;

            fn deserialize_struct<V: Visitor<'de>>(
                self,
                _: &'static str,
                fields: &'static [&'static str],
                _: V,
            ) -> Result<V::Value, Self::Error> {
                *self.0 = fields;
                Err(serde::de::Error::custom("enough"))
            }

            fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
                Err(serde::de::Error::custom("no struct"))
            }

            serde::forward_to_deserialize_any! {
                bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option
                unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier
                ignored_any
            }
        }
        let mut columns: &'static [&'static str] = &[];
        assert!(T::deserialize(Fields(&mut columns)).is_err());
        columns
    }

    #[test]
    fn face_pages() {
        check(
            &PageRow {
                url: "http://e.example/".into(),
                status: Some(200),
                fetched_at: Timestamp::from_micros(1_795_219_199_123_000),
                ms: 12,
                bytes: 3,
                content_type: Some("text/html".into()),
                detected_type: Some("application/pdf".into()),
                charset: Some("UTF-8".into()),
                language: Some("de-AT".into()),
                digest: Some("sha1:X".into()),
                depth: 1,
                hops_off_scope: 0,
                via: None,
                redirect: None,
                title: Some("\u{2028}".into()),
                canonical: None,
                indexed: None,
                robots: Some(RobotsVerdict {
                    verdict: "allowed".into(),
                    line: Some(3),
                    rule: Some("Allow: /".into()),
                }),
                usage: Some(PageUsagePermissions {
                    train_ai: Some("refused".into()),
                    said: vec![UsageStatement {
                        vocabulary: "content-usage".into(),
                        channel: "robots".into(),
                        line: Some(4),
                        raw: "train-ai=n".into(),
                    }],
                    ..PageUsagePermissions::default()
                }),
                warc: Some(WarcRecordLocation {
                    file: "crawl-e-20261120235959-00000.warc.gz".into(),
                    offset: 512,
                }),
                record_id: Some("67e55044-10b1-426f-9247-bb680e5fe0c8".into()),
                withheld: None,
                unwanted: None,
                declared_bytes: None,
                echoes_secret: false,
                round: 1,
                change: Some("new".into()),
                differs: None,
                error: None,
                sample: Some(PageSampleMembership {
                    how: "drawn".into(),
                    stratum: Some("e.example".into()),
                    drawn: Some(50),
                    of: Some(200),
                    probability: Some(0.25),
                    unknown: None,
                }),
                label: Some("press".into()),
                render: None,
            },
            expect![[
                r#"{"url":"http://e.example/","status":200,"fetched_at":"2026-11-20T23:59:59.123Z","ms":12,"bytes":3,"content_type":"text/html","detected_type":"application/pdf","charset":"UTF-8","language":"de-AT","digest":"sha1:X","depth":1,"hops_off_scope":0,"via":null,"redirect":null,"title":" ","canonical":null,"indexed":null,"robots":{"verdict":"allowed","line":3,"rule":"Allow: /"},"usage":{"search":null,"ai-input":null,"train-ai":"refused","archive":null,"said":[{"vocabulary":"content-usage","channel":"robots","line":4,"raw":"train-ai=n"}]},"warc":{"file":"crawl-e-20261120235959-00000.warc.gz","offset":512},"record_id":"67e55044-10b1-426f-9247-bb680e5fe0c8","withheld":null,"unwanted":null,"round":1,"change":"new","differs":null,"error":null,"sample":{"how":"drawn","stratum":"e.example","drawn":50,"of":200,"probability":0.25,"unknown":null},"label":"press"}"#
            ]],
        );
    }

    #[test]
    fn face_requests() {
        check(
            &RequestRow {
                url: "http://e.example/robots.txt".into(),
                host: "e.example".into(),
                address: Some("192.0.2.1".into()),
                purpose: "robots".into(),
                start: 1_795_219_199_123,
                end: 1_795_219_199_223,
                status: None,
                failure: Some("timeout".into()),
                gap_asked: 1000,
                why: "delay".into(),
                wait_asked: None,
                after: None,
                signed: false,
                challenged: false,
                unmet_signature: None,
                method: None,
                via: None,
                robots: Some(RobotsOutcome {
                    of: "http://e.example".into(),
                    state: "unreachable".into(),
                    why: Some("timeout".into()),
                }),
                worker: None,
            },
            expect![[
                r#"{"url":"http://e.example/robots.txt","host":"e.example","address":"192.0.2.1","purpose":"robots","start":1795219199123,"end":1795219199223,"status":null,"failure":"timeout","gap_asked":1000,"why":"delay","wait_asked":null,"after":null,"robots":{"of":"http://e.example","state":"unreachable","why":"timeout"}}"#
            ]],
        );
    }

    #[test]
    fn face_excluded_and_links() {
        check(
            &ExcludedRow {
                url: "http://e.example/p".into(),
                reason: "robots".into(),
                rule: Some("Disallow: /p".into()),
                line: Some(2),
                found_as: None,
                found_on: Some("http://e.example/".into()),
                label: Some("press".into()),
                round: Some(2),
                at: Some(Timestamp::from_micros(1_795_219_199_123_000)),
            },
            expect![[
                r#"{"url":"http://e.example/p","reason":"robots","rule":"Disallow: /p","line":2,"found_on":"http://e.example/","label":"press","round":2,"at":"2026-11-20T23:59:59.123Z"}"#
            ]],
        );
        check(
            &LinkRow {
                from: "http://e.example/".into(),
                to: "http://e.example/p".into(),
                rel: None,
                text: Some("p".into()),
                round: Some(1),
                at: None,
            },
            expect![[
                r#"{"from":"http://e.example/","to":"http://e.example/p","rel":null,"text":"p","round":1,"at":null}"#
            ]],
        );
    }
}

//! The rows of `pages.jsonl`, and which errors make a page failed or broken.

use serde::{Deserialize, Serialize};

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
pub(super) const REDIRECT_MALFORMED: &str = "redirect_malformed";
/// The error of a redirect whose target is a URL that is neither http nor https.
pub(super) const REDIRECT_SCHEME: &str = "redirect_scheme";
/// The error of a redirect whose target `crawl forget` erased. The redirect isn't broken.
const REDIRECT_FORGOTTEN: &str = "redirect_forgotten";
/// The name for a redirect without a `Location` (RFC 9110 section 15.4). Rows don't record this as
/// an error, because browsers show the body of such a response.
pub(super) const REDIRECT_WITHOUT_TARGET: &str = "redirect_without_target";

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

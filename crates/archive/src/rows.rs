//! The types of the rows in each row file. A missing value is written as null, except in a few
//! columns that are left out instead.

mod page_outcome;
mod page_row;
mod replay_order_row;
mod request_row;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::page_outcome::{PAGE_OUTCOMES, is_obstacle};
pub use self::page_row::{
    NO_SITEMAP, NOT_A_SITEMAP, ONLY_CHECKED, PageRow, PageSampleMembership, PageUsagePermissions,
    READER_KILLED, READER_PANICKED, REDIRECT_LOOP, RandomWalkStep, RenderStatistics, RobotsVerdict,
    TOO_MANY_REDIRECTS, UNEXPECTED_304, UsageStatement, WarcRecordLocation,
};
pub use self::replay_order_row::{
    HostTurn, OperatorCommand, RenderEventRow, RenderResult, ReplayOrderRow, RunStartEvent,
};
pub use self::request_row::{CommitCountsBeforeRequest, RequestRow, RobotsOutcome};
use crate::timestamp::Timestamp;

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

/// A line of `waiting.jsonl`, written when a run ends: the pending URLs of one origin. The first
/// line is about the whole crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingOriginRow {
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
mod tests;

//! The rows of each row file. Keys are always there; a value that is not known is null.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;

/// A line of `pages.jsonl`: an exchange that settled a URL, answered or failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageRow {
    /// The URL that was asked for, in canonical form.
    pub url: String,
    /// The status code; null where nothing was answered.
    pub status: Option<u16>,
    /// When the request was sent.
    pub fetched_at: Timestamp,
    /// The time that the exchange took, in milliseconds.
    pub ms: u64,
    /// Bytes of the body as received, before its content coding is undone.
    pub bytes: u64,
    /// The `Content-Type` of the answer.
    pub content_type: Option<String>,
    /// The media type that the body looks like, whatever `content_type` says; null where there is
    /// none, or where it was not looked into.
    #[serde(default)]
    pub detected_type: Option<String>,
    /// The charset that a page was read in, by its name in the Encoding Standard.
    #[serde(default)]
    pub charset: Option<String>,
    /// The language tag (BCP 47) of a page; null where it can't be told, or nothing asked for it.
    #[serde(default)]
    pub language: Option<String>,
    /// The labelled digest of the payload that the archive has for this answer. One that is the
    /// same but for its content coding has that of the answer before.
    pub digest: Option<String>,
    /// Links followed from a seed.
    pub depth: u32,
    /// Links followed since the scope was left; 0 within it.
    #[serde(default)]
    pub hops_off_scope: u8,
    /// The URL that led here; null for a seed.
    pub via: Option<String>,
    /// The target of a redirect, in canonical form; null where the answer is none.
    #[serde(default)]
    pub redirect: Option<String>,
    /// The title of an HTML page.
    pub title: Option<String>,
    /// The URL that the page calls its own (`rel=canonical`), where that is another: a hint
    /// that the content stands there too.
    #[serde(default)]
    pub canonical: Option<String>,
    /// Where the crawl builds a search index: `yes`, or why the page is not in it (`noindex: ..`,
    /// `canonical: ..`, `soft_404` ..).
    #[serde(default)]
    pub indexed: Option<String>,
    /// The verdict of robots.txt.
    pub robots: Option<RobotsVerdict>,
    /// The site's statements about the use of the page; null where it makes none.
    pub usage: Option<PageUsage>,
    /// The place of the response record.
    pub warc: Option<WarcPlace>,
    /// The UUID of that record, its `WARC-Record-ID` without `urn:uuid:`.
    #[serde(default)]
    pub record_id: Option<String>,
    /// The site's words for which the body is not in the archive; null where it is.
    pub withheld: Option<String>,
    /// The operator's filter for which the body is not in the archive: `content-type image/png`,
    /// `min-size 1000`, `max-size 1000`, `language fr`; null where it is wanted.
    #[serde(default)]
    pub unwanted: Option<String>,
    /// Whether the answer contains a secret of the operator's `[site]` tables. The archive keeps such an
    /// answer unchanged, so its body is never shown or exported: see [`PageRow::may_show_body`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub echoes_secret: bool,
    /// Which passage through the crawl's pages it belongs to, from 1; each URL has a row in a
    /// round at most.
    #[serde(default = "first_round")]
    pub round: u32,
    /// The change since the last visit: `new`, `changed`, `same` or `gone`; null where
    /// that is not known.
    #[serde(default)]
    pub change: Option<String>,
    /// The part of the page that is not as it was at the last visit: `bytes`, `markup` or `text`;
    /// null where nothing is, and where that is not known.
    #[serde(default)]
    pub differs: Option<String>,
    /// The reason why there was no answer, or why the answer could not be read.
    pub error: Option<String>,
    /// The page's part in the sample; null where the crawl draws none, and for what is no page.
    #[serde(default)]
    pub sample: Option<SampleRow>,
    /// The label of the seed in whose area the URL lies; null where that seed has none.
    #[serde(default)]
    pub label: Option<String>,
}

/// The part of a page in a sample, and the probability by which it came into it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleRow {
    /// Why the page was asked for: `drawn`; `frame`, as its links are the frame; `redirect`, as a
    /// page of the sample leads there; or `walk`, as a walker came to it.
    pub how: String,
    /// The name of the stratum that it was drawn in.
    pub stratum: Option<String>,
    /// Pages that were drawn in it.
    pub drawn: Option<u64>,
    /// Pages that the stratum has.
    pub of: Option<u64>,
    /// The inclusion probability, from 0 to 1. Null where none can be known.
    pub probability: Option<f64>,
    /// Why none can be known.
    #[serde(default)]
    pub unknown: Option<String>,
}

/// A step of a random walk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WalkRow {
    /// The number of the walker, from 1.
    pub walker: u32,
    /// The number of the step, from 1. A redirect belongs to the step that led to it.
    pub step: u64,
    /// `start`, the first step; `link`; `redirect`; or `restart`, a step to a seed.
    pub how: String,
    /// Of a restart, why: `chance`; `no links` to go on by; `no page`, as there was no answer or an
    /// error; `excluded`, as it may not be asked for; `redirects`, more than are followed.
    pub why: Option<String>,
    /// The URL that the step leads to.
    pub url: String,
    /// The page that the walker stood on before.
    pub from: Option<String>,
    /// The links of that page that could have been followed, each URL once.
    pub links: Option<u64>,
}

fn first_round() -> u32 {
    1
}

/// Errors of pages that were read as far as they are read.
const READ_ALL_THE_SAME: [&str; 4] = [
    "body_truncated",
    "decoded_too_large",
    "decompression_bomb",
    "login_page",
];

/// The error of a URL that the crawler gave up since it died of it: no fault of the link.
pub const READER_KILLED: &str = "reader_killed";
/// The error of a page that a parser panicked over.
pub const READER_PANICKED: &str = "reader_panicked";
/// The error of a redirect whose chain leads back to a URL of its own.
pub const REDIRECT_LOOP: &str = "redirect_loop";
/// The error of a redirect whose chain is longer than the crawl follows.
pub const TOO_MANY_REDIRECTS: &str = "too_many_redirects";
/// The error of a redirect to what is no URL.
const REDIRECT_MALFORMED: &str = "redirect_malformed";

/// Errors of redirects that lead a reader nowhere, whatever their status.
const BROKEN_REDIRECTS: [&str; 3] = [REDIRECT_LOOP, TOO_MANY_REDIRECTS, REDIRECT_MALFORMED];

impl PageRow {
    /// Returns whether the body was left out of the archive, by the site's word or the operator's.
    #[must_use]
    pub fn is_body_left_out(&self) -> bool {
        self.withheld.is_some() || self.unwanted.is_some()
    }

    /// Returns whether commands may show or export what the archived body says. They go by the search
    /// index, which is redacted, where they may not.
    #[must_use]
    pub fn may_show_body(&self) -> bool {
        !self.is_body_left_out() && !self.echoes_secret
    }

    /// Returns whether its record repeats no body: that of an earlier visit holds it.
    #[must_use]
    pub fn repeats_body(&self) -> bool {
        self.change.as_deref() == Some("same") && self.differs.as_deref() != Some("markup")
    }

    /// Returns whether a link to the page leads nowhere: no answer, a status of 400 and above, or a
    /// redirect without an end. What the crawler itself could not bear is not.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        match (self.error.as_deref(), self.status) {
            (Some(READER_KILLED), _) => false,
            (_, None | Some(400..)) => true,
            _ => self.broken_redirect().is_some(),
        }
    }

    /// The reason why a redirect leads nowhere, where it does.
    #[must_use]
    pub fn broken_redirect(&self) -> Option<&str> {
        let error = self.error.as_deref();
        error.filter(|error| BROKEN_REDIRECTS.contains(error))
    }

    /// Returns whether what the server has could not be had: no answer, a status of 400 and above,
    /// or a body that could not be read whole. One that was cut at a limit was read that far;
    /// one that broke off may have more.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        let unread = |error: &str| !READ_ALL_THE_SAME.contains(&error);
        self.status.is_none_or(|status| status >= 400) || self.error.as_deref().is_some_and(unread)
    }
}

/// The verdict of a robots.txt on a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsVerdict {
    /// `allowed` or `disallowed`.
    pub verdict: String,
    /// The line of the rule that decided, counted from 1; null where none matched.
    pub line: Option<u32>,
    /// That rule as written.
    pub rule: Option<String>,
}

/// A site's statements about the use of a page, with a verdict per purpose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PageUsage {
    /// For a search index: `allowed`, `refused`, or null where nobody speaks of it.
    pub search: Option<String>,
    /// For input to a model.
    pub ai_input: Option<String>,
    /// For training a model.
    pub train_ai: Option<String>,
    /// For a copy kept for others.
    pub archive: Option<String>,
    /// The statements, each as it was made.
    pub said: Vec<UsageStatement>,
}

/// One statement about the use of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageStatement {
    /// In which words: `content-usage`, `content-signal`, `tdm-reservation` ..
    pub vocabulary: String,
    /// The place: `robots`, `tdmrep`, `header` or `meta`.
    pub channel: String,
    /// Its line, where it stands in robots.txt.
    pub line: Option<u32>,
    /// The raw text.
    pub raw: String,
}

/// The place of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarcPlace {
    /// The name of the file in the folder `archive`, as the index has it.
    pub file: String,
    /// The beginning of the record's gzip member, in bytes.
    pub offset: u64,
}

/// A line of `requests.jsonl`: a request that was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRow {
    /// The URL that was asked for.
    pub url: String,
    /// The host key that the gap is kept for: without a port, but on loopback.
    pub host: String,
    /// The address that was asked.
    pub address: Option<String>,
    /// The purpose: `page`, `robots`, `hop` ..
    pub purpose: String,
    /// When it was sent, in milliseconds since the Unix epoch, UTC.
    pub start: u64,
    /// When the exchange ended, in milliseconds since the Unix epoch, UTC.
    pub end: u64,
    /// The status code, where one was answered.
    pub status: Option<u16>,
    /// The name of the failure, where none was.
    pub failure: Option<String>,
    /// The gap that had to be kept before it, in milliseconds.
    pub gap_asked: u64,
    /// The rule that asked for that gap: `delay`, `crawl-delay`, `retry-after` ..
    pub why: String,
    /// The wait that this answer asks for, in milliseconds.
    pub wait_asked: Option<u64>,
    /// The rows that were on the disk when a page was chosen; null for robots.txt and the like,
    /// which are not chosen from a queue.
    #[serde(default)]
    pub after: Option<AfterCommits>,
    /// The worker that sent it, where the requests of several were gathered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

/// The commits that a request was chosen after: by them a replay knows which links were known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AfterCommits {
    /// The rows of `pages.jsonl` that were committed.
    pub pages: u64,
    /// Other commits of this run: a robots.txt with its sitemaps, a page that is to be tried
    /// again, URLs that were settled without a request.
    pub others: u64,
}

impl RequestRow {
    /// The answer in a word: its status, the name of the failure, or `no answer`.
    #[must_use]
    pub fn answer(&self) -> String {
        match (self.status, &self.failure) {
            (Some(status), _) => status.to_string(),
            (None, Some(failure)) => failure.clone(),
            (None, None) => "no answer".to_owned(),
        }
    }
}

/// A line of `digests.jsonl`: a file of the crawl as it was when no run was under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestRow {
    /// Its path, as seen from the crawl's directory. The last row speaks of the rows above it, and
    /// has the name of the list.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256 in lower case hexadecimal digits.
    pub sha256: String,
    /// In the last row alone: true if all files are listed; false while a run is under way, when
    /// the WARC files are, as far as they went before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_whole: Option<bool>,
}

/// A line of `state/delays.jsonl`: an operator set another delay while the crawl ran, or had its
/// settings read again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayRow {
    /// From when on it holds, in milliseconds since the Unix epoch, UTC.
    pub at: u64,
    /// The host key that it holds for; null: every host.
    pub host: Option<String>,
    /// The least gap, in milliseconds; null where `reread` has something, and where a run began, so
    /// that `crawl.toml` holds again.
    pub delay: Option<u64>,
    /// The settings were read again, and `crawl.toml` written anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reread: Option<RereadSettings>,
    /// The worker for whose requests it holds, where those of several were gathered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

/// The rules in force until settings were read again, and how the exclusions changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RereadSettings {
    /// The least gap until then, in milliseconds.
    pub delay: u64,
    /// Requests in flight per host until then.
    pub per_host: u32,
    /// The same for the hosts of each name, as far as it had others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sites: BTreeMap<String, RereadSite>,
    /// Exclusions that hold from then on, named as in `excluded.jsonl`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Exclusions that held until then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

/// The part of [`RereadSettings`] for the hosts of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RereadSite {
    /// As [`RereadSettings::delay`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<u64>,
    /// As [`RereadSettings::per_host`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_host: Option<u32>,
}

/// A line of `state/order.jsonl`: one of the facts by which a replay comes to the same order. Each
/// line has one of the columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderRow {
    /// A run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunBegan>,
    /// A host had its turn: a request was sent, or URLs of it were settled without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<HostTurn>,
    /// The messages that the writer is about to commit together, in its order. Each is named by its
    /// cause: `e7` is what came of the 7th request of the run that ended, `t7` of its 7th turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Vec<String>>,
    /// An operator's command took effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandTaken>,
}

/// An operator's command that changes which requests are sent, or when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandTaken {
    /// When, in milliseconds since the Unix epoch, UTC.
    pub at: u64,
    /// `add`, `delay`, `park` or `unpark`.
    pub command: String,
    /// The added URL, or the host; null: every host.
    pub about: Option<String>,
    /// The delay that was set, in milliseconds.
    pub delay: Option<u64>,
    /// The requests of this run that had ended.
    pub ended: u64,
    /// The messages that were committed, of all runs.
    pub settled: u64,
}

/// The begin of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunBegan {
    /// When, in milliseconds since the Unix epoch, UTC.
    pub at: u64,
    /// The round that it works in, from 1.
    pub round: u32,
    /// When that round began, in seconds since the Unix epoch, UTC.
    pub round_began: u32,
    /// The bytes that `requests.jsonl` has.
    pub requests: u64,
    /// The messages that are committed, of all runs before.
    pub settled: u64,
    /// How the run before ended, as `waiting.jsonl` had it: its reason and, where there is one, its
    /// detail; null: it was killed, or there was none.
    pub before: Option<String>,
}

/// A turn of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostTurn {
    /// When, in milliseconds since the Unix epoch, UTC.
    pub at: u64,
    /// Scheme, host and port.
    pub origin: String,
    /// `page`, `robots`, or `hop`: a redirect of a robots.txt, or what is asked for right after it.
    pub purpose: String,
    /// The requests of this run that had ended.
    pub ended: u64,
    /// The messages that were committed, of all runs.
    pub settled: u64,
    /// The URLs that were settled or went behind others without a request.
    pub passed: u64,
    /// True if a request was sent.
    pub is_sent: bool,
}

/// A line of `excluded.jsonl`: a URL that was known and not asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcludedRow {
    /// The URL.
    pub url: String,
    /// `robots`, `meta`, `header`, `nofollow`, `scope`, `depth`, `budget`, `trap` ..
    pub reason: String,
    /// The rule that decided, as written.
    pub rule: Option<String>,
    /// The line of that rule, where it stands in a file.
    pub line: Option<u32>,
    /// The page that the URL was found on; null for a seed.
    pub found_on: Option<String>,
    /// The label of the seed in whose area the URL lies; null where that seed has none.
    #[serde(default)]
    pub label: Option<String>,
    /// The round that excluded it, from 1; null in rows of older versions.
    #[serde(default)]
    pub round: Option<u32>,
    /// Fetch time of the last page settled before it, or start of the round for rows written at the end
    /// of a run; null in rows of older versions.
    #[serde(default)]
    pub at: Option<Timestamp>,
}

/// A line of `waiting.jsonl`, written when a run ends: URLs that are to be asked for still.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingRow {
    /// Scheme, host and port, whose URLs wait; null: the crawl, in the first line.
    pub origin: Option<String>,
    /// The number of them.
    pub urls: u64,
    /// Why they wait, and in the first line how the run ended: `finished`, `budget`,
    /// `interrupted`, `unreachable`, `parked`, `robots`.
    pub reason: String,
    /// The budget's name, or why the host was not asked.
    pub detail: Option<String>,
    /// The first 100 URLs of an origin without a reachable robots.txt. Each is a link to a server that
    /// does not answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<WaitingUrl>,
}

/// A URL that waits, as `waiting.jsonl` lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingUrl {
    /// The URL.
    pub url: String,
    /// The page that it was found on; null for a seed.
    pub found_on: Option<String>,
}

/// A line of `links.jsonl`: a link of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRow {
    /// The page.
    pub from: String,
    /// The URL that is linked to.
    pub to: String,
    /// The `rel` of the link.
    pub rel: Option<String>,
    /// Its text.
    pub text: Option<String>,
    /// The round that read the page, from 1; null in rows of older versions.
    #[serde(default)]
    pub round: Option<u32>,
    /// When the page was fetched; null in rows of older versions.
    #[serde(default)]
    pub at: Option<Timestamp>,
}

/// A line of `recheck.jsonl`: what today's rules say of what a crawl has, as `crawl recheck` was
/// told. The first line is that of the recheck itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecheckRow {
    /// When the rules were asked for.
    pub at: Timestamp,
    /// `rechecked` (the first line), `excluded` (a page), or `unknown` (pages of an origin whose
    /// rules could not be had).
    pub verdict: String,
    /// The page; null where the line is of several.
    pub url: Option<String>,
    /// Scheme, host and port; null in the first line.
    pub origin: Option<String>,
    /// The number of pages that the line is of.
    pub urls: u64,
    /// `robots` or `usage`, or why the rules could not be had; in the first line the purpose of
    /// the crawl.
    pub reason: Option<String>,
    /// The rule that decided, as written.
    pub rule: Option<String>,
    /// The line of that rule in its robots.txt.
    pub line: Option<u32>,
}

/// A line of `tombstones.jsonl`: a page or a host that was taken out of the crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TombstoneRow {
    /// When.
    pub at: Timestamp,
    /// `page` or `host`.
    pub kind: String,
    /// The keyed digest of its name; the key is in `state/`.
    pub digest: String,
    /// Why.
    pub reason: String,
}

/// A line of `workers.jsonl`: a worker whose directory was gathered with those of others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRow {
    /// Its name, as in the rows of its requests.
    pub worker: String,
    /// When it was first started.
    pub started: Option<String>,
    /// When it was started last.
    pub last_started: Option<String>,
    /// How its last run ended, as its `waiting.jsonl` has it.
    pub ended: String,
    /// Rows of `pages.jsonl`.
    pub pages: u64,
    /// Rows of `requests.jsonl`.
    pub requests: u64,
    /// Rows of `excluded.jsonl` that were taken over.
    pub excluded: u64,
    /// Rows of `excluded.jsonl` that were not, as another worker's row tells of the same URL.
    pub told_by_others: u64,
    /// Rows of `links.jsonl`.
    pub links: u64,
    /// WARC files.
    pub warc_files: u64,
    /// Their bytes.
    pub warc_bytes: u64,
    /// Lines of its row files that hold no row, and were left out.
    pub unreadable: u64,
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use expect_test::{Expect, expect};
    use serde::de::{DeserializeOwned, Visitor};
    use serde::{Deserializer, Serialize};

    use super::{
        DelayRow, ExcludedRow, LinkRow, OrderRow, PageRow, PageUsage, RecheckRow, RequestRow,
        RobotsVerdict, SampleRow, TombstoneRow, UsageStatement, WaitingRow, WalkRow, WarcPlace,
        WorkerRow,
    };
    use crate::Timestamp;

    fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(row: &T, expect: Expect) {
        let json = serde_json::to_string(row).unwrap();
        assert_eq!(&serde_json::from_str::<T>(&json).unwrap(), row);
        expect.assert_eq(&json);
    }

    /// The columns of a table in the documentation, in their order.
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
    fn ours_every_column_is_documented_with_its_unit() {
        let check = |file: &str, columns: &'static [&'static str]| {
            assert_eq!(documented(file), columns, "{file}");
        };
        check("pages.jsonl", columns::<PageRow>());
        check("requests.jsonl", columns::<RequestRow>());
        check("excluded.jsonl", columns::<ExcludedRow>());
        check("links.jsonl", columns::<LinkRow>());
        check("walk.jsonl", columns::<WalkRow>());
        check("waiting.jsonl", columns::<WaitingRow>());
        check("recheck.jsonl", columns::<RecheckRow>());
        check("tombstones.jsonl", columns::<TombstoneRow>());
        check("workers.jsonl", columns::<WorkerRow>());
        check("state/delays.jsonl", columns::<DelayRow>());
        check("state/order.jsonl", columns::<OrderRow>());
    }

    /// The fields that a struct asks a reader for.
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
        let mut found: &'static [&'static str] = &[];
        assert!(T::deserialize(Fields(&mut found)).is_err());
        found
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
                usage: Some(PageUsage {
                    train_ai: Some("refused".into()),
                    said: vec![UsageStatement {
                        vocabulary: "content-usage".into(),
                        channel: "robots".into(),
                        line: Some(4),
                        raw: "train-ai=n".into(),
                    }],
                    ..PageUsage::default()
                }),
                warc: Some(WarcPlace {
                    file: "crawl-e-20261120235959-00000.warc.gz".into(),
                    offset: 512,
                }),
                record_id: Some("67e55044-10b1-426f-9247-bb680e5fe0c8".into()),
                withheld: None,
                unwanted: None,
                echoes_secret: false,
                round: 1,
                change: Some("new".into()),
                differs: None,
                error: None,
                sample: Some(SampleRow {
                    how: "drawn".into(),
                    stratum: Some("e.example".into()),
                    drawn: Some(50),
                    of: Some(200),
                    probability: Some(0.25),
                    unknown: None,
                }),
                label: Some("press".into()),
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
                worker: None,
            },
            expect![[
                r#"{"url":"http://e.example/robots.txt","host":"e.example","address":"192.0.2.1","purpose":"robots","start":1795219199123,"end":1795219199223,"status":null,"failure":"timeout","gap_asked":1000,"why":"delay","wait_asked":null,"after":null}"#
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

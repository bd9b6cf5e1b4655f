//! Defines the tables `requests`, `excluded`, `links`, `walk`, `hosts` and `robots`.

use crawl_archive::Timestamp;
use crawl_archive::rows::{ExcludedRow, LinkRow, RandomWalkStep, RequestRow};
use crawl_records::{HostCoverage, HostReport, LastRobotsResponse};

use crate::table_definition::{ColumnKind, ColumnValue, RowOrder, TableDefinition, column};
use crate::url_parts::host_key;

use ColumnKind::{Integer, Long, Short, Text, Time};

pub(crate) const REQUESTS: TableDefinition<RequestRow> = TableDefinition {
    name: "requests",
    row: "a finished request, answered or failed, including robots.txt and redirects: a line of \
          `requests.jsonl`",
    order: RowOrder::AsRead,
    parts: &[(
        "",
        &[
            column("url", Text, "URL", "the requested URL", "`url`", |row| {
                ColumnValue::from(&row.url)
            }),
            column(
                "host",
                Text,
                "host key",
                "the host that the delay applies to",
                "`host`",
                |row| ColumnValue::from(&row.host),
            ),
            column(
                "address",
                Text,
                "IP address",
                "the address of the server, without port",
                "`address`",
                |row| row.address.as_ref().into(),
            ),
            column(
                "purpose",
                Text,
                "word",
                "`page`, `robots`, `hop`, `sitemap`, `resource`, `action`, `tdmrep`, \
                 `login`",
                "`purpose`",
                |row| ColumnValue::from(&row.purpose),
            ),
            column(
                "start_time",
                Time,
                "UTC, ms",
                "when the request was sent",
                "`start`",
                |row| row.start.into(),
            ),
            column(
                "end_time",
                Time,
                "UTC, ms",
                "when the exchange ended",
                "`end`",
                |row| row.end.into(),
            ),
            column(
                "ms",
                Long,
                "milliseconds",
                "the duration of the exchange",
                "`start`, `end`",
                |row| row.end.saturating_sub(row.start).into(),
            ),
            column(
                "status",
                Short,
                "number",
                "the status code",
                "`status`",
                |row| row.status.into(),
            ),
            column(
                "failure",
                Text,
                "word",
                "the name of the failure, if there was no answer",
                "`failure`",
                |row| row.failure.as_ref().into(),
            ),
            column(
                "gap_asked",
                Long,
                "milliseconds",
                "the minimum gap required before this request",
                "`gap_asked`",
                |row| row.gap_asked.into(),
            ),
            column(
                "why",
                Text,
                "word",
                "the source of that requirement: `delay`, `crawl-delay`, `retry-after` ..",
                "`why`",
                |row| ColumnValue::from(&row.why),
            ),
            column(
                "wait_asked",
                Long,
                "milliseconds",
                "the wait that this answer requests, counted from `end_time`",
                "`wait_asked`",
                |row| row.wait_asked.into(),
            ),
        ],
    )],
};

pub(crate) const EXCLUDED: TableDefinition<ExcludedRow> = TableDefinition {
    name: "excluded",
    row: "a known URL that was not fetched: a line of `excluded.jsonl`",
    order: RowOrder::AsRead,
    parts: &[(
        "",
        &[
            column(
                "url",
                Text,
                "URL",
                "the URL, in canonical form",
                "`url`",
                |row| ColumnValue::from(&row.url),
            ),
            column(
                "host",
                Text,
                "host key",
                "the host of the URL",
                "`url`",
                |row| host_key(&row.url).into(),
            ),
            column(
                "reason",
                Text,
                "word",
                "`robots`, `meta`, `header`, `nofollow`, `scope`, `depth`, `budget`, `trap` ..",
                "`reason`",
                |row| ColumnValue::from(&row.reason),
            ),
            column(
                "rule",
                Text,
                "text",
                "the rule that excluded the URL, as written",
                "`rule`",
                |row| row.rule.as_ref().into(),
            ),
            column(
                "line",
                Integer,
                "number",
                "the line of that rule in its file, counted from 1",
                "`line`",
                |row| row.line.into(),
            ),
            column(
                "found_on",
                Text,
                "URL",
                "the page on which the URL was found; null for a seed",
                "`found_on`",
                |row| row.found_on.as_ref().into(),
            ),
            column(
                "seed_label",
                Text,
                "name",
                "the label of the seed whose area contains the URL; null if that seed has no label",
                "`label`",
                |row| row.label.as_ref().into(),
            ),
            column(
                "round",
                Integer,
                "number",
                "the round in which the URL was excluded, counted from 1",
                "`round`",
                |row| row.round.into(),
            ),
            column(
                "time",
                Time,
                "UTC, ms",
                "fetch time of the last page settled before this URL was excluded; for rows \
                 written at the end of a run, the start of the round",
                "`at`",
                |row| row.at.map(Timestamp::as_millis).into(),
            ),
        ],
    )],
};

pub(crate) const LINKS: TableDefinition<LinkRow> = TableDefinition {
    name: "links",
    row: "a link on a page: a line of `links.jsonl`. The table exists only for crawls with that \
          file (`--links on`)",
    order: RowOrder::AsRead,
    parts: &[(
        "",
        &[
            column(
                "from_url",
                Text,
                "URL",
                "the page that contains the link",
                "`from`",
                |row| ColumnValue::from(&row.from),
            ),
            column(
                "to_url",
                Text,
                "URL",
                "the target of the link",
                "`to`",
                |row| ColumnValue::from(&row.to),
            ),
            column(
                "from_host",
                Text,
                "host key",
                "the host of that page",
                "`from`",
                |row| host_key(&row.from).into(),
            ),
            column(
                "to_host",
                Text,
                "host key",
                "the host of the target",
                "`to`",
                |row| host_key(&row.to).into(),
            ),
            column(
                "rel",
                Text,
                "words",
                "the `rel` of the link",
                "`rel`",
                |row| row.rel.as_ref().into(),
            ),
            column(
                "text",
                Text,
                "text",
                "the text of the link, up to 1,024 bytes",
                "`text`",
                |row| row.text.as_ref().into(),
            ),
            column(
                "round",
                Integer,
                "number",
                "the round in which the page was fetched, counted from 1",
                "`round`",
                |row| row.round.into(),
            ),
            column(
                "time",
                Time,
                "UTC, ms",
                "when the page was fetched",
                "`at`",
                |row| row.at.map(Timestamp::as_millis).into(),
            ),
        ],
    )],
};

pub(crate) const WALK: TableDefinition<RandomWalkStep> = TableDefinition {
    name: "walk",
    row: "a step of a random walk: a line of `walk.jsonl`. The table exists only for crawls with \
          that file (`--walk`)",
    order: RowOrder::AsRead,
    parts: &[(
        "",
        &[
            column(
                "walker",
                Integer,
                "number",
                "the number of the walker, counted from 1",
                "`walker`",
                |row| row.walker.into(),
            ),
            column(
                "step",
                Long,
                "number",
                "the number of the walker's step, counted from 1; a redirect belongs to the step \
                 that led to it",
                "`step`",
                |row| row.step.into(),
            ),
            column(
                "how",
                Text,
                "word",
                "`start`, `link`, `redirect` or `restart`",
                "`how`",
                |row| ColumnValue::from(&row.how),
            ),
            column(
                "why",
                Text,
                "word",
                "the reason for a restart: `chance`, `no links`, `no page`, `excluded`, `redirects`",
                "`why`",
                |row| row.why.as_ref().into(),
            ),
            column(
                "url",
                Text,
                "URL",
                "the URL that the step led to",
                "`url`",
                |row| ColumnValue::from(&row.url),
            ),
            column(
                "from_url",
                Text,
                "URL",
                "the page that the walker came from",
                "`from`",
                |row| row.from.as_ref().into(),
            ),
            column(
                "links",
                Long,
                "links",
                "the number of links on that page that the step was chosen from",
                "`links`",
                |row| row.links.into(),
            ),
        ],
    )],
};

pub(crate) const HOSTS: TableDefinition<HostReport> = TableDefinition {
    name: "hosts",
    row: "a host that appears in another table, as summarized in `hosts` of `crawl report --json`",
    order: RowOrder::AsRead,
    parts: &[(
        "",
        &[
            column(
                "host",
                Text,
                "host key",
                "the host that the delay applies to",
                "`host`",
                |row| ColumnValue::from(&row.host),
            ),
            column(
                "pages",
                Long,
                "URLs",
                "the number of URLs with a row in `pages`, each counted by its last row",
                "`pages`",
                |row| row.pages.into(),
            ),
            column(
                "failed",
                Long,
                "URLs",
                "the number of those URLs without an answer, with a status of 400 or above, or with \
                 an incomplete body",
                "`failed`",
                |row| row.failed.into(),
            ),
            column(
                "bytes",
                Long,
                "bytes",
                "the total size of their bodies, as received",
                "`bytes`",
                |row| row.bytes.into(),
            ),
            column(
                "excluded",
                Long,
                "URLs",
                "the number of URLs whose row in `excluded.jsonl` is still in force",
                "`excluded`",
                |row| row.excluded.into(),
            ),
            column(
                "waiting",
                Long,
                "URLs",
                "the number of URLs left for the next run",
                "`waiting`",
                |row| row.waiting.into(),
            ),
            column(
                "coverage",
                Text,
                "word",
                "how completely the host was crawled: `whole`, `partial`, `blocked`, `empty`; null \
                 for a host that was never due to be fetched",
                "`coverage`",
                |row| row.coverage.map(HostCoverage::name).into(),
            ),
            column(
                "missing",
                Long,
                "URLs",
                "the number of missing URLs, for any reason; null without a verdict, as is \
                 `missing_by`",
                "`missing`",
                |row| {
                    let missing = row.missing.iter().map(|shortfall| shortfall.urls);
                    row.coverage.map(|_| missing.sum::<u64>()).into()
                },
            ),
            column(
                "missing_by",
                Text,
                "JSON",
                "the missing URLs by `reason`, with the `evidence`, as in `hosts.jsonl`; `[]` if \
                 none are missing",
                "`missing`",
                |row| {
                    let missing = row.coverage.map(|_| serde_json::to_string(&row.missing));
                    missing.and_then(Result::ok).into()
                },
            ),
            column(
                "requests",
                Long,
                "rows",
                "the number of rows in `requests`",
                "`requests`",
                |row| row.requests.into(),
            ),
            column(
                "robots_requests",
                Long,
                "rows",
                "the number of those rows for robots.txt, including redirects on the way to it",
                "`robots_requests`",
                |row| row.robots_requests.into(),
            ),
            column(
                "busy",
                Long,
                "milliseconds",
                "the total of all response times",
                "`busy_ms`",
                |row| row.busy_ms.into(),
            ),
            column(
                "gaps",
                Long,
                "gaps",
                "the number of gaps between requests",
                "`gaps.count`",
                |row| row.gaps.count.into(),
            ),
            column(
                "gap_least_seen",
                Long,
                "milliseconds",
                "the shortest gap",
                "`gaps.least_seen_ms`",
                |row| row.gaps.least_seen_ms.into(),
            ),
            column(
                "gap_asked_then",
                Long,
                "milliseconds",
                "the minimum that was required for the shortest gap",
                "`gaps.asked_then_ms`",
                |row| row.gaps.asked_then_ms.into(),
            ),
            column(
                "gap_most_asked",
                Long,
                "milliseconds",
                "the longest required gap",
                "`gaps.most_asked_ms`",
                |row| row.gaps.most_asked_ms.into(),
            ),
            column(
                "gap_most_asked_by",
                Text,
                "word",
                "the source of the longest required gap: `delay`, `crawl-delay` ..",
                "`gaps.most_asked_by`",
                |row| row.gaps.most_asked_by.as_ref().into(),
            ),
            column(
                "gaps_short",
                Long,
                "gaps",
                "the number of gaps shorter than required",
                "`gaps.short`",
                |row| row.gaps.short.into(),
            ),
            column(
                "waits",
                Long,
                "answers",
                "the number of answers that requested a wait",
                "`waits.count`",
                |row| row.waits.count.into(),
            ),
            column(
                "wait_longest_asked",
                Long,
                "milliseconds",
                "the longest requested wait",
                "`waits.longest_asked_ms`",
                |row| row.waits.longest_asked_ms.into(),
            ),
            column(
                "waits_asked",
                Long,
                "milliseconds",
                "the total of the requested waits",
                "`waits.asked_ms`",
                |row| row.waits.asked_ms.into(),
            ),
            column(
                "waits_given",
                Long,
                "milliseconds",
                "the total time from each answer that requested a wait to the next request, if \
                 there was one",
                "`waits.given_ms`",
                |row| row.waits.given_ms.into(),
            ),
            column(
                "waits_short",
                Long,
                "waits",
                "the number of waits shorter than requested",
                "`waits.short`",
                |row| row.waits.short.into(),
            ),
            column(
                "seed_labels",
                Text,
                "JSON",
                "the labels in the host's rows of `pages` and `excluded`, at most 100; `[]` if \
                 there are none",
                "`labels`",
                |row| serde_json::to_string(&row.labels).ok().into(),
            ),
        ],
    )],
};

/// The last outcome of requests for an origin's robots.txt.
pub(crate) struct OriginRobotsResponse {
    pub(crate) origin: String,
    pub(crate) host: String,
    pub(crate) report: LastRobotsResponse,
}

pub(crate) const ROBOTS: TableDefinition<OriginRobotsResponse> = TableDefinition {
    name: "robots",
    row: "an origin whose robots.txt was requested, with the last outcome: `hosts[].robots` of \
          `crawl report --json`",
    order: RowOrder::AsRead,
    parts: &[(
        "",
        &[
            column(
                "origin",
                Text,
                "origin",
                "scheme, host and port that the robots.txt applies to",
                "its key",
                |row| ColumnValue::from(&row.origin),
            ),
            column(
                "host",
                Text,
                "host key",
                "the host of the origin",
                "`host`",
                |row| ColumnValue::from(&row.host),
            ),
            column(
                "state",
                Text,
                "word",
                "what robots.txt means after all redirects: `rules` (read, or confirmed by 304), \
                 `none` (4xx except 429, or a redirect without a usable target), `redirect` (the \
                 target was not requested yet), `unreachable` (5xx, 429, no usable answer)",
                "`state`",
                |row| ColumnValue::from(&row.report.state),
            ),
            column(
                "status",
                Short,
                "number",
                "the status code",
                "`status`",
                |row| row.report.status.into(),
            ),
            column(
                "failure",
                Text,
                "word",
                "the name of the failure if there was no answer, or why an answer can't be used, \
                 such as `encoding`",
                "`failure`",
                |row| row.report.failure.as_ref().into(),
            ),
            column(
                "end_time",
                Time,
                "UTC, ms",
                "when that exchange ended",
                "`at_ms`",
                |row| row.report.at_ms.into(),
            ),
        ],
    )],
};

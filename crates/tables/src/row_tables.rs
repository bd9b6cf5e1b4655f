//! Defines the tables `requests`, `excluded`, `links`, `walk`, `hosts` and `robots`.

use crawl_archive::Timestamp;
use crawl_archive::rows::{ExcludedRow, LinkRow, RequestRow, WalkRow};
use crawl_records::{Coverage, HostReport, RobotsReport};

use crate::table::{Kind, Order, Table, Value, column};
use crate::url_parts::host_key;

use Kind::{Integer, Long, Short, Text, Time};

pub(crate) const REQUESTS: Table<RequestRow> = Table {
    name: "requests",
    row: "a request that ended, robots.txt and redirects included: a line of `requests.jsonl`",
    order: Order::AsRead,
    parts: &[(
        "",
        &[
            column("url", Text, "URL", "what was asked for", "`url`", |row| {
                Value::from(&row.url)
            }),
            column(
                "host",
                Text,
                "host key",
                "what the gap is kept for",
                "`host`",
                |row| Value::from(&row.host),
            ),
            column(
                "address",
                Text,
                "IP address",
                "who was asked, without port",
                "`address`",
                |row| row.address.as_ref().into(),
            ),
            column(
                "purpose",
                Text,
                "word",
                "`page`, `robots`, `hop`, `sitemap`, `resource`, `action`, `tdmrep`",
                "`purpose`",
                |row| Value::from(&row.purpose),
            ),
            column(
                "start_time",
                Time,
                "UTC, ms",
                "when it was sent",
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
                "how long the exchange took",
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
                "the name of the failure, where there was no answer",
                "`failure`",
                |row| row.failure.as_ref().into(),
            ),
            column(
                "gap_asked",
                Long,
                "milliseconds",
                "the gap that had to be kept before it",
                "`gap_asked`",
                |row| row.gap_asked.into(),
            ),
            column(
                "why",
                Text,
                "word",
                "what asked for that gap: `delay`, `crawl-delay`, `retry-after` ..",
                "`why`",
                |row| Value::from(&row.why),
            ),
            column(
                "wait_asked",
                Long,
                "milliseconds",
                "the wait that this answer asks for, counted from `end_time`",
                "`wait_asked`",
                |row| row.wait_asked.into(),
            ),
        ],
    )],
};

pub(crate) const EXCLUDED: Table<ExcludedRow> = Table {
    name: "excluded",
    row: "a URL that is known and is not asked for: a line of `excluded.jsonl`",
    order: Order::AsRead,
    parts: &[(
        "",
        &[
            column("url", Text, "URL", "in canonical form", "`url`", |row| {
                Value::from(&row.url)
            }),
            column(
                "host",
                Text,
                "host key",
                "the host of that URL",
                "`url`",
                |row| host_key(&row.url).into(),
            ),
            column(
                "reason",
                Text,
                "word",
                "`robots`, `meta`, `header`, `nofollow`, `scope`, `depth`, `budget`, `trap` ..",
                "`reason`",
                |row| Value::from(&row.reason),
            ),
            column(
                "rule",
                Text,
                "text",
                "the rule that decided, as written",
                "`rule`",
                |row| row.rule.as_ref().into(),
            ),
            column(
                "line",
                Integer,
                "number",
                "the line of that rule in its file, from 1",
                "`line`",
                |row| row.line.into(),
            ),
            column(
                "found_on",
                Text,
                "URL",
                "the page that it was found on; null for a seed",
                "`found_on`",
                |row| row.found_on.as_ref().into(),
            ),
            column(
                "seed_label",
                Text,
                "name",
                "the label of the seed in whose area the URL lies; null where that seed has none",
                "`label`",
                |row| row.label.as_ref().into(),
            ),
            column(
                "round",
                Integer,
                "number",
                "the round in which it was excluded, from 1",
                "`round`",
                |row| row.round.into(),
            ),
            column(
                "time",
                Time,
                "UTC, ms",
                "when the last page before it was fetched; for rows written at the end of a run, when the round began",
                "`at`",
                |row| row.at.map(Timestamp::as_millis).into(),
            ),
        ],
    )],
};

pub(crate) const LINKS: Table<LinkRow> = Table {
    name: "links",
    row: "a link of a page: a line of `links.jsonl`. Without that file (`--links on`) there is no such table",
    order: Order::AsRead,
    parts: &[(
        "",
        &[
            column("from_url", Text, "URL", "the page", "`from`", |row| {
                Value::from(&row.from)
            }),
            column("to_url", Text, "URL", "what is linked to", "`to`", |row| {
                Value::from(&row.to)
            }),
            column(
                "from_host",
                Text,
                "host key",
                "the host of the page",
                "`from`",
                |row| host_key(&row.from).into(),
            ),
            column(
                "to_host",
                Text,
                "host key",
                "the host of what is linked to",
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
                "its text, up to 1,024 bytes of it",
                "`text`",
                |row| row.text.as_ref().into(),
            ),
            column(
                "round",
                Integer,
                "number",
                "the round in which the page was read, from 1",
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

pub(crate) const WALK: Table<WalkRow> = Table {
    name: "walk",
    row: "a step of a random walk: a line of `walk.jsonl`. Without that file (`--walk`) there is no such table",
    order: Order::AsRead,
    parts: &[(
        "",
        &[
            column(
                "walker",
                Integer,
                "number",
                "which walker, from 1",
                "`walker`",
                |row| row.walker.into(),
            ),
            column(
                "step",
                Long,
                "number",
                "which of its steps, from 1; a redirect belongs to the step that led to it",
                "`step`",
                |row| row.step.into(),
            ),
            column(
                "how",
                Text,
                "word",
                "`start`, `link`, `redirect` or `restart`",
                "`how`",
                |row| Value::from(&row.how),
            ),
            column(
                "why",
                Text,
                "word",
                "the reason of a restart: `chance`, `no links`, `no page`, `excluded`, `redirects`",
                "`why`",
                |row| row.why.as_ref().into(),
            ),
            column("url", Text, "URL", "what it led to", "`url`", |row| {
                Value::from(&row.url)
            }),
            column(
                "from_url",
                Text,
                "URL",
                "the page that the walker stood on before",
                "`from`",
                |row| row.from.as_ref().into(),
            ),
            column(
                "links",
                Long,
                "links",
                "links of that page among which the step was chosen",
                "`links`",
                |row| row.links.into(),
            ),
        ],
    )],
};

pub(crate) const HOSTS: Table<HostReport> = Table {
    name: "hosts",
    row: "a host that a row of the others names, as `crawl report --json` sums it up in `hosts`",
    order: Order::AsRead,
    parts: &[(
        "",
        &[
            column(
                "host",
                Text,
                "host key",
                "what a gap is kept for",
                "`host`",
                |row| Value::from(&row.host),
            ),
            column(
                "pages",
                Long,
                "URLs",
                "URLs with a row in `pages`, by the last row of each",
                "`pages`",
                |row| row.pages.into(),
            ),
            column(
                "failed",
                Long,
                "URLs",
                "URLs among them without an answer, with a status of 400 and above, or without a complete body",
                "`failed`",
                |row| row.failed.into(),
            ),
            column(
                "bytes",
                Long,
                "bytes",
                "bytes of their bodies, as received",
                "`bytes`",
                |row| row.bytes.into(),
            ),
            column(
                "excluded",
                Long,
                "rows",
                "rows of `excluded`",
                "`excluded`",
                |row| row.excluded.into(),
            ),
            column(
                "waiting",
                Long,
                "URLs",
                "what waits for the next run",
                "`waiting`",
                |row| row.waiting.into(),
            ),
            column(
                "coverage",
                Text,
                "word",
                "whether all was had that was to be had: `whole`, `partial`, `blocked`, `empty`; null for a host that was never to be asked",
                "`coverage`",
                |row| row.coverage.map(Coverage::name).into(),
            ),
            column(
                "missing",
                Long,
                "URLs",
                "what is missing, whatever the reason; null without a verdict, as in the next column",
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
                "the same by `reason`, with the `evidence`, as in `hosts.jsonl`; `[]` where nothing is",
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
                "rows of `requests`",
                "`requests`",
                |row| row.requests.into(),
            ),
            column(
                "robots_requests",
                Long,
                "rows",
                "rows among them for robots.txt, hops on the way to one included",
                "`robots_requests`",
                |row| row.robots_requests.into(),
            ),
            column(
                "busy",
                Long,
                "milliseconds",
                "the sum of the response times",
                "`busy_ms`",
                |row| row.busy_ms.into(),
            ),
            column(
                "gaps",
                Long,
                "gaps",
                "gaps between requests",
                "`gaps.count`",
                |row| row.gaps.count.into(),
            ),
            column(
                "gap_least_seen",
                Long,
                "milliseconds",
                "the shortest of them",
                "`gaps.least_seen_ms`",
                |row| row.gaps.least_seen_ms.into(),
            ),
            column(
                "gap_asked_then",
                Long,
                "milliseconds",
                "the gap that was asked for before that request",
                "`gaps.asked_then_ms`",
                |row| row.gaps.asked_then_ms.into(),
            ),
            column(
                "gap_most_asked",
                Long,
                "milliseconds",
                "the longest that was asked for",
                "`gaps.most_asked_ms`",
                |row| row.gaps.most_asked_ms.into(),
            ),
            column(
                "gap_most_asked_by",
                Text,
                "word",
                "what asked for that one: `delay`, `crawl-delay` ..",
                "`gaps.most_asked_by`",
                |row| row.gaps.most_asked_by.as_ref().into(),
            ),
            column(
                "gaps_short",
                Long,
                "gaps",
                "gaps shorter than what was asked for",
                "`gaps.short`",
                |row| row.gaps.short.into(),
            ),
            column(
                "waits",
                Long,
                "answers",
                "answers that asked for a wait",
                "`waits.count`",
                |row| row.waits.count.into(),
            ),
            column(
                "wait_longest_asked",
                Long,
                "milliseconds",
                "the longest of those waits",
                "`waits.longest_asked_ms`",
                |row| row.waits.longest_asked_ms.into(),
            ),
            column(
                "waits_asked",
                Long,
                "milliseconds",
                "their sum",
                "`waits.asked_ms`",
                |row| row.waits.asked_ms.into(),
            ),
            column(
                "waits_given",
                Long,
                "milliseconds",
                "the sum of the waits after those answers that were followed by a request",
                "`waits.given_ms`",
                |row| row.waits.given_ms.into(),
            ),
            column(
                "waits_short",
                Long,
                "waits",
                "waits that were cut short",
                "`waits.short`",
                |row| row.waits.short.into(),
            ),
            column(
                "seed_labels",
                Text,
                "JSON",
                "the labels of its rows of `pages` and `excluded`, at most 100; `[]` where there are none",
                "`labels`",
                |row| serde_json::to_string(&row.labels).ok().into(),
            ),
        ],
    )],
};

/// The last answer to a request for an origin's robots.txt.
pub(crate) struct OriginRobots {
    pub(crate) origin: String,
    pub(crate) host: String,
    pub(crate) report: RobotsReport,
}

pub(crate) const ROBOTS: Table<OriginRobots> = Table {
    name: "robots",
    row: "an origin whose robots.txt was asked for, with the last answer: `hosts[].robots` of `crawl report --json`",
    order: Order::AsRead,
    parts: &[(
        "",
        &[
            column(
                "origin",
                Text,
                "origin",
                "scheme, host and port: what the robots.txt speaks for",
                "its key",
                |row| Value::from(&row.origin),
            ),
            column(
                "host",
                Text,
                "host key",
                "the host of the origin",
                "`host`",
                |row| Value::from(&row.host),
            ),
            column(
                "state",
                Text,
                "word",
                "`rules` (2xx), `none` (4xx but 429), `redirect` (3xx), `unreachable` (5xx, 429, no answer)",
                "`state`",
                |row| Value::from(&row.report.state),
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
                "the name of the failure, where there was no answer",
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

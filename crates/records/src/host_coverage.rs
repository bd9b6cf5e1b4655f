//! Judges the coverage of a host: whether it was crawled completely or partially, or refused the
//! crawler.

use std::collections::BTreeMap;

use crawl_archive::rows::{
    ExcludedRow, PageRow, PendingOriginRow, TOO_MANY_REDIRECTS, is_obstacle,
};
use serde::{Deserialize, Serialize};

/// A host counts as blocked if it refused at least this many consecutive URLs at the end of the
/// crawl, even if it served more pages before.
const MIN_REFUSED_IN_A_ROW: u64 = 20;

/// Statuses with which a host refuses this client, although it may serve others: RFC 9110 sections
/// 15.5.2, 15.5.3, 15.5.4 and 15.5.8, RFC 6585 section 4, RFC 7725.
const REFUSED: [u16; 6] = [401, 402, 403, 407, 429, 451];

/// Statuses for pages that don't exist, which count as valid responses.
const NO_SUCH_PAGE: [u16; 2] = [404, 410];

/// Error names of documents and redirect chains that were cut off at a limit of the crawl.
const CUT: [&str; 5] = [
    "body_truncated",
    "decoded_too_large",
    "decompression_bomb",
    "sitemap_limit",
    TOO_MANY_REDIRECTS,
];

/// Prefix of `detail` in a row of `waiting.jsonl`, if the request for the origin's robots.txt got
/// no response.
pub(crate) const ROBOTS_FAILED: &str = "robots.txt: ";

/// Prefix of `rule` in a row of `excluded.jsonl`, if the host refused us the robots.txt
/// (`--robots-forbidden deny`).
const ROBOTS_FORBIDDEN: &str = "robots.txt answered ";
/// The evidence shown for [`CoverageGapReason::Unfinished`].
pub(crate) const UNFINISHED_RUN: &str = "no end of the last run is on record";

/// The coverage verdict of a host. URLs outside the user's scope and URLs that the site's own rules
/// exclude do not count as missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostCoverage {
    /// Nothing is missing.
    Whole,
    /// Something is missing, for the reasons listed with the verdict.
    Partial,
    /// The host refused more requests than it served, or refused all requests from some point on.
    Blocked,
    /// The host allowed no page, or none of its pages could be fetched.
    Empty,
}

impl HostCoverage {
    /// Returns the token used in rows and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            HostCoverage::Whole => "whole",
            HostCoverage::Partial => "partial",
            HostCoverage::Blocked => "blocked",
            HostCoverage::Empty => "empty",
        }
    }

    /// Returns the word used in text output.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            HostCoverage::Whole => "complete",
            other => other.name(),
        }
    }
}

/// A reason why a crawl of a host lacks URLs, and so doesn't cover the whole host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoverageGapReason {
    /// Refused by the host: a login, a challenge, a block page, 401, 403, 429 ..
    Refused,
    /// The URLs wait for a robots.txt that is unavailable.
    Robots,
    /// There was no response, an unreadable response, or a server error.
    Errors,
    /// A limit of the crawl truncated a document, a sitemap or a chain of redirects.
    Limits,
    /// Not reached before a budget was exhausted, or deeper than the maximum depth.
    Budget,
    /// Deferred as part of a trap.
    Traps,
    /// The run ended before the URL was reached, because it was interrupted, or the host was paused
    /// or parked.
    Waiting,
    /// The last run has not ended, or was killed.
    Unfinished,
    /// The server has no such page. Used only if the host has no page at all, because otherwise 404
    /// is a valid response.
    NotFound,
}

impl CoverageGapReason {
    /// Returns the token used in rows and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CoverageGapReason::Refused => "refused",
            CoverageGapReason::Robots => "robots",
            CoverageGapReason::Errors => "errors",
            CoverageGapReason::Limits => "limits",
            CoverageGapReason::Budget => "budget",
            CoverageGapReason::Traps => "traps",
            CoverageGapReason::Waiting => "waiting",
            CoverageGapReason::Unfinished => "unfinished",
            CoverageGapReason::NotFound => "not_found",
        }
    }
}

/// The URLs of a host that are missing for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoverageGapCounts {
    /// The reason.
    pub reason: CoverageGapReason,
    /// Number of known URLs that are missing.
    pub urls: u64,
    /// Number of missing URLs by evidence: a status, an error, a budget, a kind of trap.
    pub evidence: BTreeMap<String, u64>,
}

/// Counts of the outcomes of a host's URLs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostOutcomeCounts {
    /// Whether the host responded to any request.
    pub is_asked: bool,
    /// Number of URLs with a response that is either a page or a not-found status. Sitemaps don't
    /// count.
    pub served: u64,
    /// Number of URLs that returned a page, a part of a page, or a redirect. Sitemaps don't count.
    pub fetched: u64,
    /// Number of URLs that don't exist on the server, by status. Sitemaps don't count.
    pub not_found: BTreeMap<String, u64>,
    /// Number of URLs excluded by robots.txt or by a usage preference of the site.
    pub disallowed: u64,
    /// Number of rows with a refusal since the last row with a served page.
    pub refused_in_a_row: u64,
    /// Number of missing URLs, by reason and evidence.
    pub missing: BTreeMap<(CoverageGapReason, String), u64>,
    /// Whether URLs are waiting because the host could not be reached.
    pub is_unreachable: bool,
}

/// Returns the verdict on a host, with its missing URLs. `None` if the host never responded and
/// none of its URLs is missing.
#[must_use]
pub fn coverage(outcomes: &HostOutcomeCounts) -> Option<(HostCoverage, Vec<CoverageGapCounts>)> {
    if !outcomes.is_asked && outcomes.missing.is_empty() {
        return None;
    }
    let mut shortfalls: Vec<CoverageGapCounts> = Vec::new();
    for ((reason, evidence), urls) in &outcomes.missing {
        let evidence = (evidence.clone(), *urls);
        match shortfalls.last_mut().filter(|last| last.reason == *reason) {
            Some(last) => {
                last.urls += urls;
                last.evidence.extend([evidence]);
            }
            None => shortfalls.push(CoverageGapCounts {
                reason: *reason,
                urls: *urls,
                evidence: BTreeMap::from([evidence]),
            }),
        }
    }
    let is_blocked = outcomes.turned_away() > outcomes.served
        || outcomes.refused_in_a_row >= MIN_REFUSED_IN_A_ROW;
    let is_empty = !is_blocked && outcomes.is_empty();
    if is_empty && !outcomes.not_found.is_empty() {
        shortfalls.push(CoverageGapCounts {
            reason: CoverageGapReason::NotFound,
            urls: outcomes.not_found.values().sum(),
            evidence: outcomes.not_found.clone(),
        });
    }
    let verdict = match shortfalls.is_empty() {
        _ if is_blocked => HostCoverage::Blocked,
        _ if is_empty => HostCoverage::Empty,
        true => HostCoverage::Whole,
        false => HostCoverage::Partial,
    };
    Some((verdict, shortfalls))
}

/// The meaning of a row of `pages.jsonl` for the coverage of its host.
enum UrlCoverage<'r> {
    Served,
    NotFound(&'r str),
    Refused(&'r str),
    Missing(CoverageGapReason, &'r str),
}

impl HostOutcomeCounts {
    /// Adds the last row of a URL.
    pub(crate) fn page(&mut self, row: &PageRow, is_sitemap: bool) {
        self.is_asked |= row.status.is_some();
        let status = row.status.map(|status| status.to_string());
        match url_coverage(row, status.as_deref().unwrap_or_default()) {
            UrlCoverage::Served => {
                self.refused_in_a_row = 0;
                self.served += u64::from(!is_sitemap);
                self.fetched += u64::from(!is_sitemap);
            }
            UrlCoverage::NotFound(_) if is_sitemap => self.refused_in_a_row = 0,
            UrlCoverage::NotFound(status) => {
                self.refused_in_a_row = 0;
                self.served += 1;
                *self.not_found.entry(status.to_owned()).or_default() += 1;
            }
            UrlCoverage::Refused(word) => {
                // A login page is not a sign that the host blocks the crawl, because many links may
                // lead to the same login form.
                self.refused_in_a_row += u64::from(word != "login_page");
                self.note(CoverageGapReason::Refused, word, 1);
            }
            UrlCoverage::Missing(reason, word) => {
                let is_in_part = matches!(row.status, Some(200..=299)) && !is_sitemap;
                self.fetched += u64::from(is_in_part);
                self.note(reason, word, 1);
            }
        }
    }

    /// Adds a row of `excluded.jsonl`.
    pub(crate) fn excluded(&mut self, row: &ExcludedRow) {
        let rule = row.rule.as_deref().unwrap_or_default();
        let word = rule.split(' ').next().unwrap_or_default();
        match (row.reason.as_str(), rule.strip_prefix(ROBOTS_FORBIDDEN)) {
            ("robots", Some(status)) if row.line.is_none() => {
                self.note(
                    CoverageGapReason::Refused,
                    &format!("robots.txt {status}"),
                    1,
                );
            }
            ("depth", _) if word == "depth" => {
                self.note(CoverageGapReason::Budget, "depth of a seed", 1);
            }
            ("depth", _) => self.note(CoverageGapReason::Budget, "max-depth", 1),
            ("trap", _) => self.note(CoverageGapReason::Traps, word, 1),
            ("robots" | "usage", _) => self.disallowed += 1,
            // `not_archived` occurs only in a replay, for a site whose rules are unknown.
            ("not_archived", _) => self.note(CoverageGapReason::Errors, "not_archived", 1),
            // Skip URLs that a budget left unfetched, because `waiting.jsonl` counts them per
            // origin.
            _ => {}
        }
    }

    /// Adds a row of `waiting.jsonl`.
    pub(crate) fn waiting(&mut self, row: &PendingOriginRow) {
        let reason = match row.reason.as_str() {
            "budget" => CoverageGapReason::Budget,
            "robots" => CoverageGapReason::Robots,
            _ => CoverageGapReason::Waiting,
        };
        let evidence = row.detail.as_deref().unwrap_or(&row.reason);
        self.is_unreachable |= row.reason == "unreachable";
        self.note(reason, evidence, row.urls);
    }

    /// Returns how many URLs the host refused, either with its responses or with its robots.txt.
    fn turned_away(&self) -> u64 {
        let is_refusal = |reason: CoverageGapReason, evidence: &str| match reason {
            CoverageGapReason::Refused => true,
            // An unreachable robots.txt, for example because no server listens on the port, is not
            // a refusal if the host serves pages of another origin.
            CoverageGapReason::Robots => self.served == 0 || !evidence.starts_with(ROBOTS_FAILED),
            _ => false,
        };
        let refusals = self.missing.iter();
        let refusals = refusals.filter(|((reason, evidence), _)| is_refusal(*reason, evidence));
        refusals.map(|(_, urls)| urls).sum()
    }

    /// Returns whether the host allowed no page, or none of its pages could be fetched. If a
    /// budget, a limit or the end of the run stopped the crawl, the host is partial, not empty.
    fn is_empty(&self) -> bool {
        let is_known =
            self.disallowed > 0 || !self.not_found.is_empty() || !self.missing.is_empty();
        let is_its_own_fault = |reason: CoverageGapReason| match reason {
            CoverageGapReason::Waiting => self.is_unreachable,
            reason => reason == CoverageGapReason::Errors,
        };
        let mut reasons = self.missing.keys().map(|(reason, _)| *reason);
        self.fetched == 0 && is_known && reasons.all(is_its_own_fault)
    }

    /// Records that the last run didn't end normally.
    pub(crate) fn unfinished(&mut self) {
        if self.is_asked {
            self.note(CoverageGapReason::Unfinished, UNFINISHED_RUN, 0);
        }
    }

    fn note(&mut self, reason: CoverageGapReason, evidence: &str, urls: u64) {
        *self
            .missing
            .entry((reason, evidence.to_owned()))
            .or_default() += urls;
    }
}

fn url_coverage<'r>(row: &'r PageRow, status: &'r str) -> UrlCoverage<'r> {
    // Keep only the name of an error. The text after it comes from libraries, so it would split
    // equal errors into many counts.
    let error = row.error.as_deref();
    let error = error.map(|error| error.split(':').next().unwrap_or(error));
    // Rows have no error for a redirect without a target.
    let error = error.or_else(|| row.broken_redirect());
    match (row.status, error) {
        _ if is_obstacle(error.unwrap_or_default()) => UrlCoverage::Refused(row.outcome()),
        (Some(code), _) if REFUSED.contains(&code) => UrlCoverage::Refused(status),
        (Some(code), _) if NO_SUCH_PAGE.contains(&code) => UrlCoverage::NotFound(status),
        (_, Some(error)) if CUT.contains(&error) => {
            UrlCoverage::Missing(CoverageGapReason::Limits, error)
        }
        (_, Some(error)) if row.is_failed() => {
            UrlCoverage::Missing(CoverageGapReason::Errors, error)
        }
        (None, _) => UrlCoverage::Missing(CoverageGapReason::Errors, "no answer"),
        // The server sent a 304, although the crawl has no stored page that it could confirm.
        (Some(304), _) if row.outcome() != "unmodified" => {
            UrlCoverage::Missing(CoverageGapReason::Errors, status)
        }
        (Some(200..=399), _) => UrlCoverage::Served,
        _ => UrlCoverage::Missing(CoverageGapReason::Errors, status),
    }
}

#[cfg(test)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is used"
)]
mod tests {
    use crawl_archive::rows::{ExcludedRow, PageRow, PendingOriginRow};
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::{HostOutcomeCounts, coverage};

    fn page(status: Option<u16>, error: Option<&str>) -> PageRow {
        let row = json!({"url": "http://e.example/", "status": status,
            "fetched_at": "2026-11-20T23:59:59.123Z", "ms": 12, "bytes": 1, "content_type": null,
            "digest": null, "depth": 1, "via": null, "title": null, "robots": null, "warc": null,
            "error": error});
        serde_json::from_value(row).unwrap()
    }

    fn excluded(reason: &str, rule: &str, line: Option<u32>) -> ExcludedRow {
        ExcludedRow {
            url: "http://e.example/".to_owned(),
            reason: reason.to_owned(),
            rule: Some(rule.to_owned()),
            line,
            found_as: None,
            found_on: None,
            label: None,
            round: Some(1),
            at: None,
        }
    }

    fn waiting(urls: u64, reason: &str, detail: Option<&str>) -> PendingOriginRow {
        PendingOriginRow {
            origin: Some("http://e.example".to_owned()),
            urls,
            reason: reason.to_owned(),
            detail: detail.map(str::to_owned),
            ..PendingOriginRow::default()
        }
    }

    /// Checks the verdict on a host that served `served` pages. `take` adds further outcomes before
    /// the check.
    fn check(served: usize, take: impl FnOnce(&mut HostOutcomeCounts), expect: Expect) {
        let mut outcomes = HostOutcomeCounts::default();
        for _ in 0..served {
            outcomes.page(&page(Some(200), None), false);
        }
        take(&mut outcomes);
        let text = match coverage(&outcomes) {
            None => "none".to_owned(),
            Some((coverage, missing)) => {
                let missing = missing.iter().map(|shortfall| {
                    let (reason, urls) = (shortfall.reason.name(), shortfall.urls);
                    format!("; {reason} {urls} {:?}", shortfall.evidence)
                });
                coverage.name().to_owned() + &missing.collect::<String>()
            }
        };
        expect.assert_eq(&text);
    }

    fn pages(rows: &[(Option<u16>, Option<&str>)]) -> impl FnOnce(&mut HostOutcomeCounts) {
        move |outcomes| {
            for (status, error) in rows {
                outcomes.page(&page(*status, *error), false);
            }
        }
    }

    #[test]
    fn a_host_with_all_responses_is_whole() {
        check(0, |_| {}, expect!["none"]);
        check(0, |it| it.is_asked = true, expect!["whole"]);
        let rows = [(Some(404), None), (Some(410), None), (Some(200), None)];
        check(1, pages(&rows), expect!["whole"]);
    }

    #[test]
    fn excluded_urls_are_not_missing() {
        for reason in [
            "scope", "robots", "meta", "header", "nofollow", "usage", "action",
        ] {
            check(
                1,
                |it| it.excluded(&excluded(reason, "x", Some(2))),
                expect!["whole"],
            );
        }
    }

    #[test]
    fn a_host_without_any_page_is_empty() {
        let disallowed = excluded("robots", "Disallow: /", Some(2));
        let all_disallowed = |it: &mut HostOutcomeCounts| {
            it.is_asked = true;
            it.excluded(&disallowed);
        };
        check(0, all_disallowed, expect!["empty"]);
        let rows = [(Some(404), None), (Some(410), None), (Some(404), None)];
        check(
            0,
            pages(&rows),
            expect![[r#"empty; not_found 3 {"404": 2, "410": 1}"#]],
        );
        let failed = [(Some(500), None), (None, Some("timeout: after 60 s"))];
        check(
            0,
            pages(&failed),
            expect![[r#"empty; errors 2 {"500": 1, "timeout": 1}"#]],
        );
        let unreachable = waiting(3, "unreachable", Some("connect_refused"));
        check(
            0,
            |it| it.waiting(&unreachable),
            expect![[r#"empty; waiting 3 {"connect_refused": 3}"#]],
        );
    }

    #[test]
    fn a_host_without_a_page_is_not_empty_if_the_crawl_kept_away() {
        let quiet = waiting(1, "quiet_hours", Some("it has quiet hours"));
        check(
            0,
            |it| it.waiting(&quiet),
            expect![[r#"partial; waiting 1 {"it has quiet hours": 1}"#]],
        );
    }

    #[test]
    fn a_host_without_a_page_is_not_empty_if_its_turn_never_came() {
        let budget = waiting(2, "budget", Some("max-pages"));
        check(
            0,
            |it| it.waiting(&budget),
            expect![[r#"partial; budget 2 {"max-pages": 2}"#]],
        );
        let interrupted = waiting(2, "interrupted", None);
        check(
            0,
            |it| it.waiting(&interrupted),
            expect![[r#"partial; waiting 2 {"interrupted": 2}"#]],
        );
        check(
            0,
            pages(&[(Some(301), None)]),
            expect![[r#"empty; errors 1 {"redirect_without_target": 1}"#]],
        );
        check(
            0,
            pages(&[(Some(200), Some("short_body"))]),
            expect![[r#"partial; errors 1 {"short_body": 1}"#]],
        );
        let sitemap = |it: &mut HostOutcomeCounts| it.page(&page(Some(404), None), true);
        check(0, sitemap, expect!["whole"]);
    }

    #[test]
    fn more_refusals_than_pages_mean_blocked() {
        let refused = [
            (Some(403), None),
            (Some(200), Some("login_page")),
            (Some(429), None),
        ];
        check(
            2,
            pages(&refused),
            expect![[r#"blocked; refused 3 {"403": 1, "429": 1, "login_page": 1}"#]],
        );
        check(
            3,
            pages(&refused),
            expect![[r#"partial; refused 3 {"403": 1, "429": 1, "login_page": 1}"#]],
        );
        // Error responses don't count as served.
        let rows = [(Some(403), None), (Some(500), None)];
        check(
            0,
            pages(&rows),
            expect![[r#"blocked; refused 1 {"403": 1}; errors 1 {"500": 1}"#]],
        );
        let sitemap = |it: &mut HostOutcomeCounts| {
            it.page(&page(Some(200), None), true);
            it.page(&page(Some(403), Some("challenge")), false);
        };
        check(
            0,
            sitemap,
            expect![[r#"blocked; refused 1 {"challenge": 1}"#]],
        );
    }

    #[test]
    fn twenty_refusals_in_a_row_are_a_block_that_began_midway() {
        let refused = |count| vec![(Some(403), None); count];
        check(
            99,
            pages(&refused(19)),
            expect![[r#"partial; refused 19 {"403": 19}"#]],
        );
        check(
            99,
            pages(&refused(20)),
            expect![[r#"blocked; refused 20 {"403": 20}"#]],
        );
        let mut rows = refused(20);
        rows.push((Some(200), None));
        check(
            99,
            pages(&rows),
            expect![[r#"partial; refused 20 {"403": 20}"#]],
        );
        let logins = vec![(Some(200), Some("login_page")); 20];
        check(
            99,
            pages(&logins),
            expect![[r#"partial; refused 20 {"login_page": 20}"#]],
        );
    }

    #[test]
    fn a_host_that_serves_pages_does_not_block_an_origin_without_a_listener() {
        let refused = waiting(3, "robots", Some("robots.txt: connect_refused"));
        let answered = waiting(3, "robots", Some("robots.txt answered 503"));
        check(
            1,
            |it| it.waiting(&refused),
            expect![[r#"partial; robots 3 {"robots.txt: connect_refused": 3}"#]],
        );
        check(
            0,
            |it| it.waiting(&refused),
            expect![[r#"blocked; robots 3 {"robots.txt: connect_refused": 3}"#]],
        );
        check(
            1,
            |it| it.waiting(&answered),
            expect![[r#"blocked; robots 3 {"robots.txt answered 503": 3}"#]],
        );
    }

    #[test]
    fn an_unavailable_or_refused_robots_txt_means_blocked() {
        let wait = |it: &mut HostOutcomeCounts| {
            it.waiting(&waiting(1, "robots", Some("robots.txt answered 503")));
        };
        check(
            0,
            wait,
            expect![[r#"blocked; robots 1 {"robots.txt answered 503": 1}"#]],
        );
        check(
            5,
            wait,
            expect![[r#"partial; robots 1 {"robots.txt answered 503": 1}"#]],
        );
        let denied = excluded("robots", "robots.txt answered 403", None);
        check(
            0,
            |it| it.excluded(&denied),
            expect![[r#"blocked; refused 1 {"robots.txt 403": 1}"#]],
        );
    }

    #[test]
    fn every_missing_url_has_a_reason() {
        let rows = [
            (None, Some("timeout: after 60 s")),
            (Some(503), None),
            (Some(200), Some("short_body")),
            (Some(304), None),
            (Some(101), None),
            (Some(200), Some("body_truncated")),
            (Some(200), Some("sitemap_limit")),
            (Some(302), Some("too_many_redirects")),
            (Some(301), None),
        ];
        check(
            10,
            pages(&rows),
            expect![[
                r#"partial; errors 6 {"101": 1, "304": 1, "503": 1, "redirect_without_target": 1, "short_body": 1, "timeout": 1}; limits 3 {"body_truncated": 1, "sitemap_limit": 1, "too_many_redirects": 1}"#
            ]],
        );
        let add_other_reasons = |outcomes: &mut HostOutcomeCounts| {
            outcomes.excluded(&excluded("depth", "max-depth 3", None));
            outcomes.excluded(&excluded("trap", "calendar of 3 pages; such as", None));
            // `waiting.jsonl` counts the URLs beyond a budget, so this row must not count.
            outcomes.excluded(&excluded("budget", "max-pages", None));
            outcomes.waiting(&waiting(7, "budget", Some("max-pages")));
            outcomes.waiting(&waiting(2, "parked", None));
            outcomes.waiting(&waiting(4, "unreachable", Some("it sent a Retry-After")));
        };
        check(
            9,
            add_other_reasons,
            expect![[
                r#"partial; budget 8 {"max-depth": 1, "max-pages": 7}; traps 1 {"calendar": 1}; waiting 6 {"it sent a Retry-After": 4, "parked": 2}"#
            ]],
        );
        check(
            9,
            HostOutcomeCounts::unfinished,
            expect![[r#"partial; unfinished 0 {"no end of the last run is on record": 0}"#]],
        );
        check(0, HostOutcomeCounts::unfinished, expect!["none"]);
    }
}

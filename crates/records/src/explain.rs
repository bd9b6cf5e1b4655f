//! Explains why one URL was fetched, was not fetched, or is still pending.

mod text;
mod url_mentions;

use std::collections::VecDeque;
use std::path::Path;

use crawl_archive::rows::{DelayRow, ExcludedRow, PageRow, RequestRow, TombstoneRow};
use crawl_archive::{DigestRefreshAfterOpen, Timestamp};
use crawl_frontier::{
    DiskOpenError, FjallFrontier, FjallFrontierOptions, Frontier as _, FrontierError, KnownState,
    KnownUrlDetails, LastVisit, NotFetchedReason, Reason, is_write_once,
};
use crawl_sample::{DRAW_KEY, NOT_DRAWN, SampleDrawResult};
use crawl_weburl::CanonicalUrl;
use serde::Serialize;

use crate::broken_links::LatestRows;
use crate::error::RecordsError;
use crate::link_spelling_rules::LinkSpellingRules;
use crate::recognize_directory::holds_any;
use crate::row_file_reader::{delays, excluded, pages, requests, waiting, walk};
pub use url_mentions::UrlMention;

/// Maximum number of requests that an explanation lists. Earlier requests are only counted.
const MAX_KEPT_REQUESTS: usize = 20;

/// Everything that the records and the stored state contain about one URL.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explanation {
    /// The URL in canonical form.
    pub url: String,
    /// `fetched`, `failed`, `excluded`, `deferred`, `pending`, `forgotten`, `unknown`, or
    /// `undetermined`: no row has the URL and the stored state can't be read, so the URL may be
    /// pending, deferred or unknown.
    pub state: &'static str,
    /// The URL's row in `pages.jsonl`, from the last round if it has several.
    pub page: Option<PageRow>,
    /// The last decision about the page's place in the index: `indexed` in `pages.jsonl`. The row
    /// of a 304 response may have none.
    pub indexed: Option<String>,
    /// The URL's entry in the search index. `None` if the crawl has no index. The caller of
    /// `explain` must set this field, because this crate doesn't read the index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<IndexPresence>,
    /// Number of the URL's rows in `pages.jsonl`.
    pub visits: u64,
    /// When `--recrawl` visits the URL again: a time in RFC 3339, or `each round`.
    pub due: Option<String>,
    /// Whether the URL is already due, so that the next round visits it no matter when it starts.
    pub is_due: bool,
    /// The URL's row in `excluded.jsonl`, the last one if it has several.
    pub excluded: Option<ExcludedRow>,
    /// The latest requests for the URL, at most twenty.
    pub requests: Vec<RequestRow>,
    /// Number of requests for the URL.
    pub requests_sent: u64,
    /// The last request for the robots.txt of the URL's origin, if there was one.
    pub robots_request: Option<RequestRow>,
    /// Why the URL was excluded or deferred, from the stored state: reason, rule, and line of the
    /// rule. `None` if the URL was neither excluded nor deferred.
    pub exclusion: Option<(String, Option<String>, Option<u32>)>,
    /// When the scope rule that excludes the URL was added, in RFC 3339. `None` if the rule was not
    /// added during the crawl.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_since: Option<String>,
    /// The tombstone of the URL or its host, if it was erased. The caller of `explain` must set
    /// this field, because finding a tombstone requires the key of the tombstones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forgotten: Option<TombstoneRow>,
    /// The URL's place in the draw of the sample, if the URL could be drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleDrawPosition>,
    /// How often the random walk reached the URL, and when it first did. `None` if it never did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub walk: Option<RandomWalkHits>,
    /// Why the URL is pending since the last run ended. `None` if it isn't pending, or if the last
    /// run has not ended or was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<PendingReason>,
    /// The number of the next attempt, if the URL is pending.
    pub next_attempt: Option<u32>,
    /// Number of links from a seed to the URL. `None` if neither the state nor `pages.jsonl`
    /// contains the URL.
    pub depth: Option<u32>,
    /// The page on which the crawl found the URL. `None` for a seed, or if the page is unknown.
    pub via: Option<String>,
    /// The other spelling that the crawl fetches in place of the URL. Only set if the URL is
    /// unknown or undetermined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_for: Option<ReplacementUrl>,
    /// A page that contains the URL, the element, and the setting that keeps the URL from being
    /// fetched. Only set if the URL is unknown or undetermined.
    pub named_by: Option<UrlMention>,
    /// Number of archived pages that were not searched for the URL, because there are too many.
    pub unread_pages: u64,
    /// Whether the stored state could be read.
    pub state_read: StateAvailability,
    /// Number of unreadable lines in row files. Each of these lines may concern the URL.
    pub unreadable_lines: u64,
}

/// The entry of a URL in the search index, if there is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum IndexPresence {
    /// A search finds the page.
    Found {
        /// Why the page should be removed from the index, according to its last visit. `None` if
        /// nothing is wrong with it. The page is kept for now, because the round would have removed
        /// too many pages at once.
        #[serde(skip_serializing_if = "Option::is_none")]
        kept_despite: Option<String>,
        /// The canonical URL that the page declares, if the index has no page with that URL.
        #[serde(skip_serializing_if = "Option::is_none")]
        canonical: Option<String>,
    },
    /// A search finds another page instead.
    Replaced {
        /// The URL of the other page.
        by: String,
        /// The canonical URL of the page or the target of its immediate redirect. `None` if the
        /// other page only has the same title and text.
        #[serde(skip_serializing_if = "Option::is_none")]
        canonical: Option<String>,
    },
    /// The index has the page, but it has expired (`unavailable_after`).
    Expired {
        /// When the page expired, in seconds since 1970 UTC.
        until: i64,
    },
    /// The index doesn't have the page.
    Absent,
}

/// The URL that the crawl fetches in place of another spelling of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReplacementUrl {
    /// The URL.
    pub url: String,
    /// Whether the crawl has fetched the URL.
    pub is_fetched: bool,
}

/// The place of a URL in the draw of a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SampleDrawPosition {
    /// The URL's stratum.
    pub stratum: String,
    /// Number of URLs drawn from the stratum.
    pub drawn: u64,
    /// Number of URLs in the stratum.
    pub of: u64,
    /// The URL's rank, in hexadecimal. The URLs with the lowest ranks are drawn.
    pub rank: String,
    /// The highest rank drawn from the stratum, in hexadecimal.
    pub last_rank: String,
    /// Whether the URL was drawn.
    pub is_drawn: bool,
}

/// Why a URL is pending, from the row of its origin in `waiting.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PendingReason {
    /// The reason, as in the row, such as `parked`.
    pub reason: String,
    /// More about the reason, such as the name of a budget.
    pub detail: Option<String>,
    /// When the host may get the next request. `None` if the host doesn't have to wait, or if it is
    /// parked (gets no requests until it is unparked).
    pub next_try: Option<Timestamp>,
    /// Whether a new run may send this request as soon as it starts, even if that is before
    /// `next_try`.
    pub tried_at_start: bool,
}

/// How often a random walk reached a URL, and when it first did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RandomWalkHits {
    /// Number of steps that led to the URL.
    pub steps: u64,
    /// The walker that took the first step to the URL, and the number of that step.
    pub first: (u32, u64),
}

impl SampleDrawPosition {
    /// Returns the place of a URL in the draw. `None` if the URL was found after the draw.
    fn of(
        draw: &SampleDrawResult,
        url: &CanonicalUrl,
        known: &KnownUrlDetails,
    ) -> Option<SampleDrawPosition> {
        let drawn = draw.stratum_of(url);
        let is_in_frame = match &known.state {
            KnownState::Deferred(why) => {
                why.reason == Reason::Sample && why.rule.as_deref() == Some(NOT_DRAWN)
            }
            _ => false,
        };
        let in_frame = is_in_frame.then(|| draw.stratum_in_frame(url, known.depth));
        let stratum = drawn.or(in_frame.flatten())?;
        Some(SampleDrawPosition {
            stratum: stratum.name.to_owned(),
            drawn: stratum.drawn,
            of: stratum.of,
            rank: format!("{:016x}", draw.rank(url)),
            last_rank: format!("{:016x}", stratum.last_rank),
            is_drawn: drawn.is_some(),
        })
    }
}

/// Whether the stored state could be read. If not, the explanation uses only the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StateAvailability {
    /// The state was read.
    Read,
    /// The crawl is running.
    InUse,
    /// There is no state.
    #[default]
    Absent,
    /// The state can't be read, for this reason.
    Broken(String),
}

/// Collects all information about `url` in the crawl in `dir`, as of `now`.
///
/// Reads the row files completely. If the URL is unknown, also searches the archived pages and
/// `links.jsonl` for a page that contains it. Opens the state only if no other process has it open.
/// Opening the state may cut off an incomplete write of a killed run, as the next run would.
///
/// # Errors
/// [`RecordsError::NoCrawl`] if `dir` has neither `crawl.toml` nor `pages.jsonl`, and file system
/// errors. An unreadable state is not an error: see [`Explanation::state_read`].
pub fn explain(
    dir: &Path,
    url: &CanonicalUrl,
    now: Timestamp,
) -> Result<Explanation, RecordsError> {
    holds_any(dir, &["crawl.toml", "pages.jsonl"])?;
    let mut explanation = Explanation {
        url: url.to_string(),
        state: "unknown",
        ..Explanation::default()
    };
    // Search for the URL including the quotation marks of its JSON string, so that a longer URL
    // doesn't match.
    let needle = serde_json::to_vec(url.as_str()).unwrap_or_default();
    let mut rows = pages(dir)?;
    while let Some(row) = rows.next_with(&needle) {
        // Skip rows that mention the URL only in another column.
        let row = explanation.sound(row);
        if let Some(row) = row.filter(|row| row.url == url.as_str()) {
            explanation.visits += 1;
            explanation.indexed = row.indexed.clone().or(explanation.indexed);
            explanation.page = Some(row);
        }
    }
    let mut rows = excluded(dir)?;
    while let Some(row) = rows.next_with(&needle) {
        let row = explanation.sound(row);
        explanation.excluded = row
            .filter(|row| row.url == url.as_str())
            .or(explanation.excluded);
    }
    let mut rows = walk(dir)?;
    while let Some(row) = rows.next_with(&needle) {
        let row = explanation.sound(row);
        if let Some(row) = row.filter(|row| row.url == url.as_str()) {
            let place = explanation.walk.get_or_insert(RandomWalkHits {
                steps: 0,
                first: (row.walker, row.step),
            });
            place.steps += 1;
        }
    }
    explanation.read_requests(dir, url, &needle)?;
    match known(dir, url) {
        Ok((known, visit, draw)) => {
            explanation.state_read = StateAvailability::Read;
            if let (Some(draw), Some(known)) = (&draw, &known) {
                explanation.sample = SampleDrawPosition::of(draw, url, known);
            }
            explanation.take_state(known, visit, now);
        }
        Err(why) => explanation.state_read = why,
    }
    explanation.judge();
    explanation.read_pending_reason(dir, url)?;
    explanation.read_rule_since(dir)?;
    if !explanation.is_known() {
        let latest = LatestRows::read(dir)?;
        let replacement = LinkSpellingRules::read(dir)?.fetched_as(url, |url| latest.knows(url));
        explanation.taken_for = replacement.map(|replacement| ReplacementUrl {
            is_fetched: latest.knows(replacement.as_str()),
            url: replacement.to_string(),
        });
        let search = url_mentions::search(dir, url)?;
        explanation.named_by = search.named_by;
        explanation.unread_pages = search.unread_pages;
    }
    Ok(explanation)
}

/// The stored state of a URL, its last visit, and the draw of the crawl's sample.
type StoredUrlState = (
    Option<KnownUrlDetails>,
    Option<LastVisit>,
    Option<SampleDrawResult>,
);

fn known(dir: &Path, url: &CanonicalUrl) -> Result<StoredUrlState, StateAvailability> {
    let state = dir.join("state");
    // Don't open an empty directory, because opening would create a frontier in it.
    let entries = state.read_dir().ok().and_then(|mut entries| entries.next());
    if entries.is_none() {
        return Err(StateAvailability::Absent);
    }
    crawl_archive::check_entries(dir).map_err(|why| StateAvailability::Broken(why.to_string()))?;
    // Declared before the frontier, so that it is dropped after the frontier.
    let _digests = DigestRefreshAfterOpen::before_opening(dir, "state", is_write_once);
    let frontier =
        FjallFrontier::open(&state, &FjallFrontierOptions::default()).map_err(|why| match why {
            DiskOpenError::InUse { .. } => StateAvailability::InUse,
            why => StateAvailability::Broken(why.to_string()),
        })?;
    let broken = |why: FrontierError| StateAvailability::Broken(why.to_string());
    let draw = frontier.meta(DRAW_KEY).map_err(broken)?;
    Ok((
        frontier.known(url).map_err(broken)?,
        frontier.visit(url).map_err(broken)?,
        draw.as_deref().and_then(SampleDrawResult::read),
    ))
}

impl Explanation {
    /// Returns the row. Counts an unreadable line, and returns `None` for it.
    fn sound<T>(&mut self, row: Result<T, RecordsError>) -> Option<T> {
        self.unreadable_lines += u64::from(row.is_err());
        row.ok()
    }

    fn read_requests(
        &mut self,
        dir: &Path,
        url: &CanonicalUrl,
        needle: &[u8],
    ) -> Result<(), RecordsError> {
        let mut latest = VecDeque::with_capacity(MAX_KEPT_REQUESTS);
        let mut rows = requests(dir)?;
        while let Some(row) = rows.next_with(needle) {
            let row = self.sound(row);
            let Some(row) = row.filter(|row| row.url == url.as_str()) else {
                continue;
            };
            self.requests_sent += 1;
            if latest.len() == MAX_KEPT_REQUESTS {
                latest.pop_front();
            }
            latest.push_back(row);
        }
        self.requests = latest.into();
        let robots = url.origin().robots_url();
        let needle = serde_json::to_vec(robots.as_str()).unwrap_or_default();
        let mut rows = requests(dir)?;
        while let Some(row) = rows.next_with(&needle) {
            let row = row.ok().filter(|row| row.url == robots.as_str());
            self.robots_request = row.or(self.robots_request.take());
        }
        Ok(())
    }

    fn take_state(
        &mut self,
        known: Option<KnownUrlDetails>,
        visit: Option<LastVisit>,
        now: Timestamp,
    ) {
        let Some(known) = known else {
            return;
        };
        let waits = matches!(
            known.state,
            KnownState::Pending { .. } | KnownState::Leased { .. }
        );
        let visit = visit.filter(|_| !waits);
        let at = |visit: &LastVisit| Timestamp::from_micros(u64::from(visit.due) * 1_000_000);
        self.is_due = visit.as_ref().is_some_and(|visit| at(visit) <= now);
        self.due = visit.map(|visit| match visit.due {
            0 => "each round".to_owned(),
            _ => at(&visit).rfc3339_millis(),
        });
        self.depth = Some(known.depth);
        self.via = known.via.map(|via| via.to_string());
        let exclusion = |exclusion: NotFetchedReason| {
            Some((exclusion.reason.to_string(), exclusion.rule, exclusion.line))
        };
        match known.state {
            KnownState::Pending { attempt } | KnownState::Leased { attempt } => {
                self.state = "pending";
                self.next_attempt = Some(attempt);
            }
            KnownState::Deferred(why) => {
                self.state = "deferred";
                self.exclusion = exclusion(why);
            }
            KnownState::Excluded(why) => {
                self.state = "excluded";
                self.exclusion = exclusion(why);
            }
            KnownState::Fetched { .. } => self.state = "fetched",
            KnownState::Failed { .. } => self.state = "failed",
        }
    }

    fn read_pending_reason(&mut self, dir: &Path, url: &CanonicalUrl) -> Result<(), RecordsError> {
        if self.state != "pending" {
            return Ok(());
        }
        let origin = url.origin();
        for row in waiting(dir)? {
            let row = self.sound(row);
            if let Some(row) = row.filter(|row| row.origin.as_deref() == Some(origin.as_str())) {
                self.pending = Some(PendingReason {
                    reason: row.reason,
                    detail: row.detail,
                    next_try: row.next_try,
                    tried_at_start: row.tried_at_start,
                });
            }
        }
        Ok(())
    }

    /// Looks up when the rule that excludes the URL was added.
    fn read_rule_since(&mut self, dir: &Path) -> Result<(), RecordsError> {
        let stored = self
            .exclusion
            .as_ref()
            .map(|(reason, rule, _)| (reason, rule));
        let row = self.excluded.as_ref().map(|row| (&row.reason, &row.rule));
        let Some((reason, Some(rule))) = stored.or(row).filter(|_| self.state == "excluded") else {
            return Ok(());
        };
        if *reason != Reason::Scope.to_string() {
            return Ok(());
        }
        let rule = rule.clone();
        // The stored rule is only `include`, without the pattern. So accept any include pattern.
        let is_it =
            |added: &String| *added == rule || (rule == "include" && added.starts_with("include "));
        for row in delays(dir)? {
            let Some(DelayRow {
                at,
                reread: Some(reread),
                ..
            }) = self.sound(row)
            else {
                continue;
            };
            if reread.added.iter().any(is_it) {
                let at = Timestamp::from_micros(at.saturating_mul(1000));
                self.rule_since = Some(at.rfc3339_millis());
            }
        }
        Ok(())
    }

    /// Returns whether the crawl's rows or its stored state have the URL.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !matches!(self.state, "unknown" | "undetermined")
    }

    /// Records that the URL was erased from the crawl.
    pub fn forget(&mut self, tombstone: TombstoneRow) {
        self.state = "forgotten";
        self.forgotten = Some(tombstone);
    }

    /// Fills in the values that the stored state doesn't have from the rows.
    fn judge(&mut self) {
        if let Some(page) = &self.page {
            self.depth = self.depth.or(Some(page.depth));
            self.via = self.via.take().or_else(|| page.via.clone());
            if self.state == "unknown" {
                self.state = match page.status {
                    Some(_) => "fetched",
                    None => "failed",
                };
            }
        }
        if let Some(row) = &self.excluded {
            self.via = self.via.take().or_else(|| row.found_on.clone());
            let visited = self.page.as_ref().map_or(0, |page| page.round);
            let is_later = row.round.is_some_and(|round| round > visited);
            let is_from_rows = self.state_read != StateAvailability::Read;
            if self.state == "unknown" || is_from_rows && is_later {
                self.state = "excluded";
            }
        }
        let is_unread = matches!(
            self.state_read,
            StateAvailability::InUse | StateAvailability::Broken(_)
        );
        if self.state == "unknown" && is_unread {
            self.state = "undetermined";
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is used"
)]
mod tests;

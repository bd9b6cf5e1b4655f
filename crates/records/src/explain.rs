//! An explanation why one URL was, was not, or is not yet fetched.

mod naming_page;
mod text;

use std::collections::VecDeque;
use std::path::Path;

use crawl_archive::Timestamp;
use crawl_archive::rows::{DelayRow, ExcludedRow, PageRow, RequestRow, TombstoneRow};
use crawl_frontier::{
    Exclusion, FjallFrontier, Frontier as _, FrontierError, KnownState, KnownUrl, OpenError,
    Options, Reason, Visit,
};
use crawl_sample::{DRAW_KEY, Draw, NOT_DRAWN};
use crawl_weburl::CanonicalUrl;
use serde::Serialize;

use crate::directory::holds_any;
use crate::error::RecordsError;
use crate::rows::{delays, excluded, pages, requests, walk};
pub use naming_page::NamedBy;

/// Requests that are kept of those that were made for the URL, the latest.
const MAX_KEPT_REQUESTS: usize = 20;

/// The records and the stored state of one URL.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explanation {
    /// The URL in canonical form.
    pub url: String,
    /// `fetched`, `failed`, `excluded`, `deferred`, `pending`, `forgotten` or `unknown`.
    pub state: &'static str,
    /// Its row in `pages.jsonl`, of the last round where it has several.
    pub page: Option<PageRow>,
    /// Its rows in `pages.jsonl`.
    pub visits: u64,
    /// From when on it is visited again by `--recrawl`, RFC 3339; or `each round`.
    pub due: Option<String>,
    /// True if that is in the next round, whenever it begins.
    pub is_due: bool,
    /// Its row in `excluded.jsonl`, the last where it has several.
    pub excluded: Option<ExcludedRow>,
    /// The latest requests that were sent for it.
    pub requests: Vec<RequestRow>,
    /// The number of requests that were sent for it.
    pub requests_sent: u64,
    /// The last request for its origin's robots.txt.
    pub robots_request: Option<RequestRow>,
    /// The reason why it was put aside or is not asked for, by the stored state: reason, rule,
    /// line.
    pub exclusion: Option<(String, Option<String>, Option<u32>)>,
    /// Since when the rule of the scope holds that excludes it, RFC 3339, where it came to hold while
    /// the crawl ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_since: Option<String>,
    /// The tombstone of it or of its host: what a caller finds that knows their key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forgotten: Option<TombstoneRow>,
    /// Its place in the draw of the sample, where it was in the frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<SamplePlace>,
    /// The steps of a random walk that led to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub walk: Option<WalkPlace>,
    /// The number of the next try, where it is pending.
    pub next_attempt: Option<u32>,
    /// Links followed from a seed to it.
    pub depth: Option<u32>,
    /// The page that it was found on.
    pub via: Option<String>,
    /// The page that names it, where it is unknown, as what, and which setting keeps it out.
    pub named_by: Option<NamedBy>,
    /// Archived pages that were not searched for that, since there are too many.
    pub unread_pages: u64,
    /// The fate of the stored state.
    pub state_read: StateRead,
    /// Lines of row files that may speak of it and could not be read.
    pub unreadable_lines: u64,
}

/// The place of a URL in the draw of a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SamplePlace {
    /// The stratum that it lies in.
    pub stratum: String,
    /// URLs that were drawn in it.
    pub drawn: u64,
    /// URLs that it has.
    pub of: u64,
    /// The rank of the URL, in hexadecimal digits.
    pub rank: String,
    /// The greatest rank that was drawn.
    pub last_rank: String,
    /// True if it was drawn.
    pub is_drawn: bool,
}

/// The steps of a random walk that led to a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WalkPlace {
    /// Their number.
    pub steps: u64,
    /// The walker and the number of the first that was taken.
    pub first: (u32, u64),
}

impl SamplePlace {
    /// That of a URL of the frame; none where it was found when the draw was over.
    fn of(draw: &Draw, url: &CanonicalUrl, known: &KnownUrl) -> Option<SamplePlace> {
        let drawn = draw.stratum_of(url);
        let is_in_frame = match &known.state {
            KnownState::Deferred(why) => {
                why.reason == Reason::Sample && why.rule.as_deref() == Some(NOT_DRAWN)
            }
            _ => false,
        };
        let in_frame = is_in_frame.then(|| draw.stratum_in_frame(url, known.depth));
        let stratum = drawn.or(in_frame.flatten())?;
        Some(SamplePlace {
            stratum: stratum.name.to_owned(),
            drawn: stratum.drawn,
            of: stratum.of,
            rank: format!("{:016x}", draw.rank(url)),
            last_rank: format!("{:016x}", stratum.last_rank),
            is_drawn: drawn.is_some(),
        })
    }
}

/// The fate of the stored state: read or not. Without it the rows speak alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StateRead {
    /// It was read.
    Read,
    /// The crawl is running.
    InUse,
    /// There is none.
    #[default]
    Absent,
    /// It can't be read; why.
    Broken(String),
}

/// Gathers what is known of `url` in the crawl that lies in `dir`, as of `now`. Reads the row files
/// from end to end, and of a URL that nothing is known of the archived pages too, for the one that
/// names it; opens the state only if no other process has it open. Opening it may cut off
/// what a killed run left half written, as the next run would.
///
/// # Errors
/// [`RecordsError::NoCrawl`] where `dir` holds neither rows nor state, and errors of the
/// file system. A state that can't be read is no error: [`Explanation::state_read`] tells.
pub fn explain(
    dir: &Path,
    url: &CanonicalUrl,
    now: Timestamp,
) -> Result<Explanation, RecordsError> {
    holds_any(dir, &["crawl.toml", "pages.jsonl"])?;
    let mut found = Explanation {
        url: url.to_string(),
        state: "unknown",
        ..Explanation::default()
    };
    // As the URL stands in a row, quotes included, so that no longer URL is meant.
    let needle = serde_json::to_vec(url.as_str()).unwrap_or_default();
    let mut rows = pages(dir)?;
    while let Some(row) = rows.next_with(&needle) {
        // A row that mentions the URL otherwise is not about it.
        let row = found.sound(row);
        if let Some(row) = row.filter(|row| row.url == url.as_str()) {
            found.visits += 1;
            found.page = Some(row);
        }
    }
    let mut rows = excluded(dir)?;
    while let Some(row) = rows.next_with(&needle) {
        let row = found.sound(row);
        found.excluded = row.filter(|row| row.url == url.as_str()).or(found.excluded);
    }
    let mut rows = walk(dir)?;
    while let Some(row) = rows.next_with(&needle) {
        let row = found.sound(row);
        if let Some(row) = row.filter(|row| row.url == url.as_str()) {
            let led_here = found.walk.get_or_insert(WalkPlace {
                steps: 0,
                first: (row.walker, row.step),
            });
            led_here.steps += 1;
        }
    }
    found.read_requests(dir, url, &needle)?;
    match known(dir, url) {
        Ok((known, visit, draw)) => {
            found.state_read = StateRead::Read;
            if let (Some(draw), Some(known)) = (&draw, &known) {
                found.sample = SamplePlace::of(draw, url, known);
            }
            found.take_state(known, visit, now);
        }
        Err(why) => found.state_read = why,
    }
    found.judge();
    found.read_rule_since(dir)?;
    if found.state == "unknown" {
        let search = naming_page::search(dir, url)?;
        found.named_by = search.named_by;
        found.unread_pages = search.unread_pages;
    }
    Ok(found)
}

/// The stored state of a URL, its last visit, and the draw of the crawl's sample.
type Stored = (Option<KnownUrl>, Option<Visit>, Option<Draw>);

fn known(dir: &Path, url: &CanonicalUrl) -> Result<Stored, StateRead> {
    let state = dir.join("state");
    // Opening an empty directory would begin a frontier there.
    let entries = state.read_dir().ok().and_then(|mut entries| entries.next());
    if entries.is_none() {
        return Err(StateRead::Absent);
    }
    crawl_archive::check_entries(dir).map_err(|why| StateRead::Broken(why.to_string()))?;
    let frontier = FjallFrontier::open(&state, &Options::default()).map_err(|why| match why {
        OpenError::InUse { .. } => StateRead::InUse,
        why => StateRead::Broken(why.to_string()),
    })?;
    let broken = |why: FrontierError| StateRead::Broken(why.to_string());
    let draw = frontier.meta(DRAW_KEY).map_err(broken)?;
    Ok((
        frontier.known(url).map_err(broken)?,
        frontier.visit(url).map_err(broken)?,
        draw.as_deref().and_then(Draw::read),
    ))
}

impl Explanation {
    /// The row, or nothing where the line is none.
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

    fn take_state(&mut self, known: Option<KnownUrl>, visit: Option<Visit>, now: Timestamp) {
        let Some(known) = known else {
            return;
        };
        let waits = matches!(
            known.state,
            KnownState::Pending { .. } | KnownState::Leased { .. }
        );
        let visit = visit.filter(|_| !waits);
        let at = |visit: &Visit| Timestamp::from_micros(u64::from(visit.due) * 1_000_000);
        self.is_due = visit.as_ref().is_some_and(|visit| at(visit) <= now);
        self.due = visit.map(|visit| match visit.due {
            0 => "each round".to_owned(),
            _ => at(&visit).rfc3339_millis(),
        });
        self.depth = Some(known.depth);
        self.via = known.via.map(|via| via.to_string());
        let exclusion = |exclusion: Exclusion| {
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

    /// Looks up when the rule that excludes it came to hold.
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
        // Of several patterns to include it is not told which one would have to match.
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

    /// Says that it was taken out of the crawl.
    pub fn forget(&mut self, tombstone: TombstoneRow) {
        self.state = "forgotten";
        self.forgotten = Some(tombstone);
    }

    /// Fills in from the rows what the state did not say.
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
            if self.state == "unknown" {
                self.state = "excluded";
            }
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is used"
)]
mod tests;

//! Counts of URLs that were not fetched: excluded by a rule, or pending.

use std::collections::BTreeMap;
use std::fmt;

use crawl_archive::rows::{ExcludedRow, PendingOriginRow};
use serde::{Deserialize, Serialize};

use crate::host_reports::PENDING_REASON;
use crate::number_format::grouped;

/// Maximum number of rules that are counted separately. The texts of rules contain URLs, so there
/// may be very many.
const MAX_RULES: usize = 1000;

/// Counts of the URLs whose row in `excluded.jsonl` is still in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcludedCounts {
    /// Number of URLs.
    pub total: u64,
    /// Number of URLs by reason: `robots`, `meta`, `scope` ..
    pub by_reason: BTreeMap<String, u64>,
    /// Number of URLs by rule, for three reasons only: traps, links that look like actions, and
    /// duplicates. The text of such a rule names the evidence. At most a thousand rules are
    /// counted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub put_aside: BTreeMap<String, u64>,
}

/// Counts of the URLs left for the next run, from `waiting.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingCounts {
    /// Number of pending URLs.
    pub total: u64,
    /// Number of pending URLs by the reason why they wait: the name of a budget, such as
    /// `max-pages`, or the reason in their row, such as `parked`.
    pub by_reason: BTreeMap<String, u64>,
}

/// Formats the number, with the reasons why the URLs wait: `25 (max-pages)`, `9
/// (max-pages-per-host: 7)`.
impl fmt::Display for PendingCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&grouped(self.total))?;
        match self.held_by() {
            Some(held_by) => write!(f, " ({held_by})"),
            None => Ok(()),
        }
    }
}

impl PendingCounts {
    /// Adds a row: the total of the crawl, or the URLs of an origin.
    pub(super) fn add(&mut self, row: &PendingOriginRow) {
        if row.origin.is_none() {
            self.total += row.urls;
            return;
        }
        let reason = match (row.reason.as_str(), &row.detail) {
            (PENDING_REASON, Some(budget)) => budget.as_str(),
            (reason, _) => reason,
        };
        let has_key = self.by_reason.len() < MAX_RULES || self.by_reason.contains_key(reason);
        let reason = if has_key { reason } else { "other" };
        *self.by_reason.entry(reason.to_owned()).or_default() += row.urls;
    }

    /// Describes why URLs are pending: `max-pages` or `max-pages-per-host: 7, parked: 2`. `None` if
    /// they only wait for the next run, because the last run was stopped.
    #[must_use]
    pub fn held_by(&self) -> Option<String> {
        let is_end = |reason: &str| matches!(reason, "interrupted" | "handed_over" | "finished");
        let held = self.by_reason.iter().filter(|(reason, _)| !is_end(reason));
        let held: Vec<String> = held
            .map(|(reason, urls)| {
                let words = match reason.as_str() {
                    "robots" => "robots.txt unreachable",
                    "quiet_hours" => "quiet hours",
                    "other_crawl" => "another crawl",
                    other => other,
                };
                match *urls == self.total {
                    true => words.to_owned(),
                    false => format!("{words}: {}", grouped(*urls)),
                }
            })
            .collect();
        (!held.is_empty()).then(|| held.join(", "))
    }

    /// Returns the budgets that all pending URLs wait for. `None` if some URL waits for another
    /// reason.
    #[must_use]
    pub fn budgets(&self) -> Option<Vec<&str>> {
        let is_budget = |reason: &str| reason.starts_with("max-");
        let reasons: Vec<&str> = self.by_reason.keys().map(String::as_str).collect();
        let are_budgets = !reasons.is_empty() && reasons.iter().all(|reason| is_budget(reason));
        are_budgets.then_some(reasons)
    }
}

impl ExcludedCounts {
    /// Returns the number of excluded URLs, without those that a budget left pending.
    #[must_use]
    pub fn decided(&self) -> u64 {
        let pending = self.by_reason.get(PENDING_REASON).copied();
        self.total.saturating_sub(pending.unwrap_or(0))
    }

    /// Returns the number of excluded URLs by reason, without those that a budget left pending.
    #[must_use]
    pub fn by_decision(&self) -> BTreeMap<String, u64> {
        let mut by_reason = self.by_reason.clone();
        by_reason.remove(PENDING_REASON);
        by_reason
    }

    /// Counts the rule that excluded a URL, if the reason is a trap, a link that looks like an
    /// action, or a duplicate. Ignores rows with other reasons.
    pub(super) fn note_rule(&mut self, row: &ExcludedRow) {
        let Some(rule) = &row.rule else {
            return;
        };
        let is_listed = matches!(row.reason.as_str(), "trap" | "action" | "duplicate");
        let has_room = self.put_aside.len() < MAX_RULES || self.put_aside.contains_key(rule);
        if is_listed && has_room {
            *self.put_aside.entry(rule.clone()).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use crawl_archive::rows::PendingOriginRow;

    use super::PendingCounts;

    #[test]
    fn pending_urls_are_shown_with_the_reason() {
        let pending = |rows: &[(Option<&str>, u64, &str, Option<&str>)]| {
            let mut pending = PendingCounts::default();
            for (origin, urls, reason, detail) in rows {
                pending.add(&PendingOriginRow {
                    origin: origin.map(str::to_owned),
                    urls: *urls,
                    reason: (*reason).to_owned(),
                    detail: detail.map(str::to_owned),
                    ..PendingOriginRow::default()
                });
            }
            pending
        };
        let (a, b) = (Some("http://a.example"), Some("http://b.example"));
        let by_budget = pending(&[
            (None, 1025, "budget", Some("max-pages")),
            (a, 1025, "budget", Some("max-pages")),
        ]);
        assert_eq!(by_budget.to_string(), "1,025 (max-pages)");
        assert_eq!(by_budget.budgets(), Some(vec!["max-pages"]));
        let mixed = pending(&[
            (None, 9, "interrupted", None),
            (a, 7, "budget", Some("max-pages-per-host")),
            (b, 2, "interrupted", None),
        ]);
        assert_eq!(mixed.to_string(), "9 (max-pages-per-host: 7)");
        assert_eq!(mixed.budgets(), None);
        let unreachable = pending(&[
            (None, 3, "unreachable", None),
            (a, 3, "robots", Some("connect_refused")),
        ]);
        assert_eq!(unreachable.to_string(), "3 (robots.txt unreachable)");
        assert_eq!(PendingCounts::default().budgets(), None);
    }
}

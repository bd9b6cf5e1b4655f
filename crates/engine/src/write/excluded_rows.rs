//! Rows of `excluded.jsonl`, and the words for what keeps a URL from being asked for.

use crawl_archive::rows::ExcludedRow;
use crawl_frontier::{Admission, Exclusion, NewState};
use crawl_weburl::CanonicalUrl;

/// A row that `excluded.jsonl` gets.
pub(crate) fn excluded_row(
    url: &CanonicalUrl,
    exclusion: &Exclusion,
    found_on: Option<&CanonicalUrl>,
) -> ExcludedRow {
    ExcludedRow {
        url: url.to_string(),
        reason: exclusion.reason.to_string(),
        rule: exclusion.rule.clone(),
        line: exclusion.line,
        found_on: found_on.map(ToString::to_string),
    }
}

/// The row of a URL that is settled as it is met: one out of scope.
pub(crate) fn listed_at_once(admission: &Admission) -> Option<ExcludedRow> {
    match &admission.state {
        NewState::Excluded(exclusion) => Some(excluded_row(
            &admission.url,
            exclusion,
            admission.via.as_ref(),
        )),
        NewState::Pending | NewState::Deferred(_) => None,
    }
}

/// Why a seed was not asked for, for the end of the run.
pub(crate) fn excluded_words(exclusion: &Exclusion) -> String {
    match (&exclusion.rule, exclusion.line) {
        (Some(rule), Some(line)) => {
            format!("excluded by {} (line {line}: {rule})", exclusion.reason)
        }
        (Some(rule), None) => format!("excluded by {} ({rule})", exclusion.reason),
        _ => format!("excluded by {}", exclusion.reason),
    }
}

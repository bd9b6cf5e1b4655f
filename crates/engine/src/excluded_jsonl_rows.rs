//! Creates rows of `excluded.jsonl`, and describes why a URL is excluded.

use crawl_archive::Timestamp;
use crawl_archive::rows::ExcludedRow;
use crawl_frontier::{NotFetchedReason, UrlKind, UrlToAdmit};
use crawl_weburl::CanonicalUrl;

use crate::priority::Priority;

/// Returns a row of `excluded.jsonl`. `when` contains the round and the fetch time of the page
/// settled last; `None` if they are not known.
pub(crate) fn excluded_row(
    url: &CanonicalUrl,
    exclusion: &NotFetchedReason,
    found_on: Option<&CanonicalUrl>,
    label: Option<&str>,
    when: Option<(u32, Timestamp)>,
) -> ExcludedRow {
    ExcludedRow {
        url: url.to_string(),
        reason: exclusion.reason.to_string(),
        rule: exclusion.rule.clone(),
        line: exclusion.line,
        found_as: None,
        found_on: found_on.map(ToString::to_string),
        label: label.map(str::to_owned),
        round: when.map(|(round, _)| round),
        at: when.map(|(_, at)| at),
    }
}

/// Returns what a URL was found as, for [`ExcludedRow::found_as`].
pub(crate) fn found_as(admission: &UrlToAdmit) -> Option<&'static str> {
    let is_entry = admission.is_seed && admission.via.is_some()
        || admission.priority == Priority::FOREIGN_ENTRY.byte();
    match admission.kind {
        UrlKind::Resource => Some("resource"),
        UrlKind::Sitemap => Some("sitemap"),
        UrlKind::Page => is_entry.then_some("entry"),
    }
}

/// Describes why a seed was not fetched, for the end of a run.
pub(crate) fn excluded_words(exclusion: &NotFetchedReason) -> String {
    match (&exclusion.rule, exclusion.line) {
        (Some(rule), Some(line)) => {
            format!("excluded by {} (line {line}: {rule})", exclusion.reason)
        }
        (Some(rule), None) => format!("excluded by {} ({rule})", exclusion.reason),
        _ => format!("excluded by {}", exclusion.reason),
    }
}

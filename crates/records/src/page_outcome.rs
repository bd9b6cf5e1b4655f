//! The outcome of a page request, as a token.

use crawl_archive::rows::{ONLY_CHECKED, PageRow};

/// Returns the outcome of a page request: a key of `by_outcome` in a report.
#[must_use]
pub fn outcome(row: &PageRow) -> &str {
    match row.status {
        _ if row.error.as_deref().is_some_and(is_obstacle) => {
            row.error.as_deref().unwrap_or_default()
        }
        Some(200..=299) => row.unwanted.as_deref().map_or("ok", unwanted),
        _ if row.broken_redirect().is_some() => row.broken_redirect().unwrap_or_default(),
        Some(304) if row.change.as_deref() == Some("same") => "unmodified",
        Some(300..=399) => "redirect",
        Some(400..=499) => "client_error",
        Some(500..=599) => "server_error",
        Some(_) => "other",
        None => "no_answer",
    }
}

/// Returns the outcome of a page with a 2xx status. `filter` is the value of `unwanted` in its row:
/// the content filter that rejected the page.
fn unwanted(filter: &str) -> &'static str {
    if filter == ONLY_CHECKED {
        return "ok";
    }
    match filter.split(' ').next().unwrap_or_default() {
        "content-type" => "unwanted_type",
        "language" => "unwanted_language",
        _ => "unwanted_size",
    }
}

/// Returns whether the error means that the server served something else in place of the page.
pub(crate) fn is_obstacle(error: &str) -> bool {
    matches!(error, "login_page" | "challenge" | "block_page")
}

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
        // A 304 without a stored page has neither content nor a target.
        Some(304) => "other",
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

#[cfg(test)]
mod tests {
    use crawl_archive::rows::PageRow;
    use serde_json::json;

    use super::outcome;

    #[test]
    fn a_304_is_no_redirect() {
        for (status, change, expected) in [
            (304, "same", "unmodified"),
            (304, "new", "other"),
            (300, "new", "redirect"),
        ] {
            let row = json!({
                "url": "http://a.example/", "status": status, "change": change, "error": null,
                "ms": 1, "bytes": 2, "fetched_at": "2026-11-20T23:59:59.123456Z",
                "content_type": null, "digest": null, "depth": 0, "via": null, "title": null,
                "robots": null, "usage": null, "warc": null, "withheld": null,
            });
            let row: PageRow = serde_json::from_value(row).unwrap();
            assert_eq!(outcome(&row), expected, "{status} {change}");
        }
    }
}

//! The outcome of a page request, as a token.

use super::page_row::{
    ONLY_CHECKED, PageRow, REDIRECT_LOOP, REDIRECT_MALFORMED, REDIRECT_SCHEME,
    REDIRECT_WITHOUT_TARGET, TOO_MANY_REDIRECTS,
};

/// Errors of responses that contain something other than the requested page.
const OBSTACLES: [&str; 3] = ["login_page", "challenge", "block_page"];

/// Every outcome that [`PageRow::outcome`] can return.
pub const PAGE_OUTCOMES: [&str; 19] = [
    "ok",
    "unread",
    "unwanted_type",
    "unwanted_language",
    "unwanted_size",
    "unmodified",
    "redirect",
    REDIRECT_LOOP,
    TOO_MANY_REDIRECTS,
    REDIRECT_MALFORMED,
    REDIRECT_SCHEME,
    REDIRECT_WITHOUT_TARGET,
    "client_error",
    "server_error",
    OBSTACLES[0],
    OBSTACLES[1],
    OBSTACLES[2],
    "no_answer",
    "other",
];

impl PageRow {
    /// Returns the outcome of the request, as reports, metrics and progress count it: a key of
    /// `by_outcome` in `report.json` (see [`PAGE_OUTCOMES`]).
    ///
    /// The outcome of a 2xx response is `unread` if its body is incomplete or could not be read,
    /// and `ok` if it was read or cut at a limit of the crawl.
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        match self.status {
            _ if self.obstacle().is_some() => self.obstacle().unwrap_or_default(),
            Some(200..=299) => match self.unwanted.as_deref() {
                Some(filter) if filter != ONLY_CHECKED => unwanted(filter),
                _ if self.is_failed() => "unread",
                _ => "ok",
            },
            _ if self.broken_redirect().is_some() => self.broken_redirect().unwrap_or_default(),
            Some(304) if self.change.as_deref() == Some("same") => "unmodified",
            // A 304 without a stored page has neither content nor a target.
            Some(304) => "other",
            Some(300..=399) => "redirect",
            Some(400..=499) => "client_error",
            Some(500..=599) => "server_error",
            Some(_) => "other",
            None => "no_answer",
        }
    }

    /// Returns the error if it is an [obstacle](is_obstacle).
    fn obstacle(&self) -> Option<&'static str> {
        let error = self.error.as_deref()?;
        OBSTACLES.into_iter().find(|obstacle| *obstacle == error)
    }
}

/// Returns whether the error means that the server served something else in place of the page.
#[must_use]
pub fn is_obstacle(error: &str) -> bool {
    OBSTACLES.contains(&error)
}

/// Returns the outcome of a page with a 2xx status. `filter` is the value of `unwanted` in its row:
/// the content filter that rejected the page.
fn unwanted(filter: &str) -> &'static str {
    match filter.split(' ').next().unwrap_or_default() {
        "content-type" => "unwanted_type",
        "language" => "unwanted_language",
        _ => "unwanted_size",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{PAGE_OUTCOMES, PageRow};

    fn row(columns: Value) -> PageRow {
        let mut row = json!({
            "url": "http://a.example/", "status": 200, "change": "new", "error": null, "ms": 1,
            "bytes": 2, "fetched_at": "2026-11-20T23:59:59.123456Z", "content_type": null,
            "digest": null, "depth": 0, "via": null, "title": null, "robots": null, "usage": null,
            "warc": null, "withheld": null,
        });
        for (key, value) in columns.as_object().unwrap() {
            row[key] = value.clone();
        }
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn each_page_has_one_of_the_outcomes() {
        let target = "http://a.example/x";
        let rows = [
            json!({}),
            json!({"error": "short_body"}),
            json!({"unwanted": "content-type image/png"}),
            json!({"unwanted": "language fr"}),
            json!({"unwanted": "max-size 1000"}),
            json!({"status": 304, "change": "same"}),
            json!({"status": 300}),
            json!({"status": 301, "redirect": target, "error": "redirect_loop"}),
            json!({"status": 302, "redirect": target, "error": "too_many_redirects"}),
            json!({"status": 303, "error": "redirect_malformed"}),
            json!({"status": 302, "error": "redirect_scheme"}),
            json!({"status": 307}),
            json!({"status": 404}),
            json!({"status": 503}),
            json!({"error": "login_page"}),
            json!({"status": 403, "error": "challenge"}),
            json!({"error": "block_page"}),
            json!({"status": null, "error": "timeout"}),
            json!({"status": 304}),
        ];
        assert_eq!(rows.map(|columns| row(columns).outcome()), PAGE_OUTCOMES);
    }

    #[test]
    fn a_body_that_the_crawl_cut_or_did_not_request_counts_as_fetched() {
        for columns in [
            json!({"error": "body_truncated"}),
            json!({"unwanted": "off-scope-method head"}),
        ] {
            assert_eq!(row(columns).outcome(), "ok");
        }
    }
}

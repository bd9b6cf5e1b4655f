//! The crawl that a report is about: its site, when the site was crawled, and how completely.

use std::collections::BTreeMap;
use std::path::Path;

use crawl_archive::rows::PendingOriginRow;
use crawl_weburl::{canonicalize, safe_line};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use crate::broken_links::LatestRows;
use crate::error::RecordsError;
use crate::number_format::{counted, grouped};
use crate::report::CrawlSettings;
use crate::row_file_reader::{pages, waiting};
use crate::self_contained_report_page::{SiteOrigin, link};

/// The crawl that a report is about.
///
/// Field names are stable; later versions of the program may add fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedCrawlSummary {
    /// The origin (scheme, host and port) with the most visited URLs in scope. `None` without such
    /// URLs.
    pub site: Option<String>,
    /// The first seed, as the user gave it.
    pub seed: Option<String>,
    /// Number of seeds.
    pub seeds: u64,
    /// The version of the program that made the last run.
    pub version: Option<String>,
    /// When the first URL was visited, in RFC 3339.
    pub first_visit: Option<String>,
    /// When the last URL was visited, in RFC 3339.
    pub last_visit: Option<String>,
    /// Number of visited URLs.
    pub visited: u64,
    /// Number of known URLs that are not visited yet. The URLs of an unreachable origin count only
    /// if the crawl visited pages in scope on this origin. Otherwise they count as `unreachable`.
    pub pending: u64,
    /// Number of known URLs that are not visited because the crawl can't reach their origin or has
    /// to wait for it, and that are not in `pending`. The links to these URLs are reported as
    /// faults or as not checked.
    pub unreachable: u64,
    /// Whether the last run has ended.
    pub has_ended: bool,
}

impl ReportedCrawlSummary {
    /// Reads `pages.jsonl`, `waiting.jsonl` and the settings of the crawl in `dir`.
    ///
    /// # Errors
    /// [`RecordsError::NoCrawl`] if `dir` has no crawl; [`RecordsError::Row`] for a malformed
    /// row of `pages.jsonl`; file system errors.
    pub(crate) fn read(
        dir: &Path,
        latest: &LatestRows,
    ) -> Result<ReportedCrawlSummary, RecordsError> {
        let settings = CrawlSettings::read(dir)?;
        let mut crawl = ReportedCrawlSummary {
            seed: settings.seeds.first().cloned(),
            seeds: settings.seeds.len() as u64,
            version: settings.version,
            visited: latest.urls(),
            ..ReportedCrawlSummary::default()
        };
        let (mut visits, mut origins) = (None, BTreeMap::new());
        let mut rows = pages(dir)?;
        while let Some(row) = rows.next() {
            let row = row?;
            let (first, last) = visits.unwrap_or((row.fetched_at, row.fetched_at));
            visits = Some((first.min(row.fetched_at), last.max(row.fetched_at)));
            if latest.is_last(&row, rows.line())
                && row.hops_off_scope == 0
                && let Ok(url) = canonicalize(None, &row.url)
            {
                match origins.get_mut(url.origin_text()) {
                    Some(urls) => *urls += 1,
                    None => {
                        origins.insert(url.origin_text().to_owned(), 1_u64);
                    }
                }
            }
        }
        let mut rows = waiting(dir)?;
        while let Some(row) = rows.next_sound() {
            let row = row?;
            match &row.origin {
                Some(origin)
                    if unreachable_origin(&row).is_none() || origins.contains_key(origin) =>
                {
                    crawl.pending += row.urls;
                }
                Some(_) => crawl.unreachable += row.urls,
                // A row without an origin is about the whole crawl, and shows that the run has
                // ended.
                None => crawl.has_ended = true,
            }
        }
        let largest = origins.into_iter().rev().max_by_key(|(_, urls)| *urls);
        crawl.site = largest.map(|(origin, _)| origin);
        crawl.first_visit = visits.map(|(first, _)| first.rfc3339_millis());
        crawl.last_visit = visits.map(|(_, last)| last.rfc3339_millis());
        Ok(crawl)
    }

    /// Returns the site of the crawl. Reports show its URLs as paths.
    pub(crate) fn origin(&self) -> SiteOrigin {
        SiteOrigin::of(self.site.as_deref())
    }

    /// Returns the site's host and port for a heading. Without a site, returns the seed.
    pub(crate) fn host(&self) -> String {
        match (self.origin().host(), &self.seed) {
            (Some(host), _) => safe_line(host).into_owned(),
            (None, Some(seed)) => safe_line(seed).into_owned(),
            (None, None) => "an empty crawl".to_owned(),
        }
    }

    /// Describes how many URLs were visited: `60 URLs visited, 44 of them HTML pages of the site`.
    /// Visited pages of other sites are not in `html_pages`.
    pub(crate) fn visited_words(visited: u64, html_pages: u64) -> String {
        let pages = match html_pages {
            1 => "an HTML page of the site",
            _ => "HTML pages of the site",
        };
        format!(
            "{} visited, {} of them {pages}",
            counted(visited, "URL", "URLs"),
            grouped(html_pages),
        )
    }

    /// Describes when the crawl visited the site: `2026-11-28 06:10 to 06:12 UTC`.
    pub(crate) fn time_words(&self) -> Option<String> {
        let minutes = |time: &str| Some(time.get(..16)?.replace('T', " "));
        let first = minutes(self.first_visit.as_deref()?)?;
        let last = minutes(self.last_visit.as_deref()?)?;
        Some(match last.strip_prefix(&first[..11]) {
            _ if first == last => format!("{first} UTC"),
            Some(time) => format!("{first} to {time} UTC"),
            None => format!("{first} to {last} UTC"),
        })
    }

    /// Describes how complete the crawl is.
    pub(crate) fn completeness_words(&self) -> String {
        let urls = counted(self.pending, "known URL was", "known URLs were");
        let unreachable = counted(self.unreachable, "URL on a host", "URLs on hosts");
        match (self.has_ended, self.pending, self.unreachable) {
            (true, 0, 0) => "Complete: no known URL is left to visit".to_owned(),
            (true, 0, _) => format!(
                "All known URLs were visited, except {unreachable} that the crawl could not reach \
                 or had to wait for"
            ),
            (true, ..) => format!("Incomplete: {urls} not visited, so there may be more to fix"),
            (false, ..) => "Incomplete: the crawl is running or was interrupted".to_owned(),
        }
    }

    /// Renders when the crawl visited the site, from which seed, how completely, and by which
    /// version of the program.
    pub(crate) fn note(&self) -> Markup {
        let others = self.seeds.saturating_sub(1);
        html! {
            p.soft {
                @if let Some(times) = self.time_words() { "Crawled " (times) }
                @else { "Crawled" }
                @if let Some(seed) = &self.seed {
                    " from " (link(seed))
                    @if others > 0 { " and " (counted(others, "other seed", "other seeds")) }
                }
                @if let Some(version) = &self.version { " by crawl " (safe_line(version)) }
                ". " (self.completeness_words()) "."
            }
        }
    }
}

/// Returns the origin in a row of `waiting.jsonl` and the reason why its URLs wait, if they can't
/// be fetched until the host responds. `None` for other rows.
pub(crate) fn unreachable_origin(row: &PendingOriginRow) -> Option<(&str, &str)> {
    match (row.reason.as_str(), &row.origin, &row.detail) {
        ("robots" | "unreachable", Some(origin), Some(why)) => Some((origin, why)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::ReportedCrawlSummary;
    use crate::broken_links::LatestRows;
    use crate::test_crawl_builder::TestCrawlBuilder;

    fn read(rows: &[(&str, &str)], waiting: &[serde_json::Value]) -> ReportedCrawlSummary {
        let mut made = TestCrawlBuilder::new();
        for (url, time) in rows {
            made.row(url, &json!({"status": 200, "fetched_at": time}));
        }
        let dir = made.finish();
        let toml =
            "seed = [\"http://e.example/\", \"http://f.example/\"]\n[crawl]\nversion = \"0.1.0\"\n";
        fs::write(dir.path().join("crawl.toml"), toml).unwrap();
        let waiting: String = waiting.iter().map(|row| format!("{row}\n")).collect();
        fs::write(dir.path().join("waiting.jsonl"), waiting).unwrap();
        let latest = LatestRows::read(dir.path()).unwrap();
        ReportedCrawlSummary::read(dir.path(), &latest).unwrap()
    }

    #[test]
    fn the_site_is_the_origin_with_the_most_urls() {
        let end = json!({"origin": null, "urls": 0, "reason": "finished", "detail": null});
        let rows = [
            ("http://e.example/", "2026-11-20T23:59:59.123Z"),
            ("https://www.e.example/a", "2026-11-21T00:01:00.000Z"),
            ("https://www.e.example/b", "2026-11-20T23:58:00.000Z"),
        ];
        let crawl = read(&rows, &[end]);
        assert_eq!(crawl.site.as_deref(), Some("https://www.e.example"));
        assert_eq!(
            (crawl.host(), crawl.visited),
            ("www.e.example".to_owned(), 3)
        );
        assert_eq!(
            crawl.time_words().unwrap(),
            "2026-11-20 23:58 to 2026-11-21 00:01 UTC"
        );
        let note = crawl.note().into_string();
        assert!(
            note.contains("from <a href=\"http://e.example/\""),
            "{note}"
        );
        assert!(
            note.ends_with(
                "and 1 other seed by crawl 0.1.0. Complete: no known URL is left to visit.</p>"
            ),
            "{note}"
        );
    }

    #[test]
    fn a_crawl_is_incomplete_while_urls_are_pending_or_it_runs() {
        let row = [("http://e.example/", "2026-11-20T23:59:59.123Z")];
        assert!(!read(&row, &[]).has_ended);
        let waits = [
            json!({"origin": null, "urls": 9, "reason": "budget", "detail": "max-pages"}),
            json!({"origin": "http://e.example", "urls": 7, "reason": "budget", "detail": "max-pages"}),
            json!({"origin": "http://dead.example", "urls": 2, "reason": "unreachable", "detail": "connect_refused"}),
        ];
        let crawl = read(&row, &waits);
        assert_eq!((crawl.pending, crawl.unreachable), (7, 2));
        assert!(crawl.has_ended);
        assert_eq!(
            crawl.completeness_words(),
            "Incomplete: 7 known URLs were not visited, so there may be more to fix"
        );
        assert_eq!(crawl.time_words().unwrap(), "2026-11-20 23:59 UTC");
    }

    #[test]
    fn a_crawl_is_not_complete_while_urls_of_other_origins_are_pending() {
        let rows = [("http://e.example/", "2026-11-20T23:59:59.123Z")];
        let end = json!({"origin": null, "urls": 4, "reason": "unreachable", "detail": null});
        let busy = |status: u16, urls: u64| {
            json!({"origin": format!("http://busy{status}.example"), "urls": urls,
                "reason": "robots", "detail": format!("robots.txt answered {status}")})
        };
        let crawl = read(&rows, &[end.clone(), busy(429, 3), busy(503, 1)]);
        assert_eq!((crawl.pending, crawl.unreachable), (0, 4));
        assert_eq!(
            crawl.completeness_words(),
            "All known URLs were visited, except 4 URLs on hosts that the crawl could not reach or \
             had to wait for"
        );
        let crawl = read(&rows, &[end, busy(503, 1)]);
        let note = crawl.note().into_string();
        assert!(
            note.contains("except 1 URL on a host that the crawl could not"),
            "{note}"
        );
    }
}

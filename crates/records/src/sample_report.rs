//! The sample of a crawl, and estimates for the pages that were not fetched.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use crawl_archive::rows::PageRow;
use crawl_sample::{InclusionProbability, IntervalEstimate, SubsetEstimator};
use serde::{Deserialize, Serialize};

use crate::error::RecordsError;
use crate::number_format::{counted, grouped, size};
use crate::row_file_reader::pages;

/// Maximum number of content types counted separately. Further types count as `other`. The number
/// must be bounded, because servers choose the types.
const MAX_TYPES: usize = 100;
/// Maximum number of redirects to follow from a URL.
const MAX_REDIRECTS: usize = 20;
/// The key in counts for pages without a content type, or without a status.
const NO_TYPE: &str = "none";
const OTHER_TYPES: &str = "other";

/// A sample, and estimates for the frame (the set of URLs that could be drawn).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleReport {
    /// Number of URLs that could be drawn. Pages read to build the frame don't count.
    pub frame: u64,
    /// Number of URLs that were drawn.
    pub drawn: u64,
    /// Number of strata with at least one row.
    #[serde(default)]
    pub strata: u64,
    /// Number of drawn URLs without a row, because they were excluded later or are not fetched yet.
    pub without_row: u64,
    /// Number of drawn URLs that redirect to a URL without a row.
    #[serde(skip)]
    pub(crate) without_target: u64,
    /// Number of pages read to build the frame. Each such page represents only itself, because it
    /// was not drawn.
    pub certain: u64,
    /// The estimates. `None` if no URL is drawn yet, or some drawn URLs are still waiting.
    pub estimates: Option<SampleEstimates>,
}

/// Estimates for all URLs of the frame, together with the pages that were read to build the frame.
/// Each estimate has a 95 % interval. If the last response of a URL was a 304, the URL counts with
/// the response that the 304 confirmed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleEstimates {
    /// The share of URLs that lead to a page, possibly by redirects. A page is a readable response
    /// with a status from 200 to 299.
    pub answered: Option<IntervalEstimate>,
    /// The share of URLs with each status. If a URL redirects, its own status counts, not that of
    /// the target. The key is `none` if there was no response.
    pub statuses: BTreeMap<String, IntervalEstimate>,
    /// The share of each content type among URLs that lead to a page.
    pub types: BTreeMap<String, IntervalEstimate>,
    /// The mean body length of the pages, in bytes as received. `None` if there is no page.
    pub mean_bytes: Option<IntervalEstimate>,
    /// The total body length of the pages, in bytes as received.
    pub total_bytes: Option<IntervalEstimate>,
}

/// Reads the sample of the crawl in `dir`; `None` if it drew none.
///
/// # Errors
/// The errors of [`pages`], and the first malformed line.
pub fn sample(dir: &Path) -> Result<Option<SampleReport>, RecordsError> {
    let mut rows = LastSampledRows::default();
    for row in pages(dir)? {
        rows.add(&row?);
    }
    Ok(rows.report())
}

/// The last row of each sampled URL. Takes about 150 bytes per URL.
#[derive(Debug, Default)]
pub(crate) struct LastSampledRows {
    /// The pages by key of their URL. Ordered, so that floating-point sums are reproducible.
    by_url: BTreeMap<u64, SampledPage>,
    /// Each stratum: its name, the number of pages drawn from it, and the number of pages in it.
    strata: Vec<(String, u64, u64)>,
    stratum_numbers: HashMap<String, usize>,
    types: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct SampledPage {
    role: SampleRole,
    /// The last response. If that was a 304, the last page or redirect, which the 304 confirms.
    last: SampledResponse,
    /// The last response that was a page or a redirect. `None` if there was none.
    full: Option<SampledResponse>,
}

#[derive(Clone, Copy, Debug)]
struct SampledResponse {
    status: Option<u16>,
    is_failed: bool,
    /// Index in [`LastSampledRows::types`].
    content_type: usize,
    bytes: u64,
    redirect: Option<u64>,
}

/// The role of a page in the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleRole {
    Certain,
    /// The page was drawn in the stratum with this index.
    Drawn(usize),
    /// The page was not drawn, but a page of the sample redirects to it.
    Target,
    /// A random walker visited the page, so it is not part of a drawn sample.
    Walked,
}

impl SampledResponse {
    /// Returns whether the response is one that a later 304 may confirm: a page or a redirect.
    fn is_full(&self) -> bool {
        !self.is_failed && matches!(self.status, Some(200..=303 | 305..=399))
    }

    fn status_name(&self) -> String {
        self.status
            .map_or(NO_TYPE.to_owned(), |status| status.to_string())
    }
}

impl LastSampledRows {
    /// Adds the next row.
    pub(crate) fn add(&mut self, row: &PageRow) {
        let Some(sample) = &row.sample else {
            return;
        };
        let role = match (&sample.stratum, sample.drawn, sample.of, sample.probability) {
            // If `drawn` is 0 or exceeds `of`, the row is damaged, because no draw produces such
            // numbers. A damaged row doesn't count as drawn.
            (Some(stratum), Some(drawn), Some(of), _) if 0 < drawn && drawn <= of => {
                SampleRole::Drawn(self.stratum(stratum, drawn, of))
            }
            (_, _, _, Some(1.0)) => SampleRole::Certain,
            _ if sample.how == "walk" => SampleRole::Walked,
            _ => SampleRole::Target,
        };
        let response = SampledResponse {
            status: row.status,
            is_failed: row.is_failed(),
            content_type: self.content_type(row.content_type.as_deref()),
            bytes: row.bytes,
            redirect: row.redirect.as_deref().map(key),
        };
        let key = key(&row.url);
        let before = self.by_url.get(&key).and_then(|page| page.full);
        let full = Some(response).filter(SampledResponse::is_full).or(before);
        let last = match (row.status, full) {
            (Some(304), Some(full)) if !response.is_failed => full,
            _ => response,
        };
        self.by_url.insert(key, SampledPage { role, last, full });
    }

    fn stratum(&mut self, name: &str, drawn: u64, of: u64) -> usize {
        if let Some(number) = self.stratum_numbers.get(name) {
            return *number;
        }
        self.strata.push((name.to_owned(), drawn, of));
        let number = self.strata.len() - 1;
        self.stratum_numbers.insert(name.to_owned(), number);
        number
    }

    fn content_type(&mut self, value: Option<&str>) -> usize {
        let kind = value.and_then(|value| value.split(';').next());
        let kind = kind.map(|kind| kind.trim().to_ascii_lowercase());
        let kind = kind.unwrap_or_else(|| NO_TYPE.to_owned());
        let is_full = self.types.len() >= MAX_TYPES;
        let find = |types: &[String], kind: &str| types.iter().position(|known| known == kind);
        let kind = match find(&self.types, &kind) {
            Some(number) => return number,
            None if is_full => OTHER_TYPES.to_owned(),
            None => kind,
        };
        find(&self.types, &kind).unwrap_or_else(|| {
            self.types.push(kind);
            self.types.len() - 1
        })
    }

    /// Returns the sample and its estimates; `None` if no row belongs to a sample.
    pub(crate) fn report(&self) -> Option<SampleReport> {
        let is_drawn = |page: &SampledPage| page.role != SampleRole::Walked;
        if !self.by_url.values().any(is_drawn) {
            return None;
        }
        let units = self.by_url.values();
        let certain = units
            .filter(|page| page.role == SampleRole::Certain)
            .count() as u64;
        let sum = |sum: u64, pages: u64| sum.saturating_add(pages);
        let drawn = self.strata.iter().map(|(_, drawn, _)| *drawn).fold(0, sum);
        let is_drawn = |page: &&SampledPage| matches!(page.role, SampleRole::Drawn(_));
        let rows = self.by_url.values().filter(is_drawn).count() as u64;
        let frame = self.strata.iter().map(|(_, _, of)| *of).fold(0, sum);
        Some(SampleReport {
            frame,
            drawn,
            strata: self.strata.len() as u64,
            without_row: drawn.saturating_sub(rows),
            without_target: self
                .by_url
                .values()
                .filter(is_drawn)
                .filter(|page| self.end_of(page).is_none())
                .count() as u64,
            certain,
            estimates: (drawn > 0).then(|| self.estimates()),
        })
    }

    fn estimates(&self) -> SampleEstimates {
        let mut answered = SubsetEstimator::default();
        // `every` has the weights of all URLs, and `kind` those of the URLs that lead to a page.
        let (mut every, mut kind) = (SubsetEstimator::default(), SubsetEstimator::default());
        let mut bytes = SubsetEstimator::default();
        let mut statuses: BTreeMap<String, Vec<InclusionProbability<'_>>> = BTreeMap::new();
        let mut types: BTreeMap<String, Vec<InclusionProbability<'_>>> = BTreeMap::new();
        for page in self.by_url.values() {
            let Some(probability) = self.probability(page.role) else {
                continue;
            };
            statuses
                .entry(page.last.status_name())
                .or_default()
                .push(probability);
            every.add(probability, 0.0, 1.0);
            match self.come_to(page) {
                Some(found) => {
                    answered.add(probability, 1.0, 1.0);
                    kind.add(probability, 0.0, 1.0);
                    bytes.add(probability, found.bytes as f64, 1.0);
                    let name = self.types[found.content_type].clone();
                    types.entry(name).or_default().push(probability);
                }
                None => {
                    answered.add(probability, 0.0, 1.0);
                    bytes.add(probability, 0.0, 0.0);
                }
            }
        }
        let shares = |of: &SubsetEstimator,
                      parts: BTreeMap<String, Vec<InclusionProbability<'_>>>| {
            let share = |(name, pages): (String, Vec<InclusionProbability<'_>>)| {
                let mut part = of.clone();
                for probability in pages {
                    part.mark(probability);
                }
                Some((name, part.share()?))
            };
            parts.into_iter().filter_map(share).collect()
        };
        SampleEstimates {
            answered: answered.share(),
            statuses: shares(&every, statuses),
            types: shares(&kind, types),
            mean_bytes: bytes.mean(),
            total_bytes: Some(bytes.total()),
        }
    }

    fn probability(&self, role: SampleRole) -> Option<InclusionProbability<'_>> {
        match role {
            SampleRole::Target | SampleRole::Walked => None,
            SampleRole::Certain => Some(InclusionProbability::Certain),
            SampleRole::Drawn(number) => {
                let (stratum, drawn, of) = self.strata.get(number)?;
                let (drawn, of) = (*drawn, *of);
                Some(InclusionProbability::Drawn { stratum, drawn, of })
            }
        }
    }

    /// Returns whether a URL has a row.
    pub(crate) fn knows(&self, url: &str) -> bool {
        self.by_url.contains_key(&key(url))
    }

    /// Returns the status of a URL as a report shows it, and the content type of the page that the
    /// URL leads to. The type is `None` if the URL leads to no page.
    pub(crate) fn answer_of(&self, url: &str) -> (String, Option<String>) {
        let Some(page) = self.by_url.get(&key(url)) else {
            return ("excluded".to_owned(), None);
        };
        let kind = self.come_to(page).map(|page| page.content_type);
        let kind = kind.and_then(|number| self.types.get(number)).cloned();
        (page.last.status_name(), kind)
    }

    /// Follows redirects from a URL. Returns the last response. `None` if a target has no row.
    fn end_of<'a>(&'a self, page: &'a SampledPage) -> Option<&'a SampledResponse> {
        let mut response = &page.last;
        for _ in 0..=MAX_REDIRECTS {
            match response.redirect {
                Some(target) => response = &self.by_url.get(&target)?.last,
                None => break,
            }
        }
        Some(response)
    }

    /// Follows redirects from a URL to a page. Returns `None` if they don't lead to a readable page
    /// with a status from 200 to 299.
    fn come_to<'a>(&'a self, page: &'a SampledPage) -> Option<&'a SampledResponse> {
        let response = self.end_of(page)?;
        let is_page = !response.is_failed && matches!(response.status, Some(200..=299));
        is_page.then_some(response)
    }
}

fn key(url: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    url.hash(&mut hash);
    hash.finish()
}

/// Formats a share with its interval, in percent: `12.3 % (10.1 to 14.5)`.
pub(crate) fn share_words(share: &IntervalEstimate) -> String {
    let [value, low, high] = [share.value, share.low, share.high].map(|share| 100.0 * share);
    format!("{value:.1} % ({low:.1} to {high:.1})")
}

/// Formats a length in bytes with its interval, if that is known.
pub(crate) fn length_words(length: &IntervalEstimate) -> String {
    let text = [length.value, length.low, length.high].map(|bytes| size(bytes.max(0.0) as u64));
    if !length.is_bounded() {
        return format!("{} (no interval)", text[0]);
    }
    format!("{} ({} to {})", text[0], text[1], text[2])
}

/// Formats the sample as part of the report.
impl fmt::Display for SampleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (drawn, frame) = (grouped(self.drawn), counted(self.frame, "URL", "URLs"));
        writeln!(f, "sample    {drawn} drawn from {frame}")?;
        if self.certain > 0 {
            let pages = counted(self.certain, "page", "pages");
            writeln!(f, "  {pages} read to find them")?;
        }
        if self.without_row > 0 {
            writeln!(f, "  drawn without a row: {}", grouped(self.without_row))?;
        }
        let Some(estimates) = &self.estimates else {
            return match self.drawn {
                0 => writeln!(f, "  no estimates: no drawn page has a row"),
                _ => writeln!(f, "  no estimates: drawn pages are still waiting"),
            };
        };
        writeln!(f, "  shares of all URLs, with 95 % intervals:")?;
        if let Some(answered) = &estimates.answered {
            writeln!(f, "    return a page: {}", share_words(answered))?;
        }
        for (status, share) in &estimates.statuses {
            writeln!(f, "    status {status}: {}", share_words(share))?;
        }
        if let (Some(mean), Some(total)) = (&estimates.mean_bytes, &estimates.total_bytes) {
            writeln!(f, "  of the pages:")?;
            for (kind, share) in &estimates.types {
                let kind = crawl_weburl::safe_line(kind);
                writeln!(f, "    type {kind}: {}", share_words(share))?;
            }
            writeln!(f, "    bytes per page: {}", length_words(mean))?;
            writeln!(f, "    bytes in total: {}", length_words(total))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crawl_archive::rows::PageRow;
    use expect_test::expect;
    use serde_json::{Value, json};

    use super::{LastSampledRows, SampleReport};

    fn row(url: &str, sample: Value, more: Value) -> PageRow {
        let mut row = json!({"url": url, "status": 200, "fetched_at": "2026-11-20T23:59:59.123Z",
            "ms": 1, "bytes": 1000, "content_type": "text/html; charset=utf-8", "digest": null,
            "depth": 1, "via": null, "title": null, "robots": null, "usage": null, "warc": null,
            "withheld": null, "error": null, "sample": sample});
        let fields = row.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        serde_json::from_value(row).unwrap()
    }

    fn drawn(stratum: &str, drawn: u64, of: u64) -> Value {
        json!({"how": "drawn", "stratum": stratum, "drawn": drawn, "of": of,
            "probability": drawn as f64 / of as f64})
    }

    /// Eight pages were drawn: one returns 404, one is a PDF, two redirect to a page that was not
    /// drawn, and one has no row.
    #[test]
    fn a_sample_gives_estimates_for_its_frame() {
        let mut rows = LastSampledRows::default();
        let none = || json!({});
        rows.add(&row(
            "http://a.example/",
            json!({"how": "frame", "stratum": null, "drawn": null,
            "of": null, "probability": 1.0}),
            none(),
        ));
        let target = "http://a.example/target";
        rows.add(&row(
            target,
            json!({"how": "redirect", "stratum": null, "drawn": null, "of": null,
            "probability": null}),
            json!({"bytes": 4000}),
        ));
        let moved = || json!({"status": 301, "redirect": target, "bytes": 0});
        let more = [
            none(),
            none(),
            moved(),
            moved(),
            json!({"status": 404}),
            json!({"content_type": "application/pdf", "bytes": 6000}),
            none(),
        ];
        for (number, more) in more.into_iter().enumerate() {
            let url = format!("http://a.example/{number}");
            // A row of an earlier round is ignored.
            rows.add(&row(
                &url,
                drawn("a.example", 8, 80),
                json!({"status": 500}),
            ));
            rows.add(&row(&url, drawn("a.example", 8, 80), more));
        }
        expect![[r#"
            sample    8 drawn from 80 URLs
              1 page read to find them
              drawn without a row: 1
              shares of all URLs, with 95 % intervals:
                return a page: 85.9 % (41.6 to 98.1)
                status 200: 57.7 % (21.2 to 87.4)
                status 301: 28.2 % (6.3 to 69.5)
                status 404: 14.1 % (1.9 to 58.4)
              of the pages:
                type application/pdf: 16.4 % (2.2 to 63.2)
                type text/html: 83.6 % (36.8 to 97.8)
                bytes per page: 2.8 kB (924 B to 4.6 kB)
                bytes in total: 171 kB (29.3 kB to 312 kB)
        "#]]
        .assert_eq(&rows.report().unwrap().to_string());
        assert!(LastSampledRows::default().report().is_none());
    }

    #[test]
    fn an_unchanged_page_counts_as_in_its_last_full_visit() {
        let mut rows = LastSampledRows::default();
        let visits = [
            json!({"content_type": "application/pdf", "bytes": 6000}),
            json!({"status": 503}),
            json!({"status": 304, "content_type": null, "bytes": 0}),
        ];
        for number in 0..4 {
            let url = format!("http://a.example/{number}");
            for visit in &visits {
                rows.add(&row(&url, drawn("a.example", 4, 40), visit.clone()));
            }
        }
        expect![[r#"
            sample    4 drawn from 40 URLs
              shares of all URLs, with 95 % intervals:
                return a page: 100.0 % (30.6 to 100.0)
                status 200: 100.0 % (30.6 to 100.0)
              of the pages:
                type application/pdf: 100.0 % (30.6 to 100.0)
                bytes per page: 6.0 kB (no interval)
                bytes in total: 240 kB (no interval)
        "#]]
        .assert_eq(&rows.report().unwrap().to_string());
        let pdf = Some("application/pdf".to_owned());
        assert_eq!(
            rows.answer_of("http://a.example/0"),
            ("200".to_owned(), pdf)
        );
    }

    fn certain() -> Value {
        json!({"how": "frame", "stratum": null, "drawn": null, "of": null, "probability": 1.0})
    }

    #[test]
    fn nothing_is_estimated_before_the_draw() {
        let mut rows = LastSampledRows::default();
        rows.add(&row("http://a.example/", certain(), json!({})));
        // No draw produces these numbers, so the rows must be damaged.
        for (number, (drawn, of)) in [(0, 4), (u64::MAX, 1)].into_iter().enumerate() {
            let sample = json!({"how": "drawn", "stratum": "a.example", "drawn": drawn, "of": of,
                "probability": 0.5});
            rows.add(&row(
                &format!("http://a.example/{number}"),
                sample,
                json!({}),
            ));
        }
        expect![[r#"
            sample    0 drawn from 0 URLs
              1 page read to find them
              no estimates: no drawn page has a row
        "#]]
        .assert_eq(&rows.report().unwrap().to_string());
    }

    /// One page read to build the frame returns 404, and all drawn pages are alike. So shares have
    /// an interval, but lengths have none. In JSON, a missing interval is null.
    #[test]
    fn pages_that_are_alike_give_lengths_without_an_interval() {
        let mut rows = LastSampledRows::default();
        let missing_page = json!({"status": 404});
        rows.add(&row("http://a.example/", certain(), json!({})));
        rows.add(&row("http://a.example/gone", certain(), missing_page));
        for number in 0..10 {
            let url = format!("http://a.example/{number}");
            rows.add(&row(&url, drawn("a.example", 10, 496), json!({})));
        }
        let report = rows.report().unwrap();
        expect![[r#"
            sample    10 drawn from 496 URLs
              2 pages read to find them
              shares of all URLs, with 95 % intervals:
                return a page: 99.8 % (66.4 to 100.0)
                status 200: 99.8 % (66.4 to 100.0)
                status 404: 0.2 % (0.0 to 33.6)
              of the pages:
                type text/html: 100.0 % (66.6 to 100.0)
                bytes per page: 1.0 kB (no interval)
                bytes in total: 497 kB (no interval)
        "#]]
        .assert_eq(&report.to_string());
        let json = serde_json::to_string(&report).unwrap();
        assert!(json.contains(r#""low":null,"high":null"#), "{json}");
        let read: SampleReport = serde_json::from_str(&json).unwrap();
        let total = read.estimates.unwrap().total_bytes.unwrap();
        assert_eq!((total.low, total.high), (f64::NEG_INFINITY, f64::INFINITY));
    }
}

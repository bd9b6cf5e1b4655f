//! A site report for owners: titles and descriptions, distances from the start, slow and large
//! pages, redirect chains, and linked pages that robots.txt excludes.

mod element_problems;
mod html;
mod page_resources;
mod page_statistics;
mod text;
mod title_and_heading_collector;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::Path;

use crawl_archive::rows::PageRow;
use crawl_extractor::{DecodedPage, LinkKind, ReadingLimits, read_text};
use crawl_weburl::{CanonicalUrl, Site, canonicalize};
use serde::{Deserialize, Serialize};

use crate::broken_links::{ArchivedPageReader, LatestRows};
use crate::error::RecordsError;
use crate::link_spelling_rules::LinkSpellingRules;
use crate::recognize_directory::{holds_any, seeds_of, stored_settings};
use crate::reported_crawl::ReportedCrawlSummary;
use crate::round_row_filter::ExclusionsInForce;
use crate::row_file_reader::{pages, round_of_last_run};
use element_problems::ElementProblemCollector;
pub use element_problems::{ImageOccurrences, LinkedNoindexPage, VagueLinkText};
use page_resources::PageResourceCollector;
pub use page_resources::PageResourceStatistics;
pub use page_statistics::PageWithMeasurement;
pub(crate) use page_statistics::{COMPRESSED_FROM, LARGE_FROM, SLOW_FROM};
use page_statistics::{SIZE_BINS, TIME_BINS, bin, count_from, extremes};
pub(crate) use text::times_median;
use title_and_heading_collector::TitleAndHeadingCollector;

/// Default for [`SiteReport::max_clicks`].
pub const MAX_CLICKS: u32 = 4;
/// Maximum number of consecutive redirects to follow.
const MAX_CHAIN: usize = 256;
/// Maximum number of linking pages listed for an excluded URL or a page with `noindex`.
const MAX_LINKING_PAGES: usize = 5;

/// Notable findings in the pages of a crawl that are in scope, as of the last row of each URL.
///
/// Field names are stable; later versions of the program may add fields. Lists are in URL order
/// unless stated otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteReport {
    /// Version of this format: 1.
    pub format: u32,
    /// The last round of the crawl, starting at 1.
    pub round: u32,
    /// Facts about the crawl that the report is based on.
    #[serde(default)]
    pub crawl: ReportedCrawlSummary,
    /// Number of HTML pages in scope with a status from 200 to 299.
    pub pages: u64,
    /// Number of pages whose body is not archived. Only their time and size are known.
    pub unread: u64,
    /// Pages without a title.
    pub without_title: Vec<String>,
    /// Titles that several pages share.
    pub double_titles: Vec<SharedText>,
    /// Pages without `meta name=description`.
    pub without_description: Vec<String>,
    /// Descriptions that several pages share.
    pub double_descriptions: Vec<SharedText>,
    /// Pages without a non-empty `h1`.
    #[serde(default)]
    pub without_heading: Vec<String>,
    /// First `h1` headings that several pages share.
    #[serde(default)]
    pub double_headings: Vec<SharedText>,
    /// Number of visible images in all pages.
    #[serde(default)]
    pub images: u64,
    /// Pages with images that have no alternative text. Pages with the most such images come first.
    #[serde(default)]
    pub without_alt: Vec<PageWithoutAltTexts>,
    /// The images without alternative text, those on the most pages first.
    #[serde(default)]
    pub images_without_alt: Vec<ImageOccurrences>,
    /// The images without a width and a height, those on the most pages first. A style sheet may
    /// still give them a size.
    #[serde(default)]
    pub images_without_size: Vec<ImageOccurrences>,
    /// Pages without `meta name=viewport`.
    #[serde(default)]
    pub without_viewport: Vec<String>,
    /// Pages sent without a content coding, although they are long enough to benefit from one.
    #[serde(default)]
    pub uncompressed: Vec<String>,
    /// Pages whose `html` element has no `lang`.
    #[serde(default)]
    pub without_language: Vec<String>,
    /// English link texts that don't describe where the link leads. The texts of the most links
    /// come first.
    #[serde(default)]
    pub vague_links: Vec<VagueLinkText>,
    /// Pages with `noindex` that other pages link to.
    #[serde(default)]
    pub noindex: Vec<LinkedNoindexPage>,
    /// Pages, other than seeds, that are in a sitemap or a feed but linked from no page.
    pub orphans: Vec<String>,
    /// Number of pages by their distance from a seed, in clicks. Pages that no chain of links
    /// reaches are not counted.
    pub clicks: Vec<u64>,
    /// The number of clicks from a seed above which a page counts as deep.
    pub max_clicks: u32,
    /// Pages more than `max_clicks` clicks away from all seeds, the most distant first.
    pub deep: Vec<PageWithMeasurement>,
    /// The slowest pages, in milliseconds from request to end of response.
    pub slow: Vec<PageWithMeasurement>,
    /// The median of the pages' times, in milliseconds. `None` if there are no pages.
    #[serde(default)]
    pub median_ms: Option<u64>,
    /// The largest pages, in bytes as received.
    pub large: Vec<PageWithMeasurement>,
    /// The median of the pages' sizes, in bytes. `None` if there are no pages.
    #[serde(default)]
    pub median_bytes: Option<u64>,
    /// Number of pages by time: below 100, 200, 500, 1,000, 2,000, 5,000 ms, and above.
    pub times: Vec<u64>,
    /// Number of pages by size: below 10, 50, 100, 500, 1,000, 5,000 kB, and above.
    pub sizes: Vec<u64>,
    /// The images, style sheets, scripts and fonts of the pages.
    #[serde(default)]
    pub files: PageResourceStatistics,
    /// URLs that pages link to and that redirect more than once, each with its redirects.
    pub redirect_chains: Vec<RedirectChain>,
    /// URLs of the site that its robots.txt excludes although pages link to them.
    pub barred: Vec<RobotsExcludedUrl>,
}

/// A text shared by several pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedText {
    /// The title, description or heading.
    pub text: String,
    /// The URLs of the pages with this text.
    pub pages: Vec<String>,
}

/// A page with images that have no alternative text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageWithoutAltTexts {
    /// The URL of the page.
    pub url: String,
    /// Number of images without alternative text.
    pub without_alt: u64,
    /// The `src` of the first five of these images, as written.
    pub sources: Vec<String>,
}

/// Several consecutive redirects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedirectChain {
    /// The URL that links lead to.
    pub url: String,
    /// The targets in order. The last target doesn't redirect, or was not fetched.
    pub to: Vec<String>,
    /// Number of links to the URL.
    pub links: u64,
}

/// A URL that robots.txt excludes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsExcludedUrl {
    /// The excluded URL.
    pub url: String,
    /// The rule, as written.
    pub rule: Option<String>,
    /// The line in robots.txt, starting at 1.
    pub line: Option<u64>,
    /// Number of links to the URL.
    pub links: u64,
    /// The first five pages that link to the URL.
    #[serde(default)]
    pub linked_from: Vec<String>,
}

impl SiteReport {
    /// Returns the number of pages that took [`SLOW_FROM`] milliseconds or more.
    pub(crate) fn slow_pages(&self) -> u64 {
        count_from(SLOW_FROM, &TIME_BINS, &self.times)
    }

    /// Returns the number of pages with [`LARGE_FROM`] bytes or more.
    pub(crate) fn large_pages(&self) -> u64 {
        count_from(LARGE_FROM, &SIZE_BINS, &self.sizes)
    }

    /// Returns the number of pages whose body was read.
    pub(crate) fn read_pages(&self) -> u64 {
        self.pages.saturating_sub(self.unread)
    }
}

/// Sums up the pages of the crawl in `dir`. Pages more than `max_clicks` clicks away from a seed
/// are deep.
///
/// Reads `pages.jsonl` four times, `excluded.jsonl` once, and each archived page once. Memory: the
/// URLs, titles and descriptions of all pages, and 4 bytes per link.
///
/// # Errors
/// [`RecordsError::NoCrawl`] if `dir` has no crawl; [`RecordsError::Row`] for a complete line
/// that isn't a row; file system errors.
pub fn site(dir: &Path, max_clicks: u32) -> Result<SiteReport, RecordsError> {
    holds_any(dir, &["pages.jsonl"])?;
    let latest = LatestRows::read(dir)?;
    let mut site = SiteReportCollector {
        replacement_rules: Some(LinkSpellingRules::read(dir)?),
        ..SiteReportCollector::default()
    };
    let mut report = SiteReport {
        format: 1,
        round: latest.round().max(round_of_last_run(dir)?.unwrap_or(1)),
        crawl: ReportedCrawlSummary::read(dir, &latest)?,
        max_clicks,
        times: vec![0; TIME_BINS.len() + 1],
        sizes: vec![0; SIZE_BINS.len() + 1],
        ..SiteReport::default()
    };
    site.know_urls(dir, &latest, &mut report)?;
    site.read_pages(dir, &latest, &mut report)?;
    site.write_to(&mut report);
    Ok(report)
}

/// Returns whether a row has the current body of a document in scope. The owner of the site can't
/// fix documents outside the scope, which the crawl visited only because the site links to them.
fn is_own_document(row: &PageRow, line: u64, latest: &LatestRows) -> bool {
    latest.is_body(row, line) && row.hops_off_scope == 0
}

#[derive(Default)]
struct SiteReportCollector {
    replacement_rules: Option<LinkSpellingRules>,
    /// Indexes of HTML pages, by URL.
    ids: HashMap<String, usize>,
    found: Vec<SitePage>,
    redirects: HashMap<String, String>,
    /// Number of links to the first URL of each redirect chain.
    redirect_links: HashMap<String, u64>,
    barred: BTreeMap<String, RobotsExcludedUrl>,
}

#[derive(Default)]
struct SitePage {
    url: String,
    links: Vec<u32>,
    is_linked: bool,
    is_listed: bool,
    is_seed: bool,
}

impl SiteReportCollector {
    /// Reads the rows of the crawl: HTML pages, other files, redirects, and URLs that robots.txt
    /// excludes.
    fn know_urls(
        &mut self,
        dir: &Path,
        latest: &LatestRows,
        report: &mut SiteReport,
    ) -> Result<(), RecordsError> {
        let settings = stored_settings(dir);
        let seeds: Vec<String> = seeds_of(&settings)
            .filter_map(|seed| Some(canonicalize(None, seed).ok()?.to_string()))
            .collect();
        let mut rows = pages(dir)?;
        let (mut slow, mut large) = (Vec::new(), Vec::new());
        let mut files = PageResourceCollector::default();
        while let Some(row) = rows.next() {
            let row = row?;
            let is_last = latest.is_last(&row, rows.line());
            // Skip a redirect that leads nowhere, because it is reported as a broken link.
            if let (true, None, Some(to)) = (is_last, row.broken_redirect(), &row.redirect) {
                self.redirects.insert(row.url.clone(), to.clone());
            }
            if !is_own_document(&row, rows.line(), latest) {
                continue;
            }
            // Only documents read as HTML have a charset. Any other response may be a file that
            // pages load.
            if row.charset.is_none() {
                files.add(row);
                continue;
            }
            report.pages += 1;
            bin(&mut report.times, &TIME_BINS, row.ms);
            bin(&mut report.sizes, &SIZE_BINS, row.bytes);
            slow.push((row.ms, row.url.clone()));
            large.push((row.bytes, row.url.clone()));
            self.ids.insert(row.url.clone(), self.found.len());
            self.found.push(SitePage {
                is_seed: row.via.is_none() && row.depth == 0 || seeds.contains(&row.url),
                url: row.url,
                ..SitePage::default()
            });
        }
        for seed in &seeds {
            let end = self.end_of(seed).to_owned();
            if let Some(&id) = self.ids.get(&end) {
                self.found[id].is_seed = true;
            }
        }
        (report.slow, report.median_ms) = extremes(slow);
        (report.large, report.median_bytes) = extremes(large);
        report.files = files.into_files();
        let own_sites = self.sites(&seeds);
        for row in ExclusionsInForce::open(dir)? {
            let row = row?;
            let is_own =
                canonicalize(None, &row.url).is_ok_and(|url| own_sites.contains(&url.site()));
            if row.reason == "robots" && is_own && !self.ids.contains_key(&row.url) {
                let barred = RobotsExcludedUrl {
                    url: row.url.clone(),
                    rule: row.rule,
                    line: row.line.map(u64::from),
                    links: 0,
                    linked_from: Vec::new(),
                };
                self.barred.insert(row.url, barred);
            }
        }
        Ok(())
    }

    /// Returns the registrable domains of the seeds and of the HTML pages in scope. The row of an
    /// excluded URL doesn't record whether the URL is in scope, so the domain decides whether the
    /// robots.txt that excludes the URL is the owner's.
    fn sites(&self, seeds: &[String]) -> HashSet<Site> {
        let pages = self.found.iter().map(|page| &page.url);
        let urls = pages
            .chain(seeds)
            .filter_map(|url| canonicalize(None, url).ok());
        urls.map(|url| url.site()).collect()
    }

    /// Reads the archived pages: their texts, elements and links. Also reads the entries of
    /// archived sitemaps and feeds.
    fn read_pages(
        &mut self,
        dir: &Path,
        latest: &LatestRows,
        report: &mut SiteReport,
    ) -> Result<(), RecordsError> {
        let archived = ArchivedPageReader::open(dir)?;
        let (mut texts, mut elements) = (
            TitleAndHeadingCollector::default(),
            ElementProblemCollector::default(),
        );
        let mut rows = pages(dir)?;
        while let Some(row) = rows.next() {
            let row = row?;
            if !is_own_document(&row, rows.line(), latest) {
                continue;
            }
            if row.charset.is_none() {
                if let Some(archived) = &archived {
                    // Collect the entries of a sitemap or a feed. An unreadable document has no
                    // entries.
                    let _ = archived.each_link(&row, &mut |_, to, link, _| {
                        if let (None, Ok(to)) = (link, to) {
                            self.listed(to);
                        }
                    });
                }
                continue;
            }
            let answer = archived
                .as_ref()
                .and_then(|archived| archived.html_answer(&row));
            let url = canonicalize(None, &row.url).ok();
            let (Some(answer), Some(url)) = (answer, url) else {
                report.unread += 1;
                continue;
            };
            let text = DecodedPage::decode(&answer.body, row.content_type.as_deref());
            let page = read_text(&text, &ReadingLimits::default(), &mut ());
            let base = page.base_url(&url);
            let links = page.links.iter();
            for link in links.filter(|link| link.kind != LinkKind::PostForm) {
                if let Ok(to) = canonicalize(Some(&base), &link.href) {
                    self.linked(&row.url, &to);
                }
            }
            texts.add(&page, &url, &row.url, report);
            elements.add(&row, &base, &page, &text, &answer.robots_tags, report);
            if !answer.is_coded && row.bytes >= COMPRESSED_FROM {
                report.uncompressed.push(row.url);
            }
        }
        elements.write_to(report);
        report.uncompressed.sort_unstable();
        texts.write_to(report);
        Ok(())
    }

    /// Adds a link of a page.
    fn linked(&mut self, from: &str, to: &CanonicalUrl) {
        let named = self.name_of(to);
        if let Some(barred) = self.barred.get_mut(&named) {
            barred.links += 1;
            let is_listed = barred.linked_from.iter().any(|page| page == from);
            if !is_listed && barred.linked_from.len() < MAX_LINKING_PAGES {
                barred.linked_from.push(from.to_owned());
            }
        }
        if self.redirects.contains_key(&named) {
            *self.redirect_links.entry(named.clone()).or_default() += 1;
        }
        let target = self.ids.get(self.end_of(&named)).copied();
        let page = self.ids.get(from).copied();
        if let (Some(page), Some(target)) = (page, target)
            && page != target
        {
            self.found[target].is_linked = true;
            self.found[page]
                .links
                .push(u32::try_from(target).unwrap_or(u32::MAX));
        }
    }

    /// Adds an entry of a sitemap or a feed.
    fn listed(&mut self, to: &CanonicalUrl) {
        let named = self.name_of(to);
        if let Some(&id) = self.ids.get(&named) {
            self.found[id].is_listed = true;
        }
    }

    /// Returns the URL that the crawl fetched for a link to `to`.
    fn name_of(&self, to: &CanonicalUrl) -> String {
        let is_known = |url: &str| {
            self.ids.contains_key(url)
                || self.redirects.contains_key(url)
                || self.barred.contains_key(url)
        };
        let replacement_rules = self.replacement_rules.as_ref();
        let replacement = replacement_rules.and_then(|rules| rules.fetched_as(to, is_known));
        replacement.as_ref().unwrap_or(to).to_string()
    }

    /// Returns the URL at the end of the redirect chain that starts at `url`, or `url` itself if it
    /// doesn't redirect.
    fn end_of<'s>(&'s self, url: &'s str) -> &'s str {
        let next = |url: &&'s str| self.redirects.get(*url).map(String::as_str);
        let chain = std::iter::successors(Some(url), next).take(MAX_CHAIN);
        chain.last().unwrap_or(url)
    }

    fn write_to(mut self, report: &mut SiteReport) {
        self.count_noindex_links(report);
        let clicks = self.clicks();
        for (page, clicks) in self.found.iter().zip(&clicks) {
            if page.is_listed && !page.is_linked && !page.is_seed {
                report.orphans.push(page.url.clone());
            }
            let Some(clicks) = *clicks else { continue };
            let at = clicks as usize;
            if report.clicks.len() <= at {
                report.clicks.resize(at + 1, 0);
            }
            report.clicks[at] += 1;
            if clicks > report.max_clicks {
                report.deep.push(PageWithMeasurement {
                    url: page.url.clone(),
                    number: u64::from(clicks),
                });
            }
        }
        report.orphans.sort_unstable();
        report
            .deep
            .sort_unstable_by(|one, other| (other.number, &one.url).cmp(&(one.number, &other.url)));
        let mut chains: Vec<_> = std::mem::take(&mut self.redirect_links)
            .into_iter()
            .collect();
        chains.sort_unstable();
        for (url, links) in chains {
            let next = |url: &&str| self.redirects.get(*url).map(String::as_str);
            let first = next(&url.as_str());
            let to: Vec<String> = std::iter::successors(first, next)
                .take(MAX_CHAIN)
                .map(str::to_owned)
                .collect();
            if to.len() > 1 {
                report
                    .redirect_chains
                    .push(RedirectChain { url, to, links });
            }
        }
        let barred = self.barred.into_values();
        report.barred = barred.filter(|barred| barred.links > 0).collect();
    }

    /// Counts the links to pages with `noindex`, and drops the pages that no page links to.
    fn count_noindex_links(&self, report: &mut SiteReport) {
        let by_id = report.noindex.iter().enumerate();
        let by_id: HashMap<usize, usize> = by_id
            .filter_map(|(at, page)| Some((*self.ids.get(&page.url)?, at)))
            .collect();
        for page in self.found.iter().filter(|_| !by_id.is_empty()) {
            for link in &page.links {
                if let Some(at) = by_id.get(&(*link as usize)) {
                    report.noindex[*at].linked(&page.url, MAX_LINKING_PAGES);
                }
            }
        }
        report.noindex.retain(|page| page.links > 0);
    }

    /// Returns the clicks from a seed to each page; `None` if no chain of links reaches the page.
    fn clicks(&self) -> Vec<Option<u32>> {
        let mut clicks = vec![None; self.found.len()];
        let mut open = VecDeque::new();
        for (id, page) in self.found.iter().enumerate() {
            if page.is_seed {
                clicks[id] = Some(0);
                open.push_back(id);
            }
        }
        while let Some(id) = open.pop_front() {
            let next = clicks[id].map(|clicks: u32| clicks.saturating_add(1));
            for &link in &self.found[id].links {
                let link = link as usize;
                if clicks.get(link) == Some(&None) {
                    clicks[link] = next;
                    open.push_back(link);
                }
            }
        }
        clicks
    }
}

#[cfg(test)]
mod tests;

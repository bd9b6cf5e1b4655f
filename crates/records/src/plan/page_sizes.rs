//! Estimates page sizes from an earlier crawl. If there is none, uses published figures.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use crawl_archive::rows::PageRow;
use crawl_sample::t_995;
use crawl_weburl::{CanonicalUrl, UrlShape, canonicalize};

use super::{BoundedEstimate, PLANNED};
use crate::broken_links::key;
use crate::error::RecordsError;
use crate::number_format::grouped;
use crate::row_file_reader::{excluded, pages, requests};

/// The 10th and 90th percentile of a page's HTML bytes as sent. The figures are from Web Almanac
/// 2019, figure 13.11: home pages of shops in the HTTP Archive.
const USUAL_BYTES: (f64, f64) = (12e3, 118e3);

/// Minimum number of measured pages of a host from which its other pages are estimated. If there
/// are fewer, published figures are used.
const MIN_MEASURED: u64 = 5;
/// Minimum number of measured pages of a template (pages of a host with URLs of the same shape). If
/// there are fewer, the mean size of the host is used, not that of the template.
const MIN_OF_TEMPLATE: u64 = 10;
/// The maximum error of an estimate that is given as a single number, as a fraction of the number.
const PRECISE_WITHIN: f64 = 0.1;
/// The 99.5th percentile of the normal distribution.
const Z: f64 = 2.576;

/// The sizes of the pages that an earlier crawl measured. Takes about 40 bytes of memory per page,
/// and 100 bytes per template (pages of a host with URLs of the same shape).
#[derive(Debug, Default)]
pub(super) struct MeasuredPageSizes {
    dir: PathBuf,
    /// The measured pages, one per URL, in the order of the hashes of their URLs.
    measured: Vec<MeasuredPage>,
    by_host: HashMap<String, SizeTotals>,
    /// Sizes per template, by the hash of host and shape.
    by_template: HashMap<u64, SizeTotals>,
}

#[derive(Clone, Copy, Debug)]
struct MeasuredPage {
    /// Hash of the page's URL.
    url: u64,
    template: u64,
    /// Index of the page's host.
    host: u32,
    bytes: f64,
    /// For a page drawn at random, the number of pages that it represents. `None` for other pages.
    weight: Option<f64>,
}

/// Totals of page sizes. Pages that were not drawn at random have weight 1.
#[derive(Clone, Copy, Debug)]
struct SizeTotals {
    is_drawn: bool,
    count: u64,
    weights: f64,
    sum: f64,
    squares: f64,
    /// Sums of squared weights: of w², of w² × size, and of w² × size².
    by_square: [f64; 3],
    least: f64,
    most: f64,
}

/// The pages of one host that the planning run found.
#[derive(Debug, Default)]
pub(super) struct PlannedHostPageCounts {
    /// Number of measured pages.
    measured: u64,
    /// Total size of the measured pages, in bytes.
    bytes: f64,
    /// Number of unmeasured pages by template (the shape of their URLs). Only templates with enough
    /// measured pages are included.
    by_template: HashMap<u64, u64>,
    others: u64,
}

/// An estimate of the bytes that a host would send, with its bounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HostBytesEstimate {
    /// Bytes of pages and sitemaps whose sizes are known.
    known: f64,
    expected: Option<f64>,
    /// Lower bound before `error` is subtracted, in bytes.
    low: f64,
    high: f64,
    /// Half the width of the 99 % interval around a random sample's estimate, in bytes. 0 if the
    /// pages were not drawn at random.
    error: f64,
    /// Whether all pages of the host are known. False if it may have pages that no sitemap lists.
    is_listed: bool,
    why: String,
}

impl MeasuredPageSizes {
    pub(super) fn read(dir: &Path) -> Result<MeasuredPageSizes, RecordsError> {
        let mut sitemaps = HashSet::new();
        for row in requests(dir)? {
            match row {
                Ok(row) if row.purpose == "sitemap" => {
                    sitemaps.insert(row.url);
                }
                Ok(_) | Err(RecordsError::Row { .. }) => {}
                Err(why) => return Err(why),
            }
        }
        let mut hosts: HashMap<String, u32> = HashMap::new();
        let mut measured = Vec::new();
        for row in pages(dir)? {
            match row {
                // Skip a page that was not modified, because its response has no body.
                Ok(row) if row.status.is_none_or(|status| status == 304) => {}
                Ok(row) if !sitemaps.contains(&row.url) => {
                    measured.extend(MeasuredPage::of(&row, &mut hosts));
                }
                Ok(_) | Err(RecordsError::Row { .. }) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(MeasuredPageSizes::of(dir, measured, hosts))
    }

    /// Sums up the measured pages; the last measurement of a URL wins.
    fn of(
        dir: &Path,
        mut measured: Vec<MeasuredPage>,
        hosts: HashMap<String, u32>,
    ) -> MeasuredPageSizes {
        measured.reverse();
        measured.sort_by_key(|page| page.url);
        measured.dedup_by_key(|page| page.url);
        let is_drawn: HashSet<u32> = measured
            .iter()
            .filter(|page| page.weight.is_some())
            .map(|page| page.host)
            .collect();
        let mut by_number: HashMap<u32, SizeTotals> = HashMap::new();
        let mut by_template: HashMap<u64, SizeTotals> = HashMap::new();
        for page in &measured {
            let is_drawn = is_drawn.contains(&page.host);
            // If some pages of a host were drawn at random, use only these. The other pages
            // represent only themselves, and not the rest of the host.
            let weight = match page.weight {
                None if is_drawn => continue,
                weight => weight.unwrap_or(1.0),
            };
            let of_host = by_number.entry(page.host);
            let of_host = of_host.or_insert_with(|| SizeTotals::none(is_drawn));
            of_host.add(page.bytes, weight);
            let of_template = by_template.entry(page.template);
            let of_template = of_template.or_insert_with(|| SizeTotals::none(is_drawn));
            of_template.add(page.bytes, weight);
        }
        by_template.retain(|_, sizes| sizes.count >= MIN_OF_TEMPLATE);
        let hosts = hosts.into_iter();
        let by_host = hosts.filter_map(|(host, number)| Some((host, *by_number.get(&number)?)));
        MeasuredPageSizes {
            dir: dir.to_owned(),
            by_host: by_host.collect(),
            measured,
            by_template,
        }
    }

    /// Groups by host the pages that the planning run in `dir` found. Counts a host's unmeasured
    /// pages by template (the shape of their URLs).
    pub(super) fn known_pages(
        &self,
        dir: &Path,
    ) -> Result<HashMap<String, PlannedHostPageCounts>, RecordsError> {
        let mut hosts: HashMap<String, PlannedHostPageCounts> = HashMap::new();
        for row in excluded(dir)? {
            match row {
                Ok(row) if row.reason == PLANNED => {
                    if let Ok(url) = canonicalize(None, &row.url) {
                        let host = hosts.entry(url.host_key().to_string()).or_default();
                        self.sort_in(&url, host);
                    }
                }
                Ok(_) | Err(RecordsError::Row { .. }) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(hosts)
    }

    fn sort_in(&self, url: &CanonicalUrl, host: &mut PlannedHostPageCounts) {
        let hash = key(url.as_str());
        let index = self.measured.binary_search_by_key(&hash, |page| page.url);
        if let Ok(at) = index {
            host.measured += 1;
            host.bytes += self.measured[at].bytes;
            return;
        }
        let template = template_of(url);
        match self.by_template.contains_key(&template) {
            true => *host.by_template.entry(template).or_default() += 1,
            false => host.others += 1,
        }
    }

    /// Estimates the bytes that a host would send if `pages` of its known pages were fetched. The
    /// host sent `asked` bytes for its sitemaps. `is_listed` is true if the known pages are all
    /// pages of the host.
    pub(super) fn bytes_of(
        &self,
        host: &str,
        known: &PlannedHostPageCounts,
        (asked, pages): (u64, u64),
        is_listed: bool,
    ) -> HostBytesEstimate {
        let all = known.measured + known.unmeasured();
        let range = match self.by_host.get(host) {
            _ if pages >= all && known.unmeasured() == 0 => self.measured_all(known),
            Some(sizes) if sizes.count >= MIN_MEASURED && pages < all => {
                self.within_budget(sizes, pages)
            }
            Some(sizes) if sizes.count >= MIN_MEASURED => self.by_mean(sizes, known),
            _ => usual(known, pages.min(all)),
        };
        range.and(asked as f64, is_listed)
    }

    fn measured_all(&self, known: &PlannedHostPageCounts) -> HostBytesEstimate {
        let reason = match known.measured {
            0 => "no pages to fetch".to_owned(),
            _ => format!("the size of all its pages in {}", self.dir.display()),
        };
        HostBytesEstimate {
            known: known.bytes,
            expected: Some(known.bytes),
            low: known.bytes,
            high: known.bytes,
            why: reason,
            ..HostBytesEstimate::default()
        }
    }

    fn within_budget(&self, sizes: &SizeTotals, pages: u64) -> HostBytesEstimate {
        let count = pages as f64;
        HostBytesEstimate {
            expected: Some(count * sizes.mean()),
            low: count * sizes.least,
            high: count * sizes.most,
            why: format!(
                "from the smallest and the largest of {} of its pages in {}; which pages the budget \
                 leaves out is unknown",
                grouped(sizes.count),
                self.dir.display()
            ),
            ..HostBytesEstimate::default()
        }
    }

    fn by_mean(&self, of_host: &SizeTotals, known: &PlannedHostPageCounts) -> HostBytesEstimate {
        let templates = known.by_template.iter();
        let parts = templates.filter_map(|(key, pages)| Some((self.by_template.get(key)?, *pages)));
        let parts = parts.chain([(of_host, known.others)]);
        let mut range = HostBytesEstimate {
            known: known.bytes,
            low: known.bytes,
            high: known.bytes,
            ..HostBytesEstimate::default()
        };
        let (mut expected, mut variance, mut spread, mut degrees) = (known.bytes, 0.0, 0.0, 0);
        for (sizes, pages) in parts.filter(|(_, pages)| *pages > 0) {
            let count = pages as f64;
            expected += count * sizes.mean();
            // The estimate is uncertain for two reasons, so add both variances: the measured mean
            // is only an estimate, and the sizes of the unmeasured pages vary around the mean.
            variance += count * count * sizes.variance_of_mean() + count * sizes.variance();
            spread += count * sizes.variance();
            degrees += sizes.count - 1;
            if !of_host.is_drawn {
                range.low += count * (sizes.least - sizes.mean());
                range.high += count * (sizes.most - sizes.mean());
            }
        }
        let shift = expected - known.bytes;
        range.low += shift;
        range.high += shift;
        range.expected = Some(expected);
        if of_host.is_drawn {
            range.error = t_995(degrees) * variance.sqrt();
        }
        let pages = known.measured + known.unmeasured();
        let variance_of_page = spread / known.unmeasured() as f64;
        range.why = self.mean_words(of_host, &range, needed(pages, variance_of_page, expected));
        range
    }

    fn mean_words(&self, sizes: &SizeTotals, range: &HostBytesEstimate, needed: u64) -> String {
        let (count, dir) = (grouped(sizes.count), self.dir.display());
        let needed = grouped(needed);
        match sizes.is_drawn {
            true if range.is_precise() => {
                format!("from {count} of its pages drawn at random in {dir}, with a 99 % interval")
            }
            true => format!(
                "from {count} of its pages drawn at random in {dir}, with a 99 % interval; an \
                 estimate within 10 % takes about {needed}"
            ),
            false => format!(
                "from the smallest and the largest of {count} of its pages in {dir}, which were not \
                 drawn at random; an estimate within 10 % takes about {needed} that are \
                 (--sample {needed})"
            ),
        }
    }
}

impl MeasuredPage {
    fn of(row: &PageRow, hosts: &mut HashMap<String, u32>) -> Option<MeasuredPage> {
        let url = canonicalize(None, &row.url).ok()?;
        let next = u32::try_from(hosts.len()).ok()?;
        let weight = row.sample.as_ref().filter(|sample| sample.how == "drawn");
        let weight = weight.and_then(|sample| Some(sample.of? as f64 / sample.drawn? as f64));
        Some(MeasuredPage {
            url: key(&row.url),
            template: template_of(&url),
            host: *hosts.entry(url.host_key().to_string()).or_insert(next),
            bytes: row.bytes as f64,
            weight: weight.filter(|weight| weight.is_finite() && *weight >= 1.0),
        })
    }
}

impl SizeTotals {
    fn none(is_drawn: bool) -> SizeTotals {
        SizeTotals {
            is_drawn,
            count: 0,
            weights: 0.0,
            sum: 0.0,
            squares: 0.0,
            by_square: [0.0; 3],
            least: f64::INFINITY,
            most: 0.0,
        }
    }

    fn add(&mut self, bytes: f64, weight: f64) {
        self.count += 1;
        self.weights += weight;
        self.sum += weight * bytes;
        self.squares += weight * bytes * bytes;
        let square = weight * weight;
        for (sum, value) in self.by_square.iter_mut().zip([1.0, bytes, bytes * bytes]) {
            *sum += square * value;
        }
        self.least = self.least.min(bytes);
        self.most = self.most.max(bytes);
    }

    fn mean(&self) -> f64 {
        self.sum / self.weights
    }

    /// Returns the variance of a single page's size.
    fn variance(&self) -> f64 {
        let mean = self.mean();
        (self.squares / self.weights - mean * mean).max(0.0) * self.correction()
    }

    /// Returns the variance of the mean size. The mean is a ratio of two totals (weighted sizes and
    /// weights), so the formula is that for a ratio.
    fn variance_of_mean(&self) -> f64 {
        let (mean, [weights, sizes, squares]) = (self.mean(), self.by_square);
        let residuals = squares - 2.0 * mean * sizes + mean * mean * weights;
        residuals.max(0.0) / (self.weights * self.weights) * self.correction()
    }

    fn correction(&self) -> f64 {
        let count = self.count as f64;
        count / (count - 1.0)
    }
}

impl PlannedHostPageCounts {
    fn unmeasured(&self) -> u64 {
        self.by_template.values().sum::<u64>() + self.others
    }
}

impl HostBytesEstimate {
    /// Adds a known number of bytes, `asked`, to the estimate and to its bounds, and sets
    /// `is_listed`.
    fn and(self, asked: f64, is_listed: bool) -> HostBytesEstimate {
        HostBytesEstimate {
            known: self.known + asked,
            expected: self.expected.map(|bytes| bytes + asked),
            low: self.low + asked,
            high: self.high + asked,
            is_listed,
            ..self
        }
    }

    /// Sums the ranges of several hosts. The random errors of the hosts are independent, so the
    /// error of the sum is smaller than the sum of their errors.
    pub(super) fn sum(ranges: &[HostBytesEstimate]) -> BoundedEstimate {
        let sum = |of: fn(&HostBytesEstimate) -> f64| ranges.iter().map(of).sum::<f64>();
        let expected = ranges.iter().map(|range| range.expected);
        let unclear = ranges.iter().filter(|range| !range.is_precise());
        let unclear = unclear.count();
        let all = HostBytesEstimate {
            known: sum(|range| range.known),
            expected: expected.sum(),
            low: sum(|range| range.low),
            high: sum(|range| range.high),
            error: sum(|range| range.error * range.error).sqrt(),
            is_listed: ranges.iter().all(|range| range.is_listed),
            why: "the sum over all hosts".to_owned(),
        };
        let is_told = all.is_precise();
        let mut estimate = all.estimate();
        if !is_told && ranges.len() > 1 {
            let unclear = grouped(unclear as u64);
            estimate.why +=
                &format!("; too little is known about {unclear} of them for an estimate");
        }
        estimate
    }

    /// Converts the range to an estimate. The estimate has an expected number only if that is
    /// precise enough.
    pub(super) fn estimate(&self) -> BoundedEstimate {
        BoundedEstimate {
            expected: self.expected.filter(|_| self.is_precise()),
            least: (self.low - self.error).max(self.known),
            most: self.is_listed.then_some(self.high + self.error),
            why: self.why.clone(),
        }
    }

    fn is_precise(&self) -> bool {
        let is_near = |expected: f64| {
            let off = (self.high - expected).max(expected - self.low) + self.error;
            off <= PRECISE_WITHIN * expected
        };
        self.is_listed && self.expected.is_some_and(is_near)
    }
}

/// Returns the range for a host with too few measured pages. If the crawl will fetch all known
/// pages, the measured ones count with their sizes, and the rest with published figures. If a
/// budget cuts the crawl off, the fetched pages are unknown, so published figures are used for all
/// `pages`.
fn usual(known: &PlannedHostPageCounts, pages: u64) -> HostBytesEstimate {
    let (small, large) = USUAL_BYTES;
    let all = known.measured + known.unmeasured();
    let (bytes, unmeasured) = match pages < all {
        true => (0.0, pages as f64),
        false => (known.bytes, known.unmeasured() as f64),
    };
    let measured = match known.measured {
        0 => "none of its pages was",
        _ => "too few of its pages were",
    };
    HostBytesEstimate {
        known: bytes,
        expected: None,
        low: bytes + unmeasured * small,
        high: bytes + unmeasured * large,
        why: format!(
            "{measured} measured; 12 to 118 kB of HTML per page, the 10th and 90th \
             percentiles of online shops in the Web Almanac 2019, figure 13.11"
        ),
        ..HostBytesEstimate::default()
    }
}

/// Returns how many of `pages` must be drawn so that the relative error of the sum is at most
/// [`PRECISE_WITHIN`].
fn needed(pages: u64, variance: f64, sum: f64) -> u64 {
    let count = pages as f64;
    let relative = variance.sqrt() * count / sum.max(1.0);
    let of_endless = (Z * relative / PRECISE_WITHIN).powi(2);
    let drawn = of_endless / (1.0 + of_endless / count);
    // Draw slightly more pages, because the variance is only estimated from a few pages.
    let drawn = (drawn * 1.1).max(MIN_MEASURED as f64).ceil();
    pages.min(drawn as u64)
}

/// Returns the template of a URL: a hash of its host and of its shape, which leaves out variable
/// parts.
fn template_of(url: &CanonicalUrl) -> u64 {
    let mut hasher = DefaultHasher::new();
    (url.host_key().as_str(), UrlShape::of(url).pattern).hash(&mut hasher);
    hasher.finish()
}

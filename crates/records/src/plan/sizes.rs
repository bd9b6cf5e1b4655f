//! The sizes of pages: those that an earlier crawl measured, else those that others publish.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::Estimate;
use crate::error::RecordsError;
use crate::hosts::{HostReport, host_key};
use crate::rows::{pages, requests};

/// Bytes of HTML of a page as sent: one in ten has fewer, one in ten has more. HTTP Archive's home
/// pages of shops, Web Almanac 2019, figure 13.11.
const USUAL_BYTES: (f64, f64) = (12e3, 118e3);

/// Pages of a host that must have been measured for a mean of them.
const MIN_MEASURED: u64 = 5;

/// The 97.5th percentile of the normal distribution, for intervals of 95 %.
const Z: f64 = 1.96;

/// The sizes of the pages of each host, by an earlier crawl.
#[derive(Debug, Default)]
pub(super) struct PageSizes {
    dir: PathBuf,
    by_host: HashMap<String, Sizes>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    count: u64,
    sum: f64,
    squares: f64,
}

impl PageSizes {
    pub(super) fn read(dir: &Path) -> Result<PageSizes, RecordsError> {
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
        let mut by_host: HashMap<String, Sizes> = HashMap::new();
        for row in pages(dir)? {
            match row {
                // A page that is as it was sends no body.
                Ok(row) if row.status.is_none_or(|status| status == 304) => {}
                Ok(row) if !sitemaps.contains(&row.url) => {
                    let sizes = by_host
                        .entry(host_key(&row.url).unwrap_or_default())
                        .or_default();
                    let bytes = row.bytes as f64;
                    sizes.count += 1;
                    sizes.sum += bytes;
                    sizes.squares += bytes * bytes;
                }
                Ok(_) | Err(RecordsError::Row { .. }) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(PageSizes {
            dir: dir.to_owned(),
            by_host,
        })
    }
}

/// The bytes of so many pages of a host, and of what was asked for already. `is_listed` says
/// whether these are all pages that are known to be.
pub(super) fn estimate_bytes(
    host: &HostReport,
    pages: u64,
    is_listed: bool,
    sizes: &PageSizes,
) -> Estimate {
    let (asked, pages) = (host.bytes as f64, pages as f64);
    let measured = sizes.by_host.get(&host.host);
    let Some(sizes_of_host) = measured.filter(|sizes| sizes.count >= MIN_MEASURED) else {
        let (small, large) = USUAL_BYTES;
        return Estimate {
            expected: None,
            least: asked + pages * small,
            most: is_listed.then_some(asked + pages * large),
            why: "none of its pages was measured; 12 to 118 kB of HTML a page, the 10th and the \
                  90th percentile of shops in the Web Almanac 2019, figure 13.11"
                .to_owned(),
        };
    };
    let count = sizes_of_host.count as f64;
    let mean = sizes_of_host.sum / count;
    let variance = (sizes_of_host.squares - count * mean * mean).max(0.0) / (count - 1.0);
    let error = Z * (variance / count).sqrt();
    Estimate {
        expected: is_listed.then_some(asked + pages * mean),
        least: asked + pages * (mean - error).max(0.0),
        most: is_listed.then_some(asked + pages * (mean + error)),
        why: format!(
            "by the mean of {} of its pages in {}, with an interval of 95 %",
            sizes_of_host.count,
            sizes.dir.display()
        ),
    }
}

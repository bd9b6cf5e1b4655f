//! The files that browsers load to show the pages: their times and sizes.

use crawl_archive::rows::PageRow;
use crawl_extractor::essence;
use serde::{Deserialize, Serialize};

use super::page_statistics::{LARGE_FROM, PageWithMeasurement, SIZE_BINS, SLOW_FROM, TIME_BINS};
use super::page_statistics::{bin, count_from, extremes};

/// The images, style sheets, scripts and fonts of a crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PageResourceStatistics {
    /// Number of files whose size is known.
    pub files: u64,
    /// Number of files whose bodies were fetched, so that their times are known.
    pub timed: u64,
    /// The slowest files, in milliseconds from request to end of response.
    pub slow: Vec<PageWithMeasurement>,
    /// The median of the files' times, in milliseconds. `None` if no time is known.
    pub median_ms: Option<u64>,
    /// The largest files, in bytes as received, or as declared if the body was not fetched.
    pub large: Vec<PageWithMeasurement>,
    /// The median of the files' sizes, in bytes. `None` without files.
    pub median_bytes: Option<u64>,
    /// Number of files by time, in the bins of `SiteReport::times`.
    pub times: Vec<u64>,
    /// Number of files by size, in the bins of `SiteReport::sizes`.
    pub sizes: Vec<u64>,
}

impl PageResourceStatistics {
    /// Returns the number of files that took [`SLOW_FROM`] milliseconds or more.
    pub(crate) fn slow_files(&self) -> u64 {
        count_from(SLOW_FROM, &TIME_BINS, &self.times)
    }

    /// Returns the number of files with [`LARGE_FROM`] bytes or more.
    pub(crate) fn large_files(&self) -> u64 {
        count_from(LARGE_FROM, &SIZE_BINS, &self.sizes)
    }
}

/// Collects the times and sizes of files that pages load.
#[derive(Default)]
pub(super) struct PageResourceCollector {
    slow: Vec<(u64, String)>,
    large: Vec<(u64, String)>,
}

impl PageResourceCollector {
    /// Adds a response that isn't HTML. Skips types that browsers don't load to show a page, such
    /// as PDF. If the body was not fetched, only the size that the server declared is added.
    pub(super) fn add(&mut self, row: PageRow) {
        if !essence(row.content_type.as_deref()).is_some_and(|kind| is_page_file(&kind)) {
            return;
        }
        match row.unwanted {
            None => {
                self.slow.push((row.ms, row.url.clone()));
                self.large.push((row.bytes, row.url));
            }
            Some(_) => {
                let size = row.declared_bytes.map(|bytes| (bytes, row.url));
                self.large.extend(size);
            }
        }
    }

    pub(super) fn into_files(self) -> PageResourceStatistics {
        let mut files = PageResourceStatistics {
            files: self.large.len() as u64,
            timed: self.slow.len() as u64,
            times: vec![0; TIME_BINS.len() + 1],
            sizes: vec![0; SIZE_BINS.len() + 1],
            ..PageResourceStatistics::default()
        };
        for (ms, _) in &self.slow {
            bin(&mut files.times, &TIME_BINS, *ms);
        }
        for (bytes, _) in &self.large {
            bin(&mut files.sizes, &SIZE_BINS, *bytes);
        }
        (files.slow, files.median_ms) = extremes(self.slow);
        (files.large, files.median_bytes) = extremes(self.large);
        files
    }
}

/// Returns whether a media type is that of an image, style sheet, script or font.
fn is_page_file(media_type: &str) -> bool {
    media_type.starts_with("image/")
        || media_type.starts_with("font/")
        || media_type == "text/css"
        || media_type.ends_with("javascript")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::site_report::site;
    use crate::test_crawl_builder::TestCrawlBuilder;

    #[test]
    fn a_file_whose_body_was_not_fetched_has_its_declared_size_and_no_time() {
        let mut made = TestCrawlBuilder::new();
        for (path, columns) in [
            (
                "/big.png",
                json!({"ms": 9_000, "bytes": 0, "declared_bytes": 700_000}),
            ),
            ("/unknown.png", json!({"ms": 9_000, "bytes": 0})),
        ] {
            let mut columns = columns;
            columns["unwanted"] = json!("content-type image/png");
            made.page_with(
                &format!("https://e.example{path}"),
                "image/png",
                "",
                &columns,
            );
        }
        let files = site(made.finish().path(), 2).unwrap().files;
        assert_eq!((files.files, files.timed), (1, 0));
        assert_eq!((files.slow_files(), files.large_files()), (0, 1));
        assert_eq!(files.median_bytes, Some(700_000));
    }

    #[test]
    fn slow_and_large_files_of_pages_are_found_and_other_documents_are_not() {
        let mut made = TestCrawlBuilder::new();
        for (path, content_type, ms, bytes) in [
            ("/big.png", "image/png", 7, 2_900_000),
            ("/slow.js", "text/javascript; charset=utf-8", 1_200, 29),
            ("/a.css", "text/css", 7, 1_000),
            ("/book.pdf", "application/pdf", 9_000, 9_000_000),
        ] {
            let columns = json!({"ms": ms, "bytes": bytes});
            made.page_with(
                &format!("https://e.example{path}"),
                content_type,
                "x",
                &columns,
            );
        }
        let report = site(made.finish().path(), 2).unwrap();
        let files = &report.files;
        assert_eq!(
            (files.files, files.slow_files(), files.large_files()),
            (3, 1, 1)
        );
        assert!(files.slow[0].url.ends_with("/slow.js"));
        assert!(files.large[0].url.ends_with("/big.png"));
        assert_eq!(
            (files.median_ms, files.median_bytes),
            (Some(7), Some(1_000))
        );
        let text = report.to_string();
        assert!(text.contains("slowest files of pages: 3\n  1,200 ms, 171 times the median  https://e.example/slow.js\n"), "{text}");
    }
}

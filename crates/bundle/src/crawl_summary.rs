//! Collects the facts about a crawl for the descriptions in its bundle.

use std::path::Path;

use crawl_archive::Timestamp;
use crawl_records::{CrawlReport, ExcludedCounts, counted, grouped, report};
use crawl_weburl::safe_line;

use crate::error::{BundleError, VerificationRunError};

/// The facts about a crawl that the descriptions in its bundle mention.
#[derive(Clone, Debug)]
pub(crate) struct CrawlSummary {
    pub(crate) report: CrawlReport,
    /// The name and version of the program in the last run, such as `crawl 0.1.0`.
    pub(crate) program: String,
    /// The name and version of the program that made the bundle.
    pub(crate) bundler: String,
    /// When the first request started, and when the last one ended.
    pub(crate) begun: Timestamp,
    pub(crate) ended: Timestamp,
}

impl CrawlSummary {
    pub(crate) fn read(dir: &Path, bundler: &str) -> Result<CrawlSummary, BundleError> {
        let report = report(dir).map_err(VerificationRunError::from)?;
        let requests = &report.requests;
        let times = requests.first_start_ms.zip(requests.last_end_ms);
        let (first, last) = times.ok_or_else(|| BundleError::NoRequests {
            dir: dir.to_owned(),
        })?;
        let version = report
            .crawl
            .version
            .as_deref()
            .unwrap_or("of unknown version");
        let moment = |millis: u64| Timestamp::from_micros(millis.saturating_mul(1000));
        Ok(CrawlSummary {
            program: format!("crawl {version}"),
            bundler: bundler.to_owned(),
            begun: moment(first),
            ended: moment(last),
            report,
        })
    }

    pub(crate) fn begun(&self) -> String {
        self.begun.rfc3339_millis()
    }

    pub(crate) fn ended(&self) -> String {
        self.ended.rfc3339_millis()
    }

    /// Returns the day on which the crawl ended: `2026-11-22`.
    pub(crate) fn day(&self) -> String {
        self.ended().chars().take(10).collect()
    }

    /// Returns a title for the crawl: the configured subject of the study or, without one,
    /// `Crawl of` and the first seed.
    pub(crate) fn title(&self) -> String {
        let crawl = &self.report.crawl;
        let seed = crawl.seeds.first();
        match (&crawl.operator.study, seed) {
            (Some(study), _) => study.clone(),
            (None, Some(seed)) => format!("Crawl of {seed}"),
            (None, None) => "A web crawl".to_owned(),
        }
    }

    /// Returns who is responsible for the crawl: the configured person, institution or contact, in
    /// this order of preference. `None` if none is configured.
    pub(crate) fn author(&self) -> Option<&str> {
        let operator = &self.report.crawl.operator;
        let candidates = [&operator.name, &operator.institution, &operator.contact];
        candidates.into_iter().find_map(|value| value.as_deref())
    }

    /// Returns a one-sentence summary with the main numbers.
    pub(crate) fn summary(&self) -> String {
        let report = &self.report;
        let (hosts, _) = report.hosts_asked();
        format!(
            "{} of {}, fetched from {} to {} by {}; {}.",
            counted(report.pages.total, "page", "pages"),
            counted(hosts.len() as u64, "host", "hosts"),
            self.begun(),
            self.ended(),
            self.program,
            exclusions(&report.excluded),
        )
    }
}

/// Returns the number of excluded URLs, by reason: `3 URLs excluded (scope 2, robots 1)`. URLs that
/// were not fetched because of a budget are pending, so they are not counted.
fn exclusions(excluded: &ExcludedCounts) -> String {
    let total = counted(excluded.decided(), "URL", "URLs");
    let by_reason = excluded.by_decision();
    let by_reason = by_reason.iter();
    let reasons: Vec<_> = by_reason
        .map(|(reason, count)| format!("{} {}", safe_line(reason), grouped(*count)))
        .collect();
    match reasons.is_empty() {
        true => format!("{total} excluded"),
        false => format!("{total} excluded ({})", reasons.join(", ")),
    }
}

/// The media type of a file in a bundle, and a description of its content.
pub(crate) struct BundledFileDescription {
    pub(crate) media_type: &'static str,
    pub(crate) what: &'static str,
}

/// Returns the paths of all files with a fixed name that a bundle may contain.
pub(crate) fn named_files() -> impl Iterator<Item = &'static str> {
    NAMED.iter().map(|(name, ..)| *name)
}

/// Returns the media type and description of a file. `path` is relative to the payload folder.
pub(crate) fn meaning(path: &str) -> BundledFileDescription {
    let named = NAMED.iter().find(|(name, ..)| *name == path);
    let ended = ENDED
        .iter()
        .find(|(folder, end, ..)| path.starts_with(folder) && path.ends_with(end));
    let (media_type, what) = match (named, ended) {
        (Some((_, media_type, what)), _) | (None, Some((_, _, media_type, what))) => {
            (*media_type, *what)
        }
        (None, None) => ("application/octet-stream", "a file of the crawl"),
    };
    BundledFileDescription { media_type, what }
}

const JSON_LINES: &str = "application/jsonl";
/// The name, media type and description of each file with a fixed name.
const NAMED: [(&str, &str, &str); 26] = [
    ("CITATION.cff", "application/yaml", "how to cite this crawl"),
    (
        "README.md",
        "text/markdown",
        "what this is and how to check it",
    ),
    (
        "archive/captures.cdxj",
        "text/plain",
        "the index of the archive, in capture order",
    ),
    (
        "archive/index.cdxj",
        "text/plain",
        "the index of the archive, sorted",
    ),
    (
        "crawl.toml",
        "application/toml",
        "the configuration in force, without secrets, and the version",
    ),
    (
        "croissant.json",
        "application/ld+json",
        "the tables and their columns, for dataset loaders",
    ),
    (
        "delays.jsonl",
        JSON_LINES,
        "the settings of each run of the gathered workers, and the changes that operators made",
    ),
    (
        "excluded.jsonl",
        JSON_LINES,
        "a row for each URL that was not fetched, with the rule",
    ),
    (
        "extract-rules.json",
        "application/json",
        "the rules for the fields of pages",
    ),
    (
        "extracts.jsonl",
        JSON_LINES,
        "a row for each page and rule, with the fields",
    ),
    (
        "hosts.jsonl",
        JSON_LINES,
        "a row for each host: whether it is complete and what is missing",
    ),
    ("links.jsonl", JSON_LINES, "a row for each link of a page"),
    (
        "pages.jsonl",
        JSON_LINES,
        "a row for each page, with the rule that allowed it",
    ),
    (
        "recheck.jsonl",
        JSON_LINES,
        "a row for each page that rules fetched after the crawl exclude",
    ),
    (
        "report.html",
        "text/html",
        "the crawl in numbers, for readers",
    ),
    ("report.json", "application/json", "the crawl in numbers"),
    (
        "requests.jsonl",
        JSON_LINES,
        "a row for each request, with the gap before it",
    ),
    (
        "ro-crate-context.json",
        "application/ld+json",
        "the JSON-LD context of ro-crate-metadata.json, to read it without a network",
    ),
    (
        "ro-crate-metadata.json",
        "application/ld+json",
        "what each file is and how it was made",
    ),
    (
        "robots.jsonl",
        JSON_LINES,
        "each robots.txt response with the text in force",
    ),
    (
        "state/delays.jsonl",
        JSON_LINES,
        "the settings of each run, and the changes that the operator made while it ran",
    ),
    (
        "state/order.jsonl",
        JSON_LINES,
        "the order of turns and commits, which a replay follows",
    ),
    (
        "tombstones.jsonl",
        JSON_LINES,
        "a row for each page or host that was removed, without its name: when and why",
    ),
    (
        "waiting.jsonl",
        JSON_LINES,
        "how the last run ended and what was waiting",
    ),
    (
        "walk.jsonl",
        JSON_LINES,
        "a row for each step of a random walk",
    ),
    (
        "workers.jsonl",
        JSON_LINES,
        "a row for each gathered worker, with its counts",
    ),
];
const WARC: &str = "application/warc";
const EXCHANGES: &str = "every exchange with a server, as WARC 1.1";
/// The folder, extension, media type and description of files without a fixed name.
const ENDED: [(&str, &str, &str, &str); 4] = [
    ("archive/", ".warc.gz", WARC, EXCHANGES),
    ("archive/", ".warc.zst", WARC, EXCHANGES),
    ("archive/", ".warc", WARC, EXCHANGES),
    (
        "tables/",
        ".parquet",
        "application/vnd.apache.parquet",
        "the rows as a table",
    ),
];

#[cfg(test)]
mod tests {
    use crawl_records::ExcludedCounts;

    use super::{NAMED, exclusions, meaning};

    #[test]
    fn exclusions_are_counted_by_reason() {
        let mut excluded = ExcludedCounts::default();
        assert_eq!(exclusions(&excluded), "0 URLs excluded");
        excluded.total = 1020;
        excluded.by_reason = [("robots".to_owned(), 20), ("budget".to_owned(), 1000)].into();
        assert_eq!(exclusions(&excluded), "20 URLs excluded (robots 20)");
        excluded.total += 1000;
        excluded.by_reason.insert("scope".to_owned(), 1000);
        assert_eq!(
            exclusions(&excluded),
            "1,020 URLs excluded (robots 20, scope 1,000)"
        );
    }

    #[test]
    fn every_kind_of_file_has_a_meaning() {
        assert!(NAMED.is_sorted_by_key(|(name, ..)| *name));
        assert_eq!(
            meaning("archive/crawl-a-0.warc.gz").media_type,
            "application/warc"
        );
        for (name, _, what) in NAMED {
            assert_eq!(meaning(name).what, what, "{name}");
        }
    }
}

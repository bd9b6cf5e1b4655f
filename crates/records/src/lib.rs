//! Reads the directory of a crawl: its rows, a report, the state of one URL, and an audit of its
//! rules.
//!
//! [`pages`], [`requests`], [`excluded`] and [`links`] iterate over the row files. [`report()`]
//! sums them up as a [`CrawlReport`], and [`write_report`] writes it to the directory as
//! `report.json`. [`explain()`] collects everything that records and stored state contain about one
//! URL. [`coverage()`] judges whether a host was crawled completely. [`broken_links()`] lists
//! broken pages with the links to them. [`changes()`] lists the pages that were new, changed or
//! gone in the last round. [`compare()`] lists the differences between two crawls. [`audit()`]
//! checks the crawl against the rules it had to follow. The crate never fetches anything. The only
//! files it writes are the report, its host rows, and the result of a recheck ([`write_recheck`]).
//!
//! ```
//! use crawl_records::{pages, report};
//!
//! let dir = tempfile::tempdir()?;
//! let row = concat!(
//!     r#"{"url":"http://e.example/","status":200,"fetched_at":"2026-11-20T23:59:59.123Z","#,
//!     r#""ms":12,"bytes":3,"content_type":null,"digest":null,"depth":0,"via":null,"title":"E","#,
//!     r#""robots":null,"warc":null,"error":null}"#,
//!     "\n",
//! );
//! std::fs::write(dir.path().join("pages.jsonl"), row)?;
//!
//! let titles: Result<Vec<_>, _> = pages(dir.path())?.map(|row| row.map(|row| row.title)).collect();
//! assert_eq!(titles?, [Some("E".to_owned())]);
//! assert_eq!(report(dir.path())?.pages.bytes, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod archived_pages;
mod audit;
mod bot_page;
mod broken_links;
mod compare;
mod current_pages;
mod decoded_body;
mod error;
mod explain;
mod extraction_report;
mod header_fields;
mod histograms;
mod host_coverage;
mod host_reports;
mod letter_grade;
mod link_spelling_rules;
mod number_format;
mod plan;
mod plot_data;
mod random_walk_report;
mod recognize_directory;
mod report;
mod report_files;
mod report_page;
mod report_text;
mod reported_crawl;
mod round_changes;
mod round_row_filter;
mod row_file_reader;
mod row_token_wording;
mod rules_recheck;
mod sample_report;
mod self_contained_report_page;
mod site_faults;
mod site_problem_checks;
mod site_report;
#[cfg(test)]
mod test_crawl_builder;

pub use archived_pages::{
    ArchivedPageBody, ArchivedPageLocator, PageDatesAndRestrictions, read_archived, read_as_sent,
};
pub use audit::{
    AuditReport, CitedRow, RequestsInFlightLimits, RuleBreach, audit, conduct_page, signed_message,
};
pub use bot_page::CrawlerDescription;
pub use broken_links::{
    BrokenLink, BrokenLinkReport, BrokenPage, EveryLinkDisplay, broken_links, location_fragment,
};
pub use compare::{
    ComparedCrawlTotals, ComparedHost, CrawlComparison, DifferingPage, ExclusionRuleDifference,
    HostDifference, PageDifferences, RequestOrderComparison, compare, compare_round,
};
pub use current_pages::{CurrentRow, CurrentRowSelector};
pub use decoded_body::decoded_body;
pub use error::RecordsError;
pub use explain::{
    Explanation, IndexPresence, PendingReason, RandomWalkHits, ReplacementUrl, SampleDrawPosition,
    StateAvailability, UrlMention, explain,
};
pub use extraction_report::{
    ExtractRuleCounts, ExtractRules, ExtractedFieldCounts, ExtractionReport, UnmatchedSelectorName,
    UnmetCondition, extract_rules, extraction,
};
pub use host_coverage::{
    CoverageGapCounts, CoverageGapReason, HostCoverage, HostOutcomeCounts, coverage,
};
pub use host_reports::{
    DemandedWaits, HostReport, HostReportCollector, LastRobotsResponse, RequestGaps,
};
pub use link_spelling_rules::LinkSpellingRules;
pub use number_format::{counted, grouped, size};
pub use plan::{
    BoundedEstimate, CostPlan, ExclusionRuleCount, GroupPageBudget, HostPlan,
    OriginRobotsStatements, PageBudgets, PlanSettings, plan,
};
pub use random_walk_report::{RandomWalkPage, RandomWalkReport};
pub use recognize_directory::{seeds_of, stored_settings, why_without_archive};
pub use report::{
    BrokenPagesSummary, CrawlReport, CrawlSettings, ExcludedCounts, LabelCounts,
    OperatorDescription, PageCounts, PendingCounts, ReportedBrokenPage, RequestCounts,
    SampleSettings, VisitCounts, report,
};
pub use report_files::{
    is_ended, list_digests, report_page, site_page, write_report, write_report_and_digests,
};
pub use report_page::broken_table;
pub use report_text::in_words;
pub use reported_crawl::ReportedCrawlSummary;
pub use round_changes::{RoundChanges, changes};
pub use round_row_filter::{ExclusionsInForce, RoundRowFilter, RoundSelection};
pub use row_file_reader::{
    GATHERED_DELAYS, RowFileReader, WORKERS, delays, excluded, extracts, links, pages, requests,
    round_of_last_run, waiting, walk,
};
pub use row_token_wording::{
    REDIRECTED_TO, answer_words, evidence_words, failure_words, outcome_words, split_failure,
    status_words,
};
pub use rules_recheck::{
    RECHECK, RecheckTotals, page_urls, recheck_file, recheck_rows, write_recheck,
};
pub use sample_report::{SampleEstimates, SampleReport, sample};
pub use self_contained_report_page::{PARTS_STYLE, SORT_SCRIPT, link};
pub use site_faults::{
    FaultBaseline, FaultKind, PageFault, SiteFaultReport, UncheckedLink, faults,
};
pub use site_report::{
    ImageOccurrences, LinkedNoindexPage, MAX_CLICKS, PageResourceStatistics, PageWithMeasurement,
    PageWithoutAltTexts, RedirectChain, RobotsExcludedUrl, SharedText, SiteReport, VagueLinkText,
    site,
};

pub use crawl_archive::rows::{
    ExcludedRow, ExtractRow, LinkRow, PageRow, PendingOriginRow, RandomWalkStep, RequestRow,
    RobotsVerdict, RulesRecheckRow, WarcRecordLocation,
};

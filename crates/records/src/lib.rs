//! Reads the directory of a crawl: its rows, a report, the state of one URL, and an audit of its
//! rules.
//!
//! [`pages`], [`requests`], [`excluded`] and [`links`] iterate over the row files. [`report()`]
//! sums them up as a [`Report`], and [`write_report`] writes it to the directory as `report.json`.
//! [`explain()`] collects everything that records and stored state contain about one URL.
//! [`coverage()`] judges whether a host was crawled completely. [`broken()`] lists broken pages
//! with the links to them. [`changes()`] lists the pages that were new, changed or gone in the last
//! round. [`compare()`] lists the differences between two crawls. [`audit()`] checks the crawl
//! against the rules it had to follow. The crate never fetches anything. The only files it writes
//! are the report, its host rows, and the result of a recheck ([`write_recheck`]).
//!
//! ```
//! use crawl_records::{pages, report};
//!
//! let dir = tempfile::tempdir()?;
//! let row = r#"{"url":"http://e.example/","status":200,"fetched_at":"2026-11-20T23:59:59.123Z",
//!   "ms":12,"bytes":3,"content_type":null,"digest":null,"depth":0,"via":null,"title":"E",
//!   "robots":null,"warc":null,"error":null}"#;
//! std::fs::write(dir.path().join("pages.jsonl"), row.replace('\n', "") + "\n")?;
//! let titles: Result<Vec<_>, _> = pages(dir.path())?.map(|row| row.map(|row| row.title)).collect();
//! assert_eq!(titles?, [Some("E".to_owned())]);
//! assert_eq!(report(dir.path())?.pages.bytes, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod archived_pages;
mod audit;
mod bins;
mod bot_page;
mod broken;
mod changes;
mod compare;
mod coverage;
mod current_pages;
mod decoded_body;
mod directory;
mod error;
mod explain;
mod extraction;
mod faults;
mod figures;
mod grade;
mod header_fields;
mod hosts;
mod html;
#[cfg(test)]
mod made_crawl;
mod numbers;
mod outcome;
mod plan;
mod recheck;
mod report;
mod report_files;
mod report_page;
mod reported_crawl;
mod round_view;
mod rows;
mod sample;
mod site;
mod text;
mod to_fix;
mod walk;
mod words;

pub use archived_pages::{ArchivedPage, ArchivedPages, PageSeen, read_archived};
pub use audit::{Audit, Breach, CitedRow, audit, conduct_page, signed_message};
pub use bot_page::BotPage;
pub use broken::{BrokenLink, BrokenLinks, BrokenPage, EveryLink, broken};
pub use changes::{RoundChanges, changes};
pub use compare::{
    ComparedCrawl, ComparedHost, Comparison, ExclusionDifference, HostDifference, OrderDifferences,
    PageDifference, PageDifferences, compare, compare_round,
};
pub use coverage::{Coverage, HostOutcomes, MissingReason, MissingUrls, coverage};
pub use current_pages::{CurrentPages, CurrentRow};
pub use decoded_body::decoded_body;
pub use directory::{seeds_of, stored_settings};
pub use error::RecordsError;
pub use explain::{Explanation, NamedBy, SamplePlace, StateRead, WalkPlace, explain};
pub use extraction::{
    ExtractRules, Extraction, FieldCounts, LackingName, RuleCounts, UnmetCondition, extract_rules,
    extraction,
};
pub use faults::{Baseline, Fault, FaultKind, Faults, UncheckedLink, faults};
pub use hosts::{Gaps, HostReport, HostSums, RobotsReport, Waits};
pub use html::{PARTS_STYLE, SORT_SCRIPT, link};
pub use numbers::{counted, grouped, size};
pub use outcome::outcome;
pub use plan::{Estimate, HostPlan, Plan, PlanOrigin, PlanRule, PlanSettings, plan};
pub use recheck::{RECHECK, Recheck, page_urls, recheck_file, recheck_rows, write_recheck};
pub use report::{
    BrokenCounts, BrokenRow, CrawlSettings, ExcludedCounts, LabelCounts, Operator, PageCounts,
    PendingCounts, Report, RequestCounts, SampleSettings, VisitCounts, report,
};
pub use report_files::{list_digests, report_page, site_page, write_report};
pub use report_page::broken_table;
pub use reported_crawl::ReportedCrawl;
pub use round_view::{RoundView, Rounds};
pub use rows::{
    GATHERED_DELAYS, RowsOf, WORKERS, delays, excluded, extracts, links, pages, requests, waiting,
    walk,
};
pub use sample::{SampleEstimates, SampleReport, sample};
pub use site::{
    BarredUrl, ImagePages, MAX_CLICKS, NoindexPage, PageFiles, PageImages, PageNumber,
    RedirectChain, SharedText, SiteReport, VagueLinkText, site,
};
pub use text::in_words;
pub use walk::{VisitedPage, WalkReport};
pub use words::{answer_words, evidence_words, failure_words, outcome_words, status_words};

pub use crawl_archive::rows::{
    ExcludedRow, ExtractRow, LinkRow, PageRow, RandomWalkRow, RecheckRow, RequestRow,
    RobotsVerdict, WaitingRow, WarcPlace,
};

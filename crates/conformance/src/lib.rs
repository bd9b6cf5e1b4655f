//! Judges whether a crawler keeps the rules of the web: RFC 9309, HTTP, robots meta tags, sitemaps
//! and the conventions about pace and traps.
//!
//! `crawl-testweb` serves a separate web for each [`Clause`]. [`check`] runs a crawler's command
//! over these webs and judges each clause only by the server's log. The crawler's output is never
//! read. Judges are pure functions over a [`CrawlTrace`], where time is data.
//!
//! ```
//! use crawl_conformance::{ClauseOutcome, CrawlTrace, clauses};
//!
//! let clause = clauses().find(|clause| clause.id == "disallow-all").unwrap();
//! let silent_crawler = CrawlTrace::default();
//! assert_eq!(clause.verdict(&silent_crawler).outcome, ClauseOutcome::NotShown);
//! ```

mod clause;
mod clause_test_web;
mod clauses;
mod crawl_trace;
mod judges;
mod path_normalization;
mod report;
mod report_page;
mod run;

pub use clause::{Clause, ClausePage, CommandRuns, RequirementLevel, ScriptedReplyInput};
pub use clause_test_web::ClauseTestWeb;
pub use clauses::clauses;
pub use crawl_trace::{
    ClauseOutcome, ClauseVerdict, CommandRun, CrawlTrace, QuotedRequest, RunEnd,
};
pub use report::{ConformanceReport, JudgedClause, OutcomeCounts};
pub use run::{CheckError, CheckOptions, CrawlerUnderTest, check};

//! Rows of `requests.jsonl`, and the robots.txt verdict of `pages.jsonl`.

use crawl_archive::rows::{RequestRow, RobotsVerdict};
use crawl_fetcher::{Exchange, Failure};
use crawl_frontier::{Exclusion, Reason, UrlKind};
use crawl_policy::Verdict;
use crawl_scheduler::{HostWait, OutcomeKind, Spent};

use crate::messages::Job;
use crate::priority::Priority;
use crate::time::millis;
use crate::usage::rule_text;

/// The row of a request that ended.
pub(crate) fn row(
    job: &Job,
    spent: &Spent,
    result: &Result<Exchange, Failure>,
    signal: &OutcomeKind,
) -> RequestRow {
    let (started, ended, address, status, failure) = match result {
        Ok(exchange) => (
            exchange.started,
            exchange.ended,
            exchange.address,
            Some(exchange.status),
            None,
        ),
        Err(failure) => (
            failure.started,
            failure.ended,
            failure.address,
            None,
            Some(failure.name().to_owned()),
        ),
    };
    let wait_asked = match signal {
        OutcomeKind::AskedToWait { retry_after } => retry_after.map(millis),
        _ => None,
    };
    RequestRow {
        url: job.url().to_string(),
        host: spent.host().to_string(),
        address: address.map(|address| address.ip().to_string()),
        purpose: purpose(job).to_owned(),
        start: started.as_millis(),
        end: ended.as_millis(),
        status,
        failure,
        gap_asked: millis(spent.gap()),
        why: spent.why().to_string(),
        wait_asked,
    }
}

/// Adds the wait that we impose on ourselves where the server named none.
pub(crate) fn with_wait(mut row: RequestRow, learned: &HostWait) -> RequestRow {
    row.wait_asked = row.wait_asked.or_else(|| learned.wait_asked.map(millis));
    row
}

pub(crate) fn purpose(job: &Job) -> &'static str {
    match job {
        Job::Page { lease, .. } => match lease.kind {
            UrlKind::Page if Priority::of(lease) == Priority::ACTION => "action",
            UrlKind::Page => "page",
            UrlKind::Sitemap => "sitemap",
            UrlKind::Resource => "resource",
        },
        Job::Robots { hop: 0, .. } => "robots",
        Job::Robots { .. } => "hop",
        Job::TdmRep { .. } => "tdmrep",
    }
}

/// The verdict of robots.txt, as a page's row holds it.
pub(crate) fn robots_verdict(verdict: &Verdict<'_>) -> RobotsVerdict {
    RobotsVerdict {
        verdict: if verdict.is_allowed() {
            "allowed"
        } else {
            "disallowed"
        }
        .to_owned(),
        line: verdict.rule.as_ref().map(|rule| rule.line),
        rule: verdict.rule.as_ref().map(|rule| rule_text(rule.text)),
    }
}

/// The exclusion of a URL by robots.txt.
pub(crate) fn robots_exclusion(verdict: &Verdict<'_>) -> Exclusion {
    Exclusion {
        reason: Reason::Robots,
        rule: verdict.rule.as_ref().map(|rule| rule_text(rule.text)),
        line: verdict.rule.as_ref().map(|rule| rule.line),
    }
}

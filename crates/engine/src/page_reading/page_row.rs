//! The row of a page in `pages.jsonl`. Change detection and the archive later add their columns.

use std::borrow::Cow;

use crawl_archive::rows::PageRow;
use crawl_fetcher::{Exchange, TruncationReason};
use crawl_frontier::Lease;
use crawl_index_entry::IndexLogEntry;

use super::document_result::{DocumentError, ReadDocument};
use crate::content_filter::declared_length;
use crate::content_type::content_type;
use crate::messages::page_pipeline_stages::{FactsBeforeFetch, TrapEvidence, row_without_answer};

/// Returns the row of a page. The usage statements and the digest are added later.
pub(super) fn page_row(
    lease: &Lease,
    context: FactsBeforeFetch,
    exchange: &Exchange,
    document: &ReadDocument,
) -> PageRow {
    // The content filter cuts an unwanted document on purpose, so don't report that cut.
    let cut = exchange.truncated.filter(|cut| {
        document.unwanted.is_none()
            || !matches!(cut, TruncationReason::Length | TruncationReason::Unwanted)
    });
    let findings = &document.findings;
    PageRow {
        status: Some(exchange.status),
        bytes: exchange.body.len() as u64,
        // A 304 response has no body that its Content-Type could describe.
        content_type: content_type(&exchange.headers)
            .filter(|_| exchange.status != 304)
            .map(Cow::into_owned),
        detected_type: document.detected_type.map(str::to_owned),
        charset: document.charset.map(str::to_owned),
        language: document.language.clone(),
        title: document.title.clone(),
        indexed: findings.entry.as_ref().map(|entry| match entry {
            IndexLogEntry::Put(page) => page.gives_way().unwrap_or_else(|| "yes".to_owned()),
            IndexLogEntry::Drop { why, .. } => why.clone(),
        }),
        redirect: match &findings.signal {
            TrapEvidence::Redirect(target) | TrapEvidence::CutRedirect(target) => {
                Some(target.to_string())
            }
            _ => None,
        },
        canonical: document.canonical.as_ref().map(ToString::to_string),
        unwanted: document.unwanted.as_ref().map(ToString::to_string),
        declared_bytes: document
            .unwanted
            .as_ref()
            .and_then(|_| declared_length(&exchange.headers)),
        echoes_secret: document.echoes_secret,
        error: row_error(document.error.as_ref(), cut),
        ..row_without_answer(lease, context, exchange.started, exchange.took())
    }
}

/// Returns the name of the error for the row; `None` if there was no error.
fn row_error(read: Option<&DocumentError>, cut: Option<TruncationReason>) -> Option<String> {
    let cut = cut.map(|cut| cut.name().to_owned());
    match read {
        Some(why) if !why.is_cut_short() || cut.is_none() => Some(why.name()),
        _ => cut,
    }
}

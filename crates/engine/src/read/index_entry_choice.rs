//! The index entry for an answer: either the page, or the reason why it is left out.

use crawl_fetcher::{Exchange, TruncationReason};
use crawl_frontier::{Lease, UrlKind};
use crawl_index_entry::IndexLogEntry;
use crawl_policy::usage_statements::{UsagePurpose, UsageStatements};

use super::PageReader;
use super::document_result::{DocumentError, ReadDocument};
use crate::index::entry_creation::left_out;
use crate::time_conversions::seconds_of;
use crate::usage_preferences;

impl PageReader {
    /// Chooses the index entry for an answer. `entry` is the page's entry, created when the
    /// document was read. Returns `None` if the index must keep the entry that it has, because the
    /// answer is transient or incomplete.
    pub(crate) fn index_entry(
        &self,
        lease: &Lease,
        exchange: &Exchange,
        (document, entry): (&ReadDocument, Option<IndexLogEntry>),
        is_revisit: bool,
        usage: &UsageStatements,
    ) -> Option<IndexLogEntry> {
        if document.unwanted.is_some() {
            return (self.index && lease.kind == UrlKind::Page)
                .then(|| left_out(&lease.url, "unwanted"));
        }
        let error = document.error.as_ref();
        let is_passing = error.is_some_and(DocumentError::is_passing);
        let is_undecoded = error.is_some_and(DocumentError::is_undecoded);
        let is_cut = (exchange.truncated).is_some_and(|cut| cut != TruncationReason::Length);
        let is_incomplete = is_undecoded && is_revisit || is_cut;
        let entry = entry.filter(|_| !(is_incomplete && is_revisit));
        entry.or_else(|| match is_passing || is_incomplete {
            true => None,
            false => self.without_page(lease, exchange, usage),
        })
    }

    /// Returns the entry for an answer without a page, for example a redirect or a 404. `None`
    /// after a temporary answer (503, a login form), which does not show what became of the page.
    fn without_page(
        &self,
        lease: &Lease,
        exchange: &Exchange,
        statements: &UsageStatements,
    ) -> Option<IndexLogEntry> {
        if !self.index || lease.kind != UrlKind::Page {
            return None;
        }
        if let Some(target) = exchange.redirect_target() {
            let reason =
                target.map_or_else(|_| "redirect".to_owned(), |to| format!("redirect: {to}"));
            return Some(left_out(&lease.url, reason));
        }
        match exchange.status {
            404 => Some(left_out(&lease.url, "not_found")),
            410 => Some(left_out(&lease.url, "gone")),
            // The header fields of a 304 response apply to the stored page (RFC 9110 section
            // 15.4.5), including `noindex` and other directives.
            304 => {
                let directives = self.directives(exchange, &[]);
                let at = seconds_of(exchange.started);
                let expiry = directives.unavailable_after;
                let expiry = expiry.filter(|expiry| expiry.value <= at);
                let reason = directives.noindex.map(|by| format!("noindex: {by}"));
                let reason =
                    reason.or(expiry.map(|by| format!("unavailable_after: {}", by.source)));
                let usage = || Some(format!("usage: {}", self.search_refused(statements)?));
                Some(left_out(&lease.url, reason.or_else(usage)?))
            }
            200..=299 => Some(left_out(&lease.url, "no_page")),
            _ => None,
        }
    }

    /// Returns the site's statement that refuses indexing, or use for the crawl's purpose. `None`
    /// if the site refuses neither.
    pub(crate) fn search_refused(&self, statements: &UsageStatements) -> Option<String> {
        let of =
            |purpose| usage_preferences::refused(statements, purpose).map(usage_preferences::words);
        of(UsagePurpose::Search).or_else(|| of(self.purpose?))
    }
}

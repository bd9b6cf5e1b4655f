//! The index entry for an answer: either the page, or the reason why it is left out.

use crawl_archive::{Timestamp, find_response};
use crawl_fetcher::{Exchange, TruncationReason};
use crawl_frontier::{Lease, UrlKind};
use crawl_index_entry::IndexLogEntry;
use crawl_policy::usage_statements::{UsagePurpose, UsageStatements};
use crawl_scope::Scope;

use super::PageReader;
use super::document_result::{DocumentError, ReadDocument};
use crate::index::archived_page_entry::{
    ArchivedPage, ArchivedPageRules, header_map, update_indexing_fields,
};
use crate::index::entry_creation::{indexing_fields_digest, left_out};
use crate::revisit::visit::{KnownPage, PreviousVisit};
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
        (past, scope): (Option<&PreviousVisit>, &Scope),
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
        let is_revisit = past.is_some();
        let is_incomplete = is_undecoded && is_revisit || is_cut;
        let entry = entry.filter(|_| !(is_incomplete && is_revisit));
        entry.or_else(|| match is_passing || is_incomplete {
            true => None,
            false => self.without_page(lease, exchange, (past, scope), usage),
        })
    }

    /// Returns the entry for an answer without a page, for example a redirect or a 404. `None`
    /// after a temporary answer (503, a login form), which does not show what became of the page.
    fn without_page(
        &self,
        lease: &Lease,
        exchange: &Exchange,
        (past, scope): (Option<&PreviousVisit>, &Scope),
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
            // The header fields of a 304 response apply to the stored page (RFC 9111 section 3.2),
            // including `noindex` and other directives.
            304 => {
                let directives = self.directives(exchange, &[]);
                let at = seconds_of(exchange.started);
                let expiry = directives.unavailable_after;
                let expiry = expiry.filter(|expiry| expiry.value <= at);
                let reason = directives.noindex.map(|by| format!("noindex: {by}"));
                let reason =
                    reason.or(expiry.map(|by| format!("unavailable_after: {}", by.source)));
                let usage = || Some(format!("usage: {}", self.search_refused(statements)?));
                match reason.or_else(usage) {
                    Some(reason) => Some(left_out(&lease.url, reason)),
                    None => self.with_fields_of_304(lease, exchange, past?.page()?, scope),
                }
            }
            200..=299 => Some(left_out(&lease.url, "no_page")),
            _ => None,
        }
    }

    /// Returns the entry of the stored page with the header fields of a 304, if these change how it
    /// is indexed. `None` if they don't, or if the archive doesn't have the page as it was stored.
    /// The next visit then fetches the page in full.
    fn with_fields_of_304(
        &self,
        lease: &Lease,
        exchange: &Exchange,
        known: &KnownPage,
        scope: &Scope,
    ) -> Option<IndexLogEntry> {
        let fields = indexing_fields_digest(&exchange.headers);
        if !known.differs_in_indexing_fields(fields.as_deref()) {
            return None;
        }
        let archived = Timestamp::from_micros(known.archived?);
        let record = find_response(self.archive.as_deref()?, &lease.url, archived).ok()??;
        let http = record.http()?;
        let mut headers = header_map(&http.fields);
        if indexing_fields_digest(&headers) != known.indexing_fields {
            return None;
        }
        update_indexing_fields(&mut headers, &exchange.headers, false);
        let page = ArchivedPage {
            url: &lease.url,
            at: seconds_of(exchange.started),
            http: &http,
            headers: &headers,
            dom: None,
            refused: None,
        };
        let rules = ArchivedPageRules {
            agent: &self.agent,
            profile: self.profile,
            secrets: &self.policy.secrets,
            documents: &self.documents,
            is_in_crawl: &|url| scope.overlaps_host(url),
        };
        let entry = page.entry(rules, &self.gives_back);
        Some(entry).filter(|entry| matches!(entry, IndexLogEntry::Put(_)))
    }

    /// Returns the site's statement that refuses indexing, or use for the crawl's purpose. `None`
    /// if the site refuses neither.
    pub(crate) fn search_refused(&self, statements: &UsageStatements) -> Option<String> {
        let of =
            |purpose| usage_preferences::refused(statements, purpose).map(usage_preferences::words);
        of(UsagePurpose::Search).or_else(|| of(self.purpose?))
    }
}

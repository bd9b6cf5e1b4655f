//! The index entry of an answer: the page that was read, or why the URL is left out.

use crawl_fetcher::{Exchange, Truncation};
use crawl_frontier::{Lease, UrlKind};
use crawl_index_entry::IndexEntry;
use crawl_policy::usage::{UsagePurpose, UsageStatements};

use super::PageReader;
use super::document::{DocumentError, ReadDocument};
use crate::index::entry::left_out;
use crate::time::seconds_of;
use crate::usage;

impl PageReader {
    /// Chooses the index entry of an answer. `entry` is the one that reading its document made.
    /// `None` if the index keeps its entry of the URL, as the answer is transient or incomplete.
    pub(crate) fn index_entry(
        &self,
        lease: &Lease,
        exchange: &Exchange,
        (document, entry): (&ReadDocument, Option<IndexEntry>),
        is_revisit: bool,
        usage: &UsageStatements,
    ) -> Option<IndexEntry> {
        if document.unwanted.is_some() {
            return (self.index && lease.kind == UrlKind::Page)
                .then(|| left_out(&lease.url, "unwanted"));
        }
        let error = document.error.as_ref();
        let is_passing = error.is_some_and(DocumentError::is_passing);
        let is_undecoded = error.is_some_and(DocumentError::is_undecoded);
        let is_cut = (exchange.truncated).is_some_and(|cut| cut != Truncation::Length);
        let is_incomplete = is_undecoded && is_revisit || is_cut;
        let entry = entry.filter(|_| !(is_incomplete && is_revisit));
        entry.or_else(|| match is_passing || is_incomplete {
            true => None,
            false => self.without_page(lease, exchange, usage),
        })
    }

    /// The index's entry for an answer that is no page to read: that the URL leads elsewhere,
    /// or to nothing any more. An answer that may pass (503, a login form) says nothing of the
    /// page.
    fn without_page(
        &self,
        lease: &Lease,
        exchange: &Exchange,
        said: &UsageStatements,
    ) -> Option<IndexEntry> {
        if !self.index || lease.kind != UrlKind::Page {
            return None;
        }
        if let Some(target) = exchange.redirect_target() {
            let why = target.map_or_else(|_| "redirect".to_owned(), |to| format!("redirect: {to}"));
            return Some(left_out(&lease.url, why));
        }
        match exchange.status {
            404 => Some(left_out(&lease.url, "not_found")),
            410 => Some(left_out(&lease.url, "gone")),
            // What a 304 says of the page holds, RFC 9110 section 15.4.5.
            304 => {
                let directives = self.directives(exchange, &[]);
                let at = seconds_of(exchange.started);
                let over = directives.unavailable_after;
                let over = over.filter(|over| over.value <= at);
                let why = directives.noindex.map(|by| format!("noindex: {by}"));
                let why = why.or(over.map(|by| format!("unavailable_after: {}", by.source)));
                let usage = || Some(format!("usage: {}", self.search_refused(said)?));
                Some(left_out(&lease.url, why.or_else(usage)?))
            }
            200..=299 => Some(left_out(&lease.url, "no_page")),
            _ => None,
        }
    }

    /// The statement by which a page's site refuses it to a search index, or to what the crawl
    /// is for.
    pub(crate) fn search_refused(&self, said: &UsageStatements) -> Option<String> {
        let of = |purpose| usage::refused(said, purpose).map(usage::words);
        of(UsagePurpose::Search).or_else(|| of(self.purpose?))
    }
}

//! Turns a page that was read into the message for the writer. Runs on reader threads.

use crawl_archive::SerializedPageRow;
use crawl_archive::rows::{NO_SITEMAP, NOT_A_SITEMAP, PageRow};
use crawl_frontier::{LeaseOutcome, UrlKind};
use crawl_index_entry::IndexLogEntry;

use super::archive_encoder::ArchiveEncoder;
use super::document_result::{DocumentError, ReadPage};
use crate::config::Config;
use crate::index::entry_creation::indexing_fields_digest;
use crate::messages::NonPageRequestResult;
use crate::messages::page_pipeline_stages::{
    EncodedPage, PageMemoryReservation, SettlingVisit, visited_at,
};
use crate::priority::is_guess;
use crate::revisit::change_detection::{
    AnswerRecordSummary, ChangeDetectionInput, ChangeDetector, IncomparableAnswer,
};
use crate::revisit::visit::{PreviousVisit, RevisitRules, fetch_in_full_next_time};

/// Encodes each page, and each result of a request that settles no URL, into the message that the
/// writer stores: rows, links and archive record.
pub(crate) struct PageEncoder {
    archive: ArchiveEncoder,
    visits: RevisitRules,
}

impl PageEncoder {
    pub(crate) fn new(config: &Config, visits: &RevisitRules) -> PageEncoder {
        PageEncoder {
            archive: ArchiveEncoder::new(config),
            visits: *visits,
        }
    }

    /// Encodes a page and drops its body.
    pub(crate) fn page(&mut self, mut page: ReadPage) -> EncodedPage {
        let indexing_fields = indexing_fields_digest(&page.exchange.headers);
        let detector = ChangeDetector::new(answer(&page, indexing_fields.as_deref()));
        let repeat = detector.repeat();
        let revisit = repeat.and_then(|repeat| self.archive.revisit(&page.exchange, repeat));
        let mut capture = self.archive.page(&page, revisit);
        let mut render = page.row.render.clone();
        if let (Some(capture), Some(rendered), Some(render)) =
            (&mut capture, &page.rendered, &mut render)
            && !page.row.is_body_omitted()
        {
            let url = &page.exchange.url;
            self.archive.add_rendered(capture, url, rendered, render);
        }
        let record = capture.as_ref().map(|capture| AnswerRecordSummary {
            digest: capture.digest(),
            is_revisit: revisit.is_some(),
        });
        let detected = detector.finish(record);
        let (change, mut result) = (detected.change, detected.result);
        // If a guessed sitemap does not exist, its row is written only to replace an earlier one.
        let has_row = |past: &PreviousVisit| past.page().is_some() || past.is_failed();
        let is_listed = match detected.is_absent {
            true => page.past.as_deref().is_some_and(has_row),
            false => !detected.is_refused,
        };
        let is_no_sitemap = is_page_named_as_sitemap(&page);
        let row = PageRow {
            digest: detected.digest,
            differs: detected.differs.map(str::to_owned),
            record_id: capture
                .as_ref()
                .map(|capture| capture.record_id().to_string()),
            change: change.map(|change| change.name().to_owned()),
            render,
            error: match detected.is_absent {
                true => Some(NO_SITEMAP.to_owned()),
                false if is_no_sitemap => Some(NOT_A_SITEMAP.to_owned()),
                false => page.row.error,
            },
            ..page.row
        };
        let is_out_of_index = matches!(page.findings.entry, Some(IndexLogEntry::Drop { .. }));
        // Fetch the page in full at the next visit, even in a crawl without an index, since `crawl
        // index` may build one later.
        let has_new_fields = detected.has_new_indexing_fields;
        if is_out_of_index || detected.needs_full_fetch || has_new_fields {
            fetch_in_full_next_time(page.past.as_deref_mut(), &mut result);
        }
        let (at, kind, past) = (visited_at(&row), page.lease.kind, page.past);
        let past = past.map(|past| *past);
        EncodedPage {
            line: SerializedPageRow::of(&row),
            held: PageMemoryReservation {
                body: page.exchange.room.clone(),
                ..PageMemoryReservation::default()
            },
            visit: SettlingVisit {
                outcome: LeaseOutcome::Fetched {
                    status: detected.status,
                },
                row: Box::new(row),
                lease: page.lease,
                is_listed,
                change,
                next: self
                    .visits
                    .after(at, kind, past, result, page.declared_state),
                host: page.host,
            },
            findings: page.findings,
            capture,
        }
    }

    /// Encodes a request that settles no URL, for example a request for robots.txt.
    pub(crate) fn robots(&mut self, item: Box<NonPageRequestResult>) -> Box<NonPageRequestResult> {
        self.archive.robots(item)
    }
}

/// Returns whether the site named a URL as a sitemap, but the server sends a page, such as an error
/// page.
fn is_page_named_as_sitemap(page: &ReadPage) -> bool {
    page.lease.kind == UrlKind::Sitemap
        && page.lease.redirects == 0
        && !is_guess(&page.lease)
        && matches!(page.row.status, Some(200..=299))
        && page.row.error.is_none()
        && page.row.unwanted.is_none()
        && !page.is_list
}

/// Summarizes the answer to a page request for change detection.
fn answer<'a>(page: &'a ReadPage, indexing_fields: Option<&'a str>) -> ChangeDetectionInput<'a> {
    ChangeDetectionInput {
        exchange: &page.exchange,
        row: &page.row,
        past: page.past.as_deref(),
        redirect: page.exchange.redirect_target(),
        body_digest: page.body_digest.as_deref(),
        decoded_digest: page.decoded_digest.as_deref(),
        text_digest: page.text_digest.as_deref(),
        indexing_fields,
        fault: match &page.error {
            Some(DocumentError::InPlace(_)) => IncomparableAnswer::InPlace,
            Some(error) if error.is_undecoded() => IncomparableAnswer::Undecoded,
            _ => IncomparableAnswer::None,
        },
        render_need: page.render_need,
        unread_link_kinds: page.unread_link_kinds,
        is_guess: is_guess(&page.lease),
        is_list: page.is_list,
    }
}

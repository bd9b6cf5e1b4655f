//! From an exchange to archive records. Runs on reader threads.

use crawl_archive::rows::PageRow;
use crawl_archive::{
    Capture, CaptureMetadata, CapturedRequest, DigestAlgorithm, EncodedCapture, Encoder, PageLine,
    RecordIds, Revisit, RevisitOriginal, Timestamp, Truncated,
};
use crawl_fetcher::{Exchange, TlsVersion, Truncation, Validators};
use crawl_frontier::{Outcome, UrlKind};
use crawl_index_entry::IndexEntry;

use super::document::{DocumentError, ReadPage};
use crate::config::Config;
use crate::messages::RobotsExchange;
use crate::messages::page::{EncodedPage, HeldMemory, PageVisit, redirect_target, visited_at};
use crate::priority::is_guess;
use crate::revisit::visit::{
    Difference, KnownPage, PreviousVisit, RevisitSchedule, VisitResult, ask_in_full,
};
use crate::time::millis;

/// Encodes exchanges for the archive, where there is one; else takes digests alone.
pub(crate) struct ArchiveEncoder {
    encoder: Option<Encoder>,
    digest: DigestAlgorithm,
    visits: RevisitSchedule,
}

impl ArchiveEncoder {
    pub(crate) fn new(config: &Config, visits: &RevisitSchedule) -> ArchiveEncoder {
        ArchiveEncoder {
            encoder: config.warc.then(Encoder::default),
            digest: DigestAlgorithm::default(),
            visits: *visits,
        }
    }

    /// Encodes a page's exchange and lets go of its body.
    pub(crate) fn page(&mut self, mut page: ReadPage) -> EncodedPage {
        let about = CaptureMetadata {
            via: page.row.via.as_deref(),
            depth: Some(page.lease.depth),
            redirects: Some(u32::from(page.lease.redirects)),
            charset: page.charset,
            more: match page.lease.kind {
                UrlKind::Page => &[],
                UrlKind::Sitemap => &[("purpose", "sitemap")],
                UrlKind::Resource => &[("purpose", "resource")],
            },
        };
        let exchange = &page.exchange;
        let withheld = page.row.is_body_left_out();
        let kept: &[u8] = if withheld { &[] } else { &exchange.body };
        let known = page.past.as_deref().and_then(PreviousVisit::page);
        let unmodified = known.filter(|known| exchange.status == 304 && known.is_conditional());
        let mut digest = None;
        let revisit = match (unmodified, known) {
            (Some(unmodified), _) => self
                .original(exchange, unmodified)
                .map(Revisit::NotModified),
            (None, Some(known)) if exchange.status == known.status && !withheld => {
                let taken = page.body_digest.clone();
                let found =
                    digest.insert(taken.unwrap_or_else(|| self.digest.of(&[&exchange.body])));
                let content = page.decoded_digest.as_ref().unwrap_or(found);
                let same = known.has_content(found, content).then_some(known);
                let original = same.and_then(|known| self.original(exchange, known));
                original.map(|original| match *found == known.digest {
                    true => Revisit::IdenticalPayload(original),
                    false => Revisit::IdenticalContent {
                        original,
                        payload_digest: &known.digest,
                    },
                })
            }
            _ => None,
        };
        let capture = self.encode(exchange, kept, revisit, about);
        let (status, digest, mut result) = match unmodified {
            // The URL is what it was; the row has the answer.
            Some(known) => (known.status, known.digest.clone(), VisitResult::Same),
            None => {
                let digest = match &capture {
                    Some(capture) if !withheld => capture.digest().to_owned(),
                    _ => digest.unwrap_or_else(|| self.digest.of(&[&exchange.body])),
                };
                let is_archived = capture.is_some() && revisit.is_none() && !withheld;
                let result = match is_no_page(&page) {
                    true => VisitResult::Unknown,
                    false => self.result(&page, &digest, is_archived),
                };
                (exchange.status, digest, result)
            }
        };
        // Of what was not read there is none.
        let digest = (exchange.truncated != Some(Truncation::Unwanted)).then_some(digest);
        let difference = match revisit {
            // The digest is that of the original.
            Some(Revisit::IdenticalContent { .. }) => Some(Difference::Coding),
            _ => RevisitSchedule::difference(page.past.as_deref(), &result),
        };
        let is_absent = is_guess(&page.lease)
            && match exchange.status {
                // Some servers answer with a page whatever is asked for.
                200..=299 if !page.is_list => {
                    result = VisitResult::Nothing;
                    true
                }
                status => (400..=499).contains(&status),
            };
        let change = RevisitSchedule::change(page.past.as_deref(), &result);
        let is_unreadable = page.is_unreadable_visit();
        let row = PageRow {
            digest,
            differs: difference.and_then(Difference::name).map(str::to_owned),
            record_id: capture
                .as_ref()
                .map(|capture| capture.record_id().to_string()),
            change: change.map(|change| change.name().to_owned()),
            ..page.row
        };
        if matches!(page.findings.entry, Some(IndexEntry::Drop { .. })) || is_unreadable {
            ask_in_full(page.past.as_deref_mut(), &mut result);
        }
        let (at, kind, past) = (visited_at(&row), page.lease.kind, page.past);
        let past = past.map(|past| *past);
        EncodedPage {
            line: PageLine::of(&row),
            held: HeldMemory {
                body: exchange.room.clone(),
                ..HeldMemory::default()
            },
            visit: PageVisit {
                outcome: Outcome::Fetched { status },
                row: Box::new(row),
                lease: page.lease,
                is_listed: !is_absent || change.is_some(),
                change,
                next: self.visits.after(at, kind, past, result, page.said),
                host: page.host,
            },
            findings: page.findings,
            capture,
        }
    }

    /// The record that holds what is as it was.
    fn original<'a>(
        &self,
        exchange: &'a Exchange,
        known: &KnownPage,
    ) -> Option<RevisitOriginal<'a>> {
        self.encoder.as_ref()?;
        Some(RevisitOriginal {
            url: exchange.url.as_str(),
            date: Timestamp::from_micros(known.archived?),
        })
    }

    /// The state of the page by its answer, for the next visit.
    fn result(&self, read: &ReadPage, digest: &str, is_archived: bool) -> VisitResult {
        let exchange = &read.exchange;
        let status = exchange.status;
        if let Some(target) = redirect_target(exchange) {
            let redirect = target.as_ref().ok().map(ToString::to_string);
            let target = target.map_or_else(|why| why.name().to_owned(), |url| url.to_string());
            let digest = self.digest.of(&[target.as_bytes()]);
            return VisitResult::Page(KnownPage {
                redirect,
                ..KnownPage::new(status, digest, Validators::default())
            });
        }
        match status {
            200..=299 => {
                let validators = match is_enough(read) {
                    true => Validators::of(&exchange.headers),
                    false => Validators::default(),
                };
                let started = exchange.started.as_micros();
                VisitResult::Page(KnownPage {
                    decoded_digest: read.decoded_digest.clone(),
                    text_digest: read.text_digest.clone(),
                    archived: is_archived.then_some(started),
                    ..KnownPage::new(status, digest.to_owned(), validators)
                })
            }
            404 | 410 => VisitResult::Nothing,
            _ => VisitResult::Unknown,
        }
    }

    /// Encodes a request for robots.txt.
    pub(crate) fn robots(&mut self, mut item: Box<RobotsExchange>) -> Box<RobotsExchange> {
        if let Some(exchange) = item.exchange.take() {
            // A hop's own URL does not tell whose rules it was sent for.
            let of = item.of.as_ref().map(|of| ("of", of.as_str()));
            let more: Vec<_> = [("purpose", item.purpose)].into_iter().chain(of).collect();
            let about = CaptureMetadata {
                more: &more,
                ..CaptureMetadata::default()
            };
            item.capture = self.encode(&exchange, &exchange.body, None, about);
        }
        item
    }

    /// `kept` is the body, or nothing where it is withheld.
    fn encode(
        &mut self,
        exchange: &Exchange,
        kept: &[u8],
        revisit: Option<Revisit<'_>>,
        about: CaptureMetadata<'_>,
    ) -> Option<EncodedCapture> {
        let encoder = self.encoder.as_mut()?;
        let sent = exchange.sent.as_written(&exchange.url);
        let capture = Capture {
            url: &exchange.url,
            started: Timestamp::from_micros(exchange.started.as_micros()),
            millis: millis(exchange.took()),
            address: exchange.address.map(|address| address.ip()),
            protocol: exchange.version,
            tls: exchange.tls.and_then(tls),
            request: CapturedRequest {
                method: "GET",
                headers: &sent,
            },
            status: exchange.status,
            reason: None,
            headers: &exchange.headers,
            body: kept,
            truncated: match exchange.truncated {
                _ if kept.len() < exchange.body.len() => Some(Truncated::Withheld),
                Some(Truncation::Length) => Some(Truncated::Length),
                Some(Truncation::Unwanted) => Some(Truncated::Withheld),
                Some(Truncation::Time(_)) => Some(Truncated::Time),
                Some(Truncation::Disconnect(_)) => Some(Truncated::Disconnect),
                None => None,
            },
            revisit,
            about,
        };
        Some(encoder.encode(&capture, &RecordIds::random()))
    }
}

/// Returns whether "as it was" is all that the next visit needs to hear. What could not be read or
/// was withheld is asked for in full again, and so is what must be read in each round: what names
/// changes of others, and a page that speaks of its own use.
fn is_enough(page: &ReadPage) -> bool {
    let row = &page.row;
    let usage = row.usage.iter().flat_map(|usage| &usage.said);
    let speaks_of_use = usage.into_iter().any(|said| said.channel == "meta");
    row.error.is_none() && !row.is_body_left_out() && !page.is_list && !speaks_of_use
}

fn tls(version: TlsVersion) -> Option<crawl_archive::TlsVersion> {
    match version {
        TlsVersion::Tls12 => Some(crawl_archive::TlsVersion::Tls12),
        TlsVersion::Tls13 => Some(crawl_archive::TlsVersion::Tls13),
        _ => None,
    }
}

/// Returns whether the answer says nothing about the page: another page in its place, a body that broke
/// off, or one that can't be decoded although an earlier visit read the page.
fn is_no_page(page: &ReadPage) -> bool {
    let broken_off = page
        .exchange
        .truncated
        .is_some_and(|cut| cut != Truncation::Length);
    broken_off
        || matches!(page.error, Some(DocumentError::InPlace(_)))
        || page.is_unreadable_visit()
}

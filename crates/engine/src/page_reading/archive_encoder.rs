//! Encodes exchanges as archive records. Runs on reader threads.

use crawl_archive::rows::RenderStatistics;
use crawl_archive::{
    Capture, CaptureEncoder, CaptureMetadata, CapturedRequest, EncodedCapture, RecordIds,
    RevisitOriginal, RevisitProfile, Timestamp, WarcTruncation,
};
use crawl_fetcher::{Exchange, TlsVersion, TruncationReason};
use crawl_frontier::UrlKind;
use crawl_weburl::CanonicalUrl;

use super::document_result::ReadPage;
use crate::config::Config;
use crate::messages::NonPageRequestResult;
use crate::messages::render::RenderingToArchive;
use crate::revisit::change_detection::AnswerRepetition;
use crate::revisit::visit::KnownPage;
use crate::time_conversions::millis;

/// Encodes exchanges for the archive. Encodes nothing if the crawl has no archive.
pub(super) struct ArchiveEncoder {
    encoder: Option<CaptureEncoder>,
}

impl ArchiveEncoder {
    pub(super) fn new(config: &Config) -> ArchiveEncoder {
        ArchiveEncoder {
            encoder: config.warc.map(CaptureEncoder::new),
        }
    }

    /// Returns the reference to an earlier page, for a revisit record, if this exchange returned
    /// the same page again. `None` if the archive does not hold the earlier page.
    pub(super) fn revisit<'a>(
        &self,
        exchange: &'a Exchange,
        repeat: AnswerRepetition<'a>,
    ) -> Option<RevisitProfile<'a>> {
        self.encoder.as_ref()?;
        let original = |known: &KnownPage| {
            Some(RevisitOriginal {
                url: exchange.url.as_str(),
                date: Timestamp::from_micros(known.archived?),
            })
        };
        Some(match repeat {
            AnswerRepetition::NotModified(known) => RevisitProfile::NotModified(original(known)?),
            AnswerRepetition::Payload(known) => RevisitProfile::IdenticalPayload(original(known)?),
            AnswerRepetition::Content(known) => RevisitProfile::IdenticalContent {
                original: original(known)?,
                payload_digest: &known.digest,
            },
        })
    }

    /// Encodes a page's exchange. Leaves out the body if it must not be archived.
    pub(super) fn page(
        &mut self,
        page: &ReadPage,
        revisit: Option<RevisitProfile<'_>>,
    ) -> Option<EncodedCapture> {
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
        let body: &[u8] = match page.row.is_body_omitted() {
            true => &[],
            false => &page.exchange.body,
        };
        self.encode(&page.exchange, body, revisit, about)
    }

    /// Adds the DOM and the screenshot of a rendered page to the page's archive records, and their
    /// archive positions to the page's row.
    pub(super) fn add_rendered(
        &mut self,
        capture: &mut EncodedCapture,
        url: &CanonicalUrl,
        rendered: &RenderingToArchive,
        row: &mut RenderStatistics,
    ) {
        let Some(encoder) = &mut self.encoder else {
            return;
        };
        row.dom_after = Some(encoder.add_dom(capture, url, &rendered.dom));
        if let Some(image) = &rendered.screenshot {
            row.screenshot_after = Some(encoder.add_screenshot(capture, url, image));
        }
    }

    /// Encodes a request that settles no URL, for example a request for robots.txt.
    pub(super) fn robots(
        &mut self,
        mut item: Box<NonPageRequestResult>,
    ) -> Box<NonPageRequestResult> {
        if let Some(exchange) = item.exchange.take() {
            // Record the origin whose rules were requested, because after a redirect the request's
            // URL may be on another origin.
            let of = item.of.as_ref().map(|of| ("of", of.as_str()));
            let more: Vec<_> = [("purpose", item.purpose)].into_iter().chain(of).collect();
            let via = item.via.as_ref().map(ToString::to_string);
            let about = CaptureMetadata {
                via: via.as_deref(),
                more: &more,
                ..CaptureMetadata::default()
            };
            let body: &[u8] = match item.is_withheld {
                true => &[],
                false => &exchange.body,
            };
            item.capture = self.encode(&exchange, body, None, about);
        }
        item
    }

    /// Encodes an exchange with the body `kept`, which is empty if the body must not be archived.
    fn encode(
        &mut self,
        exchange: &Exchange,
        kept: &[u8],
        revisit: Option<RevisitProfile<'_>>,
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
                method: match (exchange.sent.is_head, &exchange.sent.posted) {
                    (true, _) => "HEAD",
                    (false, None) => "GET",
                    (false, Some(_)) => "POST",
                },
                headers: &sent,
                body: exchange.sent.posted.as_deref().unwrap_or_default(),
            },
            status: exchange.status,
            reason: None,
            headers: &exchange.headers,
            body: kept,
            truncated: match exchange.truncated {
                _ if kept.len() < exchange.body.len() => Some(WarcTruncation::Withheld),
                Some(TruncationReason::Length) => Some(WarcTruncation::Length),
                Some(TruncationReason::Unwanted) => Some(WarcTruncation::Withheld),
                Some(TruncationReason::Time(_)) => Some(WarcTruncation::Time),
                Some(TruncationReason::Disconnect(_)) => Some(WarcTruncation::Disconnect),
                None => None,
            },
            revisit,
            about,
        };
        Some(encoder.encode(&capture, &RecordIds::random()))
    }
}

fn tls(version: TlsVersion) -> Option<crawl_archive::TlsVersion> {
    match version {
        TlsVersion::Tls12 => Some(crawl_archive::TlsVersion::Tls12),
        TlsVersion::Tls13 => Some(crawl_archive::TlsVersion::Tls13),
        _ => None,
    }
}

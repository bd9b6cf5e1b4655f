//! From an exchange to archive records. Runs on reader threads.

use crawl_archive::{
    About, Capture, DigestAlgorithm, Encoded, Encoder, Protocol, RecordIds, Request, Timestamp,
    Truncated,
};
use crawl_fetcher::{Exchange, Truncation};
use crawl_frontier::UrlKind;

use crate::config::Config;
use crate::item::{PageItem, RobotsItem, millis};

/// Encodes exchanges for the archive, where there is one; else takes digests alone.
pub(crate) struct Keeper {
    encoder: Option<Encoder>,
    digest: DigestAlgorithm,
}

impl Keeper {
    pub(crate) fn new(config: &Config) -> Keeper {
        Keeper {
            encoder: config.warc.then(Encoder::default),
            digest: DigestAlgorithm::default(),
        }
    }

    /// Encodes a page's exchange and lets go of its body.
    pub(crate) fn page(&mut self, mut item: PageItem) -> PageItem {
        let Some(exchange) = item.exchange.take() else {
            return item;
        };
        let about = About {
            via: item.row.via.as_deref(),
            depth: Some(item.lease.depth),
            redirects: Some(u32::from(item.lease.redirects)),
            charset: item.charset,
            more: match item.lease.kind {
                UrlKind::Page => &[],
                UrlKind::Sitemap => &[("purpose", "sitemap")],
            },
        };
        let withheld = item.row.withheld.is_some();
        let kept: &[u8] = if withheld { &[] } else { &exchange.body };
        item.capture = self.encode(&exchange, kept, about);
        item.row.digest = Some(match &item.capture {
            Some(capture) if !withheld => capture.digest().to_owned(),
            _ => self.digest.of(&[&exchange.body]),
        });
        item
    }

    /// Encodes a request for robots.txt.
    pub(crate) fn robots(&mut self, mut item: RobotsItem) -> RobotsItem {
        if let Some(exchange) = item.exchange.take() {
            // A hop's own URL does not tell whose rules it was sent for.
            let of = item.of.as_ref().map(|of| ("of", of.as_str()));
            let more: Vec<_> = [("purpose", item.purpose)].into_iter().chain(of).collect();
            let about = About {
                more: &more,
                ..About::default()
            };
            item.capture = self.encode(&exchange, &exchange.body, about);
        }
        item
    }

    /// `kept` is the body, or nothing where it is withheld.
    fn encode(&mut self, exchange: &Exchange, kept: &[u8], about: About<'_>) -> Option<Encoded> {
        let encoder = self.encoder.as_mut()?;
        let capture = Capture {
            url: &exchange.url,
            started: Timestamp::from_micros(exchange.started.as_micros()),
            millis: millis(exchange.took()),
            address: exchange.address.map(|address| address.ip()),
            protocol: protocol(exchange.version),
            tls: None,
            request: Request {
                method: "GET",
                headers: &exchange.request_headers,
            },
            status: exchange.status,
            reason: None,
            headers: &exchange.headers,
            body: kept,
            truncated: match exchange.truncated {
                _ if kept.len() < exchange.body.len() => Some(Truncated::Withheld),
                Some(Truncation::Length) => Some(Truncated::Length),
                None => None,
            },
            revisit: None,
            about,
        };
        Some(encoder.encode(&capture, &RecordIds::random()))
    }
}

fn protocol(version: http::Version) -> Protocol {
    match version {
        http::Version::HTTP_09 => Protocol::Http09,
        http::Version::HTTP_10 => Protocol::Http10,
        http::Version::HTTP_2 => Protocol::Http2,
        http::Version::HTTP_3 => Protocol::Http3,
        _ => Protocol::Http11,
    }
}

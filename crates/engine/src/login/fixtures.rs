//! Answers for tests of logins.

use std::time::Duration;

use bytes::Bytes;
use crawl_fetcher::{BodyMemoryReservation, Exchange, SentRequestRecord};
use crawl_scheduler::Tick;
use crawl_weburl::canonicalize;
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Returns an answer with these header fields. If a field occurs several times, the last one is
/// used.
pub(crate) fn answer(
    url: &str,
    status: u16,
    fields: &[(&'static str, &str)],
    body: &'static str,
) -> Exchange {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let value = HeaderValue::from_str(value).unwrap();
        headers.insert(HeaderName::from_static(name), value);
    }
    Exchange {
        url: canonicalize(None, url).unwrap(),
        sent: SentRequestRecord::default(),
        started: Tick::from_micros(1),
        ended: Tick::from_micros(2),
        first_byte: Duration::ZERO,
        address: None,
        status,
        version: http::Version::HTTP_11,
        tls: None,
        headers,
        body: Bytes::from_static(body.as_bytes()),
        truncated: None,
        room: BodyMemoryReservation::default(),
        challenged: false,
        unmet_signature: None,
    }
}

//! Captures for tests. Each test sets only the values that it is about.

use std::net::IpAddr;

use crawl_archive::{
    Capture, CaptureEncoder, CaptureMetadata, CapturedRequest, EncodedCapture, RecordIds,
    RevisitOriginal, RevisitProfile, Timestamp, TlsVersion, WarcTruncation,
};
use crawl_weburl::{CanonicalUrl, canonicalize};
use http::{HeaderMap, HeaderName, HeaderValue};

/// 2026-11-20T23:59:59.123456Z, in microseconds since the Unix epoch.
pub(crate) const BEGIN: u64 = 1_795_219_199_123_456;

#[derive(Clone)]
pub(crate) struct Sample {
    pub(crate) url: CanonicalUrl,
    pub(crate) protocol: http::Version,
    pub(crate) tls: bool,
    pub(crate) address: Option<IpAddr>,
    pub(crate) status: u16,
    pub(crate) reason: Option<&'static [u8]>,
    pub(crate) headers: HeaderMap,
    pub(crate) request: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) truncated: Option<WarcTruncation>,
    pub(crate) revisit: Option<fn(RevisitOriginal<'static>) -> RevisitProfile<'static>>,
    pub(crate) number: u64,
}

impl Sample {
    pub(crate) fn new(number: u64, url: &str, headers: &[(&str, &[u8])], body: &[u8]) -> Sample {
        let headers = headers.iter().map(|(name, value)| {
            let name: HeaderName = name.parse().unwrap();
            (name, HeaderValue::from_bytes(value).unwrap())
        });
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, value);
        }
        Sample {
            url: canonicalize(None, url).unwrap(),
            protocol: http::Version::HTTP_11,
            tls: false,
            address: Some([192, 0, 2, 7].into()),
            status: 200,
            reason: None,
            headers: map,
            request: vec![(
                "user-agent".into(),
                "crawl/0.1 (+mailto:a@example.org)".into(),
            )],
            body: body.to_vec(),
            truncated: None,
            revisit: None,
            number,
        }
    }

    /// Returns a capture of an ordinary page.
    pub(crate) fn page(number: u64) -> Sample {
        let body = format!("<title>{number}</title>").repeat(1 + number as usize % 7);
        let length = body.len().to_string();
        let headers: [(&str, &[u8]); 2] = [
            ("content-type", b"text/html; charset=utf-8"),
            ("content-length", length.as_bytes()),
        ];
        let url = format!("http://www.example.org/page/{number}?b=1&a=2");
        Sample::new(number, &url, &headers, body.as_bytes())
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Sample)) -> Sample {
        change(&mut self);
        self
    }

    pub(crate) fn encode(&self, encoder: &mut CaptureEncoder) -> EncodedCapture {
        let original = RevisitOriginal {
            url: "http://www.example.org/original",
            date: Timestamp::from_micros(BEGIN - 86_400_000_000),
        };
        let capture = Capture {
            url: &self.url,
            started: Timestamp::from_micros(BEGIN + self.number * 1_000_000),
            millis: 42,
            address: self.address,
            protocol: self.protocol,
            tls: self.tls.then_some(TlsVersion::Tls13),
            request: CapturedRequest {
                method: "GET",
                headers: &self.request,
                body: &[],
            },
            status: self.status,
            reason: self.reason,
            headers: &self.headers,
            body: &self.body,
            truncated: self.truncated,
            revisit: self.revisit.map(|revisit| revisit(original)),
            about: CaptureMetadata {
                via: Some("http://www.example.org/"),
                depth: Some(2),
                redirects: Some(0),
                charset: Some("UTF-8"),
                more: &[("purpose", "page")],
            },
        };
        encoder.encode(&capture, &RecordIds::numbered(self.number))
    }
}

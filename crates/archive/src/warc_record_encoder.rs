//! Writes WARC 1.1 records: the warcinfo of a file, and the records of one capture.

use std::ops::Range;

use crawl_weburl::CanonicalUrl;
use uuid::Uuid;

use crate::capture::{Capture, RecordIds, RevisitOriginal, RevisitProfile, protocol_id};
use crate::cdxj;
use crate::digest::DigestAlgorithm;
use crate::http_head_writer::{push_field, request_head, response_head};
use crate::timestamp::Timestamp;
use crate::warc_compression::{RecordCompressor, WarcCompression};

const CONFORMS_TO: &str =
    "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/";
const PROFILE: &str = "http://netpreserve.org/warc/1.1/revisit/";
const FIELDS: &str = "application/warc-fields";

/// The digest algorithm of payloads and blocks. Most archives use it, so payloads can be compared
/// with theirs.
const DIGEST: DigestAlgorithm = DigestAlgorithm::Sha1;

/// The content of the record at the start of each file: who created the file and how (WARC 1.1
/// section 6.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warcinfo {
    /// Program and version: `crawl/0.1.0`.
    pub software: String,
    /// The operator of the crawl: a name, an email address or a URL, or `NAME <ADDRESS>`.
    pub operator: Option<String>,
    /// The institution for which the crawl is made.
    pub publisher: Option<String>,
    /// The study that the crawl is part of.
    pub is_part_of: Option<String>,
    /// The `User-Agent` of the requests.
    pub user_agent: String,
    /// The `From` of the requests.
    pub from: Option<String>,
    /// How the crawl obeys robots.txt, in words.
    pub robots: String,
    /// The name and version of the browser that renders pages, if any are rendered.
    pub browser: Option<String>,
    /// The labelled digest of the configuration in the run that created the file.
    pub config_digest: Option<String>,
}

impl Warcinfo {
    /// Returns the block of the record.
    pub(crate) fn block(&self) -> Vec<u8> {
        let fields = [
            ("software", Some(self.software.as_str())),
            ("operator", self.operator.as_deref()),
            ("publisher", self.publisher.as_deref()),
            ("isPartOf", self.is_part_of.as_deref()),
            ("http-header-user-agent", Some(&self.user_agent)),
            ("http-header-from", self.from.as_deref()),
            ("robots", Some(&self.robots)),
            ("browser", self.browser.as_deref()),
            ("config-digest", self.config_digest.as_deref()),
            ("format", Some("WARC File Format 1.1")),
            ("conformsTo", Some(CONFORMS_TO)),
        ];
        let mut block = Vec::new();
        for (name, value) in fields {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                push_field(name, value.as_bytes(), &mut block);
            }
        }
        block
    }
}

/// The media type of a serialized DOM.
const HTML_IN_UTF8: &str = "text/html; charset=utf-8";

/// The media type of a screenshot.
const PNG: &str = "image/png";

/// The finished records of one capture, ready to append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedCapture {
    /// The compressed records in order: response or revisit, the `conversion` of a rendered page,
    /// its screenshot, request, metadata.
    pub(crate) records: Vec<u8>,
    /// The range in `records` of the first record. The index refers to this record.
    pub(crate) response: Range<usize>,
    /// The beginning of the index line, up to the digest, without the file and the offset.
    pub(crate) index_head: String,
    /// The offset in `records`, in bytes, at which the next record about the rendered page is
    /// inserted.
    rendered_end: usize,
    /// The range in `records` of the screenshot, and the beginning of its index line.
    pub(crate) screenshot: Option<(Range<usize>, String)>,
    pub(crate) started: Timestamp,
    pub(crate) id: Uuid,
    digest: String,
}

impl EncodedCapture {
    /// Returns the labelled digest of the payload. The payload is the body or, for a revisit with
    /// an identical payload, the archived payload that it refers to; for a 304, an empty body.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the id of the response or revisit record.
    #[must_use]
    pub fn record_id(&self) -> Uuid {
        self.id
    }

    /// Returns the total length of the compressed records, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.records.len() as u64
    }

    /// Inserts a record about the rendered page into `records`, after earlier records about that
    /// page. Returns the range of the new record.
    fn insert(&mut self, record: Vec<u8>) -> Range<usize> {
        let range = self.rendered_end..self.rendered_end + record.len();
        self.records.splice(range.start..range.start, record);
        self.rendered_end = range.end;
        range
    }
}

/// Encodes captures as records. The encoder reuses its tables and buffers, so create one for each
/// thread. A capture doesn't affect the output for later ones.
pub struct CaptureEncoder {
    compressor: RecordCompressor,
    head: Vec<u8>,
    block: Vec<u8>,
}

impl Default for CaptureEncoder {
    fn default() -> CaptureEncoder {
        CaptureEncoder::new(WarcCompression::default())
    }
}

impl CaptureEncoder {
    /// Creates an encoder of records for files with this compression.
    #[must_use]
    pub fn new(compression: WarcCompression) -> CaptureEncoder {
        CaptureEncoder {
            compressor: RecordCompressor::new(compression),
            head: Vec::new(),
            block: Vec::new(),
        }
    }

    /// Encodes the records of one capture. This takes only CPU time. The body is hashed and
    /// compressed without being copied.
    #[must_use]
    pub fn encode(&mut self, capture: &Capture<'_>, ids: &RecordIds) -> EncodedCapture {
        let capture = &sound(*capture);
        let body_digest = DIGEST.of(&[capture.body]);
        let digest = match capture.revisit {
            Some(RevisitProfile::IdenticalContent { payload_digest, .. }) => {
                payload_digest.to_owned()
            }
            _ => body_digest.clone(),
        };
        let mut records = Vec::with_capacity(self.compressor.expected_bytes(capture.body.len()));
        self.response(capture, ids, &digest, &mut records);
        let response = 0..records.len();
        self.request(capture, ids, &mut records);
        self.metadata(capture, ids, &body_digest, &mut records);
        EncodedCapture {
            records,
            rendered_end: response.end,
            screenshot: None,
            response,
            index_head: cdxj::line_head(capture, payload_digest(capture, &digest)),
            started: capture.started,
            id: ids.response,
            digest,
        }
    }

    /// Adds the serialized DOM of a rendered page to its capture, as a `conversion` record (WARC
    /// 1.1 section 6.8). Returns the distance from the response record to the new record, in bytes.
    ///
    /// The new record directly follows the response record. The response record is never rewritten,
    /// so the distance stays valid.
    pub fn add_dom(&mut self, capture: &mut EncodedCapture, url: &CanonicalUrl, dom: &str) -> u64 {
        let mut record = Vec::with_capacity(512 + dom.len() / 3);
        self.block.clear();
        self.begin("conversion", Uuid::new_v4(), capture.started);
        self.field("WARC-Target-URI", url.as_str());
        self.field("WARC-Refers-To", &urn(capture.id));
        self.field("Content-Type", HTML_IN_UTF8);
        self.end(dom.as_bytes(), &mut record);
        capture.insert(record).start as u64
    }

    /// Adds a screenshot (PNG) of a rendered page to its capture, as a `resource` record (WARC 1.1
    /// section 6.4) of the URL `urn:view:URL`, as Browsertrix does. Returns the distance from the
    /// response record to the new record, in bytes. Call this after [`add_dom`](Self::add_dom).
    pub fn add_screenshot(
        &mut self,
        capture: &mut EncodedCapture,
        url: &CanonicalUrl,
        png: &[u8],
    ) -> u64 {
        let target = format!("{}{url}", cdxj::VIEW);
        let mut record = Vec::with_capacity(512 + png.len());
        self.block.clear();
        self.begin("resource", Uuid::new_v4(), capture.started);
        self.field("WARC-Target-URI", &target);
        self.field("WARC-Concurrent-To", &urn(capture.id));
        self.field("Content-Type", PNG);
        self.end(png, &mut record);
        // The index line has the digest of the block, because the block is the payload. The record
        // itself has no payload digest: FastWARC finds payloads only in HTTP messages, and would
        // call the digest wrong.
        let digest = DIGEST.of(&[png]);
        let head = cdxj::resource_head(&target, capture.started, Some(PNG), Some(&digest));
        let range = capture.insert(record);
        let distance = range.start as u64;
        capture.screenshot = Some((range, head));
        distance
    }

    /// Encodes a record that was read from an archive, but with other fields and another block.
    pub(crate) fn again<'f>(
        &mut self,
        fields: impl Iterator<Item = (&'f str, &'f str)>,
        block: &[u8],
        out: &mut Vec<u8>,
    ) {
        self.head.clear();
        self.head.extend_from_slice(b"WARC/1.1\r\n");
        for (name, value) in fields {
            if !matches!(name, "WARC-Block-Digest" | "Content-Length") {
                self.field(name, value);
            }
        }
        self.block.clear();
        self.block.extend_from_slice(block);
        self.end(&[], out);
    }

    /// Encodes the `warcinfo` record, which is the first record of a file.
    pub(crate) fn warcinfo(
        &mut self,
        info: &Warcinfo,
        file: &str,
        date: Timestamp,
        id: Uuid,
    ) -> Vec<u8> {
        self.block.clear();
        self.block.extend(info.block());
        self.begin("warcinfo", id, date);
        self.field("WARC-Filename", file);
        self.field("Content-Type", FIELDS);
        let mut record = Vec::new();
        self.end(&[], &mut record);
        record
    }

    fn response(
        &mut self,
        capture: &Capture<'_>,
        ids: &RecordIds,
        digest: &str,
        out: &mut Vec<u8>,
    ) {
        self.block.clear();
        let is_without_head = capture
            .revisit
            .is_some_and(|revisit| revisit.is_without_head());
        if !is_without_head {
            response_head(capture, &mut self.block);
        }
        let kind = match capture.revisit {
            Some(_) => "revisit",
            None => "response",
        };
        self.begin(kind, ids.response, capture.started);
        self.target(capture);
        self.revisit(capture.revisit);
        if let Some(truncated) = capture.truncated {
            self.field("WARC-Truncated", truncated.id());
        }
        if let Some(digest) = payload_digest(capture, digest) {
            self.field("WARC-Payload-Digest", digest);
        }
        self.field("Content-Type", "application/http;msgtype=response");
        let body = match capture.revisit {
            Some(_) => &[],
            None => capture.body,
        };
        self.end(body, out);
    }

    fn request(&mut self, capture: &Capture<'_>, ids: &RecordIds, out: &mut Vec<u8>) {
        self.block.clear();
        request_head(capture, &mut self.block);
        self.begin("request", ids.request, capture.started);
        self.target(capture);
        self.field("WARC-Concurrent-To", &urn(ids.response));
        self.field("Content-Type", "application/http;msgtype=request");
        self.end(capture.request.body, out);
    }

    fn metadata(
        &mut self,
        capture: &Capture<'_>,
        ids: &RecordIds,
        digest: &str,
        out: &mut Vec<u8>,
    ) {
        self.block.clear();
        let about = &capture.about;
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        let fields = [
            ("via", about.via.map(str::to_owned)),
            ("depth", number(about.depth)),
            ("redirects", number(about.redirects)),
            ("fetchTimeMs", Some(capture.millis.to_string())),
            ("charset", about.charset.map(str::to_owned)),
        ];
        for (name, value) in &fields {
            if let Some(value) = value {
                push_field(name, value.as_bytes(), &mut self.block);
            }
        }
        for (name, value) in about.more {
            push_field(name, value.as_bytes(), &mut self.block);
        }
        if capture
            .revisit
            .is_some_and(|revisit| revisit.is_without_head())
        {
            self.head_as_fields(capture);
        }
        if let Some(RevisitProfile::IdenticalContent { .. }) = capture.revisit {
            let compared = "without its content coding";
            push_field("http-payload-digest", digest.as_bytes(), &mut self.block);
            push_field("compared", compared.as_bytes(), &mut self.block);
        }
        self.begin("metadata", ids.metadata, capture.started);
        self.field("WARC-Target-URI", capture.url.as_str());
        self.field("WARC-Concurrent-To", &urn(ids.response));
        self.field("Content-Type", FIELDS);
        self.end(&[], out);
    }

    /// Adds the response header to the metadata block, for a revisit record with an empty block.
    /// The revisit record must not contain the header of a 304, because pywb would then reply with
    /// an empty 304. With an empty block, which WARC 1.1 section 6.7.3 allows, pywb replays the
    /// header and payload of the original capture.
    fn head_as_fields(&mut self, capture: &Capture<'_>) {
        self.head.clear();
        response_head(capture, &mut self.head);
        let mut name = "http-status-line";
        for line in self.head.split(|&byte| byte == b'\n') {
            let line = line.trim_ascii_end();
            if !line.is_empty() {
                push_field(name, line, &mut self.block);
            }
            name = "http-header";
        }
    }

    fn begin(&mut self, kind: &str, id: Uuid, date: Timestamp) {
        self.head.clear();
        self.head.extend_from_slice(b"WARC/1.1\r\n");
        self.field("WARC-Type", kind);
        self.field("WARC-Record-ID", &urn(id));
        self.field("WARC-Date", &date.rfc3339_micros());
    }

    fn target(&mut self, capture: &Capture<'_>) {
        self.field("WARC-Target-URI", capture.url.as_str());
        if let Some(address) = capture.address {
            self.field("WARC-IP-Address", &address.to_canonical().to_string());
        }
        let protocol = protocol_id(capture.protocol, capture.url.scheme());
        self.field("WARC-Protocol", protocol);
        if let Some(tls) = capture.tls {
            self.field("WARC-Protocol", tls.id());
        }
    }

    fn revisit(&mut self, revisit: Option<RevisitProfile<'_>>) {
        let (profile, original) = match revisit {
            Some(
                RevisitProfile::IdenticalPayload(original)
                | RevisitProfile::IdenticalContent { original, .. },
            ) => ("identical-payload-digest", original),
            Some(RevisitProfile::NotModified(original)) => ("server-not-modified", original),
            None => return,
        };
        self.field("WARC-Profile", &format!("{PROFILE}{profile}"));
        self.refers_to(&original);
        if !matches!(revisit, Some(RevisitProfile::NotModified(_))) {
            // A revisit omits the payload, which counts as truncation (WARC 1.1 section 6.7.2).
            self.field("WARC-Truncated", "length");
        }
    }

    fn refers_to(&mut self, original: &RevisitOriginal<'_>) {
        self.field("WARC-Refers-To-Target-URI", original.url);
        self.field("WARC-Refers-To-Date", &original.date.rfc3339_micros());
    }

    fn field(&mut self, name: &str, value: &str) {
        push_field(name, value.as_bytes(), &mut self.head);
    }

    /// Finishes the record, compresses it, and appends it to `out`. The block of the record is
    /// `self.block` followed by `body`.
    fn end(&mut self, body: &[u8], out: &mut Vec<u8>) {
        let digest = DIGEST.of(&[&self.block, body]);
        self.field("WARC-Block-Digest", &digest);
        let length = self.block.len() + body.len();
        self.field("Content-Length", &length.to_string());
        self.head.extend_from_slice(b"\r\n");
        self.compressor
            .append(&[&self.head, &self.block, body, b"\r\n\r\n"], out);
    }
}

/// Removes the `revisit` of a truncated capture, because a truncated body can't equal an archived
/// payload.
fn sound(mut capture: Capture<'_>) -> Capture<'_> {
    if capture.truncated.is_some() {
        capture.revisit = None;
    }
    capture
}

/// Returns the payload digest to write into the record. `None` for a 304, because the record has no
/// payload of its own, and validators would compare the digest with the record's own bytes. (WARC
/// 1.1 section 6.7.3 doesn't require a payload digest.)
fn payload_digest<'d>(capture: &Capture<'_>, digest: &'d str) -> Option<&'d str> {
    match capture.revisit {
        Some(RevisitProfile::NotModified(_)) => None,
        _ => Some(digest),
    }
}

fn urn(id: Uuid) -> String {
    format!("<{}>", id.urn())
}

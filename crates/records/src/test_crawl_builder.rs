//! Builds crawl directories for tests: rows, and an archive with the bodies.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;

use crawl_archive::{
    ArchiveOptions, ArchiveWriter, Capture, CaptureEncoder, CaptureMetadata, CapturedRequest,
    RecordIds, Timestamp,
};
use crawl_weburl::canonicalize;
use flate2::Compression;
use flate2::read::GzEncoder;
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A crawl's directory under construction.
pub(crate) struct TestCrawlBuilder {
    pub(crate) dir: TempDir,
    archive: ArchiveWriter,
    encoder: CaptureEncoder,
    rows: Vec<String>,
}

impl TestCrawlBuilder {
    pub(crate) fn new() -> TestCrawlBuilder {
        let dir = tempfile::tempdir().unwrap();
        let archive = ArchiveWriter::open(dir.path(), ArchiveOptions::default(), &BTreeMap::new());
        TestCrawlBuilder {
            archive: archive.unwrap(),
            dir,
            encoder: CaptureEncoder::default(),
            rows: Vec::new(),
        }
    }

    /// Adds a page with its body.
    pub(crate) fn page(&mut self, url: &str, content_type: &'static str, body: &str) {
        self.page_with(url, content_type, body, &json!({}));
    }

    /// Adds a page. `columns` replace the usual values in its row.
    pub(crate) fn page_with(
        &mut self,
        url: &str,
        content_type: &'static str,
        body: &str,
        columns: &Value,
    ) {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static(content_type));
        self.answer(url, 200, &headers, body.as_bytes(), columns);
    }

    /// Adds an HTML page that is sent with gzip.
    pub(crate) fn gzipped_page(&mut self, url: &str, html: &str) {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("text/html"));
        headers.insert("content-encoding", HeaderValue::from_static("gzip"));
        let charset = json!({"charset": "UTF-8"});
        self.answer(url, 200, &headers, &gzip(html), &charset);
    }

    /// Adds a gzip file that contains `text`.
    pub(crate) fn gzip_file(&mut self, url: &str, text: &str) {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/gzip"));
        self.answer(url, 200, &headers, &gzip(text), &json!({}));
    }

    /// Adds a redirect. `location` is the header value.
    pub(crate) fn redirect(&mut self, url: &str, location: &'static str, to: &str) {
        self.redirect_with(302, url, location, to);
    }

    /// Adds a redirect with this status.
    pub(crate) fn redirect_with(
        &mut self,
        status: u16,
        url: &str,
        location: &'static str,
        to: &str,
    ) {
        let mut headers = HeaderMap::new();
        headers.insert("location", HeaderValue::from_static(location));
        let columns = json!({"status": status, "redirect": to, "content_type": null});
        self.answer(url, status, &headers, b"", &columns);
    }

    fn answer(
        &mut self,
        url: &str,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
        columns: &Value,
    ) {
        let content_type = headers.get("content-type");
        let content_type = content_type.map(|value| value.to_str().unwrap());
        let capture = Capture {
            url: &canonicalize(None, url).unwrap(),
            started: Timestamp::from_micros(1_795_132_800_000_000),
            millis: 1,
            address: None,
            protocol: http::Version::HTTP_11,
            tls: None,
            request: CapturedRequest {
                method: "GET",
                headers: &[],
                body: &[],
            },
            status,
            reason: None,
            headers,
            body,
            truncated: None,
            revisit: None,
            about: CaptureMetadata::default(),
        };
        let encoded = self.encoder.encode(&capture, &RecordIds::random());
        let receipt = self.archive.append(&encoded).unwrap();
        let mut row = json!({"status": status, "content_type": content_type, "bytes": body.len(),
            "change": "new", "warc": {"file": receipt.file, "offset": receipt.offset}});
        for (name, value) in columns.as_object().unwrap() {
            row[name] = value.clone();
        }
        self.row(url, &row);
    }

    /// Adds a row without an archived body.
    pub(crate) fn row(&mut self, url: &str, columns: &Value) {
        let mut row = json!({"url": url, "status": null, "fetched_at": "2026-11-20T23:59:59.123Z",
            "ms": 1, "bytes": 0, "content_type": null, "digest": null, "depth": 0, "via": null,
            "title": null, "robots": null, "warc": null, "error": null, "round": 1,
            "change": null, "redirect": null});
        for (name, value) in columns.as_object().unwrap() {
            row[name] = value.clone();
        }
        self.rows.push(format!("{row}\n"));
    }

    /// Records that these URLs were requested as sitemaps.
    pub(crate) fn requested_as_sitemaps(&self, urls: &[String]) {
        let rows = urls.iter().map(|url| {
            let row = json!({"url": url, "host": "e.example", "address": null,
                "purpose": "sitemap", "start": 1, "end": 2, "status": 200, "failure": null,
                "gap_asked": 0, "why": "delay", "wait_asked": null});
            format!("{row}\n")
        });
        let rows: String = rows.collect();
        fs::write(self.dir.path().join("requests.jsonl"), rows).unwrap();
    }

    /// Adds a robots.txt, and records that it was requested.
    pub(crate) fn robots(&mut self, url: &str, text: &str) {
        let started = 1_795_132_800_000_u64;
        self.answer(url, 200, &HeaderMap::new(), text.as_bytes(), &json!({}));
        self.rows.pop();
        let row = json!({"url": url, "host": "e.example", "address": null, "purpose": "robots",
            "start": started, "end": started + 1, "status": 200, "failure": null,
            "gap_asked": 0, "why": "first", "wait_asked": null});
        fs::write(self.dir.path().join("requests.jsonl"), format!("{row}\n")).unwrap();
    }

    /// Writes the rows and returns the directory.
    pub(crate) fn finish(mut self) -> TempDir {
        self.archive.sync().unwrap();
        fs::write(self.dir.path().join("pages.jsonl"), self.rows.concat()).unwrap();
        self.dir
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = GzEncoder::new(text.as_bytes(), Compression::default());
    encoder.read_to_end(&mut bytes).unwrap();
    bytes
}

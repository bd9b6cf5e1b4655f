//! Tests of mirrors of small crawls.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crawl_archive::{
    ArchiveOptions, ArchiveWriter, Capture, CaptureEncoder, CaptureMetadata, CapturedRequest,
    RecordIds, Timestamp, WarcTruncation,
};
use crawl_weburl::canonicalize;
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{MARK, MirrorReport, mirror};
use crate::MirrorError;

/// A crawl's directory under construction.
struct Crawl {
    dir: TempDir,
    archive: ArchiveWriter,
    rows: String,
}

impl Crawl {
    fn new() -> Crawl {
        let dir = tempfile::tempdir().unwrap();
        let archive = ArchiveWriter::open(dir.path(), ArchiveOptions::default(), &BTreeMap::new());
        Crawl {
            archive: archive.unwrap(),
            dir,
            rows: String::new(),
        }
    }

    fn page(&mut self, url: &str, content_type: &'static str, body: &str) {
        self.page_with(url, content_type, body, &json!({}), None);
    }

    fn page_with(
        &mut self,
        url: &str,
        content_type: &'static str,
        body: &str,
        columns: &Value,
        truncated: Option<WarcTruncation>,
    ) {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static(content_type));
        if let Some(location) = columns["location"].as_str() {
            headers.insert("location", location.parse().unwrap());
        }
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
            status: 200,
            reason: None,
            headers: &headers,
            body: body.as_bytes(),
            truncated,
            revisit: None,
            about: CaptureMetadata::default(),
        };
        let encoded = CaptureEncoder::default().encode(&capture, &RecordIds::random());
        let receipt = self.archive.append(&encoded).unwrap();
        let mut row = json!({"status": 200, "content_type": content_type, "bytes": body.len(),
            "warc": {"file": receipt.file, "offset": receipt.offset}});
        add(&mut row, columns);
        self.row(url, &row);
    }

    fn redirect(&mut self, url: &str, to: &str) {
        self.row(url, &json!({"status": 301, "redirect": to}));
    }

    /// Adds a redirect with its archived response.
    fn redirect_with(&mut self, url: &str, location: &'static str, to: &str) {
        let columns = json!({"status": 301, "redirect": to, "location": location});
        self.page_with(url, HTML, "", &columns, None);
    }

    fn row(&mut self, url: &str, columns: &Value) {
        let mut row = json!({"url": url, "status": null, "fetched_at": "2026-11-20T23:59:59.123Z",
            "ms": 1, "bytes": 0, "content_type": null, "digest": null, "depth": 0, "via": null,
            "title": null, "robots": null, "warc": null, "error": null, "change": "new"});
        add(&mut row, columns);
        self.rows.push_str(&format!("{row}\n"));
    }

    /// Writes the crawl's rows and the mirror. Returns the report, and the texts of the mirror's
    /// files by path.
    fn mirror(&mut self) -> (MirrorReport, BTreeMap<String, String>) {
        self.archive.sync().unwrap();
        fs::write(self.dir.path().join("pages.jsonl"), &self.rows).unwrap();
        let out = self.dir.path().join("out");
        let report = mirror(self.dir.path(), &out).unwrap();
        let mut files = BTreeMap::new();
        collect(&out, "", &mut files);
        (report, files)
    }
}

fn add(row: &mut Value, columns: &Value) {
    for (name, value) in columns.as_object().unwrap() {
        row[name] = value.clone();
    }
}

fn collect(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &format!("{name}/"), files);
        } else if name != MARK {
            files.insert(name, fs::read_to_string(entry.path()).unwrap());
        }
    }
}

const HTML: &str = "text/html; charset=utf-8";

#[test]
fn files_refer_to_each_other() {
    let mut crawl = Crawl::new();
    crawl.page(
        "https://e.example/",
        HTML,
        "<link rel=stylesheet href=/css/s.css?v=1><a href=/old#x>a</a><a href=/a/?utm_source=b>b</a>\
         <a href=http://e.example/>c</a><a href=/gone>d</a>",
    );
    crawl.page(
        "https://e.example/css/s.css?v=1",
        "text/css",
        "a{b:url(../i.png)} i{b:url(no.png)}",
    );
    crawl.page("https://e.example/i.png", "image/png", "PNG");
    crawl.page("https://e.example/a/", HTML, "<img src=../i.png>");
    crawl.redirect("https://e.example/old", "https://e.example/older");
    crawl.redirect("https://e.example/older", "https://e.example/a/");
    crawl.page(
        "http://e.example/",
        HTML,
        "<a href=https://e.example/a/>a</a>",
    );
    crawl.row("https://e.example/gone", &json!({"status": 404}));
    let (report, files) = crawl.mirror();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (&**name, &**text))
        .collect();
    assert_eq!(
        files,
        [
            ("e.example/a/index.html", "<img src=\"../i.png\">"),
            (
                "e.example/css/s_v=1.css",
                "a{b:url(\"../i.png\")} i{b:url(\"https://e.example/css/no.png\")}"
            ),
            ("e.example/i.png", "PNG"),
            (
                "e.example/index.html",
                "<link rel=stylesheet href=\"css/s_v=1.css\"><a href=\"a/index.html#x\">a</a>\
                 <a href=\"a/index.html\">b</a><a href=\"../e.example_http/index.html\">c</a>\
                 <a href=\"https://e.example/gone\">d</a>"
            ),
            (
                "e.example_http/index.html",
                "<a href=\"../e.example/a/index.html\">a</a>"
            ),
        ]
    );
    assert_eq!((report.pages, report.resources), (3, 2));
    assert_eq!(report.start.as_deref(), Some("e.example/index.html"));
}

#[test]
fn omissions_are_counted() {
    let mut crawl = Crawl::new();
    let links = "<a href=/withheld>1</a><a href=/secret>2</a><a href=/lost>3</a>";
    crawl.page("https://e.example/", HTML, links);
    let mut refused = |path: &str, columns: &Value| {
        crawl.page_with(
            &format!("https://e.example{path}"),
            HTML,
            "no",
            columns,
            None,
        );
    };
    refused("/withheld", &json!({"withheld": "noarchive"}));
    refused("/secret", &json!({"echoes_secret": true}));
    refused("/unwanted", &json!({"unwanted": "max-size 1"}));
    refused(
        "/lost",
        &json!({"warc": {"file": "gone.warc.gz", "offset": 0}}),
    );
    refused("/unarchived", &json!({"warc": null}));
    crawl.row(
        "file:///etc/passwd",
        &json!({"status": 200, "content_type": "text/html"}),
    );
    let cut = Some(WarcTruncation::Length);
    crawl.page_with("https://e.example/cut", HTML, "<p", &json!({}), cut);
    let (report, files) = crawl.mirror();
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        ["e.example/cut.html", "e.example/index.html"]
    );
    assert_eq!(
        files["e.example/index.html"],
        links
            .replace("=/", "=\"https://e.example/")
            .replace('>', "\">")
            .replace("a\">", "a>")
    );
    let MirrorReport {
        withheld,
        unwanted,
        secret,
        without_body,
        unreadable,
        truncated,
        ..
    } = report;
    assert_eq!(
        [
            withheld,
            unwanted,
            secret,
            without_body,
            unreadable,
            truncated
        ],
        // Two rows count as unreadable: one has no usable URL, and the record of the other is
        // missing.
        [1, 1, 1, 1, 2, 1]
    );
}

#[test]
fn the_fragment_of_a_redirect_replaces_that_of_the_link() {
    let mut crawl = Crawl::new();
    let links = "<a href=old>a</a><a href=old#b>b</a><a href=plain>c</a><a href=plain#d>d</a>\
        <a href=first#e>e</a>";
    crawl.page("https://e.example/", HTML, links);
    crawl.page("https://e.example/guide", HTML, "<p id=install>");
    let guide = "https://e.example/guide";
    crawl.redirect_with("https://e.example/old", "/guide#install", guide);
    crawl.redirect_with("https://e.example/plain", "/guide", guide);
    crawl.redirect_with(
        "https://e.example/first",
        "/plain#f",
        "https://e.example/plain",
    );
    let (_, files) = crawl.mirror();
    let links: Vec<&str> = files["e.example/index.html"]
        .split('"')
        .skip(1)
        .step_by(2)
        .collect();
    let expected = ["#install", "#install", "", "#d", "#f"];
    assert_eq!(
        links,
        expected.map(|fragment| format!("guide.html{fragment}"))
    );
}

#[test]
fn redirects_in_a_circle_lead_to_the_web() {
    let mut crawl = Crawl::new();
    crawl.page("https://e.example/", HTML, "<a href=/a>");
    crawl.redirect("https://e.example/a", "https://e.example/b");
    crawl.redirect("https://e.example/b", "https://e.example/a");
    let (_, files) = crawl.mirror();
    assert_eq!(
        files["e.example/index.html"],
        "<a href=\"https://e.example/a\">"
    );
}

#[test]
fn only_an_earlier_mirror_is_replaced() {
    let mut crawl = Crawl::new();
    crawl.page("https://e.example/", HTML, "one");
    let (_, first) = crawl.mirror();
    crawl.page("https://e.example/b", HTML, "two");
    let (_, second) = crawl.mirror();
    assert_eq!((first.len(), second.len()), (1, 2));
    let out = crawl.dir.path().join("out");
    fs::remove_file(out.join(MARK)).unwrap();
    let refused = mirror(crawl.dir.path(), &out).unwrap_err();
    assert!(matches!(refused, MirrorError::Folder(_)), "{refused}");
    assert!(out.join("e.example/b.html").exists());
}

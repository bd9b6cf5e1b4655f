//! Helpers that write a crawl's directory as the crawler does, and read the resulting package.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crawl_archive::rows::{PageRow, WarcRecordLocation};
use crawl_archive::{
    ArchiveOptions, ArchiveWriter, Capture, CaptureEncoder, CaptureLine, CaptureMetadata,
    CapturedRequest, RecordIds, RevisitProfile, Timestamp, WarcCompression, WarcRecord,
    WarcTruncation, read_record, strip_warc_suffix,
};
use crawl_wacz::{WaczError, WaczOptions, WrittenWacz, package};
use crawl_weburl::canonicalize;
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use tempfile::TempDir;
use zip::ZipArchive;

/// The start of the crawl in microseconds: 2026-11-20T23:59:59Z.
const BEGIN: u64 = 1_795_219_199_000_000;

/// A crawl's directory that a test fills with captures.
pub(crate) struct Crawl {
    dir: TempDir,
    archive: ArchiveWriter,
    encoder: CaptureEncoder,
    rows: String,
    captures: u64,
    /// How far the clock is ahead, in microseconds.
    pub(crate) clock_error: u64,
}

/// A page that a test adds to the crawl.
#[derive(Clone, Copy)]
pub(crate) struct Page<'a> {
    pub(crate) url: &'a str,
    pub(crate) depth: u32,
    pub(crate) round: u32,
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: &'a str,
    pub(crate) revisit: Option<RevisitProfile<'a>>,
    pub(crate) truncated: Option<WarcTruncation>,
}

impl<'a> Page<'a> {
    pub(crate) fn html(url: &'a str, body: &'a str) -> Page<'a> {
        Page {
            url,
            depth: 1,
            round: 1,
            status: 200,
            content_type: "text/html; charset=utf-8",
            body,
            revisit: None,
            truncated: None,
        }
    }
}

impl Crawl {
    pub(crate) fn new(max_file_bytes: u64) -> Crawl {
        Crawl::with_compression(max_file_bytes, WarcCompression::Gzip)
    }

    pub(crate) fn with_compression(max_file_bytes: u64, compression: WarcCompression) -> Crawl {
        let dir = tempfile::tempdir().unwrap();
        let settings = "seed = [\"http://e.example/\"]\n[operator]\noperator-name = \"A. Author\"\n\
                        contact = \"a@example.org\"\nstudy = \"Tea\"\n";
        fs::write(dir.path().join("crawl.toml"), settings).unwrap();
        let options = ArchiveOptions {
            max_file_bytes,
            compression,
            ..ArchiveOptions::default()
        };
        Crawl {
            archive: ArchiveWriter::open(dir.path(), options, &BTreeMap::new()).unwrap(),
            encoder: CaptureEncoder::new(compression),
            rows: String::new(),
            captures: 0,
            clock_error: 0,
            dir,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the time that the next capture will have.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_micros(BEGIN + self.captures * 1_000_000 + self.clock_error)
    }

    pub(crate) fn page(&mut self, page: Page<'_>) {
        let url = canonicalize(None, page.url).unwrap();
        let mut headers = http::HeaderMap::new();
        headers.insert("content-type", page.content_type.parse().unwrap());
        let started = self.now();
        let capture = Capture {
            url: &url,
            started,
            millis: 1,
            address: None,
            protocol: http::Version::HTTP_11,
            tls: None,
            request: CapturedRequest {
                method: "GET",
                headers: &[],
                body: &[],
            },
            status: page.status,
            reason: None,
            headers: &headers,
            body: page.body.as_bytes(),
            truncated: page.truncated,
            revisit: page.revisit,
            about: CaptureMetadata::default(),
        };
        self.captures += 1;
        let ids = RecordIds::numbered(self.captures);
        let receipt = self.archive.append(&self.encoder.encode(&capture, &ids));
        let receipt = receipt.unwrap();
        let row = serde_json::json!({
            "url": url.as_str(), "status": page.status, "fetched_at": started.rfc3339_millis(),
            "ms": 1, "bytes": page.body.len(), "content_type": page.content_type, "digest": null,
            "depth": page.depth, "via": null, "title": null, "robots": null, "usage": null,
            "warc": WarcRecordLocation { file: receipt.file, offset: receipt.offset }, "withheld": null,
            "round": page.round, "error": null
        });
        let row: PageRow = serde_json::from_value(row).unwrap();
        self.rows.push_str(&serde_json::to_string(&row).unwrap());
        self.rows.push('\n');
    }

    /// Syncs all files to disk, as the crawler does when it commits.
    pub(crate) fn sync(&mut self) {
        self.archive.sync().unwrap();
        fs::write(self.path().join("pages.jsonl"), &self.rows).unwrap();
    }

    /// Returns the paths of the crawl's WARC files.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path().join("archive")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = paths
            .filter(|path| strip_warc_suffix(&path.to_string_lossy()).is_some())
            .collect();
        files.sort();
        files
    }

    pub(crate) fn package(&self, round: Option<u32>) -> Package {
        self.package_with_earlier(round, &[]).unwrap()
    }

    pub(crate) fn package_with_earlier(
        &self,
        round: Option<u32>,
        earlier: &[PathBuf],
    ) -> Result<Package, WaczError> {
        Package::of(self.path(), round, earlier)
    }
}

/// A package that a test wrote.
pub(crate) struct Package {
    /// Keeps the temporary folder until the test ends.
    _folder: TempDir,
    pub(crate) packaged: WrittenWacz,
    pub(crate) entries: BTreeMap<String, Vec<u8>>,
}

impl Package {
    pub(crate) fn of(
        dir: &Path,
        round: Option<u32>,
        earlier: &[PathBuf],
    ) -> Result<Package, WaczError> {
        let folder = tempfile::tempdir().unwrap();
        let options = WaczOptions {
            round,
            earlier: earlier.to_vec(),
            created: Timestamp::from_micros(BEGIN),
            software: "crawl/0.0".to_owned(),
        };
        let packaged = package(dir, folder.path(), &options)?;
        let mut zip = ZipArchive::new(File::open(&packaged.file).unwrap()).unwrap();
        let mut entries = BTreeMap::new();
        for at in 0..zip.len() {
            let mut entry = zip.by_index(at).unwrap();
            let mut bytes = Vec::new();
            let name = entry.name().unwrap().into_owned();
            entry.read_to_end(&mut bytes).unwrap();
            entries.insert(name, bytes);
        }
        Ok(Package {
            _folder: folder,
            packaged,
            entries,
        })
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(&self.packaged.file).unwrap()
    }

    pub(crate) fn text(&self, entry: &str) -> String {
        String::from_utf8(self.entries[entry].clone()).unwrap()
    }

    /// Returns all lines of the package's index.
    pub(crate) fn index(&self) -> String {
        let mut text = String::new();
        let blocks = &self.entries["indexes/index.cdx.gz"][..];
        MultiGzDecoder::new(blocks)
            .read_to_string(&mut text)
            .unwrap();
        text
    }

    /// Reads a record of a WARC file in the package.
    pub(crate) fn record(&self, file: &str, offset: u64) -> WarcRecord {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        fs::write(&path, &self.entries[&format!("archive/{file}")]).unwrap();
        read_record(&path, offset).unwrap()
    }

    /// Returns the record of each capture, read at the offset that the index states.
    pub(crate) fn captures(&self) -> Vec<WarcRecord> {
        let read = |line: &str| {
            let line = CaptureLine::parse(format!("{line}\n").as_bytes()).unwrap();
            let record = self.record(&line.file, line.offset);
            assert_eq!(record.length, line.length);
            assert_eq!(record.wrong_digest(), None);
            record
        };
        self.index().lines().map(read).collect()
    }

    /// Returns the lines of both page lists, except the header line of each list.
    pub(crate) fn pages(&self) -> Vec<Value> {
        let lists = ["pages/pages.jsonl", "pages/extraPages.jsonl"];
        let lines = lists.map(|list| self.text(list));
        let lines = lines.iter().flat_map(|list| list.lines().skip(1));
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub(crate) fn data_package(&self) -> Value {
        serde_json::from_str(&self.text("datapackage.json")).unwrap()
    }
}

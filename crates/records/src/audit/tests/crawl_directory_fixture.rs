//! Writes the directory of a small crawl.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crawl_archive::{
    ArchiveOptions, ArchiveWriter, Capture, CaptureEncoder, CaptureMetadata, CapturedRequest,
    RecordIds, Timestamp,
};
use crawl_weburl::canonicalize;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The time in milliseconds since 1970 that the tests count from: 2026-11-20, midnight UTC.
const DAY: u64 = 1_795_132_800_000;

/// A request: one line of `requests.jsonl`.
pub(super) struct Sent {
    pub(super) purpose: &'static str,
    pub(super) path: &'static str,
    /// Start and end, in milliseconds since [`DAY`].
    pub(super) span: (u64, u64),
    /// The status of the response; 0 for a failure.
    pub(super) status: u16,
    pub(super) gap_asked: u64,
    /// The rule that sets the gap.
    pub(super) why: &'static str,
    pub(super) wait_asked: Option<u64>,
    /// Whether the request has a validator.
    pub(super) is_conditional: bool,
    pub(super) fields: &'static [(&'static str, &'static str)],
    pub(super) body: &'static str,
}

pub(super) fn robots(span: (u64, u64), status: u16, body: &'static str) -> Sent {
    Sent {
        purpose: "robots",
        path: "/robots.txt",
        span,
        status,
        gap_asked: 0,
        why: "delay",
        wait_asked: None,
        is_conditional: status == 304,
        fields: &[],
        body,
    }
}

pub(super) fn page(span: (u64, u64), path: &'static str) -> Sent {
    Sent {
        purpose: "page",
        path,
        gap_asked: 1000,
        ..robots(span, 200, "")
    }
}

impl Sent {
    fn url(&self) -> String {
        match self.path.starts_with('/') {
            true => format!("http://e.example{}", self.path),
            false => self.path.to_owned(),
        }
    }

    pub(super) fn row(&self) -> String {
        let url = self.url();
        let host = canonicalize(None, &url).unwrap().host_key();
        let (start, end) = (DAY + self.span.0, DAY + self.span.1);
        let status = Some(self.status).filter(|status| *status > 0);
        let failure = status.is_none().then_some("timeout");
        serde_json::json!({"url": url, "host": host.as_str(), "address": null,
            "purpose": self.purpose, "start": start, "end": end, "status": status,
            "failure": failure, "gap_asked": self.gap_asked, "why": self.why,
            "wait_asked": self.wait_asked})
        .to_string()
    }

    fn keep(&self, archive: &mut ArchiveWriter, encoder: &mut CaptureEncoder) {
        let mut headers = HeaderMap::new();
        for (name, value) in self.fields {
            headers.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        let conditional = [("if-none-match".to_owned(), "\"a\"".to_owned())];
        let url = canonicalize(None, &self.url()).unwrap();
        let capture = Capture {
            url: &url,
            started: Timestamp::from_micros((DAY + self.span.0) * 1000 + 7),
            millis: self.span.1 - self.span.0,
            address: None,
            protocol: http::Version::HTTP_11,
            tls: None,
            request: CapturedRequest {
                method: "GET",
                headers: if self.is_conditional {
                    &conditional
                } else {
                    &[]
                },
                body: &[],
            },
            status: self.status,
            reason: None,
            headers: &headers,
            body: self.body.as_bytes(),
            truncated: None,
            revisit: None,
            about: CaptureMetadata {
                more: &[("purpose", "robots"), ("of", "http://e.example")],
                ..CaptureMetadata::default()
            },
        };
        archive
            .append(&encoder.encode(&capture, &RecordIds::random()))
            .unwrap();
    }
}

/// How settings came into force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingsTrigger {
    Run,
    Reread,
}

/// A line number in a robots.txt, and its text.
type Rule = (u32, &'static str);

/// The content of the crawl's files other than `requests.jsonl`.
#[derive(Default)]
pub(super) struct More {
    pub(super) toml: &'static str,
    /// For each row of `pages.jsonl`: the time since [`DAY`], the path, the verdict and the rule.
    pub(super) pages: &'static [(u64, &'static str, &'static str, Option<Rule>)],
    /// For each excluded row: the path, the line of the rule, and the rule.
    pub(super) excluded: &'static [(&'static str, u32, &'static str)],
    /// Lines of `state/delays.jsonl`: the time since [`DAY`], the host and the delay.
    pub(super) delays: &'static [(u64, Option<&'static str>, Option<u64>)],
    /// Lines of `state/delays.jsonl` with settings: the time since [`DAY`], how they came into
    /// force, and the settings in JSON.
    pub(super) settings: &'static [(u64, SettingsTrigger, &'static str)],
    pub(super) no_archive: bool,
}

pub(super) fn write(dir: &Path, sent: &[Sent], more: &More) {
    fs::write(dir.join("crawl.toml"), more.toml).unwrap();
    let rows = |rows: Vec<String>| {
        rows.iter()
            .map(|row| format!("{row}\n"))
            .collect::<String>()
    };
    let log = rows(sent.iter().map(Sent::row).collect());
    fs::write(dir.join("requests.jsonl"), log).unwrap();
    let pages = more.pages.iter().map(|(at, path, verdict, rule)| {
        let at = Timestamp::from_micros((DAY + at) * 1000).rfc3339_millis();
        serde_json::json!({"url": format!("http://e.example{path}"), "status": 200,
            "fetched_at": at, "ms": 1, "bytes": 0, "content_type": null, "digest": null,
            "depth": 0, "via": null, "title": null,
            "robots": {"verdict": verdict, "line": rule.map(|rule| rule.0),
                "rule": rule.map(|rule| rule.1)}, "usage": null,
            "warc": null, "withheld": null, "error": null})
        .to_string()
    });
    fs::write(dir.join("pages.jsonl"), rows(pages.collect())).unwrap();
    let excluded = more.excluded.iter().map(|(path, line, rule)| {
        serde_json::json!({"url": format!("http://e.example{path}"), "reason": "robots",
            "rule": rule, "line": line, "found_on": null})
        .to_string()
    });
    fs::write(dir.join("excluded.jsonl"), rows(excluded.collect())).unwrap();
    if !more.delays.is_empty() || !more.settings.is_empty() {
        let delays = more.delays.iter().map(|(at, host, delay)| {
            serde_json::json!({"at": DAY + at, "host": host, "delay": delay}).to_string()
        });
        let settings = more.settings.iter().map(|(at, begins, settings)| {
            let settings: serde_json::Value = serde_json::from_str(settings).unwrap();
            let mut row = serde_json::json!({"at": DAY + at, "host": null, "delay": null,
                "settings": settings});
            if *begins == SettingsTrigger::Reread {
                row["reread"] = serde_json::json!({});
            }
            row.to_string()
        });
        fs::create_dir(dir.join("state")).unwrap();
        let delays = rows(delays.chain(settings).collect());
        fs::write(dir.join("state/delays.jsonl"), delays).unwrap();
    }
    if more.no_archive {
        return;
    }
    let mut archive =
        ArchiveWriter::open(dir, ArchiveOptions::default(), &BTreeMap::new()).unwrap();
    let mut encoder = CaptureEncoder::default();
    for sent in sent
        .iter()
        .filter(|sent| sent.purpose != "page" && sent.status > 0)
    {
        sent.keep(&mut archive, &mut encoder);
    }
    archive.sync().unwrap();
}

//! Formats lines of the index (CDXJ): SURT key, time as fourteen digits, and JSON.
//!
//! The lines are byte for byte those of the PyPI package `cdxj-indexer`, so that tools that read
//! its indexes can read ours. So numbers are strings, and the white space is that of Python's JSON.
//! The media type is that of the first `Content-Type` field, even if another field applies; rows of
//! `pages.jsonl` have the one that applies. Each response, revisit and screenshot has a line.

use std::fmt::Write as _;

use crate::capture::Capture;
use crate::http_head_writer::content_type;
use crate::surt::{surt, urn_key};
use crate::timestamp::Timestamp;
use crate::warc_reader::WarcRecord;

/// The prefix of the URL of a screenshot; the URL of the page follows.
pub(crate) const VIEW: &str = "urn:view:";

/// The media type of a revisit record.
const REVISIT: &str = "warc/revisit";

/// Returns the beginning of the index line of a capture, up to the digest. The rest needs the
/// record's offset, which is known only when the record is appended.
pub(crate) fn line_head(capture: &Capture<'_>, digest: Option<&str>) -> String {
    let mime = match capture.revisit {
        Some(_) => Some(REVISIT.to_owned()),
        None => content_type(capture.headers).map(mime),
    };
    // Without an HTTP header, the record has no status.
    let has_head = !capture
        .revisit
        .is_some_and(|revisit| revisit.is_without_head());
    let status = has_head.then_some(capture.status);
    head(
        (&surt(capture.url), capture.url.as_str()),
        capture.started,
        mime.as_deref(),
        status,
        digest,
    )
}

/// Returns the beginning of the index line of a `resource` record, up to the digest.
pub(crate) fn resource_head(
    url: &str,
    date: Timestamp,
    mime: Option<&str>,
    digest: Option<&str>,
) -> String {
    head((&urn_key(url), url), date, mime, None, digest)
}

/// Returns the index line (with its line end) of a response, revisit or screenshot in `file`.
/// `None` for other records.
#[must_use]
pub fn index_line(record: &WarcRecord, file: &str) -> Option<String> {
    if record.kind() == "resource" {
        let url = record.url().filter(|url| url.starts_with(VIEW))?;
        let mime = record
            .field("Content-Type")
            .map(|kind| mime(kind.as_bytes()));
        let digest = record.field("WARC-Block-Digest");
        let head = resource_head(url, record.date()?, mime.as_deref(), digest);
        return Some(line(&head, record.offset, record.length, file));
    }
    let url = crawl_weburl::canonicalize(None, record.url()?).ok()?;
    let http = record.http();
    let content_type = http.as_ref().and_then(|http| http.field("content-type"));
    let mime = match record.kind() {
        "revisit" => Some(REVISIT.to_owned()),
        "response" => content_type.map(mime),
        _ => return None,
    };
    let status = http.and_then(|http| http.status());
    let digest = record.field("WARC-Payload-Digest");
    let key = surt(&url);
    let url = (key.as_str(), url.as_str());
    let head = head(url, record.date()?, mime.as_deref(), status, digest);
    Some(line(&head, record.offset, record.length, file))
}

/// Returns the beginning of an index line, up to the digest. The first argument is a pair of the
/// SURT key and the URL.
fn head(
    (key, url): (&str, &str),
    started: Timestamp,
    mime: Option<&str>,
    status: Option<u16>,
    digest: Option<&str>,
) -> String {
    let mut line = format!("{key} ");
    line.push_str(&started.fourteen_digits());
    line.push_str(" {\"url\": ");
    push_json(url, &mut line);
    if let Some(mime) = mime {
        line.push_str(", \"mime\": ");
        push_json(mime, &mut line);
    }
    if let Some(status) = status {
        let _ = write!(line, ", \"status\": \"{status:03}\"");
    }
    if let Some(digest) = digest {
        line.push_str(", \"digest\": ");
        push_json(digest, &mut line);
    }
    line
}

/// Returns the whole index line of a record, with its line end. `head` is the beginning from
/// [`line_head`] or [`resource_head`].
pub(crate) fn line(head: &str, offset: u64, length: u64, file: &str) -> String {
    let mut line = format!("{head}, \"length\": \"{length}\", \"offset\": \"{offset}\"");
    line.push_str(", \"filename\": ");
    push_json(file, &mut line);
    line.push_str("}\n");
    line
}

/// Returns the media type in a `Content-Type` value, without its parameters.
fn mime(value: &[u8]) -> String {
    // Read a value that is not UTF-8 as Latin-1.
    let value = match std::str::from_utf8(value) {
        Ok(value) => value.to_owned(),
        Err(_) => value.iter().copied().map(char::from).collect(),
    };
    let kind = value.trim_matches(is_space);
    let kind = kind.split(|c| c == ';' || is_space(c)).next();
    kind.unwrap_or_default().to_owned()
}

/// Returns whether Python counts a character as white space.
fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// Appends a JSON string in quotes, with non-ASCII characters escaped.
fn push_json(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{line, push_json};

    fn check(text: &str, expect: Expect) {
        let mut out = String::new();
        push_json(text, &mut out);
        expect.assert_eq(&out);
    }

    #[test]
    fn json_is_ascii() {
        check("a b~", expect![[r#""a b~""#]]);
        check(
            "\"\\é\u{7f}😀",
            expect![[r#""\"\\\u00e9\u007f\ud83d\ude00""#]],
        );
    }

    #[test]
    fn a_line_ends_with_its_place() {
        expect![[r#"
            org,e)/ 20261120235959 {"url": "http://e.org/", "length": "300", "offset": "7", "filename": "a.warc.gz"}
        "#]]
        .assert_eq(&line(r#"org,e)/ 20261120235959 {"url": "http://e.org/""#, 7, 300, "a.warc.gz"));
    }
}

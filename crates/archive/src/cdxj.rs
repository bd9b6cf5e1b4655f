//! A line of the index: SURT key, fourteen digits of time, and JSON.
//!
//! Lines equal those of the PyPI package `cdxj-indexer` byte for byte, so that its
//! users find nothing new here; that is why numbers are text and the spacing is
//! Python's. There is a line for each response and each revisit.

use std::fmt::Write as _;

use crate::capture::Capture;
use crate::http_block::content_type;
use crate::surt::surt;

/// The line up to the digest. What is missing is known when the record has its place.
pub(crate) fn line_head(capture: &Capture<'_>, digest: Option<&str>) -> String {
    let mut line = surt(capture.url);
    line.push(' ');
    line.push_str(&capture.started.fourteen_digits());
    line.push_str(" {\"url\": ");
    push_json(capture.url.as_str(), &mut line);
    if let Some(mime) = mime(capture) {
        line.push_str(", \"mime\": ");
        push_json(&mime, &mut line);
    }
    // A record without a head has none to take it from.
    if !capture
        .revisit
        .is_some_and(|revisit| revisit.is_without_head())
    {
        let _ = write!(line, ", \"status\": \"{:03}\"", capture.status);
    }
    if let Some(digest) = digest {
        line.push_str(", \"digest\": ");
        push_json(digest, &mut line);
    }
    line
}

/// The whole line, with its line end.
pub(crate) fn line(head: &str, offset: u64, length: u64, file: &str) -> String {
    let mut line = format!("{head}, \"length\": \"{length}\", \"offset\": \"{offset}\"");
    line.push_str(", \"filename\": ");
    push_json(file, &mut line);
    line.push_str("}\n");
    line
}

fn mime(capture: &Capture<'_>) -> Option<String> {
    if capture.revisit.is_some() {
        return Some("warc/revisit".to_owned());
    }
    let value = content_type(capture.headers)?;
    // Bytes that are not UTF-8 are read as Latin-1, the whole field of them.
    let value = match std::str::from_utf8(value) {
        Ok(value) => value.to_owned(),
        Err(_) => value.iter().copied().map(char::from).collect(),
    };
    let kind = value.trim_matches(is_space);
    let kind = kind.split(|c| c == ';' || is_space(c)).next();
    Some(kind.unwrap_or_default().to_owned())
}

/// White space as Python has it.
fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// A JSON string in ASCII.
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
    fn ours_json_is_ascii() {
        check("a b~", expect![[r#""a b~""#]]);
        check(
            "\"\\é\u{7f}😀",
            expect![[r#""\"\\\u00e9\u007f\ud83d\ude00""#]],
        );
    }

    #[test]
    fn ours_a_line_ends_with_its_place() {
        expect![[r#"
            org,e)/ 20261120235959 {"url": "http://e.org/", "length": "300", "offset": "7", "filename": "a.warc.gz"}
        "#]]
        .assert_eq(&line(r#"org,e)/ 20261120235959 {"url": "http://e.org/""#, 7, 300, "a.warc.gz"));
    }
}

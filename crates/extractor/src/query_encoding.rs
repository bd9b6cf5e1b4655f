//! Encodes queries in a legacy charset: those of URLs in pages, and those of forms.
//!
//! URL Standard, "percent-encode after encoding": for URLs in HTML, only the query is encoded in
//! the page's charset. Paths, fragments, style sheets and headers always use UTF-8.

use std::borrow::Cow;
use std::fmt::Write as _;

use encoding_rs::{EncoderResult, Encoding, UTF_8};

use crate::extracted_page::ExtractedPage;
use crate::link::LinkElement;

/// Maximum bytes that the encoder writes per call.
const CHUNK_BYTES: usize = 256;

/// Encodes the queries of a page's URLs in its charset. Drops URLs that become longer than
/// `max_bytes` and returns their number.
pub(crate) fn encode_queries(
    page: &mut ExtractedPage,
    charset: &'static Encoding,
    max_bytes: usize,
) -> usize {
    if charset.output_encoding() == UTF_8 {
        return 0;
    }
    let mut dropped = 0;
    let mut fits = |href: &mut String| {
        if let Cow::Owned(encoded) = encode_query(href, charset) {
            *href = encoded;
        }
        dropped += usize::from(href.len() > max_bytes);
        href.len() <= max_bytes
    };
    page.links.retain_mut(|link| {
        let is_css = link.element == LinkElement::Style || link.attribute == "style";
        is_css || fits(&mut link.href)
    });
    for named in [
        &mut page.base,
        &mut page.canonical,
        &mut page.master_url,
        &mut page.redirect,
    ] {
        named.take_if(|href| !fits(href));
    }
    dropped
}

/// Returns `href` with its query percent-encoded in `charset`. Returns `href` itself if the query
/// is ASCII or the scheme is not HTTP.
pub(crate) fn encode_query<'h>(href: &'h str, charset: &'static Encoding) -> Cow<'h, str> {
    let charset = charset.output_encoding();
    if charset == UTF_8 || href.is_ascii() || !may_be_http(href) {
        return Cow::Borrowed(href);
    }
    let fragment = href.find('#').unwrap_or(href.len());
    let Some(query) = href[..fragment].find('?').map(|mark| mark + 1) else {
        return Cow::Borrowed(href);
    };
    if href[query..fragment].is_ascii() {
        return Cow::Borrowed(href);
    }
    let mut encoded = href[..query].to_owned();
    percent_encode(&href[query..fragment], charset, push_byte, &mut encoded);
    encoded.push_str(&href[fragment..]);
    Cow::Owned(encoded)
}

/// Returns whether a URL is relative or has an HTTP scheme.
fn may_be_http(href: &str) -> bool {
    let end = href.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.'));
    match end.map(|end| (&href[..end], &href[end..])) {
        Some((scheme, rest)) if rest.starts_with(':') && !scheme.is_empty() => ["http", "https"]
            .iter()
            .any(|http| scheme.eq_ignore_ascii_case(http)),
        _ => true,
    }
}

/// Encodes a name or value of a form in `charset` (URL Standard,
/// "application/x-www-form-urlencoded serializing").
pub(crate) fn form_encode(text: &str, charset: &'static Encoding, out: &mut String) {
    percent_encode(text, charset.output_encoding(), push_form_byte, out);
}

/// Encodes a text in `charset`, and appends each byte with `push`.
fn percent_encode(
    text: &str,
    charset: &'static Encoding,
    push: fn(u8, &mut String),
    out: &mut String,
) {
    let mut encoder = charset.new_encoder();
    let mut rest = text;
    let mut bytes = [0; CHUNK_BYTES];
    loop {
        let (result, read, written) =
            encoder.encode_from_utf8_without_replacement(rest, &mut bytes, true);
        for &byte in &bytes[..written] {
            push(byte, out);
        }
        rest = &rest[read..];
        match result {
            EncoderResult::InputEmpty => return,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(c) => {
                let _ = write!(out, "%26%23{}%3B", u32::from(c));
            }
        }
    }
}

/// Appends a byte, percent-encoded if it is in the special-query percent-encode set. Tabs and line
/// ends stay, because a URL parser drops them.
fn push_byte(byte: u8, out: &mut String) {
    let is_encoded = !byte.is_ascii_graphic() || matches!(byte, b'"' | b'#' | b'<' | b'>' | b'\'');
    if is_encoded && !matches!(byte, b'\t' | b'\n' | b'\r') {
        let _ = write!(out, "%{byte:02X}");
    } else {
        out.push(char::from(byte));
    }
}

/// Appends a byte, percent-encoded if it is in the application/x-www-form-urlencoded percent-encode
/// set. A space becomes a plus sign.
fn push_form_byte(byte: u8, out: &mut String) {
    match byte {
        b' ' => out.push('+'),
        b'*' | b'-' | b'.' | b'_' => out.push(char::from(byte)),
        _ if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
        _ => drop(write!(out, "%{byte:02X}")),
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{BIG5, EUC_KR, Encoding, GB18030, GBK, ISO_2022_JP, SHIFT_JIS, UTF_16LE};
    use encoding_rs::{UTF_8, WINDOWS_1251, WINDOWS_1252};

    use super::encode_query;

    #[test]
    fn url_standard_a_query_is_encoded_in_the_charset_of_the_page() {
        let cases: [(&'static Encoding, &str, &str); 20] = [
            (GBK, "/茶?q=茶&p=1#茶", "/茶?q=%B2%E8&p=1#茶"),
            (GB18030, "?q=\u{1f375}", "?q=%949%BB5"),
            (BIG5, "x?茶", "x?%AF%F9"),
            (
                SHIFT_JIS,
                "//tea.test/?q=表 茶",
                "//tea.test/?q=%95\\%20%92%83",
            ),
            (EUC_KR, "http://tea.test?차", "http://tea.test?%C2%F7"),
            (WINDOWS_1251, "HTTPS:x?q=чай", "HTTPS:x?q=%F7%E0%E9"),
            (WINDOWS_1252, "?q=th\u{e9}'\"<>", "?q=th%E9%27%22%3C%3E"),
            (
                WINDOWS_1252,
                "?q=茶;\u{1f375}",
                "?q=%26%2333590%3B;%26%23127861%3B",
            ),
            (WINDOWS_1252, "?a%20é\tb", "?a%20%E9\tb"),
            // In ISO-2022-JP, escape sequences switch between character sets, and all bytes are
            // ASCII.
            (ISO_2022_JP, "?q=茶&b", "?q=%1B$BCc%1B(B&b"),
            // An ASCII query stays as it is.
            (GBK, "/tea?q='\"&x=%e8{}|^", "/tea?q='\"&x=%e8{}|^"),
            (GBK, "/茶?q=a#茶", "/茶?q=a#茶"),
            (GBK, "#茶?茶", "#茶?茶"),
            (GBK, "/茶", "/茶"),
            (GBK, "mailto:a?subject=茶", "mailto:a?subject=茶"),
            (GBK, "ws://a?茶", "ws://a?茶"),
            (UTF_8, "?茶", "?茶"),
            (UTF_16LE, "?茶", "?茶"),
            (encoding_rs::REPLACEMENT, "?茶", "?茶"),
            (encoding_rs::X_USER_DEFINED, "?é", "?%26%23233%3B"),
        ];
        for (charset, href, expected) in cases {
            let encoded = encode_query(href, charset);
            assert_eq!(encoded, expected, "{href} in {}", charset.name());
        }
    }

    #[test]
    fn a_long_query_is_encoded_whole() {
        let href = format!("?{}", "茶".repeat(1000));
        let expected = format!("?{}", "%B2%E8".repeat(1000));
        assert_eq!(encode_query(&href, GBK), expected);
    }
}

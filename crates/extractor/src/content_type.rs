//! The `Content-Type` of a page, and what the first octets say where there is none.

use crate::text::{is_space, trim};

/// Octets that are looked at to tell HTML without a type; the MIME Sniffing Standard
/// reads 1,445.
const SNIFF_OCTETS: usize = 1445;

/// Whether a body is HTML: its type is `text/html` or `application/xhtml+xml`, or it has
/// no type (or one that says nothing) and begins like HTML. `first` are its first octets,
/// 1,445 or fewer; content codings undone.
#[must_use]
pub fn is_html(content_type: Option<&str>, first: &[u8]) -> bool {
    let essence = content_type.map(essence).unwrap_or_default();
    if essence.eq_ignore_ascii_case("text/html")
        || essence.eq_ignore_ascii_case("application/xhtml+xml")
    {
        return true;
    }
    // MIME Sniffing Standard, section 7: a type that is none.
    let none = ["", "unknown/unknown", "application/unknown", "*/*"];
    let none = none.iter().any(|name| essence.eq_ignore_ascii_case(name)) || !essence.contains('/');
    none && looks_like_html(&first[..first.len().min(SNIFF_OCTETS)])
}

/// The type without its parameters, as written.
fn essence(content_type: &str) -> &str {
    trim(content_type.split([';', ',']).next().unwrap_or_default())
}

/// The first `charset` parameter of a content type, unquoted.
pub(crate) fn charset_parameter(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = trim(value);
        let value = match value.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or(quoted),
            // Two headers joined by a comma, as some servers send.
            None => value.split(',').next().unwrap_or(value),
        };
        trim(name)
            .eq_ignore_ascii_case("charset")
            .then_some(trim(value))
    })
}

/// MIME Sniffing Standard, section 7.1, the rows for HTML; beyond it, XHTML by its XML
/// declaration and an `html` element soon after (our choice, so that XHTML without a
/// type is read).
fn looks_like_html(first: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 16] = [
        b"<!DOCTYPE HTML",
        b"<HTML",
        b"<HEAD",
        b"<SCRIPT",
        b"<IFRAME",
        b"<H1",
        b"<DIV",
        b"<FONT",
        b"<TABLE",
        b"<A",
        b"<STYLE",
        b"<TITLE",
        b"<B",
        b"<BODY",
        b"<BR",
        b"<P",
    ];
    let first = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first);
    let start = first
        .iter()
        .position(|&octet| !is_space(octet))
        .unwrap_or(first.len());
    let first = &first[start..];
    let begins = |beginning: &&[u8]| {
        let (len, head) = (beginning.len(), first.get(..beginning.len()));
        head.is_some_and(|head| head.eq_ignore_ascii_case(beginning))
            && first
                .get(len)
                .is_some_and(|&octet| matches!(octet, b' ' | b'>' | b'\t' | b'\n' | b'\r'))
    };
    first.starts_with(b"<!--")
        || BEGINNINGS.iter().any(begins)
        || (first.starts_with(b"<?xml") && contains_ignoring_case(first, b"<html"))
}

/// Whether `needle` stands in `octets` in any letter case.
fn contains_ignoring_case(octets: &[u8], needle: &[u8]) -> bool {
    octets
        .windows(needle.len())
        .any(|window| window.eq_ignore_ascii_case(needle))
}

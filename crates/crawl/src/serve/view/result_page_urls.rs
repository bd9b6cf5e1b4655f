//! URLs of result pages, and readable forms of page URLs. `page/results.js` creates the same forms.

use crawl_index::FacetFilters;
use crawl_weburl::is_bidi_control;
use data_encoding::HEXUPPER_PERMISSIVE;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::serve::search_request::named_filters;

/// Returns the URL of a result page.
pub(super) fn link(query: &str, filters: &FacetFilters, page: usize) -> String {
    let mut link = format!("/?q={}", utf8_percent_encode(query, COMPONENT));
    for (name, value) in named_filters(filters) {
        link += &format!("&{name}={}", utf8_percent_encode(value, COMPONENT));
    }
    if page > 1 {
        link += &format!("&page={page}");
    }
    link
}

/// The characters that JavaScript's `encodeURIComponent` escapes.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// Formats `https://example.org/a/b?q` as `example.org › a › b?q`.
pub(super) fn place(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let pieces = rest.split('/').filter(|piece| !piece.is_empty());
    let pieces: Vec<String> = pieces.map(readable).collect();
    pieces.join(" › ")
}

/// Percent-decodes a piece of a path, unless that could deceive the reader.
fn readable(piece: &str) -> String {
    match decoded(piece) {
        Some(text) if !text.chars().any(hides) => text,
        _ => piece.to_owned(),
    }
}

fn decoded(piece: &str) -> Option<String> {
    let mut parts = piece.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.as_bytes().split_at_checked(2)?;
        bytes.extend(HEXUPPER_PERMISSIVE.decode(code).ok()?);
        bytes.extend(rest);
    }
    String::from_utf8(bytes).ok()
}

/// Matches white space, control characters and bidi controls.
fn hides(c: char) -> bool {
    is_bidi_control(c)
        || matches!(c, '\0'..=' ' | '\u{7f}'..='\u{a0}' | '\u{200b}'..='\u{200d}'
            | '\u{2028}'..='\u{2029}' | '\u{202f}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use crawl_index::FacetFilters;
    use expect_test::expect;

    use super::{link, place};

    #[test]
    fn a_place_is_readable_and_hides_nothing() {
        let places = [
            "https://e.example/",
            "https://e.example:8080/a//b?q=1/2",
            "https://e.example/gr%C3%BCn/%e6%bc%a2",
            "https://e.example/%E2%80%AE/%20/%zz/%ff/%",
        ]
        .map(place);
        expect![[r#"
            [
                "e.example",
                "e.example:8080 › a › b?q=1 › 2",
                "e.example › grün › 漢",
                "e.example › %E2%80%AE › %20 › %zz › %ff › %",
            ]
        "#]]
        .assert_debug_eq(&places);
    }

    #[test]
    fn a_link_holds_the_query_whole() {
        let none = FacetFilters::default();
        assert_eq!(link("a&b=c d+é", &none, 1), "/?q=a%26b%3Dc%20d%2B%C3%A9");
        assert_eq!(link("a", &none, 3), "/?q=a&page=3");
        let filters = FacetFilters {
            folder: Some("a.example/b&c".to_owned()),
            document_type: Some("pdf".to_owned()),
            ..none
        };
        assert_eq!(
            link("a", &filters, 2),
            "/?q=a&folder=a.example%2Fb%26c&type=pdf&page=2"
        );
    }
}

//! Tests how the content type and the first bytes decide a document's kind.

use crawl_extractor::{ContentKind, document_kind, is_html, may_be_read};

fn check(content_type: Option<&str>, first: &[u8], expected: ContentKind) {
    assert_eq!(
        document_kind(content_type, first),
        expected,
        "{content_type:?} {}",
        String::from_utf8_lossy(first)
    );
}

#[test]
fn a_type_decides_if_there_is_one() {
    assert!(is_html(Some("text/html"), b""));
    assert!(is_html(Some(" TEXT/HTML ; charset=x"), b"text"));
    assert!(is_html(Some("application/xhtml+xml"), b""));
    assert!(!is_html(Some("text/plain"), b"<html>"));
    assert!(!is_html(Some("application/xml"), b"<html>"));
    assert!(!is_html(Some("text/htmlx"), b"<html>"));
    for (content_type, expected) in [
        ("text/css; charset=utf-8", ContentKind::Css),
        ("application/pdf", ContentKind::Pdf),
        ("application/rss+xml", ContentKind::Feed),
        ("application/atom+xml;type=feed", ContentKind::Feed),
        ("Application/Feed+JSON", ContentKind::Feed),
        ("image/svg+xml", ContentKind::Media),
        ("image/png", ContentKind::Media),
        ("application/zip", ContentKind::Media),
        ("text/javascript", ContentKind::Text),
        ("application/octet-stream", ContentKind::Other),
        ("text/plain", ContentKind::Text),
    ] {
        check(Some(content_type), b"<html>", expected);
    }
}

#[test]
fn the_content_of_xml_and_json_decides_their_kind() {
    for (body, expected) in [
        (
            "<?xml version='1.0'?><!-- x --><rss version='2.0'>",
            ContentKind::Feed,
        ),
        (
            "<feed xmlns='http://www.w3.org/2005/Atom'>",
            ContentKind::Feed,
        ),
        (
            "<a:feed xmlns:a='http://www.w3.org/2005/Atom'>",
            ContentKind::Feed,
        ),
        (
            "<rdf:RDF xmlns='http://purl.org/rss/1.0/'>",
            ContentKind::Feed,
        ),
        (
            "<rdf:RDF xmlns='http://xmlns.com/foaf/0.1/'>",
            ContentKind::Text,
        ),
        ("<urlset>", ContentKind::Sitemap),
        (
            "<!DOCTYPE sitemapindex [<!ENTITY a '>'>]>\n<sitemapindex>",
            ContentKind::Sitemap,
        ),
        ("<?xml version='1.0'?><html>", ContentKind::Text),
        (
            "<!-- x --><html xmlns='http://www.w3.org/1999/xhtml'>",
            ContentKind::Html,
        ),
        ("<note>", ContentKind::Text),
        ("", ContentKind::Text),
    ] {
        check(Some("text/xml"), body.as_bytes(), expected);
        check(Some("application/x+xml"), body.as_bytes(), expected);
    }
    check(
        Some("application/json"),
        b" {\"version\": \"https://jsonfeed.org/version/1\"",
        ContentKind::Feed,
    );
    check(
        Some("application/json"),
        b"{\"version\": \"1\"}",
        ContentKind::Text,
    );
    check(
        Some("text/html"),
        b"\n<?xml version='1.0'?><rss>",
        ContentKind::Feed,
    );
    check(
        Some("text/html"),
        b"<!-- x --><urlset>",
        ContentKind::Sitemap,
    );
}

#[test]
fn mime_sniffing_7_1_beginnings_of_html() {
    for beginning in [
        "<!DOCTYPE html>",
        "\n <!doctype HTML ",
        "<html>",
        "<HEAD >",
        "<script\n>",
        "<iframe ",
        "<h1>",
        "<div ",
        "<font>",
        "<table>",
        "<a ",
        "<style>",
        "<title>",
        "<b>",
        "<body ",
        "<br>",
        "<p>",
        "<!--",
        "\u{feff}<p>",
        "<?xml version='1.0'?>\n<!-- x --><html xmlns='x'>",
    ] {
        let text = format!("\u{feff}{}", beginning.trim_start_matches('\u{feff}'));
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for content_type in [None, Some(""), Some("unknown/unknown"), Some("x")] {
            check(content_type, beginning.as_bytes(), ContentKind::Html);
            check(content_type, &wide, ContentKind::Html);
        }
    }
    for other in ["", " ", "<", "<html", "<ht", "<abc>", "text <p>"] {
        check(None, other.as_bytes(), ContentKind::Text);
    }
}

#[test]
fn mime_sniffing_6_and_7_bytes_decide_without_a_type() {
    for (first, expected) in [
        (&b"%PDF-1.7"[..], ContentKind::Pdf),
        (b"%!PS-Adobe-3", ContentKind::Text),
        (b"\xfe\xff\0a\0b", ContentKind::Text),
        (b"\xef\xbb\xbftext", ContentKind::Text),
        (b"\x89PNG\r\n\x1a\n", ContentKind::Media),
        (b"GIF89a", ContentKind::Media),
        (b"\xff\xd8\xff\xe0", ContentKind::Media),
        (b"RIFF\x10\x20\x30\x40WEBPVP8 ", ContentKind::Media),
        (b"RIFF\x10\x20\x30\x40WAVEfmt ", ContentKind::Media),
        (b"\0\0\0\x14ftypisom\0\0\x02\0mp41", ContentKind::Media),
        (b"OggS\0", ContentKind::Media),
        (b"\x1a\x45\xdf\xa3", ContentKind::Media),
        (b"wOF2", ContentKind::Media),
        (b"PK\x03\x04", ContentKind::Media),
        (b"\x1f\x8b\x08", ContentKind::Media),
        (b"Rar!\x1a\x07\0", ContentKind::Media),
        (b"\0\0\0\x14ftypzzzz\0\0\x02\0zzzz", ContentKind::Other),
        (b"some\0bytes", ContentKind::Other),
        (b"just text", ContentKind::Text),
        (
            b"{\"version\":\"https:\\/\\/jsonfeed.org\\/version\\/1\"}",
            ContentKind::Feed,
        ),
        (b"<rss>", ContentKind::Feed),
    ] {
        check(None, first, expected);
    }
}

#[test]
fn media_served_as_html_or_text_are_media() {
    for (first, expected) in [
        (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], ContentKind::Media),
        (b"GIF89a\x01\0\x01\0", ContentKind::Media),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", ContentKind::Media),
        (b"PK\x03\x04\x14\0", ContentKind::Media),
        (b"%PDF-1.7\n\x01", ContentKind::Pdf),
    ] {
        check(Some("text/html"), first, expected);
        check(Some("text/plain; charset=utf-8"), first, expected);
    }
    // A text may begin with one of these signatures, because they consist of letters. So the
    // signature doesn't prove that the document is media.
    for first in [
        "BM is a name <a href=x>",
        "GIF89a is a format",
        "OTTO <p>",
        "%PDF-1 is how",
    ] {
        check(Some("text/html"), first.as_bytes(), ContentKind::Html);
    }
    let wide: Vec<u8> = "<p>text"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    check(Some("text/html"), &wide, ContentKind::Html);
    check(Some("text/plain"), b"\0\x01\x02 bytes", ContentKind::Other);
}

#[test]
fn types_that_may_contain_links_are_decoded() {
    for content_type in [
        None,
        Some(""),
        Some("*/*"),
        Some("text/html; charset=x"),
        Some("application/xhtml+xml"),
        Some("application/rss+xml"),
        Some("text/xml"),
        Some("application/json"),
        Some("application/feed+json"),
        Some("text/css"),
    ] {
        assert!(may_be_read(content_type), "{content_type:?}");
    }
    for content_type in [
        "image/svg+xml",
        "image/png",
        "text/plain",
        "application/pdf",
        "x/y",
    ] {
        assert!(!may_be_read(Some(content_type)), "{content_type}");
    }
}

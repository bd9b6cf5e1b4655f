//! Which bodies are HTML.

use crawl_extractor::is_html;

#[test]
fn ours_a_type_decides_when_there_is_one() {
    assert!(is_html(Some("text/html"), b""));
    assert!(is_html(Some(" TEXT/HTML ; charset=x"), b"%PDF"));
    assert!(is_html(Some("application/xhtml+xml"), b""));
    assert!(!is_html(Some("text/plain"), b"<html>"));
    assert!(!is_html(Some("application/xml"), b"<html>"));
    assert!(!is_html(Some("text/htmlx"), b"<html>"));
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
        "<?xml version='1.0'?>\n<!-- x --><HTML xmlns='x'>",
    ] {
        assert!(is_html(None, beginning.as_bytes()), "{beginning}");
        assert!(is_html(Some(""), beginning.as_bytes()), "{beginning}");
        assert!(
            is_html(Some("unknown/unknown"), beginning.as_bytes()),
            "{beginning}"
        );
    }
    for other in [
        "",
        " ",
        "<",
        "<html",
        "<ht",
        "<abc>",
        "text <p>",
        "<?xml?><rss>",
        "%PDF-1",
        "\0\0",
    ] {
        assert!(!is_html(None, other.as_bytes()), "{other}");
    }
}

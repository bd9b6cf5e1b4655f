//! Tests of the charsets of pages.

use crawl_extractor::{
    CharsetSource, ContentLimits, ExtractedPage, PageContext, ReadingLimits, read_html,
    read_markdown,
};

use crate::show_oddities;

fn page(content_type: Option<&str>, body: &[u8]) -> ExtractedPage {
    read_html(body, content_type, &ReadingLimits::default())
}

fn charset(content_type: Option<&str>, body: &[u8]) -> (&'static str, CharsetSource) {
    let page = page(content_type, body);
    (page.charset, page.charset_source)
}

#[test]
fn html_13_2_3_2_bom_wins_over_header_and_meta() {
    let body = b"\xef\xbb\xbf<meta charset=koi8-r><title>\xc3\xa9</title>";
    let page = page(Some("text/html; charset=windows-1251"), body);
    assert_eq!(
        (page.charset, page.charset_source),
        ("UTF-8", CharsetSource::Bom)
    );
    assert_eq!(page.title.as_deref(), Some("é"));
}

#[test]
fn html_13_2_3_2_utf_16_by_bom() {
    let text = "<title>Straße</title><a href=x>";
    let mut body = vec![0xff, 0xfe];
    body.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    let page = page(None, &body);
    assert_eq!(
        (page.charset, page.title.as_deref()),
        ("UTF-16LE", Some("Straße"))
    );
    assert_eq!(page.links.len(), 1);
}

#[test]
fn html_13_2_3_2_header_wins_over_meta() {
    for header in [
        "text/html;charset=Windows-1251",
        "text/html; CHARSET=\"cp1251\" ; x=y",
        "text/html; x; charset = windows-1251, text/plain",
    ] {
        assert_eq!(
            charset(Some(header), b"<meta charset=utf-8>"),
            ("windows-1251", CharsetSource::Header),
            "{header}"
        );
    }
}

#[test]
fn html_13_2_3_2_meta_forms() {
    for body in [
        "<meta charset=shift_jis>",
        "<!-- <meta charset=utf-8> --><META x=y CharSet = ' Shift_JIS '/>",
        "<meta http-equiv=Content-Type content='text/html; charset=sjis'>",
        "<meta content='text/html; charset=\"sjis\"' http-equiv=\"content-type\">",
        "<meta content='charset charset = sjis; x' http-equiv=content-type>",
        "<meta/charset=sjis><meta charset=utf-8>",
        "<a title='<meta charset=utf-8>'></a b><!x <meta charset=utf-8><!--><meta charset=sjis>",
        "<meta charset=nonsense><meta charset=sjis>",
        "<?xml version='1.0' encoding = \"sjis\"?><p>",
    ] {
        assert_eq!(
            charset(None, body.as_bytes()),
            ("Shift_JIS", CharsetSource::Meta),
            "{body}"
        );
    }
}

#[test]
fn html_13_2_3_2_meta_that_names_nothing() {
    for body in [
        "<meta content='text/html; charset=sjis'>",
        "<meta http-equiv=refresh content='text/html; charset=sjis'>",
        "<meta charset=nonsense>",
        "<metacharset=sjis>",
        "<!-- <meta charset=sjis>",
        "<meta charset=sjis",
        "<meta charset='sjis>",
        "<meta http-equiv=content-type content='charset=\"sjis'>",
        "<?xml encoding='s jis'?>",
        "<?xml encoding='sjis?>",
    ] {
        assert_eq!(
            charset(None, body.as_bytes()),
            ("UTF-8", CharsetSource::ValidUtf8),
            "{body}"
        );
    }
}

#[test]
fn html_13_2_3_2_utf_16_by_meta_is_utf_8_and_x_user_defined_is_windows_1252() {
    assert_eq!(charset(None, b"<meta charset=utf-16le>").0, "UTF-8");
    assert_eq!(charset(None, b"<?xml encoding='utf-16'?>").0, "UTF-8");
    assert_eq!(
        charset(None, b"<meta charset=x-user-defined>").0,
        "windows-1252"
    );
    assert_eq!(charset(None, b"<\0?\0x\0m\0l\0").0, "UTF-16LE");
}

#[test]
fn undeclared_valid_utf_8_is_utf_8_and_the_rest_windows_1252() {
    assert_eq!(charset(None, b""), ("UTF-8", CharsetSource::ValidUtf8));
    assert_eq!(
        charset(None, "é".as_bytes()),
        ("UTF-8", CharsetSource::ValidUtf8)
    );
    assert_eq!(
        charset(None, b"cut in a letter \xe2\x82"),
        ("UTF-8", CharsetSource::ValidUtf8)
    );
    let page = page(Some("text/html"), b"<title>\x80 \xe9</title>");
    assert_eq!(
        (page.charset, page.charset_source),
        ("windows-1252", CharsetSource::Detected)
    );
    assert_eq!(page.title.as_deref(), Some("€ é"));
}

#[test]
fn html_13_2_3_4_a_late_meta_counts_without_other_declarations() {
    let late = |last: &[u8]| {
        let mut body = vec![b' '; 2_000];
        body.extend_from_slice(b"<meta charset=windows-1251>");
        body.extend_from_slice(last);
        body
    };
    assert_eq!(
        charset(None, &late(b"\xcf ")),
        ("windows-1251", CharsetSource::LateMeta)
    );
    assert_eq!(
        charset(None, &late(b"")),
        ("UTF-8", CharsetSource::ValidUtf8)
    );
}

#[test]
fn unknown_charset_and_undecodable_bytes_are_noted() {
    let page = page(
        Some("text/html; charset=klingon"),
        b"<meta charset=utf-8>a\n\xff\xfe<a href=x>",
    );
    assert_eq!(
        (page.charset, page.charset_source),
        ("UTF-8", CharsetSource::Meta)
    );
    assert_eq!(page.links.len(), 1);
    assert_eq!(
        show_oddities(&page.oddities),
        "unknown-charset line 1 x1\nundecodable-bytes line 1 x1\n"
    );
}

#[test]
fn text_does_not_depend_on_where_the_decoder_stops() {
    let body = "<a href=x>é€𝄞</a>".repeat(30_000);
    let page = page(None, body.as_bytes());
    assert_eq!(page.links.len(), 30_000);
    assert!(
        page.links
            .iter()
            .all(|link| link.href == "x" && link.text.as_deref() == Some("é€𝄞"))
    );
}

#[test]
fn url_standard_queries_of_html_are_in_the_charset_of_the_page() {
    let html = "<base href='/b?q=茶'><link rel=canonical href='?c=茶'>\
        <meta http-equiv=refresh content='9; url=r?q=茶'>\
        <style>p { background: url(s?q=茶) }</style><p style='background: url(p?q=茶)'>\
        <a href='/茶?q=茶#茶'>x</a><iframe src='f?q=茶'></iframe><area href='a?q=茶'>\
        <img srcset='i?q=茶 2x'><form action='/茶?q=茶'>";
    let (bytes, ..) = encoding_rs::GBK.encode(html);
    let page = read_html(
        &bytes,
        Some("text/html; charset=gbk"),
        &ReadingLimits::default(),
    );
    assert_eq!(page.base.as_deref(), Some("/b?q=%B2%E8"));
    assert_eq!(page.canonical.as_deref(), Some("?c=%B2%E8"));
    let hrefs: Vec<_> = page.links.iter().map(|link| link.href.as_str()).collect();
    let expected = [
        "?c=%B2%E8",
        "r?q=%B2%E8",
        "s?q=茶",
        "p?q=茶",
        "/茶?q=%B2%E8#茶",
        "f?q=%B2%E8",
        "a?q=%B2%E8",
        "i?q=%B2%E8",
        "/茶?q=%B2%E8",
    ];
    assert_eq!(hrefs, expected);
    let utf_8 = read_html(
        html.as_bytes(),
        Some("text/html; charset=utf-8"),
        &ReadingLimits::default(),
    );
    assert_eq!(utf_8.base.as_deref(), Some("/b?q=茶"));
    let (context, limits) = (
        PageContext {
            content_type: Some("text/html; charset=gbk"),
            ..PageContext::default()
        },
        ContentLimits::default(),
    );
    let mut link = |href: &str| Some(href.to_owned());
    let (_, markdown) = read_markdown(&bytes, &context, &limits, &mut link);
    assert!(markdown.contains("](/茶?q=%B2%E8#茶)"), "{markdown}");
}

#[test]
fn a_url_that_its_charset_makes_too_long_is_dropped() {
    let (bytes, ..) =
        encoding_rs::GBK.encode("<base href='?茶茶茶'><a href='?茶茶茶'>x</a><a href=b>");
    let mut limits = ReadingLimits::default();
    limits.href_bytes = 12;
    let page = read_html(&bytes, Some("text/html; charset=gbk"), &limits);
    assert_eq!((page.base, page.links.len()), (None, 1));
    assert_eq!(show_oddities(&page.oddities), "href-too-long line 1 x2\n");
}

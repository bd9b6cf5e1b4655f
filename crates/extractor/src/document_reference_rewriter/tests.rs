//! Tests of rewriting whole documents.

use crawl_weburl::{CanonicalUrl, canonicalize};
use encoding_rs::{Encoding, GBK, ISO_2022_JP, SHIFT_JIS, UTF_8, WINDOWS_1251};
use proptest::prelude::*;

use super::{rewrite_css, rewrite_html};

fn page() -> CanonicalUrl {
    canonicalize(None, "https://e.example/a/b?c").unwrap()
}

/// Returns a file for each URL of `e.example` whose path begins with `/f`.
fn file(url: &CanonicalUrl) -> Option<String> {
    let path = url.as_str().strip_prefix("https://e.example/f")?;
    Some(format!("../f{}.html", path.replace(['/', '?', '='], "_")))
}

fn html(body: &[u8], content_type: &str) -> Vec<u8> {
    rewrite_html(body, Some(content_type), &page(), &mut file).into_owned()
}

#[track_caller]
fn check(body: &str, expected: &str) {
    let rewritten = String::from_utf8(html(body.as_bytes(), "text/html; charset=utf-8")).unwrap();
    let rewritten = rewritten.strip_prefix('\u{feff}').unwrap_or(&rewritten);
    assert_eq!(rewritten, expected, "{body}");
}

#[track_caller]
fn check_css(body: &str, expected: &str) {
    let rewritten = rewrite_css(body.as_bytes(), Some("text/css"), &page(), &mut file);
    assert_eq!(String::from_utf8_lossy(&rewritten), expected, "{body}");
}

#[test]
fn links_lead_to_files_or_become_absolute() {
    check("<a href=/f>x</a>", "<a href=\"../f.html\">x</a>");
    check("<a href='/f/g?h=1#top'>", "<a href='../f_g_h_1.html#top'>");
    check(
        "<a href=\"HTTPS://E.example/f#é <\">",
        "<a href=\"../f.html#%C3%A9%20%3C\">",
    );
    check("<a href=g>", "<a href=\"https://e.example/a/g\">");
    check(
        "<a href='//o.example/x?a=1&b'>",
        "<a href='https://o.example/x?a=1&amp;b'>",
    );
    check(
        "<area href=/f><iframe src=/f></iframe>",
        "<area href=\"../f.html\"><iframe src=\"../f.html\"></iframe>",
    );
    check(
        "<img src=/f longdesc='a picture'>",
        "<img src=\"../f.html\" longdesc='a picture'>",
    );
}

#[test]
fn absolute_urls_and_places_in_the_page_stay() {
    for same in [
        "<a href='https://o.example/?a&b#c'>",
        "<a href=#top>",
        "<a href=''>",
        "<a href=mailto:a@e.example>",
        "<a href=javascript:f(1)>",
        "<img src=data:image/gif;base64,AA==>",
        "<a href='http://['>",
        "<p title=/f data-src=/f>/f</p>",
        "<!-- <a href=/f> --><script>'<a href=/f>'</script><textarea><a href=/f></textarea>",
        "<title><a href=/f></title><a href=/f",
    ] {
        check(same, same);
    }
}

#[test]
fn forms_and_the_original_lead_to_the_web() {
    check(
        "<form action=/f><button formaction=/f>",
        "<form action=\"https://e.example/f\"><button formaction=\"https://e.example/f\">",
    );
    check("<form><form action=''>", "<form><form action=''>");
    check(
        "<link rel=Canonical href=/f>",
        "<link rel=Canonical href=\"https://e.example/f\">",
    );
}

#[test]
fn base_is_removed_and_applied() {
    check(
        "<base href=/f/ target=x><a href=g><a href=#h>",
        "<base  target=x><a href=\"../f_g.html\"><a href=\"../f_.html#h\">",
    );
    check(
        "<base href=/f/><a href=''>1</a><a href>2</a><area href= ><img src=''>",
        "<base ><a href=\"../f_.html\">1</a><a href=\"../f_.html\">2</a><area href=\"../f_.html\"><img src=''>",
    );
}

#[test]
fn html_4_8_4_2_1_srcset_is_rewritten_candidate_by_candidate() {
    check(
        "<img srcset='/f 1x, g,,  /f?a=b 2x, data:x 3x'>",
        "<img srcset='../f.html 1x, https://e.example/a/g,,  ../f_a_b.html 2x, data:x 3x'>",
    );
    check(
        "<source srcset=/f><link rel=preload as=image imagesrcset=/f>",
        "<source srcset=\"../f.html\"><link rel=preload as=image imagesrcset=\"../f.html\">",
    );
}

#[test]
fn obstacles_to_loading_a_file_are_removed() {
    check(
        "<script src=/f integrity=sha256-x crossorigin></script>",
        "<script src=\"../f.html\"  ></script>",
    );
    check(
        "<link rel=stylesheet href=/f integrity=\"sha256-x\">",
        "<link rel=stylesheet href=\"../f.html\" >",
    );
    let web = "<script src=https://o.example/x integrity=sha256-x crossorigin></script>";
    check(web, web);
    check(
        "<video src=/f poster=/f crossorigin=use-credentials>",
        "<video src=\"../f.html\" poster=\"../f.html\" >",
    );
    check(
        "<meta http-equiv=Content-Security-Policy content=\"default-src 'self'\">",
        "<meta  >",
    );
}

#[test]
fn refreshes_are_rewritten() {
    check(
        "<meta http-equiv=refresh content='5; url=/f#x'>",
        "<meta http-equiv=refresh content='5; url=../f.html#x'>",
    );
    check(
        "<meta http-equiv=refresh content=\"0;URL='o&apos;'\">",
        "<meta http-equiv=refresh content=\"0;URL=&#39;https://e.example/a/o&#39;&#39;\">",
    );
    let same = "<meta http-equiv=refresh content=5>";
    check(same, same);
}

#[test]
fn css_in_pages_is_rewritten() {
    check(
        "<p style=\"background:url( /f ) , url('g&quot;')\">",
        "<p style=\"background:url( &quot;../f.html&quot; ) , \
         url(&quot;https://e.example/a/g%22&quot;)\">",
    );
    check(
        "<style>@import '/f';a{b:url(#c)}</style>",
        "<style>@import \"../f.html\";a{b:url(#c)}</style>",
    );
    check(
        "<style type=text/x>@import '/f'</style>",
        "<style type=text/x>@import '/f'</style>",
    );
    check(
        "<svg><style>a{b:url('/f?a&amp;b')}</style><image xlink:href=/f /></svg>",
        "<svg><style>a{b:url(&quot;../f_a&amp;b.html&quot;)}</style>\
         <image xlink:href=\"../f.html\" /></svg>",
    );
}

#[test]
fn pages_in_frames_are_rewritten() {
    check(
        "<iframe srcdoc=\"<a href='/f'>é</a>\"></iframe>",
        "<iframe srcdoc=\"&lt;a href=&#39;../f.html&#39;&gt;&#233;&lt;/a&gt;\"></iframe>",
    );
    check(
        "<object codebase=/f/ data=g></object>",
        "<object  data=\"../f_g.html\"></object>",
    );
}

#[test]
fn templates_are_rewritten_unless_they_have_placeholders() {
    check(
        "<template><a href=/f><a href=/f{{x}}></template>",
        "<template><a href=\"../f.html\"><a href=/f{{x}}></template>",
    );
}

#[test]
fn xml_syntax_is_kept() {
    let body = "<?xml version=\"1.0\"?><html xmlns=\"http://www.w3.org/1999/xhtml\"><head>\
        <base href=\"/f/\"/><style>/*<![CDATA[*/ @import \"x&y\"; /*]]>*/</style></head>\
        <body><a href=\"g\"/></body></html>";
    let expected = body
        .replace("<base href=\"/f/\"/>", "<base />")
        .replace("\"x&y\"", "\"../f_x&y.html\"")
        .replace("\"g\"", "\"../f_g.html\"");
    let rewritten = html(body.as_bytes(), "application/xhtml+xml");
    assert_eq!(String::from_utf8(rewritten).unwrap(), expected);
}

#[test]
fn css_3_3_style_sheets_are_rewritten() {
    check_css(
        "@import url(/f) print; @import \"g\"; a{b:url( 'h' );c:url(\\66)}",
        "@import url(\"../f.html\") print; @import \"https://e.example/a/g\"; \
         a{b:url( \"https://e.example/a/h\" );c:url(\"https://e.example/a/f\")}",
    );
    for same in [
        "/* url(/f) */ a{b:url(data:x);c:'/f';d:url(#e)}",
        "a{b:url(https://o.example/x)}\r\n@namespace url(/f);",
    ] {
        check_css(same, same);
    }
    check_css("a{b:url(/f", "a{b:url(\"../f.html\"");
}

#[test]
fn the_charset_of_a_header_is_declared_in_the_file() {
    let rewritten = |body: &[u8], content_type| html(body, content_type);
    let utf8 = "<p>\u{e9}".as_bytes();
    let marked = [b"\xef\xbb\xbf", utf8].concat();
    assert_eq!(rewritten(utf8, "text/html; charset=utf-8"), marked);
    assert_eq!(rewritten(utf8, "text/html"), marked);
    assert_eq!(rewritten(&marked, "text/html"), marked);
    let meta = "<!doctype html><html><head class=a><meta charset=utf-8>\u{e9}".as_bytes();
    assert_eq!(rewritten(meta, "text/html; charset=utf-8"), meta);
    assert_eq!(
        rewritten(
            b"<!doctype html><html><head class=a><title>\xe9",
            "text/html; charset=cp1251"
        ),
        b"<!doctype html><html><head class=a><meta charset=\"windows-1251\"><title>\xe9"
    );
    assert_eq!(
        rewritten(b"<p>\xe9", "text/html; charset=cp1251"),
        b"<meta charset=\"windows-1251\"><p>\xe9"
    );
    let utf16 = |text: &str| {
        text.encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        rewritten(&utf16("<a href=/f>\u{e9}"), "text/html; charset=utf-16le"),
        utf16("\u{feff}<a href=\"../f.html\">\u{e9}")
    );
    let css = |body: &'static [u8], content_type| {
        rewrite_css(body, Some(content_type), &page(), &mut file)
    };
    assert_eq!(
        *css(b"/*\xe9*/", "text/css; charset=cp1251"),
        *b"@charset \"windows-1251\";\n/*\xe9*/"
    );
    assert_eq!(
        *css(b"/*\xc3\xa9*/", "text/css"),
        *b"\xef\xbb\xbf/*\xc3\xa9*/"
    );
    assert_eq!(*css(b"/**/", "text/css"), *b"/**/");
}

#[test]
fn queries_are_in_the_charset_of_the_page() {
    let body = b"<meta charset=gbk><a href=/f?\xb2\xe8>\xb2\xe8";
    assert_eq!(
        html(body, "text/html"),
        b"<meta charset=gbk><a href=\"../f_%B2%E8.html\">\xb2\xe8"
    );
}

/// Parts of pages, each before and after rewriting.
const PARTS: [(&str, &str); 16] = [
    (
        "<p class=\"a  b\" TITLE='/f'>",
        "<p class=\"a  b\" TITLE='/f'>",
    ),
    ("text & &amp; é茶表 &f\r\n", "text & &amp; é茶表 &f\r\n"),
    ("</p >\r", "</p >\r"),
    ("<!-- <a href=/f> -- é -->", "<!-- <a href=/f> -- é -->"),
    (
        "<script>a = '<img src=/f>' // 茶\n</script>",
        "<script>a = '<img src=/f>' // 茶\n</script>",
    ),
    (
        "<a  href=/f\r\nid = x>",
        "<a  href=\"../f.html\"\r\nid = x>",
    ),
    (
        "<a href='/f#a' title='é茶\"'>",
        "<a href='../f.html#a' title='é茶\"'>",
    ),
    (
        "<a title=表 href=\"/f#茶\">",
        "<a title=表 href=\"../f.html#%E8%8C%B6\">",
    ),
    (
        "<img alt=é srcset='/f 2x , x'>",
        "<img alt=é srcset='../f.html 2x , https://e.example/a/x'>",
    ),
    (
        "<i style='x:url(/f)'>",
        "<i style='x:url(&quot;../f.html&quot;)'>",
    ),
    (
        "<style>/*茶*/a{b:url(/f)}\r\n</style>",
        "<style>/*茶*/a{b:url(\"../f.html\")}\r\n</style>",
    ),
    (
        "<textarea>\r\n<a href=/f></textarea>",
        "<textarea>\r\n<a href=/f></textarea>",
    ),
    (
        "<svg><a xlink:href='/f'/><![CDATA[<a href=/f>]]></svg>",
        "<svg><a xlink:href='../f.html'/><![CDATA[<a href=/f>]]></svg>",
    ),
    ("<form action=x>", "<form action=\"https://e.example/a/x\">"),
    (
        "<a href=https://o.example/>é</a>",
        "<a href=https://o.example/>é</a>",
    ),
    ("<br/>< ", "<br/>< "),
];

proptest! {
    #[test]
    fn nothing_outside_of_urls_changes(
        parts in prop::collection::vec(prop::sample::select(PARTS.to_vec()), 0..12),
        charset in 0_usize..5,
    ) {
        let charsets: [&'static Encoding; 5] = [UTF_8, SHIFT_JIS, GBK, ISO_2022_JP, WINDOWS_1251];
        let charset = charsets[charset];
        let meta = format!("<meta charset={}>", charset.name());
        let (before, after): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let (before, after) = (before.concat(), after.concat());
        let (body, ..) = charset.encode(&before);
        let (expected, ..) = charset.encode(&after);
        let body = [meta.as_bytes(), &body].concat();
        let rewritten = html(&body, "text/html");
        let expected = [meta.as_bytes(), &expected].concat();
        if charset == ISO_2022_JP {
            // Compare only the decoded texts. In ISO-2022-JP, the bytes may differ by escape
            // sequences that change no text.
            let text = |bytes| charset.decode_without_bom_handling(bytes).0.into_owned();
            prop_assert_eq!(text(&rewritten), text(&expected));
        } else {
            let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
            prop_assert_eq!(shown(&rewritten), shown(&expected));
        }
    }

    #[test]
    fn any_bytes_are_rewritten_without_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        parts in prop::collection::vec(prop::sample::select(PARTS.to_vec()), 0..4),
        charset in prop::sample::select(vec!["utf-8", "utf-16", "iso-2022-jp", "gb18030", "x"]),
        kind in prop::sample::select(vec!["text/html", "application/xhtml+xml", "text/css"]),
    ) {
        let mut body = bytes;
        for (part, _) in parts {
            let middle = body.len() / 2;
            body.splice(middle..middle, part.bytes());
        }
        let content_type = format!("{kind}; charset={charset}");
        let rewritten = match kind {
            "text/css" => rewrite_css(&body, Some(&content_type), &page(), &mut file),
            _ => rewrite_html(&body, Some(&content_type), &page(), &mut file),
        };
        prop_assert!(rewritten.len() <= 40 * body.len() + 100);
    }

    #[test]
    fn a_document_without_references_stays(text in "[ a-z<>/='\"&;é{}()@\r\n-]{0,80}") {
        let body = format!("<meta charset=utf-8>{text}");
        let mut none = |_: &CanonicalUrl| None;
        let rewritten = rewrite_html(body.as_bytes(), Some("text/html"), &page(), &mut none);
        prop_assert_eq!(&*rewritten, body.as_bytes());
        let utf16: Vec<u8> = "\u{feff}".encode_utf16().chain(text.encode_utf16())
            .flat_map(u16::to_le_bytes).collect();
        let rewritten = rewrite_html(&utf16, Some("text/html"), &page(), &mut none);
        prop_assert_eq!(&*rewritten, &utf16[..]);
    }
}

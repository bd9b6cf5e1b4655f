//! Tests of hostile documents. Each document is read in two sizes, with the same result. At these
//! sizes, code with quadratic cost would take minutes, so the tests would not end in time.

use crawl_extractor::{
    DocumentOddityKind, ReadingLimits, link_header, read_css, read_feed, read_html, read_sitemap,
};

use crate::read;

/// Returns two texts that repeat `part`: one of 128 KiB and one of 512 KiB.
fn sizes(part: &str) -> impl Iterator<Item = String> {
    let part = part.to_owned();
    [1 << 17, 1 << 19]
        .into_iter()
        .map(move |bytes| part.repeat(bytes / part.len()))
}

#[test]
fn repetitive_pages_are_read_to_their_end() {
    for (part, end) in [
        ("<", ""),
        ("</", ">"),
        ("<!", ">"),
        ("<?", ">"),
        ("<a", ">"),
        ("<a ", ">"),
        ("<a href=", ">"),
        ("<a href=\"", "\">"),
        ("<img srcset=', ,", "'>"),
        ("<img srcset='a (", "'>"),
        ("<!--", "-->"),
        ("<!-- -", "-->"),
        ("--!>", ""),
        ("<script>", "</script>"),
        ("<script><!--<script>", "--></script>"),
        ("</script>", ""),
        ("<style>/*", "*/</style>"),
        ("<style>@import", "</style>"),
        ("<style>(", "</style>"),
        ("<style></style>", ""),
        ("<title></titl", "</title>"),
        ("<textarea>", "</textarea>"),
        ("<svg><style>", "</style></svg>"),
        ("<svg><title>", "</title></svg>"),
        ("<svg><desc>", ""),
        ("<math><annotation-xml encoding=text/html>", ""),
        ("<template>", "</template>"),
        ("<form>", "</form>"),
        ("<p style='(((('>", ""),
        ("<p style='url(\\", "'>"),
        ("&", ""),
        ("&#", ""),
        ("&amp", ""),
        ("&NotEqualTilde", ""),
        ("&#x41;", ""),
        ("\0", ""),
        ("\r", ""),
        ("\u{feff}", ""),
        ("<b><i>", ""),
        ("</b></i>", ""),
        ("<table><td>", ""),
        ("<object archive='a a a' codebase=b>", ""),
        ("<meta name=a content=b>", ""),
        ("<![CDATA[", "]]>"),
        ("<svg><![CDATA[", "]]></svg>"),
    ] {
        for html in sizes(part) {
            let page = read(&format!("{html}{end}<a href=last>"));
            // Only these unterminated parts may hide the link at the end of the page.
            let hides = [
                "<svg><style>",
                "<template>",
                "<svg><title>",
                "<svg><![CDATA[",
            ];
            let has_last = page.links.iter().any(|link| link.href == "last");
            let is_full = page
                .oddities
                .iter()
                .any(|oddity| oddity.what == DocumentOddityKind::LinksFull);
            assert!(has_last || is_full || hides.contains(&part), "{part}");
        }
    }
}

#[test]
fn repetitive_style_sheets_are_read_to_their_end() {
    for part in [
        "(",
        "[",
        "{",
        ")",
        "}",
        "url(",
        "url(\"",
        "url( ",
        "url(a ",
        "url(\\",
        "\"",
        "'",
        "\\",
        "\\0",
        "/*",
        "/",
        "@import",
        "@import \"",
        "@import url(",
        "@namespace ",
        "@media{",
        "-",
        "--",
        "-->",
        "<!--",
        "#",
        "1e",
        ".",
        "\0",
        "image-set(",
        "src(",
        "a",
        "\u{e9}",
        ";",
        "\n",
        "\"\n",
    ] {
        for css in sizes(part) {
            let css = read_css(css.as_bytes(), None, &ReadingLimits::default());
            assert!(css.links.len() <= 100_000, "{part}");
        }
    }
    for css in sizes("url(x)") {
        let sheet = read_css(css.as_bytes(), None, &ReadingLimits::default());
        assert_eq!(sheet.links.len(), (css.len() / 6).min(100_000));
    }
}

#[test]
fn repetitive_xml_is_read_to_its_end() {
    for part in [
        "<",
        "<a>",
        "</a>",
        "<a><b></a>",
        "<a",
        "<a ",
        "<a b='c'>",
        "<!--",
        "<![CDATA[",
        "<?",
        "<!DOCTYPE",
        "<!ENTITY",
        "&",
        "&a;",
        "&#x41;",
        "<url>",
        "<url><loc>",
        "<loc>x</loc>",
        "<item>",
        "<item><title>",
        "<entry><link href='x'/>",
        "<a xml:base='b/'>",
        "<a xmlns:b='c'>",
        "<x:a xmlns:x='y'>",
        "<url><video><content_loc>x</content_loc></video>",
        "<url><link rel='alternate' href='x'/>",
        "<a b='&'/>",
        "\n",
        "\0",
    ] {
        for xml in sizes(part) {
            for root in [
                "<urlset>",
                "<rss>",
                "<feed xmlns='http://www.w3.org/2005/Atom'>",
                "",
            ] {
                let xml = format!("{root}{xml}");
                let sitemap = read_sitemap(xml.as_bytes(), None, &ReadingLimits::default());
                assert!(sitemap.entries.len() <= 50_000, "{part}");
                let feed = read_feed(xml.as_bytes(), None, &ReadingLimits::default());
                assert!(feed.entries.len() <= 10_000, "{part}");
            }
        }
    }
}

#[test]
fn repetitive_json_and_headers_are_read_to_their_end() {
    let begin = "{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[";
    for part in [
        "[",
        "{\"a\":",
        "{},",
        "\"",
        "\\",
        "1,",
        "{\"attachments\":[{},{}]},",
        "{\"id\":1},",
        "null,",
    ] {
        for json in sizes(part) {
            let feed = read_feed(
                format!("{begin}{json}").as_bytes(),
                None,
                &ReadingLimits::default(),
            );
            assert!(feed.entries.len() <= 10_000, "{part}");
        }
    }
    for part in [
        "<",
        "<a>",
        "<a>,",
        "<a>;",
        ";",
        ",",
        "\"",
        "<a>;a=\"",
        "<a>;rel=next,",
        "=",
        "\\",
        "<a>;anchor=b,",
    ] {
        for header in sizes(part) {
            assert!(
                link_header(&header, &ReadingLimits::default()).len() <= 200_000,
                "{part}"
            );
        }
    }
}

#[test]
fn many_attributes_in_xml() {
    let names: String = (0..50_000)
        .map(|number| format!(" a{number}='b'"))
        .collect();
    let spaces: String = (0..50_000)
        .map(|number| format!(" xmlns:a{number}='b'"))
        .collect();
    for attributes in [&names, &spaces] {
        let sitemap = format!(
            "<urlset{attributes}>{}</urlset>",
            "<url><loc>x</loc></url>".repeat(10_000)
        );
        let sitemap = read_sitemap(sitemap.as_bytes(), None, &ReadingLimits::default());
        assert_eq!(sitemap.entries.len(), 10_000);
        let feed = format!(
            "<rss{attributes}><channel>{}</channel></rss>",
            "<item><link>x</link></item>".repeat(9_000)
        );
        assert_eq!(
            read_feed(feed.as_bytes(), None, &ReadingLimits::default())
                .entries
                .len(),
            9_000
        );
    }
}

#[test]
fn links_and_resources_have_separate_limits() {
    let html = "<img src=i>".repeat(150_000) + &"<a href=p>".repeat(100_001);
    let page = read_html(
        html.as_bytes(),
        Some("text/html; charset=utf-8"),
        &ReadingLimits::default(),
    );
    assert_eq!(page.links.len(), 200_000);
    let counts: Vec<_> = page
        .oddities
        .iter()
        .map(|oddity| (oddity.what, oddity.count))
        .collect();
    assert_eq!(
        counts,
        [
            (DocumentOddityKind::ResourcesFull, 50_000),
            (DocumentOddityKind::LinksFull, 1)
        ]
    );
}

#[test]
fn a_url_of_a_megabyte_is_dropped() {
    let long = "x".repeat(1 << 20);
    let page = read(&format!(
        "<a href={long}></a><img src={long}><img srcset='{long} 1x, ok 2x'><p style='a:url({long})'>"
    ));
    let hrefs: Vec<_> = page.links.iter().map(|link| link.href.as_str()).collect();
    assert_eq!(hrefs, ["ok"]);
    assert_eq!(page.oddities[0].what, DocumentOddityKind::HrefTooLong);
    assert_eq!(page.oddities[0].count, 4);
}

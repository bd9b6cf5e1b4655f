//! What holds for any input.

use crawl_extractor::{Limits, is_html, read_html, read_sitemap};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::read;

/// Parts that bring the tokenizer into each of its states, whole and torn.
fn fragment() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "<",
        ">",
        "</",
        "<!",
        "<!--",
        "-->",
        "--!>",
        "<?",
        "<![CDATA[",
        "]]>",
        "&",
        "&amp",
        "&#x41;",
        "&#",
        "\"",
        "'",
        "=",
        "/",
        " ",
        "\n",
        "\r",
        "\0",
        "a",
        "href",
        "<a href=",
        "<a",
        "</a>",
        "<title>",
        "</title>",
        "<script>",
        "</script",
        "<!--<script>",
        "<style>",
        "</style>",
        "<svg>",
        "</svg>",
        "<math>",
        "<mi>",
        "<template>",
        "</template>",
        "<textarea>",
        "<meta http-equiv=refresh content='0;x'>",
        "<base href=b>",
        "<plaintext>",
        "<iframe src=i>",
        "<!doctype html>",
        "\u{e9}",
        "\u{feff}",
        "<p>",
        "<desc>",
        "</desc>",
    ]);
    vec(parts, 0..60).prop_map(|parts| parts.concat())
}

/// Text and markup that holds no link and leaves the parser where it was.
fn filler() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "text ",
        "\n",
        "<p>",
        "</p>",
        "<b x='<a href=no>'>",
        "<!-- <a href=no> -->",
        "&lt;a href=no&gt;",
        "<script>'<a href=no>'</script>",
        "<style><a href=no></style>",
        "<template><a href=no></template>",
        "<textarea><a href=no></textarea>",
        "<svg><style><a href=no></style><path/></svg>",
        "<a name=no>",
        "<img src=x alt='<a href=no>'>",
        "<br/>",
        "1 < 2 & 3",
        "<![CDATA[<a href=no>",
    ]);
    // A bogus comment ends at its first `>`, which is that of the link.
    vec(
        parts.prop_filter("ends a tag", |part| !part.starts_with("<![")),
        0..8,
    )
    .prop_map(|parts| parts.concat())
}

fn planted() -> impl Strategy<Value = (String, String)> {
    ("[a-z/?=.:#%0-9-]{1,40}", "[a-z]{0,10}", 0..6_u8).prop_map(|(href, text, form)| {
        let markup = match form {
            0 => format!("<a href=\"{href}\">{text}</a>"),
            1 => format!("<A\nclass=x HREF = '{href}' id=y>{text}"),
            2 => format!("<area shape=rect href=\" {href}\n\">"),
            3 => format!("<iframe src='{href}'><a href=no></iframe>"),
            4 => format!("<noscript><a href='{href}'>{text}</a></noscript>"),
            _ => format!("<svg><a xlink:href='{href}'>{text}</a></svg>"),
        };
        (href, markup)
    })
}

proptest! {
    #[test]
    fn ours_no_octets_panic(body in vec(any::<u8>(), 0..2_000), header in ".{0,40}") {
        let limits = Limits::default();
        let _ = read_html(&body, Some(&header), &limits);
        let _ = read_html(&body, Some(&format!("text/html; charset={header}")), &limits);
        let _ = read_sitemap(&body, &limits);
        let _ = is_html(Some(&header), &body);
        let _ = is_html(None, &body);
    }

    #[test]
    fn ours_no_markup_panics(html in fragment(), padding in 4_060..4_100_usize) {
        let _ = read(&html);
        let _ = read_sitemap(html.as_bytes(), &Limits::default());
        // The same across the end of a piece.
        let padded = read(&format!("{}{html}", "-".repeat(padding)));
        prop_assert_eq!(&read(&format!("-{html}")).links, &padded.links);
    }

    #[test]
    fn ours_no_limit_panics(html in fragment(), limit in 0..5_usize) {
        let mut limits = Limits::default();
        limits.links = limit;
        limits.href_octets = limit;
        limits.text_octets = limit;
        limits.title_octets = limit;
        limits.metas = limit;
        limits.meta_octets = limit;
        limits.attributes = limit;
        limits.sitemap_entries = limit;
        limits.sitemap_octets = limit;
        let page = read_html(html.as_bytes(), None, &limits);
        prop_assert!(page.links.len() <= limit);
        prop_assert!(page.links.iter().all(|link| link.href.len() <= limit));
        let _ = read_sitemap(html.as_bytes(), &limits);
    }

    #[test]
    fn ours_links_found_are_those_planted(
        parts in vec((filler(), planted()), 0..30),
        padding in 0..5_000_usize,
    ) {
        let mut html = "-".repeat(padding);
        let mut expected = Vec::new();
        for (filler, (href, markup)) in parts {
            html.push_str(&filler);
            html.push_str(&markup);
            expected.push(href);
        }
        let found: Vec<String> = read(&html).links.into_iter().map(|link| link.href).collect();
        prop_assert_eq!(found, expected);
    }
}

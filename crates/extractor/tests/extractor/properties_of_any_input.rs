//! Properties that hold for any input.

use crawl_extractor::{ReadingLimits, is_html, read_html, read_sitemap};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::read;

/// Generates complete and truncated parts of pages that together put the tokenizer into each of its
/// states.
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

/// Generates text and markup that contains no link and doesn't change the parser's state.
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
        "<template><title>no</title><base href=no></template>",
        "<textarea><a href=no></textarea>",
        "<svg><style><a href=no></style><path/></svg>",
        "<a name=no>",
        "<img alt='<a href=no>'>",
        "<br/>",
        "1 < 2 & 3",
        "<!--><img srcset=', ,'>",
        "<form method=dialog action=no></form>",
        "<script>document.write('<img src=no>')</script>",
    ]);
    vec(parts, 0..8).prop_map(|parts| parts.concat())
}

fn planted() -> impl Strategy<Value = (String, String)> {
    ("[a-z/?=.:#%0-9-]{1,40}", "[a-z]{0,10}", 0..15_u8).prop_map(|(href, text, form)| {
        let markup = match form {
            0 => format!("<a href=\"{href}\">{text}</a>"),
            1 => format!("<A\nclass=x HREF = '{href}' id=y>{text}"),
            2 => format!("<area shape=rect href=\" {href}\n\">"),
            3 => format!("<iframe src='{href}'><a href=no></iframe>"),
            4 => format!("<noscript><a href='{href}'>{text}</a></noscript>"),
            5 => format!("<img alt=x srcset='data:x 1x, /{href} 2x'>"),
            6 => format!("<video poster='/{href}'></video>"),
            7 => format!("<style>a{{b:url( /{href}\n)}}/* url(no) */</style>"),
            8 => format!("<p style=\"b:url('/{href}')\">"),
            9 => format!("<form action='/{href}'></form>"),
            13 => format!("<form method=post action='/{href}'></form>"),
            10 => format!("<svg><use xlink:href='/{href}'/></svg>"),
            11 => format!("<math><mi href='/{href}'>x</mi></math>"),
            12 => format!("<svg><style>@import \"/{href}\";</style></svg>"),
            _ => format!("<svg><a xlink:href='{href}'>{text}</a></svg>"),
        };
        let slash = if (5..=13).contains(&form) { "/" } else { "" };
        (format!("{slash}{href}"), markup)
    })
}

proptest! {
    #[test]
    fn no_bytes_panic(body in vec(any::<u8>(), 0..2_000), header in ".{0,40}") {
        let limits = ReadingLimits::default();
        let _ = read_html(&body, Some(&header), &limits);
        let _ = read_html(&body, Some(&format!("text/html; charset={header}")), &limits);
        let _ = read_sitemap(&body, None, &limits);
        let _ = is_html(Some(&header), &body);
        let _ = is_html(None, &body);
    }

    #[test]
    fn no_markup_panics(html in fragment(), padding in 4_060..4_100_usize) {
        let _ = read(&html);
        let _ = read_sitemap(html.as_bytes(), None, &ReadingLimits::default());
        // Repeat the test with text before the markup, so that the markup crosses the offset 4,096.
        let padded = read(&format!("{}{html}", "-".repeat(padding)));
        prop_assert_eq!(&read(&format!("-{html}")).links, &padded.links);
    }

    #[test]
    fn no_limit_panics(html in fragment(), limit in 0..5_usize) {
        let mut limits = ReadingLimits::default();
        limits.links = limit;
        limits.href_bytes = limit;
        limits.text_bytes = limit;
        limits.title_bytes = limit;
        limits.metas = limit;
        limits.meta_bytes = limit;
        limits.attributes = limit;
        limits.sitemap_entries = limit;
        limits.sitemap_bytes = limit;
        let page = read_html(html.as_bytes(), None, &limits);
        prop_assert!(page.links.len() <= limit);
        prop_assert!(page.links.iter().all(|link| link.href.len() <= limit));
        let _ = read_sitemap(html.as_bytes(), None, &limits);
    }

    #[test]
    fn exactly_the_planted_links_are_found(
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
        let hrefs: Vec<String> = read(&html).links.into_iter().map(|link| link.href).collect();
        prop_assert_eq!(hrefs, expected);
    }
}

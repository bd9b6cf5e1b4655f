//! Checks the properties of the fuzz targets with random inputs that are made of relevant parts.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::fuzz_checks;
use crate::run_without_fuzzer::run_without_fuzzer;

/// Generates random bytes, mixed with whole and truncated `words`.
fn input(words: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(words).prop_map(|word| word.as_bytes().to_vec());
    let part = prop_oneof![
        8 => word.clone(),
        2 => (word, any::<prop::sample::Index>()).prop_map(|(mut word, at)| {
            word.truncate(at.index(word.len() + 1));
            word
        }),
        1 => vec(any::<u8>(), 0..6),
    ];
    vec(part, 0..40).prop_map(|parts| parts.concat())
}

const HTML: &[&str] = &[
    "\0",
    "\x01",
    "<a href=",
    "x",
    "'",
    "\"",
    ">",
    "<",
    "/",
    " ",
    "\n",
    "</a>",
    "<img srcset=\"a 1x, b\">",
    "<style>",
    "url(x)",
    "</style>",
    "<script>",
    "</script>",
    "<!--",
    "-->",
    "<svg>",
    "</svg>",
    "<math>",
    "<title>",
    "</title>",
    "<desc>",
    "<template>",
    "</template>",
    "<form action=f>",
    "</form>",
    "<button formaction=g>",
    "<object codebase=c archive='a b'>",
    "<meta name=a content=b>",
    "<meta http-equiv=refresh content='0;r'>",
    "<base href=b>",
    "<p style='b:url(s)'>",
    "&amp;",
    "&#x41;",
    "<![CDATA[",
    "]]>",
    "<iframe src=i>",
    "<link rel=next href=l>",
    "<plaintext>",
    "\u{e9}",
    "<!doctype html>",
];
const CSS: &[&str] = &[
    "url(",
    "URL (",
    ")",
    "(",
    "\"",
    "'",
    "\\",
    "\\75 ",
    "\n",
    "/*",
    "*/",
    "@import ",
    "@namespace ",
    ";",
    "{",
    "}",
    "[",
    "]",
    "image-set(",
    "src(",
    "x",
    "1",
    "-",
    "--",
    "#",
    "<!--",
    "-->",
    " ",
    "@charset \"utf-8\";",
    "data:x",
    "\u{e9}",
    ".5e",
    "@media ",
];
const SITEMAP: &[&str] = &[
    "<urlset>",
    "</urlset>",
    "<sitemapindex>",
    "<url>",
    "</url>",
    "<loc>",
    "</loc>",
    "http://e.org/",
    "\n",
    "&amp;",
    "&x;",
    "&",
    "<image:image>",
    "<image:loc>",
    "</image:loc>",
    "</image:image>",
    "<video:video>",
    "<video:content_loc>v",
    "<news:news>",
    "<xhtml:link rel='alternate' href='x'/>",
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "<?xml encoding='gbk'?>",
    "<!DOCTYPE x [<!ENTITY a 'b'>]>",
    "<lastmod>x</lastmod>",
    "<priority>1</priority>",
    " ",
    "<",
];
const FEED: &[&str] = &[
    "<rss>",
    "</rss>",
    "<channel>",
    "<item>",
    "</item>",
    "<title>",
    "</title>",
    "<link>",
    "</link>",
    "x",
    "<guid>",
    "</guid>",
    "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='b/'>",
    "<entry xml:base='c'>",
    "</entry>",
    "<id>",
    "</id>",
    "<link href='h'/>",
    "<link rel='next' href='n'/>",
    "<rdf:RDF>",
    "&lt;",
    "&x;",
    "<enclosure url='e'/>",
    "{\"version\":\"https://jsonfeed.org/version/1\",",
    "\"items\":[",
    "{\"id\":1,",
    "\"url\":\"u\"",
    "}",
    "]",
    ",",
    "\"title\":",
    "null",
    "\"",
    "{",
    " ",
    "<",
    ">",
];
const HEADER: &[&str] = &[
    "<",
    ">",
    "x",
    ";",
    ",",
    "=",
    "\"",
    "\\",
    " ",
    "rel",
    "rel=next",
    "rel=preload",
    "anchor=",
    "type=a/b",
    "<a>",
    "#",
    "data:",
    "0;url=",
    "'",
    "\u{e9}",
];
const CHARSET: &[&str] = &[
    "<meta charset=",
    "sjis",
    "koi8-r",
    "utf-16",
    "x-user-defined",
    "hz-gb-2312",
    ">",
    "'",
    "\"",
    "<?xml encoding='",
    "?>",
    "<meta http-equiv=content-type content='text/html; charset=",
    "<!--",
    "-->",
    "\u{feff}",
    "<a href=x>",
    "\0",
    "a\0",
    "\0a",
    "\x1b$B",
    "\u{43f}\u{440}",
    "text ",
    "<rss",
    "<urlset>",
    "%PDF-",
    "PK\x03\x04",
    "<html>",
    "{",
];

proptest! {
    #[test]
    fn html_keeps_its_bounds(data in input(HTML)) {
        fuzz_checks::html(&data);
    }

    #[test]
    fn css_keeps_its_bounds(data in input(CSS)) {
        fuzz_checks::css(&data);
    }

    #[test]
    fn sitemaps_keep_their_bounds(data in input(SITEMAP)) {
        fuzz_checks::sitemap(&data);
    }

    #[test]
    fn feeds_keep_their_bounds(data in input(FEED)) {
        fuzz_checks::feed(&data);
    }

    #[test]
    fn headers_keep_their_bounds(data in input(HEADER)) {
        fuzz_checks::header(&data);
    }

    #[test]
    fn charsets_keep_their_bounds(data in input(CHARSET)) {
        fuzz_checks::charset(&data);
    }
}

#[test]
fn inputs_of_the_fuzzer() {
    run_without_fuzzer("html", 1_000, fuzz_checks::html);
    run_without_fuzzer("css", 1_000, fuzz_checks::css);
    run_without_fuzzer("sitemap", 1_000, fuzz_checks::sitemap);
    run_without_fuzzer("feed", 1_000, fuzz_checks::feed);
    run_without_fuzzer("link_header", 1_000, fuzz_checks::header);
    run_without_fuzzer("charset", 300, fuzz_checks::charset);
}

//! Tests of a page's `VisibleContentCounts`, and of the text and images passed to an observer.

use std::ops::Range;

use crawl_extractor::{
    ContentLimits, DecodedPage, PageContent, PageContext, ReadingLimits, VisibleTextObserver,
    read_page_text, read_text,
};

use crate::read;

/// Records the texts and images passed to an observer, one per line, up to `limit` lines.
struct Lines {
    lines: Vec<String>,
    limit: usize,
}

impl VisibleTextObserver for Lines {
    fn wants_text(&self) -> bool {
        self.lines.len() < self.limit
    }

    fn texts(&mut self, page: &str, texts: &[Range<usize>]) {
        for text in texts.iter().map(|text| page[text.clone()].trim()) {
            if !text.is_empty() && self.wants_text() {
                self.lines.push(text.to_owned());
            }
        }
    }

    fn image(&mut self, tag: &str) {
        self.lines.push(tag.to_owned());
    }
}

fn observed(html: &str, limit: usize) -> Vec<String> {
    let mut observer = Lines {
        lines: Vec::new(),
        limit,
    };
    let text = DecodedPage::decode(html.as_bytes(), Some("text/html; charset=utf-8"));
    let page = read_text(&text, &ReadingLimits::default(), &mut observer);
    assert_eq!(page.links.len(), read(html).links.len());
    observer.lines
}

#[test]
fn markup_scripts_and_comments_are_not_text() {
    for html in [
        "Hello<p>wide",
        "<script>if (a</b>c) x</script>Hello<!-- <p> no --><b>wide",
        "<STYLE>p{}</style >Hello<template>no<img src=no></template>wide",
        "Hello<br>wide<script>never closed",
        "Hello<br>wide<!-- never closed",
        "Hello<svg><style>no</style><script>no</script></svg>wide",
    ] {
        assert_eq!(observed(html, 99), ["Hello", "wide"], "{html}");
    }
    assert_eq!(observed("1 < 2 &amp; more", 99), ["1 < 2 &amp; more"]);
}

#[test]
fn an_observer_gets_titles_fields_and_images_in_order() {
    let html = "<title>T</title><IMG src='a>b'><textarea>f</textarea><noscript>n</noscript>";
    assert_eq!(observed(html, 99), ["T", "<IMG src='a>b'>", "f", "n"]);
    assert_eq!(observed("<a href=x>a</a><b>b</b>", 1), ["a"]);
}

#[test]
fn an_outline_covers_the_visible_parts() {
    let page = read(
        "<!doctype html><TITLE>A\n b</TITLE><!-- <input type=password> -->\
         <script>'<input type=password>'</script><h1></h1><h1 class='x>y'>Go <b>&amp;</b> on</h1>\
         <h1>No</h1><a href=/>ab</a><a name=n></a><input name=p TYPE = \" Password\"><p>c\u{e9}",
    );
    let outline = page.outline;
    assert_eq!(outline.heading.as_deref(), Some("Go & on"));
    assert_eq!(
        (outline.passwords, outline.links, outline.letters),
        (1, 2, "Go&amp;onNoabc\u{e9}".chars().count())
    );
}

#[test]
fn letters_are_counted_up_to_a_limit() {
    for (letters, counted) in [
        (0, 0),
        (255, 255),
        (256, 256),
        (8_000, 8_000),
        (9_000, 8_192),
    ] {
        let page = read(&format!(
            "<p>{}<b>\n {}",
            "\u{e9} ".repeat(letters / 2),
            "a".repeat(letters.div_ceil(2))
        ));
        assert_eq!(page.outline.letters, counted);
    }
}

#[test]
fn text_in_hidden_containers_is_not_shown() {
    for (html, shown) in [
        ("<div hidden>no</div>yes", 3),
        (
            "<DIV HIDDEN=until-found>no<div>no</div>no</DIV>yes<div>yes",
            6,
        ),
        (
            "<section style='color:red; Display : NONE'>no</section>yes",
            3,
        ),
        ("<main style=visibility:hidden><div>no</div></main>yes", 3),
        ("<ul hidden><template></ul></template><li>no</ul>yes", 3),
        ("<div hidden><svg><text>no</text></svg>no", 0),
        ("<div class=hidden>yes</div><p hidden>yes<p>yes", 9),
    ] {
        let outline = read(html).outline;
        assert_eq!(outline.shown_letters, shown, "{html}");
        assert!(outline.letters >= shown, "{html}");
    }
    let long = format!("<div hidden>{}</div>yes", "no ".repeat(8_000));
    let outline = read(&long).outline;
    assert_eq!((outline.letters, outline.shown_letters), (8_192, 3));
}

#[test]
fn the_type_of_a_script_decides_whether_it_is_data() {
    for (html, has_scripts) in [
        ("<p>tea", false),
        ("<SCRIPT>draw()</SCRIPT>", true),
        ("<script src=a.js></script>", true),
        ("<script data-format=\"json\">draw()</script>", true),
        ("<script type=module>draw()</script>", true),
        ("<script type=\"application/LD+json\">{}</script>", false),
        ("<script type=speculationrules>{}</script>", false),
        ("<template><script>draw()</script></template>", false),
        ("<!-- <script>draw()</script> -->", false),
    ] {
        assert_eq!(read(html).outline.has_scripts, has_scripts, "{html}");
    }
}

/// An observer that gives up after `max_bytes` bytes of text.
struct Impatient {
    seen_bytes: usize,
    max_bytes: usize,
}

impl VisibleTextObserver for Impatient {
    fn wants_text(&self) -> bool {
        true
    }

    fn texts(&mut self, _page: &str, texts: &[Range<usize>]) {
        self.seen_bytes += texts.iter().map(Range::len).sum::<usize>();
    }

    fn image(&mut self, _tag: &str) {}

    fn is_given_up(&self) -> bool {
        self.seen_bytes >= self.max_bytes
    }
}

#[test]
fn reading_stops_within_64_kib_of_giving_up() {
    const STEP: usize = 64 << 10;
    let html = "<p>some words".repeat(100_000);
    let text = DecodedPage::decode(html.as_bytes(), Some("text/html; charset=utf-8"));
    for max_bytes in [0, 1, 3 * STEP] {
        let mut observer = Impatient {
            seen_bytes: 0,
            max_bytes,
        };
        let context = PageContext::default();
        let limits = ContentLimits::default();
        let read = read_page_text(
            &text,
            &context,
            &ReadingLimits::default(),
            &limits,
            &mut observer,
        );
        assert!(
            observer.seen_bytes <= max_bytes + STEP,
            "{max_bytes}: {}",
            observer.seen_bytes
        );
        assert_eq!(
            read.1,
            PageContent::default(),
            "what was read is for nobody"
        );
    }
}

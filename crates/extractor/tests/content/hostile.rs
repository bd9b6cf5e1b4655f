//! Tests of hostile pages and of limits.

use crawl_extractor::{ContentLimits, PageContent, PageContext, read_content};
use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::{read, show_oddities};

/// Compares the oddities of a page and its numbers of blocks and bytes of text with `expected`.
fn check(content: &PageContent, expected: Expect) {
    let (blocks, bytes) = (content.blocks.len(), content.visible_text().len());
    expected.assert_eq(&format!(
        "{blocks} blocks, {bytes} bytes\n{}",
        show_oddities(content)
    ));
}

#[test]
fn nested_tags_300_000_deep() {
    for name in [
        "div",
        "span",
        "a href=x",
        "table><tr><td",
        "ul><li",
        "b hidden",
        "section id=x",
        "article",
    ] {
        let content = read(&format!("{}deep", format!("<{name}>").repeat(300_000)));
        assert!(content.blocks.len() <= 1, "{name}");
    }
    let html = format!(
        "{}deep{}<p>after",
        "<div>".repeat(300_000),
        "</div>".repeat(300_000)
    );
    check(
        &read(&html),
        expect![[r#"
            2 blocks, 10 bytes
            too-deep line 1 x299488
        "#]],
    );
}

#[test]
fn unmatched_end_tags() {
    let open = "<div>".repeat(600);
    check(
        &read(&format!("{open}a{}b", "</section>".repeat(300_000))),
        expect![[r#"
            2 blocks, 3 bytes
            too-deep line 1 x88
        "#]],
    );
}

#[test]
fn megabytes_without_a_block() {
    let content = read(&"lorem ipsum ".repeat(700_000));
    check(
        &content,
        expect![[r#"
            1 blocks, 4194304 bytes
            text-full line 1 x1
        "#]],
    );
    check(
        &read(&"\0".repeat(5_000_000)),
        expect!["0 blocks, 0 bytes\n"],
    );
    check(
        &read(&format!("<p>{}x", " ".repeat(5_000_000))),
        expect!["1 blocks, 1 bytes\n"],
    );
}

#[test]
fn more_than_100_000_headings() {
    let content = read(&"<h2 id=a>x</h2><p>y</p>".repeat(100_000));
    assert_eq!(content.sections().len(), 50_000);
    check(
        &content,
        expect![[r#"
            100000 blocks, 399999 bytes
            blocks-full line 1 x100000
        "#]],
    );
    check(
        &read(&"<div>x</div>".repeat(150_000)),
        expect![[r#"
            100000 blocks, 299999 bytes
            regions-full line 1 x50001
            blocks-full line 1 x50000
        "#]],
    );
}

#[test]
fn json_ld_without_end() {
    let script = |json: &str| format!("<script type=application/ld+json>{json}</script>");
    check(
        &read(&script(&"[".repeat(100_000))),
        expect![[r#"
            0 blocks, 0 bytes
            broken-json-ld line 1 x1
        "#]],
    );
    check(
        &read(&script(&format!("[{}0]", "0,".repeat(200_000)))),
        expect![[r#"
            0 blocks, 0 bytes
            json-ld-too-long line 1 x1
        "#]],
    );
    let content = read(&script("{\"@type\":\"A\"}").repeat(100));
    assert_eq!(content.json_ld.len(), 16);
    let content = read(&script(&format!(
        "[{}0]",
        "{\"@type\":\"A\"},".repeat(1_000)
    )));
    assert_eq!(content.json_ld.len(), 64);
    check(
        &content,
        expect![[r#"
            0 blocks, 0 bytes
            json-ld-full line 1 x1
        "#]],
    );
}

#[test]
fn fields_without_end() {
    let words: String = (0..1_000).map(|n| format!("w{n},")).collect();
    let long = "x".repeat(100_000);
    let content = read(&format!(
        "<title>{long}</title><meta name=description content={long}><meta name=keywords content='{words}'>\
         <p id={long}>a<p class='{long} nav' style='{long}'>b{}",
        "<meta name=date content=2020>".repeat(100)
    ));
    assert_eq!(content.keywords.len(), 100);
    assert_eq!(content.dates.len(), 32);
    check(
        &content,
        expect![[r#"
            2 blocks, 3 bytes
            field-cut line 1 x2
            keywords-full line 1 x1
            id-too-long line 1 x1
            dates-full line 1 x68
        "#]],
    );
}

#[test]
fn attributes_by_the_thousand() {
    let attributes: String = (0..50_000).map(|n| format!(" a{n}=b")).collect();
    let content = read(&format!("<p{attributes} id=late>a"));
    assert_eq!(content.blocks[0].id, None);
    assert!(show_oddities(&content).starts_with("tag-cut line 1"));
}

/// Returns limits so small that random pages reach them.
fn small() -> ContentLimits {
    let mut limits = ContentLimits::default();
    limits.text_bytes = 64;
    limits.blocks = 6;
    limits.regions = 5;
    limits.depth = 4;
    limits.field_bytes = 8;
    limits.keywords = 2;
    limits.id_bytes = 4;
    limits.json_ld_bytes = 64;
    limits.attributes = 3;
    limits
}

fn holds(content: &PageContent, limits: &ContentLimits) {
    assert!(content.visible_text().len() <= limits.text_bytes + limits.blocks);
    assert!(content.blocks.len() <= limits.blocks);
    let mut end = 0;
    for block in &content.blocks {
        assert!(block.range.start >= end && block.range.end > block.range.start);
        end = block.range.end;
        let text = &content.visible_text()[block.range.clone()];
        assert_eq!(text, content.text_of(block));
        assert_eq!(text, text.trim_end());
    }
    assert!(content.sections().iter().all(|section| section.level <= 6));
}

proptest! {
    #[test]
    fn any_bytes_are_read(body in proptest::collection::vec(any::<u8>(), 0..400)) {
        let limits = ContentLimits::default();
        holds(&read_content(&body, &PageContext::default(), &limits), &limits);
    }

    #[test]
    fn any_markup_keeps_the_limits(parts in proptest::collection::vec(
        prop_oneof![
            "[ a-cé東\u{ad}\u{301}\0\n]{0,9}",
            "</?(div|p|h[1-6]|ul|li|table|tr|td|a|main|nav|article|aside|pre|br|svg|math|span|title|template|script|section|dl|dt|dd|body|html|time|form|button|xmp)( (id|class|role|hidden|href|style|itemprop|lang|datetime)(=(a|nav|main|heading|datePublished|display:none|comment))?){0,3}/?>",
            Just("<script type=application/ld+json>{\"@type\":\"Article\",\"datePublished\":\"2020\"}</script>".to_owned()),
            Just("<meta name=keywords content='a,b,c'>".to_owned()),
            Just("<link rel=canonical href=/abcdefghij>".to_owned()),
        ], 0..40)) {
        let html = parts.concat();
        let limits = small();
        let content = read_content(html.as_bytes(), &PageContext::default(), &limits);
        holds(&content, &limits);
        let large = ContentLimits::default();
        holds(&read_content(html.as_bytes(), &PageContext::default(), &large), &large);
    }
}

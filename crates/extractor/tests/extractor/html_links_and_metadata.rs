//! Tests of links, titles, bases and metas of HTML pages.

use crawl_extractor::Rel;
use crawl_weburl::canonicalize;
use expect_test::{Expect, expect};

use crate::{read, show_links};

fn check(html: &str, links: &Expect) {
    links.assert_eq(&show_links(&read(html).links));
}

fn title(html: &str) -> Option<String> {
    read(html).title
}

#[test]
fn each_element_that_links_to_a_page() {
    check(
        r#"<a href="/a">A</a><map><area href=/b alt=" the
           B "></map><link rel="next" href="c"><iframe src=" d ">x</iframe>
           <frameset><frame src="e"></frameset><meta http-equiv=Refresh content="5; URL='f'">"#,
        &expect![[r#"
            a Page "/a" "A"
            area Page "/b" "the B"
            link Page "c" rel=next
            iframe Page "d"
            frame Page "e"
            meta Page "f"
        "#]],
    );
}

#[test]
fn html_13_2_5_text_that_looks_like_markup_has_no_links() {
    check(
        r#"<!-- <a href=1> --><script>"<a href=2>"</script><style><a href=3></style>
           <textarea><a href=4></textarea><title><a href=5></title><xmp><a href=6></xmp>
           <iframe><a href=7></iframe><noembed><a href=8></noembed>
           <noframes><a href=9></noframes><template><a href=10><template></template>
           <base href=11><meta http-equiv=refresh content="0;12"></template>
           <script><!-- <script> <a href=13> </script> <a href=14> --></script>
           <!doctype "<a href=15>"><?php <a href=16 ?></ <a href=17>
           <![CDATA[ <a href=18> ]]><a href=last></a><plaintext><a href=19>"#,
        &expect![[r#"
            a Page "10"
            a Page "last"
        "#]],
    );
}

#[test]
fn noscript_is_markup_because_no_script_runs() {
    check(
        "<noscript><a href=1>one</a></noscript>",
        &expect![[r#"
        a Page "1" "one"
    "#]],
    );
}

#[test]
fn a_shadow_root_is_visible_and_other_templates_only_have_links() {
    check(
        "<template shadowrootmode=open><a href=1>one</a><template><a href=2>two</template></template>
         <template><template shadowrootmode=open><a href=3></template><a href=4></template>
         <a href=5>",
        &expect![[r#"
            a Page "1" "one"
            a Page "2"
            a Page "3"
            a Page "4"
            a Page "5"
        "#]],
    );
}

#[test]
fn a_template_is_separate_from_the_page_around_it() {
    check(
        "<a href=1>one<template><a href=2>two</a><a href='/{{slug}}'></a><a href='${url}'></a>
         <base href=no><title>no</title></template> more</a><template><svg><style><a href=no>
         </style></svg><a href=3></template>",
        &expect![[r#"
            a Page "1" "one more"
            a Page "2"
            a Page "3"
        "#]],
    );
}

#[test]
fn html_4_6_7_an_anchor_without_href_is_not_a_link() {
    check(
        "<a name=x>x</a><a href>self</a><a href='#y'>y</a>",
        &expect![[r##"
        a Page "" "self"
        a Page "#y" "y"
    "##]],
    );
}

#[test]
fn html_4_6_7_an_anchor_ends_where_the_next_begins() {
    check(
        "<a href=1>one<a href=2>two</a>three",
        &expect![[r#"
        a Page "1" "one"
        a Page "2" "two"
    "#]],
    );
}

#[test]
fn link_text_is_collapsed_and_split_at_blocks() {
    check(
        "<a href=1>\n a&nbsp;b <b>c</b>d<br>e<div>f</div>g &amp;\th\n</a>\
         <a href=2>x<script>no</script>y<style>no</style>z<!-- no --></a>",
        &expect![[r#"
            a Page "1" "a\u{a0}b cd e f g & h"
            a Page "2" "xyz"
        "#]],
    );
}

#[test]
fn html_13_2_5_references_and_case_in_attributes() {
    check(
        "<A HREF='/?a=1&amp;b=2&copy=3&lt;&#x41;'>x</A><a href=/q?x=1&y=2 href=/second>\
         <a\nhref\n=\n\"/sp ace\n\">z</a><a href='/nul\0'>",
        &expect![[r#"
            a Page "/?a=1&b=2&copy=3<A" "x"
            a Page "/q?x=1&y=2"
            a Page "/sp ace" "z"
            a Page "/nul�"
        "#]],
    );
}

#[test]
fn kinds_of_link_elements() {
    check(
        r#"<link rel=stylesheet href=a.css><link rel="shortcut icon" href=b.ico>
           <link rel=canonical href=c><link rel="alternate" hreflang=de href=d>
           <link rel=alternate type="application/rss+xml; x=y" href=e>
           <link rel=alternate type=application/json+oembed href=f>
           <link rel="alternate stylesheet" href=g><link rel=preconnect href=//h>
           <link rel=prev href=i><link href=j><link rel=next href=""><link rel="search" href=k>
           <link rel=alternate type=application/xhtml+xml href=l>"#,
        &expect![[r#"
            link Resource "a.css" rel=stylesheet
            link Resource "b.ico" rel=icon
            link Page "c" rel=canonical
            link Page "d" rel=alternate
            link Feed "e" rel=alternate type=application/rss+xml
            link Other "f" rel=alternate type=application/json+oembed
            link Resource "g" rel=alternate stylesheet
            link Other "//h"
            link Page "i" rel=prev
            link Other "j"
            link Other "k"
            link Page "l" rel=alternate type=application/xhtml+xml
        "#]],
    );
}

#[test]
fn html_4_6_8_rel_is_a_set_in_any_case() {
    let page = read("<a rel='NoFollow\tUGC unknown sponsored previous' href=x>");
    let rel = page.links[0].rel;
    assert!(rel.contains(Rel::NOFOLLOW | Rel::UGC | Rel::SPONSORED | Rel::PREV));
    assert!(!rel.intersects(Rel::NEXT | Rel::CANONICAL));
    assert_eq!(rel.to_string(), "nofollow ugc sponsored prev");
    assert!(Rel::parse("").is_empty());
    assert_eq!(Rel::parse("ugc,nofollow").to_string(), "nofollow ugc");
    assert_eq!(
        Rel::parse("nofollow, noopener").to_string(),
        "nofollow noopener"
    );
}

#[test]
fn html_4_2_5_3_refresh() {
    let target = |content: &str| {
        let page = read(&format!("<meta content=\"{content}\" http-equiv=refresh>"));
        page.links.first().map(|link| link.href.clone())
    };
    let expected = Some("/x".to_owned());
    for content in [
        "0;url=/x",
        "0; URL = /x",
        "0,/x",
        "0 /x",
        ".5;url='/x'",
        " 7.5 ; uRl='/x' y",
        "1;'/x",
        "0;url=&quot;/x&quot;",
    ] {
        assert_eq!(target(content), expected, "{content}");
    }
    for content in ["", "5", "5;", "x;url=/x", "5x;/x", "0;url=", "0;url=''"] {
        assert_eq!(target(content), None, "{content}");
    }
    assert_eq!(target("0;url"), Some("url".to_owned()));
    assert_eq!(target("0;u\u{fc}=/x"), Some("u\u{fc}=/x".to_owned()));
}

#[test]
fn html_4_2_2_the_first_title_outside_svg() {
    assert_eq!(
        title("<title>\n A &amp;\n B<b> </title><title>C</title>").as_deref(),
        Some("A & B<b>")
    );
    assert_eq!(
        title("<svg><title>no</title></svg><title>yes</title>").as_deref(),
        Some("yes")
    );
    assert_eq!(
        title("<template><title>no</title></template><title>yes</title>").as_deref(),
        Some("yes")
    );
    assert_eq!(title("<title> </title><title>second</title>"), None);
    assert_eq!(
        title("<title>never closed").as_deref(),
        Some("never closed")
    );
    assert_eq!(title("<p>none"), None);
}

#[test]
fn html_4_2_3_the_first_base_with_an_href() {
    let page = read("<base target=x><base href=' /b/ '><base href=/c/><a href=d>");
    assert_eq!(page.base.as_deref(), Some("/b/"));
    let at = canonicalize(None, "http://e.org/x/y").unwrap();
    assert_eq!(page.base_url(&at).as_str(), "http://e.org/b/");
    assert_eq!(
        read("<base href='data:,x'>").base_url(&at).as_str(),
        "http://e.org/x/y"
    );
    assert_eq!(read("").base_url(&at).as_str(), "http://e.org/x/y");
}

#[test]
fn metas_keep_name_and_content() {
    let page = read(
        "<meta name=' ROBOTS ' content='NoIndex, nofollow'><meta name=x><meta content=y>
         <meta property=og:title content=z><svg><a/><meta name=d content=e></svg>",
    );
    let pairs: Vec<_> = page.meta_pairs().collect();
    assert_eq!(pairs, [("robots", "NoIndex, nofollow"), ("d", "e")]);
}

#[test]
fn html_13_2_6_5_foreign_content() {
    check(
        r#"<svg><a xlink:href=1><text>t</text></a><title><a href=2>html</a></title>
           <script><a href=3></script><style>a{}<a href=4></style><link href=5 rel=next>
           <![CDATA[<a href=6>]]><foreignObject><a href=7></a><![CDATA[<a href=8>]]></foreignObject>
           <desc/><![CDATA[<a href=9>]]></svg><math><mi><a href=10></a></mi>
           <annotation-xml encoding=text/html><a href=11></a></annotation-xml></math>
           <svg/><![CDATA[<a href=12>]]><svg><p><![CDATA[<a href=13>]]><textarea><a href=14>"#,
        &expect![[r#"
            a Page "1" "t"
            a Page "2" "html"
            a Page "7"
            a Page "10"
            a Page "11"
        "#]],
    );
}

#[test]
fn frames_without_a_url_are_not_links() {
    check(
        "<iframe></iframe><iframe src=''></iframe><iframe src=a srcdoc=b></iframe><frame>",
        &expect![""],
    );
}

#[test]
fn a_truncated_page_keeps_everything_before_the_cut() {
    check(
        "<a href=1>one</a><a href=2>tw",
        &expect![[r#"
        a Page "1" "one"
        a Page "2" "tw"
    "#]],
    );
    check(
        "<a href=1>one</a><a href='2",
        &expect![[r#"
        a Page "1" "one"
    "#]],
    );
}

#[test]
fn a_nul_in_the_name_of_an_attribute_counts_as_u_fffd() {
    // The second and third attribute have the same name, so the third is ignored. Otherwise its
    // placeholder would make the extractor skip the link.
    let html = "<template><a href=x \u{fffd}=a \0='{%'>";
    let page = read(html);
    assert_eq!(page.links.len(), 1);
}

//! Tests of sitemaps.

use std::fmt::Write as _;

use crawl_extractor::{ReadingLimits, Sitemap, read_sitemap};
use expect_test::{Expect, expect};

use crate::show_oddities;

fn show(sitemap: &Sitemap) -> String {
    let mut shown = format!("{:?}\n", sitemap.kind);
    for entry in &sitemap.entries {
        let _ = write!(shown, "{:?}", entry.loc);
        let _ = entry
            .lastmod
            .as_ref()
            .map(|lastmod| write!(shown, " {lastmod}"));
        let _ = entry
            .changefreq
            .map(|changefreq| write!(shown, " {changefreq:?}"));
        let _ = entry.priority.map(|priority| write!(shown, " {priority}"));
        shown.push('\n');
    }
    shown + &show_oddities(&sitemap.oddities)
}

fn check(body: &str, expected: &Expect) {
    expected.assert_eq(&show(&read_sitemap(
        body.as_bytes(),
        None,
        &ReadingLimits::default(),
    )));
}

#[test]
fn sitemaps_org_urlset() {
    check(
        r#"<?xml version="1.0" encoding="UTF-8"?>
           <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
             <url><loc> http://e.org/?a=1&amp;b=2&#x26;c
             </loc><lastmod>2026-01-02</lastmod><changefreq>Weekly</changefreq>
             <priority>0.8</priority></url>
             <url><priority>7</priority><changefreq>often</changefreq><lastmod/>
               <loc><![CDATA[http://e.org/<x>&y]]></loc></url>
             <url><lastmod>2026</lastmod></url><!-- <url><loc>no</loc></url> -->
           </urlset>"#,
        &expect![[r#"
            UrlSet
            "http://e.org/?a=1&b=2&c" 2026-01-02 Weekly 0.8
            "http://e.org/<x>&y"
        "#]],
    );
}

#[test]
fn sitemaps_org_index() {
    check(
        "<sitemapindex><sitemap><loc>http://e.org/1.xml</loc><lastmod>x</lastmod></sitemap>\
         <sitemap><loc>/2.xml</loc></sitemap></sitemapindex>",
        &expect![[r#"
            Index
            "http://e.org/1.xml" x
            "/2.xml"
        "#]],
    );
}

#[test]
fn prefixes_are_ignored_and_extensions_are_not_pages() {
    check(
        r#"<s:urlset xmlns:s="x" xmlns:image="y"><s:url><image:image><image:loc>i.png</image:loc>
           </image:image><s:loc>http://e.org/</s:loc><s:loc>second</s:loc></s:url></s:urlset>"#,
        &expect![[r#"
            UrlSet
            "http://e.org/"
            "second"
            second-loc line 2 x1
        "#]],
    );
}

#[test]
fn a_missing_end_tag_loses_no_url() {
    check(
        "<urlset>\n<url><loc>/1</loc>\n<url><loc>/2</loc><lastmod>2026</lastmod>\n\
         <url><image:image><image:loc>i.png</image:loc>\n<url><loc>/3</loc></url>\n\
         <url><loc>/4\n<lastmod>2027</lastmod></url>\n<url><loc>/5<url><loc>/6</loc></url>\n\
         <url><loc>/7</loc></url></urlset>",
        &expect![[r#"
            UrlSet
            "/1"
            "/2" 2026
            "/3"
            "/4" 2027
            "/5"
            "/6"
            "/7"
            unclosed-element line 3 x5
        "#]],
    );
    check(
        "<sitemapindex><sitemap><loc>/1</loc>\n<sitemap><loc>/2</loc>\n<sitemap><loc>/3</loc>",
        &expect![[r#"
            Index
            "/1"
            "/2"
            "/3"
            unclosed-element line 2 x2
            ends-early line 3 x1
        "#]],
    );
    let many: String = (0..10_000)
        .map(|n| format!("<url><loc>/{n}</loc>\n"))
        .collect();
    let sitemap = read_sitemap(
        format!("<urlset>{many}</urlset>").as_bytes(),
        None,
        &ReadingLimits::default(),
    );
    assert_eq!(sitemap.entries.len(), 10_000);
}

#[test]
fn a_url_counts_at_any_place() {
    check(
        "<urlset>\nhttp://e.org/1 and http://e.org/?a=1&amp;b=2\n<url>http://e.org/3</url>\n\
         <url><loc>http://e.org/4</loc> http://e.org/5</url>\n\
         <url><loc>http://e.org/6</loc><priority>0.1</priority>\n<loc>http://e.org/7</loc>\
         <priority>0.2</priority><loc>http://e.org/7</loc></url>\n\
         <url><loc><b>http://e.org/8</b></loc></url><loc>http://e.org/9</loc>\n\
         <url><loc>http://e.org/10</loc><image:loc>http://e.org/i.png</image:loc></url>\
         <url><video:video><video:content_loc>v.mp4</video:content_loc> http://no.example/\
         </video:video></url></urlset>",
        &expect![[r#"
            UrlSet
            "http://e.org/1"
            "http://e.org/?a=1&b=2"
            "http://e.org/3"
            "http://e.org/4"
            "http://e.org/5"
            "http://e.org/6" 0.1
            "http://e.org/7" 0.2
            "http://e.org/8"
            "http://e.org/9"
            "http://e.org/10"
            url-outside-loc line 3 x5
            second-loc line 4 x2
        "#]],
    );
}

#[test]
fn a_root_may_be_missing_after_a_message_or_in_upper_case() {
    check(
        "<url><loc>/1</loc></url>",
        &expect![[r#"
        UrlSet
        "/1"
        ends-early line 1 x1
    "#]],
    );
    check(
        "Warning: no cache\n<?xml version='1.0'?>\n<urlset><url><loc>/1</loc></url><url><loc>/2",
        &expect![[r#"
            UrlSet
            "/1"
            ends-early line 3 x1
        "#]],
    );
    check(
        "<URLSET><URL><LOC>/1</LOC></URL></URLSET>",
        &expect![[r#"
        UrlSet
        "/1"
    "#]],
    );
}

#[test]
fn broken_xml_keeps_everything_before_the_error() {
    check(
        "<urlset>\n<url><loc>http://e.org/1</loc></url>\n<url><loc>http://e.org/2</loc></urlset>",
        &expect![[r#"
            UrlSet
            "http://e.org/1"
            "http://e.org/2"
            mismatched-tag line 3 x1
        "#]],
    );
    check(
        "<urlset><url><loc>http://e.org/1</loc></url>\n<url><loc>http://e.or",
        &expect![[r#"
        UrlSet
        "http://e.org/1"
        ends-early line 2 x1
    "#]],
    );
}

#[test]
fn a_bare_ampersand_and_unknown_entities_stay() {
    check(
        "<urlset><url><loc>http://e.org/?a=1&b=2</loc></url>\n<url><loc>/?a&nosuch;&copy;</loc></url></urlset>",
        &expect![[r#"
            UrlSet
            "http://e.org/?a=1&b=2"
            "/?a&nosuch;&copy;"
            unknown-entity line 2 x2
        "#]],
    );
}

#[test]
fn other_documents_have_no_entries() {
    let unknown = |body: &str, expected: Expect| check(body, &expected);
    unknown(
        "<!DOCTYPE html><html><a href=x>",
        expect![[r#"
        Unknown
        not-a-sitemap line 1 x1
    "#]],
    );
    unknown(
        "",
        expect![[r#"
        Unknown
        not-a-sitemap line 1 x1
    "#]],
    );
    unknown(
        "Not found\n{}",
        expect![[r#"
        Unknown
        not-a-url line 1 x2
        not-a-sitemap line 1 x1
    "#]],
    );
    unknown(
        "<",
        expect![[r#"
        Unknown
        broken-xml line 1 x1
        not-a-sitemap line 1 x1
    "#]],
    );
    unknown(
        "<urlset/>",
        expect![[r#"
        UrlSet
    "#]],
    );
}

#[test]
fn sitemaps_org_plain_text() {
    check(
        "\u{feff}http://e.org/1\r\n\r\n  HTTPS://e.org/2 \n# note\nhttp://e.org/a b\n",
        &expect![[r#"
        Text
        "http://e.org/1"
        "HTTPS://e.org/2"
        not-a-url line 4 x2
    "#]],
    );
}

#[test]
fn sitemaps_org_limits() {
    let entry = "<url><loc>http://e.org/</loc></url>";
    let many = format!("<urlset>{}</urlset>", entry.repeat(50_001));
    let sitemap = read_sitemap(many.as_bytes(), None, &ReadingLimits::default());
    assert_eq!(sitemap.entries.len(), 50_000);
    assert_eq!(show_oddities(&sitemap.oddities), "entries-full line 1 x1\n");

    let full = format!("<urlset>{}<url/></urlset>", entry.repeat(50_000));
    assert_eq!(
        read_sitemap(full.as_bytes(), None, &ReadingLimits::default()).oddities,
        []
    );

    let lines = "http://e.org/\n".repeat(50_001);
    let sitemap = read_sitemap(lines.as_bytes(), None, &ReadingLimits::default());
    assert_eq!(sitemap.entries.len(), 50_000);
    assert_eq!(
        show_oddities(&sitemap.oddities),
        "entries-full line 50001 x1\n"
    );

    let mut limits = ReadingLimits::default();
    limits.sitemap_bytes = "<urlset>".len() + entry.len() + 20;
    limits.href_bytes = 13;
    let sitemap = read_sitemap(many.as_bytes(), None, &limits);
    assert_eq!(sitemap.entries.len(), 1);
    limits.href_bytes = 12;
    let sitemap = read_sitemap(many.as_bytes(), None, &limits);
    assert_eq!(sitemap.entries.len(), 0);
    assert_eq!(
        show_oddities(&sitemap.oddities),
        "sitemap-too-long line 1 x1\nhref-too-long line 1 x1\nends-early line 1 x1\n"
    );
}

#[test]
fn other_charsets_by_declaration_or_bom() {
    let latin =
        b"<?xml version='1.0' encoding='iso-8859-1'?><urlset><url><loc>/\xe9</loc></url></urlset>";
    assert_eq!(
        read_sitemap(latin, None, &ReadingLimits::default()).entries[0].loc,
        "/é"
    );
    let wide: Vec<u8> = "\u{feff}<urlset><url><loc>/é</loc></url></urlset>"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    assert_eq!(
        read_sitemap(&wide, None, &ReadingLimits::default()).entries[0].loc,
        "/é"
    );
}

#[test]
fn deep_and_hostile_xml_takes_no_stack() {
    for body in [
        "<urlset>".to_owned() + &"<url>".repeat(300_000),
        "<urlset><url><loc>".to_owned() + &"&x;".repeat(300_000),
        "<!DOCTYPE x [<!ENTITY a 'aa'>]><urlset><url><loc>&a;</loc></url></urlset>".to_owned(),
    ] {
        let sitemap = read_sitemap(body.as_bytes(), None, &ReadingLimits::default());
        assert!(sitemap.entries.len() <= 1);
    }
}

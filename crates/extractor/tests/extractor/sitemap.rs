//! Sitemaps.

use std::fmt::Write as _;

use crawl_extractor::{Limits, Sitemap, read_sitemap};
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
        &Limits::default(),
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
fn ours_prefixes_are_ignored_and_extensions_are_not_pages() {
    check(
        r#"<s:urlset xmlns:s="x" xmlns:image="y"><s:url><image:image><image:loc>i.png</image:loc>
           </image:image><s:loc>http://e.org/</s:loc><s:loc>second</s:loc></s:url></s:urlset>"#,
        &expect![[r#"
            UrlSet
            "http://e.org/"
        "#]],
    );
}

#[test]
fn ours_broken_xml_keeps_what_stands_before() {
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
fn ours_a_bare_ampersand_means_itself_and_unknown_entities_stay() {
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
fn ours_what_is_no_sitemap_has_no_entries() {
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
    let sitemap = read_sitemap(many.as_bytes(), None, &Limits::default());
    assert_eq!(sitemap.entries.len(), 50_000);
    assert_eq!(show_oddities(&sitemap.oddities), "entries-full line 1 x1\n");

    let full = format!("<urlset>{}<url/></urlset>", entry.repeat(50_000));
    assert_eq!(
        read_sitemap(full.as_bytes(), None, &Limits::default()).oddities,
        []
    );

    let lines = "http://e.org/\n".repeat(50_001);
    let sitemap = read_sitemap(lines.as_bytes(), None, &Limits::default());
    assert_eq!(sitemap.entries.len(), 50_000);
    assert_eq!(
        show_oddities(&sitemap.oddities),
        "entries-full line 50001 x1\n"
    );

    let mut limits = Limits::default();
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
fn ours_other_charsets_by_declaration_or_bom() {
    let latin =
        b"<?xml version='1.0' encoding='iso-8859-1'?><urlset><url><loc>/\xe9</loc></url></urlset>";
    assert_eq!(
        read_sitemap(latin, None, &Limits::default()).entries[0].loc,
        "/é"
    );
    let wide: Vec<u8> = "\u{feff}<urlset><url><loc>/é</loc></url></urlset>"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    assert_eq!(
        read_sitemap(&wide, None, &Limits::default()).entries[0].loc,
        "/é"
    );
}

#[test]
fn ours_deep_and_hostile_xml_takes_no_stack() {
    for body in [
        "<urlset>".to_owned() + &"<url>".repeat(300_000),
        "<urlset><url><loc>".to_owned() + &"&x;".repeat(300_000),
        "<!DOCTYPE x [<!ENTITY a 'aa'>]><urlset><url><loc>&a;</loc></url></urlset>".to_owned(),
    ] {
        let sitemap = read_sitemap(body.as_bytes(), None, &Limits::default());
        assert!(sitemap.entries.len() <= 1);
    }
}

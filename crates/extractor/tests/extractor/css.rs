//! Tests of URLs in style sheets, alone and within pages.

use crawl_extractor::{ReadingLimits, StyleSheetLinks, read_css};
use expect_test::{Expect, expect};

use crate::{read, show_oddities};

fn show(css: &StyleSheetLinks) -> String {
    let mut shown: String = css
        .links
        .iter()
        .map(|link| format!("{} {:?}\n", link.attribute, link.href))
        .collect();
    shown.push_str(&show_oddities(&css.oddities));
    shown
}

fn check(css: &str, expected: &Expect) {
    expected.assert_eq(&show(&read_css(
        css.as_bytes(),
        None,
        &ReadingLimits::default(),
    )));
}

#[test]
fn css_syntax_4_3_6_urls() {
    check(
        r#"a { b: url(1.png) URL( 2.png ) url("3.png") url( '4 "\a .png' ) url(5\).png); c: u\72l(6.png)
             url(7.png} d: url() e: url( "" ) f: url(#id) g: url(data:image/png,x) h: url(  8.png"#,
        &expect![[r#"
            url "1.png"
            url "2.png"
            url "3.png"
            url "4 \"\n.png"
            url "5).png"
            url "6.png"
            url "8.png"
        "#]],
    );
    check(
        "a{b:url(1 2) url(3\"4) url(5(6) url(7\\\n8) url(ok)}\n\"url(9)\" 'url(10)' /* url(11) */ c: url(ok2",
        &expect![[r#"
            url "ok"
            url "ok2"
        "#]],
    );
}

#[test]
fn css_syntax_4_3_4_lookalikes_of_urls() {
    check(
        "1url(a) 1.5e3url(b) #url(c) --url(d) my-url(e) @url(f) url (g) \\url(h)\n\"bad\nurl(ok)",
        &expect![[r#"
            url "h"
            url "ok"
        "#]],
    );
    check(
        "<!-- url(1) --> url(2)",
        &expect![[r#"
        url "1"
        url "2"
    "#]],
    );
}

#[test]
fn css_cascade_2_imports() {
    check(
        r#"@charset "utf-8"; @import "1.css"; @IMPORT url(2.css) screen; @import url("3.css")
             supports(background: url(no.png)) layer(x); @\69mport '4.css';
           @namespace svg url(http://www.w3.org/2000/svg); @namespace "x";
           @media print { @import "no.css"; a { b: url(5.png) } } @import "6.css" print"#,
        &expect![[r#"
            @import "1.css"
            @import "2.css"
            @import "3.css"
            @import "4.css"
            url "5.png"
            @import "6.css"
        "#]],
    );
}

#[test]
fn css_images_4_sets_of_images() {
    check(
        r#"a { b: image-set("1.png" 1x, url(2.png) 2x, "3.avif" type("image/avif"));
               c: -webkit-image-set(url(4.png) 1x); d: src("5.png"); e: image("6.png", red);
               f: "7.png"; g: attr(x "8.png"); h: url("9.png" cross-origin("no")); }"#,
        &expect![[r#"
            url "1.png"
            url "2.png"
            url "3.avif"
            url "4.png"
            url "5.png"
            url "6.png"
            url "9.png"
        "#]],
    );
}

#[test]
fn css_syntax_3_2_charsets() {
    let charset = |body: &[u8], content_type| {
        let css = read_css(body, content_type, &ReadingLimits::default());
        let href = css.links.first().map(|link| link.href.clone());
        (css.charset, href.unwrap_or_default())
    };
    let named = b"@charset \"windows-1251\";a{b:url(\xef)}";
    assert_eq!(charset(named, None), ("windows-1251", "п".to_owned()));
    assert_eq!(
        charset(named, Some("text/css;charset=koi8-r")),
        ("KOI8-R", "О".to_owned())
    );
    assert_eq!(
        charset(
            b"\xef\xbb\xbfa{b:url(\xc3\xa9)}",
            Some("text/css;charset=koi8-r")
        ),
        ("UTF-8", "é".to_owned())
    );
    assert_eq!(charset(b"@charset 'windows-1251';", None).0, "UTF-8");
    assert_eq!(charset(b"@charset \"utf-16\";", None).0, "UTF-8");
    let wide: Vec<u8> = "\u{feff}a{b:url(é)}"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(charset(&wide, None), ("UTF-16LE", "é".to_owned()));
}

#[test]
fn css_in_pages() {
    let page = read(
        "<style>@import 'a.css'; b{c:url(d.png)}</style><style type=text/css>e{f:url(g.png)}</style>\
         <style type=text/less>url(no)</style><p style='background:url(&quot;h.png&quot;)'>\
         <svg><style>i{j:url(k.png)}</style><g style=\"fill:url(l.svg#m)\"></svg><style>n{o:url(p.png)",
    );
    let links: Vec<_> = page
        .links
        .iter()
        .map(|link| format!("{} {} {}", link.element, link.attribute, link.href))
        .collect();
    assert_eq!(
        links,
        [
            "style @import a.css",
            "style url d.png",
            "style url g.png",
            "* style h.png",
            "style url k.png",
            "* style l.svg#m",
            "style url p.png",
        ]
    );
}

#[test]
fn limits_of_css_are_noted() {
    let mut limits = ReadingLimits::default();
    (limits.resources, limits.href_bytes) = (1, 5);
    let css = read_css(b"url(1)\nurl(234567)\nurl(8)", None, &limits);
    assert_eq!(show(&css), "url \"1\"\nresources-full line 2 x2\n");
    limits.css_bytes = 4;
    let css = read_css(b"url(1234567)", None, &limits);
    assert_eq!(show(&css), "css-too-long line 1 x1\n");
}

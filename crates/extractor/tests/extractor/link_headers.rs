//! Tests of links in headers.

use crawl_extractor::{ReadingLimits, link_header, refresh_header};
use expect_test::{Expect, expect};

use crate::show_links;

fn check(value: &str, expected: &Expect) {
    expected.assert_eq(&show_links(&link_header(value, &ReadingLimits::default())));
}

#[test]
fn rfc8288_3_5_examples() {
    check(
        r#"<http://example.com/TheBook/chapter2>; rel="previous"; title="previous chapter""#,
        &expect![[r#"
            http Page "http://example.com/TheBook/chapter2" rel=prev
        "#]],
    );
    check(
        r#"</>; rel="http://example.net/foo""#,
        &expect![[r#"
        http Other "/"
    "#]],
    );
    check(
        r##"</terms>; rel="copyright"; anchor="#foo""##,
        &expect![[r#"
        http Page "/terms" rel=license
    "#]],
    );
    check(
        "</TheBook/chapter2>; rel=\"previous\"; title*=UTF-8'de'letztes%20Kapitel, \
         </TheBook/chapter4>; rel=\"next\"; title*=UTF-8'de'n%c3%a4chstes%20Kapitel",
        &expect![[r#"
            http Page "/TheBook/chapter2" rel=prev
            http Page "/TheBook/chapter4" rel=next
        "#]],
    );
    check(
        r#"<http://example.org/>; rel="start http://example.net/relation/other""#,
        &expect![[r#"
            http Page "http://example.org/" rel=start
        "#]],
    );
    check(
        "<https://example.org/>; rel=\"start\", <https://example.org/index>; rel=\"index\"",
        &expect![[r#"
            http Page "https://example.org/" rel=start
            http Page "https://example.org/index" rel=index
        "#]],
    );
}

#[test]
fn rfc8288_appendix_b_odd_forms() {
    check(
        "<a,b;c>;rel=next;rel=prev , , <d> ; REL = \"ne\\xt\" ; type=\"Text/HTML\";, junk, <e>;a;b=;rel=up;c=\"d,e;f\", <f",
        &expect![[r#"
            http Page "a,b;c" rel=next
            http Page "d" rel=next type=text/html
            http Page "e" rel=up
        "#]],
    );
    check("", &expect![""]);
    check("<>; rel=next, < >;rel=next", &expect![""]);
    check(
        "<a>; rel=\"next",
        &expect![[r#"
        http Page "a" rel=next
    "#]],
    );
}

#[test]
fn rfc8288_3_2_a_link_of_another_page_is_skipped() {
    check(
        "<a>; rel=next; anchor=\"/other\", <b>; anchor=\"\"; rel=next",
        &expect![[r#"
            http Page "b" rel=next
        "#]],
    );
}

#[test]
fn kinds_of_links_in_headers() {
    check(
        "</s.css>; rel=preload; as=style, </f>; rel=alternate; type=\"application/rss+xml\", <//h>; rel=preconnect, <data:,x>; rel=preload, </i>; rel=prefetch, </n>; rel=\"next prefetch\"",
        &expect![[r#"
            http Resource "/s.css" rel=preload
            http Feed "/f" rel=alternate type=application/rss+xml
            http Other "//h"
            http Other "/i" rel=prefetch
            http Page "/n" rel=next prefetch
        "#]],
    );
}

#[test]
fn html_4_2_5_3_refresh_in_a_header() {
    let target = |value| refresh_header(value, &ReadingLimits::default()).map(|link| link.href);
    assert_eq!(target("0; url=/x").as_deref(), Some("/x"));
    assert_eq!(target("5"), None);
    assert_eq!(target("url=/x"), None);
}

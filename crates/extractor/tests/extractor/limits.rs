//! Tests of the limits of pages, and of pages with huge or deeply nested parts.

use crawl_extractor::{ExtractedPage, ReadingLimits, read_html};

use crate::{read, show_oddities};

fn read_with(html: &str, change: impl Fn(&mut ReadingLimits)) -> ExtractedPage {
    let mut limits = ReadingLimits::default();
    change(&mut limits);
    read_html(html.as_bytes(), Some("text/html; charset=utf-8"), &limits)
}

#[test]
fn each_limit_is_noted_by_name() {
    let page = read_with("<a href=1>\n<a href=2><a href=3><a href=4>", |limits| {
        limits.links = 2;
    });
    assert_eq!(page.links.len(), 2);
    assert_eq!(show_oddities(&page.oddities), "links-full line 2 x2\n");

    let page = read_with("<a href=1234><a href=123><base href=1234>", |limits| {
        limits.href_bytes = 3;
    });
    assert_eq!((page.links.len(), &page.base), (1, &None));
    assert_eq!(show_oddities(&page.oddities), "href-too-long line 1 x2\n");

    let page = read_with("<a href=1>ab \u{e9}</a><area href alt='abcd '>", |limits| {
        limits.text_bytes = 4;
    });
    assert_eq!(page.links[0].text.as_deref(), Some("ab"));
    assert_eq!(page.links[1].text.as_deref(), Some("abcd"));
    assert_eq!(show_oddities(&page.oddities), "text-cut line 1 x1\n");

    let page = read_with("<a href=1>ab</a><area href=2 alt=cd>", |limits| {
        limits.text_bytes = 0;
    });
    assert_eq!(page.links.len(), 2);
    assert!(page.links.iter().all(|link| link.text.is_none()));
    assert_eq!(show_oddities(&page.oddities), "");

    let page = read_with("<title>abcdef</title>", |limits| {
        limits.title_bytes = 3;
    });
    assert_eq!(page.title.as_deref(), Some("abc"));
    assert_eq!(show_oddities(&page.oddities), "title-cut line 1 x1\n");

    let page = read_with(
        "<meta name=a content=\u{e9}><meta name=a content=b>",
        |limits| {
            (limits.metas, limits.meta_bytes) = (1, 1);
        },
    );
    assert_eq!(page.meta_pairs().collect::<Vec<_>>(), [("a", "")]);
    assert_eq!(
        show_oddities(&page.oddities),
        "meta-cut line 1 x1\nmetas-full line 1 x1\n"
    );

    let page = read_with("<a x y href=1><a x href=2>", |limits| {
        limits.attributes = 2;
    });
    assert_eq!(page.links.len(), 1);
    assert_eq!(show_oddities(&page.oddities), "attributes-full line 1 x1\n");
}

#[test]
fn many_attributes_on_one_tag() {
    let names: String = (0..50_000)
        .map(|number| format!(" a{number}='>{number}'"))
        .collect();
    for tag in ["a href=/x", "/a"] {
        let page = read(&format!("<p><{tag}{names}>text</a><a href=/y>"));
        let hrefs: Vec<_> = page.links.iter().map(|link| link.href.as_str()).collect();
        assert_eq!(hrefs.last(), Some(&"/y"), "{tag}");
        assert_eq!(hrefs.contains(&"/x"), tag.starts_with('a'), "{tag}");
    }
    // Put the markup after a literal `<`, after a `&` that begins no reference, and into a raw
    // element.
    for before in ["<<", "&<", "&amp<", "<title></", "x<!----><"] {
        let tag = if before == "<title></" {
            "title"
        } else {
            "a href=/x"
        };
        for padding in [
            0, 4_000, 4_085, 4_090, 4_091, 4_092, 4_093, 4_094, 4_095, 4_096,
        ] {
            let page = read(&format!(
                "{}{before}{tag}{names}><a href=/y>",
                "-".repeat(padding)
            ));
            assert_eq!(
                page.links.last().map(|link| link.href.as_str()),
                Some("/y"),
                "{before}"
            );
            assert!(
                show_oddities(&page.oddities).starts_with("attributes-full"),
                "{before} {padding}"
            );
        }
    }
}

#[test]
fn text_that_looks_like_a_long_tag_loses_nothing() {
    let words = " word".repeat(20_000);
    for (before, after) in [
        ("<!-- <a", "-->"),
        ("<script>'</b", "'</script>"),
        ("<title></b", "</title>"),
        ("<a title='<a", "'>"),
        ("<?a", ">"),
        ("<", ""),
        ("</ ", ">"),
    ] {
        for padding in [0, 4_085, 4_090, 4_093, 4_094, 4_095] {
            let html = format!(
                "{}{before}{words}{after}<a href=/y>end</a>",
                "-".repeat(padding)
            );
            let page = read(&html);
            let link = page.links.last().unwrap();
            assert_eq!(
                (link.href.as_str(), link.text.as_deref()),
                ("/y", Some("end")),
                "{before}"
            );
            assert!(
                !show_oddities(&page.oddities).contains("attributes-full"),
                "{before} {padding}"
            );
        }
    }
}

#[test]
fn deep_nesting_takes_no_stack() {
    for tag in [
        "<div>",
        "<a href=x>",
        "<svg>",
        "<template>",
        "<svg><title>",
        "<math><mi>",
        "<b><table>",
    ] {
        let page = read(&tag.repeat(300_000));
        assert!(page.links.len() <= 100_000);
    }
}

#[test]
fn huge_parts_of_every_kind() {
    let long = "x".repeat(1 << 20);
    for html in [
        format!("<{long} {long}={long}><a href=y>"),
        format!("<a href={long}><a href=y>"),
        format!("<!--{long}--><a href=y>"),
        format!("<!doctype {long}><a href=y>"),
        format!("&{long}<a href=y>"),
        format!("&#{}<a href=y>", "1".repeat(1 << 20)),
        format!("</{long}><a href=y>"),
        format!("{}<a href=y>", "\0".repeat(1 << 18)),
        format!("{}<a href=y>", "<".repeat(1 << 18)),
        format!("<a {}><a href=y>", "\"'/=".repeat(1 << 16)),
        format!("{}<a href=y>", "<!".repeat(1 << 16).replace("<!", "<!>")),
    ] {
        let page = read(&html);
        assert_eq!(
            page.links.last().map(|link| link.href.as_str()),
            Some("y"),
            "{}",
            &html[..20]
        );
    }
}

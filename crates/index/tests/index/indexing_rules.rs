//! Tests of which pages are indexed, and how.

use crawl_extractor::{ContentLimits, PageContext, ReadingLimits, read_page};
use crawl_index::{IndexedPage, IndexingCandidate, judge};
use crawl_policy::{PageDirectives, ProductToken, RobotsProfile};
use crawl_weburl::{CanonicalUrl, canonicalize};
use expect_test::{Expect, expect};

fn judged(html: &str, headers: &[&str], usage: Option<&str>) -> Result<IndexedPage, String> {
    let url = canonicalize(None, "http://a.example/docs/tea").unwrap();
    let context = PageContext::default();
    let (page, content) = read_page(
        html.as_bytes(),
        &context,
        &ReadingLimits::default(),
        &ContentLimits::default(),
    );
    let agent = ProductToken::new("crawl").unwrap();
    let directives = PageDirectives::read(
        headers.iter().copied(),
        page.meta_pairs(),
        &agent,
        RobotsProfile::Rfc9309,
    );
    let document = IndexingCandidate {
        url: &url,
        at: 1_800_000_000,
        page: &page,
        content: &content,
        directives: &directives,
        search_refused: usage,
        linked_canonical: None,
        content_type: Some("text/html"),
        is_in_crawl: &|url| url.host() != "live.example",
    };
    let mut resolve = |base: &CanonicalUrl, href: &str| canonicalize(Some(base), href).ok();
    judge(&document, &mut resolve).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(html: &str, expected: Expect) {
    expected.assert_eq(&judged(html, &[], None).unwrap_err());
}

#[test]
fn noindex_of_all_ages() {
    refused(
        "<meta name=robots content=noindex><p>Tea",
        expect![[r#"noindex: <meta name="robots" content="noindex">"#]],
    );
    refused(
        "<meta name=ROBOTS content='NONE'><p>Tea",
        expect![[r#"noindex: <meta name="robots" content="NONE">"#]],
    );
    refused(
        "<meta name=crawl content=noindex><p>Tea",
        expect![[r#"noindex: <meta name="crawl" content="noindex">"#]],
    );
    let by_header = judged("<p>Tea", &["otherbot: nofollow", "noindex"], None).unwrap_err();
    expect!["noindex: X-Robots-Tag: noindex"].assert_eq(&by_header);
    assert!(judged("<meta name=otherbot content=noindex><p>Tea", &[], None).is_ok());
}

#[test]
fn text_that_snippets_must_not_contain_is_only_withheld() {
    let html = "<title>Lamps</title><main><h1>Lamps</h1>\
        <p>Price: <span data-nosnippet>4711 <span>euros</span> net</span> per lamp.</p>\
        <div data-nosnippet=false><h2 id=x>Secret</h2><p>Hidden <a href=/deal>deal</a></p></div>\
        <h2><a href=#o>#</a> Old <span data-nosnippet>deal</span></h2>\
        <section data-nosnippet><pre>\n\ncode 1</pre></section>\
        <p data-nosnippet>Shown, as <b data-nosnippet>search</b> engines do.</p>\
        <p>Lamps <a href=/shops>in shops</a> are public.</p></main>";
    let page = judged(html, &[], None).unwrap();
    expect![[r#"
        Lamps
        Price: per lamp.
        Shown, as search engines do.
        Lamps in shops are public."#]]
    .assert_eq(&page.text);
    expect![[r#"
        4711 euros net
        Secret
        Hidden deal
        Old deal
        code 1"#]]
    .assert_eq(&page.withheld);
    let headings: Vec<_> = page.headings.iter().map(|heading| &heading.text).collect();
    assert_eq!(headings, ["Lamps"]);
    let links: Vec<_> = page.links.iter().map(|link| link.text.as_str()).collect();
    assert_eq!(links, ["", "in shops"]);
    // A page may consist of such text.
    let page = judged("<body><div data-nosnippet>Tea</div>", &[], None).unwrap();
    assert_eq!((page.text.as_str(), page.withheld.as_str()), ("", "Tea"));
}

#[test]
fn a_repeated_id_leads_to_the_first_heading_only() {
    let html = "<main><h1 id=a>One</h1><p>Tea</p><h2 id=a>Two</h2><p>Tea</p></main>";
    let headings = judged(html, &[], None).unwrap().headings;
    let ids: Vec<_> = headings
        .iter()
        .map(|heading| heading.id.as_deref())
        .collect();
    assert_eq!(ids, [Some("a"), None]);
}

#[test]
fn pages_whose_time_is_over() {
    let at = |time: &str| format!("<meta name=robots content='unavailable_after: {time}'><p>Tea");
    refused(
        &at("2020-01-01"),
        expect![[
            r#"unavailable_after: <meta name="robots" content="unavailable_after: 2020-01-01">"#
        ]],
    );
    let later = judged(&at("2100-01-01"), &[], None).unwrap();
    assert_eq!(later.until, Some(4_102_444_800));
}

#[test]
fn pages_that_redirect_at_once_yield() {
    let yields_to = |html: &str| judged(html, &[], None).unwrap().gives_way_to;
    for content in ["0; url=/tea#top", " 0.5,'/tea'", "00;/tea"] {
        let html = format!("<title>Tea</title><meta http-equiv=Refresh content=\"{content}\">");
        let expected = Some("http://a.example/tea".to_owned());
        assert_eq!(yields_to(&html), expected, "{content}");
    }
    for own in [
        "<meta http-equiv=refresh content='1; url=/tea'>",
        "<meta http-equiv=refresh content='0'>",
        "<meta http-equiv=refresh content='0; url=tea#top'>",
        // A redirect to a page outside the crawl.
        "<meta http-equiv=refresh content='0; url=http://live.example/tea'>",
        // Redirects to ignore: one for browsers without scripts, and one that a visitor of the site
        // may have written.
        "<noscript><meta http-equiv=refresh content='0; url=/tea'></noscript>",
        "<p>Tea<meta http-equiv=refresh content='0; url=/tea'>",
    ] {
        let html = format!("<title>Tea</title>{own}<p>Tea");
        assert_eq!(yields_to(&html), None, "{own}");
    }
}

#[test]
fn pages_with_a_canonical_url_yield() {
    for (html, canonical) in [
        (
            "<link rel=canonical href=/tea><p>Tea",
            "http://a.example/tea",
        ),
        (
            "<meta name=URL content='http://master.example/tea'><p>Tea",
            "http://master.example/tea",
        ),
    ] {
        let page = judged(html, &[], None).unwrap();
        assert_eq!(page.gives_way_to.as_deref(), Some(canonical));
        // Until all pages are known, searches don't find a page that names another URL as
        // canonical.
        assert_eq!(page.same_as.as_deref(), Some(canonical));
    }
    for own in [
        "<link rel=canonical href=tea>",
        "<link rel=canonical href='http://a.example/docs/tea#top'>",
        "<link rel=canonical href='file:///usr/share/tea.html'>",
        "<meta name=url content='http://a.example/docs/tea'>",
        // A link in the body, where a visitor of the site may have written it.
        "<body><link rel=canonical href=/other>",
        "<p>Tea<link rel=canonical href=/other>",
        "Tea <link rel=canonical href=/other>",
        "<head></head><link rel=canonical href=/other>",
        "<body><meta name=URL content='http://master.example/tea'>",
        "Tea <meta name=url content='http://master.example/tea'>",
    ] {
        let page = judged(&format!("{own}<p>Tea"), &[], None).unwrap();
        assert_eq!(page.gives_way_to, None, "{own}");
    }
}

#[test]
fn preferences_against_search() {
    let refusal = judged("<p>Tea", &[], Some("Content-Usage: search=n")).unwrap_err();
    expect!["usage: Content-Usage: search=n"].assert_eq(&refusal);
}

#[test]
fn pages_that_are_not_there() {
    refused("<title>404 Not Found</title><p>Sorry.", expect!["soft_404"]);
    refused(
        "<title>Shop</title><h1>Seite nicht gefunden</h1><p>Sorry.",
        expect!["soft_404"],
    );
    refused("", expect!["empty"]);
    let long = "words and words ".repeat(100);
    for real in [
        format!("<title>404 Not Found explained</title><p>{long}"),
        "<title>Order 14042</title><p>Sorry.".to_owned(),
        "<title>Lost and found</title><p>Sorry.".to_owned(),
    ] {
        assert!(judged(&real, &[], None).is_ok(), "{real}");
    }
}

#[test]
fn the_index_keeps_these_fields_of_a_page() {
    let page = judged(
        "<html lang=en-GB><title>Tea  time</title><meta name=description content='On tea.'>\
         <meta name=keywords content='tea, leaves'><meta name=robots content='max-snippet:50'>\
         <nav><a href=/>Home</a></nav>\
         <main><h1 id=tea>Tea</h1><p>Water the <a href=leaves#top>« leaves »</a>, wait, and pour.\
         <h2 id=pot>The pot</h2><p>Warm it. <a href=mailto:a@b>Mail</a></main>",
        &[],
        None,
    )
    .unwrap();
    let json = serde_json::to_string_pretty(&page).unwrap();
    expect![[r#"
        {
          "url": "http://a.example/docs/tea",
          "title": "Tea time",
          "headings": [
            {
              "level": 1,
              "text": "Tea",
              "id": "tea",
              "at": 0
            },
            {
              "level": 2,
              "text": "The pot",
              "id": "pot",
              "at": 43
            }
          ],
          "text": "Tea\nWater the « leaves », wait, and pour.\nThe pot\nWarm it. Mail",
          "beside": "",
          "description": "On tea.",
          "keywords": [
            "tea",
            "leaves"
          ],
          "authors": [],
          "section": null,
          "language": "en",
          "published": null,
          "modified": null,
          "fetched_at": 1800000000,
          "until": null,
          "max_snippet": 50,
          "links": [
            {
              "url": "http://a.example/",
              "text": "Home"
            },
            {
              "url": "http://a.example/docs/leaves",
              "text": "leaves"
            }
          ],
          "anchors": [],
          "linked_from": 0,
          "same_as": null,
          "newest": null,
          "newer_versions": 0,
          "version": null,
          "type": "html",
          "canonical": null,
          "gives_way_to": null,
          "leaving": null
        }"#]]
    .assert_eq(&json);
}

#[test]
fn a_copy_of_a_site_outside_of_the_crawl_is_indexed() {
    let page = judged(
        "<link rel=canonical href='https://live.example/tea'><p>Tea",
        &[],
        None,
    );
    let canonical = page.unwrap().canonical;
    assert_eq!(canonical.as_deref(), Some("https://live.example/tea"));
}

#[test]
fn a_manual_page_is_described_under_its_name_heading() {
    let described = |html: &str| judged(html, &[], None).unwrap().description;
    // Manual pages by AsciiDoc, by DocBook, and by man2html in another language.
    let asciidoc = "<title>tea-pot(1)</title><body class=manpage><div id=header>\
         <h1>tea-pot(1) Manual Page</h1><h2>NAME</h2><div class=sectionbody><p>tea-pot -\n   \
         Warm the pot</p></div></div><div id=content><h2>SYNOPSIS</h2><p>tea pot [-w]</p></div>";
    assert_eq!(described(asciidoc), "tea-pot - Warm the pot");
    let docbook = "<title>POUR</title><main><div class=refnamediv><h2>Name</h2>\
         <p>POUR \u{2014} fill a cup</p></div><h2>Description</h2><p>It pours.</p></main>";
    assert_eq!(described(docbook), "POUR \u{2014} fill a cup");
    let german = "<title>tee</title><h2>BEZEICHNUNG</h2>tee \u{2013} Tee kochen<h2>BEISPIEL</h2>";
    assert_eq!(described(german), "tee \u{2013} Tee kochen");
    // The page's declared description takes precedence over a line that describes it. A line with
    // only a name is not a description.
    let own = format!("<meta name=description content='On pots.'>{asciidoc}");
    assert_eq!(described(&own), "On pots.");
    let form = "<title>Order</title><main><h2>Name</h2><p>Yours, as on the card.</p></main>";
    assert_eq!(described(form), "");
    let late =
        "<main><h1>Tea</h1><h2>A</h2><p>B</p><h2>C</h2><p>D</p><h2>Name</h2><p>x - y</p></main>";
    assert_eq!(described(late), "");
}

#[test]
fn a_line_that_starts_with_a_name_from_the_title_is_the_description() {
    let described = |html: &str| judged(html, &[], None).unwrap().description;
    // A manual page formatted for a terminal, and a DocBook page with the name as heading.
    let terminal = "<title>Tea manual - pour(1)</title><pre>\nPOUR(1)          POUR(1)\n\n\
         <b>NAME</b>\n       pour - fill a cup\n\n<b>SYNOPSIS</b>\n       pour [-w]\n</pre>";
    assert_eq!(described(terminal), "pour - fill a cup");
    let unnamed = terminal.replace("NAME", "PURPOSE");
    assert_eq!(described(&unnamed), "pour - fill a cup");
    let docbook = "<title>POUR TEA</title><main><h2>POUR TEA</h2>\
         <p>POUR TEA \u{2014} fill a cup</p><h2>Synopsis</h2><p>POUR TEA [ IN cup ]</p></main>";
    assert_eq!(described(docbook), "POUR TEA \u{2014} fill a cup");
    // Lines that are not descriptions: one with a different name, and one that only repeats the
    // title.
    let other_name = "<title>Pots</title><main><p>Cups \u{2013} small and white</p></main>";
    assert_eq!(described(other_name), "");
    let again = "<title>tea \u{2014} Green leaves \u{2014} Manual</title><main>\
         <p>tea \u{2014} Green leaves</p></main>";
    assert_eq!(described(again), "");
}

#[test]
fn text_outside_the_main_text_is_kept_except_navigation() {
    let text = "Tea is made of leaves and hot water, which is known to all. ".repeat(9);
    let html = format!(
        "<nav><a href=/>Home</a></nav><main><p>{text}<aside>A remark.</aside></main>\
         <footer>Bakery Lane 7<p><a href=/legal>Legal</a></footer>"
    );
    let page = judged(&html, &[], None).unwrap();
    assert_eq!(page.beside, "A remark.\nBakery Lane 7");
    let empty = judged("<nav><a href=/>Home</a></nav>", &[], None).unwrap_err();
    assert_eq!(empty, "empty");
}

#[test]
fn lists_and_tables_of_links_are_kept_where_they_are_content() {
    let text = "Tea is made of leaves and hot water, which is known to all. ".repeat(9);
    let links = "<ul><li><a href=/oolong>Oolong harvest</a><li><a href=/sencha>Sencha</a></ul>";
    let table = "<table><tr><td><a href=/pu>Pu-erh</a><td><a href=/mate>Mate</a></table>";
    for content in ["<article>", "<div id=content>", "<main>"] {
        let end = content.replace('<', "</");
        let end = end.replace(" id=content", "");
        let html = format!(
            "<ul><li><a href=/imprint>Imprint</a></ul>{content}{table}<p>{text}</p>{links}\
             <nav><a href=/next>Onward</a></nav>{end}<ul><li><a href=/legal>Legal</a></ul>"
        );
        let page = judged(&html, &[], None).unwrap();
        let all = format!("{}\n{}", page.text, page.beside);
        for name in ["Oolong harvest", "Sencha", "Pu-erh", "Mate"] {
            assert!(all.contains(name), "{name} in {content}: {all}");
        }
        for name in ["Imprint", "Onward", "Legal"] {
            assert!(!all.contains(name), "{name} in {content}: {all}");
        }
    }
}

#[test]
fn navigation_lines_of_texinfo_and_docbook_are_left_out() {
    let text = "Tea is made of leaves and hot water, which is known to all. ".repeat(9);
    let texinfo = format!(
        "<div class=header><p>Next: <a href=b rel=next>Brewing pots</a>, Previous: <a href=a>Plants</a>, \
         Up: <a href=t>Top</a> [<a href=c>Contents</a>][<a href=i>Index</a>]</p></div><h2>Tea</h2><p>{text}"
    );
    let docbook = format!(
        "<div class=navheader><table><tr><th colspan=3>Chapter 3. Plants</th></tr><tr><td><a href=a>Prev</a>\
         <td>Part I<td><a href=b>Next</a></tr></table></div><div class=chapter><h2>Tea</h2><p>{text}</div>"
    );
    for html in [texinfo, docbook] {
        let page = judged(&html, &[], None).unwrap();
        for name in ["Plants", "Brewing", "Part I", "Contents"] {
            assert!(!page.text.contains(name), "{name}: {}", page.text);
            assert!(!page.beside.contains(name), "{name}: {}", page.beside);
        }
    }
}

//! Tests of the metadata in a page's head.

use std::fmt::Write as _;

use crawl_extractor::{
    ContentLimits, PageContent, PageContext, ReadingLimits, read_content, read_html,
};
use expect_test::{Expect, expect};

use crate::{read, show_oddities};

/// Compares the language and the oddities of a page with `expected`.
fn check_language(html: &str, header: Option<&str>, expected: Expect) {
    let context = PageContext {
        content_language: header,
        ..PageContext::default()
    };
    let content = read_content(html.as_bytes(), &context, &ContentLimits::default());
    let language = &content.language;
    let declared = language.declared.as_ref();
    let declared = declared.map(|declared| format!("{} by {}", declared.tag, declared.by));
    let detected = language.detected.map(|detected| detected.code);
    let shown = format!(
        "{} {} -> {}\n{}",
        declared.as_deref().unwrap_or("-"),
        detected.unwrap_or("-"),
        language.code().as_deref().unwrap_or("-"),
        show_oddities(&content)
    );
    expected.assert_eq(&shown);
}

/// Compares all dates of a page, the chosen date of each kind, and the oddities with `expected`.
fn check_dates(html: &str, expected: Expect) {
    let context = PageContext {
        // The page was fetched on 2026-11-21.
        fetched_at: Some(1_795_219_200),
        ..PageContext::default()
    };
    let content = read_content(html.as_bytes(), &context, &ContentLimits::default());
    let mut shown = String::new();
    for date in &content.dates {
        let (kind, source) = (date.kind, date.source);
        let _ = writeln!(shown, "{kind:?} {} {source} {}", date.moment, date.name);
    }
    for (name, date) in [
        ("published", content.published()),
        ("modified", content.modified()),
    ] {
        if let Some(date) = date {
            let _ = writeln!(shown, "{name}: {} by {}", date.moment, date.name);
        }
    }
    expected.assert_eq(&(shown + &show_oddities(&content)));
}

#[test]
fn title_description_keywords() {
    let content = read(
        "<title> A\n b </title><title>c</title><svg><title>d</title></svg>\
         <meta name=Description content=' what  it is '><meta name=description content=no>\
         <meta property=og:description content=other>\
         <meta name=keywords content='tea, green tea;tea,, 茶、湯'><meta property=article:tag content='a, b'>",
    );
    assert_eq!(content.title.as_deref(), Some("A b"));
    assert_eq!(content.description.as_deref(), Some("what it is"));
    assert_eq!(content.keywords, ["tea", "green tea", "茶", "湯", "a, b"]);
    let content =
        read("<meta name=twitter:description content=t><meta property=og:description content=o>");
    assert_eq!(content.description.as_deref(), Some("o"));
    assert_eq!(content.title, None);
}

#[test]
fn open_graph_takes_the_first_of_each() {
    let content = read(
        "<meta property=og:title content=T><meta property=og:title content=U><meta property=og:type content=article>\
         <meta property='og:url' content='https://e.example/x'><meta name=og:site_name content=S>\
         <meta property=og:image content=/i.png><meta property=og:locale content=de_AT>",
    );
    expect![[r#"
        OpenGraph {
            title: Some(
                "T",
            ),
            kind: Some(
                "article",
            ),
            description: None,
            url: Some(
                "https://e.example/x",
            ),
            image: Some(
                "/i.png",
            ),
            locale: Some(
                "de_AT",
            ),
            site_name: Some(
                "S",
            ),
        }
    "#]]
    .assert_debug_eq(&content.open_graph);
}

#[test]
fn canonical_is_the_first_in_the_head() {
    let canonical = |html: &str| {
        let page = read_html(
            html.as_bytes(),
            Some("text/html; charset=utf-8"),
            &ReadingLimits::default(),
        );
        let oddities = page
            .oddities
            .iter()
            .fold(String::new(), |mut shown, oddity| {
                let (what, line, count) = (oddity.what, oddity.line, oddity.count);
                let _ = writeln!(shown, "{what} line {line} x{count}");
                shown
            });
        (page.canonical.unwrap_or_default(), oddities)
    };
    let link = "<link rel='x CANONICAL' href=' /a '>";
    assert_eq!(canonical(link), ("/a".into(), String::new()));
    assert_eq!(canonical(&link.repeat(2)), ("/a".into(), String::new()));
    assert_eq!(
        canonical(&format!("{link}\n<link rel=canonical href=/b>")),
        ("/a".into(), "several-canonicals line 2 x1\n".into())
    );
    assert_eq!(
        canonical("<p>text<link rel=canonical href=/evil>"),
        (String::new(), "canonical-in-body line 1 x1\n".into())
    );
    assert_eq!(
        canonical("<link rel=canonical href=' '>"),
        (String::new(), String::new())
    );
    let graph = read("<p>text<meta property=og:url content=/evil>").open_graph;
    assert_eq!(graph.url, None);
}

#[test]
fn html_3_2_6_2_declared_languages_by_strength() {
    check_language(
        "<html lang=de xml:lang=fr><p>x",
        Some("es"),
        expect!["de by lang - -> de\n"],
    );
    check_language(
        "<html xml:lang=fr><p>x",
        Some("es"),
        expect!["fr by xml:lang - -> fr\n"],
    );
    check_language(
        "<meta property=og:locale content=pt_BR><meta http-equiv=Content-Language content=it>",
        Some("es"),
        expect!["it by meta - -> it\n"],
    );
    check_language(
        "<meta property=og:locale content=pt_BR>",
        Some("es"),
        expect!["es by header - -> es\n"],
    );
    check_language(
        "<meta property=og:locale content=pt_BR>",
        Some("es, de"),
        expect!["pt-BR by og:locale - -> pt\n"],
    );
    check_language(
        "<html lang='english language'><body lang=EN-gb>",
        None,
        expect![[r#"
            EN-gb by lang - -> en
            bad-language-tag line 1 x1
        "#]],
    );
}

#[test]
fn detected_language() {
    let german = "<p>Der Fluss ist im Winter so hoch, dass die Fähre nicht fahren kann, und wer über \
        das Wasser will, muss den weiten Weg über die alte Brücke nehmen, die im Norden steht.";
    check_language(german, None, expect!["- de -> de\n"]);
    check_language(
        &format!("<html lang=en>{german}"),
        None,
        expect!["en by lang de -> de\n"],
    );
    check_language(
        &format!("<html lang=gsw>{german}"),
        None,
        expect!["gsw by lang de -> gsw\n"],
    );
    check_language("<p>Guten Tag, Welt!", None, expect!["- - -> -\n"]);
    check_language(
        "<p>駅前で五十二年にわたり営業してきた喫茶店が今月末で店を閉じる。店主は今年八十歳になる。",
        None,
        expect!["- ja -> ja\n"],
    );
}

#[test]
fn dates_by_source() {
    check_dates(
        "<meta name=date content=2020-01-01><meta property=article:published_time content='2020-02-02T10:00:00+02:00'>\
         <meta property=article:modified_time content=2021-03-04>\
         <span itemprop=dateModified content=2021-05-05></span><time itemprop=datePublished>5 March 2019</time>\
         <main><time pubdate datetime=2018-01-01></time><time datetime=2017-01-01></time></main>\
         <script type='application/ld+json'>{\"@type\":\"Event\",\"datePublished\":\"2016\"}</script>\
         <script type='application/ld+json'>{\"@type\":\"NewsArticle\",\"datePublished\":\"2020-02-03\"}</script>",
        expect![[r#"
            Published 2020-01-01T00:00:00Z meta date
            Published 2020-02-02T08:00:00Z meta article:published_time
            Modified 2021-03-04T00:00:00Z meta article:modified_time
            Modified 2021-05-05T00:00:00Z microdata dateModified
            Published 2019-03-05T00:00:00Z microdata datePublished
            Published 2018-01-01T00:00:00Z time pubdate
            Published 2017-01-01T00:00:00Z any_time time
            Published 2020-02-03T00:00:00Z json_ld datePublished
            Published 2016-01-01T00:00:00Z json_ld datePublished
            published: 2020-02-03T00:00:00Z by datePublished
            modified: 2021-03-04T00:00:00Z by article:modified_time
        "#]],
    );
}

#[test]
fn implausible_dates() {
    check_dates(
        "<meta name=date content=soon>\n<meta name=date content=2030-01-01>\n<meta name=date content=0001-01-01>\n\
         <meta name=date content=1970-01-01T00:00:00Z>\n<meta name=date content=2024-02-30>\n\
         <meta name=date content=1867-05-01><meta name=last-modified content=1850-01-01>",
        expect![[r#"
            Published 1867-05-01T00:00:00Z meta date
            Modified 1850-01-01T00:00:00Z meta last-modified
            published: 1867-05-01T00:00:00Z by date
            modified: 1850-01-01T00:00:00Z by last-modified
            unreadable-date line 1 x2
            implausible-date line 2 x3
            modified-before-published line 1 x1
        "#]],
    );
}

#[test]
fn json_ld_basics() {
    let content: PageContent = read(
        r#"<script type="application/ld+json; charset=utf-8">/*<![CDATA[*/{"@context":"https://schema.org","@graph":[
          {"@type":["Article","https://schema.org/TechArticle"],"headline":" How\n to ","author":[{"@type":"Person","name":"A"},"B"],
           "datePublished":"2024-05-06","dateModified":"2024-05-07","inLanguage":"en","url":"/x","description":"d"},
          {"@type":"BreadcrumbList","itemListElement":[{"position":2,"item":{"@id":"/b","name":"Two"}},{"position":"1","name":"One"}]},
          {"@type":"WebPage","mainEntity":{"@type":"Thing","name":"Inner"}}, 7, {"name":"no type"}]}/*]]>*/</script>
        <script type=application/ld+json>{"broken"</script><script>{"@type":"No"}</script>"#,
    );
    let mut shown = String::new();
    for item in &content.json_ld {
        let _ = writeln!(shown, "{item:?}");
    }
    expect![[r#"
        JsonLdItem { types: ["Article", "TechArticle"], name: Some("How to"), description: Some("d"), url: Some("/x"), language: Some("en"), authors: ["A", "B"], section: None, published: Some("2024-05-06"), modified: Some("2024-05-07"), breadcrumbs: [] }
        JsonLdItem { types: ["BreadcrumbList"], name: None, description: None, url: None, language: None, authors: [], section: None, published: None, modified: None, breadcrumbs: ["One", "Two"] }
        JsonLdItem { types: ["WebPage"], name: None, description: None, url: None, language: None, authors: [], section: None, published: None, modified: None, breadcrumbs: [] }
        JsonLdItem { types: ["Thing"], name: Some("Inner"), description: None, url: None, language: None, authors: [], section: None, published: None, modified: None, breadcrumbs: [] }
        broken-json-ld line 6 x1
    "#]]
    .assert_eq(&(shown + &show_oddities(&content)));
}

#[test]
fn authors_and_section_are_read_from_json_ld_metas_and_breadcrumbs() {
    let check = |html: &str, authors: &[&str], section: Option<&str>| {
        let content = read(html);
        assert_eq!(content.authors, authors, "{html}");
        assert_eq!(content.section.as_deref(), section, "{html}");
    };
    check(
        "<meta name=author content='Ada L.'><meta property=article:author content='https://a.example/ada'>\
        <meta name=DC.creator content='Bo'><meta property=article:section content='Harbour news'>",
        &["Ada L.", "Bo"],
        Some("Harbour news"),
    );
    check(
        r#"<meta name=author content="the editors"><script type=application/ld+json>[
        {"@type":"Organization","author":"a company"},
        {"@type":"NewsArticle","author":[{"name":"Cy"},"Di"],"articleSection":["Boats","Sails"]}]</script>"#,
        &["Cy", "Di"],
        Some("Boats"),
    );
    check(
        r#"<script type=application/ld+json>{"@type":"BreadcrumbList","itemListElement":[
        {"position":1,"name":"Home"},{"position":2,"name":"Piers"},{"position":3,"name":"Pier 4"}]}</script>"#,
        &[],
        Some("Piers"),
    );
    check(
        r#"<script type=application/ld+json>{"@type":"BreadcrumbList","itemListElement":[
        {"position":1,"name":"Home"}]}</script>"#,
        &[],
        None,
    );
}

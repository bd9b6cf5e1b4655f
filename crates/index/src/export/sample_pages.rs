//! Sample pages for tests of the export formats.

use crawl_index_entry::{Heading, IndexedPage, OutgoingLink};

/// Returns a page with all fields set.
pub(super) fn full() -> IndexedPage {
    let heading = |level, text: &str, at| Heading {
        level,
        text: text.to_owned(),
        id: Some(text.to_lowercase()),
        at,
    };
    IndexedPage {
        url: "http://tea.example/docs/green.html".into(),
        title: "Green tea".into(),
        headings: vec![heading(1, "Tea", 11), heading(2, "Cups", 26)],
        text: "Welcome to.\nTea\nBoil water.\nCups\nWash them.".into(),
        withheld: "Members only".into(),
        beside: "Tea House, Street 1".into(),
        description: "How to make it".into(),
        keywords: vec!["tea".into(), "green".into()],
        authors: vec!["Ada".into()],
        section: Some("Drinks".into()),
        language: Some("en".into()),
        published: Some(1_700_000_000),
        modified: Some(1_750_000_000),
        fetched_at: 1_767_225_600,
        until: Some(4_000_000_000),
        max_snippet: Some(200),
        links: vec![OutgoingLink {
            url: "http://tea.example/".into(),
            text: "Home".into(),
        }],
        anchors: vec!["making tea".into()],
        linked_from: 3,
        same_as: None,
        gives_way_to: None,
        newest: None,
        newer_versions: 0,
        version: None,
        document_type: "html".into(),
        canonical: None,
        leaving: None,
    }
}

/// Returns pages that contain characters which could break lines, keys or quotes in an export.
pub(super) fn odd() -> Vec<IndexedPage> {
    let page = |url: &str, title: &str, text: &str| IndexedPage {
        url: url.to_owned(),
        title: title.to_owned(),
        text: text.to_owned(),
        ..IndexedPage::default()
    };
    let mut far = page("http://a.example/far", "far", "far");
    far.headings = vec![Heading {
        at: usize::MAX,
        ..Heading::default()
    }];
    far.published = Some(i64::MAX);
    far.modified = Some(i64::MIN);
    let mut untold = page("http://a.example/untold", "told", "secret words");
    untold.max_snippet = Some(0);
    untold.description = "secret too".into();
    vec![
        page(
            "http://a.example/?q=\"&x=<script>",
            "\"quoted\"\n",
            "line\u{2028}\u{2029}\n\r\n</script>",
        ),
        page(
            "http://a.example/\u{1}",
            "\u{0}\u{7f}\u{202e}",
            "\u{0}\u{1b}[31m \u{FFFD}",
        ),
        page("", "", ""),
        page(
            &format!("http://a.example/{}", "ü".repeat(400)),
            "long",
            "long",
        ),
        page(
            &format!("http://a.example/{}x", "ü".repeat(400)),
            "longer",
            "long",
        ),
        page(
            "http://a.example/東京",
            "東京都",
            "東京都 ภาษาไทย 한국어 🦀",
        ),
        far,
        untold,
    ]
}

//! Compares the extractor's links of whole pages with the links in html5ever's tree. The extractor
//! builds no tree, but must find the same links as a browser, which does.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod documentation_corpus;
mod html5lib_tree_cases;
mod independent_link_finder;

use std::collections::BTreeSet;

use crawl_extractor::{DocumentOddityKind, ReadingLimits, read_html};

/// A link: element, attribute, URL as written.
type Found = (String, String, String);

/// Returns the extractor's links of a page.
fn ours(html: &str) -> BTreeSet<Found> {
    let page = read_html(
        html.as_bytes(),
        Some("text/html; charset=utf-8"),
        &ReadingLimits::default(),
    );
    let lost = [
        DocumentOddityKind::LinksFull,
        DocumentOddityKind::ResourcesFull,
        DocumentOddityKind::HrefTooLong,
    ];
    assert!(
        page.oddities
            .iter()
            .all(|oddity| !lost.contains(&oddity.what))
    );
    page.links
        .into_iter()
        .map(|link| {
            (
                link.element.to_string(),
                link.attribute.to_owned(),
                link.href,
            )
        })
        .collect()
}

/// Returns the links found only in `ours` (by our extractor) or only in `trees`, one per line.
fn differences(ours: &BTreeSet<Found>, trees: &BTreeSet<Found>) -> Vec<String> {
    let line = |side: &str, found: &Found| {
        let (element, attribute, url) = found;
        format!("{side}: {element} {attribute} {url:?}")
    };
    let mut lines: Vec<_> = ours
        .difference(trees)
        .map(|one| line("ours only", one))
        .collect();
    lines.extend(trees.difference(ours).map(|one| line("tree only", one)));
    lines
}

//! The links of whole pages, held against those of a tree that html5ever builds of the same
//! page: what the extractor knows without a tree is what a browser would see.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod cases;
mod corpus;
mod links;

use std::collections::BTreeSet;

use crawl_extractor::{DocumentOddityKind, Limits, read_html};

/// A link: element, attribute, address as written.
type Found = (String, String, String);

/// The findings of the extractor in a page that is text.
fn ours(html: &str) -> BTreeSet<Found> {
    let page = read_html(
        html.as_bytes(),
        Some("text/html; charset=utf-8"),
        &Limits::default(),
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

/// The findings of each that the other did not have, a line each.
fn differences(ours: &BTreeSet<Found>, trees: &BTreeSet<Found>) -> Vec<String> {
    let line = |who: &str, found: &Found| {
        let (element, attribute, address) = found;
        format!("{who}: {element} {attribute} {address:?}")
    };
    let mut lines: Vec<_> = ours
        .difference(trees)
        .map(|one| line("ours only", one))
        .collect();
    lines.extend(trees.difference(ours).map(|one| line("tree only", one)));
    lines
}

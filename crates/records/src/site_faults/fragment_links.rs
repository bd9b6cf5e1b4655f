//! Checks whether the fragments of links exist in the pages that the links lead to.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use crawl_extractor::{
    ContentKind, ContentLimits, DecodedPage, PageContext, document_kind, read_anchors, read_content,
};
use crawl_weburl::CanonicalUrl;
use percent_encoding::percent_decode_str;

use super::text_fragment::{SearchableText, TextDirective};
use super::unchecked_links::{NOT_READ_TO_THE_END, UncheckedLink};
use super::{FaultKind, PageFault};
use crate::broken_links::{ArchivedPageReader, LatestRows, key};
use crate::error::RecordsError;
use crate::row_file_reader::pages;

/// The text in a fragment that separates the id from directives to the browser.
const DIRECTIVES: &str = ":~:";

/// Links with fragments, by target page.
#[derive(Debug, Default)]
pub(super) struct FragmentLinks {
    by_target: HashMap<u64, BTreeSet<FragmentLink>>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FragmentLink {
    page: String,
    /// The link as on the page, with its fragment.
    to: String,
    /// The fragment to look for, which may come from a redirect.
    fragment: String,
    text: Option<String>,
}

impl FragmentLinks {
    /// Adds a link on `page`. `to` is the link's URL with its fragment, `target` is the page at the
    /// end of the redirects, and `fragment` is the fragment to look for in `target`.
    pub(super) fn add(
        &mut self,
        page: &CanonicalUrl,
        to: String,
        target: &str,
        fragment: &str,
        text: Option<&str>,
    ) {
        // Skip fragments such as `#!/route`, which a script of the page reads. They are not ids.
        if fragment.starts_with(['!', '/']) {
            return;
        }
        self.by_target
            .entry(key(target))
            .or_default()
            .insert(FragmentLink {
                page: page.to_string(),
                to,
                fragment: fragment.to_owned(),
                text: text.map(str::to_owned),
            });
    }

    /// Reads the target pages, and adds a fault for each fragment that its target page doesn't
    /// have. If the end of the target was not read, adds an unchecked link instead. Pages that are
    /// not archived and documents other than HTML are not checked.
    pub(super) fn check(
        mut self,
        dir: &Path,
        latest: &LatestRows,
        archived: &ArchivedPageReader,
        (faults, unchecked): (&mut Vec<PageFault>, &mut Vec<UncheckedLink>),
    ) -> Result<(), RecordsError> {
        let mut rows = pages(dir)?;
        while let Some(row) = rows.next() {
            let row = row?;
            if !latest.is_body(&row, rows.line()) {
                continue;
            }
            let Some(links) = self.by_target.remove(&key(&row.url)) else {
                continue;
            };
            let content_type = row.content_type.as_deref();
            let body = archived.body(&row);
            let html = |body: &bytes::Bytes| {
                matches!(document_kind(content_type, body), ContentKind::Html)
            };
            let Some(body) = body.filter(html) else {
                continue;
            };
            let mut missing = missing_fragments(&body, content_type, links);
            if row.is_incomplete() {
                unchecked.extend(missing.into_iter().map(|fault| UncheckedLink {
                    page: fault.page.unwrap_or_default(),
                    to: fault.to,
                    reason: NOT_READ_TO_THE_END.to_owned(),
                    text: fault.text,
                }));
            } else {
                faults.append(&mut missing);
            }
        }
        Ok(())
    }
}

/// Returns a fault for each link whose fragment doesn't exist on the page.
fn missing_fragments(
    body: &[u8],
    content_type: Option<&str>,
    links: BTreeSet<FragmentLink>,
) -> Vec<PageFault> {
    let mut faults = Vec::new();
    let anchors = read_anchors(&DecodedPage::decode(body, content_type));
    let mut passages = None;
    for link in links {
        let (id, directives) = match link.fragment.split_once(DIRECTIVES) {
            Some((id, directives)) => (id, directives),
            None => (link.fragment.as_str(), ""),
        };
        let decoded = percent_decode_str(id).decode_utf8_lossy();
        // An empty fragment or `top` refers to the top of the page, which always exists (HTML
        // Standard 7.4.6.3).
        let is_there = id.is_empty()
            || anchors.contains(id)
            || anchors.contains(decoded.as_ref())
            || decoded.eq_ignore_ascii_case("top");
        let texts = directives
            .split('&')
            .filter_map(|one| one.strip_prefix("text="));
        let missing = texts.filter_map(TextDirective::parse).find(|text| {
            let passages = passages.get_or_insert_with(|| {
                let context = PageContext {
                    content_type,
                    ..PageContext::default()
                };
                SearchableText::new(
                    read_content(body, &context, &ContentLimits::default()).visible_text(),
                )
            });
            !passages.hold(text)
        });
        let (kind, why) = match (is_there, missing) {
            (false, _) => (FaultKind::Fragment, format!("no such anchor #{decoded}")),
            (true, Some(text)) => (
                FaultKind::TextFragment,
                format!("the page does not contain {}", text.words),
            ),
            (true, None) => continue,
        };
        faults.push(PageFault {
            page: Some(link.page),
            to: link.to,
            kind,
            why,
            status: None,
            error: None,
            text: link.text,
            element: None,
        });
    }
    faults
}

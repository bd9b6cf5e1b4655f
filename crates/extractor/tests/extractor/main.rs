//! Tests of reading documents, through the extractor's public interface.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod charset;
mod css;
mod document_kinds;
#[path = "../fuzz_checks/mod.rs"]
mod fuzz_checks;
mod fuzz_checks_on_random_input;
mod golden_files;
mod hostile;
mod html5lib_encodings;
mod html_links_and_metadata;
mod limits;
mod link_headers;
mod link_kinds;
mod properties_of_any_input;
#[path = "../../../fuzz/src/run_without_fuzzer.rs"]
mod run_without_fuzzer;
mod sitemap;
mod visible_page_summary;
mod xhtml;

use std::fmt::Write as _;

use crawl_extractor::{DocumentOddity, ExtractedPage, Link, ReadingLimits, read_html};

/// Reads `html` as a page.
fn read(html: &str) -> ExtractedPage {
    read_html(
        html.as_bytes(),
        Some("text/html; charset=utf-8"),
        &ReadingLimits::default(),
    )
}

/// Formats links, one per line: element, kind (except `page`), URL, rel, media type, text.
fn show_links(links: &[Link]) -> String {
    let mut shown = String::new();
    for link in links {
        let _ = write!(shown, "{} {:?} {:?}", link.element, link.kind, link.href);
        if !link.rel.is_empty() {
            let _ = write!(shown, " rel={}", link.rel);
        }
        if let Some(media_type) = &link.media_type {
            let _ = write!(shown, " type={media_type}");
        }
        if let Some(text) = &link.text {
            let _ = write!(shown, " {text:?}");
        }
        shown.push('\n');
    }
    shown
}

/// Formats oddities, one per line: name, line, count.
fn show_oddities(oddities: &[DocumentOddity]) -> String {
    oddities.iter().fold(String::new(), |mut shown, oddity| {
        let _ = writeln!(
            shown,
            "{} line {} x{}",
            oddity.what, oddity.line, oddity.count
        );
        shown
    })
}

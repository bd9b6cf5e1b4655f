//! Tests of the content of pages, through the extractor's public interface.

mod blocks;
mod head_metadata;
mod heading_controls;
mod hostile;
mod main_text_corpus;
mod ruby;
mod teasers;

use std::fmt::Write as _;

use crawl_extractor::{ContentLimits, PageContent, PageContext, read_content, read_markdown};

/// Returns the content of `html`.
fn read(html: &str) -> PageContent {
    let context = PageContext {
        content_type: Some("text/html; charset=utf-8"),
        ..PageContext::default()
    };
    read_content(html.as_bytes(), &context, &ContentLimits::default())
}

/// Returns the main text of `html` as Markdown.
fn markdown(html: &str) -> String {
    let mut link = |href: &str| Some(href.to_owned());
    let (context, limits) = (PageContext::default(), ContentLimits::default());
    read_markdown(html.as_bytes(), &context, &limits, &mut link).1
}

/// Formats oddities, one per line: name, line, count.
fn show_oddities(content: &PageContent) -> String {
    content
        .oddities
        .iter()
        .fold(String::new(), |mut shown, oddity| {
            let (what, line, count) = (oddity.what, oddity.line, oddity.count);
            let _ = writeln!(shown, "{what} line {line} x{count}");
            shown
        })
}

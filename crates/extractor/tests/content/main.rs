//! The content of pages, as the extractor reads it, through its public interface.

mod blocks;
mod corpus;
mod head;
mod hostile;
mod teasers;

use std::fmt::Write as _;

use crawl_extractor::{Content, ContentLimits, PageContext, read_content};

/// The content of `html`, as text.
fn read(html: &str) -> Content {
    let given = PageContext {
        content_type: Some("text/html; charset=utf-8"),
        ..PageContext::default()
    };
    read_content(html.as_bytes(), &given, &ContentLimits::default())
}

/// Oddities, one a line: name, line, count.
fn show_oddities(content: &Content) -> String {
    content
        .oddities
        .iter()
        .fold(String::new(), |mut shown, oddity| {
            let (what, line, count) = (oddity.what, oddity.line, oddity.count);
            let _ = writeln!(shown, "{what} line {line} x{count}");
            shown
        })
}

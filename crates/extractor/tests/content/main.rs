//! What a page is about, as the extractor reads it, through its public interface.

mod blocks;
mod corpus;
mod head;
mod hostile;
mod moments;
#[cfg(feature = "pdf")]
mod pdf;

use std::fmt::Write as _;

use crawl_extractor::{Content, ContentLimits, Given, read_content};

/// What is read in `html`.
fn read(html: &str) -> Content {
    let given = Given {
        content_type: Some("text/html; charset=utf-8"),
        ..Given::default()
    };
    read_content(html.as_bytes(), &given, &ContentLimits::default())
}

/// Oddities, one a line: name, line, count.
fn show_oddities(content: &Content) -> String {
    content
        .oddities
        .iter()
        .fold(String::new(), |mut shown, oddity| {
            let (what, line, count) = (oddity.what.name(), oddity.line, oddity.count);
            let _ = writeln!(shown, "{what} line {line} x{count}");
            shown
        })
}

//! Where the head of a page ends: what stands behind may be anybody's text, such as a comment.

use html5ever::{LocalName, local_name};

/// Follows the tags and the text of a page that are shown, up to the end of its head.
#[derive(Debug, Default)]
pub(crate) struct HeadEnd {
    is_over: bool,
}

impl HeadEnd {
    /// Takes a start tag of HTML.
    pub(crate) fn start(&mut self, name: &LocalName) {
        self.is_over |= !is_of_head(name);
    }

    /// Takes an end tag of HTML.
    pub(crate) fn end(&mut self, name: &LocalName) {
        self.is_over |= *name == local_name!("head");
    }

    /// Takes text of the page itself, outside titles, scripts and styles.
    pub(crate) fn text(&mut self, text: &str) {
        self.is_over |= !text.chars().all(char::is_whitespace);
    }

    /// Whether the head is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
}

/// Elements of the head, and those around it.
fn is_of_head(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("html")
            | local_name!("head")
            | local_name!("title")
            | local_name!("meta")
            | local_name!("link")
            | local_name!("base")
            | local_name!("script")
            | local_name!("style")
            | local_name!("noscript")
            | local_name!("template")
    )
}

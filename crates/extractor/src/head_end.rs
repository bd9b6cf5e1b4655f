//! Finds the end of a page's head. Metadata after the head can't be trusted, because it may come from
//! users of the site, for example in a comment on a blog post.

use crate::html::element_name::{self, ElementName};

/// Follows the visible tags and text of a page up to the end of its head.
///
/// A `noscript` in the head is skipped with its content, as in browsers with scripts. Many pages
/// put an image there, which would otherwise end the head.
#[derive(Debug, Default)]
pub(crate) struct HeadTracker {
    is_over: bool,
    in_noscript: bool,
}

impl HeadTracker {
    /// Processes a start tag in HTML.
    #[inline]
    pub(crate) fn start(&mut self, name: ElementName) {
        if self.is_over || self.in_noscript {
            return;
        }
        self.is_over = !is_of_head(name);
        self.in_noscript = name == element_name::NOSCRIPT;
    }

    /// Processes an end tag in HTML.
    pub(crate) fn end(&mut self, name: ElementName) {
        self.is_over |= name == element_name::HEAD;
        self.in_noscript &= name != element_name::NOSCRIPT;
    }

    /// Processes text of the page, outside titles, scripts and styles. Text other than white space
    /// ends the head.
    pub(crate) fn text(&mut self, text: &str) {
        let is_blank = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ');
        self.is_over |= !self.in_noscript && !text.bytes().all(is_blank);
    }

    /// Returns whether the head has ended.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns whether the current position is in the head, but not in a `noscript`. Only the
    /// page's author can write there.
    #[inline]
    pub(crate) fn is_head(&self) -> bool {
        !self.is_over && !self.in_noscript
    }
}

/// Returns whether an element belongs in a head, or is `html` or `head` itself (HTML Standard, the
/// insertion mode "in head").
fn is_of_head(name: ElementName) -> bool {
    matches!(
        name,
        element_name::HTML
            | element_name::HEAD
            | element_name::TITLE
            | element_name::META
            | element_name::LINK
            | element_name::BASE
            | element_name::BASEFONT
            | element_name::BGSOUND
            | element_name::NOFRAMES
            | element_name::SCRIPT
            | element_name::STYLE
            | element_name::NOSCRIPT
            | element_name::TEMPLATE
    )
}

#[cfg(test)]
mod tests {
    use super::{ElementName, HeadTracker};

    /// Returns whether the position after some tags and texts is in the head. `+name` is a start
    /// tag, `-name` an end tag, and anything else is text.
    fn is_head_after(parts: &[&str]) -> bool {
        let mut head = HeadTracker::default();
        for part in parts {
            match (part.strip_prefix('+'), part.strip_prefix('-')) {
                (Some(name), _) => head.start(ElementName::of(name.as_bytes())),
                (_, Some(name)) => head.end(ElementName::of(name.as_bytes())),
                _ => head.text(part),
            }
        }
        head.is_head()
    }

    #[test]
    fn the_head_ends_at_other_elements_and_text() {
        assert!(is_head_after(&[
            "+html", " \n", "+head", "+meta", "+bgsound"
        ]));
        assert!(!is_head_after(&["+head", "-head"]));
        assert!(!is_head_after(&["+head", "+p"]));
        assert!(!is_head_after(&["+head", "words"]));
        assert!(!is_head_after(&["+head", "\u{a0}"]));
    }

    #[test]
    fn a_noscript_does_not_end_the_head_and_is_not_read() {
        let pixel = ["+head", "+noscript", "+img", "Enable scripts"];
        assert!(!is_head_after(&pixel));
        assert!(is_head_after(&[&pixel[..], &["-noscript"]].concat()));
        assert!(!is_head_after(
            &[&pixel[..], &["-noscript", "+img"]].concat()
        ));
        assert!(!is_head_after(
            &[&pixel[..], &["-head", "-noscript"]].concat()
        ));
    }
}

//! Computes the new URL of a reference in a document that is saved as a file.

use std::fmt::Write as _;

use crawl_weburl::{CanonicalUrl, canonicalize};
use encoding_rs::{Encoding, UTF_8};

use crate::collapsed_text_builder::trim;
use crate::css::CssUrl;
use crate::link::without_line_breaks;
use crate::query_encoding::encode_query;
use crate::text_edits::TextEdit;

/// A function that returns the file for a URL as a relative URL, or `None` if the URL has no file.
/// If the relative URL has a fragment, it replaces the fragment of the link.
pub(crate) type UrlToFileFunction<'f> = dyn FnMut(&CanonicalUrl) -> Option<String> + 'f;

/// Rewrites the URLs of one document.
pub(crate) struct UrlRewriter<'f> {
    /// The URL that relative URLs are resolved against.
    pub(crate) base: CanonicalUrl,
    /// Whether the document has a `base` element. If so, a URL that is only a fragment is resolved
    /// against the `base`, and may lead to another document.
    pub(crate) has_base: bool,
    /// The charset that encodes the queries of URLs.
    pub(crate) encoding: &'static Encoding,
    pub(crate) file: &'f mut UrlToFileFunction<'f>,
}

/// Where the new URL of a reference may lead. This depends on the element that has the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RewriteDestination {
    /// A link or a resource. If the target has a file, the new URL leads to that file.
    FileIfAny,
    /// The URL of a form, or a `rel=canonical`. The new URL leads to the web, even if there is a
    /// file.
    Web,
}

/// The new URL of a reference. Contains only ASCII characters, and no white space, double quotation
/// marks or angle brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RewrittenUrl {
    pub(crate) text: String,
    /// Whether the URL leads to a file.
    pub(crate) is_file: bool,
}

impl UrlRewriter<'_> {
    /// Returns the new URL for `href`, an attribute's value. `None` if `href` must stay as it is,
    /// because it is absolute and has no file, is not a usable URL, or refers to a place in the
    /// same document.
    pub(crate) fn of_attribute(
        &mut self,
        href: &str,
        destination: RewriteDestination,
    ) -> Option<RewrittenUrl> {
        let is_place = href.trim_start().starts_with('#') && !self.has_base;
        (!is_place)
            .then(|| self.rewritten(href, self.encoding, destination))
            .flatten()
    }

    /// Returns the edits of the URLs in `css`.
    pub(crate) fn of_css<'c>(&mut self, urls: impl Iterator<Item = CssUrl<'c>>) -> Vec<TextEdit> {
        let mut edits = Vec::new();
        for CssUrl { url, range, .. } in urls {
            // In CSS, a URL that is only a fragment always refers to the document that uses the
            // style (CSS Values Level 4, section 4.5.1).
            if url.starts_with('#') {
                continue;
            }
            if let Some(new) = self.rewritten(&url, UTF_8, RewriteDestination::FileIfAny) {
                let with = format!("\"{}\"", new.text.replace('\\', "\\\\"));
                edits.push(TextEdit { range, with });
            }
        }
        edits
    }

    fn rewritten(
        &mut self,
        href: &str,
        encoding: &'static Encoding,
        destination: RewriteDestination,
    ) -> Option<RewrittenUrl> {
        let href = trim(href);
        let (without_fragment, fragment) = match href.split_once('#') {
            Some((without_fragment, fragment)) => (without_fragment, Some(fragment)),
            None => (href, None),
        };
        let url = canonicalize(Some(&self.base), &encode_query(without_fragment, encoding)).ok()?;
        let file = match destination {
            RewriteDestination::FileIfAny => (self.file)(&url),
            RewriteDestination::Web => None,
        };
        let is_file = file.is_some();
        let has_fragment = file.as_ref().is_some_and(|file| file.contains('#'));
        if !is_file && is_absolute(without_fragment) {
            return None;
        }
        let mut text = String::new();
        push_encoded(&file.unwrap_or_else(|| url.as_str().to_owned()), &mut text);
        if let Some(fragment) = fragment.filter(|_| !has_fragment) {
            text.push('#');
            push_encoded(&without_line_breaks(fragment), &mut text);
        }
        Some(RewrittenUrl { text, is_file })
    }
}

/// Returns whether a URL means the same in every document. (`http:a` doesn't: in an `http` page, it
/// is a relative URL.)
fn is_absolute(url: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        let head = url.get(..scheme.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(scheme))
    })
}

/// Appends a part of a URL. Percent-encodes all characters that could end an attribute's value in
/// double quotation marks, a CSS string or an element.
fn push_encoded(part: &str, out: &mut String) {
    for byte in part.bytes() {
        if !byte.is_ascii_graphic() || matches!(byte, b'"' | b'<' | b'>' | b'`') {
            let _ = write!(out, "%{byte:02X}");
        } else {
            out.push(char::from(byte));
        }
    }
}

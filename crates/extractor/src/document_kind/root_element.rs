//! Finds the root element of an XML document in its first bytes.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};

use crate::charset_guess::utf_16_without_mark;

/// The kind of document that a root element indicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RootElementKind {
    /// `html` outside the XHTML namespace
    Html,
    /// `html` in the XHTML namespace
    Xhtml,
    /// `urlset` or `sitemapindex`
    Sitemap,
    /// `rss`, or `RDF` of RSS 1.0
    Rss,
    /// `feed`
    Atom,
    Svg,
    Other,
}

/// Returns the root element of a document that begins with `first`. `None` if the document is not
/// XML. Text without an XML declaration counts as XML only if it has the root of a sitemap or a
/// feed. See "distinguishing if a resource is a feed or HTML" (MIME Sniffing Standard, section
/// 7.3), which this function extends to other roots.
pub(super) fn root_of(first: &[u8]) -> Option<RootElementKind> {
    let is_declared = text_of(first).trim_start().starts_with("<?xml");
    root_of_xml(first).filter(|root| {
        is_declared
            || matches!(
                root,
                RootElementKind::Sitemap | RootElementKind::Rss | RootElementKind::Atom
            )
    })
}

/// Returns the root element of an XML document that begins with `first`. `None` if `first` contains
/// no root element.
pub(super) fn root_of_xml(first: &[u8]) -> Option<RootElementKind> {
    let text = text_of(first);
    let mut rest: &str = &text;
    loop {
        rest = rest.trim_start().strip_prefix('<')?;
        let end = match rest.as_bytes().first()? {
            b'!' if rest.starts_with("!--") => "-->",
            b'?' => "?>",
            // If a DOCTYPE contains declarations in brackets, it ends after the brackets.
            b'!' if rest.find('[') < rest.find('>') && rest.contains('[') => "]>",
            b'!' => ">",
            _ => break,
        };
        rest = rest.split_once(end)?.1;
    }
    let end = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/'));
    let (name, rest_of_tag) = rest.split_at(end?);
    let local = name.split_once(':').map_or(name, |(_, local)| local);
    Some(match local {
        "html" if rest_of_tag.contains("http://www.w3.org/1999/xhtml") => RootElementKind::Xhtml,
        "html" | "HTML" => RootElementKind::Html,
        "urlset" | "sitemapindex" => RootElementKind::Sitemap,
        "rss" => RootElementKind::Rss,
        "feed" => RootElementKind::Atom,
        "RDF"
            if rest_of_tag.contains("//purl.org/rss/1.0/")
                || rest_of_tag.contains("/rdf/simple/0.9/") =>
        {
            RootElementKind::Rss
        }
        "svg" => RootElementKind::Svg,
        _ => RootElementKind::Other,
    })
}

/// Decodes the first bytes of a document as UTF-8 or UTF-16.
pub(super) fn text_of(first: &[u8]) -> Cow<'_, str> {
    let (encoding, skip) = Encoding::for_bom(first)
        .unwrap_or_else(|| (utf_16_without_mark(first).unwrap_or(UTF_8), 0));
    encoding.decode_without_bom_handling(&first[skip..]).0
}

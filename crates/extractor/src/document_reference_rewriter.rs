//! Rewrites the references of documents that are saved as files.

use std::borrow::Cow;

use crawl_weburl::CanonicalUrl;
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};

use crate::charset::{self, CharsetSource};
use crate::charset_prescan::css_charset;
use crate::css;
use crate::document_kind::MarkupSyntax;
use crate::html::{DecodedPage, PageUrlEdits, page_edits, read_html};
use crate::reading_limits::ReadingLimits;
use crate::text_edits::{TextEdit, edited_bytes};
use crate::url_rewriter::UrlRewriter;

/// Number of leading bytes of a style sheet in which to look for `@charset`.
const MAX_CHARSET_BYTES: usize = 1024;

/// Rewrites the page in `body`, fetched from `page`, for use as a file. `content_type` is the value
/// of its `Content-Type` header.
///
/// `file` returns the file for a URL, as a relative URL, or `None` if there is no such file. A
/// reference to a URL that has a file becomes a reference to the file, with the same fragment
/// unless `file` returns another. Other relative references become absolute. This covers attributes
/// that are links or load resources, `srcset`, `meta` refresh, `srcdoc`, and CSS in `style`
/// elements and attributes. The URL of a form and `rel=canonical` become absolute even if there is
/// a file.
///
/// The `href` of `base` is removed. Attributes that would keep a browser from loading a file are
/// removed too: `integrity` and `crossorigin` of rewritten references, and a
/// Content-Security-Policy in a `meta`. All other bytes stay, in the charset of the page. If the
/// page itself doesn't declare its charset, a declaration is added: a byte order mark or a `meta`.
///
/// Never fails. Takes linear time. Scripts are not rewritten.
///
/// ```
/// use crawl_extractor::rewrite_html;
/// use crawl_weburl::canonicalize;
///
/// let page = canonicalize(None, "https://e.example/a/")?;
/// let body = b"<a href=../tea#green>tea</a> <img src=cup.png>";
/// let mut file = |url: &crawl_weburl::CanonicalUrl| {
///     (url.as_str() == "https://e.example/tea").then(|| "../tea.html".to_owned())
/// };
/// assert_eq!(
///     String::from_utf8_lossy(&rewrite_html(body, Some("text/html"), &page, &mut file)),
///     r#"<a href="../tea.html#green">tea</a> <img src="https://e.example/a/cup.png">"#
/// );
/// # Ok::<(), crawl_weburl::UnusableUrlError>(())
/// ```
#[must_use]
pub fn rewrite_html<'b>(
    body: &'b [u8],
    content_type: Option<&str>,
    page: &CanonicalUrl,
    file: &mut dyn FnMut(&CanonicalUrl) -> Option<String>,
) -> Cow<'b, [u8]> {
    let text = DecodedPage::decode(body, content_type);
    let read = read_html(body, content_type, &ReadingLimits::default());
    let mut rewriter = UrlRewriter {
        base: read.base_url(page),
        has_base: read.base.is_some(),
        encoding: text.charset.encoding,
        file,
    };
    let PageUrlEdits {
        mut edits,
        meta_place,
    } = page_edits(&text, &mut rewriter);
    let declaration = page_declaration(body, &text);
    if let CharsetDeclaration::Meta(meta) = &declaration {
        let place = edits.partition_point(|edit| edit.range.start < meta_place);
        let range = meta_place..meta_place;
        edits.insert(
            place,
            TextEdit {
                range,
                with: meta.clone(),
            },
        );
    }
    let edited = match edits.is_empty() {
        true => Cow::Borrowed(body),
        false => {
            let (encoding, skip) = (text.charset.encoding, text.charset.skip);
            Cow::Owned(edited_bytes(body, encoding, skip, true, &edits))
        }
    };
    declaration.before(edited)
}

/// Rewrites the style sheet in `body`, fetched from `sheet`, like [`rewrite_html`]. If the style
/// sheet itself doesn't declare its charset, a byte order mark or `@charset` is added.
#[must_use]
pub fn rewrite_css<'b>(
    body: &'b [u8],
    content_type: Option<&str>,
    sheet: &CanonicalUrl,
    file: &mut dyn FnMut(&CanonicalUrl) -> Option<String>,
) -> Cow<'b, [u8]> {
    let (encoding, skip) = charset::of_css(body, content_type);
    let (text, _) = encoding.decode_without_bom_handling(&body[skip..]);
    let mut rewriter = UrlRewriter {
        base: sheet.clone(),
        has_base: false,
        encoding: UTF_8,
        file,
    };
    let edits = rewriter.of_css(css::sheet(&text));
    let edited = match edits.is_empty() {
        true => Cow::Borrowed(body),
        false => Cow::Owned(edited_bytes(body, encoding, skip, false, &edits)),
    };
    let head = &body[..body.len().min(MAX_CHARSET_BYTES)];
    let is_declared =
        skip > 0 || is_plain_ascii(body, encoding) || css_charset(head) == Some(encoding);
    if is_declared {
        return edited;
    }
    let mark = mark_of(encoding);
    mark.unwrap_or_else(|| {
        CharsetDeclaration::Start(format!("@charset \"{}\";\n", encoding.name()))
    })
    .before(edited)
}

/// A declaration of the charset, to be added to a file. The document may have left this to the
/// `Content-Type` header, which a file doesn't have.
enum CharsetDeclaration {
    /// The document declares the charset itself, or needs no declaration.
    None,
    /// A byte order mark.
    Mark(&'static [u8]),
    /// Text at the start, in ASCII.
    Start(String),
    /// A `meta` element in the head.
    Meta(String),
}

impl CharsetDeclaration {
    /// Prepends the byte order mark or the text to a document. A `meta` is inserted elsewhere.
    fn before(self, document: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
        let start = match &self {
            CharsetDeclaration::None | CharsetDeclaration::Meta(_) => return document,
            CharsetDeclaration::Mark(mark) => mark,
            CharsetDeclaration::Start(start) => start.as_bytes(),
        };
        Cow::Owned([start, &document].concat())
    }
}

fn page_declaration(body: &[u8], text: &DecodedPage<'_>) -> CharsetDeclaration {
    let encoding = text.charset.encoding;
    let without_header = charset::of_page(body, None, text.syntax());
    let is_declared = match without_header.source {
        CharsetSource::Bom | CharsetSource::Meta | CharsetSource::LateMeta => true,
        // XML without a declaration is UTF-8 by default, so it needs none.
        CharsetSource::ValidUtf8 => {
            text.syntax() == MarkupSyntax::Xml || is_plain_ascii(body, encoding)
        }
        CharsetSource::Header | CharsetSource::Detected => is_plain_ascii(body, encoding),
    };
    let is_same = without_header.encoding == encoding || is_plain_ascii(body, encoding);
    if is_declared && is_same {
        return CharsetDeclaration::None;
    }
    let name = encoding.name();
    mark_of(encoding).unwrap_or_else(|| match text.syntax() {
        MarkupSyntax::Html => CharsetDeclaration::Meta(format!("<meta charset=\"{name}\">")),
        // The document has an XML declaration already, and a second one is not allowed.
        MarkupSyntax::Xml if body.starts_with(b"<?xml") => CharsetDeclaration::None,
        MarkupSyntax::Xml => {
            CharsetDeclaration::Start(format!("<?xml version=\"1.0\" encoding=\"{name}\"?>"))
        }
    })
}

/// Returns the byte order mark of a Unicode charset.
fn mark_of(encoding: &'static Encoding) -> Option<CharsetDeclaration> {
    let marks: [(_, &'static [u8]); 3] = [
        (UTF_8, b"\xef\xbb\xbf"),
        (UTF_16LE, b"\xff\xfe"),
        (UTF_16BE, b"\xfe\xff"),
    ];
    let mark = marks.into_iter().find(|(marked, _)| *marked == encoding);
    mark.map(|(_, mark)| CharsetDeclaration::Mark(mark))
}

/// Returns whether all bytes of a document are plain ASCII, so that it is the same text in every
/// charset based on ASCII.
fn is_plain_ascii(body: &[u8], encoding: &'static Encoding) -> bool {
    body.is_ascii() && encoding.is_ascii_compatible() && encoding != ISO_2022_JP
}

#[cfg(test)]
mod tests;

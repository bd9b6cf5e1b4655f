//! Limits for reading a document, and the oddities that are noted when a limit is reached.

use crate::oddities::Oddity;

/// Limits for reading one document. Reaching a limit is never an error: the rest of the document is
/// dropped, and the result has the matching [`DocumentOddityKind`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadingLimits {
    /// Links to keep per page, not counting resources.
    /// Beyond the limit: `links-full`.
    pub links: usize,
    /// Links to resources to keep per page or style sheet.
    /// Beyond the limit: `resources-full`.
    pub resources: usize,
    /// Maximum bytes of one URL, after decoding. A longer URL is dropped, not cut, because a
    /// truncated URL is a different URL.
    pub href_bytes: usize,
    /// Bytes of a link's text. If 0, link texts are ignored, and none counts as cut.
    /// Beyond the limit: `text-cut`.
    pub text_bytes: usize,
    /// Bytes of the title.
    /// Beyond the limit: `title-cut`.
    pub title_bytes: usize,
    /// `meta` elements with a name.
    /// Beyond the limit: `metas-full`.
    pub metas: usize,
    /// Bytes of the content, and of the name, of one `meta`.
    /// Beyond the limit: `meta-cut`.
    pub meta_bytes: usize,
    /// Attributes of one tag.
    /// Beyond the limit: `attributes-full`.
    pub attributes: usize,
    /// Bytes of one style sheet or `style` element.
    /// Beyond the limit: `css-too-long`.
    pub css_bytes: usize,
    /// Entries of one sitemap (sitemaps.org: 50,000).
    /// Beyond the limit: `entries-full`.
    pub sitemap_entries: usize,
    /// Bytes of one sitemap, uncompressed (sitemaps.org: 52,428,800).
    /// Beyond the limit: `sitemap-too-long`.
    pub sitemap_bytes: usize,
    /// Alternates, images and videos of one sitemap, over all its entries.
    /// Beyond the limit: `sitemap-links-full`.
    pub sitemap_links: usize,
    /// Entries of one feed.
    /// Beyond the limit: `entries-full`.
    pub feed_entries: usize,
    /// Bytes of one feed, uncompressed.
    /// Beyond the limit: `feed-too-long`.
    pub feed_bytes: usize,
}

impl Default for ReadingLimits {
    fn default() -> Self {
        ReadingLimits {
            links: 100_000,
            resources: 100_000,
            href_bytes: 2 * crawl_weburl::MAX_URL_BYTES,
            text_bytes: 1024,
            title_bytes: 4 * 1024,
            metas: 1_000,
            meta_bytes: 8 * 1024,
            attributes: 1_000,
            css_bytes: 16 * 1024 * 1024,
            sitemap_entries: 50_000,
            sitemap_bytes: 50 * 1024 * 1024,
            sitemap_links: 100_000,
            feed_entries: 10_000,
            feed_bytes: 16 * 1024 * 1024,
        }
    }
}

/// A defect of a document, or an omission caused by a limit.
pub type DocumentOddity = Oddity<DocumentOddityKind>;

/// The kinds of [`DocumentOddity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::Display)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case")]
pub enum DocumentOddityKind {
    /// More links than [`ReadingLimits::links`].
    LinksFull,
    /// More links to resources than [`ReadingLimits::resources`].
    ResourcesFull,
    /// A URL longer than [`ReadingLimits::href_bytes`].
    HrefTooLong,
    /// A link's text was cut at [`ReadingLimits::text_bytes`].
    TextCut,
    /// The title was cut at [`ReadingLimits::title_bytes`].
    TitleCut,
    /// More `meta` elements than [`ReadingLimits::metas`].
    MetasFull,
    /// A `meta` longer than [`ReadingLimits::meta_bytes`]: its content was cut, or the element was
    /// dropped because its name was too long.
    MetaCut,
    /// A tag with more attributes than [`ReadingLimits::attributes`].
    AttributesFull,
    /// The `Content-Type` header names a charset that is not in the Encoding Standard.
    UnknownCharset,
    /// Bytes that are invalid in the charset with which the document was decoded.
    UndecodableBytes,
    /// CSS longer than [`ReadingLimits::css_bytes`]; the rest was not read.
    CssTooLong,
    /// More entries than [`ReadingLimits::sitemap_entries`] or [`ReadingLimits::feed_entries`].
    EntriesFull,
    /// A sitemap longer than [`ReadingLimits::sitemap_bytes`].
    SitemapTooLong,
    /// More alternates, images and videos than [`ReadingLimits::sitemap_links`].
    SitemapLinksFull,
    /// The document is not a sitemap.
    NotASitemap,
    /// A feed longer than [`ReadingLimits::feed_bytes`].
    FeedTooLong,
    /// The document is not a feed.
    NotAFeed,
    /// XML that is not well-formed; the rest was not read.
    BrokenXml,
    /// An XML end tag that doesn't match the innermost open element. If an outer element has that
    /// name, the tag ended it; otherwise the tag was skipped.
    MismatchedTag,
    /// An element of a sitemap has no end tag. The element ended where the next one began.
    UnclosedElement,
    /// A second `loc` in an entry of a sitemap. The URL was read as a second entry.
    SecondLoc,
    /// A URL in a sitemap outside any `loc`. The URL was read as if it were in a `loc`.
    UrlOutsideLoc,
    /// The JSON is invalid, or doesn't have the structure of a feed. The rest was not read.
    BrokenJson,
    /// An undeclared XML entity, which was kept as written.
    UnknownEntity,
    /// A line of a text sitemap that is not a URL.
    NotAUrl,
    /// The document ends within an element.
    EndsEarly,
    /// Several `rel=canonical` with different URLs; the first one was used.
    SeveralCanonicals,
    /// A `rel=canonical` in the body. It was ignored, because visitors of the site may have written
    /// it.
    CanonicalInBody,
}

/// Adds an oddity at `line` to the list, or counts it if the list has one of this kind. With one
/// entry per kind, the list stays short on any input.
pub(crate) fn note(oddities: &mut Vec<DocumentOddity>, what: DocumentOddityKind, line: u64) {
    match oddities.iter_mut().find(|oddity| oddity.what == what) {
        Some(oddity) => oddity.count += 1,
        None => oddities.push(DocumentOddity {
            what,
            line,
            count: 1,
        }),
    }
}

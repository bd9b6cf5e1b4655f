//! The most of a document that is read, and what is said when there was more.

use crate::oddities::Oddity;

/// The most that is read of one document. Reaching a limit is never an error: what is
/// beyond it is left out, and the matching [`DocumentOddityKind`] stands in the oddities.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Links kept of one page, resources apart.
    pub links: usize,
    /// Links to resources kept of one page or style sheet.
    pub resources: usize,
    /// Bytes of one address, after decoding. A longer one is dropped whole, since a part
    /// of a URL is another URL.
    pub href_bytes: usize,
    /// Bytes of a link's text. With 0 no text is looked at, and none counts as cut.
    pub text_bytes: usize,
    /// Bytes of the title.
    pub title_bytes: usize,
    /// `meta` elements with a name.
    pub metas: usize,
    /// Bytes of the content of one `meta`; its name has the same limit.
    pub meta_bytes: usize,
    /// Attributes of one tag.
    pub attributes: usize,
    /// Bytes of one style sheet, be it a document or a `style` element.
    pub css_bytes: usize,
    /// Entries of one sitemap (sitemaps.org: 50,000).
    pub sitemap_entries: usize,
    /// Bytes of one sitemap, uncompressed (sitemaps.org: 52,428,800).
    pub sitemap_bytes: usize,
    /// Alternates, images and videos of one sitemap, all its entries together.
    pub sitemap_links: usize,
    /// Entries of one feed.
    pub feed_entries: usize,
    /// Bytes of one feed, uncompressed.
    pub feed_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
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

/// Something in a document that was wrong, or that was left out.
pub type DocumentOddity = Oddity<DocumentOddityKind>;

/// The kinds of [`DocumentOddity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::Display)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case")]
pub enum DocumentOddityKind {
    /// More links than [`Limits::links`].
    LinksFull,
    /// More links to resources than [`Limits::resources`].
    ResourcesFull,
    /// An address longer than [`Limits::href_bytes`].
    HrefTooLong,
    /// A link's text was cut at [`Limits::text_bytes`].
    TextCut,
    /// The title was cut at [`Limits::title_bytes`].
    TitleCut,
    /// More `meta` elements than [`Limits::metas`].
    MetasFull,
    /// A `meta` longer than [`Limits::meta_bytes`]: content was cut, or the name was
    /// too long and the element was dropped.
    MetaCut,
    /// A tag with more attributes than [`Limits::attributes`].
    AttributesFull,
    /// The header names a charset that the Encoding Standard does not know.
    UnknownCharset,
    /// Bytes that are no text in the charset used.
    UndecodableBytes,
    /// CSS longer than [`Limits::css_bytes`]; what is beyond was not read.
    CssTooLong,
    /// More entries than [`Limits::sitemap_entries`] or [`Limits::feed_entries`].
    EntriesFull,
    /// A sitemap longer than [`Limits::sitemap_bytes`].
    SitemapTooLong,
    /// More alternates, images and videos than [`Limits::sitemap_links`].
    SitemapLinksFull,
    /// The document is no sitemap, whatever it was named.
    NotASitemap,
    /// A feed longer than [`Limits::feed_bytes`].
    FeedTooLong,
    /// The document is no feed, whatever it was named.
    NotAFeed,
    /// XML that is not well-formed; nothing after it was read.
    BrokenXml,
    /// An XML end tag that fits no open element, or one further out; it was mended.
    MismatchedTag,
    /// An element of a sitemap without an end tag; it ended where the next one began.
    UnclosedElement,
    /// A second `loc` in an entry of a sitemap; it counts as a second entry.
    SecondLoc,
    /// A URL in a sitemap that is in no `loc`; it counts as one.
    UrlOutsideLoc,
    /// JSON that is none, or another shape than a feed's; nothing after it was read.
    BrokenJson,
    /// An XML entity that nobody declared; it was kept as written.
    UnknownEntity,
    /// A line of a text sitemap that is no URL.
    NotAUrl,
    /// The document ends in the middle of an element.
    EndsEarly,
    /// More than one `rel=canonical`, and they differ.
    SeveralCanonicals,
    /// A `rel=canonical` in the body, where anybody's text may hold it; it was not taken.
    CanonicalInBody,
}

/// Notes `what`, keeping one entry per kind so that the list stays short on any input.
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

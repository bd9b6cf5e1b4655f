//! Sitemaps: the protocol of sitemaps.org, in XML or as plain text.

mod plain;
mod xml;

use std::borrow::Cow;

use crate::charset;
use crate::reading_limits::{DocumentOddity, DocumentOddityKind, ReadingLimits, note};

/// The entries of a sitemap.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sitemap {
    /// The format of the sitemap, and the kind of its entries.
    pub kind: SitemapKind,
    /// The entries, in document order.
    pub entries: Vec<SitemapEntry>,
    /// Defects and omissions, each kind once.
    pub oddities: Vec<DocumentOddity>,
}

/// The format of a sitemap, and the kind of its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SitemapKind {
    /// Pages, in XML (`urlset`).
    UrlSet,
    /// Other sitemaps, in XML (`sitemapindex`).
    Index,
    /// Pages, one URL per line.
    Text,
    /// The document is not a sitemap and has no entries.
    Unknown,
}

/// An entry of a sitemap. All fields but `loc` are hints from the site's owner.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SitemapEntry {
    /// The URL as written, trimmed; never empty.
    pub loc: String,
    /// The date of the last change, as written (W3C datetime, if the owner follows the standard).
    pub lastmod: Option<String>,
    /// How often the page changes.
    pub changefreq: Option<ChangeFrequency>,
    /// The priority among the URLs of the same site, from 0 (lowest) to 1.
    pub priority: Option<f32>,
    /// URLs of the same page in other languages or forms (`xhtml:link`). Alternates count as pages.
    pub alternates: Vec<SitemapAlternate>,
    /// URLs of images on the page (`image:loc`). Images count as resources.
    pub images: Vec<String>,
    /// Videos on the page.
    pub videos: Vec<SitemapVideo>,
    /// Data about the page as a news article (`news:news`). `None` if the entry has no such data.
    pub news: Option<SitemapNewsArticle>,
}

/// The same page in another language or form.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SitemapAlternate {
    /// The URL as written, trimmed; never empty.
    pub href: String,
    /// The language, as written.
    pub hreflang: Option<String>,
}

/// The URLs of a video on a page, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SitemapVideo {
    /// The video itself.
    pub content: Option<String>,
    /// A page that plays the video.
    pub player: Option<String>,
    /// A preview image of the video.
    pub thumbnail: Option<String>,
}

/// A page as a news article (Google's extension).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SitemapNewsArticle {
    /// The publication date, as written (W3C datetime, if the owner follows the standard).
    pub published: Option<String>,
    /// The title, with white space collapsed.
    pub title: Option<String>,
}

impl SitemapEntry {
    pub(crate) fn new(loc: String) -> SitemapEntry {
        SitemapEntry {
            loc,
            lastmod: None,
            changefreq: None,
            priority: None,
            alternates: Vec::new(),
            images: Vec::new(),
            videos: Vec::new(),
            news: None,
        }
    }

    /// Returns the URLs of pages other than `loc`, as written: alternates, and players of videos.
    pub fn further_pages(&self) -> impl Iterator<Item = &str> {
        let alternates = self.alternates.iter();
        let alternates = alternates.map(|alternate| alternate.href.as_str());
        let players = self
            .videos
            .iter()
            .filter_map(|video| video.player.as_deref());
        alternates.chain(players)
    }

    /// Returns the URLs of resources, as written: images, videos and their previews.
    pub fn resources(&self) -> impl Iterator<Item = &str> {
        let videos = self.videos.iter();
        let videos = videos.flat_map(|video| [&video.content, &video.thumbnail]);
        let images = self.images.iter();
        images.chain(videos.flatten()).map(String::as_str)
    }
}

/// How often a page changes, according to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::EnumString)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum ChangeFrequency {
    Always,
    Hourly,
    Daily,
    Weekly,
    Monthly,
    Yearly,
    Never,
}

/// Reads the entries of the sitemap in `body`, which is already decompressed. `content_type` is the
/// value of the `Content-Type` header.
///
/// Never fails: everything before an XML syntax error is kept. A document that begins with `<`, or
/// has the root of a sitemap after other text, is read as XML. Any other document is read as one
/// URL per line. No URL is lost by a missing end tag, a second `loc` in an entry, or a URL outside
/// any `loc`. Each of these is noted as an oddity. XML prefixes and namespaces are ignored. URLs in
/// extensions, such as images, are not listed as pages.
#[must_use]
pub fn read_sitemap(body: &[u8], content_type: Option<&str>, limits: &ReadingLimits) -> Sitemap {
    let (encoding, skip) = charset::of_xml(body, content_type);
    let body = &body[skip..];
    let too_long = body.len() > limits.sitemap_bytes;
    let body = &body[..body.len().min(limits.sitemap_bytes)];
    let (text, undecodable): (Cow<'_, str>, bool) = encoding.decode_without_bom_handling(body);

    let mut sitemap = Sitemap {
        kind: SitemapKind::Unknown,
        entries: Vec::new(),
        oddities: Vec::new(),
    };
    if too_long {
        note(&mut sitemap.oddities, DocumentOddityKind::SitemapTooLong, 1);
    }
    if undecodable {
        note(
            &mut sitemap.oddities,
            DocumentOddityKind::UndecodableBytes,
            1,
        );
    }
    match start_of_xml(&text) {
        Some(start) => xml::read(&text, start, limits, &mut sitemap),
        None => plain::read(&text, limits, &mut sitemap),
    }
    sitemap
}

/// Returns the offset at which the XML of a sitemap begins, because some servers write messages
/// before it. `None` if the document is not XML.
fn start_of_xml(text: &str) -> Option<usize> {
    if text.trim_start().starts_with('<') {
        return Some(0);
    }
    let roots = ["<?xml", "<urlset", "<sitemapindex"];
    roots.iter().filter_map(|root| text.find(root)).min()
}

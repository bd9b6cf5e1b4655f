//! Sitemaps: the protocol of sitemaps.org, in XML or as plain text.

mod plain;
mod xml;

use std::borrow::Cow;

use crate::charset;
use crate::limits::{DocumentOddity, DocumentOddityKind, Limits, note};

/// The entries of a sitemap.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sitemap {
    /// The kind of its entries.
    pub kind: SitemapKind,
    /// The entries, in the order of the document.
    pub entries: Vec<SitemapEntry>,
    /// Defects, and parts that were left out, each kind once.
    pub oddities: Vec<DocumentOddity>,
}

/// The kinds of entries of a sitemap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SitemapKind {
    /// Pages, in XML (`urlset`).
    UrlSet,
    /// Other sitemaps (`sitemapindex`).
    Index,
    /// Pages, one URL a line.
    Text,
    /// The document is no sitemap; it has no entries.
    Unknown,
}

/// An entry of a sitemap. All but `loc` are hints from the site's owner.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SitemapEntry {
    /// The URL as written, without white space at its ends; never empty.
    pub loc: String,
    /// The date of its last change, as written (W3C datetime, where the owner keeps to it).
    pub lastmod: Option<String>,
    /// The frequency with which it changes.
    pub changefreq: Option<ChangeFreq>,
    /// Its rank among the URLs of the same site, 0 to 1.
    pub priority: Option<f32>,
    /// The same page in other languages or forms (`xhtml:link`). They are pages.
    pub alternates: Vec<Alternate>,
    /// Addresses of images on the page (`image:loc`). They are resources.
    pub images: Vec<String>,
    /// Videos on the page.
    pub videos: Vec<Video>,
    /// The page as news.
    pub news: Option<NewsEntry>,
}

/// The same page in another language or form.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Alternate {
    /// Its address as written, without white space at its ends; never empty.
    pub href: String,
    /// Its language, as written.
    pub hreflang: Option<String>,
}

/// A video on a page: addresses as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Video {
    /// The video itself.
    pub content: Option<String>,
    /// A page that plays it.
    pub player: Option<String>,
    /// An image that stands for it.
    pub thumbnail: Option<String>,
}

/// A page as news (Google's extension).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewsEntry {
    /// The date of its publication, as written (W3C datetime, where the owner keeps to it).
    pub published: Option<String>,
    /// Its title, white space collapsed.
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
}

/// The frequency with which a page changes, by its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::EnumString)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum ChangeFreq {
    Always,
    Hourly,
    Daily,
    Weekly,
    Monthly,
    Yearly,
    Never,
}

/// Reads the entries of the sitemap in `body`; compression is undone already. `content_type` is the
/// value of its header.
///
/// Never fails: of broken XML, what stands before the break is kept. A document that
/// begins with `<`, or has the root of a sitemap behind other text, is read as XML, any other as one
/// URL a line. Missing end tags, a second `loc` in an entry and URLs outside of a `loc` lose no URL:
/// an oddity tells of each. Prefixes of XML names and
/// namespaces are ignored; what the extensions name is kept apart from the pages.
#[must_use]
pub fn read_sitemap(body: &[u8], content_type: Option<&str>, limits: &Limits) -> Sitemap {
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

/// The byte at which the XML of a sitemap begins. Servers put messages before it.
fn start_of_xml(text: &str) -> Option<usize> {
    if text.trim_start().starts_with('<') {
        return Some(0);
    }
    let roots = ["<?xml", "<urlset", "<sitemapindex"];
    roots.iter().filter_map(|root| text.find(root)).min()
}

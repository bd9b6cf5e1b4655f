//! Sitemaps: the protocol of sitemaps.org, in XML or as plain text.

mod plain;
mod xml;

use std::borrow::Cow;
use std::str::FromStr;

use crate::charset;
use crate::limits::{Limits, Oddity, What, note};

/// What a sitemap lists.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sitemap {
    /// What its entries are.
    pub kind: SitemapKind,
    /// The entries, in the order of the document.
    pub entries: Vec<SitemapEntry>,
    /// What was wrong or left out, each kind once.
    pub oddities: Vec<Oddity>,
}

/// What the entries of a sitemap are.
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
    /// When it changed last, as written (W3C datetime, where the owner keeps to it).
    pub lastmod: Option<String>,
    /// How often it changes.
    pub changefreq: Option<ChangeFreq>,
    /// How it ranks among the URLs of the same site, 0 to 1.
    pub priority: Option<f32>,
}

impl SitemapEntry {
    pub(crate) fn new(loc: String) -> SitemapEntry {
        SitemapEntry {
            loc,
            lastmod: None,
            changefreq: None,
            priority: None,
        }
    }
}

/// How often a page changes, by its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

impl FromStr for ChangeFreq {
    type Err = ();

    /// The name in any letter case.
    fn from_str(name: &str) -> Result<ChangeFreq, ()> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "always" => ChangeFreq::Always,
            "hourly" => ChangeFreq::Hourly,
            "daily" => ChangeFreq::Daily,
            "weekly" => ChangeFreq::Weekly,
            "monthly" => ChangeFreq::Monthly,
            "yearly" => ChangeFreq::Yearly,
            "never" => ChangeFreq::Never,
            _ => return Err(()),
        })
    }
}

/// What the sitemap in `body` lists; compression is undone already.
///
/// Never fails: of broken XML, what stands before the break is kept. A document that
/// begins with `<` is read as XML, any other as one URL a line. Prefixes of XML names and
/// namespaces are ignored; entries of the image, video and news extensions are not taken
/// for pages.
#[must_use]
pub fn read_sitemap(body: &[u8], limits: &Limits) -> Sitemap {
    let (encoding, skip) = charset::of_sitemap(body);
    let body = &body[skip..];
    let too_long = body.len() > limits.sitemap_octets;
    let body = &body[..body.len().min(limits.sitemap_octets)];
    let (text, undecodable): (Cow<'_, str>, bool) = encoding.decode_without_bom_handling(body);

    let mut sitemap = Sitemap {
        kind: SitemapKind::Unknown,
        entries: Vec::new(),
        oddities: Vec::new(),
    };
    if too_long {
        note(&mut sitemap.oddities, What::SitemapTooLong, 1);
    }
    if undecodable {
        note(&mut sitemap.oddities, What::UndecodableOctets, 1);
    }
    if text.trim_start().starts_with('<') {
        xml::read(&text, limits, &mut sitemap);
    } else {
        plain::read(&text, limits, &mut sitemap);
    }
    sitemap
}

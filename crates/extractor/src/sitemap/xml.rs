//! Reads an XML sitemap, with the extensions for languages, images, videos and news.

use super::plain::is_url;
use super::{
    Sitemap, SitemapAlternate, SitemapEntry, SitemapKind, SitemapNewsArticle, SitemapVideo,
};
use crate::collapsed_text_builder::{CollapsedTextBuilder, trim};
use crate::reading_limits::{DocumentOddityKind, ReadingLimits};
use crate::xml::{XmlEvent, XmlReader, XmlStartTag};

/// Maximum bytes of a `lastmod`, `changefreq`, `priority`, `hreflang` or date; longer values are
/// dropped.
const MAX_HINT_BYTES: usize = 128;

pub(super) fn read(text: &str, start: usize, limits: &ReadingLimits, sitemap: &mut Sitemap) {
    let mut walk = XmlSitemapReader {
        xml: XmlReader::from(text, start, limits),
        limits,
        sitemap,
        entry: None,
        extension: None,
        field: None,
        value: String::new(),
        bare: String::new(),
        extras: 0,
    };
    let mut is_sitemap = true;
    while let Some(step) = walk.xml.next() {
        match step {
            XmlEvent::Start(tag) => {
                is_sitemap = walk.start(&tag);
                if !is_sitemap {
                    break;
                }
            }
            XmlEvent::Text(text) => walk.text(&text),
            XmlEvent::End => {
                if !walk.end() {
                    break;
                }
            }
        }
    }
    walk.end_bare_text();
    walk.finish_entry();
    let kind = walk.sitemap.kind;
    if kind == SitemapKind::Unknown || !is_sitemap {
        walk.xml.note(DocumentOddityKind::NotASitemap);
    }
    let oddities = std::mem::take(&mut walk.xml.oddities);
    sitemap.oddities.extend(oddities);
}

/// The field that the current text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SitemapField {
    Loc,
    LastMod,
    ChangeFreq,
    Priority,
    Image,
    VideoContent,
    VideoPlayer,
    VideoThumbnail,
    NewsDate,
    NewsTitle,
}

/// The open element of an extension, which is a child of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenExtensionElement {
    Image,
    Video,
    News,
}

struct XmlSitemapReader<'a> {
    xml: XmlReader<'a>,
    limits: &'a ReadingLimits,
    sitemap: &'a mut Sitemap,
    entry: Option<SitemapEntry>,
    extension: Option<OpenExtensionElement>,
    field: Option<(SitemapField, usize)>,
    value: String,
    /// Text outside any field such as `loc`, in an entry or between entries.
    bare: String,
    /// Number of alternates, images and videos kept so far.
    extras: usize,
}

impl XmlSitemapReader<'_> {
    /// Reads a start tag. Returns `false` to stop, because the document is not a sitemap or has too
    /// many entries. The depth is 1 for the root, 2 for an entry, 3 for a field, and 4 for an
    /// element in an extension.
    fn start(&mut self, tag: &XmlStartTag<'_>) -> bool {
        self.end_bare_text();
        let name = tag.name().to_ascii_lowercase();
        let name = name.as_str();
        let is_entry = matches!(name, "url" | "sitemap");
        match self.xml.depth() {
            1 if !self.start_root(name) => return false,
            1 if !is_entry => return true,
            _ if is_entry => return self.start_entry(),
            _ => {}
        }
        let is_of_entry = self.extension.is_none() && field_of_entry(name).is_some();
        if is_of_entry
            && self
                .field
                .is_some_and(|(_, depth)| depth < self.xml.depth())
        {
            // The previous field has no end tag.
            self.xml.note(DocumentOddityKind::UnclosedElement);
            self.finish_field();
            self.xml.reopen_at(3);
        }
        if self.entry.is_none() || self.field.is_some() {
            return true;
        }
        let depth = self.xml.depth();
        let field = match depth {
            3 => self.start_field(tag, name),
            4 => field_of(self.extension, name),
            _ => return true,
        };
        self.value.clear();
        self.field = field.map(|field| (field, depth));
        true
    }

    /// Reads the root element. Returns `false` if the document is not a sitemap.
    fn start_root(&mut self, name: &str) -> bool {
        self.sitemap.kind = match name {
            "urlset" | "url" => SitemapKind::UrlSet,
            "sitemapindex" | "sitemap" => SitemapKind::Index,
            _ => return false,
        };
        true
    }

    /// Begins an entry. If the previous entry has no end tag, ends it first. Returns `false` if the
    /// limit on entries is reached.
    fn start_entry(&mut self) -> bool {
        if self.entry.is_some() {
            self.xml.note(DocumentOddityKind::UnclosedElement);
        }
        self.finish_field();
        if !self.finish_entry() {
            return false;
        }
        if self.xml.depth() != 2 {
            self.xml.reopen_at(2);
        }
        self.entry = Some(SitemapEntry::new(String::new()));
        true
    }

    fn start_field(&mut self, tag: &XmlStartTag<'_>, name: &str) -> Option<SitemapField> {
        self.extension = None;
        // Even outside `image:image`, an `image:loc` is the URL of an image, not of the page.
        if tag.written_name().eq_ignore_ascii_case("image:loc") {
            return Some(SitemapField::Image);
        }
        if let Some(field) = field_of_entry(name) {
            return Some(field);
        }
        match name {
            "link" => self.alternate(tag),
            "image" => self.extension = Some(OpenExtensionElement::Image),
            "video" => self.video(),
            "news" => {
                self.extension = Some(OpenExtensionElement::News);
                self.entry().news.get_or_insert_default();
            }
            _ => {}
        }
        None
    }

    fn video(&mut self) {
        if self.has_room() {
            self.extension = Some(OpenExtensionElement::Video);
            self.entry().videos.push(SitemapVideo::default());
        }
    }

    /// Processes `xhtml:link`: the same page in another language or form.
    fn alternate(&mut self, tag: &XmlStartTag<'_>) {
        let rel = tag.attribute("rel").unwrap_or_default();
        let is_alternate = rel
            .split_ascii_whitespace()
            .any(|rel| rel.eq_ignore_ascii_case("alternate"));
        let Some(href) = tag.attribute("href").filter(|_| is_alternate) else {
            return;
        };
        if let Some(href) = self.trimmed_url(&href)
            && self.has_room()
        {
            let hreflang = tag.short_attribute("hreflang", MAX_HINT_BYTES);
            let alternate = SitemapAlternate { href, hreflang };
            self.entry().alternates.push(alternate);
        }
    }

    fn text(&mut self, text: &str) {
        match self.field {
            // Keep one byte more than the limit. The extra byte shows that the value is too long.
            Some((_, depth)) if depth <= self.xml.depth() => {
                if self.value.len() <= self.limits.href_bytes {
                    self.value.push_str(text);
                }
            }
            Some(_) => {}
            None => {
                let is_bare = self.extension.is_none() && self.xml.depth() <= 2;
                let is_blank = self.bare.is_empty() && text.trim_ascii().is_empty();
                if is_bare && !is_blank {
                    self.bare.push_str(text);
                }
            }
        }
    }

    /// Processes the URLs in text outside any field such as `loc`.
    fn end_bare_text(&mut self) {
        if self.bare.is_empty() {
            return;
        }
        let bare = std::mem::take(&mut self.bare);
        let is_in_entry = self.entry.is_some();
        for url in bare.split_ascii_whitespace().filter(|word| is_url(word)) {
            self.xml.note(DocumentOddityKind::UrlOutsideLoc);
            if let Some(url) = self.trimmed_url(url) {
                self.take_url(SitemapField::Loc, url);
            }
            if !is_in_entry {
                self.finish_entry();
            }
        }
    }

    /// Ends an element. Returns `false` if this was an entry and the limit on entries is reached.
    fn end(&mut self) -> bool {
        self.end_bare_text();
        let ended = self.xml.depth() + 1;
        if self.field.is_some_and(|(_, depth)| depth == ended) {
            self.finish_field();
        }
        match ended {
            3 => self.extension = None,
            2 => return self.finish_entry(),
            _ => {}
        }
        true
    }

    fn finish_field(&mut self) {
        let Some((field, _)) = self.field.take() else {
            return;
        };
        let value = std::mem::take(&mut self.value);
        match field {
            SitemapField::Loc
            | SitemapField::Image
            | SitemapField::VideoContent
            | SitemapField::VideoPlayer
            | SitemapField::VideoThumbnail => {
                if let Some(url) = self.trimmed_url(&value) {
                    self.take_url(field, url);
                }
            }
            SitemapField::NewsTitle => {
                let mut title = CollapsedTextBuilder::new(self.limits.title_bytes);
                title.push(&value);
                let title = title.take().0;
                self.entry().news.get_or_insert_default().title = title;
            }
            SitemapField::LastMod
            | SitemapField::ChangeFreq
            | SitemapField::Priority
            | SitemapField::NewsDate => {
                let value = trim(&value);
                if !value.is_empty() && value.len() <= MAX_HINT_BYTES {
                    self.take_hint(field, value);
                }
            }
        }
        self.value = value;
    }

    fn take_url(&mut self, field: SitemapField, url: String) {
        if field == SitemapField::Image && !self.has_room() {
            return;
        }
        let entry = self.entry();
        let video = entry.videos.last_mut();
        let place = match (field, video) {
            (SitemapField::Loc, _) if entry.loc.is_empty() => {
                entry.loc = url;
                return;
            }
            (SitemapField::Loc, _) if entry.loc == url => return,
            // Begin a second entry. The fields that follow belong to it.
            (SitemapField::Loc, _) => {
                self.xml.note(DocumentOddityKind::SecondLoc);
                self.finish_entry();
                self.entry = Some(SitemapEntry::new(url));
                return;
            }
            (SitemapField::Image, _) => return entry.images.push(url),
            (SitemapField::VideoContent, Some(video)) => &mut video.content,
            (SitemapField::VideoPlayer, Some(video)) => &mut video.player,
            (SitemapField::VideoThumbnail, Some(video)) => &mut video.thumbnail,
            _ => return,
        };
        place.get_or_insert(url);
    }

    fn take_hint(&mut self, field: SitemapField, value: &str) {
        let entry = self.entry();
        match field {
            SitemapField::LastMod => entry.lastmod = Some(value.to_owned()),
            SitemapField::ChangeFreq => entry.changefreq = value.parse().ok(),
            SitemapField::Priority => {
                let number = value.parse::<f32>().ok();
                entry.priority = number.filter(|number| (0.0..=1.0).contains(number));
            }
            _ => {
                entry
                    .news
                    .get_or_insert_with(SitemapNewsArticle::default)
                    .published = Some(value.to_owned());
            }
        }
    }

    /// Returns a trimmed URL. `None` if it is empty or too long.
    fn trimmed_url(&mut self, value: &str) -> Option<String> {
        let value = trim(value);
        if value.len() > self.limits.href_bytes {
            self.xml.note(DocumentOddityKind::HrefTooLong);
            return None;
        }
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// Counts one more link of an extension. Returns false if the limit is reached.
    fn has_room(&mut self) -> bool {
        let has_room = self.extras < self.limits.sitemap_links;
        if has_room {
            self.extras += 1;
        } else {
            self.xml.note(DocumentOddityKind::SitemapLinksFull);
        }
        has_room
    }

    fn entry(&mut self) -> &mut SitemapEntry {
        self.entry
            .get_or_insert_with(|| SitemapEntry::new(String::new()))
    }

    /// Keeps the current entry if it has a URL. Returns `false` if the limit on entries is reached.
    fn finish_entry(&mut self) -> bool {
        self.extension = None;
        let Some(entry) = self.entry.take().filter(|entry| !entry.loc.is_empty()) else {
            return true;
        };
        let has_room = self.sitemap.entries.len() < self.limits.sitemap_entries;
        match has_room {
            true => self.sitemap.entries.push(entry),
            false => self.xml.note(DocumentOddityKind::EntriesFull),
        }
        has_room
    }
}

fn field_of_entry(name: &str) -> Option<SitemapField> {
    Some(match name {
        "loc" => SitemapField::Loc,
        "lastmod" => SitemapField::LastMod,
        "changefreq" => SitemapField::ChangeFreq,
        "priority" => SitemapField::Priority,
        _ => return None,
    })
}

fn field_of(extension: Option<OpenExtensionElement>, name: &str) -> Option<SitemapField> {
    Some(match (extension?, name) {
        (OpenExtensionElement::Image, "loc") => SitemapField::Image,
        (OpenExtensionElement::Video, "content_loc") => SitemapField::VideoContent,
        (OpenExtensionElement::Video, "player_loc") => SitemapField::VideoPlayer,
        (OpenExtensionElement::Video, "thumbnail_loc") => SitemapField::VideoThumbnail,
        (OpenExtensionElement::News, "publication_date") => SitemapField::NewsDate,
        (OpenExtensionElement::News, "title") => SitemapField::NewsTitle,
        _ => return None,
    })
}

//! Reads XML feeds: RSS 2.0, RSS 1.0 and Atom. A single reader handles all three formats, because
//! real feeds mix their elements.

use super::{
    Feed, FeedEntry, FeedKind, MAX_ENCLOSURES, MAX_HINT_BYTES, MAX_NEXT_PAGES, UnresolvedFeedUrl,
    collapsed, hint, trimmed_url,
};
use crate::collapsed_text_builder::trim;
use crate::reading_limits::{DocumentOddityKind, ReadingLimits};
use crate::xml::{XmlEvent, XmlNamespace, XmlReader, XmlStartTag};

pub(super) fn read(text: &str, limits: &ReadingLimits, feed: &mut Feed) {
    let mut walk = XmlFeedReader {
        xml: XmlReader::new(text, limits),
        limits,
        feed,
        entry: None,
        outlined: None,
        field: None,
        value: String::new(),
    };
    while let Some(step) = walk.xml.next() {
        let go_on = match step {
            XmlEvent::Start(tag) => walk.start(&tag),
            XmlEvent::Text(text) => {
                walk.text(&text);
                true
            }
            XmlEvent::End => walk.end(),
        };
        if !go_on {
            break;
        }
    }
    walk.finish_entry();
    if walk.feed.kind == FeedKind::Unknown {
        walk.xml.note(DocumentOddityKind::NotAFeed);
    }
    let oddities = std::mem::take(&mut walk.xml.oddities);
    feed.oddities.extend(oddities);
}

/// The field that the current text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FeedField {
    Title,
    /// The URL of an RSS entry or channel, given as text.
    Link,
    /// The id of an Atom entry.
    Id,
    /// The id of an RSS entry. The id may also be the URL of the entry.
    Guid {
        is_url: bool,
    },
    Published,
    Updated,
}

struct XmlFeedReader<'a> {
    xml: XmlReader<'a>,
    limits: &'a ReadingLimits,
    feed: &'a mut Feed,
    /// The open entry, and the depth of its element.
    entry: Option<(FeedEntry, usize)>,
    /// The depth of the element that contains the data about the whole feed: `channel` in RSS,
    /// `feed` in Atom.
    outlined: Option<usize>,
    field: Option<(FeedField, usize)>,
    value: String,
}

impl XmlFeedReader<'_> {
    /// Processes a start tag. Returns false if reading must stop, because the document is not a
    /// feed or a limit is reached.
    fn start(&mut self, tag: &XmlStartTag<'_>) -> bool {
        let depth = self.xml.depth();
        if depth == 1 {
            return self.root(tag);
        }
        let is_core = matches!(tag.space, XmlNamespace::None | XmlNamespace::Atom);
        if is_core && matches!(tag.name(), "item" | "entry") {
            // An entry without an end tag ends where the next one begins.
            self.finish_entry();
            if self.feed.entries.len() >= self.limits.feed_entries {
                self.xml.note(DocumentOddityKind::EntriesFull);
                return false;
            }
            let entry = FeedEntry {
                // An item of RSS 1.0 is identified by `rdf:about`.
                id: tag.short_attribute("rdf:about", self.limits.href_bytes),
                ..FeedEntry::default()
            };
            self.entry = Some((entry, depth));
            return true;
        }
        if depth == 2 && is_core && tag.name() == "channel" {
            self.outlined = Some(depth);
            return true;
        }
        let around = self
            .entry
            .as_ref()
            .map(|(_, depth)| *depth)
            .or(self.outlined);
        if around == Some(depth - 1) {
            self.child(tag, depth);
        }
        true
    }

    fn root(&mut self, tag: &XmlStartTag<'_>) -> bool {
        self.feed.kind = match (tag.name(), tag.space) {
            ("rss", _) => FeedKind::Rss2,
            ("feed", XmlNamespace::Atom | XmlNamespace::None) => {
                self.outlined = Some(1);
                FeedKind::Atom
            }
            ("RDF", XmlNamespace::Rdf) => FeedKind::Rss1,
            _ => return false,
        };
        true
    }

    /// Processes a child of an entry, or of the element with data about the whole feed.
    fn child(&mut self, tag: &XmlStartTag<'_>, depth: usize) {
        let field = match (tag.space, tag.name()) {
            (XmlNamespace::None | XmlNamespace::Atom, "link") if self.is_atom_link(tag) => {
                self.atom_link(tag);
                None
            }
            (XmlNamespace::None, "link") => Some(FeedField::Link),
            (XmlNamespace::None | XmlNamespace::Atom, "title") => Some(FeedField::Title),
            (XmlNamespace::Atom, "id") => Some(FeedField::Id),
            (XmlNamespace::None, "guid") => {
                let is = tag.short_attribute("isPermaLink", MAX_HINT_BYTES);
                let is_url = !is.is_some_and(|is| is.eq_ignore_ascii_case("false"));
                Some(FeedField::Guid { is_url })
            }
            (XmlNamespace::None, "pubDate")
            | (XmlNamespace::Atom, "published" | "issued" | "created") => {
                Some(FeedField::Published)
            }
            (XmlNamespace::DublinCore, "date" | "issued" | "created") => Some(FeedField::Published),
            (XmlNamespace::Atom, "updated" | "modified")
            | (XmlNamespace::DublinCore, "modified") => Some(FeedField::Updated),
            (XmlNamespace::None, "enclosure") => {
                self.enclosure(tag.attribute("url").as_deref());
                None
            }
            (XmlNamespace::Atom, "content") => {
                self.content_elsewhere(tag);
                None
            }
            _ => None,
        };
        if let Some(field) = field {
            self.value.clear();
            self.field = Some((field, depth));
        }
    }

    /// Returns whether a `link` has its URL in an attribute, as in Atom, instead of in its text.
    /// RSS feeds may contain such links too.
    fn is_atom_link(&self, tag: &XmlStartTag<'_>) -> bool {
        tag.space == XmlNamespace::Atom || tag.attribute("href").is_some()
    }

    fn atom_link(&mut self, tag: &XmlStartTag<'_>) {
        let rel = tag.short_attribute("rel", MAX_HINT_BYTES);
        let rel = rel.as_deref().map_or("alternate", trim);
        let rel = rel
            .strip_prefix("http://www.iana.org/assignments/relation/")
            .unwrap_or(rel);
        let href = tag.attribute("href");
        let is = |name: &str| rel.eq_ignore_ascii_case(name);
        if is("enclosure") {
            return self.enclosure(href.as_deref());
        }
        let Some(url) = href.and_then(|href| self.url(&href)) else {
            return;
        };
        match &mut self.entry {
            Some((entry, _)) if is("alternate") => {
                entry.url.get_or_insert(url);
            }
            Some(_) => {}
            None if is("alternate") => {
                self.feed.home.get_or_insert(url);
            }
            None if (is("next") || is("prev-archive")) && self.feed.next.len() < MAX_NEXT_PAGES => {
                self.feed.next.push(url);
            }
            None => {}
        }
    }

    fn enclosure(&mut self, href: Option<&str>) {
        let url = href.and_then(|href| self.url(href));
        if let (Some((entry, _)), Some(url)) = (&mut self.entry, url)
            && entry.enclosures.len() < MAX_ENCLOSURES
        {
            entry.enclosures.push(url);
        }
    }

    /// Records the `src` of an Atom entry's `content` as the entry's URL, if the entry has no other
    /// URL.
    fn content_elsewhere(&mut self, tag: &XmlStartTag<'_>) {
        let url = tag.attribute("src").and_then(|src| self.url(&src));
        if let (Some((entry, _)), Some(url)) = (&mut self.entry, url) {
            entry.url.get_or_insert(url);
        }
    }

    fn text(&mut self, text: &str) {
        // The title of an Atom entry may be XHTML, so it includes the text of elements within the
        // title.
        let is_within = match self.field {
            Some((FeedField::Title, depth)) => self.xml.depth() >= depth,
            Some((_, depth)) => self.xml.depth() == depth,
            None => false,
        };
        let max_bytes = self.limits.href_bytes.max(self.limits.title_bytes);
        if is_within && self.value.len() <= max_bytes {
            self.value.push_str(text);
        }
    }

    fn end(&mut self) -> bool {
        let ended = self.xml.depth() + 1;
        if self.field.is_some_and(|(_, depth)| depth == ended) {
            self.finish_field();
        }
        if self
            .entry
            .as_ref()
            .is_some_and(|(_, depth)| *depth == ended)
        {
            self.finish_entry();
        }
        if self.outlined == Some(ended) && ended > 1 {
            self.outlined = None;
        }
        true
    }

    fn finish_field(&mut self) {
        let Some((field, _)) = self.field.take() else {
            return;
        };
        let value = std::mem::take(&mut self.value);
        match (field, &mut self.entry) {
            (FeedField::Title, Some((entry, _))) => {
                let title = collapsed(&value, self.limits.title_bytes);
                entry.title = entry.title.take().or(title);
            }
            (FeedField::Title, None) => {
                let title = collapsed(&value, self.limits.title_bytes);
                self.feed.title = self.feed.title.take().or(title);
            }
            (FeedField::Published, Some((entry, _))) => {
                entry.published = entry.published.take().or_else(|| hint(&value));
            }
            (FeedField::Updated, Some((entry, _))) => {
                entry.updated = entry.updated.take().or_else(|| hint(&value));
            }
            (FeedField::Link, _) => self.link(&value),
            (FeedField::Id, _) => self.id(&value, false),
            (FeedField::Guid { is_url }, _) => self.id(&value, is_url),
            (FeedField::Published | FeedField::Updated, None) => {}
        }
        self.value = value;
    }

    /// Records the URL in the text of an entry's `link`. It replaces a URL taken from the entry's
    /// id.
    fn link(&mut self, value: &str) {
        let Some(url) = self.url(value) else { return };
        match &mut self.entry {
            Some((entry, _)) => {
                let is_from_id =
                    |other: &UnresolvedFeedUrl| entry.id.as_deref() == Some(&other.href);
                if entry.url.as_ref().is_none_or(is_from_id) {
                    entry.url = Some(url);
                }
            }
            None => {
                self.feed.home.get_or_insert(url);
            }
        }
    }

    fn id(&mut self, value: &str, is_url: bool) {
        let value = trim(value);
        if value.is_empty() || value.len() > self.limits.href_bytes {
            return;
        }
        let url = is_url.then(|| self.url(value)).flatten();
        if let Some((entry, _)) = &mut self.entry {
            entry.id = Some(value.to_owned());
            entry.url = entry.url.take().or(url);
        }
    }

    fn url(&mut self, value: &str) -> Option<UnresolvedFeedUrl> {
        match trimmed_url(value, self.limits) {
            Ok(href) => Some(UnresolvedFeedUrl::new(href?.to_owned(), self.xml.base())),
            Err(what) => {
                self.xml.note(what);
                None
            }
        }
    }

    fn finish_entry(&mut self) {
        if let Some((entry, _)) = self.entry.take() {
            self.feed.keep(entry, self.limits);
        }
    }
}

//! Feeds: RSS, Atom and JSON Feed.

mod json;
mod xml;

use crate::charset;
use crate::collapsed_text_builder::{CollapsedTextBuilder, trim};
use crate::reading_limits::{DocumentOddity, DocumentOddityKind, ReadingLimits, note};
pub use crate::unresolved_feed_url::UnresolvedFeedUrl;

/// The entries of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Feed {
    /// The format of the feed.
    pub kind: FeedKind,
    /// The title, with white space collapsed.
    pub title: Option<String>,
    /// The page that the feed belongs to.
    pub home: Option<UnresolvedFeedUrl>,
    /// The entries, in document order.
    pub entries: Vec<FeedEntry>,
    /// The URLs of documents with further entries: the next page of a paged feed, or the older part
    /// of an archived feed (RFC 5005 sections 3 and 4).
    pub next: Vec<UnresolvedFeedUrl>,
    /// Defects and omissions, each kind once.
    pub oddities: Vec<DocumentOddity>,
}

impl Feed {
    /// Returns the URLs outside of entries: the page that the feed belongs to, and documents with
    /// further entries.
    pub fn further_pages(&self) -> impl Iterator<Item = &UnresolvedFeedUrl> {
        self.home.iter().chain(&self.next)
    }
}

/// The format of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FeedKind {
    /// RSS 0.9x and 2.0.
    Rss2,
    /// RSS 0.90 and 1.0, which are RDF.
    Rss1,
    /// Atom (RFC 4287), and its draft 0.3.
    Atom,
    /// JSON Feed 1 and 1.1.
    Json,
    /// The document is not a feed and has no entries.
    Unknown,
}

/// An entry of a feed. All strings except URLs are free text by the author.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedEntry {
    /// The page that the entry is about.
    pub url: Option<UnresolvedFeedUrl>,
    /// The title, with white space collapsed. It may contain markup.
    pub title: Option<String>,
    /// The publication date, as written: RFC 3339, or RFC 822 in RSS 2.0.
    pub published: Option<String>,
    /// The date of the last change, as written.
    pub updated: Option<String>,
    /// The entry's id: `guid` in RSS 2.0, `rdf:about` in RSS 1.0, `id` in Atom and JSON Feed.
    pub id: Option<String>,
    /// Files that belong to the entry, such as the audio file of a podcast. Enclosures count as
    /// resources.
    pub enclosures: Vec<UnresolvedFeedUrl>,
}

/// Reads the entries of the feed in `body`, whose content coding is already removed. `content_type`
/// is the value of the `Content-Type` header.
///
/// Never fails: everything before a syntax error is kept. A body that begins with `{` is read as
/// JSON, any other as XML. An entry counts if it has a URL, a title or an id.
#[must_use]
pub fn read_feed(body: &[u8], content_type: Option<&str>, limits: &ReadingLimits) -> Feed {
    let mut feed = Feed {
        kind: FeedKind::Unknown,
        title: None,
        home: None,
        entries: Vec::new(),
        next: Vec::new(),
        oddities: Vec::new(),
    };
    let is_json = is_json(body);
    let (encoding, skip) = if is_json {
        charset::of_json(body)
    } else {
        charset::of_xml(body, content_type)
    };
    let body = &body[skip..];
    if body.len() > limits.feed_bytes {
        note(&mut feed.oddities, DocumentOddityKind::FeedTooLong, 1);
    }
    let body = &body[..body.len().min(limits.feed_bytes)];
    let (text, undecodable) = encoding.decode_without_bom_handling(body);
    if undecodable {
        note(&mut feed.oddities, DocumentOddityKind::UndecodableBytes, 1);
    }
    if is_json {
        json::read(&text, limits, &mut feed);
    } else {
        xml::read(&text, limits, &mut feed);
    }
    feed
}

/// Returns whether the first byte that is not white space begins a JSON object.
fn is_json(body: &[u8]) -> bool {
    let (encoding, skip) = charset::of_json(body);
    // In UTF-16, each ASCII character has a NUL byte, so skip NULs.
    let is_wide = encoding != encoding_rs::UTF_8;
    let mut bytes = body[skip..].iter().filter(|byte| !is_wide || **byte != 0);
    bytes.find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// Maximum bytes of a date, a `rel` or an `isPermaLink`; longer values are dropped.
const MAX_HINT_BYTES: usize = 128;
/// Maximum number of enclosures to keep per entry.
/// Beyond the limit: ignored.
const MAX_ENCLOSURES: usize = 16;
/// Maximum number of further parts of a feed to keep.
/// Beyond the limit: ignored.
const MAX_NEXT_PAGES: usize = 4;

impl FeedEntry {
    /// Returns whether the entry has a URL, a title or an id.
    fn counts(&self) -> bool {
        self.url.is_some() || self.title.is_some() || self.id.is_some()
    }
}

impl Feed {
    /// Keeps an entry that has a URL, a title or an id. Returns false if the limit on entries is
    /// reached.
    fn keep(&mut self, entry: FeedEntry, limits: &ReadingLimits) -> bool {
        let has_room = self.entries.len() < limits.feed_entries;
        if entry.counts() && has_room {
            self.entries.push(entry);
            return true;
        }
        !entry.counts()
    }
}

/// Returns `value` (a date) trimmed, unless it is empty or longer than [`MAX_HINT_BYTES`].
fn hint(value: &str) -> Option<String> {
    let value = trim(value);
    (!value.is_empty() && value.len() <= MAX_HINT_BYTES).then(|| value.to_owned())
}

/// Returns text with white space collapsed, cut at `bytes`.
fn collapsed(value: &str, bytes: usize) -> Option<String> {
    let mut text = CollapsedTextBuilder::new(bytes);
    text.push(value);
    text.take().0
}

/// Returns a trimmed URL, `None` if it is empty, or an error if it is too long.
fn trimmed_url<'a>(
    value: &'a str,
    limits: &ReadingLimits,
) -> Result<Option<&'a str>, DocumentOddityKind> {
    let value = trim(value);
    if value.len() > limits.href_bytes {
        return Err(DocumentOddityKind::HrefTooLong);
    }
    Ok((!value.is_empty()).then_some(value))
}

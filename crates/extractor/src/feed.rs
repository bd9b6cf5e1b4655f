//! Feeds: RSS, Atom and JSON Feed.

mod json;
mod xml;

use crate::charset;
pub use crate::feed_url::FeedUrl;
use crate::limits::{DocumentOddity, DocumentOddityKind, Limits, note};
use crate::text::{Collapsed, trim};

/// The entries of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Feed {
    /// Its format.
    pub kind: FeedKind,
    /// Its title, white space collapsed.
    pub title: Option<String>,
    /// The page that it is the feed of.
    pub home: Option<FeedUrl>,
    /// Its entries, in the order of the document.
    pub entries: Vec<FeedEntry>,
    /// The addresses of further entries: the next page of a paged feed, the older part of an
    /// archived one (RFC 5005 sections 3 and 4).
    pub next: Vec<FeedUrl>,
    /// Defects, and parts that were left out, each kind once.
    pub oddities: Vec<DocumentOddity>,
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
    /// The document is no feed; it has no entries.
    Unknown,
}

/// An entry of a feed. All but addresses are words of the feed's author.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedEntry {
    /// The page that it speaks of.
    pub url: Option<FeedUrl>,
    /// Its title, white space collapsed; it may hold markup.
    pub title: Option<String>,
    /// The date of its publication, as written: RFC 3339, in RSS 2.0 RFC 822.
    pub published: Option<String>,
    /// The date of its last change, as written.
    pub updated: Option<String>,
    /// The id that tells it from others.
    pub id: Option<String>,
    /// Files that belong to it, such as the sound of a podcast. They are resources.
    pub enclosures: Vec<FeedUrl>,
}

/// Reads the entries of the feed in `body`; content codings are undone already. `content_type`
/// is the value of its header.
///
/// Never fails: of a broken feed, what stands before the break is kept. What begins with `{`
/// is read as JSON, all else as XML. An entry counts where it has an address, a title or an
/// id.
#[must_use]
pub fn read_feed(body: &[u8], content_type: Option<&str>, limits: &Limits) -> Feed {
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

/// Returns whether the first byte that says something is that of a JSON object.
fn is_json(body: &[u8]) -> bool {
    let (encoding, skip) = charset::of_json(body);
    // Of UTF-16, the other half of each pair is NUL.
    let wide = encoding != encoding_rs::UTF_8;
    let mut bytes = body[skip..].iter().filter(|byte| !wide || **byte != 0);
    bytes.find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// Dates and media types are short; a longer one is none.
const MAX_HINT_BYTES: usize = 128;
/// Files kept of one entry.
const MAX_ENCLOSURES: usize = 16;
/// Further parts of a feed that are kept.
const MAX_NEXT_PAGES: usize = 4;

impl FeedEntry {
    /// Returns whether there is anything to tell it by.
    fn counts(&self) -> bool {
        self.url.is_some() || self.title.is_some() || self.id.is_some()
    }
}

impl Feed {
    /// Keeps an entry; false where there is no room for it.
    fn keep(&mut self, entry: FeedEntry, limits: &Limits) -> bool {
        let room = self.entries.len() < limits.feed_entries;
        if entry.counts() && room {
            self.entries.push(entry);
            return true;
        }
        !entry.counts()
    }
}

/// A date, if it is no longer than one can be.
fn hint(value: &str) -> Option<String> {
    let value = trim(value);
    (!value.is_empty() && value.len() <= MAX_HINT_BYTES).then(|| value.to_owned())
}

/// Text with its white space collapsed.
fn collapsed(value: &str, bytes: usize) -> Option<String> {
    let mut text = Collapsed::new(bytes);
    text.push(value);
    text.take().0
}

/// An address as it is kept, or that it is too long; nothing where it is empty.
fn address<'a>(value: &'a str, limits: &Limits) -> Result<Option<&'a str>, DocumentOddityKind> {
    let value = trim(value);
    if value.len() > limits.href_bytes {
        return Err(DocumentOddityKind::HrefTooLong);
    }
    Ok((!value.is_empty()).then_some(value))
}

//! Which pages may be indexed, and what of them.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crawl_extractor::{BlockPlace, Content, LinkKind, Page as ExtractedPage};
use crawl_policy::PageDirectives;
use crawl_weburl::CanonicalUrl;
use foldhash::fast::RandomState;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::missing_page::says_missing;
use crate::words::{Stemmer, Words};
use crawl_index_entry::{Anchor, Heading, IndexedPage};

/// Links of a page that are kept with their words; of more the first.
const MAX_LINKS: usize = 400;
/// Characters of a link's words, and of a heading.
const MAX_NAME_CHARS: usize = 200;
/// The heading of the line that says what a manual page describes, in the languages that have most
/// of them.
const NAME_HEADINGS: [&str; 12] = [
    "name",
    "bezeichnung",
    "nom",
    "nombre",
    "nome",
    "naam",
    "nazwa",
    "navn",
    "\u{438}\u{43c}\u{44f}",
    "\u{540d}\u{524d}",
    "\u{540d}\u{79f0}",
    "\u{540d}\u{7a31}",
];
/// That line is among so many blocks of the page, or lines of one, and headings, the title being one
/// of them.
const MAX_BEFORE_NAME: usize = 12;
const MAX_HEADINGS_BEFORE_NAME: usize = 3;
/// The dashes between the name and the words in that line.
const NAME_DASHES: [&str; 3] = [" - ", " \u{2013} ", " \u{2014} "];
/// Bytes of main text that are indexed; of more the beginning.
const MAX_TEXT_BYTES: usize = 2 << 20;
/// Bytes of text beside it.
const MAX_BESIDE_BYTES: usize = 256 << 10;

/// A page that came, as it was read.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "it holds a closure")]
pub struct FetchedDocument<'a> {
    /// Its URL.
    pub url: &'a CanonicalUrl,
    /// When, in seconds since 1970 UTC.
    pub at: i64,
    /// Its links and METAs.
    pub page: &'a ExtractedPage,
    /// The content of the page.
    pub content: &'a Content,
    /// The directives for robots of the page and its headers.
    pub directives: &'a PageDirectives,
    /// The statement by which its site refuses that it is used for a search index.
    pub search_refused: Option<&'a str>,
    /// The value of its `Content-Type` header.
    pub content_type: Option<&'a str>,
    /// The address that a `Link` header calls canonical (RFC 8288, RFC 6596).
    pub linked_canonical: Option<&'a str>,
    /// Tells whether this crawl asks for a URL.
    pub is_in_crawl: &'a dyn Fn(&CanonicalUrl) -> bool,
}

/// The reason why a page is not in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotIndexed {
    /// It, its headers or its META ROBOTS say `noindex`.
    Noindex(String),
    /// Its time is over (`unavailable_after`).
    Unavailable(String),
    /// Its site does not want it in a search index.
    Usage(String),
    /// It only says that there is no such page.
    SoftMissing,
    /// It has no title and no text but what leads to other pages.
    Empty,
}

impl NotIndexed {
    /// A short fixed name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            NotIndexed::Noindex(_) => "noindex",
            NotIndexed::Unavailable(_) => "unavailable_after",
            NotIndexed::Usage(_) => "usage",
            NotIndexed::SoftMissing => "soft_404",
            NotIndexed::Empty => "empty",
        }
    }
}

impl fmt::Display for NotIndexed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotIndexed::Noindex(by) | NotIndexed::Unavailable(by) | NotIndexed::Usage(by) => {
                write!(f, "{}: {by}", self.name())
            }
            NotIndexed::SoftMissing | NotIndexed::Empty => f.write_str(self.name()),
        }
    }
}

/// Gives the URL of a base and an address, where they make one.
pub type ResolveLink<'a> = dyn FnMut(&CanonicalUrl, &str) -> Option<CanonicalUrl> + 'a;

/// The page as it is indexed, or why it is not. `resolve` gives the URL that an address leads to
/// from a base, if any: who reads many pages remembers them.
///
/// # Errors
/// [`NotIndexed`], which is an answer, and no failure.
pub fn judge(
    came: &FetchedDocument<'_>,
    resolve: &mut ResolveLink<'_>,
) -> Result<IndexedPage, NotIndexed> {
    let directives = came.directives;
    if let Some(source) = &directives.noindex {
        return Err(NotIndexed::Noindex(source.to_string()));
    }
    let until = directives.unavailable_after.as_ref();
    if let Some(until) = until.filter(|until| until.value <= came.at) {
        return Err(NotIndexed::Unavailable(until.source.to_string()));
    }
    if let Some(statement) = came.search_refused {
        return Err(NotIndexed::Usage(statement.to_owned()));
    }
    let canonical = came.page.stands_elsewhere(came.url, came.linked_canonical);
    let is_in_crawl = canonical
        .as_ref()
        .is_some_and(|url| (came.is_in_crawl)(url));
    let canonical = canonical.map(|url| url.to_string());
    // A copy of a site, on a test server say, is searched as it is.
    let (gives_way_to, canonical) = match is_in_crawl {
        true => (canonical, None),
        false => (None, canonical),
    };
    let content = came.content;
    let (text, beside, headings) = texts_and_headings(content);
    let title = content.title.clone().unwrap_or_default();
    if [&title, &text, &beside]
        .iter()
        .all(|text| text.trim().is_empty())
    {
        return Err(NotIndexed::Empty);
    }
    let heading = headings.first().map_or("", |heading| heading.text.as_str());
    if says_missing(&title, heading, &text) {
        return Err(NotIndexed::SoftMissing);
    }
    let snippet = directives.max_snippet.as_ref().map(|most| most.value);
    let snippet = match directives.nosnippet {
        Some(_) => Some(0),
        None => snippet.and_then(|most| u32::try_from(most).ok()),
    };
    Ok(IndexedPage {
        url: came.url.to_string(),
        description: description(content, &title),
        title,
        headings,
        text,
        beside,
        keywords: content.keywords.clone(),
        authors: content.authors.clone(),
        section: content.section.clone(),
        language: content.language.code(),
        published: content.published().map(|date| date.moment.unix_seconds),
        modified: content.modified().map(|date| date.moment.unix_seconds),
        fetched_at: came.at,
        until: until.map(|until| until.value),
        max_snippet: snippet,
        document_type: document_type(came.content_type, came.url.path()).to_owned(),
        canonical,
        // Until the run ends, the page waits for the other one.
        same_as: gives_way_to.clone(),
        gives_way_to,
        links: links(came, &came.page.base_url(came.url), resolve),
        ..IndexedPage::default()
    })
}

/// The page's description; where it has none, the line near its beginning that says what it
/// describes: a name, a dash, and a purpose. The name is one of the title or of a heading before
/// it, or it stands beneath `NAME` (man-pages(7)).
fn description(content: &Content, title: &str) -> String {
    if let Some(description) = content.description.as_ref() {
        return description.clone();
    }
    let mut known = words_of(title);
    let (mut headings, mut is_beneath_name) = (0, false);
    for block in content.blocks.iter().take(MAX_BEFORE_NAME) {
        let is_heading = block.kind.level().is_some();
        headings += usize::from(is_heading);
        if headings > MAX_HEADINGS_BEFORE_NAME {
            break;
        }
        // Manual pages that were written for a terminal are one block of many lines.
        let text = content.text_of(block);
        let has_lines = text.contains('\n');
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty()).take(MAX_BEFORE_NAME) {
            let mut dashes = NAME_DASHES.iter();
            let parts = dashes.find_map(|dash| line.split_once(dash));
            let says = |(name, purpose)| {
                let (name, purpose) = (words_of(name), words_of(purpose));
                let is_known = !name.is_empty() && name.is_subset(&known);
                (is_known || is_beneath_name) && !purpose.is_subset(&known)
            };
            if !is_heading && parts.is_some_and(says) {
                return beginning(line, MAX_NAME_CHARS).to_owned();
            }
            // A table may have a column of that name.
            is_beneath_name =
                (is_heading || has_lines) && NAME_HEADINGS.contains(&line.to_lowercase().as_str());
            if is_heading {
                known.extend(words_of(line));
            }
        }
    }
    String::new()
}

fn words_of(text: &str) -> HashSet<String> {
    Words::new(text, Stemmer::none())
        .map(|word| word.text)
        .collect()
}

/// The kind of a document that was read, by its header; where that says nothing, by the end of its
/// path.
fn document_type(content_type: Option<&str>, path: &str) -> &'static str {
    let essence = content_type.and_then(|value| value.split(';').next());
    let essence = essence.unwrap_or_default().trim().to_ascii_lowercase();
    let path = path.split('?').next().unwrap_or_default();
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    match essence.as_str() {
        "application/pdf" | "application/x-pdf" => "pdf",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "text/markdown" | "text/x-markdown" => "markdown",
        "text/plain" | "application/octet-stream" | "application/zip" | "" => {
            match ending.to_ascii_lowercase().as_str() {
                "pdf" => "pdf",
                "docx" => "docx",
                "md" | "markdown" => "markdown",
                "txt" | "text" => "text",
                _ if essence == "text/plain" => "text",
                _ => "html",
            }
        }
        _ => "html",
    }
}

/// The main text and the text beside it, a line for each block, and all headings: those in the
/// main text with their place.
fn texts_and_headings(content: &Content) -> (String, String, Vec<Heading>) {
    let (mut text, mut beside) = (String::new(), String::new());
    let mut headings = Vec::new();
    for block in &content.blocks {
        let words = content.text_of(block);
        if let Some(level) = block.kind.level().filter(|_| !words.trim().is_empty()) {
            headings.push(Heading {
                level,
                text: beginning(words, MAX_NAME_CHARS).to_owned(),
                id: block.id.as_deref().map(str::to_owned),
                at: text.len(),
            });
        }
        match block.place {
            BlockPlace::Main => add_line(&mut text, words, MAX_TEXT_BYTES),
            // A heading is looked up as one already.
            BlockPlace::Beside if block.kind.level().is_none() => {
                add_line(&mut beside, words, MAX_BESIDE_BYTES);
            }
            _ => {}
        }
    }
    (text, beside, headings)
}

fn add_line(text: &mut String, line: &str, most: usize) {
    if text.len() < most {
        if !text.is_empty() {
            text.push('\n');
        }
        let room = line.floor_char_boundary(most - text.len());
        text.push_str(&line[..room]);
    }
}

/// Each page that is linked to, under each name once.
fn links(
    came: &FetchedDocument<'_>,
    base: &CanonicalUrl,
    resolve: &mut ResolveLink<'_>,
) -> Vec<Anchor> {
    let mut links: Vec<Anchor> = Vec::new();
    // The place of each link by its hash, which spares a copy of it.
    let mut seen: HashMap<u64, usize, RandomState> = HashMap::default();
    for link in &came.page.links {
        if link.kind != LinkKind::Page || links.len() >= MAX_LINKS {
            continue;
        }
        let Some(url) = resolve(base, &link.href).filter(|url| url != came.url) else {
            continue;
        };
        let text = link.text.as_deref().unwrap_or_default();
        let text = beginning(text.trim_matches(is_ornament), MAX_NAME_CHARS);
        let hash = xxh3_64_with_seed(text.as_bytes(), xxh3_64(url.as_str().as_bytes()));
        let known = seen.get(&hash).map(|at| &links[*at]);
        if known.is_none_or(|known| known.url != url.as_str() || known.text != text) {
            seen.insert(hash, links.len());
            links.push(Anchor {
                url: url.as_str().to_owned(),
                text: text.to_owned(),
            });
        }
    }
    links
}

/// Arrows, pilcrows and the like around a link's words.
fn is_ornament(c: char) -> bool {
    !c.is_alphanumeric() && !matches!(c, '+' | '#' | '(' | ')')
}

fn beginning(text: &str, chars: usize) -> &str {
    let end = text
        .char_indices()
        .nth(chars)
        .map_or(text.len(), |(at, _)| at);
    &text[..end]
}

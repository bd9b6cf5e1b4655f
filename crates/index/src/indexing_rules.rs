//! Decides which pages may be indexed, and which parts of a page are indexed.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crawl_extractor::{Block, BlockRole, ExtractedPage, LinkKind, PageContent};
use crawl_policy::PageDirectives;
use crawl_weburl::CanonicalUrl;
use foldhash::fast::RandomState;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::soft_404::says_missing;
use crate::words::{Stemmer, WordIterator};
use crawl_index_entry::{Heading, IndexedPage, OutgoingLink};

/// Maximum links of a page to keep with their texts; the first ones are kept.
/// Beyond the limit: ignored.
const MAX_LINKS: usize = 400;
/// Maximum characters of a link text or heading.
const MAX_NAME_CHARS: usize = 200;
/// Headings above the name and short description in a manual page, in the languages with the most
/// manual pages.
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
/// Maximum number of blocks to search for the line that describes a manual page, and of lines to
/// search in each block.
const MAX_BEFORE_NAME: usize = 12;
/// Maximum number of headings before the line that describes a manual page, including the title.
const MAX_HEADINGS_BEFORE_NAME: usize = 3;
/// The dashes that may separate the name and the description of a manual page.
const NAME_DASHES: [&str; 3] = [" - ", " \u{2013} ", " \u{2014} "];
/// Maximum bytes of main text to index; the beginning is kept.
/// Beyond the limit: the beginning is indexed.
const MAX_TEXT_BYTES: usize = 2 << 20;
/// Maximum bytes of a page's `data-nosnippet` text that each link text is searched in.
/// Beyond the limit: no link text is used.
const MAX_COMPARED_BYTES: usize = 64 << 10;
/// Maximum bytes of text outside the main text to index.
/// Beyond the limit: the beginning is indexed.
const MAX_BESIDE_BYTES: usize = 256 << 10;

/// A fetched page after parsing, with everything that decides whether and how it is indexed.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "it holds a closure")]
pub struct IndexingCandidate<'a> {
    /// The URL of the page.
    pub url: &'a CanonicalUrl,
    /// When the page was fetched, in seconds since 1970 UTC.
    pub at: i64,
    /// The links and meta elements of the page.
    pub page: &'a ExtractedPage,
    /// The content of the page.
    pub content: &'a PageContent,
    /// The robots directives of the page and its headers.
    pub directives: &'a PageDirectives,
    /// The site's usage statement if it refuses inclusion in a search index; otherwise `None`.
    pub search_refused: Option<&'a str>,
    /// The value of the `Content-Type` header.
    pub content_type: Option<&'a str>,
    /// The URL that a `Link` header declares canonical (RFC 8288, RFC 6596).
    pub linked_canonical: Option<&'a str>,
    /// Returns whether a URL belongs to this crawl.
    pub is_in_crawl: &'a dyn Fn(&CanonicalUrl) -> bool,
}

/// The reason why a page is not in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotIndexedReason {
    /// The page or its headers contain the robots directive `noindex`.
    Noindex(String),
    /// The page has expired (`unavailable_after`).
    Unavailable(String),
    /// The site refuses use in a search index.
    Usage(String),
    /// The page is an error page for a missing page, sent with a success status.
    SoftMissing,
    /// The page has no title, and no text except links to other pages.
    Empty,
}

impl NotIndexedReason {
    /// Returns a short name of the reason, which never changes.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            NotIndexedReason::Noindex(_) => "noindex",
            NotIndexedReason::Unavailable(_) => "unavailable_after",
            NotIndexedReason::Usage(_) => "usage",
            NotIndexedReason::SoftMissing => "soft_404",
            NotIndexedReason::Empty => "empty",
        }
    }
}

impl fmt::Display for NotIndexedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotIndexedReason::Noindex(by)
            | NotIndexedReason::Unavailable(by)
            | NotIndexedReason::Usage(by) => {
                write!(f, "{}: {by}", self.name())
            }
            NotIndexedReason::SoftMissing | NotIndexedReason::Empty => f.write_str(self.name()),
        }
    }
}

/// Resolves a URL reference against a base. `None` if the result is not a usable URL.
pub type LinkResolver<'a> = dyn FnMut(&CanonicalUrl, &str) -> Option<CanonicalUrl> + 'a;

/// Returns the page as it should be indexed. `resolve` resolves URL references; a caller that
/// judges many pages can cache the results.
///
/// # Errors
/// [`NotIndexedReason`] if the page must not be indexed. This is a decision, not a failure.
pub fn judge(
    fetched: &IndexingCandidate<'_>,
    resolve: &mut LinkResolver<'_>,
) -> Result<IndexedPage, NotIndexedReason> {
    let directives = fetched.directives;
    if let Some(source) = &directives.noindex {
        return Err(NotIndexedReason::Noindex(source.to_string()));
    }
    let until = directives.unavailable_after.as_ref();
    if let Some(until) = until.filter(|until| until.value <= fetched.at) {
        return Err(NotIndexedReason::Unavailable(until.source.to_string()));
    }
    if let Some(statement) = fetched.search_refused {
        return Err(NotIndexedReason::Usage(statement.to_owned()));
    }
    let canonical = fetched
        .page
        .stands_elsewhere(fetched.url, fetched.linked_canonical);
    // Browsers don't stay on a page with an immediate redirect. So index the target in its place,
    // like a canonical URL.
    let target = fetched.page.redirects_to(fetched.url);
    let canonical = canonical.or(target.filter(|url| (fetched.is_in_crawl)(url)));
    let is_in_crawl = canonical
        .as_ref()
        .is_some_and(|url| (fetched.is_in_crawl)(url));
    let canonical = canonical.map(|url| url.to_string());
    // If the canonical URL is outside the crawl, index the page under its own URL. The crawled site
    // may be a copy, such as a test server, whose canonical URLs lead to the original site.
    let (gives_way_to, canonical) = match is_in_crawl {
        true => (canonical, None),
        false => (None, canonical),
    };
    let content = fetched.content;
    let PageTexts {
        text,
        beside,
        withheld,
        headings,
        ..
    } = PageTexts::of(content);
    let title = content.title.clone().unwrap_or_default();
    let headings_text = headings.iter().map(|heading| &heading.text);
    if [&title, &text, &beside, &withheld]
        .into_iter()
        .chain(headings_text)
        .all(|text| text.trim().is_empty())
    {
        return Err(NotIndexedReason::Empty);
    }
    let heading = headings.first().map_or("", |heading| heading.text.as_str());
    if says_missing(&title, heading, &text) {
        return Err(NotIndexedReason::SoftMissing);
    }
    let snippet = directives.max_snippet.as_ref().map(|most| most.value);
    let snippet = match directives.nosnippet {
        Some(_) => Some(0),
        None => snippet.and_then(|most| u32::try_from(most).ok()),
    };
    Ok(IndexedPage {
        url: fetched.url.to_string(),
        description: description(content, &title),
        title,
        headings,
        text,
        beside,
        withheld,
        keywords: content.keywords.clone(),
        authors: content.authors.clone(),
        section: content.section.clone(),
        language: content.language.code(),
        published: content.published().map(|date| date.moment.unix_seconds),
        modified: content.modified().map(|date| date.moment.unix_seconds),
        fetched_at: fetched.at,
        until: until.map(|until| until.value),
        max_snippet: snippet,
        document_type: document_type(fetched.content_type, fetched.url.path()).to_owned(),
        canonical,
        // Whether the canonical page is in the index is known only at the end of the run. Until
        // then, treat this page as its duplicate.
        same_as: gives_way_to.clone(),
        gives_way_to,
        links: links(fetched, &fetched.page.base_url(fetched.url), resolve),
        ..IndexedPage::default()
    })
}

/// Returns the description that the page declares. Without one, returns the line near the start of
/// the page that describes it: a name, a dash, and a purpose. Such a line is used only if the name
/// is part of the title or of an earlier heading, or if the line follows the heading `NAME`
/// (man-pages(7)).
fn description(content: &PageContent, title: &str) -> String {
    if let Some(description) = content.description.as_ref() {
        return description.clone();
    }
    let mut known_words = words_of(title);
    let (mut headings, mut is_beneath_name) = (0, false);
    for block in content.blocks.iter().take(MAX_BEFORE_NAME) {
        let is_heading = block.kind.level().is_some();
        headings += usize::from(is_heading);
        if headings > MAX_HEADINGS_BEFORE_NAME {
            break;
        }
        // If a manual page is formatted for a terminal, a single block contains many lines.
        let text = content.quotable_text_of(block);
        let has_lines = text.contains('\n');
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty()).take(MAX_BEFORE_NAME) {
            let mut dashes = NAME_DASHES.iter();
            let parts = dashes.find_map(|dash| line.split_once(dash));
            let says = |(name, purpose)| {
                let (name, purpose) = (words_of(name), words_of(purpose));
                let is_known = !name.is_empty() && name.is_subset(&known_words);
                (is_known || is_beneath_name) && !purpose.is_subset(&known_words)
            };
            if !is_heading && parts.is_some_and(says) {
                return beginning(line, MAX_NAME_CHARS).to_owned();
            }
            // A line `NAME` that is alone in its block counts only if it is a heading, because it
            // may also be a column name in a table.
            is_beneath_name =
                (is_heading || has_lines) && NAME_HEADINGS.contains(&line.to_lowercase().as_str());
            if is_heading {
                known_words.extend(words_of(line));
            }
        }
    }
    String::new()
}

fn words_of(text: &str) -> HashSet<String> {
    WordIterator::new(text, Stemmer::none())
        .map(|word| word.text)
        .collect()
}

/// Returns the type of a document. The file extension decides if the `Content-Type` is missing or
/// says little (plain text, octet stream, ZIP). Unknown types are `html`, except for plain text.
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

/// The texts of a page, each with one line per block, and its headings.
#[derive(Default)]
struct PageTexts<'c> {
    /// The main text.
    text: String,
    /// The text outside the main text.
    beside: String,
    /// The text that snippets must not contain.
    withheld: String,
    headings: Vec<Heading>,
    /// The ids of the headings. Browsers go to the first element with an id.
    ids: HashSet<&'c str>,
}

impl<'c> PageTexts<'c> {
    fn of(content: &'c PageContent) -> PageTexts<'c> {
        let mut texts = PageTexts::default();
        for block in &content.blocks {
            texts.add(content, block);
        }
        texts
    }

    fn add(&mut self, content: &PageContent, block: &'c Block) {
        let PageTexts {
            text,
            beside,
            withheld,
            headings,
            ids,
        } = self;
        for words in content.withheld_text_of(block) {
            if block.place != BlockRole::Navigation {
                add_line(withheld, words.trim(), MAX_TEXT_BYTES);
            }
        }
        let words = content.quotable_text_of(block);
        if words.is_empty() {
            return;
        }
        let words = words.as_ref();
        if let Some(level) = block.kind.level().filter(|_| !words.trim().is_empty()) {
            let id = block.id.as_deref().filter(|id| ids.insert(*id));
            headings.push(Heading {
                level,
                text: beginning(words, MAX_NAME_CHARS).to_owned(),
                id: id.map(str::to_owned),
                at: text.len(),
            });
        }
        match block.place {
            BlockRole::Main => add_line(text, words, MAX_TEXT_BYTES),
            // Headings are indexed separately, so leave them out.
            BlockRole::Beside if block.kind.level().is_none() => {
                add_line(beside, words, MAX_BESIDE_BYTES);
            }
            _ => {}
        }
    }
}

fn add_line(text: &mut String, line: &str, max_bytes: usize) {
    if text.len() < max_bytes {
        if !text.is_empty() {
            text.push('\n');
        }
        let room = line.floor_char_boundary(max_bytes - text.len());
        text.push_str(&line[..room]);
    }
}

/// Returns the links to other pages. Links with the same target and text are returned once. A
/// link's text is left out if snippets must not contain it.
fn links(
    fetched: &IndexingCandidate<'_>,
    base: &CanonicalUrl,
    resolve: &mut LinkResolver<'_>,
) -> Vec<OutgoingLink> {
    let content = fetched.content;
    let withheld = content.withheld.iter().cloned();
    let withheld = withheld.filter_map(|range| content.visible_text().get(range));
    let withheld: Vec<&str> = withheld.collect();
    let is_comparable = withheld.iter().map(|text| text.len()).sum::<usize>() <= MAX_COMPARED_BYTES;
    let mut links: Vec<OutgoingLink> = Vec::new();
    // Maps the hash of each link to its index in `links`. Storing hashes avoids copies of the
    // links.
    let mut link_places: HashMap<u64, usize, RandomState> = HashMap::default();
    for link in &fetched.page.links {
        if link.kind != LinkKind::Page || links.len() >= MAX_LINKS {
            continue;
        }
        let Some(url) = resolve(base, &link.href).filter(|url| url != fetched.url) else {
            continue;
        };
        let text = link.text.as_deref().unwrap_or_default();
        let text = beginning(text.trim_matches(is_ornament), MAX_NAME_CHARS);
        let is_withheld = !is_comparable || withheld.iter().any(|part| part.contains(text));
        let text = if is_withheld { "" } else { text };
        let hash = xxh3_64_with_seed(text.as_bytes(), xxh3_64(url.as_str().as_bytes()));
        let duplicate = link_places.get(&hash).map(|at| &links[*at]);
        if duplicate.is_none_or(|duplicate| duplicate.url != url.as_str() || duplicate.text != text)
        {
            link_places.insert(hash, links.len());
            links.push(OutgoingLink {
                url: url.as_str().to_owned(),
                text: text.to_owned(),
            });
        }
    }
    links
}

/// Returns true if a character at the start or end of a link text is trimmed as decoration, such as
/// an arrow or a pilcrow.
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

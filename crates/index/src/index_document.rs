//! Converts a page into an index document.

use crawl_weburl::host_and_port;
use tantivy::TantivyDocument;
use tantivy::schema::{Document, Field};

use crawl_index_entry::BytesInTransitPermit;

use crate::facets::{ProductVersionKey, facet_values};
use crate::page_prior::worth;
use crate::page_tokenizer::of_language;
use crate::schema::{GIVES_WAY, IndexFields, KIND_DUPLICATE, KIND_PAGE, LEAVING};
use crate::words::{Stemmer, WordIterator};
use crawl_index_entry::IndexedPage;

/// Maximum number of folders in a path that `site:` can find.
const MAX_FOLDERS: usize = 16;
/// Number of words in the start of the main text. The start is also indexed in a separate field.
const LEAD_WORDS: usize = 60;

/// A document waiting to be tokenized. tantivy drops it once it has split the document into words,
/// which releases its bytes from the limit on waiting documents.
pub(crate) struct QueuedDocument {
    pub(crate) document: TantivyDocument,
    pub(crate) _pass: BytesInTransitPermit,
}

impl Document for QueuedDocument {
    type Value<'a> = <TantivyDocument as Document>::Value<'a>;
    type FieldsValuesIter<'a> = <TantivyDocument as Document>::FieldsValuesIter<'a>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        self.document.iter_fields_and_values()
    }
}

/// Returns the approximate size of a page's document in bytes: the words to index, plus the stored
/// page.
pub(crate) fn document_bytes(page: &IndexedPage) -> usize {
    2 * page.bytes()
}

/// Converts a page to a tantivy document.
pub(crate) fn document(fields: &IndexFields, page: &IndexedPage) -> TantivyDocument {
    let mut document = TantivyDocument::new();
    document.add_text(fields.url, &page.url);
    // The page is stored as text, because tantivy would write bytes one at a time.
    let stored = serde_json::to_string(page).unwrap_or_default();
    document.add_text(fields.page, &stored);
    document.add_u64(fields.text_hash, page.text_hash());
    document.add_i64(fields.fetched_at, page.fetched_at);
    if page.leaving.is_some() {
        document.add_text(fields.leaving, LEAVING);
    }
    if page.gives_way_to.is_some() {
        document.add_text(fields.leaving, GIVES_WAY);
    }
    if page.same_as.is_some() {
        document.add_text(fields.kind, KIND_DUPLICATE);
        return document;
    }
    document.add_text(fields.kind, KIND_PAGE);
    document.add_text(fields.host, page.host());
    for site in sites(page) {
        document.add_text(fields.site, site);
    }
    for folder in folders(page) {
        document.add_text(fields.site, folder);
    }
    document.add_text(fields.language, page.language.as_deref().unwrap_or(""));
    for value in facet_values(page) {
        document.add_text(fields.facet, value);
    }
    if let Some(mark) = ProductVersionKey::of(page) {
        document.add_u64(fields.version_mark, mark.0);
    }
    if let Some(until) = page.until {
        document.add_i64(fields.until, until);
    }
    document.add_u64(fields.linked, power_of_two(page.linked_from));
    document.add_u64(fields.worth, worth(page));
    texts(fields, page, &mut document);
    document
}

/// Returns the number of binary digits of `count`: 0 for 0, 1 for 1, 2 for 2 and 3, 3 for 4 to 7.
pub(crate) fn power_of_two(count: u32) -> u64 {
    u64::from(u32::BITS - count.leading_zeros())
}

/// Returns the values that `site:` accepts for a page: its host, each domain that contains the
/// host, each folder, and the page's own path. If the host has a port, the host, the folders and
/// the path also count without it.
pub(crate) fn sites(page: &IndexedPage) -> Vec<String> {
    let host = page.host().to_lowercase();
    let mut hosts = vec![host.as_str()];
    if let (name, Some(_)) = host_and_port(&host) {
        hosts.push(name);
    }
    let mut sites: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut rest = host.as_str();
    while let Some((_, parent)) = rest.split_once('.') {
        sites.push(parent.to_owned());
        rest = parent;
    }
    let path = page.path();
    let path = path.split('?').next().unwrap_or_default();
    let ends = path.match_indices('/').skip(1).take(MAX_FOLDERS);
    for end in ends.map(|(at, _)| at).chain([path.len()]) {
        sites.extend(hosts.iter().map(|host| format!("{host}{}", &path[..end])));
    }
    sites
}

/// Returns the folders of a page's path and the path itself, as a filter may name them without a
/// host: `/docs`, `/docs/tea`.
fn folders(page: &IndexedPage) -> impl Iterator<Item = &str> {
    let path = page.path();
    let path = path.split('?').next().unwrap_or_default();
    let ends = path.match_indices('/').skip(1).take(MAX_FOLDERS);
    let ends = ends.map(|(at, _)| at).chain([path.len()]);
    ends.map(|at| path[..at].trim_end_matches('/'))
        .filter(|folder| !folder.is_empty())
}

fn texts(fields: &IndexFields, page: &IndexedPage, document: &mut TantivyDocument) {
    let language = page.language.as_deref();
    let stemmer = Stemmer::of(language);
    let texts = &fields.texts;
    let mut add = |field: Field, text: &str| {
        // Skip texts without words, because they would change the positions of the words in the
        // next text.
        if WordIterator::new(text, stemmer).make_ready() {
            document.add_text(field, of_language(language, text));
        }
    };
    add(texts.title, &page.title);
    for heading in &page.headings {
        let level = usize::from(heading.level.clamp(1, 3)) - 1;
        add(texts.headings[level], &heading.text);
    }
    add(texts.description, &page.description);
    for keyword in &page.keywords {
        add(texts.keywords, keyword);
    }
    for anchor in &page.anchors {
        add(texts.anchors, anchor);
    }
    add(texts.path, &path_words(page.path()));
    add(texts.lead, lead(&page.text, stemmer));
    add(texts.body, &page.text);
    add(texts.beside, &page.beside);
    add(texts.beside, &page.withheld);
}

/// Returns the beginning of a text, up to and including its [`LEAD_WORDS`]th word.
fn lead(text: &str, stemmer: Stemmer) -> &str {
    let (mut words, mut end) = (WordIterator::new(text, stemmer), 0);
    while let Some(word) = words.next_borrowed()
        && word.position < LEAD_WORDS
    {
        end = end.max(word.range.end);
    }
    &text[..end]
}

/// Splits a path into words, without the file extension.
pub(crate) fn path_words(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let path = match path.rsplit_once('.') {
        Some((stem, ending)) if ending.len() <= 5 && !ending.contains('/') => stem,
        _ => path,
    };
    path.replace(['/', '-', '_', '.', '+', '%'], " ")
}

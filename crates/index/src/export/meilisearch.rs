//! Writes documents for Meilisearch as JSON lines, one document for each section of a page.

use std::io::Write;

use serde::Serialize;
use serde_json::{Value, json};

use super::exported_page_metadata::{ExportedPageMetadata, ExportedSection, sections};
use super::page_ids_from_urls::hash_id;
use super::{ExportError, SearchEngineJsonExporter, line};
use crawl_index_entry::IndexedPage;

/// Maximum length of a document's text in bytes. A longer text is split, because Meilisearch
/// searches only the first 65,535 words of a field.
const MAX_TEXT_BYTES: usize = 64 << 10;

#[derive(Serialize)]
struct MeilisearchDocument<'p> {
    id: String,
    /// The key of the page, which all its sections share.
    page: &'p str,
    /// The URL of the section: the page's URL, with a fragment if the section has one.
    url: String,
    #[serde(flatten)]
    about: &'p ExportedPageMetadata<'p>,
    heading: &'p str,
    level: u8,
    /// The headings above the section, outermost first.
    above: Vec<&'p str>,
    text: &'p str,
    /// A piece of the text outside the main text. If it is not empty, `heading` and `text` are
    /// empty.
    #[serde(skip_serializing_if = "str::is_empty")]
    beside: &'p str,
    /// The position of the section in the page, from 0.
    position: usize,
    /// Dates in seconds since 1970 UTC, so that results can be sorted and filtered by date.
    #[serde(skip_serializing_if = "Option::is_none")]
    published_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_at: Option<i64>,
    fetched_at: i64,
}

/// Returns a sink that writes a line for each section of a page. Pages that have expired at the
/// time `now` (seconds since 1970 UTC) are left out. The primary key of the documents is `id`.
pub fn meilisearch<W: Write>(out: W, now: i64) -> SearchEngineJsonExporter<W> {
    SearchEngineJsonExporter::new(out, now, write_sections)
}

fn write_sections(out: &mut impl Write, page: &IndexedPage) -> Result<u64, ExportError> {
    let (about, key) = (ExportedPageMetadata::of(page), hash_id(&page.url));
    let mut above: Vec<(u8, &str)> = Vec::new();
    let mut records = 0;
    let beside = pieces(&page.beside).into_iter();
    let beside = beside.filter(|text| !text.is_empty());
    let sections = divided(page).into_iter().map(|section| (section, ""));
    let all = sections.chain(beside.map(|text| (NO_SECTION, text)));
    for (position, (section, beside)) in all.enumerate() {
        if !beside.is_empty() {
            above.clear();
        } else if section.level > 0 {
            above.retain(|(level, _)| *level < section.level);
        }
        let document = MeilisearchDocument {
            id: format!("{key}-{position}"),
            page: &key,
            url: address(page, &section),
            about: &about,
            heading: section.heading,
            level: section.level,
            above: above.iter().map(|(_, heading)| *heading).collect(),
            text: section.text,
            beside,
            position,
            published_at: page.published,
            modified_at: page.modified,
            fetched_at: page.fetched_at,
        };
        line(out, &document)?;
        if section.level > 0 && above.last() != Some(&(section.level, section.heading)) {
            above.push((section.level, section.heading));
        }
        records += 1;
    }
    Ok(records)
}

/// A section without heading and text.
const NO_SECTION: ExportedSection<'static> = ExportedSection {
    heading: "",
    level: 0,
    id: None,
    text: "",
};

/// Returns the settings that the Meilisearch index needs for these documents. Send them with `PATCH
/// /indexes/pages/settings`.
#[must_use]
pub fn meilisearch_settings() -> Value {
    json!({
        "searchableAttributes": [
            "title", "heading", "anchors", "keywords", "description", "above", "text", "beside",
            "path",
        ],
        "distinctAttribute": "page",
        "filterableAttributes": [
            "host", "folders", "language", "level", "modified_at", "published_at", "fetched_at",
        ],
        "sortableAttributes": ["modified_at", "published_at", "fetched_at", "linked_from"],
        "rankingRules": [
            "words", "typo", "proximity", "attribute", "exactness", "sort", "linked_from:desc",
            "position:asc",
        ],
    })
}

/// Returns the sections of a page. Long sections are split into several with the same heading, so
/// that Meilisearch searches each completely. A page without sections gets an empty one, so that
/// its title can be found.
fn divided(page: &IndexedPage) -> Vec<ExportedSection<'_>> {
    let mut divided = Vec::new();
    for section in sections(page) {
        let texts = pieces(section.text).into_iter();
        divided.extend(texts.map(|text| ExportedSection { text, ..section }));
    }
    if divided.is_empty() {
        divided.push(NO_SECTION);
    }
    divided
}

/// Splits a text into pieces that Meilisearch searches completely. An empty text gives one empty
/// piece.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let (piece, more) = rest.split_at(end_of_first(rest));
        pieces.push(piece);
        rest = more;
        if rest.is_empty() {
            return pieces;
        }
    }
}

/// Returns the length of the first piece of a text in bytes. A piece ends with the text, or else
/// after the last line or word that fits.
fn end_of_first(text: &str) -> usize {
    if text.len() <= MAX_TEXT_BYTES {
        return text.len();
    }
    let limit = text.floor_char_boundary(MAX_TEXT_BYTES);
    let fits = &text[..limit];
    let line = fits.rfind('\n').filter(|at| *at > limit / 2);
    let word = || fits.rfind(' ').filter(|at| *at > limit / 2);
    line.or_else(word).map_or(limit, |at| at + 1)
}

fn address(page: &IndexedPage, section: &ExportedSection<'_>) -> String {
    match section.id {
        Some(id) => format!("{}#{id}", page.url),
        None => page.url.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{MAX_TEXT_BYTES, meilisearch, meilisearch_settings};
    use crate::export::sample_pages::{full, odd};
    use crawl_index_entry::IndexedPage;

    fn export(pages: &[IndexedPage]) -> Vec<Value> {
        let mut sink = meilisearch(Vec::new(), 100);
        for page in pages {
            sink.page(page).unwrap();
        }
        let (out, _) = sink.finish().unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn each_section_is_a_document() {
        let lines = export(&[full()]);
        expect_test::expect![[r#"
            [
              {
                "above": [],
                "anchors": [
                  "making tea"
                ],
                "authors": [
                  "Ada"
                ],
                "description": "How to make it",
                "fetched": "2026-01-01T00:00:00Z",
                "fetched_at": 1767225600,
                "folders": [
                  "/docs/"
                ],
                "heading": "",
                "host": "tea.example",
                "id": "ff47f2847e49df9767a0a3e47078826f-0",
                "keywords": [
                  "tea",
                  "green"
                ],
                "language": "en",
                "level": 0,
                "linked_from": 3,
                "max_snippet": 200,
                "modified": "2025-06-15T15:06:40Z",
                "modified_at": 1750000000,
                "page": "ff47f2847e49df9767a0a3e47078826f",
                "path": "/docs/green.html",
                "position": 0,
                "published": "2023-11-14T22:13:20Z",
                "published_at": 1700000000,
                "section": "Drinks",
                "text": "Welcome to.",
                "title": "Green tea",
                "unavailable_after": "2096-10-02T07:06:40Z",
                "url": "http://tea.example/docs/green.html"
              },
              {
                "above": [],
                "anchors": [
                  "making tea"
                ],
                "authors": [
                  "Ada"
                ],
                "description": "How to make it",
                "fetched": "2026-01-01T00:00:00Z",
                "fetched_at": 1767225600,
                "folders": [
                  "/docs/"
                ],
                "heading": "Tea",
                "host": "tea.example",
                "id": "ff47f2847e49df9767a0a3e47078826f-1",
                "keywords": [
                  "tea",
                  "green"
                ],
                "language": "en",
                "level": 1,
                "linked_from": 3,
                "max_snippet": 200,
                "modified": "2025-06-15T15:06:40Z",
                "modified_at": 1750000000,
                "page": "ff47f2847e49df9767a0a3e47078826f",
                "path": "/docs/green.html",
                "position": 1,
                "published": "2023-11-14T22:13:20Z",
                "published_at": 1700000000,
                "section": "Drinks",
                "text": "Boil water",
                "title": "Green tea",
                "unavailable_after": "2096-10-02T07:06:40Z",
                "url": "http://tea.example/docs/green.html#tea"
              },
              {
                "above": [
                  "Tea"
                ],
                "anchors": [
                  "making tea"
                ],
                "authors": [
                  "Ada"
                ],
                "description": "How to make it",
                "fetched": "2026-01-01T00:00:00Z",
                "fetched_at": 1767225600,
                "folders": [
                  "/docs/"
                ],
                "heading": "Cups",
                "host": "tea.example",
                "id": "ff47f2847e49df9767a0a3e47078826f-2",
                "keywords": [
                  "tea",
                  "green"
                ],
                "language": "en",
                "level": 2,
                "linked_from": 3,
                "max_snippet": 200,
                "modified": "2025-06-15T15:06:40Z",
                "modified_at": 1750000000,
                "page": "ff47f2847e49df9767a0a3e47078826f",
                "path": "/docs/green.html",
                "position": 2,
                "published": "2023-11-14T22:13:20Z",
                "published_at": 1700000000,
                "section": "Drinks",
                "text": ".\nCups\nWash them.",
                "title": "Green tea",
                "unavailable_after": "2096-10-02T07:06:40Z",
                "url": "http://tea.example/docs/green.html#cups"
              },
              {
                "above": [],
                "anchors": [
                  "making tea"
                ],
                "authors": [
                  "Ada"
                ],
                "beside": "Tea House, Street 1",
                "description": "How to make it",
                "fetched": "2026-01-01T00:00:00Z",
                "fetched_at": 1767225600,
                "folders": [
                  "/docs/"
                ],
                "heading": "",
                "host": "tea.example",
                "id": "ff47f2847e49df9767a0a3e47078826f-3",
                "keywords": [
                  "tea",
                  "green"
                ],
                "language": "en",
                "level": 0,
                "linked_from": 3,
                "max_snippet": 200,
                "modified": "2025-06-15T15:06:40Z",
                "modified_at": 1750000000,
                "page": "ff47f2847e49df9767a0a3e47078826f",
                "path": "/docs/green.html",
                "position": 3,
                "published": "2023-11-14T22:13:20Z",
                "published_at": 1700000000,
                "section": "Drinks",
                "text": "",
                "title": "Green tea",
                "unavailable_after": "2096-10-02T07:06:40Z",
                "url": "http://tea.example/docs/green.html"
              }
            ]"#]]
        .assert_eq(&format!("{:#}", Value::Array(lines)));
    }

    #[test]
    fn keys_are_valid_and_differ() {
        let lines = export(&odd());
        let mut keys: Vec<_> = lines
            .iter()
            .map(|line| line["id"].as_str().unwrap())
            .collect();
        let is_valid = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        for key in &keys {
            assert!(key.len() <= 511 && key.bytes().all(is_valid), "{key}");
        }
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count);
        assert!(export(&[]).is_empty());
    }

    #[test]
    fn settings_name_fields_that_documents_have() {
        let lines = export(&[full()]);
        let settings = meilisearch_settings();
        for key in [
            "searchableAttributes",
            "filterableAttributes",
            "sortableAttributes",
        ] {
            for field in settings[key].as_array().unwrap() {
                let field = field.as_str().unwrap();
                assert!(
                    lines.iter().any(|line| line.get(field).is_some()),
                    "{field}"
                );
            }
        }
    }

    #[test]
    fn long_sections_are_divided_and_nothing_is_lost() {
        let text = "wörter und ".repeat(20_000);
        let lines = export(&[IndexedPage {
            text: text.clone(),
            headings: Vec::new(),
            ..full()
        }]);
        let texts: Vec<_> = lines
            .iter()
            .map(|line| line["text"].as_str().unwrap())
            .collect();
        assert!(texts.len() > 1 && texts.iter().all(|text| text.len() <= MAX_TEXT_BYTES));
        assert_eq!(texts.concat(), text.trim());
    }
}

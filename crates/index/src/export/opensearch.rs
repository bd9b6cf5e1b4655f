//! Writes lines for the bulk API of OpenSearch and Elasticsearch.

use std::io::Write;

use serde::Serialize;
use serde_json::{Value, json};

use super::exported_page_metadata::{ExportedPageMetadata, sections};
use super::page_ids_from_urls::url_id;
use super::{SearchEngineJsonExporter, line};
use crawl_index_entry::IndexedPage;

/// Maximum length in characters of a string that is also indexed unsplit, as a keyword for
/// filtering. OpenSearch accepts 32,766 bytes, and a character may take four bytes.
const MAX_KEYWORD_CHARS: u32 = 8191;

#[derive(Serialize)]
struct BulkAction<'p> {
    index: BulkActionMetadata<'p>,
}

#[derive(Serialize)]
struct BulkActionMetadata<'p> {
    #[serde(rename = "_id")]
    id: &'p str,
}

#[derive(Serialize)]
struct OpenSearchDocument<'p> {
    url: &'p str,
    #[serde(flatten)]
    about: ExportedPageMetadata<'p>,
    headings: Vec<&'p str>,
    sections: Vec<HeadingLink<'p>>,
    text: &'p str,
    #[serde(skip_serializing_if = "str::is_empty")]
    beside: &'p str,
}

/// A heading with an ID, and the URL that leads to it.
#[derive(Serialize)]
struct HeadingLink<'p> {
    heading: &'p str,
    level: u8,
    url: String,
}

/// Returns a sink that writes two lines for each page: an `index` action and the document. Pages
/// that have expired at the time `now` (seconds since 1970 UTC) are left out.
///
/// The lines don't contain the name of an index. Send them to a URL that does, such as `POST
/// /pages/_bulk`.
pub fn opensearch<W: Write>(out: W, now: i64) -> SearchEngineJsonExporter<W> {
    SearchEngineJsonExporter::new(out, now, |out, page| {
        let id = url_id(&page.url);
        line(
            out,
            &BulkAction {
                index: BulkActionMetadata { id: &id },
            },
        )?;
        line(out, &document(page))?;
        Ok(1)
    })
}

/// Returns the settings and the mapping that the index needs for these documents. Send them with
/// `PUT /pages`.
#[must_use]
pub fn opensearch_mapping() -> Value {
    let keyword = json!({"type": "keyword", "ignore_above": MAX_KEYWORD_CHARS});
    let text = json!({"type": "text"});
    let date = json!({"type": "date", "format": "strict_date_time_no_millis"});
    let named = json!({"type": "text", "fields": {"keyword": keyword}});
    json!({
        "settings": {"index": {"highlight": {"max_analyzed_offset": 10_000_000}}},
        "mappings": {
            "dynamic": "strict",
            "properties": {
                "url": keyword,
                "title": named,
                "host": keyword,
                "path": {"type": "keyword", "ignore_above": MAX_KEYWORD_CHARS, "fields": {"text": text}},
                "folders": keyword,
                "description": text,
                "keywords": named,
                "authors": named,
                "section": keyword,
                "anchors": text,
                "linked_from": {"type": "integer"},
                "language": keyword,
                "published": date,
                "modified": date,
                "fetched": date,
                "unavailable_after": date,
                "max_snippet": {"type": "long"},
                "headings": text,
                "sections": {
                    "properties": {
                        "heading": {"type": "text", "index": false},
                        "level": {"type": "byte"},
                        "url": {"type": "keyword", "index": false, "doc_values": false},
                    },
                },
                "text": text,
                "beside": text,
            },
        },
    })
}

fn document(page: &IndexedPage) -> OpenSearchDocument<'_> {
    let link = |section: &super::exported_page_metadata::ExportedSection<'_>| {
        format!("{}#{}", page.url, section.id.unwrap_or(""))
    };
    let sections = sections(page);
    let linked = sections.iter().filter(|section| section.id.is_some());
    OpenSearchDocument {
        url: &page.url,
        about: ExportedPageMetadata::of(page),
        headings: page
            .headings
            .iter()
            .map(|heading| heading.text.as_str())
            .collect(),
        sections: linked
            .map(|section| HeadingLink {
                heading: section.heading,
                level: section.level,
                url: link(section),
            })
            .collect(),
        text: &page.text,
        beside: &page.beside,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{opensearch, opensearch_mapping};
    use crate::export::sample_pages::{full, odd};
    use crawl_index_entry::IndexedPage;

    fn export(pages: &[IndexedPage]) -> Vec<Value> {
        let mut sink = opensearch(Vec::new(), 100);
        for page in pages {
            sink.page(page).unwrap();
        }
        let (out, _) = sink.finish().unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn each_page_is_an_action_and_a_document() {
        let lines = export(&[full()]);
        expect_test::expect![[r#"
            [
              {
                "index": {
                  "_id": "http://tea.example/docs/green.html"
                }
              },
              {
                "anchors": [
                  "making tea"
                ],
                "authors": [
                  "Ada"
                ],
                "beside": "Tea House, Street 1",
                "description": "How to make it",
                "fetched": "2026-01-01T00:00:00Z",
                "folders": [
                  "/docs/"
                ],
                "headings": [
                  "Tea",
                  "Cups"
                ],
                "host": "tea.example",
                "keywords": [
                  "tea",
                  "green"
                ],
                "language": "en",
                "linked_from": 3,
                "max_snippet": 200,
                "modified": "2025-06-15T15:06:40Z",
                "path": "/docs/green.html",
                "published": "2023-11-14T22:13:20Z",
                "section": "Drinks",
                "sections": [
                  {
                    "heading": "Tea",
                    "level": 1,
                    "url": "http://tea.example/docs/green.html#tea"
                  },
                  {
                    "heading": "Cups",
                    "level": 2,
                    "url": "http://tea.example/docs/green.html#cups"
                  }
                ],
                "text": "Welcome to.\nTea\nBoil water.\nCups\nWash them.",
                "title": "Green tea",
                "unavailable_after": "2096-10-02T07:06:40Z",
                "url": "http://tea.example/docs/green.html"
              }
            ]"#]]
        .assert_eq(&format!("{:#}", Value::Array(lines)));
    }

    #[test]
    fn the_mapping_has_exactly_the_fields_of_documents() {
        let lines = export(&[full()]);
        let mapping = opensearch_mapping();
        let mapped = mapping["mappings"]["properties"].as_object().unwrap();
        let mut fields: Vec<_> = lines[1].as_object().unwrap().keys().collect();
        fields.sort();
        let mut mapped_fields: Vec<_> = mapped.keys().collect();
        mapped_fields.sort();
        assert_eq!(fields, mapped_fields);
    }

    #[test]
    fn odd_pages_stay_one_line_each() {
        let pages = odd();
        let lines = export(&pages);
        assert_eq!(lines.len(), 2 * pages.len());
        for (pair, page) in lines.chunks(2).zip(&pages) {
            let id = pair[0]["index"]["_id"].as_str().unwrap();
            assert!(!id.is_empty() && id.len() <= 512, "{id}");
            assert_eq!(pair[1]["url"], page.url.as_str());
            assert_eq!(pair[1]["text"], page.text.as_str());
        }
        assert!(export(&[]).is_empty());
    }

    #[test]
    fn duplicates_and_expired_pages_are_left_out() {
        let over = IndexedPage {
            until: Some(100),
            ..full()
        };
        let twin = IndexedPage {
            same_as: Some("http://a.example/".into()),
            ..full()
        };
        assert!(export(&[over, twin]).is_empty());
    }
}

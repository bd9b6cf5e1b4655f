//! Converts the content of a page to JSON, for `crawl inspect`.

use crawl_extractor::{Block, ExtractedPage, JsonLdItem, PageContent, PageDate};
use serde_json::{Value, json};

/// Returns the JSON member `text` of a page: its metadata, structure and main text.
pub(super) fn text_object(page: &ExtractedPage, content: &PageContent) -> Value {
    let graph = &content.open_graph;
    let headings = content.headings().map(|(level, block)| {
        json!({
            "level": level,
            "id": block.id,
            "text": content.text_of(block),
            "main": block.is_main(),
        })
    });
    let linked = page.canonical.as_ref().map(|href| (href, "link"));
    let named = || graph.url.as_ref().map(|href| (href, "og:url"));
    let canonical = linked.or_else(named);
    let canonical = canonical.map(|(href, source)| json!({"href": href, "source": source}));
    json!({
        "title": content.title,
        "headings": headings.collect::<Vec<_>>(),
        "description": content.description,
        "keywords": content.keywords,
        "authors": content.authors,
        "section": content.section,
        "canonical": canonical,
        "language": language_object(content),
        "dates": {
            "published": content.published().map(date_object),
            "modified": content.modified().map(date_object),
            "all": content.dates.iter().map(date_object).collect::<Vec<_>>(),
        },
        "open_graph": {
            "title": graph.title,
            "type": graph.kind,
            "description": graph.description,
            "url": graph.url,
            "image": graph.image,
            "locale": graph.locale,
            "site_name": graph.site_name,
        },
        "json_ld": content.json_ld.iter().map(item_object).collect::<Vec<_>>(),
        "main_text": content.main_text(),
        "blocks": content.main_blocks().map(|block| block_object(content, block)).collect::<Vec<_>>(),
        "visible_bytes": content.visible_text().len(),
        "oddities": content.oddities.iter().map(|oddity| {
            json!({"what": oddity.what.to_string(), "line": oddity.line, "count": oddity.count})
        }).collect::<Vec<_>>(),
    })
}

fn language_object(content: &PageContent) -> Value {
    let language = &content.language;
    let declared = language.declared.as_ref();
    json!({
        "code": language.code(),
        "declared": declared.map(|declared| json!({"tag": declared.tag, "source": declared.by.to_string()})),
        "detected": language.detected.map(|detected| {
            json!({"code": detected.code, "confidence": detected.confidence})
        }),
    })
}

fn date_object(date: &PageDate) -> Value {
    json!({
        "kind": format!("{:?}", date.kind).to_ascii_lowercase(),
        "at": date.moment.to_string(),
        "precision": format!("{:?}", date.moment.precision).to_ascii_lowercase(),
        "source": date.source.to_string(),
        "name": date.name,
    })
}

fn item_object(item: &JsonLdItem) -> Value {
    json!({
        "types": item.types,
        "name": item.name,
        "description": item.description,
        "url": item.url,
        "language": item.language,
        "authors": item.authors,
        "published": item.published,
        "modified": item.modified,
        "breadcrumbs": item.breadcrumbs,
    })
}

fn block_object(content: &PageContent, block: &Block) -> Value {
    json!({
        "kind": block.kind.to_string(),
        "level": block.kind.level(),
        "id": block.id,
        "text": content.text_of(block),
    })
}

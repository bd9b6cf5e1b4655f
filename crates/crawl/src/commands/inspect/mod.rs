//! `crawl inspect`: prints what the extractor reads from a page or a sitemap, as JSON; or the
//! fields that rules extract (`--config`), or the tree of elements (`--tree`).

mod content_json;

use crawl_engine::extract_rows;
use crawl_extractor::{
    ContentLimits, DecodedPage, DocumentOddity, ExtractedPage, PageContent, PageContext,
    ReadingLimits, Sitemap, is_html, read_page, read_sitemap,
};
use crawl_fields::{CompiledRules, PageToMatch, tree_listing};
use crawl_policy::{PageDirectives, ProductToken, RobotsProfile};
use crawl_weburl::{CanonicalUrl, canonicalize};
use serde_json::{Value, json};

use crate::cli::args::InspectArgs;
use crate::error::{CommandError, left_out};
use crate::input_file_reader::read_file;
use crate::settings::{rules_of_file, typed_seed};
use crate::terminal::{note, print, print_json, print_json_lines};
use content_json::text_object;

/// Maximum bytes read from a file.
const MAX_FILE_BYTES: u64 = 64 << 20;

pub(crate) fn run(args: &InspectArgs) -> Result<u8, CommandError> {
    let base = typed_seed::read(&args.base).map_err(|why| {
        CommandError::usage(format!("unusable --base `{}`: {why}", args.base)).hint(
            "give the URL of the page, such as `https://example.org/page` or `example.org/page`",
        )
    })?;
    let base = base.url;
    let body = read_file(&args.file, MAX_FILE_BYTES)?;
    let content_type = args.content_type.as_deref();
    if args.tree {
        let text = DecodedPage::decode(&body, content_type);
        let tree = tree_listing(text.as_str()).ok_or_else(|| left_out("--tree", "extract"))?;
        return print(tree.as_bytes());
    }
    if let Some(config) = &args.config {
        return print_fields(&rules_of_file(config)?, &base, content_type, &body);
    }
    let limits = ReadingLimits::default();
    let object = match is_html(content_type, &body) {
        true => {
            let context = PageContext {
                content_type,
                ..PageContext::default()
            };
            let (page, content) = read_page(&body, &context, &limits, &ContentLimits::default());
            page_object(&base, &page, &content)
        }
        false => sitemap_object(&base, &read_sitemap(&body, content_type, &limits)),
    };
    print_json(&object)
}

/// Prints the fields that rules extract from a page, as in extracts.jsonl.
fn print_fields(
    rules: &CompiledRules,
    url: &CanonicalUrl,
    content_type: Option<&str>,
    body: &[u8],
) -> Result<u8, CommandError> {
    let facts = PageToMatch {
        url: url.as_str(),
        content_type: content_type.or(Some("text/html")),
        ..PageToMatch::default()
    };
    let rows = extract_rows(rules, body, &facts, 1);
    if rows.is_empty() {
        note(&format!(
            "no rule reads {url}\nhint: check `host`, `path`, `match` and `language`"
        ));
    }
    let mut text = String::new();
    for row in &rows {
        text += &serde_json::to_string(row).unwrap_or_default();
        text.push('\n');
    }
    print_json_lines(&text)
}

fn page_object(url: &CanonicalUrl, page: &ExtractedPage, content: &PageContent) -> Value {
    let base = page.base_url(url);
    let links = page.links.iter().map(|link| {
        let target = canonicalize(Some(&base), &link.href);
        json!({
            "href": link.href,
            "url": target.as_ref().map(CanonicalUrl::as_str).ok(),
            "unusable": target.as_ref().err().map(ToString::to_string),
            "element": link.element.to_string(),
            "attribute": link.attribute,
            "kind": format!("{:?}", link.kind).to_ascii_lowercase(),
            "rel": link.rel.to_string().split_ascii_whitespace().collect::<Vec<_>>(),
            "text": link.text,
        })
    });
    let metas = page
        .metas
        .iter()
        .map(|meta| json!({"name": meta.name, "content": meta.content}));
    json!({
        "url": url.as_str(),
        "read_as": "html",
        "base": base.as_str(),
        "charset": page.charset,
        "charset_source": snake(&format!("{:?}", page.charset_source)),
        "title": page.title,
        "directives": directives_object(page),
        "links": links.collect::<Vec<_>>(),
        "metas": metas.collect::<Vec<_>>(),
        "text": text_object(page, content),
        "oddities": oddities(&page.oddities),
    })
}

/// Returns the text of each directive in the page's META elements. Null if the page lacks the
/// directive.
fn directives_object(page: &ExtractedPage) -> Value {
    let agent = ProductToken::leading("crawl");
    let directives = PageDirectives::read([], page.meta_pairs(), &agent, RobotsProfile::default());
    json!({
        "noindex": directives.noindex.map(|source| source.text),
        "nofollow": directives.nofollow.map(|source| source.text),
        "noarchive": directives.noarchive.map(|source| source.text),
        "nosnippet": directives.nosnippet.map(|source| source.text),
    })
}

fn sitemap_object(url: &CanonicalUrl, sitemap: &Sitemap) -> Value {
    let entries = sitemap.entries.iter().map(|entry| {
        let target = canonicalize(Some(url), &entry.loc);
        json!({
            "loc": entry.loc,
            "url": target.as_ref().map(CanonicalUrl::as_str).ok(),
            "unusable": target.as_ref().err().map(ToString::to_string),
            "lastmod": entry.lastmod,
            "changefreq": entry.changefreq.map(|freq| snake(&format!("{freq:?}"))),
            "priority": entry.priority,
        })
    });
    json!({
        "url": url.as_str(),
        "read_as": "sitemap",
        "kind": snake(&format!("{:?}", sitemap.kind)),
        "entries": entries.collect::<Vec<_>>(),
        "oddities": oddities(&sitemap.oddities),
    })
}

fn oddities(oddities: &[DocumentOddity]) -> Vec<Value> {
    let object = |oddity: &DocumentOddity| json!({"what": oddity.what.to_string(), "line": oddity.line, "count": oddity.count});
    oddities.iter().map(object).collect()
}

/// Converts camel case to snake case: `ValidUtf8` to `valid_utf8`.
fn snake(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 2);
    for c in name.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

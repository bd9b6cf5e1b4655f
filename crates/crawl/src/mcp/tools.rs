//! Definitions of the MCP tools: names, descriptions and arguments.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Maximum results in one answer of `crawl mcp`.
/// Beyond the limit: clamped.
const MAX_RESULTS: usize = 20;
/// Default number of results.
const RESULTS: usize = 10;

/// A tool call with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ToolCall {
    Search(SearchArguments),
    Page(PageArguments),
    Sections(SectionsArguments),
    Explain(UrlArguments),
    Report,
}

/// The arguments of `search`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchArguments {
    pub(super) query: String,
    #[serde(default = "results")]
    pub(super) limit: usize,
    #[serde(default)]
    pub(super) offset: usize,
    #[serde(default)]
    pub(super) folder: Option<String>,
    #[serde(default)]
    pub(super) language: Option<String>,
    #[serde(default)]
    pub(super) version: Option<String>,
    #[serde(default, rename = "type")]
    pub(super) document_type: Option<String>,
    #[serde(default)]
    pub(super) facets: bool,
}

/// The arguments of `page`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageArguments {
    pub(super) url: String,
    /// Number of characters of the page's Markdown to skip.
    #[serde(default)]
    pub(super) from: usize,
}

/// The arguments of `sections`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SectionsArguments {
    pub(super) url: String,
    /// The text of a heading, or its id.
    pub(super) heading: Option<String>,
}

/// The arguments of a tool that takes only a URL.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UrlArguments {
    pub(super) url: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

fn results() -> usize {
    RESULTS
}

impl ToolCall {
    /// Parses a call. `None` if the tool doesn't exist, and an error for the client if the
    /// arguments are invalid.
    pub(super) fn read(name: &str, arguments: JsonObject) -> Option<Result<ToolCall, String>> {
        Some(match name {
            "search" => read(name, arguments).map(|call: SearchArguments| {
                let limit = call.limit.clamp(1, MAX_RESULTS);
                ToolCall::Search(SearchArguments { limit, ..call })
            }),
            "page" => read(name, arguments).map(ToolCall::Page),
            "sections" => read(name, arguments).map(ToolCall::Sections),
            "explain" => read(name, arguments).map(ToolCall::Explain),
            "report" => read(name, arguments).map(|NoArguments {}| ToolCall::Report),
            _ => return None,
        })
    }
}

fn read<T: DeserializeOwned>(name: &str, arguments: JsonObject) -> Result<T, String> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|why| format!("can't read the arguments of `{name}`: {why}"))
}

/// Returns the definitions of all tools.
pub(super) fn all() -> Vec<Tool> {
    let url = || {
        json!({"type": "string", "format": "uri",
            "description": "URL of the page, as returned by `search`"})
    };
    vec![
        tool(
            "search",
            "Find pages",
            "Find pages of the crawl by their words. Pages with all words come first; \
             `lacks_words` is true if few or no pages have all of them. \"quoted words\" match as \
             a phrase, -word excludes pages, site:example.org/docs searches only that folder.",
            &json!({
                "query": {"type": "string", "description": "The words"},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS,
                    "default": RESULTS, "description": "Maximum number of results"},
                "offset": {"type": "integer", "minimum": 0, "default": 0,
                    "description": "Number of results to skip"},
                "folder": {"type": "string", "description": "Only pages in this folder: example.org/docs"},
                "language": {"type": "string", "description": "Only pages in this language: en"},
                "version": {"type": "string", "description": "Only pages of this version: 14"},
                "type": {"type": "string", "enum": ["html", "pdf", "docx", "markdown", "text"],
                    "description": "Only pages of this type"},
                "facets": {"type": "boolean", "default": false,
                    "description": "Count pages by folder, language, version and type"},
            }),
            &["query"],
        ),
        tool(
            "page",
            "Read a page",
            "Read the main text of a page as Markdown. A long page is returned in parts: to \
             continue, call again with the `from` given in the answer.",
            &json!({
                "url": url(),
                "from": {"type": "integer", "minimum": 0, "default": 0,
                    "description": "Number of characters to skip"},
            }),
            &["url"],
        ),
        tool(
            "sections",
            "List a page's sections",
            "List the headings of a page with their levels and links; with `heading`, read the text \
             under that heading.",
            &json!({
                "url": url(),
                "heading": {"type": "string", "description": "Text of a heading, or its id"},
            }),
            &["url"],
        ),
        tool(
            "explain",
            "Explain a URL",
            "Explain why the crawl did or did not fetch a URL: rules of robots.txt, scope, budgets, \
             requests, outcome.",
            &json!({"url": url()}),
            &["url"],
        ),
        tool(
            "report",
            "Report the crawl",
            "Summarize the crawl: pages, outcomes, hosts, delays between requests, and what was \
             left out and why.",
            &json!({}),
            &[],
        ),
    ]
}

fn tool(
    name: &'static str,
    title: &str,
    description: &'static str,
    properties: &Value,
    required: &[&str],
) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let schema = match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    // All tools only read local files.
    let hints = ToolAnnotations::with_title(title)
        .read_only(true)
        .idempotent(true)
        .open_world(false);
    Tool::new(name, description, Arc::new(schema))
        .with_title(title)
        .with_annotations(hints)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{SearchArguments, ToolCall, all};

    fn read(name: &str, arguments: &Value) -> Option<Result<ToolCall, String>> {
        ToolCall::read(name, arguments.as_object().cloned().unwrap_or_default())
    }

    #[test]
    fn listed_tools_exist_and_accept_their_listed_arguments() {
        for tool in all() {
            let required = tool.input_schema["required"].as_array().unwrap();
            let arguments = required.iter().map(|name| {
                let name = name.as_str().unwrap().to_owned();
                (name, Value::from("http://e.example/"))
            });
            let arguments = Value::Object(arguments.collect());
            assert!(
                matches!(read(&tool.name, &arguments), Some(Ok(_))),
                "{}",
                tool.name
            );
            let properties = tool.input_schema["properties"].as_object().unwrap();
            let full = properties.iter().map(|(name, schema)| {
                let value = match schema["type"].as_str() {
                    Some("integer") => json!(1),
                    Some("boolean") => json!(true),
                    _ => json!("x"),
                };
                (name.clone(), value)
            });
            let full = Value::Object(full.collect());
            assert!(
                matches!(read(&tool.name, &full), Some(Ok(_))),
                "{}",
                tool.name
            );
        }
        assert_eq!(read("delete", &json!({})), None);
    }

    #[test]
    fn wrong_arguments_are_named() {
        let error = |name, arguments| read(name, &arguments).unwrap().unwrap_err();
        assert_eq!(
            error("page", json!({})),
            "can't read the arguments of `page`: missing field `url`"
        );
        let error = error("search", json!({"query": "a", "max": 3}));
        assert!(
            error.contains("unknown field `max`, expected one of `query`, `limit`"),
            "{error}"
        );
    }

    #[test]
    fn no_answer_has_more_results_than_it_may() {
        let call = |limit: usize| SearchArguments {
            query: "a".to_owned(),
            limit,
            offset: 0,
            ..SearchArguments::default()
        };
        let read = |limit: usize| read("search", &json!({"query": "a", "limit": limit}));
        assert_eq!(read(1_000), Some(Ok(ToolCall::Search(call(20)))));
        assert_eq!(read(0), Some(Ok(ToolCall::Search(call(1)))));
    }
}

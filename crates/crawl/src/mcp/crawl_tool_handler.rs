//! Answers tool calls from a crawl's index, archive and records.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crawl_index::export::{FetchedBody, page_markdown};
use crawl_index::{FacetFilters, Hit, IndexSearcher, IndexedPage, SearchOptions};
use crawl_records::ArchivedPageLocator;
use crawl_weburl::{CanonicalUrl, canonicalize, safe_line, without_bidi_controls};
use serde_json::{Value, json};

use super::tools::{PageArguments, SearchArguments, SectionsArguments, ToolCall, UrlArguments};
use crate::clock;
use crate::error::CommandError;
use crate::explanation;
use crate::search_index_opener;

/// Maximum characters of text in one answer of `crawl mcp`.
/// Beyond the limit: the next page of the text.
const MAX_TEXT_CHARS: usize = 40_000;

/// Maximum characters of an excerpt.
const EXCERPT_CHARS: usize = 300;

/// An answer as text and as structured data.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolResult {
    pub(super) text: String,
    pub(super) data: Value,
}

/// Answers MCP tool calls from an open crawl. The methods return errors as messages for the client.
pub(super) struct CrawlToolHandler {
    dir: PathBuf,
    index: IndexSearcher,
    /// The index of the archived pages, with the length of `pages.jsonl` when the index was built.
    archived: Mutex<Option<(u64, Arc<ArchivedPageLocator>)>>,
}

impl CrawlToolHandler {
    pub(super) fn open(dir: &Path) -> Result<CrawlToolHandler, CommandError> {
        Ok(CrawlToolHandler {
            dir: dir.to_owned(),
            index: search_index_opener::open(dir)?,
            archived: Mutex::new(None),
        })
    }

    pub(super) fn answer(&self, call: &ToolCall) -> Result<ToolResult, String> {
        match call {
            ToolCall::Search(call) => self.search(call),
            ToolCall::Page(call) => self.page(call),
            ToolCall::Sections(call) => self.sections(call),
            ToolCall::Explain(call) => self.explain(call),
            ToolCall::Report => self.report(),
        }
    }

    fn search(&self, call: &SearchArguments) -> Result<ToolResult, String> {
        let options = SearchOptions {
            limit: call.limit,
            offset: call.offset,
            excerpt: EXCERPT_CHARS,
            now: now_seconds(),
            filters: FacetFilters {
                folder: call.folder.clone(),
                language: call.language.clone(),
                version: call.version.clone(),
                document_type: call.document_type.clone(),
            },
            facets: call.facets,
        };
        let page = self.index.search(&call.query, &options);
        let page = page.map_err(|why| why.to_string())?;
        let archived = self.archived()?;
        let is_refused = |hit: &&Hit| refuses(&archived, &hit.url);
        let refused = page.results.iter().filter(is_refused).count();
        let hits: Vec<&Hit> = page.results.iter().filter(|hit| !is_refused(hit)).collect();
        let mut text = String::new();
        if let Some(meant) = &page.did_you_mean {
            let _ = writeln!(text, "Results for `{}`\n", safe_line(meant));
        }
        if let Some(left_out) = page.left_out() {
            let _ = writeln!(text, "{left_out}\n");
        }
        for (number, hit) in (call.offset + 1..).zip(&hits) {
            let url = &hit.leads_to;
            let _ = writeln!(text, "{number}. [{}]({url})", safe_line(&hit.title));
            if !hit.excerpt.is_empty() {
                let _ = writeln!(text, "   {}", safe_line(&hit.excerpt));
            }
        }
        if hits.is_empty() {
            text.push_str("Nothing found.\n");
        }
        if refused > 0 {
            let _ = writeln!(
                text,
                "\nLeft out: {refused}, since the site refuses ai-input"
            );
        }
        let results: Vec<Value> = hits
            .iter()
            .map(|hit| {
                json!({"url": hit.url, "title": hit.title, "excerpt": hit.excerpt,
                    "section": hit.section, "sections": hit.sections, "language": hit.language})
            })
            .collect();
        let data = json!({"total": page.total, "results": results, "refused": refused,
            "did_you_mean": page.did_you_mean, "unknown": page.unknown,
            "lacks_words": page.lacks_words, "facets": page.facets});
        Ok(ToolResult { text, data })
    }

    fn page(&self, call: &PageArguments) -> Result<ToolResult, String> {
        let page = self.page_of(&call.url)?;
        let markdown = self.markdown(&page)?;
        let total = markdown.chars().count();
        let rest: String = markdown
            .chars()
            .skip(call.from)
            .take(MAX_TEXT_CHARS)
            .collect();
        let end = call.from.min(total) + rest.chars().count();
        let next = (end < total).then_some(end);
        let mut text = rest.clone();
        if let Some(next) = next {
            let _ = write!(
                text,
                "\n\n[{next} of {total} characters; continue with from={next}]"
            );
        }
        let data = json!({"url": page.url, "title": page.name(), "markdown": rest,
            "characters": total, "next": next});
        Ok(ToolResult { text, data })
    }

    /// Returns the text of a page as Markdown. If the page limits excerpts (`nosnippet`,
    /// `max-snippet`), returns only that many characters of its plain text, or an error if it
    /// allows none.
    fn markdown(&self, page: &IndexedPage) -> Result<String, String> {
        let text = match page.max_snippet {
            Some(0) => return Err(no_text(page)),
            Some(most) => page.text.chars().take(most as usize).collect(),
            None => {
                let stored = self.archived()?.read(&page.url);
                let source = stored.as_ref().map(|stored| FetchedBody {
                    content_type: stored.content_type.as_deref(),
                    body: &stored.body,
                });
                page_markdown(page, source, &mut |_| None)
            }
        };
        Ok(without_bidi_controls(&text).into_owned())
    }

    fn sections(&self, call: &SectionsArguments) -> Result<ToolResult, String> {
        let page = self.page_of(&call.url)?;
        if page.max_snippet.is_some() {
            return Err(no_text(&page));
        }
        let ends = page.headings.iter().skip(1).map(|next| next.at);
        let ends = ends.chain([page.text.len()]);
        let mut text = String::new();
        let mut sections = Vec::new();
        for (heading, end) in page.headings.iter().zip(ends) {
            let id = heading.id.as_deref();
            let url = match id {
                Some(id) => format!("{}#{id}", page.url),
                None => page.url.clone(),
            };
            let is_sought = |sought: &String| {
                id == Some(sought.trim_start_matches('#'))
                    || heading.text.to_lowercase() == sought.to_lowercase()
            };
            if !call.heading.as_ref().is_none_or(is_sought) {
                continue;
            }
            let words = safe_line(&heading.text);
            let marks = "#".repeat(usize::from(heading.level.clamp(1, 6)));
            let mut section = json!({"heading": words, "level": heading.level, "url": url});
            let _ = writeln!(text, "{marks} {words} ({url})");
            if call.heading.is_some() {
                let body = page.text.get(heading.at..end.max(heading.at));
                let body: String = body
                    .unwrap_or_default()
                    .chars()
                    .take(MAX_TEXT_CHARS)
                    .collect();
                let body = without_bidi_controls(&body).into_owned();
                let _ = writeln!(text, "\n{}\n", body.trim());
                section["text"] = Value::from(body);
            }
            sections.push(section);
        }
        if let Some(sought) = call.heading.as_ref().filter(|_| sections.is_empty()) {
            let error = format!("`{}` has no heading `{sought}`", page.url);
            return Err(format!(
                "{error}\nhint: omit `heading` to list all headings"
            ));
        }
        let data = json!({"url": page.url, "title": page.name(), "sections": sections});
        Ok(ToolResult { text, data })
    }

    fn explain(&self, call: &UrlArguments) -> Result<ToolResult, String> {
        let url = usable(&call.url)?;
        let explanation = explanation::explain(&self.dir, &url);
        let mut explanation = explanation.map_err(|why| why.to_string())?;
        // If the site doesn't allow models to read the page, omit the title too, because it is part
        // of the content.
        if refuses(&*self.archived()?, url.as_str())
            && let Some(page) = &mut explanation.page
        {
            page.title = None;
        }
        let presence = search_index_opener::presence(&self.index, url.as_str(), now_seconds());
        explanation.index = Some(presence.map_err(|why| why.to_string())?);
        let text = explanation.to_string();
        let data = serde_json::to_value(&explanation).map_err(|why| why.to_string())?;
        Ok(ToolResult { text, data })
    }

    fn report(&self) -> Result<ToolResult, String> {
        let report = crawl_records::report(&self.dir).map_err(|why| why.to_string())?;
        let text = report.to_string();
        let data = serde_json::to_value(&report).map_err(|why| why.to_string())?;
        Ok(ToolResult { text, data })
    }

    /// Returns the indexed page of a URL, if a model may read it and the site allows copies of it.
    fn page_of(&self, url: &str) -> Result<IndexedPage, String> {
        let url = usable(url)?;
        let archived = self.archived()?;
        if archived
            .seen(url.as_str())
            .is_some_and(|seen| seen.is_withheld)
        {
            return Err(format!(
                "the site of `{url}` forbids copies of the page (noarchive and the like)"
            ));
        }
        if refuses(&archived, url.as_str()) {
            return Err(format!(
                "the site of `{url}` doesn't allow AI models to read it (ai-input)"
            ));
        }
        let page = self
            .index
            .page(url.as_str())
            .map_err(|why| why.to_string())?;
        let is_over = |page: &IndexedPage| page.until.is_some_and(|until| until <= now_seconds());
        match page {
            Some(page) if !is_over(&page) => Ok(page),
            _ => Err(format!(
                "`{url}` isn't in the index\nhint: `explain` gives the reason; `search` finds other \
                 pages"
            )),
        }
    }

    /// Returns the index of the archived bodies. Rebuilds it if the length of `pages.jsonl` has
    /// changed.
    fn archived(&self) -> Result<Arc<ArchivedPageLocator>, String> {
        let rows = fs::metadata(self.dir.join("pages.jsonl")).map_or(0, |file| file.len());
        let mut cached = self.archived.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, archived)) = &*cached
            && *at == rows
        {
            return Ok(Arc::clone(archived));
        }
        let archived = ArchivedPageLocator::open(&self.dir).map_err(|why| why.to_string())?;
        let archived = Arc::new(archived);
        *cached = Some((rows, Arc::clone(&archived)));
        Ok(archived)
    }
}

fn refuses(archived: &ArchivedPageLocator, url: &str) -> bool {
    archived.seen(url).is_some_and(|seen| seen.refuses_ai_input)
}

fn no_text(page: &IndexedPage) -> String {
    format!(
        "`{}` doesn't allow excerpts of its text (nosnippet, max-snippet)",
        page.url
    )
}

fn usable(url: &str) -> Result<CanonicalUrl, String> {
    canonicalize(None, url).map_err(|why| {
        format!(
            "unusable URL `{url}`: {why}\nhint: give a whole URL such as `https://example.org/page`"
        )
    })
}

fn now_seconds() -> i64 {
    clock::now().as_second()
}

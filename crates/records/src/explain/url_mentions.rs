//! Finds the page that contains an unknown URL, and the element that contains it.

use std::path::Path;

use crawl_extractor::LinkKind;
use crawl_weburl::CanonicalUrl;
use serde::Serialize;

use crate::broken_links::ArchivedPageReader;
use crate::error::RecordsError;
use crate::recognize_directory::stored_settings;
use crate::row_file_reader::{links, pages};

/// Maximum number of archived pages that `crawl explain` searches for links to a URL.
/// Beyond the limit: counted, not searched.
const MAX_PAGES: u64 = 10_000;

/// A mention of an unfetched URL in a page: the page, and the element that contains the URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UrlMention {
    /// The page that contains the URL.
    pub page: String,
    /// The element and its attribute, such as `img src`; `None` for an entry of a feed or a
    /// sitemap, or if only `links.jsonl` has the link.
    pub element: Option<String>,
    /// The kind of mention: `link`, `resource`, `feed`, `form` or `other`.
    pub kind: &'static str,
    /// The setting that keeps such URLs from being fetched, such as `--resources off`. `None` if
    /// there is no such setting.
    pub setting: Option<String>,
    /// The filter that keeps the page's links from being followed, such as `language de`. `None` if
    /// no filter does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unwanted: Option<String>,
}

/// The result of a search.
pub(super) struct UrlMentionSearchResult {
    pub(super) named_by: Option<UrlMention>,
    /// Number of pages not searched, because there are too many, or because their body is not
    /// archived.
    pub(super) unread_pages: u64,
}

/// Searches the archived pages in row order for the first one that contains the URL, and then
/// `links.jsonl`.
pub(super) fn search(
    dir: &Path,
    url: &CanonicalUrl,
) -> Result<UrlMentionSearchResult, RecordsError> {
    let mut result = UrlMentionSearchResult {
        named_by: None,
        unread_pages: 0,
    };
    if let Some(archived) = ArchivedPageReader::open(dir)? {
        search_archive(dir, url, &archived, &mut result)?;
    }
    if result.named_by.is_none() {
        search_link_rows(dir, url, &mut result)?;
    }
    if let Some(named) = &mut result.named_by {
        named.setting = setting(dir, named.kind);
    }
    Ok(result)
}

fn search_archive(
    dir: &Path,
    url: &CanonicalUrl,
    archived: &ArchivedPageReader,
    result: &mut UrlMentionSearchResult,
) -> Result<(), RecordsError> {
    let has_link_rows = dir.join("links.jsonl").exists();
    let mut read = 0;
    for row in pages(dir)? {
        let Ok(row) = row else { continue };
        if !archived.may_be_read(&row) {
            continue;
        }
        if row.is_only_checked() {
            continue;
        }
        if row.unwanted.is_some() || row.withheld.is_some() {
            result.unread_pages += u64::from(!has_link_rows);
            continue;
        }
        if read == MAX_PAGES {
            result.unread_pages += 1;
            continue;
        }
        read += 1;
        archived.each_link(&row, &mut |page, to, link, _| {
            if to == Ok(url) && result.named_by.is_none() {
                result.named_by = Some(UrlMention {
                    page: page.to_string(),
                    element: link.map(|link| format!("{} {}", link.element, link.attribute)),
                    kind: link.map_or("link", |link| name(link.kind)),
                    setting: None,
                    unwanted: None,
                });
            }
        });
        if result.named_by.is_some() {
            break;
        }
    }
    Ok(())
}

/// Searches `links.jsonl`, which also has the links of pages without an archived body.
fn search_link_rows(
    dir: &Path,
    url: &CanonicalUrl,
    result: &mut UrlMentionSearchResult,
) -> Result<(), RecordsError> {
    let needle = serde_json::to_vec(url.as_str()).unwrap_or_default();
    let mut rows = links(dir)?;
    let mut page = None;
    while let Some(row) = rows.next_with(&needle) {
        if let Some(row) = row.ok().filter(|row| row.to == url.as_str()) {
            page = Some(row.from);
            break;
        }
    }
    let Some(page) = page else { return Ok(()) };
    let needle = serde_json::to_vec(&page).unwrap_or_default();
    let mut rows = pages(dir)?;
    let mut unwanted = None;
    while let Some(row) = rows.next_with(&needle) {
        if let Some(row) = row.ok().filter(|row| row.url == page) {
            unwanted = row.unwanted.filter(|filter| drops_links(filter));
        }
    }
    result.named_by = Some(UrlMention {
        page,
        element: None,
        kind: "link",
        setting: None,
        unwanted,
    });
    Ok(())
}

/// Returns whether the crawl doesn't follow the links of a page that this filter rejects. For HTML
/// pages that are rejected for their type, or for a size below `min-size`, the crawl still follows
/// the links.
fn drops_links(filter: &str) -> bool {
    ["language ", "max-size ", "off-scope-method "]
        .iter()
        .any(|name| filter.starts_with(name))
}

fn name(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::Page => "link",
        LinkKind::Resource => "resource",
        LinkKind::Feed => "feed",
        LinkKind::Form => "form",
        LinkKind::PostForm => "post-form",
        _ => "other",
    }
}

/// Returns the setting in the crawl's `crawl.toml` that keeps URLs of a kind from being fetched.
/// `None` if there is no such setting.
fn setting(dir: &Path, kind: &str) -> Option<String> {
    let (flag, default) = match kind {
        "resource" => ("resources", "off"),
        "form" => ("forms", "off"),
        "feed" => ("feeds", "on"),
        _ => return None,
    };
    let settings = stored_settings(dir);
    let value = settings.get("scope").and_then(|scope| scope.get(flag));
    let value = value.and_then(toml::Value::as_str).unwrap_or(default);
    matches!(value, "off" | "own").then(|| format!("--{flag} {value}"))
}

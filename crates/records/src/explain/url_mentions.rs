//! Finds the archived page that contains an unknown URL, and the element that contains it.

use std::path::Path;

use crawl_extractor::LinkKind;
use crawl_weburl::CanonicalUrl;
use serde::Serialize;

use crate::broken::ArchivedPageReader;
use crate::error::RecordsError;
use crate::recognize_directory::stored_settings;
use crate::row_file_reader::pages;

/// Maximum number of archived pages that `crawl explain` searches for links to a URL.
/// Beyond the limit: counted, not searched.
const MAX_PAGES: u64 = 10_000;

/// A mention of an unfetched URL in an archived page: the page, and the element that contains the
/// URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UrlMention {
    /// The page that contains the URL.
    pub page: String,
    /// The element and its attribute, such as `img src`; `None` for an entry of a feed or a
    /// sitemap.
    pub element: Option<String>,
    /// The kind of mention: `link`, `resource`, `feed`, `form` or `other`.
    pub kind: &'static str,
    /// The setting that keeps such URLs from being fetched, such as `--resources off`. `None` if
    /// there is no such setting.
    pub setting: Option<String>,
}

/// The result of a search.
pub(super) struct UrlMentionSearchResult {
    pub(super) named_by: Option<UrlMention>,
    /// Number of pages not searched, because there are too many.
    pub(super) unread_pages: u64,
}

/// Searches the archived pages in row order for the first one that contains the URL.
pub(super) fn search(
    dir: &Path,
    url: &CanonicalUrl,
) -> Result<UrlMentionSearchResult, RecordsError> {
    let mut result = UrlMentionSearchResult {
        named_by: None,
        unread_pages: 0,
    };
    let Some(archived) = ArchivedPageReader::open(dir)? else {
        return Ok(result);
    };
    let mut read = 0;
    for row in pages(dir)? {
        let Ok(row) = row else { continue };
        if !archived.may_be_read(&row) {
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
                });
            }
        });
        if result.named_by.is_some() {
            break;
        }
    }
    if let Some(named) = &mut result.named_by {
        named.setting = setting(dir, named.kind);
    }
    Ok(result)
}

fn name(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::Page => "link",
        LinkKind::Resource => "resource",
        LinkKind::Feed => "feed",
        LinkKind::Form => "form",
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

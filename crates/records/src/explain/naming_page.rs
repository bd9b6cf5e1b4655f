//! Which page names a URL that the crawl does not know, and as what.

use std::path::Path;

use crawl_extractor::{LinkKind, may_be_read};
use crawl_weburl::CanonicalUrl;
use serde::Serialize;

use crate::broken::Archived;
use crate::directory::stored_settings;
use crate::error::RecordsError;
use crate::rows::pages;

/// Archived pages that are read again in search of the one that names a URL.
const MAX_PAGES: u64 = 10_000;

/// The way in which a page that was read names a URL that was not asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedBy {
    /// The page.
    pub page: String,
    /// The element and its attribute, as `img src`; null for an entry of a feed or a sitemap.
    pub element: Option<String>,
    /// The kind of name: `link`, `resource`, `feed`, `form` or `other`.
    pub kind: &'static str,
    /// The setting that keeps such URLs out, as `--resources off`, where one does.
    pub setting: Option<String>,
}

/// The result of a search.
pub(super) struct Search {
    pub(super) named_by: Option<NamedBy>,
    /// Pages that were not read, since there are too many.
    pub(super) unread_pages: u64,
}

/// Reads the archived pages again, in the order of their rows, up to the first that names the URL.
pub(super) fn search(dir: &Path, url: &CanonicalUrl) -> Result<Search, RecordsError> {
    let mut found = Search {
        named_by: None,
        unread_pages: 0,
    };
    let Some(archived) = Archived::open(dir) else {
        return Ok(found);
    };
    let mut read = 0;
    for row in pages(dir)? {
        let Ok(row) = row else { continue };
        if !may_be_read(row.content_type.as_deref()) {
            continue;
        }
        if read == MAX_PAGES {
            found.unread_pages += 1;
            continue;
        }
        read += 1;
        archived.each_link(&row, &mut |page, to, link, _| {
            if to == url && found.named_by.is_none() {
                found.named_by = Some(NamedBy {
                    page: page.to_string(),
                    element: link.map(|link| format!("{} {}", link.element, link.attribute)),
                    kind: link.map_or("link", |link| name(link.kind)),
                    setting: None,
                });
            }
        });
        if found.named_by.is_some() {
            break;
        }
    }
    if let Some(named) = &mut found.named_by {
        named.setting = setting(dir, named.kind);
    }
    Ok(found)
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

/// The setting in the crawl's `crawl.toml` that keeps URLs of a kind out.
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

//! Static files of the pages, built into the program.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use crawl_index::search_box::{BOX, RECENT, RESULTS, SHARED_STYLE};
use crawl_records::{PARTS_STYLE, SORT_SCRIPT};
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};

use super::error_response::ErrorResponse;
use super::headers::CROSS_ORIGIN_RESOURCE_POLICY;

/// A static file, assembled from the texts of several source files.
struct StaticFileRecipe {
    name: &'static str,
    kind: &'static str,
    /// The texts of the file, in groups, joined in this order. The joined text of a script is
    /// wrapped in one block (`{..}`).
    parts: &'static [&'static [&'static str]],
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The script with which the server's pages send requests to the server.
const SERVER: &str = include_str!("page/server.js");

/// The script that other sites embed. Its name never changes, because those sites refer to it.
const EMBED: &str = "embed.js";

const SOURCES: [StaticFileRecipe; 6] = [
    StaticFileRecipe {
        name: "page.css",
        kind: "text/css; charset=utf-8",
        parts: &[&[SHARED_STYLE, include_str!("page/page.css"), PARTS_STYLE]],
    },
    StaticFileRecipe {
        name: "search.js",
        kind: SCRIPT,
        parts: &[&[
            RESULTS,
            RECENT,
            SERVER,
            include_str!("page/facets.js"),
            include_str!("page/search.js"),
        ]],
    },
    StaticFileRecipe {
        name: "dialog.js",
        kind: SCRIPT,
        parts: &[&BOX, &[SERVER, include_str!("page/dialog.js")]],
    },
    StaticFileRecipe {
        name: "crawl.js",
        kind: SCRIPT,
        parts: &[&[SORT_SCRIPT, include_str!("page/crawl.js")]],
    },
    StaticFileRecipe {
        name: "icon.svg",
        kind: "image/svg+xml",
        parts: &[&[include_str!("page/icon.svg")]],
    },
    StaticFileRecipe {
        name: EMBED,
        kind: SCRIPT,
        parts: &[&BOX, &[SERVER, include_str!("page/embed.js")]],
    },
];

impl StaticFileRecipe {
    fn text(&self) -> String {
        let text = self.parts.concat().concat();
        match self.kind {
            SCRIPT => format!("\"use strict\";{{\n{text}}}\n"),
            _ => text,
        }
    }
}

/// The server's static files. The path of each contains a hash of its content.
#[derive(Debug)]
pub(crate) struct StaticFiles(Vec<StaticFile>);

#[derive(Debug)]
struct StaticFile {
    name: &'static str,
    kind: &'static str,
    text: String,
    /// Hash of the text.
    hash: String,
}

impl StaticFiles {
    pub(crate) fn new() -> StaticFiles {
        let made = SOURCES.iter().map(|source| {
            let text = source.text();
            let digest = digest(&SHA256, text.as_bytes());
            StaticFile {
                name: source.name,
                kind: source.kind,
                hash: HEXLOWER.encode(&digest.as_ref()[..8]),
                text,
            }
        });
        StaticFiles(made.collect())
    }

    /// Returns the path of a file. An unknown name is a bug, and gives an empty string.
    pub(crate) fn path(&self, name: &str) -> String {
        let asset_for_name = self.0.iter().find(|asset| asset.name == name);
        asset_for_name.map_or_else(String::new, |asset| format!("/assets/{}", asset.file()))
    }

    /// Serves `/assets/FILE`, whose content never changes.
    pub(crate) fn hashed(&self, file: &str, request_headers: &HeaderMap) -> Response {
        let by_hash = self.0.iter().find(|asset| asset.file() == file);
        match by_hash {
            Some(asset) => asset.answer(request_headers, "public, max-age=31536000, immutable"),
            None => {
                ErrorResponse::new(StatusCode::NOT_FOUND, "there is no such file").into_response()
            }
        }
    }

    /// Serves `/embed.js`. Any site may load the script, and its content changes with the program's
    /// version.
    pub(crate) fn embed(&self, request_headers: &HeaderMap) -> Response {
        let Some(asset) = self.0.iter().find(|asset| asset.name == EMBED) else {
            return ErrorResponse::internal("the snippet is missing").into_response();
        };
        let mut response = asset.answer(request_headers, "public, max-age=600");
        let anyone = HeaderValue::from_static("cross-origin");
        response
            .headers_mut()
            .insert(CROSS_ORIGIN_RESOURCE_POLICY, anyone);
        response
    }
}

impl StaticFile {
    fn file(&self) -> String {
        let (stem, extension) = self.name.rsplit_once('.').unwrap_or((self.name, ""));
        format!("{stem}.{}.{extension}", self.hash)
    }

    fn answer(&self, request_headers: &HeaderMap, caching: &'static str) -> Response {
        // A weak tag, since the bytes depend on the compression (RFC 9110 section 8.8.1).
        let tag = format!("W/\"{}\"", self.hash);
        let held = is_held(request_headers, &tag);
        let mut response = match held {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => self.text.clone().into_response(),
        };
        let headers = response.headers_mut();
        if !held {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            headers.insert(header::ETAG, tag);
        }
        response
    }
}

/// Returns whether the client has the file with this tag cached (RFC 9110 section 13.1.2).
fn is_held(request_headers: &HeaderMap, tag: &str) -> bool {
    let fields = request_headers.get_all(header::IF_NONE_MATCH);
    fields
        .iter()
        .filter_map(|field| field.to_str().ok())
        .any(|field| {
            field
                .split(',')
                .map(str::trim)
                .any(|held| held == "*" || opaque(held) == opaque(tag))
        })
}

/// Returns the part of a tag used in weak comparison (RFC 9110 section 8.8.3.2).
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, StatusCode, header};

    use super::{SOURCES, StaticFiles};

    #[test]
    fn files_are_addressed_by_their_content() {
        let assets = StaticFiles::new();
        for source in &SOURCES {
            let path = assets.path(source.name);
            let file = path.strip_prefix("/assets/").unwrap();
            let answer = assets.hashed(file, &HeaderMap::new());
            assert_eq!(answer.status(), StatusCode::OK);
            assert_eq!(answer.headers()[header::CONTENT_TYPE], source.kind);
            let mut headers = HeaderMap::new();
            let tag = answer.headers()[header::ETAG].clone();
            headers.insert(header::IF_NONE_MATCH, tag);
            assert_eq!(
                assets.hashed(file, &headers).status(),
                StatusCode::NOT_MODIFIED
            );
            assert_eq!(
                assets.hashed(source.name, &headers).status(),
                StatusCode::NOT_FOUND
            );
        }
        assert_eq!(assets.embed(&HeaderMap::new()).status(), StatusCode::OK);
        assert_eq!(assets.path("gone.js"), "");
    }

    #[test]
    fn files_load_nothing_from_elsewhere() {
        for source in &SOURCES {
            let text = source.text();
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "eval(",
                "url(",
                "@import",
            ] {
                assert!(!text.contains(word), "{}: {word}", source.name);
            }
            let elsewhere =
                text.matches("://").count() - text.matches("http://www.w3.org/2000/svg").count();
            assert_eq!(elsewhere, 0, "{}", source.name);
        }
    }
}

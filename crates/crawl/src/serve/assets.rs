//! The files of the pages, which the program carries in itself.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use crawl_index::search_box::{BOX, RECENT, RESULTS, SHARED_STYLE};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use super::headers::CROSS_ORIGIN_RESOURCE_POLICY;
use super::problem::Problem;

/// A file, its text put together from parts.
struct Source {
    name: &'static str,
    kind: &'static str,
    /// What it consists of, one after the other, within a block of its own if it is a script.
    parts: &'static [&'static [&'static str]],
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// How pages of a server ask it.
const SERVER: &str = include_str!("page/server.js");

/// The snippet that other sites embed: under a name that never changes.
const EMBED: &str = "embed.js";

const SOURCES: [Source; 6] = [
    Source {
        name: "page.css",
        kind: "text/css; charset=utf-8",
        parts: &[&[SHARED_STYLE, include_str!("page/page.css")]],
    },
    Source {
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
    Source {
        name: "dialog.js",
        kind: SCRIPT,
        parts: &[&BOX, &[SERVER, include_str!("page/dialog.js")]],
    },
    Source {
        name: "crawl.js",
        kind: SCRIPT,
        parts: &[&[include_str!("page/crawl.js")]],
    },
    Source {
        name: "icon.svg",
        kind: "image/svg+xml",
        parts: &[&[include_str!("page/icon.svg")]],
    },
    Source {
        name: EMBED,
        kind: SCRIPT,
        parts: &[&BOX, &[SERVER, include_str!("page/embed.js")]],
    },
];

impl Source {
    fn text(&self) -> String {
        let text = self.parts.concat().concat();
        match self.kind {
            SCRIPT => format!("\"use strict\";{{\n{text}}}\n"),
            _ => text,
        }
    }
}

/// The files, each with the path that its content gives it.
#[derive(Debug)]
pub(crate) struct Assets(Vec<Asset>);

#[derive(Debug)]
struct Asset {
    name: &'static str,
    kind: &'static str,
    text: String,
    /// Of the text: another text has another one.
    hash: String,
}

impl Assets {
    pub(crate) fn new() -> Assets {
        let made = SOURCES.iter().map(|source| {
            let text = source.text();
            let digest = Sha256::digest(text.as_bytes());
            Asset {
                name: source.name,
                kind: source.kind,
                hash: HEXLOWER.encode(&digest[..8]),
                text,
            }
        });
        Assets(made.collect())
    }

    /// The path at which a file lies. An unknown name is a mistake of ours, and leads nowhere.
    pub(crate) fn path(&self, name: &str) -> String {
        let known = self.0.iter().find(|asset| asset.name == name);
        known.map_or_else(String::new, |asset| format!("/assets/{}", asset.file()))
    }

    /// Answers for `/assets/FILE`, which never changes.
    pub(crate) fn hashed(&self, file: &str, asked: &HeaderMap) -> Response {
        let found = self.0.iter().find(|asset| asset.file() == file);
        match found {
            Some(asset) => asset.answer(asked, "public, max-age=31536000, immutable"),
            None => Problem::new(StatusCode::NOT_FOUND, "there is no such file").into_response(),
        }
    }

    /// Answers for `/embed.js`, which any site may load, and which changes with the program.
    pub(crate) fn embed(&self, asked: &HeaderMap) -> Response {
        let Some(asset) = self.0.iter().find(|asset| asset.name == EMBED) else {
            return Problem::internal("the snippet is missing").into_response();
        };
        let mut response = asset.answer(asked, "public, max-age=600");
        let anyone = HeaderValue::from_static("cross-origin");
        response
            .headers_mut()
            .insert(CROSS_ORIGIN_RESOURCE_POLICY, anyone);
        response
    }
}

impl Asset {
    fn file(&self) -> String {
        let (stem, extension) = self.name.rsplit_once('.').unwrap_or((self.name, ""));
        format!("{stem}.{}.{extension}", self.hash)
    }

    fn answer(&self, asked: &HeaderMap, caching: &'static str) -> Response {
        // Weak, since the bytes differ by how they are compressed (RFC 9110 section 8.8.1).
        let tag = format!("W/\"{}\"", self.hash);
        let held = is_held(asked, &tag);
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

/// Returns whether the client holds the file with this tag (RFC 9110 section 13.1.2).
fn is_held(asked: &HeaderMap, tag: &str) -> bool {
    let fields = asked.get_all(header::IF_NONE_MATCH);
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

/// A tag as it is compared (RFC 9110 section 8.8.3.2, weak comparison).
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, StatusCode, header};

    use super::{Assets, SOURCES};

    #[test]
    fn a_file_is_asked_for_by_its_content() {
        let assets = Assets::new();
        for source in &SOURCES {
            let path = assets.path(source.name);
            let file = path.strip_prefix("/assets/").unwrap();
            let answer = assets.hashed(file, &HeaderMap::new());
            assert_eq!(answer.status(), StatusCode::OK);
            assert_eq!(answer.headers()[header::CONTENT_TYPE], source.kind);
            let mut asked = HeaderMap::new();
            let tag = answer.headers()[header::ETAG].clone();
            asked.insert(header::IF_NONE_MATCH, tag);
            assert_eq!(
                assets.hashed(file, &asked).status(),
                StatusCode::NOT_MODIFIED
            );
            assert_eq!(
                assets.hashed(source.name, &asked).status(),
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

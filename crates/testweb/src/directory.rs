//! Static files of a directory, mapped to paths as nginx does by default.

use std::path::{Path, PathBuf};

use crate::reply::Answer;

/// The answer for a path: a file's content, 301 for a directory without its slash, or 404.
pub(crate) fn answer(root: &Path, path: &str) -> Answer {
    let path = path.split('?').next().unwrap_or("/");
    let Some(mut file) = locate(root, path) else {
        return not_found();
    };
    if file.is_dir() {
        if !path.ends_with('/') {
            return Answer::redirect(301, &format!("{path}/"));
        }
        file.push("index.html");
    } else if path.ends_with('/') {
        return not_found();
    }
    match std::fs::read(&file) {
        Ok(body) => Answer::of(200)
            .header("content-type", content_type(&file))
            .body(body),
        Err(_) => not_found(),
    }
}

fn locate(root: &Path, path: &str) -> Option<PathBuf> {
    let mut file = root.to_owned();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let segment = String::from_utf8(percent_decode(segment)?).ok()?;
        if segment == ".." || segment == "." || segment.contains(['/', '\0']) {
            return None;
        }
        file.push(segment);
    }
    Some(file)
}

fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    Some(bytes)
}

fn content_type(file: &Path) -> &'static str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("html" | "htm") => "text/html",
        Some("txt") => "text/plain",
        Some("xml") => "text/xml",
        Some("css") => "text/css",
        Some("js") => "application/javascript",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("gif") => "image/gif",
        Some("jpg" | "jpeg") => "image/jpeg",
        _ => "application/octet-stream",
    }
}

fn not_found() -> Answer {
    Answer::of(404)
        .header("content-type", "text/html")
        .body("<title>404 Not Found</title>")
}

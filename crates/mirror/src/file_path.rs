//! Derives the path of a file in the mirror from a URL.

use std::borrow::Cow;

use crawl_archive::{decoded_url_part, safe_file_name};
use crawl_weburl::CanonicalUrl;

use crate::media_type::name_and_extension;

/// Maximum number of folders in a path. In a deeper path, the names of the remaining folders become
/// part of the file name.
const MAX_FOLDERS: usize = 16;

/// Returns the preferred path of the file for a URL, such as `example.org/docs/tea_page=2.html` for
/// a page at `https://example.org/docs/tea.html?page=2`. `folder` is the folder of the URL's
/// origin. Two URLs may have the same preferred path.
///
/// Each part of the path comes from [`safe_file_name`], so no path leads out of the mirror.
pub(crate) fn wanted_path(url: &CanonicalUrl, folder: &str, media_type: Option<&str>) -> String {
    let path_and_query = url.path_and_query();
    let (path, query) = match path_and_query.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path_and_query, None),
    };
    let mut parts: Vec<Cow<'_, str>> = path.split('/').skip(1).map(decoded_url_part).collect();
    let last = parts.pop().unwrap_or_default();
    let last = if last.is_empty() {
        Cow::Borrowed("index")
    } else {
        last
    };
    let (stem, extension) = name_and_extension(&last, media_type);
    let folders = parts.len().min(MAX_FOLDERS);
    let mut file = parts[folders..].join("_");
    if !file.is_empty() {
        file.push('_');
    }
    file.push_str(stem);
    if let Some(query) = query {
        file.push('_');
        file.push_str(&decoded_url_part(query));
    }
    let mut wanted = folder.to_owned();
    for part in &parts[..folders] {
        wanted.push('/');
        wanted.push_str(&safe_file_name(part));
    }
    wanted.push('/');
    wanted.push_str(&safe_file_name(&file));
    if !extension.is_empty() {
        wanted.push('.');
        wanted.push_str(&extension);
    }
    wanted
}

/// Returns the name of an origin's folder: the host, and the port if it is not the scheme's
/// default. `is_shared` means that the mirror also contains the `https` origin of the same host. In
/// that case, the folder of an `http` origin gets the suffix `_http`.
pub(crate) fn origin_folder(url: &CanonicalUrl, is_shared: bool) -> String {
    let (scheme, authority) = scheme_and_authority(url);
    let mark = if is_shared && scheme == "http" {
        "_http"
    } else {
        ""
    };
    safe_file_name(&format!("{}{mark}", authority.replace(':', "_")))
}

/// Returns the scheme of a URL, and its host with the port.
pub(crate) fn scheme_and_authority(url: &CanonicalUrl) -> (&str, &str) {
    let origin = url.origin_text();
    origin.split_once("://").unwrap_or(("", origin))
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use crawl_weburl::canonicalize;
    use proptest::prelude::*;

    use super::{origin_folder, wanted_path};

    fn path(url: &str, media_type: Option<&str>) -> String {
        let url = canonicalize(None, url).unwrap();
        wanted_path(&url, &origin_folder(&url, false), media_type)
    }

    #[test]
    fn urls_become_paths() {
        for (url, media_type, expected) in [
            ("https://e.example/", "text/html", "e.example/index.html"),
            (
                "https://e.example/a/",
                "text/html",
                "e.example/a/index.html",
            ),
            ("https://e.example/a", "text/html", "e.example/a.html"),
            (
                "https://e.example/a.php?b=c&d",
                "text/html",
                "e.example/a.php_b=c_d.html",
            ),
            (
                "https://e.example/s.css?v=3",
                "text/css",
                "e.example/s_v=3.css",
            ),
            (
                "https://e.example/?q=a/b",
                "text/html",
                "e.example/index_q=a_b.html",
            ),
            (
                "http://e.example:8080/logo",
                "image/png",
                "e.example_8080/logo.png",
            ),
            (
                "https://[::1]:8/feed/",
                "application/rss+xml",
                "___1__8/feed/index.xml",
            ),
            (
                "https://e.example/caf%C3%A9%20x",
                "text/html",
                "e.example/caf\u{e9}_x.html",
            ),
            ("https://e.example/%ff", "text/html", "e.example/_ff.html"),
            (
                "https://e.example/%2e%2e%2fx",
                "text/html",
                "e.example/_.._x.html",
            ),
            (
                "https://e.example/..%5c..%5cx",
                "text/html",
                "e.example/_.._.._x.html",
            ),
            (
                "https://e.example/con/aux.css",
                "text/css",
                "e.example/_con/_aux.css",
            ),
        ] {
            assert_eq!(path(url, Some(media_type)), expected, "{url}");
        }
    }

    #[test]
    fn schemes_and_ports_of_a_host_have_folders_of_their_own() {
        let folder = |url, is_shared| {
            let url = canonicalize(None, url).unwrap();
            origin_folder(&url, is_shared)
        };
        assert_eq!(folder("https://e.example/", true), "e.example");
        assert_eq!(folder("http://e.example/", true), "e.example_http");
        assert_eq!(folder("http://e.example/", false), "e.example");
        assert_eq!(folder("https://e.example:81/", true), "e.example_81");
    }

    proptest! {
        #[test]
        fn no_path_leads_out_of_the_folder(rest in "[a-z./\\\\%25ef:?*|\u{0}\u{e9}#-]{0,60}") {
            let Ok(url) = canonicalize(None, &format!("https://e.example/{rest}")) else {
                return Ok(());
            };
            let path = wanted_path(&url, &origin_folder(&url, false), Some("text/html"));
            prop_assert!(path.starts_with("e.example/"));
            prop_assert!(path.split('/').all(|part| part.len() <= 120));
            for part in Path::new(&path).components() {
                let Component::Normal(part) = part else { panic!("{path}") };
                let part = part.to_str().unwrap();
                prop_assert!(!part.starts_with('.') && !part.ends_with('.'), "{}", path);
                prop_assert!(!part.contains(['\\', ':', '\0', '*', '?', '|']), "{}", path);
            }
        }
    }
}

//! Chooses the names of the Markdown files of pages.

use std::borrow::Cow;

use crawl_archive::{decoded_url_part, safe_file_name};

use crawl_index_entry::IndexedPage;

/// Maximum number of folders in the path of a file.
const MAX_FOLDERS: usize = 16;

/// Returns the path that the file of a page should have: `example.org/docs/tea.md` for
/// `https://example.org/docs/tea.html`. Folders are separated by `/`.
pub(super) fn markdown_name(page: &IndexedPage) -> String {
    let (path, query) = match page.path().split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (page.path(), None),
    };
    let mut parts: Vec<Cow<'_, str>> = path.split('/').skip(1).map(decoded_url_part).collect();
    let last = parts.pop().unwrap_or_default();
    let last = [".html", ".htm", ".xhtml"]
        .iter()
        .find_map(|ending| last.strip_suffix(ending))
        .unwrap_or(&last);
    let last = if last.is_empty() { "index" } else { last };
    let mut name = safe_file_name(&page.host().replace(':', "_"));
    let folders = parts.len().min(MAX_FOLDERS);
    for folder in &parts[..folders] {
        name.push('/');
        let folder = safe_file_name(folder);
        name.push_str(&folder);
        // Every file name ends in `.md`, and no folder name does. So `/a` and `/a.md/b` can't get
        // the same path.
        if folder.to_ascii_lowercase().ends_with(".md") {
            name.push('_');
        }
    }
    name.push('/');
    let rest = parts[folders..].join("_");
    let mut file = match rest.is_empty() {
        true => last.to_owned(),
        false => format!("{rest}_{last}"),
    };
    if let Some(query) = query {
        file.push('_');
        file.push_str(&decoded_url_part(query));
    }
    name.push_str(&safe_file_name(&file));
    name.push_str(".md");
    name
}

#[cfg(test)]
mod tests {
    use crawl_archive::{MAX_FILE_NAME_BYTES, UrlFilePathAssigner};
    use crawl_index_entry::IndexedPage;

    use super::markdown_name;

    fn names(urls: &[&str]) -> Vec<String> {
        let mut names = UrlFilePathAssigner::default();
        for url in urls {
            let page = IndexedPage {
                url: (*url).to_owned(),
                ..IndexedPage::default()
            };
            names.add(url, markdown_name(&page));
        }
        names.settle();
        let name = |url: &&str| names.get(url).unwrap().to_owned();
        urls.iter().map(name).collect()
    }

    #[test]
    fn each_page_has_a_file_of_its_own() {
        let urls = [
            "https://e.example/",
            "https://e.example/docs/tea.html",
            "https://e.example/docs/tea",
            "https://e.example/docs/Tea",
            "https://e.example/docs/tea-2",
            "https://e.example:8080/a?b=c/d",
            "https://e.example/../.git/config",
            "https://e.example/%2e%2e%2fx",
            "https://e.example/h%C3%A9llo/%D0%B4%D0%B0?%D1%8F",
            "https://e.example/%FF",
        ];
        let expected = [
            "e.example/index.md",
            "e.example/docs/tea-3.md",
            "e.example/docs/tea-2.md",
            "e.example/docs/Tea.md",
            "e.example/docs/tea-2-2.md",
            "e.example_8080/a_b=c_d.md",
            "e.example/_.._/_.git/config.md",
            "e.example/_.._x.md",
            "e.example/h\u{e9}llo/\u{434}\u{430}_\u{44f}.md",
            "e.example/_FF.md",
        ];
        assert_eq!(names(&urls), expected);
    }

    #[test]
    fn names_do_not_depend_on_the_order_of_pages() {
        let mut urls = [
            "https://e.example/a",
            "https://e.example/A",
            "http://e.example/a",
        ];
        let named = names(&urls);
        assert_eq!(
            named,
            ["e.example/a-3.md", "e.example/A-2.md", "e.example/a.md"]
        );
        urls.reverse();
        let reversed: Vec<_> = names(&urls).into_iter().rev().collect();
        assert_eq!(named, reversed);
    }

    #[test]
    fn no_file_has_the_name_of_a_folder_or_a_device() {
        let urls = [
            "https://e.example/a",
            "https://e.example/a.md/b",
            "https://e.example/a.MD/c",
            "https://e.example/b./c.",
            "https://e.example/con/LPT1.txt",
            "https://e.example/console",
        ];
        let expected = [
            "e.example/a.md",
            "e.example/a.md_/b.md",
            "e.example/a.MD_/c.md",
            "e.example/b._/c._.md",
            "e.example/_con/_LPT1.txt.md",
            "e.example/console.md",
        ];
        assert_eq!(names(&urls), expected);
    }

    #[test]
    fn long_and_deep_paths_stay_within_file_system_limits() {
        let long = format!("https://e.example/{}", "x".repeat(5_000));
        let longer = format!("{long}y");
        let deep = format!("https://e.example/{}", "a/".repeat(500));
        let names = names(&[&long, &longer, &deep]);
        assert_ne!(names[0], names[1]);
        for name in names {
            let parts: Vec<&str> = name.split('/').collect();
            assert!(parts.len() <= 18, "{name}");
            let longest = parts.iter().map(|part| part.len()).max().unwrap();
            assert!(longest <= MAX_FILE_NAME_BYTES + 3, "{name}");
        }
    }
}

//! Chooses the names of files that contain pages.

use std::collections::{BTreeMap, HashMap};

use xxhash_rust::xxh3::xxh3_64;

use crawl_index_entry::IndexedPage;

/// Maximum length of a folder or file name in bytes.
const MAX_PART_BYTES: usize = 100;

/// Maximum number of folders in the path of a file.
const MAX_FOLDERS: usize = 16;

/// Assigns a different file to each page. Names stay distinct on file systems that ignore case, and
/// no file has the same name as a folder. The names depend on the set of pages, but not on the
/// order of `add`.
#[derive(Debug, Default)]
pub(super) struct FileNames {
    /// The pages that `settle` will name. Each has the name that it gets if no other page wants the
    /// same name.
    wanted: BTreeMap<Box<str>, String>,
    by_url: HashMap<Box<str>, Box<str>>,
    /// Maps each wanted name, in lower case, to the number of pages that want it.
    taken: HashMap<Box<str>, u32>,
}

impl FileNames {
    /// Adds a page. For `https://example.org/docs/tea.html`, the wanted name is
    /// `example.org/docs/tea.md`.
    pub(super) fn add(&mut self, page: &IndexedPage) {
        let url = page.url.as_str().into();
        self.wanted.insert(url, name_of(page));
    }

    /// Gives each added page its final name, in the order of URLs.
    pub(super) fn settle(&mut self) {
        for (url, mut name) in std::mem::take(&mut self.wanted) {
            loop {
                let count = self.taken.entry(name.to_lowercase().into()).or_insert(0);
                *count += 1;
                if *count == 1 {
                    break;
                }
                let stem = name.strip_suffix(".md").unwrap_or(&name);
                name = format!("{stem}-{count}.md");
            }
            self.by_url.insert(url, name.into());
        }
    }

    /// Returns the file of a page that `settle` has named. Folders are separated by `/`.
    pub(super) fn get(&self, url: &str) -> Option<&str> {
        self.by_url.get(url).map(|name| &**name)
    }
}

fn name_of(page: &IndexedPage) -> String {
    let (path, query) = match page.path().split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (page.path(), None),
    };
    let mut parts: Vec<&str> = path.split('/').skip(1).collect();
    let last = parts.pop().unwrap_or_default();
    let last = [".html", ".htm", ".xhtml"]
        .iter()
        .find_map(|ending| last.strip_suffix(ending))
        .unwrap_or(last);
    let last = if last.is_empty() { "index" } else { last };
    let mut name = part(&page.host().replace(':', "_"));
    let folders = parts.len().min(MAX_FOLDERS);
    for folder in &parts[..folders] {
        name.push('/');
        let folder = part(folder);
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
        file.push_str(query);
    }
    name.push_str(&part(&file));
    name.push_str(".md");
    name
}

/// Converts a part of a URL's path to a file name that every file system accepts. A name that is
/// too long is cut, and a hash is added.
pub(super) fn part(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '=' | '~');
    let mut part: String = text
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    if part.len() > MAX_PART_BYTES {
        let hash = xxh3_64(text.as_bytes());
        part.truncate(part.floor_char_boundary(MAX_PART_BYTES - 17));
        part.push_str(&format!("-{hash:016x}"));
    }
    // Avoid names that would be hidden, refer to a parent folder, or name a device of Windows.
    if part.is_empty() || part.starts_with('.') || is_device(&part) {
        part.insert(0, '_');
    }
    // Windows removes dots at the end of a name.
    if part.ends_with('.') {
        part.push('_');
    }
    part
}

/// Returns true if Windows treats the file name as a device. The extension of the name doesn't
/// matter.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let stem = stem.to_ascii_lowercase();
    let is_numbered = |kind: &str| {
        let number = stem.strip_prefix(kind);
        number.is_some_and(|number| number.len() == 1 && number.bytes().all(|b| b.is_ascii_digit()))
    };
    matches!(stem.as_str(), "con" | "prn" | "aux" | "nul")
        || is_numbered("com")
        || is_numbered("lpt")
}

/// Returns the relative path that leads from one file to another. Folders are separated by `/`.
pub(super) fn relative(from: &str, to: &str) -> String {
    let folder = |name: &str| name.rfind('/').map_or(0, |slash| slash + 1);
    let (from, file) = (&from[..folder(from)], &to[folder(to)..]);
    let (from, to): (Vec<&str>, Vec<&str>) = (
        from.split_terminator('/').collect(),
        to[..folder(to)].split_terminator('/').collect(),
    );
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let mut path = "../".repeat(from.len() - shared);
    for folder in &to[shared..] {
        path.push_str(folder);
        path.push('/');
    }
    path.push_str(file);
    path
}

#[cfg(test)]
mod tests {
    use super::{FileNames, MAX_PART_BYTES, relative};
    use crawl_index_entry::IndexedPage;

    fn names(urls: &[&str]) -> Vec<String> {
        let mut names = FileNames::default();
        for url in urls {
            names.add(&IndexedPage {
                url: (*url).to_owned(),
                ..IndexedPage::default()
            });
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
        ];
        let expected = [
            "e.example/index.md",
            "e.example/docs/tea-3.md",
            "e.example/docs/tea-2.md",
            "e.example/docs/Tea.md",
            "e.example/docs/tea-2-2.md",
            "e.example_8080/a_b=c_d.md",
            "e.example/_.._/_.git/config.md",
            "e.example/_2e_2e_2fx.md",
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
            assert!(longest <= MAX_PART_BYTES + 3, "{name}");
        }
    }

    #[test]
    fn relative_paths_lead_to_files() {
        let check = |from, to, expected| assert_eq!(relative(from, to), expected, "{from} {to}");
        check("h/a.md", "h/b.md", "b.md");
        check("h/a/b.md", "h/c.md", "../c.md");
        check("h/a/b.md", "i/c/d.md", "../../i/c/d.md");
        check("h/a.md", "h/b/c.md", "b/c.md");
    }
}

//! Names of files and folders that are made from URLs.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use percent_encoding::percent_decode_str;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum length of a folder or file name in bytes, without the extension that a caller adds.
pub const MAX_FILE_NAME_BYTES: usize = 100;

/// Assigns a different path to each URL. Paths stay distinct on file systems that ignore case or
/// store accents differently, and no file has the same path as a folder. Paths depend on the set of
/// URLs, but not on the order of [`UrlFilePathAssigner::add`].
///
/// ```
/// use crawl_archive::UrlFilePathAssigner;
///
/// let mut names = UrlFilePathAssigner::default();
/// names.add("https://e.example/tea", "e.example/tea.html".to_owned());
/// names.add("https://e.example/Tea", "e.example/Tea.html".to_owned());
/// names.settle();
/// assert_eq!(names.get("https://e.example/Tea"), Some("e.example/Tea.html"));
/// assert_eq!(names.get("https://e.example/tea"), Some("e.example/tea-2.html"));
/// ```
#[derive(Debug, Default)]
pub struct UrlFilePathAssigner {
    /// The URLs that [`UrlFilePathAssigner::settle`] will name, each with its preferred path.
    wanted: BTreeMap<Box<str>, String>,
    by_url: HashMap<Box<str>, Box<str>>,
}

impl UrlFilePathAssigner {
    /// Adds a URL with its preferred path. Folders are separated by `/`, and each part of the path
    /// should come from [`safe_file_name`].
    pub fn add(&mut self, url: &str, wanted: String) {
        self.wanted.insert(url.into(), wanted);
    }

    /// Assigns the final path of each added URL, in the order of URLs. If the preferred path is
    /// already taken by a file or a folder, a number is added before the extension. Call this once,
    /// after all calls of [`UrlFilePathAssigner::add`].
    pub fn settle(&mut self) {
        // For each path, in the form of [`folded`]: the number of URLs and folders that use the
        // path.
        let mut taken: HashMap<Box<str>, u32> = HashMap::new();
        let wanted = std::mem::take(&mut self.wanted);
        for path in wanted.values() {
            let slashes = path.bytes().enumerate().filter(|(_, byte)| *byte == b'/');
            for (slash, _) in slashes {
                taken.entry(folded(&path[..slash])).or_insert(1);
            }
        }
        for (url, mut path) in wanted {
            loop {
                let count = taken.entry(folded(&path)).or_insert(0);
                *count += 1;
                if *count == 1 {
                    break;
                }
                let folder = path.rfind('/').map_or(0, |slash| slash + 1);
                let dot = path[folder..].rfind('.').map(|dot| folder + dot);
                let (stem, ending) = path.split_at(dot.unwrap_or(path.len()));
                path = format!("{stem}-{count}{ending}");
            }
            self.by_url.insert(url, path.into());
        }
    }

    /// Returns the path of a URL that [`UrlFilePathAssigner::settle`] has named.
    #[must_use]
    pub fn get(&self, url: &str) -> Option<&str> {
        self.by_url.get(url).map(|name| &**name)
    }

    /// Removes a URL. The paths of other URLs stay.
    pub fn remove(&mut self, url: &str) {
        self.by_url.remove(url);
    }
}

/// Returns a path in the form that the least exact file systems compare: case folded, and with
/// accents composed.
fn folded(path: &str) -> Box<str> {
    match path.is_ascii() {
        true => path.to_ascii_uppercase().into(),
        false => ComposingNormalizerBorrowed::new_nfc()
            .normalize(path)
            .to_uppercase()
            .into(),
    }
}

/// Converts a part of a URL's path to a file name that every file system accepts. Characters other
/// than letters with their marks, digits and `-_.=~` become `_`. A name of more than
/// [`MAX_FILE_NAME_BYTES`] is truncated, and a hash is added. The result is never empty, hidden, a
/// parent folder, or a device of Windows.
#[must_use]
pub fn safe_file_name(text: &str) -> String {
    let classes = CanonicalCombiningClassMapBorrowed::new();
    let is_plain = |c: char| {
        c.is_alphanumeric()
            || matches!(c, '-' | '_' | '.' | '=' | '~')
            || !c.is_ascii() && classes.get_u8(c) != 0
    };
    let mut part: String = text
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    if part.len() > MAX_FILE_NAME_BYTES {
        let hash = xxh3_64(text.as_bytes());
        part.truncate(part.floor_char_boundary(MAX_FILE_NAME_BYTES - 17));
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

/// Decodes percent-encoded characters of a part of a URL. If the result is not valid UTF-8, returns
/// the text unchanged.
#[must_use]
pub fn decoded_url_part(text: &str) -> Cow<'_, str> {
    percent_decode_str(text)
        .decode_utf8()
        .unwrap_or(Cow::Borrowed(text))
}

/// Returns true if Windows treats the file name as a device, such as `nul.txt`.
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

/// Returns the relative path from one file to another. Folders are separated by `/`.
#[must_use]
pub fn relative_path(from: &str, to: &str) -> String {
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
    use super::{MAX_FILE_NAME_BYTES, UrlFilePathAssigner, relative_path, safe_file_name};

    fn names(wanted: &[&str]) -> Vec<String> {
        let mut names = UrlFilePathAssigner::default();
        for path in wanted {
            names.add(path, (*path).to_owned());
        }
        names.settle();
        let name = |url: &&str| names.get(url).unwrap().to_owned();
        wanted.iter().map(name).collect()
    }

    #[test]
    fn names_that_differ_only_in_case_or_accents_get_numbers() {
        assert_eq!(
            names(&["h/Tea.html", "h/tea.html", "h/TEA.html", "h/tea-2.html"]),
            [
                "h/Tea-2.html",
                "h/tea-3.html",
                "h/TEA.html",
                "h/tea-2-2.html"
            ]
        );
        assert_eq!(
            names(&["h/e\u{301}.html", "h/\u{e9}.html"]),
            ["h/e\u{301}.html", "h/\u{e9}-2.html"]
        );
    }

    #[test]
    fn a_file_gives_way_to_a_folder() {
        assert_eq!(
            names(&["h/a", "h/a/b.html", "h/c.css", "h/C.CSS/d"]),
            ["h/a-2", "h/a/b.html", "h/c-2.css", "h/C.CSS/d"]
        );
    }

    #[test]
    fn names_are_safe_on_every_file_system() {
        for (text, expected) in [
            ("", "_"),
            ("..", "_.._"),
            (".git", "_.git"),
            ("../../etc/passwd", "_.._.._etc_passwd"),
            ("a\\b:c*d?e\"f<g>h|i\0j", "a_b_c_d_e_f_g_h_i_j"),
            ("con", "_con"),
            ("LPT1.txt", "_LPT1.txt"),
            ("console", "console"),
            ("b.", "b._"),
            ("t\u{e9}\u{202e}", "t\u{e9}_"),
            ("e\u{301}t\u{e9}", "e\u{301}t\u{e9}"),
            (
                "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}",
                "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}",
            ),
        ] {
            assert_eq!(safe_file_name(text), expected, "{text}");
        }
        let (long, longer) = ("x".repeat(5_000), "x".repeat(5_001));
        assert_ne!(safe_file_name(&long), safe_file_name(&longer));
        assert!(safe_file_name(&"\u{e9}".repeat(500)).len() <= MAX_FILE_NAME_BYTES);
    }

    #[test]
    fn relative_paths_lead_to_files() {
        let check =
            |from, to, expected| assert_eq!(relative_path(from, to), expected, "{from} {to}");
        check("h/a.md", "h/b.md", "b.md");
        check("h/a/b.md", "h/c.md", "../c.md");
        check("h/a/b.md", "i/c/d.md", "../../i/c/d.md");
        check("h/a.md", "h/b/c.md", "b/c.md");
    }
}

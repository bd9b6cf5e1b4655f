//! Detects versions of a page: pages with the same title and similar text, whose URLs differ only
//! by a version (`/14/create.html` and `/15/create.html`).
//!
//! A number in a URL can mean other things, such as a chapter. So titles and texts decide whether
//! two pages are versions of one page, and [`VersionInUrl`] only finds candidates.

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

use xxhash_rust::xxh3::xxh3_64;

use crawl_index_entry::IndexedPage;

/// Names of the version that most readers want, best first.
const RELEASED: [&str; 3] = ["stable", "current", "latest"];
/// Names of unreleased versions.
const UNRELEASED: [&str; 10] = [
    "next",
    "dev",
    "devel",
    "development",
    "main",
    "master",
    "nightly",
    "trunk",
    "edge",
    "unstable",
];
/// Suffixes that mark a version number as a pre-release, such as `3.11rc1`.
const PRERELEASES: [&str; 7] = ["alpha", "beta", "rc", "pre", "dev", "a", "b"];
/// Maximum number of numbers in a version, such as three in `1.2.3`.
const MAX_NUMBERS: usize = 4;
/// Maximum number of digits of a number in a version.
const MAX_DIGITS: usize = 4;
/// Maximum digits of a version that is a single number. Longer numbers are usually years or IDs.
const MAX_LONE_DIGITS: usize = 3;

/// Number of consecutive words that are hashed together to compare texts. Such a group of words is
/// called a row.
const ROW: usize = 3;
/// Number of rows (groups of consecutive words) of a page that are compared: those with the
/// smallest hashes.
const SKETCH: usize = 48;
/// Minimum share of rows (groups of consecutive words) that two versions of a page have in common.
/// For comparison: if half of the words are the same, about a third of the rows are.
const MIN_SHARED: f64 = 0.2;

/// The version that a page's URL contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionInUrl<'u> {
    /// The version as written: `14`, `v1.2`, `latest`.
    pub(crate) label: &'u str,
    /// The URL up to and including the version, without a slash at the end:
    /// `http://a.example/docs/14`.
    pub(crate) folder: &'u str,
    rank: VersionRank,
}

/// The rank of a version among all versions of a page. The greatest rank is preferred.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum VersionRank {
    Unreleased(Reverse<usize>),
    /// The version's numbers, and true if it is not a pre-release.
    Numbered([u32; MAX_NUMBERS], bool),
    Released(Reverse<usize>),
    /// The URL contains no version, so the page is the version that the site shows by default.
    Unnamed,
}

impl VersionInUrl<'_> {
    /// Returns the version in a page's URL: the first folder in the path that looks like a version.
    pub(crate) fn of(url: &str) -> Option<VersionInUrl<'_>> {
        let path_at = url.find("://").map_or(0, |at| at + 3);
        let path_at = path_at + url[path_at..].find('/')?;
        let end = url.find(['?', '#']).unwrap_or(url.len());
        let mut at = path_at + 1;
        while let Some(label) = url.get(at..end)?.split('/').next()
            && at + label.len() < end
        {
            let behind = &url[at + label.len() + 1..end];
            if let Some(rank) = VersionRank::of(label, !behind.is_empty()) {
                let folder = &url[..at + label.len()];
                return Some(VersionInUrl {
                    label,
                    folder,
                    rank,
                });
            }
            at += label.len() + 1;
        }
        None
    }
}

impl VersionRank {
    /// Returns the rank of a folder name as a version; `None` if it isn't one. A single number
    /// counts only if the path continues after the folder (`has_more`).
    fn of(label: &str, has_more: bool) -> Option<VersionRank> {
        let lower = label.to_ascii_lowercase();
        let place = |names: &[&str]| names.iter().position(|name| *name == lower).map(Reverse);
        if let Some(place) = place(&RELEASED) {
            return Some(VersionRank::Released(place));
        }
        if let Some(place) = place(&UNRELEASED) {
            return Some(VersionRank::Unreleased(place));
        }
        let number = lower.strip_prefix("version-").unwrap_or(&lower);
        let number = number.strip_prefix("release-").unwrap_or(number);
        let plain = number.strip_prefix('v').unwrap_or(number);
        let is_lone = plain == lower && plain.bytes().all(|byte| byte.is_ascii_digit());
        let is_version = has_more && plain.len() <= MAX_LONE_DIGITS && !plain.starts_with('0');
        if is_lone && !is_version {
            return None;
        }
        numbered(plain)
    }
}

/// Parses a version number such as `1.2`, `3.11rc1` or `2.x`.
fn numbered(text: &str) -> Option<VersionRank> {
    let mut numbers = [0; MAX_NUMBERS];
    let mut rest = text;
    for (n, number) in numbers.iter_mut().enumerate() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 || digits > MAX_DIGITS {
            return None;
        }
        *number = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        match rest.strip_prefix('.') {
            Some("x") => {
                rest = "";
                break;
            }
            Some(more) if n + 1 < MAX_NUMBERS && more.starts_with(|c: char| c.is_ascii_digit()) => {
                rest = more;
            }
            _ => break,
        }
    }
    if rest.is_empty() {
        return Some(VersionRank::Numbered(numbers, true));
    }
    let ending = rest.trim_start_matches(['-', '.', '_']);
    let name = ending.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_before = PRERELEASES.contains(&name);
    is_before.then_some(VersionRank::Numbered(numbers, false))
}

/// The URL of a page and hashes of its text, to find out whether it is a version of another page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionCandidate {
    pub(crate) url: String,
    /// The smallest hashes of the page's rows (groups of consecutive words), sorted.
    pub(crate) sketch: Vec<u32>,
}

impl VersionCandidate {
    pub(crate) fn of(page: &IndexedPage) -> VersionCandidate {
        VersionCandidate {
            url: page.url.clone(),
            sketch: sketch(&page.text),
        }
    }

    /// Encodes the page as bytes: the number of its hashes, the hashes, and the URL.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![u8::try_from(self.sketch.len()).unwrap_or(0)];
        bytes.extend(self.sketch.iter().flat_map(|hash| hash.to_be_bytes()));
        bytes.extend(self.url.as_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<VersionCandidate> {
        let (hashes, rest) = bytes.split_first()?;
        let (hashes, url) = rest.split_at_checked(usize::from(*hashes) * size_of::<u32>())?;
        let hashes = hashes.as_chunks().0.iter();
        Some(VersionCandidate {
            url: String::from_utf8_lossy(url).into_owned(),
            sketch: hashes.map(|hash| u32::from_be_bytes(*hash)).collect(),
        })
    }

    /// Orders pages by version, preferred first. Among pages of the same version the shorter URL
    /// comes first.
    pub(crate) fn by_preference(&self, other: &VersionCandidate) -> Ordering {
        let rank = |url| VersionInUrl::of(url).map_or(VersionRank::Unnamed, |version| version.rank);
        let by_rank = rank(&other.url).cmp(&rank(&self.url));
        let by_length = self.url.len().cmp(&other.url.len());
        by_rank
            .then(by_length)
            .then_with(|| self.url.cmp(&other.url))
    }

    /// Returns whether the text of this page is similar to the text of `other`.
    #[expect(clippy::cast_precision_loss, reason = "a sketch has few hashes")]
    pub(crate) fn is_like(&self, other: &VersionCandidate) -> bool {
        // The smallest hashes of both pages together are a fair sample of all their rows.
        let mut both = [&self.sketch[..], &other.sketch].concat();
        both.sort_unstable();
        both.dedup();
        both.truncate(SKETCH);
        let has = |sketch: &[u32], hash| sketch.binary_search(hash).is_ok();
        let shared = both
            .iter()
            .filter(|hash| has(&self.sketch, hash) && has(&other.sketch, hash));
        // Texts shorter than `ROW` words have no rows to compare.
        !both.is_empty() && shared.count() as f64 >= MIN_SHARED * both.len() as f64
    }
}

/// Returns true if a folder without a scheme (`example.org/docs/14`) is the folder of a version, or
/// inside such a folder.
pub(crate) fn is_versioned_folder(folder: &str) -> bool {
    VersionInUrl::of(&format!("http://{folder}/-")).is_some()
}

/// Orders version names by rank, preferred first.
pub(crate) fn newer_label_first(a: &str, b: &str) -> Ordering {
    let rank = |label| VersionRank::of(label, true);
    rank(b).cmp(&rank(a)).then_with(|| a.cmp(b))
}

/// Returns a URL without the folder that is its version.
pub(crate) fn unversioned(url: &str) -> Cow<'_, str> {
    let Some(version) = VersionInUrl::of(url) else {
        return Cow::Borrowed(url);
    };
    let before = &version.folder[..version.folder.len() - version.label.len()];
    let behind = &url[version.folder.len() + 1..];
    Cow::Owned(format!("{before}{behind}"))
}

/// Returns a number that is the same for pages that may be versions of each other. It is a hash of
/// the URL without the version, and of the title without numbers and version names.
pub(crate) fn family(page: &IndexedPage) -> u64 {
    let mut key = unversioned(&page.url).into_owned() + "\n";
    let title = page.title.to_lowercase();
    for word in title.split(|c: char| !c.is_alphanumeric() && c != '.' && c != '_') {
        let word = word.trim_matches('.');
        let is_version = word.is_empty() || VersionRank::of(word, true).is_some();
        if !is_version && !word.bytes().all(|byte| byte.is_ascii_digit()) {
            key.push_str(word);
            key.push(' ');
        }
    }
    xxh3_64(key.as_bytes())
}

fn sketch(text: &str) -> Vec<u32> {
    let mut smallest: BTreeSet<u32> = BTreeSet::new();
    let (mut row, mut words) = (0_u64, 0);
    for word in text.split_whitespace() {
        // Add the hash of this word, and shift out that of the word `ROW` words earlier.
        row = (row << (64 / ROW)) ^ (xxh3_64(word.as_bytes()) >> (64 - 64 / ROW));
        words += 1;
        if words < ROW {
            continue;
        }
        let [a, b, c, d, ..] = xxh3_64(&row.to_le_bytes()).to_le_bytes();
        let hash = u32::from_le_bytes([a, b, c, d]);
        if smallest.len() < SKETCH || smallest.last().is_some_and(|last| hash < *last) {
            smallest.insert(hash);
            if smallest.len() > SKETCH {
                smallest.pop_last();
            }
        }
    }
    smallest.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{VersionCandidate, VersionInUrl, family};
    use crawl_index_entry::IndexedPage;

    #[test]
    fn versions_in_addresses() {
        let label = |path: &str| {
            let url = format!("http://a.example{path}");
            VersionInUrl::of(&url).map_or("-".to_owned(), |version| version.label.to_owned())
        };
        let paths = [
            "/14/create.html",
            "/docs/v1.2/",
            "/3.11/library/os.html?x=/2.0/",
            "/en/latest/",
            "/stable/a",
            "/3.13.0rc1/a",
            "/2.x/a",
            "/release-1.4/a",
            // The following URLs contain no version. Only the beginning of a DOI, `10.1000`, is
            // mistaken for one.
            "/14",
            "/item/14/",
            "/2024/05/a",
            "/item/123456/a",
            "/v/a",
            "/1.2.3.4.5/a",
            "/10.1000/xyz",
            "/3d/a",
            "/latest",
            "/",
        ];
        let labels: Vec<String> = paths.iter().map(|path| label(path)).collect();
        expect!["14 v1.2 3.11 latest stable 3.13.0rc1 2.x release-1.4 - - - - - - 10.1000 - - -"]
            .assert_eq(&labels.join(" "));
    }

    #[test]
    fn the_newest_release_is_preferred() {
        let page = |path: &str| VersionCandidate {
            url: format!("http://a.example{path}/a"),
            sketch: Vec::new(),
        };
        let names = [
            "/3.9", "/dev", "/3.11", "/latest", "/main", "/3.12rc1", "/stable", "", "/v3.10",
            "/3.12",
        ];
        let mut pages = names.map(page);
        pages.sort_by(VersionCandidate::by_preference);
        let order: Vec<&str> = pages.iter().map(|page| &page.url[16..]).collect();
        expect!["/a /stable/a /latest/a /3.12/a /3.12rc1/a /3.11/a /v3.10/a /3.9/a /dev/a /main/a"]
            .assert_eq(&order.join(" "));
    }

    #[test]
    fn chapters_are_no_versions() {
        let page = |url: &str, title: &str, text: &str| IndexedPage {
            url: format!("http://a.example{url}"),
            title: title.to_owned(),
            text: text.to_owned(),
            ..IndexedPage::default()
        };
        let is_version = |a: &IndexedPage, b: &IndexedPage| {
            family(a) == family(b) && VersionCandidate::of(a).is_like(&VersionCandidate::of(b))
        };
        let text = "CREATE INDEX builds an index on columns of a table and locks out writes to it";
        let old = page("/14/create.html", "Docs: 14: CREATE INDEX", text);
        let new = text.to_owned() + " unless it is built concurrently";
        assert!(is_version(
            &old,
            &page("/15/create.html", "Docs: 15: CREATE INDEX", &new)
        ));
        assert!(is_version(
            &old,
            &page("/create.html", "Docs: CREATE INDEX", &new)
        ));
        assert!(!is_version(
            &old,
            &page("/15/create.html", "Docs: 15: DROP INDEX", &new)
        ));
        assert!(!is_version(
            &old,
            &page("/15/drop.html", "Docs: 15: CREATE INDEX", &new)
        ));
        let unrelated_text =
            "In this chapter the hero meets a dragon and does not know what to say to it";
        assert!(!is_version(
            &old,
            &page("/15/create.html", "Docs: 15: CREATE INDEX", unrelated_text)
        ));
    }
}

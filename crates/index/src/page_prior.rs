//! The prior of a page: how likely it answers a question, whatever the question is.
//!
//! Lists of changes and indexes of words hold every word of a site, and seldom the answer.

use crawl_index_entry::IndexedPage;

/// The worth of a list of changes, of a page that is little else than links, and of a listing of
/// source code. Hundredths.
const CHANGES: u64 = 55;
const LINKS: u64 = 50;
const SOURCE: u64 = 40;
/// Added to the worth of a list of changes: whether that costs depends on the query.
const IS_CHANGES: u64 = 1 << 8;
/// Characters of text for each link, below which a page is a list of links.
const TEXT_PER_LINK: usize = 60;
/// Links of such a list.
const MIN_LINKS: usize = 40;

/// Names of pages that list changes, in their titles or paths.
const CHANGE_LISTS: [&str; 14] = [
    "changelog",
    "change log",
    "changes in ",
    "release notes",
    "release-notes",
    "releasenotes",
    "relnotes",
    "what's new",
    "whatsnew",
    "what-s-new",
    "version history",
    "news archive",
    "\u{e4}nderungsprotokoll",
    "journal des modifications",
];

/// Words of a query about changes.
const CHANGE_WORDS: [&str; 9] = [
    "changes",
    "release",
    "releases",
    "relnotes",
    "changelogs",
    "history",
    "news",
    "\u{e4}nderungen",
    "nouveaut\u{e9}s",
];

/// Folders of listings of source code: Sphinx's, its copies of pages as written, and Javadoc's.
const SOURCE_FOLDERS: [&str; 3] = ["/_modules/", "/_sources/", "/src-html/"];

/// The worth that is stored of a page: see [`hundredths`].
pub(crate) fn worth(page: &IndexedPage) -> u64 {
    let title = page.title.to_lowercase().replace('\u{2019}', "'");
    let path = page.path().to_lowercase();
    let mut worth = 100;
    if CHANGE_LISTS
        .iter()
        .any(|name| title.contains(name) || path.contains(name))
    {
        worth += IS_CHANGES;
    }
    let links = page.links.len();
    if links >= MIN_LINKS && page.text.len() < links * TEXT_PER_LINK {
        worth = worth & IS_CHANGES | LINKS;
    }
    // Rustdoc's end in the name of the file.
    if SOURCE_FOLDERS.iter().any(|folder| path.contains(folder)) || path.ends_with(".rs.html") {
        worth = worth & IS_CHANGES | (worth % IS_CHANGES * SOURCE / 100);
    }
    worth
}

/// The worth of a page for a query, in hundredths of an ordinary page.
pub(crate) fn hundredths(worth: u64, is_about_changes: bool) -> u64 {
    match worth & IS_CHANGES != 0 && !is_about_changes {
        true => worth % IS_CHANGES * CHANGES / 100,
        false => worth % IS_CHANGES,
    }
}

/// Returns whether a query, in lower case, is about changes.
pub(crate) fn is_about_changes(query: &str) -> bool {
    let query = query.replace('\u{2019}', "'");
    CHANGE_LISTS
        .iter()
        .any(|name| query.contains(name.trim_end()))
        || query
            .split_whitespace()
            .any(|word| CHANGE_WORDS.contains(&word))
}

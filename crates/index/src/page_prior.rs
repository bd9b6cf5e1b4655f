//! Computes the prior of a page: how likely it answers a query, before the query is known.
//!
//! For example, a change list contains every word of a site, but rarely the answer.

use crawl_index_entry::IndexedPage;

/// The priors of a change list, of a page that is mostly links, and of a source code listing, in
/// hundredths of an ordinary page's prior.
const CHANGES: u64 = 55;
const LINKS: u64 = 50;
const SOURCE: u64 = 40;
/// A bit in the stored prior that marks a change list. Such a page ranks lower unless the query is
/// about changes.
const IS_CHANGES: u64 = 1 << 8;
/// Minimum characters of text per link of an ordinary page. With less text, a page counts as a list
/// of links.
const TEXT_PER_LINK: usize = 60;
/// Minimum number of links of a page that counts as a list of links.
const MIN_LINKS: usize = 40;

/// Names of change lists in titles or paths.
pub(crate) const CHANGE_LISTS: [&str; 14] = [
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

/// Words that mark a query as being about changes.
pub(crate) const CHANGE_WORDS: [&str; 9] = [
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

/// Folders of source code listings: Sphinx's listings, its copies of page sources, and Javadoc's.
const SOURCE_FOLDERS: [&str; 3] = ["/_modules/", "/_sources/", "/src-html/"];

/// Returns the prior to store for a page. [`hundredths`] decodes it.
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
    // Rustdoc's source listings are recognised by their file names.
    if SOURCE_FOLDERS.iter().any(|folder| path.contains(folder)) || path.ends_with(".rs.html") {
        worth = worth & IS_CHANGES | (worth % IS_CHANGES * SOURCE / 100);
    }
    worth
}

/// Converts the stored prior of a page to its prior for a query, in hundredths of an ordinary
/// page's prior.
pub(crate) fn hundredths(worth: u64, is_about_changes: bool) -> u64 {
    match worth & IS_CHANGES != 0 && !is_about_changes {
        true => worth % IS_CHANGES * CHANGES / 100,
        false => worth % IS_CHANGES,
    }
}

/// Returns true if a query is about changes. The query must be in lower case.
pub(crate) fn is_about_changes(query: &str) -> bool {
    let query = query.replace('\u{2019}', "'");
    CHANGE_LISTS
        .iter()
        .any(|name| query.contains(name.trim_end()))
        || query
            .split_whitespace()
            .any(|word| CHANGE_WORDS.contains(&word))
}

//! The prior of a page: how likely it answers a question, whatever the question is.
//!
//! Lists of changes and indexes of words hold every word of a site, and seldom the answer.

use crate::indexed_page::IndexedPage;

/// The cost of listing changes, and of being little else than links. Hundredths.
const CHANGES: u64 = 55;
const LINKS: u64 = 50;
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

/// In hundredths of an ordinary page.
pub(crate) fn worth(page: &IndexedPage) -> u64 {
    let title = page.title.to_lowercase().replace('\u{2019}', "'");
    let path = page.path().to_lowercase();
    let mut worth = 100;
    if CHANGE_LISTS
        .iter()
        .any(|name| title.contains(name) || path.contains(name))
    {
        worth = worth * CHANGES / 100;
    }
    let links = page.links.len();
    if links >= MIN_LINKS && page.text.len() < links * TEXT_PER_LINK {
        worth = worth * LINKS / 100;
    }
    worth
}

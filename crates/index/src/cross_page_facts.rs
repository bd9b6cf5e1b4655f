//! Computes the facts about each page that depend on all other pages. Such facts are the pages that
//! link to it, with their link texts, the page with the same text, if any, and the newest of its
//! versions. The facts are collected and sorted on disk, in bounded memory.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::product_versions::{VersionCandidate, VersionInUrl, family, unversioned};
use crate::summing_sorter::{MAX_SORT_BYTES, SortedCounts, SummingSorter, unnamed_file};
use crawl_index_entry::{IndexedPage, url_key};

/// Maximum link texts that are kept for a page. The most frequent texts are kept.
const MAX_ANCHORS: usize = 16;
/// Maximum number of pages that a link text may lead to. A text that leads to more pages, such as
/// `next`, `here` or `back`, is not kept, because it describes none of them.
const MAX_NAMES: usize = 8;
/// Maximum number of pages that are compared with each other as possible versions of one page. If
/// more pages have the same [`family`], the others are not compared.
const MAX_VERSIONS: usize = 200;
/// Maximum number of pages with the same text that are not duplicates of each other, such as
/// versions of one page. A further page with this text is a duplicate if it matches a page in this
/// set, and otherwise an ordinary page.
const MAX_VERSIONS_OF_TEXT: usize = 200;
/// Number of pages in a block of facts, the unit in which facts are read from disk.
const PAGES_A_BLOCK: usize = 16;

/// The kinds of facts about a page. The facts about one page are sorted by these numbers.
const HERE: u8 = 0;
const LINKED_AGAIN: u8 = 1;
const LINKED: u8 = 2;
const NAMED: u8 = 3;
const SAME_AS: u8 = 4;
const NEWEST: u8 = 5;
const VERSION_FOLDER: u8 = 6;
/// The byte between a text and a page in a key. It never occurs in UTF-8.
const TEXT_END: u8 = 0xFF;

/// The facts about one page that depend on other pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CrossPageFacts {
    pub(crate) linked_from: u32,
    /// The most frequent texts of links to the page, in alphabetical order.
    pub(crate) anchors: Vec<String>,
    pub(crate) same_as: Option<String>,
    /// The URL of the newest version of the page, possibly the page itself; `None` if the page has
    /// only one version.
    pub(crate) newest: Option<String>,
    /// The number of newer versions.
    pub(crate) newer_versions: u32,
    /// True if the page's URL is a folder that contains the pages of one version.
    pub(crate) is_version_folder: bool,
}

/// Collects the facts about pages, one page at a time.
#[derive(Debug)]
pub(crate) struct CrossPageFactsCollector {
    dir: PathBuf,
    max_bytes: usize,
    /// The facts that each page states about itself and its link targets, as counts. `HERE` marks
    /// an indexed page. `NAMED` counts the pages that link to a target with a given text. A page
    /// that links to the target with several texts is counted several times, so `LINKED_AGAIN`
    /// counts the excess. The sum of all `NAMED` counts minus `LINKED_AGAIN` is the number of pages
    /// that link to the target.
    links: SummingSorter,
    /// The URLs of all pages, sorted by the hash of the page's text: see [`text_key`].
    texts: SummingSorter,
    /// All pages with their family numbers: see [`family`]. Pages of the same family may be
    /// versions of each other.
    versions: SummingSorter,
}

impl CrossPageFactsCollector {
    pub(crate) fn new(dir: &Path) -> CrossPageFactsCollector {
        CrossPageFactsCollector::within(dir, MAX_SORT_BYTES)
    }

    fn within(dir: &Path, max_bytes: usize) -> CrossPageFactsCollector {
        CrossPageFactsCollector {
            dir: dir.to_path_buf(),
            max_bytes,
            links: SummingSorter::new(dir, max_bytes),
            texts: SummingSorter::new(dir, max_bytes),
            versions: SummingSorter::new(dir, max_bytes),
        }
    }

    pub(crate) fn page(&mut self, page: &IndexedPage) -> io::Result<()> {
        self.links.add(&fact(url_key(&page.url), HERE, &[]), 1)?;
        self.texts.add(&text_key(page), 1)?;
        let versioned = VersionCandidate::of(page).to_bytes();
        let of_family = [&family(page).to_be_bytes(), &versioned[..]].concat();
        self.versions.add(&of_family, 1)?;
        // If a page repeats a link, count each target only once, and each pair of target and text
        // only once.
        let links = page.links.iter().filter(|link| link.url != page.url);
        let mut votes: Vec<_> = links
            .map(|link| (url_key(&link.url), link.text.as_str()))
            .collect();
        votes.sort_unstable();
        votes.dedup();
        let mut before = None;
        let mut key = Vec::new();
        for (target, text) in votes {
            if before.replace(target) == Some(target) {
                self.links.add(&fact(target, LINKED_AGAIN, &[]), 1)?;
            }
            // Reuse one buffer: `add` copies only new keys, and most keys are not new.
            set_fact(&mut key, target, NAMED, text.as_bytes());
            self.links.add(&key, 1)?;
        }
        Ok(())
    }

    /// Computes the facts about all pages and stores them on disk.
    pub(crate) fn finish(self) -> io::Result<CrossPageFactsFile> {
        let sort = || SummingSorter::new(&self.dir, self.max_bytes);
        let (mut facts, mut names) = (sort(), sort());
        keep_links_within_index(self.links.finish()?, &mut facts, &mut names)?;
        keep_names(names.finish()?, &mut facts)?;
        mark_duplicates(self.texts.finish()?, &mut facts)?;
        newest_versions(self.versions.finish()?, &mut facts)?;
        CrossPageFactsFile::write(&self.dir, facts.finish()?)
    }
}

/// Returns the key of a fact about a page.
fn fact(page: u64, kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(9 + rest.len());
    set_fact(&mut key, page, kind, rest);
    key
}

/// Replaces the content of `key` by the key of a fact about a page.
fn set_fact(key: &mut Vec<u8>, page: u64, kind: u8, rest: &[u8]) {
    key.clear();
    key.extend_from_slice(&page.to_be_bytes());
    key.push(kind);
    key.extend_from_slice(rest);
}

/// Returns a key that sorts pages by the hash of their text. Pages with the same text are sorted by
/// preference: the shortest URL first, because it usually has the fewest folders and parameters,
/// then in alphabetical order.
fn text_key(page: &IndexedPage) -> Vec<u8> {
    let length = u32::try_from(page.url.len()).unwrap_or(u32::MAX);
    let hash = page.text_hash().to_be_bytes();
    [&hash, &length.to_be_bytes()[..], page.url.as_bytes()].concat()
}

/// Splits a key into the 64-bit number with which it begins, and the rest.
fn of_page(key: &[u8]) -> (u64, &[u8]) {
    let (page, rest) = key.split_first_chunk().unwrap_or((&[0; 8], &[]));
    (u64::from_be_bytes(*page), rest)
}

/// Evaluates the links to each indexed page. Adds the number of pages that link to it to `facts`,
/// and the link texts to `names`. A key in `names` is a link text followed by the page that it
/// leads to.
fn keep_links_within_index(
    mut links: SortedCounts,
    facts: &mut SummingSorter,
    names: &mut SummingSorter,
) -> io::Result<()> {
    let mut next = links.next_key()?;
    while let Some((key, _)) = &next {
        let page = of_page(key).0;
        let (mut is_here, mut linked) = (false, 0_i64);
        while let Some((key, count)) = &next
            && let (of, rest) = of_page(key)
            && of == page
        {
            match rest.split_first() {
                Some((&HERE, _)) => is_here = true,
                Some((&LINKED_AGAIN, _)) => linked -= i64::from(*count),
                Some((&NAMED, text)) => {
                    linked += i64::from(*count);
                    if is_here && !text.is_empty() {
                        let name = [text, &[TEXT_END], &page.to_be_bytes()].concat();
                        names.add(&name, *count)?;
                    }
                }
                _ => {}
            }
            next = links.next_key()?;
        }
        if is_here && linked > 0 {
            let linked = u32::try_from(linked).unwrap_or(u32::MAX);
            facts.add(&fact(page, LINKED, &[]), linked)?;
        }
    }
    Ok(())
}

/// Adds each link text that leads to at most `MAX_NAMES` pages to the facts about these pages.
fn keep_names(mut names: SortedCounts, facts: &mut SummingSorter) -> io::Result<()> {
    let mut text: Box<[u8]> = Box::default();
    // The pages that the text leads to, at most `MAX_NAMES + 1`: the additional page shows that
    // there are too many.
    let mut pages: Vec<(u64, u32)> = Vec::new();
    loop {
        let next = names.next_key()?;
        let parts = next.as_ref().and_then(|(key, count)| {
            let (rest, page) = key.split_last_chunk()?;
            let text = rest.strip_suffix(&[TEXT_END])?;
            Some((text, u64::from_be_bytes(*page), *count))
        });
        if parts.is_none_or(|(next, ..)| *next != *text) {
            if pages.len() <= MAX_NAMES {
                for (page, votes) in pages.drain(..) {
                    // Invert the frequency, so that the most frequent texts are sorted first.
                    let rest = [&(u32::MAX - votes).to_be_bytes(), &text[..]].concat();
                    facts.add(&fact(page, NAMED, &rest), 1)?;
                }
            }
            pages.clear();
        }
        let Some((next, page, count)) = parts else {
            return Ok(());
        };
        if *next != *text {
            text = next.into();
        }
        if pages.len() <= MAX_NAMES {
            pages.push((page, count));
        }
    }
}

/// Marks pages as duplicates of an earlier page with the same text. Pages whose URLs differ only by
/// a version are not duplicates of each other. Otherwise, a search restricted to one version would
/// not find the page of that version.
fn mark_duplicates(mut texts: SortedCounts, facts: &mut SummingSorter) -> io::Result<()> {
    let mut hash = None;
    let mut firsts: Vec<String> = Vec::new();
    while let Some((key, _)) = texts.next_key()? {
        let (of_text, rest) = of_page(&key);
        let url = text(rest.get(4..).unwrap_or_default());
        if hash != Some(of_text) {
            hash = Some(of_text);
            firsts.clear();
        }
        let first = firsts.iter().filter(|first| !is_other_version(first, &url));
        // Among several earlier pages with this text, prefer one of the same version.
        let label = |url| VersionInUrl::of(url).map(|version| version.label.to_owned());
        let own = label(&url);
        match first.min_by_key(|first| label(first) != own) {
            Some(first) => {
                facts.add(&fact(url_key(&url), SAME_AS, first.as_bytes()), 1)?;
            }
            None if firsts.len() < MAX_VERSIONS_OF_TEXT => firsts.push(url),
            None => {}
        }
    }
    Ok(())
}

/// Returns true if two URLs are equal apart from the version.
fn is_other_version(a: &str, b: &str) -> bool {
    let has_version = |url| VersionInUrl::of(url).is_some();
    (has_version(a) || has_version(b)) && unversioned(a) == unversioned(b)
}

/// Records which version of each page is the newest, and which folders contain versions.
fn newest_versions(mut pages: SortedCounts, facts: &mut SummingSorter) -> io::Result<()> {
    let mut family = None;
    let mut members: Vec<VersionCandidate> = Vec::new();
    loop {
        let next = pages.next_key()?;
        let next = next.as_ref().map(|(key, _)| of_page(key));
        if next.map(|(number, _)| number) != family {
            add_version_facts(&mut members, facts)?;
            members.clear();
        }
        let Some((number, page)) = next else {
            return Ok(());
        };
        family = Some(number);
        if members.len() < MAX_VERSIONS {
            members.extend(VersionCandidate::from_bytes(page));
        }
    }
}

fn add_version_facts(
    members: &mut [VersionCandidate],
    facts: &mut SummingSorter,
) -> io::Result<()> {
    members.sort_unstable_by(VersionCandidate::by_preference);
    let Some((newest, others)) = members.split_first() else {
        return Ok(());
    };
    let similar: Vec<_> = others.iter().filter(|page| page.is_like(newest)).collect();
    if similar.is_empty() {
        return Ok(());
    }
    for (count, page) in (1..).zip([newest].into_iter().chain(similar)) {
        // Store the rank of the version as the count, starting with 1 for the newest.
        facts.add(
            &fact(url_key(&page.url), NEWEST, newest.url.as_bytes()),
            count,
        )?;
        if let Some(version) = VersionInUrl::of(&page.url) {
            facts.add(&fact(url_key(version.folder), VERSION_FOLDER, &[]), 1)?;
        }
    }
    Ok(())
}

/// The facts about all pages, stored on disk.
#[derive(Debug)]
pub(crate) struct CrossPageFactsFile {
    /// One line per page: its key as 16 hexadecimal digits, then [`CrossPageFacts`] as JSON. Sorted
    /// by key.
    file: File,
    /// The first page key of each block of lines, and the block's byte offset in the file.
    blocks: Vec<(u64, u64)>,
    bytes: u64,
}

impl CrossPageFactsFile {
    fn write(dir: &Path, mut facts: SortedCounts) -> io::Result<CrossPageFactsFile> {
        let mut file = BufWriter::new(unnamed_file(dir)?);
        let (mut blocks, mut bytes, mut pages) = (Vec::new(), 0, 0_usize);
        let mut next = facts.next_key()?;
        while let Some((key, _)) = &next {
            let page = of_page(key).0;
            let mut of_it = CrossPageFacts::default();
            while let Some((key, count)) = &next
                && let (of, rest) = of_page(key)
                && of == page
            {
                match rest.split_first() {
                    Some((&LINKED, _)) => of_it.linked_from = *count,
                    Some((&NAMED, rest)) if of_it.anchors.len() < MAX_ANCHORS => {
                        of_it.anchors.push(text(rest.get(4..).unwrap_or_default()));
                    }
                    Some((&SAME_AS, url)) => of_it.same_as = Some(text(url)),
                    Some((&NEWEST, url)) => {
                        of_it.newer_versions = count.saturating_sub(1);
                        of_it.newest = Some(text(url));
                    }
                    Some((&VERSION_FOLDER, _)) => of_it.is_version_folder = true,
                    _ => {}
                }
                next = facts.next_key()?;
            }
            // Sort the texts alphabetically, so that a page isn't rewritten whenever the frequency
            // of a text changes.
            of_it.anchors.sort_unstable();
            if pages.is_multiple_of(PAGES_A_BLOCK) {
                blocks.push((page, bytes));
            }
            pages += 1;
            let line = line(page, &of_it)?;
            file.write_all(&line)?;
            bytes += line.len() as u64;
        }
        Ok(CrossPageFactsFile {
            file: file.into_inner().map_err(io::IntoInnerError::into_error)?,
            blocks,
            bytes,
        })
    }

    /// Returns the version in a page's URL, such as `14` for a page in the folder `/docs/14/`.
    /// `None` if the URL contains no version, or if the folder contains no page that has several
    /// versions.
    pub(crate) fn version_of(&self, url: &str) -> io::Result<Option<String>> {
        let Some(version) = VersionInUrl::of(url) else {
            return Ok(None);
        };
        let is_one = self.of(version.folder)?.is_version_folder;
        Ok(is_one.then(|| version.label.to_owned()))
    }

    /// Returns the facts about a page.
    pub(crate) fn of(&self, url: &str) -> io::Result<CrossPageFacts> {
        let page = url_key(url);
        let block = self.blocks.partition_point(|(first, _)| *first <= page);
        let Some(block) = block.checked_sub(1) else {
            return Ok(CrossPageFacts::default());
        };
        let begin = self.blocks[block].1;
        let end = self.blocks.get(block + 1).map_or(self.bytes, |next| next.1);
        let mut lines = vec![0; usize::try_from(end - begin).unwrap_or(0)];
        self.file.read_exact_at(&mut lines, begin)?;
        let mut lines = lines.split(|byte| *byte == b'\n');
        let wanted = format!("{page:016x}");
        let facts = lines.find_map(|line| line.strip_prefix(wanted.as_bytes()));
        let facts = facts.map(serde_json::from_slice).transpose()?;
        Ok(facts.unwrap_or_default())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn line(page: u64, facts: &CrossPageFacts) -> io::Result<Vec<u8>> {
    let mut line = format!("{page:016x}").into_bytes();
    serde_json::to_writer(&mut line, facts)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::CrossPageFactsCollector;
    use crawl_index_entry::{IndexedPage, OutgoingLink};

    /// Returns pages that link to each other. Each page links to the next with the text `Next` and
    /// a text of its own, and all pages link to the first one with twenty texts. Every third page
    /// has the same text as the first.
    fn pages() -> Vec<IndexedPage> {
        let url = |n: u32| format!("http://a.example/{n}");
        let link = |n: u32, text: String| OutgoingLink { url: url(n), text };
        let page = |n: u32| IndexedPage {
            url: url(n),
            text: match n % 3 {
                0 => "tea".to_owned(),
                _ => n.to_string(),
            },
            links: vec![
                link((n + 1) % 300, "Next".to_owned()),
                link((n + 1) % 300, format!("number {n}")),
                link(0, format!("name {}", n % 20)),
                link(0, format!("name {}", n % 20)),
                link(1000 + n, "Elsewhere".to_owned()),
            ],
            ..IndexedPage::default()
        };
        (0..300).map(page).collect()
    }

    #[test]
    fn facts_are_the_same_in_little_memory_and_in_much() {
        let dir = tempfile::tempdir().unwrap();
        let facts = [0, 5000, usize::MAX].map(|max_bytes| {
            let mut survey = CrossPageFactsCollector::within(dir.path(), max_bytes);
            for page in pages() {
                survey.page(&page).unwrap();
            }
            let all = survey.finish().unwrap();
            pages()
                .iter()
                .map(|page| all.of(&page.url).unwrap())
                .collect::<Vec<_>>()
        });
        assert_eq!(facts[0], facts[2]);
        assert_eq!(facts[1], facts[2]);
        let of = &facts[2];
        assert_eq!(of[0].linked_from, 299);
        // Of the twenty texts of all pages and the text of one neighbour, the sixteen most frequent
        // are kept.
        assert_eq!(of[0].anchors.len(), 16);
        assert_eq!(of[0].anchors[0], "name 1");
        assert_eq!(of[0].same_as, None);
        assert_eq!(
            (of[2].linked_from, &of[2].anchors[..]),
            (1, &["number 1".to_owned()][..])
        );
        assert_eq!(of[3].same_as.as_deref(), Some("http://a.example/0"));
        assert_eq!(of[4].same_as, None);
    }
}

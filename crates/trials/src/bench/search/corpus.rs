//! Reads the pages of a documentation package on disk in the same way as the crawler.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use crawl_extractor::{ContentLimits, PageContext, ReadingLimits, read_page};
use crawl_index::{IndexedPage, IndexingCandidate, judge};
use crawl_policy::PageDirectives;
use crawl_weburl::{CanonicalUrl, canonicalize};

/// The base URL of the pages.
const BASE: &str = "http://docs.example/";
/// The fetch time of the pages: 2026-01-01.
const FETCHED_AT: i64 = 1_767_225_600;

/// The pages of a documentation package.
pub(super) struct DocumentationCorpus {
    pub(super) pages: Vec<IndexedPage>,
    /// Number of files that the index rejects.
    pub(super) left_out: usize,
    /// Total size of all files, in bytes.
    pub(super) bytes: u64,
    /// How long it took to read the files.
    pub(super) took: Duration,
}

/// Reads all HTML files below `folder`, sorted by path.
///
/// # Errors
/// Fails if a file can't be read, or if there are no pages.
pub(super) fn read(folder: &Path) -> Result<DocumentationCorpus> {
    let mut files = Vec::new();
    html_files(folder, &mut files)?;
    files.sort();
    let started = Instant::now();
    let mut corpus = DocumentationCorpus {
        pages: Vec::new(),
        left_out: 0,
        bytes: 0,
        took: Duration::ZERO,
    };
    for file in files {
        let body = fs::read(&file).with_context(|| format!("can't read {}", file.display()))?;
        corpus.bytes += body.len() as u64;
        let path = file.strip_prefix(folder)?;
        let path = path.to_str().context("a path that is no text")?;
        let url = canonicalize(None, &format!("{BASE}{path}"))
            .map_err(|why| anyhow::anyhow!("no URL for {path}: {why:?}"))?;
        match page(&url, &body) {
            Some(page) => corpus.pages.push(page),
            None => corpus.left_out += 1,
        }
    }
    corpus.took = started.elapsed();
    match corpus.pages.is_empty() {
        true => bail!("{} holds no pages", folder.display()),
        false => Ok(corpus),
    }
}

/// Returns the path of a page below the documentation's folder.
pub(super) fn path_of(url: &str) -> &str {
    url.strip_prefix(BASE).unwrap_or(url)
}

/// Converts a page to an entry of the index. `None` if the index rejects the page.
pub(in crate::bench) fn page(url: &CanonicalUrl, body: &[u8]) -> Option<IndexedPage> {
    let context = PageContext {
        content_type: Some("text/html"),
        ..PageContext::default()
    };
    let limits = (ReadingLimits::default(), ContentLimits::default());
    let (read, content) = read_page(body, &context, &limits.0, &limits.1);
    let document = IndexingCandidate {
        url,
        at: FETCHED_AT,
        page: &read,
        content: &content,
        directives: &PageDirectives::default(),
        search_refused: None,
        linked_canonical: None,
        content_type: Some("text/html"),
        // Treat only pages of this manual's host as part of the crawl. Otherwise Python's pages
        // would not be indexed, since their canonical links lead to the newest version on another
        // host.
        is_in_crawl: &|other| other.host_key() == url.host_key(),
    };
    let mut resolve = |base: &CanonicalUrl, href: &str| canonicalize(Some(base), href).ok();
    judge(&document, &mut resolve).ok()
}

/// Finds HTML files below a folder, without following symbolic links.
pub(in crate::bench) fn html_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let listed = fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))?;
    for entry in listed {
        let entry = entry?;
        let path = entry.path();
        // Skip symbolic links: they point outside the package, or to files that are read anyway.
        match entry.file_type()? {
            kind if kind.is_dir() => html_files(&path, files)?,
            kind if kind.is_file() && path.extension().is_some_and(|end| end == "html") => {
                files.push(path);
            }
            _ => {}
        }
    }
    Ok(())
}

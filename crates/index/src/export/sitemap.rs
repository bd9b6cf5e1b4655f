//! Exports the pages as sitemaps (sitemaps.org 0.9).

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::date::rfc3339;
use super::{ExportError, is_shown};
use crawl_archive::{AtomicFolder, safe_file_name};
use crawl_index_entry::IndexedPage;

/// Maximum number of URLs in a file, set by the protocol.
const MAX_URLS: usize = 50_000;
/// Maximum size of a file, set by the protocol: 52,428,800 bytes.
const MAX_BYTES: usize = 50 * 1024 * 1024;

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
    <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n";
const FOOT: &str = "</urlset>\n";

/// The counts of a sitemap export: URLs and files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SitemapExportReport {
    /// The number of listed URLs.
    pub pages: u64,
    /// The number of listed URLs for which the date of the last change is known.
    pub dated: u64,
    /// The number of files that were written.
    pub files: u64,
}

/// Writes a folder with a sitemap for each origin, because a sitemap may only list URLs of its own
/// origin.
#[derive(Debug)]
pub struct SitemapFolderWriter {
    folder: AtomicFolder,
    now: i64,
    /// Maps each origin to its URLs, and each URL to the time of its last change, if known.
    origins: BTreeMap<String, BTreeMap<String, Option<String>>>,
}

impl SitemapFolderWriter {
    /// Begins a folder at `out`, which must be new or empty. `now` is in seconds since 1970 UTC.
    ///
    /// # Errors
    /// [`ExportError`] if `out` is not empty or can't be written.
    pub fn create(out: &Path, now: i64) -> Result<SitemapFolderWriter, ExportError> {
        Ok(SitemapFolderWriter {
            folder: AtomicFolder::create(out, |_| false)?,
            now,
            origins: BTreeMap::new(),
        })
    }

    /// Adds a page. `changed` is the time of its last change in seconds since 1970 UTC, if known.
    pub fn page(&mut self, page: &IndexedPage, changed: Option<i64>) {
        if !is_shown(page, self.now) {
            return;
        }
        let origin = page.url.len() - page.path().len();
        let origin = self.origins.entry(page.url[..origin].to_owned());
        let changed = changed.and_then(rfc3339);
        origin.or_default().insert(page.url.clone(), changed);
    }

    /// Writes the files and moves the folder to its final path.
    ///
    /// # Errors
    /// If the files can't be written.
    pub fn finish(self) -> Result<SitemapExportReport, ExportError> {
        let mut done = SitemapExportReport::default();
        let mut names = HashSet::new();
        // Iterate in descending order, so that `https` comes before `http` and gets the name
        // without a scheme.
        for (origin, urls) in self.origins.iter().rev() {
            let name = folder_name(origin, &mut names);
            let folder = self.folder.beside().join(name);
            fs::create_dir_all(&folder).map_err(ExportError::at(&folder))?;
            done.files += write_origin(origin, urls, &folder)?;
            done.pages += urls.len() as u64;
            done.dated += urls.values().flatten().count() as u64;
        }
        self.folder.finish()?;
        Ok(done)
    }
}

/// Returns the name of an origin's folder: host and port. If another origin already has this name,
/// adds the scheme. Records the name in `names`.
fn folder_name(origin: &str, names: &mut HashSet<String>) -> String {
    let (scheme, host) = origin.split_once("://").unwrap_or(("", origin));
    let mut name = safe_file_name(&host.replace(':', "_"));
    while !names.insert(name.to_lowercase()) {
        name = format!("{name}_{scheme}");
    }
    name
}

/// Writes the `sitemap.xml` of an origin. If one file is not enough, `sitemap.xml` is an index of
/// several files. Returns the number of files.
fn write_origin(
    origin: &str,
    urls: &BTreeMap<String, Option<String>>,
    folder: &Path,
) -> Result<u64, ExportError> {
    let mut files = SitemapWriterOfOrigin::new(folder);
    for (url, changed) in urls {
        let changed = changed.as_ref();
        let changed = changed.map(|time| format!("<lastmod>{time}</lastmod>"));
        let changed = changed.unwrap_or_default();
        files.add(&format!(
            "<url><loc>{}</loc>{changed}</url>\n",
            escaped(url)
        ))?;
    }
    let count = files.finish()?;
    if count < 2 {
        return Ok(1);
    }
    // Several files need an index. The index gets the name `sitemap.xml`, so rename the first file.
    let place = |name: &str| folder.join(name);
    let index = place("sitemap.xml");
    let failed = ExportError::at(&index);
    fs::rename(&index, place("sitemap-1.xml")).map_err(&failed)?;
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    for part in 1..=count {
        let url = escaped(&format!("{origin}/sitemap-{part}.xml"));
        text.push_str(&format!("<sitemap><loc>{url}</loc></sitemap>\n"));
    }
    text.push_str("</sitemapindex>\n");
    fs::write(&index, text).map_err(&failed)?;
    Ok(count + 1)
}

/// Writes the sitemap files of one origin, one after the other.
struct SitemapWriterOfOrigin {
    folder: PathBuf,
    count: u64,
    urls: usize,
    text: Vec<u8>,
}

impl SitemapWriterOfOrigin {
    fn new(folder: &Path) -> SitemapWriterOfOrigin {
        SitemapWriterOfOrigin {
            folder: folder.to_path_buf(),
            count: 0,
            urls: 0,
            text: Vec::from(HEAD),
        }
    }

    fn add(&mut self, line: &str) -> Result<(), ExportError> {
        if self.urls == MAX_URLS || self.text.len() + line.len() + FOOT.len() > MAX_BYTES {
            self.write()?;
        }
        self.urls += 1;
        self.text.extend_from_slice(line.as_bytes());
        Ok(())
    }

    fn write(&mut self) -> Result<(), ExportError> {
        self.count += 1;
        let name = match self.count {
            1 => "sitemap.xml".to_owned(),
            count => format!("sitemap-{count}.xml"),
        };
        let path = self.folder.join(name);
        let mut text = std::mem::replace(&mut self.text, Vec::from(HEAD));
        let _ = text.write_all(FOOT.as_bytes());
        self.urls = 0;
        fs::write(&path, text).map_err(ExportError::at(&path))
    }

    fn finish(mut self) -> Result<u64, ExportError> {
        self.write()?;
        Ok(self.count)
    }
}

/// Escapes a text for XML, as sitemaps.org requires.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use crawl_extractor::{ReadingLimits, SitemapKind, read_sitemap};

    use super::SitemapFolderWriter;
    use crawl_index_entry::IndexedPage;

    fn written(urls: impl Iterator<Item = (String, Option<i64>)>) -> (tempfile::TempDir, u64) {
        let dir = tempfile::tempdir().unwrap();
        let mut folder = SitemapFolderWriter::create(&dir.path().join("out"), 10).unwrap();
        for (url, changed) in urls {
            let page = IndexedPage {
                url,
                ..IndexedPage::default()
            };
            folder.page(&page, changed);
        }
        let files = folder.finish().unwrap().files;
        (dir, files)
    }

    #[test]
    fn each_origin_has_a_sitemap_that_is_read_back() {
        let urls = [
            ("https://e.example/b?c=d&e='f'", Some(1_767_225_600)),
            ("https://e.example/a", None),
            ("http://f.example:8080/", None),
        ];
        let urls = urls.map(|(url, changed)| (url.to_owned(), changed));
        let (dir, files) = written(urls.into_iter());
        assert_eq!(files, 2);
        let text = std::fs::read(dir.path().join("out/e.example/sitemap.xml")).unwrap();
        let sitemap = read_sitemap(&text, Some("text/xml"), &ReadingLimits::default());
        assert_eq!(sitemap.kind, SitemapKind::UrlSet);
        let entries: Vec<_> = sitemap.entries.iter().map(|entry| &*entry.loc).collect();
        assert_eq!(
            entries,
            ["https://e.example/a", "https://e.example/b?c=d&e='f'"]
        );
        assert!(
            String::from_utf8(text)
                .unwrap()
                .contains("<lastmod>2026-01-01T00:00:00Z</lastmod>")
        );
        assert!(dir.path().join("out/f.example_8080/sitemap.xml").exists());
    }

    #[test]
    fn origins_of_one_host_have_a_folder_each() {
        let urls = [
            "http://e.example/a",
            "https://e.example/b",
            "https://e.example:8080/c",
            "http://e.example:8080/d",
            "http://e.example_8080/e",
        ];
        let (dir, files) = written(urls.into_iter().map(|url| (url.to_owned(), None)));
        assert_eq!(files, 5);
        let expected = [
            ("e.example", "https://e.example/b"),
            ("e.example_http", "http://e.example/a"),
            ("e.example_8080", "https://e.example:8080/c"),
            ("e.example_8080_http", "http://e.example_8080/e"),
            ("e.example_8080_http_http", "http://e.example:8080/d"),
        ];
        for (folder, url) in expected {
            let file = dir.path().join("out").join(folder).join("sitemap.xml");
            let text = std::fs::read_to_string(file).unwrap();
            assert!(
                text.contains(&format!("<loc>{url}</loc>")),
                "{folder}: {text}"
            );
        }
    }

    #[test]
    fn more_than_fifty_thousand_urls_are_several_files_and_their_index() {
        let url = |number| (format!("https://e.example/{number:06}"), None);
        let (dir, files) = written((0..50_001).map(url));
        assert_eq!(files, 3);
        let read = |name: &str| {
            let text = std::fs::read(dir.path().join("out/e.example").join(name)).unwrap();
            read_sitemap(&text, Some("text/xml"), &ReadingLimits::default())
        };
        let index = read("sitemap.xml");
        assert_eq!(index.kind, SitemapKind::Index);
        assert_eq!(index.entries[1].loc, "https://e.example/sitemap-2.xml");
        assert_eq!(read("sitemap-1.xml").entries.len(), 50_000);
        assert_eq!(read("sitemap-2.xml").entries.len(), 1);
    }
}

//! Exports pages as Markdown: one file per page, with links between the files.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crawl_extractor::{
    ContentKind, ContentLimits, PageContext, ReadingLimits, document_kind, escape_markdown,
    read_html, read_markdown,
};
use crawl_weburl::{CanonicalUrl, canonicalize};

use super::date::rfc3339;
use super::exported_page_metadata::sections;
use super::markdown_file_name::markdown_name;
use super::{ExportError, is_shown};
use crawl_archive::{AtomicFolder, UrlFilePathAssigner, relative_path};
use crawl_index_entry::IndexedPage;

/// Maximum redirects between a link in a Markdown export and its page.
/// Beyond the limit: the link leads to its URL.
const MAX_REDIRECTS: usize = 20;

/// The body of a page as fetched, after decoding.
#[derive(Clone, Copy, Debug)]
pub struct FetchedBody<'a> {
    /// The value of the response's `Content-Type` header.
    pub content_type: Option<&'a str>,
    /// The bytes of the body.
    pub body: &'a [u8],
}

impl FetchedBody<'_> {
    /// Returns true if the body is HTML. For other types, such as PDF, the text is taken from the
    /// index.
    fn is_html(&self) -> bool {
        document_kind(self.content_type, self.body) == ContentKind::Html
    }
}

/// The number of files of a Markdown export, and how their text was obtained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkdownExportReport {
    /// The number of files that were written.
    pub pages: u64,
    /// The number of pages that don't allow their text to be shown (`nosnippet`, `max-snippet`).
    /// Their files contain only title and URL.
    pub without_text: u64,
    /// The number of pages left out because their site forbids copies.
    pub withheld: u64,
    /// The number of pages whose body is not HTML, such as PDF. Their text is taken from the index,
    /// so it lacks links, lists and tables.
    pub documents: u64,
    /// The number of pages whose archived body was not available. Their text is taken from the
    /// index too.
    pub without_body: u64,
}

/// Writes a folder with a Markdown file for each page.
///
/// First call [`MarkdownFolderWriter::name`] for all pages and [`MarkdownFolderWriter::redirect`] for
/// all redirects, so that links between pages can lead to files. Then call
/// [`MarkdownFolderWriter::page`] for each page, and [`MarkdownFolderWriter::finish`] at the end.
#[derive(Debug)]
pub struct MarkdownFolderWriter {
    folder: AtomicFolder,
    now: i64,
    names: UrlFilePathAssigner,
    /// Maps the URL of a duplicate page to the URL of the page that replaces it, and the URL of a
    /// redirect to its target.
    leads_to: HashMap<Box<str>, Box<str>>,
    done: MarkdownExportReport,
}

impl MarkdownFolderWriter {
    /// Begins a folder at `out`, which must be new or empty. `now` is in seconds since 1970 UTC.
    ///
    /// # Errors
    /// [`ExportError`] if `out` is not empty or can't be written.
    pub fn create(out: &Path, now: i64) -> Result<MarkdownFolderWriter, ExportError> {
        Ok(MarkdownFolderWriter {
            folder: AtomicFolder::create(out, |_| false)?,
            now,
            names: UrlFilePathAssigner::default(),
            leads_to: HashMap::new(),
            done: MarkdownExportReport::default(),
        })
    }

    /// Assigns a file name to a page. A page that has expired, that another page replaces, or whose
    /// site forbids copies (`is_withheld`) gets none, because it is left out.
    pub fn name(&mut self, page: &IndexedPage, is_withheld: bool) {
        if is_shown(page, self.now) {
            if is_withheld {
                self.done.withheld += 1;
                return;
            }
            self.names.add(&page.url, markdown_name(page));
        } else if let Some(same) = &page.same_as {
            let url = page.url.as_str().into();
            self.leads_to.insert(url, same.as_str().into());
        }
    }

    /// Adds a redirect, so that links to it can lead to the file of its target.
    pub fn redirect(&mut self, url: String, target: String) {
        self.leads_to.insert(url.into(), target.into());
    }

    /// Writes the file of a page. A page without a file name from [`MarkdownFolderWriter::name`] is
    /// skipped. If `source` is missing or not HTML, the text is taken from the index.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn page(
        &mut self,
        page: &IndexedPage,
        source: Option<FetchedBody<'_>>,
    ) -> Result<(), ExportError> {
        self.names.settle();
        let Some(name) = self.names.get(&page.url) else {
            return Ok(());
        };
        let text = if page.max_snippet.is_some() {
            self.done.without_text += 1;
            String::new()
        } else {
            match &source {
                None => self.done.without_body += 1,
                Some(body) => self.done.documents += u64::from(!body.is_html()),
            }
            self.markdown(page, name, source)
        };
        let file = self.folder.beside().join(name);
        let write = || {
            if let Some(folder) = file.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(&file, format!("{}\n{text}\n", front_matter(page)))
        };
        write().map_err(ExportError::at(&file))?;
        self.done.pages += 1;
        Ok(())
    }

    /// Moves the folder to its final path.
    ///
    /// # Errors
    /// If the folder can't be moved.
    pub fn finish(self) -> Result<MarkdownExportReport, ExportError> {
        self.folder.finish()?;
        Ok(self.done)
    }

    fn markdown(&self, page: &IndexedPage, name: &str, source: Option<FetchedBody<'_>>) -> String {
        page_markdown(page, source, &mut |target| {
            Some(relative_path(name, self.file_of(target)?))
        })
    }

    /// Returns the path of the file that a link to `url` leads to.
    fn file_of<'a>(&'a self, mut url: &'a str) -> Option<&'a str> {
        for _ in 0..=MAX_REDIRECTS {
            if let Some(file) = self.names.get(url) {
                return Some(file);
            }
            url = self.leads_to.get(url)?;
        }
        None
    }
}

/// Returns the main text of a page as Markdown. If `source` is missing or not HTML, the text is
/// taken from the index, with its headings. `file` maps the URL of a linked page to the path of its
/// file; if it returns `None`, the link leads to the URL.
#[must_use]
pub fn page_markdown(
    page: &IndexedPage,
    source: Option<FetchedBody<'_>>,
    file: &mut dyn FnMut(&str) -> Option<String>,
) -> String {
    let source = source.filter(FetchedBody::is_html);
    let (Some(source), Ok(url)) = (source, canonicalize(None, &page.url)) else {
        return of_index(page);
    };
    let page = read_html(source.body, source.content_type, &ReadingLimits::default());
    let base = page.base_url(&url);
    let context = PageContext {
        content_type: source.content_type,
        ..PageContext::default()
    };
    let limits = ContentLimits::default();
    let mut link = |href: &str| target(&base, href, file);
    read_markdown(source.body, &context, &limits, &mut link).1
}

fn target(
    base: &CanonicalUrl,
    href: &str,
    file: &mut dyn FnMut(&str) -> Option<String>,
) -> Option<String> {
    let (address, fragment) = match href.split_once('#') {
        Some((address, fragment)) => (address, Some(fragment)),
        None => (href, None),
    };
    let Ok(to) = canonicalize(Some(base), address) else {
        let is_contact = ["mailto:", "tel:"]
            .iter()
            .any(|scheme| href.starts_with(scheme));
        return is_contact.then(|| href.to_owned());
    };
    let mut target = file(to.as_str()).unwrap_or_else(|| to.as_str().to_owned());
    if let Some(fragment) = fragment.filter(|fragment| !fragment.is_empty()) {
        target.push('#');
        target.push_str(fragment);
    }
    Some(target)
}

/// Returns the indexed text of a page as Markdown, with its headings.
fn of_index(page: &IndexedPage) -> String {
    let mut blocks = Vec::new();
    for section in sections(page) {
        if !section.heading.is_empty() {
            let marks = "#".repeat(usize::from(section.level.clamp(1, 6)));
            blocks.push(format!("{marks} {}", heading_text(section.heading)));
        }
        blocks.extend(section.text.lines().map(escape_markdown));
    }
    blocks.retain(|block| !block.trim().is_empty());
    blocks.join("\n\n")
}

/// Escapes the text of a heading for Markdown. A `#` at the end would be taken for a closing
/// sequence (CommonMark 4.2) and removed.
pub(super) fn heading_text(text: &str) -> String {
    let mut text = escape_markdown(text);
    if text.ends_with('#') {
        text.insert(text.len() - 1, '\\');
    }
    text
}

/// Returns a JSON value as YAML. Some characters that JSON allows are escaped: YAML 1.2 forbids
/// them (section 5.1), or YAML 1.1 treats them as line breaks.
fn yaml(value: impl Into<serde_json::Value>) -> String {
    let json = value.into().to_string();
    let mut yaml = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => yaml.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => yaml.push(c),
        }
    }
    yaml
}

/// Returns the metadata of a page as YAML front matter. Strings and lists are written as JSON,
/// which is valid YAML.
fn front_matter(page: &IndexedPage) -> String {
    let mut lines = vec!["---".to_owned()];
    let mut text = |key: &str, value: &str| {
        if !value.is_empty() {
            lines.push(format!("{key}: {}", yaml(value)));
        }
    };
    let date = |seconds: Option<i64>| seconds.and_then(rfc3339).unwrap_or_default();
    text("title", page.name());
    text("url", &page.url);
    if page.max_snippet.is_none() {
        text("description", &page.description);
    }
    text("section", page.section.as_deref().unwrap_or_default());
    text("language", page.language.as_deref().unwrap_or_default());
    text("published", &date(page.published));
    text("modified", &date(page.modified));
    text("fetched", &date(Some(page.fetched_at)));
    for (key, names) in [("authors", &page.authors), ("keywords", &page.keywords)] {
        if !names.is_empty() {
            lines.push(format!("{key}: {}", yaml(names.clone())));
        }
    }
    lines.push("---\n".to_owned());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{FetchedBody, MarkdownExportReport, MarkdownFolderWriter};
    use crawl_index_entry::IndexedPage;

    fn page(url: &str) -> IndexedPage {
        IndexedPage {
            url: url.to_owned(),
            title: "Green \"tea\"".to_owned(),
            text: "Tea\nBoil.".to_owned(),
            description: "On tea".to_owned(),
            keywords: vec!["tea".to_owned()],
            authors: vec!["Ada: a cook".to_owned()],
            section: Some("Drinks".to_owned()),
            ..IndexedPage::default()
        }
    }

    #[track_caller]
    fn check(
        pages: &[(IndexedPage, Option<&str>)],
        file: &str,
        expected: Expect,
    ) -> MarkdownExportReport {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let mut folder = MarkdownFolderWriter::create(&out, 0).unwrap();
        for (page, _) in pages {
            folder.name(page, page.url.ends_with("/uncopied"));
        }
        for (url, target) in [("older", "old"), ("old", "b"), ("loop", "loop")] {
            let [url, target] = [url, target].map(|path| format!("https://e.example/{path}"));
            folder.redirect(url, target);
        }
        for (page, body) in pages {
            let source = body.map(|body| FetchedBody {
                content_type: match body.starts_with("%PDF") {
                    true => Some("application/pdf"),
                    false => Some("text/html"),
                },
                body: body.as_bytes(),
            });
            folder.page(page, source).unwrap();
        }
        let report = folder.finish().unwrap();
        expected.assert_eq(&std::fs::read_to_string(out.join(file)).unwrap());
        report
    }

    #[test]
    fn links_lead_to_files() {
        let same = IndexedPage {
            same_as: Some("https://e.example/b".to_owned()),
            ..page("https://e.example/b?copy")
        };
        let body = "<base href=/x/><main><h1>Tea</h1><p>Most of what is known of tea stands on \
            <a href=../b#how>b</a>, its <a href='/b?copy'>copy</a>, <a href=/c/d.html>this one</a>, \
            <a href='../a/#top'>here</a>, <a href=/older#x>there</a>, <a href=/loop>nowhere</a>, \
            <a href=/uncopied>lent</a> and <a href=//f.example/>elsewhere</a>; ask \
            <a href=mailto:t@e.example>us</a>.</main>";
        let pages = [
            (page("https://e.example/a/"), Some(body)),
            (page("https://e.example/b"), Some("%PDF-1.7")),
            (page("https://e.example/c/d.html"), None),
            (same, None),
            (page("https://e.example/uncopied"), Some("<p>lent")),
        ];
        let report = check(
            &pages,
            "e.example/a/index.md",
            expect![[r#"
                ---
                title: "Green \"tea\""
                url: "https://e.example/a/"
                description: "On tea"
                section: "Drinks"
                fetched: "1970-01-01T00:00:00Z"
                authors: ["Ada: a cook"]
                keywords: ["tea"]
                ---

                # Tea

                Most of what is known of tea stands on [b](../b.md#how), its [copy](../b.md), [this one](../c/d.md), [here](index.md#top), [there](../b.md#x), [nowhere](https://e.example/loop), [lent](https://e.example/uncopied) and [elsewhere](https://f.example/); ask [us](mailto:t@e.example).
            "#]],
        );
        let counts = (report.pages, report.documents, report.without_body);
        assert_eq!((counts, report.withheld), ((3, 1, 1), 1));
    }

    #[test]
    fn text_without_html_is_shown_literally() {
        let text = IndexedPage {
            title: "A\u{85}B\u{7f}\u{2028}\u{feff}".to_owned(),
            text: "# no heading\n1. [a](b) <b>\n    - *c* `d` #\n~~~".to_owned(),
            description: String::new(),
            section: None,
            authors: Vec::new(),
            keywords: Vec::new(),
            ..page("https://e.example/a.txt")
        };
        check(
            &[(text, None)],
            "e.example/a.txt.md",
            expect![[r#"
                ---
                title: "A\u0085B\u007f\u2028\ufeff"
                url: "https://e.example/a.txt"
                fetched: "1970-01-01T00:00:00Z"
                ---

                \# no heading

                1\. \[a\](b) \<b>

                \- \*c\* \`d\` #

                \~\~\~
            "#]],
        );
    }

    #[test]
    fn a_nosnippet_page_has_a_file_without_text() {
        let silent = IndexedPage {
            max_snippet: Some(0),
            ..page("https://e.example/")
        };
        let report = check(
            &[(silent, Some("<main><p>secret"))],
            "e.example/index.md",
            expect![[r#"
                ---
                title: "Green \"tea\""
                url: "https://e.example/"
                section: "Drinks"
                fetched: "1970-01-01T00:00:00Z"
                authors: ["Ada: a cook"]
                keywords: ["tea"]
                ---


            "#]],
        );
        assert_eq!((report.pages, report.without_text), (1, 1));
    }
}

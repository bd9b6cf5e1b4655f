//! Writes a list of the pages for language models (llmstxt.org).

use std::collections::BTreeMap;
use std::io::Write;

use crawl_extractor::escape_markdown;

use super::markdown_folder::heading_text;
use super::{DocumentExportReport, ExportError, is_shown};
use crawl_index_entry::IndexedPage;

/// Maximum length of a title or description in the list, in characters.
const MAX_CHARS: usize = 300;

/// Collects the pages, and writes the list of them (`llms.txt`) at the end.
///
/// The list starts with the site's name and description. The pages follow, grouped by host and
/// first folder. In each group, pages with more incoming links come first.
#[derive(Debug)]
pub struct LlmsTxtWriter {
    now: i64,
    /// The entries of each group, by host and first folder.
    sections: BTreeMap<(String, String), Vec<LlmsTxtEntry>>,
    home: Option<LlmsTxtHomePage>,
    done: DocumentExportReport,
}

#[derive(Debug)]
struct LlmsTxtEntry {
    linked_from: u32,
    url: String,
    title: String,
    description: String,
}

/// The page with the shortest URL. Its title and description introduce the list.
#[derive(Debug)]
struct LlmsTxtHomePage {
    url: String,
    title: String,
    description: String,
}

impl LlmsTxtWriter {
    /// Creates an empty list. `now` is in seconds since 1970 UTC.
    #[must_use]
    pub fn new(now: i64) -> LlmsTxtWriter {
        LlmsTxtWriter {
            now,
            sections: BTreeMap::new(),
            home: None,
            done: DocumentExportReport::default(),
        }
    }

    /// Adds a page. If `is_refused`, the page is left out because its site does not allow language
    /// models to use it.
    pub fn page(&mut self, page: &IndexedPage, is_refused: bool) {
        if is_refused || !is_shown(page, self.now) {
            self.done.left_out += 1;
            return;
        }
        let title = line(page.name());
        let description = match page.max_snippet {
            None => line(&page.description),
            Some(_) => String::new(),
        };
        let order = |url: &str| (url.len(), url.to_owned());
        if self
            .home
            .as_ref()
            .is_none_or(|home| order(&page.url) < order(&home.url))
        {
            self.home = Some(LlmsTxtHomePage {
                url: page.url.clone(),
                title: title.clone(),
                description: description.clone(),
            });
        }
        let path = page.path().split('?').next().unwrap_or_default();
        let folder = path[1.min(path.len())..].split_once('/');
        let folder = folder.map_or("", |(folder, _)| folder);
        let section = (page.host().to_owned(), folder.to_owned());
        self.sections
            .entry(section)
            .or_default()
            .push(LlmsTxtEntry {
                linked_from: page.linked_from,
                url: page.url.clone(),
                title,
                description,
            });
        self.done.pages += 1;
    }

    /// Writes the list.
    ///
    /// # Errors
    /// If the output fails.
    pub fn finish(mut self, out: &mut impl Write) -> Result<DocumentExportReport, ExportError> {
        let mut text = String::new();
        if let Some(home) = &self.home {
            text.push_str(&format!("# {}\n", heading_text(&home.title)));
            if !home.description.is_empty() {
                let description = escape_markdown(&home.description);
                text.push_str(&format!("\n> {description}\n"));
            }
        }
        let mut hosts = self.sections.keys().map(|(host, _)| host);
        let first = hosts.next();
        let has_several = hosts.any(|host| Some(host) != first);
        for ((host, folder), entries) in &mut self.sections {
            let heading = match (folder.as_str(), has_several) {
                ("", _) => host.clone(),
                (folder, true) => format!("{host}/{folder}/"),
                (folder, false) => format!("/{folder}/"),
            };
            text.push_str(&format!("\n## {}\n\n", heading_text(&heading)));
            entries.sort_by(|a, b| (b.linked_from, &a.url).cmp(&(a.linked_from, &b.url)));
            for entry in entries {
                let title = escape_markdown(&entry.title);
                text.push_str(&format!("- [{title}]({})", parentheses(&entry.url)));
                if !entry.description.is_empty() {
                    text.push_str(&format!(": {}", escape_markdown(&entry.description)));
                }
                text.push('\n');
            }
            out.write_all(text.as_bytes())
                .map_err(ExportError::Stream)?;
            text.clear();
        }
        out.write_all(text.as_bytes())
            .map_err(ExportError::Stream)?;
        out.flush().map_err(ExportError::Stream)?;
        self.done.records = self.done.pages;
        Ok(self.done)
    }
}

/// Puts a text on one line, and shortens it if it is too long.
fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

/// Percent-encodes the parentheses in a URL, which would otherwise end a Markdown link.
fn parentheses(url: &str) -> String {
    url.replace('(', "%28").replace(')', "%29")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::LlmsTxtWriter;
    use crawl_index_entry::IndexedPage;

    fn page(url: &str, title: &str, linked_from: u32) -> IndexedPage {
        IndexedPage {
            url: url.to_owned(),
            title: title.to_owned(),
            description: format!("All of\n {title}"),
            linked_from,
            ..IndexedPage::default()
        }
    }

    #[test]
    fn no_title_or_description_can_add_a_link_or_a_line() {
        let mut list = LlmsTxtWriter::new(10);
        let title = "Tea\\](https://f.example/) ![x](y) `c\u{85}# <b> #";
        list.page(&page("https://e.example/", title, 1), false);
        list.page(&page("https://e.example/*a*/[b](c)", "B", 1), false);
        let mut out = Vec::new();
        list.finish(&mut out).unwrap();
        expect![[r"
            # Tea\\\](https://f.example/) !\[x\](y) \`c # \<b> \#

            > All of Tea\\\](https://f.example/) !\[x\](y) \`c # \<b> #

            ## e.example

            - [Tea\\\](https://f.example/) !\[x\](y) \`c # \<b> #](https://e.example/): All of Tea\\\](https://f.example/) !\[x\](y) \`c # \<b> #

            ## /\*a\*/

            - [B](https://e.example/*a*/[b]%28c%29): All of B
        "]]
        .assert_eq(&String::from_utf8(out).unwrap());
    }

    #[test]
    fn pages_are_ordered_by_folder_and_links() {
        let mut list = LlmsTxtWriter::new(10);
        list.page(&page("https://e.example/docs/b", "B [2]", 1), false);
        list.page(&page("https://e.example/docs/c_(d)", "C", 7), false);
        list.page(&page("https://e.example/", "Tea House", 9), false);
        list.page(&page("https://e.example/refused", "No", 9), true);
        let silent = IndexedPage {
            max_snippet: Some(0),
            ..page("https://e.example/about", "About", 2)
        };
        list.page(&silent, false);
        let over = IndexedPage {
            until: Some(9),
            ..page("https://e.example/over", "Over", 2)
        };
        list.page(&over, false);
        let mut out = Vec::new();
        let done = list.finish(&mut out).unwrap();
        assert_eq!((done.pages, done.left_out), (4, 2));
        expect![[r"
            # Tea House

            > All of Tea House

            ## e.example

            - [Tea House](https://e.example/): All of Tea House
            - [About](https://e.example/about)

            ## /docs/

            - [C](https://e.example/docs/c_%28d%29): All of C
            - [B \[2\]](https://e.example/docs/b): All of B \[2\]
        "]]
        .assert_eq(&String::from_utf8(out).unwrap());
    }
}

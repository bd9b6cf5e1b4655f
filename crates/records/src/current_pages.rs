//! Lists the current pages and redirects of a crawl.

use std::path::{Path, PathBuf};

use crawl_archive::rows::PageRow;

use crate::broken_links::LatestRows;
use crate::error::RecordsError;
use crate::link_spelling_rules::LinkSpellingRules;
use crate::recognize_directory::holds_any;
use crate::row_file_reader::pages;

/// Selects, for each URL that is now a page or a redirect, the row of `pages.jsonl` with its body
/// or its target.
#[derive(Debug)]
pub struct CurrentRowSelector {
    dir: PathBuf,
    latest: LatestRows,
}

/// The row of a URL that is currently a page or a redirect.
#[derive(Clone, Debug)]
pub enum CurrentRow {
    /// The row whose archive record contains the current body of a page.
    Page {
        /// The row.
        row: PageRow,
        /// Whether commands may export the body. Both this row and the page's last row must allow
        /// it.
        may_export: bool,
    },
    /// The last row of a URL that redirects.
    Redirect(PageRow),
}

impl CurrentRowSelector {
    /// Reads all rows of `pages.jsonl` in `dir` once. Memory: about 40 bytes per URL.
    ///
    /// # Errors
    /// [`RecordsError`] if `dir` has no crawl, or a row can't be read.
    pub fn open(dir: &Path) -> Result<CurrentRowSelector, RecordsError> {
        holds_any(dir, &["pages.jsonl"])?;
        Ok(CurrentRowSelector {
            dir: dir.to_owned(),
            latest: LatestRows::read(dir)?,
        })
    }

    /// Passes each current page and redirect to `visit`, in the order of their rows.
    ///
    /// # Errors
    /// The error of `visit`, or a [`RecordsError`] if a row can't be read.
    pub fn each<E: From<RecordsError>>(
        &self,
        mut visit: impl FnMut(CurrentRow) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rows = pages(&self.dir)?;
        while let Some(row) = rows.next() {
            let row = row?;
            if self.latest.is_body(&row, rows.line()) {
                let may_export = row.may_show_body() && self.latest.may_show_body(&row.url);
                visit(CurrentRow::Page { row, may_export })?;
            } else if self.latest.is_last(&row, rows.line()) && self.latest.redirects(&row.url) {
                visit(CurrentRow::Redirect(row))?;
            }
        }
        Ok(())
    }

    /// Returns the rules with which this crawl replaced the URLs of links by other spellings of the
    /// same URLs.
    ///
    /// # Errors
    /// [`RecordsError`] if a row file can't be read.
    pub fn link_replacement_rules(&self) -> Result<LinkSpellingRules, RecordsError> {
        LinkSpellingRules::read(&self.dir)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{CurrentRow, CurrentRowSelector};
    use crate::RecordsError;
    use crate::test_crawl_builder::TestCrawlBuilder;

    #[test]
    fn each_url_is_listed_as_of_its_last_visit() {
        let mut crawl = TestCrawlBuilder::new();
        let html = "text/html";
        crawl.page("http://e.example/a", html, "first");
        crawl.page("http://e.example/b", html, "first");
        crawl.page("http://e.example/c", html, "first");
        crawl.page("http://e.example/d", html, "first");
        crawl.page_with("http://e.example/a", html, "second", &json!({"round": 2}));
        let same = json!({"status": 304, "change": "same", "round": 2});
        crawl.row("http://e.example/b", &same);
        crawl.redirect("http://e.example/c", "/a", "http://e.example/a");
        let refused = json!({"status": 304, "change": "same", "round": 2, "withheld": "noarchive"});
        crawl.row("http://e.example/d", &refused);
        crawl.row("http://e.example/e", &json!({"status": 404}));
        let dir = crawl.finish();
        let mut listed = Vec::new();
        let each = CurrentRowSelector::open(dir.path()).unwrap().each(|row| {
            listed.push(match row {
                CurrentRow::Page { row, may_export } => (row.url, row.bytes, may_export),
                CurrentRow::Redirect(row) => (row.url, 0, false),
            });
            Ok::<_, RecordsError>(())
        });
        each.unwrap();
        let listed: Vec<_> = listed
            .iter()
            .map(|(url, bytes, may)| (&url[17..], *bytes, *may))
            .collect();
        assert_eq!(
            listed,
            [
                ("b", 5, true),
                ("d", 5, false),
                ("a", 6, true),
                ("c", 0, false)
            ]
        );
    }
}

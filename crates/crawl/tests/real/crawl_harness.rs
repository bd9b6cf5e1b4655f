//! A crawl of one site by the built program, and its rows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crawl_archive::rows::{ExcludedRow, PageRow};
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use crate::expected_files_walk::UrlStatuses;

/// A crawl with its own directory, which is removed on drop.
pub(crate) struct Crawl {
    seed: String,
    flags: String,
    dir: TempDir,
}

impl Crawl {
    /// Creates a crawl. `flags` set its pace and other options, separated by spaces.
    pub(crate) fn new(seed: &str, flags: &str) -> Crawl {
        Crawl {
            seed: seed.to_owned(),
            flags: flags.to_owned(),
            dir: tempfile::Builder::new().prefix("crawl").tempdir().unwrap(),
        }
    }

    pub(crate) fn output(&self) -> PathBuf {
        self.dir.path().join("crawl")
    }

    /// Starts or resumes the crawl. `contact` identifies its requests.
    pub(crate) fn start(&self, contact: &str) -> Child {
        Command::new(env!("CARGO_BIN_EXE_crawl"))
            .args(["--seed", &self.seed])
            .args(["--output", "crawl", "--progress", "off"])
            .args(self.flags.split(' '))
            .current_dir(self.dir.path())
            .env_clear()
            .env("CRAWL_CONTACT", contact)
            .env("HOME", self.dir.path())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs the crawl to its end.
    pub(crate) fn finish(&self, contact: &str) {
        let output = self.start(contact).wait_with_output().unwrap();
        let summary = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{summary}");
        assert!(summary.starts_with("finished\n"), "{summary}");
    }

    pub(crate) fn pages(&self) -> Vec<PageRow> {
        read_rows(&self.output().join("pages.jsonl"))
    }

    /// Checks that no URL was excluded as a trap, an action or a duplicate: documentation has none.
    fn check_exclusions(&self) {
        let rows: Vec<ExcludedRow> = read_rows(&self.output().join("excluded.jsonl"));
        let odd = ["trap", "action", "duplicate"];
        let odd = rows.iter().find(|row| odd.contains(&row.reason.as_str()));
        assert_eq!(odd, None);
    }

    /// Returns the statuses and paths of the rows, and fails on duplicates.
    pub(crate) fn url_statuses(&self, pages: &[PageRow]) -> UrlStatuses {
        self.check_exclusions();
        let mut statuses = UrlStatuses::new();
        let host = self.seed.find("//").unwrap() + 2;
        let path = host + self.seed[host..].find('/').unwrap();
        for row in pages {
            let path = row.url.strip_prefix(&self.seed[..path]);
            let path = path.unwrap_or_else(|| panic!("out of scope: {}", row.url));
            let status = row.status.unwrap_or_else(|| panic!("no answer: {row:?}"));
            let is_new = statuses.insert(format!("{status} {path}"));
            assert!(is_new, "listed twice: {}", row.url);
        }
        statuses
    }
}

fn read_rows<T: DeserializeOwned>(file: &Path) -> Vec<T> {
    let text = fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

//! A crawl of one site by the built program, and the rows that it leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crawl_archive::rows::{ExcludedRow, PageRow};
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use crate::walk::Found;

/// A crawl with a directory of its own, which goes when this goes.
pub(crate) struct Crawl {
    seed: String,
    flags: String,
    dir: TempDir,
}

impl Crawl {
    /// `flags` are those of its pace, and others, with a space between two words.
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

    /// Starts it, or goes on with it, as somebody whose requests can be told from others.
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

    /// Runs it to its end.
    pub(crate) fn finish(&self, contact: &str) {
        let output = self.start(contact).wait_with_output().unwrap();
        let summary = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{summary}");
        assert!(summary.starts_with("finished\n"), "{summary}");
    }

    pub(crate) fn pages(&self) -> Vec<PageRow> {
        read_rows(&self.output().join("pages.jsonl"))
    }

    /// Documentation holds no trap, nothing that acts, and nothing twice.
    fn nothing_is_put_aside(&self) {
        let rows: Vec<ExcludedRow> = read_rows(&self.output().join("excluded.jsonl"));
        let odd = ["trap", "action", "duplicate"];
        let odd = rows.iter().find(|row| odd.contains(&row.reason.as_str()));
        assert_eq!(odd, None);
    }

    /// Status and path of the rows, each of them another URL.
    pub(crate) fn found(&self, pages: &[PageRow]) -> Found {
        self.nothing_is_put_aside();
        let mut found = Found::new();
        let host = self.seed.find("//").unwrap() + 2;
        let path = host + self.seed[host..].find('/').unwrap();
        for row in pages {
            let path = row.url.strip_prefix(&self.seed[..path]);
            let path = path.unwrap_or_else(|| panic!("out of scope: {}", row.url));
            let status = row.status.unwrap_or_else(|| panic!("no answer: {row:?}"));
            let is_new = found.insert(format!("{status} {path}"));
            assert!(is_new, "listed twice: {}", row.url);
        }
        found
    }
}

fn read_rows<T: DeserializeOwned>(file: &Path) -> Vec<T> {
    let text = fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

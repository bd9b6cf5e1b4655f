//! Tests that slow reading processes do not delay the pages of other hosts.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crawl_engine::{EndReason, StopUrgency};
use crawl_testweb::{HttpAnswer, LinkMix, TestWeb};
use crawl_weburl::canonicalize;

use crate::support::Crawl;

const PAPERS: usize = 24;
const PAGES: usize = 30;

/// A program that reads documents. Reading waits until the gate (a FIFO) is open.
struct SlowReader {
    program: PathBuf,
    gate: PathBuf,
    /// A handle for writing to the gate. While it is open, readers of the gate block.
    closed: Option<File>,
}

impl SlowReader {
    fn new(dir: &Path) -> SlowReader {
        let (program, gate) = (dir.join("reader"), dir.join("gate"));
        let made = std::process::Command::new("mkfifo").arg(&gate).status();
        assert!(made.unwrap().success());
        let closed = OpenOptions::new().read(true).write(true).open(&gate);
        let script = format!(
            "#!/bin/sh\ncat > /dev/null\nread gate < '{}'\necho '<title>Paper</title><p>A text'\n",
            gate.display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        SlowReader {
            program,
            gate,
            closed: Some(closed.unwrap()),
        }
    }

    /// Opens the gate for waiting readers and for all later ones.
    fn open(&mut self) {
        if let Some(closed) = self.closed.take() {
            let empty = self.gate.with_extension("open");
            fs::write(&empty, "").unwrap();
            fs::rename(&empty, &self.gate).unwrap();
            drop(closed);
        }
    }
}

/// Starts a host of papers (documents that are read slowly) and a host of pages.
fn library() -> TestWeb {
    let list = |name: &str, count: usize| -> String {
        let link = |n| format!("<a href=/{name}{n}>{name} {n}</a> ");
        (0..count).map(link).collect()
    };
    let mut web = TestWeb::builder()
        .hosts(2)
        .pages(1)
        .mix(LinkMix::plain())
        .sitemap(false)
        .script(0, "/", HttpAnswer::html(&list("paper", PAPERS)))
        .script(1, "/", HttpAnswer::html(&list("page", PAGES)));
    for n in 0..PAPERS {
        let paper = HttpAnswer::of(200).header("content-type", "application/pdf");
        let paper = paper.body(format!("%PDF-1.4 {n}"));
        web = web.script(0, &format!("/paper{n}"), paper);
    }
    for n in 0..PAGES {
        let page = HttpAnswer::html(&format!("<title>{n}</title><p>Page {n}"));
        web = web.script(1, &format!("/page{n}"), page);
    }
    web.start()
}

fn crawl_of(web: &TestWeb, reader: &SlowReader) -> Crawl {
    let mut crawl = Crawl::of(web);
    crawl.config.index = true;
    crawl.config.documents.program = Some(reader.program.clone());
    crawl.config.documents.timeout = Duration::from_secs(100);
    let second_host = canonicalize(None, &web.url(1, "/")).unwrap();
    crawl.config.fetch.typed.push(second_host.clone());
    crawl.config.seeds.push(second_host);
    crawl
}

fn papers_read(crawl: &Crawl) -> usize {
    let pages = crawl.pages();
    let papers = pages.iter().filter(|row| row.url.contains("/paper"));
    papers
        .filter(|row| row.indexed.as_deref() == Some("yes"))
        .count()
}

#[test]
fn slow_documents_of_one_host_do_not_delay_pages_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let mut reader = SlowReader::new(dir.path());
    let web = library();
    let crawl = crawl_of(&web, &reader);
    let mut pages = 0;
    let (_, summary) = crawl.run_consumed(async |_, row| {
        pages += usize::from(row.url.contains("/page"));
        if pages == PAGES {
            reader.open();
        }
    });
    assert_eq!(summary.unwrap().ended, EndReason::Finished);
    // All papers were read, so none timed out: the last page arrived, and opened the gate, while
    // papers still waited.
    assert_eq!(papers_read(&crawl), PAPERS);
}

#[test]
fn a_stop_does_not_wait_for_documents_and_loses_none() {
    let dir = tempfile::tempdir().unwrap();
    let mut reader = SlowReader::new(dir.path());
    let web = library();
    let crawl = crawl_of(&web, &reader);
    let summary = crawl.run_until(|progress| match progress.pages > PAGES as u64 {
        true => StopUrgency::Drain,
        false => StopUrgency::No,
    });
    assert_eq!(summary.unwrap().ended, EndReason::Interrupted);
    assert_eq!(papers_read(&crawl), 0);
    let errors = crawl
        .pages()
        .iter()
        .filter(|row| row.error.is_some())
        .count();
    assert_eq!(errors, 0);
    reader.open();
    let summary = crawl.run();
    assert_eq!(summary.unwrap().ended, EndReason::Finished);
    assert_eq!(papers_read(&crawl), PAPERS);
}

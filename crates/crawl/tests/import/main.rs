//! Crawls that are begun in a directory and moved into a PostgreSQL, where two workers end them.
//!
//! They are ignored where no PostgreSQL is fetched: `cargo xtask test --step debian-packages
//! --step test-with-servers` runs them.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use crawl_testweb::{CrawlReach, TestWeb, gaps};
use serde_json::Value;
use tempfile::TempDir;

use crate::postgres::Served;

#[path = "../../../shared-frontier/tests/shared/postgres.rs"]
#[expect(dead_code, reason = "tests of the library ask the engine themselves")]
mod postgres;

/// The gap of each host, in milliseconds.
const DELAY_MS: i64 = 20;

struct Setup {
    web: TestWeb,
    served: Served,
    dir: TempDir,
    crawl: String,
}

impl Setup {
    fn new(name: &str) -> Setup {
        let served = Served::new();
        Setup {
            web: TestWeb::builder().seed(7).hosts(12).pages(120).start(),
            dir: TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
            crawl: name.to_owned(),
            served,
        }
    }

    fn output(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crawl"));
        command
            .env_clear()
            .env("HOME", self.dir.path())
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn job(&self, output: &str, flags: &str) -> Command {
        let mut command = self.program();
        command.arg(self.web.url(0, "/"));
        command.args(["--scope", "any", "--allow-private", "--delay-factor", "0"]);
        command.args(["--delay", &format!("{DELAY_MS}ms"), "--output", output]);
        command.args(flags.split_whitespace());
        command
    }

    fn worker(&self, output: &str, worker: &str) -> Child {
        let mut command = self.job(output, "--frontier-lease 3s");
        command.args(["--frontier", &self.served.url, "--crawl", &self.crawl]);
        command.args(["--worker", worker]);
        command.spawn().unwrap()
    }

    fn import(&self, dir: &str, crawl: &str) -> Output {
        let mut command = self.program();
        command.args(["frontier", "import", dir, "--json"]);
        command.args(["--frontier", &self.served.url, "--crawl", crawl]);
        command.output().unwrap()
    }

    fn urls(&self, dir: &str, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.output(dir).join(file)).unwrap();
        let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
        rows.map(|row: Value| row["url"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[track_caller]
fn expect(output: Output, code: i32) -> (String, String) {
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{said}");
    (String::from_utf8(output.stdout).unwrap(), said)
}

#[test]
#[ignore = "needs PostgreSQL"]
fn ours_a_crawl_goes_on_with_several_workers_where_it_was_left() {
    let setup = Setup::new("goes on");
    expect(setup.job("one", "--max-pages 300").output().unwrap(), 0);
    let before = setup.urls("one", "pages.jsonl");
    assert_eq!(before.len(), 300);

    let (told, said) = expect(setup.import("one", &setup.crawl), 0);
    let told: Value = serde_json::from_str(&told).unwrap();
    let count = |name: &str| told[name].as_u64().unwrap();
    assert_eq!(count("fetched") + count("failed"), 300, "{told}");
    assert!(count("pending") + count("deferred") > 0, "{told}");
    assert!(count("hosts") > 0 && count("robots") > 0, "{told}");
    assert!(said.contains("the directory of worker `w1`"), "{said}");
    // It is moved once, and crawled no more by itself.
    let (_, said) = expect(setup.import("one", &setup.crawl), 2);
    assert!(said.contains("whose frontier lies elsewhere"), "{said}");
    expect(setup.job("one", "").output().unwrap(), 2);

    let workers = [setup.worker("one", "w1"), setup.worker("two", "w2")];
    for worker in workers {
        expect(worker.wait_with_output().unwrap(), 0);
    }
    let pages = [
        setup.urls("one", "pages.jsonl"),
        setup.urls("two", "pages.jsonl"),
    ];
    assert_eq!(pages[0][..300], before, "rows stay");
    assert!(!pages[1].is_empty(), "w2 had nothing to do");
    let all = pages.concat();
    let once: BTreeSet<&String> = all.iter().collect();
    assert_eq!(once.len(), all.len(), "a page has two rows");
    let truth = setup.web.truth(CrawlReach::Any);
    let missing: Vec<&String> = truth
        .fetched
        .keys()
        .filter(|url| !once.contains(url))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    for host in 0..setup.web.hosts() {
        let short = gaps(&setup.web.log_of(host)).into_iter();
        let short: Vec<i64> = short.filter(|gap| *gap < DELAY_MS * 1_000).collect();
        assert!(short.is_empty(), "host {host}: {short:?} us");
    }

    // The records of both are one crawl.
    let mut gather = setup.program();
    gather.args(["gather", "one", "two", "--output", "all"]);
    expect(gather.output().unwrap(), 0);
    assert_eq!(setup.urls("all", "pages.jsonl").len(), all.len());
    let mut audit = setup.program();
    audit.args(["audit", "all"]);
    expect(audit.output().unwrap(), 0);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn ours_what_can_not_be_moved_stays_as_it_is() {
    let setup = Setup::new("stays");
    expect(setup.job("one", "--max-pages 40").output().unwrap(), 0);
    expect(setup.job("taken", "--max-pages 10").output().unwrap(), 0);
    expect(setup.import("taken", &setup.crawl), 0);
    let (_, said) = expect(setup.import("one", &setup.crawl), 2);
    assert!(
        said.contains("has a crawl `stays` already") && said.contains("hint: "),
        "{said}"
    );
    // A row that names a settled URL is lost.
    for file in ["pages.jsonl", "requests.jsonl"] {
        let path = setup.output("one").join(file);
        let text = fs::read_to_string(&path).unwrap();
        let lost = setup.web.url(0, "/");
        let quoted = format!("\"{lost}\"");
        fs::write(&path, text.replace(&quoted, &format!("\"{lost}?not-it\""))).unwrap();
    }
    let (_, said) = expect(setup.import("one", "another"), 2);
    assert!(said.contains("nothing was imported"), "{said}");
    let mut status = setup.program();
    status.args([
        "frontier",
        "status",
        "--json",
        "--frontier",
        &setup.served.url,
    ]);
    let (told, _) = expect(status.output().unwrap(), 0);
    assert!(!told.contains("another"), "{told}");
    // The directory is still one with a frontier of its own.
    expect(setup.job("one", "--max-pages 41").output().unwrap(), 0);
}

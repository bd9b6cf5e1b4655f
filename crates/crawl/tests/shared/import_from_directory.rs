//! Crawls that are started in a directory, moved into PostgreSQL and finished there by two workers.

use std::collections::BTreeSet;
use std::fs;

use crawl_testweb::TestWeb;
use serde_json::Value;

use crate::shared_crawl_harness::{Crawl, Ended};

const EVERYWHERE: &str = "--scope any --allow-private";

fn small() -> Crawl {
    Crawl::of(TestWeb::builder().seed(7).hosts(12).pages(50))
}

impl Crawl {
    fn alone(&self, dir: &str, flags: &str) -> Ended {
        let mut command = self.command_alone(dir, &format!("{EVERYWHERE} {flags}"));
        Ended::of(&command.output().unwrap())
    }

    fn import(&self, dir: &str) -> Ended {
        Ended::of(&self.frontier(&["import", dir, "--json"]))
    }

    fn urls(&self, dir: &str) -> Vec<String> {
        let rows = self.rows(&[dir], "pages.jsonl").into_iter();
        rows.map(|row| row["url"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn several_workers_continue_a_crawl_of_one() {
    let crawl = small();
    crawl.alone("one", "--max-pages 120").expect(0);
    let before = crawl.urls("one");
    assert_eq!(before.len(), 120);

    let imported = crawl.import("one");
    let counts: Value = serde_json::from_str(&imported.stdout).unwrap();
    let stderr = imported.expect(0);
    let count = |name: &str| counts[name].as_u64().unwrap();
    assert_eq!(count("fetched") + count("failed"), 120, "{counts}");
    assert!(count("pending") + count("deferred") > 0, "{counts}");
    assert!(count("hosts") > 0 && count("robots") > 0, "{counts}");
    assert!(stderr.contains("the directory of worker `w1`"), "{stderr}");
    // A crawl can be imported only once, and can't be continued without the frontier.
    let stderr = crawl.import("one").expect(2);
    assert!(stderr.contains("whose frontier is elsewhere"), "{stderr}");
    crawl.alone("one", "").expect(2);

    let first = crawl.command_in("one", "w1", EVERYWHERE).spawn().unwrap();
    let second = crawl.command_in("two", "w2", EVERYWHERE).spawn().unwrap();
    for worker in [first, second] {
        Ended::of(&worker.wait_with_output().unwrap()).expect(0);
    }
    let urls = crawl.urls("one");
    assert_eq!(urls[..120], before, "rows stay");
    assert!(!crawl.urls("two").is_empty(), "w2 had nothing to do");
    crawl.check_whole(&["one", "two"]);

    // The records of both workers form one crawl.
    let mut gather = crawl.program();
    gather.args(["gather", "one", "two", "--output", "all"]);
    Ended::of(&gather.output().unwrap()).expect(0);
    let all: BTreeSet<String> = crawl.urls("all").into_iter().collect();
    assert_eq!(all, crawl.pages(&["one", "two"]));
    let run = |args: &str| {
        let args = args.split_whitespace();
        let ended = Ended::of(&crawl.program().args(args).output().unwrap());
        let stdout = ended.stdout.clone();
        ended.expect(0);
        stdout
    };
    run("audit all");
    // The directories of both workers are searched together.
    run("index all");
    let total = |dirs: &str| {
        let results = run(&format!("search {dirs} page --json"));
        let results: Value = serde_json::from_str(&results).unwrap();
        results["total"].as_u64().unwrap()
    };
    assert!(total("all") > 120);
    assert_eq!(total("one two"), total("all"));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_failed_import_changes_nothing() {
    let (crawl, another) = (small(), small());
    crawl.alone("one", "--max-pages 40").expect(0);
    crawl.alone("taken", "--max-pages 10").expect(0);
    crawl.import("taken").expect(0);
    let stderr = crawl.import("one").expect(2);
    let has_it = format!("already has a crawl `{}`", crawl.name());
    assert!(stderr.contains(&has_it), "{stderr}");
    // Remove a row that names a settled URL.
    for file in ["pages.jsonl", "requests.jsonl"] {
        let path = crawl.output("one").join(file);
        let text = fs::read_to_string(&path).unwrap();
        let lost = crawl.web.url(0, "/");
        let quoted = format!("\"{lost}\"");
        fs::write(&path, text.replace(&quoted, &format!("\"{lost}?not-it\""))).unwrap();
    }
    let one = crawl.output("one");
    let stderr = another.import(one.to_str().unwrap()).expect(2);
    assert!(stderr.contains("nothing was imported"), "{stderr}");
    let mut status = crawl.program();
    status.args(["frontier", "status", "--json", "--frontier"]);
    let status = Ended::of(&status.arg(&crawl.served.url).output().unwrap());
    let (status_text, name) = (status.stdout.clone(), format!("\"{}\"", another.name()));
    status.expect(0);
    assert!(
        status_text.contains(&format!("\"{}\"", crawl.name())),
        "{status_text}"
    );
    assert!(!status_text.contains(&name), "{status_text}");
    // The directory still has its own frontier, so the crawl can continue without a shared one.
    crawl.alone("one", "--max-pages 41").expect(0);
}

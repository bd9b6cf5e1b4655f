//! Walks the files of a site without the crawler, to determine which URLs a crawl must find.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::{self, JoinHandle};

/// A walk of the site's files that runs in a separate thread.
pub(crate) struct Walk(JoinHandle<Output>);

/// A line `STATUS PATH` for each URL that must be fetched.
pub(crate) type UrlStatuses = BTreeSet<String>;

impl Walk {
    pub(crate) fn start(root: &Path, path: &str) -> Walk {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/walk.py");
        let mut python = Command::new("python3");
        python.arg(program).arg(root).args(["--start", path]);
        python.stdin(Stdio::null());
        Walk(thread::spawn(move || python.output().unwrap()))
    }

    pub(crate) fn end(self) -> UrlStatuses {
        let output = self.0.join().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{complaint}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

/// Returns the URLs that only the crawl or only the walk found.
pub(crate) fn differences(crawled: &UrlStatuses, walked: &UrlStatuses) -> Vec<String> {
    let surplus = crawled
        .difference(walked)
        .map(|line| format!("crawl only: {line}"));
    let lacking = walked
        .difference(crawled)
        .map(|line| format!("walk only: {line}"));
    surplus.chain(lacking).collect()
}

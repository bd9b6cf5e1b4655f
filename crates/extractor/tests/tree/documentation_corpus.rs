//! Compares the extractor's links with the links in a tree, on the documentation of other projects.
//! `cargo xtask test` downloads the documentation and sets environment variables to its location.
//! With `CRAWL_WHOLE_CORPUS=1`, all pages of the documentation are read.
#![expect(clippy::disallowed_methods, reason = "the corpus lies in files")]

use std::path::{Path, PathBuf};

use crate::{differences, independent_link_finder, ours};

/// The sums over all compared pages.
#[derive(Debug, Default)]
struct Sum {
    pages: usize,
    links: usize,
    /// Number of pages that are not UTF-8 and were read as windows-1252.
    others: usize,
    different: Vec<String>,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.pages += other.pages;
        self.links += other.links;
        self.others += other.others;
        self.different.extend(other.different);
    }
}

#[test]
#[ignore = "needs openjdk's and Python's documentation: cargo xtask test sets it up"]
fn links_of_real_pages_are_those_of_a_tree() {
    let mut sum = Sum::default();
    // By default, compare only every fourth page. This finds frequent differences in a reasonable
    // time.
    let step = match std::env::var_os("CRAWL_WHOLE_CORPUS") {
        Some(_) => 1,
        None => 4,
    };
    for variable in ["CRAWL_JAVA_DOC", "CRAWL_PYTHON_DOC"] {
        let folder = std::env::var_os(variable)
            .unwrap_or_else(|| panic!("{variable} is not set: cargo xtask test sets it"));
        let mut paths = Vec::new();
        pages(Path::new(&folder), &mut paths);
        let paths: Vec<PathBuf> = paths.into_iter().step_by(step).collect();
        let folder = compare_all(&paths);
        eprintln!("{variable}: {} pages, {} links", folder.pages, folder.links);
        sum.add(folder);
    }
    let different = sum.different.len();
    eprintln!(
        "{} pages ({} not in UTF-8), {} links, {different} differences",
        sum.pages, sum.others, sum.links
    );
    assert_eq!(sum.different, [""; 0]);
    assert!(sum.pages >= 10_000 / step, "{} pages", sum.pages);
    assert!(sum.links >= 500_000 / step, "{} links", sum.links);
}

/// Compares pages on one thread per processor.
fn compare_all(paths: &[PathBuf]) -> Sum {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = paths.len().div_ceil(threads).max(1);
    let mut sum = Sum::default();
    std::thread::scope(|scope| {
        let compare = |share| scope.spawn(move || compare_share(share));
        let threads: Vec<_> = paths.chunks(share).map(compare).collect();
        for thread in threads {
            sum.add(thread.join().unwrap());
        }
    });
    sum
}

fn compare_share(paths: &[PathBuf]) -> Sum {
    let mut sum = Sum::default();
    for path in paths {
        compare(path, &mut sum);
    }
    sum
}

fn compare(path: &Path, sum: &mut Sum) {
    let bytes = std::fs::read(path).unwrap();
    let html = String::from_utf8(bytes).unwrap_or_else(|error| {
        sum.others += 1;
        let bytes = error.into_bytes();
        encoding_rs::WINDOWS_1252.decode(&bytes).0.into_owned()
    });
    let (ours, trees) = (ours(&html), independent_link_finder::of_tree(&html));
    sum.pages += 1;
    sum.links += trees.len();
    let lines = differences(&ours, &trees);
    sum.different.extend(
        lines
            .into_iter()
            .map(|line| format!("{}: {line}", path.display())),
    );
}

/// Collects the HTML files below `folder`, ordered by name.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let is_html = path
            .extension()
            .is_some_and(|extension| extension == "html");
        if path.is_dir() && !path.is_symlink() {
            pages(&path, found);
        } else if is_html && path.is_file() {
            found.push(path);
        }
    }
}

//! Documentation that others wrote. `cargo xtask test` fetches it and says by variables where
//! it lies.
#![expect(clippy::disallowed_methods, reason = "the corpus lies in files")]

use std::path::{Path, PathBuf};

use crate::{differences, links, ours};

/// What a folder of pages came to.
#[derive(Debug, Default)]
struct Sum {
    pages: usize,
    links: usize,
    /// Pages that are no UTF-8 and were read as windows-1252.
    others: usize,
    different: Vec<String>,
}

#[test]
#[ignore = "needs openjdk's and Python's documentation: cargo xtask test sets it up"]
fn ours_links_of_real_pages_are_those_of_a_tree() {
    let mut sum = Sum::default();
    for variable in ["CRAWL_JAVA_DOC", "CRAWL_PYTHON_DOC"] {
        let folder = std::env::var_os(variable)
            .unwrap_or_else(|| panic!("{variable} is not set: cargo xtask test sets it"));
        let before = (sum.pages, sum.links);
        pages(Path::new(&folder), &mut |path| compare(path, &mut sum));
        let (pages, links) = (sum.pages - before.0, sum.links - before.1);
        eprintln!("{variable}: {pages} pages, {links} links");
    }
    let different = sum.different.len();
    eprintln!(
        "{} pages ({} not in UTF-8), {} links, {different} differences",
        sum.pages, sum.others, sum.links
    );
    assert_eq!(sum.different, [""; 0]);
    assert!(sum.pages >= 10_000, "{} pages", sum.pages);
    assert!(sum.links >= 500_000, "{} links", sum.links);
}

fn compare(path: &Path, sum: &mut Sum) {
    let octets = std::fs::read(path).unwrap();
    let html = String::from_utf8(octets).unwrap_or_else(|error| {
        sum.others += 1;
        let octets = error.into_bytes();
        encoding_rs::WINDOWS_1252.decode(&octets).0.into_owned()
    });
    let (ours, trees) = (ours(&html), links::of_tree(&html));
    sum.pages += 1;
    sum.links += trees.len();
    let lines = differences(&ours, &trees);
    sum.different.extend(
        lines
            .into_iter()
            .map(|line| format!("{}: {line}", path.display())),
    );
}

/// Calls `page` for each file of HTML beneath `folder`, in order of their names.
fn pages(folder: &Path, page: &mut impl FnMut(&Path)) {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() && !path.is_symlink() {
            pages(&path, page);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "html")
            && path.is_file()
        {
            page(&path);
        }
    }
}

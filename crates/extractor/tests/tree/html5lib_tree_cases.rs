//! Runs html5lib's cases for tree construction. A link and an image are appended to each page:
//! whether they are found shows which elements are still open.
#![expect(clippy::disallowed_methods, reason = "the cases lie in files")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::{differences, independent_link_finder, ours};

/// The cases in which the extractor is known to differ from html5lib.
const KNOWN: &str = include_str!("../html5lib/known-tree.txt");

const PROBE: &str = "<a href=probe></a><img src=probe>";

/// Returns the inputs in a file with their numbers. Fragments and pages that need a script are left
/// out.
fn cases(file: &str) -> impl Iterator<Item = (usize, &str)> {
    let cases = file.split("#data\n").skip(1).enumerate();
    cases.filter_map(|(number, case)| {
        let (html, expected) = case.split_once("\n#errors")?;
        let is_whole = !expected.contains("#document-fragment") && !expected.contains("#script-on");
        is_whole.then_some((number + 1, html))
    })
}

#[test]
fn html5lib_tree_construction_gives_the_same_links() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/html5lib/tree-construction");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut run, mut different) = (0, Vec::new());
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let file = String::from_utf8_lossy(&bytes);
        let name = path.file_stem().unwrap().to_string_lossy();
        for (number, html) in cases(&file) {
            let html = format!("{html}{PROBE}");
            let lines = differences(&ours(&html), &independent_link_finder::of_tree(&html));
            run += 1;
            let lines = lines.into_iter();
            different.extend(lines.map(|line| format!("{name} {number} {line}")));
        }
    }
    assert!(run > 1_000, "{run} cases");
    let listed: BTreeSet<&str> = KNOWN
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let differing: BTreeSet<&str> = different.iter().map(String::as_str).collect();
    let unlisted: Vec<_> = differing.difference(&listed).collect();
    let fixed: Vec<_> = listed.difference(&differing).collect();
    assert!(
        unlisted.is_empty() && fixed.is_empty(),
        "{run} cases; known-tree.txt lacks {unlisted:#?} and has too much: {fixed:#?}"
    );
}

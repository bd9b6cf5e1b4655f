//! The pages by which html5lib tests tree construction, each with a link and an image put
//! behind it, which show what the page's tags have left open.
#![expect(clippy::disallowed_methods, reason = "the cases lie in files")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::{differences, links, ours};

/// The findings in which the extractor knowingly differs.
const KNOWN: &str = include_str!("../html5lib/known-tree.txt");

const PROBE: &str = "<a href=probe></a><img src=probe>";

/// The inputs in a file, with their numbers; those are left out that are not whole pages or
/// that take a script to run.
fn cases(file: &str) -> impl Iterator<Item = (usize, &str)> {
    let cases = file.split("#data\n").skip(1).enumerate();
    cases.filter_map(|(number, case)| {
        let (html, expected) = case.split_once("\n#errors")?;
        let whole = !expected.contains("#document-fragment") && !expected.contains("#script-on");
        whole.then_some((number + 1, html))
    })
}

#[test]
fn html5lib_tree_construction_leads_to_the_same_links() {
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
            let lines = differences(&ours(&html), &links::of_tree(&html));
            run += 1;
            let lines = lines.into_iter();
            different.extend(lines.map(|line| format!("{name} {number} {line}")));
        }
    }
    assert!(run > 1_000, "{run} cases");
    let known: BTreeSet<&str> = KNOWN
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let found: BTreeSet<&str> = different.iter().map(String::as_str).collect();
    let unlisted: Vec<_> = found.difference(&known).collect();
    let mended: Vec<_> = known.difference(&found).collect();
    assert!(
        unlisted.is_empty() && mended.is_empty(),
        "{run} cases; known-tree.txt lacks {unlisted:#?} and has too much: {mended:#?}"
    );
}

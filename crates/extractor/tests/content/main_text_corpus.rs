//! Tests of the main text of whole pages, compared word by word with the expected text.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the pages lie in files beside the test"
)]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};

use crate::read;

/// Returns the pages of the corpus (`NAME.html`) with their expected main texts (`NAME.txt`).
fn pages() -> Vec<(String, String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/text");
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|end| end == "html"))
        .collect();
    pages.sort();
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(path.with_extension("txt")).unwrap();
        (name, fs::read_to_string(path).unwrap(), text)
    };
    pages.into_iter().map(read).collect()
}

/// Counts the words of a text. In scripts without spaces, each character is a word.
fn words(text: &str) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    for word in text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
    {
        if word
            .chars()
            .any(|c| ('\u{e00}'..='\u{e7f}').contains(&c) || c >= '\u{2e80}')
        {
            for c in word.chars() {
                *words.entry(c.to_string()).or_default() += 1;
            }
        } else {
            *words.entry(word.to_lowercase()).or_default() += 1;
        }
    }
    words
}

/// Returns precision and recall of `actual`, in percent.
fn score(expected: &str, actual: &str) -> (f64, f64) {
    let (expected, actual) = (words(expected), words(actual));
    let count = |words: &HashMap<String, usize>| words.values().sum::<usize>();
    let both: usize = actual
        .iter()
        .map(|(word, count)| count.min(expected.get(word).unwrap_or(&0)))
        .sum();
    let share = |of: usize| {
        if of == 0 {
            100.0
        } else {
            100.0 * both as f64 / of as f64
        }
    };
    (share(count(&actual)), share(count(&expected)))
}

/// Returns the page with its structural elements replaced by `div`, and without attributes that
/// hint at the role of an element.
fn laid_bare(html: &str) -> String {
    const ELEMENTS: [&str; 7] = [
        "main", "article", "nav", "aside", "header", "footer", "section",
    ];
    let mut bare = html.to_owned();
    for name in ELEMENTS {
        for end in ['>', ' '] {
            bare = bare.replace(&format!("<{name}{end}"), &format!("<div{end}"));
            bare = bare.replace(&format!("</{name}{end}"), &format!("</div{end}"));
        }
    }
    for name in ["class", "id", "role", "itemprop", "aria-label"] {
        bare = bare.replace(&format!(" {name}="), &format!(" data-{name}="));
    }
    bare
}

/// Compares precision and recall with `expected`: the values of each page that are below 100 %, and
/// the means over all pages.
fn check(prepare: impl Fn(&str) -> String, expected: Expect) {
    let pages = pages();
    assert!(pages.len() >= 30, "{} pages", pages.len());
    let (mut precision, mut recall, mut shown) = (0.0, 0.0, String::new());
    for (name, html, text) in &pages {
        let (p, r) = score(text, &read(&prepare(html)).main_text());
        if p + r < 200.0 {
            let _ = writeln!(shown, "{name} {p:.1} {r:.1}");
        }
        (precision, recall) = (precision + p, recall + r);
    }
    let count = pages.len() as f64;
    let _ = writeln!(shown, "mean {:.1} {:.1}", precision / count, recall / count);
    expected.assert_eq(&shown);
}

#[test]
fn main_text_of_the_corpus() {
    check(
        str::to_owned,
        expect![[r#"
        blog-index 98.3 100.0
        blog-post 97.0 100.0
        docs-javadoc 100.0 97.0
        docs-man 100.0 91.8
        forum-comments 89.7 94.6
        news-article 96.7 100.0
        qa 95.6 100.0
        mean 99.3 99.5
    "#]],
    );
}

#[test]
fn main_text_of_pages_without_structural_markup() {
    check(
        laid_bare,
        expect![[r#"
        blog-index 98.3 100.0
        blog-post 78.5 100.0
        docs-javadoc 100.0 96.0
        docs-man 100.0 91.8
        forum-comments 89.7 94.6
        forum-thread 84.7 100.0
        link-index 66.7 28.6
        news-article 84.5 100.0
        product 79.4 100.0
        qa 95.6 100.0
        mean 96.4 97.4
    "#]],
    );
}

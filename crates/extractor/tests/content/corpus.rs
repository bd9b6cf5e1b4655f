//! The main text of whole pages, word by word beside what it should be.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::read;

/// Pages and their expected main texts: `NAME.html`, `NAME.txt`.
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

/// The words of a text and how often each stands in it; characters of scripts without spaces
/// are words.
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

/// Precision and recall of `found`, in percent.
fn score(expected: &str, found: &str) -> (f64, f64) {
    let (expected, found) = (words(expected), words(found));
    let count = |words: &HashMap<String, usize>| words.values().sum::<usize>();
    let both: usize = found
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
    (share(count(&found)), share(count(&expected)))
}

#[test]
fn ours_main_text_of_the_corpus() {
    let pages = pages();
    assert!(pages.len() >= 30, "{} pages", pages.len());
    let (mut precision, mut recall) = (0.0, 0.0);
    for (name, html, expected) in &pages {
        let content = read(html);
        let (p, r) = score(expected, &content.main_text());
        println!("{name:20} precision {p:5.1} recall {r:5.1}");
        if p < 95.0 || r < 95.0 {
            for block in &content.blocks {
                println!(
                    "   {} {:?} {:?}",
                    block.main,
                    block.kind,
                    content.text_of(block)
                );
            }
        }
        (precision, recall) = (precision + p, recall + r);
    }
    let count = pages.len() as f64;
    println!("mean {:.1} {:.1}", precision / count, recall / count);
}

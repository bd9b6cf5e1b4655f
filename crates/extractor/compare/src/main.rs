//! Prints how well several readers find the main text of the test corpus: precision and recall of
//! words, in percent, per page and as a mean.
//!
//! `cargo run --release --manifest-path crates/extractor/compare/Cargo.toml [FOLDER] [--bare]`
//!
//! `--bare` removes the structure from the pages: `main`, `nav` and the like become `div`, and
//! elements lose their class, id and role.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crawl_extractor::{ContentLimits, PageContext, read_content};

/// The name of a reader, and the reader itself.
type Reader = (&'static str, fn(&str) -> String);

const READERS: [Reader; 4] = [
    ("ours", ours),
    ("dom_smoothie", dom_smoothie),
    ("trafilatura", trafilatura),
    ("all text", all_text),
];

fn main() {
    let bare = std::env::args().any(|argument| argument == "--bare");
    let folder = std::env::args()
        .skip(1)
        .find(|argument| argument != "--bare");
    let folder = folder.map(PathBuf::from);
    let folder = folder
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/text"));
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the corpus")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "html"))
        .collect();
    paths.sort();
    let mut sums = [(0.0, 0.0, 0.0, 0.0); READERS.len()];
    for path in &paths {
        let mut html = std::fs::read_to_string(path).expect("a page");
        if bare {
            html = laid_bare(&html);
        }
        let expected = std::fs::read_to_string(path.with_extension("txt")).expect("its text");
        print!(
            "{:20}",
            path.file_stem().unwrap_or_default().to_string_lossy()
        );
        for ((_, reader), sum) in READERS.iter().zip(&mut sums) {
            let start = Instant::now();
            let text = std::panic::catch_unwind(|| reader(&html)).unwrap_or_default();
            sum.3 += start.elapsed().as_secs_f64();
            let (precision, recall) = score(&expected, &text);
            let f = if precision + recall > 0.0 {
                2.0 * precision * recall / (precision + recall)
            } else {
                0.0
            };
            (sum.0, sum.1, sum.2) = (sum.0 + precision, sum.1 + recall, sum.2 + f);
            print!(" {precision:5.1}/{recall:5.1}");
        }
        println!();
    }
    let count = paths.len() as f64;
    for ((name, _), (precision, recall, f, seconds)) in READERS.iter().zip(sums) {
        println!(
            "{name:14} precision {:5.1}  recall {:5.1}  F1 {:5.1}  {:7.0} us a page",
            precision / count,
            recall / count,
            f / count,
            seconds * 1e6 / count
        );
    }
}

/// Returns the page with its structural elements replaced by `div`, and without attributes that
/// hint at the role of an element.
fn laid_bare(html: &str) -> String {
    const ELEMENTS: [&str; 7] = [
        "main", "article", "nav", "aside", "header", "footer", "section",
    ];
    let mut bare = html.to_owned();
    for name in ELEMENTS {
        for (from, to) in [("<", "<div"), ("</", "</div")] {
            for end in [">", " "] {
                bare = bare.replace(&format!("{from}{name}{end}"), &format!("{to}{end}"));
            }
        }
    }
    for name in ["class", "id", "role", "itemprop", "aria-label"] {
        bare = bare.replace(&format!(" {name}="), &format!(" data-{name}="));
    }
    bare
}

fn ours(html: &str) -> String {
    let context = PageContext {
        content_type: Some("text/html; charset=utf-8"),
        ..PageContext::default()
    };
    read_content(html.as_bytes(), &context, &ContentLimits::default()).main_text()
}

fn all_text(html: &str) -> String {
    let context = PageContext {
        content_type: Some("text/html; charset=utf-8"),
        ..PageContext::default()
    };
    let content = read_content(html.as_bytes(), &context, &ContentLimits::default());
    content.visible_text().to_owned()
}

fn dom_smoothie(html: &str) -> String {
    let Ok(mut reader) = dom_smoothie::Readability::new(html, None, None) else {
        return String::new();
    };
    reader
        .parse()
        .map(|article| article.text_content.to_string())
        .unwrap_or_default()
}

fn trafilatura(html: &str) -> String {
    let options = trafilatura::Options::default();
    trafilatura::extract(html, &options)
        .map(|article| article.content_text)
        .unwrap_or_default()
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

fn score(expected: &str, actual: &str) -> (f64, f64) {
    let (expected, actual) = (words(expected), words(actual));
    let count = |words: &HashMap<String, usize>| words.values().sum::<usize>();
    let shared = |(word, count): (&String, &usize)| *count.min(expected.get(word).unwrap_or(&0));
    let both: usize = actual.iter().map(shared).sum();
    let share = |of: usize| {
        if of == 0 {
            100.0
        } else {
            100.0 * both as f64 / of as f64
        }
    };
    (share(count(&actual)), share(count(&expected)))
}

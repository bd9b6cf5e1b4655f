//! Measures how plain the English of comments, documentation and names is.
//!
//! Counts habits that make a text read like a translation: sentences that open with a pronoun or a
//! relative clause, and words that have a plainer everyday equivalent. A single hit may be good
//! English, so the check compares rates with those of well-written projects.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// Maximum hits per 10,000 words of comments: in all crates together, and in a single crate.
const COMMENTS: (f64, f64) = (45.0, 60.0);
/// Maximum hits per 10,000 words of documentation.
const DOCS: f64 = 70.0;
/// Maximum odd names per 1,000 lines of source.
const NAMES: f64 = 0.5;
/// Crates with fewer words than this are checked only together with all others.
const MIN_WORDS: usize = 1_000;

/// Pronouns that, as the first word of a sentence, refer back to the previous sentence.
const PRONOUNS: [&str; 10] = [
    "it", "its", "those", "that", "these", "they", "then", "he", "his", "whose",
];
/// First words of clauses that serve as the subject of a sentence. Questions are not counted.
const CLAUSES: [&str; 6] = ["what", "whatever", "who", "whoever", "where", "wherever"];

/// Phrases with a plainer equivalent, in lower case.
const PHRASES: &[&str] = &[
    "among them",
    "among these",
    "among those",
    "anew",
    "as far as",
    "as it is where",
    "ask for",
    "asked for",
    "asking for",
    "asks for",
    "at so many",
    "be it",
    "bears",
    "beside",
    "bore",
    "but for",
    "by itself",
    "by now",
    "by so many",
    "by themselves",
    "by which",
    "came by",
    "can't be had",
    "comes by",
    "empty where",
    "false where",
    "for all",
    "for so long",
    "from whom",
    "goes behind",
    "goes on with",
    "gone on with",
    "has to be had",
    "hence",
    "in vain",
    "is had",
    "is to be",
    "are to be",
    "leave for",
    "lay",
    "lie",
    "lies",
    "may not",
    "meanwhile",
    "mind",
    "minds",
    "need not",
    "nobody",
    "none where",
    "nothing where",
    "of its own",
    "of itself",
    "of them",
    "of these",
    "of those",
    "of which",
    "of whom",
    "said",
    "save for",
    "say",
    "says",
    "shall",
    "so long as",
    "so many",
    "so much",
    "somebody",
    "stand",
    "stands",
    "stood",
    "tell",
    "tells",
    "thereby",
    "told",
    "to come by",
    "to which",
    "true where",
    "whereby",
    "without leave",
];
/// Words after "is no" that make it idiomatic: "no longer", "no more than".
const AFTER_NO: [&str; 9] = [
    "longer", "more", "one", "such", "need", "way", "point", "reason", "doubt",
];
/// Names of locals that say nothing about the value.
const ODD_LOCALS: &[&str] = &[
    "ask", "asked", "come", "found", "given", "gone", "heard", "kept", "known", "leave", "left",
    "meant", "met", "most", "other", "others", "said", "such", "taken", "those", "told", "way",
    "what", "why",
];
/// Words that don't belong in the name of a function.
const ODD_IN_FUNCTIONS: &[&str] = &["asks", "leave", "minds", "said", "tells", "told", "what"];

/// The words of a text and the hits in it, or the lines of a source file and the odd names in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct HitDensity {
    size: usize,
    hits: usize,
}

impl HitDensity {
    fn add(&mut self, other: HitDensity) {
        self.size += other.size;
        self.hits += other.hits;
    }

    fn per(self, size: f64) -> f64 {
        self.hits as f64 * size / self.size.max(1) as f64
    }
}

/// Measures the workspace, and fails if a rate is too high.
///
/// # Errors
/// If a rate is above its limit, naming the files with the most hits, or a file can't be read.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let mut files = Vec::new();
    collect(&workspace.root, &mut files)?;
    let (mut comments, mut docs, mut names) = <(HitDensity, HitDensity, HitDensity)>::default();
    let mut by_crate: BTreeMap<String, HitDensity> = BTreeMap::new();
    let mut by_file: Vec<(usize, PathBuf)> = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let path = path
            .strip_prefix(&workspace.root)
            .unwrap_or(&path)
            .to_path_buf();
        let count = if let Some(language) = SourceLanguage::of(&path) {
            let count = in_blocks(&comment_blocks(language, &text));
            let odd_names = odd_names(&text);
            names.add(odd_names);
            comments.add(count);
            let mut parts = path.iter().map(|part| part.to_string_lossy());
            if parts.next().as_deref() == Some("crates") {
                let name = parts.next().unwrap_or_default().into_owned();
                by_crate.entry(name).or_default().add(count);
            }
            count.hits + odd_names.hits
        } else {
            let count = in_blocks(&paragraphs(&text));
            docs.add(count);
            count.hits
        };
        by_file.push((count, path));
    }
    let mut breaches = Vec::new();
    let mut hold = |subject: &str, rate: f64, limit: f64| {
        if rate > limit {
            breaches.push(format!("{subject}: {rate:.1}, {limit} allowed"));
        }
    };
    hold("comments, per 10,000 words", comments.per(1e4), COMMENTS.0);
    hold("documentation, per 10,000 words", docs.per(1e4), DOCS);
    hold("odd names, per 1,000 lines", names.per(1e3), NAMES);
    for (name, count) in &by_crate {
        if count.size >= MIN_WORDS {
            hold(
                &format!("comments of {name}, per 10,000 words"),
                count.per(1e4),
                COMMENTS.1,
            );
        }
    }
    eprintln!(
        "{:.1} hits per 10,000 words of comments, {:.1} of documentation, {:.2} odd names per \
         1,000 lines",
        comments.per(1e4),
        docs.per(1e4),
        names.per(1e3),
    );
    if breaches.is_empty() {
        return Ok(());
    }
    by_file.sort_by(|a, b| b.cmp(a));
    let worst = by_file.iter().take(10);
    let worst: Vec<String> = worst
        .map(|(hits, path)| format!("{}: {hits} hits", path.display()))
        .collect();
    bail!(
        "the English could be plainer:\n  {}\nmost hits:\n  {}\nhint: CONTRIBUTING.md, \"English\"",
        breaches.join("\n  "),
        worst.join("\n  ")
    )
}

/// A programming language whose comments and names are measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SourceLanguage {
    Rust,
    JavaScript,
    Python,
}

impl SourceLanguage {
    fn of(path: &Path) -> Option<SourceLanguage> {
        match path.extension()?.to_str()? {
            "rs" => Some(SourceLanguage::Rust),
            "js" | "mjs" => Some(SourceLanguage::JavaScript),
            "py" => Some(SourceLanguage::Python),
            _ => None,
        }
    }
}

/// Collects the source files and Markdown files beneath a folder, except the change log, which is a
/// record of the past.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            if name != "target" && !name.starts_with('.') {
                collect(&path, files)?;
            }
        } else if SourceLanguage::of(&path).is_some()
            || (name.ends_with(".md") && name != "CHANGELOG.md")
        {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the text of each run of comment lines, without code examples.
fn comment_blocks(language: SourceLanguage, source: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    let mut is_example = false;
    let mut string = PythonString::None;
    for line in source.lines().map(str::trim_start) {
        let text = match language {
            SourceLanguage::Rust => line
                .strip_prefix("//")
                .map(|text| text.trim_start_matches(['/', '!'])),
            SourceLanguage::JavaScript => ["//", "/**", "/*", "*"]
                .iter()
                .find_map(|start| line.strip_prefix(start))
                .map(|text| text.trim_end_matches("*/")),
            SourceLanguage::Python => string.comment_in(line),
        };
        let block = blocks.last_mut();
        match (text, block) {
            (Some(text), Some(block)) => {
                let is_fence = text.trim_start().starts_with("```");
                is_example ^= is_fence;
                if !is_fence && !is_example {
                    block.push_str(text);
                    block.push('\n');
                }
            }
            (None, Some(block)) if !block.is_empty() => {
                is_example = false;
                blocks.push(String::new());
            }
            _ => is_example = false,
        }
    }
    blocks
}

/// The string in triple quotes that a line of a Python file starts in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PythonString {
    None,
    Docstring,
    Other,
}

impl PythonString {
    /// Returns the text of a line that is a comment or part of a docstring. Passes to the next line.
    fn comment_in<'a>(&mut self, line: &'a str) -> Option<&'a str> {
        const QUOTES: &str = "\"\"\"";
        let before = *self;
        let is_docstring = before == PythonString::Docstring
            || before == PythonString::None && line.starts_with(QUOTES);
        let ends_in_another = line.matches(QUOTES).count() % 2 == 1;
        *self = match before {
            _ if !ends_in_another => before,
            PythonString::None if is_docstring => PythonString::Docstring,
            PythonString::None => PythonString::Other,
            PythonString::Docstring | PythonString::Other => PythonString::None,
        };
        match before {
            _ if is_docstring => Some(line.trim_matches('"')),
            PythonString::None => line.strip_prefix('#').filter(|text| !text.starts_with('!')),
            PythonString::Docstring | PythonString::Other => None,
        }
    }
}

/// Returns the paragraphs and list items of a page, without code and tables.
fn paragraphs(page: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    let mut is_code = false;
    for line in page.lines() {
        let text = line.trim_start();
        let is_fence = text.starts_with("```");
        is_code ^= is_fence;
        let item = text.strip_prefix("- ").or_else(|| text.strip_prefix("* "));
        if is_fence || is_code || text.is_empty() || text.starts_with('|') || item.is_some() {
            blocks.push(String::new());
        }
        if let (false, false, false, Some(block)) =
            (is_fence, is_code, text.starts_with('|'), blocks.last_mut())
        {
            block.push_str(item.unwrap_or(text));
            block.push('\n');
        }
    }
    blocks
}

fn in_blocks(blocks: &[String]) -> HitDensity {
    let mut count = HitDensity::default();
    for sentence in blocks.iter().flat_map(|block| sentences(block)) {
        count.add(in_sentence(&sentence));
    }
    count
}

/// Returns the sentences of a block. Code spans become one word each.
fn sentences(block: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    let mut is_code = false;
    let mut ends = false;
    for letter in block.chars() {
        if letter == '`' {
            is_code = !is_code;
            if let (true, Some(sentence)) = (is_code, sentences.last_mut()) {
                sentence.push('x');
            }
        } else if !is_code {
            if ends && letter.is_whitespace() {
                sentences.push(String::new());
            }
            if let Some(sentence) = sentences.last_mut() {
                sentence.push(letter);
            }
        }
        ends = !is_code && matches!(letter, '.' | '?' | '!');
    }
    sentences
}

fn in_sentence(sentence: &str) -> HitDensity {
    let lower = sentence.to_lowercase();
    let is_letter = |letter: char| letter.is_alphanumeric() || matches!(letter, '\'' | '-' | '_');
    let words: Vec<&str> = lower
        .split(|letter| !is_letter(letter))
        .filter(|word| !word.is_empty())
        .collect();
    let mut hits = 0;
    if let Some((first, rest)) = words.split_first() {
        let is_named = rest.first() == Some(&"is")
            && rest
                .get(1)
                .is_some_and(|word| ["a", "an", "the"].contains(word));
        let is_question = sentence.trim_end().ends_with('?');
        hits += usize::from(PRONOUNS.contains(first) && !is_named);
        hits += usize::from(CLAUSES.contains(first) && !is_question);
    }
    for start in 0..words.len() {
        let rest = &words[start..];
        hits += PHRASES
            .iter()
            .filter(|phrase| begins_with(rest, phrase))
            .count();
        let is_verb = ["is", "are", "was", "were"].contains(&rest[0]);
        let is_odd_no = is_verb
            && rest.get(1) == Some(&"no")
            && rest.get(2).is_some_and(|word| !AFTER_NO.contains(word));
        hits += usize::from(is_odd_no);
    }
    HitDensity {
        size: words.len(),
        hits,
    }
}

fn begins_with(words: &[&str], phrase: &str) -> bool {
    let mut words = words.iter();
    phrase.split(' ').all(|part| words.next() == Some(&part))
}

/// Counts the lines of a source file, and the odd names in it.
fn odd_names(source: &str) -> HitDensity {
    let mut count = HitDensity::default();
    for line in source.lines() {
        count.size += 1;
        let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let is_odd = loop {
            match words.next() {
                Some("let" | "const") => {
                    let name = words
                        .next()
                        .filter(|name| *name != "mut")
                        .or_else(|| words.next());
                    break name.is_some_and(|name| ODD_LOCALS.contains(&name));
                }
                Some("fn" | "def") => {
                    let mut parts = words.next().unwrap_or_default().split('_');
                    break parts.any(|part| ODD_IN_FUNCTIONS.contains(&part));
                }
                Some(_) => {}
                None => break false,
            }
        };
        count.hits += usize::from(is_odd);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::{SourceLanguage, comment_blocks, in_blocks, in_sentence, odd_names, paragraphs};

    #[test]
    fn plain_sentences_have_no_hits() {
        for sentence in [
            "Evicts idle hosts, least recently active first, until the limit is met.",
            "This is a limit.",
            "What does a page cost?",
            "There is no longer a host.",
        ] {
            assert_eq!(in_sentence(sentence).hits, 0, "{sentence}");
        }
    }

    #[test]
    fn each_habit_is_a_hit() {
        for sentence in [
            "It evicts.",
            "What is in flight counts.",
            "Hosts that stand here.",
            "At most so many pages.",
            "This is no page.",
            "None where the host is gone.",
        ] {
            assert_eq!(in_sentence(sentence).hits, 1, "{sentence}");
        }
    }

    #[test]
    fn comments_are_read_without_code() {
        let source = "/// Reads `what is told`.\n/// ```\n/// let told = 1; // It stands.\n\
                      /// ```\nfn read() {}\n// It stands.\n";
        assert_eq!(
            in_blocks(&comment_blocks(SourceLanguage::Rust, source)).hits,
            2
        );
    }

    #[test]
    fn comments_of_scripts_are_read_without_code() {
        let hits = |language, source| in_blocks(&comment_blocks(language, source)).hits;
        let javascript =
            "// It stands.\n/** It stands. */\n/**\n * It stands.\n */\ncall('It stands.');\n";
        assert_eq!(hits(SourceLanguage::JavaScript, javascript), 6);
        let python = "#!/bin/sh\n\"\"\"It stands.\n\nIt stands.\n\"\"\"\n# It stands.\nit = 'It stands.'\n\
                      other = \"\"\"\nIt stands.\n\"\"\"\n\"\"\"It stands.\"\"\"\n";
        assert_eq!(hits(SourceLanguage::Python, python), 8);
    }

    #[test]
    fn pages_are_read_without_tables_and_code() {
        let page = "Text of a page.\n\n| it stands |\n\n```\nIt stands.\n```\n- It stands.\n";
        assert_eq!(in_blocks(&paragraphs(page)).hits, 2);
    }

    #[test]
    fn locals_and_functions_with_odd_names_are_counted() {
        let source = "let told = 1;\nlet mut what = 2;\nlet pages = 3;\nfn was_told() {}\n";
        assert_eq!(odd_names(source).hits, 3);
    }
}

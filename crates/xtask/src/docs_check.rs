//! Checks the form of the documentation: lines that fit a terminal, working links, a short README.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Result, bail};

use crate::workspace::Workspace;

/// Maximum width of a line. A table with a longer row must become a list, because a row can't be
/// wrapped.
pub(crate) const MAX_COLUMNS: usize = 120;
/// Prefixes of names that refer to files of this workspace.
const FOLDERS: [&str; 5] = ["config/", "crates/", "docker/", "docs/", "examples/"];
/// Maximum words of the README. Further information belongs on the pages that it links to.
const MAX_README_WORDS: usize = 700;

pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let mut pages = BTreeMap::new();
    collect(&workspace.root, Path::new(""), &mut pages)?;
    let mut breaches = breaches(&pages, |path| workspace.root.join(path).exists());
    for (path, text) in &pages {
        for command in test_commands(text) {
            let TestCommand { folder, filter } = &command;
            let mut files = Vec::new();
            let root = workspace.root.join(folder);
            match root.is_dir() {
                true => rust_files(&root, Path::new(""), &mut files)?,
                // A test program may be a single file.
                false => files.extend(
                    fs::read_to_string(root.with_extension("rs")).map(|text| (String::new(), text)),
                ),
            }
            if !selects_tests(&files, filter) {
                let (page, folder) = (path.display(), folder.display());
                breaches.push(format!("{page}: no test in {folder} is named {filter}"));
            }
        }
    }
    if breaches.is_empty() {
        eprintln!("{} pages of Markdown: all in form", pages.len());
        return Ok(());
    }
    bail!(
        "the documentation's form is broken:\n  {}",
        breaches.join("\n  ")
    )
}

/// Reads the Markdown files in and below a folder, by path in the workspace.
fn collect(root: &Path, folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let path = folder.join(&*name);
        if entry.file_type()?.is_dir() {
            // Skip build output and hidden folders.
            if name != "target" && !name.starts_with('.') {
                collect(root, &path, pages)?;
            }
        } else if name.ends_with(".md") {
            pages.insert(path.clone(), fs::read_to_string(root.join(path))?);
        }
    }
    Ok(())
}

/// A `cargo test` command with a filter, in a page.
#[derive(Debug, PartialEq)]
struct TestCommand<'p> {
    /// The folder of the tests, in the workspace.
    folder: PathBuf,
    /// The part of a test's path that selects it.
    filter: &'p str,
}

/// Adds the Rust files in and below a folder of `root`, each with its path in `root` and its text.
fn rust_files(root: &Path, folder: &Path, files: &mut Vec<(String, String)>) -> Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let path = folder.join(entry?.file_name());
        if root.join(&path).is_dir() {
            rust_files(root, &path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(root.join(&path))?;
            files.push((path.to_string_lossy().into_owned(), text));
        }
    }
    Ok(())
}

/// Returns whether a filter of `cargo test` selects any test. A filter is accepted if each of its
/// parts occurs in a module's path or in a test's name. This must be checked here, because `cargo
/// test` succeeds even if its filter selects no test.
fn selects_tests(files: &[(String, String)], filter: &str) -> bool {
    filter.split("::").all(|part| {
        files
            .iter()
            .any(|(path, text)| path.contains(part) || tests(text).any(|test| test.contains(part)))
    })
}

/// Returns the first lines of the test functions in a file.
fn tests(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().map(str::trim).filter(move |line| {
        let is_attribute = line.starts_with("#[");
        is_test |= is_attribute && (line.contains("[test]") || line.contains("::test"));
        !is_attribute && std::mem::take(&mut is_test)
    })
}

/// Returns the `cargo test` commands of a page that have a filter. Skips placeholders, such as
/// `NAME`.
fn test_commands(page: &str) -> Vec<TestCommand<'_>> {
    let mut commands = Vec::new();
    for rest in page.split("cargo test -p ").skip(1) {
        // A command in prose ends with a backtick and may continue on the next line. A command in a
        // code block ends with its line.
        let end = rest.find(['`', '#']).unwrap_or(rest.len());
        let end = rest.find("\n$ ").map_or(end, |line| line.min(end));
        let mut words = rest[..end].split_whitespace();
        let Some(package) = words.next().filter(|package| package.starts_with("crawl")) else {
            continue;
        };
        let package = package.strip_prefix("crawl-").unwrap_or(package);
        let mut folder = Path::new("crates").join(package);
        while let Some(word) = words.next() {
            match word {
                "--test" => folder.extend(["tests", words.next().unwrap_or_default()]),
                "--bin" | "--example" | "--bench" => drop(words.next()),
                "NAME" => {}
                flag if flag.starts_with('-') => {}
                filter => commands.push(TestCommand {
                    folder: folder.clone(),
                    filter,
                }),
            }
        }
    }
    commands
}

fn breaches(pages: &BTreeMap<PathBuf, String>, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut breaches = Vec::new();
    for (path, text) in pages {
        let shown = path.display();
        for (line, number) in text.lines().zip(1..) {
            let columns = line.chars().count();
            if columns > MAX_COLUMNS {
                breaches.push(format!(
                    "{shown}:{number}: {columns} columns, {MAX_COLUMNS} at most"
                ));
            }
            if line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ") {
                breaches.push(format!("{shown}:{number}: a conflict of a merge"));
            }
        }
        let prose = prose(text);
        for named in files_named(&prose).filter(|named| !exists(Path::new(named))) {
            breaches.push(format!("{shown}: no such file: {named}"));
        }
        for link in links(&prose) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file.is_empty() {
                true => path.clone(),
                false => joined(path, file),
            };
            let is_there = match pages.get(&target) {
                Some(page) => anchor.is_empty() || anchors(page).any(|known| known == anchor),
                None => exists(&target),
            };
            if !is_there {
                breaches.push(format!("{shown}: no such file or heading: {link}"));
            }
        }
    }
    let readme = pages.get(Path::new("README.md"));
    let words = readme.map_or(0, |text| text.split_whitespace().count());
    if words > MAX_README_WORDS {
        breaches.push(format!(
            "README.md: {words} words, {MAX_README_WORDS} at most"
        ));
    }
    breaches
}

/// Returns the lines of a page outside code blocks.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let outside = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    outside.collect::<Vec<_>>().join("\n")
}

/// Returns the targets of a page's links into this workspace.
fn links(prose: &str) -> impl Iterator<Item = &str> {
    let targets = prose.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    targets.filter(|target| !target.contains(':'))
}

/// Returns the workspace files that a page names as code. Skips placeholders such as `NAME`.
fn files_named(prose: &str) -> impl Iterator<Item = &str> {
    let spans = prose.split('`').skip(1).step_by(2);
    spans.filter(|span| {
        let is_ours = FOLDERS.iter().any(|folder| span.starts_with(folder));
        is_ours && !span.contains([' ', '*', '\n']) && !span.contains("NAME")
    })
}

/// Returns the path of a link's target in the workspace.
fn joined(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().map(Path::to_owned).unwrap_or_default();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

/// Returns the anchors of a page's headings, as code hosts generate them.
fn anchors(page: &str) -> impl Iterator<Item = String> {
    let headings: Vec<String> = prose(page)
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let anchor = heading.chars().filter_map(|letter| match letter {
                ' ' => Some('-'),
                '-' | '_' => Some(letter),
                _ => letter.is_alphanumeric().then_some(letter),
            });
            anchor.collect()
        })
        .collect();
    headings.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(readme: &str) -> Vec<String> {
        let pages = BTreeMap::from([
            (PathBuf::from("README.md"), readme.to_owned()),
            (
                PathBuf::from("docs/limits.md"),
                "## What a server `echoes`\n[up](../README.md) [code](../src/lib.rs)\n".to_owned(),
            ),
        ]);
        breaches(&pages, |path| path == Path::new("src/lib.rs"))
    }

    #[test]
    fn lines_of_120_columns_and_700_words_are_in_form() {
        let text = format!("{}\n{}", "é".repeat(120), "word ".repeat(20));
        assert_eq!(check(&text), Vec::<String>::new());
        assert_eq!(
            check(&"é".repeat(121)),
            ["README.md:1: 121 columns, 120 at most"]
        );
        assert_eq!(
            check(&"word\n".repeat(701)),
            ["README.md: 701 words, 700 at most"]
        );
    }

    #[test]
    fn a_merge_has_no_conflicts() {
        let page = format!("one\n{} HEAD\ntwo\n", "<".repeat(7));
        assert_eq!(check(&page), ["README.md:2: a conflict of a merge"]);
    }

    #[test]
    fn named_files_exist() {
        assert_eq!(check("`crates/NAME` `cat docs/x`"), Vec::<String>::new());
        let missing = "`a` is in `crates/gone.rs`";
        assert_eq!(check(missing), ["README.md: no such file: crates/gone.rs"]);
    }

    #[test]
    fn commands_name_tests_that_exist() {
        let page = "`cargo test -p crawl-a --test cli\n  help` `cargo test -p CRATE NAME`\n\
                    ```console\n$ cargo test -p crawl --lib   # all\n$ cargo test -p crawl b::c\n```\n";
        let command = |folder: &str, filter| TestCommand {
            folder: folder.into(),
            filter,
        };
        let expected = [
            command("crates/a/tests/cli", "help"),
            command("crates/crawl", "b::c"),
        ];
        assert_eq!(test_commands(page), expected);
        let files = [(
            "src/park.rs".to_owned(),
            "#[test]\n#[ignore]\nfn waits_for_gaps() {\nfn unparked() {\n".to_owned(),
        )];
        assert!(selects_tests(&files, "park::waits"));
        assert!(!selects_tests(&files, "park::unparked"));
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        let good = "[a](docs/limits.md) [b](docs/limits.md#what-a-server-echoes) [c](src/lib.rs) \
                    [d](https://example.org/#x)\n```text\n[no](link)\n```\n";
        assert_eq!(check(good), Vec::<String>::new());
        for link in ["docs/limit.md", "docs/limits.md#echo", "#none"] {
            let expected = format!("README.md: no such file or heading: {link}");
            assert_eq!(check(&format!("[x]({link})")), [expected]);
        }
    }
}

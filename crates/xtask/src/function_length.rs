//! Checks that no function is longer than its crate allows.
//!
//! The source is formatted, so a function ends at the first line that is just a brace with the
//! indentation of its `fn` line.

use anyhow::Result;

use crate::module_imports::{SourceFile, TestOnlyModules, source_files};
use crate::workspace::Workspace;

/// Maximum number of lines of a function outside tests, for the folder of each crate that is
/// checked.
const MAX_LINES: [(&str, usize); 1] = [("engine", 80)];

/// Returns a message for each function that is too long.
pub(crate) fn breaches(workspace: &Workspace) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    for (name, max_lines) in MAX_LINES {
        let source = workspace.root.join("crates").join(name).join("src");
        let mut files = source_files(&source)?;
        for file in &mut files {
            if let Ok(path) = file.path.strip_prefix(&workspace.root) {
                file.path = path.to_path_buf();
            }
        }
        breaches.extend(too_long(&files, max_lines));
    }
    Ok(breaches)
}

fn too_long(files: &[SourceFile], max_lines: usize) -> Vec<String> {
    let for_tests =
        TestOnlyModules::of(files.iter().map(|file| (&file.module, file.text.as_str())));
    let mut messages = Vec::new();
    for file in files {
        if for_tests.contains(&file.module) {
            continue;
        }
        for function in functions(&file.text) {
            if function.lines > max_lines {
                messages.push(format!(
                    "{}:{}: function {} has {} lines, and {max_lines} are allowed",
                    file.path.display(),
                    function.line,
                    function.name,
                    function.lines,
                ));
            }
        }
    }
    messages
}

/// A function of a source file.
#[derive(Debug, PartialEq, Eq)]
struct FunctionSpan<'a> {
    name: &'a str,
    /// The line number of the `fn` line, from 1.
    line: usize,
    /// The number of lines from the `fn` line to the closing brace.
    lines: usize,
}

/// Returns the functions with a body, except those in the test module at the end of the file.
fn functions(source: &str) -> Vec<FunctionSpan<'_>> {
    let mut lines: Vec<&str> = source.lines().collect();
    let is_test_module = |pair: &[&str]| {
        pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
    };
    if let Some(end) = lines.windows(2).position(is_test_module) {
        lines.truncate(end);
    }
    let mut functions = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = name_of(line) else { continue };
        if line.ends_with([';', '}']) {
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let after = &lines[at + 1..];
        // A signature without a body ends with a semicolon at the same indentation.
        let end = after.iter().position(|line| {
            let text = line.strip_prefix(indent).unwrap_or_default();
            text == "}" || (text.starts_with(')') && text.ends_with(';'))
        });
        if let Some(end) = end.filter(|end| after[*end].ends_with('}')) {
            functions.push(FunctionSpan {
                name,
                line: at + 1,
                lines: end + 2,
            });
        }
    }
    functions
}

/// Returns the name of the function that begins on a line, if one does.
fn name_of(line: &str) -> Option<&str> {
    let mut text = line.trim_start();
    if let Some(rest) = text.strip_prefix("pub") {
        text = match rest.strip_prefix('(') {
            Some(scope) => scope.split_once(") ")?.1,
            None => rest.trim_start(),
        };
    }
    for word in ["const ", "async ", "unsafe "] {
        text = text.strip_prefix(word).unwrap_or(text);
    }
    let name = text.strip_prefix("fn ")?;
    let end = name.find(|letter: char| letter != '_' && !letter.is_alphanumeric())?;
    Some(&name[..end])
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn file(path: &str, module: &[&str], text: &str) -> SourceFile {
        SourceFile {
            path: PathBuf::from(path),
            module: module.iter().map(|name| (*name).to_owned()).collect(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn lengths_count_from_the_fn_line_to_the_closing_brace() {
        let source = "fn one() {}\n\
            pub(crate) async fn two(\n    a: u8,\n) -> u8 {\n    {\n    }\n}\n\
            impl A {\n    fn three(&self) {\n        a\n    }\n}\n\
            trait B {\n    fn four(&self);\n    fn five(\n        a: u8,\n    );\n}\n";
        let lengths: Vec<_> = functions(source)
            .into_iter()
            .map(|function| (function.name, function.line, function.lines))
            .collect();
        assert_eq!(lengths, [("two", 2, 6), ("three", 9, 3)]);
    }

    #[test]
    fn a_function_that_is_too_long_is_reported_with_its_file_and_length() {
        let long = "fn long() {\n    a();\n    b();\n}\n";
        let tests = format!("#[cfg(test)]\nmod tests {{\n{long}}}\n");
        let files = [
            file("src/a.rs", &["a"], long),
            file(
                "src/b.rs",
                &["b"],
                &format!("#[cfg(test)]\nmod c;\n\n{tests}"),
            ),
            file("src/b/c.rs", &["b", "c"], long),
        ];
        assert_eq!(
            too_long(&files, 3),
            ["src/a.rs:1: function long has 4 lines, and 3 are allowed"]
        );
        assert!(too_long(&files, 4).is_empty());
    }
}

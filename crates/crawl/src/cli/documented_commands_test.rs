//! Checks that the program accepts every command in the documentation.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;

use super::preprocess::{CommandLineError, built, matches};

/// The root folder of the workspace.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn the_program_accepts_each_documented_command() {
    let program = built();
    let mut commands = 0;
    let mut refused = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for line in commands_of(&text) {
            commands += 1;
            if let Err(why) = check(&program, &line) {
                refused.push(format!("{}: {line}: {why}", page.display()));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(commands > 100, "{commands}");
}

#[test]
fn a_command_with_an_unknown_flag_is_refused() {
    let program = built();
    assert!(check(&program, "crawl verify site --wrong").is_err());
    assert!(check(&program, "crawl --version").is_ok());
}

/// Returns the documentation pages: the README and everything in `docs`.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![Path::new(ROOT).join("README.md")];
    let docs = fs::read_dir(Path::new(ROOT).join("docs")).unwrap();
    pages.extend(docs.map(|entry| entry.unwrap().path()));
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages
}

/// Returns the command lines that run `crawl` in a page's `console` blocks. Joins the lines of a
/// command that continues on the next line.
fn commands_of(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut in_block = false;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            in_block = line == "```console";
        }
        let Some(typed) = line.strip_prefix("$ crawl ").filter(|_| in_block) else {
            continue;
        };
        let mut command = format!("crawl {typed}");
        while let Some(begin) = command.strip_suffix('\\') {
            let rest = lines.next().unwrap_or_default();
            command = format!("{begin}{}", rest.trim_start_matches(['>', ' ']));
        }
        // One line may contain several commands.
        commands.extend(command.split(" && ").map(str::to_owned));
    }
    commands
}

/// Checks that the program accepts a command line.
fn check(program: &Command, line: &str) -> Result<(), String> {
    match matches(program.clone(), words(line)) {
        Ok(_) => Ok(()),
        Err(CommandLineError::Syntax(error)) if !error.use_stderr() => Ok(()),
        Err(CommandLineError::Syntax(error)) => Err(error.to_string()),
        Err(CommandLineError::Value(error)) => Err(format!("{error:?}")),
    }
}

/// Splits a line into words as a shell does, up to a comment, a pipe or a redirection.
fn words(line: &str) -> Vec<OsString> {
    let mut words: Vec<String> = Vec::new();
    let mut quote = None;
    let mut is_between = true;
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                if is_between {
                    words.push(String::new());
                }
                is_between = false;
            }
            (None, ' ') => is_between = true,
            (None, '#' | '|' | '>' | '&') if is_between => break,
            _ => {
                if is_between {
                    words.push(String::new());
                }
                is_between = false;
                if let Some(word) = words.last_mut() {
                    word.push(letter);
                }
            }
        }
    }
    // `2>&1` is a redirection, not an argument.
    words.retain(|word| word != "2>&1");
    words.into_iter().map(OsString::from).collect()
}

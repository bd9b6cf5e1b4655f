//! Formats clap's errors like the program's own, each with a hint.

use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use crawl_records::WORKERS;

use super::args;
use super::flags_of_other_tools::{self, ROBOTS_ALWAYS_APPLY};
use crate::error::{FINISHED, USAGE, cut, nearest, quoted};
use crate::terminal::note;

/// Prints a clap error with a hint. Requests for help or the version are clap errors too; their
/// text goes to stdout unchanged.
pub(crate) fn show(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Clap omits styles if the output is not a terminal.
            let _ = error.print();
            ExitCode::from(FINISHED)
        }
        _ => {
            let text = error.render().to_string();
            let text = text.replace("For more information, try '--help'.", "");
            let text = match is_explain_without_url(error) {
                true => text.replacen("<DIR>...", "<URL>", 1),
                false => text,
            };
            let text = cut(text.trim_end());
            let own_hint = hint_of_crawl_dir(error)
                .or_else(|| hint_of_other_tool(error))
                .or_else(|| hint_for_robots(error))
                .or_else(|| hint_for_yes_or_no(error));
            // clap suggests the flag with the most similar name, even if it has another meaning.
            let text = match &own_hint {
                Some(_) => without_tips(&text),
                None => text.replace("\n  tip: ", "\nhint: "),
            };
            let hint = match text.contains("\nhint: ") {
                true => String::new(),
                false => own_hint.unwrap_or_else(|| hint_for(error)),
            };
            let hint = match hint.is_empty() {
                true => hint,
                false => format!("\nhint: {}", cut(&hint)),
            };
            note(&format!("{text}{hint}"));
            ExitCode::from(USAGE)
        }
    }
}

/// Returns whether `crawl explain` has a directory but no URL. clap takes a single word for the
/// last argument, the URL, and reports that the directory is missing.
fn is_explain_without_url(error: &clap::Error) -> bool {
    let missing = error.get(ContextKind::InvalidArg);
    let is_dir = |missing: &ContextValue| match missing {
        ContextValue::Strings(names) => *names == ["<DIR>..."],
        _ => false,
    };
    error.kind() == ErrorKind::MissingRequiredArgument
        && first_argument() == "explain"
        && missing.is_some_and(is_dir)
}

/// Removes clap's suggestions, each with the blank line before it.
fn without_tips(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        match line.starts_with("  tip: ") {
            true => {
                lines.pop_if(|last| last.is_empty());
            }
            false => lines.push(line),
        }
    }
    lines.join("\n")
}

/// Returns the word that clap rejected as an unknown command or argument. `None` if the error has
/// another cause or the word is a flag.
fn unknown_word(error: &clap::Error) -> Option<&str> {
    unknown_argument(error).filter(|word| !word.starts_with('-'))
}

/// Returns the word or flag that clap rejected as unknown. `None` if the error has another cause.
fn unknown_argument(error: &clap::Error) -> Option<&str> {
    let kinds = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg];
    let is_unknown = matches!(
        error.kind(),
        ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument
    );
    match kinds.into_iter().find_map(|kind| error.get(kind))? {
        ContextValue::String(word) if is_unknown => Some(word),
        _ => None,
    }
}

/// Returns the hint for a rejected word that is the directory of a crawl. `None` for any other
/// word, or if the command has no use for a directory.
fn hint_of_crawl_dir(error: &clap::Error) -> Option<String> {
    let word = unknown_word(error)?;
    if !Path::new(word).join("crawl.toml").is_file() {
        return None;
    }
    hint_for_crawl_dir(&first_argument(), Path::new(word))
}

/// Returns the hint for a crawl's directory that `command` can't take as an argument. `command` is
/// the first word of the command line, which may not be the name of a command.
fn hint_for_crawl_dir(command: &str, dir: &Path) -> Option<String> {
    let is_gathered = dir.join(WORKERS).exists();
    let dir = quoted(dir);
    Some(match command {
        "index" | "mcp" | "search" | "serve" => format!(
            "merge the directories of several workers with `crawl gather DIR .. --output ALL`, then \
             run `crawl {command} ALL`"
        ),
        "extract" | "forget" | "recheck" | "replay" => {
            format!("`crawl {command}` takes one directory: run it for each worker's directory")
        }
        "control" => format!("the directory comes first, as in `crawl control {dir} pause`"),
        "check" => format!("`crawl report {dir} --faults` lists the faults of the crawl in it"),
        // The directory combines those of several workers (`crawl gather`), so no run can continue
        // a crawl in it.
        _ if is_gathered => return None,
        "plan" => format!("`crawl plan --output {dir}` estimates the next run of the crawl in it"),
        command if args::command().find_subcommand(command).is_none() => {
            format!("`crawl --output {dir}` continues the crawl in it")
        }
        _ => return None,
    })
}

/// Returns the hint for an unknown flag that another tool has.
fn hint_of_other_tool(error: &clap::Error) -> Option<String> {
    let flag = unknown_argument(error).filter(|word| word.starts_with('-'))?;
    let command = args::command();
    let named = command.find_subcommand(first_argument());
    flags_of_other_tools::hint(named.unwrap_or(&command), flag)
}

/// Returns the hint for a value such as `yes` or `none`, if the flag has another name for it, such
/// as `all` or `off`.
fn hint_for_yes_or_no(error: &clap::Error) -> Option<String> {
    let (Some(ContextValue::String(value)), Some(ContextValue::Strings(valid))) = (
        error.get(ContextKind::InvalidValue),
        error.get(ContextKind::ValidValue),
    ) else {
        return None;
    };
    let names: &[&str] = match value.to_lowercase().as_str() {
        "yes" | "y" | "true" | "1" => &["on", "all", "always"],
        "no" | "n" | "false" | "0" | "none" | "never" => &["off"],
        _ => return None,
    };
    let name = names
        .iter()
        .find(|name| valid.iter().any(|valid| valid == *name))?;
    Some(format!("did you mean `{name}`?"))
}

/// Returns the hint for an unusable value of `--robots`, such as `off`.
fn hint_for_robots(error: &clap::Error) -> Option<String> {
    let is_robots = matches!(
        error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(flag)) if flag.starts_with("--robots ")
    );
    let is_unusable = error.kind() == ErrorKind::InvalidValue;
    let is_similar = error.get(ContextKind::SuggestedValue).is_some();
    (is_robots && is_unusable && !is_similar).then(|| ROBOTS_ALWAYS_APPLY.to_owned())
}

/// Returns the first argument, which names a subcommand. Empty if it is missing or not valid UTF-8.
fn first_argument() -> String {
    let first = std::env::args_os().nth(1);
    first
        .and_then(|first| first.into_string().ok())
        .unwrap_or_default()
}

/// Returns the hint for an error for which clap suggests nothing.
fn hint_for(error: &clap::Error) -> String {
    let command = args::command();
    let first = first_argument();
    if let Some(command) = command.find_subcommand(&first) {
        let name = command.get_name();
        return format!("`crawl {name} --help` lists its flags and arguments");
    }
    let Some(word) = unknown_word(error) else {
        return "`crawl --help` lists flags and commands".to_owned();
    };
    let names = command.get_subcommands().map(clap::Command::get_name);
    match nearest(word, names.map(|name| (name.to_owned(), name))) {
        Some(name) => format!("did you mean `crawl {name}`? `crawl help` lists all commands"),
        None => format!(
            "`crawl help` lists flags and commands; to crawl a host without a dot, give its URL, \
             `https://{word}/`"
        ),
    }
}

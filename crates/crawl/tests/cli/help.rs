//! Help, version, completions, manual page, and the README's help block.

use std::fs;
use std::path::Path;

use crate::harness::setup;

const BEGIN: &str = "<!-- help -->";
const END: &str = "<!-- /help -->";

#[test]
fn readme_holds_the_short_help() {
    let (_dir, cmd) = setup("readme");
    let block = format!("\n```text\n{}\n```\n", cmd.run(&["-h"]).ok().trim_end());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(path).expect("README.md");
    let (before, rest) = readme
        .split_once(BEGIN)
        .expect("README.md has a mark `<!-- help -->`");
    let (found, after) = rest
        .split_once(END)
        .expect("README.md has a mark `<!-- /help -->`");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
        fs::write(path, format!("{before}{BEGIN}{block}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(
        found, block,
        "run this test with UPDATE_EXPECT=1 to bring README.md up to date"
    );
}

#[test]
fn help_names_every_group_and_default() {
    let (_dir, cmd) = setup("help");
    let short = cmd.run(&["-h"]).ok();
    let long = cmd.run(&["--help"]).ok();
    for group in [
        "operator",
        "scope",
        "politeness",
        "exclusion",
        "fetch",
        "output",
        "display",
    ] {
        assert!(short.contains(&format!("[{group}]:")), "{group}");
    }
    for text in [&short, &long] {
        assert!(text.contains("[default: 1s]") && text.contains("[default: rfc9309]"));
    }
    assert!(long.contains("130 interrupted"));
    assert!(long.len() > short.len());
    for command in [
        "robots",
        "inspect",
        "config",
        "report",
        "explain",
        "audit",
        "serve",
        "completions",
        "man",
    ] {
        let help = cmd.run(&[command, "--help"]).ok();
        assert!(help.contains(&format!("Usage: crawl {command}")), "{help}");
    }
}

#[test]
fn help_without_a_terminal_has_no_colour() {
    let (_dir, cmd) = setup("colour");
    assert!(!cmd.run(&["--help"]).ok().contains('\u{1b}'));
    assert!(!cmd.run(&["--sede"]).stderr.contains('\u{1b}'));
}

#[test]
fn version_is_named() {
    let (_dir, cmd) = setup("version");
    let version = format!("crawl {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(cmd.run(&["--version"]).ok(), version);
}

#[test]
fn completions_and_manual_page() {
    let (_dir, cmd) = setup("completions");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = cmd.run(&["completions", shell]).ok();
        assert!(script.contains("max-pages-per-host"), "{shell}");
    }
    let page = cmd.run(&["man"]).ok();
    assert!(page.contains(".TH crawl 1") && page.contains("wait\\-unreachable"));
}

#[test]
fn ours_help_is_a_command_too() {
    let (_dir, cmd) = setup("help-command");
    assert_eq!(cmd.run(&["help"]).ok(), cmd.run(&["--help"]).ok());
    for command in ["report", "serve", "config"] {
        let help = cmd.run(&["help", command]).ok();
        assert_eq!(help, cmd.run(&[command, "--help"]).ok());
    }
    let help = cmd.run(&["help", "control", "add"]).ok();
    assert!(
        help.contains("Usage: crawl control <DIR> add <URL>"),
        "{help}"
    );
}

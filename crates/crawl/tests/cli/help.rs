//! Help, version, completions and manual page, and the documentation page with all help texts.

use std::fs;

use expect_test::expect_file;

use crate::harness::{Cmd, setup};

const HEAD: &str = "\
# The command line

For anyone who types commands: every command and flag, as `--help` prints it.

```console
$ crawl https://example.org/ --contact you@example.org --output example
$ crawl report example
```

The same settings can be given in a `--config` file: [configuration.md](configuration.md). Where to begin:
[getting-started.md](getting-started.md).

A flag whose value may be left out takes it behind `=` or as the next word: `--resources all`.

Exit codes:

- 0: finished, also by a budget.
- 1: no seed could be fetched; some pages failed (with `--fail-on-error`); a host is not complete (with
  `--fail-on-partial`); `crawl robots` says disallowed; `crawl report` found a broken page (with `--fail-on-broken`) or
  a fault (with `--fail-on-faults`); `crawl check` found a fault; no host of `crawl plan` or `crawl recheck` could be
  reached; `crawl identity check` found unusable keys, or `crawl identity verify` no valid signature.
- 2: the command line or the configuration is wrong.
- 3: the disk or the state failed.
- 4: `crawl audit` found a breach, `crawl verify` or `crawl export --to bundle` a defect, `crawl conformance` a failed
  clause, `crawl identity verify` an invalid signature, `crawl frontier check` a violated clause, or `crawl gather` or
  `crawl frontier export` two rows for one URL in a round.
- 130: interrupted; the same command continues a crawl, and starts any other command over.

This page is written by `UPDATE_EXPECT=1 cargo test -p crawl --test cli help`.
";

/// The line of a help text at which the flags shared with `crawl` begin.
const SHARED: &str = "Operator [operator]:";

/// Appends the help of a command and its subcommands to the page.
fn describe(cmd: &Cmd, path: &[&str], page: &mut String) {
    let mut help = cmd.run(&[path, &["--help"]].concat()).ok();
    // `crawl config`, `crawl plan` and `crawl check` share the flags of `crawl`, which are listed
    // above.
    if let Some(at) = help
        .find(SHARED)
        .filter(|_| !path.is_empty() && path[0] != "identity")
    {
        assert!(page.contains(help[at..].trim_end()), "{path:?}");
        help.replace_range(
            at..,
            "And the flags of `crawl`, from [operator] to [display].",
        );
    }
    let name = [&["crawl"], path].concat().join(" ");
    page.push_str(&format!(
        "\n## {name}\n\n```text\n{}\n```\n",
        help.trim_end()
    ));
    let commands = help.lines().skip_while(|line| *line != "Commands:");
    let commands = commands.skip(1).take_while(|line| !line.is_empty());
    for line in commands {
        // Only lines with this indentation name a command; the others continue a description.
        let name = line
            .strip_prefix("  ")
            .filter(|rest| !rest.starts_with(' '));
        let name = name.and_then(|rest| rest.split(' ').next());
        if let Some(name) = name.filter(|name| *name != "help") {
            describe(cmd, &[path, &[name]].concat(), page);
        }
    }
}

#[test]
fn the_documentation_holds_the_help_of_every_command() {
    let (_dir, cmd) = setup("documented");
    let mut page = HEAD.to_owned();
    describe(&cmd, &[], &mut page);
    for command in ["crawl robots", "crawl serve", "crawl control watch"] {
        assert!(page.contains(&format!("\n## {command}\n")), "{command}");
    }
    expect_file!["../../../../docs/cli.md"].assert_eq(&page);
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
        assert!(long.contains(&format!("[{group}]:")), "{group}");
    }
    assert!(long.contains("[default: 1s]") && long.contains("[default: rfc9309]"));
    assert!(short.lines().count() <= 45, "{short}");
    assert!(long.contains("130 interrupted"));
    assert!(long.len() > short.len());
    for command in [
        "robots",
        "inspect",
        "config",
        "report",
        "replay",
        "explain",
        "audit",
        "verify",
        "serve",
        "completions",
        "man",
    ] {
        let help = cmd.run(&[command, "--help"]).ok();
        assert!(help.contains(&format!("Usage: crawl {command}")), "{help}");
        assert!(help.starts_with("Example: crawl "), "{help}");
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
    assert_eq!(cmd.run(&["-V"]).ok(), version);
    let features = "features: +conformance +documents +exports +extract +fast-codecs +http2 \
         +jemalloc +logins +mcp +render +search +shared-frontier +shell +tables +zstd\n";
    assert_eq!(cmd.run(&["--version"]).ok(), format!("{version}{features}"));
}

#[test]
fn completions_and_manual_page() {
    let (_dir, cmd) = setup("completions");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = cmd.run(&["completions", shell]).ok();
        assert!(script.contains("max-pages-per-host"), "{shell}");
        assert!(script.contains("report"), "{shell}");
        let is_internal = script.contains("read-document") || script.contains("read__document");
        assert!(!is_internal, "{shell}");
    }
    let page = cmd.run(&["man"]).ok();
    assert!(page.contains(".TH crawl 1") && page.contains("wait\\-unreachable"));
}

#[test]
fn a_manual_page_is_written_for_each_command() {
    let (dir, cmd) = setup("man-pages");
    cmd.run(&["man", "--all", "man/pages"]).ok();
    for page in ["crawl.1", "crawl-report.1", "crawl-frontier-status.1"] {
        let text = fs::read_to_string(dir.path().join("man/pages").join(page)).unwrap();
        assert!(text.contains(".TH"), "{page}");
    }
    assert!(!dir.path().join("man/pages/crawl-read-document.1").exists());
    dir.write("file", "");
    let refused = cmd.run(&["man", "--all", "file"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
}

#[test]
fn help_is_a_command_too() {
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

//! The short help of `crawl -h`, and an example for each command.
//!
//! `crawl --help` lists every flag by topic. The overview fits on one screen: usage, examples, the
//! flags that most crawls need, and the commands in groups.

use std::fmt::Write as _;

/// Flags that most crawls need, each with the placeholder of its value.
const EVERYDAY_FLAGS: [(&str, &str); 12] = [
    ("contact", "MAIL|URL"),
    ("output", "DIR"),
    ("config", "FILE"),
    ("scope", "SCOPE"),
    ("max-pages", "N"),
    ("max-depth", "N"),
    ("max-time", "DURATION"),
    ("delay", "DURATION"),
    ("exclude", "REGEX"),
    ("index", "ON|OFF"),
    ("recrawl", ""),
    ("quiet", ""),
];

/// The commands, grouped by purpose.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Crawl", &["plan", "init", "control"]),
    (
        "Inspect",
        &[
            "check",
            "report",
            "explain",
            "audit",
            "verify",
            "search",
            "inspect",
            "robots",
            "conformance",
        ],
    ),
    ("Publish", &["serve", "export", "mcp"]),
    (
        "Maintain",
        &["extract", "index", "recheck", "forget", "replay", "gather"],
    ),
    (
        "Set up",
        &["config", "frontier", "identity", "completions", "man"],
    ),
];

/// For each command, the example at the top of its help.
pub(super) const COMMAND_EXAMPLES: [(&str, &str); 26] = [
    (
        "plan",
        "crawl plan https://www.example.org/ --contact you@example.org",
    ),
    (
        "check",
        "crawl check https://www.example.org/ --contact you@example.org",
    ),
    ("init", "crawl init"),
    ("robots", "crawl robots https://www.example.org/private/"),
    (
        "inspect",
        "crawl inspect page.html --base https://www.example.org/",
    ),
    ("config", "crawl config > crawl.toml"),
    ("report", "crawl report site --broken"),
    ("replay", "crawl replay site --output again --max-depth 2"),
    (
        "explain",
        "crawl explain site https://www.example.org/private/",
    ),
    ("audit", "crawl audit site"),
    (
        "conformance",
        "crawl conformance --token Wget -- wget -r -w 1 {url}",
    ),
    ("extract", "crawl extract site --config rules.toml"),
    ("recheck", "crawl recheck site"),
    ("verify", "crawl verify site"),
    (
        "forget",
        "crawl forget site https://www.example.org/about/me",
    ),
    ("gather", "crawl gather w1 w2 --output whole"),
    ("index", "crawl index site"),
    ("search", "crawl search site \"first steps\""),
    ("export", "crawl export site --to wacz --out site.wacz"),
    ("control", "crawl control site pause"),
    (
        "serve",
        "crawl serve site --allow-origin https://www.example.org",
    ),
    ("frontier", "crawl frontier status --config study.toml"),
    ("identity", "crawl identity new --signature-key bot.key"),
    ("mcp", "crawl mcp site"),
    (
        "completions",
        "crawl completions bash > /etc/bash_completion.d/crawl",
    ),
    ("man", "crawl man --all man"),
];

const HEAD: &str = "\
A polite web crawler with robots exclusion built in

Usage: crawl URL [URL ..] [--output DIR] [FLAGS]
       crawl COMMAND

Examples:
  crawl https://www.example.org/ --contact you@example.org --output site
  crawl --output site                             # resume it
  crawl report site --broken                      # broken links
  crawl explain site https://www.example.org/x    # why wasn't this fetched?
  crawl --output site --recrawl                   # visit again what is due

";

const TAIL: &str = "
`crawl --help` lists all flags by topic, `crawl COMMAND --help` those of a command.
";

/// Returns the text of `crawl -h`.
pub(crate) fn overview(command: &clap::Command) -> String {
    let mut text = format!("{HEAD}Everyday flags:\n");
    for (name, value) in EVERYDAY_FLAGS {
        let flag = command
            .get_arguments()
            .find(|flag| flag.get_long() == Some(name));
        let help = flag.and_then(clap::Arg::get_help).map(ToString::to_string);
        // Print only the first clause of a flag's help, because the overview has no room for more.
        let help = help.unwrap_or_default();
        let help = help
            .split([',', '(', '[', ';', ':'])
            .next()
            .unwrap_or_default();
        let usage = format!("--{name} {value}");
        let _ = writeln!(text, "  {usage:<22} {}", help.trim_end());
    }
    text.push_str("\nCommands:\n");
    for (group, names) in GROUPS {
        let _ = writeln!(text, "  {group:<9} {}", names.join(", "));
    }
    text.push_str(TAIL);
    text
}

/// Adds each command's example to the top of its help.
pub(super) fn with_examples(command: clap::Command) -> clap::Command {
    COMMAND_EXAMPLES
        .into_iter()
        .fold(command, |command, (name, example)| {
            command.mut_subcommand(name, |command| {
                command.before_help(format!("Example: {example}"))
            })
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{COMMAND_EXAMPLES, EVERYDAY_FLAGS, GROUPS, overview};
    use crate::cli::args::command;

    #[test]
    fn the_overview_fits_on_one_screen() {
        let text = overview(&command());
        assert!(text.lines().count() <= 45, "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        let flags = command();
        for (name, _) in EVERYDAY_FLAGS {
            let is_flag = flags
                .get_arguments()
                .any(|flag| flag.get_long() == Some(name));
            assert!(is_flag, "{name}");
        }
    }

    #[test]
    fn each_command_is_in_one_group_and_has_an_example() {
        let command = command();
        let commands: BTreeSet<&str> = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        let grouped = GROUPS.iter().flat_map(|(_, names)| names.iter().copied());
        assert_eq!(grouped.clone().count(), commands.len());
        assert_eq!(grouped.collect::<BTreeSet<_>>(), commands);
        let examples = COMMAND_EXAMPLES.iter().map(|(name, _)| *name);
        assert_eq!(examples.collect::<BTreeSet<_>>(), commands);
    }
}

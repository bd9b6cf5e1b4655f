//! Generates `docs/configuration.md` from the same table as flags, keys and defaults.

use std::fmt::Write as _;

use clap::{Args as _, Command};
use expect_test::expect_file;

use super::config_file::key_of;
use super::setting_definitions::{Settings, SettingsLayer, TABLES};
use super::toml_output::{GROUP_EXAMPLE, SITE_EXAMPLE, heading, table_of};

const HEAD: &str = "\
# Configuration

For anyone who needs more than command-line flags: every key of a file for `--config`.

```toml
seed = [\"https://www.example.org/\"]

[operator]
contact = \"you@example.org\"

[politeness]
delay = \"2s\"
```

```console
$ crawl --config site.toml
$ crawl config --effective --config site.toml
$ crawl config --check site.toml
error: site.toml:7:9: `delay`: `2` isn't a duration: add a unit, as in `500ms`, `2s` or `1h`
$ crawl config --schema > crawl.schema.json
```

- **`--effective`** prints the settings that a crawl would use.
- **`--check`** reports all problems of a file at once, with line and column, and makes no requests. Lines that aren't
  TOML are skipped. Not checked until you fix them: keys under a broken or duplicate table head (`[fetch`), lines after
  an unclosed `\"\"\"`, and settings that may be missing only because such a line contains them.
- **`--schema`** prints a JSON Schema (draft 2020-12). With `#:schema crawl.schema.json` as the first line of a file,
  editors complete keys, show their meaning and underline mistakes. The schema has only keys with hyphens; files may
  use underscores too.

[config/default.toml](../config/default.toml), which `crawl config` prints, has every key with its default;
[config/small-site.toml](../config/small-site.toml) is a file for the owner of a small site,
[config/research.toml](../config/research.toml) one for a study.

- **Flags** have the same names as keys: `--delay 2s` is `delay` in `[politeness]`.
- **Durations** have a unit (`500ms`, `2s`, `1m30s`, `1h`, `1d`), **sizes** may have one (`5MiB`, `10MB`, `4096`).
- **An empty string** means: not set. A limit may be `\"unlimited\"`.
- **An unknown key** is an error that suggests the nearest one.

Precedence of sources, lowest first:

1. the built-in default,
2. `contact` in your own `~/.config/crawl/config.toml` (`$XDG_CONFIG_HOME`), which may contain nothing else,
3. what the crawl's directory remembers ([crawl-directory.md](crawl-directory.md)),
4. the file of `--config`,
5. `CRAWL_CONTACT` in the environment,
6. flags.

This page is written by `UPDATE_EXPECT=1 cargo test -p crawl --bin crawl settings::docs_page`.
";

const SITES: &str = "
## Single hosts: `[site.\"HOST\"]`

These keys exist only in files. Their secrets are sent only to that host
([how](architecture.md#secrets)).

```toml
";

const GROUPS: &str = "
## Groups of hosts: `[group.NAME]`

These keys exist only in files, too. A group's pages, bytes and server time are counted over all runs of a round, like
those of a host. Excluded URLs name the group: `max-pages of group ministries` in `excluded.jsonl`. Politeness settings
apply to each host: with `delay = \"5s\"`, each of two hosts in a group gets a request every five seconds.

```toml
";

/// Formats a key, its default and its long help as a list item.
fn item(flags: &Command, field: &str, assignment: &str) -> String {
    let flag = flags.get_arguments().find(|flag| flag.get_id() == field);
    let help = flag.and_then(|flag| flag.get_long_help().or_else(|| flag.get_help()));
    let help = help.map(ToString::to_string).unwrap_or_default();
    let paragraphs: Vec<&str> = help
        .split("\n\n")
        .map(|text| text.trim_end_matches('.'))
        .collect();
    let text = format!("`{assignment}`: {}.", paragraphs.join(". "));
    let width = textwrap::Options::new(120)
        .initial_indent("- ")
        .subsequent_indent("  ")
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(&text, width)
}

#[test]
fn the_documentation_has_every_key_with_its_default_and_meaning() {
    let flags = SettingsLayer::augment_args(Command::new("crawl"));
    let defaults = table_of(&Settings::default());
    let mut page = HEAD.to_owned();
    let seed = item(&flags, "seed", &format!("seed = {}", defaults["seed"]));
    let files = item(&flags, "seed_file", "seed-file = []");
    let sitemaps = item(&flags, "seed_sitemap", "seed-sitemap = []");
    let _ = writeln!(page, "\n## Above all tables\n\n{seed}\n{files}\n{sitemaps}");
    for (table, fields) in TABLES {
        let _ = writeln!(page, "\n## {}: `[{table}]`\n", heading(&flags, fields));
        for field in *fields {
            let key = key_of(field);
            let assignment = format!("{key} = {}", defaults[*table][&key]);
            let _ = writeln!(page, "{}", item(&flags, field, &assignment));
        }
    }
    page.push_str(SITES);
    page.push_str(SITE_EXAMPLE.trim_start());
    page.push_str("```\n");
    page.push_str(GROUPS);
    page.push_str(GROUP_EXAMPLE.trim_start());
    page.push_str("```\n");
    expect_file!["../../../../docs/configuration.md"].assert_eq(&page);
}

//! Writes settings as TOML: every key with its meaning, or the values in force.

use std::fmt::Write as _;
use std::sync::LazyLock;

use clap::{Args as _, Command};
use crawl_records::seeds_of;
use crawl_weburl::{CanonicalUrl, canonicalize};
use toml::{Table, Value};

use super::config_file::NOTES;
use super::listed_seed::ListedSeed;
use super::setting_definitions::{Settings, SettingsLayer, TABLES};

/// The program's name and version, as in every record.
pub(crate) const NAME_AND_VERSION: &str = concat!("crawl ", env!("CARGO_PKG_VERSION"));

/// An example of a `[site]` table, which is empty by default.
pub(super) const SITE_EXAMPLE: &str = "
# Settings for a host and its subdomains; the longest matching name wins. Limits apply to
# each host. Missing keys have the same values as for every host; \"unlimited\" lifts a limit.
# On loopback, a name without a port covers all ports.
#
# [site.\"example.org\"]
# delay = \"10s\"
# delay-factor = 4.0
# per-host = 1
# per-site = 2
# site-delay = \"5s\"
# quiet-hours = [\"08:00-18:00\"]
# max-pages = 1000
# max-bytes = \"1GiB\"
# max-server-time = \"1h\"
# max-time = \"12h\"
#
# These are sent only to exactly this host, and only over https unless it is on loopback.
# They are never recorded. env:NAME uses the value of an environment variable; literal
# values are not copied to crawl.toml.
# basic-auth = \"env:EXAMPLE_LOGIN\"                  # its value: USER:PASSWORD
# headers = { X-Api-Key = \"env:EXAMPLE_KEY\" }
# cookies = { session = \"env:EXAMPLE_SESSION\" }
# plain-http = \"on\"                                 # send them over http too
#
# Cookies that the site sets are dropped unless this is set. They are sent to this host and
# its subdomains only.
# cookies = \"keep\"
#
# Log in before the first page, and once more if the site logs the crawl out.
#
# [site.\"example.org\".login]
# form = \"https://example.org/login\"
# fields = { user = \"env:EXAMPLE_USER\", password = \"command:pass show example\" }
# logged-in = \">Log out<\"                            # a text or { select = \"SELECTOR\" }
";

/// An example of a `[group]` table, which is empty by default.
pub(super) const GROUP_EXAMPLE: &str = "
# Hosts that share a budget, in addition to that of each host. Names include subdomains,
# `@FILE` includes the hosts listed in a file. Listing hosts here doesn't add them to the
# scope.
#
# [group.ministries]
# hosts = [\"finance.example.org\", \"@ministries.txt\"]
# max-pages = 20000
# max-bytes = \"10GiB\"
# max-server-time = \"6h\"
#
# Politeness of each of these hosts, with the keys of [site]. A host's own table overrides
# these.
# delay = \"5s\"
# quiet-hours = [\"07:00-19:00\"]
";

/// Returns every key with its default and meaning.
pub(crate) fn defaults_listing() -> String {
    let flags = SettingsLayer::augment_args(Command::new("crawl"));
    let values = table_of(&Settings::default());
    let mut text = String::from(
        "# Every key with its default. Flags have the same names and override keys.\n\
         # Durations have a unit (500ms, 2s, 1m30s, 1h, 1d), sizes may (5MiB, 10MB, 4096).\n\
         # An empty string means: not set. A limit may be \"unlimited\".\n\n",
    );
    let _ = writeln!(text, "# {}", meaning(&flags, "seed"));
    let _ = writeln!(text, "seed = {}", values["seed"]);
    for field in ["seed_file", "seed_sitemap"] {
        let key = super::config_file::key_of(field);
        let _ = writeln!(text, "# {}\n{key} = []", meaning(&flags, field));
    }
    for (table, fields) in TABLES {
        let heading = heading(&flags, fields);
        let _ = writeln!(text, "\n# {heading}\n[{table}]");
        for field in *fields {
            let key = super::config_file::key_of(field);
            let _ = writeln!(text, "# {}", meaning(&flags, field));
            let _ = writeln!(text, "{key} = {}", values[*table][&key]);
        }
    }
    text.push_str(SITE_EXAMPLE);
    text.push_str(GROUP_EXAMPLE);
    text
}

/// Returns the built-in default of a field, in the form in which a flag takes it. `None` if the
/// default is empty, 0 or a list.
pub(crate) fn default_of(field: &str) -> Option<String> {
    // Serialize the defaults only once, because the help of every flag needs its default.
    static DEFAULTS: LazyLock<Table> = LazyLock::new(|| table_of(&Settings::default()));
    let (table, _) = TABLES.iter().find(|(_, fields)| fields.contains(&field))?;
    match DEFAULTS
        .get(*table)?
        .get(super::config_file::key_of(field))?
    {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Float(number) => Some(number.to_string()),
        Value::Integer(0) | Value::Array(_) => None,
        other => Some(other.to_string()),
    }
}

/// Returns the settings in force as a file that `--config` reads.
pub(crate) fn effective(settings: &Settings) -> String {
    // Serializing can't fail: see `table_of`.
    toml::to_string(&without_secrets(settings)).unwrap_or_default()
}

/// Returns the text of a crawl.toml. It contains the settings in force (without secrets), the
/// versions of the program and of the WARC format, and the times (RFC 3339) of the crawl's first and
/// last start. The `mark` proves that this program wrote the file for this user.
pub(crate) fn record(
    settings: &Settings,
    first_start: &str,
    start: &str,
    mark: Option<&str>,
) -> String {
    let mark = mark.map(|mark| format!("mark = \"{mark}\"\n"));
    format!(
        "# The configuration in use. `crawl --output` with this directory continues the crawl.\n\
         {}\n[{NOTES}]\nversion = \"{}\"\nwarc = \"1.1\"\n\
         started = \"{first_start}\"\nlast-started = \"{start}\"\n{}",
        effective(settings),
        env!("CARGO_PKG_VERSION"),
        mark.unwrap_or_default(),
    )
}

/// Adds the name and version of the browser to the text of a crawl.toml.
pub(crate) fn with_browser(record: String, version: Option<&str>) -> String {
    match version {
        None | Some("") => record,
        Some(version) => format!("{record}browser = {}\n", Value::from(version)),
    }
}

/// Returns the text of crawl.toml for a running crawl that switches to these settings. `older` is
/// its current crawl.toml, from which the times and the browser are taken.
pub(crate) fn record_again(older: &Table, settings: &Settings, mark: Option<&str>) -> String {
    let note = |key: &str| {
        let note = older.get(NOTES).and_then(|notes| notes.get(key));
        note.and_then(Value::as_str).unwrap_or_default()
    };
    let record = record(settings, note("started"), note("last-started"), mark);
    with_browser(record, Some(note("browser")))
}

/// Returns the seeds in a crawl.toml.
pub(crate) fn stored_seeds(stored: &Table) -> Vec<CanonicalUrl> {
    seeds_of(stored)
        .filter_map(|seed| canonicalize(None, seed).ok())
        .collect()
}

/// Returns the seeds in a crawl.toml with their own settings.
pub(super) fn stored_list(stored: &Table) -> Vec<ListedSeed> {
    let seeds = stored.get("seed").and_then(Value::as_array);
    let seeds = seeds.into_iter().flatten().cloned();
    seeds.filter_map(|seed| seed.try_into().ok()).collect()
}

/// Returns the mark in a crawl.toml.
pub(crate) fn mark_of(stored: &Table) -> Option<&str> {
    stored.get(NOTES)?.get("mark")?.as_str()
}

/// Returns the time of a crawl's first start from its crawl.toml, in RFC 3339, if the file has it.
pub(crate) fn first_start(stored: &Table) -> Option<String> {
    let started: jiff::Timestamp = stored.get(NOTES)?.get("started")?.as_str()?.parse().ok()?;
    Some(started.to_string())
}

/// The keys of `[site]` and `[group]` tables that `crawl audit` judges by.
const AUDITED_KEYS: [&str; 6] = [
    "hosts",
    "delay",
    "per-host",
    "per-site",
    "site-delay",
    "quiet-hours",
];

/// Returns the settings that `crawl audit` judges by, as an object with the tables and keys of
/// crawl.toml.
pub(crate) fn audited(settings: &Settings) -> serde_json::Map<String, serde_json::Value> {
    let mut tables = table_of(settings);
    tables.retain(|name, table| {
        let Value::Table(table) = table else {
            return false;
        };
        match name {
            "politeness" | "exclusion" => {}
            "operator" => table.retain(|key, _| matches!(key, "agent" | "signature")),
            "fetch" => table.retain(|key, _| key == "timeout"),
            "site" | "group" => {
                for (_, one) in table.iter_mut() {
                    if let Value::Table(one) = one {
                        one.retain(|key, _| AUDITED_KEYS.contains(&key));
                    }
                }
            }
            _ => return false,
        }
        true
    });
    // The conversion can't fail or lose anything, because the settings contain no TOML dates.
    match serde_json::to_value(tables) {
        Ok(serde_json::Value::Object(tables)) => tables,
        _ => serde_json::Map::new(),
    }
}

/// Converts settings to TOML. This can't fail: all keys are strings, and all values scalars, lists
/// or tables.
pub(super) fn table_of(settings: &Settings) -> Table {
    Table::try_from(settings).unwrap_or_default()
}

pub(super) fn without_secrets(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    let proxy = &mut settings.fetch.proxy;
    if let (Some(scheme), Some(at)) = (proxy.find("://"), proxy.rfind('@')) {
        proxy.replace_range(scheme + 3..=at, "");
    }
    for url in &mut settings.frontier.frontier {
        *url = url.without_password();
    }
    for terms in settings.site.values_mut() {
        terms.access.drop_literals();
    }
    settings
}

fn meaning(flags: &Command, field: &str) -> String {
    let flag = flags.get_arguments().find(|flag| flag.get_id() == field);
    let help = flag.and_then(clap::Arg::get_help);
    help.map(ToString::to_string).unwrap_or_default()
}

pub(super) fn heading(flags: &Command, fields: &[&str]) -> String {
    let flag = flags
        .get_arguments()
        .find(|flag| fields.contains(&flag.get_id().as_str()));
    let heading = flag
        .and_then(clap::Arg::get_help_heading)
        .unwrap_or_default();
    let end = heading.find(" [").unwrap_or(heading.len());
    heading[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::config_file::parse;
    use expect_test::expect_file;
    use serde_json::json;

    use super::{audited, defaults_listing, effective, record};
    use crate::settings::setting_definitions::{Settings, SettingsLayer, TABLES};

    #[test]
    fn default_file_holds_every_key_with_its_default() {
        let listing = defaults_listing();
        expect_file!["../../../../config/default.toml"].assert_eq(&listing);
        let settled = parse(&listing, "default.toml").unwrap().settle();
        assert_eq!(settled, Settings::default());
        let keys: usize = TABLES.iter().map(|(_, fields)| fields.len()).sum();
        let written = listing
            .lines()
            .filter(|line| line.contains(" = ") && !line.starts_with('#'));
        assert_eq!(
            written.count(),
            keys + ["seed", "seed-file", "seed-sitemap"].len()
        );
        for (line, next) in listing.lines().zip(listing.lines().skip(1)) {
            let is_key = next.contains(" = ") && !next.starts_with('#');
            assert!(
                !is_key || line.starts_with("# ") && line.len() > 10,
                "{next} has no meaning"
            );
        }
    }

    #[test]
    fn recorded_settings_are_read_back() {
        let text = "seed = [\"http://e.example/\"]\n[scope]\nmax-pages = 7\ninclude = [\"a\", \"b\"]\n[fetch]\nresolve = [\"e.example:80:127.0.0.1\"]\nmax-body = \"5MiB\"\n[politeness]\nmax-rate = 2.5\ndelay = \"1m30s\"\n[display]\nverbose = 2\n";
        let settings = parse(text, "x").unwrap().settle();
        let recorded = record(
            &settings,
            "2026-01-01T00:00:00Z",
            "2026-01-02T00:00:00Z",
            Some("0123"),
        );
        assert_eq!(parse(&recorded, "y").unwrap().settle(), settings);
        let recorded = recorded.parse().unwrap();
        assert_eq!(super::mark_of(&recorded), Some("0123"));
        let first = super::first_start(&recorded);
        assert_eq!(first.as_deref(), Some("2026-01-01T00:00:00Z"));
    }

    #[test]
    fn audited_settings_have_no_secrets_and_no_other_keys() {
        let text = "[operator]\ncontact = \"me@e.example\"\n[fetch]\nproxy = \"http://me:pass@p.example\"\n\
                    [group.a]\nhosts = [\"b.example\"]\nmax-pages = 5\nsite-delay = \"2s\"\n\
                    [site.\"a.example\"]\ndelay = \"9s\"\nheaders = { X-Key = \"pass\" }\n\
                    [site.\"c.example\"]\nmax-pages = 5\n";
        let audited = audited(&parse(text, "x").unwrap().settle());
        let tables: Vec<&String> = audited.keys().collect();
        let expected = [
            "exclusion",
            "fetch",
            "group",
            "operator",
            "politeness",
            "site",
        ];
        assert_eq!(tables, expected);
        assert_eq!(audited["fetch"], json!({"timeout": "1m"}));
        assert_eq!(
            audited["operator"],
            json!({"agent": "crawl", "signature": "off"})
        );
        let group = json!({"a": {"hosts": ["b.example"], "site-delay": "2s"}});
        assert_eq!(audited["group"], group);
        // A table without audited keys is recorded too. The table with the longest name that
        // matches a host applies, so this table may keep another one from applying.
        let site = json!({"a.example": {"delay": "9s"}, "c.example": {}});
        assert_eq!(audited["site"], site);
    }

    #[test]
    fn proxy_credentials_are_not_written() {
        let mut layer = SettingsLayer::default();
        layer.fetch.proxy = Some("http://me:pass@proxy.example:3128".to_owned());
        let text = effective(&layer.settle());
        assert!(text.contains("proxy = \"http://proxy.example:3128\""));
        assert!(!text.contains("pass@"));
    }
}

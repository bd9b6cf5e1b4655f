//! The settings of a replay: how they are filled in from the replayed crawl, and how they differ
//! from the settings of that crawl.

use std::collections::HashMap;
use std::path::Path;

use crawl_archive::{MAX_CONFIG_BYTES, read_text};
use crawl_records::stored_settings;
use crawl_scope::SeedSettings;
use crawl_weburl::{CanonicalUrl, canonicalize, safe_line};
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use toml::{Table, Value};

use super::config_file;
use super::setting_definitions::{SettingPersistence, Settings, SettingsLayer, memory};
use super::toml_output::{record, stored_list, stored_seeds, table_of, without_secrets};
use crate::error::CommandError;
use crate::values::{FilePath, Switch};

/// The key that marks a crawl.toml as that of a replay, and names the replayed crawl.
pub(super) const REPLAY_OF: &str = "replay-of";

/// Tables whose keys affect neither what is fetched nor when. The only exception is the key
/// [`AGENT`].
const OTHER_TABLES: [&str; 3] = ["operator", "output", "display"];
/// Keys of `[render]` that describe the browser and the machine. A replay may change them.
const BROWSER_KEYS: [&str; 4] = [
    "browser",
    "browser-sandbox",
    "render-memory",
    "render-timeout",
];
/// The only key of `[operator]` that affects what is fetched.
const AGENT: &str = "agent";

/// Adds the seeds and the contact of the crawl in `dir` to the flags. Seeds or a contact in the
/// flags or in the file of `--config` take precedence. A replay sends no requests, so even the
/// values of someone else's crawl are harmless.
///
/// If the file is a crawl.toml that a crawl wrote and the flags set no `--output`, sets the output
/// directory to `dir`. The replay is then refused, instead of writing to the output directory that
/// the file names.
///
/// # Errors
/// The file can't be read.
pub(super) fn fill_in(
    flags: &mut SettingsLayer,
    file: &Path,
    dir: &Path,
) -> Result<(), CommandError> {
    let text = read_text(file, MAX_CONFIG_BYTES).map_err(config_file::unreadable(file))?;
    // Ignore errors here, because reading the settings from this file reports them.
    let file_table: Table = text.parse().unwrap_or_default();
    let stored = stored_settings(dir);
    let file_has_seeds = ["seed", "seed-file", "seed-sitemap"]
        .iter()
        .any(|key| file_table.contains_key(*key));
    let flags_have_seeds =
        flags.seed.is_some() || flags.seed_file.is_some() || flags.seed_sitemap.is_some();
    if !flags_have_seeds && !file_has_seeds {
        flags.seed = Some(stored_list(&stored));
    }
    let contact = |of: &Table| {
        of.get("operator")?
            .get("contact")?
            .as_str()
            .map(str::to_owned)
    };
    if flags.operator.contact.is_none() && contact(&file_table).is_none() {
        flags.operator.contact = contact(&stored);
    }
    if flags.output.output.is_none() && config_file::is_record(&text) {
        flags.output.output = Some(FilePath(dir.to_owned()));
    }
    Ok(())
}

/// Describes the settings that differ from those of the crawl in `dir` and affect what is fetched
/// or when, such as `politeness.delay = "2s", was "1s"`.
pub(crate) fn other_settings(
    dir: &Path,
    settings: &Settings,
    seeds: &[CanonicalUrl],
    terms: &[(CanonicalUrl, SeedSettings)],
) -> Vec<String> {
    let stored = stored_settings(dir);
    let mut differences = Vec::new();
    let (mut before, mut after) = (stored_seeds(&stored), seeds.to_vec());
    before.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
    after.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
    if before != after {
        let count = |seeds: &[CanonicalUrl]| seeds.len();
        differences.push(format!(
            "seed: {} URLs, was {}",
            count(&after),
            count(&before)
        ));
    }
    let own = own_terms(&stored);
    let same = terms
        .iter()
        .filter(|(seed, terms)| own.get(seed) == Some(terms));
    let same = same.count();
    match terms.len().max(own.len()) - same {
        0 => {}
        1 => differences.push("seed: different scope, depth or label for 1 URL".to_owned()),
        count => differences.push(format!(
            "seed: different scope, depth or label for {count} URLs"
        )),
    }
    let usual = table_of(&Settings::default());
    for (name, table) in table_of(&without_secrets(settings)) {
        let Value::Table(table) = table else { continue };
        let was = |key: &str| {
            let of = |all: &Table| all.get(&name)?.get(key).cloned();
            of(&stored).or_else(|| of(&usual))
        };
        let before = stored.get(&name).and_then(Value::as_table);
        let removed = before.into_iter().flat_map(Table::keys);
        let is_by_name = matches!(name.as_str(), "site" | "group");
        let removed = removed.filter(|key| is_by_name && !table.contains_key(*key));
        let keys = table.keys().chain(removed);
        for key in keys.filter(|key| affects_fetching(&name, key)) {
            let (now, was) = (table.get(key).cloned(), was(key));
            if now != was {
                let word = |value: Option<Value>| {
                    value.map_or_else(|| "nothing".to_owned(), |value| value.to_string())
                };
                let line = format!("{name}.{key} = {}, was {}", word(now), word(was));
                differences.push(safe_line(&line).into_owned());
            }
        }
    }
    differences
}

/// Returns whether a key affects what is fetched, or when.
fn affects_fetching(table: &str, key: &str) -> bool {
    match table {
        // Keys that apply only to a single run don't affect a replay.
        _ if memory(table, &key.replace('-', "_")) == Some(SettingPersistence::EachRun) => false,
        "render" => !BROWSER_KEYS.contains(&key),
        table => !OTHER_TABLES.contains(&table) || key == AGENT,
    }
}

/// Returns the SHA-256 digest, in hex, of the settings that affect what is fetched, or when. Keys
/// with their default values are left out, so the digest stays the same if a later version adds
/// keys or tables.
pub(crate) fn settings_digest(settings: &Settings) -> String {
    let usual = table_of(&Settings::default());
    let mut tables = table_of(&without_secrets(settings));
    tables.retain(|name, value| match value {
        Value::Table(table) => {
            let usual = usual.get(name);
            table.retain(|key, value| {
                let is_usual = usual.and_then(|usual| usual.get(key)) == Some(&*value);
                affects_fetching(name, key) && !is_usual
            });
            !table.is_empty()
        }
        Value::Array(seeds) if name == "seed" => {
            seeds.sort_by_key(Value::to_string);
            true
        }
        // The rules `[[extract]]` apply to pages that are already fetched.
        _ => name != "extract",
    });
    HEXLOWER.encode(digest(&SHA256, tables.to_string().as_bytes()).as_ref())
}

/// Returns the scopes, depths and labels of the seeds in a crawl.toml.
fn own_terms(stored: &Table) -> HashMap<CanonicalUrl, SeedSettings> {
    let own = stored_list(stored).into_iter();
    let own = own.filter(|seed| !seed.terms.is_empty());
    own.filter_map(|seed| Some((canonicalize(None, &seed.url).ok()?, seed.terms)))
        .collect()
}

/// Returns the crawl.toml of a replay of the crawl in `dir`. `began` is the crawl's start, which is
/// also the replay's start in virtual time.
pub(crate) fn replay_record(settings: &Settings, dir: &Path, began: &str, now: &str) -> String {
    let mut settings = settings.clone();
    // A replay keeps only rows, regardless of the settings.
    (settings.output.warc, settings.output.index) = (Switch::Off, Switch::Off);
    let record = record(&settings, began, now, None);
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let of = Value::from(dir.display().to_string());
    format!(
        "# A replay: nothing here was fetched, and it can't be continued.\n{record}{REPLAY_OF} = \
         {of}\n"
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use data_encoding::HEXLOWER;
    use ring::digest::{SHA256, digest};

    use super::{fill_in, other_settings, replay_record, settings_digest};
    use crate::settings::listed_seed::ListedSeed;
    use crate::settings::{Settings, SettingsLayer, stored_seeds};
    use crate::values::{FilePath, Switch};

    #[test]
    fn seeds_default_to_those_of_the_crawl() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("crawl.toml"), "seed = [\"http://a.example/\"]\n").unwrap();
        let seeds = |flags: SettingsLayer, text: &str| {
            fs::write(at("study.toml"), text).unwrap();
            let mut flags = flags;
            fill_in(&mut flags, &at("study.toml"), dir.path()).unwrap();
            flags.seed
        };
        let of_crawl = Some(vec![ListedSeed::plain("http://a.example/")]);
        assert_eq!(seeds(SettingsLayer::default(), ""), of_crawl);
        for text in ["seed = [\"b.example\"]\n", "seed-file = [\"b.txt\"]\n"] {
            assert_eq!(seeds(SettingsLayer::default(), text), None, "{text}");
        }
        let flags = SettingsLayer {
            seed_file: Some(vec![FilePath("b.txt".into())]),
            ..SettingsLayer::default()
        };
        assert_eq!(seeds(flags, ""), None);
    }

    #[test]
    fn the_digest_changes_only_with_settings_that_affect_fetching() {
        let settings = |change: &dyn Fn(&mut Settings)| {
            let mut settings = Settings {
                seed: ["http://a.example/", "http://b.example/"]
                    .map(ListedSeed::plain)
                    .into(),
                ..Settings::default()
            };
            change(&mut settings);
            settings_digest(&settings)
        };
        let same = settings(&|_| {});
        let only_seeds = b"seed = [\"http://a.example/\", \"http://b.example/\"]\n";
        assert_eq!(
            same,
            HEXLOWER.encode(digest(&SHA256, only_seeds).as_ref()),
            "a later version may add tables"
        );
        let rule = "name = \"items\"\nfields = { title = \"h1\" }\n";
        assert_eq!(
            same,
            settings(&|settings| settings.extract.push(toml::from_str(rule).unwrap()))
        );
        assert_eq!(same, settings(&|settings| settings.seed.reverse()));
        assert_eq!(same, settings(&|settings| settings.display.verbose = 2));
        assert_eq!(
            same,
            settings(&|settings| settings.recrawl.recrawl = Switch::On)
        );
        assert_ne!(same, settings(&|settings| settings.seed.truncate(1)));
        assert_ne!(
            same,
            settings(&|settings| settings.scope.exclude.push("/s/".to_owned()))
        );
        assert_ne!(same, settings(&|settings| settings.politeness.per_host = 2));
    }

    #[test]
    fn settings_that_affect_fetching_are_compared_with_those_of_the_crawl() {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = Settings {
            seed: vec![ListedSeed::plain("http://a.example/")],
            ..Settings::default()
        };
        settings.operator.agent = "one".to_owned();
        let text = replay_record(&settings, dir.path(), "2026-11-22T22:00:00.000Z", "now");
        let table: toml::Table = text.parse().unwrap();
        assert!(
            table["crawl"]["replay-of"]
                .as_str()
                .unwrap()
                .starts_with('/')
        );
        fs::write(dir.path().join("crawl.toml"), &text).unwrap();
        let with_group = format!("{text}\n[group.docs]\nhosts = [\"a.example\"]\n");
        let seeds = stored_seeds(&table);
        let differences = |settings: &Settings| other_settings(dir.path(), settings, &seeds, &[]);
        assert_eq!(differences(&settings), Vec::<String>::new());
        fs::write(dir.path().join("crawl.toml"), with_group).unwrap();
        let [group] = &differences(&settings)[..] else {
            panic!("{:?}", differences(&settings));
        };
        assert!(group.starts_with("group.docs = nothing, was "), "{group}");
        fs::write(dir.path().join("crawl.toml"), &text).unwrap();
        settings.operator.contact = "you@example.org".to_owned();
        settings.display.verbose = 2;
        settings.render.browser = FilePath("chromium".into());
        settings.render.browser_sandbox = Switch::Off;
        assert_eq!(differences(&settings), Vec::<String>::new());
        settings.operator.agent = "other".to_owned();
        settings.politeness.per_host = 3;
        let expected = [
            "operator.agent = \"other\", was \"one\"",
            "politeness.per-host = 3, was 1",
        ];
        assert_eq!(differences(&settings), expected);
        let none = other_settings(dir.path(), &settings, &[], &[]);
        assert_eq!(none[0], "seed: 0 URLs, was 1");
    }
}

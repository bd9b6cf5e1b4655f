//! The settings of a replay: those of the crawl that is replayed, and in what others differ.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crawl_archive::{MAX_CONFIG_BYTES, read_text};
use crawl_records::stored_settings;
use crawl_scope::SeedTerms;
use crawl_weburl::{CanonicalUrl, canonicalize, safe_line};
use toml::{Table, Value};

use super::config_file;
use super::listing::{record, stored_list, stored_seeds, table_of, without_secrets};
use super::tables::{Layer, Settings};
use crate::error::CommandError;
use crate::values::Switch;

/// The key by which a crawl.toml tells that its directory holds a replay, and of what.
pub(super) const REPLAY_OF: &str = "replay-of";

/// Tables whose settings decide nothing about what is fetched, or when.
const OTHER_TABLES: [&str; 3] = ["operator", "output", "display"];
/// The one of `[operator]` that does.
const AGENT: &str = "agent";

/// Takes from the crawl in `dir` what a replay of it is not told: all settings where there is no
/// file of them, else the seeds and the contact.
pub(crate) fn fill_in(
    said: &mut Layer,
    config: &mut Option<PathBuf>,
    dir: &Path,
) -> Result<(), CommandError> {
    let Some(file) = config else {
        *config = Some(dir.join("crawl.toml"));
        return Ok(());
    };
    let text = read_text(file, MAX_CONFIG_BYTES).map_err(config_file::unreadable(file))?;
    // What is wrong with it is told when it is read in earnest.
    let told: Table = text.parse().unwrap_or_default();
    let stored = stored_settings(dir);
    let tells_seeds = ["seed", "seed-file", "seed-sitemap"]
        .iter()
        .any(|key| told.contains_key(*key));
    let says_seeds = said.seed.is_some() || said.seed_file.is_some() || said.seed_sitemap.is_some();
    if !says_seeds && !tells_seeds {
        said.seed = Some(stored_list(&stored));
    }
    let contact = |of: &Table| {
        of.get("operator")?
            .get("contact")?
            .as_str()
            .map(str::to_owned)
    };
    if said.operator.contact.is_none() && contact(&told).is_none() {
        said.operator.contact = contact(&stored);
    }
    Ok(())
}

/// The settings that differ from those of the crawl in `dir`, as far as they decide what is fetched
/// and when; each as `table.key = VALUE, was VALUE`.
pub(crate) fn other_settings(
    dir: &Path,
    settings: &Settings,
    seeds: &[CanonicalUrl],
    terms: &[(CanonicalUrl, SeedTerms)],
) -> Vec<String> {
    let stored = stored_settings(dir);
    let mut others = Vec::new();
    let (mut before, mut after) = (stored_seeds(&stored), seeds.to_vec());
    before.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
    after.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
    if before != after {
        let count = |seeds: &[CanonicalUrl]| seeds.len();
        others.push(format!(
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
        1 => others.push("seed: another scope, depth or label of 1 URL".to_owned()),
        count => others.push(format!(
            "seed: another scope, depth or label of {count} URLs"
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
        let gone = before.into_iter().flat_map(Table::keys);
        let gone = gone.filter(|key| name == "site" && !table.contains_key(*key));
        let keys = table.keys().chain(gone);
        for key in keys.filter(|key| !OTHER_TABLES.contains(&&*name) || *key == AGENT) {
            let (now, was) = (table.get(key).cloned(), was(key));
            if now != was {
                let word = |value: Option<Value>| {
                    value.map_or_else(|| "nothing".to_owned(), |value| value.to_string())
                };
                let line = format!("{name}.{key} = {}, was {}", word(now), word(was));
                others.push(safe_line(&line).into_owned());
            }
        }
    }
    others
}

/// The scopes, depths and labels of the seeds of a crawl.toml.
fn own_terms(stored: &Table) -> HashMap<CanonicalUrl, SeedTerms> {
    let own = stored_list(stored).into_iter();
    let own = own.filter(|seed| !seed.terms.is_empty());
    own.filter_map(|seed| Some((canonicalize(None, &seed.url).ok()?, seed.terms)))
        .collect()
}

/// The crawl.toml of a replay that began, in virtual time, with the crawl in `dir`.
pub(crate) fn replay_record(settings: &Settings, dir: &Path, began: &str, now: &str) -> String {
    let mut settings = settings.clone();
    // What is kept of it is rows alone, whatever a crawl by these settings would keep.
    (settings.output.warc, settings.output.index) = (Switch::Off, Switch::Off);
    let record = record(&settings, began, now, began, None);
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let of = Value::from(dir.display().to_string());
    format!(
        "# A replay: nothing here was asked for, and no crawl goes on with it.\n{record}{REPLAY_OF} = {of}\n"
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{fill_in, other_settings, replay_record};
    use crate::settings::listed_seed::ListedSeed;
    use crate::settings::{Layer, Settings, stored_seeds};
    use crate::values::FilePath;

    #[test]
    fn ours_seeds_are_those_of_the_crawl_where_no_others_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("crawl.toml"), "seed = [\"http://a.example/\"]\n").unwrap();
        let seeds = |said: Layer, told: &str| {
            fs::write(at("study.toml"), told).unwrap();
            let mut said = said;
            fill_in(&mut said, &mut Some(at("study.toml")), dir.path()).unwrap();
            said.seed
        };
        let of_crawl = Some(vec![ListedSeed::plain("http://a.example/")]);
        assert_eq!(seeds(Layer::default(), ""), of_crawl);
        for told in ["seed = [\"b.example\"]\n", "seed-file = [\"b.txt\"]\n"] {
            assert_eq!(seeds(Layer::default(), told), None, "{told}");
        }
        let flags = Layer {
            seed_file: Some(vec![FilePath("b.txt".into())]),
            ..Layer::default()
        };
        assert_eq!(seeds(flags, ""), None);
    }

    #[test]
    fn ours_settings_that_decide_something_are_told_apart_from_those_of_the_crawl() {
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
        assert_eq!(table["crawl"]["rules-since"], table["crawl"]["started"]);
        fs::write(dir.path().join("crawl.toml"), text).unwrap();
        let seeds = stored_seeds(&table);
        let others = |settings: &Settings| other_settings(dir.path(), settings, &seeds, &[]);
        assert_eq!(others(&settings), Vec::<String>::new());
        settings.operator.contact = "you@example.org".to_owned();
        settings.display.verbose = 2;
        assert_eq!(others(&settings), Vec::<String>::new());
        settings.operator.agent = "other".to_owned();
        settings.politeness.per_host = 3;
        let expected = [
            "operator.agent = \"other\", was \"one\"",
            "politeness.per-host = 3, was 1",
        ];
        assert_eq!(others(&settings), expected);
        let none = other_settings(dir.path(), &settings, &[], &[]);
        assert_eq!(none[0], "seed: 0 URLs, was 1");
    }
}

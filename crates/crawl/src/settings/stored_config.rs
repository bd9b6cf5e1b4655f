//! Decides which of the settings in a crawl directory take effect.
//!
//! A `crawl.toml` may come from someone else: with an archive, or from a shared disk. Keys that
//! could do harm are therefore guarded: those that read the environment, redirect requests, set who
//! is responsible for requests, or lift a limit. A guarded key is respected only if the user sets
//! it in flags or `--config`, or if the file's mark proves that this program wrote the file for
//! this user (see [`super::own_file_marks`]).

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crawl_archive::{MAX_CONFIG_BYTES, is_behind_dangling_link, read_text};
use crawl_engine::EngineError;
use crawl_fields::RuleConfig;
use crawl_records::WORKERS;
use crawl_weburl::{CanonicalUrl, HostKey, canonicalize, safe_line};
use toml::{Table, Value};

use super::config_file::{self, NOTES};
use super::listed_seed::ListedSeed;
use super::own_file_marks::{self, FileMarkCheckResult};
use super::replay_settings::REPLAY_OF;
use super::setting_definitions::{SettingPersistence, Settings, SettingsLayer, TABLES, memory};
use super::sites;
use super::toml_output::{mark_of, record_again, without_secrets};
use super::user_folders::UserFolders;
use crate::error::engine::{of_crawl, of_engine};
use crate::error::{CommandError, no_crawl, quoted};
use crate::settings::typed_seed;
use crate::values::{FilePath, HostListEntry};

/// Table name that stands for the top level of the file, outside all tables.
const TOP: &str = "";

/// The guarded keys that [`memory`] doesn't list, each with its table and the harm that it could
/// do. Guarded keys are respected only if the user set them. The remaining keys of `[site]` are
/// harmless, because they have the same bounds as the keys for every host.
const OTHER_GUARDED: [(&str, &str, &str); 6] = [
    (TOP, "seed", "could be in a private network"),
    (sites::TABLE, "basic-auth", "sends a secret"),
    (sites::TABLE, "headers", "sends a secret"),
    (sites::TABLE, "cookies", "sends a secret"),
    (sites::TABLE, "login", "runs commands and sends secrets"),
    (sites::TABLE, "plain-http", "sends secrets over http"),
];

/// The guarded keys that can't do harm in a replay, because they affect only requests, and a replay
/// sends none.
const HARMLESS_IN_REPLAYS: [(&str, &str); 11] = [
    ("operator", "contact"),
    ("operator", "agent"),
    ("politeness", "max-retry-after"),
    ("politeness", "own-site"),
    ("politeness", "robots"),
    ("exclusion", "robots-retry"),
    ("exclusion", "robots-retry-most"),
    ("fetch", "proxy"),
    ("fetch", "resolve"),
    ("fetch", "name-server"),
    ("fetch", "allow-private"),
];

/// The crawl.toml of a directory that holds a crawl.
#[derive(Debug)]
pub(super) struct StoredConfig {
    dir: PathBuf,
    path: PathBuf,
    text: String,
    layer: SettingsLayer,
}

impl StoredConfig {
    /// Reads the crawl.toml in `dir`. `None` if there is none.
    ///
    /// # Errors
    /// The file can't be read, or the directory holds no crawl that can be continued.
    pub(super) fn read(dir: &Path) -> Result<Option<StoredConfig>, CommandError> {
        if dir.join(WORKERS).exists() {
            let dir = dir.to_owned();
            return Err(of_engine(
                &EngineError::IsGathered { dir: dir.clone() },
                &dir,
            ));
        }
        let stored = StoredConfig::read_any(dir)?;
        let notes = stored.as_ref().map(StoredConfig::notes).unwrap_or_default();
        if notes
            .get(NOTES)
            .is_some_and(|notes| notes.get(REPLAY_OF).is_some())
        {
            let dir = dir.to_owned();
            return Err(of_engine(&EngineError::IsReplay { dir: dir.clone() }, &dir));
        }
        Ok(stored)
    }

    /// Reads the crawl.toml in `dir`, even if the crawl there can't be continued.
    fn read_any(dir: &Path) -> Result<Option<StoredConfig>, CommandError> {
        let path = dir.join("crawl.toml");
        match path.symlink_metadata().map_err(|why| why.kind()) {
            // A directory behind a link that leads nowhere has no crawl.toml either.
            Err(ErrorKind::NotFound) if !is_behind_dangling_link(dir) => return Ok(None),
            Err(ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                let dir = dir.to_owned();
                return Err(of_crawl(
                    &EngineError::NotADirectory { dir: dir.clone() },
                    &dir,
                ));
            }
            _ => {}
        }
        let text = read_text(&path, MAX_CONFIG_BYTES).map_err(config_file::unreadable(&path))?;
        let mut layer = config_file::parse(&text, &path.display().to_string())?;
        for seed in layer.seed.iter_mut().flatten() {
            seed.place = Some(path.display().to_string());
        }
        let is_given = |list: Option<usize>| list.is_some_and(|count| count > 0);
        let lists = [
            (
                "seed-file",
                is_given(layer.seed_file.as_ref().map(Vec::len)),
            ),
            (
                "seed-sitemap",
                is_given(layer.seed_sitemap.as_ref().map(Vec::len)),
            ),
        ];
        if let Some((key, _)) = lists.iter().find(|(_, is_given)| *is_given) {
            let message = format!(
                "{}: `{key}` isn't allowed in a directory's crawl.toml",
                path.display()
            );
            let hint = format!(
                "crawl.toml contains the seeds themselves: remove the key, and give the lists with \
                 --{key}"
            );
            return Err(CommandError::usage(message).hint(hint));
        }
        Ok(Some(StoredConfig {
            dir: dir.to_owned(),
            path,
            text,
            layer,
        }))
    }

    /// Returns the stored settings that take effect. They are overridden by `explicit`, the layer
    /// of the flags and the file of `--config`.
    ///
    /// If `explicit` names seeds, appends the stored seeds to them. Of the other stored settings,
    /// only [`SettingPersistence::Kept`] ones then take effect.
    ///
    /// # Errors
    /// The file isn't proven to be this user's, and has seeds or guarded keys that `explicit`
    /// doesn't set.
    pub(super) fn beneath(
        mut self,
        explicit: &mut SettingsLayer,
        explicit_seeds: &[ListedSeed],
        around: &UserFolders,
    ) -> Result<SettingsLayer, CommandError> {
        let names_seeds = explicit.seed.is_some();
        let marked = self.marked(around);
        if marked != FileMarkCheckResult::Ours {
            let mut unset_lines = self.unset_seeds(explicit_seeds);
            if !names_seeds {
                unset_lines.extend(self.unset_keys(explicit, |_, _| true));
            }
            if !unset_lines.is_empty() {
                return Err(self.refusal(marked, &unset_lines, "--output"));
            }
            // Drop the contact, because the file isn't proven to be the user's. The contact in the
            // user's own config.toml applies instead.
            self.layer.forget("operator", "contact");
        }
        for (table, fields) in TABLES {
            for field in *fields {
                let holds = match memory(table, field) {
                    Some(SettingPersistence::Kept) => true,
                    Some(SettingPersistence::GoesOn | SettingPersistence::Guarded(_)) => {
                        !names_seeds
                    }
                    Some(SettingPersistence::EachRun) | None => false,
                };
                if !holds {
                    self.layer.forget(table, field);
                }
            }
        }
        if let Some(seeds) = &mut explicit.seed {
            let explicit_urls = canonical(seeds);
            let older = self.layer.seed.take().unwrap_or_default();
            let new_seeds = older
                .into_iter()
                .filter(|seed| match canonicalize(None, &seed.url) {
                    Ok(url) => !explicit_urls.contains(&url),
                    Err(_) => false,
                });
            seeds.extend(new_seeds);
            self.layer.site = None;
            self.layer.group = None;
            self.layer.extract = None;
        }
        Ok(self.layer)
    }

    /// Returns the settings of the crawl in `dir` that take effect in its replay, even if the
    /// replay names seeds. `flags` override them. Sets the output directory to `dir`, so that a
    /// replay without `--output` is refused.
    ///
    /// # Errors
    /// The file can't be read. Or it isn't proven to be this user's, and has a guarded key that
    /// could do harm in a replay and that `flags` doesn't set.
    pub(super) fn for_replay(
        dir: &Path,
        flags: &SettingsLayer,
        around: &UserFolders,
    ) -> Result<SettingsLayer, CommandError> {
        let mut stored = StoredConfig::read_any(dir)?.ok_or_else(|| no_crawl(dir))?;
        let marked = stored.marked(around);
        if marked != FileMarkCheckResult::Ours {
            let is_harmful = |table: &str, key: &str| !HARMLESS_IN_REPLAYS.contains(&(table, key));
            let unset_lines = stored.unset_keys(flags, is_harmful);
            if !unset_lines.is_empty() {
                return Err(stored.refusal(marked, &unset_lines, "replay"));
            }
        }
        stored.layer.forget_each_run();
        stored.layer.output.output = Some(FilePath(dir.to_owned()));
        Ok(stored.layer)
    }

    /// Returns the file as a table, which also has the mark and other notes.
    fn notes(&self) -> Table {
        self.text.parse().unwrap_or_default()
    }

    /// Checks whether the file's mark proves it to be this user's.
    fn marked(&self, around: &UserFolders) -> FileMarkCheckResult {
        let guarded = guarded(&self.layer.clone().settle());
        own_file_marks::check(around, &self.dir, &guarded, mark_of(&self.notes()))
    }

    /// Returns the text of the file with other settings. If the file is marked as this user's own,
    /// so is the text.
    fn with_settings(&self, settings: &Settings, around: &UserFolders) -> String {
        let mark = match self.marked(around) {
            FileMarkCheckResult::Ours => own_mark(settings, &self.dir, around),
            _ => None,
        };
        record_again(&self.notes(), settings, mark.as_deref())
    }

    /// Returns the stored seeds that aren't among `explicit_seeds`, one per line. Seeds are
    /// guarded: they take effect only if the user sets them.
    fn unset_seeds(&self, explicit_seeds: &[ListedSeed]) -> Vec<String> {
        let explicit_urls = canonical(explicit_seeds);
        let older = self.layer.seed.iter().flatten();
        // A seed that can't be parsed counts as missing in `explicit_seeds`, so it is listed.
        let older = older.filter(|seed| {
            let is_explicit =
                typed_seed::read(&seed.url).map(|seed| explicit_urls.contains(&seed.url));
            !is_explicit.unwrap_or(false)
        });
        older
            .map(|seed| guarded_line(TOP, "seed", &Value::from(seed.url.as_str())))
            .collect()
    }

    /// Returns the guarded keys (those that only the user may set) that have an effect and that
    /// `explicit` doesn't set, one per line. Lists only keys for which `is_listed(table, key)`
    /// returns true.
    fn unset_keys(
        &self,
        explicit: &SettingsLayer,
        is_listed: impl Fn(&str, &str) -> bool,
    ) -> Vec<String> {
        let mut unset_lines = Vec::new();
        let settings = self.layer.clone().settle();
        // The lines are displayed, so they must not contain secrets such as the password of a
        // proxy.
        let shown = guarded(&without_secrets(&settings));
        for (table, keys) in guarded(&settings) {
            let Value::Table(keys) = keys else { continue };
            for (key, value) in keys {
                match value {
                    _ if !is_listed(&table, &key) => {}
                    Value::Table(terms) if table == "site" && explicit.site.is_none() => {
                        let site = format!("site.{}", Value::from(key));
                        unset_lines.extend(
                            terms
                                .iter()
                                .map(|(key, value)| guarded_line(&site, key, value)),
                        );
                    }
                    value if table != "site" && !explicit.sets(&table, &key.replace('-', "_")) => {
                        let shown = shown.get(&table).and_then(|keys| keys.get(&key));
                        unset_lines.push(guarded_line(&table, &key, shown.unwrap_or(&value)));
                    }
                    _ => {}
                }
            }
        }
        unset_lines
    }

    /// Returns the error for a file that isn't proven to be this user's. The suggested command
    /// contains `command` before the directory, such as `--output`.
    fn refusal(
        &self,
        marked: FileMarkCheckResult,
        unset_lines: &[String],
        command: &str,
    ) -> CommandError {
        let (path, dir) = (quoted(&self.path), quoted(&self.dir));
        CommandError::usage(format!(
            "`{}` isn't marked as yours: {}. It sets keys that only you may set:\n  {}",
            self.path.display(),
            marked.why(),
            unset_lines.join("\n  ")
        ))
        .hint(format!(
            "read the file, then accept it with `crawl {command} {dir} --config {path}`, or set each \
             key with its flag"
        ))
    }
}

/// Describes a guarded key and the harm that it could do.
fn guarded_line(table: &str, key: &str, value: &Value) -> String {
    let place = match table {
        TOP => String::new(),
        table => format!("[{table}] "),
    };
    let kind = table.split('.').next().unwrap_or_default();
    let effect = why(kind, key).unwrap_or_default();
    safe_line(&format!("{place}{key} = {value}  ({effect})")).into_owned()
}

/// Returns the guarded keys that differ from their defaults, in tables as in crawl.toml. Such keys
/// are rejected unless a mark proves that this user set them.
fn guarded(settings: &Settings) -> Table {
    let settled = |settings: &Settings| Table::try_from(settings).unwrap_or_default();
    let (settled, usual) = (settled(settings), settled(&Settings::default()));
    let mut guarded = Table::new();
    for (name, value) in settled {
        match value {
            Value::Table(sites) if name == "site" => {
                let sites = sites.into_iter().filter_map(|(host, terms)| {
                    let Value::Table(mut terms) = terms else {
                        return None;
                    };
                    terms.retain(|key, _| why("site", key).is_some());
                    (!terms.is_empty()).then_some((host, Value::Table(terms)))
                });
                guarded.insert(name, Value::Table(sites.collect()));
            }
            Value::Table(mut keys) => {
                let usual = usual.get(&name);
                keys.retain(|key, value| {
                    let is_usual = usual.and_then(|usual| usual.get(key)) == Some(&*value);
                    why(&name, key).is_some() && !is_usual
                });
                guarded.insert(name, Value::Table(keys));
            }
            Value::Array(seeds) if name == "seed" => {
                // Guard the scope of a seed and whether it is a sitemap, because both may lead to
                // more URLs. A depth only narrows the scope, and a label has no effect on it.
                let leads_on = |seed: &Value| seed.get("scope").is_some();
                let url = |seed: Value| match seed.get("url") {
                    Some(url) if !leads_on(&seed) => url.clone(),
                    _ => seed,
                };
                guarded.insert(name, Value::Array(seeds.into_iter().map(url).collect()));
            }
            value if why(TOP, &name).is_some() => {
                guarded.insert(name, value);
            }
            _ => {}
        }
    }
    guarded.retain(|_, value| value.as_table().is_none_or(|keys| !keys.is_empty()));
    guarded
}

/// Returns the text of the crawl.toml in `dir` without the seeds and hosts that match. `None` if
/// nothing matches, or if the file is missing. If the file is marked as this user's own, so is the
/// text.
pub(crate) fn stored_without(
    dir: &Path,
    is_out: &dyn Fn(&CanonicalUrl) -> bool,
    is_host_out: &dyn Fn(&HostKey) -> bool,
    around: &UserFolders,
) -> Result<Option<String>, CommandError> {
    let Some(stored) = StoredConfig::read(dir)? else {
        return Ok(None);
    };
    let before = stored.layer.clone().settle();
    let mut settings = before.clone();
    settings
        .seed
        .retain(|seed| match typed_seed::read(&seed.url) {
            Ok(read) => !std::iter::once(&read.url).chain(&read.stand_in).any(is_out),
            Err(_) => true,
        });
    without_hosts(&mut settings, is_host_out);
    Ok((settings != before).then(|| stored.with_settings(&settings, around)))
}

/// Replaces the rules `[[extract]]` in the text of the crawl.toml in `dir`. Returns `None` if the
/// rules are the same, or if the file is missing. If the file is marked as this user's own, so is
/// the text.
pub(crate) fn stored_with_rules(
    dir: &Path,
    rules: &[RuleConfig],
    around: &UserFolders,
) -> Result<Option<String>, CommandError> {
    let Some(stored) = StoredConfig::read(dir)? else {
        return Ok(None);
    };
    let mut settings = stored.layer.clone().settle();
    if settings.extract == rules {
        return Ok(None);
    }
    settings.extract = rules.to_vec();
    Ok(Some(stored.with_settings(&settings, around)))
}

/// Returns the text of the crawl.toml in `dir`, marked as this user's own. The mark is valid once
/// `dir` is renamed to `place`. `sources` are the workers' directories that were gathered into
/// `dir`. `None` unless the crawl.toml of every worker is marked as this user's own.
#[cfg(feature = "shared-frontier")]
pub(crate) fn gathered_with_mark(
    sources: &[PathBuf],
    dir: &Path,
    place: &Path,
    around: &UserFolders,
) -> Result<Option<String>, CommandError> {
    for source in sources {
        let stored = StoredConfig::read(source)?;
        if stored.is_none_or(|stored| stored.marked(around) != FileMarkCheckResult::Ours) {
            return Ok(None);
        }
    }
    let Some(stored) = StoredConfig::read(dir)? else {
        return Ok(None);
    };
    let notes = stored.notes();
    let settings = stored.layer.settle();
    let mark = own_mark(&settings, place, around);
    Ok(mark.map(|mark| record_again(&notes, &settings, Some(&mark))))
}

/// Removes hosts from all settings except `exclude-host`. An entry of `exclude-host` stays, because
/// it also excludes the host's subdomains.
fn without_hosts(settings: &mut Settings, is_out: &dyn Fn(&HostKey) -> bool) {
    let is_kept = |name: &str| !HostKey::parse(name).is_ok_and(|host| is_out(&host));
    let is_kept_entry = |entry: &HostListEntry| match entry {
        HostListEntry::Host(name) => is_kept(name),
        HostListEntry::File(_) => true,
    };
    settings.site.retain(|name, _| is_kept(name));
    settings.scope.host.retain(is_kept_entry);
    settings.group.retain(|_, group| {
        group.hosts.retain(is_kept_entry);
        !group.hosts.is_empty()
    });
    let resolve = &mut settings.fetch.resolve;
    resolve.retain(|known| is_kept(&format!("{}:{}", known.host, known.port)));
}

/// Returns the mark that proves a crawl.toml to be this user's. `None` if the user's key can't be
/// stored.
pub(crate) fn own_mark(settings: &Settings, dir: &Path, around: &UserFolders) -> Option<String> {
    // Secrets are left out, because this program never writes them to the file. A file that
    // contains a secret therefore doesn't match its mark, and isn't proven to be the user's.
    let made = own_file_marks::make(around, dir, &guarded(&without_secrets(settings)));
    made.inspect_err(|why| {
        let file = dir.join("crawl.toml");
        tracing::warn!(
            %why,
            "can't store a key, so `{}` isn't marked as yours; to continue the crawl, add \
             `--config {}`",
            file.display(),
            quoted(&file)
        );
    })
    .ok()
}

/// Returns the harm that a guarded key could do. `None` for a key that isn't guarded.
fn why(table: &str, key: &str) -> Option<&'static str> {
    if let Some(SettingPersistence::Guarded(why)) = memory(table, &key.replace('-', "_")) {
        return Some(why);
    }
    let mut guarded = OTHER_GUARDED.iter();
    let entry = guarded.find(|(t, k, _)| (*t, *k) == (table, key));
    entry.map(|(_, _, why)| *why)
}

/// Returns the URLs of seeds; for a host without a scheme, both https and http.
fn canonical(seeds: &[ListedSeed]) -> Vec<CanonicalUrl> {
    let seeds = seeds
        .iter()
        .filter_map(|seed| typed_seed::read(&seed.url).ok());
    seeds
        .flat_map(|seed| std::iter::once(seed.url).chain(seed.stand_in))
        .collect()
}

#[cfg(test)]
mod tests {
    use crawl_weburl::HostKey;

    use super::{HARMLESS_IN_REPLAYS, OTHER_GUARDED, Settings, sites, why, without_hosts};
    use crate::settings::config_file::parse;
    use crate::settings::setting_definitions::TABLES;

    fn settings(text: &str) -> Settings {
        parse(text, "crawl.toml").unwrap().settle()
    }

    #[test]
    fn forgotten_hosts_remain_only_in_exclude_host() {
        let mut named = settings(
            r#"
            fetch.resolve = ["gone.example:443:192.0.2.1", "kept.example:443:192.0.2.2"]
            scope.host = ["gone.example", "Gone.Example.", "kept.example"]
            scope.exclude-host = ["gone.example"]
            group.alone.hosts = ["GONE.example"]
            group.alone.max-pages = 5
            group.two.hosts = ["kept.example", "gone.example."]
            group.two.max-pages = 5
            site."Gone.Example".delay = "5s"
            site."gone.example.".delay = "5s"
            site."kept.example".delay = "5s"
            "#,
        );
        let forgotten = HostKey::parse("gone.example").unwrap();
        without_hosts(&mut named, &|host| *host == forgotten);
        let expected = settings(
            r#"
            fetch.resolve = ["kept.example:443:192.0.2.2"]
            scope.host = ["kept.example"]
            scope.exclude-host = ["gone.example"]
            group.two.hosts = ["kept.example"]
            group.two.max-pages = 5
            site."kept.example".delay = "5s"
            "#,
        );
        assert_eq!(named, expected);
    }

    #[test]
    fn guarded_keys_of_sites_are_keys_of_sites() {
        let of_sites = OTHER_GUARDED
            .iter()
            .filter(|(table, ..)| *table == sites::TABLE);
        for (_, key, _) in of_sites {
            assert!(sites::FIELDS.contains(&&*key.replace('-', "_")), "{key}");
        }
    }

    #[test]
    fn keys_that_are_harmless_in_replays_are_guarded_keys() {
        for (table, key) in HARMLESS_IN_REPLAYS {
            assert!(why(table, key).is_some(), "{table}.{key}");
        }
    }

    #[test]
    fn the_documentation_names_each_guarded_key() {
        let page = include_str!("../../../../docs/crawl-directory.md");
        let keys = TABLES.iter().flat_map(|(table, fields)| {
            let keys = fields.iter().map(|field| field.replace('_', "-"));
            keys.filter(|key| why(table, key).is_some())
        });
        let other_keys = OTHER_GUARDED.iter().map(|(_, key, _)| (*key).to_owned());
        for key in keys.chain(other_keys) {
            assert!(page.contains(&format!("`{key}`")), "{key}");
        }
    }
}

//! Rereads settings while a crawl runs. Most politeness settings, the patterns that include or
//! exclude URLs, budgets, sites and groups take effect; other changes wait for the next start.

use std::collections::BTreeSet;
use std::path::PathBuf;

use toml::{Table, Value};

use super::check::check;
use super::config_file::{self, located};
use super::setting_definitions::{Politeness, Scope, Settings, SettingsLayer};
use super::toml_output::table_of;
use super::{host_lists, sites};
use crate::error::{CommandError, ErrorCollector};
use crate::settings::CheckedSettings;

/// Table name that stands for the top level of the file, outside all tables.
const TOP: &str = "";

/// The sources from which a running crawl's settings are reread, with their values at the start.
#[derive(Clone, Debug)]
pub(crate) struct InitialSettingsLayers {
    /// Flags and the environment. Entries `@FILE` in lists of hosts are kept, so that the files can
    /// be reread.
    pub(super) flags: SettingsLayer,
    /// The file of `--config`, and its values at the start.
    pub(super) config: Option<(PathBuf, SettingsLayer)>,
    /// Values for keys that neither the flags nor the file of `--config` set.
    pub(super) beneath: SettingsLayer,
}

/// The result of rereading the settings.
#[derive(Clone, Debug)]
pub(crate) struct SettingsRereadResult {
    /// The settings in force from now on.
    pub(crate) settings: Settings,
    pub(crate) checked: CheckedSettings,
    /// Changed keys that take effect now, each with its value.
    pub(crate) taken: Vec<String>,
    /// Changed keys that wait for the next start.
    pub(crate) later: Vec<String>,
}

impl InitialSettingsLayers {
    /// Rereads the files, and checks the settings in them. `running` are the settings in force.
    ///
    /// # Errors
    /// All problems found.
    pub(crate) fn read_again(
        &self,
        running: &Settings,
        checked: &CheckedSettings,
    ) -> Result<SettingsRereadResult, CommandError> {
        let requested = self.requested(running)?;
        let located = |problem| match &self.config {
            Some((file, _)) => located(problem, file, &self.flags),
            None => problem,
        };
        check(&requested.settings).map_err(located)?;
        let settings = taken_over(running, &requested.settings);
        // Check the merged settings, because a value that doesn't change, such as --own-site, may
        // decide whether a new value is allowed.
        let new_checked = check(&settings).map_err(located)?;
        let (before, after) = (table_of(running), table_of(&settings));
        let effective = differences(&before, &after);
        let later = differences(&after, &table_of(&requested.settings));
        let later = later.iter().map(SettingDifference::name);
        Ok(SettingsRereadResult {
            taken: effective.iter().map(SettingDifference::to_line).collect(),
            later: requested.seeds.into_iter().chain(later).collect(),
            checked: CheckedSettings {
                sites: new_checked.sites,
                groups: new_checked.groups,
                ..checked.clone()
            },
            settings,
        })
    }

    fn requested(&self, running: &Settings) -> Result<RequestedSettings, CommandError> {
        let mut flags = self.flags.clone();
        let mut config = match &self.config {
            Some((file, _)) => config_file::read(file)?,
            None => SettingsLayer::default(),
        };
        let older = self.config.as_ref().map(|(_, older)| older);
        let seeds = older.into_iter().flat_map(|older| {
            let seed = (older.seed != config.seed).then_some("seed");
            let files = (older.seed_file != config.seed_file).then_some("seed-file");
            let maps = (older.seed_sitemap != config.seed_sitemap).then_some("seed-sitemap");
            seed.into_iter().chain(files).chain(maps).map(str::to_owned)
        });
        let seeds = seeds.collect();
        let mut problems = ErrorCollector::default();
        for layer in [&mut flags, &mut config] {
            (layer.seed, layer.seed_file, layer.seed_sitemap) = (None, None, None);
            host_lists::read_in(layer.host_lists(), &mut problems);
        }
        problems.or(())?;
        let mut settings = flags.over(config).over(self.beneath.clone()).settle();
        settings.seed.clone_from(&running.seed);
        Ok(RequestedSettings { settings, seeds })
    }

    /// Returns whether there is any file to reread: the file of `--config`, or a list of hosts that
    /// a flag names.
    pub(crate) fn has_files(&self) -> bool {
        let scope = &self.flags.scope;
        let lists = [&scope.host, &scope.exclude_host].into_iter().flatten();
        self.config.is_some() || lists.flatten().any(host_lists::is_file)
    }
}

/// The settings according to the current content of the files.
struct RequestedSettings {
    settings: Settings,
    /// Keys of seed settings that changed.
    seeds: Vec<String>,
}

/// Returns the settings in force, with most politeness settings, and the exclusions, budgets, sites
/// and groups, of `requested`. Settings that need a restart stay as they are, such as the
/// concurrency and the credentials of sites.
fn taken_over(running: &Settings, requested: &Settings) -> Settings {
    let current = &running.politeness;
    Settings {
        politeness: Politeness {
            concurrency: current.concurrency,
            look_ups: current.look_ups,
            hosts_in_memory: current.hosts_in_memory,
            wait_unreachable: current.wait_unreachable,
            own_site: current.own_site,
            robots: current.robots,
            ..requested.politeness.clone()
        },
        scope: Scope {
            exclude_host: requested.scope.exclude_host.clone(),
            include: requested.scope.include.clone(),
            exclude: requested.scope.exclude.clone(),
            max_pages: requested.scope.max_pages,
            max_bytes: requested.scope.max_bytes,
            max_server_time: requested.scope.max_server_time,
            max_time: requested.scope.max_time,
            max_pages_per_host: requested.scope.max_pages_per_host,
            max_bytes_per_host: requested.scope.max_bytes_per_host,
            max_server_time_per_host: requested.scope.max_server_time_per_host,
            max_time_per_host: requested.scope.max_time_per_host,
            ..running.scope.clone()
        },
        site: sites::with_access_of(&running.site, &requested.site),
        group: requested.group.clone(),
        ..running.clone()
    }
}

/// A key whose value differs between two sets of settings.
struct SettingDifference {
    table: String,
    key: String,
    before: Option<Value>,
    after: Option<Value>,
}

impl SettingDifference {
    fn name(&self) -> String {
        match self.table.as_str() {
            TOP => self.key.clone(),
            table => format!("[{table}] {}", self.key),
        }
    }

    /// Formats the key with its new value; for a list, with the numbers of added and removed
    /// entries.
    fn to_line(&self) -> String {
        let name = self.name();
        let list = |value: &Option<Value>| match value {
            Some(Value::Array(list)) => Some(list.iter().map(ToString::to_string).collect()),
            _ => None,
        };
        let lists: (Option<BTreeSet<String>>, Option<BTreeSet<String>>) =
            (list(&self.before), list(&self.after));
        match (lists, &self.after) {
            ((Some(before), Some(after)), _) => {
                let added = after.difference(&before).count();
                let removed = before.difference(&after).count();
                format!("{name}: {added} added, {removed} removed")
            }
            (_, Some(after)) => format!("{name} = {after}"),
            (_, None) => format!("{name} as for every host"),
        }
    }
}

/// Returns the keys that differ between two sets of settings.
fn differences(before: &Table, after: &Table) -> Vec<SettingDifference> {
    let mut differences = Vec::new();
    note_differences(TOP, before, after, &mut differences);
    differences
}

fn note_differences(
    at: &str,
    before: &Table,
    after: &Table,
    differences: &mut Vec<SettingDifference>,
) {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for key in keys {
        let (was, is) = (before.get(key), after.get(key));
        let table = |value: Option<&Value>| value.and_then(Value::as_table).cloned();
        match (table(was), table(is)) {
            (None, None) if was != is => differences.push(SettingDifference {
                table: at.to_owned(),
                key: key.clone(),
                before: was.cloned(),
                after: is.cloned(),
            }),
            (None, None) => {}
            (was, is) => {
                let name = match at {
                    TOP => key.clone(),
                    at => format!("{at}.{}", Value::from(key.as_str())),
                };
                let (was, is) = (was.unwrap_or_default(), is.unwrap_or_default());
                note_differences(&name, &was, &is, differences);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use expect_test::expect;
    use tempfile::TempDir;

    use super::InitialSettingsLayers;
    use crate::settings::config_file::{parse, read};
    use crate::settings::setting_definitions::SettingsLayer;
    use crate::settings::{Settings, check};

    const SEED: &str = "seed = [\"http://127.0.0.1:9/\"]\n";

    fn sources(
        dir: &TempDir,
        flags: SettingsLayer,
        text: &str,
    ) -> (InitialSettingsLayers, PathBuf, Settings) {
        let file = dir.path().join("site.toml");
        std::fs::write(&file, format!("{SEED}{text}")).unwrap();
        let layer = read(&file).unwrap();
        let running = flags.clone().over(layer.clone()).settle();
        let sources = InitialSettingsLayers {
            flags,
            config: Some((file.clone(), layer)),
            beneath: SettingsLayer::default(),
        };
        (sources, file, running)
    }

    /// Reports what happens when a file's content changes from `before` to `after`.
    fn report(flags: &str, before: &str, after: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let flags = parse(flags, "flags").unwrap();
        let (sources, file, running) = sources(&dir, flags, before);
        let checked = check(&running).unwrap();
        std::fs::write(&file, format!("{SEED}{after}")).unwrap();
        let report = match sources.read_again(&running, &checked) {
            Ok(read) => {
                // Rereading again changes nothing.
                let again = sources.read_again(&read.settings, &read.checked).unwrap();
                assert!(again.taken.is_empty(), "{:?}", again.taken);
                assert_eq!(again.later, read.later);
                let lines = |lines: &[String]| lines.join("\n  ");
                format!(
                    "taken:\n  {}\nlater:\n  {}",
                    lines(&read.taken),
                    lines(&read.later)
                )
            }
            Err(problem) => problem.to_string(),
        };
        report.replace(&dir.path().display().to_string(), "DIR")
    }

    #[test]
    fn politeness_exclusions_and_budgets_are_taken_over_and_the_rest_waits() {
        let before = "[scope]\nexclude = [\"/a\", \"/b\"]\nmax-depth = 3\nmax-pages = 9\n\
                      [site.\"a.example\"]\ndelay = \"9s\"\nmax-pages = 7\n\
                      [group.old]\nhosts = [\"b.example\"]\nmax-pages = 3\n";
        let after = "seed-file = [\"x\"]\n[scope]\nexclude = [\"/b\", \"/c\", \"/d\"]\nmax-depth = 4\n\
                     max-pages-per-host = 5\nmax-time = \"2h\"\n\
                     [politeness]\ndelay = \"5s\"\nquiet-hours = [\"08:00-18:00\"]\nconcurrency = 3\n\
                     [site.\"a.example\"]\nper-host = 2\nmax-pages = 8\nplain-http = true\n\
                     [group.g]\nhosts = [\"a.example\"]\nmax-pages = 3\n";
        expect![[r#"
            taken:
              [group."g"] hosts = ["a.example"]
              [group."g"] max-pages = 3
              [group."old"] hosts as for every host
              [group."old"] max-pages as for every host
              [politeness] delay = "5s"
              [politeness] quiet-hours: 1 added, 0 removed
              [scope] exclude: 2 added, 1 removed
              [scope] max-pages = "unlimited"
              [scope] max-pages-per-host = 5
              [scope] max-time = "2h"
              [site."a.example"] delay as for every host
              [site."a.example"] max-pages = 8
              [site."a.example"] per-host = 2
            later:
              seed-file
              [politeness] concurrency
              [scope] max-depth
              [site."a.example"] plain-http"#]]
        .assert_eq(&report("", before, after));
    }

    #[test]
    fn flags_win_over_reread_settings() {
        let flags = "politeness.delay = \"7s\"\nscope.exclude = [\"/flag\"]\n";
        let after = "[politeness]\ndelay = \"5s\"\njitter = 0.01\n[scope]\nexclude = [\"/b\"]\n";
        let report = report(flags, "", after);
        assert!(
            report.starts_with("taken:\n  [politeness] jitter = 0.01\nlater:\n"),
            "{report}"
        );
    }

    #[test]
    fn all_problems_with_reread_settings_are_reported() {
        let unread = report("", "", "[politenes]\n[scope]\nexclude = [\"(\"]\n");
        for part in [
            "DIR/site.toml:2:2: unknown key or table `politenes`",
            "site.toml:4:",
        ] {
            assert!(unread.contains(part), "{unread}");
        }
        let unusable = report("", "", "[politeness]\nper-host = 0\nper-address = 0\n");
        for part in [
            "site.toml:3:1: --per-host is 0",
            "site.toml:4:1: --per-address is 0",
        ] {
            assert!(unusable.contains(part), "{unusable}");
        }
    }

    #[test]
    fn lists_of_hosts_that_flags_name_are_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("out.txt");
        std::fs::write(&list, "a.example\n").unwrap();
        let flags = format!("scope.exclude-host = [\"@{}\"]\n", list.display());
        let (sources, ..) = sources(&dir, parse(&flags, "flags").unwrap(), "");
        let sources = InitialSettingsLayers {
            config: None,
            ..sources
        };
        assert!(sources.has_files());
        let running = parse(&format!("{SEED}scope.exclude-host = [\"a.example\"]"), "x");
        let running = running.unwrap().settle();
        let checked = check(&running).unwrap();
        std::fs::write(&list, "a.example\nb.example\n").unwrap();
        let read = sources.read_again(&running, &checked).unwrap();
        assert_eq!(read.taken, ["[scope] exclude-host: 1 added, 0 removed"]);
        let flags = parse("scope.exclude-host = [\"a.example\"]\n", "flags").unwrap();
        assert!(!InitialSettingsLayers { flags, ..sources }.has_files());
    }
}

//! Settings that are read again while a crawl runs: politeness, exclusions and budgets are taken
//! over, and what else changed waits for the next start.

use std::collections::BTreeSet;
use std::path::PathBuf;

use toml::{Table, Value};

use super::check::check;
use super::config_file::{self, located};
use super::listing::table_of;
use super::tables::{Layer, Politeness, Scope, Settings};
use super::{host_lists, sites};
use crate::error::{CommandError, Problems};
use crate::settings::Checked;

/// The table of the keys that stand in none.
const TOP: &str = "";

/// The sources of a crawl's settings, as they were when it began.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// Flags and the environment, before the files of hosts that they name were read.
    pub(super) flags: Layer,
    /// The file of `--config`, and what it said then.
    pub(super) config: Option<(PathBuf, Layer)>,
    /// The values that hold where neither says anything.
    pub(super) beneath: Layer,
}

/// Settings that were read again.
#[derive(Clone, Debug)]
pub(crate) struct RereadSettings {
    /// Those in force from now on.
    pub(crate) settings: Settings,
    pub(crate) checked: Checked,
    /// The keys that are taken over, each with its value.
    pub(crate) taken: Vec<String>,
    /// The keys that changed and wait for the next start.
    pub(crate) later: Vec<String>,
}

impl Sources {
    /// Reads the files again and checks them; `running` is in force.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub(crate) fn read_again(
        &self,
        running: &Settings,
        checked: &Checked,
    ) -> Result<RereadSettings, CommandError> {
        let asked = self.asked(running)?;
        let located = |problem| match &self.config {
            Some((file, _)) => located(problem, file, &self.flags),
            None => problem,
        };
        check(&asked.settings).map_err(located)?;
        let settings = taken_over(running, &asked.settings);
        // It is held to what does not change as well, such as --own-site.
        let held = check(&settings).map_err(located)?;
        let (before, after) = (table_of(running), table_of(&settings));
        let taken = differences(&before, &after);
        let later = differences(&after, &table_of(&asked.settings));
        let later = later.iter().map(Difference::name);
        Ok(RereadSettings {
            taken: taken.iter().map(Difference::to_line).collect(),
            later: asked.seeds.into_iter().chain(later).collect(),
            checked: Checked {
                sites: held.sites,
                groups: held.groups,
                ..checked.clone()
            },
            settings,
        })
    }

    fn asked(&self, running: &Settings) -> Result<Asked, CommandError> {
        let mut flags = self.flags.clone();
        let mut config = match &self.config {
            Some((file, _)) => config_file::read(file)?,
            None => Layer::default(),
        };
        let older = self.config.as_ref().map(|(_, older)| older);
        let seeds = older.into_iter().flat_map(|older| {
            let seed = (older.seed != config.seed).then_some("seed");
            let files = (older.seed_file != config.seed_file).then_some("seed-file");
            let maps = (older.seed_sitemap != config.seed_sitemap).then_some("seed-sitemap");
            seed.into_iter().chain(files).chain(maps).map(str::to_owned)
        });
        let seeds = seeds.collect();
        let mut problems = Problems::default();
        for layer in [&mut flags, &mut config] {
            (layer.seed, layer.seed_file, layer.seed_sitemap) = (None, None, None);
            host_lists::read_in(layer.host_lists(), &mut problems);
        }
        problems.or(())?;
        let mut settings = flags.over(config).over(self.beneath.clone()).settle();
        settings.seed.clone_from(&running.seed);
        Ok(Asked { settings, seeds })
    }

    /// Returns whether there is anything that could be read again: a file of `--config`, or one of
    /// hosts that a flag names.
    pub(crate) fn has_files(&self) -> bool {
        let scope = &self.flags.scope;
        let lists = [&scope.host, &scope.exclude_host].into_iter().flatten();
        self.config.is_some() || lists.flatten().any(host_lists::is_file)
    }
}

/// The settings that the files ask for now.
struct Asked {
    settings: Settings,
    /// The keys of seeds that changed.
    seeds: Vec<String>,
}

/// The settings in force, with the politeness, the exclusions and the budgets of others.
fn taken_over(running: &Settings, asked: &Settings) -> Settings {
    let held = &running.politeness;
    Settings {
        politeness: Politeness {
            concurrency: held.concurrency,
            look_ups: held.look_ups,
            hosts_in_memory: held.hosts_in_memory,
            wait_unreachable: held.wait_unreachable,
            own_site: held.own_site,
            robots: held.robots,
            ..asked.politeness.clone()
        },
        scope: Scope {
            exclude_host: asked.scope.exclude_host.clone(),
            include: asked.scope.include.clone(),
            exclude: asked.scope.exclude.clone(),
            max_pages: asked.scope.max_pages,
            max_bytes: asked.scope.max_bytes,
            max_server_time: asked.scope.max_server_time,
            max_time: asked.scope.max_time,
            max_pages_per_host: asked.scope.max_pages_per_host,
            max_bytes_per_host: asked.scope.max_bytes_per_host,
            max_server_time_per_host: asked.scope.max_server_time_per_host,
            max_time_per_host: asked.scope.max_time_per_host,
            ..running.scope.clone()
        },
        site: sites::with_access_of(&running.site, &asked.site),
        group: asked.group.clone(),
        ..running.clone()
    }
}

/// A key that has another value.
struct Difference {
    table: String,
    key: String,
    before: Option<Value>,
    after: Option<Value>,
}

impl Difference {
    fn name(&self) -> String {
        match self.table.as_str() {
            TOP => self.key.clone(),
            table => format!("[{table}] {}", self.key),
        }
    }

    /// The key with its value; of a list what came and went.
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
                let came = after.difference(&before).count();
                let went = before.difference(&after).count();
                format!("{name}: {came} more, {went} less")
            }
            (_, Some(after)) => format!("{name} = {after}"),
            (_, None) => format!("{name} as for every host"),
        }
    }
}

/// The keys that differ between two sets of settings.
fn differences(before: &Table, after: &Table) -> Vec<Difference> {
    let mut found = Vec::new();
    note_differences(TOP, before, after, &mut found);
    found
}

fn note_differences(at: &str, before: &Table, after: &Table, found: &mut Vec<Difference>) {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for key in keys {
        let (was, is) = (before.get(key), after.get(key));
        let table = |value: Option<&Value>| value.and_then(Value::as_table).cloned();
        match (table(was), table(is)) {
            (None, None) if was != is => found.push(Difference {
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
                note_differences(&name, &was, &is, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use expect_test::expect;
    use tempfile::TempDir;

    use super::Sources;
    use crate::settings::config_file::{parse, read};
    use crate::settings::tables::Layer;
    use crate::settings::{Settings, check};

    const SEED: &str = "seed = [\"http://127.0.0.1:9/\"]\n";

    fn sources(dir: &TempDir, flags: Layer, text: &str) -> (Sources, PathBuf, Settings) {
        let file = dir.path().join("site.toml");
        std::fs::write(&file, format!("{SEED}{text}")).unwrap();
        let layer = read(&file).unwrap();
        let running = flags.clone().over(layer.clone()).settle();
        let sources = Sources {
            flags,
            config: Some((file.clone(), layer)),
            beneath: Layer::default(),
        };
        (sources, file, running)
    }

    /// The words for a file that says `after` in the place of `before`.
    fn told(flags: &str, before: &str, after: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let flags = parse(flags, "flags").unwrap();
        let (sources, file, running) = sources(&dir, flags, before);
        let checked = check(&running).unwrap();
        std::fs::write(&file, format!("{SEED}{after}")).unwrap();
        let told = match sources.read_again(&running, &checked) {
            Ok(read) => {
                // What was taken over stays so.
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
        told.replace(&dir.path().display().to_string(), "DIR")
    }

    #[test]
    fn ours_politeness_exclusions_and_budgets_are_taken_over_and_the_rest_waits() {
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
              [politeness] quiet-hours: 1 more, 0 less
              [scope] exclude: 2 more, 1 less
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
        .assert_eq(&told("", before, after));
    }

    #[test]
    fn ours_flags_win_over_what_is_read_again() {
        let flags = "politeness.delay = \"7s\"\nscope.exclude = [\"/flag\"]\n";
        let after = "[politeness]\ndelay = \"5s\"\njitter = 0.01\n[scope]\nexclude = [\"/b\"]\n";
        let told = told(flags, "", after);
        assert!(
            told.starts_with("taken:\n  [politeness] jitter = 0.01\nlater:\n"),
            "{told}"
        );
    }

    #[test]
    fn ours_all_that_is_wrong_with_what_is_read_again_is_told() {
        let unread = told("", "", "[politenes]\n[scope]\nexclude = [\"(\"]\n");
        for part in [
            "DIR/site.toml:2:2: unknown key or table `politenes`",
            "site.toml:4:",
        ] {
            assert!(unread.contains(part), "{unread}");
        }
        let unusable = told("", "", "[politeness]\nper-host = 0\nper-address = 0\n");
        for part in [
            "site.toml:3:1: --per-host is 0",
            "site.toml:4:1: --per-address is 0",
        ] {
            assert!(unusable.contains(part), "{unusable}");
        }
    }

    #[test]
    fn ours_lists_of_hosts_that_flags_name_are_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("out.txt");
        std::fs::write(&list, "a.example\n").unwrap();
        let flags = format!("scope.exclude-host = [\"@{}\"]\n", list.display());
        let (sources, ..) = sources(&dir, parse(&flags, "flags").unwrap(), "");
        let sources = Sources {
            config: None,
            ..sources
        };
        assert!(sources.has_files());
        let running = parse(&format!("{SEED}scope.exclude-host = [\"a.example\"]"), "x");
        let running = running.unwrap().settle();
        let checked = check(&running).unwrap();
        std::fs::write(&list, "a.example\nb.example\n").unwrap();
        let read = sources.read_again(&running, &checked).unwrap();
        assert_eq!(read.taken, ["[scope] exclude-host: 1 more, 0 less"]);
        let flags = parse("scope.exclude-host = [\"a.example\"]\n", "flags").unwrap();
        assert!(!Sources { flags, ..sources }.has_files());
    }
}

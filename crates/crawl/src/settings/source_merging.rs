//! Merges the sources of settings. From lowest to highest precedence:
//!
//! 1. built-in defaults,
//! 2. the contact in the user's own config.toml,
//! 3. the part of the continued crawl's crawl.toml that takes [effect](super::stored_config),
//! 4. the defaults of a [link check](super::link_check_defaults),
//! 5. `--config FILE`,
//! 6. `CRAWL_CONTACT`,
//! 7. flags.

use std::path::{Path, PathBuf};

use super::check::{check_all, default_output};
use super::config_file;
use super::host_lists;
use super::listed_seed::ListedSeed;
use super::replay_settings::fill_in;
use super::reread::InitialSettingsLayers;
use super::seed_list;
use super::setting_definitions::OperatorLayer;
use super::setting_definitions::{Settings, SettingsLayer};
use super::stored_config::StoredConfig;
use super::user_folders::UserFolders;
use crate::error::{
    AffectedSettings, CommandError, ConfigTableName, ErrorCollector, UnreadSettings,
};
use crate::settings::typed_seed;

/// Merges all sources. `flags` holds the command line and the environment.
pub(crate) fn gather(
    flags: SettingsLayer,
    config: Option<&Path>,
    environment: &UserFolders,
) -> Result<Settings, CommandError> {
    gather_with_sources(flags, config, environment).map(|(settings, _)| settings)
}

/// Merges all sources as [`gather`] does. Also returns the sources, so that a running crawl can
/// read them again.
pub(crate) fn gather_with_sources(
    flags: SettingsLayer,
    config: Option<&Path>,
    environment: &UserFolders,
) -> Result<(Settings, InitialSettingsLayers), CommandError> {
    gather_over(flags, config, environment, SettingsLayer::default())
}

/// Merges all sources as [`gather_with_sources`] does, and also `defaults`, the defaults of a
/// command. They override the settings in crawl.toml and the built-in defaults, but not `--config`
/// or flags.
pub(crate) fn gather_over(
    flags: SettingsLayer,
    config: Option<&Path>,
    environment: &UserFolders,
    defaults: SettingsLayer,
) -> Result<(Settings, InitialSettingsLayers), CommandError> {
    let mut flags = flags.typed();
    let file = config;
    let mut problems = ErrorCollector::default();
    let mut config = config
        .map(|file| config_file::read_usable(file, &mut problems))
        .transpose()?
        .unwrap_or_default();
    let mut sources = InitialSettingsLayers {
        flags: flags.clone(),
        config: file.map(|file| (file.to_owned(), config.clone())),
        beneath: SettingsLayer::default(),
    };
    let names_seeds = flags.seed.is_some();
    for layer in [&mut flags, &mut config] {
        read_lists(layer, &mut problems);
    }
    add_listed_seeds(&mut flags, names_seeds, &config);
    if !problems.is_empty() {
        let user = of_user(environment).unwrap_or_default();
        note_further(&mut problems, flags.clone().over(config.clone()).over(user));
        problems.or(()).map_err(|problem| match file {
            Some(file) => config_file::located(problem, file, &flags),
            None => problem,
        })?;
    }
    let seeds: Vec<ListedSeed> = [&flags.seed, &config.seed]
        .into_iter()
        .flatten()
        .flatten()
        .cloned()
        .collect();
    let mut explicit = flags.over(config);
    let stored = match directory(&explicit) {
        Some(dir) => match StoredConfig::read(&dir)? {
            Some(stored) => stored.beneath(&mut explicit, &seeds, environment)?,
            None if explicit.seed.is_none() => return Err(nothing_there(&dir)),
            None => SettingsLayer::default(),
        },
        None => SettingsLayer::default(),
    };
    let beneath = defaults.over(stored.over(of_user(environment)?));
    sources.beneath = beneath.clone();
    Ok((explicit.over(beneath).settle(), sources))
}

/// Merges the sources of a replay of the crawl in `dir`. If `--config` is given, the settings come
/// from that file, and [`fill_in`] adds the crawl's seeds and contact. Otherwise, they come from
/// the part of the crawl's crawl.toml that takes [effect](super::stored_config).
///
/// # Errors
/// As for [`gather`].
pub(crate) fn gather_for_replay(
    mut flags: SettingsLayer,
    config: Option<&Path>,
    dir: &Path,
    environment: &UserFolders,
) -> Result<Settings, CommandError> {
    if let Some(file) = config {
        fill_in(&mut flags, file, dir)?;
        return gather(flags, config, environment);
    }
    let mut flags = flags.typed();
    let names_seeds = flags.seed.is_some();
    let mut problems = ErrorCollector::default();
    read_lists(&mut flags, &mut problems);
    problems.or(())?;
    let stored = StoredConfig::for_replay(dir, &flags, environment)?;
    add_listed_seeds(&mut flags, names_seeds, &stored);
    let settings = flags.over(stored).over(of_user(environment)?).settle();
    let output = &settings.output.output.0;
    if output != dir {
        // Refuse an output directory that holds something other than a crawl. The engine refuses
        // one that holds a crawl.
        StoredConfig::read(output)?;
    }
    Ok(settings)
}

/// Replaces the lists that a layer names by their entries: seed files and sitemaps by seeds, and
/// files of hosts by hosts.
fn read_lists(layer: &mut SettingsLayer, problems: &mut ErrorCollector) {
    let sitemaps = layer.seed_sitemap.take().unwrap_or_default();
    let files = layer.seed_file.take().unwrap_or_default();
    seed_list::read_in(&mut layer.seed, sitemaps, files, problems);
    host_lists::read_in(layer.host_lists(), problems);
}

/// Adds the seeds of the settings file in front of the seeds from `--seed-file` and
/// `--seed-sitemap`. Does nothing if `names_seeds`, that is, if `--seed` is given and replaces the
/// file's seeds.
fn add_listed_seeds(flags: &mut SettingsLayer, names_seeds: bool, file: &SettingsLayer) {
    if let (false, Some(listed), Some(seeds)) = (names_seeds, &mut flags.seed, &file.seed) {
        listed.splice(0..0, seeds.iter().cloned());
    }
}

/// Adds further problems in the flags, the file and the user's own settings, so that all problems
/// are reported at once. Skips problems that may only result from one that is already in
/// `problems`.
fn note_further(problems: &mut ErrorCollector, explicit: SettingsLayer) {
    let mut further = ErrorCollector::default();
    check_all(&explicit.clone().settle(), &mut further);
    let unread: Vec<UnreadSettings> = problems
        .iter()
        .map(|problem| problem.subject.unread.clone())
        .collect();
    problems.extend(further.filter(|problem| !follows(&problem.subject, &unread, &explicit)));
}

/// Returns whether a problem may only result from a setting that could not be read.
fn follows(
    subject: &AffectedSettings,
    unread: &[UnreadSettings],
    explicit: &SettingsLayer,
) -> bool {
    let may_be = |of: Option<&ConfigTableName>, key: &str| {
        unread.iter().any(|unread| match unread {
            UnreadSettings::Nothing => false,
            UnreadSettings::Keys { table, keys } => {
                table.as_ref() == of && keys.iter().any(|unread| unread == key)
            }
            UnreadSettings::Anything => true,
        })
    };
    subject.rests_on.iter().any(|key| match &subject.table {
        Some(table) if explicit.sets_key_of(table, key) => false,
        Some(table) if may_be(Some(table), key) => true,
        _ => !explicit.sets_key(key) && may_be(None, key),
    })
}

/// Returns the directory of the crawl: the given one, or the default for the first seed. `None` if
/// neither is usable.
fn directory(layer: &SettingsLayer) -> Option<PathBuf> {
    let output = layer.output.output.as_ref();
    let named = output.filter(|output| !output.is_empty());
    named.map(|output| output.0.clone()).or_else(|| {
        let seed = layer.seed.as_ref()?.first()?;
        Some(default_output(&typed_seed::read(&seed.url).ok()?.url))
    })
}

/// Reads the contact in the user's own config.toml, if it has one.
pub(crate) fn user_contact(environment: &UserFolders) -> Result<Option<String>, CommandError> {
    Ok(of_user(environment)?.operator.contact)
}

fn nothing_there(output: &Path) -> CommandError {
    CommandError::usage(format!(
        "no seed given, and there is no crawl in {} to continue",
        output.display()
    ))
    .hint("start one with `crawl URL`")
}

fn of_user(environment: &UserFolders) -> Result<SettingsLayer, CommandError> {
    let Some(home) = &environment.config_home else {
        return Ok(SettingsLayer::default());
    };
    let path = home.join("crawl").join("config.toml");
    if !path.is_file() {
        return Ok(SettingsLayer::default());
    }
    let file = config_file::read(&path)?;
    let contact = SettingsLayer {
        operator: OperatorLayer {
            contact: file.operator.contact.clone(),
            ..OperatorLayer::default()
        },
        ..SettingsLayer::default()
    };
    match file == contact {
        true => Ok(contact),
        false => Err(CommandError::usage(format!(
            "{} may contain only `contact` in [operator]",
            path.display()
        ))
        .hint("put a crawl's settings into a separate file, and give it with --config")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use tempfile::TempDir;

    use super::{ListedSeed, UserFolders, gather};
    use crate::settings::config_file::parse;
    use crate::settings::setting_definitions::{Settings, SettingsLayer};
    use crate::settings::stored_config::own_mark;
    use crate::values::FilePath;

    fn flags(contact: Option<&str>, output: Option<&Path>) -> SettingsLayer {
        let mut layer = SettingsLayer::default();
        layer.operator.contact = contact.map(str::to_owned);
        layer.output.output = output.map(|path| FilePath(path.to_owned()));
        layer
    }

    fn setup() -> (TempDir, UserFolders) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("home/crawl")).unwrap();
        let around = UserFolders {
            config_home: Some(dir.path().join("home")),
            state_home: Some(dir.path().join("state")),
        };
        (dir, around)
    }

    /// Writes the `crawl.toml` that a run by the user with the folders `around` would write.
    fn store(dir: &TempDir, around: &UserFolders, text: &str) {
        let settings = parse(text, "x").unwrap().settle();
        let mark = own_mark(&settings, dir.path(), around).unwrap();
        let text = format!("{text}[crawl]\nmark = \"{mark}\"\n");
        fs::write(dir.path().join("crawl.toml"), text).unwrap();
    }

    #[test]
    fn each_source_wins_over_those_beneath() {
        let (dir, around) = setup();
        let user = dir.path().join("home/crawl/config.toml");
        let config = dir.path().join("given.toml");
        let output = Some(dir.path());
        let contact = |settings: Settings| settings.operator.contact;

        assert_eq!(
            contact(gather(flags(None, None), None, &around).unwrap()),
            ""
        );
        fs::write(&user, "[operator]\ncontact = \"user@e.example\"\n").unwrap();
        let of_user = gather(flags(None, None), None, &around).unwrap();
        assert_eq!(contact(of_user), "user@e.example");
        store(
            &dir,
            &around,
            "seed = [\"http://e.example/\"]\n[operator]\ncontact = \"stored@e.example\"\n[output]\noutput = \"elsewhere\"\n",
        );
        let of_crawl = gather(flags(None, output), None, &around).unwrap();
        assert_eq!(of_crawl.seed, ["http://e.example/"]);
        assert_eq!(of_crawl.output.output.0, dir.path());
        assert_eq!(contact(of_crawl), "stored@e.example");
        fs::write(&config, "[operator]\ncontact = \"file@e.example\"\n").unwrap();
        let of_file = gather(flags(None, output), Some(&config), &around).unwrap();
        assert_eq!(contact(of_file), "file@e.example");
        let typed = flags(Some("flag@e.example"), output);
        let of_flags = gather(typed, Some(&config), &around).unwrap();
        assert_eq!(contact(of_flags), "flag@e.example");
    }

    #[test]
    fn a_list_of_seeds_adds_to_the_seeds_of_the_file_and_a_seed_replaces_them() {
        let (dir, around) = setup();
        let config = dir.path().join("given.toml");
        fs::write(&config, "seed = [\"http://a.example/\"]\n").unwrap();
        let list = dir.path().join("seeds.txt");
        fs::write(&list, "http://b.example/\n").unwrap();
        let mut typed = flags(None, Some(&dir.path().join("c")));
        typed.seed_file = Some(vec![FilePath(list)]);
        let gathered =
            |typed: &SettingsLayer| gather(typed.clone(), Some(&config), &around).unwrap();
        assert_eq!(
            gathered(&typed).seed,
            ["http://a.example/", "http://b.example/"]
        );
        typed.seed = Some(vec![ListedSeed::plain("http://c.example/")]);
        assert_eq!(
            gathered(&typed).seed,
            ["http://c.example/", "http://b.example/"]
        );
        (typed.seed, typed.seed_file) = (None, None);
        typed.seed_sitemap = Some(vec!["http://d.example/s.xml".to_owned()]);
        let mapped = gathered(&typed).seed;
        let urls: Vec<_> = mapped.iter().map(|seed| seed.url.as_str()).collect();
        assert_eq!(urls, ["http://a.example/", "http://d.example/s.xml"]);
    }

    #[test]
    fn stored_settings_count_only_without_a_seed() {
        let (dir, around) = setup();
        let stored = "seed = [\"http://e.example/\"]\n[politeness]\ndelay = \"7s\"\n";
        store(&dir, &around, stored);
        let mut typed = flags(None, Some(dir.path()));
        let gone_on = gather(typed.clone(), None, &around).unwrap();
        assert_eq!(gone_on.politeness.delay.to_string(), "7s");
        typed.seed = Some(vec![ListedSeed::plain("http://e.example/")]);
        let same_command = gather(typed, None, &around).unwrap();
        assert_eq!(same_command.politeness.delay.to_string(), "1s");
    }

    #[test]
    fn a_crawl_toml_given_with_config_sets_no_keys_that_each_run_sets() {
        let (dir, around) = setup();
        let config = dir.path().join("crawl.toml");
        let text = "[politeness]\ndelay = \"7s\"\n[recrawl]\nevery = \"2s\"\n\
                    [output]\noutput = \"elsewhere\"\nlinks = \"on\"\n\
                    [display]\nlog = \"notes.txt\"\nfail-on-error = \"on\"\n";
        let output = Some(dir.path().join("c"));
        let gathered = |text: &str| {
            fs::write(&config, text).unwrap();
            let mut typed = flags(None, output.as_deref());
            typed.seed = Some(vec![ListedSeed::plain("http://e.example/")]);
            gather(typed, Some(&config), &around).unwrap()
        };
        let of_record = gathered(&format!("{text}[crawl]\nversion = \"0.1.0\"\n"));
        assert_eq!(of_record.display, Settings::default().display);
        assert_eq!(of_record.recrawl, Settings::default().recrawl);
        assert_eq!(of_record.politeness.delay.to_string(), "7s");
        assert!(of_record.output.links.is_on());
        let own = gathered(text);
        assert_eq!(own.display.log.0, Path::new("notes.txt"));
        assert!(own.recrawl.every.0.is_some());
    }

    #[test]
    fn user_file_holds_a_contact_only() {
        let (dir, around) = setup();
        let user = dir.path().join("home/crawl/config.toml");
        fs::write(&user, "[politeness]\ndelay = \"1ms\"\n").unwrap();
        let refusal = gather(flags(None, None), None, &around).unwrap_err();
        assert!(
            refusal
                .message
                .ends_with("may contain only `contact` in [operator]")
        );
        assert_eq!(refusal.code, 2);
    }

    #[test]
    fn a_directory_without_a_crawl_is_refused() {
        let (dir, around) = setup();
        let refusal = gather(flags(None, Some(dir.path())), None, &around).unwrap_err();
        assert!(refusal.message.contains("there is no crawl in"));
    }
}

//! Starts a crawl: checks its settings, and compares them with those of an earlier run.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crawl_records::stored_settings;
use crawl_weburl::CanonicalUrl;
use tokio::runtime::Runtime;

use super::engine_config::{fetch_config, user_agent_of};
use super::interrupted_forget::finish_interrupted;
use super::prepared_crawl::{ContinuationCommand, PreparedCrawl};
use super::process_limits::connections;
use super::{rounds, seed_schemes};
use crate::error::{CommandError, no_threads};
use crate::settings::typed_seed::ParsedSeed;
use crate::settings::{
    CheckedSettings, InitialSettingsLayers, ListedSeed, Settings, check, stored_seeds, typed_seed,
};
use crate::terminal::{Terminal, start_log};
use crate::values::Switch;

/// Crawls and reports the outcome. Returns the exit code, or the error that prevented or ended the
/// crawl.
pub(crate) fn crawl(
    settings: &Settings,
    sources: InitialSettingsLayers,
    directory: ContinuationCommand,
) -> Result<u8, CommandError> {
    let mut settings = settings.clone();
    let mut checked = check(&settings)?;
    finish_interrupted(&checked.output)?;
    let older = stored_settings(&checked.output);
    refuse_other_records(&older, &settings, &checked)?;
    refuse_new_seeds(&older, &settings, &checked)?;
    let terminal = Terminal::new(&settings);
    start_log(&settings, &terminal)?;
    let runtime = Runtime::new().map_err(|why| no_threads(&why))?;
    runtime.block_on(choose_schemes(
        &older,
        &mut settings,
        &mut checked,
        &terminal,
    ))?;
    for change in changes(&older, &settings, &checked) {
        terminal.say(&change);
    }
    let connections = connections(&settings);
    let job = PreparedCrawl::new(settings, checked, sources, connections, terminal, directory);
    let job = Arc::new(job);
    let code = runtime.block_on(rounds::run(&job));
    // Don't wait for a DNS lookup that is still running, because its answer is no longer needed.
    runtime.shutdown_background();
    code
}

/// Chooses the scheme of the seeds typed without one.
pub(super) async fn choose_schemes(
    older: &toml::Table,
    settings: &mut Settings,
    checked: &mut CheckedSettings,
    terminal: &Terminal,
) -> Result<(), CommandError> {
    let fetch = fetch_config(settings, checked, &user_agent_of(checked));
    let say = |what: &str| terminal.say(what);
    let older = stored_seeds(older).into_iter().collect();
    let chosen = seed_schemes::choose_schemes(&checked.typed, &older, &fetch, say).await?;
    checked.public_names = chosen.public_names;
    name_in_full(&mut settings.seed, &checked.typed, &chosen.seeds);
    checked.crawl_at(chosen.seeds);
    Ok(())
}

/// Replaces typed seeds in the settings with the full URLs chosen for them, so that a resumed crawl
/// uses the same URLs.
fn name_in_full(listed: &mut [ListedSeed], typed: &[ParsedSeed], chosen: &[CanonicalUrl]) {
    let typed = typed.iter().map(|seed| &seed.url);
    let chosen: HashMap<_, _> = typed.zip(chosen).collect();
    for seed in listed {
        let read = typed_seed::read(&seed.url);
        if let Some(url) = read.ok().and_then(|read| chosen.get(&read.url)) {
            seed.url = url.to_string();
        }
    }
}

/// Rejects settings that change which records a resumed crawl keeps. Otherwise its archive or its
/// links would cover only some of the pages and yet seem complete.
fn refuse_other_records(
    older: &toml::Table,
    settings: &Settings,
    checked: &CheckedSettings,
) -> Result<(), CommandError> {
    for (key, asked) in [
        ("warc", settings.output.warc),
        ("links", settings.output.links),
    ] {
        let Some(begun) = keeps_record(older, key).filter(|begun| *begun != asked) else {
            continue;
        };
        let output = checked.output.display();
        return Err(CommandError::usage(format!(
            "--{key} is {asked}, but the crawl in {output} was started with {begun}"
        ))
        .hint(format!(
            "keep --{key} unchanged, or start over with another --output"
        )));
    }
    Ok(())
}

/// Returns whether a crawl keeps the records named `key`, according to its crawl.toml. `None` if
/// the file doesn't state it.
fn keeps_record(older: &toml::Table, key: &str) -> Option<Switch> {
    older.get("output")?.get(key)?.as_str()?.parse().ok()
}

/// Rejects seeds that the crawl in the directory does not have, unless `--add-seed` is given. Two
/// sites that share an archive and a search index can't be separated again. A seed list that grew
/// is rejected too, since the list may be meant for another directory.
fn refuse_new_seeds(
    older: &toml::Table,
    settings: &Settings,
    checked: &CheckedSettings,
) -> Result<(), CommandError> {
    let stored = stored_seeds(older);
    let Some(first) = stored.first() else {
        return Ok(());
    };
    let stored_urls: HashSet<_> = stored.iter().collect();
    let is_new = |seed: &&ParsedSeed| {
        !stored_urls.contains(&seed.url)
            && !seed.stand_in.iter().any(|url| stored_urls.contains(url))
    };
    let mut new = checked.typed.iter().filter(is_new);
    let Some(seed) = new.next().filter(|_| !settings.output.add_seed.is_on()) else {
        return Ok(());
    };
    let more = match new.count() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let output = checked.output.display();
    let has_erased = checked.output.join("tombstones.jsonl").exists();
    let erased = match has_erased {
        true => "; leave out a seed that `crawl forget` erased",
        false => "",
    };
    Err(CommandError::usage(format!(
        "can't add seed {}{more} to the crawl in {output}, which started at {first}",
        seed.url
    ))
    .hint(format!(
        "start a separate crawl with another --output, or add new seeds with --add-seed{erased}"
    )))
}

/// Returns messages about differences from earlier runs in the directory that the user may not have
/// intended.
fn changes(older: &toml::Table, settings: &Settings, checked: &CheckedSettings) -> Vec<String> {
    let output = checked.output.display();
    let mut changes = Vec::new();
    let stored = stored_seeds(older);
    let stored_urls: HashSet<_> = stored.iter().collect();
    let new: Vec<&str> = checked
        .seeds
        .iter()
        .filter(|seed| !stored_urls.contains(seed))
        .map(CanonicalUrl::as_str)
        .collect();
    if let (Some(first), Some(seed)) = (stored.first(), new.first()) {
        let more = match new.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        changes.push(format!(
            "adding seed {seed}{more} to the crawl in {output}, which started at {first}"
        ));
    }
    let had_index = keeps_record(older, "index").map(Switch::is_on);
    match (had_index, settings.output.index.is_on()) {
        (Some(true), false) => changes.push(format!(
            "--index off: the search index in {output} won't include the pages of this run\nhint: \
             --index on rebuilds it from the archive"
        )),
        (Some(false), true) => changes.push(format!(
            "--index on: building the search index in {output} from the archive first"
        )),
        _ => {}
    }
    changes
}

#[cfg(test)]
mod tests {
    use crawl_weburl::{CanonicalUrl, canonicalize};

    use super::{changes, name_in_full};
    use crate::settings::typed_seed::{ParsedSeed, read};
    use crate::settings::{ListedSeed, Settings, check};

    /// Guards against comparing each seed with every other one, which would take minutes for
    /// 100,000 seeds.
    #[test]
    fn a_hundred_thousand_seeds_are_resolved_and_reported_by_number() {
        const SEEDS: usize = 100_000;
        let mut settings = Settings::default();
        let listed = (0..SEEDS).map(|seed| format!("127.0.0.1/{seed}").parse::<ListedSeed>());
        settings.seed = listed.collect::<Result<_, _>>().unwrap();
        let typed: Vec<ParsedSeed> = settings
            .seed
            .iter()
            .map(|seed| read(&seed.url).unwrap())
            .collect();
        let chosen: Vec<CanonicalUrl> = (0..SEEDS)
            .map(|seed| canonicalize(None, &format!("https://127.0.0.1/{seed}")).unwrap())
            .collect();
        name_in_full(&mut settings.seed, &typed, &chosen);
        for place in [0, 9, SEEDS - 1] {
            assert_eq!(settings.seed[place].url, chosen[place].as_str());
        }
        let stored =
            (0..SEEDS).map(|seed| toml::Value::from(format!("http://127.0.0.1/old{seed}")));
        let older =
            toml::Table::from_iter([("seed".to_owned(), stored.collect::<Vec<_>>().into())]);
        let checked = check(&settings).unwrap();
        let messages = changes(&older, &settings, &checked);
        assert!(
            messages[0].starts_with("adding seed https://127.0.0.1/0 and 99999 more to "),
            "{messages:?}"
        );
    }
}

//! The start of a crawl: its settings are checked and held against those of an earlier run.

use std::sync::Arc;

use crawl_records::stored_settings;
use crawl_weburl::CanonicalUrl;
use tokio::runtime::Runtime;

use super::connection_limit::connections;
use super::engine_config::{fetch_config, user_agent_of};
use super::job::Job;
use super::{rounds, seed_schemes};
use crate::error::{CommandError, no_threads};
use crate::settings::{Checked, Settings, Sources, check, seeds, stored_seeds};
use crate::terminal::{Terminal, start_log};
use crate::values::Switch;

/// Crawls, and says how it went. The exit code, or why there was no crawl.
pub(crate) fn run(settings: &Settings, sources: Sources) -> Result<u8, CommandError> {
    let mut settings = settings.clone();
    let mut checked = check(&settings)?;
    let older = stored_settings(&checked.output);
    refuse_other_records(&older, &settings, &checked)?;
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
    let connections = connections(settings.politeness.concurrency);
    let job = Arc::new(Job::new(settings, checked, sources, connections, terminal));
    let code = runtime.block_on(rounds::run(&job));
    // A look-up of a name may still be under way; nobody waits for its answer.
    runtime.shutdown_background();
    code
}

/// Settles over which scheme those seeds are asked that were typed without one.
pub(super) async fn choose_schemes(
    older: &toml::Table,
    settings: &mut Settings,
    checked: &mut Checked,
    terminal: &Terminal,
) -> Result<(), CommandError> {
    let fetch = fetch_config(settings, checked, &user_agent_of(checked));
    let say = |what: &str| terminal.say(what);
    let older = stored_seeds(older);
    let chosen = seed_schemes::choose_schemes(&checked.typed, &older, &fetch, say).await?;
    checked.public_names = chosen.public_names;
    // A crawl that goes on is to find whole URLs.
    for typed in &mut settings.seed {
        let seed = seeds::read(&typed.url).map(|seed| seed.url);
        let place = checked
            .typed
            .iter()
            .position(|known| Ok(&known.url) == seed.as_ref());
        if let Some(place) = place {
            typed.url = chosen.seeds[place].to_string();
        }
    }
    checked.crawl_at(chosen.seeds);
    Ok(())
}

/// An archive of a part of the pages, or links of a part, would pass for the whole: what a
/// crawl keeps is settled when it begins.
fn refuse_other_records(
    older: &toml::Table,
    settings: &Settings,
    checked: &Checked,
) -> Result<(), CommandError> {
    for (key, asked) in [
        ("warc", settings.output.warc),
        ("links", settings.output.links),
    ] {
        let Some(begun) = kept(older, key).filter(|begun| *begun != asked) else {
            continue;
        };
        let output = checked.output.display();
        return Err(CommandError::usage(format!(
            "--{key} is {asked}, and the crawl in {output} was begun with {begun}"
        ))
        .hint(format!(
            "leave --{key} as it was, or start anew with another --output"
        )));
    }
    Ok(())
}

/// Returns whether the crawl in a directory keeps something, by its crawl.toml.
fn kept(older: &toml::Table, key: &str) -> Option<Switch> {
    older.get("output")?.get(key)?.as_str()?.parse().ok()
}

/// Messages on what differs from the earlier runs in the directory, and a user may not have meant.
fn changes(older: &toml::Table, settings: &Settings, checked: &Checked) -> Vec<String> {
    let output = checked.output.display();
    let mut changes = Vec::new();
    let known = stored_seeds(older);
    let new: Vec<&str> = checked
        .seeds
        .iter()
        .filter(|seed| !known.contains(seed))
        .map(CanonicalUrl::as_str)
        .collect();
    if let (Some(first), Some(seed)) = (known.first(), new.first()) {
        let more = match new.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        changes.push(format!(
            "a new seed joins the crawl in {output}, which began with {first}: {seed}{more}"
        ));
    }
    let had_index = kept(older, "index").map(Switch::is_on);
    match (had_index, settings.output.index.is_on()) {
        (Some(true), false) => changes.push(format!(
            "--index off: the search index in {output} stays as it is, without the pages of this run; --index on builds it anew from the archive"
        )),
        (Some(false), true) => changes.push(format!(
            "--index on: the search index in {output} is built from the archive first"
        )),
        _ => {}
    }
    changes
}

//! Replays a crawl from its archive in virtual time, without sending requests.

use std::path::Path;

use crawl_engine::{Config, RecordedCrawl, ReplayResult, ReplayTimingMode};
use crawl_records::{stored_settings, write_report_and_digests};

use super::engine_config::engine_config;
use crate::clock;
use crate::error::CommandError;
use crate::error::engine::{of_engine, of_replay};
use crate::error::records::of_records;
use crate::rendering::renderer_of_replay;
use crate::settings::{
    CheckedSettings, RenderName, Settings, check, other_settings, render_config, replay_record,
    stored_seeds, user_agent,
};
use crate::terminal::{Terminal, start_log};

/// The result of a replay, and how its settings differ from those of the recorded crawl.
pub(crate) struct FinishedReplay {
    pub(crate) replayed: ReplayResult,
    /// Descriptions of the settings that differ from the crawl's.
    pub(crate) changed_settings: Vec<String>,
}

/// Replays the crawl in `dir` with these settings. The replay's records stay in the output
/// directory of the settings.
pub(crate) fn replay(dir: &Path, settings: &Settings) -> Result<FinishedReplay, CommandError> {
    refuse_login(settings)?;
    let mut checked = check_with_browser(settings)?;
    let terminal = Terminal::new(settings);
    start_log(settings, &terminal)?;
    let output = checked.output.clone();
    let recorded = RecordedCrawl::open(dir).map_err(|why| of_engine(&why, dir))?;
    as_crawled(dir, &mut checked);
    let changed_settings = other_settings(dir, settings, &checked.seeds, &checked.seed_terms);
    let timing = match changed_settings.is_empty() {
        true => ReplayTimingMode::AsRecorded,
        false => ReplayTimingMode::ByPolicy,
    };
    let now = format!("{:.0}", clock::now());
    let began = recorded.began().rfc3339_millis();
    let config = Config {
        config_text: replay_record(settings, dir, &began, &now),
        ..engine_config(settings, &checked)
    };
    let replayed = crawl_engine::replay(config, recorded, timing);
    let replayed = replayed.map_err(|why| of_replay(&why, &output))?;
    write_report_and_digests(&output).map_err(of_records)?;
    Ok(FinishedReplay {
        replayed,
        changed_settings,
    })
}

/// Checks the settings. If no browser is installed, a replay continues without one, unlike a crawl.
fn check_with_browser(settings: &Settings) -> Result<CheckedSettings, CommandError> {
    let mut unrendered = settings.clone();
    unrendered.render.render = RenderName::Off;
    let checked = check(&unrendered)?;
    let agent = user_agent(&checked.agent, checked.contact.as_ref());
    let render = render_config(settings, &agent, renderer_of_replay)?;
    Ok(CheckedSettings { render, ..checked })
}

/// Selects http for seeds without a scheme if the crawl began with http.
fn as_crawled(dir: &Path, checked: &mut CheckedSettings) {
    let stored = stored_seeds(&stored_settings(dir));
    let mut seeds = checked.seeds.clone();
    for (seed, typed) in seeds.iter_mut().zip(&checked.typed) {
        match &typed.stand_in {
            Some(http) if stored.contains(http) && !stored.contains(seed) => *seed = http.clone(),
            _ => {}
        }
    }
    checked.crawl_at(seeds);
}

/// Refuses to replay a crawl that logs in, because the archive has no responses to a login.
fn refuse_login(settings: &Settings) -> Result<(), CommandError> {
    match settings.site.iter().find(|(_, terms)| terms.has_login()) {
        None => Ok(()),
        Some((site, _)) => Err(CommandError::usage(format!(
            "can't replay a crawl that logs in to {site}: the archive has no answers of a login"
        ))
        .hint("give a settings file without [site.\"HOST\".login] with --config")),
    }
}

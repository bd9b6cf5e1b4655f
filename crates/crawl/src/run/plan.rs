//! A run that only plans: robots.txt files and sitemaps are asked for, in a directory that goes
//! with it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crawl_engine::{Budgets, Config, Controls, Ended, OriginRules, Stop};
use crawl_records::{Plan, PlanOrigin, PlanSettings};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::connection_limit::connections;
use super::engine_config::engine_config;
use super::signals;
use super::start::choose_schemes;
use crate::control::ControlHandler;
use crate::error::engine::of_engine;
use crate::error::records::of_records;
use crate::error::{CommandError, no_threads};
use crate::settings::{Checked, Settings, check};
use crate::terminal::{Terminal, start_log};

/// The longest gap that a plan keeps behind its last request.
const MAX_REST: Duration = Duration::from_secs(10);

/// Plans the crawl of these settings; none where the user ended it.
pub(crate) fn plan(settings: &Settings) -> Result<Option<Plan>, CommandError> {
    let mut settings = settings.clone();
    let mut checked = check(&settings)?;
    let older = crawl_records::stored_settings(&checked.output);
    let terminal = Terminal::new(&settings);
    start_log(&settings, &terminal)?;
    let runtime = Runtime::new().map_err(|why| no_threads(&why))?;
    let dir = OwnFolder::make()?;
    let planned = runtime.block_on(async {
        choose_schemes(&older, &mut settings, &mut checked, &terminal).await?;
        run(&settings, &checked, &dir, terminal).await
    });
    runtime.shutdown_background();
    planned
}

/// Asks for what a plan is made of, and makes it; none where the user ended it.
async fn run(
    settings: &Settings,
    checked: &Checked,
    dir: &OwnFolder,
    terminal: Terminal,
) -> Result<Option<Plan>, CommandError> {
    let connections = connections(settings.politeness.concurrency);
    let mut config = engine_config(settings, checked);
    config.politeness.concurrency = connections.concurrency;
    if !connections.may_be_kept {
        config.fetch.keep_alive = Duration::ZERO;
    }
    let config = Config {
        output: dir.0.clone(),
        plan: true,
        // Of pages, of which there are none.
        budgets: Budgets::default(),
        recrawl: false,
        warc: false,
        links: false,
        index: false,
        ..config
    };
    let (stop, stopped) = watch::channel(Stop::No);
    let handler = Arc::new(ControlHandler::new(dir.0.clone()));
    signals::listen(stop, terminal, handler)?;
    let mut rest_ends = stopped.clone();
    let controls = Controls {
        stop: stopped,
        ..Controls::unattended()
    };
    let summary = crawl_engine::run(config, controls).await;
    let summary = summary.map_err(|error| of_engine(&error, &dir.0))?;
    if summary.ended == Ended::Interrupted {
        return Ok(None);
    }
    let output = checked.output.as_path();
    let earlier = Some(output).filter(|dir| dir.join("pages.jsonl").is_file());
    let plan = crawl_records::plan(&dir.0, earlier, &terms(settings, summary.rules));
    let seeds = checked.seeds.iter().map(ToString::to_string);
    let plan = Plan {
        seeds: seeds.collect(),
        ..plan.map_err(of_records)?
    };
    // A crawl that begins right behind it is to find the gap kept.
    let gap = plan.hosts.iter().map(|host| host.gap_ms).max();
    let gap = Duration::from_millis(gap.unwrap_or_default()).min(MAX_REST);
    tokio::select! {
        () = tokio::time::sleep(gap) => {}
        _ = rest_ends.changed() => {}
    }
    Ok(Some(plan))
}

/// The settings that the plan goes by, beside what was asked for.
fn terms(settings: &Settings, origins: Vec<OriginRules>) -> PlanSettings {
    let purpose = settings.exclusion.purpose.meaning();
    let millis = |delay: Duration| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    let origins = origins.into_iter().map(|rules| PlanOrigin {
        origin: rules.origin,
        crawl_delay_ms: rules.crawl_delay.map(|(delay, _)| millis(delay)),
        crawl_delay_line: rules.crawl_delay.map(|(_, line)| line),
        usage: rules.usage,
    });
    PlanSettings {
        purpose: purpose.map(|purpose| purpose.to_string()),
        delay_ms: millis(settings.politeness.delay.get()),
        per_host: settings.politeness.per_host,
        max_pages_per_host: settings.scope.max_pages_per_host.0.map(|pages| pages.0),
        max_rate: settings.politeness.max_rate.0.map(|rate| rate.0),
        origins: origins.collect(),
    }
}

/// A folder of this run alone, which goes with it.
struct OwnFolder(PathBuf);

impl OwnFolder {
    fn make() -> Result<OwnFolder, CommandError> {
        let now = jiff::Timestamp::now().as_nanosecond();
        let name = format!("crawl-plan-{}-{now}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Whatever stands there is somebody else's.
        let made = DirBuilder::new().mode(0o700).create(&path);
        let failed = |why: io::Error| {
            CommandError::disk(format!("can't make the folder {}: {why}", path.display()))
                .hint("TMPDIR names the place for such folders")
        };
        made.map_err(failed)?;
        Ok(OwnFolder(path))
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // What can't be removed is the system's to clear: nobody can be told any more.
        let _ = fs::remove_dir_all(&self.0);
    }
}

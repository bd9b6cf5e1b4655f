//! Runs that only plan: they fetch nothing but robots.txt files and sitemaps, into a temporary
//! folder.

use std::time::Duration;

use crawl_engine::{Config, EndReason, HostBudget, OriginWideRules, RunMode};
use crawl_records::{CostPlan, GroupPageBudget, OriginRobotsStatements, PageBudgets, PlanSettings};
use crawl_sample::{SampleMethod, StratumRule};
use crawl_weburl::HostPatternMap;
use tokio::runtime::Runtime;

use super::engine_config::{crawl_budgets, sample_method};
use super::start::choose_schemes;
use super::temporary_folder::TemporaryFolder;
use crate::error::records::of_records;
use crate::error::{CommandError, no_threads};
use crate::settings::{CheckedSettings, Settings, check};
use crate::terminal::{Terminal, start_log, unfetchable_hosts};

/// Plans the crawl of these settings. `None` if the user ended the run.
pub(crate) fn plan(settings: &Settings) -> Result<Option<CostPlan>, CommandError> {
    if let Some(SampleMethod::Walk(walk)) = sample_method(settings) {
        let requests = walk.steps.saturating_mul(walk.walkers.into());
        let message = "can't plan a random walk: its pages are unknown before it";
        return Err(CommandError::usage(message).hint(format!(
            "a walk fetches at most {requests} pages (steps x walkers)"
        )));
    }
    let mut settings = settings.clone();
    let mut checked = check(&settings)?;
    let older = crawl_records::stored_settings(&checked.output);
    let terminal = Terminal::new(&settings);
    start_log(&settings, &terminal)?;
    let runtime = Runtime::new().map_err(|why| no_threads(&why))?;
    let dir = TemporaryFolder::make("plan")?;
    let planned = runtime.block_on(async {
        choose_schemes(&older, &mut settings, &mut checked, &terminal).await?;
        run(&settings, &checked, &dir, terminal).await
    });
    runtime.shutdown_background();
    planned
}

/// Fetches the inputs of a plan and computes it. `None` if the user ended the run.
async fn run(
    settings: &Settings,
    checked: &CheckedSettings,
    dir: &TemporaryFolder,
    terminal: Terminal,
) -> Result<Option<CostPlan>, CommandError> {
    let config = Config {
        extent: RunMode::Plan,
        ..dir.config(settings, checked)
    };
    let (summary, rest) = dir.run(config, terminal.clone()).await?;
    if summary.ended == EndReason::Interrupted {
        rest.keep(settings.politeness.delay.get()).await;
        return Ok(None);
    }
    if matches!(summary.ended, EndReason::NoFetchableHost(_)) {
        terminal.say(unfetchable_hosts(&summary).trim_end());
    }
    let output = checked.output.as_path();
    let earlier = Some(output).filter(|dir| dir.join("pages.jsonl").is_file());
    let plan = crawl_records::plan(
        dir.path(),
        earlier,
        &terms(settings, checked, summary.rules),
    );
    let seeds = checked.seeds.iter().map(ToString::to_string);
    let plan = CostPlan {
        seeds: seeds.collect(),
        ..plan.map_err(of_records)?
    };
    let gap = plan.hosts.iter().map(|host| host.gap_ms).max();
    rest.keep(Duration::from_millis(gap.unwrap_or_default()))
        .await;
    Ok(Some(plan))
}

/// Combines the settings that a plan depends on with the fetched rules.
fn terms(
    settings: &Settings,
    checked: &CheckedSettings,
    origins: Vec<OriginWideRules>,
) -> PlanSettings {
    let purpose = settings.exclusion.purpose.meaning();
    let millis = |delay: Duration| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    let origins = origins.into_iter().map(|rules| OriginRobotsStatements {
        origin: rules.origin,
        crawl_delay_ms: rules.crawl_delay.map(|(delay, _)| millis(delay)),
        crawl_delay_line: rules.crawl_delay.map(|(_, line)| line),
        usage: rules.usage,
    });
    PlanSettings {
        purpose: purpose.map(|purpose| purpose.to_string()),
        delay_ms: millis(settings.politeness.delay.get()),
        page_budgets: page_budgets(settings, checked),
        uncounted: ignored_limits(settings, checked),
        max_rate: settings.politeness.max_rate.0.map(|rate| rate.0),
        address_rate: settings.politeness.address_rate.0.map(|rate| rate.0),
        origins: origins.collect(),
    }
}

/// Returns what limits the pages that the planned crawl fetches from its hosts.
fn page_budgets(settings: &Settings, checked: &CheckedSettings) -> PageBudgets {
    let budgets = crawl_budgets(settings, checked);
    PageBudgets {
        total: budgets.max_pages,
        sample: match sample_method(settings) {
            Some(SampleMethod::Draw(design)) => Some(design),
            Some(SampleMethod::Walk(_)) | None => None,
        },
        per_host: budgets.per_host.max_pages,
        per_site: by_pattern(&budgets.per_site, |site| site.max_pages),
        groups: by_pattern(&budgets.groups, |group| GroupPageBudget {
            name: group.name.clone(),
            max_pages: group.max_pages,
        }),
    }
}

/// Returns the names of settings that the plan ignores, although they may end the crawl earlier or
/// make it fetch other pages. The plan can't predict the bytes and times of pages, nor which pages
/// a sample by depth or path contains.
fn ignored_limits(settings: &Settings, checked: &CheckedSettings) -> Vec<String> {
    let budgets = crawl_budgets(settings, checked);
    let names_of = |bytes: bool, server_time: bool, time: bool| {
        let keys = [
            (bytes, "max-bytes"),
            (server_time, "max-server-time"),
            (time, "max-time"),
        ];
        keys.into_iter()
            .filter_map(|(is_set, key)| is_set.then_some(key))
    };
    let of_host = |budget: &HostBudget| {
        let (bytes, server_time) = (budget.max_bytes.is_some(), budget.max_server_time.is_some());
        names_of(bytes, server_time, budget.max_time.is_some())
    };
    let (bytes, server_time) = (
        budgets.max_bytes.is_some(),
        budgets.max_server_time.is_some(),
    );
    let of_crawl = names_of(bytes, server_time, budgets.max_time.is_some());
    let mut names: Vec<String> = of_crawl.map(str::to_owned).collect();
    names.extend(of_host(&budgets.per_host).map(|key| format!("{key}-per-host")));
    for (site, budget) in budgets.per_site.iter() {
        names.extend(of_host(budget).map(|key| format!("{key} of {site}")));
    }
    let mut groups: Vec<_> = budgets.groups.iter().map(|(_, group)| group).collect();
    groups.sort_by(|one, other| one.name.cmp(&other.name));
    groups.dedup_by(|one, other| one.name == other.name);
    for group in groups {
        let keys = names_of(
            group.max_bytes.is_some(),
            group.max_server_time.is_some(),
            false,
        );
        names.extend(keys.map(|key| format!("{key} of group {}", group.name)));
    }
    if let Some(SampleMethod::Draw(design)) = sample_method(settings)
        && matches!(design.by, StratumRule::Depth | StratumRule::Path)
    {
        names.push(format!("sample-by {}", design.by));
    }
    names
}

/// Maps the values of a table with `value`, and keeps the host patterns.
fn by_pattern<T, U>(table: &HostPatternMap<T>, value: impl Fn(&T) -> U) -> HostPatternMap<U> {
    let mut values = HostPatternMap::default();
    for (pattern, old) in table.iter() {
        // Never fails, because the pattern comes from a table.
        let _ = values.insert(pattern, value(old));
    }
    values
}

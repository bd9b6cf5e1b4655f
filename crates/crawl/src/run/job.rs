//! The main job: settings become the engine's configuration, a run becomes an exit code.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use crawl_archive::{MAX_CONFIG_BYTES, read_text};
use crawl_engine::{
    Budgets, Config, Forbidden, HostBudget, Resources, Revisits, ScopeRules, TrapRules,
};
use crawl_fetcher::robots::RobotsTimes;
use crawl_fetcher::{FetchConfig, ResolveOverride};
use crawl_policy::scope::ScopeMode;
use crawl_policy::usage::UsagePurpose;
use crawl_scheduler::Politeness;
use crawl_weburl::{CanonicalUrl, SpellingRules, StepPolicy, canonicalize};
use tokio::runtime::Runtime;

use crate::error::CommandError;
use crate::run::connection_limit::{Connections, connections};
use crate::run::{rounds, seed_schemes};
use crate::settings::seeds;
use crate::settings::{
    Checked, Environment, ForbiddenName, NAME_AND_VERSION, PurposeName, ResourcesName, ScopeName,
    Settings, WhenName, check, contact_mail, first_start, host_locks_file, hours, mark_of,
    own_mark, record, rules_since, user_agent,
};
use crate::terminal::{HasMark, Terminal, start_log};
use crate::values::{FilePath, Span, Switch};

/// A job that can be begun: settings that were checked.
pub(crate) struct Job {
    settings: Settings,
    checked: Checked,
    /// As many as descriptors are left for.
    connections: Connections,
    pub(crate) terminal: Terminal,
}

/// Crawls, and says how it went. The exit code, or why there was no crawl.
pub(crate) fn run(settings: &Settings) -> Result<u8, CommandError> {
    let mut settings = settings.clone();
    let mut checked = check(&settings)?;
    let older = read_text(&checked.output.join("crawl.toml"), MAX_CONFIG_BYTES).unwrap_or_default();
    let older: toml::Table = older.parse().unwrap_or_default();
    keep_what_is_kept(&older, &settings, &checked)?;
    let terminal = Terminal::new(&settings);
    start_log(&settings, &terminal)?;
    let runtime = Runtime::new()
        .map_err(|why| CommandError::disk(format!("can't start the program's threads: {why}")))?;
    runtime.block_on(choose_schemes(
        &older,
        &mut settings,
        &mut checked,
        &terminal,
    ))?;
    for change in changes(&older, &settings, &checked) {
        terminal.say(&change);
    }
    let job = Job {
        connections: connections(settings.politeness.concurrency),
        settings,
        checked,
        terminal,
    };
    let code = runtime.block_on(rounds::run(&job));
    // A look-up of a name may still be under way; nobody waits for its answer.
    runtime.shutdown_background();
    code
}

impl Job {
    /// The engine's configuration for a run that begins now.
    pub(crate) fn config(&self) -> Config {
        let mut config = config(&self.settings, &self.checked);
        config.politeness.concurrency = self.connections.concurrency;
        if !self.connections.may_be_kept {
            config.fetch.keep_alive = Duration::ZERO;
        }
        config
    }

    /// Where the crawl lies.
    pub(crate) fn dir(&self) -> &Path {
        &self.checked.output
    }

    /// Whether the next start takes the crawl.toml in the directory as this user's word.
    pub(crate) fn has_mark(&self) -> HasMark {
        let text = read_text(&self.dir().join("crawl.toml"), MAX_CONFIG_BYTES);
        match mark_of(&text.unwrap_or_default()) {
            Some(_) => HasMark::Yes,
            None => HasMark::No,
        }
    }

    /// The time from the beginning of a round to that of the next.
    pub(crate) fn every(&self) -> Option<Duration> {
        self.settings.recrawl.every.0.map(Span::get)
    }

    /// Whether pages that failed make the run one that failed.
    pub(crate) fn fails_on_error(&self) -> bool {
        self.settings.display.fail_on_error.is_on()
    }
}

/// Settles over which scheme those seeds are asked that were typed without one.
async fn choose_schemes(
    older: &toml::Table,
    settings: &mut Settings,
    checked: &mut Checked,
    terminal: &Terminal,
) -> Result<(), CommandError> {
    let fetch = fetch_config(settings, checked, &user_agent_of(checked));
    let say = |what: &str| terminal.say(what);
    let older = older_seeds(older);
    let chosen = seed_schemes::choose_schemes(&checked.typed, &older, &fetch, say).await?;
    (checked.seeds, checked.public_names) = (chosen.seeds, chosen.public_names);
    // A crawl that goes on is to find whole URLs.
    for typed in &mut settings.seed {
        let seed = seeds::read(typed).map(|seed| seed.url);
        let place = checked
            .typed
            .iter()
            .position(|known| Ok(&known.url) == seed.as_ref());
        if let Some(place) = place {
            *typed = checked.seeds[place].to_string();
        }
    }
    let mut once = HashSet::new();
    checked.seeds.retain(|seed| once.insert(seed.clone()));
    Ok(())
}

/// An archive of a part of the pages, or links of a part, would pass for the whole: what a
/// crawl keeps is settled when it begins.
fn keep_what_is_kept(
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

/// Whether the crawl in a directory keeps something, by its crawl.toml.
fn kept(older: &toml::Table, key: &str) -> Option<Switch> {
    older.get("output")?.get(key)?.as_str()?.parse().ok()
}

/// What this run does otherwise than the earlier ones in the directory, and a user may not have
/// meant.
fn changes(older: &toml::Table, settings: &Settings, checked: &Checked) -> Vec<String> {
    let output = checked.output.display();
    let mut changes = Vec::new();
    let known = older_seeds(older);
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

fn config(settings: &Settings, checked: &Checked) -> Config {
    let scope = &settings.scope;
    let user_agent = user_agent_of(checked);
    Config {
        seeds: checked.seeds.clone(),
        output: checked.output.clone(),
        agent: checked.agent.clone(),
        fetch: fetch_config(settings, checked, &user_agent),
        user_agent,
        contact: checked.contact.clone(),
        profile: settings.politeness.robots.profile(),
        robots_times: robots_times(settings),
        robots_forbidden: match settings.exclusion.robots_forbidden {
            ForbiddenName::Allow => Forbidden::Allow,
            ForbiddenName::Deny => Forbidden::Deny,
        },
        purpose: match settings.exclusion.purpose {
            PurposeName::Unstated => None,
            PurposeName::Search => Some(UsagePurpose::Search),
            PurposeName::AiInput => Some(UsagePurpose::AiInput),
            PurposeName::TrainAi => Some(UsagePurpose::TrainAi),
            PurposeName::Archive => Some(UsagePurpose::Archive),
        },
        scope: ScopeRules {
            mode: match scope.scope {
                ScopeName::Host => ScopeMode::Host,
                ScopeName::Domain => ScopeMode::Domain,
                ScopeName::Prefix => ScopeMode::Prefix,
                ScopeName::Any => ScopeMode::Any,
            },
            include: scope.include.clone(),
            exclude: scope.exclude.clone(),
            max_depth: scope.max_depth.0.map(|depth| narrow(depth.0)),
        },
        budgets: Budgets {
            max_pages: scope.max_pages.0.map(|pages| pages.0),
            max_bytes: scope.max_bytes.0.map(|bytes| bytes.0),
            max_server_time: scope.max_server_time.0.map(Span::get),
            per_host: HostBudget {
                max_pages: scope.max_pages_per_host.0.map(|pages| pages.0),
                max_bytes: scope.max_bytes_per_host.0.map(|bytes| bytes.0),
                max_server_time: scope.max_server_time_per_host.0.map(Span::get),
                max_time: scope.max_time_per_host.0.map(Span::get),
            },
            per_site: settings
                .site
                .iter()
                .map(|(name, terms)| (name.clone(), terms.budget()))
                .collect(),
            max_time: scope.max_time.0.map(Span::get),
        },
        recrawl: settings.recrawl.recrawl.is_on() || settings.recrawl.every.0.is_some(),
        revisits: Revisits {
            least: settings.recrawl.revisit_least.get(),
            most: settings.recrawl.revisit_most.get(),
        },
        traps: trap_rules(settings),
        max_redirects: scope.max_redirects,
        max_sitemap_urls: scope.max_sitemap_urls.0.map(|urls| urls.0),
        retries: settings.fetch.retries,
        sitemaps: scope.sitemaps.is_on(),
        feeds: scope.feeds.is_on(),
        forms: scope.forms.is_on(),
        resources: match scope.resources {
            ResourcesName::Off => Resources::Off,
            ResourcesName::Own => Resources::Own,
            ResourcesName::All => Resources::All,
        },
        politeness: politeness(settings, checked),
        own_site: settings.politeness.own_site.is_on(),
        hosts_in_memory: usize::try_from(settings.politeness.hosts_in_memory.0)
            .unwrap_or(usize::MAX),
        host_locks: host_locks_file(),
        wait_unreachable: settings.politeness.wait_unreachable.get(),
        commit_within: settings.output.commit_within.get(),
        warc: settings.output.warc.is_on(),
        links: settings.output.links.is_on(),
        index: settings.output.index.is_on(),
        software: NAME_AND_VERSION.to_owned(),
        config_text: config_text(settings, &checked.output),
    }
}

fn user_agent_of(checked: &Checked) -> String {
    user_agent(&checked.agent, checked.contact.as_deref())
}

fn trap_rules(settings: &Settings) -> TrapRules {
    let names = &settings.names;
    let when = |name| match name {
        WhenName::Off => StepPolicy::Off,
        WhenName::Evidence => StepPolicy::Evidence,
        WhenName::On => StepPolicy::On,
    };
    TrapRules {
        traps: names.traps.is_on(),
        skip_actions: names.skip_actions.is_on(),
        clean_params: names.clean_params.is_on(),
        naming: SpellingRules {
            default_documents: when(names.default_documents),
            tracking: when(names.tracking_parameters),
            session_ids: when(names.session_ids),
            order: when(names.parameter_order),
            empty: when(names.empty_parameters),
        },
    }
}

fn robots_times(settings: &Settings) -> RobotsTimes {
    let asked = &settings.exclusion;
    let most = asked.robots_max_age.get();
    RobotsTimes {
        most,
        least: RobotsTimes::default().least.min(most),
        first_wait: asked.robots_retry.get(),
        longest_wait: asked.robots_retry_most.get(),
        longest_asked: settings.politeness.max_retry_after.get(),
        last_good: asked.robots_last_good.get(),
    }
}

fn politeness(settings: &Settings, checked: &Checked) -> Politeness {
    let asked = &settings.politeness;
    Politeness {
        delay: asked.delay.get(),
        delay_factor: asked.delay_factor.0,
        per_host: asked.per_host,
        per_address: asked.per_address,
        address_delay: asked.address_delay.get(),
        per_site: asked.per_site.0.map(|count| narrow(count.0)),
        site_delay: asked.site_delay.get(),
        max_rate: asked.max_rate.0.map(|rate| rate.0),
        concurrency: asked.concurrency,
        max_retry_after: asked.max_retry_after.get(),
        jitter: asked.jitter.0,
        quiet: hours(&asked.quiet_hours),
        sites: checked.sites.clone(),
        ..Politeness::default()
    }
}

fn fetch_config(settings: &Settings, checked: &Checked, user_agent: &str) -> FetchConfig {
    let fetch = &settings.fetch;
    let resolve = fetch.resolve.iter().map(|known| ResolveOverride {
        host: known.host.clone(),
        port: known.port,
        addresses: known.addresses.clone(),
    });
    FetchConfig {
        from: contact_mail(checked.contact.as_deref()),
        timeout: fetch.timeout.get(),
        connect_timeout: fetch.connect_timeout.get(),
        first_byte_timeout: fetch.first_byte_timeout.get(),
        idle_timeout: fetch.idle_timeout.get(),
        max_body: fetch.max_body.0,
        body_memory: fetch.body_memory.0,
        name_servers: fetch.name_server.iter().map(|server| server.0).collect(),
        access: checked.access.clone(),
        proxy: (!fetch.proxy.is_empty()).then(|| fetch.proxy.clone()),
        resolve: resolve.collect(),
        allow_private: fetch.allow_private.is_on(),
        allow_public: checked.contact.is_some(),
        typed: checked.seeds.clone(),
        public_names: checked.public_names.clone(),
        referer: fetch.referer.is_on(),
        extra_roots: checked.roots.clone(),
        ..FetchConfig::new(user_agent)
    }
}

/// What goes to crawl.toml. A crawl that goes on keeps the time of its first start.
fn config_text(settings: &Settings, output: &Path) -> String {
    let now = jiff::Timestamp::now();
    let (now, to_the_milli) = (format!("{now:.0}"), format!("{now:.3}"));
    let older = read_text(&output.join("crawl.toml"), MAX_CONFIG_BYTES).ok();
    let first = older.as_deref().and_then(first_start);
    let mut settings = settings.clone();
    settings.output.output = FilePath(output.to_owned());
    let since = older.and_then(|older| rules_since(&older, &settings));
    let since = since.unwrap_or(to_the_milli);
    let first = first.as_deref().unwrap_or(&now);
    let mark = own_mark(&settings, output, &Environment::of_process());
    record(&settings, first, &now, &since, mark.as_deref())
}

/// The seeds in a crawl.toml.
fn older_seeds(table: &toml::Table) -> Vec<CanonicalUrl> {
    let seeds = table.get("seed").and_then(toml::Value::as_array);
    let seeds = seeds.into_iter().flatten().filter_map(toml::Value::as_str);
    seeds
        .filter_map(|seed| canonicalize(None, seed).ok())
        .collect()
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::config;
    use crate::settings::{Settings, check};
    use crawl_engine::Config;

    #[test]
    fn the_library_has_the_defaults_of_the_command_line() {
        let contact = "you@example.org";
        let mut settings = Settings::default();
        settings.seed = vec!["https://example.org/".to_owned()];
        settings.operator.contact = contact.to_owned();
        let checked = check(&settings).unwrap();
        let typed = config(&settings, &checked);
        let (agent, seeds) = (checked.agent.clone(), checked.seeds.clone());
        let version = env!("CARGO_PKG_VERSION");
        let library = Config {
            // Those the program takes from its user's environment.
            host_locks: typed.host_locks.clone(),
            config_text: typed.config_text.clone(),
            ..Config::new(agent, version, Some(contact), seeds, checked.output)
        };
        assert_eq!(format!("{library:#?}"), format!("{typed:#?}"));
    }
}

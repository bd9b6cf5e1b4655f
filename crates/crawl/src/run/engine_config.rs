//! Converts settings into the engine's configuration.

use std::sync::Arc;

use crawl_archive::Disk;
use crawl_engine::{
    AdjustableRules, Config, CrawlBudgets, HostBudget, RevisitIntervals, RunMode, ScopeRules,
    StudyDescription, TrapAvoidance,
};
use crawl_fetcher::robots::RobotsTimeLimits;
use crawl_fetcher::{Contact, FetchConfig, ResolveOverride};
use crawl_records::stored_settings;
use crawl_sample::{SampleDesign, SampleMethod, WalkDesign};
use crawl_scheduler::Politeness;
use crawl_scope::ContentFilter;
use crawl_weburl::SpellingStepPolicies;

use crate::clock;
use crate::settings::{
    CheckedSettings, NAME_AND_VERSION, Settings, UserFolders, audited, budgets, first_start,
    host_keys, host_locks_file, host_table, hours, own_mark, record, record_again, settings_digest,
    shared_settings, user_agent, with_browser,
};
use crate::values::{DocumentReadingLimits, DurationSetting, FilePath};

/// Returns the engine's configuration for checked settings.
pub(super) fn engine_config(settings: &Settings, checked: &CheckedSettings) -> Config {
    let scope = &settings.scope;
    let user_agent = user_agent_of(checked);
    Config {
        seeds: checked.seeds.clone(),
        seed_sitemaps: checked.seed_sitemaps.clone(),
        output: checked.output.clone(),
        // `PreparedCrawl` adds the shared frontier of a crawl. Plans, rechecks and replays have none.
        shared: None,
        agent: checked.agent.clone(),
        fetch: fetch_config(settings, checked, &user_agent),
        user_agent,
        contact: checked.contact.clone(),
        study: study(settings),
        profile: settings.politeness.robots.meaning(),
        robots_times: robots_times(settings),
        robots_forbidden: settings.exclusion.robots_forbidden.meaning(),
        purpose: settings.exclusion.purpose.meaning(),
        scope: ScopeRules {
            mode: scope.scope.meaning(),
            surt: scope.surt.iter().map(|surt| surt.0.clone()).collect(),
            hosts: host_keys(&scope.host),
            exclude_hosts: host_table(&scope.exclude_host),
            include: scope.include.clone(),
            exclude: scope.exclude.clone(),
            max_depth: scope.max_depth.0.map(|depth| narrow(depth.0)),
            hops_off: scope.hops_off_scope,
            seed_terms: checked.seed_terms.clone(),
        },
        wanted: ContentFilter {
            types: scope
                .content_type
                .iter()
                .map(|kind| kind.0.clone())
                .collect(),
            min_size: scope.min_size.0,
            max_size: scope.max_size.0.map(|size| size.0),
            languages: scope.language.iter().map(|range| range.0.clone()).collect(),
        },
        budgets: crawl_budgets(settings, checked),
        recrawl: settings.recrawl.recrawl.is_on() || settings.recrawl.every.0.is_some(),
        revisits: RevisitIntervals {
            least: settings.recrawl.revisit_least.get(),
            most: settings.recrawl.revisit_most.get(),
        },
        traps: trap_rules(settings),
        max_redirects: scope.max_redirects,
        max_sitemap_urls: scope.max_sitemap_urls.0.map(|urls| urls.0),
        retries: settings.fetch.retries,
        // A random walk follows only links, so it reads no sitemaps.
        sitemaps: scope.sitemaps.is_on() && settings.sample.walk.0.is_none(),
        feeds: scope.feeds.is_on(),
        forms: scope.forms.is_on(),
        off_scope_method: scope.off_scope_method.meaning(),
        resources: scope.resources.meaning(),
        politeness: politeness(settings, checked),
        own_site: settings.politeness.own_site.is_on(),
        hosts_in_memory: usize::try_from(settings.politeness.hosts_in_memory.0)
            .unwrap_or(usize::MAX),
        host_locks: host_locks_file(),
        wait_unreachable: settings.politeness.wait_unreachable.get(),
        logins: checked.logins.clone(),
        render: checked.render.clone(),
        cookie_file: checked.cookie_file.clone(),
        commit_within: settings.output.commit_within.get(),
        min_free: settings.output.min_free.0,
        disk: Disk::default(),
        warc: match settings.output.warc.is_on() {
            true => settings.output.warc_compression.meaning(),
            false => None,
        },
        links: settings.output.links.is_on(),
        extract: Arc::clone(&checked.extract),
        index: settings.output.index.is_on(),
        documents: settings.output.index_types.rules(&DocumentReadingLimits {
            timeout: settings.output.document_timeout.get(),
            memory: settings.output.document_memory.0,
            text: settings.output.document_text.0,
        }),
        extent: RunMode::Crawl,
        sample: sample_method(settings),
        software: NAME_AND_VERSION.to_owned(),
        config_text: config_text(settings, checked),
        settings_digest: Some(settings_digest(settings)),
        audited: audited(settings),
    }
}

/// Returns the rules that a running crawl can adopt, from checked settings. `begun_with` is the
/// text of crawl.toml when the run began.
pub(super) fn rules(
    settings: &Settings,
    checked: &CheckedSettings,
    begun_with: &str,
) -> AdjustableRules {
    let (scope, output) = (&settings.scope, &checked.output);
    let mut recorded = settings.clone();
    recorded.output.output = FilePath(output.clone());
    let mark = own_mark(&recorded, output, &UserFolders::of_process());
    AdjustableRules {
        politeness: politeness(settings, checked),
        budgets: crawl_budgets(settings, checked),
        include: scope.include.clone(),
        exclude: scope.exclude.clone(),
        exclude_hosts: host_table(&scope.exclude_host),
        shared_settings: shared_settings(settings, &checked.seeds),
        config_text: record_again(
            &begun_with.parse().unwrap_or_default(),
            &recorded,
            mark.as_deref(),
        ),
        audited: audited(settings),
    }
}

/// Returns the User-Agent header of a crawl with these settings.
pub(super) fn user_agent_of(checked: &CheckedSettings) -> String {
    user_agent(&checked.agent, checked.contact.as_ref())
}

/// Returns how the crawl draws its sample. `None` if it fetches all pages.
pub(super) fn sample_method(settings: &Settings) -> Option<SampleMethod> {
    let sample = &settings.sample;
    let seed = sample.sample_seed.clone();
    if let Some(steps) = sample.walk.0 {
        return Some(SampleMethod::Walk(WalkDesign {
            walkers: sample.walkers,
            steps: steps.0,
            restart: sample.walk_restart.0,
            seed,
        }));
    }
    Some(SampleMethod::Draw(SampleDesign {
        pages: usize::try_from(sample.sample.0?.0).unwrap_or(usize::MAX),
        by: sample.sample_by.meaning(),
        seed,
        frame_depth: sample.frame_depth,
    }))
}

fn trap_rules(settings: &Settings) -> TrapAvoidance {
    let names = &settings.names;
    TrapAvoidance {
        traps: names.traps.is_on(),
        skip_actions: names.skip_actions.is_on(),
        clean_params: names.clean_params.is_on(),
        naming: SpellingStepPolicies {
            default_documents: names.default_documents.meaning(),
            tracking: names.tracking_parameters.meaning(),
            session_ids: names.session_ids.meaning(),
            order: names.parameter_order.meaning(),
            empty: names.empty_parameters.meaning(),
        },
    }
}

/// Returns the limits of the crawl, of its hosts, and of groups of hosts.
pub(super) fn crawl_budgets(settings: &Settings, checked: &CheckedSettings) -> CrawlBudgets {
    let scope = &settings.scope;
    CrawlBudgets {
        max_pages: scope.max_pages.0.map(|pages| pages.0),
        max_bytes: scope.max_bytes.0.map(|bytes| bytes.0),
        max_server_time: scope.max_server_time.0.map(DurationSetting::get),
        per_host: HostBudget {
            max_pages: scope.max_pages_per_host.0.map(|pages| pages.0),
            max_bytes: scope.max_bytes_per_host.0.map(|bytes| bytes.0),
            max_server_time: scope.max_server_time_per_host.0.map(DurationSetting::get),
            max_time: scope.max_time_per_host.0.map(DurationSetting::get),
        },
        per_site: budgets(&settings.site),
        groups: checked.groups.clone(),
        max_time: scope.max_time.0.map(DurationSetting::get),
    }
}

fn robots_times(settings: &Settings) -> RobotsTimeLimits {
    let exclusion = &settings.exclusion;
    let max_age = exclusion.robots_max_age.get();
    RobotsTimeLimits {
        most: max_age,
        least: RobotsTimeLimits::default().least.min(max_age),
        first_wait: exclusion.robots_retry.get(),
        longest_wait: exclusion.robots_retry_most.get(),
        longest_asked: settings.politeness.max_retry_after.get(),
        last_good: exclusion.robots_last_good.get(),
    }
}

fn study(settings: &Settings) -> StudyDescription {
    let operator = &settings.operator;
    let non_empty = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let parts = [&operator.study, &operator.study_page];
    let parts: Vec<&str> = parts
        .into_iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    StudyDescription {
        operator_name: non_empty(&operator.operator_name),
        institution: non_empty(&operator.institution),
        study: non_empty(&parts.join(", ")),
    }
}

fn politeness(settings: &Settings, checked: &CheckedSettings) -> Politeness {
    let politeness = &settings.politeness;
    Politeness {
        delay: politeness.delay.get(),
        delay_factor: politeness.delay_factor.0,
        per_host: politeness.per_host,
        per_address: politeness.per_address,
        address_delay: politeness.address_delay.get(),
        address_rate: politeness.address_rate.0.map(|rate| rate.0),
        per_site: politeness.per_site.0.map(|count| narrow(count.0)),
        site_delay: politeness.site_delay.get(),
        max_rate: politeness.max_rate.0.map(|rate| rate.0),
        concurrency: politeness.concurrency,
        // With a proxy there are no DNS look-ups, since the proxy resolves the names.
        look_ups: match settings.fetch.proxy.is_empty() {
            true => politeness.look_ups,
            false => 0,
        },
        max_retry_after: politeness.max_retry_after.get(),
        jitter: politeness.jitter.0,
        quiet: hours(&politeness.quiet_hours),
        sites: checked.sites.clone(),
        ..Politeness::default()
    }
}

/// Returns the fetcher's configuration, for the crawl and for requests made before it begins.
pub(super) fn fetch_config(
    settings: &Settings,
    checked: &CheckedSettings,
    user_agent: &str,
) -> FetchConfig {
    let fetch = &settings.fetch;
    let resolve = fetch.resolve.iter().map(|known| ResolveOverride {
        host: known.host.clone(),
        port: known.port,
        addresses: known.addresses.clone(),
    });
    FetchConfig {
        from: checked
            .contact
            .as_ref()
            .and_then(Contact::mail)
            .map(str::to_owned),
        timeout: fetch.timeout.get(),
        connect_timeout: fetch.connect_timeout.get(),
        first_byte_timeout: fetch.first_byte_timeout.get(),
        idle_timeout: fetch.idle_timeout.get(),
        keep_alive: fetch.keep_alive.get(),
        max_kept_connections: fetch.max_kept_connections,
        max_body: fetch.max_body.0,
        body_memory: fetch.body_memory.0,
        name_servers: fetch.name_server.iter().map(|server| server.0).collect(),
        name_server_rate: fetch.name_server_rate.0.map(|rate| rate.0),
        access: checked.access.clone(),
        sessions: checked.sessions.clone(),
        proxy: (!fetch.proxy.is_empty()).then(|| fetch.proxy.clone()),
        resolve: resolve.collect(),
        allow_private: fetch.allow_private.is_on(),
        allow_public: checked.contact.is_some(),
        typed: checked.seeds.clone(),
        public_names: checked.public_names.clone(),
        referer: fetch.referer.is_on(),
        signing: checked.signing.clone(),
        extra_roots: checked.roots.clone(),
        ..FetchConfig::new(user_agent)
    }
}

/// Returns the text of crawl.toml. A resumed crawl keeps the time of its first start.
fn config_text(settings: &Settings, checked: &CheckedSettings) -> String {
    let output = &checked.output;
    let now = format!("{:.0}", clock::now());
    let older = stored_settings(output);
    let first = first_start(&older);
    let mut settings = settings.clone();
    settings.output.output = FilePath(output.to_owned());
    let first = first.as_deref().unwrap_or(&now);
    let mark = own_mark(&settings, output, &UserFolders::of_process());
    let record = record(&settings, first, &now, mark.as_deref());
    let browser = checked.render.as_ref();
    with_browser(record, browser.and_then(|render| render.renderer.version()))
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::engine_config;
    use crate::settings::{Settings, check};
    use crawl_engine::{Config, DocumentIndexingSettings};

    #[test]
    fn the_library_has_the_defaults_of_the_command_line() {
        let contact = "you@e.example";
        let mut settings = Settings {
            seed: vec!["https://example.org/".parse().unwrap()],
            ..Settings::default()
        };
        settings.operator.contact = contact.to_owned();
        let checked = check(&settings).unwrap();
        let typed = engine_config(&settings, &checked);
        let (agent, seeds) = (checked.agent.clone(), checked.seeds.clone());
        let version = env!("CARGO_PKG_VERSION");
        let library = Config {
            // These values depend on the program's environment, so they are copied rather than
            // compared.
            host_locks: typed.host_locks.clone(),
            config_text: typed.config_text.clone(),
            settings_digest: typed.settings_digest.clone(),
            audited: typed.audited.clone(),
            documents: DocumentIndexingSettings {
                program: typed.documents.program.clone(),
                ..DocumentIndexingSettings::default()
            },
            ..Config::new(agent, version, checked.contact, seeds, checked.output)
        };
        assert_eq!(format!("{library:#?}"), format!("{typed:#?}"));
    }
}

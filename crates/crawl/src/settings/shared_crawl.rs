//! Settings of a crawl that workers share: which settings are allowed, and which must be the same
//! for all workers.

#[cfg(feature = "shared-frontier")]
use std::path::Path;
use std::time::Duration;

use crawl_engine::SharedCrawlMembership;
use crawl_weburl::CanonicalUrl;
use toml::{Table, Value};

#[cfg(feature = "shared-frontier")]
use super::config_file;
use super::setting_definitions::Settings;
use super::toml_output::{table_of, without_secrets};
#[cfg(feature = "shared-frontier")]
use super::typed_seed;
use crate::error::{CommandError, ErrorCollector};
use crate::shared_frontier::{check_url, opener};

/// Minimum duration of a lease. A worker with a shorter lease would lose its hosts whenever the
/// network stalls.
const MIN_LEASE: Duration = Duration::from_secs(2);
/// Maximum duration of a lease. The hosts of a dead worker with a longer lease would wait for
/// hours.
const MAX_LEASE: Duration = Duration::from_secs(60 * 60);

/// Maximum number of characters in the name of a crawl or a worker.
const MAX_NAME: usize = 100;

/// Tables of settings that may differ between workers.
const OWN_TABLES: [&str; 4] = ["display", "frontier", "output", "crawl"];

/// Keys that may differ between workers because they depend on the machine, each with its table.
const OWN_KEYS: [(&str, &str); 10] = [
    ("politeness", "concurrency"),
    ("politeness", "look-ups"),
    ("politeness", "hosts-in-memory"),
    ("fetch", "body-memory"),
    ("fetch", "max-kept-connections"),
    ("fetch", "proxy"),
    ("fetch", "resolve"),
    ("fetch", "name-server"),
    ("fetch", "ca-file"),
    ("scope", "max-time"),
];

/// Keys of `[output]` that all workers must share. Otherwise the archive or the links of some
/// workers would be missing, and the output would seem complete.
const SHARED_OUTPUT: [&str; 2] = ["warc", "links"];

/// Rejects the name of a crawl or a worker if it is too long or has characters that a terminal
/// would not show.
pub(crate) fn check_name(key: &'static str, name: &str) -> Result<(), CommandError> {
    let is_long = name.chars().count() > MAX_NAME;
    match is_long || name.chars().any(char::is_control) {
        false => Ok(()),
        true => Err(CommandError::usage(format!(
            "unusable --{key} `{name}`: more than {MAX_NAME} characters, or a control character"
        ))
        .hint("it looks like `w1`")
        .about(key)),
    }
}

/// Adds the problems with the settings of a crawl that workers share.
pub(super) fn check_shared(settings: &Settings, problems: &mut ErrorCollector) {
    let place = &settings.frontier;
    for (key, name) in [("crawl", &place.crawl), ("worker", &place.worker)] {
        problems.note(check_name(key, name));
    }
    let mut refuse = |key: &'static str, message: String, hint: &str| {
        let problem = CommandError::usage(message).hint(hint).about(key);
        problems.note::<()>(Err(problem));
    };
    if place.frontier.is_empty() {
        if !place.worker.is_empty() {
            refuse(
                "worker",
                format!("--worker {} needs --frontier", place.worker),
                "add --frontier URL, or remove --worker, which only shared crawls need",
            );
        }
        return;
    }
    let mut sites = settings.site.iter();
    if let Some((site, _)) = sites.find(|(_, terms)| terms.access.keeps_cookies()) {
        let message = format!("[site.\"{site}\"] keeps cookies, which a shared crawl can't");
        refuse(
            "frontier",
            message,
            "crawl this site without --frontier, or remove `cookies` and `login` from its table",
        );
    }
    for url in &place.frontier {
        problems.note(check_url(&url.0).map_err(|why| why.about("frontier")));
    }
    let mut refuse = |key: &'static str, message: String, hint: &str| {
        let problem = CommandError::usage(message).hint(hint).about(key);
        problems.note::<()>(Err(problem));
    };
    if place.worker.is_empty() {
        refuse(
            "worker",
            "--frontier needs --worker".to_owned(),
            "give each worker of the crawl its own name, such as --worker w1",
        );
    }
    let lease = place.frontier_lease.get();
    if !(MIN_LEASE..=MAX_LEASE).contains(&lease) {
        refuse(
            "frontier-lease",
            format!("unusable --frontier-lease {}", place.frontier_lease),
            "give a duration from 2s to 1h",
        );
    }
    for (key, message) in not_shared(settings) {
        refuse(
            key,
            format!("can't share a crawl with {message}"),
            "remove it, or crawl without --frontier",
        );
    }
}

/// Returns the key and the name of each given setting that a shared crawl doesn't support.
fn not_shared(settings: &Settings) -> Vec<(&'static str, String)> {
    let (scope, recrawl) = (&settings.scope, &settings.recrawl);
    let spends = settings
        .group
        .values()
        .any(super::host_groups::HostGroupSettings::has_budget);
    let options = [
        ("sample", settings.sample.sample.0.is_some(), "--sample"),
        ("walk", settings.sample.walk.0.is_some(), "--walk"),
        ("recrawl", recrawl.recrawl.is_on(), "--recrawl"),
        ("every", recrawl.every.0.is_some(), "--every"),
        ("index", settings.output.index.is_on(), "--index on"),
        (
            "max-server-time",
            scope.max_server_time.0.is_some(),
            "--max-server-time",
        ),
        ("group", spends, "budgets in [group]"),
    ];
    let options = options.into_iter().filter(|(_, is_set, _)| *is_set);
    options
        .map(|(key, _, message)| (key, message.to_owned()))
        .collect()
}

/// Returns the server groups that a settings file names, and the name of its crawl: the key
/// `crawl`, or else the host of the first seed.
#[cfg(feature = "shared-frontier")]
pub(crate) fn frontier_of_file(path: &Path) -> Result<(Vec<String>, Option<String>), CommandError> {
    let layer = config_file::read(path)?;
    let named = layer.frontier.crawl.filter(|name| !name.is_empty());
    let first = layer.seed.iter().flatten().next();
    let of_seed = first.and_then(|seed| typed_seed::read(&seed.url).ok());
    let crawl = named.or_else(|| of_seed.map(|seed| seed.url.host_key().to_string()));
    let urls = layer.frontier.frontier.into_iter().flatten();
    Ok((urls.map(|url| url.0).collect(), crawl))
}

/// Returns the crawl that these settings share with other workers. `None` if it isn't shared.
pub(crate) fn shared_crawl(
    settings: &Settings,
    seeds: &[CanonicalUrl],
) -> Option<SharedCrawlMembership> {
    let place = &settings.frontier;
    if place.frontier.is_empty() {
        return None;
    }
    let first = || seeds.first().map(|seed| seed.host_key().to_string());
    let crawl = match place.crawl.is_empty() {
        true => first().unwrap_or_else(|| "crawl".to_owned()),
        false => place.crawl.clone(),
    };
    let urls = place.frontier.iter().map(|url| url.0.clone()).collect();
    let (worker, lease) = (place.worker.clone(), place.frontier_lease.get());
    Some(SharedCrawlMembership {
        frontier: opener(urls, &crawl, &worker, lease, alike(settings, seeds)),
        crawl,
        worker,
        lease,
    })
}

/// Returns the settings that all workers must share, one per line. `None` if the crawl isn't
/// shared.
pub(crate) fn shared_settings(settings: &Settings, seeds: &[CanonicalUrl]) -> Option<String> {
    (!settings.frontier.frontier.is_empty()).then(|| alike(settings, seeds))
}

fn alike(settings: &Settings, seeds: &[CanonicalUrl]) -> String {
    let mut lines: Vec<String> = seeds.iter().map(|seed| format!("seed = {seed}")).collect();
    let all = table_of(&without_secrets(settings));
    for (table, value) in &all {
        let Value::Table(keys) = value else { continue };
        if table == "output" {
            let shared = keys
                .iter()
                .filter(|(key, _)| SHARED_OUTPUT.contains(&key.as_str()));
            lines.extend(shared.map(|(key, value)| format!("{table}.{key} = {value}")));
        } else if !OWN_TABLES.contains(&table.as_str()) {
            add_lines(&mut lines, table, keys);
        }
    }
    lines.sort_unstable();
    lines.join("\n")
}

fn add_lines(lines: &mut Vec<String>, place: &str, keys: &Table) {
    for (key, value) in keys {
        match value {
            Value::Table(below) => add_lines(lines, &format!("{place}.{key}"), below),
            _ if OWN_KEYS.contains(&(place, key.as_str())) => {}
            value => lines.push(format!("{place}.{key} = {value}")),
        }
    }
}

#[cfg(feature = "shared-frontier")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::listed_seed::ListedSeed;

    fn settings(change: impl FnOnce(&mut Settings)) -> Settings {
        let mut settings = Settings {
            seed: vec!["http://127.0.0.1:8080/".parse().unwrap()],
            ..Settings::default()
        };
        settings.frontier.frontier = vec!["postgres://me@db/c".parse().unwrap()];
        settings.frontier.worker = "w1".to_owned();
        change(&mut settings);
        settings
    }

    /// Returns the name of the crawl and the settings that all workers must share.
    fn shared(change: impl FnOnce(&mut Settings)) -> (String, String) {
        let settings = settings(change);
        let url = |seed: &ListedSeed| typed_seed::read(&seed.url).unwrap().url;
        let seeds: Vec<_> = settings.seed.iter().map(url).collect();
        let shared = shared_crawl(&settings, &seeds).unwrap();
        (shared.crawl, alike(&settings, &seeds))
    }

    fn refused(settings: &Settings) -> String {
        let mut problems = ErrorCollector::default();
        check_shared(settings, &mut problems);
        problems.or(()).unwrap_err().to_string()
    }

    #[test]
    fn workers_share_settings_that_affect_fetching() {
        let (crawl, usual) = shared(|_| {});
        assert_eq!(crawl, "127.0.0.1:8080");
        type Change = fn(&mut Settings);
        let changes: [(Change, bool); 8] = [
            (|settings| settings.frontier.worker = "w2".to_owned(), true),
            (|settings| settings.display.verbose = 2, true),
            (|settings| settings.politeness.concurrency = 7, true),
            (
                |settings| settings.fetch.proxy = "http://127.0.0.1:1".to_owned(),
                true,
            ),
            (|settings| settings.scope.max_redirects = 3, false),
            (|settings| settings.politeness.per_address = 3, false),
            (
                |settings| settings.output.links = crate::values::Switch::On,
                false,
            ),
            (
                |settings| {
                    settings
                        .seed
                        .push("http://127.0.0.1:8081/".parse().unwrap());
                },
                false,
            ),
        ];
        for (number, (change, is_alike)) in changes.into_iter().enumerate() {
            assert_eq!(shared(change).1 == usual, is_alike, "{number}");
        }
    }

    #[test]
    fn unshareable_settings_are_refused() {
        type Change = fn(&mut Settings);
        let changes: [(Change, &str); 6] = [
            (
                |settings| settings.frontier.worker.clear(),
                "needs --worker",
            ),
            (
                |settings| settings.frontier.frontier.clear(),
                "needs --frontier",
            ),
            (
                |settings| {
                    settings.frontier.frontier_lease = crate::values::DurationSetting::from_secs(1);
                },
                "--frontier-lease 1s",
            ),
            (
                |settings| settings.output.index = crate::values::Switch::On,
                "--index on",
            ),
            (
                |settings| settings.recrawl.recrawl = crate::values::Switch::On,
                "--recrawl",
            ),
            (
                |settings| settings.frontier.crawl = "a\nb".to_owned(),
                "unusable --crawl",
            ),
        ];
        for (change, expected) in changes {
            let refused = refused(&settings(change));
            assert!(
                refused.contains(expected) && refused.contains("hint: "),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_password_is_taken_from_no_flag_and_no_file() {
        for (url, expected) in [
            ("postgres://me:secret@db/c", "PGPASSWORD"),
            ("postgres://db/c?password=secret", "PGPASSWORD"),
            ("mysql://me:secret@db/c", "postgres://"),
            ("postgres://me@db/c?sslmode=require", "sslmode=verify-full"),
        ] {
            let change = |it: &mut Settings| it.frontier.frontier = vec![url.parse().unwrap()];
            let refused = refused(&settings(change));
            assert!(
                refused.contains(expected) && refused.contains("hint: "),
                "{refused}"
            );
            assert!(!refused.contains("secret"), "{refused}");
        }
    }
}

//! The settings that a crawl must follow, from `crawl.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use crawl_archive::rows::{DelayRow, RereadSettings};
use crawl_archive::{MAX_CONFIG_BYTES, Timestamp, read_text};
use crawl_policy::{ProductToken, Profile};
use crawl_weburl::{HostKey, host_and_port};
use toml::{Table, Value};

use super::SETTLING_MS;
use crate::error::RecordsError;

const SECOND: u64 = 1000;
const HOUR: u64 = 3600 * SECOND;
const DAY: u64 = 24 * HOUR;
/// Maximum duration: a hundred years.
const MAX_MILLIS: f64 = 36_500.0 * 86_400e3;

/// The settings of a crawl that the audit judges by. Durations are in milliseconds, rounded down.
/// Keys missing in `crawl.toml` have their defaults.
#[derive(Debug)]
pub(super) struct AuditedSettings {
    rules: HostRules,
    /// For each reread of the settings, the rules in force before it, in time order.
    earlier: Vec<EarlierRules>,
    pub(super) agent: ProductToken,
    pub(super) profile: Profile,
    /// Whether a status of 401 or 403 for robots.txt forbids all pages of the origin.
    pub(super) forbids: bool,
    /// Maximum age of a copy of robots.txt.
    pub(super) most: u64,
    /// The first and the longest wait between retries of an unreachable robots.txt.
    pub(super) retry: u64,
    pub(super) retry_most: u64,
    /// How long the last good copy of an unreachable robots.txt is used.
    pub(super) last_good: u64,
    /// Timeout of an exchange.
    pub(super) timeout: u64,
    /// Whether the last run kept an archive.
    pub(super) archives: bool,
    /// The time since which these settings are in force.
    since: u64,
    /// The start of the last run, if there were several.
    restarted: Option<u64>,
}

/// The rules in force before a reread of the settings.
#[derive(Debug)]
struct EarlierRules {
    /// The time of the reread.
    until: u64,
    /// The worker that reread the settings, if the directory is gathered from several workers.
    worker: Option<String>,
    rules: HostRules,
}

/// The limits of all hosts.
#[derive(Debug)]
struct HostRules {
    everywhere: HostLimits,
    /// The limits of single hosts and their subdomains, by name.
    by_name: BTreeMap<String, HostLimits>,
}

/// The limits of a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostLimits {
    /// The minimum delay.
    pub(super) delay: u64,
    /// Maximum requests in flight, at least 1.
    pub(super) per_host: usize,
}

impl AuditedSettings {
    /// Reads `crawl.toml` in the directory of a crawl.
    pub(super) fn read(dir: &Path) -> Result<AuditedSettings, RecordsError> {
        File::read(dir, AuditedSettings::of)
    }

    #[cfg(test)]
    pub(super) fn parse(text: &str) -> Result<AuditedSettings, String> {
        AuditedSettings::of(&File::parse(text)?)
    }

    fn of(file: &File) -> Result<AuditedSettings, String> {
        let politeness = |key| file.get("politeness", key);
        let default = HostLimits {
            delay: SECOND,
            per_host: 1,
        };
        let everywhere = default.with(politeness("delay"), politeness("per-host"))?;
        let agent = file.text("operator", "agent").unwrap_or("crawl");
        let started = file.moment("started")?;
        let last_started = file.moment("last-started")?;
        let restarted = last_started.filter(|last| started.is_none_or(|first| first < *last));
        let since = match file.moment("rules-since")? {
            Some(since) => since,
            // The times in `crawl.toml` are in whole seconds, so an event within that second may be
            // older than the settings.
            None => restarted.map_or(0, |restarted| restarted + SECOND),
        };
        let exclusion = |key, default| match file.get("exclusion", key) {
            Some(value) => span(value),
            None => Ok(default),
        };
        let profile = match file.text("politeness", "robots") {
            Some(name) => {
                (name.parse::<Profile>()).map_err(|_| format!("unknown robots profile `{name}`"))?
            }
            None => Profile::default(),
        };
        Ok(AuditedSettings {
            rules: HostRules {
                everywhere,
                by_name: file.by_name(&everywhere, |limits, table| {
                    limits.with(table.get("delay"), table.get("per-host"))
                })?,
            },
            earlier: Vec::new(),
            agent: ProductToken::new(agent).map_err(|why| why.to_string())?,
            profile,
            forbids: file.text("exclusion", "robots-forbidden") == Some("deny"),
            most: exclusion("robots-max-age", DAY)?,
            retry: exclusion("robots-retry", 300 * SECOND)?,
            retry_most: exclusion("robots-retry-most", 6 * HOUR)?,
            last_good: exclusion("robots-last-good", 30 * DAY)?,
            timeout: file.get("fetch", "timeout").map_or(Ok(60 * SECOND), span)?,
            archives: file.text("output", "warc") != Some("off"),
            since,
            restarted,
        })
    }

    /// Adds the rules in force before each reread of the settings.
    pub(super) fn with_earlier<'a>(
        mut self,
        rereads: impl Iterator<Item = &'a DelayRow>,
    ) -> AuditedSettings {
        let earlier = rereads.filter_map(|row| {
            Some(EarlierRules {
                until: row.at,
                worker: row.worker.clone(),
                rules: HostRules::before(row.reread.as_ref()?),
            })
        });
        self.earlier = earlier.collect();
        self
    }

    /// Returns the limits of a host key. The number of requests in flight is the highest that was
    /// ever allowed.
    pub(super) fn of_host(&self, host: &str) -> HostLimits {
        let earlier = self.earlier.iter();
        let earlier = earlier.map(|earlier| earlier.rules.of_host(host));
        earlier.fold(self.rules.of_host(host), |limits, earlier| HostLimits {
            per_host: limits.per_host.max(earlier.per_host),
            ..limits
        })
    }

    /// Returns the limits of a host key that a worker had in force at a moment or just before. If
    /// they changed, returns the loosest.
    pub(super) fn at(&self, host: &str, worker: Option<&str>, moment: u64) -> HostLimits {
        let before = moment.saturating_sub(SETTLING_MS);
        let rules = self.earlier.iter();
        let rules =
            rules.filter(|earlier| earlier.until > before && earlier.worker.as_deref() == worker);
        let mut from = 0;
        let rules = rules.filter(|earlier| std::mem::replace(&mut from, earlier.until) <= moment);
        let earlier: Vec<HostLimits> = rules.map(|it| it.rules.of_host(host)).collect();
        let now = (from <= moment).then(|| self.rules.of_host(host));
        let widest = earlier
            .into_iter()
            .chain(now)
            .reduce(|one, other| HostLimits {
                delay: one.delay.min(other.delay),
                per_host: one.per_host.max(other.per_host),
            });
        widest.unwrap_or(self.rules.everywhere)
    }

    /// Returns whether these settings were in force at that moment.
    pub(super) fn held_at(&self, moment: u64) -> bool {
        moment >= self.since
    }

    /// Returns whether all settings in `crawl.toml` were in force at that moment, not only those whose
    /// earlier values are recorded.
    pub(super) fn held_throughout(&self, moment: u64) -> bool {
        let before = moment.saturating_sub(SETTLING_MS);
        self.held_at(moment) && self.earlier.iter().all(|earlier| earlier.until <= before)
    }

    /// Returns whether the program was restarted after that moment.
    pub(super) fn restarted_after(&self, moment: u64) -> bool {
        self.restarted
            .is_some_and(|restarted| moment < restarted + SECOND)
    }
}

impl HostRules {
    /// Returns the rules in force before a reread of the settings.
    fn before(reread: &RereadSettings) -> HostRules {
        let per_host = |count: u32| usize::try_from(count).unwrap_or(usize::MAX).max(1);
        let everywhere = HostLimits {
            delay: reread.delay,
            per_host: per_host(reread.per_host),
        };
        let sites = reread.sites.iter().map(|(name, site)| {
            let limits = HostLimits {
                delay: site.delay.unwrap_or(everywhere.delay),
                per_host: site.per_host.map_or(everywhere.per_host, per_host),
            };
            (site_key(name), limits)
        });
        HostRules {
            everywhere,
            by_name: sites.collect(),
        }
    }

    /// Returns the limits of a host key; the longest matching name wins.
    fn of_host(&self, host: &str) -> HostLimits {
        let limits = find(&self.by_name, host);
        limits.copied().unwrap_or(self.everywhere)
    }
}

/// Converts the name of a site table to the form of host keys.
fn site_key(name: &str) -> String {
    HostKey::parse(name).map_or_else(|_| name.to_owned(), |key| key.to_string())
}

impl HostLimits {
    fn with(self, delay: Option<&Value>, per_host: Option<&Value>) -> Result<HostLimits, String> {
        let number = |value: &Value| {
            let number = value.as_integer().and_then(|n| usize::try_from(n).ok());
            number.ok_or_else(|| format!("`{value}` is not a number of requests"))
        };
        Ok(HostLimits {
            delay: delay.map_or(Ok(self.delay), span)?,
            per_host: per_host.map_or(Ok(self.per_host), number)?.max(1),
        })
    }
}

/// Returns the value of the longest name that matches a host key, if any name does.
pub(super) fn find<'a, T>(by_name: &'a BTreeMap<String, T>, host: &str) -> Option<&'a T> {
    let (name, port) = host_and_port(host);
    let mut rest = Some(name).filter(|_| !by_name.is_empty());
    while let Some(name) = rest {
        let with_port = port.and_then(|port| by_name.get(&format!("{name}:{port}")));
        if let Some(found) = with_port.or_else(|| by_name.get(name)) {
            return Some(found);
        }
        rest = name.split_once('.').map(|(_, domain)| domain);
    }
    None
}

/// The content of `crawl.toml`.
pub(super) struct File(Table);

impl File {
    /// Reads settings from `crawl.toml` in the directory of a crawl.
    pub(super) fn read<T>(
        dir: &Path,
        settings: impl Fn(&File) -> Result<T, String>,
    ) -> Result<T, RecordsError> {
        let path = dir.join("crawl.toml");
        let text = read_text(&path, MAX_CONFIG_BYTES).map_err(RecordsError::io(&path))?;
        let settings = File::parse(&text).and_then(|file| settings(&file));
        settings.map_err(|what| RecordsError::Config { path, what })
    }

    pub(super) fn parse(text: &str) -> Result<File, String> {
        text.parse::<Table>()
            .map(File)
            .map_err(|why| why.to_string())
    }

    pub(super) fn table(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub(super) fn get(&self, table: &str, key: &str) -> Option<&Value> {
        self.0.get(table)?.get(key)
    }

    pub(super) fn text(&self, table: &str, key: &str) -> Option<&str> {
        self.get(table, key)?.as_str()
    }

    fn moment(&self, key: &str) -> Result<Option<u64>, String> {
        let Some(text) = self.text("crawl", key) else {
            return Ok(None);
        };
        match Timestamp::parse(text) {
            Some(moment) => Ok(Some(moment.as_millis())),
            None => Err(format!("{key}: `{text}` is not a date")),
        }
    }

    /// Returns the limits by host name. For each setting, the longest matching site wins, then the
    /// longest matching host of a group, then the general setting.
    pub(super) fn by_name<T: Clone>(
        &self,
        everywhere: &T,
        with: impl Fn(&T, &Value) -> Result<T, String>,
    ) -> Result<BTreeMap<String, T>, String> {
        let tables = |kind| self.0.get(kind).and_then(Value::as_table);
        let sites = tables("site").into_iter().flatten();
        let sites: BTreeMap<String, &Value> =
            sites.map(|(name, table)| (site_key(name), table)).collect();
        let groups = tables("group").into_iter().flatten();
        let groups: BTreeMap<String, &Value> = groups
            .flat_map(|(_, table)| {
                let hosts = table.get("hosts").and_then(Value::as_array);
                let hosts = hosts.into_iter().flatten().filter_map(Value::as_str);
                hosts.map(move |host| (site_key(host), table))
            })
            .collect();
        let names = sites.keys().chain(groups.keys());
        let limits = names.map(|name| {
            let mut limits = everywhere.clone();
            for table in [find(&groups, name), find(&sites, name)]
                .into_iter()
                .flatten()
            {
                limits = with(&limits, table)?;
            }
            Ok((name.clone(), limits))
        });
        limits.collect()
    }
}

/// Parses durations such as `500ms`, `2s`, `1m30s`, `1h` and `1d` to milliseconds, rounded down;
/// `0` needs no unit. The audit shares no code with the crawl, so it has its own parser.
/// `durations.tsv` tests that both parsers agree.
pub(super) fn span(value: &Value) -> Result<u64, String> {
    let bad = || format!("`{value}` is not a duration");
    let text = match value {
        Value::Integer(0) => "0",
        value => value.as_str().ok_or_else(bad)?,
    };
    let mut rest = match text {
        "" => return Err(bad()),
        "0" => "0s",
        text => text,
    };
    let mut millis = 0.0;
    while !rest.is_empty() {
        let unit_at = rest
            .find(|c: char| c.is_ascii_alphabetic())
            .ok_or_else(bad)?;
        let (number, after) = rest.split_at(unit_at);
        // Reject Rust's other number formats: only digits with a decimal point are allowed.
        let is_digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_digit());
        if !is_digit(number.bytes().next()) || !is_digit(number.bytes().last()) {
            return Err(bad());
        }
        let next = after.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, after) = after.split_at(next.unwrap_or(after.len()));
        let scale = match unit {
            "us" => 0.001,
            "ms" => 1.0,
            "s" => 1e3,
            "m" => 60e3,
            "h" => 3600e3,
            "d" => 86400e3,
            _ => return Err(bad()),
        };
        let number: f64 = number.parse().map_err(|_| bad())?;
        millis += number * scale;
        rest = after;
    }
    if millis > MAX_MILLIS {
        return Err(bad());
    }
    // Half a microsecond compensates for rounding errors of binary fractions. The cast turns a
    // number that is too large into the maximum.
    Ok((millis + 0.0005) as u64)
}

#[cfg(test)]
mod tests {
    use crawl_archive::rows::{DelayRow, RereadSettings, RereadSite};

    use super::{AuditedSettings, File, span};

    #[test]
    fn durations_as_the_file_has_them() {
        for line in include_str!("durations.tsv").lines() {
            let (text, millis) = line.split_once('\t').unwrap();
            let millis_read = span(&toml::Value::from(text)).ok();
            assert_eq!(millis_read, millis.parse().ok(), "{text}");
        }
    }

    fn limits(text: &str) -> AuditedSettings {
        AuditedSettings::of(&File(text.parse().unwrap())).unwrap()
    }

    #[test]
    fn the_longest_name_wins() {
        let limits = limits(
            "[politeness]\ndelay = \"2s\"\n[site.\"example.org\"]\ndelay = \"10s\"\n\
             [site.\"a.example.org\"]\nper-host = 3\n[site.\"127.0.0.1:81\"]\ndelay = \"0s\"\n",
        );
        let check = |host: &str| {
            let limits = limits.of_host(host);
            (limits.delay, limits.per_host)
        };
        assert_eq!(check("example.com"), (2000, 1));
        assert_eq!(check("www.example.org"), (10_000, 1));
        assert_eq!(check("a.example.org"), (2000, 3));
        assert_eq!(check("127.0.0.1:81"), (0, 1));
        assert_eq!(check("127.0.0.1:82"), (2000, 1));
    }

    #[test]
    fn a_site_wins_over_its_group_key_by_key() {
        let limits = limits(
            "[group.a]\nhosts = [\"Example.org\", \"b.example\"]\ndelay = \"5s\"\nper-host = 2\n\
             [site.\"www.example.org\"]\ndelay = \"10s\"\n[site.\"example\"]\nper-host = 3\n",
        );
        let check = |host: &str| {
            let limits = limits.of_host(host);
            (limits.delay, limits.per_host)
        };
        assert_eq!(check("example.org"), (5000, 2));
        assert_eq!(check("a.www.example.org"), (10_000, 2));
        assert_eq!(check("b.example"), (5000, 3));
        assert_eq!(check("c.example"), (1000, 3));
        assert_eq!(check("example.com"), (1000, 1));
    }

    #[test]
    fn reread_settings_apply_from_then_on() {
        let before = |delay, per_host, site: Option<u64>| {
            let site = site.map(|delay| RereadSite {
                delay: Some(delay),
                per_host: None,
            });
            RereadSettings {
                delay,
                per_host,
                sites: site
                    .map(|site| ("a.example".to_owned(), site))
                    .into_iter()
                    .collect(),
                ..RereadSettings::default()
            }
        };
        let reread = |at, worker: Option<&str>, before| DelayRow {
            at,
            worker: worker.map(str::to_owned),
            reread: Some(before),
            ..DelayRow::default()
        };
        let rereads = [
            reread(10_000, None, before(1_000, 1, None)),
            reread(15_000, Some("w2"), before(2_000, 5, None)),
            reread(20_000, None, before(4_000, 3, Some(9_000))),
        ];
        let limits = limits("[politeness]\ndelay = \"6s\"\n[site.\"a.example\"]\nper-host = 2\n");
        let limits = limits.with_earlier(rereads.iter());
        let check = |moment, a, b| {
            let at = |host| {
                let limits = limits.at(host, None, moment);
                (limits.delay, limits.per_host)
            };
            assert_eq!((at("www.a.example"), at("b.example")), (a, b), "{moment}");
        };
        check(9_999, (1_000, 1), (1_000, 1));
        // Shortly after a change, requests may follow either the old or the new settings.
        check(10_000, (1_000, 3), (1_000, 3));
        check(10_999, (1_000, 3), (1_000, 3));
        check(11_000, (9_000, 3), (4_000, 3));
        check(20_500, (6_000, 3), (4_000, 3));
        check(21_000, (6_000, 2), (6_000, 1));
        let of_other = limits.at("b.example", Some("w2"), 14_000);
        assert_eq!((of_other.delay, of_other.per_host), (2_000, 5));
        assert_eq!(limits.of_host("b.example").per_host, 5, "the most ever");
    }

    #[test]
    fn settings_of_earlier_runs_are_unknown() {
        let one = limits(
            "[crawl]\nstarted = \"1970-01-01T00:01:00Z\"\nlast-started = \"1970-01-01T00:01:00Z\"\n",
        );
        assert!(one.held_at(0) && !one.restarted_after(0));
        let two = "[crawl]\nstarted = \"1970-01-01T00:01:00Z\"\nlast-started = \"1970-01-01T00:02:00Z\"\n";
        let unknown = limits(two);
        assert!(!unknown.held_at(120_999) && unknown.held_at(121_000));
        assert!(unknown.restarted_after(100_000) && !unknown.restarted_after(121_000));
        let recorded = limits(&format!("{two}rules-since = \"1970-01-01T00:01:00.5Z\"\n"));
        assert!(recorded.held_at(60_500) && recorded.restarted_after(60_500));
    }
}

//! Reads the settings that a crawl must follow from the tables and keys of `crawl.toml`.

use std::collections::BTreeMap;

use crawl_policy::{ProductToken, RobotsProfile};
use toml::{Table, Value};

use super::settings_file::{CrawlTomlTables, find, span};
use super::shared_limit_settings::SharedLimits;

const SECOND: u64 = 1000;
const HOUR: u64 = 3600 * SECOND;
const DAY: u64 = 24 * HOUR;

/// The settings that a crawl had to follow for some time. Durations are in milliseconds, rounded
/// down. Missing keys have their defaults.
#[derive(Debug)]
pub(super) struct AuditedSettings {
    everywhere: HostRequestLimits,
    /// Limits for a host and its subdomains that override `everywhere`, by host name.
    by_name: BTreeMap<String, HostRequestLimits>,
    pub(super) shared: SharedLimits,
    pub(super) reader: RobotsInterpretation,
    /// Whether a status of 401 or 403 for robots.txt forbids all pages of the origin.
    pub(super) forbids: bool,
    /// Maximum age of a copy of robots.txt before it must be fetched again, in milliseconds.
    pub(super) most: u64,
    /// The first wait before an unreachable robots.txt is fetched again, in milliseconds.
    pub(super) retry: u64,
    /// The longest wait before an unreachable robots.txt is fetched again, in milliseconds.
    pub(super) retry_most: u64,
    /// How long the last good copy of an unreachable robots.txt is used, in milliseconds.
    pub(super) last_good: u64,
    /// Maximum duration of one HTTP exchange, in milliseconds.
    pub(super) timeout: u64,
}

/// How the crawl reads robots.txt: the user agent whose group applies, and the parsing rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RobotsInterpretation {
    pub(crate) agent: ProductToken,
    pub(crate) profile: RobotsProfile,
}

impl RobotsInterpretation {
    /// Reads the settings that decide how robots.txt is read from the tables of `crawl.toml`.
    pub(crate) fn of(tables: &Table) -> Result<RobotsInterpretation, String> {
        let text = |table: &str, key: &str| tables.get(table)?.get(key)?.as_str();
        let agent = text("operator", "agent").unwrap_or("crawl");
        let profile = match text("politeness", "robots") {
            Some(name) => (name.parse::<RobotsProfile>())
                .map_err(|_| format!("unknown robots profile `{name}`"))?,
            None => RobotsProfile::default(),
        };
        Ok(RobotsInterpretation {
            agent: ProductToken::new(agent).map_err(|why| why.to_string())?,
            profile,
        })
    }
}

/// The limits of a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostRequestLimits {
    /// Minimum delay from the end of a request to the start of the next, in milliseconds.
    pub(super) delay: u64,
    /// Maximum requests in flight, at least 1.
    pub(super) per_host: usize,
}

impl AuditedSettings {
    pub(super) fn of(file: &CrawlTomlTables) -> Result<AuditedSettings, String> {
        let politeness = |key| file.get("politeness", key);
        let default = HostRequestLimits {
            delay: SECOND,
            per_host: 1,
        };
        let everywhere = default.with(politeness("delay"), politeness("per-host"))?;
        let exclusion = |key, default| match file.get("exclusion", key) {
            Some(value) => span(value),
            None => Ok(default),
        };
        Ok(AuditedSettings {
            everywhere,
            by_name: file.by_name(&everywhere, |limits, table| {
                limits.with(table.get("delay"), table.get("per-host"))
            })?,
            shared: SharedLimits::of(file)?,
            reader: RobotsInterpretation::of(file.tables())?,
            forbids: file.text("exclusion", "robots-forbidden") == Some("deny"),
            most: exclusion("robots-max-age", DAY)?,
            retry: exclusion("robots-retry", 300 * SECOND)?,
            retry_most: exclusion("robots-retry-most", 6 * HOUR)?,
            last_good: exclusion("robots-last-good", 30 * DAY)?,
            timeout: file.get("fetch", "timeout").map_or(Ok(60 * SECOND), span)?,
        })
    }

    /// Returns the limits of a host key. If several names match the key, the longest one wins.
    pub(super) fn of_host(&self, host: &str) -> HostRequestLimits {
        let limits = find(&self.by_name, host);
        limits.copied().unwrap_or(self.everywhere)
    }

    /// Returns whether every robots.txt has the same meaning under these settings and `other`.
    pub(super) fn reads_robots_as(&self, other: &AuditedSettings) -> bool {
        (&self.reader, self.forbids, self.last_good)
            == (&other.reader, other.forbids, other.last_good)
    }
}

impl HostRequestLimits {
    fn with(
        self,
        delay: Option<&Value>,
        per_host: Option<&Value>,
    ) -> Result<HostRequestLimits, String> {
        let number = |value: &Value| {
            let number = value.as_integer().and_then(|n| usize::try_from(n).ok());
            number.ok_or_else(|| format!("`{value}` is not a number of requests"))
        };
        Ok(HostRequestLimits {
            delay: delay.map_or(Ok(self.delay), span)?,
            per_host: per_host.map_or(Ok(self.per_host), number)?.max(1),
        })
    }
}

/// The maximum requests in flight to each host, by `crawl.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestsInFlightLimits {
    everywhere: usize,
    by_name: BTreeMap<String, usize>,
}

impl RequestsInFlightLimits {
    /// Reads the limits from the tables of a `crawl.toml`. Without a readable limit, it is 1.
    pub(crate) fn read(crawl_toml: &Table) -> RequestsInFlightLimits {
        let settings = AuditedSettings::of(&CrawlTomlTables::of(crawl_toml.clone()));
        settings.map_or_else(
            |_| RequestsInFlightLimits::default(),
            |settings| RequestsInFlightLimits {
                everywhere: settings.everywhere.per_host,
                by_name: (settings.by_name.into_iter())
                    .map(|(name, limits)| (name, limits.per_host))
                    .collect(),
            },
        )
    }

    /// Returns the limit of a host key, at least 1.
    pub(crate) fn of_host(&self, host: &str) -> usize {
        let limit = find(&self.by_name, host);
        limit.copied().unwrap_or(self.everywhere)
    }
}

impl Default for RequestsInFlightLimits {
    fn default() -> RequestsInFlightLimits {
        RequestsInFlightLimits {
            everywhere: 1,
            by_name: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AuditedSettings, CrawlTomlTables};

    fn limits(text: &str) -> AuditedSettings {
        AuditedSettings::of(&CrawlTomlTables::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn the_longest_name_wins() {
        let limits = limits(
            "[politeness]\ndelay = \"2s\"\n[site.\"example.org\"]\ndelay = \"10s\"\n\
             [site.\"a.example.org\"]\nper-host = 3\n[site.\"127.0.0.1:81\"]\ndelay = \"0s\"\n\
             [site.\"127.0.0.2\"]\ndelay = \"3s\"\n",
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
        assert_eq!(check("127.0.0.2:8080"), (3000, 1));
        assert_eq!(check("127.0.0.2"), (3000, 1));
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
}

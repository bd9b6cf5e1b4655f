//! Politeness settings for single hosts, in the tables `[site."HOST"]` and `[group.NAME]`.

use std::time::Duration;

use crawl_scheduler::{DailyHours, PolitenessOverride, PolitenessOverrides};
use crawl_weburl::{HostPatternMap, host_and_port};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::CommandError;
use crate::values::{
    CountSetting, DayHours, DurationSetting, JsonSchema as _, NonNegativeNumber, OptionalLimit,
};

/// The keys of the politeness settings, written with underscores.
pub(super) const FIELDS: [&str; 6] = [
    "delay",
    "delay_factor",
    "per_host",
    "per_site",
    "site_delay",
    "quiet_hours",
];

/// Maximum delay as a multiple of the response time. A larger factor could keep a host
/// pending for the whole crawl.
pub(super) const MAX_DELAY_FACTOR: f64 = 1_000_000.0;

/// Overrides of `[politeness]` for some hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct HostPolitenessOverrides {
    pub(super) delay: Option<DurationSetting>,
    delay_factor: Option<NonNegativeNumber>,
    pub(super) per_host: Option<u32>,
    per_site: Option<OptionalLimit<CountSetting>>,
    site_delay: Option<DurationSetting>,
    quiet_hours: Option<Vec<DayHours>>,
}

impl HostPolitenessOverrides {
    /// Returns the keys, each with the schema of its value.
    pub(super) fn schemas() -> [(&'static str, Value); FIELDS.len()] {
        [
            (FIELDS[0], DurationSetting::schema()),
            (FIELDS[1], NonNegativeNumber::schema()),
            (FIELDS[2], u32::schema()),
            (FIELDS[3], OptionalLimit::<CountSetting>::schema()),
            (FIELDS[4], DurationSetting::schema()),
            (FIELDS[5], Vec::<DayHours>::schema()),
        ]
    }

    /// Rejects settings that would block every request; `table` names the table in messages.
    pub(super) fn check(&self, table: &str) -> Result<(), CommandError> {
        let refuse = |key, message: String| {
            let problem = CommandError::usage(message).about(key);
            Err(problem.hint("remove the key to use the crawl's value"))
        };
        let per_site = self.per_site.and_then(|limit| limit.0);
        for (key, is_zero) in [
            ("per-host", self.per_host == Some(0)),
            ("per-site", per_site == Some(CountSetting(0))),
        ] {
            if is_zero {
                let message = format!("{key} is 0 in {table}, so nothing could be fetched");
                return refuse(key, message);
            }
        }
        if self.quiet_hours.as_deref().is_some_and(DayHours::cover_day) {
            let message = format!("the quiet hours in {table} cover the whole day");
            return refuse("quiet-hours", message);
        }
        match self.delay_factor {
            Some(factor) if factor.0 > MAX_DELAY_FACTOR => {
                let message =
                    format!("delay-factor {factor} in {table} is more than {MAX_DELAY_FACTOR}");
                refuse("delay-factor", message)
            }
            _ => Ok(()),
        }
    }

    /// Returns the longer of `delay` and `site_delay`. `None` if neither is set.
    pub(super) fn longest_delay(&self) -> Option<Duration> {
        self.delay.max(self.site_delay).map(DurationSetting::get)
    }

    /// Merges two sets of settings: values of `self` win over those of `beneath`.
    fn over(&self, beneath: &HostPolitenessOverrides) -> HostPolitenessOverrides {
        HostPolitenessOverrides {
            delay: self.delay.or(beneath.delay),
            delay_factor: self.delay_factor.or(beneath.delay_factor),
            per_host: self.per_host.or(beneath.per_host),
            per_site: self.per_site.or(beneath.per_site),
            site_delay: self.site_delay.or(beneath.site_delay),
            quiet_hours: (self.quiet_hours.clone()).or_else(|| beneath.quiet_hours.clone()),
        }
    }

    /// Converts these settings to the scheduler's type.
    fn politeness(&self) -> PolitenessOverride {
        PolitenessOverride {
            delay: self.delay.map(DurationSetting::get),
            delay_factor: self.delay_factor.map(|factor| factor.0),
            per_host: self.per_host,
            // `None` would mean the limit of the whole crawl, so `unlimited` becomes the highest
            // number.
            per_site: (self.per_site).map(|OptionalLimit(max)| {
                max.map_or(u32::MAX, |max| u32::try_from(max.0).unwrap_or(u32::MAX))
            }),
            site_delay: self.site_delay.map(DurationSetting::get),
            quiet: self.quiet_hours.as_deref().map(hours),
        }
    }
}

/// Builds the scheduler's table for all names in the tables of sites and groups. If a `[site]` and
/// a `[group]` table set the same key for a host, the `[site]` table wins.
pub(super) fn overrides(
    sites: &HostPatternMap<&HostPolitenessOverrides>,
    groups: &HostPatternMap<&HostPolitenessOverrides>,
) -> PolitenessOverrides {
    let mut overrides = PolitenessOverrides::default();
    for (name, _) in sites.iter().chain(groups.iter()) {
        // Look up the settings as for a host with exactly this name. The settings of a parent
        // domain may apply.
        let (host, port) = host_and_port(name);
        let site = sites.find_name(host, port).map(|(_, terms)| *terms);
        let group = groups.find_name(host, port).map(|(_, terms)| *terms);
        let terms = match (site, group) {
            (Some(site), Some(group)) => site.over(group),
            (site, group) => site.or(group).cloned().unwrap_or_default(),
        };
        // A name with both a `[site]` and a `[group]` table occurs twice in the loop, with the same
        // merged settings. Ignore the error of inserting them again.
        let _ = overrides.insert(name, terms.politeness());
    }
    overrides
}

/// Converts these hours to the scheduler's type.
pub(crate) fn hours(hours: &[DayHours]) -> Vec<DailyHours> {
    let span = |hours: &DayHours| DailyHours::new(hours.from, hours.until);
    hours.iter().map(span).collect()
}

#[cfg(test)]
mod tests {
    use crawl_weburl::HostKey;

    use super::super::config_file::parse;
    use super::super::host_groups::terms_by_host;
    use super::super::sites::by_name;
    use super::{HostPolitenessOverrides, overrides};

    #[test]
    fn settings_that_would_block_a_host_are_refused() {
        for (key, message) in [
            (
                "per-host = 0",
                "per-host is 0 in [x], so nothing could be fetched",
            ),
            (
                "per-site = 0",
                "per-site is 0 in [x], so nothing could be fetched",
            ),
            (
                "delay-factor = 1000001",
                "delay-factor 1000001 in [x] is more than 1000000",
            ),
            (
                "quiet-hours = [\"00:00-12:00\", \"12:00-24:00\"]",
                "the quiet hours in [x] cover the whole day",
            ),
        ] {
            let terms: HostPolitenessOverrides = toml::from_str(key).unwrap();
            let error = terms.check("[x]").unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        let terms: HostPolitenessOverrides = toml::from_str("delay-factor = 1000000").unwrap();
        assert!(terms.check("[x]").is_ok());
    }

    #[test]
    fn a_table_may_lift_the_limit_of_a_site() {
        let terms: HostPolitenessOverrides = toml::from_str("per-site = \"unlimited\"").unwrap();
        assert_eq!(terms.politeness().per_site, Some(u32::MAX));
        let terms: HostPolitenessOverrides = toml::from_str("per-site = 3").unwrap();
        assert_eq!(terms.politeness().per_site, Some(3));
        assert_eq!(
            HostPolitenessOverrides::default().politeness().per_site,
            None
        );
    }

    #[test]
    fn keys_of_a_host_table_override_those_of_its_group() {
        let text = "[group.a]\nhosts = [\"example.org\", \"b.example\"]\ndelay = \"5s\"\n\
                    per-host = 2\n[site.\"www.example.org\"]\ndelay = \"10s\"\n\
                    [site.\"example\"]\nper-host = 3\nquiet-hours = [\"07:00-19:00\"]\n";
        let settings = parse(text, "x").unwrap().settle();
        let sites = by_name(&settings.site).unwrap();
        let table = overrides(&sites, &terms_by_host(&settings.group));
        let check = |host: &str, delay: u64, per_host, quiet: bool| {
            let (_, found) = table.find(&HostKey::parse(host).unwrap()).unwrap();
            assert_eq!(
                found.delay.map_or(0, |delay| delay.as_secs()),
                delay,
                "{host}"
            );
            assert_eq!(
                (found.per_host, found.quiet.is_some()),
                (per_host, quiet),
                "{host}"
            );
        };
        check("example.org", 5, Some(2), false);
        check("a.example.org", 5, Some(2), false);
        check("www.example.org", 10, Some(2), false);
        check("b.example", 5, Some(3), true);
        check("c.example", 0, Some(3), true);
        let unlisted = HostKey::parse("example.com").unwrap();
        assert!(table.find(&unlisted).is_none());
        assert_eq!(settings.longest_delay().as_secs(), 10);
    }
}

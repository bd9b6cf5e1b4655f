//! Settings for single hosts: the tables `[site."example.org"]` of a file.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crawl_engine::HostBudget;
use crawl_fetcher::HostRequestHeaders;
use crawl_weburl::HostPatternMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::host_credentials::{self, HostCredentialSettings};
use super::host_politeness::{self, HostPolitenessOverrides};
use crate::error::{CommandError, ErrorCollector};
use crate::values::{ByteSize, CountSetting, DurationSetting, JsonSchema as _, OptionalLimit};

/// The first part of the tables' names: `[site."HOST"]`.
pub(super) const TABLE: &str = "site";

/// The keys of a `[site]` table, written with underscores.
pub(super) const FIELDS: &[&str] = &[
    host_politeness::FIELDS[0],
    host_politeness::FIELDS[1],
    host_politeness::FIELDS[2],
    host_politeness::FIELDS[3],
    host_politeness::FIELDS[4],
    host_politeness::FIELDS[5],
    "max_pages",
    "max_bytes",
    "max_server_time",
    "max_time",
    host_credentials::FIELDS[0],
    host_credentials::FIELDS[1],
    host_credentials::FIELDS[2],
    host_credentials::FIELDS[3],
    host_credentials::FIELDS[4],
];

/// The `[site]` tables by name: a host, whose subdomains are included, or an address.
pub(crate) type SiteSettingsByName = BTreeMap<String, SiteSettings>;

/// Settings of the hosts that a `[site]` table covers. A key means the same as the key of this name
/// in other tables. Limits apply to each host separately.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct SiteSettings {
    #[serde(flatten)]
    pub(super) politeness: HostPolitenessOverrides,
    max_pages: Option<OptionalLimit<CountSetting>>,
    max_bytes: Option<OptionalLimit<ByteSize>>,
    max_server_time: Option<OptionalLimit<DurationSetting>>,
    max_time: Option<OptionalLimit<DurationSetting>>,
    /// Credentials and header fields, only for this exact host, not for its subdomains.
    #[serde(flatten)]
    pub(super) access: HostCredentialSettings,
}

impl SiteSettings {
    /// Returns the keys, each with the schema of its value.
    pub(super) fn schemas() -> [(&'static str, Value); FIELDS.len()] {
        let [basic_auth, headers, cookies, plain_http, login] = HostCredentialSettings::schemas();
        let [
            delay,
            delay_factor,
            per_host,
            per_site,
            site_delay,
            quiet_hours,
        ] = HostPolitenessOverrides::schemas();
        [
            delay,
            delay_factor,
            per_host,
            per_site,
            site_delay,
            quiet_hours,
            ("max_pages", OptionalLimit::<CountSetting>::schema()),
            ("max_bytes", OptionalLimit::<ByteSize>::schema()),
            (
                "max_server_time",
                OptionalLimit::<DurationSetting>::schema(),
            ),
            ("max_time", OptionalLimit::<DurationSetting>::schema()),
            basic_auth,
            headers,
            cookies,
            plain_http,
            login,
        ]
    }

    /// Returns whether the crawl logs in to the site.
    pub(crate) fn has_login(&self) -> bool {
        self.access.login.is_some()
    }

    /// Returns whether the crawl sends back cookies of the site.
    pub(crate) fn keeps_cookies(&self) -> bool {
        self.access.keeps_cookies()
    }

    /// Returns the budget that each covered host has. `None` in the budget means the limit of the
    /// whole crawl, so `unlimited` becomes the highest number.
    fn budget(&self) -> HostBudget {
        let time = |limit: OptionalLimit<DurationSetting>| {
            limit.0.map_or(Duration::MAX, DurationSetting::get)
        };
        HostBudget {
            max_pages: (self.max_pages).map(|OptionalLimit(max)| max.map_or(u64::MAX, |max| max.0)),
            max_bytes: (self.max_bytes).map(|OptionalLimit(max)| max.map_or(u64::MAX, |max| max.0)),
            max_server_time: self.max_server_time.map(time),
            max_time: self.max_time.map(time),
        }
    }
}

/// Returns the sites of `read`, but with the credentials and header fields of `current`.
pub(super) fn with_access_of(
    current: &SiteSettingsByName,
    read: &SiteSettingsByName,
) -> SiteSettingsByName {
    let names: BTreeSet<&String> = current.keys().chain(read.keys()).collect();
    let merged = names.into_iter().filter_map(|name| {
        let is_in_both = current.contains_key(name) && read.contains_key(name);
        let of = |sites: &SiteSettingsByName| sites.get(name).cloned().unwrap_or_default();
        let terms = SiteSettings {
            access: of(current).access,
            ..of(read)
        };
        (is_in_both || terms != SiteSettings::default()).then(|| (name.clone(), terms))
    });
    merged.collect()
}

/// Returns the budgets by table name. Unusable names are ignored here, because [`by_name`] reports
/// them.
pub(crate) fn budgets(sites: &SiteSettingsByName) -> HostPatternMap<HostBudget> {
    let mut table = HostPatternMap::default();
    for (name, terms) in sites {
        let _ = table.insert(name, terms.budget());
    }
    table
}

/// Returns the politeness settings by table name.
///
/// # Errors
/// All problems found.
pub(super) fn by_name(
    sites: &SiteSettingsByName,
) -> Result<HostPatternMap<&HostPolitenessOverrides>, CommandError> {
    let mut problems = ErrorCollector::default();
    let mut table = HostPatternMap::default();
    for (name, terms) in sites {
        let politeness = terms.politeness.check(&format!("[site.\"{name}\"]"));
        problems.note(politeness.map_err(|problem| problem.about_site(name)));
        problems.note(table.insert(name, &terms.politeness).map_err(|why| {
            CommandError::usage(format!("unusable table [site.\"{name}\"]: {why}"))
                .hint(
                    "use a host as its name, as in [site.\"example.org\"], which includes \
                       subdomains",
                )
                .about_site(name)
        }));
    }
    problems.or(table)
}

/// Returns credentials and header fields for each host that has any.
///
/// # Errors
/// All problems found.
pub(super) fn accesses(
    sites: &SiteSettingsByName,
) -> Result<Vec<HostRequestHeaders>, CommandError> {
    let mut problems = ErrorCollector::default();
    let with_access = sites.iter().filter(|(_, terms)| !terms.access.is_empty());
    let accesses = with_access.filter_map(|(host, terms)| {
        let wrong = match terms.access.access(host) {
            Ok(access) => return Some(access),
            Err(wrong) => wrong,
        };
        for (key, why) in wrong {
            let message = format!("unusable `{key}` in [site.\"{host}\"]: {why}");
            let problem = CommandError::usage(message)
                .hint("values may come from the environment: `env:NAME` uses the variable NAME");
            problems.note::<()>(Err(problem.about(key).about_site(host)));
        }
        None
    });
    let accesses = accesses.collect();
    problems.or(accesses)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crawl_weburl::HostKey;

    use super::budgets;
    use crate::settings::config_file::parse;

    #[test]
    fn a_table_may_lift_the_crawls_limits() {
        let text = "[site.\"a.example\"]\nmax-pages = \"unlimited\"\nmax-time = \"unlimited\"\n\
                    max-bytes = \"1kB\"\n";
        let sites = parse(text, "x").unwrap().site.unwrap();
        let table = budgets(&sites);
        let (_, own) = table.find(&HostKey::parse("a.example").unwrap()).unwrap();
        assert_eq!(
            (own.max_pages, own.max_bytes),
            (Some(u64::MAX), Some(1_000))
        );
        assert_eq!(
            (own.max_time, own.max_server_time),
            (Some(Duration::MAX), None)
        );
    }
}

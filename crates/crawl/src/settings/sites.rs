//! Other settings for some hosts: the tables `[site."example.org"]` of a file.

use std::collections::BTreeMap;

use crawl_engine::HostBudget;
use crawl_fetcher::HostAccess;
use crawl_scheduler::{DailyHours, PolitenessOverride, PolitenessOverrides};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::host_access::{self, AccessTerms};
use crate::error::CommandError;
use crate::values::DayHours;
use crate::values::{Count, Factor, SchemaValue as _, Size, Span};

/// The name of the tables.
pub(super) const TABLE: &str = "site";

/// The keys of such a table, with underscores.
pub(super) const FIELDS: &[&str] = &[
    "delay",
    "delay_factor",
    "per_host",
    "per_site",
    "site_delay",
    "quiet_hours",
    "max_pages",
    "max_bytes",
    "max_server_time",
    "max_time",
    host_access::FIELDS[0],
    host_access::FIELDS[1],
    host_access::FIELDS[2],
    host_access::FIELDS[3],
];

/// By host name (which stands for its subdomains too) or address.
pub(crate) type Sites = BTreeMap<String, SiteTerms>;

/// The settings that differ for the hosts of one name. Keys mean what they mean for every host; the
/// bounds are those of one host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct SiteTerms {
    delay: Option<Span>,
    delay_factor: Option<Factor>,
    per_host: Option<u32>,
    per_site: Option<u32>,
    site_delay: Option<Span>,
    quiet_hours: Option<Vec<DayHours>>,
    max_pages: Option<Count>,
    max_bytes: Option<Size>,
    max_server_time: Option<Span>,
    max_time: Option<Span>,
    /// For this very host alone, not for its subdomains.
    #[serde(flatten)]
    pub(super) access: AccessTerms,
}

impl SiteTerms {
    /// The keys, each with the schema of its value.
    pub(super) fn schemas() -> [(&'static str, Value); FIELDS.len()] {
        let [basic_auth, headers, cookies, plain_http] = AccessTerms::schemas();
        [
            ("delay", Span::schema()),
            ("delay_factor", Factor::schema()),
            ("per_host", u32::schema()),
            ("per_site", u32::schema()),
            ("site_delay", Span::schema()),
            ("quiet_hours", Vec::<DayHours>::schema()),
            ("max_pages", Count::schema()),
            ("max_bytes", Size::schema()),
            ("max_server_time", Span::schema()),
            ("max_time", Span::schema()),
            basic_auth,
            headers,
            cookies,
            plain_http,
        ]
    }

    /// The politeness that the scheduler keeps instead.
    fn politeness(&self) -> PolitenessOverride {
        PolitenessOverride {
            delay: self.delay.map(Span::get),
            delay_factor: self.delay_factor.map(|factor| factor.0),
            per_host: self.per_host,
            per_site: self.per_site,
            site_delay: self.site_delay.map(Span::get),
            quiet: self.quiet_hours.as_deref().map(hours),
        }
    }

    /// The budget of each host.
    pub(crate) fn budget(&self) -> HostBudget {
        HostBudget {
            max_pages: self.max_pages.map(|pages| pages.0),
            max_bytes: self.max_bytes.map(|bytes| bytes.0),
            max_server_time: self.max_server_time.map(Span::get),
            max_time: self.max_time.map(Span::get),
        }
    }

    /// The least delay and the most in flight that the table asks for.
    pub(super) fn manners(&self) -> (Option<Span>, Option<u32>) {
        (self.delay, self.per_host)
    }
}

/// The scheduler's table of the names.
pub(super) fn overrides(sites: &Sites) -> Result<PolitenessOverrides, CommandError> {
    let mut overrides = PolitenessOverrides::default();
    for (name, terms) in sites {
        if terms.per_host == Some(0) {
            return Err(CommandError::usage(format!(
                "per-host is 0 in [site.\"{name}\"], and nothing could be fetched"
            ))
            .hint("leave the key out for the crawl's own")
            .about("per-host")
            .about_site(name));
        }
        overrides.insert(name, terms.politeness()).map_err(|why| {
            CommandError::usage(format!("unusable table [site.\"{name}\"]: {why}"))
                .hint("it is named by a host, as in [site.\"example.org\"], which stands for its subdomains too")
                .about_site(name)
        })?;
    }
    Ok(overrides)
}

/// The fetcher's table of the hosts that are told something.
pub(super) fn accesses(sites: &Sites) -> Result<Vec<HostAccess>, CommandError> {
    let told = sites.iter().filter(|(_, terms)| !terms.access.is_empty());
    told.map(|(host, terms)| {
        terms.access.access(host).map_err(|(key, why)| {
            CommandError::usage(format!("unusable `{key}` in [site.\"{host}\"]: {why}"))
                .hint("a value may stand in the environment: `env:NAME` takes what NAME holds")
                .about(key)
                .about_site(host)
        })
    })
    .collect()
}

/// Hours as the scheduler takes them.
pub(crate) fn hours(hours: &[DayHours]) -> Vec<DailyHours> {
    let span = |hours: &DayHours| DailyHours::new(hours.from, hours.until);
    hours.iter().map(span).collect()
}

//! Groups of hosts that share a budget and politeness settings: the tables `[group.NAME]` of a
//! file.

use std::collections::BTreeMap;
use std::sync::Arc;

use crawl_engine::HostGroupBudget;
use crawl_weburl::{HostPatternError, HostPatternMap};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::host_lists::{check_read_in, names};
use super::host_politeness::{self, HostPolitenessOverrides};
use crate::error::{CommandError, ErrorCollector};
use crate::values::{
    ByteSize, CountSetting, DurationSetting, HostListEntry, JsonSchema as _, OptionalLimit,
};

/// The first part of the tables' names: `[group.NAME]`.
pub(super) const TABLE: &str = "group";

/// The keys of a `[group]` table, written with underscores.
pub(super) const FIELDS: &[&str] = &[
    "hosts",
    "max_pages",
    "max_bytes",
    "max_server_time",
    host_politeness::FIELDS[0],
    host_politeness::FIELDS[1],
    host_politeness::FIELDS[2],
    host_politeness::FIELDS[3],
    host_politeness::FIELDS[4],
    host_politeness::FIELDS[5],
];

/// Maximum length of a group's name, in bytes: rules contain it, and a store may truncate them.
/// Beyond the limit: refused.
const MAX_NAME_BYTES: usize = 64;

/// Groups by name.
pub(crate) type HostGroups = BTreeMap<String, HostGroupSettings>;

/// The hosts of a group, the budget they share, and the politeness of each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct HostGroupSettings {
    pub(super) hosts: Vec<HostListEntry>,
    max_pages: Option<OptionalLimit<CountSetting>>,
    max_bytes: Option<OptionalLimit<ByteSize>>,
    max_server_time: Option<OptionalLimit<DurationSetting>>,
    /// The politeness settings, which apply to each host separately.
    #[serde(flatten)]
    pub(super) politeness: HostPolitenessOverrides,
}

impl HostGroupSettings {
    /// Returns whether the hosts share a budget.
    pub(super) fn has_budget(&self) -> bool {
        let HostGroupBudget {
            name: _,
            max_pages,
            max_bytes,
            max_server_time,
        } = self.group("");
        max_pages.is_some() || max_bytes.is_some() || max_server_time.is_some()
    }

    /// Returns the keys, each with the schema of its value.
    pub(super) fn schemas() -> [(&'static str, Value); FIELDS.len()] {
        let [
            delay,
            delay_factor,
            per_host,
            per_site,
            site_delay,
            quiet_hours,
        ] = HostPolitenessOverrides::schemas();
        [
            ("hosts", Vec::<HostListEntry>::schema()),
            ("max_pages", OptionalLimit::<CountSetting>::schema()),
            ("max_bytes", OptionalLimit::<ByteSize>::schema()),
            (
                "max_server_time",
                OptionalLimit::<DurationSetting>::schema(),
            ),
            delay,
            delay_factor,
            per_host,
            per_site,
            site_delay,
            quiet_hours,
        ]
    }

    fn group(&self, name: &str) -> HostGroupBudget {
        HostGroupBudget {
            name: name.to_owned(),
            max_pages: self.max_pages.and_then(|max| Some(max.0?.0)),
            max_bytes: self.max_bytes.and_then(|max| Some(max.0?.0)),
            max_server_time: self.max_server_time.and_then(|max| Some(max.0?.get())),
        }
    }
}

/// Checks the groups, and returns their budgets by host.
///
/// # Errors
/// All problems of all groups.
pub(super) fn host_groups(
    groups: &HostGroups,
) -> Result<HostPatternMap<Arc<HostGroupBudget>>, CommandError> {
    let mut problems = ErrorCollector::default();
    let mut table: HostPatternMap<Arc<HostGroupBudget>> = HostPatternMap::default();
    for (name, terms) in groups {
        let politeness = terms.politeness.check(&format!("[group.\"{name}\"]"));
        problems.note(politeness.map_err(|problem| problem.about_group(name)));
        let mut refuse = |message: String, hint: &str, key: &[&'static str]| {
            let problem = CommandError::usage(message).hint(hint.to_owned());
            problems.note::<()>(Err(problem.about_group(name).resting_on(key)));
        };
        if name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
            refuse(
                format!("unusable group name `{name}`"),
                "use 1 to 64 bytes on one line, as in [group.ministries]",
                &[],
            );
        }
        if let Err(problem) = check_read_in("hosts", &terms.hosts) {
            refuse(problem.message, "list the hosts themselves", &[]);
        } else if terms.hosts.is_empty() {
            refuse(
                format!("[group.\"{name}\"] has no hosts"),
                "list them in `hosts`, as names or as `@FILE`",
                &["hosts"],
            );
        }
        let group = Arc::new(terms.group(name));
        for host in names(&terms.hosts) {
            let reason = match table.insert(host, Arc::clone(&group)) {
                Ok(()) => continue,
                Err(HostPatternError::Twice(_)) => format!("`{host}` is listed twice"),
                Err(reason) => reason.to_string(),
            };
            refuse(
                format!("unusable host in [group.\"{name}\"]: {reason}"),
                "a host can be in only one group; a name includes its subdomains",
                &[],
            );
        }
    }
    problems.or(table)
}

/// Returns the politeness settings of the groups, by host. Ignores problems, since [`host_groups`]
/// reports them.
pub(super) fn terms_by_host(groups: &HostGroups) -> HostPatternMap<&HostPolitenessOverrides> {
    let mut table = HostPatternMap::default();
    for terms in groups.values() {
        for host in names(&terms.hosts) {
            let _ = table.insert(host, &terms.politeness);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use crawl_weburl::HostKey;
    use expect_test::expect;

    use super::host_groups;
    use crate::settings::config_file::parse;

    #[test]
    fn a_group_has_a_name_hosts_and_bounds() {
        let text = "[group.ministries]\nhosts = [\"a.example\", \"b.example\"]\nmax-pages = 5\n\
                    max_bytes = \"1kB\"\nmax-server-time = \"1m\"\n";
        let groups = parse(text, "x").unwrap().group.unwrap();
        let table = host_groups(&groups).unwrap();
        let (_, group) = table
            .find(&HostKey::parse("www.b.example").unwrap())
            .unwrap();
        assert_eq!((&*group.name, group.max_pages), ("ministries", Some(5)));
        assert_eq!(group.max_bytes, Some(1_000));
        assert_eq!(group.max_server_time.unwrap().as_secs(), 60);

        let text = "[group.a]\nhosts = [\"a.example\"]\nmax-pages = \"unlimited\"\n";
        let groups = parse(text, "x").unwrap().group.unwrap();
        assert!(!groups["a"].has_budget());

        let text = "[group.none]\nmax-pages = 5\n[group.\"\"]\nhosts = [\"a.example\"]\n\
                    [group.b]\nhosts = [\"b.example\", \"A.example\", \"@x\"]\nper-host = 0\n";
        let groups = parse(text, "x").unwrap().group.unwrap();
        expect![[r#"
            error: unusable group name ``
            hint: use 1 to 64 bytes on one line, as in [group.ministries]
            error: per-host is 0 in [group."b"], so nothing could be fetched
            hint: remove the key to use the crawl's value
            error: `hosts` contains the file `@x`, which isn't allowed in a directory's crawl.toml
            hint: list the hosts themselves
            error: unusable host in [group."b"]: `A.example` is listed twice
            hint: a host can be in only one group; a name includes its subdomains
            error: [group."none"] has no hosts
            hint: list them in `hosts`, as names or as `@FILE`"#]]
        .assert_eq(&host_groups(&groups).unwrap_err().to_string());
    }
}

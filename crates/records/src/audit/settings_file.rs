//! Reads the tables and keys of `crawl.toml`, from the file or from a row with recorded settings.

use std::collections::BTreeMap;

use crawl_archive::Timestamp;
use crawl_weburl::{HostKey, host_and_port};
use serde_json::{Map, Value as Json};
use toml::{Table, Value};

/// Maximum duration in milliseconds: a hundred years.
const MAX_MILLIS: f64 = 36_500.0 * 86_400e3;

/// Settings as the tables and keys of `crawl.toml`.
pub(super) struct CrawlTomlTables(Table);

impl CrawlTomlTables {
    pub(super) fn parse(text: &str) -> Result<CrawlTomlTables, String> {
        text.parse::<Table>()
            .map(CrawlTomlTables)
            .map_err(|why| why.to_string())
    }

    /// Reads the settings recorded as JSON in a row of `state/delays.jsonl`.
    pub(super) fn from_row(tables: Map<String, Json>) -> Result<CrawlTomlTables, String> {
        let tables = serde_json::from_value(Json::Object(tables));
        tables
            .map(CrawlTomlTables)
            .map_err(|why: serde_json::Error| why.to_string())
    }

    pub(super) fn of(tables: Table) -> CrawlTomlTables {
        CrawlTomlTables(tables)
    }

    pub(super) fn tables(&self) -> &Table {
        &self.0
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

    pub(super) fn moment(&self, key: &str) -> Result<Option<u64>, String> {
        let Some(text) = self.text("crawl", key) else {
            return Ok(None);
        };
        match Timestamp::parse(text) {
            Some(moment) => Ok(Some(moment.as_millis())),
            None => Err(format!("{key}: `{text}` is not a date")),
        }
    }

    /// Returns the limits of each host name that a `site` or `group` table names. `with` returns
    /// the given limits, overridden by the keys of a table. For each setting, the longest matching
    /// `site` wins, then the longest matching host of a `group`, then `everywhere`.
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

/// Returns the value of the longest name in `by_name` that is the host or one of its parent
/// domains. `None` if there is no such name.
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

/// Converts the name of a site table to the form of host keys. On loopback, a name without a port
/// stays without one, because it covers all ports.
fn site_key(name: &str) -> String {
    let Ok(key) = HostKey::parse(name) else {
        return name.to_owned();
    };
    let key = key.to_string();
    match host_and_port(name).1 {
        Some(_) => key,
        None => host_and_port(&key).0.to_owned(),
    }
}

/// Parses durations such as `500ms`, `2s`, `1m30s`, `1h` and `1d` to milliseconds, rounded down.
/// `0` needs no unit. The audit has its own parser, because it shares no code with the crawl. The
/// cases in `durations.tsv` test that both parsers agree.
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
        // Accept only digits with a decimal point. Rust would parse other number formats, such as
        // `1e3`, too.
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
    // Half a microsecond compensates for rounding errors of binary fractions. The cast saturates.
    Ok((millis + 0.0005) as u64)
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn durations_as_the_file_has_them() {
        for line in include_str!("durations.tsv").lines() {
            let (text, millis) = line.split_once('\t').unwrap();
            let millis_read = span(&toml::Value::from(text)).ok();
            assert_eq!(millis_read, millis.parse().ok(), "{text}");
        }
    }
}

//! Reads from the settings the limits of addresses, sites and the whole crawl, the quiet hours, and
//! whether requests must be signed.

use std::collections::BTreeMap;

use toml::Value;

use super::settings_file::{CrawlTomlTables, find, span};

const MINUTE_MS: u64 = 60_000;

/// The limits that hosts share, and the quiet hours. Durations are in milliseconds.
#[derive(Debug)]
pub(super) struct SharedLimits {
    /// Whether every request must be signed.
    pub(super) always_signed: bool,
    /// Minimum time between the starts of two requests. `None` if there is no limit.
    pub(super) interval: Option<f64>,
    pub(super) address: AddressOrSiteLimits,
    everywhere: SiteLimits,
    by_name: BTreeMap<String, SiteLimits>,
}

/// The limits of an address or a site. Durations are in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddressOrSiteLimits {
    /// Maximum requests in flight.
    pub(super) number: usize,
    /// Minimum delay before a request: the time from the start of the previous request, and the
    /// time from its end, must be at least this long.
    pub(super) delay: u64,
    /// Minimum time between the starts of two requests. `None` if there is no limit.
    pub(super) interval: Option<f64>,
}

/// The limits of a host's site, and the host's quiet hours.
#[derive(Clone, Debug)]
pub(super) struct SiteLimits {
    pub(super) number: usize,
    pub(super) delay: u64,
    /// The quiet hours in UTC, as minutes of the day: the first minute, and the minute after the
    /// last, which is not greater than the first if the hours span midnight.
    quiet: Vec<(u64, u64)>,
}

impl AddressOrSiteLimits {
    pub(super) fn loosest(self, other: AddressOrSiteLimits) -> AddressOrSiteLimits {
        AddressOrSiteLimits {
            number: self.number.max(other.number),
            delay: self.delay.min(other.delay),
            interval: shortest(self.interval, other.interval),
        }
    }
}

/// Returns the shorter of two times between requests. `None` (no limit) if either of them is
/// `None`.
pub(super) fn shortest(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one?.min(other?))
}

impl SharedLimits {
    pub(super) fn of(file: &CrawlTomlTables) -> Result<SharedLimits, String> {
        let politeness = |key| file.get("politeness", key);
        let general = SiteLimits {
            number: usize::MAX,
            delay: 0,
            quiet: Vec::new(),
        };
        let everywhere = match file.table("politeness") {
            Some(table) => general.with(table)?,
            None => general,
        };
        let address = AddressOrSiteLimits {
            number: politeness("per-address").map_or(Ok(8), number)?,
            delay: politeness("address-delay").map_or(Ok(0), span)?,
            interval: match politeness("address-rate") {
                Some(rate) => interval(rate)?,
                None => Some(1000.0 / 16.0),
            },
        };
        Ok(SharedLimits {
            always_signed: file.text("operator", "signature") == Some("always"),
            interval: politeness("max-rate").map_or(Ok(None), interval)?,
            address,
            by_name: file.by_name(&everywhere, SiteLimits::with)?,
            everywhere,
        })
    }

    pub(super) fn of_host(&self, host: &str) -> &SiteLimits {
        find(&self.by_name, host).unwrap_or(&self.everywhere)
    }
}

impl SiteLimits {
    /// Returns these limits, overridden by the keys of a `politeness`, `site` or `group` table.
    fn with(&self, table: &Value) -> Result<SiteLimits, String> {
        let mut limits = self.clone();
        if let Some(value) = table.get("per-site") {
            limits.number = number(value)?;
        }
        if let Some(value) = table.get("site-delay") {
            limits.delay = span(value)?;
        }
        if let Some(value) = table.get("quiet-hours") {
            let bad = || format!("`{value}` is not a list of hours");
            let hours = value.as_array().ok_or_else(bad)?.iter();
            let hours = hours.map(|hours| hours.as_str().and_then(day_hours).ok_or_else(bad));
            limits.quiet = hours.collect::<Result<_, _>>()?;
        }
        Ok(limits)
    }

    /// Returns whether a moment is in the quiet hours.
    pub(super) fn is_quiet(&self, moment: u64) -> bool {
        let minute = moment / MINUTE_MS % 1440;
        let mut quiet = self.quiet.iter();
        quiet.any(|(from, until)| match from < until {
            true => (*from..*until).contains(&minute),
            false => minute >= *from || minute < *until,
        })
    }
}

/// Parses a number of requests. `unlimited` becomes `usize::MAX`.
fn number(value: &Value) -> Result<usize, String> {
    let number = match value.as_str() {
        Some("unlimited") => Some(usize::MAX),
        _ => value.as_integer().and_then(|n| usize::try_from(n).ok()),
    };
    number.ok_or_else(|| format!("`{value}` is not a number of requests"))
}

/// Parses a rate per second. Returns the milliseconds between two requests, or `None` if there is
/// no limit.
fn interval(value: &Value) -> Result<Option<f64>, String> {
    let rate = match value {
        Value::String(text) if text == "unlimited" => return Ok(None),
        Value::Integer(rate) => *rate as f64,
        value => value
            .as_float()
            .ok_or_else(|| format!("`{value}` is not a rate"))?,
    };
    Ok((rate > 0.0).then_some(1000.0 / rate))
}

/// Parses `HH:MM-HH:MM` into minutes of the day. The end is exclusive, and `24:00` as the end
/// becomes 0.
fn day_hours(text: &str) -> Option<(u64, u64)> {
    let minute = |text: &str| {
        let (hours, minutes) = text.trim().split_once(':')?;
        Some(60 * hours.parse::<u64>().ok()? + minutes.parse::<u64>().ok()?)
    };
    let (from, until) = text.split_once('-')?;
    Some((minute(from)?, minute(until)? % 1440))
}

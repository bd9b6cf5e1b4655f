//! Politeness overrides for some hosts.

use std::time::Duration;

use crawl_weburl::HostPatternMap;

use crate::daily_hours::DailyHours;

/// Politeness overrides by host name.
pub type PolitenessOverrides = HostPatternMap<PolitenessOverride>;

/// Overrides for the hosts that match one pattern. `None` keeps the general value.
///
/// A longer wait set by the host itself still applies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolitenessOverride {
    /// Overrides [`Politeness::delay`](crate::Politeness::delay).
    pub delay: Option<Duration>,
    /// Overrides [`Politeness::delay_factor`](crate::Politeness::delay_factor).
    pub delay_factor: Option<f64>,
    /// Overrides [`Politeness::per_host`](crate::Politeness::per_host).
    pub per_host: Option<u32>,
    /// Overrides [`Politeness::per_site`](crate::Politeness::per_site), for sites (registrable
    /// domains) that match the pattern.
    pub per_site: Option<u32>,
    /// Overrides [`Politeness::site_delay`](crate::Politeness::site_delay), for sites that match
    /// the pattern.
    pub site_delay: Option<Duration>,
    /// Overrides [`Politeness::quiet`](crate::Politeness::quiet).
    pub quiet: Option<Vec<DailyHours>>,
}

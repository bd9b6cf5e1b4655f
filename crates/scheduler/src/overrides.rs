//! Other politeness for some hosts.

use std::time::Duration;

use crawl_weburl::HostTable;

use crate::daily_hours::DailyHours;

/// Politeness by host name, for the hosts that the operator knows better.
pub type PolitenessOverrides = HostTable<PolitenessOverride>;

/// The values that differ for the hosts of one pattern; `None`: as for every host.
///
/// A wait that a host itself asks for still lengthens its gap, whatever stands here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolitenessOverride {
    /// Instead of [`Politeness::delay`](crate::Politeness::delay).
    pub delay: Option<Duration>,
    /// Instead of [`Politeness::delay_factor`](crate::Politeness::delay_factor).
    pub delay_factor: Option<f64>,
    /// Instead of [`Politeness::per_host`](crate::Politeness::per_host).
    pub per_host: Option<u32>,
    /// Instead of [`Politeness::per_site`](crate::Politeness::per_site), for sites (registrable domains) that the
    /// pattern matches.
    pub per_site: Option<u32>,
    /// Instead of [`Politeness::site_delay`](crate::Politeness::site_delay), for sites that the pattern matches.
    pub site_delay: Option<Duration>,
    /// Instead of [`Politeness::quiet`](crate::Politeness::quiet).
    pub quiet: Option<Vec<DailyHours>>,
}

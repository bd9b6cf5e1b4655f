//! Politeness: the limits and gaps that the operator sets for every host.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use crawl_weburl::Site;
use foldhash::fast::RandomState;

use crate::daily_hours::DailyHours;
use crate::overrides::{PolitenessOverride, PolitenessOverrides};

/// The operator's limits and gaps. The defaults are the command line's.
#[derive(Clone, Debug, PartialEq)]
pub struct Politeness {
    /// Least gap between two requests to one host, from the end of one to the start of the
    /// next.
    pub delay: Duration,
    /// The gap is at least this many times the smoothed response time; 0 turns it off.
    pub delay_factor: f64,
    /// Requests in flight per host; each of these slots keeps the gap. Where a host states
    /// a crawl delay, one slot serves.
    pub per_host: u32,
    /// Requests in flight per address.
    pub per_address: u32,
    /// Least time between two requests to one address: from the start and from the end of
    /// any to the start of the next.
    pub address_delay: Duration,
    /// Requests a second to one address that is not a loopback address, evenly spaced; `None` or 0:
    /// no limit.
    pub address_rate: Option<f64>,
    /// Requests in flight per site, never less than `per_host`; `None`: no limit.
    pub per_site: Option<u32>,
    /// Least time between two requests to one site; counts where `per_site` or this is set.
    pub site_delay: Duration,
    /// Requests a second in all, evenly spaced; `None` or 0: no limit.
    pub max_rate: Option<f64>,
    /// Requests in flight in all.
    pub concurrency: u32,
    /// Maximum permits waiting for a look-up, not counted in `concurrency`. 0: no look-up before the
    /// request.
    pub look_ups: u32,
    /// A longer Retry-After is cut to this, and so is what rate-limit fields ask for.
    pub max_retry_after: Duration,
    /// The first wait where a host answers 429 or 503 without a Retry-After.
    pub wait_first: Duration,
    /// The longest wait that the doubling comes to.
    pub wait_max: Duration,
    /// The doubling is forgotten once a host was quiet for this long after its last wait.
    pub wait_forget: Duration,
    /// Failures of so many different urls with no answer between are the host's fault.
    pub fails_in_a_row: u32,
    /// Lengthens each gap by a drawn fraction of it, at most this; never above 0.01.
    pub jitter: f64,
    /// Hours in which nothing is asked at all, robots.txt neither.
    pub quiet: Vec<DailyHours>,
    /// Hosts for which some of this is other.
    pub sites: PolitenessOverrides,
}

impl Default for Politeness {
    fn default() -> Politeness {
        Politeness {
            delay: Duration::from_secs(1),
            delay_factor: 2.0,
            per_host: 1,
            per_address: 8,
            address_delay: Duration::ZERO,
            address_rate: Some(16.0),
            per_site: None,
            site_delay: Duration::ZERO,
            max_rate: None,
            concurrency: 256,
            look_ups: 0,
            max_retry_after: Duration::from_secs(24 * 60 * 60),
            wait_first: Duration::from_secs(60),
            wait_max: Duration::from_secs(24 * 60 * 60),
            wait_forget: Duration::from_secs(30 * 60),
            fails_in_a_row: 20,
            jitter: 0.0,
            quiet: Vec::new(),
            sites: PolitenessOverrides::default(),
        }
    }
}

impl Politeness {
    /// Values that would stop the crawl or mean nothing become the nearest that do.
    pub(crate) fn made_usable(mut self) -> Politeness {
        self.per_host = self.per_host.max(1);
        self.per_address = self.per_address.max(1);
        self.concurrency = self.concurrency.max(1);
        self.fails_in_a_row = self.fails_in_a_row.max(1);
        // `max` takes the other side where one is NaN; `clamp` would keep it.
        self.delay_factor = self.delay_factor.max(0.0);
        self.jitter = self.jitter.max(0.0).clamp(0.0, 0.01);
        self
    }

    /// As it is for the hosts of one pattern.
    pub(crate) fn with(&self, limits: &PolitenessOverride) -> Politeness {
        let quiet = limits.quiet.as_ref().unwrap_or(&self.quiet);
        Politeness {
            delay: limits.delay.unwrap_or(self.delay),
            delay_factor: limits.delay_factor.unwrap_or(self.delay_factor),
            per_host: limits.per_host.unwrap_or(self.per_host),
            per_site: limits.per_site.or(self.per_site),
            site_delay: limits.site_delay.unwrap_or(self.site_delay),
            quiet: quiet.clone(),
            sites: PolitenessOverrides::default(),
            ..self.clone()
        }
        .made_usable()
    }

    /// As it is for every host, and then for the hosts of each pattern, in their order.
    pub(crate) fn of_all_patterns(&self) -> Vec<Politeness> {
        let of_patterns = self.sites.iter().map(|(_, limits)| self.with(limits));
        std::iter::once(self.clone()).chain(of_patterns).collect()
    }

    /// The place of each pattern there.
    pub(crate) fn by_pattern(&self) -> HashMap<Box<str>, u32, RandomState> {
        let patterns = self.sites.iter().zip(1..);
        patterns
            .map(|((pattern, _), number)| (pattern.into(), number))
            .collect()
    }

    /// Returns whether requests to any site are bounded at all.
    pub(crate) fn limits_sites(&self) -> bool {
        let limits = |politeness: &Politeness| {
            politeness.per_site.is_some() || !politeness.site_delay.is_zero()
        };
        limits(self) || self.sites.iter().any(|(_, own)| limits(&self.with(own)))
    }

    /// The limits of a site: requests in flight, and the time between two.
    pub(crate) fn site_limits(&self, site: &Site) -> Option<Limits> {
        let own = self.sites.find_name(site.as_str(), None);
        let own = own.map(|(_, limits)| self.with(limits));
        let politeness = own.as_ref().unwrap_or(self);
        // Never less than one host of the site is given.
        let per_site = politeness.per_site;
        let per_site = per_site.map(|limit| limit.max(politeness.per_host));
        let limited = per_site.is_some() || !politeness.site_delay.is_zero();
        limited.then(|| Limits {
            number: per_site.unwrap_or(u32::MAX),
            delay: politeness.site_delay,
            rate: None,
        })
    }
}

/// The limits that all hosts at one address, or all hosts of one site, share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    /// Maximum requests in flight.
    pub(crate) number: u32,
    /// Minimum time from the start or end of any request to the start of the next.
    pub(crate) delay: Duration,
    /// Maximum requests per second; `None` or 0: no limit.
    pub(crate) rate: Option<f64>,
}

impl Limits {
    pub(crate) fn of_address(politeness: &Politeness) -> Limits {
        Limits {
            number: politeness.per_address,
            delay: politeness.address_delay,
            rate: politeness.address_rate,
        }
    }

    /// The limits for this address. A loopback address has no rate.
    pub(crate) fn at(self, address: IpAddr) -> Limits {
        Limits {
            rate: self.rate.filter(|_| !address.is_loopback()),
            ..self
        }
    }

    /// A limit on requests in flight alone.
    pub(crate) fn of_number(number: u32) -> Limits {
        Limits {
            number,
            delay: Duration::ZERO,
            rate: None,
        }
    }
}

//! Politeness: the limits and gaps that the operator sets for every host.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use crawl_weburl::Site;
use foldhash::fast::RandomState;

use crate::daily_hours::DailyHours;
use crate::politeness_overrides::{PolitenessOverride, PolitenessOverrides};

/// The operator's limits and gaps. The defaults match the command line's.
#[derive(Clone, Debug, PartialEq)]
pub struct Politeness {
    /// Minimum gap between two requests to one host, from the end of one to the start of the next.
    pub delay: Duration,
    /// Minimum gap as a multiple of the smoothed response time; 0 disables it.
    pub delay_factor: f64,
    /// Maximum requests in flight per host. Each of these requests has a slot, which keeps its own
    /// gap. If the host sets a pace, such as a crawl delay, only one slot is used.
    pub per_host: u32,
    /// Maximum requests in flight per address.
    pub per_address: u32,
    /// Minimum time between two requests to one address, counted from both the start and the end of
    /// a request to the start of the next.
    pub address_delay: Duration,
    /// Maximum requests per second to one address, evenly spaced. Loopback addresses are exempt.
    /// `None` or 0 means no limit.
    pub address_rate: Option<f64>,
    /// Maximum requests in flight per site, at least `per_host`. `None` means no limit.
    pub per_site: Option<u32>,
    /// Minimum time between two requests to one site, counted like `address_delay`.
    pub site_delay: Duration,
    /// Maximum requests per second in total, evenly spaced. `None` or 0 means no limit.
    pub max_rate: Option<f64>,
    /// Maximum requests in flight in total.
    pub concurrency: u32,
    /// Maximum permits whose host name is being looked up. `concurrency` doesn't count these
    /// permits. With 0, the look-up is a part of the request, which `concurrency` counts from its
    /// start.
    pub look_ups: u32,
    /// Upper bound for Retry-After and for waits from rate-limit fields.
    pub max_retry_after: Duration,
    /// The first wait after a 429 or 503 without a Retry-After. Each further such answer doubles
    /// the wait.
    pub wait_first: Duration,
    /// Upper bound for the wait that starts at `wait_first` and doubles.
    pub wait_max: Duration,
    /// If no 429 or 503 comes for this long after a wait, the next wait is `wait_first` again.
    pub wait_forget: Duration,
    /// The host is paused when this many different URLs have failed without an answer in between. A
    /// failed connection pauses it at once.
    pub fails_in_a_row: u32,
    /// Maximum fraction by which a gap is lengthened at random; at most 0.01.
    pub jitter: f64,
    /// Hours without any requests, even for robots.txt.
    pub quiet: Vec<DailyHours>,
    /// Overrides for some hosts.
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
    /// Replaces each value that is meaningless or would stop the crawl with the nearest usable
    /// value.
    pub(crate) fn made_usable(mut self) -> Politeness {
        self.per_host = self.per_host.max(1);
        self.per_address = self.per_address.max(1);
        self.concurrency = self.concurrency.max(1);
        self.fails_in_a_row = self.fails_in_a_row.max(1);
        // If one operand is NaN, `max` returns the other operand, while `clamp` would keep NaN.
        self.delay_factor = self.delay_factor.max(0.0);
        self.jitter = self.jitter.max(0.0).clamp(0.0, 0.01);
        self
    }

    /// Returns this politeness with the overrides of one pattern applied.
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

    /// Returns the general politeness, followed by the politeness of each pattern, in order.
    pub(crate) fn of_all_patterns(&self) -> Vec<Politeness> {
        let of_patterns = self.sites.iter().map(|(_, limits)| self.with(limits));
        std::iter::once(self.clone()).chain(of_patterns).collect()
    }

    /// Returns, for each pattern, the index of its politeness in
    /// [`of_all_patterns`](Self::of_all_patterns).
    pub(crate) fn by_pattern(&self) -> HashMap<Box<str>, u32, RandomState> {
        let patterns = self.sites.iter().zip(1..);
        patterns
            .map(|((pattern, _), number)| (pattern.into(), number))
            .collect()
    }

    /// Returns whether any site is limited.
    pub(crate) fn limits_sites(&self) -> bool {
        let limits = |politeness: &Politeness| {
            politeness.per_site.is_some() || !politeness.site_delay.is_zero()
        };
        limits(self) || self.sites.iter().any(|(_, own)| limits(&self.with(own)))
    }

    /// Returns the limits of a site, or `None` if it is not limited.
    pub(crate) fn site_limits(&self, site: &Site) -> Option<SharedHostLimits> {
        let own = self.sites.find_name(site.as_str(), None);
        let own = own.map(|(_, limits)| self.with(limits));
        let politeness = own.as_ref().unwrap_or(self);
        // The limit of a site is never below the limit of a single host.
        let per_site = politeness.per_site;
        let per_site = per_site.map(|limit| limit.max(politeness.per_host));
        let limited = per_site.is_some() || !politeness.site_delay.is_zero();
        limited.then(|| SharedHostLimits {
            number: per_site.unwrap_or(u32::MAX),
            delay: politeness.site_delay,
            rate: None,
        })
    }
}

/// Limits shared by all hosts at one address or of one site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SharedHostLimits {
    /// Maximum requests in flight.
    pub(crate) number: u32,
    /// Minimum time from the start or end of any request to the start of the next.
    pub(crate) delay: Duration,
    /// Maximum requests per second. `None` or 0 means no limit.
    pub(crate) rate: Option<f64>,
}

impl SharedHostLimits {
    pub(crate) fn of_address(politeness: &Politeness) -> SharedHostLimits {
        SharedHostLimits {
            number: politeness.per_address,
            delay: politeness.address_delay,
            rate: politeness.address_rate,
        }
    }

    /// Returns these limits as they apply to `address`. Loopback addresses have no rate limit.
    pub(crate) fn at(self, address: IpAddr) -> SharedHostLimits {
        SharedHostLimits {
            rate: self.rate.filter(|_| !address.is_loopback()),
            ..self
        }
    }

    /// Creates limits that restrict only the number of requests in flight.
    pub(crate) fn of_number(number: u32) -> SharedHostLimits {
        SharedHostLimits {
            number,
            delay: Duration::ZERO,
            rate: None,
        }
    }
}

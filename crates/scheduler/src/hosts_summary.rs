//! A summary of all hosts: ready, waiting for their gap, paused or parked.

use std::time::Duration;

use crawl_weburl::{HostKey, Origin};

use crate::host::{HostQueueMembership, ScheduledHost};
use crate::permit::GapReason;
use crate::scheduler::Scheduler;
use crate::tick::Tick;

/// Summary of the hosts with pending work, grouped by what they wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostsSummary {
    /// Number of requests in flight.
    pub in_flight: u32,
    /// Number of hosts with requests in flight that get no further permit for now, because every
    /// slot is in use or no other URL is pending.
    pub busy_hosts: u32,
    /// Number of hosts that are ready. The limits of an address, a site, the rate or the
    /// concurrency may still delay them.
    pub ready: u32,
    /// Number of hosts that wait for their gap.
    pub waiting_hosts: u32,
    /// Hosts that must not be fetched from before a known time, because of a pause or a requested
    /// wait.
    pub paused: Vec<PausedHost>,
    /// Parked hosts with pending work ([`Scheduler::park`]).
    pub parked: Vec<HostKey>,
    /// The earliest time when a permit could be issued if nothing changes before then. `None` if
    /// another call (such as `done` or `set_robots`) must come first.
    pub soonest: Option<Tick>,
}

/// A paused host with pending URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PausedHost {
    /// The paused host.
    pub host: HostKey,
    /// When the pause ends.
    pub until: Tick,
    /// The rule that pauses the host.
    pub why: PauseReason,
    /// The host's origins whose rules are known, even if these rules are no longer fresh.
    pub with_rules: Vec<Origin>,
}

/// A host with pending URLs that waits for its gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingHost {
    /// The waiting host.
    pub host: HostKey,
    /// When the gap ends.
    pub until: Tick,
    /// The rule that requires the gap.
    pub why: GapReason,
    /// The gap between two requests to the host, without gaps that apply only at certain hours.
    pub gap: Duration,
}

/// Why a host is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseReason {
    /// The host sent a Retry-After.
    RetryAfter,
    /// The host sent a 429 or 503 without a Retry-After.
    Wait,
    /// No connection could be made to any origin, or too many requests failed in a row. The number
    /// is the number of failures since the last answer.
    Failures(u32),
    /// No origin of the host may be fetched from yet. The origin whose wait ends first waits to
    /// fetch its unreachable robots.txt again.
    Robots,
    /// No origin of the host may be fetched from yet. The origin whose wait ends first waits for
    /// the visit time in its robots.txt.
    VisitTime,
    /// The host's rate-limit fields reported a used-up quota.
    RateLimit,
    /// It is within the operator's quiet hours.
    QuietHours,
    /// Another crawl is fetching from the host.
    OtherCrawl,
}

impl PauseReason {
    /// All names that [`PauseReason::name`] returns.
    pub const NAMES: [&str; 8] = [
        "retry_after",
        "wait",
        "failures",
        "robots",
        "visit_time",
        "rate_limit",
        "quiet_hours",
        "other_crawl",
    ];

    /// Returns the name, without the number of failures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PauseReason::RetryAfter => "retry_after",
            PauseReason::Wait => "wait",
            PauseReason::Failures(_) => "failures",
            PauseReason::Robots => "robots",
            PauseReason::VisitTime => "visit_time",
            PauseReason::RateLimit => "rate_limit",
            PauseReason::QuietHours => "quiet_hours",
            PauseReason::OtherCrawl => "other_crawl",
        }
    }
}

impl Scheduler {
    /// Returns the summary of all hosts at `now`. This visits all hosts in memory, so call it for
    /// progress reports and at the end of a crawl, not for each request.
    #[must_use]
    pub fn host_summary(&self, now: Tick) -> HostsSummary {
        let now = self.now.max(now);
        let mut summary = HostsSummary {
            in_flight: self.in_flight,
            busy_hosts: 0,
            ready: 0,
            waiting_hosts: 0,
            paused: Vec::new(),
            parked: Vec::new(),
            soonest: self.soonest(),
        };
        for host in self.hosts.iter() {
            if host.is_parked {
                if host.busy > 0 || host.queued_requests > 0 {
                    summary.parked.push(host.key.clone());
                }
                continue;
            }
            match self.pause_of(host, now) {
                Some(paused) => summary.paused.push(paused),
                None if host.position == HostQueueMembership::NotQueued => {
                    summary.busy_hosts += u32::from(host.in_flight > 0);
                }
                None if host.position != HostQueueMembership::Later => summary.ready += 1,
                None => summary.waiting_hosts += 1,
            }
        }
        summary
    }

    /// Returns the hosts that [`HostsSummary::waiting_hosts`] counts at `now`. This visits all
    /// hosts in memory.
    #[must_use]
    pub fn waiting_hosts(&self, now: Tick) -> Vec<WaitingHost> {
        let now = self.now.max(now);
        let is_waiting = |host: &&ScheduledHost| {
            let is_later = !host.is_parked && host.position == HostQueueMembership::Later;
            is_later && self.pause_of(host, now).is_none()
        };
        let hosts = self.hosts.iter().filter(is_waiting);
        hosts
            .map(|host| {
                let politeness = self.limits_of(host);
                let (until, why) = host.earliest(politeness, now);
                WaitingHost {
                    host: host.key.clone(),
                    until,
                    why,
                    gap: Duration::from_micros(host.gap(politeness).0),
                }
            })
            .collect()
    }

    fn pause_of(&self, host: &ScheduledHost, now: Tick) -> Option<PausedHost> {
        let paused = |until, why| {
            let with_rules = host.origins.iter().filter(|entry| entry.has_rules());
            Some(PausedHost {
                host: host.key.clone(),
                until,
                why,
                with_rules: with_rules.map(|entry| entry.origin.clone()).collect(),
            })
        };
        if host.in_flight > 0 {
            return None;
        }
        if !host.has_work() {
            let retries = host.origins.iter().filter_map(|entry| {
                let reason = match entry.is_unreachable() {
                    true => PauseReason::Robots,
                    false => PauseReason::VisitTime,
                };
                Some((entry.status().retry_at?, reason))
            });
            let (until, reason) = retries.min_by_key(|(until, _)| *until)?;
            return paused(
                until.max(host.earliest(self.limits_of(host), now).0),
                reason,
            );
        }
        let (until, gap_reason) = host.earliest(self.limits_of(host), now);
        if until <= now {
            return None;
        }
        let backoff = host.backoff();
        let reason = match gap_reason {
            _ if until == backoff.trip_until => PauseReason::Failures(backoff.fails),
            GapReason::RetryAfter => PauseReason::RetryAfter,
            GapReason::Wait => PauseReason::Wait,
            GapReason::QuietHours => PauseReason::QuietHours,
            GapReason::OtherCrawl => PauseReason::OtherCrawl,
            GapReason::RateLimit if until == backoff.limit.wait_until => PauseReason::RateLimit,
            _ => return None,
        };
        paused(until, reason)
    }
}

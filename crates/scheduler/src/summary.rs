//! A summary of all hosts: ready, waiting for their gap, paused, parked.

use crawl_weburl::HostKey;

use crate::host::{Host, QueuePosition};
use crate::permit::GapReason;
use crate::scheduler::Scheduler;
use crate::tick::Tick;

/// The scheduler's hosts with something to ask, by what they wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSummary {
    /// Requests in flight.
    pub in_flight: u32,
    /// Hosts with a request in flight in each of their slots.
    pub asked_hosts: u32,
    /// Hosts that are ready, though an address, a site, the rate or the concurrency may
    /// hold them up.
    pub ready: u32,
    /// Hosts that wait for their gap.
    pub waiting_hosts: u32,
    /// Hosts that rest: nothing may be asked before their time.
    pub paused: Vec<PausedHost>,
    /// Hosts with something to ask that are parked ([`Scheduler::park`]).
    pub parked: Vec<HostKey>,
    /// The soonest moment at which anything could be issued with nothing learned meanwhile;
    /// `None`: not before a `done` or `robots`, or never.
    pub soonest: Option<Tick>,
}

/// A host that rests with urls waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PausedHost {
    /// The host.
    pub host: HostKey,
    /// Until when.
    pub until: Tick,
    /// The rule that pauses it.
    pub why: PauseReason,
}

/// The reason why a host is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseReason {
    /// It sent a Retry-After.
    RetryAfter,
    /// It asked us to wait without saying how long.
    Wait,
    /// No connection could be made, or too many requests failed in a row: so many since
    /// the last answer.
    Failures(u32),
    /// The robots.txt of all its origins with urls waiting can't be fetched.
    Robots,
    /// The Visit-time of its robots.txt begins then.
    VisitTime,
    /// Its rate-limit fields said that nothing is left until then.
    RateLimit,
    /// The operator's quiet hours last until then.
    QuietHours,
    /// Another crawl is asking it.
    OtherCrawl,
}

impl PauseReason {
    /// All names that [`PauseReason::name`] gives.
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

    /// Its name, without the number of failures.
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
    /// The summary of all hosts at `now`. Walks over all hosts in memory: for progress and for
    /// the end of a crawl, not for each request.
    #[must_use]
    pub fn host_summary(&self, now: Tick) -> HostSummary {
        let now = self.now.max(now);
        let mut summary = HostSummary {
            in_flight: self.in_flight,
            asked_hosts: 0,
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
                None if host.position == QueuePosition::NotQueued => {
                    summary.asked_hosts += u32::from(host.in_flight > 0);
                }
                None if host.position != QueuePosition::Later => summary.ready += 1,
                None => summary.waiting_hosts += 1,
            }
        }
        summary
    }

    fn pause_of(&self, host: &Host, now: Tick) -> Option<PausedHost> {
        let paused = |until, why| {
            Some(PausedHost {
                host: host.key.clone(),
                until,
                why,
            })
        };
        if host.in_flight > 0 {
            return None;
        }
        if !host.has_work() {
            let retries = host.origins.iter().filter_map(|entry| {
                let why = match entry.is_unreachable() {
                    true => PauseReason::Robots,
                    false => PauseReason::VisitTime,
                };
                Some((entry.status().retry_at?, why))
            });
            let (until, why) = retries.min_by_key(|(until, _)| *until)?;
            return paused(until.max(host.earliest(self.limits_of(host), now).0), why);
        }
        let (until, why) = host.earliest(self.limits_of(host), now);
        if until <= now {
            return None;
        }
        let backoff = host.backoff();
        let why = match why {
            _ if until == backoff.trip_until => PauseReason::Failures(backoff.fails),
            GapReason::RetryAfter => PauseReason::RetryAfter,
            GapReason::Wait => PauseReason::Wait,
            GapReason::QuietHours => PauseReason::QuietHours,
            GapReason::OtherCrawl => PauseReason::OtherCrawl,
            GapReason::RateLimit if until == backoff.limit.wait_until => PauseReason::RateLimit,
            _ => return None,
        };
        paused(until, why)
    }
}

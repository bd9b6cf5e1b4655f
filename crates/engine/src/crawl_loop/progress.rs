//! A moment of the crawl, for those who watch.

use std::collections::BTreeMap;
use std::time::Duration;

use crawl_scheduler::{PausedHost, Tick};

use super::Coordinator;
use super::estimate::{Amount, Estimate, MAX_URLS_BY_HOST, WorkDone, estimate};
use super::shared_hosts::SharedHosts;
use crate::control::{Phase, Progress};
use crate::totals::Totals;

/// Hosts in memory, up to which the slowest is looked for: above, going through all of them
/// several times a second would cost too much.
const MAX_HOSTS_SEARCHED: usize = 20_000;

/// Hosts of which the one that takes longest is looked for: those with the most URLs.
const MAX_HOSTS_LOOKED_AT: usize = 50;

impl Coordinator {
    /// A moment of the crawl.
    #[must_use]
    pub(crate) fn progress(&self, now: Tick) -> Progress {
        let counts = self.frontier.counts();
        let resting = self.scheduler.host_summary(now);
        let elapsed = self.totals.elapsed(now);
        let of_round = self.totals.of_round();
        let fresh = self.totals.of_run().pages;
        let rate = fresh as f64 / elapsed.as_secs_f64().max(0.001);
        let Estimate {
            share_done,
            left,
            is_of_slowest_host,
        } = self.estimate(now, elapsed, &of_round);
        Progress {
            phase: if self.end.is_stopping() {
                Phase::Draining
            } else if self.steering.is_paused() {
                Phase::Paused
            } else if self.backlog.disk().is_low() {
                Phase::DiskLow
            } else if self.shared.as_ref().is_some_and(SharedHosts::rests) {
                Phase::WaitingForWorkers
            } else {
                Phase::Crawling
            },
            is_paused: self.steering.is_paused(),
            round: self.totals.round().number,
            pages: of_round.pages,
            failed: of_round.failed,
            excluded: counts.excluded + counts.deferred,
            pending: counts.pending,
            in_flight: self.scheduler.in_flight(),
            known: counts.known,
            deferred: counts.deferred,
            hosts_asked: resting.asked_hosts,
            hosts_ready: resting.ready,
            hosts_waiting: resting.waiting_hosts,
            hosts_resting: u32::try_from(resting.paused.len()).unwrap_or(u32::MAX),
            resting: by_reason(&resting.paused),
            hosts_parked: u32::try_from(resting.parked.len()).unwrap_or(u32::MAX),
            bytes: of_round.bytes,
            disk_free: self.backlog.disk().free(),
            min_free: self.backlog.disk().least(),
            pages_per_second: rate,
            elapsed,
            share_done,
            left,
            is_left_by_slowest_host: is_of_slowest_host,
            counters: self.report.counters().clone(),
        }
    }

    fn estimate(&self, now: Tick, elapsed: Duration, of_round: &Totals) -> Estimate {
        let of_run = self.totals.of_run();
        let pending = self.frontier.counts().pending;
        let pending = match self.host_budgets.limit_hosts() && pending <= MAX_URLS_BY_HOST {
            true => self.host_budgets.with_room(self.frontier.origins()),
            false => pending,
        };
        let amount = |of_round, of_run| Amount { of_round, of_run };
        let (served, served_of_run) = self.host_budgets.served_micros();
        let course = WorkDone {
            elapsed,
            active: elapsed.saturating_sub(self.steering.paused()),
            pages: amount(of_round.pages, of_run.pages),
            bytes: amount(of_round.bytes, of_run.bytes),
            server_time: amount(served, served_of_run),
            pages_left: pending + self.backlog.leases(),
            slowest_host: self.slowest_host(now),
        };
        estimate(&course, &self.config.budgets)
    }

    /// The time that the host which takes longest needs for what waits there, at its gap: of those
    /// with the most URLs. None in a crawl of very many hosts, and where hosts have budgets, as some of those URLs are left over then.
    fn slowest_host(&self, now: Tick) -> Option<Duration> {
        let hosts = self.scheduler.known_hosts().count();
        if self.host_budgets.limit_hosts() || hosts > MAX_HOSTS_SEARCHED {
            return None;
        }
        let slots = self.config.politeness.per_host.max(1);
        let busiest = self.scheduler.busiest(now, MAX_HOSTS_LOOKED_AT);
        let asked = busiest.iter().filter(|host| !host.is_parked);
        let times = asked.map(|host| {
            let first = host.next_at.map_or(Duration::ZERO, |at| at.since(now));
            let gaps = u32::try_from(host.waiting.saturating_sub(1)).unwrap_or(u32::MAX);
            first.saturating_add(host.gap.saturating_mul(gaps) / slots)
        });
        times.max()
    }
}

/// Hosts that rest, by the name of the reason.
fn by_reason(paused: &[PausedHost]) -> BTreeMap<&'static str, u32> {
    let mut hosts = BTreeMap::new();
    for host in paused {
        *hosts.entry(host.why.name()).or_default() += 1;
    }
    hosts
}

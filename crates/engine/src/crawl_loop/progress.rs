//! Progress reports.

use std::collections::BTreeMap;
use std::time::Duration;

use crawl_scheduler::{PausedHost, Tick};

use super::Coordinator;
use super::completion_estimate::{
    CompletionEstimate, MAX_URLS_BY_HOST, RoundAndRunTotal, WorkDoneAndLeft, estimate,
};
use crate::control::{CrawlPhase, ProgressSnapshot};
use crate::crawl_totals::CrawlTotals;

impl Coordinator {
    #[must_use]
    pub(crate) fn progress(&self, now: Tick) -> ProgressSnapshot {
        let counts = self.frontier.counts();
        let resting = self.hosts.summary(now);
        let elapsed = self.end.elapsed(now);
        let of_round = self.report.of_round();
        let fresh = self.report.of_run().pages;
        let rate = fresh as f64 / elapsed.as_secs_f64().max(0.001);
        let CompletionEstimate {
            share_done,
            left,
            is_of_slowest_host,
        } = self.estimate(now, elapsed, &of_round);
        ProgressSnapshot {
            phase: if self.end.is_stopping() {
                CrawlPhase::Draining
            } else if self.end.is_paused() {
                CrawlPhase::Paused
            } else if self.backlog.disk().is_low() {
                CrawlPhase::DiskLow
            } else if self.shared.rests() {
                CrawlPhase::WaitingForWorkers
            } else {
                CrawlPhase::Crawling
            },
            is_paused: self.end.is_paused(),
            round: self.report.round().number,
            pages: of_round.pages,
            failed: of_round.failed,
            excluded: counts.excluded + counts.deferred,
            pending: counts.pending,
            in_flight: self.hosts.in_flight(),
            known: counts.known,
            deferred: counts.deferred,
            hosts_asked: resting.busy_hosts,
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

    fn estimate(&self, now: Tick, elapsed: Duration, of_round: &CrawlTotals) -> CompletionEstimate {
        let of_run = self.report.of_run();
        let pending = self.frontier.counts().pending;
        let budgets = self.hosts.budgets();
        let pending = match budgets.limit_hosts() && pending <= MAX_URLS_BY_HOST {
            true => budgets.with_room(self.frontier.origins()),
            false => pending,
        };
        let amount = |of_round, of_run| RoundAndRunTotal { of_round, of_run };
        let (served, served_of_run) = budgets.served_micros();
        let course = WorkDoneAndLeft {
            elapsed,
            active: self.end.active(now),
            pages: amount(of_round.pages, of_run.pages),
            bytes: amount(of_round.bytes, of_run.bytes),
            server_time: amount(served, served_of_run),
            pages_left: pending + self.backlog.leases(),
            slowest_host: self.hosts.slowest(now),
        };
        estimate(&course, &self.config.budgets)
    }
}

fn by_reason(paused: &[PausedHost]) -> BTreeMap<&'static str, u32> {
    let mut hosts = BTreeMap::new();
    for host in paused {
        *hosts.entry(host.why.name()).or_default() += 1;
    }
    hosts
}

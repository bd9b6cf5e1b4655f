//! Restores the state of hosts from earlier runs.

use std::net::IpAddr;
use std::time::Duration;

use crawl_archive::rows::RequestRow;
use crawl_frontier::FrontierError;
use crawl_scheduler::{GapReason, SnapshotCompleteness, Tick, stored_address};
use crawl_weburl::HostKey;

use super::super::worker_coordination::WorkerCoordination;
use super::Hosts;

impl Hosts {
    /// Continues an earlier run. The stored state of each host is read when its first permit is
    /// due.
    ///
    /// # Errors
    /// The frontier can't be read.
    pub(crate) fn restore(&mut self, restart: SnapshotCompleteness) -> Result<(), FrontierError> {
        self.residents.resume(restart);
        self.share_budgets()
    }

    /// Counts the spending of every host towards the budgets that several hosts share. No effect if
    /// there are no such budgets.
    ///
    /// # Errors
    /// The frontier can't be read.
    pub(super) fn share_budgets(&mut self) -> Result<(), FrontierError> {
        if self.budgets.are_shared() {
            let stored = self.frontier.hosts()?.into_iter();
            let stored = stored.map(|(host, _, bytes)| (host, bytes));
            self.budgets.share(stored.chain(self.residents.away()));
        }
        Ok(())
    }

    /// Returns the stored address of a host, if there is one.
    ///
    /// # Errors
    /// The frontier can't be read.
    pub(crate) fn past_address(&self, host: &HostKey) -> Result<Option<IpAddr>, FrontierError> {
        let stored = self.frontier.host(host)?;
        Ok(stored.and_then(|(_, bytes)| stored_address(self.budgets.politeness(&bytes))))
    }

    /// Makes a host keep its gap after a request of an earlier run, given the request's row in the
    /// log.
    ///
    /// # Errors
    /// The frontier can't be read.
    pub(crate) fn note_past_request(
        &mut self,
        now: Tick,
        row: &RequestRow,
        shared: &WorkerCoordination,
    ) -> Result<(), FrontierError> {
        let Ok(host) = HostKey::parse(&row.host) else {
            return Ok(());
        };
        if !shared.keeps(&host) {
            return Ok(());
        }
        self.recall(now, &host, shared)?;
        let end = Tick::from_micros(row.end.saturating_mul(1000));
        if end > now && self.residents.snapshots_are_complete() {
            // The clock was ahead when the row was written. The host's stored state already
            // includes this request, with times that are corrected when it is read. If the row
            // counted as well, the host would have to wait again at each start.
            return Ok(());
        }
        let end = end.min(now);
        let politeness = &self.config.politeness;
        // If the recorded request waited for its host's gap, the row has that gap, and the host
        // waits for it again. Otherwise the host waits for the gap in the settings.
        let gap = match row.why.as_str() {
            "delay" | "delay-factor" | "crawl-delay" | "request-rate" | "rate-limit"
            | "slow-restart" => Duration::from_millis(row.gap_asked),
            _ => self.own_delay(&host),
        };
        // Rows don't record whether a 429 or 503 had a Retry-After.
        let reason = match row.status {
            Some(429 | 503) => GapReason::Wait,
            _ => GapReason::RetryAfter,
        };
        let wait = row.wait_asked.map(Duration::from_millis);
        let wait = wait.map(|wait| (end + wait.min(politeness.max_retry_after), reason));
        self.scheduler.note_past_request(now, &host, end, gap, wait);
        Ok(())
    }

    /// After a run that crashed or was killed, makes each host with pending URLs wait for a gap,
    /// since the log may lack the run's last requests.
    ///
    /// # Errors
    /// The frontier can't be read.
    pub(crate) fn note_unknown_requests(
        &mut self,
        now: Tick,
        shared: &WorkerCoordination,
    ) -> Result<(), FrontierError> {
        self.unknown_before = Some(now);
        for (origin, _) in self.frontier.origins() {
            let host = origin.host_key();
            self.recall(now, &host, shared)?;
            let gap = self.own_delay(&host);
            self.scheduler.note_past_request(now, &host, now, gap, None);
            self.extend_wait_for_unknown(&host);
        }
        Ok(())
    }

    /// Makes [`waits_for_unknown_requests`](Self::waits_for_unknown_requests) return true at least
    /// until `host` has waited for its longest gap. Call this again whenever a robots.txt may have
    /// made the gap longer: [`note_unknown_requests`](Self::note_unknown_requests) runs before any
    /// robots.txt is read.
    pub(super) fn extend_wait_for_unknown(&mut self, host: &HostKey) {
        if let Some(before) = self.unknown_before
            && let Some(gap) = self.scheduler.longest_gap(host)
        {
            self.unknown_until = self.unknown_until.max(before + gap);
        }
    }

    /// Returns whether some host may still wait because the log may lack requests to it. A wait is
    /// stored only with the host's next request. So if the run ends before all waits are over, the
    /// next run must begin them again.
    pub(crate) fn waits_for_unknown_requests(&self, now: Tick) -> bool {
        now < self.unknown_until
    }

    /// Returns the gap that the settings give a host.
    pub(super) fn own_delay(&self, host: &HostKey) -> Duration {
        let politeness = &self.config.politeness;
        let own = politeness
            .sites
            .find(host)
            .and_then(|(_, terms)| terms.delay);
        own.unwrap_or(politeness.delay)
    }

    /// Returns the gap that this crawl keeps between its requests to a host. For a host that the
    /// scheduler doesn't know, this is the gap in the settings.
    pub(super) fn delay_in_force(&self, host: &HostKey) -> Duration {
        let gap = self.scheduler.longest_gap(host);
        gap.unwrap_or_else(|| self.own_delay(host))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crawl_archive::rows::RequestRow;
    use crawl_frontier::UrlToAdmit;
    use crawl_scheduler::{PauseReason, PolitenessOverride, PollOutcome, SnapshotCompleteness};
    use crawl_weburl::{HostKey, Origin, canonicalize};

    use super::super::super::Coordinator;
    use super::super::super::fixtures::{at, coordinator, copy, open_to_all};
    use crate::config::Config;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the row of a page request that took one second. `gap` and `wait_asked` are in
    /// seconds.
    fn past_request(why: &str, gap: u64, wait_asked: Option<u64>) -> RequestRow {
        RequestRow {
            url: "http://a.example/".to_owned(),
            host: "a.example".to_owned(),
            address: None,
            purpose: "page".to_owned(),
            start: 18_000,
            end: 19_000,
            status: Some(200),
            failure: None,
            gap_asked: gap * 1_000,
            why: why.to_owned(),
            wait_asked: wait_asked.map(|wait| wait * 1_000),
            after: None,
            signed: false,
            challenged: false,
            unmet_signature: None,
            method: None,
            via: None,
            robots: None,
            worker: None,
        }
    }

    /// Returns when a host with one page gets its next request, in seconds; 1,000 if it gets none.
    fn next_request(coordinator: &mut Coordinator, name: &str) -> u64 {
        let origin = Origin::parse(&format!("http://{name}")).unwrap();
        coordinator.hosts.set_robots(at(20), &origin, open_to_all());
        coordinator.hosts.set_pending(at(20), &origin, 1);
        match coordinator.hosts.poll(at(20)) {
            PollOutcome::Issue(_) => 20,
            PollOutcome::SleepUntil(tick) => tick.as_micros() / 1_000_000,
            PollOutcome::Idle => 1_000,
        }
    }

    /// Sets a gap of two seconds, and of nine for `slow.example`.
    fn with_delays(config: &mut Config) {
        config.politeness.delay = 2 * SECOND;
        config.politeness.max_retry_after = 50 * SECOND;
        let slow = PolitenessOverride {
            delay: Some(9 * SECOND),
            ..PolitenessOverride::default()
        };
        let sites = &mut config.politeness.sites;
        sites.insert("slow.example", slow).unwrap();
    }

    #[test]
    fn the_gap_after_a_request_of_an_earlier_run_is_kept() {
        // The last request ended at second 19.
        for (why, gap, wait, expected) in [
            ("delay", 7, None, 26),
            ("delay-factor", 7, None, 26),
            ("crawl-delay", 7, None, 26),
            ("request-rate", 7, None, 26),
            ("rate-limit", 7, None, 26),
            ("slow-restart", 7, None, 26),
            // In these rows, the host waited for something other than its gap.
            ("first", 0, None, 21),
            ("visit-time", 7, None, 21),
            ("retry-after", 7, None, 21),
            ("delay", 2, Some(30), 49),
            ("delay", 2, Some(51), 69),
        ] {
            let mut coordinator = coordinator(with_delays);
            let row = past_request(why, gap, wait);
            coordinator.note_past_request(at(20), &row).unwrap();
            let second = next_request(&mut coordinator, "a.example");
            assert_eq!(second, expected, "{why} {gap} {wait:?}");
        }
    }

    #[test]
    fn a_wait_after_503_is_not_attributed_to_a_retry_after() {
        for (status, expected) in [
            (503, PauseReason::Wait),
            (429, PauseReason::Wait),
            (404, PauseReason::RetryAfter),
        ] {
            let mut coordinator = coordinator(with_delays);
            let row = RequestRow {
                status: Some(status),
                ..past_request("delay", 2, Some(30))
            };
            coordinator.note_past_request(at(20), &row).unwrap();
            next_request(&mut coordinator, "a.example");
            let paused = coordinator.hosts.scheduler.host_summary(at(20)).paused;
            assert_eq!(paused[0].why, expected, "{status}");
        }
    }

    #[test]
    fn a_request_that_ended_in_the_future_ended_now() {
        let row = RequestRow {
            end: 900_000,
            ..past_request("delay", 7, Some(30))
        };
        // The stored states of hosts already include the request in the row, so the row is ignored.
        // If it counted as well, each later start would begin the same wait again.
        let mut after_clean_end = coordinator(with_delays);
        let restart = SnapshotCompleteness::Complete;
        after_clean_end.restore(restart).unwrap();
        after_clean_end.note_past_request(at(20), &row).unwrap();
        assert_eq!(next_request(&mut after_clean_end, "a.example"), 20);

        let mut coordinator = coordinator(with_delays);
        let restart = SnapshotCompleteness::WritesMayBeLost;
        coordinator.restore(restart).unwrap();
        coordinator.note_past_request(at(20), &row).unwrap();
        assert_eq!(next_request(&mut coordinator, "a.example"), 50);
        // A row with an invalid host is skipped.
        let row = RequestRow {
            host: "a b".to_owned(),
            ..past_request("delay", 7, None)
        };
        coordinator.note_past_request(at(20), &row).unwrap();
    }

    #[test]
    fn after_a_power_loss_each_host_with_work_waits_for_its_gap() {
        let mut coordinator = coordinator(with_delays);
        let mut transaction = coordinator.frontier.begin().unwrap();
        for name in ["a.example", "slow.example"] {
            let url = canonicalize(None, &format!("http://{name}/")).unwrap();
            transaction.admit(UrlToAdmit::seed(url)).unwrap();
        }
        transaction.commit().unwrap();
        coordinator.note_unknown_requests(at(20)).unwrap();
        // Until all hosts have waited, the end of the run must not count as clean.
        assert!(coordinator.waits_for_unknown_requests(at(28)));
        assert!(!coordinator.waits_for_unknown_requests(at(29)));
        for (name, expected) in [("b.example", 20), ("a.example", 22)] {
            assert_eq!(next_request(&mut coordinator, name), expected, "{name}");
        }
        let slow = HostKey::parse("slow.example").unwrap();
        let (wake, _) = coordinator.hosts.scheduler().snapshot(&slow).unwrap();
        assert_eq!(wake, at(29));
    }

    /// A run after a power loss may end before it sends any request. It then has stored no waits of
    /// hosts, so its end must not count as clean: the run after it has to wait too.
    #[test]
    fn unknown_requests_are_waited_for_as_long_as_robots_txt_requires() {
        for (rule, seconds) in [
            ("Crawl-delay: 1", 2),
            ("Crawl-delay: 30", 30),
            ("Request-rate: 1/40", 40),
            ("Request-rate: 1/40 0300-0400", 40),
        ] {
            let mut coordinator = coordinator(with_delays);
            let origin = Origin::parse("http://a.example").unwrap();
            let body = format!("User-agent: *\n{rule}\n").leak();
            let mut transaction = coordinator.frontier.begin().unwrap();
            let seed = UrlToAdmit::seed(canonicalize(None, "http://a.example/").unwrap());
            transaction.admit(seed).unwrap();
            transaction.keep_robots(&origin, &copy(&origin, body).to_bytes());
            transaction.commit().unwrap();
            coordinator.note_unknown_requests(at(20)).unwrap();
            coordinator.begin(at(20), &mut Vec::new());
            let is_waiting = |second| coordinator.waits_for_unknown_requests(at(second));
            assert!(is_waiting(20 + seconds - 1), "{rule}");
            assert!(!is_waiting(20 + seconds), "{rule}");
        }
    }

    #[test]
    fn the_state_of_a_host_is_restored() {
        let host = HostKey::parse("a.example").unwrap();
        let address = "192.0.2.7".parse().unwrap();
        let limited = |config: &mut Config| config.budgets.max_server_time = Some(9 * SECOND);
        type Change = fn(&mut Config);
        let changes: [(Change, Duration); 2] = [(limited, 5 * SECOND), (|_| {}, Duration::ZERO)];
        for (change, served) in changes {
            let mut before = coordinator(|_| {});
            before
                .hosts
                .budgets_mut()
                .request_ended(&host, at(10), 5 * SECOND);
            before.hosts.scheduler().set_address(at(10), &host, address);
            let state = before.hosts.state(&host);
            let mut now = coordinator(change);
            let mut transaction = now.frontier.begin().unwrap();
            transaction.keep_host(&host, state.wake, &state.bytes());
            transaction.commit().unwrap();
            assert_eq!(now.past_address(&host).unwrap(), Some(address));
            assert!(!now.scope.judges_again());
            now.restore(SnapshotCompleteness::Complete).unwrap();
            assert!(now.scope.judges_again());
            // The server time of earlier runs is added up at the start only if a budget needs it,
            // since that requires visiting all hosts.
            assert_eq!(now.hosts.budgets_mut().served(), served);
        }
        let unknown = HostKey::parse("b.example").unwrap();
        assert_eq!(coordinator(|_| {}).past_address(&unknown).unwrap(), None);
    }
}

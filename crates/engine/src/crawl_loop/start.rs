//! The beginning of a run: what earlier runs left is taken up.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::RequestRow;
use crawl_frontier::FrontierError;
use crawl_scheduler::{RestartKind, Tick, stored_address};
use crawl_weburl::HostKey;

use super::Coordinator;
use crate::admissions::{seed_admission, seed_sitemap_admission};
use crate::messages::{Effect, WriterMessage};

impl Coordinator {
    /// Takes up what earlier runs left of all hosts; each is read when a permit of the host is due.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    pub(crate) fn restore(&mut self, rest: RestartKind) -> Result<(), FrontierError> {
        self.hosts.resume(rest);
        self.scope.resume();
        if self.host_budgets.are_shared() {
            self.share_budgets()?;
        }
        Ok(())
    }

    /// Counts what every host spent against the budgets that several share.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    pub(super) fn share_budgets(&mut self) -> Result<(), FrontierError> {
        let stored = self.frontier.hosts()?.into_iter();
        let stored = stored.map(|(host, _, bytes)| (host, bytes));
        self.host_budgets.share(stored.chain(self.hosts.away()));
        Ok(())
    }

    /// The address at which earlier runs found a host last, if the state has it.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    pub(crate) fn past_address(&self, host: &HostKey) -> Result<Option<IpAddr>, FrontierError> {
        let stored = self.frontier.host(host)?;
        Ok(stored.and_then(|(_, bytes)| stored_address(self.host_budgets.politeness(&bytes))))
    }

    /// Takes up a request of an earlier run, as its log has it: the gap after it is kept.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    pub(crate) fn note_past_request(
        &mut self,
        now: Tick,
        row: &RequestRow,
    ) -> Result<(), FrontierError> {
        let Ok(host) = HostKey::parse(&row.host) else {
            return Ok(());
        };
        if !self.keeps_host(&host) {
            return Ok(());
        }
        self.recall(now, &host)?;
        let end = Tick::from_micros(row.end.saturating_mul(1000)).min(now);
        let politeness = &self.config.politeness;
        // What was waited before that request is no measure of the gap after it, unless
        // it was a gap.
        let gap = match row.why.as_str() {
            "delay" | "delay-factor" | "crawl-delay" | "request-rate" | "rate-limit"
            | "slow-restart" => Duration::from_millis(row.gap_asked),
            _ => self.own_delay(&host),
        };
        let wait = row.wait_asked.map(Duration::from_millis);
        let wait = wait.map(|wait| end + wait.min(politeness.max_retry_after));
        self.scheduler.note_past_request(now, &host, end, gap, wait);
        Ok(())
    }

    /// After a run that was cut off: a host with pending work may have been asked just
    /// then, and nothing says so. Each waits a gap, as if its request ended now.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    pub(crate) fn note_unknown_requests(&mut self, now: Tick) -> Result<(), FrontierError> {
        for (origin, _) in self.frontier.origins() {
            let host = origin.host_key();
            self.recall(now, &host)?;
            let gap = self.own_delay(&host);
            self.scheduler.note_past_request(now, &host, now, gap, None);
        }
        Ok(())
    }

    pub(super) fn own_delay(&self, host: &HostKey) -> Duration {
        let politeness = &self.config.politeness;
        let own = politeness
            .sites
            .find(host)
            .and_then(|(_, terms)| terms.delay);
        own.unwrap_or(politeness.delay)
    }

    /// Begins: seeds are admitted, and what earlier runs left pending is woken.
    pub(crate) fn begin(&mut self, now: Tick, out: &mut Vec<Effect>) {
        for (origin, urls) in self.frontier.origins() {
            self.wake(now, &origin, urls);
        }
        let seeds = self.config.seeds.iter();
        let seeds: Vec<_> = seeds
            .map(|seed| match self.config.seed_sitemaps.contains(seed) {
                true => seed_sitemap_admission(seed, self.scope.current()),
                false => seed_admission(seed, self.scope.current()),
            })
            .collect();
        if !seeds.is_empty() {
            self.write(WriterMessage::Seeds(seeds), out);
        }
        let scope = Some(Arc::clone(self.scope.current()));
        self.write(WriterMessage::TakeBack { scope }, out);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use crawl_archive::rows::RequestRow;
    use crawl_frontier::Admission;
    use crawl_scheduler::{PolitenessOverride, Poll, RestartKind};
    use crawl_weburl::{HostKey, Origin, canonicalize};

    use super::super::Coordinator;
    use super::super::by_itself::{at, config, coordinator, open_to_all};
    use crate::config::Config;
    use crate::messages::{Effect, WriterMessage};

    const SECOND: Duration = Duration::from_secs(1);

    /// A page that took its server so many seconds, as its request's row has it.
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
            worker: None,
        }
    }

    /// The second at which a host is asked next that has a page, or none before second 1,000.
    fn asked_at(coordinator: &mut Coordinator, name: &str) -> u64 {
        let origin = Origin::parse(&format!("http://{name}")).unwrap();
        coordinator
            .scheduler
            .set_robots(at(20), &origin, open_to_all());
        coordinator.scheduler.set_pending(at(20), &origin, 1);
        match coordinator.scheduler.poll(at(20)) {
            Poll::Issue(_) => 20,
            Poll::SleepUntil(tick) => tick.as_micros() / 1_000_000,
            Poll::Idle => 1_000,
        }
    }

    /// A host is asked every two seconds by rule, and `slow.example` every nine.
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
    fn ours_the_gap_after_a_request_of_an_earlier_run_is_kept() {
        // The last request ended at second 19.
        for (why, gap, wait, expected) in [
            ("delay", 7, None, 26),
            ("delay-factor", 7, None, 26),
            ("crawl-delay", 7, None, 26),
            ("request-rate", 7, None, 26),
            ("rate-limit", 7, None, 26),
            ("slow-restart", 7, None, 26),
            // These were no gaps between two requests.
            ("first", 0, None, 21),
            ("visit-time", 7, None, 21),
            ("retry-after", 7, None, 21),
            ("delay", 2, Some(30), 49),
            ("delay", 2, Some(51), 69),
        ] {
            let mut coordinator = coordinator(with_delays);
            let row = past_request(why, gap, wait);
            coordinator.note_past_request(at(20), &row).unwrap();
            let found = asked_at(&mut coordinator, "a.example");
            assert_eq!(found, expected, "{why} {gap} {wait:?}");
        }
    }

    #[test]
    fn ours_a_request_that_ended_in_the_future_ended_now() {
        let mut coordinator = coordinator(with_delays);
        let row = RequestRow {
            end: 900_000,
            ..past_request("delay", 7, None)
        };
        coordinator.note_past_request(at(20), &row).unwrap();
        assert_eq!(asked_at(&mut coordinator, "a.example"), 27);
        // A host that no row can name is passed over.
        let row = RequestRow {
            host: "a b".to_owned(),
            ..past_request("delay", 7, None)
        };
        coordinator.note_past_request(at(20), &row).unwrap();
    }

    #[test]
    fn ours_after_a_power_loss_each_host_with_work_waits_its_own_gap() {
        let mut coordinator = coordinator(with_delays);
        let mut transaction = coordinator.frontier.begin().unwrap();
        for name in ["a.example", "slow.example"] {
            let url = canonicalize(None, &format!("http://{name}/")).unwrap();
            transaction.admit(Admission::seed(url)).unwrap();
        }
        transaction.commit().unwrap();
        coordinator.note_unknown_requests(at(20)).unwrap();
        for (name, expected) in [("b.example", 20), ("a.example", 22)] {
            assert_eq!(asked_at(&mut coordinator, name), expected, "{name}");
        }
        let slow = HostKey::parse("slow.example").unwrap();
        let (wake, _) = coordinator.scheduler.snapshot(&slow).unwrap();
        assert_eq!(wake, at(29));
    }

    #[test]
    fn ours_what_earlier_runs_left_of_a_host_is_taken_up() {
        let host = HostKey::parse("a.example").unwrap();
        let address = "192.0.2.7".parse().unwrap();
        let limited = |config: &mut Config| config.budgets.max_server_time = Some(9 * SECOND);
        type Change = fn(&mut Config);
        let changes: [(Change, Duration); 2] = [(limited, 5 * SECOND), (|_| {}, Duration::ZERO)];
        for (change, served) in changes {
            let mut before = coordinator(|_| {});
            before.host_budgets.asked(&host, at(10), 5 * SECOND, 0);
            before.scheduler.set_address(at(10), &host, address);
            let state = before.host_state(&host);
            let mut now = coordinator(change);
            let mut transaction = now.frontier.begin().unwrap();
            transaction.keep_host(&host, state.wake, &state.bytes());
            transaction.commit().unwrap();
            assert_eq!(now.past_address(&host).unwrap(), Some(address));
            assert!(!now.scope.judges_again());
            now.restore(RestartKind::AfterKill).unwrap();
            assert!(now.scope.judges_again());
            // It costs a walk over all hosts, so it is done where a budget asks for it.
            assert_eq!(now.host_budgets.served(), served);
        }
        let unknown = HostKey::parse("b.example").unwrap();
        assert_eq!(coordinator(|_| {}).past_address(&unknown).unwrap(), None);
    }

    #[test]
    fn ours_a_run_begins_with_its_seeds_and_with_what_was_put_aside() {
        for (seeds, messages) in [(config().seeds, 2), (Vec::new(), 1)] {
            let mut coordinator = coordinator(|config| config.seeds = seeds);
            let frontier = Arc::clone(&coordinator.frontier);
            let mut transaction = frontier.begin().unwrap();
            let url = canonicalize(None, "http://b.example/").unwrap();
            transaction.admit(Admission::seed(url.clone())).unwrap();
            transaction.commit().unwrap();
            let mut out = Vec::new();
            coordinator.begin(at(20), &mut out);
            assert!(coordinator.scheduler.knows(&url.host_key()));
            assert_eq!(
                (out.len(), coordinator.backlog.unsettled()),
                (messages, messages as u64)
            );
            let last = out.pop().unwrap();
            assert!(matches!(
                last,
                Effect::Write(WriterMessage::TakeBack { scope: Some(_) })
            ));
        }
    }
}

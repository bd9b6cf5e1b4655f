//! The beginning of a run: what earlier runs left is taken up.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::RequestRow;
use crawl_frontier::FrontierError;
use crawl_scheduler::{RestartKind, Tick, stored_address};
use crawl_weburl::HostKey;

use super::Coordinator;
use crate::admissions::seed_admission;
use crate::messages::{Effect, WriterMessage};

impl Coordinator {
    /// Takes up what earlier runs left of all hosts; each is read when its turn comes.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    pub(crate) fn restore(&mut self, rest: RestartKind) -> Result<(), FrontierError> {
        self.hosts.resume(rest);
        if self.config.budgets.max_server_time.is_some() {
            for (_, _, stored) in self.frontier.hosts()? {
                self.host_budgets.add_served(&stored);
            }
        }
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

    fn own_delay(&self, host: &HostKey) -> Duration {
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
            .map(|seed| seed_admission(seed, &self.scope))
            .collect();
        if !seeds.is_empty() {
            self.write(WriterMessage::Seeds(seeds), out);
        }
        let scope = Some(Arc::clone(&self.scope));
        self.write(WriterMessage::TakeBack { scope }, out);
    }
}

//! How a run begins: what earlier runs left is taken up.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::RequestRow;
use crawl_frontier::{Admission, FrontierError, Reason};
use crawl_policy::scope::ScopeVerdict;
use crawl_scheduler::{Restart, Tick};
use crawl_weburl::HostKey;

use crate::item::{Effect, HostState, Item};
use crate::read::seed_admission;
use crate::ring::Ring;

impl Ring {
    /// Takes up a host's state as an earlier run left it.
    pub fn restore_host(&mut self, now: Tick, state: &HostState, rest: Restart) {
        let bytes = self.accounts.restore(&state.host, &state.bytes);
        self.scheduler.restore(now, &state.host, bytes, rest);
    }

    /// Takes up a request of an earlier run, as its log has it: the gap after it is kept.
    pub fn note_past_request(&mut self, now: Tick, row: &RequestRow) {
        let Ok(host) = HostKey::parse(&row.host) else {
            return;
        };
        let end = Tick::from_micros(row.end.saturating_mul(1000)).min(now);
        let politeness = &self.config.politeness;
        // What was waited before that request is no measure of the gap after it, unless
        // it was a gap.
        let gap = match row.why.as_str() {
            "delay" | "delay-factor" | "crawl-delay" | "request-rate" | "rate-limit"
            | "slow-restart" => Duration::from_millis(row.gap_asked),
            _ => politeness.delay,
        };
        let wait = row.wait_asked.map(Duration::from_millis);
        let wait = wait.map(|wait| end + wait.min(politeness.max_retry_after));
        self.scheduler.note_past_request(now, &host, end, gap, wait);
    }

    /// After a run that was cut off: a host with pending work may have been asked just
    /// then, and nothing says so. Each waits a gap, as if its request ended now.
    pub fn note_unknown_requests(&mut self, now: Tick) {
        let gap = self.config.politeness.delay;
        for (origin, _) in self.frontier.origins() {
            self.scheduler
                .note_past_request(now, &origin.host_key(), now, gap, None);
        }
    }

    /// Begins: seeds are admitted, and what earlier runs left pending is woken.
    pub fn begin(&mut self, now: Tick, out: &mut Vec<Effect>) {
        for (origin, urls) in self.frontier.origins() {
            self.wake(now, &origin, urls);
        }
        let seeds = self.config.seeds.iter();
        let seeds: Vec<_> = seeds
            .map(|seed| seed_admission(seed, &self.scope))
            .collect();
        if !seeds.is_empty() {
            self.write(Item::Seeds(seeds), out);
        }
        if let Err(error) = self.take_back_deferred(out) {
            self.fail(error);
        }
    }

    /// Admits what an earlier run put aside for its depth, where this one goes deeper.
    fn take_back_deferred(&mut self, out: &mut Vec<Effect>) -> Result<(), FrontierError> {
        let mut again = Vec::new();
        let frontier = Arc::clone(&self.frontier);
        frontier.each_deferred(&mut |waiting| {
            let deep = waiting
                .exclusion
                .is_some_and(|why| why.reason == Reason::Depth);
            if deep && self.scope.judge(waiting.url, waiting.depth) == ScopeVerdict::In {
                let via = waiting.via.unwrap_or(waiting.url).clone();
                again.push(Admission::link(waiting.url.clone(), waiting.depth, via));
            }
            ControlFlow::Continue(())
        })?;
        if !again.is_empty() {
            self.write(Item::Admit(again), out);
        }
        Ok(())
    }
}

//! One step of the crawl loop: issues permits while there is room for requests, and checks whether
//! the run is over.

use crawl_scheduler::{PollOutcome, Tick};

use super::run_end::CrawlSpending;
use super::waiting_documents::StopGraceDeadline;
use super::worker_coordination::WorkerState;
use super::{Coordinator, DriverStep};
use crate::messages::{Effect, WriterMessage};
use crate::summary::EndReason;

impl Coordinator {
    /// Issues and uses permits until none is ready or there is no room for another request. Stops
    /// earlier if events have waited too long; the next step is then due at once.
    pub(crate) fn advance(&mut self, now: Tick, out: &mut Vec<Effect>) -> DriverStep {
        if self.end.begin_step() {
            return DriverStep::Done;
        }
        for state in self.hosts.redated_states() {
            self.write(WriterMessage::Host(Box::new(state)), out);
        }
        self.backlog.note_time(now);
        self.attend_to_workers(now, out);
        let is_paused = self.end.is_paused();
        let deadline = self.end.end_by_time(now);
        // Check the page budget of all workers here: `issue_permits` checks it only if there is
        // room for requests, and a spent page budget leaves no room.
        let are_pages_spent = !is_paused && self.shared.are_pages_spent() == Some(true);
        if are_pages_spent && self.backlog.leases() == 0 {
            self.end.end(EndReason::Budget("max-pages"));
        }
        let wake = match is_paused {
            true => None,
            false => self.issue_permits(now, deadline, out),
        };
        if !self.renders.is_empty() && self.has_room(now) {
            self.wake_held_pages(now);
        }
        let wake = match self.renders.is_empty() || is_paused || self.end.is_ending() {
            true => wake,
            false => {
                let of_renders = self.issue_for_renders(now, out);
                wake.into_iter().chain(of_renders).min()
            }
        };
        if self.end.is_ending() {
            self.give_up_renders(now, out);
        }
        let all_found = self.hosts.requests().are_all_found() && self.backlog.is_empty();
        if self.end.is_ending() || is_paused || (all_found && !self.has_room(now)) {
            self.hosts.give_found_back(now);
        }
        self.evict_idle(now);
        if (is_paused || self.backlog.disk().is_low()) && self.is_drained() {
            self.hosts.free_all(now);
        }
        // A run that is paused or waits for disk space is not over.
        let is_held = self.logins.are_credentials_awaited()
            || is_paused
            || (self.backlog.disk().is_low() && self.frontier.counts().pending > 0);
        if self.is_drained() && !self.end.is_ending() && !is_held && self.end_naturally(now, out) {
            return self.advance(now, out);
        }
        if self.end.is_broken() || (self.end.is_ending() && self.is_drained()) {
            // Crash suspects that were not read become pending again.
            for lease in self.leased_url_judge.take_held() {
                self.frontier.release(lease);
            }
            return DriverStep::Done;
        }
        DriverStep::Wait(match self.end.is_ending() {
            true => self.give_up(now, out),
            false => wake,
        })
    }

    /// Gives up documents, requests and unread pages that hold up the end of the run for too long.
    /// Returns when to check for them again.
    fn give_up(&mut self, now: Tick, out: &mut Vec<Effect>) -> Option<Tick> {
        let documents = self.backlog.documents_mut().give_up(now);
        let all = self.end.give_up(now);
        let effects = [(documents, Effect::GiveUpDocuments), (all, Effect::GiveUp)];
        let mut wake: Option<Tick> = None;
        for (give_up, effect) in effects {
            match give_up {
                StopGraceDeadline::No => {}
                StopGraceDeadline::At(until) => wake = wake.into_iter().chain([until]).min(),
                StopGraceDeadline::Now => out.push(effect),
            }
        }
        wake
    }

    /// Issues and uses permits while there is room. Returns when the next step is due, which is the
    /// `deadline` or earlier.
    fn issue_permits(
        &mut self,
        now: Tick,
        deadline: Option<Tick>,
        out: &mut Vec<Effect>,
    ) -> Option<Tick> {
        let mut wake = deadline;
        self.turns.handled_events();
        while !self.end.is_ending() && self.has_room(now) {
            if self.turns.are_events_due() {
                return Some(now);
            }
            if let Some(budget) = self.end.spent_budget(&self.spent()) {
                if self.backlog.leases() == 0 {
                    self.end_by_budget(budget);
                }
                break;
            }
            let admission_due = match self.use_found(now, out) {
                Ok(()) => continue,
                Err(until) => until,
            };
            wake = admission_due.into_iter().chain(wake).min();
            match self.hosts.poll(now) {
                PollOutcome::Issue(permit) => self.issue(now, permit, out),
                PollOutcome::SleepUntil(tick) => {
                    return Some(wake.map_or(tick, |wake| wake.min(tick)));
                }
                PollOutcome::Idle => break,
            }
        }
        wake
    }

    /// Ends a run whose budget is spent, once all leased URLs are committed. The run counts as
    /// finished if the budget kept no URL from being fetched. While requests in flight may find
    /// URLs, the run continues.
    fn end_by_budget(&mut self, budget: &'static str) {
        let counts = self.frontier.counts();
        // Leased URLs count as unsettled, because crash suspects stay leased until they are read.
        // In a shared crawl, other workers may still find URLs.
        let is_all_settled = !self.shared.is_shared() && counts.pending + counts.leased == 0;
        if is_all_settled && !self.is_drained() {
            return;
        }
        // A sample is not drawn in a run whose budget is spent.
        self.end.end(
            match is_all_settled && !self.leased_url_judge.is_to_draw() {
                true => EndReason::Finished,
                false => EndReason::Budget(budget),
            },
        );
    }

    /// Ends a run that can issue no more permits, with nothing in flight or uncommitted. The run
    /// continues if a crash suspect must be read, if pages of mirrors must be judged again, if the
    /// sample must be drawn, or if another worker may find more URLs. Returns true if a crash
    /// suspect is fetched next.
    fn end_naturally(&mut self, now: Tick, out: &mut Vec<Effect>) -> bool {
        self.leased_url_judge.end_reading();
        let mut ending = self.hosts.natural_end(now, &self.robots);
        let is_over = ending.as_ref().is_some_and(EndReason::is_for_good);
        if is_over && let Some(lease) = self.leased_url_judge.begin_reading() {
            let origin = lease.origin.clone();
            self.frontier.release(lease);
            self.wake_pending(now, &origin);
            return true;
        }
        if ending.is_some() && self.take_back_mirrored(out) {
            ending = None;
        }
        // The sampling frame counts as complete even if some hosts are unreachable. It is
        // incomplete if a spent budget kept URLs from being fetched. A later run with a larger
        // budget can then draw the sample.
        let is_frame_complete = match &ending {
            Some(EndReason::Finished) => true,
            Some(_) => self.hosts.budgets().spent().is_none(),
            None => false,
        };
        if is_frame_complete && self.leased_url_judge.is_to_draw() {
            ending = None;
            self.write(WriterMessage::DrawSample, out);
        }
        let pages = self.totals().pages;
        if ending.is_none() {
            // The run continues, for example because an unreachable host may be fetched again soon.
            // So this worker doesn't rest.
            self.shared.end_rest(pages, out);
        }
        let ending = ending.and_then(|alone| self.shared.end_with_others(alone, pages, out));
        if let Some(ended) = ending {
            self.end.end(ended);
        }
        false
    }

    /// Has the writer admit the deferred pages of mirrors again. Returns false if no page of a
    /// mirror can have been deferred since the last call. A replay calls this when the recorded
    /// crawl did.
    pub(crate) fn take_back_mirrored(&mut self, out: &mut Vec<Effect>) -> bool {
        let is_due = self.leased_url_judge.takes_back_mirrored();
        if is_due {
            self.write(WriterMessage::TakeBackMirrored, out);
        }
        is_due
    }

    pub(super) fn has_room(&self, now: Tick) -> bool {
        let reads_alone = !self.backlog.is_empty() && self.leased_url_judge.reads_alone();
        let pages = self.totals().pages + self.backlog.leases();
        self.backlog.has_room(now)
            && !self.end.is_broken()
            && !reads_alone
            && self.shared.may_fetch(pages)
    }

    /// Returns whether nothing is in flight and everything is committed.
    fn is_drained(&self) -> bool {
        self.hosts.requests().is_empty() && self.backlog.is_empty()
    }

    pub(super) fn spent(&self) -> CrawlSpending {
        let of_round = self.report.of_round();
        CrawlSpending {
            pages: of_round.pages + self.backlog.leases(),
            are_shared_pages_spent: self.shared.are_pages_spent(),
            bytes: of_round.bytes + self.shared.others_bytes(),
            server_time: self.hosts.budgets().served(),
        }
    }

    /// Requests more pages from the shared budget, and hands hosts over to other workers.
    pub(super) fn attend_to_workers(&mut self, now: Tick, out: &mut Vec<Effect>) {
        let state = WorkerState {
            pages: self.totals().pages,
            leases: self.backlog.leases(),
            is_busy: !self.is_drained(),
            is_ending: self.end.is_ending(),
        };
        if self.shared.step(now, state, out) {
            let left = self.hosts.hand_over(now, &mut self.shared, out);
            for origin in left.origins {
                self.robots.forget(&origin);
            }
            // The rules of these origins depended on a request to a host that was handed over.
            // Fetch robots.txt of each origin again, which then redirects to a host of another
            // worker.
            for origin in left.unsent_hops {
                self.robots.take_pending_fetch(&origin);
                self.hosts.begin_rules_again(now, &origin);
            }
        }
    }

    /// Evicts idle hosts until memory use is below the limit.
    pub(super) fn evict_idle(&mut self, now: Tick) {
        for origin in self.hosts.evict_idle(now) {
            self.robots.forget(&origin);
        }
    }
}

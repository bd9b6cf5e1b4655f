//! The crawl loop: events in, effects out.

mod backlog;
#[cfg(test)]
mod by_itself;
mod byte_lock;
mod crash_suspects;
mod disk_floor;
mod estimate;
pub(crate) mod followed;
mod group_budgets;
mod host_budgets;
pub(crate) mod host_locks;
mod lease;
mod new_rules;
mod permits;
mod progress;
pub(crate) mod request_rows;
mod requests_in_flight;
mod resident_hosts;
mod retries;
mod robots;
mod robots_state;
mod run_end;
mod run_report;
mod run_scope;
mod run_summary;
mod run_totals;
pub(crate) mod running_crawls;
pub(crate) mod shared_hosts;
mod start;
pub(crate) mod steering;
mod stop_conditions;
#[cfg(test)]
mod tests;
pub(crate) mod trap_gate;
mod turns;
mod unread;
mod waiting_documents;
mod waiting_urls;

use std::sync::Arc;

use crawl_fetcher::{Failure, FailureKind};
use crawl_frontier::{Frontier, FrontierError};
use crawl_scheduler::{Poll, Scheduler, Tick};
use crawl_scope::Scope;
use crawl_weburl::{HostKey, Origin};

use self::backlog::Backlog;
use self::crash_suspects::CrashSuspects;
use self::host_budgets::HostBudgets;
use self::host_locks::HostLocks;
use self::requests_in_flight::RequestsInFlight;
use self::resident_hosts::ResidentHosts;
use self::retries::Retries;
use self::robots_state::RobotsStates;
use self::run_end::RunEnd;
use self::run_report::RunReport;
use self::run_scope::RunScope;
use self::run_totals::RunTotals;
use self::shared_hosts::SharedHosts;
use self::steering::Steering;
use self::trap_gate::TrapGate;
use self::turns::HostTurns;
use self::waiting_documents::GiveUp;
use crate::config::Config;
use crate::counters::EndedRequest;
use crate::error::EngineError;
use crate::messages::{Committed, Effect, EndedExchange, Event, HostState, Job, WriterMessage};
use crate::revisit::visit::RevisitSchedule;
use crate::sampling::Sampling;
use crate::shared_traps::SharedTraps;
use crate::summary::Ended;
use crate::time::millis;
use crate::totals::Totals;
use crate::trace_events::TraceEvents;

/// The crawl loop: routes events to the parts that own the state of a crawl, and their effects to the
/// driver. Nothing in it waits or sleeps.
///
/// Call the set-up methods first (`enter_round`, `sample`, `share_traps`, `share_hosts`,
/// `share_crawl`, `read_by`, `restore`), then `begin`. From then on, [`handle`](Self::handle) takes in
/// each event, and [`advance`](Self::advance) is due after a batch of events and at the time that it
/// returned. Once it returns [`Next::Done`], [`outcome`](Self::outcome) and `into_summary` return how
/// the run ended.
///
/// The doc of each part lists its events, its effects and the order of its calls:
/// - permit to commit: [`RequestsInFlight`], [`HostTurns`], [`Backlog`];
/// - what happens to a leased URL: [`RunScope`], [`RobotsStates`], [`TrapGate`], [`CrashSuspects`],
///   [`Retries`];
/// - hosts: [`Scheduler`], [`ResidentHosts`], [`HostBudgets`], [`SharedHosts`];
/// - the run as a whole: [`RunEnd`], [`RunTotals`], [`RunReport`], [`Steering`].
pub(crate) struct Coordinator {
    config: Arc<Config>,
    scheduler: Scheduler,
    frontier: Arc<dyn Frontier>,
    origins: RobotsStates,
    scope: RunScope,
    host_budgets: HostBudgets,
    hosts: ResidentHosts,
    suspects: CrashSuspects,
    traps: TrapGate,
    /// Where several workers share the crawl.
    shared: Option<SharedHosts>,
    retries: Retries,
    totals: RunTotals,
    turns: HostTurns,
    requests: RequestsInFlight,
    backlog: Backlog,
    end: RunEnd,
    steering: Steering,
    report: RunReport,
    events: TraceEvents,
}

/// The driver's step after the effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Wait for an event, at most until this moment.
    Wait(Option<Tick>),
    /// The run is over: nothing is in flight, nothing unsettled.
    Done,
}

impl Coordinator {
    /// A coordinator over an opened frontier; `totals` are those of the runs before.
    #[must_use]
    pub(crate) fn new(
        config: Arc<Config>,
        frontier: Arc<dyn Frontier>,
        scope: Scope,
        totals: Totals,
        now: Tick,
        seed: u64,
    ) -> Coordinator {
        Coordinator {
            scheduler: Scheduler::new(config.politeness.clone(), seed),
            origins: RobotsStates::new(&config),
            hosts: ResidentHosts::new(&config),
            suspects: CrashSuspects::default(),
            traps: TrapGate::new(config.traps),
            shared: None,
            host_budgets: HostBudgets::new(&config.budgets),
            events: TraceEvents::new(&config),
            backlog: Backlog::new(&config, now),
            scope: RunScope::new(scope, config.resources),
            retries: Retries::new(config.retries),
            config,
            frontier,
            totals: RunTotals::new(totals, now),
            turns: HostTurns::new(totals),
            requests: RequestsInFlight::default(),
            end: RunEnd::default(),
            steering: Steering::default(),
            report: RunReport::default(),
        }
    }

    /// Works in this round from now on.
    pub(crate) fn enter_round(&mut self, visits: RevisitSchedule) {
        self.totals.enter_round(&visits);
        self.host_budgets.enter_round(visits.round.number);
    }

    /// Fetches only the pages of a sample from now on.
    pub(crate) fn sample(&mut self, sampling: Option<Sampling>) {
        self.traps.sample(sampling);
    }

    /// Uses the evidence for traps that the writer shares from now on.
    pub(crate) fn share_traps(&mut self, shared: SharedTraps) {
        self.traps.share_traps(shared);
    }

    /// Minds other crawls of the same user from now on.
    pub(crate) fn share_hosts(&mut self, locks: HostLocks) {
        self.hosts.share(locks);
    }

    /// Returns whether the run was told to end without saving.
    #[must_use]
    pub(crate) fn stopped_at_once(&self) -> bool {
        self.end.is_stopped_at_once()
    }

    /// Takes in what happened.
    pub(crate) fn handle(&mut self, now: Tick, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Fetched(ended) => self.fetched(now, ended, out),
            Event::AddressFound { permit, address } => {
                self.requests.look_up_ended(permit, address);
                // A replay drives turns itself and never calls `advance` for them.
                if self.turns.are_repeated() {
                    let _ = self.use_found(now, out);
                }
            }
            Event::Committed(committed) => {
                let has_turned = committed.has_turned;
                let leaves_links = committed.leaves_links;
                self.committed(now, *committed);
                if let Some(are_left) = leaves_links
                    && self.links_taken(are_left)
                {
                    self.write(WriterMessage::TakeLinks, out);
                }
                if has_turned {
                    self.write(WriterMessage::TakeBack { scope: None }, out);
                }
            }
            Event::ReadingBegan { bytes } => self.backlog.reading_began(bytes),
            Event::GivenBackUnread(page) => {
                self.backlog.reading_began(page.exchange.body.len() as u64);
                self.given_back(now, *page, out);
            }
            Event::ReadingStopped(page) => self.given_back(now, *page, out),
            Event::FreeSpace { bytes } => self.note_free_space(bytes),
            Event::DocumentWaits { host, bytes } => self.backlog.document_waits(host, bytes),
            Event::DocumentEnded { host, bytes } => {
                for origin in self.backlog.document_ended(now, &host, bytes) {
                    self.wake(now, &origin, self.frontier.pending(&origin));
                }
            }
            Event::Stop(stop) => {
                self.end.stop(stop);
                self.backlog.documents_mut().stop(now);
            }
            Event::Command(ask) => self.told(now, ask, out),
            Event::Shared(news) => self.told_of_workers(now, news, out),
            Event::Broken(error) => self.fail(error),
        }
    }

    /// Issues permits and uses them until none is due, there is no room, or events are to be taken
    /// in first: then the next step is due at once.
    pub(crate) fn advance(&mut self, now: Tick, out: &mut Vec<Effect>) -> Next {
        if self.end.begin_step() {
            return Next::Done;
        }
        for host in self.hosts.take_redated() {
            let state = self.host_state(&host);
            self.write(WriterMessage::Host(Box::new(state)), out);
        }
        self.backlog.note_time(now);
        self.attend_to_workers(now, out);
        let is_paused = self.steering.is_paused();
        let deadline = self.end_by_budget(now);
        let wake = match is_paused {
            true => None,
            false => self.issue_permits(now, deadline, out),
        };
        let all_found = self.requests.are_all_found() && self.backlog.is_empty();
        if self.end.is_ending() || is_paused || (all_found && !self.has_room(now)) {
            self.give_found_back(now);
        }
        self.let_hosts_go(now);
        // A run that waits for room on the disk is not over.
        let is_held =
            is_paused || (self.backlog.disk().is_low() && self.frontier.counts().pending > 0);
        if self.is_drained() && !self.end.is_ending() && !is_held && self.end_naturally(now, out) {
            return self.advance(now, out);
        }
        if self.end.is_broken() || (self.end.is_ending() && self.is_drained()) {
            self.release_suspects();
            return Next::Done;
        }
        Next::Wait(match self.end.is_ending() {
            true => self.give_up(now, out),
            false => wake,
        })
    }

    /// Gives up documents, requests and unread pages that hold up the end of the run for too long.
    /// Returns when to look again.
    fn give_up(&mut self, now: Tick, out: &mut Vec<Effect>) -> Option<Tick> {
        let deadline = self.deadline();
        let documents = self.backlog.documents_mut().give_up(now);
        let all = self.end.give_up(now, deadline);
        let effects = [(documents, Effect::GiveUpDocuments), (all, Effect::GiveUp)];
        let mut wake: Option<Tick> = None;
        for (give_up, effect) in effects {
            match give_up {
                GiveUp::No => {}
                GiveUp::At(until) => wake = wake.into_iter().chain([until]).min(),
                GiveUp::Now => out.push(effect),
            }
        }
        wake
    }

    /// Returns whether nothing is in flight and everything is committed.
    fn is_drained(&self) -> bool {
        self.requests.is_empty() && self.backlog.is_empty()
    }

    /// Ends the run if its time is over or its page budget is spent. Returns the deadline. A paused run
    /// does not end.
    fn end_by_budget(&mut self, now: Tick) -> Option<Tick> {
        if self.steering.is_paused() {
            return None;
        }
        let deadline = self.deadline();
        if deadline.is_some_and(|deadline| deadline <= now) {
            self.end.end(Ended::Budget("max-time"));
        }
        // `issue_permits` would not notice, as a spent page budget leaves no room.
        if self.are_pages_spent() == Some(true) && self.backlog.leases() == 0 {
            self.end.end(Ended::Budget("max-pages"));
        }
        deadline
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
        self.turns.took_in_events();
        while !self.end.is_ending() && self.has_room(now) {
            if self.turns.are_events_due() {
                return Some(now);
            }
            if let Some(budget) = self.spent_budget() {
                if self.backlog.leases() == 0 {
                    self.end.end(Ended::Budget(budget));
                }
                break;
            }
            let admission_due = match self.use_found(now, out) {
                Ok(()) => continue,
                Err(until) => until,
            };
            wake = admission_due.into_iter().chain(wake).min();
            match self.scheduler.poll(now) {
                Poll::Issue(permit) => self.issue(now, permit, out),
                Poll::SleepUntil(tick) => {
                    return Some(wake.map_or(tick, |wake| wake.min(tick)));
                }
                Poll::Idle => break,
            }
        }
        wake
    }

    /// Ends a drained run that can issue no more permits, unless a crash suspect or a sample is left or
    /// another worker may still find something. Returns true if a crash suspect is fetched next.
    fn end_naturally(&mut self, now: Tick, out: &mut Vec<Effect>) -> bool {
        self.suspects.end_reading();
        let mut ending = self.natural_end(now);
        let is_over = ending.as_ref().is_some_and(Ended::is_for_good);
        if is_over && self.begin_lone_reading(now) {
            return true;
        }
        // Only hosts that can't be reached could add to the frame of the sample. URLs that a host's
        // budget holds back would fall out of it: a run with a larger budget draws.
        let is_frame_complete = match &ending {
            Some(Ended::Finished) => true,
            Some(_) => self.host_budgets.spent().is_none(),
            None => false,
        };
        if is_frame_complete && self.traps.is_to_draw() {
            ending = None;
            self.write(WriterMessage::DrawSample, out);
        }
        let ending = ending.and_then(|alone| self.end_with_others(alone, out));
        if let Some(ended) = ending {
            self.end.end(ended);
        }
        false
    }

    /// The end of the run, or the error that ended it.
    ///
    /// # Errors
    /// The first failure of the disk, the state or a thread.
    pub(crate) fn outcome(&mut self) -> Result<Ended, EngineError> {
        self.end.outcome()
    }

    /// Sums over all runs, as committed.
    #[must_use]
    pub(crate) fn totals(&self) -> Totals {
        *self.totals.of_all_runs()
    }

    /// Returns whether another request may be sent.
    fn has_room(&self, now: Tick) -> bool {
        self.backlog.has_room(now) && !self.end.is_broken() && !self.reads_alone() && self.may_ask()
    }

    /// Takes the number of rows that the consumer of pages has not taken.
    pub(crate) fn note_undelivered(&mut self, rows: usize) {
        self.backlog.note_undelivered(rows);
    }

    /// Takes the number of bytes free on the disk of the crawl's directory.
    pub(crate) fn note_free_space(&mut self, free: u64) {
        self.backlog.note_free_space(free);
    }

    /// Checks that the counters agree with each other and with what they count.
    ///
    /// # Panics
    /// Where they do not.
    #[cfg(test)]
    pub(crate) fn check_invariants(&self) {
        assert_eq!(
            self.requests.count(),
            self.scheduler.in_flight() + self.scheduler.look_ups(),
            "in flight"
        );
        let (pages, leases) = (self.host_budgets.all_leases(), self.traps.all_leases());
        self.backlog
            .check_invariants(self.requests.count(), pages, leases);
        self.hosts.check_invariants(self.backlog.unsettled());
    }

    pub(crate) fn fail(&mut self, error: impl Into<EngineError>) {
        self.end.fail(error.into());
    }

    fn fetched(&mut self, now: Tick, ended: Box<EndedExchange>, out: &mut Vec<Effect>) {
        let EndedExchange {
            job,
            spent,
            result,
            span,
            signal,
            mut line,
        } = *ended;
        self.requests.ended();
        self.backlog.note_time(now);
        if matches!(job, Job::Page { .. }) {
            self.backlog.page_ended();
        }
        let host = spent.host().clone();
        let bytes = match &result {
            Ok(exchange) => exchange.body.len(),
            Err(failure) => failure.answer.as_ref().map_or(0, |part| part.body.len()),
        };
        let (started, took) = (spent.issued(), signal.response_time);
        self.host_budgets
            .asked(spent.host(), started, took, bytes as u64);
        self.report.request_ended(EndedRequest {
            purpose: request_rows::purpose(&job),
            status: line.row().status,
            failure: result.as_ref().err().map(Failure::name),
            waited: spent.waited(),
            took,
            bytes: bytes as u64,
        });
        let kind = signal.kind;
        let learned = self.scheduler.done(now, spent, signal);
        // The wait that we impose on ourselves where the server named none.
        line.note_wait(learned.wait_asked.map(millis));
        self.events.exchange_ended(&span, line.row(), &result);
        self.events.host_waits(now, &host, job.url(), &learned);
        let is_given_up = matches!(&result, Err(failure) if failure.kind == FailureKind::GivenUp);
        // Where the host may be another worker's already, nothing was sent.
        let is_unsent = matches!(&result, Err(failure) if failure.ended == failure.started);
        if !(is_given_up && is_unsent && self.shared.is_some()) {
            out.push(Effect::Log(line));
        }
        match job {
            Job::Page { lease, context } => {
                self.page_fetched(now, lease, context, result, kind, out);
            }
            // It tells nothing of the origin's rules.
            _ if is_given_up => {
                let state = self.host_state(&host);
                self.write(WriterMessage::Host(Box::new(state)), out);
            }
            Job::TdmRep { of, tries, .. } => {
                if let Err(error) = self.tdmrep_fetched(now, &of, tries, result.map(|it| *it), out)
                {
                    self.fail(error);
                }
            }
            Job::Robots { of, request, hop } => {
                self.report.robots_answered();
                if let Err(error) =
                    self.robots_fetched(now, &of, &request, hop, result.map(|it| *it), out)
                {
                    self.fail(error);
                }
            }
        }
        self.free_if_idle(&host);
    }

    fn committed(&mut self, now: Tick, committed: Committed) {
        let (items, leases) = (committed.items, committed.leases);
        self.backlog.committed(now, items, leases, committed.bytes);
        self.totals.committed(committed.totals);
        for origin in &committed.ended {
            self.traps.ended(origin);
        }
        self.hosts.states_kept(now, &committed.hosts);
        for (from, target) in &committed.targets {
            self.scope.add_target(from, target);
        }
        for origin in &committed.without_robots {
            self.origins.drop_copy(origin);
        }
        for (origin, _) in committed.origins {
            // As of now, not of the commit: a lease may have been given back meanwhile.
            let urls = self.frontier.pending(&origin);
            self.wake(now, &origin, urls);
        }
        for origin in self.traps.take_waiting() {
            self.wake(now, &origin, self.frontier.pending(&origin));
        }
        for (answer, done) in committed.answers {
            // Who asked may be gone.
            let _ = answer.send(done);
        }
        self.report.committed(
            &committed.counts,
            committed.unusable,
            committed.seeds_failed,
        );
    }

    /// Tells the scheduler what an origin has to do, and what is known of its rules
    /// where this run meets the origin for the first time.
    pub(crate) fn wake(&mut self, now: Tick, origin: &Origin, urls: u64) {
        if let Err(error) = self.try_wake(now, origin, urls) {
            self.fail(error);
        }
    }

    fn try_wake(&mut self, now: Tick, origin: &Origin, urls: u64) -> Result<(), FrontierError> {
        let known = self.scheduler.host_of(origin).cloned();
        let host = known.unwrap_or_else(|| origin.host_key());
        if !self.keeps_host(&host) {
            return Ok(());
        }
        self.recall(now, &host)?;
        let urls = match self.host_budgets.is_full(now, &host) {
            true => {
                self.host_budgets.turn_away(origin);
                0
            }
            false if self.backlog.turns_away(&host, origin) => 0,
            false => urls,
        };
        let state = match self.origins.is_met(origin) {
            true => None,
            false => {
                self.heed_siblings(now, origin)?;
                self.origins.meet(now, origin, &*self.frontier)?
            }
        };
        self.scheduler.set_pending(now, origin, urls);
        if let Some(state) = state {
            self.scheduler.set_robots(now, origin, state);
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, item: WriterMessage, out: &mut Vec<Effect>) {
        self.backlog.written(item.weight(), 0);
        out.push(Effect::Write(item));
    }

    pub(crate) fn host_state(&mut self, host: &HostKey) -> HostState {
        let sequence = self.hosts.state_sent(host);
        let (wake, politeness) = self.scheduler.host_state(host).unzip();
        HostState {
            host: host.clone(),
            wake: wake.unwrap_or(Tick::ZERO).as_micros(),
            budget: self.host_budgets.stored(host),
            politeness,
            sequence,
        }
    }
}

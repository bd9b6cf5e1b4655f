//! The crawl loop: handles events, and emits effects.

mod commands;
mod commit_backlog;
mod completion_estimate;
mod crash_suspects;
mod file_byte_lock;
#[cfg(test)]
mod fixtures;
mod free_space_limit;
mod host_budgets;
mod host_group_budgets;
pub(crate) mod host_locks;
mod hosts;
mod leased_url_judge;
mod live_settings_changes;
mod login_requests;
mod logins;
mod page_requests;
mod pending_url_rows;
mod permit_use;
mod progress;
mod reader_handoff;
mod recorded_turns;
mod render_requests;
mod render_tracker;
pub(crate) mod replayed_turns;
mod request_results;
pub(crate) mod request_rows;
mod requests_in_flight;
mod retries;
mod robots;
mod run_end;
mod run_scope;
mod run_statistics;
mod run_summary;
pub(crate) mod running_crawls;
mod set_up;
mod sitemap_cross_submission;
mod step;
#[cfg(test)]
mod tests;
mod waiting_documents;
mod worker_coordination;

use std::sync::Arc;

use crawl_fetcher::Secrets;
use crawl_frontier::{Frontier, FrontierError};
use crawl_scheduler::Tick;
use crawl_scope::Scope;
use crawl_weburl::{HostKey, Origin};

use self::commands::reply;
use self::commit_backlog::CommitBacklogTracker;
use self::hosts::Hosts;
use self::leased_url_judge::LeasedUrlJudge;
use self::logins::LoginTracker;
use self::recorded_turns::TurnTracker;
use self::render_tracker::RenderTracker;
use self::robots::OriginRobotsTracker;
use self::run_end::RunEndTracker;
use self::run_scope::RunScope;
use self::run_statistics::RunStatistics;
use self::worker_coordination::{WorkerCoordination, WorkerNewsReaction};
use crate::config::Config;
use crate::crawl_totals::CrawlTotals;
use crate::error::EngineError;
use crate::messages::shared_frontier_messages::SharedFrontierNews;
use crate::messages::{Effect, Event, GroupCommitResult, WriterMessage};
use crate::summary::EndReason;
use crate::trace_events::TraceEventEmitter;

/// The crawl loop: passes events to the parts that own the state of a crawl, and the effects of
/// these parts to the driver. Never waits or sleeps.
///
/// Call the set-up methods first (`enter_round`, `sample`, `share_traps`, `share_hosts`, `suspect`,
/// `park_again`, `share_crawl`, `read_by`, `log_in`). Then call the methods that restore the state
/// of earlier runs (`restore`, `note_past_request`, `note_unknown_requests`), and finally `begin`.
/// From then on, pass each event to [`handle`](Self::handle). Call [`advance`](Self::advance) after
/// each batch of events, and at the time that its last call returned. Once `advance` returns
/// [`DriverStep::Done`], [`outcome`](Self::outcome) and `into_summary` return how the run ended.
///
/// The doc of each part lists its events, its effects and the order of its calls:
/// - permit to commit: [`Hosts`], [`TurnTracker`], [`CommitBacklogTracker`];
/// - what happens to a leased URL: [`RunScope`], [`OriginRobotsTracker`], [`LeasedUrlJudge`],
///   [`LoginTracker`], [`RenderTracker`];
/// - the run as a whole: [`RunEndTracker`], [`RunStatistics`], [`WorkerCoordination`].
pub(crate) struct Coordinator {
    config: Arc<Config>,
    frontier: Arc<dyn Frontier>,
    hosts: Hosts,
    robots: OriginRobotsTracker,
    logins: LoginTracker,
    renders: RenderTracker,
    scope: RunScope,
    leased_url_judge: LeasedUrlJudge,
    shared: WorkerCoordination,
    turns: TurnTracker,
    backlog: CommitBacklogTracker,
    end: RunEndTracker,
    report: RunStatistics,
    events: TraceEventEmitter,
    /// The secrets of all hosts, for example passwords and cookies.
    secrets: Secrets,
}

/// What the driver does next, after performing the effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DriverStep {
    /// Wait for an event, at most until this tick.
    Wait(Option<Tick>),
    /// End the run: nothing is in flight, and everything is settled.
    Done,
}

impl Coordinator {
    /// Creates the loop over an open frontier. `totals` are the totals of all earlier runs.
    #[must_use]
    pub(crate) fn new(
        config: Arc<Config>,
        frontier: Arc<dyn Frontier>,
        scope: Scope,
        totals: CrawlTotals,
        now: Tick,
        seed: u64,
    ) -> Coordinator {
        Coordinator {
            hosts: Hosts::new(&config, &frontier, seed),
            robots: OriginRobotsTracker::new(&config, &frontier),
            logins: LoginTracker::default(),
            renders: RenderTracker::new(&config),
            scope: RunScope::new(scope, config.resources),
            leased_url_judge: LeasedUrlJudge::new(config.traps, config.off_scope_method),
            shared: WorkerCoordination::default(),
            turns: TurnTracker::new(totals),
            backlog: CommitBacklogTracker::new(&config, now),
            end: RunEndTracker::new(&config.budgets, now),
            report: RunStatistics::new(totals, now),
            events: TraceEventEmitter::new(&config),
            secrets: config.fetch.secrets(),
            config,
            frontier,
        }
    }

    /// Lets the user's other crawls fetch from the hosts of this one, after the last request.
    pub(crate) fn end_host_locks(&mut self, now: Tick) {
        self.hosts.end_locks(now);
    }

    /// Returns whether the run must end without saving its unfinished work.
    #[must_use]
    pub(crate) fn stopped_at_once(&self) -> bool {
        self.end.is_stopped_at_once()
    }

    /// Returns whether this worker has nothing to do and waits for other workers.
    #[cfg(test)]
    pub(crate) fn rests(&self) -> bool {
        self.shared.rests()
    }

    /// Returns when `--max-time` ends this run. Each finished pause postpones this deadline. `None`
    /// without `--max-time`.
    pub(crate) fn deadline(&self) -> Option<Tick> {
        self.end.deadline()
    }

    pub(crate) fn handle(&mut self, now: Tick, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Fetched(ended) => self.fetched(now, ended, out),
            Event::AddressFound { permit, address } => {
                self.hosts.look_up_ended(permit, address);
                // The permit is used here, because `advance` is not called while recorded turns are
                // repeated.
                if self.turns.are_repeated() {
                    let _ = self.use_found(now, out);
                }
            }
            Event::Committed(committed) => {
                let traps_changed = committed.traps_changed;
                let leaves_links = committed.leaves_links;
                self.committed(now, *committed, out);
                if let Some(are_left) = leaves_links {
                    self.shared.links_taken(are_left);
                    if are_left {
                        self.write(WriterMessage::TakeLinks, out);
                    }
                }
                if traps_changed {
                    self.write(WriterMessage::TakeBack { scope: None }, out);
                }
            }
            Event::Credentials { site, result } => {
                self.credentials_read(now, &site, result.0, out);
            }
            Event::ReadingBegan { bytes } => self.backlog.reading_began(bytes),
            Event::GivenBackUnread(page) => {
                self.backlog.reading_began(page.exchange.body.len() as u64);
                self.take_back(now, *page, out);
            }
            Event::ReadingStopped(page) => self.take_back(now, *page, out),
            Event::Scripted { page, shell } => self.scripted(now, *page, shell, out),
            Event::ResourceWanted(wanted) => self.resource_wanted(now, *wanted, out),
            Event::Rendered { page, result } => self.rendered(now, page, result, out),
            Event::FreeSpace { bytes } => self.note_free_space(bytes),
            Event::DocumentWaits { host, bytes } => self.backlog.document_waits(host, bytes),
            Event::DocumentEnded { host, bytes } => {
                for origin in self.backlog.document_ended(now, &host, bytes) {
                    self.wake_pending(now, &origin);
                }
            }
            Event::Stop(stop) => {
                self.end.stop(stop);
                self.backlog.documents_mut().stop(now);
            }
            Event::Command(posted) => self.command(now, posted, out),
            Event::Shared(news) => self.handle_news(now, news, out),
            Event::Broken(error) => self.fail(error),
        }
    }

    /// Returns how the run ended. Call this only once.
    ///
    /// # Errors
    /// The first failure of the disk, the state or a thread.
    pub(crate) fn outcome(&mut self) -> Result<EndReason, EngineError> {
        self.end.outcome()
    }

    /// Returns the totals of all runs, as of the last commit.
    #[must_use]
    pub(crate) fn totals(&self) -> CrawlTotals {
        *self.report.of_all_runs()
    }

    /// Handles news about the other workers of a shared crawl.
    fn handle_news(&mut self, now: Tick, news: SharedFrontierNews, out: &mut Vec<Effect>) {
        let pages = self.totals().pages;
        match self.shared.take_in(news, pages, out) {
            WorkerNewsReaction::Nothing => {}
            WorkerNewsReaction::Wake(origins) => {
                for (origin, urls) in origins {
                    self.wake(now, &origin, urls);
                }
            }
            WorkerNewsReaction::TakeLinks => self.write(WriterMessage::TakeLinks, out),
            WorkerNewsReaction::End => self.end.end(EndReason::HandedOver),
        }
    }

    /// Sets the number of page rows that wait for the program that uses this library.
    pub(crate) fn note_undelivered(&mut self, rows: usize) {
        self.backlog.note_undelivered(rows);
    }

    /// Sets the number of free bytes on the disk with the crawl's directory.
    pub(crate) fn note_free_space(&mut self, free: u64) {
        self.backlog.note_free_space(free);
    }

    /// Checks the counters of the parts against each other.
    ///
    /// # Panics
    /// If they do not agree.
    #[cfg(test)]
    pub(crate) fn check_invariants(&self) {
        let (pages, leases) = (
            self.hosts.budgets().all_leases(),
            self.leased_url_judge.all_leases(),
        );
        self.backlog
            .check_invariants(self.hosts.requests().count(), pages, leases);
        self.hosts.check_invariants(self.backlog.unsettled());
    }

    pub(crate) fn fail(&mut self, error: impl Into<EngineError>) {
        self.end.fail(error.into());
    }

    fn committed(&mut self, now: Tick, committed: GroupCommitResult, out: &mut Vec<Effect>) {
        let (items, leases) = (committed.items, committed.leases);
        self.backlog.committed(now, items, leases, committed.bytes);
        for origin in &committed.ended {
            self.leased_url_judge.ended(origin);
        }
        for (host, bytes) in &committed.guesses {
            self.guessed_sitemap_decided(now, host, *bytes);
            // The host state that was committed with the sitemap was created before the sitemap
            // counted as a page. Store a newer one.
            if bytes.is_some() {
                self.write_state(host, out);
            }
        }
        self.hosts.states_kept(now, &committed.hosts);
        for (from, target) in &committed.targets {
            self.scope.add_target(from, target);
        }
        for origin in &committed.without_robots {
            self.robots.drop_copy(origin);
        }
        for (origin, _) in committed.origins {
            // Ask the frontier for the number of pending URLs, since the number in the commit
            // doesn't include leases that were released later.
            self.wake_pending(now, &origin);
        }
        for origin in self.leased_url_judge.take_waiting() {
            self.wake_pending(now, &origin);
        }
        for (answer, done) in committed.answers {
            reply(answer, done);
        }
        self.report.committed(
            committed.totals,
            &committed.counts,
            committed.unusable,
            committed.seeds_failed,
        );
    }

    /// Wakes an origin, so that its pending URLs get permits.
    fn wake_pending(&mut self, now: Tick, origin: &Origin) {
        self.wake(now, origin, self.frontier.pending(origin));
    }

    /// Passes an origin's number of pending URLs to the scheduler. If the origin is new to this
    /// run, also passes the rules that earlier runs stored.
    fn wake(&mut self, now: Tick, origin: &Origin, urls: u64) {
        if let Err(error) = self.try_wake(now, origin, urls) {
            self.fail(error);
        }
    }

    fn try_wake(&mut self, now: Tick, origin: &Origin, urls: u64) -> Result<(), FrontierError> {
        let host = self.hosts.host_of(origin);
        if !self.shared.keeps(&host) {
            return Ok(());
        }
        self.hosts.recall(now, &host, &self.shared)?;
        let has_room = !self.hosts.turns_away(now, &host, origin)
            && !self.backlog.turns_away(&host, origin)
            && !self.renders.turns_away(origin);
        let state = match self.robots.is_met(origin) {
            true => None,
            false => {
                self.slow_to_kept_paces(now, origin)?;
                self.robots.meet(now, origin)?
            }
        };
        let is_due = self.logins.is_due_at(origin) || self.renders.waiting_at(origin) > 0;
        let urls = match is_due {
            true => urls.max(1),
            false if has_room => urls,
            false => 0,
        };
        self.hosts.set_pending(now, origin, urls);
        if let Some(state) = state {
            self.hosts.set_robots(now, origin, state);
        }
        Ok(())
    }

    fn write(&mut self, item: WriterMessage, out: &mut Vec<Effect>) {
        self.backlog.written(item.weight(), 0);
        out.push(Effect::Write(item));
    }

    fn write_state(&mut self, host: &HostKey, out: &mut Vec<Effect>) {
        let state = self.hosts.state(host);
        self.write(WriterMessage::Host(Box::new(state)), out);
    }
}

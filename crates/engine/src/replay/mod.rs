//! Crawls again with the archived answers of a crawl: the loop, readers and writer are the same,
//! but time is virtual. A replay has no fetcher, so it can't send requests to a server.

mod archived_answers;
mod begin_and_end_runs;
mod held_commits;
mod order_follower;
mod page_commit_queue;
mod recorded_crawl;
mod recorded_order_reader;
mod replayed_renderings;
mod rerender;

use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::iter::Peekable;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crawl_archive::RowLogWriter;
use crawl_archive::rows::{RequestRow, RunStartEvent};
use crawl_fetcher::{ExchangeFailure, FailureKind};
use crawl_frontier::Frontier;
use crawl_scheduler::{SnapshotCompleteness, SpentPermit, Tick};
use tracing::Span;

use self::archived_answers::{ArchivedAnswers, ReplayExchangeTimes};
pub use self::archived_answers::{MissingArchiveAnswerCounts, ReplayDifference, ReplayTimingMode};
use self::held_commits::HeldReplayMessages;
use self::order_follower::{InFlightRequest, OrderFollower, OrderFollowerEndReason};
use self::page_commit_queue::PageCommitQueue;
pub use self::recorded_crawl::RecordedCrawl;
use self::recorded_crawl::tick;
use self::recorded_order_reader::RecordedOrderReader;
use self::replayed_renderings::ReplayedRenderings;
use self::rerender::Rerenderer;
pub use self::rerender::{DifferentlyRenderedPage, RerenderResult};
use crate::config::Config;
use crate::crawl_loop::{Coordinator, DriverStep, request_rows};
use crate::error::EngineError;
use crate::frontier_meta_keys::{META_REPLAY, META_TRAPS};
use crate::messages::page_pipeline_stages::FetchedPage;
use crate::messages::replay_message_key::{KeyedMessage, MessageKeyAssigner, ReplayMessageKey};
use crate::messages::{Effect, Event, RequestJob, WriterMessage, lines_to_log};
use crate::page_reading::PageReader;
use crate::page_reading::UnreadPage;
use crate::page_reading::page_encoder::PageEncoder;
use crate::shared_trap_detector::SharedTrapDetector;
use crate::state::crawl_directory::{self, CrawlDirectory};
use crate::state::settings_and_delays_log::SettingsAndDelaysLog;
use crate::state::stored_parked_hosts::parked;
use crate::summary::RunSummary;
use crate::trace_events::TraceEventEmitter;
use crate::write::{Writer, run_end};

/// The result of [`replay`].
#[derive(Clone, Debug)]
pub struct ReplayResult {
    /// The summary of the run, in virtual time.
    pub summary: RunSummary,
    /// Counts of what was missing from the archive.
    pub gaps: MissingArchiveAnswerCounts,
    /// The first difference from the records. `None` if there is none, or if the replay was not
    /// meant to follow them.
    pub difference: Option<ReplayDifference>,
    /// The pages that were rendered again.
    pub rendered: RerenderResult,
    /// Number of recorded runs that had other settings than the replay, among the runs that the
    /// replay followed. Runs of older versions, which did not record their settings, don't count.
    pub runs_with_other_settings: u64,
    /// Whether the replay followed the recorded order, over all rounds. Otherwise it decided the
    /// order itself, and ended after one round.
    pub followed_order: bool,
}

/// Repeats a crawl with its archived answers. `config` may differ from the crawl's configuration.
/// Writes rows to a new directory, as if the answers had been fetched. Virtual time begins with the
/// crawl's first request. Nothing is archived or indexed: `warc` and `index` are ignored.
///
/// # Errors
/// [`EngineError::ReplayOutput`] if the output directory contains a crawl, and all errors of
/// [`run`](crate::run()).
pub fn replay(
    config: Config,
    crawl: RecordedCrawl,
    timing: ReplayTimingMode,
) -> Result<ReplayResult, EngineError> {
    let config = Arc::new(Config {
        warc: None,
        index: false,
        recrawl: false,
        host_locks: None,
        ..config
    });
    if crawl_directory::examine(&config.output)? {
        return Err(EngineError::ReplayOutput {
            dir: config.output.clone(),
        });
    }
    let script = match timing {
        ReplayTimingMode::AsRecorded => RecordedOrderReader::open(crawl.dir())?,
        ReplayTimingMode::ByPolicy => None,
    };
    // Older versions did not log what happened to rendered pages, so their order can't be repeated.
    let script = script.filter(|(_, run)| run.has_render_steps || !crawl.has_rendered_pages());
    let rerender = Rerenderer::new(&config)?;
    let Some((script, run)) = script else {
        let began = Tick::from_micros(crawl.began().as_micros());
        let mut replay = Replay::start(&config, (crawl, rerender), timing, began)?;
        replay.begin();
        replay.run_to_end()?;
        return replay.end(&config, began);
    };
    let (began, crawl_dir) = (tick(run.at), crawl.dir().to_owned());
    let answers = ArchivedAnswers::new(crawl, timing, &config);
    let mut runs_with_other_settings = u64::from(has_other_settings(&run, &config));
    let mut replay = Replay::take_up(&config, (answers, rerender), script, run)?;
    loop {
        replay.begin();
        let ended = match replay.follow()? {
            OrderFollowerEndReason::Run(next) => {
                runs_with_other_settings += u64::from(has_other_settings(&next, &config));
                replay = replay.next_run(&config, next)?;
                continue;
            }
            OrderFollowerEndReason::End => {
                replay.stop_following(None);
                crawl_directory::last_end(&crawl_dir)
            }
            OrderFollowerEndReason::Lost(url) => {
                replay.stop_following(Some(url));
                None
            }
        };
        replay.go_on(ended.as_deref())?;
        return Ok(ReplayResult {
            runs_with_other_settings,
            followed_order: true,
            ..replay.end(&config, began)?
        });
    }
}

/// Returns whether a recorded run had other settings than the replay.
fn has_other_settings(run: &RunStartEvent, config: &Config) -> bool {
    let digests = run.settings.as_ref().zip(config.settings_digest.as_ref());
    digests.is_some_and(|(recorded, replayed)| recorded != replayed)
}

/// Marks a directory as the output of a replay, so that no crawl resumes from it.
fn mark(frontier: &dyn Frontier, of: &Path) -> Result<(), EngineError> {
    let mut transaction = frontier.begin()?;
    transaction.keep_meta(META_REPLAY, of.as_os_str().as_encoded_bytes());
    transaction.commit()?;
    Ok(())
}

/// Restores the waits that the last requests before a kill or pause imposed on their hosts.
fn note_past_requests(
    config: &Config,
    coordinator: &mut Coordinator,
    requests: &mut RowLogWriter,
    now: Tick,
) -> Result<(), EngineError> {
    let tail = requests.tail::<RequestRow>(config.max_log_tail_rows())?;
    for row in tail.rows {
        coordinator.note_past_request(now, &row)?;
    }
    Ok(())
}

/// A request in flight with a known answer. The flight that ends first is the greatest, so that a
/// [`BinaryHeap`] returns it first.
struct AnsweredRequest {
    pending: ReplayExchangeTimes,
    number: u64,
    /// When the request was given up, if it was.
    given_up: Option<Tick>,
    job: RequestJob,
    spent: SpentPermit,
    span: Span,
}

impl AnsweredRequest {
    fn ends(&self) -> Tick {
        self.given_up.unwrap_or(self.pending.ended)
    }
}

impl PartialEq for AnsweredRequest {
    fn eq(&self, other: &AnsweredRequest) -> bool {
        self.number == other.number
    }
}
impl Eq for AnsweredRequest {}
impl PartialOrd for AnsweredRequest {
    fn partial_cmp(&self, other: &AnsweredRequest) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for AnsweredRequest {
    fn cmp(&self, other: &AnsweredRequest) -> std::cmp::Ordering {
        let order = |it: &AnsweredRequest| (it.ends(), it.pending.place, it.number);
        order(other).cmp(&order(self))
    }
}

/// The action that the loop may take at the current virtual time.
enum IssueDecision {
    /// The loop may issue requests.
    Issue,
    /// The loop must not issue requests yet.
    Hold,
    /// Nothing is in flight, so virtual time can't advance.
    Nothing,
}

struct Replay {
    now: Tick,
    coordinator: Coordinator,
    answers: ArchivedAnswers,
    rerender: Rerenderer,
    renders: ReplayedRenderings,
    reader: PageReader,
    encoder: PageEncoder,
    writer: Writer,
    order: PageCommitQueue,
    held: HeldReplayMessages,
    /// Whether virtual time has reached the start of a recorded request since the loop was last
    /// allowed to send one.
    is_due: bool,
    /// The number of requests that had begun when the loop was last allowed to issue one.
    begun_before: Option<u64>,
    /// The order from `state/order.jsonl`. `None` if the replay does not follow it, or has stopped
    /// following it.
    following: Option<OrderFollower>,
    keys: MessageKeyAssigner,
    requests: RowLogWriter,
    delays: SettingsAndDelaysLog,
    effects: Vec<Effect>,
    /// Messages that the next commit will contain.
    items: Vec<WriterMessage>,
    /// Messages that arrived, and that `hold_back` has not examined yet.
    came: Vec<WriterMessage>,
    unread: VecDeque<(Box<FetchedPage>, Option<ReplayMessageKey>)>,
    flights: BinaryHeap<AnsweredRequest>,
    /// The number of requests that have begun.
    begun: u64,
    /// The recorded start times that virtual time has not reached yet.
    starts: Peekable<Box<dyn Iterator<Item = Tick>>>,
    /// The number of recorded requests whose start time has passed.
    passed: u64,
}

impl Replay {
    fn start(
        config: &Arc<Config>,
        (mut crawl, rerender): (RecordedCrawl, Rerenderer),
        timing: ReplayTimingMode,
        now: Tick,
    ) -> Result<Replay, EngineError> {
        let (places, levels) = match timing {
            ReplayTimingMode::AsRecorded => (crawl.take_commit_places(), crawl.take_levels()),
            ReplayTimingMode::ByPolicy => (HashMap::new(), Vec::new()),
        };
        let directory = crawl_directory::open(config, 1)?;
        mark(&*directory.frontier, crawl.dir())?;
        let answers = ArchivedAnswers::new(crawl, timing, config);
        let mut replay = Replay::new(config, (answers, rerender), directory, now, now)?;
        replay.order = PageCommitQueue::new(places);
        replay.held = HeldReplayMessages::new(levels);
        let starts: Box<dyn Iterator<Item = Tick>> = Box::new(replay.answers.crawl.starts());
        replay.starts = starts.peekable();
        Ok(replay)
    }

    fn new(
        config: &Arc<Config>,
        (answers, rerender): (ArchivedAnswers, Rerenderer),
        mut directory: CrawlDirectory,
        now: Tick,
        round_began: Tick,
    ) -> Result<Replay, EngineError> {
        let visits = directory.take_up_round(config, round_began, &|| false)?;
        let CrawlDirectory {
            frontier,
            files,
            mut requests,
            sampling,
            totals,
            mut scope_seeds,
            resumed,
            cut_off,
            ..
        } = directory;
        let scope = scope_seeds.scope(config)?;
        let mut coordinator = Coordinator::new(
            Arc::clone(config),
            Arc::clone(&frontier),
            scope,
            totals,
            now,
            now.as_micros(),
        );
        coordinator.enter_round(visits);
        let traps = SharedTrapDetector::new(&config.traps, frontier.meta(META_TRAPS)?.as_deref());
        coordinator.share_traps(traps.clone());
        coordinator.sample(sampling.clone());
        coordinator.park_again(now, &parked(&*frontier)?);
        if resumed {
            coordinator.restore(match cut_off {
                true => SnapshotCompleteness::WritesMayBeLost,
                false => SnapshotCompleteness::Complete,
            })?;
        }
        note_past_requests(config, &mut coordinator, &mut requests, now)?;
        if cut_off {
            coordinator.note_unknown_requests(now)?;
        }
        let reader =
            PageReader::new(config, &visits).with_crawl_state(Arc::clone(&frontier), traps.clone());
        let writer = Writer::new(frontier, files, totals, visits, scope_seeds)
            .with_traps(traps)
            .with_sampling(sampling)
            .with_tombstones(crawl_directory::tombstones_at_rest(answers.crawl.dir())?)
            .with_events(TraceEventEmitter::new(config));
        let no_starts: Box<dyn Iterator<Item = Tick>> = Box::new(std::iter::empty());
        Ok(Replay {
            now,
            coordinator,
            encoder: PageEncoder::new(config, &reader.visits),
            reader,
            writer,
            order: PageCommitQueue::default(),
            held: HeldReplayMessages::default(),
            is_due: false,
            begun_before: None,
            following: None,
            keys: MessageKeyAssigner::new(),
            requests,
            delays: SettingsAndDelaysLog::open(config, now)?,
            effects: Vec::new(),
            items: Vec::new(),
            came: Vec::new(),
            unread: VecDeque::new(),
            flights: BinaryHeap::new(),
            begun: 0,
            starts: no_starts.peekable(),
            passed: 0,
            answers,
            rerender,
            renders: ReplayedRenderings::default(),
        })
    }

    /// Begins the run with the stored state.
    fn begin(&mut self) {
        self.coordinator.begin(self.now, &mut self.effects);
    }

    /// Loops until the run is over.
    fn run_to_end(&mut self) -> Result<(), EngineError> {
        let mut wake = None;
        let mut may_issue = true;
        loop {
            self.settle_effects()?;
            if may_issue {
                match self.coordinator.advance(self.now, &mut self.effects) {
                    DriverStep::Done if self.effects.is_empty() => return Ok(()),
                    DriverStep::Done => continue,
                    DriverStep::Wait(until) => wake = until,
                }
                if !self.effects.is_empty() {
                    continue;
                }
            }
            may_issue = match self.step(wake) {
                IssueDecision::Issue => true,
                IssueDecision::Hold => false,
                IssueDecision::Nothing if may_issue => {
                    let reason = "the replay stalled: nothing is in flight".to_owned();
                    return Err(EngineError::Thread { what: reason });
                }
                IssueDecision::Nothing => true,
            };
        }
    }

    /// Advances to the next event.
    ///
    /// A replay that follows the records sends requests only at recorded start times, because the
    /// recorded crawl had a reason not to send them sooner. If the replay has sent fewer requests
    /// by a start time than the crawl had, it sends as many requests as it may.
    fn step(&mut self, wake: Option<Tick>) -> IssueDecision {
        while self.starts.next_if(|start| *start <= self.now).is_some() {
            self.passed += 1;
        }
        let start = self.starts.peek().copied();
        let is_behind = self.begun < self.passed;
        let follows = self.answers.follows && (start.is_some() || self.is_due || is_behind);
        if !follows && !self.held.is_empty() {
            self.held.give_up(&mut self.items);
            return IssueDecision::Issue;
        }
        let soonest = self.flights.peek().map(AnsweredRequest::ends);
        let has_ended = soonest.is_some_and(|ends| ends <= self.now);
        if std::mem::take(&mut self.is_due) && follows {
            if self.held.lacks_pages()
                && has_ended
                && let Some(flight) = self.flights.pop()
            {
                self.is_due = true;
                self.land(flight);
                return IssueDecision::Hold;
            }
            return self.issue();
        }
        // Trap detection makes some pages wait until an earlier page is committed. The recorded
        // crawl had already committed that page at this point, but the replay still holds the
        // page's message. So give one held page to the writer, and try again.
        let is_issued = self.begun_before.take() != Some(self.begun);
        if follows
            && is_behind
            && !is_issued
            && !has_ended
            && self.held.hand_on_page(&mut self.items)
        {
            return self.issue();
        }
        let wake = wake.filter(|wake| *wake > self.now);
        let wake = wake.filter(|_| !follows || self.begun < self.passed);
        let start = start.filter(|_| follows);
        let ends = self.flights.peek().map(AnsweredRequest::ends);
        let ordered = self.order.ends();
        let next = [start, wake, ends, ordered].into_iter().flatten().min();
        let Some(next) = next else {
            if self.held.is_empty() {
                return IssueDecision::Nothing;
            }
            // A recorded request was not sent, so holding messages back no longer helps.
            self.held.give_up(&mut self.items);
            return IssueDecision::Issue;
        };
        self.now = self.now.max(next);
        if ordered == Some(next) {
            self.order.release(&mut self.came);
        }
        if start == Some(next) {
            self.is_due = true;
            return self.step(wake);
        }
        if wake == Some(next) {
            return self.issue();
        }
        if ends == Some(next)
            && let Some(flight) = self.flights.pop()
        {
            self.land(flight);
        }
        match follows && self.begun >= self.passed {
            true => IssueDecision::Hold,
            // Read the page of the ended request before the loop sends another request, because the
            // recorded crawl may have chosen its next request after reading that page.
            false if follows => {
                self.is_due = true;
                IssueDecision::Hold
            }
            false => self.issue(),
        }
    }

    /// Passes on the messages that the recorded crawl had committed before its next request, and
    /// lets the loop send a request.
    fn issue(&mut self) -> IssueDecision {
        self.begun_before = Some(self.begun);
        if self.held.holds() {
            self.held.hand_on(&mut self.items);
        }
        IssueDecision::Issue
    }

    /// Holds back messages that the recorded crawl had not committed when it sent its next request.
    /// All other messages join the next commit.
    fn hold_back(&mut self) {
        let messages = std::mem::take(&mut self.came);
        if !self.answers.follows || !self.held.holds() {
            // Add the held messages first because they arrived earlier.
            self.held.give_up(&mut self.items);
            self.items.extend(messages);
            return;
        }
        for message in messages {
            match self.order.place(&message) {
                Some(_) => self.held.take(true, message),
                None if message.is_other_change() => self.held.take(false, message),
                None => self.items.push(message),
            }
        }
    }

    /// Ends a request, and passes its result to the loop.
    fn land(&mut self, flight: AnsweredRequest) {
        let result = match flight.given_up {
            Some(now) => {
                let started = flight.spent.issued();
                Err(ExchangeFailure::recorded(
                    FailureKind::GivenUp,
                    started,
                    now,
                ))
            }
            None => self.answers.end(&flight.job.request(), &flight.pending),
        };
        let event = request_rows::ended(flight.job, flight.spent, result, flight.span);
        self.coordinator.handle(self.now, event, &mut self.effects);
    }

    /// Performs the loop's effects and passes the results back to it, until it has no more effects.
    fn settle_effects(&mut self) -> Result<(), EngineError> {
        loop {
            self.perform()?;
            self.read();
            self.render_freely();
            self.hold_back();
            if self.items.is_empty() && self.effects.is_empty() {
                return Ok(());
            }
            if !self.items.is_empty() {
                let items = std::mem::take(&mut self.items);
                self.commit(items.into_iter().map(KeyedMessage::unnamed).collect())?;
            }
        }
    }

    /// Commits a group of messages, and reports this to the loop.
    fn commit(&mut self, group: Vec<KeyedMessage>) -> Result<(), EngineError> {
        let committed = self.writer.commit(group, &AtomicBool::new(false))?;
        let event = Event::Committed(Box::new(committed));
        self.coordinator.handle(self.now, event, &mut self.effects);
        Ok(())
    }

    /// Hands over a message for the writer: to the [`OrderFollower`], or without one to the parts
    /// that restore the order of commits.
    fn deliver(&mut self, key: Option<ReplayMessageKey>, message: WriterMessage) {
        match (&mut self.following, key) {
            (Some(following), Some(key)) => following.hold(key, message),
            // Host states have no key, because their order does not matter.
            (Some(_), None) => self.items.push(message),
            (None, _) => match message {
                WriterMessage::Side(_) | WriterMessage::Links(_) => self.came.push(message),
                message => self.order.take(self.now, message, &mut self.came),
            },
        }
    }

    /// Sends a request in virtual time: adds it to `flights`.
    fn fly(&mut self, request: InFlightRequest) {
        let InFlightRequest { job, spent, span } = request;
        let pending = self.answers.begin(&job.request(), self.now);
        self.flights.push(AnsweredRequest {
            pending,
            number: self.begun,
            given_up: None,
            job,
            spent,
            span,
        });
    }

    fn perform(&mut self) -> Result<(), EngineError> {
        let effects = std::mem::take(&mut self.effects);
        self.requests.append_requests(lines_to_log(&effects))?;
        for effect in effects {
            let key = self.keys.of(&effect);
            match effect {
                Effect::FindAddress { permit, .. } => {
                    let address = self.answers.crawl.address(permit.host().as_str());
                    let event = Event::AddressFound { permit, address };
                    self.coordinator.handle(self.now, event, &mut self.effects);
                }
                Effect::Fetch { permit, job, span } => {
                    self.begun += 1;
                    if matches!(job, RequestJob::Page { .. }) {
                        self.held.chosen();
                    }
                    let spent = permit.spend();
                    let request = InFlightRequest { job, spent, span };
                    match &mut self.following {
                        Some(following) => {
                            self.answers.pass_over(request.job.url());
                            following.sent(request);
                        }
                        None => self.fly(request),
                    }
                }
                Effect::Log(_)
                | Effect::NoteTurn(_)
                | Effect::NoteCommand(_)
                | Effect::NoteRender(_) => {}
                Effect::NoteDelay(row) => self.delays.note(&row)?,
                // These effects don't occur, because a replay takes no new rules, has no shared
                // frontier, and does not log in to sites.
                Effect::NoteRules(_) | Effect::Share(_) | Effect::ReadCredentials(_) => {}
                Effect::Render {
                    page,
                    url,
                    fetched,
                    answer,
                } => self.renders.open(page, (url, fetched), answer),
                Effect::Read(page) => self.unread.push_back((page, key)),
                // A replay reads all documents in its own process, so none wait.
                Effect::GiveUpDocuments => {}
                Effect::GiveUp => self.give_up(),
                Effect::Write(WriterMessage::Side(item)) => {
                    let item = WriterMessage::Side(self.encoder.robots(item));
                    self.deliver(key, item);
                }
                Effect::Write(item) => self.deliver(key, item),
            }
        }
        Ok(())
    }

    /// Gives up the requests in flight, because the run's maximum time is over.
    fn give_up(&mut self) {
        self.reader.gives_back.store(true, Ordering::Relaxed);
        let given_up = Some(self.now);
        let flights = std::mem::take(&mut self.flights).into_iter();
        self.flights = flights
            .map(|flight| AnsweredRequest { given_up, ..flight })
            .collect();
    }

    fn read(&mut self) {
        while let Some((page, key)) = self.unread.pop_front() {
            let bytes = page.exchange.body.len() as u64;
            let began = Event::ReadingBegan { bytes };
            self.coordinator.handle(self.now, began, &mut self.effects);
            let mut batches = Vec::new();
            let read = self.reader.read(page, &mut |batch| batches.push(batch));
            for batch in batches {
                self.deliver(key, WriterMessage::Links(batch));
            }
            match read {
                Ok(page) => {
                    let page = WriterMessage::Page(Box::new(self.encoder.page(page)));
                    self.deliver(key, page);
                }
                Err(UnreadPage::Scripted(page, shell)) => self.renders.scripted.push((page, shell)),
                Err(UnreadPage::LeftOut(page)) => {
                    let stopped = Event::ReadingStopped(page);
                    self.coordinator
                        .handle(self.now, stopped, &mut self.effects);
                }
            }
        }
    }

    /// Writes the files that are derived from the crawl's state.
    fn write_derived(
        mut self,
        config: &Config,
    ) -> Result<(RunSummary, ArchivedAnswers, RerenderResult), EngineError> {
        let ended = self.coordinator.outcome()?;
        let waiting = self.coordinator.waiting_urls(self.now, &ended)?;
        let excluded = run_end::write_derived(config, self.writer, &ended, &waiting, false)?;
        let took = Duration::ZERO;
        let summary = self
            .coordinator
            .into_summary(ended, took, false, excluded, None);
        Ok((summary, self.answers, self.rerender.pages))
    }

    fn end(self, config: &Config, began: Tick) -> Result<ReplayResult, EngineError> {
        let elapsed = self.now.since(began);
        let (summary, answers, rendered) = self.write_derived(config)?;
        Ok(ReplayResult {
            summary: RunSummary { elapsed, ..summary },
            gaps: answers.gaps,
            difference: answers.difference(),
            rendered,
            runs_with_other_settings: 0,
            followed_order: false,
        })
    }
}

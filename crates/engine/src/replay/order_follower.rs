//! Replays the logged order of a crawl: turns (uses of permits), ends of requests and commits
//! happen in that order again. The replay chooses the URL of each request itself.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crawl_archive::rows::{HostTurn, OperatorCommand, RequestRow, RunStartEvent};
use crawl_frontier::parts::{AdmitAction, CurrentState, PendingUrlFields, decide_admission};
use crawl_frontier::{Lease, UrlToAdmit};
use crawl_scheduler::SpentPermit;
use crawl_weburl::{CanonicalUrl, HostKey, Origin, canonicalize};
use tokio::sync::oneshot;
use tracing::Span;

use super::archived_answers::ReplayExchangeTimes;
use super::recorded_crawl::{RecordedRequest, tick};
use super::recorded_order_reader::RecordedOrderReader;
use super::{AnsweredRequest, Replay};
use crate::control::{CrawlCommand, PostedCommand};
use crate::crawl_loop::replayed_turns::ReplayedTurnResult;
use crate::crawl_loop::request_rows;
use crate::error::EngineError;
use crate::messages::page_pipeline_stages::{EncodedPage, TrapEvidence};
use crate::messages::replay_message_key::{
    KeyedMessage, LoggedMessageEntry, MessageCause, ReplayMessageKey,
};
use crate::messages::{Event, RequestJob, WriterMessage};

/// Maximum attempts to repeat a logged turn (use of a permit). Several may be needed, because a
/// host's permits go to its origins one after the other, so the next permit may not be for the
/// logged origin.
const MAX_ATTEMPTS: u32 = 64;

/// The state of a replay that follows the order in `state/order.jsonl`.
pub(super) struct OrderFollower {
    pub(super) script: RecordedOrderReader,
    /// Messages that are not committed yet.
    held: HashMap<ReplayMessageKey, VecDeque<WriterMessage>>,
    /// Groups of messages that were committed together according to the log, and that must be
    /// committed next.
    groups: VecDeque<Vec<LoggedMessageEntry>>,
    /// URLs that were requeued or deferred. Each entry contains the number of messages committed
    /// before the URL was moved, and the URL's earlier position in the queue.
    put_behind: HashMap<CanonicalUrl, Vec<(u64, PendingUrlFields)>>,
    /// Requests in flight, by URL and purpose. Some have no end on record if the crawl was killed.
    under_way: HashMap<(String, &'static str), VecDeque<InFlightRequest>>,
}

/// A request in flight.
pub(super) struct InFlightRequest {
    pub(super) job: RequestJob,
    pub(super) spent: SpentPermit,
    pub(super) span: Span,
}

/// Why a replay stopped following the order in `state/order.jsonl`. A replay stops at the end of
/// each run, if not earlier.
pub(super) enum OrderFollowerEndReason {
    /// Another run of the crawl begins.
    Run(RunStartEvent),
    /// All rows of `state/order.jsonl` were followed.
    End,
    /// The replay differs from `state/order.jsonl`. Contains the first request that differs, if it
    /// is known.
    Lost(Option<String>),
}

/// The error for a replay that differs from the order in `state/order.jsonl`, and so can't follow
/// it any longer.
pub(super) struct OrderDivergenceError(pub(super) Option<String>);

/// The result of following a row of `state/order.jsonl`. The outer error is a failure. The inner
/// error means that the replay differs from the logged order.
pub(super) type FollowedRowResult = Result<Result<(), OrderDivergenceError>, EngineError>;

impl OrderFollower {
    pub(super) fn new(script: RecordedOrderReader) -> OrderFollower {
        OrderFollower {
            script,
            held: HashMap::new(),
            groups: VecDeque::new(),
            put_behind: HashMap::new(),
            under_way: HashMap::new(),
        }
    }

    /// Holds a message until the logged group that contains it is committed.
    pub(super) fn hold(&mut self, key: ReplayMessageKey, message: WriterMessage) {
        self.held.entry(key).or_default().push_back(message);
    }

    /// Records that a request was sent.
    pub(super) fn sent(&mut self, under_way: InFlightRequest) {
        let job = &under_way.job;
        let key = (job.url().to_string(), request_rows::purpose(job));
        self.under_way.entry(key).or_default().push_back(under_way);
    }

    /// Returns everything needed to continue without following `state/order.jsonl`: its unread
    /// rows, the requests in flight, and the held messages.
    pub(super) fn give_up(
        self,
    ) -> (
        RecordedOrderReader,
        Vec<InFlightRequest>,
        Vec<WriterMessage>,
    ) {
        let under_way = self.under_way.into_values().flatten().collect();
        let held = self.held.into_values().flatten().collect();
        (self.script, under_way, held)
    }

    /// Makes a message of the replay equal to the one that the recorded crawl committed after
    /// `committed` other messages. The two may differ: for example, fewer URLs were known when the
    /// crawl's reader looked up the page's links.
    fn take_in(&mut self, fact: &LoggedMessageEntry, message: &mut WriterMessage, committed: u64) {
        match message {
            WriterMessage::Page(page) => {
                let findings = &mut page.findings;
                if let (TrapEvidence::Text(fingerprint), Some(words)) =
                    (&mut findings.signal, fact.new_words)
                {
                    fingerprint.set_new_words(words);
                }
                if let Some(looked_at) = fact.looked_at {
                    // The recorded crawl's reader dropped links to URLs that were already known,
                    // except links that would have moved their URL forward in its queue.
                    let was_left_out = |link: &UrlToAdmit| {
                        let behind = self.put_behind.get(&link.url).into_iter().flatten();
                        let mut behind = behind.filter(|(committed, _)| *committed >= looked_at);
                        behind.next().is_some_and(|(_, place)| {
                            decide_admission(CurrentState::Pending(*place), link)
                                == AdmitAction::Stay
                        })
                    };
                    findings.links.retain(|link| !was_left_out(link));
                }
            }
            WriterMessage::Later(leases) => {
                for (lease, _) in leases {
                    self.note_put_behind(lease, committed);
                }
            }
            WriterMessage::PutAside { lease, .. } | WriterMessage::SameAs { lease, .. } => {
                self.note_put_behind(lease, committed);
            }
            _ => {}
        }
    }

    fn note_put_behind(&mut self, lease: &Lease, committed: u64) {
        let times = self.put_behind.entry(lease.url.clone()).or_default();
        times.push((committed, lease.place()));
    }

    fn has(&self, fact: &LoggedMessageEntry) -> bool {
        let is_of_idle_loop = matches!(fact.key.cause, MessageCause::Draw | MessageCause::Mirrored);
        is_of_idle_loop || self.held.contains_key(&fact.key)
    }

    fn take_held(&mut self, key: ReplayMessageKey) -> Option<WriterMessage> {
        let held = self.held.get_mut(&key)?;
        let message = held.pop_front();
        if held.is_empty() {
            self.held.remove(&key);
        }
        message
    }

    fn take_under_way(&mut self, row: &RequestRow) -> Option<InFlightRequest> {
        let mut keys = self.under_way.keys();
        let is_it = |key: &&(String, &'static str)| key.0 == row.url && key.1 == row.purpose;
        let key = keys.find(is_it)?.clone();
        let of_url = self.under_way.get_mut(&key)?;
        let first = of_url.pop_front();
        if of_url.is_empty() {
            self.under_way.remove(&key);
        }
        first
    }
}

impl Replay {
    /// Follows the order in `state/order.jsonl` to the end of the run.
    pub(super) fn follow(&mut self) -> Result<OrderFollowerEndReason, EngineError> {
        match self.follow_run()? {
            Ok(Some(run)) => Ok(OrderFollowerEndReason::Run(run)),
            Ok(None) => Ok(OrderFollowerEndReason::End),
            Err(OrderDivergenceError(url)) => Ok(OrderFollowerEndReason::Lost(url)),
        }
    }

    fn follow_run(
        &mut self,
    ) -> Result<Result<Option<RunStartEvent>, OrderDivergenceError>, EngineError> {
        self.settle_effects()?;
        while let Some(following) = &mut self.following {
            let Some(row) = following.script.next()? else {
                break;
            };
            let step = if let Some(keys) = row.group {
                let keys = keys.iter().filter_map(|key| key.parse().ok());
                following.groups.push_back(keys.collect());
                Ok(())
            } else if let Some(turn) = row.turn {
                self.follow_turn(&turn)?
            } else if let Some(command) = row.command {
                self.follow_command(&command)?
            } else if let Some(step) = row.render {
                self.follow_render(&step)?
            } else if let Some(run) = row.run {
                return self.finish_run(run);
            } else {
                Ok(())
            };
            if let Err(lost) = step {
                return Ok(Err(lost));
            }
        }
        let ended = self.end_requests(u64::MAX, u64::MAX)?;
        let ended = match ended {
            Ok(()) => self.commit_until(u64::MAX)?,
            lost => lost,
        };
        Ok(ended.map(|()| None))
    }

    /// Ends the current run. First repeats the ended requests and the commits that the recorded
    /// crawl logged last in this run.
    fn finish_run(
        &mut self,
        next: RunStartEvent,
    ) -> Result<Result<Option<RunStartEvent>, OrderDivergenceError>, EngineError> {
        let ended = self.end_requests(u64::MAX, next.requests)?;
        if next.before.is_some() {
            // The recorded run was not killed, so it gave up the pages in the browser when it
            // ended. Do the same.
            self.give_up_renders();
            self.settle_effects()?;
        }
        let ended = match ended {
            Ok(()) => self.commit_until(next.settled)?,
            lost => lost,
        };
        Ok(ended.map(|()| Some(next)))
    }

    fn follow_turn(&mut self, turn: &HostTurn) -> FollowedRowResult {
        let Ok(origin) = Origin::parse(&turn.origin) else {
            return Ok(Err(OrderDivergenceError(None)));
        };
        if let Err(lost) = self.end_requests(turn.ended, u64::MAX)? {
            return Ok(Err(lost));
        }
        if let Err(lost) = self.commit_until(turn.settled)? {
            return Ok(Err(lost));
        }
        self.now = self.now.max(tick(turn.at));
        self.coordinator.wake_held_pages(self.now);
        let turns = self.keys.turns();
        for _ in 0..MAX_ATTEMPTS {
            let attempt = self
                .coordinator
                .take_turn(self.now, turn, &origin, &mut self.effects);
            self.settle_effects()?;
            match attempt {
                ReplayedTurnResult::Used if self.keys.turns() > turns => return Ok(Ok(())),
                ReplayedTurnResult::Used | ReplayedTurnResult::OtherPurpose => {}
                // The host's gap may end slightly after the logged time, because that time is
                // rounded to milliseconds.
                ReplayedTurnResult::NotBefore(tick) => self.now = self.now.max(tick),
                ReplayedTurnResult::Nothing => break,
            }
        }
        let request = self.recorded_request_of(turn, &origin)?;
        let first = request.unwrap_or_else(|| turn.origin.clone());
        Ok(Err(OrderDivergenceError(Some(first))))
    }

    /// Returns the URL of the request that a recorded turn (use of a permit) sent. Reads
    /// `requests.jsonl` to the row of that request, so the replay can't follow it any longer.
    fn recorded_request_of(
        &mut self,
        turn: &HostTurn,
        origin: &Origin,
    ) -> Result<Option<String>, EngineError> {
        let Some(following) = self.following.as_mut().filter(|_| turn.is_sent) else {
            return Ok(None);
        };
        while let Some((_, row)) = following.script.next_end(u64::MAX)? {
            // A redirect of a robots.txt may lead to any origin.
            let is_hop = turn.purpose == "hop" && row.purpose == "hop";
            let is_of_turn = |url: CanonicalUrl| is_hop || url.origin() == *origin;
            if row.start >= turn.at && canonicalize(None, &row.url).is_ok_and(is_of_turn) {
                return Ok(Some(row.url));
            }
        }
        Ok(None)
    }

    /// Repeats an operator's command. If the replay refuses it, a later request will differ.
    fn follow_command(&mut self, taken: &OperatorCommand) -> FollowedRowResult {
        if let Err(lost) = self.end_requests(taken.ended, u64::MAX)? {
            return Ok(Err(lost));
        }
        if let Err(lost) = self.commit_until(taken.settled)? {
            return Ok(Err(lost));
        }
        self.now = self.now.max(tick(taken.at));
        let Some(command) = command_of(taken) else {
            return Ok(Err(OrderDivergenceError(taken.about.clone())));
        };
        // The answer to a repeated command is discarded.
        let (answer, _) = oneshot::channel();
        let posted = Event::Command(PostedCommand { command, answer });
        self.coordinator.handle(self.now, posted, &mut self.effects);
        self.settle_effects()?;
        Ok(Ok(()))
    }

    /// Ends requests in the order of their rows, until `count` requests have ended in this run or
    /// the first `bytes` bytes of `requests.jsonl` were read.
    pub(super) fn end_requests(&mut self, count: u64, bytes: u64) -> FollowedRowResult {
        while self.keys.ended() < count
            && let Some(following) = &mut self.following
            && let Some((place, row)) = following.script.next_end(bytes)?
        {
            let Some(under_way) = following.take_under_way(&row) else {
                return Ok(Err(OrderDivergenceError(Some(row.url))));
            };
            self.now = self.now.max(tick(row.end));
            self.land(flight(under_way, &row, place));
            self.settle_effects()?;
        }
        Ok(Ok(()))
    }

    /// Commits logged groups until `messages` messages are committed in total.
    pub(super) fn commit_until(&mut self, messages: u64) -> FollowedRowResult {
        while self.writer.totals.messages < messages
            && let Some(following) = &mut self.following
        {
            let Some(facts) = following.groups.pop_front() else {
                // `u64::MAX` means all groups of the run.
                let is_all = messages == u64::MAX;
                return Ok(if is_all {
                    Ok(())
                } else {
                    Err(OrderDivergenceError(None))
                });
            };
            // After a kill, the request log may end earlier than the replay order log. The last
            // groups can't be committed then, because some of their messages are missing.
            let is_cut_off = messages == u64::MAX && !facts.iter().all(|fact| following.has(fact));
            if is_cut_off {
                return Ok(Ok(()));
            }
            let mut group = Vec::with_capacity(facts.len());
            for fact in facts {
                let Some(mut message) = self.message(fact.key)? else {
                    // Commit the messages already taken for this group, because the loop waits for
                    // them.
                    let messages = group.into_iter().map(|keyed: KeyedMessage| keyed.message);
                    self.items.extend(messages);
                    return Ok(Err(OrderDivergenceError(Some(fact.key.to_string()))));
                };
                if let Some(following) = &mut self.following {
                    let committed = self.writer.totals.messages;
                    following.take_in(&fact, &mut message, committed);
                }
                if let (WriterMessage::Page(page), Some(_)) = (&mut message, fact.looked_at) {
                    let EncodedPage {
                        visit, findings, ..
                    } = &mut **page;
                    self.reader.drop_known_trap_links(&visit.lease, findings);
                }
                let key = Some(fact.key);
                group.push(KeyedMessage { key, message });
            }
            self.commit(group)?;
            self.settle_effects()?;
        }
        Ok(Ok(()))
    }

    /// Returns the message with this key, which must be committed now. `None` if it is missing.
    /// Some messages are created only when the loop has nothing else to do. Makes the loop create
    /// them now.
    fn message(&mut self, key: ReplayMessageKey) -> Result<Option<WriterMessage>, EngineError> {
        let is_held = |following: &OrderFollower| following.held.contains_key(&key);
        if !self.following.as_ref().is_some_and(is_held) {
            match key.cause {
                MessageCause::Draw => {
                    self.coordinator.advance(self.now, &mut self.effects);
                }
                MessageCause::Mirrored => {
                    self.coordinator.take_back_mirrored(&mut self.effects);
                }
                _ => {}
            }
            self.settle_effects()?;
        }
        let following = self.following.as_mut();
        Ok(following.and_then(|following| following.take_held(key)))
    }
}

/// Parses a logged command. `None` for an unknown command.
fn command_of(taken: &OperatorCommand) -> Option<CrawlCommand> {
    let about = taken.about.as_deref();
    let host = about.map(|host| HostKey::parse(host).ok());
    Some(match taken.command.as_str() {
        // Older versions accepted URLs with a user name or password, and recorded them as typed.
        "add" => CrawlCommand::Add(canonicalize(None, about?).ok()?.to_string()),
        "delay" => CrawlCommand::Delay {
            host: match host {
                Some(host) => Some(host?),
                None => None,
            },
            delay: Duration::from_millis(taken.delay?),
        },
        "park" => CrawlCommand::Park(host??),
        "unpark" => CrawlCommand::Unpark(host??),
        _ => return None,
    })
}

/// Creates the `AnsweredRequest` of a pending request, which ends as in the recorded row.
fn flight(under_way: InFlightRequest, row: &RequestRow, place: u32) -> AnsweredRequest {
    let InFlightRequest { job, spent, span } = under_way;
    AnsweredRequest {
        pending: ReplayExchangeTimes::recorded(RecordedRequest::of(row, place)),
        number: u64::from(place),
        given_up: None,
        job,
        spent,
        span,
    }
}

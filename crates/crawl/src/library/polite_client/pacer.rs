//! The task behind a polite client. The pacer owns the scheduler, and uses each permit of the
//! scheduler to send the request of a waiting call.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use crawl_fetcher::robots::{
    CompiledRobots, RobotsCache, RobotsCopy, RobotsFetchResult, RobotsRulesState, RobotsTimeLimits,
};
use crawl_fetcher::{Exchange, ExchangeFailure, FetchRequest, Fetcher, Validators};
use crawl_policy::{ProductToken, RobotsProfile};
use crawl_scheduler::{
    Permit, PollOutcome, RequestPurpose, RobotsState, Scheduler, SpentPermit, Tick,
};
use crawl_weburl::{CanonicalUrl, Origin};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::PoliteError;

/// Maximum bytes of robots.txt copies in memory. An evicted copy is fetched again.
const ROBOTS_BYTES: u64 = 64 << 20;

/// The result of a `PoliteClient::get`: the exchange, or why there is none.
pub(super) type RequestResult = Result<Box<Exchange>, PoliteError>;

/// A call of `PoliteClient::get` that waits for a permit.
#[derive(Debug)]
pub(super) struct WaitingRequest {
    pub(super) url: CanonicalUrl,
    pub(super) reply: oneshot::Sender<RequestResult>,
}

/// A finished request.
struct FinishedRequest {
    spent: SpentPermit,
    result: Result<Exchange, ExchangeFailure>,
    kind: RequestKind,
}

/// What a request fetches, a page or a robots.txt, with the data for handling its result.
enum RequestKind {
    /// A page that a call wants. The reply is sent once the scheduler has recorded the end of the
    /// request.
    Page {
        url: CanonicalUrl,
        reply: oneshot::Sender<RequestResult>,
    },
    /// The robots.txt of an origin, after `hops` redirects.
    Robots {
        origin: Origin,
        request: FetchRequest,
        hops: u8,
    },
}

/// The state of the task behind a polite client. [`Pacer::run`] accepts calls, spends permits on
/// them, and reports each finished request to the scheduler.
pub(super) struct Pacer {
    fetcher: Arc<Fetcher>,
    scheduler: Scheduler,
    agent: ProductToken,
    times: RobotsTimeLimits,
    rules: RobotsCache,
    /// Queued calls by origin, oldest first.
    waiting: HashMap<Origin, VecDeque<WaitingRequest>>,
    /// For an origin whose robots.txt was redirected: the next URL to request, and the number of
    /// redirects so far.
    hops: HashMap<Origin, (CanonicalUrl, u8)>,
    tasks: JoinSet<PacerTaskResult>,
}

/// The result of a task that the pacer started.
enum PacerTaskResult {
    /// A request has ended.
    Request(Box<FinishedRequest>),
    /// The DNS look-up that `call` waited for has ended. `address` is `None` if it is still
    /// unknown.
    LookUp {
        call: WaitingRequest,
        address: Option<IpAddr>,
    },
}

impl Pacer {
    pub(super) fn new(fetcher: Fetcher, scheduler: Scheduler, agent: ProductToken) -> Pacer {
        Pacer {
            fetcher: Arc::new(fetcher),
            scheduler,
            agent,
            times: RobotsTimeLimits::default(),
            rules: RobotsCache::new(ROBOTS_BYTES),
            waiting: HashMap::new(),
            hops: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Serves calls until the last clone of the client is dropped or a request panics. Requests in
    /// flight are then aborted.
    pub(super) async fn run(mut self, mut calls: mpsc::UnboundedReceiver<WaitingRequest>) {
        loop {
            let wake = self.issue();
            let clock = self.fetcher.clock();
            let sleep = async {
                match wake {
                    Some(wake) => tokio::time::sleep(wake.since(clock.now())).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                call = calls.recv() => match call {
                    Some(call) => self.take_in(call),
                    None => return,
                },
                Some(ended) = self.tasks.join_next() => match ended {
                    Ok(PacerTaskResult::Request(ended)) => self.ended(*ended),
                    Ok(PacerTaskResult::LookUp { call, address }) => {
                        let now = self.fetcher.clock().now();
                        if let Some(address) = address {
                            self.scheduler.set_address(now, &call.url.host_key(), address);
                        }
                        self.admit(call);
                    }
                    // The request panicked. Its host would never get another permit, so the client
                    // ends.
                    Err(_) => return,
                },
                () = sleep => {}
            }
        }
    }

    /// Uses all permits that are available now. Returns when to poll the scheduler again. `None` if
    /// only a new call or the end of a task can make another permit available.
    fn issue(&mut self) -> Option<Tick> {
        loop {
            match self.scheduler.poll(self.fetcher.clock().now()) {
                PollOutcome::Issue(permit) => self.spend(permit),
                PollOutcome::SleepUntil(wake) => return Some(wake),
                PollOutcome::Idle => return None,
            }
        }
    }

    /// Accepts a call. First looks up the address of the call's host: several hosts may share a
    /// server, and the limits per address apply from the first request on.
    fn take_in(&mut self, call: WaitingRequest) {
        if self.scheduler.has_address(&call.url.host_key()) {
            return self.admit(call);
        }
        let fetcher = Arc::clone(&self.fetcher);
        self.tasks.spawn(async move {
            let address = fetcher.address(&call.url).await;
            PacerTaskResult::LookUp { call, address }
        });
    }

    /// Queues a call. If known rules disallow the URL, or robots.txt is unreachable, answers the
    /// call immediately instead.
    fn admit(&mut self, call: WaitingRequest) {
        let now = self.fetcher.clock().now();
        let origin = call.url.origin();
        if let Some(compiled) = self.rules.get(&origin) {
            match compiled.state(now, &self.times) {
                RobotsState::InForce { .. } => {
                    if let Some(refusal) = disallowed(&compiled, &call.url) {
                        let _ = call.reply.send(Err(refusal));
                        return;
                    }
                }
                RobotsState::Unreachable { retry_at } => {
                    let _ = call
                        .reply
                        .send(Err(unknown(&compiled, &origin, now, retry_at)));
                    return;
                }
                RobotsState::Unknown => {}
            }
        }
        let calls = self.waiting.entry(origin.clone()).or_default();
        calls.push_back(call);
        // Remove abandoned calls whenever the length reaches a power of two. If the gap is long,
        // callers may give up and call again, and the queue would grow without bound.
        if calls.len().is_power_of_two() {
            calls.retain(|call| !call.reply.is_closed());
        }
        let pending = calls.len() as u64;
        self.scheduler.set_pending(now, &origin, pending);
    }

    fn spend(&mut self, permit: Permit) {
        match permit.purpose().clone() {
            RequestPurpose::Robots { origin } => {
                let url = origin.robots_url();
                let validators = match self.rules.get(&origin) {
                    Some(compiled) => compiled.copy.validators_for(&url),
                    None => Validators::default(),
                };
                self.send_robots(permit, origin, FetchRequest::robots(url, validators), 0);
            }
            RequestPurpose::Hop { of } => match self.hops.remove(&of) {
                Some((url, hops)) => {
                    let request = FetchRequest {
                        needs_new_connection: true,
                        ..FetchRequest::robots(url, Validators::default())
                    };
                    self.send_robots(permit, of, request, hops);
                }
                None => self.request_robots_again(permit, &of),
            },
            RequestPurpose::Page { origin } => self.send_page(permit, &origin),
        }
    }

    /// Uses a permit for the first queued call that was not dropped and whose URL is allowed.
    /// Checks the rules again here, because they may have been expired when the call was queued.
    fn send_page(&mut self, permit: Permit, origin: &Origin) {
        let Some(compiled) = self.rules.get(origin) else {
            return self.request_robots_again(permit, origin);
        };
        let calls = self.waiting.entry(origin.clone()).or_default();
        let mut next = None;
        while let Some(call) = calls.pop_front() {
            if call.reply.is_closed() {
                continue;
            }
            match disallowed(&compiled, &call.url) {
                Some(refusal) => drop(call.reply.send(Err(refusal))),
                None => {
                    next = Some(call);
                    break;
                }
            }
        }
        let now = self.fetcher.clock().now();
        let pending = calls.len() as u64;
        if calls.is_empty() {
            self.waiting.remove(origin);
        }
        self.scheduler.set_pending(now, origin, pending);
        let Some(WaitingRequest { url, reply }) = next else {
            self.scheduler.give_back(now, permit);
            return;
        };
        let fetcher = Arc::clone(&self.fetcher);
        self.tasks.spawn(async move {
            let request = FetchRequest::page(url.clone());
            let (spent, result) = fetcher.fetch(permit, request).await;
            let kind = RequestKind::Page { url, reply };
            PacerTaskResult::Request(Box::new(FinishedRequest {
                spent,
                result,
                kind,
            }))
        });
    }

    fn send_robots(&mut self, permit: Permit, origin: Origin, request: FetchRequest, hops: u8) {
        let fetcher = Arc::clone(&self.fetcher);
        self.tasks.spawn(async move {
            let (spent, result) = fetcher.fetch(permit, request.clone()).await;
            let kind = RequestKind::Robots {
                origin,
                request,
                hops,
            };
            PacerTaskResult::Request(Box::new(FinishedRequest {
                spent,
                result,
                kind,
            }))
        });
    }

    /// Makes the scheduler request an origin's robots.txt again, since the copy was evicted from
    /// memory.
    fn request_robots_again(&mut self, permit: Permit, origin: &Origin) {
        let now = self.fetcher.clock().now();
        let (host, purpose) = (permit.host().clone(), permit.purpose().clone());
        self.scheduler.set_robots(now, origin, RobotsState::Unknown);
        self.scheduler.give_back(now, permit);
        self.scheduler.cancel_request(now, &host, &purpose);
    }

    fn ended(&mut self, ended: FinishedRequest) {
        let FinishedRequest {
            spent,
            result,
            kind,
        } = ended;
        let now = self.fetcher.clock().now();
        let signal = match &result {
            Ok(exchange) => exchange.signal(),
            Err(failure) => failure.signal(),
        };
        let url = match &kind {
            RequestKind::Page { url, .. } => url,
            RequestKind::Robots { request, .. } => &request.url,
        };
        let signal = signal.with_url(url.as_str());
        self.scheduler.done(now, spent, signal);
        match kind {
            RequestKind::Page { url, reply } => {
                let answer = result.map(Box::new).map_err(|failure| PoliteError::Failed {
                    url: url.to_string(),
                    failure,
                });
                let _ = reply.send(answer);
            }
            RequestKind::Robots {
                origin,
                request,
                hops,
            } => self.learn(now, origin, &request, hops, &result),
        }
    }

    /// Answers the queued calls that new rules disallow, since they need no permit.
    fn refuse_disallowed(&mut self, now: Tick, origin: &Origin, compiled: &CompiledRobots) {
        let calls = self.waiting.remove(origin).unwrap_or_default();
        let mut allowed = VecDeque::with_capacity(calls.len());
        for call in calls {
            match disallowed(compiled, &call.url) {
                Some(refusal) => drop(call.reply.send(Err(refusal))),
                None => allowed.push_back(call),
            }
        }
        self.scheduler
            .set_pending(now, origin, allowed.len() as u64);
        if !allowed.is_empty() {
            self.waiting.insert(origin.clone(), allowed);
        }
    }

    /// Updates an origin's rules from the answer for its robots.txt, or follows a redirect in the
    /// answer.
    fn learn(
        &mut self,
        now: Tick,
        origin: Origin,
        request: &FetchRequest,
        hops: u8,
        result: &Result<Exchange, ExchangeFailure>,
    ) {
        let answer = RobotsFetchResult::of(request, result, hops);
        if let RobotsFetchResult::Redirect { to, .. } = answer {
            let host = to.host_key();
            self.hops.insert(origin.clone(), (to, hops + 1));
            self.scheduler
                .queue_request(now, &host, RequestPurpose::Hop { of: origin });
            return;
        }
        let before = self.rules.get(&origin);
        let before = before.as_ref().map(|compiled| &compiled.copy);
        let copy = RobotsCopy::learn(&origin, before, &answer, result, &self.times);
        let compiled = CompiledRobots::new(copy, &self.agent, RobotsProfile::Rfc9309);
        let compiled = Arc::new(compiled);
        // Evaluate the rules at the time of the response, not at the current time. Even rules that
        // expire immediately then allow one page.
        let state = compiled.state(compiled.copy.fetched_at, &self.times);
        if let RobotsState::InForce { .. } = state {
            self.refuse_disallowed(now, &origin, &compiled);
        }
        if let RobotsState::Unreachable { retry_at } = state {
            for call in self.waiting.remove(&origin).into_iter().flatten() {
                let _ = call
                    .reply
                    .send(Err(unknown(&compiled, &origin, now, retry_at)));
            }
            self.scheduler.set_pending(now, &origin, 0);
        }
        self.rules.insert(compiled);
        self.scheduler.set_robots(now, &origin, state);
    }
}

/// Returns the error for a URL that the rules of its origin disallow. `None` if the rules allow the
/// URL.
fn disallowed(compiled: &CompiledRobots, url: &CanonicalUrl) -> Option<PoliteError> {
    let verdict = compiled.robots.judge(url.as_url());
    if verdict.is_allowed() {
        return None;
    }
    let rule = verdict.rule;
    Some(PoliteError::Disallowed {
        url: url.to_string(),
        rule: rule
            .as_ref()
            .map_or_else(String::new, |rule| rule.text.to_string()),
        line: rule.map_or(0, |rule| rule.line),
    })
}

/// Returns the error for an origin whose robots.txt can't be read.
fn unknown(compiled: &CompiledRobots, origin: &Origin, now: Tick, retry_at: Tick) -> PoliteError {
    PoliteError::RulesUnknown {
        origin: origin.to_string(),
        why: match &compiled.copy.state {
            RobotsRulesState::Unreachable { why, .. } => why.clone(),
            _ => String::new(),
        },
        retry_after: retry_at.since(now),
    }
}

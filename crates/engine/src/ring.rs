//! The logic of the ring: events in, effects out.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use crawl_archive::rows::{RequestRow, RobotsVerdict};
use crawl_fetcher::{Exchange, Failure};
use crawl_frontier::{Admission, Exclusion, Frontier, FrontierError, Lease, Reason};
use crawl_policy::scope::{Scope, ScopeVerdict};
use crawl_scheduler::{
    PausedBy, Permit, Poll, Purpose, Scheduler, Signal, SignalKind, Spent, Tick,
};
use crawl_weburl::{CanonicalUrl, HostKey, Origin};

use crate::config::{Config, Phase, Progress, Stop};
use crate::error::EngineError;
use crate::item::{Committed, Effect, Event, HostState, Item, Job, PageItem, Reading, Totals};
use crate::origins::{Origins, Standing};
use crate::read::{redirect_target, seed_admission};
use crate::request_log;
use crate::summary::{Ended, SeedFailure, UnreachableHost};

/// Items on their way to the disk at which no more permits are asked for, at least. It
/// bounds the bodies in memory behind the fetcher, and is large enough for a group commit
/// to pay while the next group gathers.
const UNSETTLED_MAX: u64 = 512;

/// Octets of bodies on their way to the disk at which no more permits are asked for.
/// Beside them there is what is in flight.
const UNSETTLED_OCTETS_MAX: u64 = 256 << 20;

/// A gap that is longer, as a `Crawl-delay` of years asks for, is no reason to stay.
const LONGEST_GAP: Duration = Duration::from_secs(24 * 60 * 60);

/// The state of a crawl between two events. Nothing in it waits or sleeps.
pub struct Ring {
    pub(crate) config: Arc<Config>,
    pub(crate) scheduler: Scheduler,
    pub(crate) frontier: Arc<dyn Frontier>,
    pub(crate) origins: Origins,
    scope: Arc<Scope>,
    /// Pages settled per host, for hosts met in this run.
    host_pages: HashMap<HostKey, u64>,
    /// Leases of each host that may still become rows.
    host_leases: HashMap<HostKey, u64>,
    /// Hosts that asked us to wait and answered nothing else since.
    silent_hosts: HashSet<HostKey>,
    /// Hosts whose page budget is spent.
    full_hosts: HashSet<HostKey>,
    totals: Totals,
    totals_at_start: Totals,
    started: Tick,
    in_flight: u32,
    /// Items and jobs handed out whose end was not committed yet.
    unsettled: u64,
    /// Octets of bodies among them.
    unsettled_octets: u64,
    /// Leases among them: each may become a row of `pages.jsonl`.
    leases_out: u64,
    sequence: u64,
    stop: Stop,
    ending: Option<Ended>,
    broken: Option<EngineError>,
    pub(crate) robots_requests: u64,
    pub(crate) requests: u64,
    pub(crate) unusable: BTreeMap<&'static str, u64>,
    pub(crate) seeds_failed: Vec<SeedFailure>,
}

/// What the driver does after the effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Wait for an event, at most until this moment.
    Wait(Option<Tick>),
    /// The run is over: nothing is in flight, nothing unsettled.
    Done,
}

impl Ring {
    /// A ring over an opened frontier; `totals` are those of the runs before.
    #[must_use]
    pub fn new(
        config: Arc<Config>,
        frontier: Arc<dyn Frontier>,
        scope: Scope,
        totals: Totals,
        now: Tick,
        seed: u64,
    ) -> Ring {
        Ring {
            scheduler: Scheduler::new(config.politeness.clone(), seed),
            origins: Origins::new(&config),
            config,
            frontier,
            scope: Arc::new(scope),
            host_pages: HashMap::new(),
            host_leases: HashMap::new(),
            silent_hosts: HashSet::new(),
            full_hosts: HashSet::new(),
            totals,
            totals_at_start: totals,
            started: now,
            in_flight: 0,
            unsettled: 0,
            unsettled_octets: 0,
            leases_out: 0,
            sequence: 0,
            stop: Stop::No,
            ending: None,
            broken: None,
            robots_requests: 0,
            requests: 0,
            unusable: BTreeMap::new(),
            seeds_failed: Vec::new(),
        }
    }

    /// Takes up a host's state as an earlier run left it.
    pub fn restore_host(&mut self, now: Tick, state: &HostState, rest: crawl_scheduler::Restart) {
        let (pages, bytes) = split_host_bytes(&state.bytes);
        self.host_pages.insert(state.host.clone(), pages);
        self.note_budget(&state.host);
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
            "delay" | "delay-factor" | "crawl-delay" => Duration::from_millis(row.gap_asked),
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

    /// Whether the run was told to end without saving.
    #[must_use]
    pub fn stopped_at_once(&self) -> bool {
        self.stop == Stop::Now
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

    /// Takes in what happened.
    pub fn handle(&mut self, now: Tick, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Fetched { job, spent, result } => self.fetched(now, job, spent, result, out),
            Event::Committed(committed) => self.committed(now, committed),
            Event::Stop(stop) => self.stop = self.stop.max(stop),
            Event::Broken(error) => self.fail(error),
        }
    }

    /// Issues what may be issued now.
    pub fn advance(&mut self, now: Tick, out: &mut Vec<Effect>) -> Next {
        if self.stop == Stop::Drain && self.ending.is_none() {
            self.ending = Some(Ended::Interrupted);
        }
        if self.broken.is_some() || self.stop == Stop::Now {
            self.ending.get_or_insert(Ended::Interrupted);
            return Next::Done;
        }
        let mut wake = self.deadline();
        if self.ending.is_none() && wake.is_some_and(|deadline| deadline <= now) {
            self.ending = Some(Ended::Budget("max-time"));
        }
        while self.ending.is_none()
            && self.unsettled < self.unsettled_max()
            && self.broken.is_none()
            && self.unsettled_octets < UNSETTLED_OCTETS_MAX
        {
            if let Some(budget) = self.spent_budget() {
                if self.leases_out > 0 {
                    break;
                }
                self.ending = Some(Ended::Budget(budget));
                break;
            }
            match self.scheduler.poll(now) {
                Poll::Issue(permit) => self.issue(now, permit, out),
                Poll::SleepUntil(tick) => {
                    wake = Some(wake.map_or(tick, |wake| wake.min(tick)));
                    break;
                }
                Poll::Idle => break,
            }
        }
        if self.in_flight == 0 && self.unsettled == 0 && self.ending.is_none() {
            self.ending = self.natural_end(now);
        }
        if self.broken.is_some()
            || (self.ending.is_some() && self.in_flight == 0 && self.unsettled == 0)
        {
            return Next::Done;
        }
        Next::Wait(if self.ending.is_some() { None } else { wake })
    }

    /// How the run ended, or the error that ended it.
    ///
    /// # Errors
    /// The first failure of the disk, the state or a thread.
    pub fn outcome(&mut self) -> Result<Ended, EngineError> {
        match self.broken.take() {
            Some(error) => Err(error),
            None => Ok(self.ending.clone().unwrap_or(Ended::Finished)),
        }
    }

    /// A moment of the crawl.
    #[must_use]
    pub fn progress(&self, now: Tick) -> Progress {
        let counts = self.frontier.counts();
        let resting = self.scheduler.resting(now);
        let elapsed = now.since(self.started);
        let fresh = self.totals.pages - self.totals_at_start.pages;
        let rate = fresh as f64 / elapsed.as_secs_f64().max(0.001);
        let left = (fresh > 0 && rate > 0.0)
            .then(|| Duration::from_secs_f64(counts.pending as f64 / rate));
        Progress {
            phase: if self.ending.is_some() || self.stop != Stop::No {
                Phase::Draining
            } else {
                Phase::Crawling
            },
            pages: self.totals.pages,
            failed: self.totals.failed,
            excluded: counts.excluded + counts.deferred,
            pending: counts.pending,
            in_flight: self.in_flight,
            hosts_waiting: resting.waiting_hosts,
            hosts_resting: u32::try_from(resting.paused.len()).unwrap_or(u32::MAX),
            bytes: self.totals.bytes,
            pages_per_second: rate,
            elapsed,
            left,
        }
    }

    /// Sums over all runs, as committed.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    pub(crate) fn totals_at_start(&self) -> Totals {
        self.totals_at_start
    }

    /// The end of this run by `--max-time`.
    fn deadline(&self) -> Option<Tick> {
        self.config.budgets.max_time.map(|time| self.started + time)
    }

    /// The name of a budget of the whole crawl that leaves room for no further page.
    fn spent_budget(&self) -> Option<&'static str> {
        let budgets = &self.config.budgets;
        if budgets
            .max_pages
            .is_some_and(|max| self.totals.pages + self.leases_out >= max)
        {
            Some("max-pages")
        } else if budgets
            .max_bytes
            .is_some_and(|max| self.totals.bytes >= max)
        {
            Some("max-bytes")
        } else {
            None
        }
    }

    fn natural_end(&mut self, now: Tick) -> Option<Ended> {
        let resting = self.scheduler.resting(now);
        match resting.soonest {
            // Nothing can ever be issued: the work is done, or only full hosts hold some.
            None => Some(match self.frontier.counts().pending {
                0 => Ended::Finished,
                _ if self.full_hosts.is_empty() => Ended::Finished,
                _ => Ended::Budget("max-pages-per-host"),
            }),
            Some(soonest)
                if soonest > now + self.config.wait_unreachable
                    && resting.ready == 0
                    && (resting.waiting_hosts == 0 || soonest > now + LONGEST_GAP) =>
            {
                let hosts = resting.paused.into_iter().map(|rest| UnreachableHost {
                    why: self
                        .origins
                        .why_unreachable(&rest.host)
                        .unwrap_or_else(|| paused_words(rest.why)),
                    host: rest.host,
                    next_try: rest.until,
                });
                Some(Ended::Unreachable(hosts.collect()))
            }
            Some(_) => None,
        }
    }

    fn issue(&mut self, now: Tick, permit: Permit, out: &mut Vec<Effect>) {
        let job = match permit.purpose().clone() {
            Purpose::Page { origin } => self.next_page(now, &origin, out),
            Purpose::Robots { origin } => {
                let url = origin.robots_url();
                self.robots_job(origin, url, 0).map(Some)
            }
            Purpose::Hop { of } => match self.origins.take_hop(&of) {
                Some((url, hop)) => self.robots_job(of, url, hop).map(Some),
                None => Ok(None),
            },
        };
        match job {
            Ok(Some(job)) => {
                self.in_flight += 1;
                self.requests += 1;
                out.push(Effect::Fetch { permit, job });
            }
            Ok(None) => self.scheduler.give_back(now, permit),
            Err(error) => {
                self.fail(error);
                self.scheduler.give_back(now, permit);
            }
        }
    }

    fn fail(&mut self, error: impl Into<EngineError>) {
        self.broken.get_or_insert(error.into());
    }

    /// The next URL of an origin that may be asked for; those that may not are settled
    /// on the way.
    fn next_page(
        &mut self,
        now: Tick,
        origin: &Origin,
        out: &mut Vec<Effect>,
    ) -> Result<Option<Job>, FrontierError> {
        let standing = self.origins.standing(origin, &*self.frontier)?;
        let host = origin.host_key();
        let full = self.is_full(&host);
        while !full && self.unsettled < self.unsettled_max() {
            let Some(lease) = self.frontier.lease(origin)? else {
                break;
            };
            let refusal = match &standing {
                Standing::InForce(robots) => {
                    let verdict = robots.robots.judge(lease.url.path_and_query());
                    if verdict.is_allowed() {
                        let robots = request_log::robots_verdict(&verdict);
                        self.unsettled += 1;
                        self.leases_out += 1;
                        *self.host_leases.entry(host).or_default() += 1;
                        self.scheduler
                            .waiting(now, origin, self.frontier.pending(origin));
                        return Ok(Some(Job::Page { lease, robots }));
                    }
                    request_log::robots_exclusion(&verdict)
                }
                Standing::Refused(why) => Exclusion {
                    reason: Reason::Address,
                    rule: Some(why.clone()),
                    line: None,
                },
                Standing::Unknown => {
                    self.frontier.release(lease);
                    self.scheduler
                        .robots(now, origin, crawl_scheduler::RobotsState::Unknown);
                    return Ok(None);
                }
            };
            self.write(
                Item::Excluded {
                    lease,
                    exclusion: refusal,
                },
                out,
            );
        }
        let left = if full {
            0
        } else {
            self.frontier.pending(origin)
        };
        self.scheduler.waiting(now, origin, left);
        Ok(None)
    }

    fn fetched(
        &mut self,
        now: Tick,
        job: Job,
        spent: Spent,
        result: Result<Exchange, Failure>,
        out: &mut Vec<Effect>,
    ) {
        self.in_flight -= 1;
        let signal = signal_of(&result);
        let row = request_log::row(&job, &spent, &result, &signal.kind);
        let kind = signal.kind;
        let learned = self.scheduler.done(now, spent, signal);
        out.push(Effect::Log(request_log::with_wait(row, &learned)));
        match job {
            Job::Page { lease, robots } => {
                self.page_fetched(now, lease, robots, result, kind, out);
            }
            Job::Robots { of, request, hop } => {
                self.robots_requests += 1;
                if let Err(error) = self.robots_fetched(now, &of, &request, hop, result, out) {
                    self.fail(error);
                }
            }
        }
    }

    fn page_fetched(
        &mut self,
        now: Tick,
        lease: Lease,
        robots: RobotsVerdict,
        result: Result<Exchange, Failure>,
        kind: SignalKind,
        out: &mut Vec<Effect>,
    ) {
        let host = lease.url.host_key();
        if let Some(out) = self.host_leases.get_mut(&host) {
            *out = out.saturating_sub(1);
        }
        if kind == SignalKind::NoConnection {
            // The host's matter: the URL waits at the head of its queue, no older.
            let origin = lease.origin.clone();
            self.frontier.release(lease);
            self.unsettled -= 1;
            self.leases_out -= 1;
            self.wake(now, &origin, self.frontier.pending(&origin));
            let state = self.host_state(&host);
            return self.write(Item::Host(state), out);
        }
        if self.is_tried_again(&lease, &host, kind, &result) {
            let host = Some(self.host_state(&host));
            // The lease stays counted in `unsettled` until the writer has it.
            out.push(Effect::Write(Item::Retry { lease, host }));
            return;
        }
        *self.host_pages.entry(host.clone()).or_default() += 1;
        self.note_budget(&host);
        let host = self.host_state(&host);
        match result {
            Ok(exchange) => {
                if lease.is_seed
                    && let Some(Ok(target)) = redirect_target(&exchange)
                {
                    Arc::make_mut(&mut self.scope).add_seed(&target);
                }
                self.unsettled_octets += exchange.body.len() as u64;
                let scope = Arc::clone(&self.scope);
                out.push(Effect::Read(Box::new(Reading {
                    lease,
                    robots,
                    exchange,
                    scope,
                    host,
                })));
            }
            Err(failure) => {
                let item = PageItem::failed(lease, robots, &failure, host);
                out.push(Effect::Write(Item::Page(Box::new(item))));
            }
        }
    }

    /// Whether a URL goes behind the others of its origin, to be tried again.
    ///
    /// 429 and 503 are the host's matter, so none of its URLs is settled by them while the
    /// host answers nothing else. A URL that goes on with them while others are answered,
    /// or for as often as it names the time to come back, is settled like one that fails.
    fn is_tried_again(
        &mut self,
        lease: &Lease,
        host: &HostKey,
        kind: SignalKind,
        result: &Result<Exchange, Failure>,
    ) -> bool {
        let left = lease.attempt <= self.config.retries;
        match kind {
            SignalKind::AskedToWait { retry_after } => {
                let silent = !self.silent_hosts.insert(host.clone());
                left || (silent && retry_after.is_none())
            }
            SignalKind::Answered => {
                self.silent_hosts.remove(host);
                left && is_worth_a_retry(result)
            }
            SignalKind::UrlFailed | SignalKind::NoConnection => left && is_worth_a_retry(result),
        }
    }

    fn committed(&mut self, now: Tick, committed: Committed) {
        self.unsettled -= committed.items;
        self.leases_out -= committed.leases;
        self.unsettled_octets = self.unsettled_octets.saturating_sub(committed.octets);
        self.totals = committed.totals;
        for (origin, _) in committed.origins {
            // As of now, not of the commit: a lease may have been given back meanwhile.
            let urls = self.frontier.pending(&origin);
            self.wake(now, &origin, urls);
        }
        self.seeds_failed.extend(committed.seeds_failed);
        for (why, count) in committed.unusable {
            *self.unusable.entry(why).or_default() += count;
        }
    }

    /// Tells the scheduler what an origin has to do, and what is known of its rules
    /// where this run meets the origin for the first time.
    pub(crate) fn wake(&mut self, now: Tick, origin: &Origin, urls: u64) {
        let host = origin.host_key();
        let urls = if self.is_full(&host) { 0 } else { urls };
        self.scheduler.waiting(now, origin, urls);
        match self.origins.meet(now, origin, &*self.frontier) {
            Ok(Some(state)) => self.scheduler.robots(now, origin, state),
            Ok(None) => {}
            Err(error) => self.fail(error),
        }
    }

    pub(crate) fn write(&mut self, item: Item, out: &mut Vec<Effect>) {
        self.unsettled += 1;
        out.push(Effect::Write(item));
    }

    pub(crate) fn host_state(&mut self, host: &HostKey) -> HostState {
        self.sequence += 1;
        let pages = self.host_pages.get(host).copied().unwrap_or_default();
        let (wake, politeness) = self
            .scheduler
            .snapshot(host)
            .unwrap_or((Tick::from_micros(0), Vec::new()));
        let mut bytes = pages.to_le_bytes().to_vec();
        bytes.extend_from_slice(&politeness);
        HostState {
            host: host.clone(),
            wake: wake.as_micros(),
            bytes,
            sequence: self.sequence,
        }
    }

    /// Whether a host's budget leaves room for no further lease.
    fn is_full(&self, host: &HostKey) -> bool {
        let Some(max) = self.config.budgets.max_pages_per_host else {
            return false;
        };
        let count = |of: &HashMap<HostKey, u64>| of.get(host).copied().unwrap_or_default();
        count(&self.host_pages) + count(&self.host_leases) >= max
    }

    /// Room for every request that may be in flight, and a group behind it.
    fn unsettled_max(&self) -> u64 {
        UNSETTLED_MAX.max(2 * u64::from(self.config.politeness.concurrency))
    }

    fn note_budget(&mut self, host: &HostKey) {
        let pages = self.host_pages.get(host).copied().unwrap_or_default();
        if self
            .config
            .budgets
            .max_pages_per_host
            .is_some_and(|max| pages >= max)
        {
            self.full_hosts.insert(host.clone());
        }
    }

    /// Sitemaps of a host that is crawled are read wherever they lie, unless excluded.
    pub(crate) fn may_read_sitemap(&self, url: &CanonicalUrl, host: &HostKey) -> bool {
        match url.host_key() == *host {
            true => self.scope.excluded(url).is_none(),
            false => self.scope.judge(url, 0) == ScopeVerdict::In,
        }
    }
}

/// The page count and the scheduler's octets of a host's durable state.
fn split_host_bytes(bytes: &[u8]) -> (u64, &[u8]) {
    match bytes.split_first_chunk::<8>() {
        Some((pages, rest)) => (u64::from_le_bytes(*pages), rest),
        None => (0, &[]),
    }
}

/// What an exchange tells about its host.
fn signal_of(result: &Result<Exchange, Failure>) -> Signal {
    let (started, end, address, kind) = match result {
        Ok(exchange) => (
            exchange.started,
            exchange.ended,
            exchange.address,
            exchange.signal_kind(),
        ),
        Err(failure) => (
            failure.started,
            failure.ended,
            failure.address,
            failure.signal_kind(),
        ),
    };
    Signal {
        end,
        response_time: end.since(started),
        address: address.map(|address| address.ip()),
        kind,
    }
}

fn paused_words(why: PausedBy) -> String {
    match why {
        PausedBy::RetryAfter => "it sent a Retry-After".to_owned(),
        PausedBy::Wait => "it answered 429 or 503".to_owned(),
        PausedBy::Failures(count) => format!("{count} requests failed in a row"),
        PausedBy::Robots => "its robots.txt can't be had".to_owned(),
    }
}

/// Whether the same request may well succeed another time.
fn is_worth_a_retry(result: &Result<Exchange, Failure>) -> bool {
    match result {
        Ok(exchange) => matches!(exchange.status, 500 | 502 | 504),
        Err(failure) => failure.retry,
    }
}

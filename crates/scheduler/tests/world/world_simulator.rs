//! The crawl of a simulated world: takes permits, ends requests with random outcomes, and finds
//! URLs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::fmt::Write as _;
use std::time::Duration;

use crawl_scheduler::{
    EvictedHost, OutcomeKind, PaceFromRateLimit, Permit, PermitAdmissionResult, PollOutcome,
    RequestOutcome, RequestPurpose, RobotsState, Scheduler, SnapshotCompleteness, SpentPermit,
    Tick,
};
use crawl_weburl::{HostKey, Origin};

use super::Dice;
use super::permit_check::{Check, Sent, WorldPurpose};
use super::world_plan::{
    HostPlan, Plan, START, WorldPace, host_number, origin_number, origin_text,
};

pub(crate) struct World {
    plan: Plan,
    dice: Dice,
    pub(crate) now: Tick,
    pub(crate) scheduler: Scheduler,
    pub(crate) check: Check,
    pace: Vec<WorldPace>,
    hosts: Vec<HostPlan>,
    /// Pending URLs per origin. Each host has two origins.
    left: Vec<u32>,
    all_left: u64,
    /// Since when each host has had work and rules, so that only the gap can delay its next
    /// request.
    free_since: Vec<Tick>,
    flying: Vec<Option<Flight>>,
    free: Vec<u32>,
    ends: BinaryHeap<Reverse<(Tick, u32)>>,
    /// Times at which more URLs are found, each with the number of the origin.
    finds: BinaryHeap<Reverse<(Tick, u32)>>,
    /// Look-ups under way, by when they end.
    look_ups: BTreeMap<(Tick, u64), Permit>,
    found: VecDeque<Permit>,
    evicted: HashMap<u32, Vec<u8>>,
    pub(crate) tally: Tally,
    pub(crate) log: String,
}

/// Totals of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    /// Answered pages, each URL once.
    pub(crate) pages: u64,
    pub(crate) robots: u64,
    pub(crate) failures: u64,
    pub(crate) waits_asked: u64,
    pub(crate) evictions: u64,
    pub(crate) kills: u64,
    pub(crate) reloads: u64,
    /// Totals over all requests that followed another to the same host: the required gaps
    /// (`asked`), and the time waited beyond these gaps.
    pub(crate) asked: Duration,
    pub(crate) late: Duration,
    pub(crate) latest: Duration,
    /// Calls of `poll`.
    pub(crate) polls: u64,
}

struct Flight {
    spent: SpentPermit,
    sent: Sent,
    took: Duration,
    kind: OutcomeKind,
}

impl World {
    pub(crate) fn new(plan: Plan) -> World {
        let mut dice = Dice(plan.seed);
        let pace = plan.draw_paces(&mut dice);
        let hosts: Vec<_> = (0..plan.hosts).map(|_| plan.draw_host(&mut dice)).collect();
        let mut finds = BinaryHeap::new();
        for (host, number) in hosts.iter().zip(0..) {
            for second in 0..=u32::from(host.second_origin) {
                finds.push(Reverse((START, number * 2 + second)));
                finds.push(Reverse((START + dice.millis(60_000), number * 2 + second)));
            }
        }
        World {
            dice,
            now: START,
            scheduler: Scheduler::new(plan.politeness(), plan.seed),
            check: Check::new(&plan, pace.clone(), &hosts),
            pace,
            left: vec![0; hosts.len() * 2],
            all_left: 0,
            free_since: vec![START; hosts.len()],
            hosts,
            flying: Vec::new(),
            free: Vec::new(),
            ends: BinaryHeap::new(),
            finds,
            look_ups: BTreeMap::new(),
            found: VecDeque::new(),
            evicted: HashMap::new(),
            tally: Tally::default(),
            log: String::new(),
            plan,
        }
    }

    /// Finds the first URLs of every host, before any request.
    ///
    /// # Errors
    /// Fails if the run can't start.
    pub(crate) fn begin(&mut self) -> Result<(), String> {
        self.step(Some(self.now))
    }

    /// Evicts every idle host. Returns the number of hosts and of bytes stored.
    pub(crate) fn evict_all(&mut self) -> (u64, u64) {
        let (mut hosts, mut stored) = (0, 0);
        while let Some(EvictedHost { bytes, .. }) = self.scheduler.evict() {
            hosts += 1;
            stored += bytes.len() as u64;
        }
        (hosts, stored)
    }

    /// Runs until all work is done.
    ///
    /// # Errors
    /// Fails if the world makes no progress or does not end.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        let max_polls = 200_000 + 100 * u64::from(self.plan.hosts) * u64::from(self.plan.urls);
        while self.tally.polls < max_polls {
            self.churn();
            self.reload();
            self.tally.polls += 1;
            let (is_sent, wake) = self.admit();
            if is_sent {
                continue;
            }
            match self.scheduler.poll(self.now) {
                PollOutcome::Issue(permit) => self.look_up(permit),
                PollOutcome::SleepUntil(at) if at <= self.now => {
                    return Err(format!("sleep until the past: {at}"));
                }
                PollOutcome::SleepUntil(at) => self.step(wake.into_iter().chain([at]).min())?,
                PollOutcome::Idle if self.is_over() => {
                    return match self.scheduler.in_flight() {
                        0 => Ok(()),
                        left => Err(format!("{left} in flight, and all is over")),
                    };
                }
                PollOutcome::Idle => self.step(wake)?,
            }
        }
        Err(format!(
            "not done at {}, {} urls left",
            self.now, self.all_left
        ))
    }

    /// Returns the number of pending URLs.
    pub(crate) fn left(&self) -> u64 {
        self.all_left
    }

    fn is_over(&self) -> bool {
        let is_found = self.look_ups.is_empty() && self.found.is_empty();
        is_found && self.ends.is_empty() && self.finds.is_empty() && self.all_left == 0
    }

    /// Advances to the next event.
    fn step(&mut self, wake: Option<Tick>) -> Result<(), String> {
        let end = self.ends.peek().map(|Reverse((end, _))| *end);
        let find = self.finds.peek().map(|Reverse((at, _))| *at);
        let look_up = self.look_ups.first_key_value().map(|((at, _), _)| *at);
        let next = [wake, end, find, look_up].into_iter().flatten().min();
        let Some(next) = next else {
            return Err(format!("{} urls left, and nobody does it", self.all_left));
        };
        self.now = self.now.max(next);
        while let Some(entry) = self.look_ups.first_entry()
            && entry.key().0 <= self.now
        {
            self.found.push_back(entry.remove());
        }
        while let Some(Reverse((at, number))) = self.finds.peek().copied()
            && at <= self.now
        {
            self.finds.pop();
            let urls = 1 + self.dice.below(self.plan.urls);
            self.put_back(number, urls);
            let host = number / 2;
            let text = origin_text(host, self.hosts[host as usize], number % 2 == 1);
            if let Ok(origin) = Origin::parse(&text) {
                self.report_pending(&origin, number);
            }
        }
        while let Some(Reverse((end, index))) = self.ends.peek().copied()
            && end <= self.now
        {
            self.ends.pop();
            self.free.push(index);
            if let Some(flight) = self.flying[index as usize].take() {
                self.end(end, flight);
            }
        }
        Ok(())
    }

    fn put_back(&mut self, origin: u32, urls: u32) {
        let host = (origin / 2) as usize;
        // If this origin had no URLs, the host may have waited for the robots.txt of its other
        // origin instead of the gap.
        if self.left[origin as usize] == 0 {
            self.free_since[host] = self.free_since[host].max(self.now);
        }
        self.left[origin as usize] += urls;
        self.all_left += u64::from(urls);
    }

    /// Reports pending URLs to the scheduler, as a crawler does. Restores an evicted host first.
    fn report_pending(&mut self, origin: &Origin, number: u32) {
        if self.evicted.contains_key(&(number / 2)) {
            self.restore_host(number / 2, &origin.host_key());
        }
        let urls = self.left[number as usize];
        self.scheduler.set_pending(self.now, origin, urls.into());
    }

    fn restore_host(&mut self, host: u32, key: &HostKey) {
        if let Some(bytes) = self.evicted.remove(&host) {
            self.scheduler
                .restore(self.now, key, &bytes, SnapshotCompleteness::Complete);
        }
    }

    /// Starts a look-up if the scheduler requires one. Also starts a look-up in some other cases,
    /// at random.
    fn look_up(&mut self, permit: Permit) {
        let is_asked = self.plan.politeness.look_ups > 0 && self.dice.percent(10);
        if !permit.is_set_aside() && !is_asked {
            return self.send(permit);
        }
        let permit = self.scheduler.set_aside(self.now, permit);
        let until = self.now + self.dice.millis(5_000);
        self.look_ups.insert((until, self.tally.polls), permit);
    }

    /// Sends the request whose look-up ended first. Returns whether the request was sent, and if
    /// not, when to retry.
    fn admit(&mut self) -> (bool, Option<Tick>) {
        let Some(permit) = self.found.pop_front() else {
            return (false, None);
        };
        let host = host_number(permit.host().as_str());
        let is_found = self.dice.percent(80);
        let number = is_found.then(|| self.hosts[host as usize].address);
        let address = number.map(|address| address.to_be_bytes().into());
        let admission = self.scheduler.admit(self.now, permit, address);
        if let PermitAdmissionResult::Wait(permit, until) = admission {
            self.found.push_front(permit);
            return (false, until);
        }
        if let Some(number) = number {
            self.check.found(host, number);
        }
        if let PermitAdmissionResult::Send(permit) = admission {
            self.send(permit);
        }
        (true, None)
    }

    fn send(&mut self, permit: Permit) {
        let host = host_number(permit.host().as_str());
        let purpose = match permit.purpose() {
            RequestPurpose::Page { origin } => WorldPurpose::Page(origin_number(origin)),
            RequestPurpose::Robots { origin } => WorldPurpose::Robots(origin_number(origin)),
            RequestPurpose::Hop { .. } => WorldPurpose::Hop,
        };
        if let (WorldPurpose::Page(number), RequestPurpose::Page { origin }) =
            (purpose, permit.purpose())
        {
            let origin = origin.clone();
            if self.left[number as usize] == 0 {
                self.scheduler.set_pending(self.now, &origin, 0);
                self.scheduler.give_back(self.now, permit);
                return;
            }
            if self.dice.percent(3) {
                self.scheduler.give_back(self.now, permit);
                return;
            }
            self.left[number as usize] -= 1;
            self.all_left -= 1;
            if self.dice.percent(50) {
                self.report_pending(&origin, number);
            }
        }
        let plan = self.hosts[host as usize];
        let sent = self.check.start(self.now, host, plan.site, purpose);
        self.note(&permit, host);
        let took = Duration::from_millis(plan.latency_ms.into()) + self.dice.millis(20);
        let flight = Flight {
            spent: permit.spend(),
            sent,
            took,
            kind: self.draw_kind(),
        };
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.flying.push(None);
                u32::try_from(self.flying.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.flying[index as usize] = Some(flight);
        self.ends.push(Reverse((self.now + took, index)));
    }

    fn note(&mut self, permit: &Permit, host: u32) {
        self.tally.requests += 1;
        let free_since = self.free_since[host as usize];
        if !permit.gap().is_zero() {
            // If the host got work or rules only after its last request ended, the time it waited
            // is not evidence about the gap.
            let late = self.now.since(free_since).saturating_sub(permit.gap());
            self.tally.asked += permit.gap();
            self.tally.late += late;
            self.tally.latest = self.tally.latest.max(late);
        }
        if self.plan.logged {
            let (gap, why) = (permit.gap(), permit.why());
            let purpose = permit.purpose();
            // Writing to a string can't fail.
            let _ = writeln!(self.log, "{} h{host} {purpose:?} {gap:?} {why}", self.now);
        }
    }

    fn draw_kind(&mut self) -> OutcomeKind {
        if self.dice.below(1000) >= self.plan.trouble {
            return OutcomeKind::Answered;
        }
        match self.dice.below(4) {
            0 => OutcomeKind::UrlFailed,
            1 => OutcomeKind::NoConnection,
            2 => OutcomeKind::AskedToWait { retry_after: None },
            _ => OutcomeKind::AskedToWait {
                retry_after: Some(self.dice.millis(90_000)),
            },
        }
    }

    fn draw_limit(&mut self, host: u32, kind: OutcomeKind) -> Option<PaceFromRateLimit> {
        let failed = matches!(kind, OutcomeKind::UrlFailed | OutcomeKind::NoConnection);
        if failed || !self.hosts[host as usize].limited || self.dice.percent(50) {
            return None;
        }
        let reset = Duration::from_secs(u64::from(1 + self.dice.below(30)));
        Some(match self.dice.below(8) {
            0 => PaceFromRateLimit {
                wait: Some(reset),
                ..PaceFromRateLimit::default()
            },
            left => PaceFromRateLimit {
                gap: Some(reset / left),
                lasts: reset,
                wait: None,
            },
        })
    }

    fn end(&mut self, end: Tick, flight: Flight) {
        let Flight {
            spent,
            sent,
            took,
            kind,
        } = flight;
        let host = sent.host;
        let reached = kind != OutcomeKind::NoConnection;
        let address = reached.then(|| self.hosts[host as usize].address);
        let signal = RequestOutcome {
            end,
            response_time: took,
            address: address.map(|address| address.to_be_bytes().into()),
            kind,
            rate_limit: self.draw_limit(host, kind),
            // There are so few URLs that some fail twice.
            url: Some(self.dice.below(50).into()),
        };
        self.check.end(&sent, address, &signal);
        let purpose = spent.purpose().clone();
        let _ = self.scheduler.done(self.now, spent, signal);
        self.tally.asked += took;
        let free_since = &mut self.free_since[host as usize];
        *free_since = (*free_since).max(end);
        match kind {
            OutcomeKind::Answered => {}
            OutcomeKind::AskedToWait { .. } => self.tally.waits_asked += 1,
            OutcomeKind::UrlFailed | OutcomeKind::NoConnection => self.tally.failures += 1,
        }
        self.follow(purpose, sent.purpose, kind == OutcomeKind::Answered);
    }

    fn follow(&mut self, purpose: RequestPurpose, world_purpose: WorldPurpose, answered: bool) {
        match purpose {
            RequestPurpose::Page { .. } if answered => self.tally.pages += 1,
            RequestPurpose::Page { origin } => {
                if let WorldPurpose::Page(number) = world_purpose {
                    self.put_back(number, 1);
                    self.report_pending(&origin, number);
                }
            }
            RequestPurpose::Robots { origin } if answered && self.dice.percent(20) => {
                let to = self.dice.below(self.plan.hosts);
                let text = origin_text(to, self.hosts[to as usize], false);
                if let Ok(target) = Origin::parse(&text) {
                    let key = target.host_key();
                    self.restore_host(to, &key);
                    let free_since = &mut self.free_since[to as usize];
                    *free_since = (*free_since).max(self.now);
                    self.scheduler.queue_request(
                        self.now,
                        &key,
                        RequestPurpose::Hop { of: origin },
                    );
                }
            }
            RequestPurpose::Robots { origin } | RequestPurpose::Hop { of: origin } => {
                self.tally.robots += 1;
                self.judge(&origin, answered);
            }
        }
    }

    fn judge(&mut self, origin: &Origin, answered: bool) {
        let number = origin_number(origin);
        let host = (number / 2) as usize;
        let pace = self.hosts[host].pace;
        let state = match answered {
            true => RobotsState::InForce {
                pace: self.pace[usize::from(pace)].to_robots_pace(),
                until: self.now + Duration::from_secs(5) + self.dice.millis(300_000),
            },
            false => RobotsState::Unreachable {
                retry_at: self.now + self.dice.millis(60_000),
            },
        };
        let free_since = match state {
            RobotsState::Unreachable { retry_at } => retry_at,
            _ => self.now,
        };
        self.free_since[host] = self.free_since[host].max(free_since);
        self.check.robots(number, pace, &state);
        self.scheduler.set_robots(self.now, origin, state);
    }

    /// Switches to the plan's other politeness in some steps, at random.
    fn reload(&mut self) {
        if self.plan.reloads == 0 || self.dice.below(1000) >= self.plan.reloads {
            return;
        }
        self.tally.reloads += 1;
        self.plan.reload();
        let away = |host| self.evicted.contains_key(&host);
        self.check.reload(self.now, &self.plan, away);
        self.scheduler
            .set_politeness(self.now, self.plan.politeness());
        if self.plan.logged {
            let _ = writeln!(self.log, "{} other politeness", self.now);
        }
    }

    fn churn(&mut self) {
        if self.plan.churn == 0 {
            return;
        }
        if self.dice.percent(self.plan.churn)
            && let Some(EvictedHost {
                host: key, bytes, ..
            }) = self.scheduler.evict()
        {
            let host = host_number(key.as_str());
            self.tally.evictions += 1;
            self.check.forget_robots(host);
            self.evicted.insert(host, bytes);
        }
        if self.dice.below(10_000) < self.plan.churn {
            self.kill();
        }
    }

    /// Kills the process and restarts it from the stored state.
    fn kill(&mut self) {
        self.tally.kills += 1;
        let flights: Vec<_> = self.flying.drain(..).flatten().collect();
        let sent: Vec<_> = flights.iter().map(|flight| flight.sent).collect();
        self.check.killed(self.now, &sent);
        self.ends.clear();
        self.free.clear();
        self.look_ups.clear();
        self.found.clear();
        for sent in &sent {
            if let WorldPurpose::Page(number) = sent.purpose {
                self.put_back(number, 1);
            }
        }
        let mut stored = std::mem::take(&mut self.evicted);
        let origins = self.origins();
        for (origin, number) in &origins {
            if let Some((_, bytes)) = self.scheduler.snapshot(&origin.host_key()) {
                stored.insert(number / 2, bytes);
            }
        }
        self.scheduler = Scheduler::new(self.plan.politeness(), self.plan.seed);
        for (origin, number) in &origins {
            if let Some(bytes) = stored.remove(&(number / 2)) {
                let key = origin.host_key();
                self.scheduler
                    .restore(self.now, &key, &bytes, SnapshotCompleteness::Complete);
            }
            self.report_pending(origin, *number);
        }
        if self.plan.logged {
            let _ = writeln!(self.log, "{} killed", self.now);
        }
    }

    fn origins(&self) -> Vec<(Origin, u32)> {
        let hosts = self.hosts.iter().zip(0u32..);
        let origins = hosts.flat_map(|(plan, host)| {
            (0..=u32::from(plan.second_origin)).filter_map(move |second| {
                let text = origin_text(host, *plan, second == 1);
                Some((Origin::parse(&text).ok()?, host * 2 + second))
            })
        });
        origins.collect()
    }
}
